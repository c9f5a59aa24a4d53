"""Values that an item has only in its keys: they are read from there, and no write loses them or their keys."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.model.conftest import Desk

import isotone
from isotone import Attr, Change, Entity, Global, Index, Key, Number, Table, field, raw, version
from isotone.errors import ConditionFailed

tasks = Table(
    "tasks",
    indexes={
        "GSI1": Global("GSI1PK", "GSI1SK"),
        "GSI2": Global("GSI2PK", "GSI2SK"),
        "GSI3": Global("GSI3PK", Number("GSI3SK")),
    },
)


class Task(Entity, table=tasks):
    number: Attr[int] = field(max=99)
    owner: Attr[str | None] = field(default=None)
    due: Attr[date | None] = field(default=None)
    level: Attr[int] = field(default=0, max=99, alert=None)
    weight: Attr[int | None] = field(default=None)
    is_open: Attr[bool] = field(default=True)
    note: Attr[str] = field(default="-")

    primary = Key("TASK").sort(number)
    of_owner = Index("GSI1", "OWNER", owner, when=is_open == True).sort(due, level)  # noqa: E712
    by_due = Index("GSI2", "DUE").sort(due)
    by_weight = Index("GSI3", "WEIGHTS").sort(weight)


DAY = date(2026, 1, 5)
KEYS = {
    "PK": {"S": "TASK"},
    "SK": {"S": "07"},
    "GSI1PK": {"S": "OWNER#ann"},
    "GSI1SK": {"S": "2026-01-05#03"},
    "GSI2PK": {"S": "DUE"},
    "GSI2SK": {"S": "2026-01-05"},
    "GSI3PK": {"S": "WEIGHTS"},
    "GSI3SK": {"N": "4"},
}
TASK = Task(number=7, owner="ann", due=DAY, level=3, weight=4)


@pytest.fixture
def table(desk: Desk) -> Desk:
    desk.store.create_tables(tasks)
    return desk


def keep(table: Desk, **attributes: Any) -> None:
    """Put the item as another program wrote it: most of its values are only in its keys."""
    item = {**KEYS, **attributes}
    item = {name: value for name, value in item.items() if value is not None}
    table.backend.execute("PutItem", {"TableName": "tasks", "Item": item})


def stored(table: Desk, number: int = 7) -> Any:
    return table.item(Task(number=number))


def keys_of(item: Any) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name in KEYS}


@pytest.mark.parametrize("tagged", [True, False])
def test_every_read_takes_them_from_the_keys(table: Desk, tagged: bool) -> None:
    keep(table, _type={"S": "Task"} if tagged else None)
    store = table.store
    assert store.get(Task, number=7) == TASK
    assert store.all(Task.primary.where()) == [TASK]
    assert store.all(Task.by_due.where()) == [TASK]
    assert store.all(Task.of_owner.where(Task.owner == "ann", Task.due == DAY)) == [TASK]
    assert list(store.iterate(Task.primary.scan())) == [TASK]
    assert store.get_many(Task, [{"number": 7}]) == [TASK]
    assert list(store.load(Task.primary.where()).where(Task.owner == "ann")) == [TASK]
    (some,) = store.all(Task.primary.where().select(Task.due, Task.note))
    assert some.to_dict() == {"due": DAY, "note": "-"}


def test_a_default_in_the_primary_key_is_not_read_instead(desk: Desk) -> None:
    rooms = Table("rooms")

    class Room(Entity, table=rooms):
        house: Attr[str] = field(default="main")
        number: Attr[int] = field(default=1, max=99)

        primary = Key("HOUSE", house).sort("ROOM", number)

    desk.store.create_tables(rooms)
    item = {"PK": {"S": "HOUSE#annexe"}, "SK": {"S": "ROOM#12"}}
    desk.backend.execute("PutItem", {"TableName": "rooms", "Item": item})
    assert desk.store.all(Room.primary.scan()) == [Room(house="annexe", number=12)]


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (Task.note.set("x"), {"note": "x"}),
        (Task.owner.set("bob"), {"owner": "bob"}),
        (Task.level.add(2), {"level": 5}),
        (Task.weight.add(2), {"weight": 6}),
        (Task.due.set_default(date(2030, 1, 1)), {}),
        (Task.level.set_default(9), {}),
        (Task.due.remove(), {"due": None}),
        (Task.owner.set(None), {"owner": None}),
        (Task.is_open.set(False), {"is_open": False}),
        (Task.weight.remove(), {"weight": None}),
    ],
)
def test_a_change_keeps_all_the_others(table: Desk, change: Change, after: dict[str, Any]) -> None:
    wanted = TASK.replace(**after)
    for write in (
        lambda: table.store.update(Task, change, number=7),
        lambda: table.store.update(Task, change, number=7, when=Task.note.missing()),
        lambda: table.store.upsert(Task, change, number=7),
        lambda: table.store.move(Task, change, number=7),
        lambda: in_transaction(table, change),
    ):
        keep(table, _type={"S": "Task"})
        assert write() in (wanted, None)
        assert table.store.get(Task, number=7) == wanted
        assert keys_of(stored(table)) == keys_of(Task.__schema__.to_item(wanted.__dict__))


def in_transaction(table: Desk, change: Change) -> None:
    with table.store.transaction() as tx:
        tx.update(Task, change, number=7)


def test_a_put_of_what_was_read_keeps_every_key(table: Desk) -> None:
    for write in (table.store.put, table.store.replace):
        keep(table)
        write(table.store.get(Task, number=7))  # type: ignore[operator]
        assert keys_of(stored(table)) == KEYS


def test_leaving_an_index_is_one_write_where_attributes_hold_the_values(table: Desk) -> None:
    table.store.put(TASK)
    close = Task.is_open.set(False)
    assert table.operations(lambda: table.store.update(Task, close, number=7)) == ["UpdateItem"]
    table.store.put(Task(number=7))
    unowned = Task.owner == None  # noqa: E711
    assert table.operations(lambda: table.store.update(Task, close, number=7, when=unowned)) == [
        "UpdateItem"
    ]
    assert table.store.get(Task, number=7) == Task(number=7, is_open=False)


def test_a_condition_that_an_attribute_is_missing_does_not_clear_its_key(table: Desk) -> None:
    keep(table, is_open={"BOOL": True})
    found = table.store.update(
        Task, Task.level.set(8), number=7, when=Task.due.missing() & Task.owner.missing()
    )
    assert found == TASK.replace(level=8)
    assert keys_of(stored(table)) == {**KEYS, "GSI1SK": {"S": "2026-01-05#08"}}
    with pytest.raises(ConditionFailed):
        table.store.update(Task, Task.level.set(9), number=7, when=Task.level == 3)


def test_a_writer_who_comes_between_is_not_overwritten(table: Desk) -> None:
    keep(table)
    table.before["UpdateItem"] = lambda: keep(
        table, GSI2SK={"S": "2027-01-01"}, GSI1SK={"S": "2027-01-01#03"}
    )
    found = table.store.update(Task, Task.level.add(1), number=7)
    assert found == TASK.replace(level=4, due=date(2027, 1, 1))


def test_a_key_of_an_earlier_form_is_not_cleared_by_a_program_that_cannot_read_it(
    table: Desk,
) -> None:
    """`due` is new in both indexes: old items have keys without it, which nobody means to remove."""
    old = {"GSI1SK": {"S": "03"}, "GSI2SK": {"S": "soon"}}
    known = {"owner": {"S": "ann"}, "level": {"N": "3"}, "weight": {"N": "4"}}
    keep(table, **old, **known)
    assert table.store.get(Task, number=7) == TASK.replace(due=None)
    table.store.update(Task, Task.level.set(5), number=7)
    assert keys_of(stored(table)) == {**KEYS, **old}
    table.store.update(Task, Task.due.set(DAY), number=7)
    assert keys_of(stored(table)) == {**KEYS, "GSI1SK": {"S": "2026-01-05#05"}}
    keep(table, **old, **known)
    table.store.update(Task, Task.due.set(None), number=7)
    assert keys_of(stored(table)).keys() == {"PK", "SK", "GSI3PK", "GSI3SK"}


# Any items, any updates, and an oracle of plain dicts

ATTRIBUTES: dict[str, Callable[[Task], Any]] = {
    "owner": lambda task: {"S": task.owner},
    "due": lambda task: {"S": str(task.due)},
    "level": lambda task: {"N": str(task.level)},
    "weight": lambda task: {"N": str(task.weight)},
}
OWNERS = st.sampled_from(["ann", "bob", None])
DAYS = st.sampled_from([DAY, date(2026, 2, 1), None])
NUMBERS = st.integers(0, 9)
TASKS = st.builds(
    Task,
    number=st.just(7),
    owner=OWNERS,
    due=DAYS,
    level=NUMBERS,
    weight=st.one_of(st.none(), NUMBERS),
    is_open=st.booleans(),
)
CHANGES: dict[str, st.SearchStrategy[tuple[Change, str, Callable[[Any], Any]]]] = {
    "owner": OWNERS.map(lambda value: (Task.owner.set(value), "owner", lambda _: value)),
    "due": st.one_of(
        DAYS.map(lambda value: (Task.due.set(value), "due", lambda _: value)),
        st.just((Task.due.set_default(DAY), "due", lambda now: now or DAY)),
    ),
    "level": st.one_of(
        NUMBERS.map(lambda value: (Task.level.set(value), "level", lambda _: value)),
        NUMBERS.map(lambda by: (Task.level.add(by), "level", lambda now: now + by)),
    ),
    "weight": st.one_of(
        NUMBERS.map(lambda by: (Task.weight.add(by), "weight", lambda now: (now or 0) + by)),
        st.just((Task.weight.remove(), "weight", lambda _: None)),
    ),
    "is_open": st.booleans().map(
        lambda value: (Task.is_open.set(value), "is_open", lambda _: value)
    ),
    "note": st.just((Task.note.set("n"), "note", lambda _: "n")),
}
UPDATES = st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=3, unique=True).flatmap(
    lambda names: st.tuples(*(CHANGES[name] for name in names))
)


def entries(task: Task) -> dict[str, Any]:
    """The index keys of a task, by hand."""
    found: dict[str, Any] = {}
    if task.owner is not None and task.due is not None and task.is_open:
        found["GSI1PK"] = {"S": f"OWNER#{task.owner}"}
        found["GSI1SK"] = {"S": f"{task.due}#{task.level:02}"}
    if task.due is not None:
        found |= {"GSI2PK": {"S": "DUE"}, "GSI2SK": {"S": str(task.due)}}
    if task.weight is not None:
        found |= {"GSI3PK": {"S": "WEIGHTS"}, "GSI3SK": {"N": str(task.weight)}}
    return found


def by_hand(task: Task, left_out: set[str]) -> Any:
    """The item of a task, without the attributes that may be left out: those whose values a key holds."""
    keys = entries(task)
    held = {"due"} if task.due is not None else set()
    held |= {"owner", "level"} if "GSI1PK" in keys else set()
    held |= {"weight"} if "GSI3PK" in keys else set()
    item: dict[str, Any] = {"PK": {"S": "TASK"}, "SK": {"S": "07"}, **keys}
    item["is_open"] = {"BOOL": task.is_open}
    for name, encode in ATTRIBUTES.items():
        if getattr(task, name) is not None and not (name in left_out and name in held):
            item[name] = encode(task)
    return item


@given(
    TASKS,
    st.sets(st.sampled_from(sorted(ATTRIBUTES))),
    st.lists(st.tuples(UPDATES, st.sampled_from(["update", "upsert", "move", "put"])), max_size=5),
)
@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_updates_of_any_items_leave_the_right_entries(
    task: Task, left_out: set[str], updates: list[Any]
) -> None:
    with isotone.connect() as store:
        store.create_tables(tasks)
        put = {"TableName": "tasks", "Item": by_hand(task, left_out)}
        store.backend.execute("PutItem", put)
        get = {"TableName": "tasks", "Key": {"PK": {"S": "TASK"}, "SK": {"S": "07"}}}
        expected = task
        assert store.get(Task, number=7) == expected
        for steps, call in updates:
            changes = [change for change, _, _ in steps]
            after = {name: apply(getattr(expected, name)) for _, name, apply in steps}
            expected = expected.replace(**after)
            if call == "put":
                current = store.get(Task, number=7)
                assert current is not None
                store.put(current.replace(**after))
            else:
                getattr(store, call)(Task, *changes, number=7)
            assert store.get(Task, number=7) == expected
            item = store.backend.execute("GetItem", get)["Item"]
            keys = {name: item[name] for name in KEYS if name in item and name not in ("PK", "SK")}
            assert keys == entries(expected)


def test_a_version_is_all_that_is_checked(desk: Desk) -> None:
    logs = Table("logs", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

    class Log(Entity, table=logs):
        name: Attr[str] = field()
        place: Attr[str | None] = field(default=None)
        is_open: Attr[bool] = field(default=True)
        revision: Attr[int] = version()

        primary = Key("LOG", raw(name)).sort("LOG")
        by_place = Index("GSI1", "PLACES", when=is_open == True).sort(place)  # noqa: E712

    desk.store.create_tables(logs)
    item = {
        "PK": {"S": "LOG#a"},
        "SK": {"S": "LOG"},
        "GSI1PK": {"S": "PLACES"},
        "GSI1SK": {"S": "Rome"},
        "revision": {"N": "1"},
    }
    desk.backend.execute("PutItem", {"TableName": "logs", "Item": item})
    log = desk.store.get(Log, name="a")
    assert log is not None
    assert log.place == "Rome"
    after = desk.store.update(log, Log.is_open.set(False))
    assert (after.place, after.revision) == ("Rome", 2)
    assert "GSI1SK" not in desk.item(after)
    assert desk.store.get(Log, name="a") == after
