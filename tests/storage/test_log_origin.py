"""A log is known to be of its file after whatever was done to it, and not to be of another file, or of an earlier state."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.errors import DamagedLog, StorageBusy
from isotone.storage.file_copies import back_up, compact, restore
from isotone.storage.log_check import committed_in
from isotone.storage.log_frames import Log
from isotone.storage.log_origin import is_of_another
from isotone.storage.sqlite import SQLiteStore

STEPS = (
    *("insert", "update", "grow", "shrink", "nothing", "undone", "new tree", "copy the log"),
    *("reopen", "second", "close second", "back up", "restore", "compact", "kill"),
)
KEYS = [b"%03d" % number for number in range(40)]


class Database:
    """A file with one or two stores on it, and what is done to it."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir()
        self.path = folder / "shop.db"
        self.backup = folder / "copy.db"
        self.random = random.Random(seed)
        self.trees = ["t"]
        self.closed: list[Path] = []  # copies of the file without a log
        self.store = self.opened()
        self.other: SQLiteStore | None = None
        with self.store.transaction():
            self.store.create_tree("t")
        self.do("back up")

    def opened(self) -> SQLiteStore:
        return SQLiteStore(self.path, durability="none", busy_timeout=0.01)

    def put(self, count: int, size: int) -> None:
        store = self.random.choice([self.store, self.other or self.store])
        with store.transaction():
            for key in self.random.choices(KEYS, k=count):
                store.put("t", key, self.random.randbytes(size))

    def do(self, step: str) -> None:
        match step:
            case "insert" | "update":
                self.put(3, 100)
            case "grow":
                self.put(20, 3000)
            case "shrink":
                with self.store.transaction():
                    for key in KEYS[:30]:
                        self.store.delete("t", key)
            case "nothing":
                with self.store.transaction():
                    pass
            case "undone":
                with suppress(ZeroDivisionError), self.store.transaction():
                    self.store.put("t", b"x", b"y" * 9000)
                    raise ZeroDivisionError
            case "new tree":
                with self.store.transaction():
                    self.store.create_tree(f"t{self.random.getrandbits(60)}")
            case "copy the log":
                self.store._connection.wal_checkpoint()
            case "reopen":
                self.close()
                self.store = self.opened()
            case "second" if self.other is None:
                self.other = self.opened()
            case "close second" if self.other is not None:
                self.other.close()
                self.other = None
            case "back up":
                back_up(str(self.path), str(self.backup), force=True)
            case "restore":
                restore(str(self.backup), str(self.path), force=True)
            case "compact":
                with suppress(StorageBusy):
                    compact(str(self.path))
            case "kill":
                there = self.copied(self.path.with_name("killed.db"))
                self.close()
                for end in ("", "-wal"):
                    Path(f"{there}{end}").replace(f"{self.path}{end}")
                self.store = self.opened()

    def close(self) -> None:
        self.do("close second")
        self.store.close()
        self.closed.append(self.path.with_name(f"closed-{len(self.closed)}"))
        shutil.copy(self.path, self.closed[-1])

    def copied(self, there: Path) -> Path:
        """The file and its log as a kill would leave them now."""
        shutil.copy(self.path, there)
        log = Path(f"{self.path}-wal")
        Path(f"{there}-wal").write_bytes(log.read_bytes() if log.exists() else b"")
        return there

    def log_is_of_another(self, path: Path) -> bool:
        """Whether the present log cannot be that of a file."""
        with Path(f"{self.path}-wal").open("rb") as file:
            log = Log(file, 8192)
            frames = list(log.frames())
            return is_of_another(str(path), log, frames, committed_in(log, frames))

    @property
    def has_commits(self) -> bool:
        log = Path(f"{self.path}-wal")
        return log.exists() and log.stat().st_size > 0


@given(steps=st.lists(st.sampled_from(STEPS), max_size=25), seed=st.integers(0, 2**32))
def test_a_log_is_known_to_be_of_its_file(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], seed: int
) -> None:
    database = Database(tmp_path_factory.mktemp("log") / "one", seed)
    for step in steps:
        database.do(step)
        if database.has_commits:
            assert not database.log_is_of_another(database.path), step
        there = database.copied(database.path.with_name("seen.db"))
        store = SQLiteStore(there, durability="disk")
        assert store.check() == []
        assert dict(store.range("t", b"", None)) == dict(database.store.range("t", b"", None))
        store.close()
    database.close()


@given(steps=st.lists(st.sampled_from(STEPS), max_size=12), seed=st.integers(0, 2**32))
def test_a_log_is_not_taken_for_that_of_another_file(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], seed: int
) -> None:
    """Not even if the same was done to it."""
    folder = tmp_path_factory.mktemp("log")
    one, other = (Database(folder / name, seed) for name in ("one", "other"))
    for database in (one, other):
        for step in [*(each for each in steps if each != "restore"), "reopen", "update"]:
            database.do(step)
    assert one.has_commits
    assert one.log_is_of_another(other.closed[-1])
    assert one.log_is_of_another(one.backup)
    earlier = [each for each in one.closed if each.read_bytes() != one.closed[-1].read_bytes()]
    assert all(map(one.log_is_of_another, earlier))
    assert not one.log_is_of_another(one.closed[-1])
    for database in (one, other):
        database.close()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "one", 1)
    yield database
    database.close()


def test_a_log_of_updates_alone_tells_files_of_other_sizes_apart(
    database: Database, tmp_path: Path
) -> None:
    database.do("grow")
    database.do("reopen")
    database.store._is_marked = True  # as if an earlier log had the mark
    with database.store.transaction():
        database.store.put("t", KEYS[0], b"x")
    larger = tmp_path / "larger.db"
    back_up(str(database.path), str(larger))
    store = SQLiteStore(larger, durability="none")
    with store.transaction():
        store.create_tree("more")
    store.close()
    assert not database.log_is_of_another(database.closed[-1])
    assert database.log_is_of_another(larger)


def test_a_copy_has_a_number_of_its_own(database: Database, tmp_path: Path) -> None:
    names = ["first.db", "second.db", "third.db"]
    first, second, third = (str(tmp_path / name) for name in names)
    database.do("copy the log")
    back_up(str(database.path), first)
    back_up(str(database.path), second, compact=True)
    restore(first, third)
    files = [database.path, *map(Path, (first, second, third))]
    assert len({each.read_bytes()[60:63] for each in files}) == 4


def test_a_file_of_before_gets_a_number_with_its_first_write(database: Database) -> None:
    database.store._execute("PRAGMA user_version = 2")
    database.do("reopen")
    database.do("nothing")
    assert not any(database.path.read_bytes()[60:63])
    database.do("update")
    assert not database.log_is_of_another(database.path)
    database.do("reopen")
    assert any(database.path.read_bytes()[60:63])


def test_a_file_that_takes_the_place_of_a_served_one_is_refused(database: Database) -> None:
    other = Database(database.path.parent / "other", 2)
    other.do("grow")
    other.close()
    there = database.copied(database.path.with_name("killed.db"))
    shutil.copy(other.path, there)
    with pytest.raises(DamagedLog, match=r"is of the file that was there before.*-shm away"):
        SQLiteStore(there)
    assert there.read_bytes() == other.path.read_bytes()
    other.store = other.opened()
    other.close()
