"""Opens the source and the target of a job: files with a small memory map, others as `isotone.connect` does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Final

from isotone.backends.addresses import is_remote
from isotone.backends.interface import Backend
from isotone.backends.opening import Target, open_backend

_MAPPED: Final = (
    32 << 20
)  # bytes of a file: a job reads all of it once, and would seem to fill the memory


@contextmanager
def opened(target: Target) -> Iterator[Backend]:
    """The backend of an address or an object, for the length of the block; an object stays open."""
    if isinstance(target, str | PathLike) and not is_remote(target):
        found = open_backend(target, memory_map=_MAPPED)
    else:
        found = open_backend(target)
    try:
        yield found.backend
    finally:
        found.close()
