"""`replication`: how late writes reach the other replicas of a table, for the tests of a program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isotone.backends.embedded import Database


@contextmanager
def replication(database: Database, *, lag: float = 0.0, paused: bool = False) -> Iterator[None]:
    """Deliver writes to other replicas only `lag` seconds later, or not at all while `paused`, inside the block.

    Time is that of the database's clock. At the end of the block, the former lag applies again, and what is due is
    delivered.

    >>> import isotone
    >>> with isotone.open() as database, replication(database, paused=True):
    ...     database.replication
    (0.0, True)
    """
    former_lag, former_paused = database.replication
    database.set_replication(lag=lag, paused=paused)
    try:
        yield
    finally:
        database.set_replication(lag=former_lag, paused=former_paused)
        database.finish_maintenance()
