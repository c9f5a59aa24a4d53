"""Reads ahead (`posix_fadvise`): asks the system for pages in file order before SQLite needs them.

A tree that was written in random order has its pages scattered over the file. Reading it in key order waits for the
disk at each page. If many pages are requested at once, the disk delivers them in its own order.

The caller must keep the file descriptor open as long as its process uses the file with SQLite, because closing it would
release SQLite's locks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

_APART: Final = 4  # pages with smaller gaps are read together, including the gap
_AT_ONCE: Final = 32  # pages of one request; Linux may ignore the rest of a longer one
# offset of the page size in the file header; the value 1 means the largest size
_SIZE_AT: Final = 16
_LARGEST: Final = 65536
_CHUNK: Final = 1 << 20


def read_ahead(file: int, pages: Iterable[int]) -> None:
    """Ask the system for pages of a file descriptor, in file order, without waiting for them."""
    if sys.platform == "win32" or sys.platform == "darwin":
        return  # macOS and Windows read pages when they are needed
    size = int.from_bytes(os.pread(file, 2, _SIZE_AT), "big")
    size = _LARGEST if size == 1 else size
    for first, last in _runs(sorted(page for page in pages if page)):
        for start in range(first, last + 1, _AT_ONCE):
            count = min(_AT_ONCE, last + 1 - start)
            os.posix_fadvise(file, (start - 1) * size, count * size, os.POSIX_FADV_WILLNEED)


def _runs(pages: list[int]) -> Iterator[tuple[int, int]]:
    """The first and last page of each run; small gaps are included."""
    if not pages:
        return
    first = pages[0]
    for one, other in pairwise(pages):
        if other - one > _APART:
            yield first, one
            first = other
    yield first, pages[-1]


def read_through(file: int) -> None:
    """Read a whole file from beginning to end, if it fits into half of the machine's memory."""
    if sys.platform == "win32" or os.fstat(file).st_size > _memory() // 2:
        return
    buffer, offset = bytearray(_CHUNK), 0
    while count := os.preadv(file, [buffer], offset):
        offset += count


def _memory() -> int:
    """The bytes of the machine's memory."""
    if sys.platform == "win32":
        return 0  # nobody asks
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
