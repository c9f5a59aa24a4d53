"""Whether a log belongs to the file beside it, or to one that another file has replaced: SQLite would mix both.

SQLite finds a log by its name alone. After a crash the log of the old file stays, and would be written into a file that
is moved to its place: page by page, with right checksums. The first page of a file, and its copies in the log, tell
them apart:

    changes   rises by one when a connection writes the page for the first time since another one has (a log
              that continues the file therefore begins with the file's count or the next one)
    pages     how many pages the file has; only a commit with the first page changes it
    number    random, of the database; each copy that Isotone makes gets its own (`file.give_number`), and a restore into
              a file brings that of its backup

A file that was never in WAL mode is a backup that nobody has opened: no log is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from isotone.first_bytes import first_bytes
from isotone.storage.log_frames import Frame, Log

_MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = 100  # bytes
NUMBER_FROM: Final = (
    8  # the bit of the user version from which on it has the number; the others have the format
)


class FileState(NamedTuple):
    """What the first page says about its file."""

    changes: int
    pages: int
    number: int


def _state_in(page: bytes) -> FileState | None:
    """The state in a first page; None if it is none."""
    if len(page) < _HEADER or not page.startswith(_MAGIC):
        return None
    changes, pages, version = (int.from_bytes(page[at : at + 4]) for at in (24, 28, 60))
    return FileState(changes, pages, version >> NUMBER_FROM)


def is_never_opened(path: str) -> bool:
    """Whether a file was never in WAL mode: that is a backup which no program has opened."""
    header = first_bytes(path, 20)
    return header.startswith(_MAGIC) and header[18:20] == b"\1\1"


def is_of_another(path: str, log: Log, frames: Sequence[Frame], committed: int) -> bool:
    """Whether the frames of a log, of which so many are committed, cannot continue the file at a path."""
    if is_never_opened(path):
        return bool(frames)
    file = _state_in(first_bytes(path, _HEADER))
    if file is None or not committed:
        return False
    frames = frames[:committed]
    found = [frame for frame in frames if frame.page == 1]
    states = [state for frame in found if (state := _state_in(log.content(frame))) is not None]
    if not states:
        return frames[-1].size != file.pages
    if not states[0].changes - 1 <= file.changes <= states[-1].changes:
        return True
    numbers = {state.number for state in states}
    return bool(file.number) and 0 not in numbers and file.number not in numbers
