"""What comes back from an index that has not all attributes: true values, or a word that they are not there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

import isotone
from isotone import (
    Attr,
    Entity,
    Global,
    Index,
    Key,
    Local,
    ManualClock,
    Store,
    Table,
    field,
    updated,
    upgrade,
)
from isotone.errors import UsageError

NOW = datetime(2126, 1, 1, tzinfo=UTC)

tasks = Table(
    "tasks",
    indexes={
        "keys": Global("GPK", "GSK", projection="KEYS_ONLY"),
        "near": Local("LSK", projection="KEYS_ONLY"),
    },
)


class Task(Entity, table=tasks):
    team: Attr[str] = field()
    number: Attr[int] = field(max=999, alert=2)
    title: Attr[str] = field(case="lower")
    urgency: Attr[Literal["LOW", "HIGH"]] = field(default="LOW")
    changed: Attr[datetime] = updated()
    note: Attr[str] = field(default="")

    primary = Key("TEAM", team).sort("TASK", number)
    urgent = Index("keys", "TEAM", team).sort(urgency, title, changed)
    near = Index("near", "TEAM", team).sort("U", urgency)


class Chore(Entity, table=tasks, version=2):
    team: Attr[str] = field()
    name: Attr[str] = field()
    title: Attr[str] = field()

    primary = Key("CHORES", team).sort("CHORE", name)
    named = Index("keys", "CHORES", team).sort("CHORE", name)
    near = Index("near", "CHORES", team).sort("CHORE", name)

    @staticmethod
    @upgrade(1)
    def with_title(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "title": item.pop("called")}


MINE = Task.team == "blue"


@pytest.fixture
def store() -> Iterator[Store]:
    clock = ManualClock(NOW)
    with isotone.connect(":memory:", clock=clock) as store:
        store.create_tables(tasks)
        store.put(Task(team="blue", number=1, title="Paint", urgency="HIGH", note="red"))
        yield store


def test_a_field_with_a_default_is_read_from_the_key(store: Store) -> None:
    (task,) = store.all(Task.urgent.where(MINE))
    assert (task.number, task.urgency, task.changed) == (1, "HIGH", NOW)


def test_a_text_whose_case_the_key_does_not_keep_is_not_there(store: Store) -> None:
    (task,) = store.all(Task.urgent.where(MINE))
    with pytest.raises(AttributeError, match="without its field 'title'"):
        task.title  # noqa: B018
    with pytest.raises(UsageError, match="does not project title"):
        Task.urgent.where(MINE).select(Task.title)


def test_a_local_index_brings_what_is_selected_from_the_table(store: Store) -> None:
    (task,) = store.all(Task.near.where(MINE).select(Task.title, Task.note))
    assert (task.title, task.note) == ("Paint", "red")
    (task,) = store.all(Task.near.where(MINE))
    assert (task.urgency, task.number) == ("HIGH", 1)


def test_an_entry_without_all_attributes_is_not_upgraded(store: Store) -> None:
    store.put(Chore(team="blue", name="a", title="Sweep"))
    (chore,) = store.all(Chore.named.where(Chore.team == "blue"))
    assert chore.name == "a"
    with pytest.raises(UsageError, match="does not project title"):
        Chore.near.where(Chore.team == "blue").select(Chore.title)
