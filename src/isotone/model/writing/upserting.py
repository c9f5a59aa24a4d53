"""Updates that make the entity where there is none: counters, and whatever begins by its first change.

What a missing entity begins with is its fields' defaults. Where nothing but these, the key and the
changes decides about index keys, an upsert is one UpdateItem that says all of it; elsewhere the item is
read first, and either updated or created.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from isotone.clock import Clock
from isotone.errors import UsageError, WriteRefused
from isotone.expressions import nodes
from isotone.model.declaring import changes as kinds
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition
from isotone.model.rendering import conjunction, expressions
from isotone.model.steps import Steps
from isotone.model.writing import headroom, uniqueness
from isotone.model.writing.carrying import carry_out
from isotone.model.writing.changing import applied, names, stamps
from isotone.model.writing.derivation import Known, Unknown, derive
from isotone.model.writing.rewriting import rewritten
from isotone.model.writing.stored import insisted, is_gone, refusal, unexpired, vacant
from isotone.model.writing.updating import Update
from isotone.model.writing.writing import Action
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")


def upsert(
    entity: type[E],
    changes: Sequence[Change],
    key: Mapping[str, Any],
    clock: Clock,
    when: Condition | None = None,
) -> Steps[E]:
    """Change some fields of an entity, which begins with its defaults where there is none.

    Cost: one write; one read more where an update would have it, or where an index key, a unique value or a
    condition has to be looked at, and a second write where what is there has expired. Raises what an update
    does, but `NotFound`.
    """
    return cast("Steps[E]", carry_out(Upsert(entity, changes, key, when), clock))


class Upsert(Update[E]):
    """Change some fields of an entity, or make it."""

    def prepare(self) -> None:
        super().prepare()
        schema = self.schema
        unsaid = schema.required - names(self._changes) - self._identity.keys()
        if unsaid:
            missing = [name for name in schema.fields if name in unsaid]
            raise UsageError(
                f"an upsert of {schema.tag} may have to make one, and does not say its "
                f"{', '.join(missing)}; set it, or give the field a default"
            )

    def plan(self, now: datetime) -> list[Action]:
        if not self.is_seen:
            return [self._plan_blindly(now)]
        if is_gone(self.schema, self.current, now):
            return self._plan_new(now)
        return super().plan(now)

    def _explain(self, item: Item | None) -> WriteRefused | None:
        if not self.is_seen:
            return None  # it has expired, so another one begins
        if is_gone(self.schema, item, self._now) != is_gone(self.schema, self.current, self._now):
            return None
        if is_gone(self.schema, item, self._now):
            return refusal(self, item, {})
        return super()._explain(item)

    # Without reading

    def _plan_blindly(self, now: datetime) -> Action:
        schema = self.schema
        if schema.unique or schema.version > 1 or self.when is not None:
            raise Unknown("whether there is an item")
        self._now = now
        changes = [*self._changes, *stamps(schema, now)]
        known = Known(self._told(changes))
        derived = derive(schema, known, set(schema.fields))
        headroom.watch(schema, dict(known))
        actions = [change.action() for change in (*changes, *self._beginnings(changes, now))]
        written = {**derived.attributes, **schema.marks}
        actions += [nodes.Set(nodes.Path((n,)), nodes.Literal(v)) for n, v in written.items()]
        actions += [nodes.Remove(nodes.Path((n,))) for n in sorted(derived.removed)]
        return self._request(actions, unexpired(schema, now))

    def _beginnings(self, changes: Sequence[Change], now: datetime) -> list[Change]:
        """The changes that give a new entity its key's fields and its defaults."""
        schema = self.schema
        changed = names(changes)
        found: list[Change] = []
        for field in schema.fields.values():
            begins = now if field.options.role == "created" else schema.absent(field)
            if field.name in self._identity:
                found.append(kinds.Set(field, self._identity[field.name]))
            elif field.name in changed:
                self._check_beginning(changes, field.name, begins)
            elif field.options.compute is None and begins is not None and begins != set():
                found.append(kinds.SetDefault(field, begins))
        return found

    @staticmethod
    def _check_beginning(changes: Sequence[Change], name: str, begins: Any) -> None:
        """The database counts from nothing, which an entity's default may not be."""
        for change in changes:
            if (
                change.field.name == name
                and not _is_default(change)
                and (change.path or (begins and not change.is_known))
            ):
                raise Unknown("whether the default counts")

    # Of an item that is not there

    def _plan_new(self, now: datetime) -> list[Action]:
        schema = self.schema
        self._now = now
        values = {**{n: schema.absent(f) for n, f in schema.fields.items()}, **self._identity}
        if "created" in schema.by_role:
            values[schema.by_role["created"].name] = now
        begun = {each.field.name for each in self._changes if _is_default(each)}
        base: Item = {}
        for name, field in schema.fields.items():
            if name not in begun:
                base.update(schema.encoded(field, values[name]))
        changed = applied([*self._changes, *stamps(schema, now)], {**base, **schema.marks})
        self._after = item = rewritten(schema, changed)
        after = schema.from_item(item).__dict__
        headroom.watch(schema, after)
        condition = conjunction([vacant(schema, now), insisted(schema, self.when), self.further])
        members = {
            "TableName": schema.table.name,
            "Item": item,
            **expressions(ConditionExpression=condition),
        }
        markers = uniqueness.changes(schema, self.key, None, after, now)
        return [Action("Put", members, self._explain), *markers]


def _is_default(change: Change) -> bool:
    """Whether a change says what a field begins with, in place of the field's own default."""
    return isinstance(change, kinds.SetDefault) and not change.path
