"""What an engine cannot do is refused where a table, a structure or a transaction is made."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

import isotone
from isotone import (
    Attr,
    Capabilities,
    Entity,
    Global,
    Key,
    Local,
    Store,
    Table,
    expires,
    field,
    version,
)
from isotone.backends.interface import Tape
from isotone.errors import Unsupported
from isotone.structures import Counter, Feed, Leaderboard, Queue, SortedSet, TimeSeries

people = Table("people")


class Person(Entity, table=people):
    email: Attr[str] = field()
    nick: Attr[str] = field(unique=True)
    primary = Key("PERSON", email).sort("PERSON")


sessions = Table("sessions")


class Session(Entity, table=sessions):
    token: Attr[str] = field()
    until: Attr[datetime] = expires()
    primary = Key("SESSION", token).sort("SESSION")


indexed = Table("indexed", indexes={"wide": Global(("a", "b"), "c")})

notes = Table("notes")


class Note(Entity, table=notes):
    name: Attr[str] = field()
    revision: Attr[int] = version()
    primary = Key("NOTE", name).sort("NOTE")


@pytest.mark.parametrize(
    ("lacking", "make"),
    [
        ("transactions", lambda store: store.create_tables(people)),
        ("transactions", lambda store: store.transaction()),
        ("transactions", lambda store: SortedSet(store, "a", ranked=True)),
        ("transactions", lambda store: Leaderboard(store, "a")),
        ("transactions", lambda store: TimeSeries(store, "sensors")),
        ("transactions", lambda store: Feed(store)),
        ("streams", lambda store: Feed(store)),
        ("streams", lambda store: store.create_tables(Table("logs", stream="KEYS_ONLY"))),
        (
            "local_indexes",
            lambda store: store.create_tables(Table("t12", indexes={"l12": Local("b")})),
        ),
        ("local_indexes", lambda store: SortedSet(store, "a")),
        ("global_indexes", lambda store: Queue(store, "a")),
        ("global_indexes", lambda store: store.create_tables(indexed)),
        ("wide_index_keys", lambda store: store.create_tables(indexed)),
        ("transactions", lambda store: store.put(Person(email="a@b", nick="ann"))),
        ("conditional_writes", lambda store: store.create_tables(notes)),
        ("conditional_writes", lambda store: store.put(Note(name="a"))),
    ],
)
def test_what_needs_more_is_refused_before_anything_is_sent(
    lacking: str, make: Callable[[Store], object]
) -> None:
    tape = Tape()
    store = isotone.connect(tape, capabilities=Capabilities(**{lacking: False}))
    with pytest.raises(Unsupported, match=f"needs {lacking.replace('_', ' ')}, which this engine"):
        make(store)
    assert not tape.asked


def test_what_needs_less_works() -> None:
    none = Capabilities(transactions=False, streams=False, expiry=False)
    with isotone.connect(":memory:", capabilities=none) as store:
        store.create_tables(Table("plain"))
        plain = SortedSet(store, "a")
        assert plain.name == "a"
        assert Counter(store, "hits").name == "hits"
        assert TimeSeries(store, "sensors", roll_ups={}).name == "sensors"


def test_a_missing_index_is_not_added_where_that_is_impossible() -> None:
    lacking = Capabilities("Mine", added_indexes=False)
    grown = Table("plain", indexes={"late": Global("a", "b")})
    with isotone.connect(":memory:", capabilities=lacking) as store:
        store.create_tables(Table("plain"))
        with pytest.raises(Unsupported, match="create the table again with the index"):
            store.add_indexes(grown)


def test_a_key_of_a_type_that_the_engine_lacks() -> None:
    texts = Capabilities("Mine", key_types=frozenset({"S"}))
    readings = Table("readings", sort=isotone.Number("at"))
    with (
        isotone.connect(":memory:", capabilities=texts) as store,
        pytest.raises(
            Unsupported, match="'at' of table 'readings' has type N, and Mine has keys of type S"
        ),
    ):
        store.create_tables(readings)


def test_what_expires_stays_stored_where_nothing_deletes_it() -> None:
    keeping = Capabilities("Mine", expiry=False)
    clock = isotone.ManualClock(1_000.0)
    with isotone.connect(":memory:", capabilities=keeping, clock=clock) as store:
        with pytest.warns(
            isotone.EngineWarning, match="Session of table 'sessions' expires, but Mine"
        ):
            store.create_tables(sessions)
        store.put(Session(token="a", until=datetime.fromtimestamp(1_010, UTC)))
        assert store.differences(sessions) == []
        clock.advance(20)
        assert store.get(Session, token="a") is None
