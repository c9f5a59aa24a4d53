"""The arguments of the tools, with what is said about each: the schema that an assistant reads, and what is accepted."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from isotone.schema.formats import DEFAULT, FORMATS

DEFAULT_LIMIT = 25
"""Items of an answer, unless another number is asked for."""
MOST_ITEMS = 200
"""Items of an answer at most."""

Value = str | int | float | bool
"""A value of a field; texts are read as the field's type (`2026-01-31`, `12.50`)."""


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    """The base of all: an unknown argument is refused, with its name."""


class TablesArguments(Arguments):
    """One table, or all."""

    table: Annotated[
        str | None,
        Meta(description="One table, with its entities, their fields and access patterns."),
    ] = None


class PatternArguments(Arguments):
    """An access pattern with values for its key."""

    pattern: Annotated[
        str,
        Meta(description="The pattern's name, such as Order.by_status or Order.primary."),
    ]
    equal: Annotated[
        dict[str, Value],
        Meta(
            description="Values of the first fields of its key, by name, such as {'status': 'OPEN'}: "
            "all that its partition has, and then any number of the fields that order it."
        ),
    ] = {}
    range_on: Annotated[
        str | None, Meta(description="The next field of its order, to read a range of it.")
    ] = None
    operator: Annotated[
        Literal["<", "<=", ">", ">=", "between", "begins_with"] | None,
        Meta(description="How range_on is compared with values."),
    ] = None
    values: Annotated[
        list[Value], Meta(description="One value for the range; two for between.")
    ] = []
    descending: Annotated[bool, Meta(description="The last items of the order first.")] = False
    table: Annotated[
        str | None,
        Meta(description="Its table; needed if no model was loaded, or two have the entity."),
    ] = None


class ReadPatternArguments(PatternArguments):
    """A pattern, and how many items."""

    limit: Annotated[int, Meta(description="Items of the answer.", ge=1, le=MOST_ITEMS)] = (
        DEFAULT_LIMIT
    )
    after: Annotated[
        dict[str, Any] | None, Meta(description="The member next of the answer before.")
    ] = None


class QueryArguments(Arguments):
    """A PartiQL select, or a request."""

    statement: Annotated[
        str | None,
        Meta(
            description="A PartiQL SELECT, such as SELECT * FROM \"shop\" WHERE PK = 'CUSTOMER#7'."
        ),
    ] = None
    parameters: Annotated[
        list[dict[str, Any]],
        Meta(description="The values of ? in the statement, in DynamoDB JSON, such as {'S': 'a'}."),
    ] = []
    action: Annotated[
        Literal["Query", "Scan", "GetItem", "BatchGetItem", "TransactGetItems"] | None,
        Meta(description="The action of the request."),
    ] = None
    request: Annotated[
        dict[str, Any] | None, Meta(description="The action's request, in DynamoDB JSON.")
    ] = None
    limit: Annotated[int, Meta(description="Items of the answer.", ge=1, le=MOST_ITEMS)] = (
        DEFAULT_LIMIT
    )
    after: Annotated[
        dict[str, Any] | str | None, Meta(description="The member next of the answer before.")
    ] = None


class ExplainArguments(Arguments):
    """A statement, a request, or a pattern."""

    statement: Annotated[
        str | None, Meta(description="A PartiQL statement, also one that writes.")
    ] = None
    action: Annotated[
        str | None, Meta(description="An action, also one that writes, such as Query or PutItem.")
    ] = None
    request: Annotated[
        dict[str, Any] | None, Meta(description="The action's request, in DynamoDB JSON.")
    ] = None
    pattern: Annotated[
        PatternArguments | None,
        Meta(description="An access pattern, with the arguments of read_pattern."),
    ] = None
    measure: Annotated[
        bool, Meta(description="Also execute it, if it reads, and say what it cost.")
    ] = False


class LintArguments(Arguments):
    """A table, or the model."""

    table: Annotated[
        str | None,
        Meta(
            description="Check this table's items, and its model; without it, the loaded model alone."
        ),
    ] = None


class SizeArguments(Arguments):
    """How many items there are."""

    items: Annotated[
        dict[str, int],
        Meta(
            description="Items by entity, such as {'Customer': 100000}; 100 of those not named that have no parent."
        ),
    ] = {}
    per: Annotated[
        dict[str, int | str],
        Meta(
            description="Children of each parent: {'Customer:Order': '3..40'}, or '3..40,zipf' for few with many."
        ),
    ] = {}
    popularity: Annotated[
        dict[str, float],
        Meta(description="How unequally an entity is referred to: 0 all alike, 1 by Zipf's law."),
    ] = {}
    seed: Annotated[int, Meta(description="Another seed makes other data.")] = 0


class SheetArguments(SizeArguments):
    """Numbers of items, and rates."""

    rates: Annotated[
        dict[str, float],
        Meta(
            description="Calls a second by pattern, such as {'Order.by_status': 50, 'Order.put': 10}."
        ),
    ] = {}
    reads: Annotated[float, Meta(description="Calls a second of each other read.", ge=0)] = 1.0
    writes: Annotated[float, Meta(description="Calls a second of each other write.", ge=0)] = 1.0
    page: Annotated[int, Meta(description="Items that a query reads at most.", ge=1, le=1000)] = 100


class SampleArguments(SizeArguments):
    """Numbers of items, and how many are shown."""

    shown: Annotated[
        int, Meta(description="Items of each entity in the answer.", ge=1, le=MOST_ITEMS)
    ] = 3


class SchemaArguments(Arguments):
    """A format, and which tables."""

    format: Annotated[
        str, Meta(description="What is written.", extra_json_schema={"enum": list(FORMATS)})
    ] = DEFAULT
    tables: Annotated[
        list[str],
        Meta(description="Existing tables; without them, those that the loaded model declares."),
    ] = []


class SimulateArguments(Arguments):
    """How many members."""

    size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Members of the largest population, by default as declared."),
    ] = None
    members: Annotated[
        int, Meta(description="How many of them are run, in memory.", ge=20, le=2000)
    ] = 400
    shards: Annotated[
        dict[str, int],
        Meta(
            description="Divide hot keys, by their labels in the answer before: {'Songs: CHART': 10}."
        ),
    ] = {}
    seed: Annotated[int, Meta(description="The seed of random choices.")] = 0


class ValidateArguments(Arguments):
    """A file, or its content."""

    path: Annotated[
        str | None,
        Meta(description="The file, in the server's folder; dynamodb_data_model.json by default."),
    ] = None
    document: Annotated[
        dict[str, Any] | None, Meta(description="The content of such a file, in place of a path.")
    ] = None


class SaveArguments(Arguments):
    """An entity's values, and the item that they change."""

    table: Annotated[str, Meta(description="The table.")]
    values: Annotated[
        dict[str, Any], Meta(description="Values by field; texts are read as the field's type.")
    ]
    entity: Annotated[
        str | None, Meta(description="The entity to create; not needed with item.")
    ] = None
    item: Annotated[
        dict[str, Any] | None,
        Meta(description="The item to change, as it was read, in DynamoDB JSON."),
    ] = None


class DeleteArguments(Arguments):
    """An item."""

    table: Annotated[str, Meta(description="The table.")]
    item: Annotated[
        dict[str, Any],
        Meta(
            description="The item, as it was read, in DynamoDB JSON; one that has changed since stays."
        ),
    ]


class WriteArguments(Arguments):
    """A request or a statement that writes."""

    action: Annotated[
        Literal["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"]
        | None,
        Meta(description="The action of the request."),
    ] = None
    request: Annotated[
        dict[str, Any] | None, Meta(description="The action's request, in DynamoDB JSON.")
    ] = None
    statement: Annotated[
        str | None, Meta(description="A PartiQL INSERT, UPDATE or DELETE, in place of a request.")
    ] = None
    parameters: Annotated[
        list[dict[str, Any]],
        Meta(description="The values of ? in the statement, in DynamoDB JSON."),
    ] = []


class SeedArguments(SizeArguments):
    """Numbers of items, and whether a table may have some already."""

    add: Annotated[bool, Meta(description="Write into tables that have items.")] = False


def schema_of(kind: type[Arguments]) -> dict[str, Any]:
    """The JSON schema of arguments, as one object without references."""
    (schema,), components = msgspec.json.schema_components([kind])
    return {**_resolved(schema, components), "additionalProperties": False}


def _resolved(schema: Any, components: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_resolved(each, components) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        found = components[schema["$ref"].rpartition("/")[2]]
        rest = {name: each for name, each in schema.items() if name != "$ref"}
        return {**_resolved(found, components), **rest}
    return {
        name: _resolved(each, components)
        for name, each in schema.items()
        if name != "title" or not isinstance(each, str)
    }
