"""Items that stay in JSON until they are entities: the same results as for items as dicts.

A database in this process leaves the items of a query in JSON (`read_json`); every other backend answers with dicts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, computed, field, upgrade
from isotone.backends.interface import Request, Response
from isotone.errors import InvalidItem

START = datetime(2026, 1, 11, 9, 30, 15, 250_000, tzinfo=UTC)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Size(Enum):
    SMALL = 1
    LARGE = 2


def table() -> Table:
    return Table("things", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


things = table()


class Thing(Entity, table=things, tag="Thing"):
    """A field of every form that an attribute takes."""

    group: Attr[str] = field()
    number: Attr[int] = field(max=99, alert=None)
    price: Attr[Decimal] = field()
    weight: Attr[float] = field(default=1.5)
    seen: Attr[datetime] = field(default=START)
    colour: Attr[Colour] = field(default=Colour.RED)
    size: Attr[Size | None] = field(default=None)
    state: Attr[Literal["ON", "OFF"]] = field(default="ON", name="st")
    is_open: Attr[bool] = field(default=False)
    raw: Attr[bytes | None] = field(default=None)
    tags: Attr[set[str]] = field(default_factory=set)
    counts: Attr[frozenset[int]] = field(default=frozenset({1}))
    names: Attr[list[str]] = field(default_factory=list)
    address: Attr[dict[str, str]] = field(default_factory=dict)
    depth: Attr[dict[str, list[int | None]]] = field(default_factory=dict)
    either: Attr[int | str] = field(default="x")
    anything: Attr[Any] = field(default=None)
    label: Attr[str] = computed(lambda thing: f"{thing.group} {thing.number}")

    primary = Key("THINGS", group).sort("N", number)
    by_state = Index("GSI1", "STATE", state).sort("NUMBER", number)


class Dropping(Entity, table=table(), tag="Thing", unknown="drop"):
    group: Attr[str] = field()
    number: Attr[int] = field(max=99, alert=None)
    price: Attr[Decimal] = field()
    seen: Attr[datetime | None] = field(default=None)

    primary = Key("THINGS", group).sort("N", number)


class Refusing(Entity, table=table(), tag="Thing", unknown="refuse"):
    group: Attr[str] = field()
    number: Attr[int] = field(max=99, alert=None)
    price: Attr[Decimal] = field(default=Decimal(1))

    primary = Key("THINGS", group).sort("N", number)


class Later(Entity, table=table(), tag="Thing", version=2):
    group: Attr[str] = field()
    number: Attr[int] = field(max=99, alert=None)
    cost: Attr[Decimal] = field()

    primary = Key("THINGS", group).sort("N", number)

    @staticmethod
    @upgrade(1)
    def rename_price(item: dict[str, Any]) -> dict[str, Any]:
        item["cost"] = item.pop("price")
        return item


ENTITIES: list[type[Entity]] = [Thing, Dropping, Refusing, Later]

WHOLE = Thing(
    group="a",
    number=7,
    price=Decimal("12.50"),
    size=Size.LARGE,
    state="OFF",
    raw=b"\x00\xff",
    tags={"x", "y"},
    counts=frozenset({1, 2}),
    names=["n", "m"],
    address={"city": "Ghent", "S": "N"},
    depth={"deep": [1, None]},
    either=5,
    anything={"any": [Decimal(1)]},
)
VALUES: list[Any] = [
    {"S": "ON"},
    {"S": "RED"},
    {"S": "2026-01-11T09:30:15"},
    {"S": "ORDER#1"},
    {"N": "1"},
    {"N": "2.5"},
    {"BOOL": True},
    {"NULL": True},
    {"B": "AAE="},
    {"SS": ["a"]},
    {"NS": ["1", "2.5"]},
    {"L": []},
    {"L": [{"S": "a"}, {"N": "1"}, {"NULL": True}]},
    {"M": {"a": {"S": "b"}}},
    {"M": {"a": {"L": [{"N": "1"}]}}},
]
KEYS = {"PK", "SK"}
NAMES = sorted((Thing.__schema__.to_item(WHOLE.__dict__).keys() - KEYS) | {"_v", "cost", "other"})


class Dicts:
    """A backend that answers with dicts alone, as a server does."""

    def __init__(self, database: isotone.Database) -> None:
        self.database = database

    def execute(self, operation: str, request: Request) -> Response:
        return self.database.execute(operation, request)


@pytest.fixture(scope="module")
def database() -> Iterator[isotone.Database]:
    with isotone.open(":memory:") as database:
        isotone.connect(database).create_tables(things)
        yield database


def outcome(store: isotone.Store, read: Any) -> Any:
    """What a read finds, in a form that can be compared."""
    page = store.page(read.on_invalid("collect"), size=9)
    return (
        [(type(each), each.__dict__, each.unknown_attributes) for each in page.items],
        [(type(e), str(e), e.field, e.found, e.declared, e.key) for e in page.invalid],
        page.stats,
    )


def changes(name: str) -> st.SearchStrategy[tuple[str, Any]]:
    """An attribute, and another value for it; None removes it."""
    values = [each for each in VALUES if "S" in each or not name.startswith("GSI1")]
    return st.tuples(st.just(name), st.none() | st.sampled_from(values))


@example({"st": None})  # which the key of the index still holds
@example({"_type": {"S": "Other"}})
@example({"_type": None})
@example({"_v": {"N": "2"}, "cost": {"N": "1"}})
@example({"_v": {"N": "3"}})
@example({"other": {"S": "x"}})
@given(changed=st.lists(st.sampled_from(NAMES).flatmap(changes), max_size=4).map(dict))
@settings(max_examples=examples(300), deadline=None)
def test_any_item_is_read_as_one_in_a_dict(
    database: isotone.Database, changed: dict[str, Any]
) -> None:
    item = {**Thing.__schema__.to_item(WHOLE.__dict__), **changed}
    item = {name: value for name, value in item.items() if value is not None}
    database.execute("PutItem", {"TableName": "things", "Item": item})
    mine, dicts = isotone.connect(database), isotone.connect(Dicts(database))
    for entity in ENTITIES:
        schema: Any = entity
        for read in (
            schema.primary.where(schema.group == "a"),
            schema.primary.where(schema.group == "a", schema.number >= 3).select(schema.number),
            schema.primary.scan(),
        ):
            assert outcome(mine, read) == outcome(dicts, read)
    by_state = Thing.by_state.where(Thing.state == "OFF")
    assert outcome(mine, by_state) == outcome(dicts, by_state)


def test_items_are_left_in_json_for_the_store_alone(database: isotone.Database) -> None:
    store = isotone.connect(database)
    store.put(WHOLE)
    request = Thing.primary.where(Thing.group == "a").request()
    (item,) = database.execute("Query", request)["Items"]
    (left,) = database.read_json("Query", request)["Items"]
    assert isinstance(left, msgspec.Raw)
    assert msgspec.json.decode(left) == item == Thing.__schema__.to_item(WHOLE.__dict__)


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "it's", "ä", "{x}", ""])
def test_attributes_have_any_names(name: str) -> None:
    shelf = Table("shelf", partition=name + "PK", tag=name + "kind")

    class Named(Entity, table=shelf):
        key: Attr[str] = field()
        value: Attr[int] = field(default=1, name=name)

        primary = Key("NAMED", key).sort("HERE")

    with isotone.open(":memory:") as database:
        store = isotone.connect(database)
        store.create_tables(shelf)
        store.put(Named(key="x", value=5))
        assert [each.value for each in store.all(Named.primary.where(Named.key == "x"))] == [5]


def test_a_read_continues_after_an_item_in_json() -> None:
    with isotone.open(":memory:") as database:
        store = isotone.connect(database)
        store.create_tables(things)
        for number in range(9):
            store.put(WHOLE.replace(number=number))
        query = Thing.primary.where(Thing.group == "a")
        found, cursor = [], None
        while True:
            page = store.page(query, size=2, cursor=cursor)
            found += [each.number for each in page]
            cursor = page.cursor
            if cursor is None:
                break
        assert found == list(range(9))
        last = store.page(query, size=2, cursor=store.page(query, size=4).cursor)
        before = store.page(query, size=2, cursor=last.previous)
        assert [each.number for each in before] == [2, 3]
        assert [each.number for each in store.iterate(query.page_size(2))] == found


def test_the_first_invalid_item_ends_the_read() -> None:
    with isotone.open(":memory:") as database:
        store = isotone.connect(database)
        store.create_tables(things)
        for number in range(3):
            store.put(WHOLE.replace(number=number))
        item = {**Thing.__schema__.to_item(WHOLE.replace(number=1).__dict__), "price": {"S": "?"}}
        database.execute("PutItem", {"TableName": "things", "Item": item})
        query = Thing.primary.where(Thing.group == "a")
        with pytest.raises(InvalidItem) as caught:
            store.all(query)
        assert (caught.value.field, caught.value.found) == ("price", {"S": "?"})
        assert [each.number for each in store.all(query.on_invalid("skip"))] == [0, 2]


@pytest.mark.parametrize("in_file", [False, True])
def test_async_stores_read_json(tmp_path: Path, in_file: bool) -> None:
    async def read() -> list[Thing]:
        target = str(tmp_path / "things.db") if in_file else ":memory:"
        async with isotone.aconnect(target) as store:
            await store.create_tables(things)
            await store.put(WHOLE)
            return await store.all(Thing.primary.where(Thing.group == "a"))

    assert asyncio.run(read()) == [WHOLE]
