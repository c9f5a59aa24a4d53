"""Logs as a kill leaves them, and what SQLite itself reads of a log."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

PAGE = 1024
STRIDE = PAGE + 24
ENDS = ("", "-wal", "-shm")


class Killed:
    """A database whose process was killed: its file, its log and its index; and how its log was written."""

    def __init__(self, content: dict[str, bytes], commits: list[int], before: bytes) -> None:
        self.content = content
        self.commits = commits
        """The frames of the log that end a commit."""
        self.before = before
        """The log before the last of them."""

    @property
    def log(self) -> bytes:
        return self.content["-wal"]

    def write(self, path: Path, log: bytes | None = None, *, index: bool = True) -> Path:
        """Write the files, with another log if one is given, and without the index if that is not wanted."""
        for end in ENDS if index else ENDS[:2]:
            Path(f"{path}{end}").write_bytes(
                log if log is not None and end == "-wal" else self.content[end]
            )
        return path


def killed(
    folder: Path,
    seed: int,
    *,
    generations: int = 1,
    commits: int = 8,
    unfinished: int = 0,
    checkpointed: bool = False,
) -> Killed:
    """What is left of a process that was killed.

    Its log has been begun `generations` times. After the last commit it has written `unfinished` frames of a
    transaction. `checkpointed` says whether the frames of its first commits are in the file.
    """
    random = Random(seed)
    path = folder / f"made{seed}-{generations}.db"
    connection = apsw.Connection(str(path))
    for pragma in (f"page_size={PAGE}", "journal_mode=WAL", "wal_autocheckpoint=0", "cache_size=2"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute("CREATE TABLE t (key INTEGER PRIMARY KEY, value BLOB)")
    reader = apsw.Connection(str(path))
    ends = [frames_in(connection)]
    before = b""
    for generation in range(generations):
        if generation:
            if checkpointed:
                reader.execute("ROLLBACK")
            connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
            ends.clear()
        # Later ones are shorter, so frames of earlier ones are left behind them.
        for number in range(max(1, commits - 3 * generation)):
            before = Path(f"{path}-wal").read_bytes()
            _commit(connection, random)
            ends.append(frames_in(connection))
            if checkpointed and number == 1:  # a reader keeps later frames out of the file
                reader.execute("BEGIN; SELECT count(*) FROM t").fetchall()
    if checkpointed:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    if unfinished:
        connection.execute("BEGIN")
        for _ in range(unfinished):
            _put(connection, random, PAGE * 3)
    content = {}
    for end in ENDS:
        # Reading these in the process that has them open ends its locks; nobody else has them open.
        content[end] = Path(f"{path}{end}").read_bytes()
    reader.close(True)
    connection.close(True)
    path.unlink()
    return Killed(content, ends, before)


def _commit(connection: apsw.Connection, random: Random) -> None:
    with connection:
        for _ in range(random.choice([1, 1, 2, 5])):
            _put(connection, random, random.choice([20, 200, PAGE * 2]))


def _put(connection: apsw.Connection, random: Random, size: int) -> None:
    row = (random.randrange(1000), random.randbytes(size))
    connection.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", row)


def frames_in(connection: Any) -> int:
    """How many frames of the log a connection reads."""
    if apsw.sqlite_lib_version() < "3.51":
        pytest.skip("SQLite before 3.51 has no checkpoint that only counts")
    frames: int = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]
    return frames


def frames_that_sqlite_reads(path: Path) -> int:
    """How many frames SQLite recovers of the log of a file that nobody has open; works on a copy."""
    copy = path.with_name(f"{path.name}.copy")
    for end in ENDS[:2]:
        shutil.copyfile(f"{path}{end}", f"{copy}{end}")
    connection = apsw.Connection(str(copy))
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.execute("PRAGMA schema_version").fetchall()
        return frames_in(connection)
    except apsw.CantOpenError:  # the version of the log is another
        return 0
    finally:
        connection.close(True)
        for end in ENDS:
            Path(f"{copy}{end}").unlink(missing_ok=True)


def sums(content: bytes, order: str, one: int, two: int) -> tuple[int, int]:
    """SQLite's sums, as its documentation writes them: https://www.sqlite.org/fileformat2.html#walformat."""
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for at in range(0, len(words), 2):
        one = (one + words[at] + two) % 2**32
        two = (two + words[at + 1] + one) % 2**32
    return one, two


def with_sums_in_other_order(log: bytes) -> bytes:
    """The same log, as a machine of the other byte order writes it."""
    magic = int.from_bytes(log[:4]) ^ 1
    order = "<>"[magic & 1]
    header = magic.to_bytes(4) + log[4:24]
    one, two = sums(header, order, 0, 0)
    made = header + struct.pack(">2I", one, two)
    for at in range(32, len(log), STRIDE):
        frame = log[at : at + STRIDE]
        if frame[8:16] == log[16:24]:
            one, two = sums(frame[:8] + frame[24:], order, one, two)
            frame = frame[:16] + struct.pack(">2I", one, two) + frame[24:]
        made += frame
    return made
