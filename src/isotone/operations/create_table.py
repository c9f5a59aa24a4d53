"""CreateTable: a new table with its indexes, ready as soon as the answer is there."""

from __future__ import annotations

import uuid

from isotone.engine.engine import Engine
from isotone.engine.schema import IndexSchema, TableSchema
from isotone.errors import ResourceInUseException
from isotone.operations.action import Answer, action
from isotone.operations.definitions import (
    TABLE_SETTINGS,
    attribute_types,
    index_schema,
    key_schema,
    settings,
    throughput,
    with_stream,
)
from isotone.operations.describe import table_description
from isotone.operations.names import table_name
from isotone.operations.rules.tables import check_create_table
from isotone.operations.shapes.tables import CreateTable


@action("CreateTable")
def run(engine: Engine, request: CreateTable) -> Answer:
    check_create_table(request)
    name = table_name(request.table_name)
    with engine.writing:
        if engine.catalog.find(name) is not None:
            raise ResourceInUseException(f"Table already exists: {name}")
        schema = _schema(engine, name, request)
        if request.stream_specification is not None:
            schema = with_stream(engine, schema, request.stream_specification)
        table = engine.catalog.save(schema)
        for tree in table.trees:
            engine.store.create_tree(tree)
        return {"TableDescription": table_description(engine, schema, "CREATING")}


def _schema(engine: Engine, name: str, request: CreateTable) -> TableSchema:
    types = attribute_types(request.attribute_definitions)
    return TableSchema(
        name=name,
        id=str(uuid.uuid4()),
        created=round(engine.clock.now(), 3),
        keys=key_schema(request.key_schema, types),
        tree=engine.catalog.new_tree("t"),
        attributes=types,
        indexes=_indexes(engine, request, types),
        billing=request.billing_mode or "PROVISIONED",
        throughput=throughput(request.provisioned_throughput),
        deletion_protection=bool(request.deletion_protection_enabled),
        tags={tag.key: tag.value for tag in request.tags or ()},
        settings=settings(request, TABLE_SETTINGS),
    )


def _indexes(
    engine: Engine, request: CreateTable, types: dict[str, str]
) -> tuple[IndexSchema, ...]:
    local = request.local_secondary_indexes or ()
    global_ = request.global_secondary_indexes or ()
    return (
        *(index_schema(engine, each, "local", types) for each in local),
        *(index_schema(engine, each, "global", types) for each in global_),
    )
