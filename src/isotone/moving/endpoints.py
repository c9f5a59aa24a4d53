"""Opens the source and the target of a job: files with a small memory map, others like `isotone.connect`.

A file that is read must be a database: a missing one is not created, and an empty one stays empty. A file that is
written is created by the first request that writes, so a job that is refused earlier leaves no file. The same holds for
a schema of PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from isotone.backends.addresses import file_of
from isotone.backends.interface import Backend, Native, Request, Response
from isotone.backends.opening import Target, is_new, open_backend
from isotone.postgres_address import is_postgres

if TYPE_CHECKING:
    from isotone.backends.embedded import Database

# Bytes. A job reads the whole file once; a larger map would appear to fill the memory.
_MAPPED: Final = 32 << 20
_READS: Final = ("Describe", "List", "Get", "BatchGet", "Query", "Scan")


@contextmanager
def opened(target: Target, *, is_read: bool = False) -> Iterator[Backend]:
    """The backend of an address or an object, for a `with` block; an object stays open after it.

    `is_read`: the block only reads it; then a missing or empty file raises `UsageError`.
    """
    path = target if is_postgres(target) else file_of(target)
    if path is not None:
        from isotone.backends import embedded

        if is_read:
            embedded.check_exists(path)
        elif is_new(path):
            with closing(_NewDatabase(path)) as new:
                yield new
            return
    found = open_backend(target) if path is None else open_backend(target, memory_map=_MAPPED)
    try:
        yield found.backend
    finally:
        found.close()


class _NewDatabase(Native):
    """A file or a schema that the first writing request makes a database; until then it has no tables."""

    def __init__(self, path: str) -> None:
        from isotone.backends import embedded

        self._path = path
        self._nothing = embedded.open()
        self._made: Database | None = None

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Execute one request."""
        if self._made is None:
            if operation.startswith(_READS):
                return self._nothing.execute(operation, request)
            if operation == "CreateTable":
                # a request that is refused makes nothing
                self._nothing.execute(operation, request)
        return self._database().execute(operation, request)

    def read_json(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Execute a Query or a Scan, but return the items as the stored JSON."""
        return (self._made or self._nothing).read_json(operation, request)

    def send_many(self, requests: Sequence[tuple[str, bytes]]) -> Sequence[bytes | Exception]:
        """Execute requests in one transaction."""
        return self._database().send_many(requests)

    def _database(self) -> Database:
        if self._made is None:
            from isotone.backends import embedded

            self._made = embedded.open(self._path, memory_map=_MAPPED)
        return self._made

    def close(self) -> None:
        """Close the database, if it was made."""
        self._nothing.close()
        if self._made is not None:
            self._made.close()
