"""The items of a worker, and its leases on shards: owners, checkpoints, takeovers, lost records.

    WORKER#fan-out               START#…               when the worker first ran on a stream
                                 LEASE#…#shardId-…     a shard: its owner, its lease, its checkpoint
                                 DEAD#…                a record that a handler failed to handle
    WORKER#fan-out#EFFECT#…      EFFECT#deliver        an event's effect has been written

All items are in one table, which may be the table of the data.

A lease must be renewed; any member may take an expired lease. Taking it raises its epoch, and every write is
conditional on the member's epoch. So if the old owner was slow and not dead, its writes are refused; only its position
is lost.

Every member decides alone which leases to take (`decide`), from the stored leases. It takes free ones up to its even
share. If that is not enough, it requests one from the member with the most leases, and the owner hands it over after
the current event. So shards move one at a time, and no two members read the same shard unless a lease expires.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from isotone.errors import (
    AlreadyExists,
    ConditionFailed,
    ExpiredIteratorException,
    ResourceNotFoundException,
    TrimmedDataAccessException,
)
from isotone.model import (
    Attr,
    Change,
    Condition,
    Entity,
    Event,
    Key,
    Store,
    Table,
    created,
    expires,
    field,
)
from isotone.model import (
    streams as stream_reads,
)
from isotone.structures.structure import bind_entity

_LOGGER: Final = logging.getLogger("isotone.worker")
_RETENTION: Final = timedelta(hours=25)
"""A shard that has not been listed for this long certainly no longer exists."""
_SUSPICIOUS_CRASHES: Final = 2  # crashes at one checkpoint before the next records are suspected
_SUSPECTED_RECORDS: Final = 1000  # how many records after the checkpoint are suspected: a page
_EMPTY_PAGES: Final = 2  # in a row, before everything counts as read
_SAVES: Final = 1.0  # seconds between checkpoints within one page


class WorkerStart(Entity):
    """The time at which a worker first ran on a stream; with LATEST, it skips older records."""

    worker: Attr[str] = field()
    stream: Attr[str] = field()
    since: Attr[datetime | None] = field(default=None)

    primary: ClassVar[Key] = Key("WORKER", worker).sort("START", stream)


class WorkerLease(Entity):
    """A shard, and the member that may read it.

    - `epoch` rises with each change of owner. Every write is conditional on the member's epoch, so that a member that
      was taken for dead cannot move its successor's checkpoint.
    - `wanted` names the member that requests this lease, because it has fewer shards than its share.
    - `crash_count` counts the owners that ended without releasing it since the checkpoint last moved. From the second
      on, each record is noted before it is handled (`trying`, `tries`), which finds a record that crashes its process.
      Releasing a lease does not reset the counters: the record is still to come.
    """

    worker: Attr[str] = field()
    stream: Attr[str] = field()
    shard: Attr[str] = field()
    parent: Attr[str | None] = field(default=None)
    owner: Attr[str | None] = field(default=None)
    epoch: Attr[int] = field(default=0)
    until: Attr[datetime | None] = field(default=None)
    checkpoint: Attr[str | None] = field(default=None)
    finished: Attr[bool] = field(default=False)
    wanted: Attr[str | None] = field(default=None)
    crash_count: Attr[int] = field(default=0)
    trying: Attr[str | None] = field(default=None)
    tries: Attr[int] = field(default=0)
    found: Attr[datetime | None] = created()

    primary: ClassVar[Key] = Key("WORKER", worker).sort("LEASE", stream, shard)

    def is_live(self, now: datetime) -> bool:
        """Whether a member holds it."""
        return self.owner is not None and self.until is not None and self.until > now


class WorkerDeadLetter(Entity):
    """A record that a handler failed to handle, in the stream's form (JSON, deflated).

    `record` is None if it was too large; `keys` always has the keys of its item.
    """

    worker: Attr[str] = field()
    handler: Attr[str] = field()
    event: Attr[str] = field()
    sequence: Attr[str] = field()
    time: Attr[datetime] = field()
    shard: Attr[str] = field()
    record: Attr[bytes | None] = field(default=None)
    keys: Attr[str] = field(default="")
    error: Attr[str] = field()
    attempts: Attr[int] = field()
    failed: Attr[datetime] = field()

    primary: ClassVar[Key] = Key("WORKER", worker).sort("DEAD", time, sequence, event, handler)


class WorkerEffect(Entity):
    """An event's effect has been written; kept for longer than the event can be delivered again."""

    worker: Attr[str] = field()
    handler: Attr[str] = field()
    event: Attr[str] = field()
    expires: Attr[datetime | None] = expires()

    primary: ClassVar[Key] = Key("WORKER", worker, "EFFECT", event).sort("EFFECT", handler)


WORKER_ENTITIES: Final = (WorkerStart, WorkerLease, WorkerDeadLetter, WorkerEffect)

RESET_CRASHES: Final = (
    WorkerLease.crash_count.set(0),
    WorkerLease.trying.set(None),
    WorkerLease.tries.set(0),
)
"""Changes that reset the crash counters."""

E = TypeVar("E", WorkerLease, WorkerStart)


class Leases:
    """The leases of one worker, read and changed by one of its members.

    Methods that change a lease return the new lease, or None if the change was refused. `lost` counts shards whose
    records may have been dropped before they were read.
    """

    def __init__(
        self, store: Store, table: Table, worker: str, member: str, seconds: float
    ) -> None:
        self.store = store
        self.lost: int = 0
        self._kind = bind_entity(table, WorkerLease)
        self._starts = bind_entity(table, WorkerStart)
        self._worker = worker
        self._member = member
        self._seconds = timedelta(seconds=seconds)

    def now(self) -> datetime:
        """The time, by the store's clock."""
        return datetime.fromtimestamp(self.store.clock.now(), UTC)

    def report_loss(self, shard: str, what: str) -> None:
        """Count and log that records were dropped before they were read."""
        self.lost += 1
        _LOGGER.error(
            "worker %s, shard %s: %s; streams keep records for 24 hours, so run the worker more often",
            *(self._worker, shard, what),
        )

    # Streams

    def start(self, table: Table, latest: str, *, from_now: bool) -> WorkerStart:
        """The stream to read: the table's latest, or an earlier one that was not read to its end.

        If the worker never ran, the first member records the time from which it reads. Cost: a query and
        a listing, and for a new stream a write.
        """
        mine = self._starts.primary.where(WorkerStart.worker == self._worker)
        known = {
            start.stream: start
            for start in self.store.iterate(mine.consistent())
            if start.stream.rpartition("/")[0] == latest.rpartition("/")[0]  # of the same table
        }
        since = self.now().replace(microsecond=0) if from_now and not known else None
        streams = {*known, latest}
        if known:  # a stream may have appeared and disappeared since the last check
            listed = self.store.run(stream_reads.streams_of(table))
            streams |= {stream for stream in listed if stream > min(known)}
        for stream in sorted(streams):  # a stream's name ends with the time when it was created
            start = known.get(stream) or self._create(
                self._starts(worker=self._worker, stream=stream, since=since)
            )
            if stream == latest or self._is_unread(start):
                break
        return start

    def _is_unread(self, start: WorkerStart) -> bool:
        """Whether an ended stream is not yet read to its end; removes streams that no longer exist."""
        leases = self.all(start.stream)
        try:
            shards = self.store.run(stream_reads.shards_of(start.stream))
        except ResourceNotFoundException:
            self._forget(leases)
            self.store.delete(start)
            return False
        return not {shard.id for shard in shards} <= _finished(leases)

    # Shards

    def all(self, stream: str) -> list[WorkerLease]:
        """All leases on a stream. Cost: one consistent query."""
        kind = WorkerLease
        mine = self._kind.primary.where(kind.worker == self._worker, kind.stream == stream)
        return self.store.all(mine.consistent())

    def register(
        self, stream: str, leases: Sequence[WorkerLease], shards: Sequence[stream_reads.Shard]
    ) -> list[WorkerLease]:
        """Create leases for new shards, and delete those of dropped shards; returns the new leases.

        `leases` must be read before `shards`: then a lease without a listed shard is of a dropped shard, not of a new
        one.
        """
        known = {lease.shard for lease in leases}
        listed = {shard.id for shard in shards}
        now = self.now()
        gone = [
            lease
            for lease in leases
            if lease.shard not in listed and now - (lease.found or now) > _RETENTION
        ]
        self._forget(gone)
        new = [
            self._create(
                self._kind(worker=self._worker, stream=stream, shard=shard.id, parent=shard.parent)
            )
            for shard in shards
            if shard.id not in known
        ]
        return [lease for lease in leases if lease not in gone] + new

    def _create(self, entity: E) -> E:
        """The entity, or the one that another member has created."""
        try:
            return self.store.create(entity)
        except AlreadyExists as error:
            current = error.current
            return current if isinstance(current, type(entity)) else entity

    def _forget(self, leases: Iterable[WorkerLease]) -> None:
        for lease in leases:
            if not lease.finished:
                self.report_loss(lease.shard, "it was dropped before it was read to its end")
            self.store.delete(lease)

    # Changes

    def take(self, lease: WorkerLease) -> WorkerLease | None:
        """Take a free lease. Cost: one write."""
        kind = WorkerLease
        free = kind.owner.missing() | (kind.until <= self.now())
        unchanged = (kind.epoch == lease.epoch) & (kind.finished == False) & free  # noqa: E712
        crashed = lease.owner not in (None, self._member)
        crashes = kind.crash_count.set(lease.crash_count + crashed)
        return self._change(lease, *self._assign(self._member, lease), crashes, when=unchanged)

    def renew(
        self, lease: WorkerLease, checkpoint: str | None, *changes: Change
    ) -> WorkerLease | None:
        """Hold a lease for longer, and write the checkpoint. Cost: one write."""
        until = WorkerLease.until.set(self.now() + self._seconds)
        place = WorkerLease.checkpoint.set(checkpoint)
        return self._change(lease, until, place, *changes, when=self._is_mine(lease))

    def request(self, lease: WorkerLease) -> WorkerLease | None:
        """Request a lease from its owner. Cost: one write."""
        unchanged = (WorkerLease.epoch == lease.epoch) & WorkerLease.wanted.missing()
        return self._change(lease, WorkerLease.wanted.set(self._member), when=unchanged)

    def withdraw(self, lease: WorkerLease) -> WorkerLease | None:
        """Withdraw a request. Cost: one write."""
        still = WorkerLease.wanted == self._member
        return self._change(lease, WorkerLease.wanted.set(None), when=still)

    def release(
        self, lease: WorkerLease, checkpoint: str | None, *changes: Change, finished: bool
    ) -> None:
        """Release a lease: to the member that requested it, or to any. Cost: one write."""
        kind, is_mine = WorkerLease, self._is_mine(lease)
        noted = (kind.checkpoint.set(checkpoint), *changes)
        if lease.wanted is not None and not finished:
            handed_over = self._assign(lease.wanted, lease)
            still = is_mine & (kind.wanted == lease.wanted)
            if self._change(lease, *noted, *handed_over, when=still) is not None:
                return
        free = (kind.owner.set(None), kind.until.set(None), kind.wanted.set(None))
        self._change(lease, *noted, *free, kind.finished.set(finished), when=is_mine)

    def _is_mine(self, lease: WorkerLease) -> Condition:
        return (WorkerLease.owner == self._member) & (WorkerLease.epoch == lease.epoch)

    def _assign(self, owner: str, lease: WorkerLease) -> tuple[Change, ...]:
        kind = WorkerLease
        until = kind.until.set(self.now() + self._seconds)
        epoch = kind.epoch.set(lease.epoch + 1)
        return kind.owner.set(owner), epoch, until, kind.wanted.set(None)

    def _change(self, lease: WorkerLease, *changes: Change, when: Condition) -> WorkerLease | None:
        try:
            return self.store.update(lease, *changes, when=when)
        except ConditionFailed:  # another member has it, or it was deleted with its shard
            return None


class LeaseChoice(NamedTuple):
    """The leases to take, and the one to request, if any."""

    take: list[WorkerLease]
    request: WorkerLease | None


def readable(
    leases: Sequence[WorkerLease], shards: Iterable[stream_reads.Shard]
) -> list[WorkerLease]:
    """The leases of unfinished shards whose parents are finished.

    A parent that is no longer listed is older than all readable records, and counts as finished.
    """
    waiting = {shard.id for shard in shards} - _finished(leases)
    return [lease for lease in leases if lease.shard in waiting and lease.parent not in waiting]


def _finished(leases: Iterable[WorkerLease]) -> set[str]:
    return {lease.shard for lease in leases if lease.finished}


def decide(leases: Sequence[WorkerLease], me: str, now: datetime) -> LeaseChoice:
    """Decides which of the readable leases a member takes or requests."""
    live = [lease for lease in leases if lease.is_live(now)]
    held = Counter(lease.owner for lease in live)
    mine = held[me]
    share = -(-len(leases) // len(held.keys() | {me}))
    free = [lease for lease in leases if not lease.is_live(now)]
    take = free[: max(0, share - mine)]
    if take or not held:
        return LeaseChoice(take, None)
    return LeaseChoice([], _overloaded(live, held, mine, me))


def _overloaded(
    live: Sequence[WorkerLease], held: Counter[str | None], mine: int, me: str
) -> WorkerLease | None:
    """A lease of a member that has at least two more than this one."""
    if any(lease.wanted == me for lease in live):
        return None
    owner, most = max(held.items(), key=lambda item: (item[1], str(item[0])))
    if most < mine + 2:
        return None
    return next((lease for lease in live if lease.owner == owner and lease.wanted is None), None)


class HeldShard:
    """A shard that a member holds the lease on, read page by page from its checkpoint.

    `done` is the sequence number of the last handled record. `is_lost`: another member has the shard. `is_over`: there
    will be no more records.
    """

    def __init__(
        self, leases: Leases, lease: WorkerLease, table: Table, since: datetime | None
    ) -> None:
        self.lease: WorkerLease = lease
        self.done = lease.checkpoint
        self.is_lost: bool = False
        self.is_over: bool = False
        self.unsaved: bool = False
        self._leases = leases
        self._store = leases.store
        self._table = table
        self._since = since
        self._position: str | None = None
        self._empty = 0
        self._behind: float | None = None
        self._saved = 0.0
        suspicious = lease.crash_count >= _SUSPICIOUS_CRASHES or lease.trying is not None
        self._suspects = _SUSPECTED_RECORDS if suspicious else 0
        self._marked: tuple[str, int] | None = None
        self._writing = threading.Lock()  # so that an older checkpoint never replaces a newer one

    # Reading

    def page(self, limit: int) -> list[Event[Any]]:
        """The next events; empty if there are none at present."""
        events: list[Event[Any]] = []
        try:
            if self._position is None:
                self._position = self._begin()
            events, self._position = self._read(self._position, limit)
            self.is_over = self._position is None
        except ExpiredIteratorException:
            self._position = None  # the next read starts after the last handled record
            return []
        except ResourceNotFoundException:
            self._leases.report_loss(self.lease.shard, "it was dropped with all its records")
            self.is_over = True
        self._empty = 0 if events else self._empty + 1
        self._behind = events[0].timestamp if events else None
        self._saved = self._store.clock.now()
        since = self._since
        return [event for event in events if since is None or event.time >= since]

    def _begin(self) -> str:
        stream, shard = self.lease.stream, self.lease.shard
        try:
            return self._store.run(stream_reads.position(stream, shard, after=self.done))
        except TrimmedDataAccessException:
            return self._oldest(
                f"records after {self.done} may have been dropped before they were read"
            )

    def _read(self, start: str, limit: int) -> stream_reads.Records:
        try:
            return self._store.run(stream_reads.read(self._table, self.lease.shard, start, limit))
        except TrimmedDataAccessException:
            return stream_reads.Records(
                [], self._oldest("records were dropped before they were read")
            )

    def _oldest(self, loss: str) -> str:
        """The position of the oldest record that is kept, after some were lost."""
        self._leases.report_loss(self.lease.shard, loss)
        return self._store.run(stream_reads.position(self.lease.stream, self.lease.shard))

    def rewind(self) -> None:
        """Read the unhandled records again."""
        self._position = None
        self._empty = 0
        self.is_over = False

    @property
    def is_read(self) -> bool:
        """Whether all present records have been read."""
        return self.is_over or self._empty >= _EMPTY_PAGES

    def lag(self, now: float) -> float:
        """Seconds since the current or last handled change was made; 0 if everything is read."""
        return 0.0 if self._behind is None else max(0.0, now - self._behind)

    # Checkpoints

    def advance(self, event: Event[Any]) -> None:
        """Record that an event was handled, and write the checkpoint if the last one is a second old."""
        self.done = event.sequence
        self._behind = event.timestamp
        if event.schema is None or not issubclass(event.schema.entity, WORKER_ENTITIES):
            # Saving after the worker's own items would write another one, and the worker would
            # never become idle.
            self.unsaved = True
        if self.unsaved and self._store.clock.now() - self._saved >= _SAVES:
            self.save()

    @property
    def is_suspicious(self) -> bool:
        """Whether one of the next records may kill the process that handles it."""
        return self._suspects > 0

    @property
    def _is_harmless(self) -> bool:
        """Whether the record at which earlier owners crashed, if any, has been handled."""
        return not self._suspects and self.done != self.lease.checkpoint

    def mark(self, event: Event[Any]) -> int:
        """Record that a suspected event is handled next; returns how many processes crashed at it. Cost: one write."""
        if self._marked is not None and self._marked[0] == event.sequence:
            return self._marked[1]  # this process has tried it, and has survived
        before = self.lease.tries if self.lease.trying == event.sequence else 0
        self._marked = (event.sequence, before)
        self.save(WorkerLease.trying.set(event.sequence), WorkerLease.tries.set(before + 1))
        self._suspects -= 1
        return before

    def note(self, current: WorkerLease) -> None:
        """Remember the stored lease: another member may hold or request it."""
        with self._writing:
            if current.epoch != self.lease.epoch:
                self.is_lost = True
            elif current.wanted is not None:
                self.lease.wanted = current.wanted

    def save(self, *changes: Change) -> None:
        """Write the checkpoint and renew the lease; detects whether the lease is lost or requested."""
        with self._writing:
            if self._is_harmless:
                changes += RESET_CRASHES
            self.unsaved = False
            self._saved = self._store.clock.now()
            current = self._leases.renew(self.lease, self.done, *changes)
            if current is None:
                self.is_lost = True
            else:
                self.lease = current

    def renew(self) -> None:
        """Renew the lease, unless it is lost."""
        if not self.is_lost:
            self.save()

    def release(self) -> None:
        """Release the lease with the checkpoint, or hand it to the member that requested it."""
        with self._writing:
            was_lost, self.is_lost = self.is_lost, True  # even if the response is lost
            if not was_lost:
                changes: tuple[Change, ...] = ()
                if self._is_harmless or self.is_read:
                    changes = RESET_CRASHES
                elif self._marked is not None:
                    changes = (WorkerLease.tries.set(self._marked[1]),)  # no crash at this event
                self._leases.release(self.lease, self.done, *changes, finished=self.is_over)

    def is_safe(self) -> bool:
        """Whether we certainly still hold the lease; needs no request."""
        until = self.lease.until
        return not self.is_lost and until is not None and until > self._leases.now()
