"""Writes of one item as a person saw it: `EditSeen`, `RepairSeen`, `DeleteSeen`. Nobody's change meanwhile is overwritten.

A program that lost a race reads again and tries again. A person must be told: these writes are made on the condition that
*every* attribute is as it was seen, whether or not the entity has a version, and raise `VersionConflict`,
`ConditionFailed` or `NotFound` otherwise.

An edit writes the whole item as a put would write it now, so it also corrects what other programs left stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isotone.errors import ConditionFailed, NotFound, VersionConflict, WriteRefused
from isotone.expressions import nodes
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.expression_trees import unchanged
from isotone.model.writing import uniqueness
from isotone.model.writing.item_rewrite import ChangeItem, Rewrite
from isotone.model.writing.moves import Move
from isotone.model.writing.put_and_delete import Delete
from isotone.model.writing.write import (
    PlannedWrite,
    Write,
    action,
    described,
    entity_of,
    is_older,
    key_in,
    values_held,
)
from isotone.values.types import Item, is_same_item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity


class _AsSeen(Write[Any]):
    """What these writes know of the item that was seen."""

    entity: Entity | None
    when: Condition | None
    _seen: Item

    def _see(self, schema: EntitySchema, item: Item) -> None:
        self.schema = schema
        self.entity = None
        self.when = None
        self._seen = item
        self._key = key_in(schema, item)
        readable = schema.from_invalid_item(item).__dict__
        self._identity = {name: readable.get(name) for name in schema.identity}
        self.saw(item)

    @property
    def keys_to_migrate(self) -> tuple[Item, ...]:
        return ()  # it is written where it was seen, also under a previous key

    @property
    def entity_key(self) -> EntityKey[Any]:
        return EntityKey(self.schema.entity, **self._identity)

    def _as_seen(self, current: Item) -> nodes.ConditionNode | None:
        return unchanged(sorted(self.schema.declared_attributes | current.keys()), current)

    def _changed(self, item: Item | None) -> WriteRefused:
        """The error for an item that is no longer what was seen."""
        schema = self.schema
        what = described(schema, self.key)
        if item is None:
            return NotFound(f"{what} was deleted after it was read")
        version = schema.by_role.get("version")
        if version is not None:
            before, after = (each.get(version.attribute) for each in (self._seen, item))
            if before != after:
                return VersionConflict(
                    f"{what} was read as version {_number(before)}, but is now version {_number(after)}",
                    entity_of(schema, item),
                )
        return ConditionFailed(f"{what} was changed after it was read", entity_of(schema, item))


def _number(version: Any) -> str:
    return "none" if version is None else str(next(iter(version.values())))


class EditSeen(_AsSeen, Move[Any]):
    """Change fields of an item, and move it if its primary key changes; returns the item afterwards."""

    def __init__(self, schema: EntitySchema, item: Item, changes: Sequence[Change]) -> None:
        self._given = changes
        self._changes: list[Change] = []
        self._tried: Item | None = None
        self._see(schema, item)

    def plan(self, now: float) -> PlannedWrite:
        if self.current is not self._seen:  # only what this edit itself has written
            return PlannedWrite([], self.current)
        plan = super().plan(now)
        self._tried = plan.outcome
        return plan

    def _explain(self, item: Item | None) -> WriteRefused | None:
        if item is not None and self._tried is not None and is_same_item(item, self._tried):
            return None  # an attempt of which the answer was lost
        return self._changed(item)

    def finish(self, plan: PlannedWrite, attributes: Item | None) -> Any:
        return plan.outcome


class RepairSeen(_AsSeen, Rewrite):
    """Write an item as a put would write it now, with the markers of its unique values."""

    def __init__(self, schema: EntitySchema, item: Item, change: ChangeItem | None) -> None:
        super().__init__(schema, item, change, claims_values=bool(schema.unique))
        self._see(schema, item)

    def plan(self, now: float) -> PlannedWrite:
        current = self.current
        known = [self._seen]
        if self._target is not None:
            known.append(self._target[1])  # an earlier attempt wrote it, and its answer was lost
        if current is None or not any(is_same_item(each, current) for each in known):
            raise self._changed(current)
        return super().plan(now)


class DeleteSeen(_AsSeen, Delete[Any]):
    """Delete an item."""

    def __init__(self, schema: EntitySchema, item: Item) -> None:
        self.reads: bool = bool(schema.unique)
        self._see(schema, item)

    def prepare(self) -> None:
        is_older(self.schema, self._seen)  # raises for one that a later version wrote
        entity: Entity = self.schema.from_invalid_item(self._seen)
        entity.before_delete()

    def plan(self, now: float) -> PlannedWrite:
        schema = self.schema
        self._now = now
        condition = self._as_seen(self._seen)  # also of the version that wrote it
        before = values_held(schema, self._seen, now)
        markers = uniqueness.changes(schema, self.key, before, None, now)
        delete = action("Delete", schema, self._changed, condition, Key=self.key)
        return PlannedWrite([delete, *markers])
