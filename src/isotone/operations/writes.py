"""A write of one item, checked and ready to be executed: what PutItem, UpdateItem, DeleteItem and the
entries of batches and transactions have in common.

Making a `Change` needs no item: expressions, values and keys are checked. Executing it needs the open
transaction: it reads what is there, tests the condition, and writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from isotone.engine import items
from isotone.engine.engine import Engine
from isotone.engine.layout import body_of, item_of, size_of
from isotone.engine.table import Table
from isotone.errors import ConditionalCheckFailedException, ValidationException
from isotone.expressions import Update
from isotone.operations.binding import Matches, Values
from isotone.operations.capacity import Meter
from isotone.operations.fitting import INVALID, check_item, check_updated, requested_key
from isotone.values.attributes import Item
from isotone.values.size import item_size, text_size, value_size

Sized = tuple[Item, int]
Make = Callable[[Item | None, int], Sized]
"""From the item that is there, if any, and its size to the one that will be."""

Outcome = tuple[bytes | None, Item | None]
"""What was there before a write, as a record, and what is there after it."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """One write of one item: its new value, or how to make that; with neither, the item is deleted.

    `key_item` has the key attributes (a put's has them all). One that `only_checks` its condition writes
    nothing.
    """

    table: Table
    key: bytes
    key_item: Item
    matches: Matches | None
    show_old_on_failure: bool
    new: Sized | None = None
    make: Make | None = None
    only_checks: bool = False

    def new_item(self, old: bytes | None) -> Sized | None:
        """What will lie at the key where `old` lies now, None for nothing.

        Raises `ConditionalCheckFailedException` where the condition does not hold.
        """
        if self.matches is None and self.make is None:
            return self.new
        item = None if old is None else item_of(old)
        if self.matches is not None and not self.matches({} if item is None else item):
            raise self._failure(old)
        return self.new if self.make is None else self.make(item, size_of(old))

    def write(
        self, engine: Engine, old: bytes | None, new: Sized | None, meter: Meter | None
    ) -> None:
        """Write what `new_item` gave."""
        if new is None:
            items.delete(engine, self.table, self.key, old, meter)
        else:
            item, size = new
            items.put(engine, self.table, self.key, old, item, size, meter)

    def _failure(self, old: bytes | None) -> ConditionalCheckFailedException:
        shown = {"Item": msgspec.Raw(body_of(old))} if old and self.show_old_on_failure else {}
        return ConditionalCheckFailedException("The conditional request failed", **shown)


def execute(engine: Engine, change: Change, meter: Meter | None = None) -> Outcome:
    """Test and write one change; the caller holds the transaction. One item read, one written."""
    old = engine.store.get(change.table.tree, change.key)
    new = change.new_item(old)
    change.write(engine, old, new, meter)
    return old, None if new is None else new[0]


def shows_old(request: Any) -> bool:
    """Whether a failed condition shall show the item."""
    return bool(request.return_values_on_condition_check_failure == "ALL_OLD")


def put_change(table: Table, item: Item, size: int, matches: Matches | None, shown: bool) -> Change:
    """The change that replaces an item whole. The item is canonical."""
    check_item(table, item, size)
    return Change(table, table.keyspace.key(item), item, matches, shown, (item, size))


def delete_change(
    table: Table, key: dict[str, Any], matches: Matches | None, shown: bool
) -> Change:
    """The change that removes an item."""
    physical, key_item = requested_key(table.keyspace, key)
    return Change(table, physical, key_item, matches, shown)


def check_change(table: Table, key: dict[str, Any], matches: Matches, shown: bool) -> Change:
    """The change that changes nothing: a transaction's condition check."""
    physical, key_item = requested_key(table.keyspace, key)
    return Change(table, physical, key_item, matches, shown, only_checks=True)


def update_change(
    table: Table,
    key: dict[str, Any],
    update: Update | None,
    values: Values,
    matches: Matches | None,
    shown: bool,
) -> Change:
    """The change that applies an update expression to an item, which need not be there."""
    physical, key_item = requested_key(table.keyspace, key)
    written = frozenset() if update is None else update.attributes_written
    _refuse_key_update(table, written)

    def make(old: Item | None, old_size: int) -> Sized:
        before, size = (key_item, item_size(key_item)) if old is None else (old, old_size)
        after = before if update is None else update.apply(before, values)
        for name in written:
            if before.get(name) is not after.get(name):
                size += _size_of_attribute(name, after) - _size_of_attribute(name, before)
        check_updated(table, after, size)
        return after, size

    return Change(table, physical, key_item, matches, shown, make=make)


def _size_of_attribute(name: str, item: Item) -> int:
    value = item.get(name)
    return 0 if value is None else text_size(name) + value_size(value)


def _refuse_key_update(table: Table, written: frozenset[str]) -> None:
    """Refuse an update that would change the primary key."""
    for name in table.schema.keys.names:
        if name in written:
            raise ValidationException(
                f"{INVALID}Cannot update attribute {name}. This attribute is part of the key"
            )
