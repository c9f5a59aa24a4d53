"""`DamagedLog`: checks the log of a crash when a file is opened; SQLite would silently drop all after a bad frame.

SQLite applies a log up to the last commit before its first bad frame, and then overwrites the rest. After a power cut
this is right, because the last write may be incomplete. It is wrong if acknowledged commits follow. If each commit is
synced before the next one begins, as with durability `disk`, these facts prove that a commit was acknowledged:

    another frame goes on from a later commit   that commit was complete when the frame was written
    the log's index lists more commits          a commit is listed only once it is synced
    the header cannot be read                   it is synced before the first frame is written

A file with such a log is not opened. A later commit without a proof is either a write that was cut off, or damage to
the last commit: the file is opened without it, with a warning. A caller that opens a file with another durability
accepts that a power cut may have left gaps, so no commit counts as proven.

In each case a copy of the log is kept as `FILE.damaged-wal`.

A file whose log belongs to another one, which it has replaced (`log_origin`), is not opened either: SQLite would write
pages of one database into the other. Nor is one whose journal SQLite would apply only in part.

Only the first process that opens a file checks, while no other process has it open. Processes that open it at the same
time take turns, by a lock on the log.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from itertools import count, pairwise
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import apsw

from isotone.errors import DamagedLog, StorageCorrupt, StorageError
from isotone.file_lock import lock
from isotone.first_bytes import first_bytes
from isotone.storage.journal_check import damage_in, has_journal, journal_of
from isotone.storage.log_frames import (
    FRAME_HEADER,
    Frame,
    Log,
    LogIndex,
    has_log,
    index_of,
    log_of,
    target_of,
)
from isotone.storage.log_origin import is_of_another

_logger = logging.getLogger("isotone")

_SECTOR: Final = 512  # bytes that a disk writes completely or not at all
_PAGE_SIZE: Final = 8192  # for a file whose header cannot be read

_DAMAGED: Final = (
    "{path} was not opened: its log {log} is damaged ({what}), and commits follow that SQLite would drop. Write "
    "`isotone repair {path} NEW_FILE`, which saves what can be read, or restore a backup{kept}"
)
_OR_GAPS: Final = (
    ". If it was written with durability process or none, and the power failed, this is what that durability allows: "
    "open it once with it"
)
_WITHOUT_FILE: Final = (
    "{path} was not opened: it is empty or missing, and its log {log} has commits, which SQLite would delete. Put the file "
    "back, or move the log away{kept}"
)
_OF_ANOTHER: Final = (
    "{path} was not opened: its log {log} is of the file that was there before, or of an earlier state of this one, and SQLite "
    "would mix both. If {path} is what you want, move the log and {path}-shm away; if not, put the other file back{kept}"
)
_JOURNAL: Final = (
    "{path} was not opened: an update of it was interrupted, and the journal {journal}, which undoes it, is damaged ({what}), so "
    "it would be undone in part. Use another backup, or write a new one over it with `isotone backup DATABASE {path} --force`"
)
_CUT_OFF: Final = (
    "the log {log} of {path} is not whole to its end ({what}), so what follows was left out. A power cut leaves this of "
    "writes that were not acknowledged; if there was none, commits are lost{kept}"
)


class Damage(NamedTuple):
    """What is wrong with a log, and whether commits are lost that durability `disk` had acknowledged."""

    what: str
    is_proven: bool
    refusal: str = _DAMAGED + _OR_GAPS

    @property
    def is_sure(self) -> bool:
        """Whether it counts as damage with any durability: the log has commits that do not belong to the file."""
        return self.refusal in {_WITHOUT_FILE, _OF_ANOTHER}


def committed_in(log: Log, frames: list[Frame]) -> int:
    """The number of the last frame that SQLite reads: that of the last commit before the first bad frame."""
    last = 0
    for frame in frames if log.has_header else ():
        if not frame.is_sound:
            break
        if frame.size:
            last = frame.number
    return last


def damage_of(log: Log, frames: list[Frame], index: LogIndex | None) -> Damage | None:
    """What SQLite would drop from a log; None if no commit is lost."""
    committed = committed_in(log, frames)
    known = index.frames if index is not None and index.salts == log.salts else None
    rest = frames[committed:]
    if not log.has_header and frames:
        return Damage("its header", is_proven=True)  # it is synced before the first frame
    if known is not None and known > committed:
        return Damage(_reason(log, rest, known), is_proven=True)
    if any(_proves(log, frame, following) for frame, following in pairwise(rest)):
        return Damage(_reason(log, rest), is_proven=True)
    if any(
        frame.is_own and (frame.size or (known is None and not frame.is_sound)) for frame in rest
    ):
        return Damage(_reason(log, rest), is_proven=False)
    return None


def _proves(log: Log, frame: Frame, following: Frame) -> bool:
    """Whether a frame ends a complete commit, because the next frame continues from it.

    Its size may be left over from an older frame, if its header spans two sectors and only one of them was written.
    """
    is_commit = frame.is_own and frame.size > 0 and following.is_own and following.goes_on
    at = log.place_of(frame.number) % _SECTOR
    return is_commit and (frame.is_sound or at <= _SECTOR - FRAME_HEADER)


def _reason(log: Log, rest: list[Frame], known: int = 0) -> str:
    first = next((frame.number for frame in rest if not frame.is_sound), log.count + 1)
    if first <= log.count:
        return f"frame {first} of {log.count}"
    return f"it ends after frame {log.count}, and frame {known} was committed"


# Before SQLite reads it


@contextmanager
def opening(
    path: str, *, is_synced: bool, is_writable: bool, may_change: bool = True
) -> Iterator[bool]:
    """Check the log of a file that the block opens. Yields whether the caller should begin a new log.

    `is_synced` means that a power cut leaves no gaps. Without `may_change` the caller only reads, and no copy is kept.
    Raises `DamagedLog` for a file that must not be opened. Costs a `stat` without a log, a lock if another process has
    the file open, and otherwise 3 ms per megabyte of the log.
    """
    with ExitStack() as turns:
        if has_journal(path):
            turns.enter_context(_turn(journal_of(path)))
            _check_journal(path)
        if not has_log(path):
            yield False
            return
        turns.enter_context(_turn(log_of(path)))
        found = _damage_in(path, is_writable)
        if found is not None:
            _refuse_or_warn(path, found, is_synced, is_writable and may_change)
        yield found is not None and is_writable and may_change


@contextmanager
def _turn(log: str) -> Iterator[None]:
    """Keep other processes that open a file with this log or journal waiting until the block ends."""
    with ExitStack() as stack:
        # If it cannot be opened, the last process has just closed it, or SQLite will report why it cannot be read. A
        # file system without such locks has no shared memory for an index either.
        with suppress(OSError):
            file = stack.enter_context(Path(log).open("rb"))
            lock(file, wait=True)
        yield


def _check_journal(path: str) -> None:
    """Raise `StorageCorrupt` for a journal that SQLite would apply in part. Checks only if nobody else applies or
    writes it.
    """
    try:
        with alone(path) as is_alone:
            what = damage_in(path, page_size_of(path)) if is_alone else ""
    except OSError:
        return  # it no longer exists, or SQLite will report why it cannot be read
    if what:
        raise StorageCorrupt(_JOURNAL.format(path=path, journal=journal_of(path), what=what))


def _damage_in(path: str, is_writable: bool) -> Damage | None:
    try:
        if is_writable:
            with alone(path) as is_alone:
                if not is_alone:
                    return None
                with Path(log_of(path)).open("rb") as file:
                    return _look(path, file, index_of(path))
        # Another user may be writing it, and this process may have the index open; closing the index would release its
        # locks.
        content = Path(log_of(path)).read_bytes()
        found = _look(path, BytesIO(content), None)
        return found if found and Path(log_of(path)).read_bytes() == content else None
    except (FileNotFoundError, PermissionError):
        return None  # SQLite will report why it cannot be read
    except OSError as error:
        raise StorageError(f"the log of {path} cannot be read: {error.strerror}") from error


def _look(path: str, file: BinaryIO, index: LogIndex | None) -> Damage | None:
    log = Log(file, page_size_of(path), index)
    frames = list(log.frames())
    if committed_in(log, frames) and _is_empty(path):
        return Damage("", is_proven=True, refusal=_WITHOUT_FILE)
    if is_of_another(path, log, frames, committed_in(log, frames)):
        return Damage("", is_proven=True, refusal=_OF_ANOTHER)
    return damage_of(log, frames, index)


def page_size_of(path: str) -> int:
    """The page size in a file's header."""
    size = int.from_bytes(first_bytes(path, 18)[16:])
    return size if 512 <= size <= 32768 and size.bit_count() == 1 else _PAGE_SIZE


def _is_empty(path: str) -> bool:
    """Whether a file is empty or missing."""
    return not os.path.exists(path) or os.path.getsize(path) == 0  # noqa: PTH110, PTH202


@contextmanager
def alone(path: str) -> Iterator[bool]:
    """Lock a file until the block ends. Yields whether nobody else has it open, in this process or another."""
    if _is_empty(path):
        yield True
        return
    flags = [apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MAIN_DB, 0]
    try:
        file = apsw.VFSFile("", os.path.realpath(path), flags)
    except apsw.Error:  # SQLite raises it again later
        yield False
        return
    try:
        try:
            file.xLock(apsw.SQLITE_LOCK_SHARED)
            file.xLock(apsw.SQLITE_LOCK_EXCLUSIVE)
        except apsw.Error:  # each connection holds a shared lock
            is_alone = False
        else:
            is_alone = True
        yield is_alone
    finally:
        file.xUnlock(apsw.SQLITE_LOCK_NONE)
        file.xClose()


def _refuse_or_warn(path: str, found: Damage, is_synced: bool, may_keep: bool) -> None:
    is_refused = found.is_proven and (is_synced or found.is_sure)
    kept = _keep(path, is_needed=not is_refused) if may_keep else ""
    text = {
        "path": path,
        "log": log_of(path),
        "what": found.what,
        "kept": kept and f". A copy of the log is {kept}",
    }
    if is_refused:
        raise DamagedLog(found.refusal.format(**text))
    _logger.warning("%s", _CUT_OFF.format(**text))


def _keep(path: str, *, is_needed: bool) -> str:
    """Copy the log to a path that nobody writes to; returns the path, or nothing if copying fails and is not required."""
    import filecmp  # a log is damaged so rarely that a start does not pay for these
    import shutil

    source = Path(log_of(path))
    first = f"{target_of(path)}.damaged-wal"
    for number in count(1):
        kept = Path(first if number == 1 else f"{first}-{number}")
        if kept.exists():
            if filecmp.cmp(source, kept, shallow=False):
                return str(kept)
            continue
        try:
            with source.open("rb") as here, kept.open("xb") as there:
                shutil.copyfileobj(here, there)
                there.flush()
                os.fsync(there.fileno())
        except FileExistsError:
            continue
        except OSError as error:
            kept.unlink(missing_ok=True)
            if not is_needed:
                return ""
            raise StorageError(
                f"{path} was not opened: its log is not whole to its end, and a copy of it cannot be written to {kept} "
                f"({error.strerror}): make room for it there"
            ) from error
        return str(kept)
    raise AssertionError
