"""A file whose log would lose commits is not opened; a power cut never keeps a file from being opened."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from tests.programs import python
from tests.storage.made_logs import ENDS, frames_that_sqlite_reads

from isotone.errors import DamagedLog, StorageError
from isotone.storage import file, file_copies, salvage
from isotone.storage.log_frames import FRAME_HEADER, HEADER, log_of
from isotone.storage.sqlite import SQLiteStore

STRIDE = FRAME_HEADER + file.PAGE_SIZE
COMMITS = 30
STORM = Path(__file__).parents[1] / "crash" / "storm.py"


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What is left of a process that was killed after so many commits, each of one frame."""
    path = tmp_path_factory.mktemp("killed") / "a.db"
    store = SQLiteStore(path, "disk")
    with store.transaction():
        store.create_tree("t")
    store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for number in range(COMMITS):
        with store.transaction():
            store.put("t", b"%03d" % number, b"value" * 9)
    content = {end: Path(f"{path}{end}").read_bytes() for end in ENDS}
    store.close()
    assert len(content["-wal"]) == HEADER + COMMITS * STRIDE
    return content


@pytest.fixture
def path(tmp_path: Path, killed: dict[str, bytes]) -> Path:
    return write(tmp_path / "a.db", killed)


def write(path: Path, content: dict[str, bytes]) -> Path:
    for end, part in content.items():
        Path(f"{path}{end}").write_bytes(part)
    return path


def log(path: Path) -> Path:
    return Path(f"{path}-wal")


def kept(path: Path, number: str = "") -> Path:
    return Path(f"{path}.damaged-wal{number}")


def change(path: Path, place: int, how: Callable[[bytes], bytes]) -> None:
    """Change the log from a place on; `how` makes other bytes of those there."""
    content = log(path).read_bytes()
    changed = how(content[place:])
    log(path).write_bytes(content[:place] + changed + content[place + len(changed) :])


def place_in(frame: int, byte: int = 5000) -> int:
    return HEADER + (frame - 1) * STRIDE + byte


def flip(path: Path, frame: int, byte: int = 5000, bit: int = 0) -> None:
    change(path, place_in(frame, byte), lambda found: bytes((found[0] ^ 1 << bit,)))


def wipe(path: Path, frame: int, byte: int = 4000, size: int = 600) -> None:
    """As a sector that was not written, or that the disk has lost."""
    change(path, place_in(frame, byte), lambda _: b"\x55" * size)


def forget_index(path: Path) -> None:
    Path(f"{path}-shm").unlink()


def count(path: Path, durability: file.Durability = "disk") -> int:
    """How many entries there are, of those that were committed one after the other."""
    store = SQLiteStore(path, durability)
    try:
        found = list(store.range("t", b"", None))
    finally:
        store.close()
    assert found == [(b"%03d" % number, b"value" * 9) for number in range(len(found))]
    return len(found)


def files(path: Path) -> dict[str, bytes]:
    """Everything beside a file but for copies of its log."""
    found = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    return {name: content for name, content in found.items() if "damaged-wal" not in name}


def test_a_sound_log_is_read_to_its_end(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert count(path) == COMMITS
    assert not caplog.records
    assert [each.name for each in path.parent.iterdir()] == ["a.db"]


OPENINGS: dict[str, Callable[[Path], object]] = {
    "to write": count,
    "to read": lambda path: SQLiteStore(path, read_only=True),
    "a backup": lambda path: file_copies.back_up(str(path), f"{path}.copy"),
    "a backup that is compact": lambda path: file_copies.back_up(
        str(path), f"{path}.copy", compact=True
    ),
    "a restore": lambda path: file_copies.restore(str(path), f"{path}.copy"),
    "a compaction": lambda path: file_copies.compact(str(path)),
}


@pytest.mark.parametrize("index", [True, False], ids=["with the index", "without it"])
@pytest.mark.parametrize("how", OPENINGS)
def test_a_wrong_bit_in_the_middle_keeps_a_file_from_being_opened(
    path: Path, how: str, index: bool
) -> None:
    flip(path, 12)
    if not index:
        forget_index(path)
    before = files(path)
    for _ in range(2):
        with pytest.raises(DamagedLog, match=r"frame 12 of 30.*`isotone repair .*a\.db NEW_FILE`"):
            OPENINGS[how](path)
        assert files(path) == before
    only_reads = how in ("to read", "a restore")
    assert kept(path).exists() == (not only_reads)
    assert only_reads or kept(path).read_bytes() == before["a.db-wal"]
    assert not kept(path, "-2").exists()


def test_an_update_of_a_backup_does_not_open_it_either(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    whole = write(tmp_path / "whole.db", {end: Path(f"{path}{end}").read_bytes() for end in ENDS})
    file_copies.back_up(str(whole), str(backup))
    flip(path, 12)
    before = backup.read_bytes()
    with pytest.raises(DamagedLog):
        file_copies.back_up(str(path), str(backup), update=True)
    assert backup.read_bytes() == before


@pytest.mark.parametrize("durability", ["disk", "process", "none"])
def test_a_gap_is_damage_where_each_commit_is_synced(
    path: Path, durability: file.Durability, caplog: pytest.LogCaptureFixture
) -> None:
    """Elsewhere a power cut may leave it, and the file is opened."""
    wipe(path, 12)
    before = log(path).read_bytes()
    if durability == "disk":
        with pytest.raises(DamagedLog, match="frame 12 of 30"):
            count(path, durability)
        assert kept(path).read_bytes() == before
        return
    assert count(path, durability) == 11
    assert kept(path).read_bytes() == before
    assert "is not whole to its end (frame 12 of 30)" in caplog.text
    assert str(kept(path)) in caplog.text
    caplog.clear()
    assert count(path, "disk") == 11
    assert not caplog.records, "what was left out is not met again"


def test_a_log_that_ends_early_is_known_by_its_index(path: Path) -> None:
    log(path).write_bytes(log(path).read_bytes()[: place_in(21, 700)])
    for _ in range(2):
        with pytest.raises(DamagedLog, match=r"it ends after frame 20, and frame 30 was"):
            count(path)
    forget_index(path)
    assert count(path) == 20, "without the index it is a write that was cut off"


@pytest.mark.parametrize("index", [True, False], ids=["with the index", "without it"])
def test_the_last_commit_is_lost_by_a_power_cut_or_by_damage(
    path: Path, index: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """After a kill the index knows which of the two."""
    wipe(path, COMMITS)
    before = log(path).read_bytes()
    if index:
        with pytest.raises(DamagedLog):
            count(path)
        return
    forget_index(path)
    assert count(path) == COMMITS - 1
    assert "is not whole to its end (frame 30 of 30)" in caplog.text
    assert kept(path).read_bytes() == before


@pytest.mark.parametrize("byte", [1, 3, 5, 7, 9, 14, 17, 22, FRAME_HEADER, STRIDE - 1])
@pytest.mark.parametrize("bit", [0, 5, 7])
def test_no_bit_of_the_last_frame_is_lost_without_a_word(
    path: Path, byte: int, bit: int, caplog: pytest.LogCaptureFixture
) -> None:
    forget_index(path)
    flip(path, COMMITS, byte, bit)
    before = log(path).read_bytes()
    assert count(path) == COMMITS - 1
    assert "is not whole to its end" in caplog.text
    assert kept(path).read_bytes() == before


def test_each_copy_of_another_log_has_a_name_of_its_own(
    path: Path, killed: dict[str, bytes]
) -> None:
    for byte, number in ((4000, ""), (5000, "-2"), (6000, "-3"), (5000, "-2")):
        write(path, killed)
        forget_index(path)
        wipe(path, COMMITS, byte)
        before = log(path).read_bytes()
        assert count(path) == COMMITS - 1
        assert kept(path, number).read_bytes() == before
    assert not kept(path, "-4").exists()


def test_a_log_that_cannot_be_kept_is_not_dropped(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_index(path)
    wipe(path, COMMITS)
    before = files(path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(StorageError, match=r"a copy of it cannot be written .*No space left"):
        count(path)
    assert files(path) == before


@pytest.mark.parametrize("byte", range(0, HEADER, 3))
@pytest.mark.parametrize("bit", [0, 6])
def test_a_wrong_bit_in_the_header_of_the_log(path: Path, byte: int, bit: int) -> None:
    """SQLite would ignore the whole log."""
    change(path, byte, lambda found: bytes((found[0] ^ 1 << bit,)))
    assert frames_that_sqlite_reads(path) == 0
    with pytest.raises(DamagedLog, match="its header"):
        count(path)


def test_a_log_whose_header_is_lost(path: Path) -> None:
    change(path, 0, lambda _: bytes(HEADER))
    for index in (True, False):
        if not index:
            forget_index(path)
        with pytest.raises(DamagedLog, match="its header"):
            count(path)


@pytest.mark.parametrize("is_there", [True, False], ids=["empty", "missing"])
def test_a_log_without_its_file_is_not_deleted(path: Path, is_there: bool) -> None:
    path.write_bytes(b"") if is_there else path.unlink()
    before = files(path)
    with pytest.raises(DamagedLog, match="is empty or missing, and its log"):
        count(path)
    assert files(path) == before


def test_what_is_no_log_is_ignored_if_it_has_no_frame(path: Path) -> None:
    forget_index(path)
    for content in (b"", b"no log", bytes(8000)):
        log(path).write_bytes(content)
        assert count(path) == 0
    log(path).write_bytes(b"no log" * 5_000)
    with pytest.raises(DamagedLog, match="its header"):
        count(path)


def test_a_restore_replaces_a_file_whose_log_is_damaged(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    whole = write(tmp_path / "whole.db", {end: Path(f"{path}{end}").read_bytes() for end in ENDS})
    file_copies.back_up(str(whole), str(backup))
    flip(path, 12)
    file_copies.restore(str(backup), str(path), force=True)
    assert count(path) == COMMITS


def test_a_backup_with_a_log_is_not_changed_by_a_restore(path: Path, tmp_path: Path) -> None:
    forget_index(path)
    flip(path, COMMITS)
    before = log(path).read_bytes()
    file_copies.restore(str(path), str(tmp_path / "new.db"))
    assert log(path).read_bytes() == before
    assert not kept(path).exists()


def test_a_log_is_found_through_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "linked" / "b.db"
    link.parent.mkdir()
    link.symlink_to(path)
    assert log_of(str(link)) == str(log(path))
    file_copies.restore(str(link), str(tmp_path / "new.db"))
    assert count(tmp_path / "new.db") == COMMITS
    flip(path, 12)
    with pytest.raises(DamagedLog):
        count(link)


def test_a_reader_of_a_file_behind_a_link_sees_its_log(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "linked.db"
    link.symlink_to(path)
    monkeypatch.setattr(file, "is_read_only", lambda _: True)
    assert count(link) == COMMITS


def test_a_reader_that_cannot_write_is_refused_too(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(file, "is_read_only", lambda _: True)
    assert count(path) == COMMITS
    forget_index(path)
    flip(path, COMMITS)
    assert count(path) == COMMITS - 1, "nothing can be put right"
    assert "is not whole to its end" in caplog.text
    assert not kept(path).exists()
    flip(path, 12)
    with pytest.raises(DamagedLog):
        count(path)


# Others have the file open


def test_a_log_that_is_being_written_is_never_in_doubt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    store = SQLiteStore(path)
    with store.transaction():
        store.create_tree("numbers")
        store.create_tree("newest")
    store.close()
    with python(STORM, "numbers", path, "process") as storm:
        assert storm.stdout is not None
        acknowledged = int(storm.stdout.readline())
        for turn in range(60):
            with monkeypatch.context() as patch:
                if turn % 3 == 0:
                    patch.setattr(file, "is_read_only", lambda _: True)
                reader = SQLiteStore(path)
            assert int(reader.get("newest", b"") or b"0") >= acknowledged
            reader.close()
            acknowledged = int(storm.stdout.readline())
        storm.kill()
    assert not caplog.records
    store = SQLiteStore(path)
    assert int(store.get("newest", b"") or b"0") >= acknowledged
    store.close()


OPENING_AT_ONCE = """
import sys
from isotone.errors import DamagedLog
from isotone.storage.sqlite import SQLiteStore

found = []
for path in sys.argv[1:]:
    try:
        store = SQLiteStore(path)
    except DamagedLog:
        found.append(-1)
    else:
        found.append(sum(1 for _ in store.range("t", b"", None)))
        store.close()
print(*found)
"""


def test_of_processes_that_open_a_file_at_once_none_misses_the_damage(
    tmp_path: Path, killed: dict[str, bytes]
) -> None:
    paths = [write(tmp_path / f"{number}.db", killed) for number in range(12)]
    for number, path in enumerate(paths):
        if number % 2:
            flip(path, 1 + number)
    processes = [python("-c", OPENING_AT_ONCE, *paths) for _ in range(5)]
    for process in processes:
        printed, _ = process.communicate(timeout=60)
        assert [int(each) for each in printed.split()] == [COMMITS, -1] * 6


def test_a_connection_of_another_program_is_no_reason_to_wait(path: Path) -> None:
    """It has read the log, so SQLite's index is right."""
    other = apsw.Connection(str(path))
    other.execute("SELECT count(*) FROM tree_t").fetchall()
    assert count(path) == COMMITS
    other.close()


# Repair


def saved(path: Path) -> tuple[dict[bytes, bytes], salvage.SalvagePreview, list[salvage.LostRow]]:
    """The rows that a repair finds; of two with one key the first."""
    found = salvage.prepare(str(path))
    entries: dict[bytes, bytes] = {}
    lost = []
    for row in salvage.rows(str(path), found):
        if isinstance(row, salvage.SavedRow):
            entries.setdefault(row.key, row.value)
        elif isinstance(row, salvage.LostRow):
            lost.append(row)
    return entries, found, lost


WHOLE = {b"%03d" % number: b"value" * 9 for number in range(COMMITS)}


def reported_frames(found: salvage.SalvagePreview) -> set[int]:
    """The frames that a repair reports."""
    return {int(number) for number in re.findall(r"frame (\d+) of the log", " ".join(found.notes))}


@pytest.mark.parametrize("frame", [1, 12, COMMITS])
@pytest.mark.parametrize("byte", [6, 9, 18, 23, FRAME_HEADER + 3, FRAME_HEADER + 4000])
def test_a_bad_frame_is_reported_and_its_sound_rows_are_saved(
    path: Path, frame: int, byte: int
) -> None:
    """The page of each frame was written again later, but for that of the last one."""
    flip(path, frame, byte)
    entries, found, _ = saved(path)
    assert entries == WHOLE
    # A frame behind one whose sums are wrong cannot be checked.
    assert {frame} <= reported_frames(found) <= {frame, frame + 1}
    assert not log(path).exists()


def test_a_wrong_row_of_the_last_frame_is_reported_and_is_as_it_was_before(path: Path) -> None:
    place = log(path).read_bytes().rindex(b"value" * 9)
    change(path, place, lambda content: bytes((content[0] ^ 1,)))
    entries, found, lost = saved(path)
    assert entries == WHOLE
    assert reported_frames(found) == {COMMITS}
    (row,) = lost
    assert row.key in WHOLE


def test_a_page_that_is_lost_is_as_it_was_before(path: Path) -> None:
    wipe(path, COMMITS, byte=FRAME_HEADER, size=STRIDE - FRAME_HEADER)
    entries, found, lost = saved(path)
    assert entries == {key: value for key, value in WHOLE.items() if key != b"029"}
    assert reported_frames(found) == {COMMITS}
    assert [row.what for row in lost] == ["a page that cannot be read"]


def test_a_frame_with_another_page_number_is_reported(path: Path) -> None:
    flip(path, COMMITS, byte=3, bit=0)
    _, found, _ = saved(path)
    assert reported_frames(found) == {COMMITS}


def test_frames_that_cannot_be_read_are_reported(path: Path) -> None:
    for frame in (3, 12, 20):
        wipe(path, frame, byte=0, size=STRIDE)
    entries, found, _ = saved(path)
    assert entries == WHOLE, "their page was written again"
    assert {3, 12, 20} <= reported_frames(found) <= {3, 4, 12, 13, 20, 21}


def test_a_log_that_ends_early_is_reported(path: Path) -> None:
    log(path).write_bytes(log(path).read_bytes()[: place_in(21, 700)])
    entries, found, _ = saved(path)
    assert len(entries) == 20
    assert found.notes == ["the log ends early: its last frames are missing (10)"]


def test_the_last_commit_is_not_taken_in_part(path: Path) -> None:
    """A power cut leaves this of a commit that was not acknowledged."""
    forget_index(path)
    wipe(path, COMMITS)
    entries, found, _ = saved(path)
    assert len(entries) == COMMITS - 1
    (note,) = found.notes
    assert "the last commit in the log, which is not whole (frame 30 of 30)" in note


def test_a_bad_frame_whose_page_is_in_the_file_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = SQLiteStore(path)
    with store.transaction():
        store.create_tree("t")
    for number in range(COMMITS):
        with store.transaction():
            store.put("t", b"%03d" % number, b"value" * 9)
    store._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    content = {end: Path(f"{path}{end}").read_bytes() for end in ENDS}
    store.close()
    write(path, content)
    end = log(path).stat().st_size
    change(path, end - 300, lambda _: b"\x55" * 300)
    with pytest.raises(DamagedLog):
        count(path)
    entries, found, lost = saved(path)
    assert entries == WHOLE
    assert (found.notes, lost) == ([], [])


def test_the_log_is_taken_over_where_sqlite_cannot_open_the_file(path: Path) -> None:
    path.write_bytes(b"\x55" * 100 + path.read_bytes()[100:])
    entries, _, _ = saved(path)
    assert entries == WHOLE


def test_what_is_left_of_an_older_log_is_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = SQLiteStore(path)
    with store.transaction():
        store.create_tree("t")
    for number in range(20):
        with store.transaction():
            store.put("t", b"key", b"older %d" % number)
    store._connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
    with store.transaction():
        store.put("t", b"key", b"newest")
    content = {end: Path(f"{path}{end}").read_bytes() for end in ENDS}
    store.close()
    for header in (content["-wal"][:HEADER], bytes(HEADER)):
        write(path, {**content, "-wal": header + content["-wal"][HEADER:]})
        assert saved(path)[0] == {b"key": b"newest"}
