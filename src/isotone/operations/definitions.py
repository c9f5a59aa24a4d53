"""From the members of CreateTable and UpdateTable to the catalog's own terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from isotone.engine.engine import Engine
from isotone.engine.schema import (
    IndexKind,
    IndexSchema,
    IndexStatus,
    KeyPart,
    KeySchema,
    Projection,
    TableSchema,
    Throughput,
)
from isotone.engine.streams import registry
from isotone.operations.shapes import tables as shapes
from isotone.operations.shapes.members import Structure


class IndexDefinition(Protocol):
    """What the three requests that define an index have in common."""

    @property
    def index_name(self) -> str: ...
    @property
    def key_schema(self) -> list[shapes.KeySchemaElement]: ...
    @property
    def projection(self) -> shapes.Projection: ...


def attribute_types(definitions: list[shapes.AttributeDefinition] | None) -> dict[str, str]:
    return {each.attribute_name: each.attribute_type for each in definitions or ()}


def key_schema(elements: list[shapes.KeySchemaElement], types: Mapping[str, str]) -> KeySchema:
    """The key that the elements describe; their rules have been checked."""

    def parts(kind: str) -> tuple[KeyPart, ...]:
        return tuple(
            KeyPart(each.attribute_name, types[each.attribute_name])  # type: ignore[arg-type]
            for each in elements
            if each.key_type == kind
        )

    return KeySchema(parts("HASH"), parts("RANGE"))


def index_schema(
    engine: Engine,
    definition: IndexDefinition,
    kind: IndexKind,
    types: Mapping[str, str],
    status: IndexStatus = "ACTIVE",
) -> IndexSchema:
    """A new index, with a tree name of its own; the tree is made by the caller."""
    wanted = definition.projection
    return IndexSchema(
        name=definition.index_name,
        kind=kind,
        keys=key_schema(definition.key_schema, types),
        projection=Projection(
            wanted.projection_type or "ALL", tuple(wanted.non_key_attributes or ())
        ),
        tree=engine.catalog.new_tree("i"),
        status=status,
        throughput=throughput(getattr(definition, "provisioned_throughput", None)),
        settings=settings(definition, ("on_demand_throughput", "warm_throughput")),
    )


def with_stream(
    engine: Engine, schema: TableSchema, wanted: shapes.StreamSpecification
) -> TableSchema:
    """The table with its changes recorded, or not any more; the caller saves it."""
    if wanted.stream_enabled:
        assert wanted.stream_view_type is not None  # the rules have seen to it
        return registry.enable(engine, schema, wanted.stream_view_type)
    return schema if schema.stream is None else registry.disable(engine, schema)


def throughput(wanted: shapes.ProvisionedThroughput | None) -> Throughput:
    if wanted is None:
        return Throughput()
    return Throughput(wanted.read_capacity_units, wanted.write_capacity_units)


TABLE_SETTINGS = (
    "sse_specification",
    "table_class",
    "on_demand_throughput",
    "warm_throughput",
    "resource_policy",
)


def settings(request: object, members: tuple[str, ...]) -> dict[str, Any]:
    """Members that are recorded and described as they came, under AWS's names."""
    names = {field.name: field.encode_name for field in msgspec.structs.fields(type(request))}  # type: ignore[arg-type]
    found = {names[name]: getattr(request, name) for name in members if name in names}
    return {name: _plain(value) for name, value in found.items() if value is not None}


def _plain(value: Any) -> Any:
    """A structure as JSON has it, without its absent members."""
    if not isinstance(value, Structure):
        return value
    return {name: each for name, each in msgspec.to_builtins(value).items() if each is not None}
