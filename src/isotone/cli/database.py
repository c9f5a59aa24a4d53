"""The database that a command works on: a file opened in this process, or a server elsewhere."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from isotone.backends.addresses import file_of, is_file, is_remote
from isotone.backends.interface import Backend
from isotone.errors import UsageError

MEMORY: Final = ":memory:"
ADDRESSES: Final = (
    "a file, http://…, https://…, dynamodb://region, alternator://… or azure-table://…"
)
"""What may be given where any engine will do, for `--help`."""

_ATTEMPTS: Final = 4  # of a request to a server; few, because a user is waiting at a terminal


def check_exists(address: str, hint: str = "") -> None:
    """Raise `UsageError` for a file that does not exist or is empty, which opening would make a database."""
    if not is_file(address):
        return
    if not Path(address).exists():
        raise UsageError(f"there is no file {address}{hint}")
    from isotone.backends import embedded

    embedded.check_exists(address)


def opened_file(arguments: argparse.Namespace) -> str | None:
    """The file that a command has open, if it has one; inside the shell nobody has named it."""
    return file_of(getattr(arguments, "source", None))


@contextlib.contextmanager
def connect(source: str, *, create: bool = False) -> Iterator[Backend]:
    """Open a file, or a server's address, for the length of the block.

    A missing or an empty file is made a database only with `create`. Raises `UsageError` for one otherwise, and
    `StorageError` for a file that cannot be opened. A server is not contacted before the first request, which
    raises `ConnectionFailed` if it does not answer.
    """
    if is_remote(source):
        from isotone.backends.opening import open_backend
        from isotone.backends.request_retries import Retries

        backend, close = open_backend(source, retries=Retries(attempts=_ATTEMPTS))
        try:
            yield backend
        finally:
            close()
        return
    if source != MEMORY and not create and not Path(source).exists():
        raise UsageError(
            f"the file {source} does not exist; isotone create creates it, "
            "and the address of a server is http://… or HOST:PORT"
        )
    from isotone.backends import embedded

    if source != MEMORY and not create:
        embedded.check_exists(source)
    with embedded.open(source) as database:
        yield database
