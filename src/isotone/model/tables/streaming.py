"""A table's stream of changes: enabled as declared, its shards listed, its records read.

A shard is read from a position on, page by page. Whoever wants every item's changes in order finishes a
shard before its children: `in_order` tells in which order that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from isotone.backends.interface import Response
from isotone.errors import ResourceNotFoundException, UsageError
from isotone.model.declaring.table import Table
from isotone.model.steps import Call, Pause, Steps
from isotone.model.tables.events import Event

if TYPE_CHECKING:
    from isotone.model.entity import Entity

_FIRST_PAUSE: Final = 0.05  # seconds between looks at a table whose stream is being enabled
_LONGEST_PAUSE: Final = 5.0
_EMPTY_PAGES: Final = 3  # in a row, after which an open shard is believed to be read


class Shard(NamedTuple):
    """A part of a stream. `last` is its last sequence number, None while it takes records."""

    id: str
    parent: str | None
    first: str | None
    last: str | None

    @property
    def is_closed(self) -> bool:
        """Whether no record will be added."""
        return self.last is not None


class Records(NamedTuple):
    """A page of a shard, and the position after it: None where the shard is over."""

    events: list[Event[Entity]]
    next: str | None


# Enabling


def specification(table: Table) -> dict[str, Any]:
    """The member of a request that enables the declared stream."""
    if table.stream is None:
        return {}
    return {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": table.stream}}


def view_of(description: Response) -> str | None:
    """What the stream of a table shows; None where the table has none."""
    enabled: Mapping[str, Any] = description.get("StreamSpecification") or {}
    return enabled.get("StreamViewType") if enabled.get("StreamEnabled") else None


def ensure_stream(table: Table) -> Steps[None]:
    """Enable the declared stream where the table has none, and wait until it is there."""
    if table.stream is None:
        return
    response = yield Call("DescribeTable", {"TableName": table.name})
    if view_of(response["Table"]) is not None:
        return
    yield Call("UpdateTable", {"TableName": table.name, **specification(table)})
    pause = _FIRST_PAUSE
    while True:
        response = yield Call("DescribeTable", {"TableName": table.name})
        if response["Table"].get("TableStatus", "ACTIVE") == "ACTIVE":
            return
        yield Pause(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


# Reading


def stream_of(table: Table) -> Steps[str]:
    """The ARN of a table's stream; raises `UsageError` where none is enabled."""
    response = yield Call("DescribeTable", {"TableName": table.name})
    description = response["Table"]
    if view_of(description) is None:
        raise UsageError(
            f"table {table.name!r} has no stream; declare it with "
            "Table(…, stream='NEW_AND_OLD_IMAGES'), and create_tables() enables it"
        )
    arn: str = description["LatestStreamArn"]
    return arn


def streams_of(table: Table) -> Steps[list[str]]:
    """The ARNs of all streams of a table that can be read, those that record no more among them."""
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
    """The shards of a stream, as far as they have not been dropped: a hundred to a request."""
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
    """Where to read on in a shard: after a sequence number, or at the oldest record.

    Raises `TrimmedDataAccessException` where that record is gone, `ResourceNotFoundException` where the
    shard is. A position can be used for 15 minutes.
    """
    kind = {"ShardIteratorType": "TRIM_HORIZON"}
    if after is not None:
        kind = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
    response = yield Call("GetShardIterator", {"StreamArn": stream, "ShardId": shard, **kind})
    found: str = response["ShardIterator"]
    return found


def newest(stream: str, shard: str) -> Steps[str]:
    """The position after the newest record of a shard."""
    request = {"StreamArn": stream, "ShardId": shard, "ShardIteratorType": "LATEST"}
    response = yield Call("GetShardIterator", request)
    found: str = response["ShardIterator"]
    return found


def read(table: Table, shard: str, start: str, limit: int | None = None) -> Steps[Records]:
    """A page of a shard: up to a thousand records, or 1 MB.

    Raises `ExpiredIteratorException` for a position that is too old.
    """
    request: dict[str, Any] = {"ShardIterator": start}
    if limit is not None:
        request["Limit"] = limit
    response = yield Call("GetRecords", request)
    events: list[Event[Entity]] = [Event(table, shard, each) for each in response["Records"]]
    return Records(events, response.get("NextShardIterator"))


def in_order(shards: Iterable[Shard]) -> list[Shard]:
    """Parents before their children."""
    by_id = {shard.id: shard for shard in sorted(shards)}
    lineage = {each.id: {each.parent or ""} & by_id.keys() for each in by_id.values()}
    return [by_id[each] for each in TopologicalSorter(lineage).static_order()]


class Changes:
    """What a stream holds at present, in progress: each step brings what one request brings.

    Shards that begin while it reads are read as well, so that nothing is missing that was there when it
    was at its end.
    """

    def __init__(self, table: Table, since: datetime | None = None) -> None:
        self._table = table
        self._since = since
        self._stream: str | None = None
        self._left: list[Shard] = []
        self._done: set[str] = set()
        self._reading: tuple[Shard, str] | None = None
        self._empty = 0
        self.is_over = False

    def step(self) -> Steps[list[Event[Entity]]]:
        """The next events, maybe none."""
        if self._reading is None and not (yield from self._begin()):
            self.is_over = True
            return []
        assert self._reading is not None
        shard, start = self._reading
        records = yield from read(self._table, shard.id, start)
        # An open shard always has a next page. The service now and then gives an empty one before the end.
        self._empty = 0 if records.events or shard.is_closed else self._empty + 1
        at_end = records.next is None or self._empty == _EMPTY_PAGES
        self._reading = None if at_end or records.next is None else (shard, records.next)
        return [each for each in records.events if self._is_wanted(each)]

    def _begin(self) -> Steps[bool]:
        """Take up the next shard; False where there is none."""
        if self._stream is None:
            self._stream = yield from stream_of(self._table)
        if not self._left:
            known = yield from shards_of(self._stream)
            self._left = [each for each in in_order(known) if each.id not in self._done]
        while self._left:
            shard = self._left.pop(0)
            self._done.add(shard.id)
            self._empty = 0
            try:
                self._reading = shard, (yield from position(self._stream, shard.id))
            except ResourceNotFoundException:
                continue  # it was dropped since it was listed
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
