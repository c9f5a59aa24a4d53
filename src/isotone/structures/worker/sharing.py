"""Who should have which shards: what one member decides from what it sees.

Every member decides by itself, from the leases alone. It takes what nobody holds up to its even share; if
that is not enough, it asks the member that has the most for one, which is handed over when its owner has
finished what it is at. So shards change hands one at a time, and no two members ever mean to read one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from isotone.model.tables.streaming import Shard
from isotone.structures.worker.entities import WorkerLease


class Wish(NamedTuple):
    """The leases to take, and the one to ask for, if any."""

    take: list[WorkerLease]
    ask: WorkerLease | None


def readable(leases: Iterable[WorkerLease], shards: Iterable[Shard]) -> list[WorkerLease]:
    """The leases of shards whose time has come: not finished, while their parents are.

    A parent that is not listed any more is older than all that can be read, so it counts as finished.
    """
    listed = {shard.id for shard in shards}
    known = list(leases)
    finished = {lease.shard for lease in known if lease.finished}
    waiting = listed - finished
    return [
        lease
        for lease in known
        if lease.shard in waiting and (lease.parent is None or lease.parent not in waiting)
    ]


def decide(leases: Sequence[WorkerLease], me: str, now: datetime) -> Wish:
    """What a member wants of the readable leases."""
    live = [lease for lease in leases if lease.is_live(now)]
    held = Counter(lease.owner for lease in live)
    mine = held[me]
    members = len(held.keys() | {me})
    share = -(-len(leases) // members)
    free = sorted(
        (lease for lease in leases if not lease.is_live(now)), key=lambda lease: lease.shard
    )
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
