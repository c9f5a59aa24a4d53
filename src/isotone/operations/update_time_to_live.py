"""UpdateTimeToLive: let items expire by an attribute, or stop that."""

from __future__ import annotations

import msgspec

from isotone.engine import backfill
from isotone.engine.engine import Engine
from isotone.engine.schema import TimeToLive
from isotone.engine.table import Table
from isotone.errors import ValidationException
from isotone.operations.action import Answer, action
from isotone.operations.shapes.settings import UpdateTimeToLive
from isotone.operations.tables import described_table


@action("UpdateTimeToLive")
def run(engine: Engine, request: UpdateTimeToLive) -> Answer:
    wanted = request.time_to_live_specification
    with engine.writing:
        table = described_table(engine, request.table_name)
        _check(table, wanted.enabled, wanted.attribute_name)
        if wanted.enabled:
            _enable(engine, table, wanted.attribute_name)
        else:
            _disable(engine, table)
    specification = {"AttributeName": wanted.attribute_name, "Enabled": wanted.enabled}
    return {"TimeToLiveSpecification": specification}


def _check(table: Table, enabled: bool, attribute: str) -> None:
    ttl = table.schema.ttl
    if ttl is None and not enabled:
        raise ValidationException("TimeToLive is already disabled")
    if ttl is not None and enabled:
        if ttl.attribute == attribute:
            raise ValidationException("TimeToLive is already enabled")
        raise ValidationException(
            f"TimeToLive is active on a different AttributeName: current AttributeName is {ttl.attribute}"
        )
    if ttl is not None and ttl.attribute != attribute:
        raise ValidationException(
            f"TimeToLive is active on a different AttributeName: current AttributeName is {ttl.attribute}"
        )


def _enable(engine: Engine, table: Table, attribute: str) -> None:
    tree = engine.catalog.new_tree("x")
    backfill.begin(engine, table.name, tree)
    engine.catalog.save(msgspec.structs.replace(table.schema, ttl=TimeToLive(attribute, tree)))


def _disable(engine: Engine, table: Table) -> None:
    assert table.schema.ttl is not None
    tree = table.schema.ttl.tree
    engine.catalog.save(msgspec.structs.replace(table.schema, ttl=None))
    engine.store.drop_tree(tree)
    engine.counts.drop(tree)
    backfill.cancel(engine, tree)
