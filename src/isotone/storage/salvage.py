"""For `isotone repair`: reads each row with a valid checksum out of the pages of a damaged file, without SQLite.

SQLite follows pointers from page to page, and loses everything below a wrong one. Here each b-tree page that is not
free is read on its own. The checksum of a row identifies its tree.

    page      type (0A leaf, 02 interior) · first free block (2) · rows (2) · content (2) · free bytes (1)
              · right child (4), interior only · pointers to the rows (2 each)
    row       left child (4), interior only · size (varint) · record, of which the end may be on overflow pages
    record    size of header (varint) · a type for each column (varint) · the columns
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import apsw

from isotone.errors import StorageError
from isotone.storage.checksums import Sums
from isotone.storage.file import APPLICATION_ID, PAGE_SIZE, connect, header_of
from isotone.storage.file_upgrade import remaining
from isotone.storage.log_merge import merge

_LEAF: Final = 0x0A
INTERIOR: Final = 0x02
_B_TREES: Final = (bytes((_LEAF,)), bytes((INTERIOR,)))
FIRST_HEADER: Final = 100  # bytes of the file header, on the first page
_BLOB: Final = 12
_SMALLEST: Final = 16  # bytes of the smallest row
_SMALLEST_FREE: Final = 4  # bytes of the smallest entry in the list of free space
_PAGE_SIZES: Final = tuple(512 << power for power in range(8))
_LOCK: Final = 1 << 30  # SQLite uses the page at this offset only for locks
_PREFIX: Final = "tree_"
_TREES: Final = (
    "SELECT name, rootpage FROM sqlite_schema WHERE type = 'table' AND name GLOB 'tree_*'"
)
_WITHOUT_SUMS: Final = (
    f'SELECT CAST(key AS BLOB), CAST(value AS BLOB) FROM "{_PREFIX}{{}}"'
    " WHERE row_sum IS NULL AND key >= ? ORDER BY key {}"
)
_UNREADABLE: Final = (apsw.CorruptError, apsw.TooBigError)
_CREATED: Final = re.compile(rb'CREATE TABLE "tree_([a-z0-9_]+)"')


class SavedRow(NamedTuple):
    """A row with a valid checksum."""

    tree: str
    key: bytes
    value: bytes


class LostRow(NamedTuple):
    """A damaged row: its page, and its tree and key if they can be read. Without a row, a whole page is lost."""

    page: int
    tree: str | None = None
    key: bytes | None = None
    what: str | None = None


class SalvagePreview(NamedTuple):
    """What is known about a file before its pages are read. `notes` are losses; `rows` adds to them."""

    trees: list[str]
    old: list[str]  # trees that may have rows without checksums
    roots: list[int]  # the root pages of trees
    notes: list[str]
    latest: frozenset[int]  # pages from the log; of two rows with the same key, theirs wins
    older: dict[int, bytes]  # earlier versions of pages whose commit in the log is damaged


class _Damaged(Exception):
    """The bytes are not those of a row."""


def prepare(path: str) -> SalvagePreview:
    """Copy a file's log into it, and find its trees."""
    latest, older, notes = merge(path)
    try:
        connection: Any = connect(path, "none", 0.0, 0)
    except (StorageError, UnicodeDecodeError) as error:
        notes.append(f"SQLite cannot open the file: {error.__cause__ or error}")
        return SalvagePreview(_names_in(path), [], [], notes, latest, older)
    try:
        known = connection.execute(_TREES).fetchall()
        trees = [str(name).removeprefix(_PREFIX) for name, _ in known]
        old = [tree for tree in remaining(connection) if tree in trees]
    except (apsw.Error, UnicodeDecodeError) as error:
        notes.append(f"the list of trees is damaged: {error}")
        return SalvagePreview(_names_in(path), [], [], notes, latest, older)
    finally:
        connection.close(True)
    return SalvagePreview(trees, old, [root for _, root in known], notes, latest, older)


def begins_as_ours(path: str) -> bool:
    """Whether a file's header says that Isotone created it."""
    header = header_of(path)
    return header is not None and header.application_id == APPLICATION_ID


def _names_in(path: str) -> list[str]:
    """The names of trees, found by the SQL text that creates them."""
    with (
        Path(path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return sorted({name.decode() for name in _CREATED.findall(content)})


def rows_without_sums(path: str, tree: str) -> Iterator[tuple[bytes, bytes] | LostRow]:
    """The rows of a tree that an upgrade has not reached, as far as SQLite can follow them from both ends."""
    connection = apsw.Connection(path)
    try:
        reached = b""
        try:
            for key, value in connection.execute(_WITHOUT_SUMS.format(tree, "ASC"), (reached,)):
                yield key, value
                reached = key
        except _UNREADABLE:
            yield LostRow(0, tree)
        else:
            return
        with suppress(*_UNREADABLE):  # it has just been reported
            yield from connection.execute(_WITHOUT_SUMS.format(tree, "DESC"), (reached,))
    finally:
        connection.close(True)


def rows(path: str, found: SalvagePreview) -> Iterator[SavedRow | LostRow | int]:
    """All rows, including damaged ones, and the number of each page after its rows.

    Damage may leave two rows with the same key; the first is the one to keep. The file must not have a log. Rows that
    never got a checksum are left out.
    """
    with Path(path).open("rb") as file:
        yield from _Pages(file, found).rows()


class _Pages:
    def __init__(self, file: BinaryIO, found: SalvagePreview) -> None:
        header = file.read(FIRST_HEADER).ljust(FIRST_HEADER, b"\0")
        size = int.from_bytes(header[16:18], "big")
        size = 65536 if size == 1 else size
        self._file = file
        self._size = size if size in _PAGE_SIZES else PAGE_SIZE
        length = file.seek(0, os.SEEK_END)
        self._count = length // self._size
        self._sums = {tree: Sums(tree) for tree in found.trees}
        self._latest = next(iter(self._sums), "")
        self._roots = found.roots
        self._from_log = found.latest
        self._older = found.older
        self._overflow: set[int] = set()
        self._free = self._free_pages(header)
        stated = int.from_bytes(header[28:32], "big")
        if length % self._size or (header[24:28] == header[92:96] and stated > self._count):
            found.notes.append(
                f"the file is cut off: {self._count} of its {stated} pages are whole"
            )
        if self._free is None:
            found.notes.append(
                "the list of free pages is damaged: entries that were deleted may be there again"
            )

    def rows(self) -> Iterator[SavedRow | LostRow | int]:
        unknown = []
        damaged = set()
        for done, number in enumerate(self._in_order(), 1):
            page = self._page(number)
            if page[0] in (_LEAF, INTERIOR):
                for row in self._rows_of(number, page):
                    if isinstance(row, LostRow):
                        damaged.add(number)
                    yield row
            else:
                unknown.append(number)
            yield done
        for number in unknown:
            if number not in self._overflow:
                damaged.add(number)
                if self._free is not None:
                    yield LostRow(number, what="a page that cannot be read")
        yield from self._older_rows(damaged)

    def _older_rows(self, damaged: set[int]) -> Iterator[SavedRow]:
        """Rows from earlier versions of damaged pages, if no other page has them."""
        for number in sorted(damaged & self._older.keys()):
            page = self._older[number]
            for row in self._rows_of(number, page) if page[:1] in _B_TREES else ():
                if isinstance(row, SavedRow):
                    yield row

    def _in_order(self) -> Iterator[int]:
        """The pages after the schema that may have rows. If it is not known which are free, those of trees come first."""
        lock = _LOCK // self._size + 1
        pages = [number for number in range(2, self._count + 1) if number != lock]
        pages.sort(key=lambda number: number not in self._from_log)
        if self._free is None:
            used = self._reached()
            pages.sort(key=lambda number: number not in used)
            return iter(pages)
        return (number for number in pages if number not in (self._free or ()))

    def _reached(self) -> set[int]:
        """The pages that the pointers of trees lead to."""
        reached: set[int] = set()
        left = list(self._roots)
        while left:
            number = left.pop()
            page = b"" if number in reached else self._page(number)
            if page[:1] in _B_TREES:
                reached.add(number)
            if page[:1] == bytes((INTERIOR,)):
                left.append(int.from_bytes(page[8:12], "big"))
                cells, _ = self._cells(page)
                left += [int.from_bytes(page[cell : cell + 4], "big") for cell in cells]
        return reached

    def _page(self, number: int) -> bytes:
        if not 1 <= number <= self._count:
            return b""
        self._file.seek((number - 1) * self._size)
        return self._file.read(self._size)

    def _free_pages(self, header: bytes) -> set[int] | None:
        """The free pages; None if the list of them is damaged."""
        trunk, count = (int.from_bytes(header[at : at + 4], "big") for at in (32, 36))
        free: set[int] = set()
        while trunk:
            page = b"" if trunk in free else self._page(trunk)
            end = 8 + 4 * int.from_bytes(page[4:8], "big")
            if not page or end > self._size:
                return None
            free.add(trunk)
            free.update(int.from_bytes(page[at : at + 4], "big") for at in range(8, end, 4))
            trunk = int.from_bytes(page[:4], "big")
        is_whole = len(free) == count and all(1 < number <= self._count for number in free)
        return free if is_whole else None

    def _cells(self, page: bytes) -> tuple[list[int], bool]:
        """The positions of a page's rows, and whether rows and free space fill the page exactly, as they must.

        The count of rows may be damaged; more than fit are impossible. If there are more rows than it says, the list of
        positions continues, and all of them together fill the page exactly.
        """
        begin = 12 if page[0] == INTERIOR else 8
        places = [
            int.from_bytes(page[at : at + 2], "big") for at in range(begin, self._size - 1, 2)
        ]
        count = min(int.from_bytes(page[3:5], "big"), len(places))
        try:
            gaps = self._gaps(page, places[:count])
        except (_Damaged, IndexError):
            return places[:count], True  # the row with the damaged size is reported
        if _total(gaps) <= page[7]:  # the gaps between rows are too small for another row
            return places[:count], True
        more = count
        with suppress(_Damaged, IndexError, StopIteration):
            while _total(gaps) > page[7]:
                start, end = places[more], self._end_of(page, places[more])
                around = next(gap for gap in gaps if gap[0] <= start < end <= gap[1])
                gaps.remove(around)
                gaps += [(around[0], start), (end, around[1])]
                more += 1
        if _total(gaps) == page[7]:
            return places[:more], True
        return places[:count], max(end - start for start, end in gaps) < _SMALLEST

    def _gaps(self, page: bytes, cells: list[int]) -> list[tuple[int, int]]:
        """The parts of a page, after the beginning of its content, that are neither in a row nor listed as free."""
        used = [(cell, self._end_of(page, cell)) for cell in cells]
        free = int.from_bytes(page[1:3], "big")
        while free:
            size = int.from_bytes(page[free + 2 : free + 4], "big")
            used.append((free, free + size))
            following = int.from_bytes(page[free : free + 2], "big")
            # offsets in the list rise
            if size < _SMALLEST_FREE or (following and following < free + size):
                raise _Damaged
            free = following
        gaps = []
        reached = int.from_bytes(page[5:7], "big") or 65536
        for start, end in [*sorted(used), (self._size, self._size)]:
            if start > reached:
                gaps.append((reached, start))
            reached = max(reached, end)
        return gaps

    def _end_of(self, page: bytes, cell: int) -> int:
        """The end of a row, and the number of its overflow page."""
        size, at = varint(page, cell + (4 if page[0] == INTERIOR else 0))
        local = self._local(size)
        return max(at + local + (4 if local < size else 0), cell + 4)

    def _rows_of(self, number: int, page: bytes) -> Iterator[SavedRow | LostRow]:
        child = 4 if page[0] == INTERIOR else 0
        cells, is_full = self._cells(page)
        if not is_full:
            yield LostRow(
                number, what="a page whose rows and free space do not fill it: rows may be missing"
            )
        for cell in cells:
            if not 8 + child < cell < self._size:
                yield LostRow(number)
                continue
            try:
                columns = self._columns(page, cell + child)
            except (_Damaged, IndexError):
                yield LostRow(number)
            else:
                row = self._row(number, columns)
                if row is not None:
                    yield row

    def _row(self, number: int, columns: list[bytes | None]) -> SavedRow | LostRow | None:
        if len(columns) < 4 or columns[3] is None:
            return None  # a row that an upgrade has not reached
        key, value, key_sum, row_sum = columns[:4]
        if key is None:
            return LostRow(number)
        tree = self._tree_of(key, value, row_sum)
        if tree is not None and value is not None:
            return SavedRow(tree, key, value)
        tree = self._tree_of(key, key_sum)
        return LostRow(number, tree, None if tree is None else key)

    def _tree_of(self, *parts: bytes | None) -> str | None:
        """The tree whose checksum matches the last part. Most rows are in the same tree as the row before."""
        if self._sums and self._sums[self._latest].hold(*parts):
            return self._latest
        for tree, sums in self._sums.items():
            if sums.hold(*parts):
                self._latest = tree
                return tree
        return None

    def _columns(self, page: bytes, at: int) -> list[bytes | None]:
        size, at = varint(page, at)
        record = self._record(page, at, size)
        header, at = varint(record, 0)
        if not at <= header <= min(size, 64):
            raise _Damaged
        columns: list[bytes | None] = []
        content = header
        while at < header:
            kind, at = varint(record, at)
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

    def _local(self, size: int) -> int:
        """How many bytes of a record of this size are in its own page."""
        most = (self._size - 12) * 64 // 255 - 23
        if size <= most:
            return size
        least = (self._size - 12) * 32 // 255 - 23
        local = least + (size - least) % (self._size - 4)
        return least if local > most else local

    def _record(self, page: bytes, at: int, size: int) -> bytes:
        """The bytes of a record; what does not fit into its page is on overflow pages."""
        local = self._local(size)
        if local == size:
            return page[at : at + size]
        parts = [page[at : at + local]]
        following = int.from_bytes(page[at + local : at + local + 4], "big")
        left, seen = size - local, set[int]()
        while left > 0:
            more = self._page(following) if following and following not in seen else b""
            if not more:
                raise _Damaged
            seen.add(following)
            self._overflow.add(following)
            parts.append(more[4 : 4 + min(left, self._size - 4)])
            left -= self._size - 4
            following = int.from_bytes(more[:4], "big")
        return b"".join(parts)


def _total(gaps: list[tuple[int, int]]) -> int:
    return sum(end - start for start, end in gaps)


def varint(content: bytes, at: int) -> tuple[int, int]:
    """A variable-length number (one to nine bytes), and its end."""
    value = 0
    for index in range(8):
        byte = content[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    return value << 8 | content[at + 8], at + 9
