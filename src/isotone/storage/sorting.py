"""External merge sort of entries by key (imports, index backfills): 64 MB in memory, the rest in SQLITE_TMPDIR.

Entries are sorted in runs, and a run is cut into blocks. Blocks are merged in the order of their first keys: everything
below the first key of the next block is complete. When the memory is full, its blocks are merged into one long run in
the file. No step sorts more than some thousand entries, because sorting holds the GIL.

The file is in the folder `SQLITE_TMPDIR`, or else in the system's folder for temporary files. It has no name, so a
killed process leaves nothing behind.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import msgspec

from isotone.crc import crc32
from isotone.errors import StorageError, UsageError

KeyValue = tuple[bytes, bytes]
"""An entry: a key and its value."""

MEMORY: Final = 64 << 20  # bytes
RUN: Final = 4000  # entries that are sorted together, at most
RUN_BYTES: Final = 2 << 20  # bytes of such entries
_BLOCK: Final = 100  # entries of a block in memory
_STORED_BLOCK: Final = 200
_BLOCK_BYTES: Final = 128 << 10  # bytes of a block, on average in its run
_MERGED: Final = 20  # blocks that are merged together with the rest of the blocks before
_ENTRY: Final = 130  # bytes of memory that an entry takes in addition to its own

_Block = tuple[bytes, Callable[[], list[KeyValue]]]
"""The first key of some sorted entries, and a function that returns them."""

_key: Final = itemgetter(0)
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[tuple[bytes, bytes]]).decode


class NoRoomToSort(StorageError):
    """The temporary file failed. Fewer entries can still be sorted in memory."""


class Sorter:
    """Takes entries in any order, and returns them in key order. `sharers` is the number of sorters that share the
    memory.

    >>> sorter = Sorter()
    >>> sorter.add([(b"pear", b"green"), (b"apple", b"red")])
    >>> sorter.take()
    [(b'apple', b'red'), (b'pear', b'green')]
    """

    __slots__ = ("_blocks", "_bytes", "_count", "_few", "_few_bytes", "_file", "_memory", "_merged")

    def __init__(self, sharers: int = 1) -> None:
        self._memory = MEMORY // sharers
        self._few: list[KeyValue] = []  # not sorted yet
        self._blocks: list[_Block] = []  # in memory
        self._few_bytes = self._bytes = self._count = 0
        self._file: _BlockFile | None = None
        self._merged: Iterator[list[KeyValue]] | None = None

    def __len__(self) -> int:
        """How many entries were added."""
        return self._count

    def add(self, entries: Sequence[KeyValue]) -> None:
        """Add entries. None may be added after the first `take`."""
        self._count += len(entries)
        self._few += entries
        self._few_bytes += _size(entries)
        if len(self._few) >= RUN or self._few_bytes >= RUN_BYTES:
            self._end_run()
        if self._bytes >= self._memory:
            with _errors():
                self._move_to_file()

    def take(self) -> list[KeyValue]:
        """The next entries, some thousand or some megabytes; empty at the end."""
        with _errors():
            if self._merged is None:
                self._end_run()
                stored = [] if self._file is None else self._file.blocks
                self._merged = _merged([*stored, *self._blocks])
                self._blocks = []
            return next(self._merged, [])

    def close(self) -> None:
        """Free the memory, and delete the file."""
        self._few, self._blocks, self._merged = [], [], None
        if self._file is not None:
            self._file.close()

    def _end_run(self) -> None:
        self._blocks += [
            (block[0][0], partial(list, block))
            for block in _cut(sorted(self._few, key=_key), self._few_bytes, _BLOCK)
        ]
        self._bytes += self._few_bytes
        self._few, self._few_bytes = [], 0

    def _move_to_file(self) -> None:
        if self._file is None:
            self._file = _BlockFile()
        for entries in _merged(self._blocks):
            for block in _cut(entries, _size(entries), _STORED_BLOCK):
                self._file.add(block)
        self._blocks, self._bytes = [], 0


class _BlockFile:
    """Blocks in a temporary file."""

    __slots__ = ("_end", "_file", "_process", "blocks")

    def __init__(self) -> None:
        self._file = _temporary_file()
        self._process = os.getpid()
        self._end = 0
        self.blocks: list[_Block] = []

    def add(self, block: Sequence[KeyValue]) -> None:
        """Append a block."""
        content = _encode(block)
        self._seek(self._end)
        if self._file.write(content) < len(content):
            raise OSError("it is full")
        read = partial(self._read, self._end, len(content), crc32(content))
        self.blocks.append((block[0][0], read))
        self._end += len(content)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

    def _read(self, position: int, size: int, checksum: int) -> list[KeyValue]:
        self._seek(position)
        content = self._file.read(size)
        if crc32(content) != checksum:
            raise OSError("it was damaged")
        return _decode(content)

    def _seek(self, position: int) -> None:
        """Seek to a position; a forked child would share the offset."""
        if self._process != os.getpid():
            raise UsageError("these entries are sorted by the process before fork(): begin again")
        self._file.seek(position)


def _size(entries: Sequence[KeyValue]) -> int:
    """The bytes of memory that entries take."""
    return sum(map(len, chain.from_iterable(entries))) + len(entries) * _ENTRY


def _cut(entries: Sequence[KeyValue], size: int, most: int) -> Iterator[Sequence[KeyValue]]:
    """Cut entries of `size` bytes into blocks of at most `most` entries, with about the bytes of a block."""
    step = max(1, min(most, len(entries) * _BLOCK_BYTES // max(1, size)))
    return (entries[start : start + step] for start in range(0, len(entries), step))


def _merged(blocks: list[_Block]) -> Iterator[list[KeyValue]]:
    """The entries of blocks in order, some at a time. Returned entries are not kept."""
    blocks.sort(key=_key, reverse=True)
    rest: list[KeyValue] = []
    while blocks:
        for _ in range(min(_MERGED, len(blocks))):
            rest += blocks.pop()[1]()
        rest.sort(key=_key)
        end = bisect_left(rest, blocks[-1][0], key=_key) if blocks else len(rest)
        if end:
            yield rest[:end]
            del rest[:end]


@contextmanager
def _errors() -> Iterator[None]:
    """Raises `NoRoomToSort` if the file fails, for any reason."""
    try:
        yield
    except OSError as error:
        raise NoRoomToSort(
            "index entries cannot be sorted in the folder for temporary files, so make room there, or name another one"
            f" with SQLITE_TMPDIR ({error})"
        ) from error


def _temporary_file() -> Any:
    """An unbuffered file: with a buffer, a forked child would write its own copy of it."""
    import tempfile  # most databases never sort so much

    return tempfile.TemporaryFile(buffering=0, dir=os.environ.get("SQLITE_TMPDIR"))
