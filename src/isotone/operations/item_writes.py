"""One conditional write (`ItemChange`): ConditionalCheckFailedException, ReturnValuesOnConditionCheckFailure.

`put_change` and its siblings check the key; expressions and values are checked before. None of them reads the item.
Executing a change needs the open transaction: it reads the stored item, tests the condition, and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from isotone.engine import items
from isotone.engine.engine import Engine
from isotone.engine.layout import body_of, item_of, size_of
from isotone.engine.table_indexes import StoredTable
from isotone.errors import (
    ConditionalCheckFailedException,
    DuplicateItemException,
    ValidationException,
)
from isotone.expressions import CompiledUpdate
from isotone.operations.capacity import Charged
from isotone.operations.item_validation import INVALID, check_updated, checked_key, requested_key
from isotone.operations.long_writes import (
    LARGE,
    NOTHING,
    EvaluateFirst,
    evaluated_here,
    known_result,
    state_before,
)
from isotone.operations.request_expressions import Matches, Values
from isotone.values.attribute_validation import AttributeValue, Item
from isotone.values.size import item_size, text_size, value_size

Sized = tuple[Item, int]
Make = Callable[[Item | None, int], Sized | None]
"""From the old item (if any) and its size to the new item; None if there is nothing to write."""

StateBefore = tuple[bytes | None, Item | None]
"""The state before a write: the record, and the item if it was parsed."""

Outcome = tuple[bytes | None, Item | None]
"""The record before a write, and the item after it."""


class ItemChange(msgspec.Struct, frozen=True, gc=False):
    """One write of one item: its new value, or a function that computes it. With neither, the item is deleted.

    `key_item` has the key attributes (for a put, all attributes). `on_failure` decides what the error of a failed
    condition shows. A change that `only_checks` its condition writes nothing. `nodes` is how many nodes its
    expressions have.
    """

    table: StoredTable
    key: bytes
    key_item: Item
    matches: Matches | None
    on_failure: str | None
    new: Sized | None = None
    make: Make | None = None
    only_checks: bool = False
    nodes: int = 0

    def read(self, engine: Engine) -> StateBefore:
        """The stored state at the key. Reads one item, and parses it only if the change depends on it."""
        record = engine.store.get(self.table.tree, self.key)
        if self.matches is None and self.make is None:
            return record, None
        # Slicing avoids a call here.
        if record is not None and record[LARGE:]:
            return state_before(self, record)
        return record, None if record is None else item_of(record)

    def new_item(self, old: StateBefore) -> Sized | None:
        """The item that replaces `old`; None if it is deleted.

        Raises `ConditionalCheckFailedException` if the condition is false. Needs neither the store nor the engine.
        """
        record, item = old
        if evaluated_here.known and record and (known := known_result(self, record)) is not None:
            try:
                if known.error is not None:
                    raise known.error
                return known.new
            finally:
                del known  # breaks the reference cycle through the error's traceback
        if self.matches is not None and not self.matches({} if item is None else item):
            members = {}
            if record is not None and self.on_failure == "ALL_OLD":
                members["Item"] = msgspec.Raw(body_of(record))
            raise ConditionalCheckFailedException("The conditional request failed", **members)
        return self.new if self.make is None else self.make(item, size_of(record))

    def write(
        self, engine: Engine, old: StateBefore, new: Sized | None, meter: Charged | None
    ) -> None:
        """Store the result of `new_item`."""
        record, before = old
        if new is None:
            items.delete(engine, self.table, self.key, record, before, meter)
        else:
            item, size = new
            items.put(engine, self.table, self.key, record, before, item, size, meter)


def write_if_true(engine: Engine, change: ItemChange, meter: Charged | None = None) -> Outcome:
    """Test and write one change; the caller holds the transaction. Reads one item and writes one.

    A write whose condition is false is charged like a successful one.
    """
    old = change.read(engine)
    try:
        new = change.new_item(old)
    except (ConditionalCheckFailedException, DuplicateItemException):
        if meter is not None:
            new_item, size = change.new or (None, 0)
            items.charge(meter, change.table, *old, new_item, size)
        raise
    change.write(engine, old, new, meter)
    return old[0], None if new is None else new[0]


def put_change(
    table: StoredTable,
    item: Item,
    size: int,
    matches: Matches | None,
    on_failure: str | None,
    nodes: int = 0,
) -> ItemChange:
    """The change that replaces a whole item. The item must be canonical."""
    key = checked_key(table, item, size)
    return ItemChange(table, key, item, matches, on_failure, (item, size), nodes=nodes)


def insert_change(table: StoredTable, item: Item, size: int) -> ItemChange:
    """The change that puts an item only if there is none. The item must be canonical."""
    key = checked_key(table, item, size)

    def make(old: Item | None, old_size: int) -> Sized:
        if old is not None:
            raise DuplicateItemException("Duplicate primary key exists in table")
        return item, size

    return ItemChange(table, key, item, None, None, make=make)


def delete_change(
    table: StoredTable,
    key: dict[str, Any],
    matches: Matches | None,
    on_failure: str | None,
    nodes: int = 0,
) -> ItemChange:
    """The change that deletes an item."""
    physical, key_item = requested_key(table.keyspace, key)
    return ItemChange(table, physical, key_item, matches, on_failure, nodes=nodes)


def check_change(
    table: StoredTable,
    key: dict[str, Any],
    matches: Matches | None,
    on_failure: str | None,
    nodes: int = 0,
) -> ItemChange:
    """A transaction's condition check, which writes nothing."""
    physical, key_item = requested_key(table.keyspace, key)
    return ItemChange(table, physical, key_item, matches, on_failure, only_checks=True, nodes=nodes)


def update_change(
    table: StoredTable,
    key: dict[str, Any],
    update: CompiledUpdate | None,
    values: Values,
    matches: Matches | None,
    on_failure: str | None,
    nodes: int = 0,
) -> ItemChange:
    """The change that applies an update expression to an item, which need not exist."""
    physical, key_item = requested_key(table.keyspace, key)
    written = frozenset() if update is None else update.attributes_written
    changes_key = not written.isdisjoint(table.keyspace.names)

    def make(old: Item | None, old_size: int) -> Sized | None:
        if changes_key:  # the service reports this only if the condition holds
            raise key_updated(table, written)
        if old is None and update is not None and update.only_removes:
            return None
        before, size = (key_item, item_size(key_item)) if old is None else (old, old_size)
        after = before if update is None else update.apply(before, values)
        for name in written:
            size += _growth(name, before.get(name), after.get(name))
        check_updated(table, before, after, size)
        return after, size

    return ItemChange(table, physical, key_item, matches, on_failure, make=make, nodes=nodes)


def _growth(name: str, old: AttributeValue | None, new: AttributeValue | None) -> int:
    """How many bytes the change of one attribute adds to its item."""
    if old is not None and new is not None:
        return value_size(new) - value_size(old)
    if new is not None:
        return text_size(name) + value_size(new)
    return 0 if old is None else -text_size(name) - value_size(old)


def key_updated(table: StoredTable, written: frozenset[str]) -> ValidationException:
    """The error for an update that would change the primary key."""
    name = next(name for name in table.keyspace.names if name in written)
    return ValidationException(
        f"{INVALID}Cannot update attribute {name}. This attribute is part of the key"
    )


def read_all(engine: Engine, changes: Iterable[ItemChange | None]) -> list[StateBefore]:
    """The states before several changes of one request; None stays None.

    Raises `EvaluateFirst` with all changes of large records; the request begins again when they have been evaluated.
    """
    found: list[StateBefore] = []
    missing: list[tuple[ItemChange, bytes]] = []
    for change in changes:
        try:
            found.append(NOTHING if change is None else change.read(engine))
        except EvaluateFirst as again:
            missing += again.changes
    if missing:
        raise EvaluateFirst(missing)
    return found
