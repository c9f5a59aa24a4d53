"""Updates: changes of some fields of one entity, with all that follows from them in the same write.

Index keys and computed fields are derived from the values after the change (`derivation`). Often these
are known: from the primary key, from the changes (`set`, not `add`), from equalities in `when`, or from
an entity with a version that is given instead of its class. Then an update is one UpdateItem. Where they
are not, the item is read first, and the write holds whatever it made use of in its condition; a write
that was overtaken is planned anew with what the refusal shows. So an update never leaves an index key
behind, and costs a read only where it must.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from isotone.clock import Clock
from isotone.errors import NotFound, WriteRefused
from isotone.expressions import nodes
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.schema import VERSION_ATTRIBUTE
from isotone.model.rendering import conjunction, equal, expressions, update_of
from isotone.model.steps import Steps
from isotone.model.writing import headroom, uniqueness
from isotone.model.writing.carrying import carry_out
from isotone.model.writing.changing import Changing, applied, names, settled, stamps
from isotone.model.writing.derivation import Derived, Known, Unknown, derive, told_by
from isotone.model.writing.rewriting import pins, rewritten
from isotone.model.writing.stored import as_read, described, is_gone, standing, values_of
from isotone.model.writing.writing import Action
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")


def update(
    target: type[E] | E,
    changes: Sequence[Change],
    key: Mapping[str, Any],
    clock: Clock,
    when: Condition | None = None,
) -> Steps[E]:
    """Change some fields of an entity, and give it as it is then. Cost: one write.

    One read more where an index key or a computed field depends on a value that neither the changes nor
    `when` tell. Raises `NotFound`, `ConditionFailed`, `VersionConflict` (where an entity with a version is
    given), `NotUnique`, `Contended`.
    """
    return cast("Steps[E]", carry_out(Update(target, changes, key, when), clock))


class Update(Changing[E | None]):
    """Change some fields of an entity."""

    _after: Item | None = None

    def plan(self, now: datetime) -> list[Action]:
        self._now = now
        changes = [*self._changes, *stamps(self.schema, now)]
        return self._plan_from_item(changes) if self.is_seen else [self._plan_unread(changes)]

    # Without reading

    def _plan_unread(self, changes: Sequence[Change]) -> Action:
        if touches_unique_values(self.schema, changes):
            raise Unknown("the unique values to give up")
        known = Known(self._told(changes))
        derived = derive(self.schema, known, names(changes))
        version = self.schema.version
        current = equal(VERSION_ATTRIBUTE, {"N": str(version)}) if version > 1 else None
        return self._action(changes, derived, known, current)

    def _told(self, changes: Sequence[Change]) -> dict[str, Any]:
        """Values after the changes that are known without reading."""
        told = {**told_by(self.when), **self._identity}
        if self.entity is not None:
            told = {**as_read(self.entity), **told}  # the condition on its version makes them so
        for change in changes:
            told.pop(change.field.name, None)
        return told | settled(self.schema, changes)

    # From the item

    def _plan_from_item(self, changes: Sequence[Change]) -> list[Action]:
        schema, current = self.schema, self.current
        if current is None or is_gone(schema, current, self._now):
            raise NotFound(f"{described(schema, self.key)} does not exist")
        item = schema.upgraded(current)
        after = applied(changes, item)
        self._after = rewritten(schema, after)
        known = Known(schema.from_item(after).__dict__)
        derived = derive(schema, known, names(changes))
        markers: list[Action] = []
        if touches_unique_values(schema, changes):
            before = values_of(schema, current)
            markers = uniqueness.changes(schema, self.key, before, known, self._now)
        if item is not current:
            return [self._rewrite(self._after, current), *markers]
        used = current.keys() | after.keys() if markers else self._used(known, changes)
        return [self._action(changes, derived, known, pins(schema, current, used)), *markers]

    def _used(self, known: Known, changes: Sequence[Change]) -> set[str]:
        """The attributes from which something was derived, and which nothing else holds in place."""
        schema = self.schema
        told = self._told(changes).keys() | schema.computations.keys()
        fields = [schema.fields[name] for name in known.used - told]
        return {field.attribute for field in fields} | {VERSION_ATTRIBUTE}

    # Requests

    def _action(
        self,
        changes: Sequence[Change],
        derived: Derived,
        known: Known,
        further: nodes.ConditionNode | None,
    ) -> Action:
        headroom.watch(self.schema, dict(known))
        actions = [change.action() for change in changes]
        actions += [
            nodes.Set(nodes.Path((name,)), nodes.Literal(value))
            for name, value in derived.attributes.items()
        ]
        actions += [nodes.Remove(nodes.Path((name,))) for name in sorted(derived.removed)]
        return self._request(actions, self._condition(further))

    def _request(
        self, actions: Sequence[nodes.Action], condition: nodes.ConditionNode | None
    ) -> Action:
        members = {
            "TableName": self.schema.table.name,
            "Key": self.key,
            **expressions(UpdateExpression=update_of(actions), ConditionExpression=condition),
        }
        return Action("Update", members, self._explain)

    def _rewrite(self, item: Item, current: Item) -> Action:
        """The whole item, of an item that an older version of the entity wrote."""
        headroom.watch(self.schema, self.schema.from_item(item).__dict__)
        same = pins(self.schema, current, set(current))
        members = {
            "TableName": self.schema.table.name,
            "Item": item,
            **expressions(ConditionExpression=self._condition(same)),
        }
        return Action("Put", members, self._explain)

    def _condition(self, further: nodes.ConditionNode | None) -> nodes.ConditionNode | None:
        return conjunction([standing(self.schema, self._now), *self._insisted(), further])

    def _explain(self, item: Item | None) -> WriteRefused | None:
        schema = self.schema
        if item is None or is_gone(schema, item, self._now):
            return super()._explain(item)
        if not self.is_seen and schema.upgraded(item) is not item:
            return None  # it is of an older version
        return super()._explain(item)

    def finish(self, attributes: Item | None) -> E | None:
        item = attributes or self._after
        return None if item is None else cast("E", self.schema.from_item(item))


def touches_unique_values(schema: EntitySchema, changes: Sequence[Change]) -> bool:
    """Whether markers of unique values have to change with these fields."""
    if not schema.unique:
        return False
    fields = {field.name for field in uniqueness.fields_of(schema)}
    if "expires" in schema.by_role:
        fields.add(schema.by_role["expires"].name)
    # A computed field may follow from whatever is changed.
    return bool(fields & (names(changes) | schema.computations.keys()))
