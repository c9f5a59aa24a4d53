"""Ids that contain their time: ranges by time, and ids made by the store's clock."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.conftest import START, Desk

import isotone
from isotone import (
    KSUID,
    ULID,
    Attr,
    Entity,
    Global,
    Index,
    Key,
    ManualClock,
    Table,
    created,
    created_id,
    desc,
    field,
    time_of,
)
from isotone.codec.ids import Ksuids, Ulids, Uuid7s
from isotone.errors import OutOfRange, UsageError

logs = Table("logs", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Line(Entity, table=logs):
    run: Attr[str] = field()
    uid: Attr[ULID] = field(default_factory=ULID.new)
    other: Attr[KSUID | None] = field(default=None)
    third: Attr[UUID] = field(default_factory=isotone.uuid7)
    at: Attr[datetime] = field(default=START)

    primary = Key("RUN", run).sort("LINE", uid)
    by_ksuid = Index("GSI1", "RUN", run).sort("K", desc(other))


class Ticket(Entity, table=logs):
    uid: Attr[ULID] = created_id()
    made: Attr[datetime] = created()
    title: Attr[str] = field(default="")

    primary = Key("TICKET", uid).sort("TICKET")


class Event(Entity, table=logs):
    name: Attr[str] = field()
    count: Attr[int] = field(default=0)
    uid: Attr[UUID] = created_id()

    primary = Key("EVENT", name).sort("EVENT")


MOMENTS = [START + timedelta(milliseconds=400 * number) for number in range(12)]


def ids(sequence: Any, clock: ManualClock) -> list[Any]:
    made = []
    for moment in MOMENTS:
        clock.set(moment)
        made.append(sequence.new())
    return made


@pytest.fixture
def store(desk: Desk) -> isotone.Store:
    desk.store.create_tables(logs)
    clock = ManualClock(START)
    kinds = (Ulids(clock), Ksuids(clock), Uuid7s(clock))
    for ulid, ksuid, uuid in zip(*(ids(kind, clock) for kind in kinds), strict=True):
        desk.store.put(Line(run="r", uid=ulid, other=ksuid, third=uuid))
    return desk.store


def rounded(at: datetime, tick: timedelta) -> datetime:
    return at - (at - datetime(1970, 1, 1, tzinfo=UTC)) % tick


def test_ids_are_read_by_time(store: isotone.Store) -> None:
    start, end = MOMENTS[3], MOMENTS[7]
    query = Line.primary.where(Line.run == "r", Line.uid.since(start), Line.uid.before(end))
    assert [time_of(line.uid) for line in store.all(query)] == MOMENTS[3:7]
    assert [
        time_of(line.third)
        for line in store.all(Line.primary.where(Line.run == "r").filter(Line.third.since(end)))
    ] == MOMENTS[7:]
    second = START + timedelta(seconds=2)
    ksuids = Line.by_ksuid.where(
        Line.run == "r", Line.other.since(second + timedelta(milliseconds=700))
    )
    assert [time_of(line.third) for line in store.all(ksuids)] == MOMENTS[:4:-1]
    assert len(store.all(Line.primary.where(Line.run == "r", Line.uid.since(START)))) == 12
    assert store.all(Line.primary.where(Line.run == "r", Line.uid.before(START))) == []


@given(st.datetimes(timezones=st.just(UTC)), st.sampled_from([KSUID, ULID, UUID]))
def test_since_and_before_divide_all_ids_at_a_time(at: datetime, kind: type[Any]) -> None:
    of = {KSUID: Line.other, ULID: Line.uid, UUID: Line.third}
    column: Any = of[kind]
    tick = timedelta(seconds=1) if kind is KSUID else timedelta(milliseconds=1)
    sequences: dict[Any, Any] = {KSUID: Ksuids, ULID: Ulids, UUID: Uuid7s}
    for moment in (at, at - tick, START, datetime(9999, 12, 31, tzinfo=UTC)):
        try:
            made = sequences[kind](ManualClock(moment)).new()
        except OutOfRange:
            continue
        item = {column.attribute: column.encode(made)}
        from isotone.expressions import CompiledCondition

        since = CompiledCondition.from_node(column.since(at).node()).matches(item, {})
        before = CompiledCondition.from_node(column.before(at).node()).matches(item, {})
        assert since is not before
        assert since == (time_of(made) >= rounded(at, tick))


@given(
    st.datetimes(
        min_value=datetime(2015, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC)
    )
)
def test_the_first_and_the_last_id_of_a_time(at: datetime) -> None:
    for kind, sequence in ((KSUID, Ksuids), (ULID, Ulids)):
        made: Any = sequence(ManualClock(at)).new()
        first, last = kind.first(time_of(made)), kind.last(time_of(made))
        assert first <= made <= last
        assert time_of(first) == time_of(last) == time_of(made)
        assert isinstance(first, kind)


def test_times_that_no_id_can_hold() -> None:
    with pytest.raises(OutOfRange, match=r"1999.*a KSUID can hold"):
        KSUID.first(datetime(1999, 1, 1, tzinfo=UTC))
    with pytest.raises(UsageError, match="has no time zone"):
        ULID.first(datetime(2026, 1, 1))
    with pytest.raises(UsageError, match="has no time zone"):
        Line.uid.since(datetime(2026, 1, 1))
    with pytest.raises(UsageError, match=r"since\(\) is for ids.*'at' is datetime; write at >="):
        Line.at.since(START)
    with pytest.raises(UsageError, match=r"before\(3\) takes a datetime"):
        Line.uid.before(3)  # type: ignore[arg-type]


def test_an_id_is_made_by_the_stores_clock(desk: Desk) -> None:
    desk.store.create_tables(logs)
    for number in range(3):
        desk.clock.advance(60)
        ticket = desk.store.create(Ticket(title=str(number)))
        assert time_of(ticket.uid) == ticket.made == START + timedelta(minutes=number + 1)
        assert desk.store.get(Ticket, uid=ticket.uid) == ticket
        assert desk.store.put(ticket).uid == ticket.uid
    tickets = [Ticket(title=str(number)) for number in range(40)]
    desk.store.put_many(tickets)
    assert len({ticket.uid for ticket in tickets}) == 40
    assert {time_of(ticket.uid) for ticket in tickets} == {START + timedelta(minutes=3)}
    with desk.store.transaction() as tx:
        tx.create(one := Ticket(title="one"))
        tx.put(other := Ticket(title="other"))
    assert one.uid < other.uid
    assert desk.store.get(Ticket, uid=one.uid) is not None


def test_every_attempt_writes_the_same_id(desk: Desk) -> None:
    desk.store.create_tables(logs)
    ticket = Ticket(title="a")

    def fail() -> None:
        raise isotone.errors.ConnectionFailed("gone")

    desk.before["PutItem"] = fail
    with pytest.raises(isotone.errors.ConnectionFailed):
        desk.store.create(ticket)
    first = ticket.uid
    assert desk.store.create(ticket).uid == first


def test_an_upsert_makes_an_id(desk: Desk) -> None:
    desk.store.create_tables(logs)
    made = desk.store.upsert(Event, Event.count.add(1), name="a")
    assert time_of(made.uid) == START
    desk.clock.advance(60)
    assert desk.store.upsert(Event, Event.count.add(1), name="a").uid == made.uid
    given_id = uuid4()
    assert (
        desk.store.put(Event.from_trusted({"name": "b", "uid": given_id, "count": 0})).uid
        == given_id
    )


def test_only_ids_are_made() -> None:
    with pytest.raises(
        UsageError, match=r"made by created_id\(\), so its type is KSUID, ULID or UUID"
    ):

        class Wrong(Entity, table=Table("wrong")):
            uid: Attr[str] = created_id()
            primary = Key("WRONG", uid).sort("WRONG")


def test_an_async_store_makes_ids() -> None:
    async def talk() -> None:
        async with isotone.aconnect(clock=ManualClock(START)) as store:
            await store.create_tables(logs)
            ticket = await store.create(Ticket(title="a"))
            assert time_of(ticket.uid) == START

    asyncio.run(talk())


@pytest.mark.parametrize("returned", ["returning", "requests"])
def test_writes_with_another_result_take_the_clock_of_the_store(returned: str) -> None:
    store = isotone.connect(isotone.open(), clock=ManualClock(START))
    store.create_tables(logs)
    ticket = Ticket()
    if returned == "returning":
        store.returning("old").put(ticket)
        uid = ticket.uid
    else:
        uid = ULID(store.requests.put(ticket)["Item"]["uid"]["S"])
    assert time_of(uid) == START
