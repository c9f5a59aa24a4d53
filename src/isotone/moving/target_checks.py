"""Checks that the tables of a job are unchanged: the items that it wrote last exist, and no table was replaced.

A job's state records its position, but not whether the target still has what was written. If the target was restored to
an earlier state, or a table was deleted and created again, a job that continued would end as complete, with a gap.
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

KEPT_KEYS: Final = 10  # keys; a job with several positions keeps as many for each
_KEYS_A_READ: Final = 100


def check_written_items(
    backend: Backend, table: str, keys: Iterable[Item], pace: Pace, *, job: str
) -> None:
    """Raise `UsageError` if none of these items exists. Cost: a read of each."""
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
    """Raise `UsageError` if the table was deleted or replaced during the block.

    Between the two, requests fail because there is no table; that error is replaced by this one, too.
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
