"""UpdateItem: change attributes of one item, or make it."""

from __future__ import annotations

from typing import Any

import msgspec

from isotone.engine.engine import Engine
from isotone.engine.record import body_of, item_of
from isotone.expressions import Update
from isotone.operations import legacy
from isotone.operations.action import Answer, action
from isotone.operations.binding import Binding
from isotone.operations.changes import Outcome, carry_out, update_change
from isotone.operations.conditions import shows_old, write_condition
from isotone.operations.replies import add_write_members, meter_for
from isotone.operations.rules.items import check_update_item
from isotone.operations.shapes.items import UpdateItem
from isotone.operations.tables import open_table
from isotone.values.attributes import Item


@action("UpdateItem", grouped=True)
def run(engine: Engine, request: UpdateItem) -> Answer:
    check_update_item(request)
    binding = Binding(request.expression_attribute_names, request.expression_attribute_values)
    update = binding.update(request.update_expression)
    if update is None:
        update = legacy.attribute_updates(request.attribute_updates)
    matches = write_condition(request, binding)
    binding.check()
    meter = meter_for(request)
    with engine.writing:
        table = open_table(engine, request.table_name)
        change = update_change(
            table, request.key, update, binding.values, matches, shows_old(request)
        )
        binding.check_keys(table)
        outcome = carry_out(engine, change, meter)
        answer: dict[str, Any] = {}
        attributes = _attributes(request.return_values, update, outcome)
        if attributes:
            answer["Attributes"] = attributes
        add_write_members(answer, engine, table, change.key_item, request, meter)
    return answer


def _attributes(
    wanted: str | None, update: Update | None, outcome: Outcome
) -> Item | msgspec.Raw | None:
    """What `ReturnValues` asks for; nothing where there was nothing."""
    old, new = outcome
    if wanted == "ALL_NEW":
        return new
    if wanted == "ALL_OLD" and old is not None:
        return msgspec.Raw(body_of(old))
    if wanted == "UPDATED_NEW" and update is not None and new is not None:
        return update.project_new(new)
    if wanted == "UPDATED_OLD" and update is not None and old is not None:
        return update.project_old(item_of(old))
    return None
