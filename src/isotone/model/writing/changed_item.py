"""Computes the item after changes without asking the database, as a new put would write it.

Used by updates that have read their item, upserts of missing items, and moves; rewrites compare items with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isotone.errors import ValidationException
from isotone.expressions.update import CompiledUpdate
from isotone.model.declaring.changes import Change, RemoveField, SetDefault
from isotone.model.expression_trees import update_of
from isotone.model.writing.derived_attributes import index_attributes
from isotone.model.writing.write import with_hint
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema


def applied(changes: Sequence[Change], item: Item) -> Item:
    """The item after the changes, computed as the database would."""
    update = CompiledUpdate.from_node(update_of([change.action() for change in changes]))
    update.check({})
    try:
        return update.apply(item, {})
    except ValidationException as error:
        raise with_hint(error) from None


def rewritten(schema: EntitySchema, item: Item) -> Item:
    """The item that a new put would write; attributes that the entity does not declare are kept."""
    entity = schema.from_item(item)
    schema.compute(entity, schema.computations, item)
    declared = {field.attribute for field in schema.fields.values()}
    declared |= {slot.attribute.name for key in schema.keys.values() for slot in key.slots}
    declared -= schema.unread_keys(item).keys()
    others = {name: value for name, value in item.items() if name not in declared}
    return {**others, **schema.to_item(entity.__dict__)}


def unkeyed(schema: EntitySchema, item: Item, changes: Sequence[Change]) -> Item:
    """The item with an attribute for each field, including fields stored only in keys, and without index keys.

    Index keys that cannot be read are kept, unless a change affects what they contain.
    """
    changed = changed_names(changes)
    kept = {name for name, fields in schema.unread_keys(item).items() if not fields & changed}
    dropped = index_attributes(schema) - kept
    values = {name: value for name, value in item.items() if name not in dropped}
    for name, value in schema.held_by_keys(item).items():
        values |= schema.encoded(schema.fields[name], value)
    return values


def new_value(schema: EntitySchema, change: Change) -> Any:
    """The new value of a field, if it does not depend on the stored one."""
    return schema.absent(change.field) if isinstance(change, RemoveField) else change.known


def changed_names(changes: Sequence[Change]) -> set[str]:
    return {change.field.name for change in changes}


def replaces_default(change: Change) -> bool:
    """Whether a change replaces the field's default."""
    return isinstance(change, SetDefault) and not change.path
