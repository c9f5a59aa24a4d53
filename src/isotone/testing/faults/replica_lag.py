"""`lag_replicas`, `replication`: writes reach the other replicas of a table later, as a fault or for a block of code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from isotone.backends.interface import Response
from isotone.testing.faults.rules import InterceptedCall, Proceed, Rule

if TYPE_CHECKING:
    from isotone.backends.embedded import Database


@contextmanager
def replication(database: Database, *, lag: float = 0.0, paused: bool = False) -> Iterator[None]:
    """Inside the block, deliver writes to other replicas `lag` seconds later, or not at all while `paused`.

    Time is measured by the database's clock. At the end of the block, the former lag applies again, and due writes are
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


class ReplicaLag(Rule):
    """`replication` for the databases that the faults are on; counts the writes that were made meanwhile."""

    def __init__(self, seconds: float, *, paused: bool) -> None:
        super().__init__()
        self._wanted = (seconds, paused)
        self._lagging: list[tuple[Any, ExitStack]] = []

    def begin(self, database: Any) -> None:
        """Make a database lag. All of its regions lag together."""
        if not self.is_stopped and database.replication != self._wanted:
            lag, paused = self._wanted
            block = ExitStack()
            block.enter_context(replication(database, lag=lag, paused=paused))
            self._lagging.append((database, block))

    def end(self, database: Any) -> None:
        """Restore a database's former lag, and deliver due writes."""
        for entry in [entry for entry in self._lagging if entry[0] is database]:
            self._lagging.remove(entry)
            entry[1].close()

    def stop(self) -> None:
        super().stop()
        for database, _ in list(self._lagging):
            self.end(database)

    def answer(self, call: InterceptedCall, proceed: Proceed) -> Response:
        response = proceed(call)
        if call.is_write:
            self.struck()
        return response
