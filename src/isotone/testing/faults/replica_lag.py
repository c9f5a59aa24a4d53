"""Writes that reach the other replicas of a table late, or not before the fault ends."""

from __future__ import annotations

from typing import Any

from isotone.backends.interface import Response
from isotone.testing.faults.rules import Call, Proceed, Rule


class ReplicaLag(Rule):
    """Sets the lag of replication of the databases that the faults are on; counts the writes that were made meanwhile."""

    def __init__(self, seconds: float, *, paused: bool) -> None:
        super().__init__()
        self._wanted = (seconds, paused)
        self._former: list[tuple[Any, tuple[float, bool]]] = []

    def begin(self, database: Any) -> None:
        """Let a database lag. All regions of one lag together."""
        if not self.is_stopped and database.replication != self._wanted:
            self._former.append((database, database.replication))
            _set(database, self._wanted)

    def end(self, database: Any) -> None:
        """Let a database lag as it did before, and deliver what is due."""
        for entry in [entry for entry in self._former if entry[0] is database]:
            self._former.remove(entry)
            _set(database, entry[1])
            database.finish_maintenance()

    def stop(self) -> None:
        super().stop()
        for database, _ in list(self._former):
            self.end(database)

    def answer(self, call: Call, proceed: Proceed) -> Response:
        response = proceed(call)
        if call.is_write:
            self.struck()
        return response


def _set(database: Any, replication: tuple[float, bool]) -> None:
    lag, paused = replication
    database.set_replication(lag=lag, paused=paused)
