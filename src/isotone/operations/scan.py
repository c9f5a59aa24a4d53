"""Scan: all items of a table or an index, in the order of their hashes, or one segment of them."""

from __future__ import annotations

from typing import Any

from isotone.engine.engine import Engine
from isotone.engine.keyspace import Bounds
from isotone.engine.source import Source, segment_bounds
from isotone.errors import ValidationException
from isotone.operations import legacy
from isotone.operations.action import Answer, action
from isotone.operations.binding import Binding
from isotone.operations.reading import Selection, check_consistency, projection_of
from isotone.operations.rules.reads import check_scan, check_scan_choice
from isotone.operations.shapes.reads import Scan
from isotone.operations.tables import open_table


@action("Scan")
def run(engine: Engine, request: Scan) -> Answer:
    check_scan(request)
    binding = Binding(request.expression_attribute_names, request.expression_attribute_values)
    filters = binding.condition(request.filter_expression, "FilterExpression")
    if filters is None:
        filters = legacy.filter_condition(request.scan_filter, request.conditional_operator)
    projection = projection_of(request, binding)
    binding.check()
    check_scan_choice(request)
    with engine.reading:
        table = open_table(engine, request.table_name)
        binding.check_keys(table)
        index = None if request.index_name is None else table.index(request.index_name)
        source = Source(engine, table, index)
        check_consistency(source, request)
        bounds = segment_bounds(request.segment, request.total_segments)
        start = _start(source, request, bounds)
        selection = Selection(source, request, filters, projection, binding)
        return selection.answer(selection.reader.page(source.entries(bounds, start)))


def _start(source: Source, request: Scan, bounds: Bounds) -> bytes | None:
    requested: dict[str, Any] | None = request.exclusive_start_key
    if requested is None:
        return None
    key, _ = source.start_key(requested)
    low, high = bounds
    if key < low or (high is not None and key >= high):
        raise ValidationException(
            "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use "
            "ExclusiveStartKey with correct Segment. TotalSegments: "
            f"{request.total_segments} Segment: {request.segment}"
        )
    return key
