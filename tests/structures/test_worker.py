"""Workers on every backend: what is handled, in which order, by whom, and what happens where it fails."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import pytest
from tests.intercepted_backend import InterceptedBackend, refuse
from tests.structures.working import Bench, bench, in_order, recorded, settle, write

import isotone
from isotone import ManualClock, Store, Table
from isotone.errors import ConnectionFailed, UsageError
from isotone.structures import Context, Worker, WorkerSettings
from isotone.structures.worker_members import WorkerMember
from isotone.testing import attach


@pytest.fixture
def kit(table_name: str) -> Bench:
    return bench(table_name)


# On every backend


def test_every_change_comes_to_its_handlers_in_order(store: Store, kit: Bench) -> None:
    told: list[tuple[str, str, Any, Any]] = []

    @kit.worker.on(kit.post)
    def note(event: Any, context: Context) -> None:
        told.append(
            (
                event.kind,
                event.entity.author,
                event.before and event.before.text,
                event.after and event.after.text,
            )
        )

    kit.worker.create_tables(store)
    post = store.put(kit.post(author="ann", number=1, text="a"))
    store.put(post.replace(text="b"))
    store.put(kit.copy(author="ann", number=1))
    store.delete(post)
    done = kit.worker.run(store, until_idle=True)
    assert told == [
        ("inserted", "ann", None, "a"),
        ("modified", "ann", "a", "b"),
        ("removed", "ann", "b", None),
    ]
    assert (done.records, done.deliveries, done.shards) == (4, 3, 0)
    assert kit.worker.run(store, until_idle=True).records == 0


def test_an_event_that_always_fails_is_a_dead_letter_and_the_rest_continues(
    store: Store, kit: Bench
) -> None:
    seen, fails = [], True

    @kit.worker.on(kit.post, "inserted")
    def note(event: Any, context: Context) -> None:
        if fails and event.entity.number == 2:
            raise ValueError("two is bad")
        seen.append(event.entity.number)

    kit.worker.create_tables(store)
    write(store, kit, "ann", range(1, 5))
    done = kit.worker.run(store, until_idle=True)
    assert seen == [1, 3, 4]
    assert (done.retries, done.dead_letters) == (2, 1)
    (letter,) = kit.worker.dead_letters(store)
    assert (letter.handler, letter.error, letter.attempts) == ("note", "ValueError: two is bad", 3)
    assert kit.worker.redrive(store) == (0, 1)
    fails = False
    assert kit.worker.redrive(store) == (1, 0)
    assert seen == [1, 3, 4, 2]
    assert kit.worker.dead_letters(store) == []


def test_several_members_share_and_hand_over(store: Store, kit: Bench) -> None:
    seen = recorded(kit)
    kit.worker.create_tables(store)
    for author in "abcdefgh":
        write(store, kit, author, range(3))
    done = kit.worker.run(store, workers=3, until_idle=True)
    assert Counter(seen) == Counter((author, n) for author in "abcdefgh" for n in range(3))
    assert done.records == 24


def test_changes_of_a_store(store: Store, kit: Bench) -> None:
    store.create_tables(kit.table)
    post = store.put(kit.post(author="ann", number=1))
    store.delete(post)
    events = list(store.changes(kit.table))
    assert [(each.kind, each.entity) for each in events] == [("inserted", post), ("removed", post)]
    assert len({each.id for each in events}) == 2
    assert [each.id for each in store.changes(kit.table)] == [each.id for each in events]


def test_leases_may_lie_in_the_table_itself(store: Store, table_name: str) -> None:
    kit = bench(table_name, one_table=True)
    seen = recorded(kit)
    kit.worker.create_tables(store)
    write(store, kit, "ann", range(3))
    kit.worker.run(store, until_idle=True)
    kit.worker.run(store, until_idle=True)
    assert seen == [("ann", 0), ("ann", 1), ("ann", 2)]


def test_an_effect_is_made_once_however_often_its_event_comes(store: Store, kit: Bench) -> None:
    @kit.worker.on(kit.post, "inserted")
    def count(event: Any, context: Context) -> None:
        with context.once() as together:
            together.update(kit.copy, kit.copy.times.add(1), author="all", number=0)
        if context.attempt < 3:
            raise ConnectionError("after the effect")

    kit.worker.create_tables(store)
    store.put(kit.copy(author="all", number=0, times=0))
    write(store, kit, "ann", range(4))
    done = kit.worker.run(store, until_idle=True)
    assert store.get(kit.copy, author="all", number=0).times == 4
    assert (done.retries, done.dead_letters) == (8, 0)


# Members


def test_a_member_takes_over_what_a_dead_one_held(
    memory: Store, clock: ManualClock, kit: Bench
) -> None:
    seen = recorded(kit)
    kit.worker.create_tables(memory)
    dead, heir = WorkerMember(kit.worker.plan, memory), WorkerMember(kit.worker.plan, memory)
    dead.coordinate()
    assert len(dead.held) == 4
    write(memory, kit, "ann", range(3))
    heir.coordinate()
    assert not heir.held
    clock.advance(31)
    heir.coordinate()
    assert len(heir.held) == 4
    settle([heir])
    assert in_order(seen) == {"ann": [0, 1, 2]}


def test_one_that_was_slow_cannot_move_the_checkpoint_of_its_successor(
    memory: Store, clock: ManualClock, kit: Bench
) -> None:
    seen: list[int] = []
    slow, heir = WorkerMember(kit.worker.plan, memory), WorkerMember(kit.worker.plan, memory)

    @kit.worker.on(kit.post, "inserted")
    def pause(event: Any, context: Context) -> None:
        number = event.entity.number
        seen.append(number)
        if number == 1 and seen.count(1) == 1:
            clock.advance(31)
            heir.coordinate()
            settle([heir])

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(4))
    slow.coordinate()
    for _ in range(3):
        slow.work()
    assert not slow.held  # it noticed, and does nothing more
    # The first of its page is done again: nothing had been noted when it was taken for dead.
    assert seen == [0, 1, 0, 1, 2, 3]
    settle([heir])
    assert seen == [0, 1, 0, 1, 2, 3]


def test_shares_become_even_one_handover_at_a_time(
    memory: Store, clock: ManualClock, kit: Bench
) -> None:
    recorded(kit)
    kit.worker.create_tables(memory)
    members = [WorkerMember(kit.worker.plan, memory) for _ in range(3)]
    members[0].coordinate()
    for _ in range(6):
        for member in members:
            member.coordinate()
            member.work()
            held = [shard for each in members for shard in each.held]
            assert len(held) == len(set(held))  # nothing is read by two
    assert sorted(len(member.held) for member in members) == [1, 1, 2]
    members[1].release()
    for _ in range(4):
        for member in (members[0], members[2]):
            member.coordinate()
            member.work()
    assert [len(member.held) for member in members] == [2, 0, 2]


def test_a_lease_is_renewed_while_a_handler_is_slow(
    memory: Store, clock: ManualClock, kit: Bench
) -> None:
    other = WorkerMember(kit.worker.plan, memory)
    member = WorkerMember(kit.worker.plan, memory)

    @kit.worker.on(kit.post, "inserted")
    def slow(event: Any, context: Context) -> None:
        for _ in range(5):
            clock.advance(20)
            renewal = threading.Thread(target=member.renew)
            renewal.start()
            renewal.join()
            other.coordinate()
            assert not other.held

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(1))
    member.coordinate()
    assert member.work() == 1
    assert member.progress().dead_letters == 0


def test_stopping_finishes_the_event_and_gives_the_leases_back(memory: Store, kit: Bench) -> None:
    seen: list[int] = []
    member, heir = WorkerMember(kit.worker.plan, memory), WorkerMember(kit.worker.plan, memory)

    @kit.worker.on(kit.post, "inserted")
    def stop(event: Any, context: Context) -> None:
        seen.append(event.entity.number)
        member.stop()

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(3))
    member.run()
    assert (seen, member.held) == ([0], {})
    heir.coordinate()
    assert len(heir.held) == 4  # without waiting for anything to run out
    settle([heir])
    assert seen == [0, 1, 2]


def test_a_store_that_fails_for_a_while_is_waited_for(
    memory: Store, kit: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = recorded(kit)
    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(3))
    chance = random.Random(1)
    fails = refuse(ConnectionFailed("no answer"), lambda *_: chance.random() < 0.2)

    monkeypatch.setattr(memory, "backend", InterceptedBackend(memory.backend, fails))
    member = WorkerMember(kit.worker.plan, memory)
    member.wait = lambda seconds: False
    member.run(until_idle=True)
    assert in_order(seen) == {"ann": [0, 1, 2]}


# Handlers


def test_a_bad_event_spoils_no_others_of_its_page(memory: Store, kit: Bench) -> None:
    calls: list[list[int]] = []

    @kit.worker.on_many(kit.post, "inserted")
    def all_at_once(events: Any, context: Context) -> None:
        numbers = [event.entity.number for event in events]
        calls.append(numbers)
        if 2 in numbers:
            raise ValueError("two")

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(4))
    done = kit.worker.run(memory, until_idle=True)
    assert calls == [[0, 1, 2, 3], [0], [1], [2], [2], [2], [3]]
    assert done.dead_letters == 1


def test_a_page_of_many_has_no_key_of_its_own(memory: Store, kit: Bench) -> None:
    keys: list[str] = []

    @kit.worker.on_many(kit.post)
    def many(events: Any, context: Context) -> None:
        with pytest.raises(UsageError, match="many events"):
            context.key  # noqa: B018

    @kit.worker.on(kit.post)
    def single(event: Any, context: Context) -> None:
        keys.append(context.key)

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(3))
    kit.worker.run(memory, until_idle=True)
    assert len(set(keys)) == 3
    assert all(key.startswith("copying/single/") for key in keys)


def test_handlers_see_only_what_they_are_for(memory: Store, kit: Bench) -> None:
    seen: list[tuple[str, str]] = []

    @kit.worker.on(kit.copy)
    def copies(event: Any, context: Context) -> None:
        seen.append(("copy", event.kind))

    @kit.worker.on(None, "removed")
    def anything(event: Any, context: Context) -> None:
        seen.append(("any", event.kind))

    kit.worker.create_tables(memory)
    memory.put(kit.copy(author="a", number=1))
    post = memory.put(kit.post(author="a", number=1))
    memory.delete(post)
    kit.worker.run(memory, until_idle=True)
    assert sorted(seen) == [("any", "removed"), ("copy", "inserted")]


def test_workers_of_one_table_do_not_disturb_each_other(memory: Store, kit: Bench) -> None:
    seen = recorded(kit)
    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(2))
    kit.worker.run(memory, until_idle=True)
    kit.worker.named("another").run(memory, until_idle=True)
    assert seen == [("ann", 0), ("ann", 1)] * 2


def test_what_cannot_be_meant_is_refused(memory: Store, kit: Bench) -> None:
    recorded(kit)
    with pytest.raises(UsageError, match="handler 'note' already"):
        recorded(kit)
    with pytest.raises(UsageError, match="not a kind of event"):
        kit.worker.on(kit.post, "born")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="stream="):
        Worker("w", Table("plain"))
    for table, leases in (("site", None), (kit.table, "places")):
        with pytest.raises(UsageError, match="is not a table; write"):
            Worker("w", table, leases=leases)  # type: ignore[arg-type]
    for entity in ("Post", int, lambda event, context: None):  # the last as by @worker.on
        with pytest.raises(UsageError, match="is not an entity class"):
            kit.worker.on(entity)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="is in table"):
        kit.worker.on(bench("another-site").post)
    with pytest.raises(UsageError, match="batch"):
        WorkerSettings(batch=0)
    memory.create_tables(Table(kit.table.name))
    with pytest.raises(UsageError, match="has no stream"):
        kit.worker.run(memory, until_idle=True)


def test_a_worker_runs_beside_the_program(memory: Store, kit: Bench) -> None:
    arrived = threading.Event()

    @kit.worker.on(kit.post)
    def note(event: Any, context: Context) -> None:
        arrived.set()

    kit.worker.create_tables(memory)
    with kit.worker.start(memory, workers=2) as running:
        memory.put(kit.post(author="a", number=1))
        assert arrived.wait(10)
    assert running.progress.records == 1
    assert isotone.__version__


def test_a_worker_runs_through_a_boto3_client(memory: Store, kit: Bench) -> None:
    boto3 = pytest.importorskip("boto3")
    seen = recorded(kit)
    client = boto3.client("dynamodb", region_name="eu-west-1")
    with attach(client, memory.backend), isotone.connect(client) as store:
        kit.worker.create_tables(store)
        write(store, kit, "ann", range(3))
        kit.worker.run(store, workers=2, until_idle=True)
    assert seen == [("ann", 0), ("ann", 1), ("ann", 2)]


@pytest.mark.parametrize("events", [1, 2])
def test_handlers_that_take_many_come_after_those_that_take_one(
    memory: Store, kit: Bench, events: int
) -> None:
    called: list[str] = []

    @kit.worker.on_many(kit.post)
    def many(events: Any, context: Context) -> None:
        called.append("many")

    @kit.worker.on(kit.post)
    def one(event: Any, context: Context) -> None:
        called.append("one")

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(events))
    kit.worker.run(memory, until_idle=True)
    assert called == ["one"] * events + ["many"]


def test_one_event_of_a_page_for_a_handler_that_takes_many_is_tried_as_often_as_any(
    memory: Store, kit: Bench
) -> None:
    tries: list[int] = []

    @kit.worker.on_many(kit.post, "inserted")
    def fail(events: Any, context: Context) -> None:
        tries.append(context.attempt)
        raise ValueError("no")

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(1))
    memory.delete(kit.post, author="ann", number=0)
    kit.worker.run(memory, until_idle=True)
    assert tries == [1, 2, 3]
