"""Leases on shards: who may read which, until when, and how far it is. Every change is conditional.

A lease is held for a while and has to be renewed; one that has run out is anybody's. Taking it raises its
epoch, and whoever writes names the epoch that it holds, so that one that was slow, not dead, is refused
from then on and loses nothing but its place.

Every member decides by itself which to have (`decide`), from the leases alone. It takes what nobody holds
up to its even share; if that is not enough, it asks the member that has the most for one, which is handed
over when its owner has finished what it is at. So shards change hands one at a time, and no two members
ever mean to read one.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, TypeVar

from isotone.errors import AlreadyExists, ConditionFailed, ResourceNotFoundException
from isotone.model import Change, Condition, Shard, Store, Table, shards_of, streams_of
from isotone.structures.operation import bind_entity
from isotone.structures.worker.entities import WorkerLease, WorkerStart

_LOGGER: Final = logging.getLogger("isotone.worker")
_RETENTION: Final = timedelta(hours=25)  # after which a shard that is not listed is surely gone

WELL: Final = (
    WorkerLease.falls.set(0),
    WorkerLease.trying.set(None),
    WorkerLease.tries.set(0),
)
"""Changes that forget owners that ended badly."""

E = TypeVar("E", WorkerLease, WorkerStart)


class Leases:
    """The leases of one worker, as one of its members sees and changes them.

    Changes give the lease as it is then, and None where they were refused. `lost` counts shards of which
    records may have been dropped before they were read.
    """

    def __init__(
        self, store: Store, table: Table, worker: str, member: str, seconds: float
    ) -> None:
        self.store = store
        self.lost = 0
        self._kind = bind_entity(table, WorkerLease)
        self._starts = bind_entity(table, WorkerStart)
        self._worker = worker
        self._member = member
        self._seconds = timedelta(seconds=seconds)

    def now(self) -> datetime:
        """The time, by the store's clock."""
        return datetime.fromtimestamp(self.store.clock.now(), UTC)

    def report_loss(self, shard: str, what: str) -> None:
        """Count and tell that something was dropped before it was read."""
        self.lost += 1
        _LOGGER.error(
            "worker %s, shard %s: %s; streams keep records for 24 hours, so run the worker more often",
            self._worker,
            shard,
            what,
        )

    # Streams

    def start(self, table: Table, latest: str, *, from_now: bool) -> WorkerStart:
        """The stream to read: the table's latest, or one before it that was not read to its end.

        Where the worker has never run, the member that comes first notes from when on records are for it,
        for all that ever come. Cost: a query and a listing, and for a stream that is new a write.
        """
        mine = self._starts.primary.where(WorkerStart.worker == self._worker)
        known = {
            start.stream: start
            for start in self.store.iterate(mine.consistent())
            if start.stream.rpartition("/")[0] == latest.rpartition("/")[0]  # its table's
        }
        since = self.now().replace(microsecond=0) if from_now and not known else None
        streams = {*known, latest}
        if known:  # a stream may have come and gone since the last look
            listed = self.store.run(streams_of(table))
            streams |= {stream for stream in listed if stream > min(known)}
        for stream in sorted(streams):  # they end in the time at which they began
            start = known.get(stream) or self._made(
                self._starts(worker=self._worker, stream=stream, since=since)
            )
            if stream == latest or self._is_unread(start):
                break
        return start

    def _is_unread(self, start: WorkerStart) -> bool:
        """Whether a stream that records no more is not read to its end; forgets one that is gone."""
        leases = self.all(start.stream)
        try:
            shards = self.store.run(shards_of(start.stream))
        except ResourceNotFoundException:
            self._forget(leases)
            self.store.delete(start)
            return False
        return not {shard.id for shard in shards} <= {one.shard for one in leases if one.finished}

    # Shards

    def all(self, stream: str) -> list[WorkerLease]:
        """All leases on a stream. Cost: one query, consistent."""
        kind = WorkerLease
        mine = self._kind.primary.where(kind.worker == self._worker, kind.stream == stream)
        return self.store.all(mine.consistent())

    def register(
        self, stream: str, leases: Sequence[WorkerLease], shards: Sequence[Shard]
    ) -> list[WorkerLease]:
        """Make leases for new shards and drop those of shards that are gone; the leases then.

        `leases` have to be older than `shards`, so that what is not listed is gone and not just unknown.
        """
        known = {lease.shard for lease in leases}
        listed = {shard.id for shard in shards}
        now = self.now()
        gone = [
            each
            for each in leases
            if each.shard not in listed and now - (each.found or now) > _RETENTION
        ]
        self._forget(gone)
        new = [
            self._made(
                self._kind(worker=self._worker, stream=stream, shard=shard.id, parent=shard.parent)
            )
            for shard in shards
            if shard.id not in known
        ]
        return [each for each in leases if each not in gone] + new

    def _made(self, entity: E) -> E:
        """The entity, or the one that another member has made."""
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
        """Take a lease that nobody holds. Cost: one write."""
        kind = WorkerLease
        free = kind.owner.missing() | (kind.until <= self.now())
        unchanged = (kind.epoch == lease.epoch) & (kind.finished == False) & free  # noqa: E712
        fallen = lease.owner not in (None, self._member)
        return self._change(
            lease,
            *self._over_to(self._member, lease),
            kind.falls.set(lease.falls + fallen),
            when=unchanged,
        )

    def renew(
        self, lease: WorkerLease, checkpoint: str | None, *changes: Change
    ) -> WorkerLease | None:
        """Hold it for longer, and note how far it is read. Cost: one write."""
        until = WorkerLease.until.set(self.now() + self._seconds)
        place = WorkerLease.checkpoint.set(checkpoint)
        return self._change(lease, until, place, *changes, when=self._mine(lease))

    def ask(self, lease: WorkerLease) -> WorkerLease | None:
        """Ask its owner to hand it over. Cost: one write."""
        unchanged = (WorkerLease.epoch == lease.epoch) & WorkerLease.wanted.missing()
        return self._change(lease, WorkerLease.wanted.set(self._member), when=unchanged)

    def withdraw(self, lease: WorkerLease) -> WorkerLease | None:
        """Want it no more. Cost: one write."""
        still = WorkerLease.wanted == self._member
        return self._change(lease, WorkerLease.wanted.set(None), when=still)

    def give_back(self, lease: WorkerLease, checkpoint: str | None, *, finished: bool) -> None:
        """Let it go: to the member that wants it, or to anybody. Cost: one write."""
        kind, mine = WorkerLease, self._mine(lease)
        noted = (kind.checkpoint.set(checkpoint), *WELL)
        if lease.wanted is not None and not finished:
            over = self._over_to(lease.wanted, lease)
            still = mine & (kind.wanted == lease.wanted)
            if self._change(lease, *noted, *over, when=still) is not None:
                return
        free = (kind.owner.set(None), kind.until.set(None), kind.wanted.set(None))
        self._change(lease, *noted, *free, kind.finished.set(finished), when=mine)

    def _mine(self, lease: WorkerLease) -> Condition:
        return (WorkerLease.owner == self._member) & (WorkerLease.epoch == lease.epoch)

    def _over_to(self, owner: str, lease: WorkerLease) -> tuple[Change, ...]:
        kind = WorkerLease
        until = kind.until.set(self.now() + self._seconds)
        return (
            kind.owner.set(owner),
            kind.epoch.set(lease.epoch + 1),
            until,
            kind.wanted.set(None),
        )

    def _change(self, lease: WorkerLease, *changes: Change, when: Condition) -> WorkerLease | None:
        try:
            return self.store.update(lease, *changes, when=when)
        except ConditionFailed:  # somebody else has it, or it was dropped with its shard
            return None


class Wish(NamedTuple):
    """The leases to take, and the one to ask for, if any."""

    take: list[WorkerLease]
    ask: WorkerLease | None


def readable(leases: Sequence[WorkerLease], shards: Iterable[Shard]) -> list[WorkerLease]:
    """The leases of shards whose time has come: not finished, while their parents are.

    A parent that is not listed any more is older than all that can be read, so it counts as finished.
    """
    waiting = {shard.id for shard in shards} - {one.shard for one in leases if one.finished}
    return [each for each in leases if each.shard in waiting and each.parent not in waiting]


def decide(leases: Sequence[WorkerLease], me: str, now: datetime) -> Wish:
    """What a member wants of the readable leases."""
    live = [lease for lease in leases if lease.is_live(now)]
    held = Counter(lease.owner for lease in live)
    mine = held[me]
    members = len(held.keys() | {me})
    share = -(-len(leases) // members)
    free = [lease for lease in leases if not lease.is_live(now)]
    take = free[: max(0, share - mine)]
    if take or not held:
        return Wish(take, None)
    return Wish([], _overloaded(live, held, mine, me))


def _overloaded(
    live: Sequence[WorkerLease], held: Counter[str | None], mine: int, me: str
) -> WorkerLease | None:
    """A lease of the member that has two more than this one, or more."""
    if any(lease.wanted == me for lease in live):
        return None
    owner, most = max(held.items(), key=lambda each: (each[1], str(each[0])))
    if most < mine + 2:
        return None
    return next((each for each in live if each.owner == owner and each.wanted is None), None)
