"""ExportTableToPointInTime, DescribeExport and ListExports: full and incremental exports of a table to S3.

The files are written in the background (`export_files`).
"""

from __future__ import annotations

from typing import Any, Final, Literal

from isotone import limits
from isotone.engine import history, transfers, views
from isotone.engine.engine import Engine
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import Recovery
from isotone.engine.transfers import Export
from isotone.errors import (
    ExportConflictException,
    ExportNotFoundException,
    InvalidExportTimeException,
    PointInTimeRecoveryUnavailableException,
    TableNotFoundException,
    ValidationException,
)
from isotone.operations.action import Answer, action
from isotone.operations.export_files import OWNER, manifest_key, selection_of
from isotone.operations.item_validation import INVALID
from isotone.operations.request_members import (
    ApiStructure,
    ExpressionNames,
    ExpressionValues,
    Timestamp,
)
from isotone.operations.table_lookup import table_arn, table_name
from isotone.operations.transfer_requests import (
    Bucket,
    BucketOwner,
    ClientToken,
    JobKind,
    PageSize,
    Prefix,
    SseAlgorithm,
    SseKey,
    TableArn,
    TransferArn,
    bucket_store,
    check_encryption,
    failure_members,
    job_arn,
)


class IncrementalExportSpecification(ApiStructure, frozen=True):
    """Which changes to export: from one time until just before another."""

    export_from_time: Timestamp | None = None
    export_to_time: Timestamp | None = None
    export_view_type: Literal["NEW_IMAGE", "NEW_AND_OLD_IMAGES"] | None = None


class FilterSpecification(ApiStructure, frozen=True):
    """Which items to export, and which of their attributes."""

    filter_expression: str | None = None
    projection_expression: str | None = None
    key_condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None


class ExportTableToPointInTime(ApiStructure, frozen=True, kw_only=True):
    """Write a table, or its changes, to files in a bucket."""

    table_arn: TableArn
    export_time: Timestamp | None = None
    client_token: ClientToken | None = None
    s3_bucket: Bucket
    s3_bucket_owner: BucketOwner | None = None
    s3_prefix: Prefix | None = None
    s3_sse_algorithm: SseAlgorithm | None = None
    s3_sse_kms_key_id: SseKey | None = None
    export_format: Literal["DYNAMODB_JSON", "ION"] | None = None
    export_type: Literal["FULL_EXPORT", "INCREMENTAL_EXPORT"] | None = None
    incremental_export_specification: IncrementalExportSpecification | None = None
    filter_specification: FilterSpecification | None = None


class DescribeExport(ApiStructure, frozen=True):
    """Ask for the progress or the outcome of an export."""

    export_arn: TransferArn


class ListExports(ApiStructure, frozen=True):
    """Ask for the exports of one table or of all, a page at a time."""

    table_arn: TableArn | None = None
    max_results: PageSize | None = None
    next_token: str | None = None


@action("ExportTableToPointInTime", starts_work=True)
def export_table_to_point_in_time(engine: Engine, request: ExportTableToPointInTime) -> Answer:
    """Export a table as of a moment, or the changes of a period. The files are written in the background."""
    name = table_name(request.table_arn, "tableArn")
    _check(request)
    bucket_store(engine, request.s3_prefix)
    return _EXPORTS.begin(
        engine, request, lambda members: _new_export(engine, name, request, members)
    )


@action("DescribeExport")
def describe_export(engine: Engine, request: DescribeExport) -> Answer:
    """An export's state, counts and parameters."""
    return _EXPORTS.describe(engine, request.export_arn)


@action("ListExports")
def list_exports(engine: Engine, request: ListExports) -> Answer:
    """The exports of the last 90 days, newest first, a page at a time."""
    size = request.max_results or limits.TRANSFER_PAGE
    return _EXPORTS.page(engine, size, request.next_token, request.table_arn)


def _check(request: ExportTableToPointInTime) -> None:
    """Check the members that do not need the table."""
    is_incremental = request.export_type == "INCREMENTAL_EXPORT"
    if is_incremental and request.incremental_export_specification is None:
        raise ValidationException(
            f"{INVALID}IncrementalExportSpecification is required for INCREMENTAL_EXPORT"
        )
    if not is_incremental and request.incremental_export_specification is not None:
        raise ValidationException(
            f"{INVALID}IncrementalExportSpecification is only supported for INCREMENTAL_EXPORT"
        )
    if is_incremental and request.export_time is not None:
        raise ValidationException(f"{INVALID}ExportTime is only supported for FULL_EXPORT")
    if is_incremental and request.filter_specification is not None:
        raise ValidationException(f"{INVALID}FilterSpecification is only supported for FULL_EXPORT")
    check_encryption(request.s3_sse_algorithm, request.s3_sse_kms_key_id)


def _table(engine: Engine, name: str) -> StoredTable:
    table = engine.catalog.tables.get(name)
    if table is None:
        raise TableNotFoundException(f"Table not found: {table_arn(engine, name)}")
    return table


def _new_export(
    engine: Engine, name: str, request: ExportTableToPointInTime, members: dict[str, Any]
) -> Export:
    _EXPORTS.check_running(engine)
    table = _table(engine, name)
    selection_of(table, members.get("FilterSpecification"))
    recovery = table.schema.recovery
    if recovery is None:
        raise PointInTimeRecoveryUnavailableException(
            f"Point in time recovery is not enabled for table '{table.name}'"
        )
    identity = transfers.new_id(engine)
    owner = f"{OWNER}:{identity}"
    period = request.incremental_export_specification
    moments: tuple[int, ...]
    if period is None:
        moments = (_moment(engine, recovery, request.export_time),)
        # A given moment counts as over: changes that still happen within it are not exported.
        given = None if request.export_time is None else moments[0]
        view = views.open_table(engine, table, owner, given)
    else:
        moments = _moments(engine, recovery, period)
        # A view's bounds are positions: the last change before the period, and the last change in it.
        view = views.open_changes(engine, table, owner, moments[0] - 1, moments[1] - 1)
    now = round(engine.clock.now(), 3)
    return Export(identity, table.name, table.schema.id, members, now, moments, view=view)


def _moment(engine: Engine, recovery: Recovery, wanted: float | None) -> int:
    now = history.milliseconds(engine.clock.now())
    moment = now if wanted is None else history.milliseconds(wanted)
    if not history.earliest(engine, recovery) <= moment <= now:
        raise InvalidExportTimeException(
            "The time to export must be between EarliestRestorableDateTime and "
            "LatestRestorableDateTime of the table"
        )
    return moment


def _moments(
    engine: Engine, recovery: Recovery, period: IncrementalExportSpecification
) -> tuple[int, int]:
    """The first moment of an incremental export, and the first moment after it."""
    if period.export_from_time is None:
        raise ValidationException(f"{INVALID}ExportFromTime is required for INCREMENTAL_EXPORT")
    first = _moment(engine, recovery, period.export_from_time)
    end = _moment(engine, recovery, period.export_to_time)
    if not limits.EXPORT_SHORTEST * 1000 <= end - first <= limits.EXPORT_LONGEST * 1000:
        raise ValidationException(
            f"{INVALID}The time from ExportFromTime to ExportToTime must be between "
            f"{limits.EXPORT_SHORTEST // 60} minutes and {limits.EXPORT_LONGEST // 3600} hours"
        )
    return first, end


def _summary(engine: Engine, export: Export) -> dict[str, Any]:
    return {
        "ExportArn": job_arn(engine, export),
        "ExportStatus": export.status,
        "ExportType": export.request.get("ExportType", "FULL_EXPORT"),
    }


_ECHOED = (
    "ClientToken",
    "S3Bucket",
    "S3BucketOwner",
    "S3Prefix",
    "S3SseKmsKeyId",
    "FilterSpecification",
)


def _description(engine: Engine, export: Export) -> dict[str, Any]:
    request = export.request
    described: dict[str, Any] = {
        **_summary(engine, export),
        "StartTime": export.started,
        "TableArn": table_arn(engine, export.table),
        "TableId": export.table_id,
        "S3SseAlgorithm": request.get("S3SseAlgorithm", "AES256"),
        "ExportFormat": request.get("ExportFormat", "DYNAMODB_JSON"),
        **{name: request[name] for name in _ECHOED if name in request},
        **failure_members(export),
    }
    if len(export.moments) == 1:
        described["ExportTime"] = export.moments[0] / 1000
    else:
        wanted = request["IncrementalExportSpecification"]
        described["IncrementalExportSpecification"] = {
            "ExportFromTime": export.moments[0] / 1000,
            "ExportToTime": export.moments[1] / 1000,
            "ExportViewType": wanted.get("ExportViewType", "NEW_AND_OLD_IMAGES"),
        }
    if export.status == "COMPLETED":
        described["ExportManifest"] = manifest_key(export, "manifest-summary.json")
        described["BilledSizeBytes"] = export.size
        described["ItemCount"] = export.items
    return described


_EXPORTS: Final = JobKind(
    name="export",
    most=limits.CONCURRENT_EXPORTS,
    conflict=ExportConflictException,
    missing=lambda arn: ExportNotFoundException(f"Export not found: {arn}"),
    described="ExportDescription",
    listed="ExportSummaries",
    description=_description,
    summary=_summary,
)
