"""The plan of a read, from a query, a request or a statement: partitions (IN), range, filter, direction, limits.

`key_planning` splits the condition of every read. So a query of a model, a raw request and a statement are treated
alike, and the same condition can be tried on any other key of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

from isotone.advisor.table_sample import place
from isotone.backends.interface import Request, as_text
from isotone.errors import UsageError, ValidationException
from isotone.expressions import CompiledCondition, Writer, key_condition, projection
from isotone.expressions.key_planning import (
    KeyPlan,
    KeyTerm,
    Values,
    compiled,
    joined,
    mentions,
    plan_key,
    value_of,
)
from isotone.expressions.messages import VALUE_UNDEFINED
from isotone.expressions.nodes import ConditionNode, references, resolve, walk_up
from isotone.expressions.parser import parse_condition
from isotone.expressions.partiql import Select, messages, plan_where
from isotone.expressions.partiql import key_of as fixed_key
from isotone.model import Query, Read
from isotone.tables.description import KeyDescription, TableDescription
from isotone.values.attribute_validation import canonical_item
from isotone.values.notation import value_text
from isotone.values.types import AttributeValue, Item, sort_key

Operation = Literal["GetItem", "Query", "Scan"]

READS: Final = frozenset({"GetItem", "Query", "Scan"})
_LEGACY: Final = ("KeyConditions", "QueryFilter", "ScanFilter", "AttributesToGet")
_PLACEHOLDER: Final = re.compile(r":[A-Za-z0-9_]+")


@dataclass(frozen=True)
class ReadPlan:
    """A read of one table or index. `where` is its whole condition, on the key and in the filter."""

    operation: Operation
    table: str
    index: str | None
    key: KeyDescription
    where: ConditionNode | None
    values: Values
    key_plan: KeyPlan
    filter: CompiledCondition | None
    filter_text: str
    request: tuple[str, Request]
    """The action and the request that measure its cost."""
    projection: frozenset[str] | None = None
    backward: bool = False
    consistent: bool = False
    limit: int | None = None
    most_results: int | None = None
    items_a_page: int | None = None
    """The most items that each request of a model's read asks for."""
    wants_filter: bool = False
    """Whether the caller wrote a filter; otherwise the model filters by kind."""
    start: Item | None = None
    segments: int = 1
    fetches: bool = False
    """Whether a local index must fetch unprojected attributes from the table."""

    # The key

    @cached_property
    def collections(self) -> dict[tuple[Any, ...], tuple[AttributeValue, ...]]:
        """The partition keys that a Query reads, by their position in the order; a statement with IN has several."""
        return self.key_plan.collections(self.values)

    @cached_property
    def _answered(self) -> CompiledCondition | None:
        """The conditions that the key answers."""
        return compiled(self.key_plan.answered)

    @property
    def terms(self) -> tuple[KeyTerm, ...]:
        """The conditions on the sort key."""
        return (*self.key_plan.equal, *self.key_plan.ranges)

    @property
    def fixed_key(self) -> Item | None:
        """The key of the only item that can match; None if several can."""
        names = [part.name for part in self.key.parts]
        return fixed_key(self.key_plan, names, self.values)

    def is_in_partition(self, entry: Item) -> bool:
        """Whether an entry is in a collection that is read."""
        if self.operation == "Scan":
            return True
        its = tuple(sort_key(entry[name]) for name in self.key.partition_names)
        return its in self.collections

    def is_in_range(self, entry: Item) -> bool:
        """Whether an entry is in the range that is read, before the filter."""
        if self.operation == "Scan":
            return True
        answered = self._answered
        return self.is_in_partition(entry) and (
            answered is None or answered.matches(entry, self.values)
        )

    def keeps(self, entry: Item) -> bool:
        """Whether the filter keeps an entry."""
        return self.filter is None or self.filter.matches(entry, self.values)

    def select_from(self, entries: Sequence[Item]) -> list[Item]:
        """The entries that are read, in the order of reading, given all entries in the order of keys."""
        found = [entry for entry in entries if self.is_in_range(entry)]
        if self.backward:
            found.reverse()
        if self.start is not None:
            found = [*self._after(self.start, found)]
        if self.limit is not None:
            found = found[: self.limit]
        if self.most_results is not None and self.filter is None:
            found = found[: self.most_results]
        return found

    def place_in(self, collection: Sequence[Item]) -> int | None:
        """The position of the range in a collection, as the number of items before it; None if it has no beginning."""
        if self.operation != "Query" or not self.terms or len(self.key.sort) != 1:
            return None
        bounds = [term.values(self.values) for term in self.terms]
        if any(self.key.sort[0].type not in value for values in bounds for value in values):
            return None  # a type that the engine refuses
        lows = [
            sort_key(values[0])
            for term, values in zip(self.terms, bounds, strict=True)
            if term.operator not in ("<", "<=")
        ]
        if not lows:
            return 0
        name = self.key.sort[0].name
        return sum(bool(sort_key(entry[name]) < max(lows)) for entry in collection)

    def _after(self, start: Item, found: Sequence[Item]) -> Sequence[Item]:
        """The entries after a position, whose item may no longer exist."""
        identities = [_identity(entry, start) for entry in found]
        if _identity(start, start) in identities:
            return found[identities.index(_identity(start, start)) + 1 :]
        its = place(self.key, start)
        if self.operation == "Scan":
            return found
        return [entry for entry in found if (place(self.key, entry) > its) is not self.backward]

    def knows_start(self, entries: Sequence[Item]) -> bool:
        """Whether the start of the read is known: a scan goes in the order of hashes, which only the engine knows."""
        if self.start is None or self.operation != "Scan":
            return True
        its = _identity(self.start, self.start)
        return any(_identity(entry, self.start) == its for entry in entries)

    def on(self, key: KeyDescription, index: str | None) -> ReadPlan:
        """The same condition read by another key: by a Query if the key can answer it, else by a Scan."""
        plan = _planned((self.where,), key)
        action: Any = plan.action(index)
        condition = compiled(plan.rest)
        return replace(
            self,
            operation=action,
            index=index,
            key=key,
            key_plan=plan,
            filter=condition,
            filter_text=_text_of(plan.rest, self.values),
            limit=self.limit if condition is None else None,
            start=None,
            segments=1,
            fetches=False,
        )

    def as_scan(self, key: KeyDescription) -> ReadPlan:
        """The same condition as the filter of a scan of the table."""
        everything = None if self.where is None else CompiledCondition.from_node(self.where)
        return replace(
            self.on(key, None), operation="Scan", filter=everything, limit=None, most_results=None
        )


def _identity(item: Item, names: Item) -> tuple[str, ...]:
    return tuple(repr(item.get(name)) for name in sorted(names))


# From requests


def plan_of_read(read: Read[Any], shape: TableDescription) -> ReadPlan:
    """The plan of a query or a scan of a model."""
    request = read.request()
    plan = plan_of_request(read.operation, request, shape)
    backward = isinstance(read, Query) and read.backward
    return replace(
        plan,
        backward=backward,
        limit=None,
        most_results=read.most_results,
        items_a_page=read.items_a_page,
        wants_filter=bool(read.filters),
    )


def plan_of_request(operation: str, given: Request, shape: TableDescription) -> ReadPlan:
    """The plan of GetItem, Query or Scan; raises `UsageError` for the legacy parameters."""
    request = as_text(given)
    if legacy := [name for name in _LEGACY if name in request]:
        raise UsageError(f"{legacy[0]} cannot be explained; write the request with expressions")
    names, values = request.get("ExpressionAttributeNames"), _values(request)
    index = request.get("IndexName")
    key = shape.key_of(index)
    key_node = _node(request.get("KeyConditionExpression"), names)
    if operation == "GetItem":
        key_node, values = _of_key(request["Key"])
    filter_node = _node(request.get("FilterExpression"), names)
    if filter_node is not None:
        _check_values(filter_node, values)
    if operation == "Query":
        _check_query(request, filter_node, key, index or shape.name)
    both = [node for node in (key_node, filter_node) if node is not None]
    wanted = request.get("ProjectionExpression")
    return ReadPlan(
        operation=operation,  # type: ignore[arg-type] # one of READS
        table=shape.name,
        index=index,
        key=key,
        where=joined(both),
        values=values,
        key_plan=_planned((key_node,), key),
        filter=None if filter_node is None else CompiledCondition.from_node(filter_node),
        filter_text="" if filter_node is None else _text_of([filter_node], values),
        request=(operation, request),
        projection=None if wanted is None else projection(wanted, names).attributes,
        backward=request.get("ScanIndexForward") is False,
        consistent=bool(request.get("ConsistentRead")),
        limit=request.get("Limit"),
        start=request.get("ExclusiveStartKey"),
        segments=request.get("TotalSegments") or 1,
        fetches=_fetches(shape, index, request, names),
    )


def plan_of_select(
    select: Select, values: Values, shape: TableDescription, request: tuple[str, Request]
) -> ReadPlan:
    """The plan of a SELECT."""
    key = shape.key_of(select.index)
    partition, sort = key.partition_names, key.sort_names
    if max(len(partition), len(sort)) > 1:
        raise ValidationException(messages.SEVERAL_KEY_ATTRIBUTES)
    key_plan = plan_where(select.where, partition, sort)
    action: Any = key_plan.action(select.index)
    return ReadPlan(
        operation=action,
        table=shape.name,
        index=select.index,
        key=key,
        where=None if select.where is None else select.where.node,
        values=values,
        key_plan=key_plan,
        filter=key_plan.filter,
        filter_text=_text_of(key_plan.rest, values),
        request=request,
        projection=None if select.columns is None else select.columns.attributes,
        backward=any(each.descends for each in select.order if each.name in sort),
        consistent=bool(request[1].get("ConsistentRead")),
        limit=request[1].get("Limit"),
    )


def _planned(conditions: Sequence[ConditionNode | None], key: KeyDescription) -> KeyPlan:
    """How a key answers some conditions, of which each may be None."""
    given = [each for each in conditions if each is not None]
    return plan_key(given, key.partition_names, key.sort_names)


def _check_query(
    request: Request, filtered: ConditionNode | None, key: KeyDescription, name: str
) -> None:
    """Raise `UsageError` for a Query that the key cannot answer and the service would refuse."""
    text, names = request.get("KeyConditionExpression"), request.get("ExpressionAttributeNames")
    parts = key.names
    try:
        condition = key_condition(text or "", names)
        condition.resolve(_values(request), key.partition_names, key.sort_names)
    except (ValidationException, KeyError) as error:
        raise UsageError(
            f"{text!r} is not a condition on the key of {name}: {', '.join(parts)}"
        ) from error
    if filtered is not None and mentions((filtered,), parts):
        raise UsageError(
            f"{request['FilterExpression']!r} filters by the key of {name}, {', '.join(parts)}, which a Query cannot; "
            "put the condition into KeyConditionExpression"
        )


def _values(request: Request) -> Values:
    values, _ = canonical_item(dict(request.get("ExpressionAttributeValues") or {}))
    return values


def _check_values(filtered: ConditionNode, values: Values) -> None:
    if missing := references(walk_up(filtered)).values - values.keys():
        fault = VALUE_UNDEFINED.format(name=min(missing))
        raise ValidationException(f"Invalid FilterExpression: {fault}")


def _node(text: Any, names: Mapping[str, str] | None) -> ConditionNode | None:
    if text is None:
        return None
    node: ConditionNode = resolve(parse_condition(text), names)
    return node


def _of_key(given: Item) -> tuple[ConditionNode, Values]:
    """A condition that selects one key."""
    key, _ = canonical_item(given)
    values = {f":k{number}": value for number, value in enumerate(key.values())}
    names = {f"#k{number}": name for number, name in enumerate(key)}
    text = " AND ".join(f"#k{number} = :k{number}" for number in range(len(key)))
    node: ConditionNode = resolve(parse_condition(text), names)
    return node, values


def _fetches(
    shape: TableDescription, index: str | None, request: Request, names: Mapping[str, str] | None
) -> bool:
    """Whether a local index must fetch attributes from the table."""
    found = next((each for each in shape.indexes if each.name == index), None)
    if found is None or found.kind != "local" or found.projection == "ALL":
        return False
    if request.get("Select") == "ALL_ATTRIBUTES":
        return True
    wanted = request.get("ProjectionExpression")
    if wanted is None:
        return False
    kept = {part.name for key in (shape.key, found.key) for part in key.parts}
    kept |= set() if found.projection == "KEYS_ONLY" else set(found.projection)
    return not projection(wanted, names).attributes <= kept


# As text


def _text_of(nodes: Sequence[ConditionNode], values: Values) -> str:
    """Conditions as source text, with their values."""
    writer = Writer()
    text = " AND ".join(writer.text(node) for node in nodes)
    for name, attribute in writer.names.items():
        text = text.replace(name, attribute)
    known = {**values, **writer.values}

    def value(match: re.Match[str]) -> str:
        return value_text(known[match[0]]) if match[0] in known else match[0]

    return _PLACEHOLDER.sub(value, text)


def terms_of(plan: ReadPlan) -> Iterator[tuple[str, str, tuple[AttributeValue, ...]]]:
    """Each condition on the key: attribute, operator, values; IN for several partitions."""
    for name, terms in zip(plan.key.partition_names, plan.key_plan.partition, strict=False):
        values = tuple(value_of(term, plan.values) for term in terms)
        yield name, "=" if len(values) == 1 else "IN", values
    for term in plan.terms:
        yield term.attribute, term.operator, term.values(plan.values)
