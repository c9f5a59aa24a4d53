"""A write of one item, checked and ready to be carried out: what PutItem, UpdateItem, DeleteItem and
the entries of a transaction have in common.

`prepare_…` does all that needs no item: expressions, values, keys. `carry_out` needs the open
transaction: it reads what is there, judges the condition, and writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from isotone.engine import items
from isotone.engine.engine import Engine
from isotone.engine.metering import Meter
from isotone.engine.record import body_of, item_of, size_of
from isotone.engine.table import Table
from isotone.errors import ConditionalCheckFailedException, ValidationException
from isotone.expressions import Update
from isotone.operations.binding import Matches, Values
from isotone.values.attributes import Item
from isotone.values.size import item_size, text_size, value_size

Sized = tuple[Item, int]
Make = Callable[[Item | None, int], Sized | None]
"""From the item that is there, if any, and its size to the one that will be; None where it is deleted."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """One write of one item.

    `key_item` has the key attributes (a put's has them all). A Change without `make` only checks its
    condition. `blind` tells that what is there need not be parsed.
    """

    table: Table
    key: bytes
    key_item: Item
    matches: Matches | None
    show_old_on_failure: bool
    make: Make | None
    blind: bool = False

    def new_item(self, old: bytes | None) -> Sized | None:
        """What will lie at the key where `old` lies now, None for nothing.

        Raises `ConditionalCheckFailedException` where the condition does not hold.
        """
        item = None if old is None or self.blind else item_of(old)
        if self.matches is not None and not self.matches({} if item is None else item):
            raise self._failure(old)
        if self.make is None:
            return None
        return self.make(item, 0 if old is None else size_of(old))

    def write(
        self, engine: Engine, old: bytes | None, new: Sized | None, meter: Meter | None
    ) -> None:
        """Write what `new_item` gave."""
        if new is None:
            items.delete(engine, self.table, self.key, old, meter)
        else:
            items.put(engine, self.table, self.key, old, *new, meter)

    def _failure(self, old: bytes | None) -> ConditionalCheckFailedException:
        shown = {"Item": msgspec.Raw(body_of(old))} if old and self.show_old_on_failure else {}
        return ConditionalCheckFailedException("The conditional request failed", **shown)


Outcome = tuple[bytes | None, Item | None]
"""What was there before a write, as a record, and what is there after it."""


def carry_out(engine: Engine, change: Change, meter: Meter | None = None) -> Outcome:
    """Judge and write one change; the caller holds the transaction. One item read, one written."""
    old = items.read(engine, change.table, change.key)
    new = change.new_item(old)
    change.write(engine, old, new, meter)
    return old, None if new is None else new[0]


def put_change(table: Table, item: Item, size: int, matches: Matches | None, shown: bool) -> Change:
    """The change that replaces an item whole. The item is canonical."""
    table.check_item(item, size)
    new = (item, size)
    key = table.keyspace.key(item)
    return Change(table, key, item, matches, shown, lambda *_: new, matches is None)


def delete_change(
    table: Table, key: dict[str, Any], matches: Matches | None, shown: bool
) -> Change:
    """The change that removes an item."""
    physical, key_item = table.keyspace.requested_key(key)
    return Change(table, physical, key_item, matches, shown, lambda *_: None, matches is None)


def check_change(table: Table, key: dict[str, Any], matches: Matches, shown: bool) -> Change:
    """The change that changes nothing: a transaction's condition check."""
    physical, key_item = table.keyspace.requested_key(key)
    return Change(table, physical, key_item, matches, shown, None)


def update_change(
    table: Table,
    key: dict[str, Any],
    update: Update | None,
    values: Values,
    matches: Matches | None,
    shown: bool,
) -> Change:
    """The change that applies an update expression to an item, which need not be there."""
    physical, key_item = table.keyspace.requested_key(key)
    written = frozenset() if update is None else update.attributes_written
    _refuse_key_update(table, written)

    def make(old: Item | None, old_size: int) -> Sized:
        before, size = (key_item, item_size(key_item)) if old is None else (old, old_size)
        after = before if update is None else update.apply(before, values)
        for name in written:
            size += _size_of_attribute(name, after) - _size_of_attribute(name, before)
        table.check_updated(after, size)
        return after, size

    return Change(table, physical, key_item, matches, shown, make)


def _size_of_attribute(name: str, item: Item) -> int:
    value = item.get(name)
    return 0 if value is None else text_size(name) + value_size(value)


def _refuse_key_update(table: Table, written: frozenset[str]) -> None:
    """Refuse an update that would change the primary key."""
    for name in table.schema.keys.names:
        if name in written:
            raise ValidationException(
                f"One or more parameter values were invalid: Cannot update attribute {name}. "
                "This attribute is part of the key"
            )
