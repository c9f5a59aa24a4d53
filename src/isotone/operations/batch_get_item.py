"""BatchGetItem: items of several tables by their keys, each on its own."""

from __future__ import annotations

from typing import Any

import msgspec

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.metering import Meter
from isotone.engine.record import body_of, item_of, size_of
from isotone.engine.table import Table
from isotone.errors import ValidationException
from isotone.expressions import Projection
from isotone.operations import legacy
from isotone.operations.action import Answer, action
from isotone.operations.binding import Binding
from isotone.operations.replies import wants_capacity
from isotone.operations.rules.batches import check_batch_get_item
from isotone.operations.shapes.batches import BatchGetItem, KeysAndAttributes
from isotone.operations.tables import open_table


@action("BatchGetItem")
def run(engine: Engine, request: BatchGetItem) -> Answer:
    check_batch_get_item(request)
    wanted = {name: (each, _projection(each)) for name, each in request.request_items.items()}
    reading = _Reading(engine)
    with engine.reading:
        keyed = [
            (name, each, projection, *_physical_keys(engine, name, each))
            for name, (each, projection) in wanted.items()
        ]
        for name, each, projection, table, keys in keyed:
            reading.read(name, each, projection, table, keys)
    answer: dict[str, Any] = {
        "Responses": reading.responses,
        "UnprocessedKeys": reading.unprocessed,
    }
    mode = request.return_consumed_capacity
    if mode is not None and wants_capacity(mode):
        answer["ConsumedCapacity"] = [meter.report(mode) for meter in reading.meters]
    return answer


def _projection(wanted: KeysAndAttributes) -> Projection | None:
    if wanted.attributes_to_get is not None:
        return legacy.projection_of(wanted.attributes_to_get)
    binding = Binding(wanted.expression_attribute_names, None)
    projection = binding.projection(wanted.projection_expression)
    binding.check()
    return projection


def _physical_keys(
    engine: Engine, name: str, wanted: KeysAndAttributes
) -> tuple[Table, list[bytes]]:
    table = open_table(engine, name)
    keys = [table.keyspace.requested_key(key)[0] for key in wanted.keys]
    if len(set(keys)) < len(keys):
        raise ValidationException("Provided list of item keys contains duplicates")
    return table, keys


class _Reading:
    """What has been read, and what is left over when 16 MB are full."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._room = limits.BATCH_GET_SIZE
        self.responses: dict[str, list[Any]] = {}
        self.unprocessed: dict[str, Any] = {}
        self.meters: list[Meter] = []

    def read(
        self,
        name: str,
        wanted: KeysAndAttributes,
        projection: Projection | None,
        table: Table,
        keys: list[bytes],
    ) -> None:
        """Read the items of one table."""
        found = self.responses.setdefault(name, [])
        meter = Meter(name)
        self.meters.append(meter)
        left: list[Any] = []
        for key, requested in zip(keys, wanted.keys, strict=True):
            record = None if left else self._engine.store.get(table.tree, key)
            size = 0 if record is None else size_of(record)
            if left or size > self._room:
                left.append(requested)
                continue
            self._room -= size
            meter.read(size, consistent=bool(wanted.consistent_read))
            if record is not None:
                found.append(_shown(record, projection))
        if left:
            self._room = 0
            self.unprocessed[name] = _again(wanted, left)


def _shown(record: bytes, projection: Projection | None) -> Any:
    if projection is None:
        return msgspec.Raw(body_of(record))
    return projection.project(item_of(record))


def _again(wanted: KeysAndAttributes, keys: list[Any]) -> dict[str, Any]:
    """The part of the request that has to be sent again."""
    members = msgspec.to_builtins(msgspec.structs.replace(wanted, keys=keys))
    return {name: value for name, value in members.items() if value is not None}
