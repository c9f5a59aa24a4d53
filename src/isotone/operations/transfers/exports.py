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
from isotone.operations.action import ActionRule, Answer, action
from isotone.operations.item_validation import INVALID
from isotone.operations.request_members import (
    ApiStructure,
    ExpressionNames,
    ExpressionValues,
    Timestamp,
)
from isotone.operations.table_lookup import table_arn, table_name
from isotone.operations.transfers.export_files import OWNER, manifest_key, selection_of
from isotone.operations.transfers.requests import (
    TABLE_IS_NAMED,
    TOKEN_IS_VALID,
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
    buckets_exist,
    failure_members,
    job_arn,
    key_is_used,
    members_of,
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


def _is_incremental(request: ExportTableToPointInTime) -> bool:
    return request.export_type == "INCREMENTAL_EXPORT"


def _check_period(request: ExportTableToPointInTime) -> None:
    given = request.incremental_export_specification is not None
    if _is_incremental(request) and not given:
        raise ValidationException(
            f"{INVALID}IncrementalExportSpecification is required for INCREMENTAL_EXPORT"
        )
    if given and not _is_incremental(request):
        raise ValidationException(
            f"{INVALID}IncrementalExportSpecification is only supported for INCREMENTAL_EXPORT"
        )


def _check_time(request: ExportTableToPointInTime) -> None:
    if _is_incremental(request) and request.export_time is not None:
        raise ValidationException(f"{INVALID}ExportTime is only supported for FULL_EXPORT")


def _check_filter(request: ExportTableToPointInTime) -> None:
    if _is_incremental(request) and request.filter_specification is not None:
        raise ValidationException(f"{INVALID}FilterSpecification is only supported for FULL_EXPORT")


def _name(request: ExportTableToPointInTime) -> str:
    return table_name(request.table_arn, "tableArn")


def _table(engine: Engine, request: ExportTableToPointInTime) -> StoredTable:
    name = _name(request)
    table = engine.catalog.tables.get(name)
    if table is None:
        raise TableNotFoundException(f"Table not found: {table_arn(engine, name)}")
    return table


def _check_selection(engine: Engine, request: ExportTableToPointInTime) -> None:
    selection_of(_table(engine, request), members_of(request.filter_specification))


def _recovery(engine: Engine, request: ExportTableToPointInTime) -> Recovery:
    table = _table(engine, request)
    if table.schema.recovery is None:
        raise PointInTimeRecoveryUnavailableException(
            f"Point in time recovery is not enabled for table '{table.name}'"
        )
    return table.schema.recovery


def _moments(engine: Engine, request: ExportTableToPointInTime) -> tuple[int, ...]:
    """The moment of an export; of an incremental one the first, and the first after it."""
    recovery, period = _recovery(engine, request), request.incremental_export_specification
    if period is None:
        return (_moment(engine, recovery, request.export_time),)
    return _bounds(engine, recovery, period)


def _new_export(
    engine: Engine, request: ExportTableToPointInTime, members: dict[str, Any]
) -> Export:
    table, moments = _table(engine, request), _moments(engine, request)
    identity = transfers.new_id(engine)
    owner = f"{OWNER}:{identity}"
    if len(moments) == 1:
        # A given moment counts as over: changes that still happen within it are not exported.
        given = None if request.export_time is None else moments[0]
        view = views.open_table(engine, table, owner, given)
    else:
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


def _bounds(
    engine: Engine, recovery: Recovery, period: IncrementalExportSpecification
) -> tuple[int, int]:
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


@action(
    "ExportTableToPointInTime",
    before=(
        ActionRule("an invalid TableArn", _name),
        ActionRule(
            "IncrementalExportSpecification without its ExportType, or not with it", _check_period
        ),
        ActionRule("ExportTime of an incremental export", _check_time),
        ActionRule("FilterSpecification of an incremental export", _check_filter),
        key_is_used(lambda request: request),
    ),
    writing=(
        buckets_exist(lambda request: request.s3_prefix),
        *_EXPORTS.of_new(
            ActionRule("no such table", _table),
            ActionRule("an invalid FilterSpecification", _check_selection),
            ActionRule("a table without point-in-time recovery", _recovery),
            ActionRule("times that cannot be exported", _moments),
        ),
    ),
)
def export_table_to_point_in_time(engine: Engine, request: ExportTableToPointInTime) -> Answer:
    """Export a table as of a moment, or the changes of a period. The files are written in the background."""
    return _EXPORTS.begin(engine, request, lambda members: _new_export(engine, request, members))


@action("DescribeExport", reading=(_EXPORTS.is_known(lambda request: request.export_arn),))
def describe_export(engine: Engine, request: DescribeExport) -> Answer:
    """An export's state, counts and parameters."""
    return _EXPORTS.describe(engine, request.export_arn)


@action(
    "ListExports",
    before=(
        TABLE_IS_NAMED,
        TOKEN_IS_VALID,
    ),
)
def list_exports(engine: Engine, request: ListExports) -> Answer:
    """The exports of the last 90 days, newest first, a page at a time."""
    size = request.max_results or limits.TRANSFER_PAGE
    return _EXPORTS.page(engine, size, request.next_token, request.table_arn)
