"""TransactGetItems: items of several tables as they are at one moment."""

from __future__ import annotations

from typing import Any

import msgspec

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.metering import Meter
from isotone.engine.record import body_of, item_of, size_of
from isotone.errors import ValidationException
from isotone.expressions import Projection
from isotone.operations.action import Answer, action
from isotone.operations.binding import Binding
from isotone.operations.cancellation import NO_REASON, Reason, cancel, reason_of
from isotone.operations.replies import wants_capacity
from isotone.operations.rules.transactions import check_transact_get_items
from isotone.operations.shapes.transactions import Get, TransactGetItems
from isotone.operations.tables import open_table
from isotone.values.attributes import canonical_item


@action("TransactGetItems")
def run(engine: Engine, request: TransactGetItems) -> Answer:
    check_transact_get_items(request)
    gets = [(each.get, _projection(each.get)) for each in request.transact_items]
    for get, _ in gets:
        canonical_item(get.key)  # what is no value at all is not a reason but an error
    meters: dict[str, Meter] = {}
    with engine.reading:
        keys = _keys(engine, [get for get, _ in gets])
        responses = []
        total = 0
        for (get, projection), (tree, key) in zip(gets, keys, strict=True):
            record = engine.store.get(tree, key)
            size = 0 if record is None else size_of(record)
            total += size
            meter = meters.setdefault(
                get.table_name, Meter(get.table_name, factor=2, kind="ReadCapacityUnits")
            )
            meter.read(size, consistent=True)
            responses.append(_shown(record, projection))
    if total > limits.TRANSACTION_SIZE:
        raise ValidationException(
            "Transaction can not exceed 4 MB: the aggregate size of the items in the transaction is too large"
        )
    answer: dict[str, Any] = {"Responses": responses}
    mode = request.return_consumed_capacity
    if mode is not None and wants_capacity(mode):
        answer["ConsumedCapacity"] = [meter.report(mode) for meter in meters.values()]
    return answer


def _projection(get: Get) -> Projection | None:
    binding = Binding(get.expression_attribute_names, None)
    projection = binding.projection(get.projection_expression)
    binding.check()
    return projection


def _keys(engine: Engine, gets: list[Get]) -> list[tuple[str, bytes]]:
    """Where each item lies; a key that does not fit its table cancels the whole."""
    keys: list[tuple[str, bytes]] = []
    reasons: list[Reason] = []
    for get in gets:
        table = open_table(engine, get.table_name)
        try:
            keys.append((table.tree, table.keyspace.requested_key(get.key)[0]))
        except ValidationException as error:
            reasons.append(reason_of(error))
        else:
            reasons.append(NO_REASON)
    cancel(reasons)
    if len(set(keys)) < len(keys):
        raise ValidationException(
            "Transaction request cannot include multiple operations on one item"
        )
    return keys


def _shown(record: bytes | None, projection: Projection | None) -> dict[str, Any]:
    if record is None:
        return {}
    if projection is None:
        return {"Item": msgspec.Raw(body_of(record))}
    return {"Item": projection.project(item_of(record))}
