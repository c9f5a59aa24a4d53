"""Streams that change under a worker: shards split and grow old, streams end and begin anew."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from tests.structures.working import Bench, bench, in_order, recorded, settle, write

from isotone import ManualClock, Store, Table
from isotone.engine import streams
from isotone.errors import ResourceNotFoundException, TrimmedDataAccessException
from isotone.structures import Context, WorkerSettings
from isotone.structures.worker_leases import WorkerLease, WorkerStart
from isotone.structures.worker_members import WorkerMember


@pytest.fixture
def kit(table_name: str) -> Bench:
    return bench(table_name)


# Shards that end


def test_a_closed_shard_that_was_left_half_way_is_not_finished(
    memory: Store, kit: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SHARD_RECORDS", 1)
    seen: list[int] = []
    member = WorkerMember(kit.worker.plan, memory)

    @kit.worker.on(kit.post, "inserted")
    def stop(event: Any, context: Context) -> None:
        seen.append(event.entity.number)
        member.stop()

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(6))
    memory.backend.finish_maintenance()
    member.run()
    assert seen == [0]
    settle([WorkerMember(kit.worker.plan, memory)])
    assert seen == [*range(6)]


def test_what_follows_a_shard_is_read_as_soon_as_it_is_over(
    memory: Store, kit: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SHARD_RECORDS", 2)
    arrived = threading.Event()

    @kit.worker.on(kit.post, "inserted")
    def note(event: Any, context: Context) -> None:
        if event.entity.number == 9:
            arrived.set()

    kit.worker.create_tables(memory)
    with kit.worker.start(memory, settings=WorkerSettings(lease=300, poll=0.01)):
        time.sleep(0.2)  # until it holds what there is, and looks around a lease later again
        for number in range(10):
            write(memory, kit, "ann", range(number, number + 1))
            memory.backend.finish_maintenance()
        assert arrived.wait(20)


def test_a_lease_that_was_dropped_with_its_shard_is_lost(memory: Store, kit: Bench) -> None:
    recorded(kit)
    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(2))
    member = WorkerMember(kit.worker.plan, memory)
    member.coordinate()
    memory.delete_many(memory.all(leases_of(kit)))
    member.renew()
    member.work()
    assert member.held == {}


def test_a_shard_that_is_dropped_while_its_records_are_is_over(
    memory: Store, kit: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(kit)
    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(2))
    member = WorkerMember(kit.worker.plan, memory)
    member.coordinate()
    execute = memory.backend.execute
    begun: set[str] = set()

    class Dropping:
        def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
            if operation == "GetRecords":
                raise TrimmedDataAccessException("these records are gone")
            if operation == "GetShardIterator":
                if request["ShardId"] in begun:
                    raise ResourceNotFoundException("and now their shard")
                begun.add(request["ShardId"])
            return execute(operation, request)

    with monkeypatch.context() as patched:
        patched.setattr(memory, "backend", Dropping())
        member.work()
    assert begun
    assert member.held == {}


# Times


@pytest.mark.parametrize("many", [False, True])
def test_order_holds_over_split_shards(
    memory: Store, clock: ManualClock, kit: Bench, monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    monkeypatch.setattr(streams, "SHARD_RECORDS", 3)
    seen: list[tuple[str, int]] = []
    declare = kit.worker.on_many if many else kit.worker.on

    @declare(kit.post, "inserted")
    def note(events: Any, context: Context) -> None:
        found = events if many else [events]
        seen.extend((event.entity.author, event.entity.number) for event in found)

    kit.worker.create_tables(memory)
    database = memory.backend
    members = [WorkerMember(kit.worker.plan, memory) for _ in range(2)]
    for number in range(30):
        for author in "abc":
            memory.put(kit.post(author=author, number=number))
        if number % 7 == 0:
            database.finish_maintenance()
        if number % 5 == 0:
            members[number % 2].coordinate()
            members[number % 2].work()
    settle(members)
    assert seen == list(dict.fromkeys(seen))
    assert in_order(seen) == {author: [*range(30)] for author in "abc"}


def test_a_worker_that_slept_for_days_continues_with_what_is_left(
    memory: Store, clock: ManualClock, kit: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    seen = recorded(kit)
    kit.worker.create_tables(memory)
    database = memory.backend
    write(memory, kit, "ann", range(3))
    kit.worker.run(memory, until_idle=True)
    for day in range(3):
        write(memory, kit, "ann", range(10 * day + 10, 10 * day + 12))
        clock.advance(24 * 3600 - 60)
        database.finish_maintenance()
    write(memory, kit, "ann", range(90, 92))
    done = kit.worker.run(memory, until_idle=True)
    assert [number for _, number in seen][-4:] == [30, 31, 90, 91]
    assert done.lost > 0
    assert "dropped" in caplog.text


def test_positions_that_grow_old_are_taken_anew(
    memory: Store, clock: ManualClock, kit: Bench
) -> None:
    seen = recorded(kit)
    kit.worker.create_tables(memory)
    member = WorkerMember(kit.worker.plan, memory)
    member.coordinate()
    for number in range(4):
        write(memory, kit, "ann", range(number, number + 1))
        clock.advance(20)
        member.renew()
        member.work()
        for _ in range(50):
            clock.advance(20)
            member.renew()
    settle([member])
    assert seen == [("ann", number) for number in range(4)]


def test_latest_is_from_the_first_start_on(memory: Store, clock: ManualClock, kit: Bench) -> None:
    seen = recorded(kit)
    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(3))
    clock.advance(5)
    settings = WorkerSettings(start="LATEST", poll=0.0)
    kit.worker.run(memory, until_idle=True, settings=settings)
    write(memory, kit, "ann", range(3, 5))
    kit.worker.run(memory, until_idle=True, settings=settings)
    assert seen == [("ann", 3), ("ann", 4)]


def test_expired_items_are_distinguished(memory: Store, clock: ManualClock) -> None:
    from datetime import UTC, datetime, timedelta

    from isotone import Attr, Entity, Key, expires, field

    table = Table("sessions", stream="OLD_IMAGE")

    class Session(Entity, table=table):
        user: Attr[str] = field()
        until: Attr[datetime | None] = expires()
        primary = Key("SESSION", user).sort("SESSION")

    memory.create_tables(table)
    soon = datetime.fromtimestamp(clock.now(), UTC) + timedelta(seconds=10)
    memory.put(Session(user="a", until=soon))
    memory.put(Session(user="b"))
    memory.delete(Session, user="b")
    clock.advance(60)
    memory.backend.finish_maintenance()
    removed = [each for each in memory.changes(table) if each.kind == "removed"]
    assert {each.entity.user: each.expired for each in removed} == {"a": True, "b": False}


# Streams that end


def leases_of(kit: Bench) -> Any:
    return kit.worker.leases.entities[WorkerLease.__name__].entity.primary.scan()


def starts_of(kit: Bench) -> Any:
    return kit.worker.leases.entities[WorkerStart.__name__].entity.primary.scan()


def begin_anew(store: Store, kit: Bench) -> None:
    """Disable the table's stream, and enable another."""
    client = store.backend.client()
    client.update_table(TableName=kit.table.name, StreamSpecification={"StreamEnabled": False})
    client.update_table(
        TableName=kit.table.name,
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )


def test_a_stream_that_is_enabled_anew_is_gone_over_to(memory: Store, kit: Bench) -> None:
    seen = recorded(kit)
    kit.worker.create_tables(memory)
    member = WorkerMember(kit.worker.plan, memory)
    write(memory, kit, "ann", range(2))
    settle([member])
    begin_anew(memory, kit)
    write(memory, kit, "ann", range(2, 4))
    settle([member])
    assert seen == [("ann", number) for number in range(4)]


@pytest.mark.parametrize("start", ["TRIM_HORIZON", "LATEST"])
def test_what_was_unread_in_a_stream_that_ended_is_handled_before_the_new_one(
    memory: Store, clock: ManualClock, kit: Bench, start: Any
) -> None:
    seen = recorded(kit)
    settings = WorkerSettings(start=start, poll=0.0)
    kit.worker.create_tables(memory)
    kit.worker.run(memory, until_idle=True, settings=settings)
    for number in range(0, 9, 3):
        write(memory, kit, "ann", range(number, number + 3))
        clock.advance(5)
        begin_anew(memory, kit)
        if number == 3:  # the second one has been looked at, and the first is read
            WorkerMember(kit.worker.plan, memory, settings).coordinate()
            clock.advance(31)
    members = [WorkerMember(kit.worker.plan, memory, settings) for _ in range(2)]
    for member in members:
        member.coordinate()
    write(memory, kit, "ann", range(9, 12))
    settle(members)
    assert seen == [("ann", number) for number in range(12)]


def test_until_idle_goes_through_the_old_stream_and_the_new(memory: Store, kit: Bench) -> None:
    seen = recorded(kit)
    kit.worker.create_tables(memory)
    kit.worker.run(memory, until_idle=True)
    write(memory, kit, "ann", range(3))
    begin_anew(memory, kit)
    write(memory, kit, "ann", range(3, 6))
    kit.worker.run(memory, workers=3, until_idle=True)
    assert seen == [("ann", number) for number in range(6)]


def test_a_stream_that_was_dropped_unread_is_reported_and_forgotten(
    memory: Store, clock: ManualClock, kit: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    seen = recorded(kit)
    kit.worker.create_tables(memory)
    kit.worker.run(memory, until_idle=True)
    write(memory, kit, "ann", range(3))
    begin_anew(memory, kit)
    clock.advance(25 * 3600)
    memory.backend.finish_maintenance()
    write(memory, kit, "ann", range(3, 5))
    done = kit.worker.run(memory, until_idle=True)
    assert seen == [("ann", 3), ("ann", 4)]
    assert done.lost == 4
    assert "dropped before it was read to its end" in caplog.text
    assert memory.count(starts_of(kit)) == 1
    again = kit.worker.run(memory, until_idle=True)
    assert again.lost == 0


def test_a_stream_that_was_read_to_its_end_is_forgotten_in_silence(
    memory: Store, clock: ManualClock, kit: Bench
) -> None:
    recorded(kit)
    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(3))
    begin_anew(memory, kit)
    settle([WorkerMember(kit.worker.plan, memory)])
    clock.advance(25 * 3600)
    memory.backend.finish_maintenance()
    done = kit.worker.run(memory, until_idle=True)
    assert (done.lost, memory.count(starts_of(kit))) == (0, 1)


def test_workers_of_one_name_on_two_tables_keep_to_their_own(memory: Store) -> None:
    """Their places may lie in one table."""
    kits = [bench(), bench()]
    leases = Table("places-of-all")
    seen = []
    for kit in kits:
        kit.worker.create_tables(memory)
        write(memory, kit, "ann", range(2))
        worker = type(kit.worker)("both", kit.table, leases=leases)
        worker.on(kit.post)(lambda event, context: seen.append(event.entity.number))
        worker.create_tables(memory)
        worker.run(memory, until_idle=True)
    assert seen == [0, 1, 0, 1]
