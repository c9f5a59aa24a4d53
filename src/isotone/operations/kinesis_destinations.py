"""The actions on Kinesis destinations: enable, disable, change and describe the data stream of a table.

A destination is recorded and described. Nothing is sent to it: there is no Kinesis here. The changes of a table can be
read from its own stream.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from isotone.engine.engine import Engine
from isotone.engine.table_schema import KinesisDestination, TableSchema
from isotone.errors import ValidationException
from isotone.operations.action import ActionRule, Answer, action
from isotone.operations.request_members import (
    ApiStructure,
    ApproximateCreationDateTimePrecision,
    ListedTableName,
)
from isotone.operations.table_lookup import (
    TABLE_CHANGES,
    TABLE_IS_KNOWN,
    changed_table,
    described_table,
)

KinesisStreamArn = Annotated[str, Meta(min_length=37, max_length=1024)]


class EnableKinesisStreamingConfiguration(ApiStructure, frozen=True):
    """How exact the times of records are."""

    approximate_creation_date_time_precision: ApproximateCreationDateTimePrecision | None = None


class UpdateKinesisStreamingConfiguration(EnableKinesisStreamingConfiguration, frozen=True):
    """How exact the times of records will be."""


class EnableKinesisStreamingDestination(ApiStructure, frozen=True):
    """Send a table's changes to a data stream."""

    table_name: ListedTableName
    stream_arn: KinesisStreamArn
    enable_kinesis_streaming_configuration: EnableKinesisStreamingConfiguration | None = None


class DisableKinesisStreamingDestination(EnableKinesisStreamingDestination, frozen=True):
    """Send no more changes to a data stream."""


class UpdateKinesisStreamingDestination(ApiStructure, frozen=True):
    """Change how exact the times of records are."""

    table_name: ListedTableName
    stream_arn: KinesisStreamArn
    update_kinesis_streaming_configuration: UpdateKinesisStreamingConfiguration | None = None


class DescribeKinesisStreamingDestination(ApiStructure, frozen=True):
    """Ask for a table's data streams."""

    table_name: ListedTableName


_STREAM_ARN: Final = re.compile(r"arn:[a-z-]+:kinesis:[a-z0-9-]+:[0-9]+:stream/[a-zA-Z0-9_.-]+")
_STATE: Final = "Table is not in a valid state to enable Kinesis Streaming Destination: "


def _check_arn(
    request: EnableKinesisStreamingDestination | UpdateKinesisStreamingDestination,
) -> None:
    if not _STREAM_ARN.fullmatch(request.stream_arn):
        raise ValidationException(
            f"Invalid StreamArn: {request.stream_arn} is not that of a Kinesis data stream"
        )


def _check_none_is_active(engine: Engine, request: EnableKinesisStreamingDestination) -> None:
    schema = changed_table(engine, request.table_name).schema
    if any(each.is_active for each in schema.kinesis):
        raise ValidationException(
            f"{_STATE}EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED "
            "to perform ENABLE operation."
        )


def _check_precision(request: UpdateKinesisStreamingDestination) -> None:
    if _precision(request.update_kinesis_streaming_configuration) is None:
        raise ValidationException(
            "Invalid Request: UpdateKinesisStreamingConfiguration must have "
            "ApproximateCreationDateTimePrecision"
        )


def _check_other_precision(engine: Engine, request: UpdateKinesisStreamingDestination) -> None:
    schema = changed_table(engine, request.table_name).schema
    precision = _precision(request.update_kinesis_streaming_configuration)
    if _active(schema, request.stream_arn, "UPDATE").precision == precision:
        raise ValidationException(
            f"Invalid Request: Precision is already set to the desired value of {precision} "
            f"for tableId: {schema.id}, kdsArn: {request.stream_arn}"
        )


def _is_active(operation: str) -> ActionRule:
    return ActionRule(
        "no active destination with this ARN",
        lambda engine, request: _active(
            changed_table(engine, request.table_name).schema, request.stream_arn, operation
        ),
    )


_ARN: Final = ActionRule("a StreamArn that is not that of a Kinesis data stream", _check_arn)


@action(
    "EnableKinesisStreamingDestination",
    before=(_ARN,),
    writing=(TABLE_CHANGES, ActionRule("an active destination", _check_none_is_active)),
)
def enable_kinesis_streaming_destination(
    engine: Engine, request: EnableKinesisStreamingDestination
) -> Answer:
    """Record a data stream as the table's only active destination."""
    arn = request.stream_arn
    precision = _precision(request.enable_kinesis_streaming_configuration)
    schema = changed_table(engine, request.table_name).schema
    destination = KinesisDestination(arn, is_active=True, precision=precision or "MILLISECOND")
    _save(engine, schema, destination)
    return {
        **_changed(schema, arn, "ENABLING"),
        "EnableKinesisStreamingConfiguration": _configuration(precision),
    }


@action(
    "DisableKinesisStreamingDestination",
    before=(_ARN,),
    writing=(TABLE_CHANGES, _is_active("DISABLE")),
)
def disable_kinesis_streaming_destination(
    engine: Engine, request: DisableKinesisStreamingDestination
) -> Answer:
    """Disable a destination; it is still described."""
    schema = changed_table(engine, request.table_name).schema
    destination = _active(schema, request.stream_arn, "DISABLE")
    _save(engine, schema, msgspec.structs.replace(destination, is_active=False))
    return _changed(schema, request.stream_arn, "DISABLING")


@action(
    "UpdateKinesisStreamingDestination",
    before=(_ARN, ActionRule("no precision", _check_precision)),
    writing=(
        TABLE_CHANGES,
        _is_active("UPDATE"),
        ActionRule("the precision that it has", _check_other_precision),
    ),
)
def update_kinesis_streaming_destination(
    engine: Engine, request: UpdateKinesisStreamingDestination
) -> Answer:
    """Change how exact the times of an active destination are."""
    arn = request.stream_arn
    precision = _precision(request.update_kinesis_streaming_configuration)
    assert precision is not None  # a rule
    schema = changed_table(engine, request.table_name).schema
    destination = _active(schema, arn, "UPDATE")
    _save(engine, schema, msgspec.structs.replace(destination, precision=precision))
    return {
        **_changed(schema, arn, "UPDATING"),
        "UpdateKinesisStreamingConfiguration": _configuration(precision),
    }


@action("DescribeKinesisStreamingDestination", reading=(TABLE_IS_KNOWN,))
def describe_kinesis_streaming_destination(
    engine: Engine, request: DescribeKinesisStreamingDestination
) -> Answer:
    """The data streams of a table: the active one, and those that were disabled."""
    schema = described_table(engine, request.table_name).schema
    destinations = [
        {
            "StreamArn": each.arn,
            "DestinationStatus": "ACTIVE" if each.is_active else "DISABLED",
            "ApproximateCreationDateTimePrecision": each.precision,
        }
        for each in schema.kinesis
    ]
    return {"TableName": schema.name, "KinesisDataStreamDestinations": destinations}


def _precision(
    configuration: EnableKinesisStreamingConfiguration | None,
) -> str | None:
    if configuration is None:
        return None
    return configuration.approximate_creation_date_time_precision


def _active(schema: TableSchema, arn: str, operation: str) -> KinesisDestination:
    for destination in schema.kinesis:
        if destination.arn == arn and destination.is_active:
            return destination
    raise ValidationException(
        f"{_STATE}KinesisStreamingDestination must be ACTIVE to perform {operation} operation."
    )


def _save(engine: Engine, schema: TableSchema, destination: KinesisDestination) -> None:
    others = tuple(each for each in schema.kinesis if each.arn != destination.arn)
    engine.catalog.save(msgspec.structs.replace(schema, kinesis=(*others, destination)))


def _changed(schema: TableSchema, arn: str, status: str) -> dict[str, Any]:
    return {"TableName": schema.name, "StreamArn": arn, "DestinationStatus": status}


def _configuration(precision: str | None) -> dict[str, str]:
    return {} if precision is None else {"ApproximateCreationDateTimePrecision": precision}
