"""DeleteItem: remove one item; no error where there is none."""

from __future__ import annotations

from typing import Any

import msgspec

from isotone.engine.engine import Engine
from isotone.engine.record import body_of
from isotone.operations.action import Answer, action
from isotone.operations.binding import Binding, Matches
from isotone.operations.changes import carry_out, delete_change
from isotone.operations.conditions import is_plain, shows_old, write_condition
from isotone.operations.replies import add_write_members, meter_for
from isotone.operations.rules.items import check_delete_item
from isotone.operations.shapes.items import DeleteItem
from isotone.operations.tables import open_table


@action("DeleteItem", grouped=True)
def run(engine: Engine, request: DeleteItem) -> Answer:
    check_delete_item(request)
    matches: Matches | None = None
    binding: Binding | None = None
    if not is_plain(request):
        binding = Binding(request.expression_attribute_names, request.expression_attribute_values)
        matches = write_condition(request, binding)
        binding.check()
    meter = meter_for(request)
    with engine.writing:
        table = open_table(engine, request.table_name)
        if binding is not None:
            binding.check_keys(table)
        change = delete_change(table, request.key, matches, shows_old(request))
        old, _ = carry_out(engine, change, meter)
        answer: dict[str, Any] = {}
        if old is not None and request.return_values == "ALL_OLD":
            answer["Attributes"] = msgspec.Raw(body_of(old))
        add_write_members(answer, engine, table, change.key_item, request, meter)
    return answer
