"""A repair saves everything whose checksum holds, says what it lost, and leaves the damaged file alone."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.attack import flip_site
from tests.programs import python
from tests.storage.old_format import to_format_1

import isotone
from isotone.errors import StorageBusy, UsageError


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


@pytest.mark.parametrize("change", ["zeros", "another kind of page"])
def test_no_page_is_lost_without_a_word(
    source: Path, wanted: flip_site.Reads, tmp_path: Path, change: str
) -> None:
    content = source.read_bytes()
    size = 8192
    pages = range(1, len(content) // size)
    used = [number for number in pages if content[number * size] in (0x02, 0x0A)]
    for number in random.Random(4).sample(used, 12):
        damaged = bytearray(content)
        if change == "zeros":
            damaged[number * size : (number + 1) * size] = bytes(size)
        else:
            damaged[number * size] ^= 0x04
        broken, target = tmp_path / f"broken{number}.db", tmp_path / f"new{number}.db"
        broken.write_bytes(damaged)
        lost = isotone.repair(broken, target).lost
        free = {"what": "a page that cannot be read", "page": number + 1} not in lost
        assert free == (number + 1 in free_pages(content)), number


def b_tree_pages(content: bytes) -> list[int]:
    """Where the pages with rows begin, but for the schema."""
    free = free_pages(content)
    return [
        number * 8192
        for number in range(1, len(content) // 8192)
        if content[number * 8192] in (0x02, 0x0A) and number + 1 not in free
    ]


def test_rows_that_their_page_no_longer_counts_are_saved(
    source: Path, wanted: flip_site.Reads, tmp_path: Path
) -> None:
    content = source.read_bytes()
    changed = 0
    for place in random.Random(5).sample(b_tree_pages(content), 8):
        count = content[place + 4]
        fewer = next((count & ~(1 << bit) for bit in reversed(range(8)) if count & 1 << bit), 0)
        damaged = bytearray(content)
        damaged[place + 4] = fewer
        changed += fewer < count
        broken, target = tmp_path / f"broken{place}.db", tmp_path / f"new{place}.db"
        broken.write_bytes(damaged)
        assert isotone.repair(broken, target).lost == [], place
        assert read(target) == wanted
        target.unlink()
    assert changed > 5


def test_rows_that_can_no_longer_be_found_in_their_page_are_reported(
    source: Path, tmp_path: Path
) -> None:
    """Also those of streams and histories, of which nothing else knows how many there are."""
    content = source.read_bytes()
    for place in random.Random(6).sample(b_tree_pages(content), 8):
        count = content[place + 4]
        begin = place + (12 if content[place] == 0x02 else 8)
        if count < 2:
            continue
        damaged = bytearray(content)
        damaged[place + 4] = count // 2
        damaged[begin + count // 2 * 2 : begin + count * 2] = bytes(2 * (count - count // 2))
        broken, target = tmp_path / f"broken{place}.db", tmp_path / f"new{place}.db"
        broken.write_bytes(damaged)
        pages = [each.get("page") for each in isotone.repair(broken, target).lost]
        assert place // 8192 + 1 in pages
        target.unlink()


def test_a_list_of_free_bytes_that_leads_back_to_itself_ends(
    source: Path, wanted: flip_site.Reads, tmp_path: Path
) -> None:
    content = source.read_bytes()
    damaged = bytearray(content)
    changed = 0
    for place in b_tree_pages(content):
        header = 12 if content[place] == 0x02 else 8
        unused = header + 2 * int.from_bytes(content[place + 3 : place + 5], "big")
        if int.from_bytes(content[place + 5 : place + 7], "big") < unused + 4:
            continue
        damaged[place + 1 : place + 3] = unused.to_bytes(2, "big")
        damaged[place + unused : place + unused + 4] = unused.to_bytes(2, "big") + bytes(2)
        changed += 1
    assert changed > 5
    broken = tmp_path / "broken.db"
    broken.write_bytes(damaged)
    assert isotone.repair(broken, tmp_path / "new.db").lost == []
    assert read(tmp_path / "new.db") == wanted


def free_pages(content: bytes) -> set[int]:
    """The numbers of free pages of a sound file."""
    free: set[int] = set()
    trunk = int.from_bytes(content[32:36], "big")
    while trunk:
        page = content[(trunk - 1) * 8192 : trunk * 8192]
        count = int.from_bytes(page[4:8], "big")
        ends = range(8, 8 + 4 * count, 4)
        free |= {trunk, *(int.from_bytes(page[at : at + 4], "big") for at in ends)}
        trunk = int.from_bytes(page[:4], "big")
    return free


def test_a_backup_that_has_lost_items_is_reported(source: Path, tmp_path: Path) -> None:
    told = []
    content = source.read_bytes()
    for number in range(60, len(content) // 8192):
        broken, target = tmp_path / f"broken{number}.db", tmp_path / f"new{number}.db"
        broken.write_bytes(content[: number * 8192] + bytes(8192) + content[(number + 1) * 8192 :])
        lost = isotone.repair(broken, target).lost
        told += [each for each in lost if each["what"] == "items of a backup"]
    assert told
    assert {(each["table"], each["backup"], each["had"]) for each in told} == {
        ("Plain", "nightly", 60)
    }
    assert all(each["saved"] < 60 for each in told)


@pytest.mark.parametrize(
    ("at", "byte"),
    [
        (16, 0x21),
        (16, 0x80),
        (17, 0x01),
        (20, 0x01),
        (20, 0xC0),
        (32, 0x80),
        (35, 0xFF),
        (39, 0x40),
    ],
)
def test_a_damaged_header_costs_nothing(
    source: Path, wanted: flip_site.Reads, tmp_path: Path, at: int, byte: int
) -> None:
    damaged = bytearray(source.read_bytes())
    damaged[at] ^= byte
    (tmp_path / "broken.db").write_bytes(damaged)
    result = isotone.repair(tmp_path / "broken.db", tmp_path / "new.db")
    assert result.problems == []
    assert result.items == {"Shop": 168, "Plain": 60}
    found = read(tmp_path / "new.db")
    if at < 32:  # what was deleted can be there again if nobody knows which pages are free
        assert found == wanted
    else:
        assert "the list of free pages is damaged" in str(result.lost)
        assert found["scan Plain"] == wanted["scan Plain"]


@pytest.mark.parametrize("size", [100, 8191, 20_000, 300_000])
def test_a_file_that_ends_early(source: Path, tmp_path: Path, size: int) -> None:
    (tmp_path / "broken.db").write_bytes(source.read_bytes()[:size])
    result = isotone.repair(tmp_path / "broken.db", tmp_path / "new.db")
    assert any("the file is cut off" in each["what"] for each in result.lost)


def test_a_repair_that_is_killed_leaves_no_new_file(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "new.db"
    program = (
        "import os, signal, sys, isotone\n"
        "def progress(done, total):\n"
        "    if done == int(sys.argv[3]): os.kill(os.getpid(), signal.SIGKILL)\n"
        "isotone.repair(sys.argv[1], sys.argv[2], progress=progress)\n"
    )
    before = source.read_bytes()
    for page in (1, 20, 60):
        killed = python("-c", program, source, target, page, stdout=None)
        assert killed.wait(120) == -signal.SIGKILL
        assert not target.exists()
    assert source.read_bytes() == before
    assert isotone.repair(source, target).lost == []


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


def test_of_the_old_format_is_saved_what_lies_around_the_damage(
    source: Path, wanted: flip_site.Reads, tmp_path: Path
) -> None:
    old = tmp_path / "old.db"
    shutil.copyfile(source, old)
    to_format_1(old)
    content = old.read_bytes()
    kept = []
    for number in range(1, len(content) // 8192):
        if (
            content[number * 8192] != 0x0A
            or content.count(b"person-", number * 8192, number * 8192 + 8192) < 5
        ):
            continue
        broken, target = tmp_path / f"broken{number}.db", tmp_path / f"new{number}.db"
        broken.write_bytes(content[: number * 8192] + bytes(8192) + content[(number + 1) * 8192 :])
        result = isotone.repair(broken, target)
        saved = result.items.get("Shop", 0)
        assert saved == 168 or result.lost
        kept.append(saved)
    assert min(kept) > 140, "a page has at most a few dozen items"


def test_a_target_that_exists_is_refused(source: Path, tmp_path: Path) -> None:
    (tmp_path / "new.db").touch()
    with pytest.raises(UsageError, match=r"new\.db exists"):
        isotone.repair(source, tmp_path / "new.db")
    for size in (0, 1, 99):
        (tmp_path / "short.db").write_bytes(source.read_bytes()[:size])
        with pytest.raises(UsageError, match="there is nothing to save"):
            isotone.repair(tmp_path / "short.db", tmp_path / "other.db")
    with pytest.raises(UsageError, match="there is no file"):
        isotone.repair(tmp_path / "absent.db", tmp_path / "other.db")


WRITER = """
import sys
import isotone

database = isotone.open(sys.argv[1], durability="none")
print("ready", flush=True)
for number in range(10**9):
    item = {"p": {"S": str(number % 50)}, "text": {"S": str(number) * 500}}
    database.execute("PutItem", {"TableName": "tab", "Item": item})
"""


def repair_until_refused(path: Path, folder: Path) -> None:
    """Repair a file up to ten times: a process that gets no core meanwhile does not write to it."""
    for attempt in range(10):
        isotone.repair(path, folder / f"new{attempt}.db")
        (folder / f"new{attempt}.db").unlink()


def test_a_file_is_not_repaired_while_others_write_to_it(tmp_path: Path) -> None:
    path = tmp_path / "busy.db"
    with isotone.open(path, durability="none") as database:
        database.client().create_table(
            TableName="tab",
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            with pytest.raises(StorageBusy, match="is writing to"):
                repair_until_refused(path, tmp_path)
        finally:
            process.kill()
    assert [each.name for each in tmp_path.glob("new*")] == []
    assert isotone.repair(path, tmp_path / "new.db").lost == []


def test_a_file_that_is_open_and_idle_is_repaired(tmp_path: Path, source: Path) -> None:
    path = tmp_path / "open.db"
    shutil.copyfile(source, path)
    with isotone.open(path) as database:
        database.client().put_item(TableName="Plain", Item={"id": {"B": b"late"}})
        result = isotone.repair(path, tmp_path / "new.db")
    assert (result.lost, result.items["Plain"]) == ([], 61)
