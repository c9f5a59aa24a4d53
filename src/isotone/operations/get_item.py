"""GetItem: one item by its key."""

from __future__ import annotations

from typing import Any

import msgspec

from isotone.engine.engine import Engine
from isotone.engine.record import body_of, item_of, size_of
from isotone.operations.action import Answer, action
from isotone.operations.binding import Binding
from isotone.operations.legacy import projection_of
from isotone.operations.replies import add_capacity, meter_for
from isotone.operations.rules.items import check_get_item
from isotone.operations.shapes.items import GetItem
from isotone.operations.tables import open_table


@action("GetItem")
def run(engine: Engine, request: GetItem) -> Answer:
    check_get_item(request)
    projection = None
    binding: Binding | None = None
    if request.projection_expression is not None or request.expression_attribute_names is not None:
        binding = Binding(request.expression_attribute_names, None)
        projection = binding.projection(request.projection_expression)
        binding.check()
    elif request.attributes_to_get is not None:
        projection = projection_of(request.attributes_to_get)
    with engine.reading:
        table = open_table(engine, request.table_name)
        if binding is not None:
            binding.check_keys(table)
        key, _ = table.keyspace.requested_key(request.key)
        record = engine.store.get(table.tree, key)
    answer: dict[str, Any] = {}
    if record is not None:
        answer["Item"] = (
            msgspec.Raw(body_of(record))
            if projection is None
            else projection.project(item_of(record))
        )
    meter = meter_for(request)
    if meter is not None:
        size = 0 if record is None else size_of(record)
        meter.read(size, consistent=bool(request.consistent_read))
        add_capacity(answer, request, meter)
    return answer
