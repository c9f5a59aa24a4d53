"""What an engine cannot do is refused where a table, a structure or a transaction is made."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

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
from isotone.structures import Counter, Feed, Leaderboard, Queue, SortedSet, TimeSeries, Worker

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
        ("transactions", lambda store: Leaderboard(store, "a", ranked=True)),
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


# Without transactions

SCORES = st.dictionaries(st.sampled_from("abcdef"), st.integers(-3, 3), min_size=1)
COMMANDS = st.one_of(
    st.tuples(st.just("zadd"), SCORES),
    st.tuples(st.just("zrem"), st.lists(st.sampled_from("abcdef"), min_size=1)),
    st.tuples(st.just("zincrby"), st.integers(-2, 2), st.sampled_from("abcdef")),
    st.tuples(st.just("zpopmin"), st.integers(1, 3)),
    st.tuples(st.just("zadd_nx"), SCORES),
)


@given(st.lists(COMMANDS, max_size=12), st.integers(1, 3))
@settings(max_examples=examples(40), deadline=None)
def test_a_set_without_transactions_is_the_same_set(commands: list[Any], shards: int) -> None:
    operations: list[str] = []
    observe = [isotone.at_end(lambda each: operations.append(each.operation))]
    with isotone.connect(engine="alternator", observe=observe) as store:
        tried = SortedSet(store, "a", shards=shards)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tried.create_table()
        model: dict[str, int] = {}
        for name, *arguments in commands:
            if name == "zadd":
                tried.zadd(arguments[0])
                model |= arguments[0]
            elif name == "zadd_nx":
                new = {key: value for key, value in arguments[0].items() if key not in model}
                assert tried.zadd(arguments[0], nx=True) == len(new)
                model |= new
            elif name == "zrem":
                gone = model.keys() & set(arguments[0])
                assert tried.zrem(*arguments[0]) == len(gone)
                model = {key: model[key] for key in model.keys() - gone}
            elif name == "zincrby":
                by, member = arguments
                model[member] = model.get(member, 0) + by
                assert tried.zincrby(by, member) == model[member]
            else:
                first = sorted((score, member) for member, score in model.items())[: arguments[0]]
                assert [m for m, _ in tried.zpopmin(arguments[0])] == [m for _, m in first]
                for _, member in first:
                    del model[member]
        order = sorted(model, key=lambda member: (model[member], member))
        assert tried.zrange(0, -1) == order
        assert [tried.zrank(member) for member in order] == list(range(len(order)))
    assert not {each for each in operations if each.startswith("Transact")}


def test_a_queue_without_transactions() -> None:
    with isotone.connect(engine="alternator") as store:
        jobs = Queue(store, "jobs")
        with pytest.warns(
            isotone.EngineWarning, match="index 'queue' of table 'queues' stores all"
        ):
            jobs.create_table()
        jobs.put("one")
        jobs.put_many(["two", "three"])
        claimed = jobs.claim(3)
        assert [message.body for message in claimed] == ["one", "two", "three"]
        jobs.acknowledge(claimed[0])
        jobs.bury(claimed[1], "broken")
        assert [letter.body for letter in jobs.dead_letters()] == ["two"]
        for use in ({"group": "ann"}, {"token": "once"}):
            with pytest.raises(Unsupported, match="needs transactions, which Alternator does not"):
                jobs.put("four", **use)


def test_a_worker_is_refused_without_streams_and_warned_of_inexact_ones() -> None:
    site = Table("site", stream="NEW_AND_OLD_IMAGES")
    worker = Worker("counting", site)
    worker.on()(lambda event, context: None)
    with (
        isotone.connect(engine="alternator") as store,
        pytest.raises(Unsupported, match="worker 'counting' needs streams, which Alternator does"),
    ):
        worker.run(store)
    inexact = Capabilities("Mine", exact_streams=False)
    with isotone.connect(capabilities=inexact) as store:
        worker.create_tables(store)
        with pytest.warns(isotone.EngineWarning, match="stream of Mine may have several events"):
            worker.run(store, until_idle=True)
