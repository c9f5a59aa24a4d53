"""UpdateTimeToLive and DescribeTimeToLive (TTL): whether a table's items expire, and by which attribute.

The items are deleted in the background, in the order of their expiry (`engine/maintenance.py`).
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from isotone.engine import backfill
from isotone.engine.engine import Engine
from isotone.engine.table_schema import TableSchema, TimeToLive
from isotone.errors import ValidationException
from isotone.operations import replicas
from isotone.operations.action import ActionRule, Answer, action
from isotone.operations.request_members import ApiStructure, ControlTableName, Flag
from isotone.operations.table_lookup import (
    TABLE_CHANGES,
    TABLE_IS_KNOWN,
    changed_table,
    described_table,
)


class TimeToLiveSpecification(ApiStructure, frozen=True):
    """The attribute with an item's expiry."""

    enabled: Flag
    attribute_name: Annotated[str, Meta(min_length=1, max_length=255)]


class UpdateTimeToLive(ApiStructure, frozen=True):
    """Turn expiry on or off."""

    table_name: ControlTableName
    time_to_live_specification: TimeToLiveSpecification


class DescribeTimeToLive(ApiStructure, frozen=True):
    """Ask whether items expire, and by which attribute."""

    table_name: ControlTableName


@action("DescribeTimeToLive", reading=(TABLE_IS_KNOWN,))
def describe_time_to_live(engine: Engine, request: DescribeTimeToLive) -> Answer:
    """Whether items of a table expire, and by which attribute."""
    ttl = described_table(engine, request.table_name).schema.ttl
    described: dict[str, Any] = {"TimeToLiveStatus": "DISABLED" if ttl is None else "ENABLED"}
    if ttl is not None:
        described["AttributeName"] = ttl.attribute
    return {"TimeToLiveDescription": described}


def _check_time_to_live(engine: Engine, request: UpdateTimeToLive) -> None:
    ttl = changed_table(engine, request.table_name).schema.ttl
    wanted = request.time_to_live_specification
    if ttl is None and not wanted.enabled:
        raise ValidationException("TimeToLive is already disabled")
    if ttl is not None and ttl.attribute != wanted.attribute_name:
        raise ValidationException(
            f"TimeToLive is active on a different AttributeName: current AttributeName is {ttl.attribute}"
        )
    if ttl is not None and wanted.enabled:
        raise ValidationException("TimeToLive is already enabled")


@action(
    "UpdateTimeToLive",
    writing=(
        TABLE_CHANGES,
        ActionRule(
            "TimeToLive that is already disabled, is on another attribute, or is already enabled",
            _check_time_to_live,
        ),
    ),
)
def update_time_to_live(engine: Engine, request: UpdateTimeToLive) -> Answer:
    """Turn the expiry of a table's items on or off, in each region of a global table."""
    wanted = request.time_to_live_specification
    schema = changed_table(engine, request.table_name).schema
    _set_time_to_live(engine, schema, wanted)
    if replicas.follows(schema):
        for region, replica in replicas.others(engine, schema):
            with region.writing:
                _set_time_to_live(region, replica, wanted)
    specification = {"AttributeName": wanted.attribute_name, "Enabled": wanted.enabled}
    return {"TimeToLiveSpecification": specification}


def _set_time_to_live(engine: Engine, schema: TableSchema, wanted: TimeToLiveSpecification) -> None:
    if wanted.enabled:
        _enable(engine, schema, wanted.attribute_name)
    elif schema.ttl is not None:
        engine.catalog.save(msgspec.structs.replace(schema, ttl=None))
        backfill.drop(engine, schema.ttl.tree)


def _enable(engine: Engine, schema: TableSchema, attribute: str) -> None:
    tree = engine.catalog.new_tree("x")
    backfill.begin(engine, schema.name, tree)
    engine.catalog.save(msgspec.structs.replace(schema, ttl=TimeToLive(attribute, tree)))
