"""Cuts a tree of a file into parts of about equal size, with the pages of each part, for parallel checks.

The interior pages of a tree (at most one page in thirty) list the pages below them and the keys between these. So they
show where a range of keys with a given number of pages begins and ends, and where those pages are in the file.

All of this is a hint, read directly from the file without SQLite and without the log. If a page is outdated or damaged,
the parts are less equal, but together they still cover every possible key exactly once.
"""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import apsw

from isotone.storage.interface import TreePart
from isotone.storage.salvage import INTERIOR, varint

ReadPage = Callable[[int], bytes]
"""The bytes of a page by its number, from 1; arbitrary bytes if it cannot be read."""

_ROOTS: Final = (
    "SELECT substr(name, 6), rootpage FROM sqlite_schema"
    " WHERE type = 'table' AND name GLOB 'tree_*'"
)
_DEEPEST: Final = 20  # SQLite's own limit on the depth of a tree
_LAST_CHILD: Final = 8  # offset of the last child's page number in an interior page
_ROWS: Final = 12  # offset of the list of rows
_CHILD: Final = 4  # bytes of the child's page number at the beginning of a row
_BLOB: Final = 12


def cut(connection: Any, trees: Sequence[str], most: int) -> dict[str, list[TreePart]]:
    """The parts of each tree, of about `most` pages each; one part if the tree does not exist."""
    if not _can_be_mapped(connection.filename):
        return {tree: [TreePart()] for tree in trees}
    roots = dict(connection.execute(_ROOTS).fetchall())
    size: int = connection.execute("PRAGMA page_size").get

    def page(number: int) -> bytes:
        try:
            content: bytes = connection.read("main", 0, (number - 1) * size, size)[1]
        except (apsw.Error, ValueError):
            return b""  # the page or the file does not exist
        return content

    return {tree: list(_Cutting(page, roots.get(tree, 0), most).parts()) for tree in trees}


def _can_be_mapped(path: str) -> bool:
    """Whether the disk has room for the holes of a file; the path of memory is empty.

    SQLite lengthens a file before it copies its log into it. If the disk is full then, the file ends in a hole, whose
    pages are in the log. A `tmpfs` needs room to map a page of it, and a read without room ends the process (SIGBUS).
    """
    if not path or sys.platform == "win32":
        return True
    file, disk = Path(path).stat(), os.statvfs(path)
    return file.st_size - file.st_blocks * 512 <= disk.f_bavail * disk.f_frsize


class _Cutting:
    """Walks over the interior pages of one tree in key order."""

    def __init__(self, read_page: ReadPage, root: int, most: int) -> None:
        self._read_page = read_page
        self._root = root
        self._most = most
        self._seen: set[int] = set()

    def parts(self) -> Iterator[TreePart]:
        low, pages = b"", array("I")
        for met in self._walk(self._root, self._levels()):
            if isinstance(met, list):
                pages.extend(met)
            elif met > low and len(pages) >= self._most:
                yield TreePart(low, met, pages)
                low, pages = met, array("I")
        yield TreePart(low, None, pages)

    def _levels(self) -> int:
        """How many levels of interior pages there are. All leaves of a tree have the same depth."""
        number = self._root
        for level in range(_DEEPEST):
            page = self._read_page(number)
            if page[:1] != _INTERIOR:
                return level
            number = _number(page, _LAST_CHILD)
        return 0

    def _walk(self, number: int, levels: int) -> Iterator[list[int] | bytes]:
        """The pages below this one, and the keys of rows between them, in key order. Leaves are not read."""
        yield [number]
        page = self._read_page(number) if levels and number not in self._seen else b""
        if page[:1] != _INTERIOR:
            return
        self._seen.add(number)
        rows = _rows(page)
        children = [_number(page, row) for row in rows]
        if levels == 1:
            yield children
        else:
            for child, row in zip(children, rows, strict=True):
                yield from self._walk(child, levels - 1)
                yield _key_at(page, row + _CHILD)
        yield from self._walk(_number(page, _LAST_CHILD), levels - 1)


_INTERIOR: Final = bytes((INTERIOR,))


def _rows(page: bytes) -> list[int]:
    """The positions of the rows in an interior page."""
    count = int.from_bytes(page[3:5], "big")
    ends = range(_ROWS, min(_ROWS + 2 * count, len(page) - 1), 2)
    return [int.from_bytes(page[at : at + 2], "big") for at in ends]


def _number(page: bytes, at: int) -> int:
    return int.from_bytes(page[at : at + _CHILD], "big")


def _key_at(page: bytes, at: int) -> bytes:
    """The key of a row; empty if it continues on another page or is invalid."""
    try:
        _, record = varint(page, at)
        header, at = varint(page, record)
        kind, _ = varint(page, at)
    except IndexError:
        return b""
    size, start = (kind - _BLOB) // 2, record + header
    if kind < _BLOB or kind % 2 or start + size > len(page):
        return b""
    return page[start : start + size]
