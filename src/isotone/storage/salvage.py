"""Reads the rows of a damaged file page by page, without SQLite: each row whose checksum holds can be trusted alone.

SQLite follows pointers from page to page, and loses everything under one that is wrong. Here each page that is a page of
a b-tree, and not free, is read for itself. A row says by its checksum to which tree it belongs.

    page      type (0A leaf, 02 interior) · first free block (2) · rows (2) · content (2) · free bytes (1)
              · right child (4), interior only · pointers to the rows (2 each)
    row       left child (4), interior only · size (varint) · record, of which the end may be on overflow pages
    record    size of header (varint) · a type for each column (varint) · the columns
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import apsw

from isotone.errors import StorageError
from isotone.storage.checksums import Sums
from isotone.storage.file import connect
from isotone.storage.file_upgrade import remaining

_LEAF: Final = 0x0A
_INTERIOR: Final = 0x02
_FIRST_HEADER: Final = 100  # bytes of the file's header, on the first page
_BLOB: Final = 12
_PREFIX: Final = "tree_"
_TREES: Final = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'tree_*'"
_CREATED: Final = re.compile(rb'CREATE TABLE "tree_([a-z0-9_]+)"')


class SavedRow(NamedTuple):
    """A row whose checksum holds."""

    tree: str
    key: bytes
    value: bytes


class LostRow(NamedTuple):
    """A row that is damaged: its page, and its tree and key where they can be read. Without a row it is a whole page."""

    page: int
    tree: str | None = None
    key: bytes | None = None
    is_page: bool = False


class _Damaged(Exception):
    """Bytes are not those of a row."""


def prepare(path: str) -> tuple[list[str], list[str], list[str]]:
    """Take the log of a file into it; its trees, those with rows without checksums, and what could not be done."""
    notes: list[str] = []
    try:
        connection = connect(path, "none", 0.0, 0)
    except (StorageError, UnicodeDecodeError) as error:
        return (
            _names_in(path),
            [],
            [f"SQLite cannot open the file, so its log was left out: {error}"],
        )
    try:
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except apsw.Error as error:
            notes.append(f"the log could not be taken over: {error}")
        try:
            names = connection.execute(_TREES).fetchall()
            trees = [str(name).removeprefix(_PREFIX) for (name,) in names]
            old = [tree for tree in remaining(connection) if tree in trees]
        except (apsw.Error, UnicodeDecodeError) as error:
            return _names_in(path), [], [*notes, f"the list of trees is damaged: {error}"]
        return trees, old, notes
    finally:
        connection.close(True)


def _names_in(path: str) -> list[str]:
    """The names of trees wherever the text that creates one stands."""
    with (
        Path(path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return sorted({name.decode() for name in _CREATED.findall(content)})


def rows_without_sums(path: str, tree: str) -> Iterator[tuple[bytes, bytes]]:
    """The rows of a tree that an upgrade has not reached, as far as SQLite can follow them."""
    connection = apsw.Connection(path)
    found = connection.execute(
        f'SELECT CAST(key AS BLOB), CAST(value AS BLOB) FROM "{_PREFIX}{tree}" WHERE row_sum IS NULL'
    )
    try:
        yield from found
    except apsw.CorruptError:
        return
    finally:
        connection.close(True)


def rows(path: str, trees: Sequence[str]) -> Iterator[SavedRow | LostRow | int]:
    """The rows of all pages, those that are damaged included, and the number of each page after its rows.

    The file must have no log. Rows that were never given a checksum are left out.
    """
    with Path(path).open("rb") as file:
        yield from _Pages(file.read(100), file, trees).rows()


class _Pages:
    def __init__(self, header: bytes, file: BinaryIO, trees: Sequence[str]) -> None:
        size = int.from_bytes(header[16:18], "big")
        self._file = file
        self._size = 65536 if size == 1 else size if size >= 512 else 8192
        self._usable = self._size - header[20]
        self._sums = {tree: Sums(tree) for tree in trees}
        self._latest = next(iter(self._sums), "")
        self._free = self._free_pages(int.from_bytes(header[32:36], "big"))

    def rows(self) -> Iterator[SavedRow | LostRow | int]:
        number = 1
        while page := self._page(number):
            if number not in self._free:
                yield from self._rows_of(number, page)
            yield number
            number += 1

    def _page(self, number: int) -> bytes:
        self._file.seek((number - 1) * self._size)
        content = self._file.read(self._size)
        return content if len(content) == self._size else b""

    def _free_pages(self, trunk: int) -> set[int]:
        free: set[int] = set()
        while trunk and trunk not in free:
            free.add(trunk)
            page = self._page(trunk)
            count = int.from_bytes(page[4:8], "big")
            for at in range(8, min(8 + 4 * count, len(page)), 4):
                free.add(int.from_bytes(page[at : at + 4], "big"))
            trunk = int.from_bytes(page[:4], "big")
        return free

    def _rows_of(self, number: int, page: bytes) -> Iterator[SavedRow | LostRow]:
        start = _FIRST_HEADER if number == 1 else 0
        kind = page[start]
        if kind not in (_LEAF, _INTERIOR) or number == 1:
            return  # the schema, overflow, or damaged: then nothing in it can be told from that
        header = 12 if kind == _INTERIOR else 8
        count = int.from_bytes(page[3:5], "big")
        for at in range(header, header + 2 * count, 2):
            cell = int.from_bytes(page[at : at + 2], "big")
            if at + 2 > len(page) or not header < cell < self._usable:
                yield LostRow(number)
                continue
            try:
                columns = self._columns(page, cell + (4 if kind == _INTERIOR else 0))
            except (_Damaged, IndexError):
                yield LostRow(number)
            else:
                row = self._row(number, columns)
                if row is not None:
                    yield row

    def _row(self, number: int, columns: list[bytes | None]) -> SavedRow | LostRow | None:
        if len(columns) < 4 or columns[3] is None:
            return None  # of an upgrade that has not come to it
        key, value, key_sum, row_sum = columns[:4]
        if key is None:
            return LostRow(number)
        tree = self._tree_of(key, value, row_sum)
        if tree is not None and value is not None:
            return SavedRow(tree, key, value)
        tree = self._tree_of(key, key_sum)
        return LostRow(number, tree, None if tree is None else key)

    def _tree_of(self, *parts: bytes | None) -> str | None:
        """The tree whose sum the last part is. Most rows are of the same tree as the row before."""
        if self._sums and self._sums[self._latest].hold(*parts):
            return self._latest
        for tree, sums in self._sums.items():
            if sums.hold(*parts):
                self._latest = tree
                return tree
        return None

    def _columns(self, page: bytes, at: int) -> list[bytes | None]:
        size, at = _varint(page, at)
        record = self._record(page, at, size)
        header, at = _varint(record, 0)
        if not at <= header <= min(size, 64):
            raise _Damaged
        columns: list[bytes | None] = []
        content = header
        while at < header:
            kind, at = _varint(record, at)
            if kind >= _BLOB:
                length = (kind - _BLOB) // 2
                columns.append(record[content : content + length])
            else:
                length = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)[kind]
                columns.append(None)
            content += length
        if content != size:
            raise _Damaged
        return columns

    def _record(self, page: bytes, at: int, size: int) -> bytes:
        """The bytes of a record; those that do not fit into its page are on overflow pages."""
        most = (self._usable - 12) * 64 // 255 - 23
        if size <= most:
            return page[at : at + size]
        least = (self._usable - 12) * 32 // 255 - 23
        local = least + (size - least) % (self._usable - 4)
        local = least if local > most else local
        parts = [page[at : at + local]]
        following = int.from_bytes(page[at + local : at + local + 4], "big")
        left, seen = size - local, set[int]()
        while left > 0:
            more = self._page(following) if following and following not in seen else b""
            if not more:
                raise _Damaged
            seen.add(following)
            parts.append(more[4 : 4 + min(left, self._usable - 4)])
            left -= self._usable - 4
            following = int.from_bytes(more[:4], "big")
        return b"".join(parts)


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number in one to nine bytes, and where it ends."""
    value = 0
    for index in range(8):
        byte = content[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    return value << 8 | content[at + 8], at + 9
