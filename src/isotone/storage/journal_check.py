"""Checks the rollback journal (`-journal`) that a killed backup update has left, before SQLite applies it.

The journal has the old pages. SQLite restores them up to the first place that it cannot read, and deletes the journal.
Pages after that place silently stay as the update wrote them, so the backup is a mixture of two states.

    journal   segments, each from a multiple of the sector's size on
    segment   magic (8) · records · nonce · pages of the file before · sector size · page size (4 each) · … · its records
    record    number of the page (4) · the page · a sum of some of its bytes, which begins with the nonce (4)

SQLite writes the magic and the record count of a segment when all of it is on the disk, and changes the file only then.
So a segment without them has changed nothing, and one with them is complete. Its sums do not cover page numbers; each
page occurs once.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from isotone.storage.log_frames import target_of

MAGIC: Final = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
_HEADER: Final = struct.Struct(">8s5I")
_NUMBER: Final = struct.Struct(">I")
_TO_THE_END: Final = 0xFFFFFFFF  # number of records if nothing was synced
_STRIDE: Final = 200  # the sum includes each 200th byte of a page, from its end
_WORD: Final = 0xFFFFFFFF
_SECTOR: Final = 512  # bytes, at least; larger sectors are multiples


class _JournalSegment(NamedTuple):
    magic: bytes
    records: int
    nonce: int
    pages: int
    sector: int
    page_size: int


class _Damaged(Exception):
    """The journal is not as SQLite wrote it; the text says where."""


def journal_of(path: str) -> str:
    """The path of a file's journal."""
    return f"{target_of(path)}-journal"


def has_journal(path: str) -> bool:
    """Whether a file has a journal that is not empty."""
    try:
        return os.stat(journal_of(path)).st_size > 0  # noqa: PTH116 - each opening of a file asks this
    except OSError:
        return False


def damage_in(path: str, page_size: int) -> str:
    """What SQLite would fail to restore from the journal of a file that nobody has open; empty if nothing."""
    with Path(journal_of(path)).open("rb") as file:
        try:
            _check(file, page_size)
        except _Damaged as error:
            return str(error)
    return ""


def _check(file: BinaryIO, page_size: int) -> None:
    size = file.seek(0, os.SEEK_END)
    place, seen = 0, set[int]()
    while place + _HEADER.size <= size:
        segment = _segment_at(file, place)
        if segment.magic != MAGIC:
            _check_unfinished(file, place, segment)
            return
        if segment.page_size != page_size or not _is_sector(segment.sector):
            raise _Damaged(f"the segment at byte {place}")
        begin, stride = place + segment.sector, page_size + 2 * _NUMBER.size
        records = segment.records
        if records == _TO_THE_END:
            records = max(size - begin, 0) // stride
        if begin + records * stride > size:
            raise _Damaged(f"the segment at byte {place} is cut off")
        file.seek(begin)
        for _ in range(records):
            _check_record(file, segment, seen)
        place = -(-(begin + records * stride) // segment.sector) * segment.sector


def _segment_at(file: BinaryIO, place: int) -> _JournalSegment:
    file.seek(place)
    return _JournalSegment(*_HEADER.unpack(file.read(_HEADER.size)))


def _is_sector(size: int) -> bool:
    return _SECTOR <= size <= 1 << 16 and size.bit_count() == 1


def _check_unfinished(file: BinaryIO, place: int, segment: _JournalSegment) -> None:
    """Raise `_Damaged` unless this segment lacks the magic because SQLite had not synced it; it must then be the last."""
    if any(segment.magic) or segment.records:
        raise _Damaged(f"the segment at byte {place}")
    file.seek(place)
    while sector := file.read(_SECTOR):
        if sector.startswith(MAGIC):
            raise _Damaged(f"the segment at byte {place}")


def _check_record(file: BinaryIO, segment: _JournalSegment, seen: set[int]) -> None:
    place = file.tell()
    (number,) = _NUMBER.unpack(file.read(_NUMBER.size))
    page = file.read(segment.page_size)
    (stored,) = _NUMBER.unpack(file.read(_NUMBER.size))
    sampled = page[segment.page_size - _STRIDE : 0 : -_STRIDE]
    if stored != (segment.nonce + sum(sampled)) & _WORD:
        raise _Damaged(f"the record at byte {place}")
    if not 0 < number <= segment.pages or number in seen:
        raise _Damaged(f"the record at byte {place} is of no page, or of one twice")
    seen.add(number)
