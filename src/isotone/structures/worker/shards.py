"""A shard in one member's hands: read page by page from its checkpoint on, until it is over or lost."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any, Final

from isotone.errors import (
    ExpiredIteratorException,
    ResourceNotFoundException,
    TrimmedDataAccessException,
)
from isotone.model import Change, Event, Table
from isotone.model.tables import streaming
from isotone.structures.worker.entities import OWN, WorkerLease
from isotone.structures.worker.leases import WELL, Leases

_FALLS: Final = 2  # owners that ended at one checkpoint, after which its records are suspected
_SUSPECTED: Final = 1000  # records behind such a checkpoint: a page
_EMPTY_PAGES: Final = 2  # in a row, after which all there is counts as read
_SAVES: Final = 1.0  # seconds between the checkpoints of a page that takes long


class HeldShard:
    """A shard that a member holds the lease on.

    `done` is the last sequence number that was handled. `is_lost` says that somebody else has it,
    `is_over` that there will be nothing more.
    """

    def __init__(
        self, leases: Leases, lease: WorkerLease, table: Table, since: datetime | None
    ) -> None:
        self.lease = lease
        self.done = lease.checkpoint
        self.is_lost = False
        self.is_over = False
        self.unsaved = False
        self._leases = leases
        self._table = table
        self._since = since
        self._position: str | None = None
        self._empty = 0
        self._behind: float | None = None
        self._saved = 0.0
        suspicious = lease.falls >= _FALLS or lease.trying is not None
        self._suspected = _SUSPECTED if suspicious else 0
        self._marked: tuple[str, int] | None = None
        self._writing = threading.Lock()  # a checkpoint never overtakes a later one

    # Reading

    def page(self, limit: int) -> list[Event[Any]]:
        """The next events; empty at the end of what there is."""
        events: list[Event[Any]] = []
        try:
            if self._position is None:
                self._position = self._begin()
            events, self._position = self._read(self._position, limit)
            self.is_over = self._position is None
        except ExpiredIteratorException:
            self._position = None  # the next look takes a new one, after what was handled
            return []
        except ResourceNotFoundException:
            self._leases.report_loss(self.lease.shard, "it was dropped with all that was in it")
            self.is_over = True
        self._empty = 0 if events else self._empty + 1
        self._behind = events[0].timestamp if events else None
        self._saved = self._leases.store.clock.now()
        since = self._since
        return [each for each in events if since is None or each.time >= since]

    def _begin(self) -> str:
        lease = self.lease
        try:
            return self._leases.store.run(
                streaming.position(lease.stream, lease.shard, after=self.done)
            )
        except TrimmedDataAccessException:
            return self._oldest(
                f"what followed {self.done} may have been dropped before it was read"
            )

    def _read(self, start: str, limit: int) -> streaming.Records:
        try:
            return self._leases.store.run(
                streaming.read(self._table, self.lease.shard, start, limit)
            )
        except TrimmedDataAccessException:
            return streaming.Records([], self._oldest("records were dropped before they were read"))

    def _oldest(self, loss: str) -> str:
        """The position of the oldest record that is left, where some are lost."""
        self._leases.report_loss(self.lease.shard, loss)
        return self._leases.store.run(streaming.position(self.lease.stream, self.lease.shard))

    def rewind(self) -> None:
        """Read again what was read and not handled."""
        self._position = None
        self._empty = 0
        self.is_over = False

    @property
    def is_read(self) -> bool:
        """Whether all there is at present has been read."""
        return self.is_over or self._empty >= _EMPTY_PAGES

    def lag(self, now: float) -> float:
        """Seconds since the change that is being handled, or was last; 0 where all is read."""
        return 0.0 if self._behind is None else max(0.0, now - self._behind)

    # Noting

    def advance(self, event: Event[Any]) -> None:
        """Note that an event was handled; `save` makes it last, here where the last one is a second ago."""
        self.done = event.sequence
        self._behind = event.timestamp
        if event.schema is None or not issubclass(event.schema.entity, OWN):
            # A worker whose leases lie in the table that it reads would never come to rest otherwise.
            self.unsaved = True
        if self.unsaved and self._leases.store.clock.now() - self._saved >= _SAVES:
            self.save()

    @property
    def is_suspicious(self) -> bool:
        """Whether one of the next records may kill whoever handles it."""
        return self._suspected > 0

    def mark(self, event: Event[Any]) -> int:
        """Note that a suspected event is to be handled; how many ended at it before. Cost: one write."""
        if self._marked is not None and self._marked[0] == event.sequence:
            return self._marked[1]  # this process has tried it, and is still there
        before = self.lease.tries if self.lease.trying == event.sequence else 0
        self._marked = (event.sequence, before)
        self.save(WorkerLease.trying.set(event.sequence), WorkerLease.tries.set(before + 1))
        self._suspected -= 1
        return before

    def note(self, current: WorkerLease) -> None:
        """Take note of the lease as it is stored: somebody may have it, or want it."""
        with self._writing:
            if current.epoch != self.lease.epoch:
                self.is_lost = True
            elif current.wanted is not None:
                self.lease.wanted = current.wanted

    def save(self, *changes: Change) -> None:
        """Write the checkpoint and hold the lease for longer; sees whether it is lost or wanted."""
        with self._writing:
            if not self._suspected and self.done != self.lease.checkpoint:
                changes += WELL
            self.unsaved = False
            self._saved = self._leases.store.clock.now()
            current = self._leases.renew(self.lease, self.done, *changes)
            if current is None:
                self.is_lost = True
            else:
                self.lease = current

    def renew(self) -> None:
        """Hold the lease for longer, unless it is lost."""
        if not self.is_lost:
            self.save()

    def let_go(self) -> None:
        """Give the lease back, or on to whoever wants it, with the checkpoint."""
        with self._writing:
            was_lost, self.is_lost = self.is_lost, True  # also where no answer tells that it is
            if not was_lost:
                self._leases.give_back(self.lease, self.done, finished=self.is_over)

    def is_safe(self) -> bool:
        """Whether the lease is still ours, as far as can be known without asking."""
        until = self.lease.until
        return not self.is_lost and until is not None and until > self._leases.now()
