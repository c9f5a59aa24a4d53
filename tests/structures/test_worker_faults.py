"""What handlers and stores do wrong, and what a worker makes of it: it is told, counted, and holds up nothing else."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.intercepted_backend import InterceptedBackend, refuse
from tests.structures.working import Bench, bench, settle, write

import isotone
from isotone import ManualClock, Store
from isotone.errors import ConnectionFailed, LimitExceededException, UsageError
from isotone.structures import Context, WorkerProgress, WorkerSettings
from isotone.structures import worker_members as worker_member
from isotone.structures.worker_members import WorkerMember


@pytest.fixture
def kit(table_name: str) -> Bench:
    return bench(table_name)


# What can never work is refused


def test_a_handler_that_would_never_be_run_is_refused(kit: Bench) -> None:
    async def awaited(event: Any, context: Context) -> None: ...

    def steps(event: Any, context: Context) -> Any:
        yield from ()

    class Called:
        async def __call__(self, event: Any, context: Context) -> None: ...

    for function in (awaited, steps, Called()):
        with pytest.raises(UsageError, match="would not run it"):
            kit.worker.on(kit.post)(function)


def test_a_worker_without_handlers_or_members_is_refused(memory: Store, kit: Bench) -> None:
    kit.worker.create_tables(memory)
    with pytest.raises(UsageError, match="no handlers"):
        kit.worker.run(memory, until_idle=True)
    kit.worker.on(kit.post)(lambda event, context: None)
    with pytest.raises(UsageError, match="runs over a Store"):
        kit.worker.run(isotone.aconnect(), until_idle=True)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="1 or more"):
        kit.worker.run(memory, workers=0, until_idle=True)


# Whatever a handler raises is its event's


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (asyncio.CancelledError(), "CancelledError: "),
        (OSError("no file 'a\udc80'"), "OSError: no file 'a?'"),
        (Unspeakable(), "Unspeakable: "),
    ],
)
def test_whatever_is_raised_ends_as_a_dead_letter(
    memory: Store,
    kit: Bench,
    error: BaseException,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # pytest's own report of what was logged could not be written with half a character in it
    monkeypatch.setattr(logging.getLogger("isotone.worker"), "disabled", True)

    @kit.worker.on(kit.post, "inserted")
    def fall(event: Any, context: Context) -> None:
        if event.entity.number == 1:
            raise error

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(3))
    done = kit.worker.run(memory, until_idle=True)
    assert (done.deliveries, done.dead_letters) == (2, 1)
    assert [each.error for each in kit.worker.dead_letters(memory)] == [said]
    assert kit.worker.redrive(memory) == (0, 1)


def test_a_store_that_does_not_answer_a_handler_makes_no_dead_letters(
    memory: Store, kit: Bench
) -> None:
    tries: list[int] = []

    @kit.worker.on(kit.post, "inserted")
    def write_elsewhere(event: Any, context: Context) -> None:
        tries.append(context.attempt)
        if len(tries) < 20:
            raise ConnectionFailed("no answer")

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(1))
    done = kit.worker.run(memory, until_idle=True)
    assert (done.deliveries, done.dead_letters, done.retries) == (1, 0, 19)
    assert tries == [*range(1, 21)]


# One shard, or one request, that fails holds up no others

SLOW_DOWN = LimitExceededException("slow down")


def test_a_shard_that_is_throttled_holds_up_no_other(
    memory: Store, kit: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()

    @kit.worker.on(kit.post, "inserted")
    def note(event: Any, context: Context) -> None:
        seen.add(event.entity.author)

    kit.worker.create_tables(memory)
    for author in "abcdefgh":
        write(memory, kit, author, range(1))
    member = WorkerMember(kit.worker.plan, memory)
    member.coordinate()
    first = next(iter(member.held))
    theirs = {each.entity.author for each in memory.changes(kit.table) if each.shard != first}

    def of_the_first(operation: str, request: Any) -> bool:
        return operation == "GetShardIterator" and request["ShardId"] == first

    monkeypatch.setattr(
        memory, "backend", InterceptedBackend(memory.backend, refuse(SLOW_DOWN, of_the_first))
    )
    member.work()
    assert seen == theirs


def test_a_throttled_listing_of_shards_holds_up_no_handling(
    memory: Store, kit: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = WorkerMember(kit.worker.plan, memory)

    @kit.worker.on(kit.post, "inserted")
    def note(event: Any, context: Context) -> None:
        member.stop()

    kit.worker.create_tables(memory)
    member.coordinate()
    write(memory, kit, "ann", range(1))
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) > 20:
            member.stop()
        return False

    member.wait = wait
    monkeypatch.setattr(
        memory,
        "backend",
        InterceptedBackend(
            memory.backend, refuse(SLOW_DOWN, lambda name, _: name == "DescribeStream")
        ),
    )
    member.run()
    assert member.progress().deliveries == 1


def test_a_listing_of_shards_that_fails_for_long_is_asked_for_less_often(
    memory: Store, kit: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.worker.create_tables(memory)
    now = 0.0
    asked: list[float] = []
    member = WorkerMember(kit.worker.plan, memory)

    def wait(seconds: float) -> bool:
        nonlocal now
        now += max(seconds, 0.05)
        if now > 600:
            member.stop()
        return False

    def is_listing(operation: str, request: Any) -> bool:
        if operation == "DescribeStream":
            asked.append(now)
        return operation == "DescribeStream"

    member.wait = wait
    monkeypatch.setattr(worker_member, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(
        memory, "backend", InterceptedBackend(memory.backend, refuse(SLOW_DOWN, is_listing))
    )
    member.run()
    assert 55 < len(asked) < 70
    assert asked[-1] > 580


def test_a_lease_that_cannot_be_renewed_holds_up_no_other(
    memory: Store, clock: ManualClock, kit: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.worker.create_tables(memory)
    member = WorkerMember(kit.worker.plan, memory)
    member.coordinate()
    clock.advance(20)
    first = next(iter(member.held))

    def of_the_first(operation: str, request: Any) -> bool:
        return operation == "UpdateItem" and first in str(request["Key"])

    with monkeypatch.context() as patched:
        patched.setattr(
            memory, "backend", InterceptedBackend(memory.backend, refuse(SLOW_DOWN, of_the_first))
        )
        member.renew()
    clock.advance(20)
    assert [shard for shard, held in member.held.items() if not held.is_safe()] == [first]


def test_a_shard_that_was_handed_over_without_an_answer_is_held_by_one(
    memory: Store, kit: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.worker.create_tables(memory)
    one, other = WorkerMember(kit.worker.plan, memory), WorkerMember(kit.worker.plan, memory)
    for member in (one, other, one):
        member.coordinate()
    (wanted,) = [each for each in one.held.values() if each.lease.wanted is not None]
    lost = refuse(ConnectionFailed("no answer"), lambda operation, _: operation == "UpdateItem")

    with monkeypatch.context() as patched:
        patched.setattr(memory, "backend", InterceptedBackend(memory.backend, after=lost))
        with pytest.raises(ConnectionFailed):
            one.work()
    other.coordinate()
    assert list(other.held) == [wanted.lease.shard]
    assert not wanted.is_safe()
    one.coordinate()
    assert len(one.held) == 3


# One that slept


def test_a_handler_that_slept_is_warned_that_the_shard_may_be_lost(
    memory: Store, clock: ManualClock, kit: Bench
) -> None:
    told: list[bool] = []

    @kit.worker.on(kit.post, "inserted")
    def sleep(event: Any, context: Context) -> None:
        told.append(context.stopping())
        clock.advance(31)
        told.append(context.stopping())
        raise InterruptedError("it comes again")

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(1))
    member = WorkerMember(kit.worker.plan, memory)
    member.coordinate()
    assert member.work() == 0
    assert told == [False, True]
    assert member.progress().dead_letters == 0


# Lag


def test_lag_is_that_of_what_is_being_handled(
    memory: Store, clock: ManualClock, kit: Bench
) -> None:
    lags: list[float] = []
    member = WorkerMember(kit.worker.plan, memory)

    @kit.worker.on(kit.post, "inserted")
    def note(event: Any, context: Context) -> None:
        clock.advance(3)
        lags.append(member.progress().lag)

    kit.worker.create_tables(memory)
    member.coordinate()
    for _ in range(2):
        write(memory, kit, "ann", range(len(lags), len(lags) + 1))
        for _ in range(3):  # the position is too old, the post, nothing more
            member.work()
        assert member.progress().lag == 0
        clock.advance(3600)  # nothing happens for a while
        member.renew()
        member.coordinate()
    assert lags == [3, 3]


# A record that kills


def lives(kit: Bench, store: Store, clock: ManualClock, most: int = 20) -> int:
    """Members live one after the other, until one of them gets through; how many were killed."""
    for killed in range(most):
        member = WorkerMember(kit.worker.plan, store)
        try:
            settle([member])
        except KeyboardInterrupt:  # no handler's failure, and here the end of a member
            clock.advance(31)
        else:
            return killed
    return most


@pytest.mark.parametrize("takes_many", [False, True])
def test_a_record_that_kills_its_worker_ends_as_a_dead_letter(
    memory: Store, clock: ManualClock, kit: Bench, takes_many: bool
) -> None:
    seen: list[int] = []

    def handle(event: Any, context: Context) -> None:
        for each in event if takes_many else [event]:
            if each.entity.number == 5:
                raise KeyboardInterrupt
            seen.append(each.entity.number)

    (kit.worker.on_many if takes_many else kit.worker.on)(kit.post, "inserted")(handle)
    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(9))
    assert lives(kit, memory, clock) == 2 + kit.worker.settings.attempts
    assert [*dict.fromkeys(seen)] == [0, 1, 2, 3, 4, 6, 7, 8]
    (letter,) = kit.worker.dead_letters(memory)
    assert (letter.handler, letter.attempts) == ("handle", 3)
    assert letter.error.startswith("ProcessEnded: ")
    seen.clear()
    clock.advance(31)
    write(memory, kit, "ann", range(10, 12))
    assert lives(kit, memory, clock) == 0
    assert seen == [10, 11]


def test_a_worker_that_dies_idle_counts_no_attempt(
    memory: Store, clock: ManualClock, kit: Bench
) -> None:
    seen: list[int] = []

    @kit.worker.on(kit.post, "inserted")
    def note(event: Any, context: Context) -> None:
        seen.append(event.entity.number)

    kit.worker.create_tables(memory)
    for _ in range(10):
        dying = WorkerMember(kit.worker.plan, memory)
        dying.coordinate()
        dying.work()
        clock.advance(31)
    write(memory, kit, "ann", range(3))
    assert lives(kit, memory, clock) == 0
    assert seen == [0, 1, 2]
    assert kit.worker.dead_letters(memory) == []


def killing(kit: Bench, number: int) -> None:
    """Declare a handler that ends its member at one post."""

    @kit.worker.on(kit.post, "inserted")
    def handle(event: Any, context: Context) -> None:
        if event.entity.number == number:
            raise KeyboardInterrupt


def starved(member: WorkerMember, clock: ManualClock) -> None:
    """Let the leases of a member run out before it comes to work."""
    member.coordinate()
    clock.advance(31)
    member.work()


def replaced(member: WorkerMember, _: ManualClock) -> None:
    """Let a member start and stop, as in a deployment."""
    member.coordinate()
    member.release()


@pytest.mark.parametrize("release", [starved, replaced])
def test_a_lease_that_is_released_before_its_record_is_reached_forgets_no_crash(
    memory: Store,
    clock: ManualClock,
    kit: Bench,
    release: Callable[[WorkerMember, ManualClock], None],
) -> None:
    killing(kit, 5)
    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(9))
    killed = 0
    while not kit.worker.dead_letters(memory):
        assert killed < 10, "the record kills for ever"
        release(WorkerMember(kit.worker.plan, memory), clock)
        killed += lives(kit, memory, clock, most=1)
    assert killed == 2 + kit.worker.settings.attempts


def test_a_member_that_stops_at_a_suspected_record_has_not_crashed_at_it(
    memory: Store, clock: ManualClock, kit: Bench
) -> None:
    seen: list[int] = []
    crashes = 2
    members: list[WorkerMember] = []

    @kit.worker.on(kit.post, "inserted")
    def handle(event: Any, context: Context) -> None:
        nonlocal crashes
        if crashes:
            crashes -= 1
            raise KeyboardInterrupt
        if len(members) < 10:
            members[-1].stop()
            raise ValueError("not today")
        seen.append(event.entity.number)

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(3))
    assert lives(kit, memory, clock, most=2) == 2
    while len(members) < 10:
        members.append(WorkerMember(kit.worker.plan, memory))
        members[-1].coordinate()
        members[-1].work()
        members[-1].release()
    settle([WorkerMember(kit.worker.plan, memory)])
    assert seen == [0, 1, 2]
    assert kit.worker.dead_letters(memory) == []


# A handler that hangs


def test_a_handler_that_hangs_is_reported_with_its_event(
    memory: Store, clock: ManualClock, kit: Bench
) -> None:
    member = WorkerMember(kit.worker.plan, memory)
    seen: list[WorkerProgress] = []

    @kit.worker.on(kit.post, "inserted")
    def hang(event: Any, context: Context) -> None:
        clock.advance(12)
        seen.append(member.progress())

    kit.worker.create_tables(memory)
    member.coordinate()
    write(memory, kit, "ann", range(1))
    member.work()
    (at_it,) = seen
    assert at_it.calling is not None
    assert (at_it.calling.handler, at_it.calling.seconds) == ("hang", 12)
    assert ", hang for 12 s at <inserted {'PK': 'AUTHOR#ann', 'SK': 'POST#00000'} at 1" in str(
        at_it
    )
    assert member.progress().calling is None


def test_a_handler_that_hangs_for_a_lease_is_logged_once(
    memory: Store, kit: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    going_on = threading.Event()

    @kit.worker.on(kit.post, "inserted")
    def hang(event: Any, context: Context) -> None:
        going_on.wait(20)

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(1))
    with kit.worker.start(memory, settings=WorkerSettings(lease=0.1)):
        for _ in range(200):
            memory.clock.advance(0.02)  # type: ignore[attr-defined] - it is the test's
            time.sleep(0.01)
            if "holds up its shards" in caplog.text:
                break
        time.sleep(0.2)
        going_on.set()
    assert caplog.text.count(" at <inserted") == 1


# Dead letters that stay


def test_a_letter_that_cannot_be_tried_again_stays_and_says_why(
    memory: Store, kit: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    @kit.worker.on(kit.post, "inserted")
    def refuse(event: Any, context: Context) -> None:
        raise ValueError("no")

    kit.worker.create_tables(memory)
    memory.put(kit.post(author="ann", number=1, text=random.Random(1).randbytes(195_000).hex()))
    memory.delete(kit.post, author="ann", number=1)
    memory.put(kit.post(author="bob", number=1, text="small"))
    kit.worker.run(memory, until_idle=True)
    whole, small = sorted(kit.worker.dead_letters(memory), key=lambda each: each.keys)
    assert (whole.record is None, small.record is None) == (False, False)
    large = memory.put(whole.replace(record=None))
    assert kit.worker.redrive(memory, large) == (0, 1)
    assert "its record was too large to be kept; look at the item, then discard" in caplog.text
    kit.worker.handlers.clear()
    assert kit.worker.redrive(memory) == (0, 2)
    assert "its handler no longer exists" in caplog.text
    assert {each.error for each in kit.worker.dead_letters(memory)} == {"ValueError: no"}
    assert kit.worker.discard(memory, large, small) == 2


def test_dead_letters_are_put_through_again_page_by_page(memory: Store, kit: Bench) -> None:
    happened: list[str] = []
    fails = True

    @kit.worker.on(kit.post, "inserted")
    def refuse(event: Any, context: Context) -> None:
        happened.append("handled")
        if fails:
            raise ValueError("no")

    kit.worker.create_tables(memory)
    for number in range(12):
        text = random.Random(number).randbytes(90_000).hex()
        memory.put(kit.post(author="ann", number=number, text=text))
    kit.worker.run(memory, until_idle=True)
    fails = False
    happened.clear()

    def note(operation: str, _: Any) -> None:
        if operation == "Query":
            happened.append("page")

    memory.backend = InterceptedBackend(memory.backend, note)  # type: ignore[assignment] - as much of one as is asked for
    assert kit.worker.redrive(memory) == (12, 0)
    assert happened[:2] == ["page", "handled"]
    assert "page" in happened[2:]
    assert kit.worker.dead_letters(memory) == []


def test_progress_in_one_line_says_what_is_wrong_and_only_that() -> None:
    well = WorkerProgress(records=1234, rate=50.0, shards=4)
    assert str(well) == "lag 0.0 s, 50/s, 4 shards, 1,234 records"
    ill = WorkerProgress(lag=2.25, shards=1, dead_letters=2, lost=1, retries=3)
    told = "lag 2.2 s, 0/s, 1 shard, 0 records, 2 dead letters, 1 shard lost, 3 retries"
    assert str(ill) == told
