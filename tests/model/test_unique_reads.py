"""`store.get(User, mail=…)`: entities that are found by a unique value."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.conftest import START, Desk

import isotone
from isotone import Attr, Entity, Key, Table, expires, field
from isotone.errors import NotUnique, UsageError

club = Table("club")
halls = Table("halls")


class Member(Entity, table=club):
    number: Attr[int] = field(max=999)
    mail: Attr[str | None] = field(default=None, unique=True, case="casefold")
    team: Attr[str] = field(default="A")
    shirt: Attr[int | None] = field(default=None, unique=(team,))
    until: Attr[datetime | None] = expires(default=None)

    primary = Key("MEMBER", number).sort("MEMBER")


class Seat(Entity, table=halls):
    hall: Attr[str] = field()
    row: Attr[int] = field(max=999, was=99)
    ticket: Attr[str] = field(unique=True)

    primary = Key("HALL", hall).sort("ROW", row)


@pytest.fixture
def store(desk: Desk) -> isotone.Store:
    desk.store.create_tables(club, halls)
    return desk.store


def test_a_unique_value_finds_its_entity(desk: Desk, store: isotone.Store) -> None:
    ann = store.put(Member(number=1, mail="Ann@Example.com", shirt=7))
    bo = store.put(Member(number=2, mail="bo@example.com", team="B", shirt=7))
    assert store.get(Member, mail="ann@example.com") == ann
    assert store.get(Member, mail="BO@EXAMPLE.COM") == bo
    assert store.get(Member, mail="cy@example.com") is None
    assert store.get(Member, team="A", shirt=7) == ann
    assert store.get(Member, shirt=7, team="B") == bo
    assert store.get(Member, shirt=8, team="B") is None
    asked = desk.operations(lambda: store.get(Member, mail="ann@example.com"))
    assert asked == ["GetItem", "GetItem"]
    assert all(request["ConsistentRead"] for _, request in desk.asked)


def test_a_value_that_changed_finds_its_owner(store: isotone.Store) -> None:
    store.put(Member(number=1, mail="a@x"))
    store.update(Member, Member.mail.set("b@x"), number=1)
    assert store.get(Member, mail="a@x") is None
    store.move(Member, Member.number.set(3), number=1)
    found = store.get(Member, mail="b@x")
    assert found is not None
    assert found.number == 3
    store.delete(found)
    assert store.get(Member, mail="b@x") is None


def test_an_expired_entity_is_not_found(desk: Desk, store: isotone.Store) -> None:
    store.put(Member(number=1, mail="a@x", until=START + timedelta(hours=1)))
    assert store.get(Member, mail="a@x") is not None
    desk.clock.advance(3600)
    assert store.get(Member, mail="a@x") is None


def test_a_write_between_the_two_reads(desk: Desk, store: isotone.Store) -> None:
    store.put(Member(number=1, mail="a@x"))
    store.put(Member(number=2, mail="b@x"))
    other = isotone.connect(desk.backend, clock=desk.clock)

    def swap() -> None:  # after the marker was read
        other.update(Member, Member.mail.remove(), number=1)
        other.update(Member, Member.mail.set("a@x"), number=2)

    desk.before["GetItem"] = lambda: desk.before.update(GetItem=swap)
    found = store.get(Member, mail="a@x")
    assert found is not None
    assert found.number == 2

    desk.before["GetItem"] = lambda: desk.before.update(
        GetItem=lambda: other.delete(Member, number=2)
    )
    assert store.get(Member, mail="a@x") is None


def test_a_stale_marker_finds_nothing(desk: Desk, store: isotone.Store) -> None:
    store.put(Member(number=1, mail="a@x"))
    request: Any = {"TableName": "club", "Key": {"PK": {"S": "MEMBER#001"}, "SK": {"S": "MEMBER"}}}
    removal = {"UpdateExpression": "REMOVE mail"}
    desk.backend.execute("UpdateItem", {**request, **removal})  # by another program
    assert store.get(Member, mail="a@x") is None
    desk.backend.execute("DeleteItem", request)
    assert store.get(Member, mail="a@x") is None
    marker = {"PK": {"S": "_unique#Member#mail#c@x"}, "SK": {"S": "_unique"}}
    desk.backend.execute("PutItem", {"TableName": "club", "Item": marker})
    assert store.get(Member, mail="c@x") is None


def test_while_keys_are_widened(desk: Desk, store: isotone.Store) -> None:
    class Before(Entity, table=Table("halls"), tag="Seat"):
        hall: Attr[str] = field()
        row: Attr[int] = field(max=99)
        ticket: Attr[str] = field(unique=True)

        primary = Key("HALL", hall).sort("ROW", row)

    isotone.connect(desk.backend, check_keys=False).put(Before(hall="a", row=7, ticket="t"))
    assert store.get(Seat, ticket="t") == Seat(hall="a", row=7, ticket="t")
    store.widen(Seat)
    assert store.get(Seat, ticket="t") == Seat(hall="a", row=7, ticket="t")
    assert store.get(Seat, ticket="u") is None


def test_other_fields_are_refused(store: isotone.Store) -> None:
    with pytest.raises(UsageError, match=r"team is not a part of its key$"):
        store.get(Member, number=1, team="A")
    with pytest.raises(UsageError, match=r"only store\.get finds an entity by the unique mail"):
        store.delete(Member, mail="a@x")
    with pytest.raises(UsageError, match=r"only store\.get finds an entity by the unique shirt"):
        store.get(Member, shirt=1)
    with pytest.raises(UsageError, match="many may have no 'mail'"):
        store.get(Member, mail=None)
    with pytest.raises(UsageError, match="mail"):
        store.get(Member, mail=7)
    with pytest.raises(UsageError, match=r"only store\.get"), store.transaction() as tx:
        tx.get(Member, mail="a@x")


def test_an_async_store_finds_by_a_unique_value() -> None:
    async def talk() -> None:
        async with isotone.aconnect() as store:
            await store.create_tables(club)
            ann = await store.put(Member(number=1, mail="a@x"))
            assert await store.get(Member, mail="A@x") == ann

    asyncio.run(talk())


numbers = st.integers(1, 4)
mails = st.sampled_from([None, "a@x", "A@X", "b@x", "c#x"])


@given(st.lists(st.tuples(numbers, mails, st.sampled_from(["put", "update", "delete"]))))
def test_each_history_finds_who_has_the_value(history: list[tuple[int, str | None, str]]) -> None:
    has: dict[int, str | None] = {}
    with isotone.connect() as store:
        store.create_tables(club)
        for number, mail, call in history:
            others = {each.casefold() for n, each in has.items() if n != number and each}
            try:
                if call == "delete":
                    store.delete(Member, number=number)
                    has.pop(number, None)
                    continue
                if call == "put":
                    store.put(Member(number=number, mail=mail))
                else:
                    store.upsert(Member, Member.mail.set(mail), number=number)
            except NotUnique:
                assert mail is not None
                assert mail.casefold() in others
            else:
                has[number] = mail
        for mail in ("a@x", "B@x", "c#x"):
            found = store.get(Member, mail=mail)
            owners = [n for n, each in has.items() if each and each.casefold() == mail.casefold()]
            assert ([] if found is None else [found.number]) == owners
