"""Index keys and computed fields after an update, of values that `updates` knows; else raises `MustRead`.

An index key must always equal what a new put would write. So changing a field that is in an index key, or that decides
whether the entity is in the index, rewrites the whole key. The derivation looks up values in a `KnownValues`, which
records the fields used, and raises `MustRead` for a value that it does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import All, Condition, FunctionTest, ValueComparison
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.fields import UNREADABLE
from isotone.model.declaring.keys import BoundKey, NativeSlot
from isotone.model.writing.write import MustRead
from isotone.values.types import Item


class KnownValues(dict[str, Any]):
    """Values of fields by name. Looking up a missing one raises `MustRead`, and never returns None.

    If the item's value is invalid, the lookup raises its `InvalidItem`. `Update._known_values` collects what is known
    without a read.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.used: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """A field's value, recorded as used; raises `MustRead`."""
        self.used.add(name)
        try:
            return self[name]
        except KeyError:
            fault = self[UNREADABLE].get(name) if UNREADABLE in self else None
            raise (MustRead(f"the value of {name!r}") if fault is None else fault) from None


class Derived(Struct, frozen=True):
    """Attributes to write and to remove, besides those of the changed fields."""

    attributes: Item
    removed: frozenset[str]


_NOTHING: Final = Derived({}, frozenset())


def derive(schema: EntitySchema, known: KnownValues, changes: Sequence[Change] | None) -> Derived:
    """The index keys and computed fields to write after changes (None: any changes); raises `MustRead`.

    `known` holds the values after the changes; this function adds those of the computed fields.
    """
    if not (schema.indexes or schema.computations):
        return _NOTHING
    changed = schema.fields.keys() if changes is None else {change.field.name for change in changes}
    if schema.computations:
        entity = _watched(schema)()
        object.__setattr__(entity, "_known", known)
        schema.computations.fill(entity, known)
    keys = _keys_to_write(schema, frozenset(changed | schema.computations.keys()))
    attributes: Item = {}
    for key in keys:
        attributes.update(schema.key_attributes(key, known, _condition_values(schema, key, known)))
    kept = _kept(schema)
    attributes = {name: value for name, value in attributes.items() if name not in kept}
    removed = {slot.attribute.name for key in keys for slot in key.slots} - kept
    for name in schema.computations:
        field = schema.fields[name]
        attributes.update(schema.encoded(field, known[name]))
        removed.add(field.attribute)
    return Derived(attributes, frozenset(removed - attributes.keys()))


def values_implied_by(condition: Condition | None) -> dict[str, Any]:
    """The field values that a condition requires."""
    found: dict[str, Any] = {}
    if condition is None:
        return found
    for each in condition.operands if isinstance(condition, All) else (condition,):
        if isinstance(each, ValueComparison) and each.operator == "=" and not each.path:
            found[each.field.name] = each.values[0]
        elif (
            isinstance(each, FunctionTest)
            and each.function == "attribute_not_exists"
            and not each.path
        ):
            found[each.field.name] = EntitySchema.absent(each.field)
    return found


def absent_by(condition: Condition) -> set[str]:
    """The fields whose attributes a condition requires to be missing."""
    parts = condition.operands if isinstance(condition, All) else (condition,)
    return {
        part.field.name
        for part in parts
        if isinstance(part, FunctionTest)
        and part.function == "attribute_not_exists"
        and not part.path
    }


@lru_cache(maxsize=4096)
def _keys_to_write(schema: EntitySchema, changed: frozenset[str]) -> Sequence[BoundKey]:
    """The index keys to rewrite: those that use changed fields, and those that share an attribute with them."""
    found = [key for key in schema.indexes if _depends(schema, key) & changed]
    attributes = {slot.attribute.name for key in found for slot in key.slots}
    attributes -= _primary_attributes(schema)
    return [
        key
        for key in schema.indexes
        if (key in found or any(slot.attribute.name in attributes for slot in key.slots))
        and not _is_written_by_fields(schema, key)
    ]


@lru_cache(maxsize=4096)
def _depends(schema: EntitySchema, key: BoundKey) -> frozenset[str]:
    """The fields on which a key's derived attributes depend.

    A required field that is itself the key attribute is excluded: writing the field writes the key.
    """
    names = {field.name for field in key.when.fields()} if key.when is not None else set()
    for slot in key.slots:
        for component in slot.components:
            field = component.field
            is_the_key = isinstance(slot, NativeSlot) and field.attribute == slot.attribute.name
            if not is_the_key or schema.is_optional(field):
                names.add(field.name)
    return frozenset(names)


@lru_cache(maxsize=4096)
def _is_written_by_fields(schema: EntitySchema, key: BoundKey) -> bool:
    """Whether the fields themselves are the index key (numbers), so that nothing must be derived."""
    own = {field.attribute for field in schema.fields.values()}
    return all(
        slot.attribute.name in _primary_attributes(schema)
        or (slot.attribute.type == "N" and slot.attribute.name in own)
        for slot in key.slots
    )


@lru_cache(maxsize=512)
def fields_by_key(schema: EntitySchema) -> Mapping[str, frozenset[str]]:
    """For each index key attribute that is not itself a field's attribute, the fields in it."""
    return {
        slot.attribute.name: frozenset(component.field.name for component in slot.components)
        for key in schema.indexes
        for slot in key.slots
        if slot.components and slot.attribute.name not in _kept(schema)
    }


@lru_cache(maxsize=512)
def index_attributes(schema: EntitySchema) -> frozenset[str]:
    """The attributes of index keys that are neither fields nor part of the primary key."""
    names = {slot.attribute.name for key in schema.indexes for slot in key.slots}
    return frozenset(names - _kept(schema))


@lru_cache(maxsize=4096)
def key_index_attributes(schema: EntitySchema, key: BoundKey) -> frozenset[str]:
    """The attributes of one index key that are neither fields nor part of the primary key."""
    return frozenset(slot.attribute.name for slot in key.slots) - _kept(schema)


@lru_cache(maxsize=512)
def _primary_attributes(schema: EntitySchema) -> frozenset[str]:
    return frozenset(each.name for each in schema.table.keys.attributes)


@lru_cache(maxsize=512)
def _kept(schema: EntitySchema) -> frozenset[str]:
    """Attributes to keep when an entity leaves an index: fields, and the primary key."""
    return _primary_attributes(schema) | {field.attribute for field in schema.fields.values()}


def _condition_values(schema: EntitySchema, key: BoundKey, known: KnownValues) -> Item:
    """The attributes that decide whether the entity is in the index."""
    item: Item = {}
    if key.when is not None:
        for field in key.when.fields():
            item.update(schema.encoded(field, known.get(field.name)))
    return item


# Computed fields


@lru_cache(maxsize=512)
def _watched(schema: EntitySchema) -> type[Any]:
    """A subclass of the entity that looks up its fields in a `KnownValues`."""
    fields, computations = schema.fields.keys(), schema.computations

    class Watched(schema.entity):  # type: ignore[misc, name-defined] # a base known only at run time
        """The entity passed to the function of a computed field."""

        __schema__ = schema

        def __init__(self) -> None: ...

        def __getattribute__(self, name: str) -> Any:
            known = object.__getattribute__(self, "__dict__").get("_known")
            if name in fields:
                if name in computations and name not in known:
                    return computations.compute(name, self, known)
                return known.get(name)
            if name == "__dict__":
                return {each: known.get(each) for each in fields if each not in computations}
            return object.__getattribute__(self, name)

    return Watched
