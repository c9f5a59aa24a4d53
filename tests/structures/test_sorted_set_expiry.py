"""When sorted sets are gone: at a fixed moment, or as commands say while others write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.structures.interleaving import Interleaved
from tests.structures.simulation import WRITES, Hasty, Requests

import isotone
from isotone import ManualClock, Store, errors
from isotone.model import Steps
from isotone.structures import SortedSet
from isotone.tables.retries import CONTENTION


@pytest.mark.parametrize("ranked", [False, True])
def test_a_set_of_the_day_is_gone_at_once(
    store: Store, clock: ManualClock, table_name: str, ranked: bool
) -> None:
    table = SortedSet.layout(table_name)
    end = datetime.fromtimestamp(clock.now(), UTC) + timedelta(days=2)
    songs = SortedSet(store, "today", table=table, expires=end, ranked=ranked)
    songs.create_table()
    songs.zadd({"a": 1, "b": 2})
    songs.incr("a", 5)
    assert (songs.ttl(), songs.zrange(0, -1)) == (172_800, ["b", "a"])
    clock.advance(timedelta(days=2))
    assert (songs.zrange(0, -1), songs.zcard(), songs.zscore("a")) == ([], 0, None)
    assert (songs.zrank("a"), songs.zcount(0, 9), songs.zscan()) == (None, 0, (0, []))
    assert (songs.incr("a", 3), songs.zadd({"c": 1}), songs.zcard()) == (3, 1, 0)
    assert (songs.delete(), songs.ttl()) == (0, -2)
    with pytest.raises(errors.UsageError):
        songs.persist()
    again = SortedSet(store, "today", table=table, expires=end + timedelta(days=9), ranked=ranked)
    assert (again.incr("a", 2), again.zrange(0, -1)) == (2, ["a"])


def test_expiry_by_command(memory: Store, clock: ManualClock) -> None:
    songs = SortedSet(memory, "songs", expires=True)
    songs.create_table()
    assert (songs.expire(10), songs.ttl()) == (False, -2)
    songs.zadd({"a": 1})
    assert (songs.expire(timedelta(hours=1)), songs.incr("b"), songs.ttl()) == (True, 1, 3600)
    songs.zadd({"a": 3})
    clock.advance(3600)
    assert (songs.zcard(), songs.ttl(), songs.incr("b"), songs.ttl()) == (0, -2, 1, -1)
    clock.advance(10**6)
    assert songs.zrange(0, -1, withscores=True) == [("b", 1)]
    assert songs.expireat(datetime.fromtimestamp(clock.now() + 5, UTC))
    assert (songs.persist(), songs.persist()) == (True, False)
    clock.advance(10)
    assert songs.zcard() == 1


def test_a_change_of_the_expiry_is_written_once(memory: Store, clock: ManualClock) -> None:
    spent = Requests()
    with isotone.connect(memory.backend, clock=clock, observe=[isotone.at_end(spent.see)]) as store:
        songs = SortedSet(store, "songs", expires=True)
        songs.create_table()
        songs.zadd({"a": 1, "b": 2})
        spent.taken()
        clock.advance(0.3)
        assert songs.expire(7.5)
        assert spent.taken()["UpdateItem"] == 2
        assert songs.ttl() == 7


def test_an_emptied_set_begins_without_an_expiry(memory: Store) -> None:
    songs = SortedSet(memory, "songs", expires=True)
    songs.create_table()
    for empty in (lambda: songs.zrem("a"), songs.delete, songs.zpopmin):
        songs.zadd({"a": 1})
        songs.expire(10)
        empty()
        songs.zadd({"a": 1})
        assert songs.ttl() == -1


def test_a_writer_takes_over_an_expiry_that_changes_meanwhile(
    memory: Store, clock: ManualClock
) -> None:
    songs = SortedSet(memory, "songs", expires=True)
    songs.create_table()
    songs.zadd({"a": 1})
    for write in (lambda late: late.incr("b"), lambda late: late.zadd({"c": 1, "d": 2})):
        backend = Before(memory.backend, lambda: songs.expire(100))
        with isotone.connect(backend, clock=clock) as other:
            write(SortedSet(other, "songs", expires=True))
        assert songs.persist()
        songs.expire(50)
        clock.advance(50)
        assert songs.zcard() == 0
        songs.zadd({"a": 1})


def test_a_member_that_cannot_be_stamped_is_not_added_to_twice(
    memory: Store, clock: ManualClock
) -> None:
    songs = SortedSet(memory, "songs", expires=True)
    songs.create_table()
    songs.zadd({"a": 1})

    class Met(Before):
        """Where all attempts of the second write meet another one."""

        def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
            if operation in WRITES and -CONTENTION.attempts <= self._before < 0:
                self._before -= 1
                raise errors.TransactionConflictException("met")
            return super().execute(operation, request)

    backend = Met(memory.backend, lambda: songs.expire(50))
    with isotone.connect(backend, clock=clock) as other, pytest.raises(errors.Contended):
        SortedSet(Hasty.over(other), "songs", expires=True).zadd({"a": 1}, xx=True, incr=True)
    assert songs.zscore("a") == 2


def test_a_member_added_while_a_set_is_emptied_stays(memory: Store, clock: ManualClock) -> None:
    songs = SortedSet(memory, "songs", expires=True)
    songs.create_table()
    for come, ttl in (
        (lambda: songs.zadd({"b": 1}), -1),
        (lambda: songs.zadd({"b": 1}) and songs.expire(100), 100),
    ):
        songs.zadd({"a": 1})
        songs.expire(50)
        backend = Before(memory.backend, come, skip=1)  # the deletion of the last member
        with isotone.connect(backend, clock=clock) as other:
            assert SortedSet(other, "songs", expires=True).zrem("a") == 1
        assert songs.ttl() == ttl
        clock.advance(60)
        assert songs.zrange(0, -1) == ["b"]
        songs.delete()


def test_a_moment_without_a_zone_is_refused(memory: Store) -> None:
    songs = SortedSet(memory, "songs", expires=True)
    songs.create_table()
    songs.zadd({"a": 1})
    songs.expire(10)
    with pytest.raises(errors.UsageError, match="time zone"):
        songs.expireat(datetime(2050, 1, 1), gt=True)


class Before:
    """A backend on which something else happens right before the first write, or a later one."""

    def __init__(self, backend: Any, happens: Callable[[], Any], skip: int = 0) -> None:
        self._backend = backend
        self._happens = happens
        self._before = skip

    def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
        if operation in WRITES:
            self._before -= 1
            if self._before == -1:
                self._happens()
        return self._backend.execute(operation, request)


def test_a_set_that_never_expires_says_so(memory: Store) -> None:
    trending = SortedSet(memory, "trending")
    trending.create_table()
    trending.zadd({"a": 1})
    assert trending.ttl() == -1
    for use in (lambda: trending.expire(10), trending.persist):
        with pytest.raises(errors.UsageError, match="expires=True"):
            use()
    with pytest.raises(errors.UsageError, match="ranks"):
        SortedSet(memory, "a", ranked=True, expires=True)
    with pytest.raises(errors.UsageError, match="time zone"):
        SortedSet(memory, "a", expires=datetime(2026, 1, 1))


COMMANDS: dict[str, tuple[Any, ...]] = {
    "zadd": ({"a": 2, "c": 1},),
    "zrem": ("a", "b", "c"),
    "incr": ("b",),
    "zpopmin": (3,),
    "expire": (300,),
    "persist": (),
    "delete": (),
}
tasks = st.lists(
    st.lists(st.sampled_from([*COMMANDS]), min_size=1, max_size=6), min_size=2, max_size=4
)


@settings(max_examples=examples(100), deadline=None)
@given(tasks=tasks, seed=st.integers(0, 10**6))
def test_all_members_go_at_the_moment_that_commands_have_said(
    tasks: list[list[str]], seed: int
) -> None:
    with isotone.connect(clock=ManualClock(1_800_000_000)) as store:
        songs = SortedSet(store, "songs", expires=True)
        songs.create_table()
        songs.zadd({"a": 1})
        songs.expire(100)

        def perform(commands: list[str]) -> Steps[None]:
            for name in commands:
                yield from getattr(SortedSet, name).__wrapped__(songs, *COMMANDS[name])

        Interleaved(store, map(perform, tasks)).run(seed)
        (query,) = songs.queries()
        said = (
            None
            if songs.ttl() < 0
            else datetime.fromtimestamp(store.clock.now() + songs.ttl(), UTC)
        )
        assert {each.gone_at for each in store.all(query)} <= {said}
        songs.delete()
        songs.zadd({"a": 1})
        assert songs.ttl() == -1
