"""`store.move`: changes a primary key by deleting the item and putting it under its new key, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from isotone.errors import AlreadyExists, WriteRefused
from isotone.expressions import nodes
from isotone.model.expression_trees import conjunction
from isotone.model.writing import headroom, uniqueness
from isotone.model.writing.changed_item import applied, new_value, rewritten, unkeyed
from isotone.model.writing.updates import ChangesWrite
from isotone.model.writing.write import (
    PlannedWrite,
    action,
    as_it_was,
    described,
    entity_of,
    is_older,
    key_in,
    missing,
    values_of,
)
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")


class Move(ChangesWrite[E]):
    """Delete an item, and put it under another key."""

    reads = True
    may_move = True

    @property
    def target(self) -> Item | None:
        schema = self.schema
        unknown = {change.field.name for change in self._changes if not change.is_known}
        unknown |= schema.computations.keys()
        if any(field.name in unknown for field in schema.primary.fields):
            return None
        new = {each.field.name: new_value(schema, each) for each in self._changes if each.is_known}
        key = schema.primary_key({**self._identity, **new})
        return None if key == self.key else key

    def plan(self, now: float) -> PlannedWrite:
        """The writes under both keys, or of the item alone if its key stays the same; the outcome is the item."""
        self._now = now
        schema, current, changes = self.schema, self._existing(), self._all_changes()
        item = rewritten(
            schema, applied(changes, unkeyed(schema, schema.upgraded(current), changes))
        )
        new_key = key_in(schema, item)
        before, after = values_of(schema, current), values_of(schema, item)
        headroom.watch(schema, after or {})
        markers = uniqueness.changes(schema, new_key, before, after, now, previous_owner=self.key)
        if is_older(schema, current):
            self._check_upgraded(current)
        as_seen = conjunction([*self._callers_conditions(current), self._as_seen(current)])
        if new_key == self.key:
            put = action("Put", schema, self._explain, as_seen, Item=item)
            return PlannedWrite([put, *markers], item)
        vacancy = conjunction([missing(schema, now), self.at_target])

        def taken(found: Item | None) -> WriteRefused:
            text = f"{described(schema, new_key)} already exists"
            return AlreadyExists(text, entity_of(schema, found))

        delete = action("Delete", schema, self._explain, as_seen, Key=self.key)
        put = action("Put", schema, taken, vacancy, Item=item)
        return PlannedWrite([delete, put, *markers], item)

    def _as_seen(self, current: Item) -> nodes.ConditionNode | None:
        """The condition that the item is as it was read."""
        return as_it_was(self.schema, current)

    def finish(self, plan: PlannedWrite, attributes: Item | None) -> E:
        return cast("E", entity_of(self.schema, plan.outcome))
