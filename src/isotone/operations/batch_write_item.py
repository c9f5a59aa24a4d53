"""BatchWriteItem: up to 25 puts and deletes over several tables, each on its own.

Nothing limits throughput here, so nothing is ever left unprocessed.
"""

from __future__ import annotations

from typing import Any

from isotone.engine.engine import Engine
from isotone.engine.metering import Meter
from isotone.errors import ValidationException
from isotone.operations.action import Answer, action
from isotone.operations.changes import Change, carry_out, delete_change, put_change
from isotone.operations.replies import collection_metrics, wants_capacity
from isotone.operations.rules.batches import check_batch_write_item
from isotone.operations.shapes.batches import BatchWriteItem, WriteRequest
from isotone.operations.tables import open_table
from isotone.values.attributes import Item, canonical_item

Checked = tuple[WriteRequest, Item, int]


@action("BatchWriteItem", grouped=True)
def run(engine: Engine, request: BatchWriteItem) -> Answer:
    check_batch_write_item(request)
    checked = {
        name: [_checked(write) for write in writes]
        for name, writes in request.request_items.items()
    }
    with engine.writing:
        changes = {
            name: [_change(engine, name, *each) for each in writes]
            for name, writes in checked.items()
        }
        for each in changes.values():
            _refuse_duplicates(each)
        meters = [_write(engine, name, each) for name, each in changes.items()]
        answer: dict[str, Any] = {"UnprocessedItems": {}}
        if request.return_item_collection_metrics == "SIZE":
            answer["ItemCollectionMetrics"] = _metrics(engine, changes)
    mode = request.return_consumed_capacity
    if mode is not None and wants_capacity(mode):
        answer["ConsumedCapacity"] = [meter.report(mode) for meter in meters]
    return answer


def _checked(write: WriteRequest) -> Checked:
    if write.put_request is not None:
        return (write, *canonical_item(write.put_request.item))
    assert write.delete_request is not None
    return (write, *canonical_item(write.delete_request.key))


def _change(engine: Engine, name: str, write: WriteRequest, item: Item, size: int) -> Change:
    table = open_table(engine, name)
    if write.put_request is not None:
        return put_change(table, item, size, None, False)
    return delete_change(table, item, None, False)


def _refuse_duplicates(changes: list[Change]) -> None:
    if len({change.key for change in changes}) < len(changes):
        raise ValidationException("Provided list of item keys contains duplicates")


def _write(engine: Engine, name: str, changes: list[Change]) -> Meter:
    meter = Meter(name)
    for change in changes:
        carry_out(engine, change, meter)
    return meter


def _metrics(engine: Engine, changes: dict[str, list[Change]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for name, each in changes.items():
        for change in each:
            metrics = collection_metrics(engine, change.table, change.key_item)
            if metrics is not None and metrics not in found.setdefault(name, []):
                found[name].append(metrics)
    return found
