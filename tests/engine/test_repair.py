"""A repair saves everything whose checksum holds, says what it lost, and leaves the damaged file alone."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.attack import flip_site
from tests.storage.old_format import to_format_1

import isotone
from isotone.errors import UsageError


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("repair") / "source.db"
    flip_site.build(path)
    return path


def read(path: Path) -> flip_site.Reads:
    with isotone.open(
        path, durability="none", clock=isotone.ManualClock(1_800_000_000)
    ) as database:
        assert database.check() == []
        return flip_site.reads(database)


@pytest.fixture(scope="module")
def wanted(source: Path) -> flip_site.Reads:
    copy = source.with_name("wanted.db")
    shutil.copyfile(source, copy)
    return read(copy)


def test_nothing_is_lost_of_a_sound_file(
    source: Path, wanted: flip_site.Reads, tmp_path: Path
) -> None:
    result = isotone.repair(source, tmp_path / "new.db")
    assert (result.lost, result.problems) == ([], [])
    assert result.items == {"Shop": 168, "Plain": 60}
    assert read(tmp_path / "new.db") == wanted


def test_a_page_of_zeros_costs_only_its_own_rows(
    source: Path, wanted: flip_site.Reads, tmp_path: Path
) -> None:
    content = source.read_bytes()
    size = 8192
    for number in random.Random(2).sample(range(1, len(content) // size), 6):
        broken = tmp_path / f"broken{number}.db"
        broken.write_bytes(content[: number * size] + bytes(size) + content[(number + 1) * size :])
        target = tmp_path / f"new{number}.db"
        result = isotone.repair(broken, target)
        assert broken.read_bytes()[: number * size] == content[: number * size]
        assert result.problems == []
        found = read(target)
        for table in ("Shop", "Plain"):
            items = {repr(item) for item in found[f"scan {table}"]}
            assert items <= {repr(item) for item in wanted[f"scan {table}"]}
            missing = len(wanted[f"scan {table}"]) - len(items)
            told = [
                lost for lost in result.lost if lost["what"] == "items" and lost["table"] == table
            ]
            assert [lost["had"] - lost["saved"] for lost in told] == [missing] * bool(missing)


def test_the_log_is_taken_over_and_the_source_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with isotone.open(path, durability="none") as database:
        client: Any = database.client()
        client.create_table(
            TableName="Orders",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        client.put_item(TableName="Orders", Item={"id": {"S": "in the log"}})
        left = tmp_path / "left.db"
        for end in ("", "-wal"):
            shutil.copyfile(f"{path}{end}", f"{left}{end}")
    before = [Path(f"{left}{end}").read_bytes() for end in ("", "-wal")]
    assert isotone.repair(left, tmp_path / "new.db").items == {"Orders": 1}
    assert [Path(f"{left}{end}").read_bytes() for end in ("", "-wal")] == before
    assert sorted(each.name for each in tmp_path.glob("left*")) == ["left.db", "left.db-wal"]
    assert not list(tmp_path.glob("*.repair-*"))


def test_a_file_of_the_old_format_is_repaired_too(
    source: Path, wanted: flip_site.Reads, tmp_path: Path
) -> None:
    old = tmp_path / "old.db"
    shutil.copyfile(source, old)
    to_format_1(old)
    result = isotone.repair(old, tmp_path / "new.db")
    assert (result.lost, result.problems) == ([], [])
    assert read(tmp_path / "new.db") == wanted


def test_a_target_that_exists_is_refused(source: Path, tmp_path: Path) -> None:
    (tmp_path / "new.db").touch()
    with pytest.raises(UsageError, match=r"new\.db exists"):
        isotone.repair(source, tmp_path / "new.db")
    with pytest.raises(UsageError, match="there is no file"):
        isotone.repair(tmp_path / "absent.db", tmp_path / "other.db")
