"""What members want of the leases, whatever they find: even shares after a few turns, and parents first."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from isotone import Table
from isotone.model.streams import Shard
from isotone.structures.worker_leases import WorkerLease, decide, readable

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)


class Lease(WorkerLease, table=Table("sharing")):
    """A lease that needs no worker."""


def lease(number: int, owner: str | None = None, **more: object) -> Lease:
    until = None if owner is None else NOW + timedelta(seconds=30)
    return Lease(
        worker="w", stream="s", shard=f"shard-{number:03}", owner=owner, until=until, **more
    )


def turn(leases: list[Lease], me: str) -> None:
    """One member takes and requests leases; the owner of a requested lease hands it over."""
    choice = decide(leases, me, NOW)
    for each in choice.take:
        assert not each.is_live(NOW)
        each.owner, each.until = me, NOW + timedelta(seconds=30)
    if choice.request is not None:
        assert choice.request.owner != me
        choice.request.owner = me


@given(
    owners=st.lists(st.sampled_from([None, "a", "b", "c", "dead"]), min_size=1, max_size=20),
    members=st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d", "e"]]),
)
def test_shares_become_even(owners: list[str | None], members: list[str]) -> None:
    leases = [lease(n, owner if owner in members else None) for n, owner in enumerate(owners)]
    for _ in range(len(leases) + 2):
        for member in members:
            turn(leases, member)
    held = Counter(each.owner for each in leases)
    shares = [held[member] for member in members]
    assert sum(shares) == len(leases)
    assert max(shares) - min(shares) <= 1
    before = [each.owner for each in leases]
    for member in members:
        turn(leases, member)
    assert [each.owner for each in leases] == before  # and stay as they are


@given(finished=st.sets(st.integers(0, 9)), dropped=st.integers(0, 9))
def test_a_shard_waits_for_its_parent(finished: set[int], dropped: int) -> None:
    """Ten generations of one shard, of which the oldest are not listed any more."""
    leases = [
        lease(n, parent=f"shard-{n - 1:03}" if n else None, finished=n in finished)
        for n in range(10)
    ]
    listed = [Shard(each.shard, each.parent, None, None) for each in leases[dropped:]]
    open_ = [n for n in range(dropped, 10) if n not in finished]
    expected = [n for n in open_ if n == dropped or n - 1 in finished]
    assert [each.shard for each in readable(leases, listed)] == [f"shard-{n:03}" for n in expected]
