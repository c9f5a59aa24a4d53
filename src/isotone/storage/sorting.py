"""Sorts entries by their keys, as many as there are: few in a list, more in a temporary file.

The file is SQLite's, in its folder for temporary files (`SQLITE_TMPDIR`, or else the system's). SQLite sorts in runs of
16 MB and merges them, and Python's lock is free meanwhile. The file has no name, so a killed process leaves nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Final

from isotone.errors import StorageError, UsageError
from isotone.storage import forking

Entry = tuple[bytes, bytes]

FEW: Final = 1000  # entries that are sorted in a list, which holds Python's lock for a millisecond
FEW_BYTES: Final = 1 << 20  # of such entries
_ROWS: Final = 50  # that one statement adds
_MEMORY: Final = 16 << 10  # kilobytes
_SETTINGS: Final = (
    "PRAGMA journal_mode=OFF",
    "PRAGMA synchronous=OFF",
    "PRAGMA temp_store=FILE",
    f"PRAGMA cache_size=-{_MEMORY}",
)


class NoRoomToSort(StorageError):
    """The temporary file failed. Fewer entries can still be sorted, in memory."""


class Sorter:
    """Takes entries in any order, and gives them back in the order of their keys.

    >>> sorter = Sorter()
    >>> sorter.add([(b"pear", b"green"), (b"apple", b"red")])
    >>> sorter.take(5, 1000)
    [(b'apple', b'red'), (b'pear', b'green')]
    """

    __slots__ = (
        "__weakref__",
        "_bytes",
        "_count",
        "_few",
        "_is_lost",
        "_rows",
        "connection",
        "lock",
    )

    def __init__(self) -> None:
        self._few: list[Entry] = []
        self._rows: Iterator[Entry] | None = None
        self._count = self._bytes = 0
        self._is_lost = False
        self.connection: Any = None
        self.lock = threading.Lock()

    def __len__(self) -> int:
        """How many entries were added."""
        return self._count

    def add(self, entries: Sequence[Entry]) -> None:
        """Add some. None may be added after the first `take`."""
        self._count += len(entries)
        self._few += entries
        self._bytes += sum(len(key) + len(value) for key, value in entries)
        if len(self._few) > FEW or self._bytes > FEW_BYTES:
            with self.lock, _errors():
                self._move_to_file()

    def take(self, most: int, size: int) -> list[Entry]:
        """The next entries: at most so many, and no more after `size` bytes; none at the end. The first call sorts them."""
        with self.lock, _errors():
            if self._is_lost:
                raise UsageError(
                    "these entries are sorted by the process before fork(): begin again"
                )
            if self._rows is None:
                self._rows = self._sorted()
            taken = []
            for entry in islice(self._rows, most):
                taken.append(entry)
                size -= len(entry[0]) + len(entry[1])
                if size <= 0:
                    break
            return taken

    def close(self) -> None:
        """Free the memory and the file."""
        with self.lock:
            self._few, self._rows = [], None
            if self.connection is not None:
                self.connection.close(True)

    def disown(self) -> None:
        """In a forked child: the file is the parent's, so nothing can be taken."""
        self._is_lost, self.connection = True, None

    def _sorted(self) -> Iterator[Entry]:
        if self.connection is None:
            return iter(sorted(self._few, key=itemgetter(0)))
        self._move_to_file()
        rows: Iterator[Entry] = self.connection.execute(
            "SELECT key, value FROM entries ORDER BY key"
        )
        return rows

    def _move_to_file(self) -> None:
        if self.connection is None:
            self.connection = _temporary_file()
            forking.register(self)
        for start in range(0, len(self._few), _ROWS):
            rows = self._few[start : start + _ROWS]
            places = ", ".join(["(?, ?)"] * len(rows))
            cells = [*chain.from_iterable(rows)]
            self.connection.execute(f"INSERT INTO entries VALUES {places}", cells)
        self._few, self._bytes = [], 0


@contextmanager
def _errors() -> Iterator[None]:
    """Raises `NoRoomToSort` if the file fails, whatever the reason."""
    try:
        yield
    except Exception as error:
        import apsw

        if not isinstance(error, apsw.Error):
            raise
        raise NoRoomToSort(
            "index entries cannot be sorted in the folder for temporary files, so make room there, or name another one"
            f" with SQLITE_TMPDIR ({error})"
        ) from error


def _temporary_file() -> Any:
    import apsw  # which a database in memory does not need

    connection = apsw.Connection("")
    for pragma in _SETTINGS:
        connection.execute(pragma).get  # noqa: B018 - reading the result executes it
    connection.execute("CREATE TABLE entries (key BLOB, value BLOB)")
    return connection
