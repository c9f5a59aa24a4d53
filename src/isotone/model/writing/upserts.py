"""`store.upsert`: changes some fields of an entity, or creates it with its defaults.

A new entity starts with its fields' defaults. If these, the key and the changes determine all index keys, an upsert is
one UpdateItem. Otherwise the item is read first, and then updated or created.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from isotone.codec.ids import id_at
from isotone.errors import UsageError, WriteRefused
from isotone.model.declaring.changes import Change, Compute, SetDefault, SetField
from isotone.model.declaring.wire_types import present_type
from isotone.model.expiry import alive, is_missing
from isotone.model.expression_trees import conjunction
from isotone.model.writing import headroom, uniqueness
from isotone.model.writing.changed_item import applied, changed_names, replaces_default, rewritten
from isotone.model.writing.derived_attributes import Derived, KnownValues, derive
from isotone.model.writing.updates import Update
from isotone.model.writing.write import (
    MustRead,
    PlannedWrite,
    WriteAction,
    action,
    condition_node,
    missing,
    moment,
    refusal,
)
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.fields import Attr
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")


class Upsert(Update[E]):
    """Change some fields of an entity, or create it."""

    def prepare(self) -> None:
        super().prepare()
        schema = self.schema
        without = schema.required - changed_names(self._changes) - self._identity.keys()
        if without:
            names = [name for name in schema.fields if name in without]
            raise UsageError(
                f"an upsert of {schema.tag} may have to create one, which needs a value for "
                f"{', '.join(names)}; set it, or give the field a default"
            )
        for change in self._changes if self._sources else ():
            for field in change.value._must_exist() if isinstance(change, Compute) else ():
                raise UsageError(
                    f"an upsert of {schema.tag} may have to create one, in which {field.name!r} has no value; "
                    f"write {field.name}.or_else(…), or give the field a default"
                )

    def plan(self, now: float) -> PlannedWrite:
        self._now = now
        if self.is_seen and is_missing(self.schema, self.current, now):
            return self._plan_new()
        return super().plan(now)

    def _explain(self, item: Item | None) -> WriteRefused | None:
        if not self.is_seen:
            return None  # whatever condition refused it, the item must be read
        is_gone = is_missing(self.schema, item, self._now)
        if is_gone != is_missing(self.schema, self.current, self._now):
            return None
        return refusal(self, item, {}) if is_gone else super()._explain(item)

    # Without reading

    def _plan_without_item(self, changes: Sequence[Change]) -> WriteAction:
        schema = self.schema
        if schema.unique or schema.version > 1 or self.when is not None:
            raise MustRead("whether there is an item")
        if schema.has_kinds or schema.base is not None:
            raise MustRead("the kind of the item")
        known = KnownValues(self._known_values(changes))
        derived = derive(schema, known, None)
        headroom.watch(schema, known)
        condition = conjunction(
            [
                alive(schema, self._now),
                schema.no_newer,
                *(self._key_conditions(changes, derived, known) if known.used else ()),
                *self._source_conditions(),
            ]
        )
        marked = Derived({**derived.attributes, **schema.marks}, derived.removed)
        return self._update_action([*changes, *self._initial(changes)], marked, condition)

    def _initial(self, changes: Sequence[Change]) -> list[Change]:
        """The changes that set the key's fields and a new entity's defaults."""
        schema = self.schema
        changed = changed_names(changes)
        initial: list[Change] = []
        for field in schema.fields.values():
            default = self._first_value(field)
            if field.attribute in self._key:
                continue  # DynamoDB itself creates an item with its key
            if field.name in self._identity:
                initial.append(SetField(field, self._identity[field.name]))
            elif field.name in changed:
                self._check_initial(changes, field.name, default)
            elif field.options.compute is None and default is not None and default != set():
                initial.append(SetDefault(field, default))
        return initial

    def _first_value(self, field: Attr[Any]) -> Any:
        """A field's value in a new entity."""
        if field.options.role == "created":
            return moment(self._now)
        if field.options.role == "created_id":
            return id_at(present_type(field.annotation), self._now)
        return self.schema.absent(field)

    @staticmethod
    def _check_initial(changes: Sequence[Change], name: str, default: Any) -> None:
        """Raise `MustRead` if a change builds on a default, which the database does not know."""
        for change in changes:
            if (
                change.field.name == name
                and not replaces_default(change)
                and (change.path or (default and not change.is_known))
            ):
                raise MustRead("whether the default counts")

    # If the item does not exist

    def _plan_new(self) -> PlannedWrite:
        schema, now = self.schema, self._now
        values = {
            **{name: self._first_value(field) for name, field in schema.fields.items()},
            **self._identity,
        }
        defaulted = {change.field.name for change in self._changes if replaces_default(change)}
        base: Item = {}
        for name, field in schema.fields.items():
            if name not in defaulted:
                base.update(schema.encoded(field, values[name]))
        changed = applied(self._all_changes(), {**base, **schema.marks})
        item = rewritten(schema, changed)
        after = schema.from_item(item).__dict__
        headroom.watch(schema, after)
        condition = conjunction(
            [missing(schema, now), condition_node(schema, self.when), self.further]
        )
        markers = uniqueness.changes(schema, self.key, None, after, now)
        put = action("Put", schema, self._explain, condition, Item=item)
        return PlannedWrite([put, *markers], item)
