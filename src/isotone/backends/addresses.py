"""Decides whether an address is a file, a database in PostgreSQL, or a server (`endpoint` parses a server's address).

>>> whole("localhost:8000")
'http://localhost:8000'
>>> is_remote("shop.db"), is_remote("db.internal:8000"), is_remote("dynamodb://eu-west-1")
(False, True, True)
>>> is_remote("postgresql://db.internal/app"), is_file("postgresql://db.internal/app")
(False, False)
"""

from __future__ import annotations

import re
from os import PathLike, fsdecode, fspath
from pathlib import Path
from typing import Final

from isotone.errors import UsageError
from isotone.postgres_address import is_postgres, shown

MEMORY: Final = ":memory:"
_HOST_AND_PORT: Final = re.compile(r"([\w-]{2,}(\.[\w-]+)*|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}/?")


def whole(address: str) -> str:
    """An address with its scheme: a host with a port gets `http://`. A path is returned unchanged."""
    return f"http://{address}" if _HOST_AND_PORT.fullmatch(address) else address


def is_remote(target: object) -> bool:
    """Whether a target is the address of a server or a service that answers requests. A path object never is."""
    return isinstance(target, str) and "://" in whole(target) and not is_postgres(target)


def is_file(target: str) -> bool:
    """Whether an address is the path of a file."""
    return target != MEMORY and not is_remote(target) and not is_postgres(target)


def file_of(target: object) -> str | None:
    """The path of a file target; None for memory, PostgreSQL, a server, or an object that answers requests."""
    if not isinstance(target, str | PathLike) or is_postgres(target):
        return None
    path = fsdecode(target)
    return None if path == MEMORY or is_remote(target) else path


def place_of(path: str | PathLike[str]) -> str:
    """What can be opened in this process, as text: the address of a database in PostgreSQL, or what `file_name` takes."""
    return path if is_postgres(path) else file_name(path)


def file_name(path: str | PathLike[str]) -> str:
    """A path as text; raises `UsageError` for a text that is no file name, and for an address."""
    name = fspath(path) if isinstance(path, str | PathLike) else None
    if not isinstance(name, str):
        raise UsageError(f"{path!r} is not a path; give a str or a Path, or {MEMORY!r}")
    if is_postgres(name):
        raise UsageError(
            f"{shown(name)} is a database in PostgreSQL, and this is for files: pg_dump and base backups save one, "
            "and isotone copy moves tables"
        )
    if "\0" in name or (not name.isascii() and name.encode("utf-8", "ignore").decode() != name):
        raise UsageError(f"{name!r} cannot be a file's name: it has a NUL, or is not Unicode text")
    if is_remote(path) and not Path(name).exists():
        raise UsageError(
            f"{name!r} is the address of a server; give the path of a file (isotone.connect takes both)"
        )
    return name
