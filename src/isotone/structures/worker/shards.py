"""A shard in one member's hands: read page by page from its checkpoint on, until it is over or lost."""

from __future__ import annotations

import logging
import threading
from datetime import datetime
from typing import Any, Final

from isotone.errors import (
    ExpiredIteratorException,
    ResourceNotFoundException,
    TrimmedDataAccessException,
)
from isotone.model.declaring.table import Table
from isotone.model.store import Store
from isotone.model.tables import streaming
from isotone.model.tables.events import Event
from isotone.structures.worker.entities import OWN, WorkerLease
from isotone.structures.worker.leases import Leases

_LOGGER: Final = logging.getLogger("isotone.worker")
_FALLS: Final = 2  # owners that ended at one checkpoint, after which its records are suspected
_SUSPECTED: Final = 1000  # records behind such a checkpoint: a page
_EMPTY_PAGES: Final = 2  # in a row, after which all there is counts as read


class HeldShard:
    """A shard that a member holds the lease on.

    `done` is the last sequence number that was handled, `reached` its time. `is_lost` says that somebody
    else has it, `is_over` that there will be nothing more.
    """

    def __init__(
        self, store: Store, table: Table, leases: Leases, lease: WorkerLease, since: datetime | None
    ) -> None:
        self.lease = lease
        self.done = lease.checkpoint
        self.reached = lease.reached
        self.is_lost = False
        self.is_over = False
        self.dropped = 0
        self.unsaved = False
        self._store = store
        self._table = table
        self._leases = leases
        self._since = since
        self._position: str | None = None
        self._empty = 0
        self._behind: float | None = None
        suspicious = lease.falls >= _FALLS or lease.trying is not None
        self._suspected = _SUSPECTED if suspicious else 0
        self._marked: tuple[str, int] | None = None
        self._writing = threading.Lock()  # a checkpoint never overtakes a later one

    # Reading

    def page(self, limit: int) -> list[Event[Any]]:
        """The next events; empty at the end of what there is."""
        try:
            records = self._read(limit)
        except ResourceNotFoundException:
            self._note_loss("it was dropped with all that was in it")
            self._behind = None
            self.is_over = True
            return []
        if records is None:
            return []
        self._empty = 0 if records.events else self._empty + 1
        self._position = records.next
        self.is_over = records.next is None
        self._behind = records.events[0].timestamp if records.events else None
        return [each for each in records.events if self._is_for_us(each)]

    def _read(self, limit: int) -> streaming.Records | None:
        try:
            if self._position is None:
                self._position = self._begin()
            return self._store.run(
                streaming.read(self._table, self.lease.shard, self._position, limit)
            )
        except ExpiredIteratorException:
            self._position = None  # the next look takes a new one, after what was handled
        except TrimmedDataAccessException:
            self._note_loss("records of it were dropped before they were read")
            self._position = self._store.run(
                streaming.position(self.lease.stream, self.lease.shard)
            )
        return None

    @property
    def is_read(self) -> bool:
        """Whether all there is at present has been read."""
        return self.is_over or self._empty >= _EMPTY_PAGES

    def lag(self, now: float) -> float:
        """Seconds since the change that is being handled, or was last; 0 where all is read."""
        return 0.0 if self._behind is None else max(0.0, now - self._behind)

    def _begin(self) -> str:
        run, lease = self._store.run, self.lease
        try:
            return run(streaming.position(lease.stream, lease.shard, after=self.done))
        except TrimmedDataAccessException:
            self._note_loss(f"what followed {self.done} may have been dropped before it was read")
            return run(streaming.position(lease.stream, lease.shard))

    def _is_for_us(self, event: Event[Any]) -> bool:
        return self._since is None or event.time >= self._since

    def _note_loss(self, what: str) -> None:
        self.dropped += 1
        _LOGGER.error(
            "worker %s, shard %s: %s; streams keep records for 24 hours, so run the worker more often",
            self.lease.worker,
            self.lease.shard,
            what,
        )

    # Noting

    def advance(self, event: Event[Any]) -> None:
        """Note that an event was handled; `save` makes it last."""
        self.done = event.sequence
        self.reached = event.time
        self._behind = event.timestamp
        if event.schema is None or event.schema.tag not in OWN:
            # A worker whose leases lie in the table that it reads would never come to rest otherwise.
            self.unsaved = True

    @property
    def is_suspicious(self) -> bool:
        """Whether one of the next records may kill whoever handles it."""
        return self._suspected > 0

    def mark(self, event: Event[Any]) -> int:
        """Note that a suspected event is to be handled; how many ended at it before. Cost: one write."""
        if self._marked is not None and self._marked[0] == event.sequence:
            return self._marked[1]  # this process has tried it, and is still there
        before = self.lease.tries if self.lease.trying == event.sequence else 0
        with self._writing:
            self._suspected -= 1
            self._marked = (event.sequence, before)
            self._take_note(
                self._leases.renew(
                    self.lease, self.done, self.reached, trying=event.sequence, tries=before + 1
                )
            )
        return before

    def rewind(self) -> None:
        """Read again what was read and not handled."""
        self._position = None
        self._empty = 0
        self.is_over = False

    def note(self, current: WorkerLease) -> None:
        """Take note of the lease as it is stored: somebody may have it, or want it."""
        with self._writing:
            if current.epoch != self.lease.epoch:
                self.is_lost = True
            elif current.wanted is not None:
                self.lease.wanted = current.wanted

    def save(self) -> None:
        """Write the checkpoint and hold the lease for longer; sees whether it is lost or wanted."""
        with self._writing:
            self.unsaved = False
            well = not self._suspected and self.done != self.lease.checkpoint
            self._take_note(self._leases.renew(self.lease, self.done, self.reached, well=well))

    def _take_note(self, current: WorkerLease | None) -> None:
        if current is None:
            self.is_lost = True
        else:
            self.lease = current

    def let_go(self) -> None:
        """Give the lease back, or on to whoever wants it, with the checkpoint."""
        with self._writing:
            if not self.is_lost:
                self._leases.give_back(self.lease, self.done, self.reached, finished=self.is_over)
            self.is_lost = True

    def is_safe(self) -> bool:
        """Whether the lease is still ours, as far as can be known without asking."""
        until = self.lease.until
        return not self.is_lost and until is not None and until > self._leases.at()
