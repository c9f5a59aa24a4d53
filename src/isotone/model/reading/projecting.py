"""What the entries of an index have: all attributes of their items, or some, or the keys alone.

A global index gives nothing else, and no index can be filtered by anything else. Fields that are part of
a key are there in any case, because they are read back from the key; but for texts whose case the key
does not keep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.errors import UsageError
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.keys import BoundKey
from isotone.model.declaring.table import Table

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema


def key_attributes(table: Table, index: str | None) -> list[str]:
    """The attributes of the table's key and the index's, each once."""
    layouts = (table.keys, table.layout(index))
    return list(dict.fromkeys(each.name for layout in layouts for each in layout.attributes))


def projected_attributes(table: Table, index: str | None) -> frozenset[str] | None:
    """The attributes that an index's entries have; None where that is all of them."""
    projection = "ALL" if index is None else table.indexes[index].projection
    if projection == "ALL":
        return None
    further = () if projection == "KEYS_ONLY" else projection
    return frozenset((*key_attributes(table, index), *further))


def projected_fields(schema: EntitySchema, key: BoundKey) -> frozenset[str] | None:
    """The fields that an index's entries have; None where that is all of them."""
    attributes = projected_attributes(schema.table, key.index)
    if attributes is None:
        return None
    named = {name for name, each in schema.fields.items() if each.attribute in attributes}
    parts = [each.field for own in (schema.primary, key) for each in own.components]
    return frozenset(named | {each.name for each in parts if each.options.case is None})


def check_selected(schema: EntitySchema, key: BoundKey, names: frozenset[str]) -> None:
    """Raise `UsageError` for fields that an index does not have.

    A local index has the others fetched from the table; but for an upgrade, which looks at whole items.
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


def check_filtered(table: Table, index: str | None, condition: Condition) -> None:
    """Raise `UsageError` for a condition on attributes that an index does not have."""
    attributes = projected_attributes(table, index)
    if attributes is None:
        return
    missing = sorted({each.attribute for each in condition.fields()} - attributes)
    if missing:
        raise UsageError(
            f"index {index!r} does not project {', '.join(missing)}, so it cannot be filtered by it; "
            "project it, or read by the primary key"
        )
