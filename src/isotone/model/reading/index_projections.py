"""Index projections: which attributes an index has, which fields can be read from it (`KEYS_ONLY`, `INCLUDE`).

A global index does not have other attributes, and no index can be filtered by them. Fields in a key can always be read
by parsing the key, except texts whose case the key changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotone.errors import UsageError
from isotone.expressions import nodes
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.keys import BoundKey
from isotone.model.declaring.table import VERSION_ATTRIBUTE, Table

if TYPE_CHECKING:
    from isotone.model.reading.queries import Read


def expiry_attributes(schemas: tuple[EntitySchema, ...]) -> tuple[str, ...]:
    """The TimeToLive attributes of the entities."""
    expiring = [schema.by_role["expires"] for schema in schemas if "expires" in schema.by_role]
    return tuple(dict.fromkeys(field.attribute for field in expiring))


def is_on_key(table: Table, index: str | None, condition: Condition) -> bool:
    """Whether a condition uses only key attributes, which are the same in all versions."""
    keyed = key_attributes(table, index)
    return all(field.attribute in keyed for field in condition.fields())


def projection_of(read: Read[Any]) -> tuple[nodes.Path, ...] | None:
    """The attributes to request: the selected ones, and those that decoding needs; None for all."""
    if read.selected is None:
        return None
    projected = projected_attributes(read.table, read.index)
    if projected is None and any(schema.version > 1 for schema in read.schemas):
        return None  # an upgrade needs the whole item
    needed = (
        *key_attributes(read.table, read.index),
        read.table.tag,
        VERSION_ATTRIBUTE,
        *expiry_attributes(read.schemas),
    )
    names = dict.fromkeys(name for name in needed if projected is None or name in projected)
    for schema, key in zip(read.schemas, read.keys, strict=True):
        available = projected_fields(schema, key)
        for name in sorted(read.selected & schema.fields.keys()):
            attribute = schema.fields[name].attribute
            if projected is None:  # an item of another program may have the value only in a key
                names |= dict.fromkeys(schema.keys_with(name))
            # A local index fetches missing attributes from the table; a key contains the rest.
            if (
                projected is None
                or attribute in projected
                or (available is not None and name not in available)
            ):
                names[attribute] = None
    return tuple(nodes.Path((name,)) for name in names)


def key_attributes(table: Table, index: str | None) -> tuple[str, ...]:
    """The attributes of the table's key and of the index's key, without duplicates."""
    layouts = (table.keys, table.layout(index))
    return tuple(dict.fromkeys(each.name for layout in layouts for each in layout.attributes))


def projected_attributes(table: Table, index: str | None) -> frozenset[str] | None:
    """The attributes that an index's entries have; None for all."""
    projection = "ALL" if index is None else table.indexes[index].projection
    if projection == "ALL":
        return None
    further = () if projection == "KEYS_ONLY" else projection
    return frozenset((*key_attributes(table, index), *further))


def projected_fields(schema: EntitySchema, key: BoundKey) -> frozenset[str] | None:
    """The fields that can be read from an index's entries; None for all."""
    attributes = projected_attributes(schema.table, key.index)
    if attributes is None:
        return None
    if schema.version > 1 and VERSION_ATTRIBUTE not in attributes:
        attributes = frozenset(key_attributes(schema.table, key.index))
    projected = {name for name, each in schema.fields.items() if each.attribute in attributes}
    parts = [component.field for bound in (schema.primary, key) for component in bound.components]
    return frozenset(projected | {each.name for each in parts if each.options.case is None})


def unprojected_fields(schema: EntitySchema, key: BoundKey) -> frozenset[str]:
    """The fields that cannot be read from an index's entries."""
    available = projected_fields(schema, key)
    return frozenset() if available is None else frozenset(schema.fields) - available


def check_selected(schema: EntitySchema, key: BoundKey, names: frozenset[str]) -> None:
    """Raise `UsageError` for fields that cannot be read from the index.

    A local index fetches them from the table, except if an upgrade needs whole items.
    """
    available = projected_fields(schema, key)
    if available is None:
        return
    if schema.table.indexes[str(key.index)].kind == "local" and schema.version == 1:
        return
    missing = sorted((names & schema.fields.keys()) - available)
    if missing:
        raise UsageError(
            f"index {key.index!r} does not project {', '.join(missing)}; "
            "project it, or read by the primary key"
        )


def check_filtered(
    table: Table, index: str | None, condition: Condition, schema: EntitySchema
) -> None:
    """Raise `UsageError` for a condition on attributes that the index does not have."""
    attributes = projected_attributes(table, index)
    if attributes is None:
        return
    missing = sorted({each.attribute for each in condition.fields()} - attributes)
    if missing:
        raise UsageError(
            f"index {index!r} does not project {', '.join(missing)}, so it cannot be filtered by it; "
            "project it, or read by the primary key"
        )
    on_key = is_on_key(table, index, condition)
    if schema.version > 1 and VERSION_ATTRIBUTE not in attributes and not on_key:
        raise UsageError(
            f"index {index!r} does not project {VERSION_ATTRIBUTE!r}, so a filter cannot tell which of its entries an "
            f"older version of {schema.tag} wrote; project it, or read by the primary key"
        )
