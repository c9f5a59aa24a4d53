"""A lock has one owner at a time, whose token is greater than that of every owner before."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.effort import examples
from tests.programs import python, together
from tests.structures.simulation import Hasty, Repeating, Requests, Slowed

import isotone
from isotone import AsyncStore, ManualClock, Store, errors
from isotone.structures import Lock

PROGRAM = Path(__file__).with_name("locking.py")


def test_a_lock_is_taken_and_given_everywhere(
    store: Store, clock: ManualClock, table_name: str
) -> None:
    table = Lock.layout(table_name)
    one, other = Lock(store, "l", owner="one", table=table), Lock(store, "l", table=table)
    one.create_table()
    assert one.holder() is None
    assert one.try_acquire()
    assert (one.is_held, one.fence, other.is_held) == (True, 1, False)
    assert not other.try_acquire()
    holder = other.holder()
    assert holder is not None
    assert (holder.owner, holder.fence, holder.until.timestamp()) == ("one", 1, clock.now() + 30)
    one.renew()
    one.release()
    assert (one.is_held, other.holder(), other.acquire()) == (False, None, 2)
    clock.advance(31)
    assert one.acquire() == 3
    with pytest.raises(errors.LeaseLost, match="'l'"):
        other.renew()
    with pytest.raises(errors.LeaseLost):
        other.release()
    assert one.is_held


class Naive:
    """Who has the lock, said in the plainest way."""

    def __init__(self) -> None:
        self.owner: int | None = None
        self.until = 0.0
        self.fence = 0


class Owners(RuleBasedStateMachine):
    """Four who want one lock, and time."""

    everybody = st.integers(0, 3)

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock()
        self.store = isotone.connect(clock=self.clock)
        self.locks = [Lock(self.store, "l", lease=10, skew=2) for _ in range(4)]
        self.locks[0].create_table()
        self.naive = Naive()
        self.fences: list[int] = []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()

    @rule(who=everybody)
    def take(self, who: int) -> None:
        naive, now, lock = self.naive, self.clock.now(), self.locks[who]
        if naive.owner == who and now < naive.until:
            with pytest.raises(errors.UsageError, match="itself"):
                lock.try_acquire()
            return
        grace = 0 if naive.owner == who else 2
        free = naive.owner is None or naive.until + grace <= now
        assert lock.try_acquire() == free
        if free:
            naive.owner, naive.until, naive.fence = who, now + 10, naive.fence + 1
            assert lock.fence == naive.fence

    @rule(who=everybody)
    def renew(self, who: int) -> None:
        if self.naive.owner == who:
            self.locks[who].renew()
            self.naive.until = self.clock.now() + 10
        else:
            with pytest.raises((errors.LeaseLost, errors.UsageError)):
                self.locks[who].renew()

    @rule(who=everybody)
    def release(self, who: int) -> None:
        if self.naive.owner == who:
            self.locks[who].release()
            self.naive.owner = None
        else:
            with pytest.raises((errors.LeaseLost, errors.UsageError)):
                self.locks[who].release()

    @rule(seconds=st.sampled_from([0.5, 3, 9, 10, 11.5, 12]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def one_at_most_has_it(self) -> None:
        held = [place for place, each in enumerate(getattr(self, "locks", [])) if each.is_held]
        alive = [self.naive.owner] if held else []
        assert held == alive


TestOwners = Owners.TestCase
TestOwners.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)


class Strangers(RuleBasedStateMachine):
    """Owners whose clocks differ, by up to the skew or beyond all bounds; in the latter case they also step.

    Their requests may be slow: time passes before and after each, in which another renews or tries to acquire.
    """

    everybody = st.integers(0, 2)
    durations = st.sampled_from([0.5, 5, 9])
    # At most one for each side of the two requests of an acquisition.
    moments = st.lists(st.tuples(durations, everybody), max_size=4)

    @initialize(
        trust=st.booleans(),
        offsets=st.permutations([0.0, 0.4, 1.0]),
    )
    def begin(self, trust: bool, offsets: list[float]) -> None:
        most = 2 if trust else 10_000
        self.now = 1_000_000.0
        self.offsets = [each * most for each in offsets]
        self.database = isotone.open()
        self.clocks = [ManualClock(self.now + each) for each in self.offsets]
        self.trust = trust
        self.backends = [Slowed(self.database) for _ in self.clocks]
        stores = [
            isotone.connect(backend, clock=clock)
            for backend, clock in zip(self.backends, self.clocks, strict=True)
        ]
        self.locks = [Lock(each, "l", lease=10, skew=2, trust_clocks=trust) for each in stores]
        self.locks[0].create_table()
        self.greatest = 0

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.close()

    @rule(order=st.permutations(range(3)))
    def take(self, order: list[int]) -> None:
        for who in order:
            if not self.locks[who].is_held and self.locks[who].try_acquire():
                assert self.locks[who].fence > self.greatest
                self.greatest = self.locks[who].fence

    @rule(who=everybody, moments=moments)
    def take_slowly(self, who: int, moments: list[tuple[float, int]]) -> None:
        with self._slowed(who, moments):
            self._renew_or_take(who)

    @rule(who=everybody)
    def renew(self, who: int) -> None:
        if self.locks[who].is_held:
            self.locks[who].renew()

    @rule(who=everybody)
    def release(self, who: int) -> None:
        if self.locks[who].is_held:
            self.locks[who].release()

    @rule(seconds=durations)
    def wait(self, seconds: float) -> None:
        for clock in self.clocks:
            clock.advance(seconds)

    @rule(who=everybody, seconds=st.sampled_from([-3600.0, 3600.0]))
    def step_clock(self, who: int, seconds: float) -> None:
        if not self.trust:
            self.clocks[who].set(self.clocks[who].now() + seconds)

    @contextlib.contextmanager
    def _slowed(self, who: int, moments: list[tuple[float, int]]) -> Iterator[None]:
        backend = self.backends[who]
        backend.moments = [
            partial(self._meanwhile, seconds, other) for seconds, other in moments if other != who
        ]
        yield
        backend.moments = []

    def _meanwhile(self, seconds: float, other: int) -> None:
        self.wait(seconds)
        self.one_at_most_has_it()
        self._renew_or_take(other)
        self.one_at_most_has_it()

    def _renew_or_take(self, who: int) -> None:
        lock = self.locks[who]
        if lock.is_held:
            with contextlib.suppress(errors.LeaseLost):
                lock.renew()
        elif lock.try_acquire() and lock.is_held:
            assert lock.fence > self.greatest
            self.greatest = lock.fence

    @invariant()
    def one_at_most_has_it(self) -> None:
        assert sum(each.is_held for each in getattr(self, "locks", [])) <= 1


TestStrangers = Strangers.TestCase
TestStrangers.settings = settings(max_examples=examples(80), stateful_step_count=40, deadline=None)


def test_an_unchanged_item_is_taken_over_after_a_lease_of_watching(
    memory: Store, clock: ManualClock
) -> None:
    one = Lock(memory, "l", lease=10)
    other = Lock(memory, "l", lease=99, trust_clocks=False)
    one.create_table()
    one.acquire()
    clock.advance(1000)
    assert not other.try_acquire()  # it has only begun to watch
    clock.advance(9)
    assert not other.try_acquire()
    clock.advance(1)
    assert other.try_acquire()


def test_watching_begins_after_the_read_that_shows_the_revision(
    memory: Store, clock: ManualClock
) -> None:
    slowed = Slowed(memory.backend)
    with isotone.connect(slowed, clock=clock) as store:
        one = Lock(memory, "l", lease=30)
        other = Lock(store, "l", lease=30, trust_clocks=False)
        one.create_table()
        one.acquire()

        def renew_late() -> None:
            clock.advance(8)
            one.renew()

        slowed.moments = [renew_late]  # while the read of `other` takes eight seconds
        assert not other.try_acquire()
        clock.advance(29)
        assert one.is_held
        assert not other.try_acquire()
        clock.advance(1)
        assert not one.is_held
        assert other.try_acquire()


def test_watching_ends_before_the_read_that_shows_the_revision_again(
    memory: Store, clock: ManualClock
) -> None:
    slowed = Slowed(memory.backend)
    with isotone.connect(slowed, clock=clock) as store:
        one, other = Lock(memory, "l", lease=10), Lock(store, "l", lease=10, trust_clocks=False)
        one.create_table()
        one.acquire()
        assert not other.try_acquire()
        clock.advance(9)
        slowed.moments = [lambda: None, lambda: clock.advance(5)]  # after the read
        assert not other.try_acquire()


def test_a_clock_that_was_ahead_at_a_renewal_gives_no_longer_lease(
    memory: Store, clock: ManualClock
) -> None:
    strange = ManualClock(clock.now())
    with isotone.connect(memory.backend, clock=strange) as store:
        one = Lock(store, "l", lease=10)
        other = Lock(memory, "l", lease=10, trust_clocks=False)
        one.create_table()
        one.acquire()
        strange.set(strange.now() + 3600)
        one.renew()
        strange.set(strange.now() - 3600)
        assert one.is_held
        assert not other.try_acquire()
        for each in (clock, strange):
            each.advance(10)
        assert not one.is_held
        assert other.try_acquire()


@pytest.mark.parametrize("step", [3600, -3600])
def test_a_step_of_the_clock_is_no_watching(memory: Store, clock: ManualClock, step: float) -> None:
    strange = ManualClock(clock.now())
    with isotone.connect(memory.backend, clock=strange) as store:
        one, other = Lock(memory, "l", lease=10), Lock(store, "l", lease=10, trust_clocks=False)
        one.create_table()
        one.acquire()
        assert not other.try_acquire()
        strange.set(strange.now() + step)
        assert not other.try_acquire()
        assert one.is_held
        clock.advance(9)
        strange.advance(9)
        one.renew()
        assert not other.try_acquire()
        strange.advance(10)
        assert other.try_acquire()


def test_a_clock_of_the_user_is_not_what_is_watched(memory: Store) -> None:
    class Stepped:
        offset = 0.0

        def now(self) -> float:
            return time.time() + self.offset

    clock = Stepped()
    with isotone.connect(memory.backend, clock=clock) as store:
        one, other = Lock(store, "l", lease=30), Lock(store, "l", lease=30, trust_clocks=False)
        one.create_table()
        one.acquire()
        assert not other.try_acquire()
        clock.offset = 3600
        assert not other.try_acquire()


def test_an_owner_whose_clock_is_set_back_learns_that_it_lost(
    memory: Store, clock: ManualClock
) -> None:
    strange = ManualClock(clock.now())
    with isotone.connect(memory.backend, clock=strange) as store:
        one, other = Lock(store, "l", lease=10), Lock(memory, "l", lease=10)
        one.create_table()
        one.acquire()
        strange.set(strange.now() - 3600)
        assert one.is_held
        one.renew()  # for 10 seconds of everybody's time
        for each in (clock, strange):
            each.advance(9)
        assert one.is_held
        assert not other.try_acquire()
        for each in (clock, strange):
            each.advance(3)
        assert not one.is_held
        with pytest.raises(errors.LeaseLost):
            _ = one.fence
        assert other.try_acquire()
        with pytest.raises(errors.LeaseLost):
            one.renew()


def test_a_lock_waits_and_then_says_who_has_it(memory: Store, clock: ManualClock) -> None:
    one, other = Lock(memory, "l", owner="ann"), Lock(Hasty.over(memory), "l")
    one.create_table()
    one.acquire()
    began = clock.now()
    with pytest.raises(errors.Locked, match=r"was not free within .*; ann holds it") as locked:
        other.acquire(timeout=5)
    assert 4.99 < clock.now() - began < 6
    assert locked.value.owner == "ann"
    assert locked.value.until is not None
    assert locked.value.until.timestamp() == began + 30


def test_a_lock_is_taken_as_soon_as_it_is_free(memory: Store, clock: ManualClock) -> None:
    one, hasty = Lock(memory, "l"), Hasty.over(memory)
    one.create_table()
    one.acquire()
    began = clock.now()

    def release_at_ten() -> None:
        if clock.now() - began >= 10 and one.is_held:
            one.release()

    hasty.between = release_at_ten
    assert Lock(hasty, "l").acquire() == 2
    assert 9.99 < clock.now() - began < 11.01


def test_a_dead_owner_is_waited_for(memory: Store, clock: ManualClock) -> None:
    Lock(memory, "l").create_table()
    Lock(memory, "l").acquire()
    began = clock.now()
    assert Lock(Hasty.over(memory), "l").acquire() == 2
    assert 30.99 < clock.now() - began < 32.01


def test_an_answer_that_is_lost_does_no_harm(memory: Store) -> None:
    Lock(memory, "l").create_table()
    with isotone.connect(Repeating(memory.backend), clock=memory.clock) as repeating:
        lock = Lock(repeating, "l")
        assert (lock.acquire(), lock.release(), lock.acquire()) == (1, None, 2)
        lock.renew()
        lock.release()
        assert lock.holder() is None


def test_what_makes_no_sense_is_refused(memory: Store) -> None:
    lock = Lock(memory, "l")
    lock.create_table()
    with pytest.raises(errors.UsageError, match="not acquired"):
        lock.release()
    with pytest.raises(errors.UsageError, match="not acquired"):
        _ = lock.fence
    with lock.held(), pytest.raises(errors.UsageError, match="would wait for itself"):
        lock.acquire()
    with pytest.raises(errors.UsageError, match="does not renew"):
        lock.held(every=30)
    for lease in (0, -1, float("nan"), float("inf")):
        with pytest.raises(errors.UsageError, match="lease must be more than 0 seconds"):
            Lock(memory, "l", lease=lease)
    with pytest.raises(errors.UsageError, match="skew must be 0 seconds or more"):
        Lock(memory, "l", skew=-1)
    for timeout in (-1, float("nan")):
        with pytest.raises(errors.UsageError, match=r"float\('inf'\)"):
            lock.acquire(timeout)
        with pytest.raises(errors.UsageError, match=r"float\('inf'\)"):
            lock.held(timeout)
    wrong: Any = "5"
    with pytest.raises(errors.UsageError, match="timeout takes float, not str"):
        lock.held(timeout=wrong)  # though nobody else is there


def test_a_lock_is_held_for_a_block_of_its_own(memory: Store, clock: ManualClock) -> None:
    lock, other = Lock(memory, "l"), Lock(memory, "l")
    lock.create_table()
    for fence in (1, 2):
        with lock as same:
            assert (same is lock, lock.fence, other.try_acquire()) == (True, fence, False)
            with pytest.raises(errors.UsageError, match="would wait for itself"), lock:
                pass
            assert lock.is_held
    assert other.try_acquire()


def test_a_block_of_the_other_kind_does_nothing(memory: Store) -> None:
    entered: list[str] = []

    async def program(waiting: Any, awaited: Any) -> None:
        with pytest.raises(errors.UsageError, match="use `with`"):
            async with waiting:
                entered.append("waiting")
        with pytest.raises(errors.UsageError, match="use `async with`"), awaited:
            entered.append("awaited")

    async def main() -> None:
        async with isotone.aconnect() as store:
            lock, other = Lock(memory, "l"), Lock(store, "l")
            lock.create_table()
            await other.create_table()
            await program(lock, other)
            await program(lock.held(), other.held())
            assert await other.try_acquire()
            assert lock.try_acquire()

    asyncio.run(main())
    assert entered == []


def test_awaited_it_is_held_for_a_block_of_its_own() -> None:
    async def program() -> None:
        async with isotone.aconnect() as store:
            lock, other = Lock(store, "l"), Lock(store, "l")
            await lock.create_table()
            async with lock as same:
                assert (same is lock, lock.is_held) == (True, True)
                assert not await other.try_acquire()
            assert await other.try_acquire()

    asyncio.run(program())


def test_a_lock_costs_as_documented(clock: ManualClock) -> None:
    requests = Requests()
    with isotone.connect(clock=clock, observe=[isotone.at_end(requests.see)]) as store:
        lock = Lock(store, "l")
        lock.create_table()
        lock.acquire()
        lock.release()
        requests.taken()
        lock.acquire()
        assert requests.taken() == {"GetItem": 1, "PutItem": 1}
        assert not Lock(store, "l").try_acquire()
        assert requests.taken() == {"GetItem": 1}
        lock.renew()
        lock.release()
        assert requests.taken() == {"UpdateItem": 2}


def test_a_lock_is_renewed_while_a_block_runs(clock: ManualClock) -> None:
    renewed = threading.Event()
    with isotone.connect(clock=clock) as store:
        lock, other = Lock(store, "l"), Lock(store, "l")
        lock.create_table()
        with lock.held(every=0.002):
            for _ in range(5):
                clock.advance(20)
                while lock._until < clock.now() + 30:
                    renewed.wait(0.001)  # for the thread
                assert not other.try_acquire()
        assert other.try_acquire()


def test_a_block_may_be_gone_through_again(memory: Store, clock: ManualClock) -> None:
    lock = Lock(memory, "l")
    lock.create_table()
    held = lock.held(every=0.002)
    for fence in (1, 2, 3):
        with held as same:
            assert (same.fence, Lock(memory, "l").try_acquire()) == (fence, False)
            clock.advance(20)
            while lock._until < clock.now() + 30:
                time.sleep(0.001)  # for the thread


def test_a_lost_lock_is_noticed_in_the_block(memory: Store, clock: ManualClock) -> None:
    lock, other = Lock(memory, "l"), Lock(memory, "l")
    lock.create_table()

    def dawdle() -> None:
        with lock.held(every=29):
            clock.advance(31)
            assert other.try_acquire()
            assert not lock.is_held
            with pytest.raises(errors.LeaseLost):
                _ = lock.fence

    with pytest.raises(errors.LeaseLost):
        dawdle()
    assert other.is_held


def test_the_error_of_a_block_comes_before_that_of_the_lock(
    memory: Store, clock: ManualClock
) -> None:
    lock, other = Lock(memory, "l"), Lock(memory, "l")
    lock.create_table()

    def fail() -> None:
        with lock.held(every=29):
            clock.advance(31)
            other.acquire()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert other.is_held


def test_threads_take_turns(tmp_path: Path) -> None:
    inside, most = [], []
    with isotone.connect(tmp_path / "l.db", durability="none") as store:
        Lock(store, "l").create_table()

        def work(number: int) -> int:
            with Lock(store, "l").held(wait=0.01) as lock:
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)
                return lock.fence

        with ThreadPoolExecutor(6) as pool:
            fences = list(pool.map(work, range(40)))
    assert sorted(fences) == list(range(1, 41))
    assert set(most) == {1}


def test_processes_take_turns(tmp_path: Path) -> None:
    file, tally = tmp_path / "l.db", tmp_path / "tally"
    tally.write_text("0")
    with isotone.connect(file) as store:
        Lock(store, "tally").create_table()
    printed = together(PROGRAM, str(file), str(tally), "15", processes=4)
    assert tally.read_text() == "60"
    seen = sorted(tuple(map(int, line.split())) for each in printed for line in each.splitlines())
    assert seen == [(count, count + 1) for count in range(60)]


def test_a_killed_owner_loses_it_with_its_lease(tmp_path: Path) -> None:
    file = tmp_path / "l.db"
    clock = ManualClock(time.time())
    with isotone.connect(file, clock=clock) as store:
        lock = Lock(store, "tally")
        lock.create_table()
        doomed = python(PROGRAM, file, stdin=subprocess.PIPE)
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "1\n"
        doomed.kill()
        doomed.communicate()
        assert not lock.try_acquire()
        clock.set(time.time() + 31.5)
        assert lock.acquire(timeout=0) == 2


def test_awaited() -> None:
    async def program() -> list[int]:
        async with isotone.aconnect() as store:
            await Lock(store, "l").create_table()
            inside: list[int] = []

            async def work(number: int) -> int:
                async with Lock(store, "l").held(wait=0.01, every=0.005) as lock:
                    assert inside == []
                    inside.append(number)
                    await asyncio.sleep(0)
                    inside.remove(number)
                    return lock.fence

            with pytest.raises(errors.UsageError, match="async with"), Lock(store, "l").held():
                pass
            return await asyncio.gather(*map(work, range(8)))

    assert sorted(asyncio.run(program())) == list(range(1, 9))


def test_awaited_it_is_renewed_and_its_loss_is_noticed(clock: ManualClock) -> None:
    async def dawdle(lock: Lock[AsyncStore], other: Lock[AsyncStore]) -> None:
        async with lock.held(every=29):
            clock.advance(31)
            assert await other.try_acquire()

    async def program() -> None:
        async with isotone.aconnect(clock=clock) as store:
            lock, other = Lock(store, "l"), Lock(store, "l")
            await lock.create_table()
            async with lock.held(every=0.001):
                clock.advance(20)
                until = clock.now() + 30
                while lock._until < until:
                    await asyncio.sleep(0.001)  # for the task
                assert not await other.try_acquire()
            with pytest.raises(errors.LeaseLost):
                await dawdle(lock, other)

    asyncio.run(program())


def test_a_forked_process_is_another_owner(memory: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.getpid()
    parent, child = Lock(memory, "l"), Lock(memory, "l")
    parent.create_table()
    parent.acquire()
    child.__dict__.update(parent.__dict__, _process=-1)  # as it is in a child's memory
    monkeypatch.setattr(os, "getpid", lambda: 12)
    assert child.owner.endswith("/12")
    assert not child.is_held
    assert not child.try_acquire()
    with pytest.raises(errors.UsageError, match="not acquired"):
        child.release()
    with monkeypatch.context() as within:
        within.setattr(os, "getpid", lambda: own)
        parent.release()
    assert child.try_acquire()
    holder = child.holder()
    assert holder is not None
    assert holder.owner.endswith("/12")
    monkeypatch.setattr(os, "getpid", lambda: own)
    assert not parent.try_acquire()


class Slow:
    """An asynchronous backend whose answers to some requests are waited for."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.seconds = 0.0

    async def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
        await asyncio.sleep(self.seconds)
        return await self._backend.execute(operation, request)


@pytest.mark.parametrize("cancellations", [1, 2, 3])
def test_a_task_that_is_cancelled_again_and_again_releases(cancellations: int) -> None:
    async def work(lock: Lock[AsyncStore], inside: asyncio.Event) -> None:
        async with lock.held():
            inside.set()
            await asyncio.sleep(60)

    async def program() -> None:
        async with isotone.aconnect() as plain:
            slow, inside = Slow(plain.backend), asyncio.Event()
            store = isotone.aconnect(slow)
            lock = Lock(store, "l")
            await lock.create_table()
            working = asyncio.create_task(work(lock, inside))
            await inside.wait()
            slow.seconds = 0.01
            for _ in range(cancellations):
                working.cancel()
                await asyncio.sleep(0.002)
            with pytest.raises(asyncio.CancelledError):
                await working
            assert await lock.holder() is None

    asyncio.run(program())


@pytest.mark.parametrize("cancellations", [1, 2, 3])
def test_a_task_that_is_cancelled_as_it_acquires_holds_nothing(cancellations: int) -> None:
    written = asyncio.Event()

    class Late(Slow):
        async def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
            answer = await super().execute(operation, request)
            if operation == "PutItem":
                written.set()
                await asyncio.sleep(60)
            return answer

    async def work(lock: Lock[AsyncStore]) -> None:
        async with lock.held():
            raise AssertionError

    async def program() -> None:
        async with isotone.aconnect() as plain:
            late = Late(plain.backend)
            lock = Lock(isotone.aconnect(late), "l")
            await lock.create_table()
            working = asyncio.create_task(work(lock))
            await written.wait()
            late.seconds = 0.01
            for _ in range(cancellations):
                working.cancel()
                await asyncio.sleep(0.002)
            with pytest.raises(asyncio.CancelledError):
                await working
            assert not lock.is_held
            assert await Lock(plain, "l").acquire(0) == 2

    asyncio.run(program())


def test_a_block_may_release_by_itself_what_is_renewed(memory: Store) -> None:
    lock = Lock(memory, "l")
    lock.create_table()

    def work() -> None:
        with lock.held(every=0.001):
            lock.release()
            time.sleep(0.01)

    with pytest.raises(errors.UsageError, match="not acquired"):
        work()
    assert Lock(memory, "l").try_acquire()


class Unanswering:
    """A backend that carries out the next write of a kind, and says that there was no answer."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.silent = ""

    def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
        answer = self._backend.execute(operation, request)
        if operation == self.silent:
            self.silent = ""
            raise errors.ConnectionFailed("no answer")
        return answer


def test_what_had_no_answer_may_be_said_again(memory: Store) -> None:
    backend = Unanswering(memory.backend)
    with isotone.connect(backend, clock=memory.clock) as unanswering:
        lock = Lock(unanswering, "l")
        lock.create_table()
        backend.silent = "PutItem"
        with pytest.raises(errors.ConnectionFailed):
            lock.acquire()
        assert not lock.is_held
        assert lock.acquire(0) == 2
        backend.silent = "UpdateItem"
        with pytest.raises(errors.ConnectionFailed):
            lock.release()
        assert not lock.is_held  # others may have taken it
        lock.release()
        assert lock.holder() is None

        def fails() -> None:
            with lock.held():
                backend.silent = "UpdateItem"
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fails()
