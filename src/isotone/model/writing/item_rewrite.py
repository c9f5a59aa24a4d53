"""Rewrites one item (for `store.rewrite`): what a put would write now, under its current key, conditionally.

A rewrite changes no values, so it sets neither the version nor a time, unless a `change` function is given. It writes
only attributes that differ, on the condition that the item is as it was read, so no concurrent write is lost. If the
key changes, the item and the markers of its unique values move in one transaction.

`model/rewriting.py` decides which items are rewritten, and counts the failures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from isotone.errors import AlreadyExists, UsageError, WriteRefused
from isotone.expressions import nodes
from isotone.model.declaring.declaration import OWNER_ATTRIBUTE
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.expression_trees import absent, unchanged, update_of
from isotone.model.writing import uniqueness
from isotone.model.writing.changed_item import rewritten
from isotone.model.writing.write import (
    PlannedWrite,
    Write,
    WriteAction,
    action,
    described,
    entity_of,
    key_in,
    values_of,
)
from isotone.values.json import item_from_wire, item_to_wire
from isotone.values.types import Item, is_same_item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema

ChangeItem = Callable[[dict[str, Any]], dict[str, Any]]
"""A function from an item (as plain values, which it may change) to what the item should be."""

Touched = tuple[Item, Item | None, Item | None]
"""A primary key, the item before a write, and the item after it; None for a missing item."""
Log = Callable[[str, Sequence[Touched]], None]
"""Called with a table's name and the items that a write is about to change."""


def _target_of(schema: EntitySchema, item: Item, change: ChangeItem | None) -> Item:
    """The item as it should be; raises `InvalidItem` or `UsageError` if that cannot be determined."""
    present = schema.upgraded(item)
    if change is not None:
        present = _changed(schema, present, change)
    return rewritten(schema, present)


def _changed(schema: EntitySchema, item: Item, change: ChangeItem) -> Item:
    name = getattr(change, "__name__", repr(change))
    try:
        result = change(item_from_wire(item))
    except Exception as error:
        raise schema.invalid(
            item, f"change={name} raised {error!r}; make it accept the item"
        ) from error
    if not isinstance(result, dict):
        raise UsageError(
            f"change={name} returned {result!r}, which is not an item; end it with `return item`"
        )
    return item_to_wire(result)


class Rewrite(Write[bool]):
    """Rewrite an item; returns whether that was necessary.

    `claims_values`: also write missing markers of its unique values. `log` is called before each attempt.
    """

    reads = True

    def __init__(
        self,
        schema: EntitySchema,
        item: Item,
        change: ChangeItem | None = None,
        *,
        claims_values: bool = False,
        log: Log | None = None,
    ) -> None:
        self.schema = schema
        self._key = key_in(schema, item)
        self._change = change
        self._claims_values = claims_values
        self._log = log
        self._logged: Sequence[Touched] = ()
        self._target: tuple[Item, Item] | None = None
        # What the last single write changed, and to what.
        self._tried: tuple[Item, Item] | None = None
        self.saw(item)

    @property
    def keys_to_migrate(self) -> tuple[Item, ...]:
        return ()  # it moves the item itself

    @property
    def entity_key(self) -> EntityKey[Any]:
        return EntityKey.of(self.schema.from_item(self.outcome(self.current or {})))

    def plan(self, now: float) -> PlannedWrite:
        """The actions that rewrite the item; the outcome says whether any was necessary."""
        schema, current = self.schema, self.current
        if current is None:
            return PlannedWrite([], outcome=False)
        if self._tried is not None and is_same_item(self._tried[1], current):
            # A previous attempt wrote the item, but its response was lost; `change` was applied already.
            self._target = self._tried
            self.saw(self._tried[0])
            return PlannedWrite([], outcome=True)
        target = self.outcome(current)
        if is_same_item(target, current) and not self._claims_values:
            return PlannedWrite([], outcome=False)
        own = self._moving(target) if key_in(schema, target) != self.key else [self._here(target)]
        markers = self._markers(target, now)
        self._note(current, target, markers)
        actions = [*own, *markers]
        self._tried = self._target if len(actions) == 1 else None
        return PlannedWrite(actions, outcome=True)

    def outcome(self, item: Item) -> Item:
        """The item as it should be; `change` is called once for each state of the item."""
        if self._target is None or self._target[0] is not item:
            self._target = (item, _target_of(self.schema, item, self._change))
        return self._target[1]

    @property
    def is_transaction(self) -> bool:
        """Whether it writes several items. Then it can share a transaction with others at no extra cost."""
        current = self.current
        return self._claims_values or (
            current is not None and key_in(self.schema, self.outcome(current)) != self.key
        )

    def log_ahead(self, now: float, log: Log) -> None:
        """Log the first attempt early, so that several items' lines reach the disk together."""
        later, self._log = self._log, log
        self.plan(now)
        self._log = later

    def _as_seen(self, current: Item) -> nodes.ConditionNode | None:
        return unchanged(sorted(self.schema.declared_attributes | current.keys()), current)

    def _here(self, target: Item) -> WriteAction:
        """The update of the attributes that differ; only a check of the item if none does."""
        schema, current = self.schema, self.current or {}
        changes: list[nodes.Action] = [
            nodes.Set(nodes.Path((name,)), nodes.Literal(value))
            for name, value in target.items()
            if current.get(name) != value
        ]
        changes += [nodes.Remove(nodes.Path((name,))) for name in current.keys() - target.keys()]
        as_seen = self._as_seen(current)
        if not changes:
            return action("ConditionCheck", schema, _replan, as_seen, Key=self.key)
        update = update_of(changes)
        return action("Update", schema, _replan, as_seen, Key=self.key, UpdateExpression=update)

    def _moving(self, target: Item) -> list[WriteAction]:
        schema, current = self.schema, self.current or {}
        vacant = absent(schema.table.keys.partition[0].name)
        return [
            action("Delete", schema, _replan, self._as_seen(current), Key=self.key),
            action("Put", schema, self._taken, vacant, Item=target),
        ]

    def _markers(self, target: Item, now: float) -> list[WriteAction]:
        schema = self.schema
        if not schema.unique:
            return []
        key = key_in(schema, target)
        before = None if self._claims_values else values_of(schema, self.current)
        after = values_of(schema, target)
        previous = None if key == self.key else self.key
        return uniqueness.changes(schema, key, before, after, now, previous_owner=previous)

    def _note(self, current: Item, target: Item, markers: Sequence[WriteAction]) -> None:
        if self._log is None:
            return
        schema = self.schema
        key = key_in(schema, target)
        touched: list[Touched] = [(key, current, target)]
        if key != self.key:
            touched = [(self.key, current, None), (key, None, target)]
        touched += [_touched_marker(schema, self.key, each) for each in markers]
        if touched != self._logged:
            self._log(schema.table.name, touched)
            self._logged = touched

    def _taken(self, item: Item | None) -> WriteRefused | None:
        return AlreadyExists(
            f"{described(self.schema, self.key)} cannot be rewritten: its new key is taken",
            entity_of(self.schema, item),
        )

    def finish(self, plan: PlannedWrite, attributes: Item | None) -> bool:
        return cast("bool", plan.outcome)


def _touched_marker(schema: EntitySchema, owner: Item, marker: WriteAction) -> Touched:
    """How a write changes a marker of a unique value that the item had already."""
    if marker.kind == "Put":
        after: Item = marker.members["Item"]
        return key_in(schema, after), {**after, OWNER_ATTRIBUTE: {"M": owner}}, after
    key: Item = marker.members["Key"]
    before: Item = {**key, schema.table.tag: {"S": uniqueness.MARK}, OWNER_ATTRIBUTE: {"M": owner}}
    return key, before, None


def _replan(item: Item | None) -> None:
    """Return None: the item has changed since it was read, so plan again."""
