"""StartBulkPutItems, DescribeBulkOperation, ListBulkOperations, CancelBulkOperation: put files of a bucket into a table.

The files are read in the background (`loading`).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from isotone import limits
from isotone.engine import transfers
from isotone.engine.engine import Engine
from isotone.engine.transfers import LoadJob
from isotone.errors import (
    IdempotentParameterMismatchException,
    ResourceNotFoundException,
    ValidationException,
)
from isotone.operations.action import ActionRule, Answer, action
from isotone.operations.item_validation import INVALID
from isotone.operations.request_members import ApiStructure, ListedTableName
from isotone.operations.table_lookup import TABLE_CHANGES, changed_table
from isotone.operations.transfers.requests import (
    TOKEN_IS_VALID,
    Bucket,
    BucketOwner,
    ClientToken,
    InputCompression,
    JobKind,
    PageSize,
    Prefix,
    SseAlgorithm,
    SseKey,
    TransferArn,
    buckets_exist,
    can_decompress,
    failure_members,
    job_arn,
    key_is_used,
)


class InputS3Configuration(ApiStructure, frozen=True, kw_only=True):
    """The objects to read: those in a bucket whose keys begin with a prefix."""

    s3_bucket_owner: BucketOwner | None = None
    s3_bucket: Bucket
    s3_key_prefix: Prefix | None = None
    input_format: Literal["DYNAMODB_JSON", "ION"]
    input_compression_type: InputCompression | None = None


class OutputS3Configuration(ApiStructure, frozen=True, kw_only=True):
    """Where to report items that were not written, and which of them."""

    s3_bucket_owner: BucketOwner | None = None
    s3_bucket: Bucket | None = None
    s3_key_prefix: Prefix | None = None
    s3_sse_algorithm: SseAlgorithm | None = None
    s3_sse_kms_key_id: SseKey | None = None
    output_type: list[Literal["ERROR", "CONDITION_CHECK_FAILURE"]]


class StartBulkPutItems(ApiStructure, frozen=True, kw_only=True):
    """Put the items of files in a bucket into a table."""

    client_token: ClientToken | None = None
    input_s3_configuration: InputS3Configuration
    output_s3_configuration: OutputS3Configuration
    table_name: ListedTableName
    max_write_request_units: Annotated[int, Meta(ge=1024, le=2**63 - 1)] | None = None
    performance_tier: Literal["STANDARD", "ACCELERATED"] | None = None


class DescribeBulkOperation(ApiStructure, frozen=True):
    """Ask for the progress or the outcome of a bulk operation."""

    bulk_operation_arn: TransferArn


class CancelBulkOperation(ApiStructure, frozen=True):
    """Stop a bulk operation; what it has written remains."""

    bulk_operation_arn: TransferArn


class ListBulkOperations(ApiStructure, frozen=True):
    """Ask for the bulk operations, a page at a time."""

    max_results: PageSize | None = None
    next_token: (
        Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"^([0-9a-f]{16})+\Z")] | None
    ) = None


_PAGE = 10


def _new_job(engine: Engine, name: str, members: dict[str, Any]) -> LoadJob:
    table = changed_table(engine, name)
    now = round(engine.clock.now(), 3)
    identity = transfers.new_id(engine)
    return LoadJob(identity, table.name, table.schema.id, members, now, is_bulk=True)


def _operation(engine: Engine, request: CancelBulkOperation) -> LoadJob:
    return _BULK_PUTS.find(engine, request.bulk_operation_arn)


def _check_in_progress(engine: Engine, request: CancelBulkOperation) -> None:
    if _operation(engine, request).ended is not None:
        raise ValidationException(
            f"The bulk operation is not in progress: {request.bulk_operation_arn}"
        )


@action(
    "CancelBulkOperation",
    writing=(
        ActionRule("no such bulk operation", _operation),
        ActionRule("one that is not in progress", _check_in_progress),
    ),
)
def cancel_bulk_operation(engine: Engine, request: CancelBulkOperation) -> Answer:
    """Stop a running bulk operation."""
    job = _operation(engine, request)
    transfers.save(engine, msgspec.structs.replace(job, status="CANCELLING"))
    return {"BulkOperationArn": request.bulk_operation_arn, "BulkOperationStatus": "CANCELLING"}


def _check_bucket(request: StartBulkPutItems) -> None:
    if request.output_s3_configuration.s3_bucket is None:
        raise ValidationException(f"{INVALID}OutputS3Configuration must have an S3Bucket")


def _check_output_type(request: StartBulkPutItems) -> None:
    if not request.output_s3_configuration.output_type:
        raise ValidationException(f"{INVALID}OutputType must have at least one value")


def _summary(engine: Engine, job: LoadJob) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "BulkOperationArn": job_arn(engine, job),
        "BulkOperationStatus": job.status,
        "StartTime": job.started,
    }
    if job.ended is not None:
        summary["EndTime"] = job.ended
    return summary


_ECHOED = ("ClientToken", "InputS3Configuration", "OutputS3Configuration", "MaxWriteRequestUnits")


def _description(engine: Engine, job: LoadJob) -> dict[str, Any]:
    request = job.request
    described: dict[str, Any] = {
        **_summary(engine, job),
        "TableDetails": [{"TableName": job.table, "TableId": job.table_id}],
        **{name: request[name] for name in _ECHOED if name in request},
        "PerformanceTier": request.get("PerformanceTier", "STANDARD"),
        "ProcessedItemCount": job.items,
        "ProcessedInputBytes": job.read,
        "FailedItemCount": job.errors,
        "BulkOperationUsage": [_usage(job)],
        **failure_members(job),
    }
    if job.known:
        described["TotalInputBytes"] = job.total
    return described


# The member of each kind of target, and the member for its bytes.
_GROUPS = {
    "local": ("LocalSecondaryIndexes", "BulkPutBytes"),
    "global": ("GlobalSecondaryIndexes", "BulkPutBytes"),
    "vector": ("VectorIndexes", "BulkPutVectorBytes"),
}


def _usage(job: LoadJob) -> dict[str, Any]:
    """The bytes written, by table and index. The keys of `usage` are `table`, `local/name`, `global/name`,
    `vector/name`.
    """
    usage: dict[str, Any] = {
        "TableName": job.table,
        "BulkPutBytes": sum(
            size for place, size in job.usage.items() if not place.startswith("vector/")
        ),
        "Table": {"BulkPutBytes": job.usage.get("table", 0)},
    }
    for place, size in job.usage.items():
        kind, _, name = place.partition("/")
        if name:
            group, member = _GROUPS[kind]
            usage.setdefault(group, {})[name] = {member: size}
    return usage


_BULK_PUTS: Final = JobKind(
    name="bulk-operation",
    most=limits.CONCURRENT_IMPORTS,
    conflict=IdempotentParameterMismatchException,
    missing=lambda arn: ResourceNotFoundException(
        f"Requested resource not found: Bulk operation: {arn} not found"
    ),
    described="BulkOperationDescription",
    listed="BulkOperationsSummaryList",
    description=_description,
    summary=_summary,
)


@action(
    "StartBulkPutItems",
    before=(
        ActionRule("no bucket for the output", _check_bucket),
        ActionRule("no OutputType", _check_output_type),
        key_is_used(lambda request: request.output_s3_configuration),
        can_decompress(lambda request: request.input_s3_configuration.input_compression_type),
    ),
    writing=(
        buckets_exist(
            lambda request: request.input_s3_configuration.s3_key_prefix,
            lambda request: request.output_s3_configuration.s3_key_prefix,
        ),
        *_BULK_PUTS.of_new(TABLE_CHANGES),
    ),
)
def start_bulk_put_items(engine: Engine, request: StartBulkPutItems) -> Answer:
    """Start to put the items of files into a table, in the background."""
    return _BULK_PUTS.begin(
        engine, request, lambda members: _new_job(engine, request.table_name, members)
    )


@action(
    "DescribeBulkOperation",
    reading=(_BULK_PUTS.is_known(lambda request: request.bulk_operation_arn),),
)
def describe_bulk_operation(engine: Engine, request: DescribeBulkOperation) -> Answer:
    """A bulk operation's state, counts and parameters."""
    return _BULK_PUTS.describe(engine, request.bulk_operation_arn)


@action("ListBulkOperations", before=(TOKEN_IS_VALID,))
def list_bulk_operations(engine: Engine, request: ListBulkOperations) -> Answer:
    """The bulk operations of the last 90 days, newest first, a page at a time."""
    size = request.max_results or _PAGE
    return _BULK_PUTS.page(engine, size, request.next_token)
