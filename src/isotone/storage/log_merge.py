"""For `isotone repair`: copies the WAL into a copy of its file without SQLite, which would stop at the first bad frame.

Each page gets its last committed frame, even if that frame is bad: every row has a checksum, so a repair takes those
rows of the page that are intact. For damaged rows it adds the rows that the page had before, if there are no newer
ones. A bad frame may also have a wrong page number. So the report always says that entries may be missing, or outdated.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from isotone.storage.log_check import Damage, committed_in, damage_of, page_size_of
from isotone.storage.log_frames import Frame, Log, LogIndex, has_log, index_of, log_of, target_of
from isotone.storage.log_origin import is_of_another

_BAD: Final = "frame {number} of the log{page}: entries may be missing, or as they were before"
_ENDS_EARLY: Final = "the log ends early: its last frames are missing ({count})"
_NO_HEADER: Final = "the header of the log: frames with another mark than the first were left out"
_OF_ANOTHER: Final = "the log, which is of the file that was there before this one, was left out"
_CUT_OFF: Final = "the last commit in the log, which is not whole ({what}): it may have been a write that was cut off"


class MergedLog(NamedTuple):
    """The outcome for a log: the pages that were written, the earlier versions of pages with bad frames, and what was
    lost.
    """

    pages: frozenset[int]
    older: dict[int, bytes]
    notes: list[str]


def merge(path: str) -> MergedLog:
    """Write the log of a file that nobody has open into the file, and delete the log."""
    merged = MergedLog(frozenset(), {}, [])
    if has_log(path):
        page_size = page_size_of(path)
        with Path(log_of(path)).open("rb") as file, Path(path).open("r+b") as pages:
            index = index_of(path)
            merged = _merge(path, Log(file, page_size, index), index, pages)
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(target_of(path) + end).unlink()
    return merged


def _merge(path: str, log: Log, index: LogIndex | None, pages: BinaryIO) -> MergedLog:
    frames = list(log.frames())
    if is_of_another(path, log, frames, committed_in(log, frames)):
        return MergedLog(frozenset(), {}, [_OF_ANOTHER])
    damage = damage_of(log, frames, index)
    known = index if index is not None and index.salts == log.salts else LogIndex(0, 0, b"")
    end = _end(log, frames, damage, known)
    # The file already has the frames that the index counts as copied, so bad ones among them do not matter.
    begin = known.in_file if any(not each.is_sound for each in frames[: known.in_file]) else 0
    taken = frames[begin:end]
    # A bad frame may have any page number, and a large one would make the file huge.
    stated = max((each.size for each in frames if each.is_sound), default=0)
    most = max(stated, pages.seek(0, os.SEEK_END) // log.page_size + len(frames))
    latest = {each.page: each for each in taken if each.is_own and 0 < each.page <= most}
    older = _write(log, pages, latest, {each.page: each for each in taken if each.is_sound})
    if taken and taken[-1].is_sound and taken[-1].size:
        pages.truncate(taken[-1].size * log.page_size)
    notes = [_described(each) for each in taken if not each.is_sound]
    if frames and not log.has_header:
        notes.append(_NO_HEADER)
    if damage is not None and known.frames > len(frames):
        notes.append(_ENDS_EARLY.format(count=known.frames - len(frames)))
    if damage is not None and not damage.is_proven:
        notes.append(_CUT_OFF.format(what=damage.what))
    return MergedLog(frozenset(latest), older, notes)


def _write(
    log: Log, pages: BinaryIO, latest: dict[int, Frame], sound: dict[int, Frame]
) -> dict[int, bytes]:
    """Write the latest frame of each page; returns the earlier content of pages with bad frames."""
    older = {}
    for page, frame in latest.items():
        place = (page - 1) * log.page_size
        if not frame.is_sound:
            pages.seek(place)
            is_in_log = page in sound
            older[page] = log.content(sound[page]) if is_in_log else pages.read(log.page_size)
        pages.seek(place)
        pages.write(log.content(frame))
    return older


def _end(log: Log, frames: list[Frame], damage: Damage | None, known: LogIndex) -> int:
    """The number of the last frame to take: frames that may not have been acknowledged may be part of a commit."""
    if damage is None or not damage.is_proven:
        return committed_in(log, frames)
    commits = [each.number for each in frames if each.is_own and each.size]
    return max([min(known.frames, len(frames)), *commits])


def _described(frame: Frame) -> str:
    page = f" (page {frame.page})" if frame.is_own else ""
    return _BAD.format(number=frame.number, page=page)
