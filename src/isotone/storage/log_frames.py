"""Parses the frames of a WAL file (`-wal`) and its index (`-shm`) without SQLite, which stops at the first bad frame.

    log       header (32 bytes) · frames
    header    magic · version · page size · checkpoints · salts (8) · sums (8)
    frame     page number · pages of the file after a commit, otherwise 0 · salts (8) · sums (8) · the page

All numbers are big-endian. The sums of a frame cover its first eight bytes and its page, and continue from the sums of
the frame before it; the first frame continues from the header. Here each frame is compared with the sums *stored*
before it, so one bad frame does not hide those behind it.

When all of a log has been copied into the file, it is written from its beginning again. Its header then gets new salts;
frames with other salts are older and mean nothing.

The index (`-shm`) has the number of the last committed frame, in the byte order of the machine:

    index     version · unused · changes · is used, order (1 each), page size (2) · frames · pages · sums of the last frame (8)
              · salts (8) · sums of these 40 bytes (8); all of it a second time; frames that are in the file

SQLite maintains it while the file is open, and it survives a kill. It records a frame only when that is written, and
with durability `disk` only when it is synced.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple

HEADER: Final = 32
FRAME_HEADER: Final = 24

_MAGIC: Final = 0x377F0682  # the last bit is 1 if the sums use big-endian numbers
_VERSION: Final = 3_007_000
_PAGE_SIZES: Final = frozenset(512 << power for power in range(8))
_WORD: Final = 0xFFFFFFFF
_BATCH: Final = 4 << 20  # bytes of frames that are read and summed together
_INDEX: Final = struct.Struct("=3I2BH8I")

Order = Literal["<", ">"]
Sums = tuple[int, int]
_OWN_ORDER: Final[Order] = "<" if sys.byteorder == "little" else ">"


class Frame(NamedTuple):
    """A frame of a log, numbered from 1. `size` is the number of pages of the file after the commit that it ends; 0 if
    it ends none.
    """

    number: int
    page: int
    size: int
    is_own: bool
    """Whether it was written since the log began: it has the log's salts, or continues such a frame."""
    goes_on: bool
    """Whether its sums continue from those stored before it."""
    is_sound: bool
    """Whether it has the log's salts and valid sums."""


class LogIndex(NamedTuple):
    """The content of the index: how many frames were committed, and how many of them were copied into the file."""

    frames: int
    in_file: int
    salts: bytes


def target_of(path: str) -> str:
    """The file that a path leads to. SQLite follows links, and keeps its other files next to their target."""
    return os.path.realpath(path) if os.path.islink(path) else path  # noqa: PTH114


def log_of(path: str) -> str:
    """The path of a file's log."""
    return f"{target_of(path)}-wal"


def has_log(path: str) -> bool:
    """Whether a file has a log that is not empty."""
    try:
        return os.stat(log_of(path)).st_size > 0  # noqa: PTH116 - each opening of a file asks this
    except OSError:
        return False


class Log:
    """A log, read from an open file."""

    def __init__(self, file: BinaryIO, page_size: int, index: LogIndex | None = None) -> None:
        """`page_size` (the database's) and the index help to read a log whose header is damaged."""
        self._file = file
        header = self._read(0, HEADER)
        self._order = _order_of(header)
        self.has_header: bool = self._order is not None
        """Whether SQLite would accept the header."""
        self.page_size: int = int.from_bytes(header[8:12]) if self.has_header else page_size
        self._stride = FRAME_HEADER + self.page_size
        self.count: int = max(0, (file.seek(0, os.SEEK_END) - HEADER) // self._stride)
        found = self._read(HEADER + 8, 8) if index is None else index.salts
        self.salts: bytes = header[16:24] if self.has_header else found
        self._sums: Sums = struct.unpack(">2I", header[24:]) if self.has_header else (0, 0)

    def _read(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        return self._file.read(size)

    def place_of(self, number: int) -> int:
        """The position of a frame in the file."""
        return HEADER + (number - 1) * self._stride

    def content(self, frame: Frame) -> bytes:
        """The page of a frame."""
        return self._read(self.place_of(frame.number) + FRAME_HEADER, self.page_size)

    def frames(self) -> Iterator[Frame]:
        """All frames in order, without those that are cut off. Takes 3 ms per megabyte."""
        before, is_own = self._sums, self.has_header
        at_once = max(1, _BATCH // self._stride)
        for first in range(1, self.count + 1, at_once):
            count = min(at_once, self.count - first + 1)
            block = self._read(self.place_of(first), count * self._stride)
            count = len(block) // self._stride  # the log may have been truncated meanwhile
            heads = [struct.unpack_from(">2I8s2I", block, at * self._stride) for at in range(count)]
            stored = [head[3:] for head in heads]
            sums = _sums_of_frames(
                block[: count * self._stride],
                self._stride,
                [before, *stored[:-1]],
                self._order or _OWN_ORDER,
            )
            for at, (page, size, salts, *_) in enumerate(heads):
                number = first + at
                is_named = salts == self.salts and any(salts)
                goes_on = sums[at] == stored[at] and (number > 1 or self.has_header)
                is_own = is_named or (goes_on and is_own)
                yield Frame(number, page, size, is_own, goes_on, is_named and goes_on)
            before = stored[-1] if stored else before


def _order_of(header: bytes) -> Order | None:
    """The byte order of a log's sums; None if SQLite would not accept its header."""
    if len(header) < HEADER:
        return None
    magic, version, page_size = struct.unpack_from(">3I", header)
    order: Order = ">" if magic & 1 else "<"
    is_known = (magic & ~1, version) == (_MAGIC, _VERSION) and page_size in _PAGE_SIZES
    sums = checksum(header[:24], order)
    return order if is_known and sums == struct.unpack(">2I", header[24:]) else None


def index_of(path: str) -> LogIndex | None:
    """The index next to a file, if it can be read.

    The file must not be open in this process, because closing the index would release SQLite's locks on it.
    """
    try:
        with Path(f"{target_of(path)}-shm").open("rb") as file:
            content = file.read(2 * _INDEX.size + 4)
    except OSError:
        return None
    if len(content) < 2 * _INDEX.size + 4:
        return None
    (in_file,) = struct.unpack_from("=I", content, 2 * _INDEX.size)
    found = [_index(content[at : at + _INDEX.size], in_file) for at in (0, _INDEX.size)]
    return max((each for each in found if each is not None), default=None)


def _index(copy: bytes, in_file: int) -> LogIndex | None:
    """One of the two copies of the index's header."""
    version, _, _, is_used, _, _, frames, *_, first, second = _INDEX.unpack(copy)
    if (version, bool(is_used)) != (_VERSION, True):
        return None
    if checksum(copy[:40], _OWN_ORDER) != (first, second):
        return None
    return LogIndex(frames, min(in_file, frames), copy[32:40])


# Sums


def checksum(content: bytes, order: Order, first: int = 0, second: int = 0) -> Sums:
    """SQLite's sums of some bytes, continued from the sums before them."""
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for one, two in zip(words, words, strict=True):
        first = first + one + second & _WORD
        second = second + two + first & _WORD
    return first, second


def _sums_of_frames(block: bytes, stride: int, before: list[Sums], order: Order) -> list[Sums]:
    """The sums of each frame, continued from those stored before it; takes a tenth of the time of `checksum`.

    One integer contains the sums of all frames, 64 bits for each, so one addition adds for every frame.
    """
    count = len(before)
    byteorder: Literal["little", "big"] = "little" if order == "<" else "big"
    half = struct.Struct(f"{order}{count}Q")

    def number(parts: list[int]) -> int:
        return int.from_bytes(half.pack(*parts), byteorder)

    low = number([_WORD] * count)
    first, second = (number([sums[side] for sums in before]) for side in (0, 1))
    pairs = memoryview(block).cast("Q")
    step = stride // 8
    first_shift, second_shift = (0, 32) if order == "<" else (32, 0)
    for at in (0, *range(FRAME_HEADER // 8, step)):
        both = int.from_bytes(pairs[at::step].tobytes(), byteorder)
        first = first + (both >> first_shift & low) + second & low
        second = second + (both >> second_shift & low) + first & low
    sides = [half.unpack(side.to_bytes(8 * count, byteorder)) for side in (first, second)]
    return list(zip(*sides, strict=True))
