"""Upserts: an update where there is an entity, and a new entity where there is none."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples

from isotone import (
    Attr,
    Binary,
    Entity,
    Global,
    Index,
    Key,
    Local,
    Number,
    Table,
    computed,
    created,
    expires,
    field,
    updated,
    version,
)
from isotone.errors import ConditionFailed, NotUnique, UsageError

START = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
things = Table("things", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Counter(Entity, table=things):
    name: Attr[str] = field()
    count: Attr[int] = field(default=0)
    by_day: Attr[dict[str, int]] = field(default_factory=dict)
    step: Attr[int] = field(default=10)
    made: Attr[datetime | None] = created()
    changed: Attr[datetime | None] = updated()
    revision: Attr[int] = version()

    primary = Key("COUNTER", name).sort("COUNTER")
    all = Index("GSI1", "COUNTERS").sort(name)


class Score(Entity, table=things):
    game: Attr[str] = field()
    points: Attr[int] = field(default=0, max=999, alert=2)
    level: Attr[str] = field()
    handle: Attr[str | None] = field(default=None, unique=True)
    until: Attr[datetime | None] = expires()
    title: Attr[str] = computed(lambda score: f"{score.level} {score.points}")

    primary = Key("GAME", game).sort("SCORE")
    by_points = Index("GSI1", "SCORES").sort(points)


class Visits(Entity, table=things):
    page: Attr[str] = field()
    count: Attr[int] = field(default=0)
    until: Attr[datetime | None] = expires()

    primary = Key("VISITS", page).sort("VISITS")


boards = Table("boards", indexes={"by_points": Local(Number("points"))})


class Player(Entity, table=boards):
    game: Attr[str] = field()
    name: Attr[str] = field()
    points: Attr[Decimal] = field(default=Decimal(0))

    primary = Key("GAME", game).sort("PLAYER", name)
    by_points = Index("by_points", "GAME", game).sort(points)


@pytest.fixture
def upserts(desk: Any) -> Any:
    desk.store.create_tables(things)
    return desk


def test_a_counter_is_one_write_from_the_first_on(upserts: Any) -> None:
    def count() -> Any:
        return upserts.store.upsert(Counter, Counter.count.add(1), name="a")

    assert upserts.operations(count) == ["UpdateItem"]
    upserts.clock.advance(60)
    assert upserts.operations(count) == ["UpdateItem"]
    counter = count()
    assert (counter.count, counter.step, counter.revision) == (3, 10, 3)
    assert (counter.made, counter.changed) == (START, START + timedelta(minutes=1))
    assert upserts.item(counter) == Counter.__schema__.to_item(counter.__dict__)


def test_a_default_counts(upserts: Any) -> None:
    counter = upserts.store.upsert(Counter, Counter.step.add(1), name="a")
    assert counter.step == 11
    assert upserts.item(counter) == Counter.__schema__.to_item(counter.__dict__)


def test_what_a_field_begins_with_may_be_said(upserts: Any) -> None:
    def begin(entity: Any, changes: list[Any], key: dict[str, str]) -> Any:
        return upserts.store.upsert(entity, *changes, **key)

    changes = [Counter.step.set_default(5), Counter.count.set_default(7)]
    for _ in range(2):
        counter = begin(Counter, changes, {"name": "a"})
        assert (counter.step, counter.count) == (5, 7)
    score = begin(Score, [Score.level.set("x"), Score.points.set_default(5)], {"game": "g"})
    assert score.points == 5


def test_a_map_is_begun(upserts: Any) -> None:
    for day in ("mon", "tue", "mon"):
        changes = [Counter.by_day[day].add(1)]
        counter = upserts.store.upsert(Counter, *changes, name="a")
    assert counter.by_day == {"mon": 2, "tue": 1}


def test_a_new_entity_must_be_whole(upserts: Any) -> None:
    with pytest.raises(
        UsageError, match=r"an upsert of Score may have to create one.* value for level"
    ):
        upserts.store.upsert(Score, Score.points.add(1), game="g")


def test_unique_values_hold(upserts: Any) -> None:
    changes = [Score.level.set("x"), Score.handle.set("ann")]
    upserts.store.upsert(Score, *changes, game="g")
    upserts.store.upsert(Score, *changes, game="g")
    with pytest.raises(NotUnique):
        upserts.store.upsert(Score, *changes, game="h")


def test_a_condition_is_asked(upserts: Any) -> None:
    changes = [Score.level.set("x"), Score.points.add(5)]
    low = Score.points.missing() | (Score.points < 5)
    upserts.store.upsert(Score, *changes, when=low, game="g")
    with pytest.raises(ConditionFailed) as failure:
        upserts.store.upsert(Score, *changes, when=low, game="g")
    assert failure.value.current.points == 5


def test_a_condition_on_what_is_not_there_does_not_hold(upserts: Any) -> None:
    changes = [Score.level.set("x"), Score.points.add(5)]
    with pytest.raises(ConditionFailed, match="the item does not exist"):
        upserts.store.upsert(Score, *changes, when=Score.points > 3, game="g")


def test_what_has_expired_begins_anew(upserts: Any) -> None:
    changes = [Score.level.set("x"), Score.points.add(5), Score.until.set(START + timedelta(1))]
    upserts.store.upsert(Score, *changes, game="g")
    upserts.clock.advance(timedelta(2))
    changes[2] = Score.until.set(START + timedelta(3))
    assert upserts.store.upsert(Score, *changes, game="g").points == 5


def test_a_counter_that_expires_is_one_write_and_another_where_it_has_expired(upserts: Any) -> None:
    changes = [Visits.count.add(1), Visits.until.set(START + timedelta(1))]

    def visit() -> Any:
        return upserts.store.upsert(Visits, *changes, page="a")

    for _ in range(2):
        assert upserts.operations(visit) == ["UpdateItem"]
    upserts.clock.advance(timedelta(2))
    changes[1] = Visits.until.set(START + timedelta(3))
    assert upserts.operations(visit) == ["UpdateItem", "PutItem"]
    assert visit().count == 2


def test_adding_to_a_number_that_an_index_orders_by_is_one_write(upserts: Any) -> None:
    upserts.store.create_tables(boards)
    key = {"game": "chess", "name": "Ada"}
    half = Player.points.add(Decimal("0.5"))
    for _ in range(2):
        asked = upserts.operations(lambda: upserts.store.upsert(Player, half, **key))
        assert asked == ["UpdateItem"]
    found = upserts.store.upsert(Player, Player.points.add(1), **key)
    assert upserts.item(found) == Player.__schema__.to_item(found.__dict__)
    assert found.points == 2


def test_an_upsert_that_is_overtaken_by_the_making_updates(upserts: Any) -> None:
    changes = [Score.level.set("x"), Score.points.add(5)]
    upserts.before["PutItem"] = lambda: upserts.store.create(Score(game="g", level="y", points=7))
    found = upserts.store.upsert(Score, *changes, game="g")
    assert (found.points, found.title) == (12, "x 12")
    assert upserts.item(found) == Score.__schema__.to_item(found.__dict__)


@given(st.lists(st.sampled_from(["points", "level", "handle", "delete"]), max_size=8))
@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_upserts_leave_what_a_put_would_write(upserts: Any, actions: list[str]) -> None:
    key = {"game": "g"}
    upserts.store.delete(Score, **key)
    for place, action in enumerate(actions):
        if action == "delete":
            upserts.store.delete(Score, **key)
            continue
        more = {
            "points": [Score.points.add(3)],
            "level": [],
            "handle": [Score.handle.set(f"h{place}")],
        }
        changes = [Score.level.set(f"l{place}"), *more[action]]
        found = upserts.store.upsert(Score, *changes, **key)
        assert upserts.item(found) == Score.__schema__.to_item(found.__dict__)


readings = Table(
    "readings",
    partition="device",
    sort=Number("at"),
    indexes={"by_value": Local(Number("value")), "by_day": Global("day", Number("at"))},
)
sums = Table("sums", partition=Binary("digest"), sort=None)


class Reading(Entity, table=readings):
    """An entity whose fields are the key attributes of the table and of its indexes."""

    device: Attr[str] = field()
    moment: Attr[int] = field(name="at")
    value: Attr[int] = field(default=0)
    day: Attr[str | None] = field(default=None)
    revision: Attr[int] = version()

    primary = Key(device).sort(moment)
    by_value = Index("by_value", device).sort(value)
    by_day = Index("by_day", day).sort(moment)


class Sum(Entity, table=sums):
    digest: Attr[bytes] = field()
    count: Attr[int] = field(default=0)

    primary = Key(digest)


_upserts = st.tuples(
    st.sampled_from("ab"),
    st.integers(1, 3),
    st.sampled_from(["add", "set", "day", "no day"]),
    st.booleans(),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_upserts, max_size=12))
def test_fields_that_are_key_attributes(desk: Any, upserts: list[Any]) -> None:
    store = desk.store
    if not store.create_tables(readings):
        store.drop_tables(readings)
        store.create_tables(readings)
    wanted: dict[tuple[str, int], tuple[int, str | None]] = {}
    for device, moment, what, together in upserts:
        value, day = wanted.get((device, moment), (0, None))
        change: Any = {
            "add": Reading.value.add(5),
            "set": Reading.value.set(3),
            "day": Reading.day.set("mo"),
            "no day": Reading.day.set(None),
        }[what]
        value = {"add": value + 5, "set": 3}.get(what, value)
        day = {"day": "mo", "no day": None}.get(what, day)
        wanted[device, moment] = value, day
        if together:
            with store.transaction() as tx:
                tx.upsert(Reading, change, device=device, moment=moment)
        else:
            after = store.upsert(Reading, change, device=device, moment=moment)
            assert (after.device, after.moment, after.value, after.day) == (
                device,
                moment,
                value,
                day,
            )
    for (device, moment), (value, day) in wanted.items():
        stored = store.get(Reading, device=device, moment=moment)
        assert (stored.value, stored.day) == (value, day)
        assert desk.item(stored) == stored.__schema__.to_item(stored.__dict__)


def test_a_field_that_is_the_whole_key(desk: Any) -> None:
    desk.store.create_tables(sums)
    for count in (1, 2):
        assert desk.store.upsert(Sum, Sum.count.add(1), digest=b"\x00").count == count
    assert desk.operations(lambda: desk.store.upsert(Sum, Sum.count.add(1), digest=b"\x00")) == [
        "UpdateItem"
    ]
