"""Query: the items of one partition key, in the order of their sort key."""

from __future__ import annotations

from typing import Any

from isotone.engine.engine import Engine
from isotone.engine.source import Source
from isotone.errors import ValidationException
from isotone.expressions import KeyRange
from isotone.operations import legacy
from isotone.operations.action import Answer, action
from isotone.operations.binding import Binding
from isotone.operations.reading import Selection, check_consistency, projection_of
from isotone.operations.rules.reads import check_choice, check_query
from isotone.operations.shapes.reads import Query
from isotone.operations.tables import open_table


@action("Query")
def run(engine: Engine, request: Query) -> Answer:
    check_query(request)
    binding = Binding(request.expression_attribute_names, request.expression_attribute_values)
    filters = binding.condition(request.filter_expression, "FilterExpression")
    if filters is None:
        filters = legacy.filter_condition(request.query_filter, request.conditional_operator)
    projection = projection_of(request, binding)
    keys = binding.key_condition(request.key_condition_expression)
    binding.check()
    if keys is None:
        keys = legacy.key_conditions(request.key_conditions)
    check_choice(request)
    with engine.reading:
        table = open_table(engine, request.table_name)
        binding.check_keys(table)
        index = None if request.index_name is None else table.index(request.index_name)
        source = Source(engine, table, index)
        check_consistency(source, request)
        schema = source.keyspace.schema
        wanted = keys.resolve(
            binding.values,
            [part.name for part in schema.partition],
            [part.name for part in schema.sort],
        )
        source.keyspace.check_condition(wanted)
        if filters is not None:
            _refuse_key_filter(source, filters.attributes, request)
        start = _start(source, request.exclusive_start_key, wanted)
        selection = Selection(source, request, filters, projection, binding)
        forward = request.scan_index_forward is not False
        entries = source.entries(source.keyspace.bounds(wanted), start, reverse=not forward)
        return selection.answer(selection.reader.page(entries))


def _refuse_key_filter(source: Source, attributes: frozenset[str], request: Query) -> None:
    """A filter on the key that the Query reads by is refused: a key condition says it better."""
    for name in source.keyspace.schema.names:
        if name in attributes:
            kind = "Filter Expression" if request.filter_expression is not None else "QueryFilter"
            raise ValidationException(
                f"{kind} can only contain non-primary key attributes: Primary key attribute: {name}"
            )


def _start(source: Source, requested: dict[str, Any] | None, wanted: KeyRange) -> bytes | None:
    if requested is None:
        return None
    if len(requested) != len(source.key_names):
        raise ValidationException("Exclusive Start Key must have same size as table's key schema")
    key, _ = source.start_key(requested)
    if not key.startswith(source.keyspace.prefix(wanted.partition)):
        raise ValidationException(
            "The provided starting key is outside query boundaries based on provided conditions"
        )
    low, high = source.keyspace.bounds(wanted)
    if key < low or (high is not None and key >= high):
        raise ValidationException(
            "The provided starting key does not match the range key predicate"
        )
    return key
