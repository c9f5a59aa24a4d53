"""What an engine cannot do is refused where a table, a structure or a transaction is made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import isotone
from isotone import Attr, Capabilities, Entity, Key, Local, Store, Table, expires, field
from isotone.backends.interface import Tape
from isotone.errors import Unsupported
from isotone.structures import Counter, Feed, Leaderboard, SortedSet, TimeSeries

people = Table("people")


class Person(Entity, table=people):
    email: Attr[str] = field()
    nick: Attr[str] = field(unique=True)
    primary = Key("PERSON", email).sort("PERSON")


sessions = Table("sessions")


class Session(Entity, table=sessions):
    token: Attr[str] = field()
    until: Attr[object] = expires()
    primary = Key("SESSION", token).sort("SESSION")


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
        ("expiry", lambda store: store.create_tables(sessions)),
        (
            "local_indexes",
            lambda store: store.create_tables(Table("t12", indexes={"l12": Local("b")})),
        ),
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
    none = Capabilities(transactions=False, streams=False, expiry=False, local_indexes=False)
    with isotone.connect(":memory:", capabilities=none) as store:
        store.create_tables(Table("plain"))
        plain = SortedSet(store, "a")
        assert plain.name == "a"
        assert Counter(store, "hits").name == "hits"
        assert TimeSeries(store, "sensors", roll_ups={}).name == "sensors"
