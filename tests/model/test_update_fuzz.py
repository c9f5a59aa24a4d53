"""After any updates, each index key is what a fresh put would write, and each value what was asked for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.model.conftest import Desk

import isotone
from isotone import (
    Attr,
    Change,
    Condition,
    Entity,
    Global,
    Index,
    Key,
    Local,
    ManualClock,
    Number,
    Table,
    computed,
    desc,
    field,
    updated,
    version,
)
from isotone.errors import ConditionFailed

desk = Table(
    "desk",
    indexes={
        "GSI1": Global("GSI1PK", "GSI1SK"),
        "GSI2": Global("GSI2PK", "GSI2SK"),
        "GSI3": Global("GSI3PK", Number("score")),
        "GSI4": Global("GSI4PK", "GSI4SK"),
        "GSI5": Global("GSI5PK", "GSI5SK"),
        "GSI6": Global(("status", "W2"), (Number("W3"), "due")),
        "LSI1": Local("LSI1SK"),
    },
)

Status = Literal["NEW", "OPEN", "DONE"]


class Ticket(Entity, table=desk):
    project: Attr[str] = field()
    number: Attr[int] = field(max=999, alert=2)
    status: Attr[Status] = field(default="NEW")
    priority: Attr[int] = field(default=0, min=-99, max=99, alert=2)
    assignee: Attr[str | None] = field(default=None)
    score: Attr[Decimal | None] = field(default=None)
    tags: Attr[set[str]] = field(default_factory=set)
    log: Attr[list[int]] = field(default_factory=list)
    due: Attr[date | None] = field(default=None)
    team: Attr[str | None] = field(default="none")
    title: Attr[str] = computed(lambda ticket: f"{ticket.status}/{len(ticket.log)}")
    changed: Attr[datetime | None] = updated()

    primary = Key("PROJECT", project).sort("TICKET", desc(number))
    by_status = Index("GSI1", "PROJECT", project, status).sort(desc(priority), changed)
    open_of = Index("GSI2", "ASSIGNEE", assignee, when=status != "DONE").sort(number)
    by_score = Index("GSI3", "SCORES").sort(score)
    urgent = Index("GSI4", "URGENT", when=tags.contains("urgent") & (priority > 3)).sort(team)
    by_title = Index("GSI5", "TITLE").sort(title)
    wide = Index("GSI6", status, team).sort(priority, due)
    local = Index("LSI1", "PROJECT", project, when=due.exists()).sort(due)


class Versioned(Entity, table=desk):
    name: Attr[str] = field()
    a: Attr[int] = field(default=0, max=9999, alert=2)
    b: Attr[int] = field(default=0, max=9999, alert=2)
    revision: Attr[int] = version()

    primary = Key("VERSIONED", name).sort("VERSIONED")
    by_a = Index("GSI1", "A", when=b < 50).sort(a, b)


@dataclass(frozen=True)
class Step:
    """A change, and what it does to a Python value."""

    change: Change
    name: str
    after: Any

    def apply(self, value: Any) -> Any:
        return self.after(value)


def setting(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    attr = getattr(Ticket, name)
    return values.map(lambda value: Step(attr.set(value), name, lambda _: value))


def adding(name: str) -> st.SearchStrategy[Step]:
    attr = getattr(Ticket, name)
    return st.integers(-3, 3).map(
        lambda by: Step(attr.add(by), name, lambda value: (value or 0) + by)
    )


STATUSES = st.sampled_from(["NEW", "OPEN", "DONE"])
NAMES = st.one_of(st.none(), st.text("ab#$é", max_size=3))
TAGS = st.sets(st.sampled_from(["urgent", "ui", "db"]), min_size=1)
DAYS = st.one_of(st.none(), st.dates(date(2020, 1, 1), date(2021, 1, 1)))
STEPS = {
    "status": setting("status", STATUSES),
    "priority": st.one_of(setting("priority", st.integers(-9, 9)), adding("priority")),
    "assignee": setting("assignee", NAMES),
    "score": st.one_of(
        setting("score", st.one_of(st.none(), st.decimals(-9, 9, places=2))), adding("score")
    ),
    "tags": st.one_of(
        setting("tags", TAGS),
        TAGS.map(lambda tags: Step(Ticket.tags.add(tags), "tags", lambda now: now | tags)),
        TAGS.map(lambda tags: Step(Ticket.tags.discard(tags), "tags", lambda now: now - tags)),
        st.just(Step(Ticket.tags.remove(), "tags", lambda _: set())),
    ),
    "log": st.one_of(
        st.lists(st.integers(0, 9), max_size=2).map(
            lambda more: Step(Ticket.log.append(more), "log", lambda now: now + more)
        ),
        st.lists(st.integers(0, 9), max_size=2).map(
            lambda more: Step(Ticket.log.prepend(more), "log", lambda now: more + now)
        ),
    ),
    "due": st.one_of(
        setting("due", DAYS),
        st.dates().map(
            lambda day: Step(Ticket.due.set_default(day), "due", lambda now: now or day)
        ),
    ),
    "team": setting("team", st.one_of(st.none(), st.sampled_from(["red", "blue"]))),
}
UPDATES = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4, unique=True).flatmap(
    lambda names: st.tuples(*(STEPS[name] for name in names))
)


@pytest.fixture(scope="module")
def table() -> Iterator[Desk]:
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    with isotone.open(":memory:", clock=clock) as database:
        table = Desk(database, clock)
        table.store.create_tables(desk)
        yield table


KEY = {"project": "p", "number": 7}


def raw(table: Desk, entity: type[Entity], key: dict[str, Any]) -> Any:
    request = {"TableName": desk.name, "Key": entity.__schema__.primary_key(key)}
    return table.backend.execute("GetItem", request).get("Item")


def check(table: Desk, entity: type[Entity], key: dict[str, Any]) -> Any:
    """The stored entity, whose item must be what a fresh put of it would write."""
    item = raw(table, entity, key)
    schema = entity.__schema__
    found = schema.from_item(item)
    fresh = schema.to_item(found.__dict__)
    for name in ("tags",):  # sets have no order
        for each in (item, fresh):
            if name in each:
                each[name] = {"SS": sorted(each[name]["SS"])}
    assert item == fresh
    return found


WHENS = st.one_of(
    st.none(),
    st.tuples(st.just("status"), STATUSES),
    st.tuples(st.just("team"), st.sampled_from([None, "none", "red"])),
    st.tuples(st.just("assignee"), NAMES),
    st.tuples(st.just("due"), DAYS),
)


@given(st.lists(st.tuples(UPDATES, WHENS), max_size=8))
@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_an_index_key_is_never_left_behind(
    table: Desk, updates: list[tuple[tuple[Step, ...], tuple[str, Any] | None]]
) -> None:
    expected = Ticket(**KEY)
    table.store.put(expected)
    for steps, insisted in updates:
        table.clock.advance(timedelta(seconds=1))
        name, value = insisted or ("project", "p")
        when: Condition = getattr(Ticket, name) == value
        changes = [step.change for step in steps]
        if getattr(expected, name) != value:
            with pytest.raises(ConditionFailed):
                table.store.update(Ticket, *changes, when=when, **KEY)
            continue
        found = table.store.update(Ticket, *changes, when=when, **KEY)
        for step in steps:
            setattr(expected, step.name, step.apply(getattr(expected, step.name)))
        expected.__dict__["changed"] = datetime.fromtimestamp(table.clock.now(), UTC)
        assert found == expected
        assert check(table, Ticket, KEY) == expected


@given(st.lists(st.tuples(UPDATES, UPDATES), max_size=4), st.randoms(use_true_random=False))
@settings(
    max_examples=examples(80),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_an_update_that_is_overtaken_is_planned_anew(
    table: Desk, pairs: list[tuple[tuple[Step, ...], tuple[Step, ...]]], rng: random.Random
) -> None:
    expected = Ticket(**KEY)
    table.store.put(expected)
    for ours, theirs in pairs:

        def overtake(steps: tuple[Step, ...] = theirs) -> None:
            changes = [step.change for step in steps]
            table.store.update(Ticket, *changes, **KEY)

        table.before["UpdateItem"] = overtake
        table.store.update(Ticket, *([step.change for step in ours]), **KEY)
        table.before.clear()
        for step in (*theirs, *ours):
            setattr(expected, step.name, step.apply(getattr(expected, step.name)))
        found = check(table, Ticket, KEY)
        expected.__dict__["changed"] = found.changed
        assert found == expected


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.booleans()), max_size=8))
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_versions_count_the_writes(table: Desk, updates: list[tuple[str, int, bool]]) -> None:
    item = raw(table, Versioned, {"name": "v"})
    current = Versioned.__schema__.from_item(item) if item else Versioned(name="v")
    current.a = current.b = 40
    table.store.put(current)
    for name, by, with_entity in updates:
        change = getattr(Versioned, name).add(by)
        target: Any = current if with_entity else Versioned
        key = {} if with_entity else {"name": "v"}
        after = table.store.update(target, change, **key)
        assert after.revision == current.revision + 1
        assert getattr(after, name) == getattr(current, name) + by
        current = check(table, Versioned, {"name": "v"})
        assert current == after
