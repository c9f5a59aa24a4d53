"""DynamoDB's actions on Azure Table storage: which entities each reads, executes on, and writes.

    GetItem                 read the entity, execute
    PutItem, DeleteItem     without a condition: write at once; otherwise as UpdateItem
    UpdateItem              read the entity, execute, write it if its ETag is the same; otherwise from the beginning
    Query, Scan             read a range in order of its keys until the page is full, execute
    BatchWriteItem          puts of one partition in a transaction of Azure's, which is one request
    TransactWriteItems      items of one partition: read, execute, write all if no ETag has changed
    TransactGetItems        read all twice, until no ETag has changed in between

Azure reads forward only. A Query in descending order reads its whole range, and keeps the end of it; it is refused in a
range of more than 10,000 items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from isotone import limits
from isotone.backends.azure_table import keys
from isotone.backends.azure_table.entities import PARTITION, ROW, EntityLayout, entity_size
from isotone.backends.azure_table.evaluation import Evaluator, Outcome, Stored, StoredDefinition
from isotone.backends.azure_table.service import (
    Absent,
    Conflict,
    EntityChange,
    FoundEntity,
    GetEntity,
    InsertEntity,
    ListEntities,
    Many,
    RemoveEntity,
    Replace,
    Sleep,
    Steps,
    TableGone,
    WriteEntity,
    WriteTogether,
)
from isotone.backends.azure_table.tables import Tables
from isotone.backends.interface import Request, Response, as_text
from isotone.backends.request_retries import THROTTLES, Retries
from isotone.errors import (
    ApiError,
    InternalServerError,
    ResourceNotFoundException,
    ThrottlingException,
    TransactionCanceledException,
    Unsupported,
)
from isotone.expressions import KeyRange, key_condition
from isotone.values.attribute_validation import canonical_value
from isotone.values.size import item_size
from isotone.values.types import AttributeValue, Item

R = TypeVar("R")

LARGEST_REVERSAL: Final = 10_000  # items that a descending query may read

_CONFLICTS: Final = Retries(attempts=50, base=0.005, longest=0.5)
"""For an optimistic write that keeps losing to other writers."""
_THROTTLED: Final = Retries(attempts=10, base=0.005, longest=0.5)
"""For a write that Azure throttles."""
_PAGE: Final = 1000  # entities that Azure returns at once
# The largest group of entities in bytes. Azure's limit of 4 MB is for JSON, which may be three
# times as long.
_LARGEST_COMMIT: Final = 1024 * 1024
# A batch returns such entries as unprocessed. They may have been written: writing them again
# changes nothing.
_UNPROCESSED: Final = (*THROTTLES, InternalServerError)

_NONE: Final = (None, "NONE")


class Actions:
    """Answers requests by steps, for the tables of one account."""

    __slots__ = ("_evaluator", "_tables")

    def __init__(self) -> None:
        self._evaluator = Evaluator()
        self._tables = Tables(self._evaluator)

    def answer(self, operation: str, request: Request) -> Steps[Response]:
        """Answer one request. Raises its `ApiError`, or `Unsupported`."""
        action = _ACTIONS.get(operation)
        if action is None:
            raise Unsupported(
                f"{operation} is not possible with Azure Table storage{_reason(operation)}; "
                "docs/engines.md lists what is"
            )
        try:
            return (yield from action(self, as_text(request)))
        except TableGone:
            self._tables.forget()
            raise ResourceNotFoundException("Requested resource not found") from None

    def _table(self, operation: str, request: Request, name: Any) -> Steps[StoredDefinition]:
        table = yield from self._tables.find(name)
        if table is None:
            self._evaluator.refuse(operation, request)
            raise ResourceNotFoundException("Requested resource not found")
        return table

    # One item

    def get_item(self, request: Request) -> Steps[Response]:
        table = yield from self._table("GetItem", request, request.get("TableName"))
        place = self._place("GetItem", request, table, request.get("Key"))
        found = yield from _get(place)
        return self._evaluator.execute("GetItem", request, [table], place.stored(found)).response

    def put_item(self, request: Request) -> Steps[Response]:
        return (yield from self._write("PutItem", request, "Item"))

    def update_item(self, request: Request) -> Steps[Response]:
        return (yield from self._write("UpdateItem", request, "Key"))

    def delete_item(self, request: Request) -> Steps[Response]:
        return (yield from self._write("DeleteItem", request, "Key"))

    def _write(self, operation: str, request: Request, member: str) -> Steps[Response]:
        table = yield from self._table(operation, request, request.get("TableName"))
        place = self._place(operation, request, table, request.get(member))
        is_read = operation == "UpdateItem" or _needs_read(request)
        attempt = 0
        while True:
            found = (yield from _get(place)) if is_read else None
            response, (after,) = self._evaluator.execute(
                operation, request, [table], place.stored(found), [place.key]
            )
            change = place.change(found, after) if is_read else place.overwrite(after)
            if change is None:
                return response
            attempt += 1
            try:
                yield WriteEntity(table.azure_name, change)
            except Conflict:
                if attempt == _CONFLICTS.attempts:
                    raise ThrottlingException(
                        f"other writers changed an item of table {table.name!r} during each of {attempt} attempts"
                    ) from None
            except THROTTLES:
                if attempt >= _THROTTLED.attempts:
                    raise
            else:
                return response
            yield _pause(attempt)

    def _place(
        self, operation: str, request: Request, table: StoredDefinition, item: Any
    ) -> _EntityPlace:
        """The keys of an item. An item without a valid key is refused in DynamoDB's words."""
        layout = table.layout
        try:
            partition, row = layout.keys_of(item)
            key = {name: item[name] for name, _ in layout.key}
        except (ApiError, KeyError, TypeError, ValueError):
            self._evaluator.execute(operation, request, [table])
            raise
        return _EntityPlace(table, layout, partition, row, Stored(table, key))

    # Ranges

    def query(self, request: Request) -> Steps[Response]:
        table = yield from self._table("Query", request, request.get("TableName"))
        self._evaluator.execute("Query", request, [table])
        if "KeyConditionExpression" not in request:
            raise Unsupported(
                "Azure Table storage: a Query needs a KeyConditionExpression, not KeyConditions"
            )
        clauses = _clauses(table.layout, _key_range(request, table))
        forward = request.get("ScanIndexForward", True)
        if start := request.get("ExclusiveStartKey"):
            row = table.layout.keys_of(start)[1]
            clauses.append(_clause(ROW, "gt" if forward else "lt", row))
        limit = request.get("Limit")
        entities = _FilterRange(table, [" and ".join(clauses)], limit if forward else None)
        if forward:
            items = yield from _first(entities, limit)
        else:
            items = yield from _last(entities, limit)
        return self._evaluator.execute("Query", request, [table], items).response

    def scan(self, request: Request) -> Steps[Response]:
        table = yield from self._table("Scan", request, request.get("TableName"))
        self._evaluator.execute("Scan", request, [table])
        limit = request.get("Limit")
        filters = [""]
        if start := request.get("ExclusiveStartKey"):
            partition, row = table.layout.keys_of(start)
            rest = [_clause(PARTITION, "eq", partition), _clause(ROW, "gt", row)]
            filters = [" and ".join(rest), _clause(PARTITION, "gt", partition)]
        if request.get("Segment"):
            filters = []  # the first segment has everything
        items, is_full = yield from _fitting(_FilterRange(table, filters, limit), limit)
        # The page is in the order of Azure's keys, which is not that of the scratch database.
        of_page = {name: each for name, each in request.items() if name not in _POSITION}
        response = self._evaluator.execute("Scan", of_page, [table], items).response
        if is_full:
            response["LastEvaluatedKey"] = {name: items[-1].item[name] for name, _ in table.key}
        return response

    # Several items

    def batch_get_item(self, request: Request) -> Steps[Response]:
        places = []
        for name, keys_wanted in self._parsed("BatchGetItem", request, _batch_keys):
            table = yield from self._table("BatchGetItem", request, name)
            places += [self._place("BatchGetItem", request, table, key) for key in keys_wanted]
        found = yield from _get_all(places)
        return self._execute("BatchGetItem", request, places, found).response

    def batch_write_item(self, request: Request) -> Steps[Response]:
        places: list[_EntityPlace] = []
        entries: list[tuple[str, Any]] = []
        for name, writes in self._parsed("BatchWriteItem", request, _batch_writes):
            table = yield from self._table("BatchWriteItem", request, name)
            for entry, item in writes:
                places.append(self._place("BatchWriteItem", request, table, item))
                entries.append((name, entry))
        response, after = self._execute("BatchWriteItem", request, places, [], watched=places)
        changes = [place.overwrite(item) for place, item in zip(places, after, strict=True)]
        groups = _groups(places, changes)
        results = yield Many([request for request, _ in groups])
        unprocessed: dict[str, list[Any]] = {}
        for (_, numbers), result in zip(groups, results, strict=True):
            if isinstance(result, _UNPROCESSED):
                for number in numbers:
                    name, entry = entries[number]
                    unprocessed.setdefault(name, []).append(entry)
            elif isinstance(result, Exception):
                raise result
        if sum(map(len, unprocessed.values())) == len(entries):
            raise next(each for each in results if isinstance(each, _UNPROCESSED))
        return response | {"UnprocessedItems": unprocessed}

    def transact_get_items(self, request: Request) -> Steps[Response]:
        places = yield from self._places_of_transaction("TransactGetItems", request)
        before = yield from _get_all(places)
        for attempt in range(1, _CONFLICTS.attempts + 1):
            found = yield from _get_all(places)
            if len(places) == 1 or list(map(_etag, before)) == list(map(_etag, found)):
                return self._execute("TransactGetItems", request, places, found).response
            before = found
            yield _pause(attempt)
        raise _conflict(len(places))

    def transact_write_items(self, request: Request) -> Steps[Response]:
        places = yield from self._places_of_transaction("TransactWriteItems", request)
        partitions = {(place.table.azure_name, place.partition) for place in places}
        if len(partitions) > 1:
            raise Unsupported(
                f"a transaction has items of {len(partitions)} partitions, and Azure Table storage commits changes "
                "of one partition of one table: give the items the same partition key, or write them one by one"
            )
        for attempt in range(1, _CONFLICTS.attempts + 1):
            found = yield from _get_all(places)
            response, after = self._execute(
                "TransactWriteItems", request, places, found, watched=places
            )
            changes = list(_changes_of_transaction(request["TransactItems"], places, found, after))
            if not changes:
                return response
            try:
                yield WriteTogether(places[0].table.azure_name, changes)
            except Conflict:
                pass
            except THROTTLES:
                if attempt >= _THROTTLED.attempts:
                    raise
            else:
                return response
            yield _pause(attempt)
        raise _conflict(len(places))

    def _places_of_transaction(self, operation: str, request: Request) -> Steps[list[_EntityPlace]]:
        places = []
        for name, item in self._parsed(operation, request, _transacted):
            table = yield from self._table(operation, request, name)
            places.append(self._place(operation, request, table, item))
        if not places:
            self._evaluator.refuse(operation, request)
        return places

    def _parsed(self, operation: str, request: Request, parse: Callable[[Request], R]) -> R:
        """The result of `parse` for a request. A malformed request is refused in DynamoDB's words."""
        try:
            return parse(request)
        except (AttributeError, KeyError, TypeError, ValueError):
            self._evaluator.refuse(operation, request)
            raise

    def _execute(
        self,
        operation: str,
        request: Request,
        places: Sequence[_EntityPlace],
        found: Sequence[FoundEntity | None],
        *,
        watched: Sequence[_EntityPlace] = (),
    ) -> Outcome:
        tables = {place.table.name: place.table for place in places}
        items: dict[tuple[str, str, str], Stored] = {}
        for place, each in zip(places, found, strict=False):
            for stored in place.stored(each):
                items[place.table.name, place.partition, place.row] = stored
        keys_watched = [place.key for place in watched]
        return self._evaluator.execute(
            operation, request, tables.values(), items.values(), keys_watched
        )

    # Tables

    def create_table(self, request: Request) -> Steps[Response]:
        return (yield from self._tables.create(request))

    def delete_table(self, request: Request) -> Steps[Response]:
        return (yield from self._tables.delete(request))

    def describe_table(self, request: Request) -> Steps[Response]:
        return (yield from self._tables.describe(request))

    def list_tables(self, request: Request) -> Steps[Response]:
        return (yield from self._tables.names(request))

    def describe_time_to_live(self, request: Request) -> Steps[Response]:
        return (yield from self._describe_default("DescribeTimeToLive", request))

    def describe_continuous_backups(self, request: Request) -> Steps[Response]:
        return (yield from self._describe_default("DescribeContinuousBackups", request))

    def _describe_default(self, operation: str, request: Request) -> Steps[Response]:
        """DynamoDB's answer for a table for which a feature was never enabled."""
        table = yield from self._table(operation, request, request.get("TableName"))
        return self._evaluator.execute(operation, request, [table]).response

    def list_tags(self, request: Request) -> Steps[Response]:
        operation = "ListTagsOfResource"
        table = yield from self._table(operation, request, request.get("ResourceArn"))
        return self._evaluator.execute(operation, request, [table]).response


_ACTIONS: Final[dict[str, Callable[[Actions, Request], Steps[Response]]]] = {
    "BatchGetItem": Actions.batch_get_item,
    "BatchWriteItem": Actions.batch_write_item,
    "CreateTable": Actions.create_table,
    "DeleteItem": Actions.delete_item,
    "DeleteTable": Actions.delete_table,
    "DescribeContinuousBackups": Actions.describe_continuous_backups,
    "DescribeTable": Actions.describe_table,
    "DescribeTimeToLive": Actions.describe_time_to_live,
    "GetItem": Actions.get_item,
    "ListTables": Actions.list_tables,
    "ListTagsOfResource": Actions.list_tags,
    "PutItem": Actions.put_item,
    "Query": Actions.query,
    "Scan": Actions.scan,
    "TransactGetItems": Actions.transact_get_items,
    "TransactWriteItems": Actions.transact_write_items,
    "UpdateItem": Actions.update_item,
}

_REASONS: Final = (
    ("Stream", ": it has no streams"),
    ("GetRecords", ": it has no streams"),
    ("GetShardIterator", ": it has no streams"),
    ("UpdateTimeToLive", ": items do not expire there; delete them in a job of your own"),
    ("Statement", ": write the request as Query, PutItem, UpdateItem or DeleteItem"),
    ("ExecuteTransaction", ": write the request as TransactWriteItems"),
)


def _reason(operation: str) -> str:
    return next((reason for part, reason in _REASONS if part in operation), "")


# Items and entities


class _EntityPlace(NamedTuple):
    """An item's table, and its keys in both systems."""

    table: StoredDefinition
    layout: EntityLayout
    partition: str
    row: str
    key: Stored

    def stored(self, found: FoundEntity | None) -> list[Stored]:
        """The item of an entity, if there is one, as a list."""
        return [] if found is None else [Stored(self.table, self.layout.item(found.entity))]

    def overwrite(self, after: Item | None) -> EntityChange:
        """Write an item, or delete it, whatever is stored."""
        if after is None:
            return RemoveEntity(self.partition, self.row)
        return Replace(self.layout.entity(after))

    def change(self, found: FoundEntity | None, after: Item | None) -> EntityChange | None:
        """The change that turns a found entity into an item; None if nothing differs."""
        if found is None:
            return None if after is None else InsertEntity(self.layout.entity(after))
        if after is None:
            return RemoveEntity(self.partition, self.row, found.etag)
        if after == self.layout.item(found.entity):
            return None
        return Replace(self.layout.entity(after), found.etag)

    def check(self, found: FoundEntity) -> EntityChange:
        """Writes an entity unchanged, so that the commit fails if it has changed."""
        return Replace(self.layout.entity(self.layout.item(found.entity)), found.etag)


def _needs_read(request: Request) -> bool:
    """Whether the answer to a put or a delete depends on the stored item."""
    if "ConditionExpression" in request or "Expected" in request:
        return True
    return any(
        request.get(member) not in _NONE for member in ("ReturnValues", "ReturnConsumedCapacity")
    )


def _get(place: _EntityPlace) -> Steps[FoundEntity | None]:
    try:
        found: FoundEntity = yield GetEntity(place.table.azure_name, place.partition, place.row)
    except Absent:
        return None
    return found


def _get_all(places: Sequence[_EntityPlace]) -> Steps[list[FoundEntity | None]]:
    gets = [GetEntity(place.table.azure_name, place.partition, place.row) for place in places]
    once = list(dict.fromkeys(gets))
    results = dict(zip(once, (yield Many(once)), strict=True))
    found: list[FoundEntity | None] = []
    for get in gets:
        result = results[get]
        if isinstance(result, Exception) and not isinstance(result, Absent):
            raise result
        found.append(None if isinstance(result, Absent) else result)
    return found


def _etag(found: FoundEntity | None) -> str | None:
    return None if found is None else found.etag


def _groups(
    places: Sequence[_EntityPlace], changes: Sequence[EntityChange]
) -> list[tuple[WriteEntity | WriteTogether, list[int]]]:
    """The changes in as few requests as possible, each with the numbers of its changes.

    Each delete is a request of its own: in a transaction, a delete of a missing entity would fail all changes.
    """
    groups: list[tuple[WriteEntity | WriteTogether, list[int]]] = []
    puts: dict[tuple[str, str], list[list[int]]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for number, (place, change) in enumerate(zip(places, changes, strict=True)):
        if isinstance(change, RemoveEntity):
            groups.append((WriteEntity(place.table.azure_name, change), [number]))
            continue
        of = (place.table.azure_name, place.partition)
        size = entity_size(change.entity)
        if of not in puts or sizes[of] + size > _LARGEST_COMMIT:
            puts.setdefault(of, []).append([])
            sizes[of] = 0
        puts[of][-1].append(number)
        sizes[of] += size
    for (table, _), lists in puts.items():
        for numbers in lists:
            group = [changes[number] for number in numbers]
            groups.append(
                (
                    WriteEntity(table, group[0])
                    if len(group) == 1
                    else WriteTogether(table, group),
                    numbers,
                )
            )
    return groups


def _changes_of_transaction(
    entries: Sequence[Mapping[str, Any]],
    places: Sequence[_EntityPlace],
    found: Sequence[FoundEntity | None],
    after: Sequence[Item | None],
) -> Iterator[EntityChange]:
    for entry, place, before, item in zip(entries, places, found, after, strict=True):
        change = place.change(before, item)
        if change is None and before is not None:
            change = place.check(before)
        if change is not None:
            yield change
        elif "ConditionCheck" in entry:
            raise Unsupported(
                f"a ConditionCheck on an item of table {place.table.name!r} that does not exist: Azure Table storage "
                "cannot commit a transaction on condition that an entity stays absent; put an item with this key"
            )


def _conflict(actions: int) -> TransactionCanceledException:
    reasons = [{"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}]
    return TransactionCanceledException(
        "Transaction cancelled, please refer cancellation reasons for specific reasons "
        f"[{', '.join(['TransactionConflict'] * actions)}]",
        CancellationReasons=reasons * actions,
    )


def _pause(attempt: int) -> Sleep:
    return Sleep(_CONFLICTS.wait(attempt))


# Entries of batches and transactions


def _batch_keys(request: Request) -> list[tuple[str, list[Any]]]:
    """The keys of a BatchGetItem, by table."""
    return [(name, list(each["Keys"])) for name, each in _request_items(request)]


def _batch_writes(request: Request) -> list[tuple[str, list[tuple[Any, Any]]]]:
    """The entries of a BatchWriteItem, by table, each with its item or key."""
    return [
        (name, [(entry, _item_or_key(entry)) for entry in entries])
        for name, entries in _request_items(request)
    ]


def _transacted(request: Request) -> list[tuple[Any, Any]]:
    """The table's name and the item or key of each action of a transaction."""
    return [
        (_members(entry).get("TableName"), _item_or_key(entry))
        for entry in request.get("TransactItems") or ()
    ]


def _request_items(request: Request) -> Iterable[tuple[str, Any]]:
    members = request.get("RequestItems")
    return members.items() if isinstance(members, Mapping) else ()


def _item_or_key(entry: Mapping[str, Any]) -> Any:
    members = _members(entry)
    return members.get("Item") or members.get("Key")


def _members(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The members of the only action of an entry."""
    ((_, members),) = entry.items()
    found: Mapping[str, Any] = members
    return found


# Ranges

_POSITION: Final = frozenset(("ExclusiveStartKey", "Limit", "Segment", "TotalSegments"))
_OPERATORS: Final = {"=": "eq", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def _key_range(request: Request, table: StoredDefinition) -> KeyRange:
    """The range of a Query."""
    names = tuple(name for name, _ in table.key)
    condition = key_condition(
        request["KeyConditionExpression"], request.get("ExpressionAttributeNames")
    )
    values = request.get("ExpressionAttributeValues")
    return condition.resolve(values, names[:1], names[1:])


def _clauses(layout: EntityLayout, range_: KeyRange) -> list[str]:
    """The terms of the filter for a range."""
    clauses = [_clause(PARTITION, "eq", _key(range_.partition[0]))]
    clauses += [_clause(ROW, "eq", _key(value)) for value in range_.equal]
    if range_.operator == "BETWEEN":
        low, high = map(_key, range_.operands)
        clauses += [_clause(ROW, "ge", low), _clause(ROW, "le", high)]
    elif range_.operator == "begins_with":
        low, end = keys.prefix_range(range_.operands[0])
        clauses.append(_clause(ROW, "ge", low))
        if end is not None:
            clauses.append(_clause(ROW, "lt", end))
    elif range_.operator is not None:
        clauses.append(_clause(ROW, _OPERATORS[range_.operator], _key(range_.operands[0])))
    return clauses


def _key(value: AttributeValue) -> str:
    return keys.encode(canonical_value(value)[0])


def _clause(name: str, operator: str, key: str) -> str:
    quoted = key.replace("'", "''")
    return f"{name} {operator} '{quoted}'"


class _FilterRange:
    """The items that match some filters, one filter after the other, in order of their keys."""

    def __init__(self, table: StoredDefinition, filters: Sequence[str], limit: int | None) -> None:
        self._table = table
        self._filters = list(filters)
        self._top = min(limit or _PAGE, _PAGE)
        self._token: Any = None

    def read(self) -> Steps[list[Stored]]:
        """The next items; empty at the end."""
        table = self._table
        while self._filters:
            found, self._token = yield ListEntities(
                table.azure_name, self._filters[0], self._top, self._token
            )
            if self._token is None:
                del self._filters[0]
            if found:
                return [Stored(table, table.layout.item(each.entity)) for each in found]
        return []

    def refuse_reversal(self) -> Unsupported:
        return Unsupported(
            f"Azure Table storage reads forward only, and a range of table {self._table.name!r} that is read in "
            f"descending order has more than {LARGEST_REVERSAL:,} items: declare the sort key with desc(...), so that "
            "the newest comes first, or give the query a shorter range"
        )


def _first(entities: _FilterRange, limit: int | None) -> Steps[list[Stored]]:
    """The items of a page: up to a limit, or to the item that exceeds 1 MB."""
    items: list[Stored] = []
    size = 0
    while read := (yield from entities.read()):
        for each in read:
            items.append(each)
            size += item_size(each.item)
            if len(items) == limit or size > limits.QUERY_PAGE:
                return items
    return items


def _last(entities: _FilterRange, limit: int | None) -> Steps[list[Stored]]:
    """The last items of a range, as many as fit into a page."""
    items: deque[Stored] = deque(maxlen=limit)
    size = count = 0
    while read := (yield from entities.read()):
        count += len(read)
        if count > LARGEST_REVERSAL:
            raise entities.refuse_reversal()
        for each in read:
            if len(items) == limit:
                size -= item_size(items[0].item)
            items.append(each)
            size += item_size(each.item)
            while size - item_size(items[0].item) > limits.QUERY_PAGE:
                size -= item_size(items.popleft().item)
    return list(items)


def _fitting(entities: _FilterRange, limit: int | None) -> Steps[tuple[list[Stored], bool]]:
    """The items that fit into 1 MB and a limit, and whether there may be more."""
    items: list[Stored] = []
    size = 0
    while read := (yield from entities.read()):
        for each in read:
            size += item_size(each.item)
            if items and size > limits.QUERY_PAGE:
                return items, True
            items.append(each)
            if len(items) == limit:
                return items, True
    return items, False
