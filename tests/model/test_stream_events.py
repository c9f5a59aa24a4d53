"""Tables with a stream, and the changes that are read from it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import isotone
from isotone import Attr, Entity, Event, Key, ManualClock, Store, Table, computed, field
from isotone.backends.interface import Request, Response
from isotone.engine import streams
from isotone.errors import InvalidItem, ResourceNotFoundException, TableDiffers, UsageError

START = 1_800_000_000


def declared(**options: Any) -> tuple[Table, type[Any]]:
    table = Table("notes", **options)

    class Note(Entity, table=table):
        topic: Attr[str] = field()
        number: Attr[int] = field(max=999)
        text: Attr[str] = field(default="")

        primary = Key("TOPIC", topic).sort("NOTE", number)

    class Topic(Entity, table=table):
        topic: Attr[str] = field()

        primary = Key("TOPIC", topic).sort("TOPIC")

    return table, Note


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def database(clock: ManualClock) -> Iterator[isotone.Database]:
    with isotone.open(clock=clock) as database:
        yield database


@pytest.fixture
def store(database: isotone.Database) -> Store:
    return isotone.connect(database)


def test_a_table_is_made_with_its_stream(store: Store) -> None:
    table, _ = declared(stream="KEYS_ONLY")
    store.create_tables(table)
    assert store.differences(table) == []
    assert store.create_tables(table) == []


def test_a_table_that_is_there_gets_the_stream_that_it_lacks(store: Store) -> None:
    store.create_tables(declared()[0])
    table, _ = declared(stream="NEW_IMAGE")
    assert [str(each) for each in store.differences(table)] == [
        "table 'notes' has no stream, declared is NEW_IMAGE"
    ]
    assert store.create_tables(table) == []
    assert store.differences(table) == []
    assert store.differences(declared()[0]) == []  # a stream that nobody declares does no harm


def test_a_stream_with_another_view_is_a_difference(store: Store) -> None:
    store.create_tables(declared(stream="NEW_IMAGE")[0])
    with pytest.raises(TableDiffers, match="has a stream of NEW_IMAGE, declared is KEYS_ONLY"):
        store.create_tables(declared(stream="KEYS_ONLY")[0])


def test_a_view_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="is not a view of a stream"):
        Table("notes", stream="EVERYTHING")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("view", "before", "after"),
    [
        ("NEW_AND_OLD_IMAGES", "a", "b"),
        ("NEW_IMAGE", None, "b"),
        ("OLD_IMAGE", "a", None),
        ("KEYS_ONLY", None, None),
    ],
)
def test_an_event_shows_what_the_view_keeps(
    store: Store, view: Any, before: str | None, after: str | None
) -> None:
    table, note = declared(stream=view)
    store.create_tables(table)
    store.put(note(topic="t", number=1, text="a"))
    store.put(note(topic="t", number=1, text="b"))
    _, event = store.changes(table)
    assert event.kind == "modified"
    assert (event.before and event.before.text, event.after and event.after.text) == (before, after)  # type: ignore[attr-defined]
    assert event.keys == {"PK": "TOPIC#t", "SK": "NOTE#001"}
    assert event.schema is note.__schema__  # by its tag, or by the form of its keys
    assert event.time == datetime.fromtimestamp(START, UTC)
    assert not event.expired
    if view == "KEYS_ONLY":
        with pytest.raises(UsageError, match="shows no entity"):
            event.entity  # noqa: B018


def test_what_is_no_entity_is_an_event_all_the_same(
    store: Store, database: isotone.Database
) -> None:
    table, _ = declared(stream="NEW_IMAGE")
    store.create_tables(table)
    item = {"PK": {"S": "x"}, "SK": {"S": "y"}, "n": {"N": "1"}}
    database.client().put_item(TableName="notes", Item={**item, "_type": {"S": "Foreign"}})
    (event,) = store.changes(table)
    assert (event.kind, event.schema, event.after) == ("inserted", None, None)


def test_a_field_that_is_missing_is_missed_aloud(store: Store, database: isotone.Database) -> None:
    table = Table("notes", stream="NEW_IMAGE")

    class Note(Entity, table=table):
        topic: Attr[str] = field()
        title: Attr[str] = field()
        length: Attr[int] = computed(lambda note: len(note.topic))

        primary = Key("TOPIC", topic).sort("NOTE")

    store.create_tables(table)
    key = {"PK": {"S": "TOPIC#a"}, "SK": {"S": "NOTE"}}
    database.client().put_item(TableName="notes", Item=key)
    database.client().put_item(TableName="notes", Item={**key, "title": {"S": "b"}})
    lacking, whole = store.changes(table)
    with pytest.raises(InvalidItem, match="has no attribute 'title'"):
        lacking.after  # noqa: B018 - reading it is what fails
    assert lacking.keys == {"PK": "TOPIC#a", "SK": "NOTE"}
    assert whole.after is not None
    assert whole.after.length == 1  # type: ignore[attr-defined]


def test_since_leaves_out_what_is_older(store: Store, clock: ManualClock) -> None:
    table, note = declared(stream="NEW_IMAGE")
    store.create_tables(table)
    store.put(note(topic="t", number=1))
    clock.advance(60)
    store.put(note(topic="t", number=2))
    later = store.changes(table, since=datetime.fromtimestamp(START + 60, UTC))
    assert [event.entity.number for event in later] == [2]  # type: ignore[attr-defined]


def test_changes_come_in_order_over_many_shards(
    store: Store, database: isotone.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SHARD_RECORDS", 4)
    table, note = declared(stream="NEW_IMAGE")
    store.create_tables(table)
    for number in range(100):
        store.put(note(topic="t", number=number))
        database.finish_maintenance()
    found = [event.entity.number for event in store.changes(table)]  # type: ignore[attr-defined]
    assert found == [*range(100)]


def test_changes_are_awaited_as_well() -> None:
    table, note = declared(stream="NEW_IMAGE")

    async def program() -> list[Event[Any]]:
        async with isotone.aconnect() as store:
            await store.create_tables(table)
            await store.put(note(topic="t", number=1))
            return [event async for event in store.changes(table)]

    (event,) = asyncio.run(program())
    assert event.entity == note(topic="t", number=1)


def test_a_table_without_a_stream_says_how_to_get_one(store: Store) -> None:
    table, _ = declared()
    store.create_tables(table)
    with pytest.raises(UsageError, match="declare it with"):
        list(store.changes(table))


def test_parents_come_before_children() -> None:
    table, _ = declared()
    parents = {"c": "b", "b": "a", "x": "gone", "a": None}
    shards = [{"ShardId": name, "ParentShardId": parent} for name, parent in parents.items()]
    order: list[str] = []

    class Split:
        """A stream of these shards, each of which is dropped before it is read."""

        def execute(self, operation: str, request: Request) -> Response:
            if operation == "DescribeTable":
                enabled = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
                return {"Table": {"StreamSpecification": enabled, "LatestStreamArn": "a stream"}}
            if operation == "DescribeStream":
                return {"StreamDescription": {"Shards": shards}}
            order.append(request["ShardId"])
            raise ResourceNotFoundException("dropped")

    assert list(isotone.connect(Split()).changes(table)) == []
    assert sorted(order) == ["a", "b", "c", "x"]
    assert order.index("a") < order.index("b") < order.index("c")


def test_an_empty_map_may_be_shown_without_its_type() -> None:
    table = Table("notes", stream="NEW_AND_OLD_IMAGES")

    class Note(Entity, table=table):
        topic: Attr[str] = field()
        data: Attr[dict[str, Any]] = field()

        primary = Key("TOPIC", topic).sort("NOTE")

    whole: Any = {"empty": {}, "many": [{}, {"inner": {}}], "text": ""}
    image = {
        **Note.__schema__.to_item({"topic": "a", "data": whole}),
        # As DynamoDB Local's stream has it.
        "data": {
            "M": {"empty": {}, "many": {"L": [{}, {"M": {"inner": {}}}]}, "text": {"S": ""}},
        },
    }
    change = {"Keys": {}, "SequenceNumber": "1"}
    record = {"eventID": "1", "eventName": "INSERT", "dynamodb": {**change, "NewImage": image}}
    after = Event(table, "shard", record).after
    assert isinstance(after, Note)
    assert after.data == whole
    image["data"] = {}
    after = Event(table, "shard", record).after
    assert isinstance(after, Note)
    assert after.data == {}
