"""Reads pages of a file into the memory of the system before SQLite needs them, in the order of the file.

A tree that was written in random order has its pages all over the file. Reading it in the order of its keys waits for the
disk at each page, one page at a time; asked for many pages at once, the disk delivers them in its own order.

The caller must keep the file descriptor open as long as its process uses the file with SQLite: closing it would release
SQLite's locks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

_APART: Final = 4  # pages from one to the next that are read together with those between them
_AT_ONCE: Final = 32  # pages of one request; Linux may leave out the rest of a longer one
_SIZE_AT: Final = 16  # where the header of the file has the size of pages; 1 is the largest
_LARGEST: Final = 65536
_CHUNK: Final = 1 << 20


def read_ahead(file: int, pages: Iterable[int]) -> None:
    """Ask the system for pages of a file descriptor, in the order of the file, and do not wait for them."""
    if not hasattr(os, "posix_fadvise"):
        return  # macOS and Windows: pages are read when they are needed
    size = int.from_bytes(os.pread(file, 2, _SIZE_AT), "big")
    size = _LARGEST if size == 1 else size
    for first, last in _runs(sorted(page for page in pages if page)):
        for start in range(first, last + 1, _AT_ONCE):
            count = min(_AT_ONCE, last + 1 - start)
            os.posix_fadvise(file, (start - 1) * size, count * size, os.POSIX_FADV_WILLNEED)


def _runs(pages: list[int]) -> Iterator[tuple[int, int]]:
    """The first and the last page of each run; small gaps are read along."""
    if not pages:
        return
    first = pages[0]
    for one, other in pairwise(pages):
        if other - one > _APART:
            yield first, one
            first = other
    yield first, pages[-1]


def read_through(file: int) -> None:
    """Read a whole file from its beginning to its end, if half of the machine's memory can hold it."""
    if not hasattr(os, "preadv") or os.fstat(file).st_size > _memory() // 2:
        return
    buffer, offset = bytearray(_CHUNK), 0
    while count := os.preadv(file, [buffer], offset):
        offset += count


def _memory() -> int:
    """The bytes of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
