"""Whether the tables of a job are still what they were: the items that it wrote last are there, and no table is new.

A state says how far a job is, but not whether the target still has what was written. After a restore to an earlier state, a job
that went on from there would end as complete, with a gap. So would one whose table is deleted and made again meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from isotone.backends.interface import Backend
from isotone.errors import ResourceNotFoundException, UsageError
from isotone.tables.batch_reads import read_items
from isotone.tables.description import read_description
from isotone.tables.pace import Pace
from isotone.values.types import Item

MOST: Final = 10  # keys; a job with several places keeps as many of each
_KEYS_A_READ: Final = 100


def check_witnesses(
    backend: Backend, table: str, keys: Iterable[Item], pace: Pace, *, job: str
) -> None:
    """Raise `UsageError` if none of the items is there. Cost: a read of each."""
    wanted = list(keys)[:_KEYS_A_READ]
    if wanted and not read_items(backend, table, wanted, pace):
        raise UsageError(
            f"none of the items that an earlier run of this {job} wrote last is in table {table!r}: it was restored to an "
            f"earlier state, or emptied; --restart (restart=True) begins the {job} again"
        )


@contextmanager
def same_table(
    backend: Backend, table: str, identity: Callable[[], str], *, job: str
) -> Iterator[None]:
    """Raise `UsageError` if the table was deleted, or made again, while the items of a job moved.

    Between the deletion and the new table a request finds none, so that error is replaced, too.
    """
    try:
        yield
    except ResourceNotFoundException:
        _check_identity(backend, table, identity(), job)
        raise
    _check_identity(backend, table, identity(), job)


def _check_identity(backend: Backend, table: str, identity: str, job: str) -> None:
    try:
        found = read_description(backend, table).identity
    except ResourceNotFoundException:
        found = "none"
    if identity not in ("", found):
        raise UsageError(
            f"table {table!r} was deleted during this {job}, so it is not complete: the same call begins again"
        )
