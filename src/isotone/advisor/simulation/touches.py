"""Attributes the units of each response to the partition keys that its request touched, for a simulation.

    recorder = TouchRecorder(backend)
    store = isotone.connect(recorder)
    …
    touches = recorder.take()          # what was touched since the last call

The units of a table and of each global index come from the responses. If a request touches several keys of one place,
its units are divided among them. Before and after each write the item is read separately, to find the changed index
entries; these reads are not recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from isotone.backends.interface import Backend, Native, Request, Response, as_text
from isotone.errors import (
    ApiError,
    ConditionalCheckFailedException,
    TransactionCanceledException,
    UsageError,
)
from isotone.expressions import key_condition
from isotone.tables.description import KeyDescription, read_description
from isotone.values.size import item_size, write_units
from isotone.values.types import AttributeValue, Item

_WITHOUT_SQL: Final = "write the action with the store, or as GetItem, Query, PutItem and so on"
# Actions whose keys cannot be derived from the request.
_NOT_RECORDED: Final = {
    "ExecuteStatement": _WITHOUT_SQL,
    "BatchExecuteStatement": _WITHOUT_SQL,
    "ExecuteTransaction": _WITHOUT_SQL,
    "SearchVectors": "DynamoDB has no such action, so there is no price for it",
}


@dataclass(frozen=True, slots=True)
class PartitionSpace:
    """A table or a global index: each has partitions of its own."""

    table: str
    index: str | None = None

    def __str__(self) -> str:
        return self.table if self.index is None else f"{self.table}.{self.index}"


class PartitionTouch(NamedTuple):
    """The units that a request consumed for one partition key; without a key, they are spread over all keys."""

    place: PartitionSpace
    key: str | None
    reads: float = 0.0
    writes: float = 0.0
    grown: int = 0
    """The growth of the item in bytes."""


@dataclass(frozen=True, slots=True)
class _KeyNames:
    """The keys of a table and its indexes; `local` are its local indexes."""

    keys: dict[PartitionSpace, KeyDescription]
    local: frozenset[PartitionSpace]

    def touched(self, place: PartitionSpace, item: Mapping[str, Any] | None) -> str | None:
        """The text of an item's partition key in a place; None if the item is not in it."""
        values = [(item or {}).get(name) for name in self.keys[place].partition_names]
        present = [value for value in values if value is not None]
        return _key_text(present) if len(present) == len(values) else None


class _Write(NamedTuple):
    table: str
    key: Item


class TouchRecorder(Native):
    """A `Backend` that passes requests to another one, and records what they touch."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._shapes: dict[str, _KeyNames] = {}
        self._touches: list[PartitionTouch] = []

    def take(self) -> list[PartitionTouch]:
        """The touches since the last call of `take`."""
        taken, self._touches = self._touches, []
        return taken

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Answer one action."""
        if operation in ("UpdateTable", "DeleteTable"):
            self._shapes.clear()
        if operation in _NOT_RECORDED:
            raise UsageError(f"{operation} cannot be simulated; {_NOT_RECORDED[operation]}")
        reads, writes = self._keys_of_request(operation, request)
        if not reads and not writes:
            return self._backend.execute(operation, request, deadline)
        before = [self._item(write) for write in writes]
        request = {**as_text(request), "ReturnConsumedCapacity": "INDEXES"}
        try:
            response = self._backend.execute(operation, request, deadline)
        except ConditionalCheckFailedException:
            self._refused(writes, before)
            raise
        except TransactionCanceledException:
            self._refused(writes, before, factor=2)
            raise
        after = [self._item(write) for write in writes]
        for consumed in _each_table(response.get("ConsumedCapacity")):
            self._reads(consumed, reads)
            self._writes(consumed, writes, before, after)
        return response

    # Keys in a request

    def _keys_of_request(
        self, operation: str, request: Request
    ) -> tuple[list[tuple[PartitionSpace, str | None]], list[_Write]]:
        """The places and partition keys that a request reads, and the items that it writes."""
        match operation:
            case "GetItem":
                return [self._of_key(request["TableName"], request["Key"])], []
            case "Query":
                return [self._of_query(request)], []
            case "Scan":
                return [(PartitionSpace(request["TableName"], request.get("IndexName")), None)], []
            case "BatchGetItem":
                wanted = request["RequestItems"].items()
                return [
                    self._of_key(name, key) for name, each in wanted for key in each["Keys"]
                ], []
            case "TransactGetItems":
                gets = [entry["Get"] for entry in request["TransactItems"]]
                return [self._of_key(get["TableName"], get["Key"]) for get in gets], []
            case "PutItem" | "UpdateItem" | "DeleteItem":
                return [], [self._write(request["TableName"], request)]
            case "BatchWriteItem":
                each = request["RequestItems"].items()
                return [], [
                    self._write(name, entry)
                    for name, entries in each
                    for entry in (next(iter(one.values())) for one in entries)
                ]
            case "TransactWriteItems":
                entries = [next(iter(entry.values())) for entry in request["TransactItems"]]
                return [], [self._write(entry["TableName"], entry) for entry in entries]
        return [], []

    def _of_key(self, table: str, key: Item) -> tuple[PartitionSpace, str | None]:
        place = PartitionSpace(table)
        return place, self._shape(table).touched(place, key)

    def _of_query(self, request: Request) -> tuple[PartitionSpace, str | None]:
        table = request["TableName"]
        shape = self._shape(table)
        place = PartitionSpace(table, request.get("IndexName"))
        # A local index is in the table's partitions.
        own = PartitionSpace(table) if place in shape.local else place
        text = as_text(request)
        if "KeyConditionExpression" not in text:  # the legacy parameter KeyConditions
            return own, None
        names, values = (text.get(f"ExpressionAttribute{each}") for each in ("Names", "Values"))
        condition, key = key_condition(text["KeyConditionExpression"], names), shape.keys[place]
        return own, _key_text(
            condition.resolve(values, key.partition_names, key.sort_names).partition
        )

    def _write(self, table: str, entry: Mapping[str, Any]) -> _Write:
        source = entry.get("Key") or entry["Item"]
        names = self._shape(table).keys[PartitionSpace(table)].names
        return _Write(table, {name: source[name] for name in names if name in source})

    # Cost of a request

    def _reads(
        self, consumed: Mapping[str, Any], reads: list[tuple[PartitionSpace, str | None]]
    ) -> None:
        of_table = [each for each in reads if each[0].table == consumed["TableName"]]
        if not of_table:
            return
        units = float(consumed.get("CapacityUnits", 0.0)) / len(of_table)
        self._touches += [PartitionTouch(place, key, reads=units) for place, key in of_table]

    def _writes(
        self,
        consumed: Mapping[str, Any],
        writes: list[_Write],
        before: list[Item | None],
        after: list[Item | None],
    ) -> None:
        table = consumed["TableName"]
        changes = [
            (old, new, write)
            for write, old, new in zip(writes, before, after, strict=True)
            if write.table == table
        ]
        if not changes:
            return
        shape = self._shape(table)
        of_indexes = {
            PartitionSpace(table, name): float(each["CapacityUnits"])
            for name, each in (consumed.get("GlobalSecondaryIndexes") or {}).items()
        }
        own = (float(consumed["CapacityUnits"]) - sum(of_indexes.values())) / len(changes)
        for old, new, write in changes:
            key = shape.touched(PartitionSpace(table), write.key)
            self._touches.append(
                PartitionTouch(PartitionSpace(table), key, 0.0, own, _size(new) - _size(old))
            )
        for place, units in of_indexes.items():
            keys = [
                key
                for old, new, _ in changes
                if old != new
                for key in dict.fromkeys((shape.touched(place, old), shape.touched(place, new)))
                if key is not None
            ]
            self._touches += [PartitionTouch(place, key, writes=units / len(keys)) for key in keys]

    def _refused(self, writes: list[_Write], before: list[Item | None], *, factor: int = 1) -> None:
        """Record writes of which a condition failed: they cost as much as writes of the stored items, or twice that."""
        for write, old in zip(writes, before, strict=True):
            place = PartitionSpace(write.table)
            key = self._shape(write.table).touched(place, write.key)
            self._touches.append(
                PartitionTouch(place, key, writes=factor * write_units(_size(old)))
            )

    # Separate reads

    def _shape(self, table: str) -> _KeyNames:
        found = self._shapes.get(table)
        if found is None:
            description = read_description(self._backend, table)
            keys = {PartitionSpace(table): description.key}
            keys |= {PartitionSpace(table, index.name): index.key for index in description.indexes}
            local = [index.name for index in description.indexes if index.kind == "local"]
            found = _KeyNames(keys, frozenset(PartitionSpace(table, name) for name in local))
            self._shapes[table] = found
        return found

    def _item(self, write: _Write) -> Item | None:
        request = {"TableName": write.table, "Key": write.key, "ConsistentRead": True}
        try:
            found: Item | None = self._backend.execute("GetItem", request).get("Item")
        except ApiError:  # the request itself will report a wrong key
            return None
        return found


def _key_text(values: Iterable[AttributeValue]) -> str:
    """The values of a partition key as one text."""
    return "#".join(str(next(iter(value.values()))) for value in values)


def _each_table(consumed: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(consumed, list):
        yield from consumed
    elif consumed:
        yield consumed


def _size(item: Item | None) -> int:
    return 0 if item is None else item_size(item)
