"""Keys of the items that a job wrote last: a run that continues it looks for them in the target.

A state says how far a job is, but not whether the target still has what was written. After a restore to an earlier state, a job
that went on from there would end as complete, with a gap.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isotone.backends.interface import Backend
from isotone.errors import UsageError
from isotone.moving.key_reads import read_items
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
