"""Moving an entity to another primary key, which no update can change: away and back in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from isotone.clock import Clock
from isotone.errors import AlreadyExists, NotFound, WriteRefused
from isotone.expressions import nodes
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition
from isotone.model.rendering import conjunction, expressions
from isotone.model.steps import Steps
from isotone.model.writing import headroom, uniqueness
from isotone.model.writing.carrying import carry_out
from isotone.model.writing.changing import Changing, applied, settled, stamps
from isotone.model.writing.rewriting import pins, rewritten
from isotone.model.writing.stored import described, entity_of, is_gone, vacant, values_of
from isotone.model.writing.writing import Action
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")


def move(
    target: type[E] | E,
    changes: Sequence[Change],
    key: Mapping[str, Any],
    clock: Clock,
    when: Condition | None = None,
) -> Steps[E]:
    """Change fields of the primary key, and any others, in one transaction; the entity as it is then.

    Cost: one read, and a transaction of two writes. Raises `NotFound` where there is no such entity,
    `AlreadyExists` where the new key is taken, and what an update does.
    """
    return (yield from carry_out(Move(target, changes, key, when), clock))


class Move(Changing[E]):
    """Delete an item under its key and put it under another."""

    reads = True
    may_move = True
    _after: Item

    @property
    def target(self) -> Item | None:
        schema = self.schema
        unknown = {each.field.name for each in self._changes if not each.is_known}
        if any(each.name in unknown | schema.computations.keys() for each in schema.primary.fields):
            return None
        values = {**self._identity, **settled(schema, self._changes)}
        key = schema.primary_key(values)
        return None if key == self.key else key

    def plan(self, now: datetime) -> list[Action]:
        schema, current = self.schema, self.current
        self._now = now
        if current is None or is_gone(schema, current, now):
            raise NotFound(f"{described(schema, self.key)} does not exist")
        changes = [*self._changes, *stamps(schema, now)]
        self._after = item = rewritten(schema, applied(changes, schema.upgraded(current)))
        new_key = {each.name: item[each.name] for each in schema.table.keys.attributes}
        before, after = values_of(schema, current), values_of(schema, item)
        headroom.watch(schema, after or {})
        markers = uniqueness.changes(schema, new_key, before, after, now, former_owner=self.key)
        if new_key == self.key:
            return [self._put(item, in_place=True), *markers]
        return [self._delete(), self._put(item, in_place=False), *markers]

    def _delete(self) -> Action:
        members = {
            "TableName": self.schema.table.name,
            "Key": self.key,
            **expressions(ConditionExpression=self._as_seen()),
        }
        return Action("Delete", members, self._explain)

    def _put(self, item: Item, *, in_place: bool) -> Action:
        vacancy = conjunction([vacant(self.schema, self._now), self.at_target])
        condition = self._as_seen() if in_place else vacancy
        members = {
            "TableName": self.schema.table.name,
            "Item": item,
            **expressions(ConditionExpression=condition),
        }
        return Action("Put", members, self._explain if in_place else self._taken)

    def _as_seen(self) -> nodes.ConditionNode | None:
        current = self.current or {}
        return conjunction([*self._insisted(), pins(self.schema, current, set(current))])

    def _taken(self, item: Item | None) -> WriteRefused | None:
        schema = self.schema
        key = {each.name: self._after[each.name] for each in schema.table.keys.attributes}
        return AlreadyExists(f"{described(schema, key)} exists already", entity_of(schema, item))

    def finish(self, attributes: Item | None) -> E:
        return cast("E", self.schema.from_item(self._after))
