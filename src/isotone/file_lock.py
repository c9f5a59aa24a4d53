"""Locks a file for one process, until the file is closed or the process ends.

file = open_locked(Path("orders.jsonl.part"))      # with what an earlier process has left in it
begin_draft(file, "orders.jsonl.part")             # which was a draft, or is not replaced
…
check_in_place(file, "orders.jsonl.part", size)   # of what was written
Path("orders.jsonl.part").replace("orders.jsonl")  # while it is locked, so nobody else writes into it
end_draft("orders.jsonl.part")
file.close()
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO, Final

from isotone.errors import InProgress, StorageError, UsageError

WITHOUT_LOCKS: Final = (errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS)
"""Errors of file systems that have no locks."""

MARK: Final = "-begun"
"""The ending of an empty file beside a draft, which tells that it is one, and no file of somebody else."""

_REFUSAL: Final = "another process is writing {}: wait until it is done, or give another file"


def open_locked(path: Path, refusal: str = "", *, wait: bool = False) -> BinaryIO:
    """Open a file for reading and writing, and lock it; raises `InProgress` if another process has locked it.

    With `wait`, it waits until the file is free.

    Raises `UsageError` for a file with another name (a hard link), which may be a backup: both would change.

    The file is created if it does not exist. Writes append, so that a file emptied by another program gets no gap
    (`check_in_place`). On a file system without locks it is opened unlocked.
    """
    while True:
        mode = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(path, mode, 0o666), "r+b")
        if os.fstat(file.fileno()).st_nlink > 1:
            file.close()
            raise UsageError(
                f"{path} has another name (a hard link), and both would change: delete one of them, or give another file"
            )
        try:
            lock(file, wait=wait)
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except OSError as error:
            if error.errno in WITHOUT_LOCKS:
                return file
            file.close()
            raise InProgress(refusal or _REFUSAL.format(path)) from None
        file.close()  # the process that had the lock has renamed or deleted the file


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """Keep other processes out of this block by an empty file, which is deleted at its end; waits until they have left.

    Raises `UsageError` for a file that is not empty: it is no lock.
    """
    file = open_locked(path, wait=True)
    try:
        if os.fstat(file.fileno()).st_size:
            raise UsageError(f"{path} is not a lock of Isotone, and not empty; move it away")
        yield
        with suppress(OSError):  # Windows does not delete an open file
            path.unlink(missing_ok=True)
    finally:
        file.close()


def begin_draft(file: BinaryIO, path: str | PathLike[str]) -> None:
    """Empty a locked file, and mark it as a draft. Raises `UsageError`, and closes it, if it is somebody else's.

    Others use the ending `.part` too: browsers give it to downloads that are not complete.
    """
    if os.fstat(file.fileno()).st_size and not _is_empty(_mark_of(path)):
        file.close()
        raise UsageError(
            f"{fspath(path)} is no unfinished file of Isotone, and would be replaced: move it away, or give another file"
        )
    _mark_of(path).touch()
    file.truncate(0)


def end_draft(path: str | PathLike[str]) -> None:
    """Delete the mark of a draft that got its name."""
    if _is_empty(_mark_of(path)):
        _mark_of(path).unlink()


def _mark_of(path: str | PathLike[str]) -> Path:
    return Path(fspath(path) + MARK)


def _is_empty(path: Path) -> bool:
    return path.is_file() and not path.stat().st_size


def check_in_place(file: BinaryIO, path: str | PathLike[str], size: int) -> None:
    """Raise `StorageError` if a path does not name an open file any more, or the file has another size than was written.

    A lock keeps out only programs that use Isotone. Another program may delete, replace or empty the file meanwhile: then what
    was written is lost, or lands in the wrong file.
    """
    found = os.fstat(file.fileno())
    try:
        is_same = os.path.samestat(found, Path(path).stat())
    except OSError:
        is_same = False
    if not is_same or found.st_size != size:
        raise StorageError(
            f"{path} was deleted, replaced or changed while it was written, so what was written to it is not whole: begin again"
        )


if sys.platform == "win32":
    import msvcrt

    # Far beyond the file's end: on Windows others cannot read a locked byte.
    _LOCKED_BYTE: Final = 1 << 62

    def lock(file: BinaryIO, *, wait: bool = False) -> None:
        """Lock a file; raises `OSError` if another process has locked it. With `wait`, only after ten seconds."""
        descriptor = file.fileno()
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, place, os.SEEK_SET)

else:
    import fcntl

    def lock(file: BinaryIO, *, wait: bool = False) -> None:
        """Lock a file; raises `OSError` if another process has locked it. With `wait`, waits until it is free."""
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
