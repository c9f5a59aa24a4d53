"""`store.changes`: the changes of a table as events with entities (`before`, `after`), shard by shard, in order.

    for event in store.changes(shop):
        if event.kind == "modified" and isinstance(event.after, Order):
            print(event.before.status, "→", event.after.status)

An event decodes its entities at first use, so skipping an event costs almost nothing. A shard is read page by page from
a position. To see the changes of each item in order, read a shard to its end before its children; `parents_first` sorts
shards this way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, cast

from typing_extensions import TypeVar

from isotone.backends.interface import Response
from isotone.errors import ResourceNotFoundException, UsageError
from isotone.model.declaring.previous_keys import fits
from isotone.model.declaring.table import Table
from isotone.model.key_records import is_record
from isotone.tables.description import describe_table
from isotone.tables.retries import poll_pauses
from isotone.tables.steps import Call, Steps
from isotone.values.json import item_from_wire, with_empty_maps
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity", default="Entity")

EventKind = Literal["inserted", "modified", "removed"]

_KINDS: Final[Mapping[str, EventKind]] = {
    "INSERT": "inserted",
    "MODIFY": "modified",
    "REMOVE": "removed",
}
_TIME_TO_LIVE: Final = "dynamodb.amazonaws.com"


class Event(Generic[E]):
    """One change of one item.

    `record` is DynamoDB's record, `shard` the id of its shard.
    """

    def __init__(self, table: Table, shard: str, record: Mapping[str, Any]) -> None:
        self.table = table
        self.shard = shard
        self.record = record
        self._change: Mapping[str, Any] = record["dynamodb"]

    @property
    def id(self) -> str:
        """A unique id that is the same in every read of this change; use it as a key for idempotent writes."""
        given: str = self.record["eventID"]
        return given

    @property
    def kind(self) -> EventKind:
        """Whether the item was inserted, modified or removed."""
        return _KINDS[self.record["eventName"]]

    @property
    def sequence(self) -> str:
        """The sequence number. Later changes of items with the same partition key have greater ones."""
        number: str = self._change["SequenceNumber"]
        return number

    @property
    def time(self) -> datetime:
        """When the change was made, to the second."""
        return datetime.fromtimestamp(self.timestamp, UTC)

    @property
    def timestamp(self) -> float:
        """`time` as seconds since the epoch."""
        return float(self._change["ApproximateCreationDateTime"])

    @property
    def expired(self) -> bool:
        """Whether the item was removed because it expired."""
        return _TIME_TO_LIVE in (self.record.get("userIdentity") or {}).values()

    @cached_property
    def keys(self) -> dict[str, Any]:
        """The attributes of the item's primary key, as plain values."""
        return item_from_wire(self._change["Keys"])

    @cached_property
    def before(self) -> E | None:
        """The entity before the change.

        None if the item was inserted, if the stream has no old images, or if the item is not an entity of the table.
        Raises `InvalidItem` if the image does not fit the entity's declaration.
        """
        return self._entity("OldImage")

    @cached_property
    def after(self) -> E | None:
        """The entity after the change.

        None if the item was removed, if the stream has no new images, or if the item is not an entity of the table.
        Raises `InvalidItem` if the image does not fit the entity's declaration.
        """
        return self._entity("NewImage")

    @property
    def entity(self) -> E:
        """The entity after the change, or before it if it was removed.

        Raises `UsageError` if the stream has neither image.
        """
        found = self.after if self.after is not None else self.before
        if found is None:
            raise UsageError(
                f"the stream of table {self.table.name!r} shows no entity for this event; "
                "declare the table with stream='NEW_AND_OLD_IMAGES', or look at event.keys"
            )
        return found

    @cached_property
    def schema(self) -> EntitySchema | None:
        """The schema of the entity; None if the item is not an entity of the table.

        Found by the tag, or by the form of the key if there is no tag or no image.
        """
        image = self._change.get("NewImage") or self._change.get("OldImage")
        if image is None:
            return self._schema_of_keys()
        tag = image.get(self.table.tag)
        if tag is not None:
            return self.table.entity_of(tag.get("S", ""))
        only = tuple(self.table.entities.values())
        return only[0] if len(only) == 1 else self._schema_of_keys()

    def _schema_of_keys(self) -> EntitySchema | None:
        known = [each for each in self.table.entities.values() if each.base is None]
        fitting = [schema for schema in known if fits(schema, self._change["Keys"])]
        return fitting[0] if len(fitting) == 1 else None

    def _entity(self, member: str) -> E | None:
        image: Item | None = self._change.get(member)
        if image is None or self.schema is None:
            return None
        return cast("E", self.schema.from_item(with_empty_maps(image), require_all_fields=True))

    def __repr__(self) -> str:
        return f"<{self.kind} {self.keys!r} at {self.sequence}>"


_EMPTY_PAGES: Final = 3  # after so many in a row, an open shard counts as read


class Shard(NamedTuple):
    """A part of a stream. `last` is its last sequence number; None while records are still added."""

    id: str
    parent: str | None
    first: str | None
    last: str | None

    @property
    def is_closed(self) -> bool:
        """Whether no more records will be added."""
        return self.last is not None


class Records(NamedTuple):
    """A page of a shard, and the position after it; None at the end of a closed shard."""

    events: list[Event[Entity]]
    next: str | None


# Enabling


def specification(table: Table) -> dict[str, Any]:
    """The request member that enables the declared stream."""
    if table.stream is None:
        return {}
    return {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": table.stream}}


def ensure_stream(table: Table) -> Steps[None]:
    """Enable the declared stream if the table has none, and wait until it is active."""
    if table.stream is None:
        return
    if (yield from describe_table(table.name)).stream is not None:
        return
    yield Call("UpdateTable", {"TableName": table.name, **specification(table)})
    for pause in poll_pauses():
        if (yield from describe_table(table.name)).status == "ACTIVE":
            return
        yield pause


# Reading


def stream_of(table: Table) -> Steps[str]:
    """The ARN of a table's stream; raises `UsageError` if none is enabled."""
    description = yield from describe_table(table.name)
    if description.stream is None or description.stream_arn is None:
        raise UsageError(
            f"table {table.name!r} has no stream; declare it with "
            "Table(…, stream='NEW_AND_OLD_IMAGES'), and create_tables() enables it"
        )
    return description.stream_arn


def streams_of(table: Table) -> Steps[list[str]]:
    """The ARNs of all readable streams of a table, including disabled ones."""
    found: list[str] = []
    request: dict[str, Any] = {"TableName": table.name}
    while True:
        response = yield Call("ListStreams", request)
        found += [each["StreamArn"] for each in response.get("Streams", ())]
        last = response.get("LastEvaluatedStreamArn")
        if last is None:
            return found
        request = {**request, "ExclusiveStartStreamArn": last}


def shards_of(stream: str) -> Steps[list[Shard]]:
    """The shards of a stream that have not been dropped. Cost: a request for each hundred."""
    found: list[Shard] = []
    request: dict[str, Any] = {"StreamArn": stream}
    while True:
        response = yield Call("DescribeStream", request)
        description = response["StreamDescription"]
        found += map(_shard, description.get("Shards", ()))
        last = description.get("LastEvaluatedShardId")
        if last is None:
            return found
        request = {**request, "ExclusiveStartShardId": last}


def position(stream: str, shard: str, *, after: str | None = None) -> Steps[str]:
    """A shard iterator: after a sequence number, or at the oldest record.

    Raises `TrimmedDataAccessException` if that record was dropped, and `ResourceNotFoundException` if the shard was.
    The iterator is valid for 15 minutes.
    """
    kind = {"ShardIteratorType": "TRIM_HORIZON"}
    if after is not None:
        kind = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
    response = yield Call("GetShardIterator", {"StreamArn": stream, "ShardId": shard, **kind})
    found: str = response["ShardIterator"]
    return found


def newest(stream: str, shard: str) -> Steps[str]:
    """A shard iterator after the newest record."""
    request = {"StreamArn": stream, "ShardId": shard, "ShardIteratorType": "LATEST"}
    response = yield Call("GetShardIterator", request)
    found: str = response["ShardIterator"]
    return found


def read(table: Table, shard: str, start: str, limit: int | None = None) -> Steps[Records]:
    """A page of a shard: up to a thousand records, or 1 MB.

    Raises `ExpiredIteratorException` if the iterator is too old.
    """
    request: dict[str, Any] = {"ShardIterator": start}
    if limit is not None:
        request["Limit"] = limit
    response = yield Call("GetRecords", request)
    events: list[Event[Entity]] = [
        Event(table, shard, each)
        for each in response["Records"]
        if not is_record(table, each["dynamodb"]["Keys"])
    ]
    return Records(events, response.get("NextShardIterator"))


def parents_first(shards: Iterable[Shard]) -> list[Shard]:
    """The shards sorted so that parents come before their children."""
    by_id = {shard.id: shard for shard in sorted(shards)}
    lineage = {each.id: {each.parent or ""} & by_id.keys() for each in by_id.values()}
    return [by_id[each] for each in TopologicalSorter(lineage).static_order()]


class Changes:
    """Reads all records of a stream; each `step` sends one request for records.

    Shards that are created meanwhile are read, too, so everything written before the end is included.
    """

    def __init__(self, table: Table, since: datetime | None = None) -> None:
        self._table = table
        self._since = since
        self._stream: str | None = None
        self._left: list[Shard] = []
        self._done: set[str] = set()
        self._reading: tuple[Shard, str] | None = None
        self._empty = 0
        self.is_over: bool = False

    def step(self) -> Steps[list[Event[Entity]]]:
        """The next events, possibly none."""
        if self._reading is None and not (yield from self._begin()):
            self.is_over = True
            return []
        assert self._reading is not None
        shard, start = self._reading
        records = yield from read(self._table, shard.id, start)
        # An open shard always has a next page, and the service may return empty pages before its end.
        self._empty = 0 if records.events or shard.is_closed else self._empty + 1
        at_end = records.next is None or self._empty == _EMPTY_PAGES
        self._reading = None if at_end or records.next is None else (shard, records.next)
        return [each for each in records.events if self._is_wanted(each)]

    def _begin(self) -> Steps[bool]:
        """Start reading the next shard; returns False if there is none."""
        if self._stream is None:
            self._stream = yield from stream_of(self._table)
        if not self._left:
            known = yield from shards_of(self._stream)
            self._left = [each for each in parents_first(known) if each.id not in self._done]
        while self._left:
            shard = self._left.pop(0)
            self._done.add(shard.id)
            self._empty = 0
            try:
                self._reading = shard, (yield from position(self._stream, shard.id))
            except ResourceNotFoundException:
                continue  # dropped since it was listed
            return True
        return False

    def _is_wanted(self, event: Event[Entity]) -> bool:
        return self._since is None or event.time >= self._since


def _shard(described: Response) -> Shard:
    numbers = described.get("SequenceNumberRange", {})
    return Shard(
        described["ShardId"],
        described.get("ParentShardId"),
        numbers.get("StartingSequenceNumber"),
        numbers.get("EndingSequenceNumber"),
    )
