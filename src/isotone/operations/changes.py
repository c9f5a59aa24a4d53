"""A write of one item, checked and ready to be carried out: what PutItem, UpdateItem, DeleteItem and
the entries of a transaction have in common.

`prepare_…` does all that needs no item: expressions, values, keys. `carry_out` needs the open
transaction: it reads what is there, judges the condition, and writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from isotone.engine import items
from isotone.engine.engine import Engine
from isotone.engine.metering import Meter
from isotone.engine.record import body_of, item_of
from isotone.engine.table import Table
from isotone.errors import ConditionalCheckFailedException, ValidationException
from isotone.expressions import Update
from isotone.operations.binding import Matches, Values
from isotone.values.attributes import Item
from isotone.values.size import item_size

Sized = tuple[Item, int]


class Change(msgspec.Struct, frozen=True, gc=False):
    """One write of one item.

    `key_item` has the key attributes (a put's has them all). `make` gives the new item from the old one (None: the item is deleted); a Change without it only
    checks its condition.
    """

    table: Table
    key: bytes
    key_item: Item
    matches: Matches | None
    show_old_on_failure: bool
    make: Callable[[Item | None], Sized | None] | None

    def judge(self, old: bytes | None) -> None:
        """Raise `ConditionalCheckFailedException` where the condition does not hold."""
        if self.matches is None or self.matches({} if old is None else item_of(old)):
            return
        shown = (
            {}
            if old is None or not self.show_old_on_failure
            else {"Item": msgspec.Raw(body_of(old))}
        )
        raise ConditionalCheckFailedException("The conditional request failed", **shown)

    def new_item(self, old: bytes | None) -> Sized | None:
        """What will lie at the key."""
        assert self.make is not None
        return self.make(None if old is None else item_of(old))

    def write(
        self, engine: Engine, old: bytes | None, new: Sized | None, meter: Meter | None
    ) -> None:
        """Write what `new_item` gave."""
        if new is None:
            items.delete(engine, self.table, self.key, old, meter)
        else:
            items.put(engine, self.table, self.key, old, *new, meter)


class Outcome(NamedTuple):
    """What was there before a write, and what is there after it."""

    old: bytes | None
    new: Item | None


def carry_out(engine: Engine, change: Change, meter: Meter | None = None) -> Outcome:
    """Judge and write one change; the caller holds the transaction. One item read, one written."""
    old = items.read(engine, change.table, change.key)
    change.judge(old)
    new = change.new_item(old)
    change.write(engine, old, new, meter)
    return Outcome(old, None if new is None else new[0])


def put_change(table: Table, item: Item, size: int, matches: Matches | None, shown: bool) -> Change:
    """The change that replaces an item whole. The item is canonical."""
    table.check_item(item)
    items.check_size(size)
    new = (item, size)
    return Change(table, table.keyspace.key(item), item, matches, shown, lambda _: new)


def delete_change(
    table: Table, key: dict[str, Any], matches: Matches | None, shown: bool
) -> Change:
    """The change that removes an item."""
    physical, key_item = table.keyspace.requested_key(key)
    return Change(table, physical, key_item, matches, shown, lambda _: None)


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
    if update is not None:
        refuse_key_update(table, update.attributes_written)

    def make(old: Item | None) -> Sized | None:
        before = key_item if old is None else old
        after = before if update is None else update.apply(before, values)
        size = item_size(after)
        items.check_size(size, "Item size to update has exceeded the maximum allowed size")
        for index in table.secondary:
            index.check(after)
        return after, size

    return Change(table, physical, key_item, matches, shown, make)


def refuse_key_update(table: Table, written: frozenset[str]) -> None:
    """Refuse an update that would change the primary key."""
    for name in table.schema.keys.names:
        if name in written:
            raise ValidationException(
                f"One or more parameter values were invalid: Cannot update attribute {name}. "
                "This attribute is part of the key"
            )
