"""PutItem: replace an item whole, or make it."""

from __future__ import annotations

from typing import Any

import msgspec

from isotone.engine.engine import Engine
from isotone.engine.record import body_of
from isotone.operations.action import Answer, action
from isotone.operations.binding import Binding, Matches
from isotone.operations.changes import carry_out, put_change
from isotone.operations.conditions import is_plain, shows_old, write_condition
from isotone.operations.replies import add_write_members, meter_for
from isotone.operations.rules.items import check_put_item
from isotone.operations.shapes.items import PutItem
from isotone.operations.tables import open_table
from isotone.values.attributes import canonical_item


@action("PutItem", grouped=True)
def run(engine: Engine, request: PutItem) -> Answer:
    check_put_item(request)
    matches: Matches | None = None
    binding: Binding | None = None
    if not is_plain(request):
        binding = Binding(request.expression_attribute_names, request.expression_attribute_values)
        matches = write_condition(request, binding)
        binding.check()
    item, size = canonical_item(request.item)
    meter = meter_for(request)
    with engine.writing:
        table = open_table(engine, request.table_name)
        if binding is not None:
            binding.check_keys(table)
        change = put_change(table, item, size, matches, shows_old(request))
        old, _ = carry_out(engine, change, meter)
        answer: dict[str, Any] = {}
        if old is not None and request.return_values == "ALL_OLD":
            answer["Attributes"] = msgspec.Raw(body_of(old))
        add_write_members(answer, engine, table, item, request, meter)
    return answer
