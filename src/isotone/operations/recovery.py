"""Point-in-time recovery (PITR): UpdateContinuousBackups, DescribeContinuousBackups, RestoreTableToPointInTime."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from isotone import limits
from isotone.engine import history, restores, views
from isotone.engine.engine import Engine
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import Recovery, Restored, TableSchema
from isotone.errors import (
    ContinuousBackupsUnavailableException,
    InvalidRestoreTimeException,
    PointInTimeRecoveryUnavailableException,
    TableNotFoundException,
    ValidationException,
)
from isotone.operations.action import ActionRule, Answer, action
from isotone.operations.descriptions import table_description
from isotone.operations.item_validation import INVALID
from isotone.operations.request_members import (
    ApiStructure,
    BillingMode,
    EntityName,
    Flag,
    ListedTableName,
    Timestamp,
)
from isotone.operations.restored_table import OVERRIDES_FIT, TARGET_IS_FREE, restored_schema
from isotone.operations.table_lookup import table_arn, table_name
from isotone.operations.table_requests import (
    GlobalSecondaryIndex,
    LocalSecondaryIndex,
    OnDemandThroughput,
    ProvisionedThroughput,
    SSESpecification,
    VectorIndex,
)


class PointInTimeRecoverySpecification(ApiStructure, frozen=True):
    """Whether a table can be restored to a moment, and for how many days."""

    point_in_time_recovery_enabled: Flag
    recovery_period_in_days: Annotated[int, Meta(ge=1, le=limits.RECOVERY_DAYS)] | None = None


class UpdateContinuousBackups(ApiStructure, frozen=True):
    """Turn point-in-time recovery on or off."""

    table_name: ListedTableName
    point_in_time_recovery_specification: PointInTimeRecoverySpecification


class DescribeContinuousBackups(ApiStructure, frozen=True):
    """Ask for the moments that a table can be restored to."""

    table_name: ListedTableName


class RestoreTableToPointInTime(ApiStructure, frozen=True, kw_only=True):
    """Create a table with the items that another table had at a moment."""

    source_table_arn: ListedTableName | None = None
    source_table_name: EntityName | None = None
    target_table_name: EntityName
    use_latest_restorable_time: Flag | None = None
    restore_date_time: Timestamp | None = None
    billing_mode_override: BillingMode | None = None
    global_secondary_index_override: list[GlobalSecondaryIndex] | None = None
    local_secondary_index_override: list[LocalSecondaryIndex] | None = None
    provisioned_throughput_override: ProvisionedThroughput | None = None
    on_demand_throughput_override: OnDemandThroughput | None = None
    sse_specification_override: SSESpecification | None = None
    vector_index_override: list[VectorIndex] | None = None


def _check_created(engine: Engine, request: UpdateContinuousBackups) -> None:
    name = table_name(request.table_name)
    if name in engine.catalog.creating:
        raise ContinuousBackupsUnavailableException(
            f"Backups are being enabled for the table: {name}. Please retry later"
        )


_TABLE: Final = ActionRule(
    "no such table", lambda engine, request: _table(engine, table_name(request.table_name))
)


@action(
    "UpdateContinuousBackups",
    writing=(ActionRule("a table that is being created", _check_created), _TABLE),
)
def update_continuous_backups(engine: Engine, request: UpdateContinuousBackups) -> Answer:
    """Enable or disable point-in-time recovery, which reaches back to when it was last enabled."""
    wanted = request.point_in_time_recovery_specification
    table = _table(engine, table_name(request.table_name))
    if wanted.point_in_time_recovery_enabled:
        days = wanted.recovery_period_in_days or limits.RECOVERY_DAYS
        table = _enable(engine, table.schema, days)
    elif table.schema.recovery is not None:
        table = engine.catalog.save(msgspec.structs.replace(table.schema, recovery=None))
        history.end_if_unused(engine, table)
    return {"ContinuousBackupsDescription": _description(engine, table.schema)}


def _enable(engine: Engine, schema: TableSchema, days: int) -> StoredTable:
    schema = history.begin(engine, schema)
    since = history.milliseconds(engine.clock.now())
    if schema.recovery is not None:
        # A longer period does not bring back what a shorter one gave up.
        since = history.earliest(engine, schema.recovery)
    return engine.catalog.save(msgspec.structs.replace(schema, recovery=Recovery(days, since)))


@action("DescribeContinuousBackups", reading=(_TABLE,))
def describe_continuous_backups(engine: Engine, request: DescribeContinuousBackups) -> Answer:
    """Whether point-in-time recovery is enabled, and the first and last moments that it covers."""
    table = _table(engine, table_name(request.table_name))
    return {"ContinuousBackupsDescription": _description(engine, table.schema)}


def _check_source(request: RestoreTableToPointInTime) -> None:
    if request.source_table_name is None and request.source_table_arn is None:
        raise ValidationException(
            f"{INVALID}One of SourceTableName or SourceTableArn must be specified"
        )
    if request.source_table_arn is not None:
        table_name(request.source_table_arn)  # also beside a name, which then decides


def _check_time(request: RestoreTableToPointInTime) -> None:
    if (request.restore_date_time is None) == (not request.use_latest_restorable_time):
        raise ValidationException(
            f"{INVALID}Exactly one of RestoreDateTime and UseLatestRestorableTime must be specified"
        )


def _check_indexes(request: RestoreTableToPointInTime) -> None:
    for index in request.global_secondary_index_override or ():
        if index.warm_throughput is not None:
            raise ValidationException(
                f"{INVALID}WarmThroughput is not supported for index: {index.index_name} "
                "in GlobalSecondaryIndexOverride"
            )


def _name(request: RestoreTableToPointInTime) -> str:
    return table_name(request.source_table_name or request.source_table_arn or "")


def _source(engine: Engine, request: RestoreTableToPointInTime) -> StoredTable:
    return _table(engine, _name(request))


def _recovery(engine: Engine, request: RestoreTableToPointInTime) -> Recovery:
    recovery = _source(engine, request).schema.recovery
    if recovery is None:
        raise PointInTimeRecoveryUnavailableException(
            f"Point in time recovery is not enabled for table '{_name(request)}'"
        )
    return recovery


def _moment(engine: Engine, request: RestoreTableToPointInTime) -> int | None:
    """The moment (ms) to restore to; None for the latest."""
    recovery = _recovery(engine, request)
    if request.restore_date_time is None:
        return None
    now = history.milliseconds(engine.clock.now())
    moment = history.milliseconds(request.restore_date_time)
    if not history.earliest(engine, recovery) <= moment <= now:
        raise InvalidRestoreTimeException(
            "RestoreDateTime must be between EarliestRestorableDateTime and LatestRestorableDateTime"
        )
    return moment


@action(
    "RestoreTableToPointInTime",
    before=(
        ActionRule("no source", _check_source),
        ActionRule("no time, or two", _check_time),
        ActionRule("WarmThroughput of an index", _check_indexes),
        OVERRIDES_FIT,
        ActionRule("an invalid ARN of the source", _name),
    ),
    writing=(
        ActionRule("no such source", _source),
        ActionRule("a source without point-in-time recovery", _recovery),
        ActionRule("a time that cannot be restored", _moment),
        *TARGET_IS_FREE,
    ),
)
def restore_table_to_point_in_time(engine: Engine, request: RestoreTableToPointInTime) -> Answer:
    """Create a table with the items that the source had at a moment, and the source's current indexes."""
    source, moment = _source(engine, request), _moment(engine, request)
    schema = restored_schema(engine, source.schema, request)
    view = views.open_table(engine, source, restores.owner(schema.name), moment)
    reached = history.milliseconds(engine.clock.now()) if moment is None else moment
    restored = Restored(table_arn(engine, source.name), reached / 1000)
    schema = restores.create(engine, schema, restored, view)
    return {"TableDescription": table_description(engine, schema)}


def _table(engine: Engine, name: str) -> StoredTable:
    table = engine.catalog.find(name)
    if table is None:
        raise TableNotFoundException(f"Table not found: {name}")
    return table


def _description(engine: Engine, schema: TableSchema) -> dict[str, Any]:
    described: dict[str, Any] = {"PointInTimeRecoveryStatus": "DISABLED"}
    if schema.recovery is not None:
        now = history.milliseconds(engine.clock.now())
        earliest = history.earliest(engine, schema.recovery)
        # boto3 sends whole seconds, so the described time must be one that the table can be restored to.
        earliest = min(-(-earliest // 1000) * 1000, max(earliest, now))
        described = {
            "PointInTimeRecoveryStatus": "ENABLED",
            "RecoveryPeriodInDays": schema.recovery.days,
            "EarliestRestorableDateTime": earliest / 1000,
            "LatestRestorableDateTime": now / 1000,
        }
    return {
        "ContinuousBackupsStatus": "ENABLED",
        "PointInTimeRecoveryDescription": described,
    }
