"""A job goes on in a file only if it is what the job has written there, and one job writes a file at a time."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import isotone
from isotone import moving
from isotone.errors import InProgress, StorageError, UsageError

ROWS = 900
pytestmark = pytest.mark.usefixtures("frequent_reports")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table_of(tag: str, rows: int = ROWS) -> isotone.Database:
    """A database whose items have a tag."""
    Path(f"{tag}.jsonl").write_text(
        "".join(f'{{"id": "i{number}", "tag": "{tag}"}}\n' for number in range(rows))
    )
    database = isotone.open(f"{tag}.db")
    moving.import_items(f"{tag}.jsonl", database, "Orders", key="id")
    return database


def export(tag: str, *, most: int | None = None, **options: Any) -> moving.Exported:
    """Export the table of a tag; with `most`, it is stopped when it has written so many items."""
    stop = threading.Event()

    def stop_soon(progress: moving.Progress) -> None:
        if most is not None and progress.items >= most:
            stop.set()

    return moving.export_items(
        f"{tag}.db", "Orders", stop=stop, progress=stop_soon, segments=1, **options
    )


@pytest.mark.parametrize("name", ["orders.jsonl", "orders.csv", "orders.jsonl.gz"])
def test_an_export_does_not_go_on_in_what_another_one_has_written(name: str) -> None:
    for tag in ("ann", "bob"):
        table_of(tag).close()
    assert not export("ann", most=1, target=name).is_complete
    assert not export("bob", most=400, target=name).is_complete
    done = export("ann", target=name)
    assert (done.is_complete, done.items) == (True, ROWS)
    with isotone.open(":memory:") as copy:
        moving.import_items(name, copy, "Orders", key="id")
        found: list[Any] = []
        start: dict[str, Any] = {}
        while not found or start:
            page = copy.execute("Scan", {"TableName": "Orders", **start})
            found += page["Items"]
            last = page.get("LastEvaluatedKey")
            start = {"ExclusiveStartKey": last} if last else {}
    assert Counter(item["tag"]["S"] for item in found) == {"ann": ROWS}


@pytest.mark.parametrize("name", ["orders.jsonl", "orders.parquet"])
def test_two_exports_do_not_write_one_file(name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    for tag in ("ann", "bob"):
        table_of(tag).close()
    refused: list[str] = []

    def another(_: moving.Progress) -> None:
        if not refused:
            with pytest.raises(InProgress, match=f"is writing {name}.part: wait") as caught:
                export("bob", target=name)
            refused.append(str(caught.value))

    done = moving.export_items("ann.db", "Orders", name, progress=another)
    assert refused
    assert done.is_complete
    with isotone.open(":memory:") as copy:
        assert moving.import_items(name, copy, "Orders", key="id").items == ROWS
    with pytest.raises(UsageError, match="exists"):
        export("bob", target=name)
    assert export("bob", target=name, force=True).is_complete


@pytest.mark.parametrize("name", ["orders.jsonl", "orders.csv.gz", "orders.parquet"])
def test_an_export_replaces_no_draft_of_somebody_else(name: str) -> None:
    """A browser calls a download `orders.jsonl.part` until it is complete."""
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    table_of("ann").close()
    draft, mark = Path(f"{name}.part"), Path(f"{name}.part-begun")
    draft.write_text('{"id": "precious"}\n')
    for foreign in (None, "a text"):
        if foreign is not None:
            mark.write_text(foreign)
        for options in ({}, {"force": True}, {"restart": True}):
            with pytest.raises(UsageError, match=f"{name}.part is no unfinished file of Isotone"):
                export("ann", target=name, **options)
            assert draft.read_text() == '{"id": "precious"}\n'
            assert not Path(name).exists()
    draft.unlink()
    assert export("ann", target=name).is_complete
    assert mark.read_text() == "a text"


@pytest.mark.skipif(os.name == "nt", reason="links as POSIX has them")
@pytest.mark.parametrize("name", ["orders.jsonl", "orders.csv.gz", "orders.parquet"])
def test_an_export_does_not_continue_a_draft_with_another_name(name: str) -> None:
    """A backup of a folder by hard links (`cp -al`) has the draft, too, and must stay as it was."""
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    table_of("ann").close()
    assert not export("ann", most=1, target=name).is_complete
    Path("backup").hardlink_to(f"{name}.part")
    before = Path("backup").read_bytes()
    for options in ({}, {"force": True}, {"restart": True}):
        with pytest.raises(UsageError, match=rf"{name}\.part has another name \(a hard link\)"):
            export("ann", target=name, **options)
        assert Path("backup").read_bytes() == before
    Path(f"{name}.part").unlink()
    assert export("ann", target=name).is_complete
    assert Path("backup").read_bytes() == before


@pytest.mark.parametrize("name", ["orders.jsonl", "orders.parquet"])
def test_an_export_replaces_what_a_killed_one_has_left(name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    table_of("ann").close()
    table_of("bob").close()
    assert not export("ann", most=1, target=name).is_complete
    assert Path(f"{name}.part").stat().st_size
    assert export("bob", target=name).is_complete
    assert not list(Path().glob(f"{name}.*"))


def test_an_export_of_before_is_continued_by_its_length() -> None:
    """A state that an earlier version has saved has no CRC of the file, and no checksum of its own."""
    table_of("ann").close()
    stopped = export("ann", most=1, target="orders.jsonl")
    assert stopped.state is not None
    state = json.loads(stopped.state.read_text())
    length, _ = state["entries"]["Orders"]["output"]
    state["entries"]["Orders"]["output"] = length
    del state["sum"]
    stopped.state.write_text(json.dumps(state))
    seen: list[int] = []
    done = moving.export_items(
        "ann.db", "Orders", "orders.jsonl", progress=lambda progress: seen.append(progress.items)
    )
    assert (done.is_complete, done.items) == (True, ROWS)
    assert seen[0] > stopped.items
    assert len(set(Path("orders.jsonl").read_text().splitlines())) == ROWS


# Bad rows


def write_rows(name: str, bad: str, rows: int = ROWS) -> None:
    """A file of which every tenth row has no key."""
    lines = (f'{{"{"id" if n % 10 else "no"}": "{bad}{n}"}}\n' for n in range(rows))
    Path(name).write_text("".join(lines))


def import_rows(name: str, target: str, bad_rows: str, *, most: int | None = None) -> Any:
    stop = threading.Event()

    def stop_soon(progress: moving.Progress) -> None:
        if most is not None and progress.items >= most:
            stop.set()

    return moving.import_items(
        name, target, "Orders", key="id", bad_rows=bad_rows, stop=stop, progress=stop_soon
    )


def bad_of(name: str, bad: str) -> set[str]:
    """The bad rows of an import that a file has."""
    lines = [json.loads(line) for line in Path(name).read_text().splitlines()]
    return {text for line in lines if f'"{bad}' in (text := line["text"])}


def test_bad_rows_of_another_import_are_not_cut_off() -> None:
    write_rows("ann.jsonl", "ann")
    write_rows("bob.jsonl", "bob")
    stopped = import_rows("ann.jsonl", "ann.db", "bad.jsonl", most=1)
    assert not stopped.is_complete
    assert stopped.bad
    assert import_rows("bob.jsonl", "bob.db", "bad.jsonl").bad == ROWS // 10
    done = import_rows("ann.jsonl", "ann.db", "bad.jsonl")
    assert (done.is_complete, done.bad) == (True, ROWS // 10)
    assert len(bad_of("bad.jsonl", "bob")) == ROWS // 10
    assert len(bad_of("bad.jsonl", "ann")) == ROWS // 10 - stopped.bad


def test_a_continued_import_takes_no_file_of_something_else() -> None:
    write_rows("ann.jsonl", "ann")
    assert not import_rows("ann.jsonl", "ann.db", "bad.jsonl", most=1).is_complete
    notes = "my notes\n" * 9000
    Path("notes.txt").write_text(notes)
    with pytest.raises(UsageError, match="has no bad rows of an import"):
        import_rows("ann.jsonl", "ann.db", "notes.txt")
    assert Path("notes.txt").read_text() == notes


def test_two_imports_do_not_write_their_bad_rows_to_one_file() -> None:
    write_rows("ann.jsonl", "ann")
    write_rows("bob.jsonl", "bob")
    refused: list[str] = []

    def another(_: moving.Progress) -> None:
        if not refused:
            with pytest.raises(InProgress, match=r"is writing bad\.jsonl: wait") as caught:
                import_rows("bob.jsonl", "bob.db", "bad.jsonl")
            refused.append(str(caught.value))

    done = moving.import_items(
        "ann.jsonl", "ann.db", "Orders", key="id", bad_rows="bad.jsonl", progress=another
    )
    assert refused
    assert done.bad == len(bad_of("bad.jsonl", "ann")) == ROWS // 10


def test_an_import_with_other_types_begins_again() -> None:
    lines = ["id,total\n", *(f"i{number},{number}\n" for number in range(ROWS))]
    Path("orders.csv").write_text("".join(lines))
    stop = threading.Event()

    def stop_soon(progress: moving.Progress) -> None:
        if progress.items:
            stop.set()

    with isotone.open("new.db") as database:
        begun = moving.import_items(
            "orders.csv", "new.db", "Orders", key="id", stop=stop, progress=stop_soon
        )
        assert not begun.is_complete
        done = moving.import_items("orders.csv", "new.db", "Orders", types={"total": "N"})
        assert done.items == ROWS
        numbers = database.execute(
            "Scan",
            {
                "TableName": "Orders",
                "Select": "COUNT",
                "FilterExpression": "attribute_type(#total, :n)",
                "ExpressionAttributeNames": {"#total": "total"},
                "ExpressionAttributeValues": {":n": {"S": "N"}},
            },
        )
        assert numbers["Count"] == ROWS


# A file that is taken away while it is written


def replace_file(path: Path) -> None:
    path.unlink()
    path.write_text("something else")


def empty_file(path: Path) -> None:
    os.truncate(path, 0)


TAKEN = [pytest.param(Path.unlink, id="deleted"), replace_file, empty_file]


@pytest.mark.parametrize("take", TAKEN)
@pytest.mark.parametrize("name", ["orders.jsonl", "orders.csv.gz", "orders.parquet"])
def test_an_export_whose_draft_is_taken_away_is_not_complete(
    name: str, take: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isotone.moving.exporting._SAVE", 0.0)
    monkeypatch.setattr("isotone.moving.parquet_files._GROUP", 100)
    table_of("ann").close()
    draft, taken = Path(f"{name}.part"), list[int]()

    def take_once(progress: moving.Progress) -> None:
        if not taken and draft.stat().st_size:
            taken.append(progress.items)
            take(draft)

    with pytest.raises((StorageError, FileNotFoundError)):
        moving.export_items("ann.db", "Orders", name, progress=take_once)
    assert taken
    assert not Path(name).exists()
    assert moving.export_items("ann.db", "Orders", name).items == ROWS
    with isotone.open(":memory:") as copy:
        assert moving.import_items(name, copy, "Orders", key="id").items == ROWS


@pytest.mark.parametrize("take", TAKEN)
def test_an_import_whose_bad_rows_are_taken_away_is_not_complete(
    take: Callable[[Path], object],
) -> None:
    write_rows("ann.jsonl", "ann")
    bad, taken = Path("bad.jsonl"), list[int]()

    def take_once(progress: moving.Progress) -> None:
        if not taken:
            taken.append(progress.items)
            take(bad)

    with pytest.raises(StorageError, match=r"bad\.jsonl was deleted, replaced or changed"):
        moving.import_items(
            "ann.jsonl", "ann.db", "Orders", key="id", bad_rows=bad, progress=take_once
        )
    assert taken


@pytest.mark.parametrize("place", ["rows.jsonl", "rows/"])
def test_an_import_of_another_file_with_the_size_and_time_of_the_first_begins_again(
    place: str,
) -> None:
    Path("rows").mkdir()
    path = Path("rows/rows.jsonl" if place == "rows/" else place)
    for tag in ("ann", "bob"):
        Path(f"{tag}.jsonl").write_text(
            "".join(f'{{"id": "i{n}", "tag": "{tag}"}}\n' for n in range(ROWS))
        )
    Path("ann.jsonl").replace(path)
    was = path.stat()
    assert not import_rows(place, "orders.db", "bad.jsonl", most=1).is_complete
    Path("bob.jsonl").replace(path)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert import_rows(place, "orders.db", "bad.jsonl").is_complete
    with isotone.open("orders.db") as database:
        found = database.execute("Scan", {"TableName": "Orders"})["Items"]
    assert {each["tag"]["S"] for each in found} == {"bob"}
