"""A source is never made, and what is no database of Isotone is refused and stays as it is, byte for byte."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import apsw
import pytest
from tests.cli.conftest import Run
from tests.cli.test_no_overwriting import MODULE, _make_device

import isotone as package
from isotone import moving
from isotone.errors import StorageError, UsageError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes and links as POSIX has them")

READING: Final = (
    "check {}",
    "backup {} new.db",
    "restore {} new.db",
    "restore {} shop.db --force",
    "copy {} new.db",
    "copy {} shop.db Orders=New",
    "diff {} shop.db",
    "diff shop.db {}",
    "export {} Orders new.jsonl",
    "tables {}",
    "describe {} Orders",
    "get {} Orders ann 2026-01-01",
    "query {} Orders customer=ann",
    "scan {} Orders",
    "put {} Orders {{}}",
    "delete {} Orders ann 2026-01-01",
    "sql {} SELECT",
    "call {} ListTables",
    "explain {} Orders customer=ann",
    "model {} Orders",
    "lint {}",
    "verify MODULE {}",
    "rewrite MODULE {} --yes",
    "worker os:getcwd {}",
    "repair {} new.db",
    "compact {}",
    "import rows.jsonl {} Orders",
    "workbench {} --no-open",
)
MADE: Final = ("create {} Orders id", "shell {}", "serve {}", "demo {}")
KINDS: Final = ("missing", "empty", "text", "foreign", "foreign with a log", "device", "pipe")


@pytest.fixture
def site(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A folder with sources that are none, by what they are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    name = f"source_module_{tmp_path.name.replace('-', '_')}"
    Path(f"{name}.py").write_text(MODULE)
    Path("rows.jsonl").write_text('{"customer": "ann", "placed_at": "x"}\n')
    Path("empty").touch()
    Path("text").write_text("no database, " * 100)
    foreign = apsw.Connection("foreign")
    foreign.execute("CREATE TABLE precious (a); INSERT INTO precious VALUES (1)")
    foreign.close()
    with_log = apsw.Connection("original")
    with_log.execute("PRAGMA journal_mode=WAL").fetchall()
    with_log.execute("CREATE TABLE precious (a); INSERT INTO precious VALUES (1)")
    for ending in ("", "-wal"):  # as after a kill
        shutil.copy(f"original{ending}", f"logged{ending}")
    with_log.close()
    _make_device(Path("device"))
    os.mkfifo("pipe")
    names = ("missing", "empty", "text", "foreign", "logged", "device", "pipe")
    yield {**dict(zip(KINDS, names, strict=True)), "module": name}
    sys.modules.pop(name, None)


def contents() -> dict[str, object]:
    return {
        str(path): path.read_bytes() if path.is_file() else path.stat().st_mode
        for path in sorted(Path().rglob("*"))
        if "__pycache__" not in path.parts
    }


@pytest.mark.parametrize("line", READING)
def test_what_is_no_database_is_refused_and_stays_as_it_is(
    isotone: Run, site: dict[str, str], line: str
) -> None:
    before = contents()
    for kind in KINDS:
        words = [word.replace("MODULE", site["module"]) for word in line.format(site[kind]).split()]
        outcome = isotone(*words)
        assert outcome.code != 0, kind
        assert site[kind] in outcome.err + outcome.out, kind
        assert "Traceback" not in outcome.err, kind
        assert contents() == before, kind


@pytest.mark.parametrize("line", MADE)
def test_a_database_is_made_of_nothing_else_than_an_empty_file(
    isotone: Run, site: dict[str, str], line: str
) -> None:
    before = contents()
    for kind in ("text", "foreign", "foreign with a log", "device", "pipe"):
        outcome = isotone(*line.format(site[kind]).split())
        assert (outcome.code, outcome.out) == (1, ""), kind
        assert site[kind] in outcome.err, kind
        assert contents() == before, kind


@pytest.mark.parametrize(
    "line",
    [
        *(line for line in READING if line.split()[0] not in ("workbench", "lint")),
        "create {} Orders id",
        "copy shop.db {}",
        "import rows.jsonl {} Orders --key customer",
        "restore shop.db {}",
        "backup shop.db {}",
        "repair shop.db {}",
    ],
)
def test_a_database_in_memory_does_not_outlive_a_command(
    isotone: Run, site: dict[str, str], line: str
) -> None:
    """A copy into one said that everything was copied, and a restore made a file that nothing opens."""
    before = contents()
    words = [word.replace("MODULE", site["module"]) for word in line.format(":memory:").split()]
    outcome = isotone(*words)
    assert outcome.code in (1, 2)
    assert outcome.out == ""
    assert ":memory: would be gone when this command ends" in outcome.err
    assert contents() == before


@pytest.mark.parametrize("kind", ["missing", "empty"])
@pytest.mark.parametrize(
    "line",
    [
        "create {} Orders id",
        "import rows.jsonl {} Orders --key customer",
        "copy shop.db {} --quiet",
    ],
)
def test_a_target_may_be_an_empty_file(
    isotone: Run, site: dict[str, str], line: str, kind: str
) -> None:
    assert isotone(*line.format(site[kind]).split()).code == 0
    assert "Orders" in isotone("tables", site[kind]).out


def test_a_temporary_file_becomes_a_database() -> None:
    with (
        tempfile.NamedTemporaryFile(suffix=".db") as file,
        package.open(file.name) as database,
    ):
        assert database.check() == []


@pytest.mark.parametrize(
    "path", ["/dev/null", "/dev/zero", "/dev/stdin"] if os.name == "posix" else ["NUL"]
)
def test_a_device_is_no_database(isotone: Run, path: str) -> None:
    beside = sorted(Path("/dev").glob("*-*"))
    for words in (("tables", path), ("create", path, "Orders", "id"), ("check", path)):
        outcome = isotone(*words)
        assert outcome.code == 1
        assert "cannot hold a database" in outcome.err or "give another file" in outcome.err
    with pytest.raises(StorageError, match="cannot hold a database"):
        package.open(path)
    assert sorted(Path("/dev").glob("*-*")) == beside


def test_a_check_writes_nothing(isotone: Run, shop: Path, tmp_path: Path) -> None:
    """To a closed database, a backup, one that is open, and one whose program was killed."""

    def check(file: Path) -> None:
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        times = {path: path.stat().st_mtime_ns for path in before}
        assert isotone("check", file) == (0, f"{file}: all is well (5 items)\n", "")
        after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        assert {p: c for p, c in after.items() if not p.name.endswith("-shm")} == {
            p: c for p, c in before.items() if not p.name.endswith("-shm")
        }
        assert {path: path.stat().st_mtime_ns for path in before if path.name[-3:] != "shm"} == {
            path: at for path, at in times.items() if path.name[-3:] != "shm"
        }

    check(shop)
    assert isotone("backup", shop, tmp_path / "copy.db", "--quiet").code == 0
    check(tmp_path / "copy.db")
    link = tmp_path / "link.db"
    link.symlink_to(shop)
    check(link)
    with package.open(shop) as database:
        item = {"customer": {"S": "ann"}, "placed_at": {"S": "2026-01-05"}}
        database.execute("PutItem", {"TableName": "Orders", "Item": item})
        assert Path(f"{shop}-wal").stat().st_size
        check(shop)
        check(link)
        for ending in ("", "-wal"):  # as after a kill
            shutil.copy(f"{shop}{ending}", tmp_path / f"killed.db{ending}")
    check(tmp_path / "killed.db")
    assert (tmp_path / "killed.db-wal").stat().st_size


def test_a_database_without_tables_is_well(isotone: Run, tmp_path: Path) -> None:
    package.open(tmp_path / "new.db").close()
    assert isotone("check", tmp_path / "new.db").out.endswith("all is well (0 items)\n")
    connection = apsw.Connection(str(tmp_path / "begun.db"))  # killed before its first table
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.execute(f"PRAGMA application_id={0x49534F54}; PRAGMA user_version=2")
    connection.close()
    assert isotone("check", tmp_path / "begun.db").out.endswith("all is well (0 items)\n")


def test_a_lost_tree_of_the_database_is_a_problem(isotone: Run, shop: Path) -> None:
    connection = apsw.Connection(str(shop))
    connection.execute("DROP TABLE tree_streams")
    connection.close()
    before = shop.read_bytes()
    outcome = isotone("check", shop)
    assert outcome.code == 1
    assert "no tree streams" in outcome.out
    assert shop.read_bytes() == before


def test_the_library_makes_no_source(shop: Path, tmp_path: Path) -> None:
    missing, empty = tmp_path / "missing.db", tmp_path / "empty.db"
    empty.touch()
    jobs: list[Any] = [
        lambda path: moving.export_items(path, "Orders", tmp_path / "x.jsonl"),
        lambda path: moving.copy(path, tmp_path / "new.db"),
        lambda path: moving.diff(path, shop),
        lambda path: moving.diff(shop, path),
        lambda path: package.backup(path, tmp_path / "new.db"),
        lambda path: package.restore(path, shop, force=True),
        lambda path: package.compact(path),
        lambda path: package.repair(path, tmp_path / "new.db"),
        lambda path: moving.import_items(tmp_path / "rows.jsonl", path, "Orders"),
    ]
    (tmp_path / "rows.jsonl").write_text('{"customer": "ann"}\n')
    for path in (missing, empty):
        for job in jobs:
            with pytest.raises((UsageError, StorageError), match=r"there is no|is empty|nothing"):
                job(path)
    assert not missing.exists()
    assert empty.stat().st_size == 0
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    "line",
    [
        "copy shop.db new.db --dry-run",
        "copy shop.db new.db Nothing",
        "import rows.jsonl new.db Orders",
        "import rows.jsonl new.db Orders --key nothing",
        "import rows.jsonl new.db Orders --key nothing --bad-rows bad.jsonl",
        "import rows.jsonl new.db Orders --key customer,placed_at",
        "import rows.jsonl new.db Orders --key customer --types a:N",
        "import rows.jsonl new.db Orders --key customer --format parquet",
        "import rows.jsonl new.db T --key customer",
        "import rows.jsonl none/new.db Orders --key customer",
        "create new.db T id",
        "create new.db Orders id id",
        "create new.db Orders id:X",
        "create new.db Orders id --index by_status=",
        "create new.db Orders id --index by=status --index by=status",
        "seed MODULE new.db --table-prefix a/b",
        "apply MODULE new.db --yes --table-prefix a/b",
        "worker os:getcwd new.db --create --until-idle --table-prefix a/b",
    ],
)
def test_a_job_that_is_refused_makes_no_file(isotone: Run, site: dict[str, str], line: str) -> None:
    outcome = isotone(*line.replace("MODULE", site["module"]).split())
    assert outcome.code in ((0,) if "--dry-run" in line else (1, 2)), outcome.err
    assert not Path("new.db").exists()


def test_an_import_that_is_refused_leaves_no_table(isotone: Run, site: dict[str, str]) -> None:
    for key in (("--key", "nothing"), ("--key", "customer,placed_at"), ("--key", "customer:N")):
        outcome = isotone("import", "rows.jsonl", "shop.db", "New", *key)
        assert outcome.code == 1
        assert "New" not in isotone("tables", "shop.db").out
    assert (
        "--key customer --sort-key placed_at"
        in isotone("import", "rows.jsonl", "shop.db", "New", "--key", "customer,placed_at").err
    )
    Path("rows.jsonl").write_text('{"a,b": "x"}\n')
    assert isotone("import", "rows.jsonl", "shop.db", "New", "--key", "a,b:S").code == 0
    assert "New" in isotone("tables", "shop.db").out


def test_an_import_without_rows_makes_the_table(isotone: Run, site: dict[str, str]) -> None:
    Path("rows.jsonl").write_text("")
    assert isotone("import", "rows.jsonl", "shop.db", "New", "--key", "id", "--quiet").code == 0
    assert "New" in isotone("tables", "shop.db").out


def test_rows_before_the_first_bad_one_make_the_table(isotone: Run, site: dict[str, str]) -> None:
    Path("rows.jsonl").write_text('{"id": "a"}\n{"id": 7}\n')
    assert isotone("import", "rows.jsonl", "new.db", "New", "--key", "id", "--quiet").code == 1
    assert isotone("get", "new.db", "New", "a", "--line").out == '{"id": "a"}\n'
