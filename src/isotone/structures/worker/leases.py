"""Leases on shards: who may read which, until when, and how far it is. Every change is conditional.

A lease is held for a while and has to be renewed; one that has run out is anybody's. Taking it raises its
epoch, and whoever writes names the epoch that it holds, so that one that was slow, not dead, is refused
from then on and loses nothing but its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from isotone.errors import AlreadyExists, ConditionFailed
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.table import Table
from isotone.model.steps import Steps
from isotone.model.store import Store
from isotone.model.tables.streaming import Shard
from isotone.structures.operation import Structure, operation
from isotone.structures.worker.entities import WorkerEffect, WorkerLease, WorkerStart

_RETENTION: Final = timedelta(hours=25)  # after which a shard that is not listed is surely gone


class Leases(Structure[Store]):
    """The leases of one worker, as one of its members sees and changes them."""

    def __init__(
        self, store: Store, table: Table, worker: str, member: str, seconds: float
    ) -> None:
        super().__init__(store, table)
        self.worker = worker
        self.member = member
        self.seconds = seconds
        self.kind = self.kept(WorkerLease)
        self.starts = self.kept(WorkerStart)
        self.effects = self.kept(WorkerEffect)

    def at(self) -> datetime:
        """The time, by the store's clock."""
        return datetime.fromtimestamp(self.now(), UTC)

    @operation
    def begun(self, stream: str, *, from_now: bool) -> Steps[datetime | None]:
        """The time from which the stream's records are for this worker; None for all.

        The member that comes first decides, for all that ever come. Cost: a read, once a write.
        """
        known = yield from self.calls.get(
            self.starts, consistent=True, worker=self.worker, stream=stream
        )
        if known is not None:
            return known.since
        since = self.at().replace(microsecond=0) if from_now else None
        try:
            yield from self.calls.create(
                self.starts(worker=self.worker, stream=stream, since=since)
            )
        except AlreadyExists as error:
            known = error.current
            assert isinstance(known, WorkerStart)
            return known.since
        return since

    @operation
    def all(self, stream: str) -> Steps[list[WorkerLease]]:
        """All leases on a stream. Cost: one query, consistent."""
        mine = self.kind.primary.where(self.kind.worker == self.worker, self.kind.stream == stream)
        found: list[WorkerLease] = yield from self.calls.all(mine.consistent())
        return found

    @operation
    def register(
        self, stream: str, leases: Iterable[WorkerLease], shards: Iterable[Shard]
    ) -> Steps[tuple[list[WorkerLease], list[WorkerLease]]]:
        """Make leases for new shards and drop those of shards that are gone; the leases then, and the gone.

        `leases` have to be older than `shards`, so that what is not listed is gone and not just unknown.
        """
        known = {lease.shard: lease for lease in leases}
        listed = {shard.id: shard for shard in shards}
        for shard in listed.values():
            if shard.id not in known:
                known[shard.id] = yield from self._make(stream, shard)
        gone = [each for each in known.values() if each.shard not in listed and self._is_old(each)]
        for lease in gone:
            del known[lease.shard]
            yield from self.calls.delete(lease)
        return list(known.values()), gone

    def _make(self, stream: str, shard: Shard) -> Steps[WorkerLease]:
        lease = self.kind(worker=self.worker, stream=stream, shard=shard.id, parent=shard.parent)
        try:
            return (yield from self.calls.create(lease))
        except AlreadyExists as error:
            current = error.current
            return current if isinstance(current, WorkerLease) else lease

    def _is_old(self, lease: WorkerLease) -> bool:
        return lease.found is not None and self.at() - lease.found > _RETENTION

    # Changes; each gives the lease as it is then, and None where it was refused

    @operation
    def take(self, lease: WorkerLease) -> Steps[WorkerLease | None]:
        """Take a lease that nobody holds. Cost: one write."""
        free = self.kind.owner.missing() | (self.kind.until <= self.at())
        unchanged = (self.kind.epoch == lease.epoch) & (self.kind.finished == False) & free  # noqa: E712
        changes = [*self._of(self.member, lease.epoch + 1), self.kind.wanted.remove()]
        if lease.owner not in (None, self.member):
            changes.append(self.kind.falls.set(lease.falls + 1))
        return (yield from self._change(lease, changes, unchanged))

    @operation
    def renew(
        self,
        lease: WorkerLease,
        checkpoint: str | None,
        reached: datetime | None,
        *,
        trying: str | None = None,
        tries: int = 0,
        well: bool = False,
    ) -> Steps[WorkerLease | None]:
        """Hold it for longer, and note how far it is read, and what is tried next. Cost: one write."""
        until = self.at() + timedelta(seconds=self.seconds)
        changes = [self.kind.until.set(until), *self._place(checkpoint, reached)]
        if trying is not None:
            changes += [self.kind.trying.set(trying), self.kind.tries.set(tries)]
        elif well:
            changes += self._well(lease)
        return (yield from self._change(lease, changes, self._mine(lease)))

    @operation
    def ask(self, lease: WorkerLease) -> Steps[WorkerLease | None]:
        """Ask its owner to hand it over. Cost: one write."""
        unchanged = (self.kind.epoch == lease.epoch) & self.kind.wanted.missing()
        return (yield from self._change(lease, [self.kind.wanted.set(self.member)], unchanged))

    @operation
    def withdraw(self, lease: WorkerLease) -> Steps[WorkerLease | None]:
        """Want it no more. Cost: one write."""
        still = self.kind.wanted == self.member
        return (yield from self._change(lease, [self.kind.wanted.remove()], still))

    @operation
    def give_back(
        self,
        lease: WorkerLease,
        checkpoint: str | None,
        reached: datetime | None,
        *,
        finished: bool = False,
    ) -> Steps[WorkerLease | None]:
        """Let it go: to the member that wants it, or to anybody. Cost: one write."""
        kind, mine, wanted = self.kind, self._mine(lease), lease.wanted
        noted = [*self._place(checkpoint, reached), kind.wanted.remove(), *self._well(lease)]
        if wanted is not None and not finished:
            over = [*noted, *self._of(wanted, lease.epoch + 1)]
            given = yield from self._change(lease, over, mine & (kind.wanted == wanted))
            if given is not None:
                return given
        noted += [kind.owner.remove(), kind.until.remove()]
        if finished:
            noted.append(kind.finished.set(True))
        return (yield from self._change(lease, noted, mine))

    def _well(self, lease: WorkerLease) -> list[Change]:
        """Forget owners that ended badly."""
        if not lease.falls and lease.trying is None:
            return []
        return [self.kind.falls.set(0), self.kind.trying.remove(), self.kind.tries.set(0)]

    def _mine(self, lease: WorkerLease) -> Condition:
        return (self.kind.owner == self.member) & (self.kind.epoch == lease.epoch)

    def _of(self, owner: str, epoch: int) -> list[Change]:
        until = self.at() + timedelta(seconds=self.seconds)
        kind = self.kind
        return [kind.owner.set(owner), kind.epoch.set(epoch), kind.until.set(until)]

    def _place(self, checkpoint: str | None, reached: datetime | None) -> list[Change]:
        found: list[Change] = []
        if checkpoint is not None:
            found.append(self.kind.checkpoint.set(checkpoint))
        if reached is not None:
            found.append(self.kind.reached.set(reached))
        return found

    def _change(
        self, lease: WorkerLease, changes: list[Change], when: Condition
    ) -> Steps[WorkerLease | None]:
        key = {"worker": lease.worker, "stream": lease.stream, "shard": lease.shard}
        try:
            changed: WorkerLease = yield from self.calls.update(
                self.kind, *changes, when=when, **key
            )
        except ConditionFailed:
            return None
        return changed
