"""`draft`: a module for a table without items, from its keys and the types of other attributes, as far as they are known.

draft(read_description(backend, "Orders"), {"total": "N"}).source
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from isotone.inference.field_types import FieldType
from isotone.inference.grouping import Group
from isotone.inference.inferring import Inferred, InferredEntity, Note
from isotone.inference.module_writer import write_module
from isotone.inference.planning import EntityPlan, FieldPlan, IndexPlan, ModelPlan
from isotone.inference.sampling import Sample
from isotone.tables.description import TableDescription

_TYPES: Final = {
    "S": "str",
    "N": "Decimal",
    "B": "bytes",
    "BOOL": "bool",
    "SS": "set[str]",
    "NS": "set[Decimal]",
    "BS": "set[bytes]",
    "L": "list[Any]",
    "M": "dict[str, Any]",
}
_NO_ITEMS: Final = "the table is empty, so the fields are those of its keys alone"
_SOME_FIELDS: Final = "the table is empty, so the types of fields are those of its definition"


def draft(table: TableDescription, attributes: Mapping[str, str]) -> Inferred:
    """One plain entity: each key attribute is a field, and each of the `attributes`, whose DynamoDB types are given."""
    primary = table.key.names
    fields = {name: _field(name, kind) for name, kind in table.key_attributes.items()}
    fields |= {
        name: _field(name, kind)
        for name, kind in attributes.items()
        if kind in _TYPES and name not in fields
    }
    if table.ttl and table.ttl not in table.key_attributes:
        fields[table.ttl] = FieldPlan(table.ttl, FieldType(datetime.__name__), 0, is_expiry=True)
    for name, plan in fields.items():
        if name not in primary:
            _make_optional(plan)
    indexes = [IndexPlan(index, 0) for index in table.indexes]
    entity = EntityPlan(Group(()), [], fields, {}, indexes, [])
    notes = [Note(what) for what in _notes(table, attributes)]
    introduction = [
        f"Table {table.name!r}, from its definition alone.",
        "What is not certain:",
        "\n".join(f"- {note}" for note in notes),
    ]
    sample = Sample(table, [], True, 0, 0)
    module = write_module(sample, ModelPlan(None, [entity]), introduction, set())
    names = module.names[0]
    entities = (InferredEntity(names.name, None, 0, tuple(names.fields.values())),)
    return Inferred(table.name, module.source, entities, tuple(notes))


def _field(name: str, kind: str) -> FieldPlan:
    return FieldPlan(name, FieldType(_TYPES[kind]), 0)


def _make_optional(plan: FieldPlan) -> None:
    """An item need not have the attribute; one that lacks a key of an index is not in that index."""
    text = plan.type.text
    if text.startswith("set["):  # an empty set is not stored
        plan.options["default_factory"] = "set"
    else:
        plan.type = FieldType(f"{text} | None")
        plan.options["default"] = "None"


def _notes(table: TableDescription, attributes: Mapping[str, str]) -> Iterator[str]:
    yield _SOME_FIELDS if attributes else _NO_ITEMS
    for index in table.vector_indexes:
        yield f"vector index {index.name!r} is not declared: add a field of type Vector for it"
