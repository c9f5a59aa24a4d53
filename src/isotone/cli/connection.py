"""The database that a command works on: a file opened in this process, or a server elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isotone.backends.interface import Backend
from isotone.errors import UsageError

if TYPE_CHECKING:
    from isotone.backends.embedded import Database

MEMORY: Final = ":memory:"

_ATTEMPTS: Final = 4  # of a request to a server: who waits at a terminal wants to know soon

Connection = Backend


@contextlib.contextmanager
def connect(source: str, *, create: bool = False) -> Iterator[Connection]:
    """Open a file, or a server's address, for the length of the block.

    A file that is not there is made only where `create` says so. Raises `UsageError` for a source that
    does not exist, `StorageError` for a file that cannot be opened. A server is first asked by a request,
    which raises `ConnectionFailed` where it does not answer.
    """
    if "://" in source:
        from isotone.backends.endpoint import endpoint_of
        from isotone.backends.remote import Remote
        from isotone.backends.retry import Retries

        with Remote(endpoint_of(source), retries=Retries(attempts=_ATTEMPTS)) as remote:
            yield remote
        return
    if source != MEMORY and not create and not Path(source).exists():
        raise UsageError(
            f"there is no file {source}; isotone create makes one, "
            "and the address of a server starts with http://"
        )
    from isotone.backends import embedded

    with embedded.open(source) as database:
        yield embedded_connection(database)


def embedded_connection(database: Database) -> Connection:
    """A connection to a database that is open in this process."""
    return database
