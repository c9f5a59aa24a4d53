"""Estimates the cost of a write: for the item, and for its entry in each index.

DynamoDB charges for the larger of the item before and after, and for each changed index entry: once if its key stays,
and for the old and the new entry if its key changes. So the estimate must read the stored item.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from isotone.advisor.explanation import Cost, EntryWrite
from isotone.advisor.table_sample import basis_of, entry_of, place
from isotone.backends.interface import Request, as_text
from isotone.errors import (
    ConditionalCheckFailedException,
    DuplicateItemException,
    UsageError,
)
from isotone.expressions import condition, update
from isotone.model import Call, Steps
from isotone.tables.description import IndexDescription, TableDescription
from isotone.tables.pace import units_of
from isotone.values.attribute_validation import canonical_item
from isotone.values.notation import value_text
from isotone.values.size import item_size, write_units
from isotone.values.types import Item, is_same_item

_NAME: Final = re.compile(r"#\w+")
_VALUE: Final = re.compile(r":\w+")
WRITES: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem", "ConditionCheck"})

Change = Callable[[Item | None], Item | None]
"""Returns the new item, given the stored one; None stands for no item."""


@dataclass(frozen=True)
class WritePlan:
    """A write of one item. `factor` is 2 in a transaction; `demanded` are the attributes in its condition."""

    operation: str
    table: str
    key: Item
    change: Change
    matches: Callable[[Item], bool]
    condition: str
    request: tuple[str, Request]
    factor: int = 1
    demanded: frozenset[str] = frozenset()


def plan_of_write(
    operation: str, given: Request, shape: TableDescription, factor: int = 1
) -> WritePlan:
    """The plan of PutItem, UpdateItem, DeleteItem, or of a transaction's condition check."""
    request = as_text(given)
    names = request.get("ExpressionAttributeNames")
    values, _ = canonical_item(dict(request.get("ExpressionAttributeValues") or {}))
    text = request.get("ConditionExpression")
    test = None if text is None else condition(text, names)
    if operation == "PutItem":
        item, _ = canonical_item(request["Item"])
        missing = [part.name for part in shape.key.parts if part.name not in item]
        if missing:
            raise UsageError(f"the item has no {missing[0]}, which is a key of {shape.name}")
        key = {part.name: item[part.name] for part in shape.key.parts}
    else:
        key, _ = canonical_item(request["Key"])
    return WritePlan(
        operation=operation,
        table=shape.name,
        key=key,
        change=_change(operation, request, names, values, key),
        matches=(lambda stored: True)
        if test is None
        else (lambda stored: test.matches(stored, values)),
        condition=_readable(text or "", names or {}, values),
        request=(operation, request),
        factor=factor,
        demanded=frozenset() if test is None else test.attributes,
    )


def _readable(text: str, names: Mapping[str, str], values: Item) -> str:
    """A condition with the names and values in place of their placeholders."""
    named = _NAME.sub(lambda found: names.get(found[0], found[0]), text)
    return _VALUE.sub(
        lambda found: value_text(values[found[0]]) if found[0] in values else found[0], named
    )


def _change(
    operation: str, request: Request, names: Mapping[str, str] | None, values: Any, key: Item
) -> Change:
    if operation == "PutItem":
        item, _ = canonical_item(request["Item"])
        return lambda _: item
    if operation == "DeleteItem":
        return lambda _: None
    if operation == "ConditionCheck":
        return lambda stored: stored
    text = request.get("UpdateExpression")
    if text is None:
        return lambda stored: stored or key
    changes = update(text, names)

    def changed(stored: Item | None) -> Item | None:
        if stored is None and changes.only_removes:
            return None
        return changes.apply(stored or key, values)

    return changed


def estimate_write(
    plan: WritePlan, shape: TableDescription
) -> Steps[tuple[Cost, tuple[EntryWrite, ...], tuple[str, ...], float]]:
    """The cost of a write, its effect on each index, notes, and the units that the estimate itself consumed."""
    request = {"TableName": plan.table, "Key": plan.key, "ConsistentRead": True}
    response = yield Call("GetItem", {**request, "ReturnConsumedCapacity": "TOTAL"})
    stored: Item | None = response.get("Item")
    spent = units_of(response) or 0.0
    if not plan.matches(stored or {}):
        units = write_units(item_size(stored or {})) * plan.factor
        note = f"its condition is false now: {plan.condition}"
        cost = Cost(1, units=units, basis="the stored item")
        return cost, (EntryWrite(None, "none", units),), (note,), spent
    new = plan.change(stored)
    size = max(item_size(stored or {}), item_size(new or {}))
    writes = [EntryWrite(None, _of_table(stored, new), write_units(size) * plan.factor)]
    if plan.operation != "ConditionCheck":
        for index in shape.indexes:
            before, after = entry_of(shape, index, stored), entry_of(shape, index, new)
            writes.append(_of_index(shape, index, before, after, plan.factor))
    units = sum(each.units for each in writes)
    basis = "there is no such item" if stored is None else "the stored item"
    return Cost(1, units=units, bytes=size, basis=basis), tuple(writes), (), spent


def _of_table(before: Item | None, after: Item | None) -> Any:
    if before is None:
        return "none" if after is None else "insert"
    return "remove" if after is None else "replace"


def _of_index(
    shape: TableDescription,
    index: IndexDescription,
    before: Item | None,
    after: Item | None,
    factor: int,
) -> EntryWrite:
    if before is None or after is None:
        units = sum(write_units(item_size(each)) for each in (before, after) if each is not None)
        change: Any = _of_table(before, after)
        return EntryWrite(index.name, change, units * factor)
    if is_same_item(before, after):
        return EntryWrite(index.name, "none", 0.0)
    keys = [(place(index.key, each), place(shape.key, each)) for each in (before, after)]
    if keys[0] == keys[1]:
        units = write_units(max(item_size(before), item_size(after)))
        return EntryWrite(index.name, "replace", units * factor)
    units = write_units(item_size(before)) + write_units(item_size(after))
    return EntryWrite(index.name, "move", units * factor)


def measure_write(plan: WritePlan) -> Steps[Cost]:
    """Run the write, and return its cost. A failed condition is no error here, because it costs units, too."""
    operation, request = plan.request
    try:
        response = yield Call(operation, {**request, "ReturnConsumedCapacity": "TOTAL"})
    except (ConditionalCheckFailedException, DuplicateItemException):
        return Cost(1, basis="the condition was false, and the engine does not tell its units")
    return Cost(1, units=units_of(response) or 0.0, basis=basis_of(response))
