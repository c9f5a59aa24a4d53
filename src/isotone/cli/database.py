"""The database of a command: a file opened in this process, or a server elsewhere."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from isotone.backends.addresses import file_of, is_file, is_remote
from isotone.backends.interface import Backend
from isotone.errors import UsageError
from isotone.postgres_address import is_postgres

MEMORY: Final = ":memory:"
ADDRESSES: Final = "a file, postgresql://…, http://…, https://…, dynamodb://region, alternator://… or azure-table://…"
"""The addresses of all engines, for `--help`."""

_ATTEMPTS: Final = 4  # of a request to a server; few, because a user is waiting at the terminal


def check_exists(address: str, hint: str = "") -> None:
    """Raise `UsageError` for a missing or empty file, which opening would turn into a database."""
    if address == MEMORY or is_remote(address):
        return
    if is_file(address) and not Path(address).exists():
        raise UsageError(f"there is no file {address}{hint}")
    from isotone.backends import embedded

    embedded.check_exists(address)


def is_address(text: str) -> bool:
    """Whether an argument is a file or an address, where it may also be a module."""
    if text.endswith(".py"):  # refused later, with the module's name to write instead
        return False
    return (
        is_remote(text)
        or is_postgres(text)
        or Path(text).is_file()
        or text == MEMORY
        or text.endswith(".db")
    )


def opened_file(arguments: argparse.Namespace) -> str | None:
    """The file that a command works on, if there is one; inside the shell the user has not named it."""
    return file_of(getattr(arguments, "source", None))


@contextlib.contextmanager
def connect(source: str, *, create: bool = False) -> Iterator[Backend]:
    """Open a file, or a server's address, for a `with` block.

    With `create`, a missing or empty file becomes a database; otherwise it raises `UsageError`. A file that cannot be
    opened raises `StorageError`. A server is not contacted before the first request, which raises `ConnectionFailed` if
    it does not answer.
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
    if is_file(source) and not create and not Path(source).exists():
        raise UsageError(
            f"the file {source} does not exist; isotone create creates it, "
            "and the address of a server is http://… or HOST:PORT"
        )
    from isotone.backends import embedded

    if source != MEMORY and not create:
        embedded.check_exists(source)
    with embedded.open(source) as database:
        yield database
