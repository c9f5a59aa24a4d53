"""Decides whether an address is a file or a server (`endpoint` parses a server's address).

>>> whole("localhost:8000")
'http://localhost:8000'
>>> is_remote("shop.db"), is_remote("db.internal:8000"), is_remote("dynamodb://eu-west-1")
(False, True, True)
"""

from __future__ import annotations

import re
from os import PathLike, fsdecode
from typing import Final

MEMORY: Final = ":memory:"
_HOST_AND_PORT: Final = re.compile(r"([\w-]{2,}(\.[\w-]+)*|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}/?")


def whole(address: str) -> str:
    """An address with its scheme: a host with a port gets `http://`. A path is returned unchanged."""
    return f"http://{address}" if _HOST_AND_PORT.fullmatch(address) else address


def is_remote(target: object) -> bool:
    """Whether a target is the address of a server or a service. A path object never is."""
    return isinstance(target, str) and "://" in whole(target)


def is_file(target: str) -> bool:
    """Whether an address is the path of a file."""
    return target != MEMORY and not is_remote(target)


def file_of(target: object) -> str | None:
    """The path of a file target; None for memory, a server, or an object that answers requests."""
    if not isinstance(target, str | PathLike):
        return None
    path = fsdecode(target)
    return None if path == MEMORY or is_remote(target) else path
