"""ImportTable, DescribeImport and ListImports: create a table and fill it from files in S3.

The files are read in the background (`loading`).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from isotone import limits
from isotone.engine import backfill, transfers
from isotone.engine.engine import Engine
from isotone.engine.transfers import LoadJob
from isotone.errors import (
    ImportConflictException,
    ImportNotFoundException,
    ValidationException,
)
from isotone.operations.action import ActionRule, Answer, action
from isotone.operations.item_validation import INVALID
from isotone.operations.request_members import ApiStructure, BillingMode, EntityName
from isotone.operations.table_lookup import table_arn
from isotone.operations.table_requests import (
    AttributeDefinition,
    CreateTable,
    GlobalSecondaryIndex,
    KeySchema,
    OnDemandThroughput,
    ProvisionedThroughput,
    SSESpecification,
    VectorIndex,
)
from isotone.operations.tables import NEW_TABLE, check_table_is_new, new_schema
from isotone.operations.transfers.requests import (
    TABLE_IS_NAMED,
    TOKEN_IS_VALID,
    Bucket,
    BucketOwner,
    ClientToken,
    InputCompression,
    JobKind,
    PageSize,
    Prefix,
    TableArn,
    TransferArn,
    buckets_exist,
    can_decompress,
    failure_members,
    job_arn,
)


class S3BucketSource(ApiStructure, frozen=True, kw_only=True):
    """The objects to import: those in a bucket whose keys begin with a prefix."""

    s3_bucket_owner: BucketOwner | None = None
    s3_bucket: Bucket
    s3_key_prefix: Prefix | None = None


CsvHeader = Annotated[
    str, Meta(min_length=1, max_length=65536, pattern=r"^[\x20-\x21\x23-\x2B\x2D-\x7E]*\Z")
]


class CsvOptions(ApiStructure, frozen=True):
    """The delimiter of CSV files, and the names of their columns."""

    delimiter: Annotated[str, Meta(min_length=1, max_length=1, pattern=r"[,;:|\t ]")] | None = None
    header_list: Annotated[list[CsvHeader], Meta(min_length=1, max_length=255)] | None = None


class InputFormatOptions(ApiStructure, frozen=True):
    """Options of single formats."""

    csv: CsvOptions | None = None


class TableCreationParameters(ApiStructure, frozen=True, kw_only=True):
    """The table to create."""

    table_name: EntityName
    attribute_definitions: list[AttributeDefinition]
    key_schema: KeySchema
    billing_mode: BillingMode | None = None
    provisioned_throughput: ProvisionedThroughput | None = None
    on_demand_throughput: OnDemandThroughput | None = None
    sse_specification: SSESpecification | None = None
    global_secondary_indexes: list[GlobalSecondaryIndex] | None = None
    vector_indexes: list[VectorIndex] | None = None


class ImportTable(ApiStructure, frozen=True, kw_only=True):
    """Create a table with the items of files in a bucket."""

    client_token: ClientToken | None = None
    s3_bucket_source: S3BucketSource
    input_format: Literal["DYNAMODB_JSON", "ION", "CSV"]
    input_format_options: InputFormatOptions | None = None
    input_compression_type: InputCompression | None = None
    table_creation_parameters: TableCreationParameters


class DescribeImport(ApiStructure, frozen=True):
    """Ask for the progress or the outcome of an import."""

    import_arn: TransferArn


class ListImports(ApiStructure, frozen=True):
    """Ask for the imports of one table or of all, a page at a time."""

    table_arn: TableArn | None = None
    page_size: PageSize | None = None
    next_token: Annotated[str, Meta(min_length=112, max_length=1024)] | None = None


def _wanted(request: ImportTable) -> CreateTable:
    """The request that creates the table."""
    parameters = request.table_creation_parameters
    return CreateTable(**{name: getattr(parameters, name) for name in parameters.__struct_fields__})


def _of_table(rule: ActionRule) -> ActionRule:
    return ActionRule(rule.says, lambda request: rule.check(_wanted(request)))


def _check_free(engine: Engine, request: ImportTable) -> None:
    check_table_is_new(engine, request.table_creation_parameters.table_name)


def _new_import(engine: Engine, request: ImportTable, members: dict[str, Any]) -> LoadJob:
    """Create the table, which becomes usable when its import has ended."""
    wanted, name = _wanted(request), request.table_creation_parameters.table_name
    identity = transfers.new_id(engine)
    schema = backfill.before_loading(new_schema(engine, name, wanted), identity)
    table = engine.catalog.save(schema)
    for tree in table.trees:
        engine.store.create_tree(tree)
    return LoadJob(identity, name, schema.id, members, round(engine.clock.now(), 3))


def _check_options(request: ImportTable) -> None:
    options = request.input_format_options
    if options is not None and options.csv is not None and request.input_format != "CSV":
        raise ValidationException(f"{INVALID}Csv options are only supported for InputFormat CSV")


def _log_group(engine: Engine) -> str:
    return f"arn:aws:logs:{engine.region}:{engine.account}:log-group:/aws-dynamodb/imports:*"


def _summary(engine: Engine, job: LoadJob) -> dict[str, Any]:
    summary = {
        "ImportArn": job_arn(engine, job),
        "ImportStatus": job.status,
        "TableArn": table_arn(engine, job.table),
        "S3BucketSource": job.request["S3BucketSource"],
        "CloudWatchLogGroupArn": _log_group(engine),
        "InputFormat": job.request["InputFormat"],
        "StartTime": job.started,
    }
    if job.ended is not None:
        summary["EndTime"] = job.ended
    return summary


_ECHOED = ("ClientToken", "InputFormatOptions", "TableCreationParameters")


def _description(engine: Engine, job: LoadJob) -> dict[str, Any]:
    request = job.request
    return {
        **_summary(engine, job),
        "TableId": job.table_id,
        "InputCompressionType": request.get("InputCompressionType", "NONE"),
        **{name: request[name] for name in _ECHOED if name in request},
        "ErrorCount": job.errors,
        "ProcessedSizeBytes": job.size,
        "ProcessedItemCount": job.items + job.ahead,
        "ImportedItemCount": job.items - job.errors + job.ahead,
        **failure_members(job),
    }


_IMPORTS: Final = JobKind(
    name="import",
    most=limits.CONCURRENT_IMPORTS,
    conflict=ImportConflictException,
    missing=lambda arn: ImportNotFoundException(f"Import not found: {arn}"),
    described="ImportTableDescription",
    listed="ImportSummaryList",
    description=_description,
    summary=_summary,
)


@action(
    "ImportTable",
    before=(
        *map(_of_table, NEW_TABLE),
        ActionRule("options of another InputFormat", _check_options),
        can_decompress(lambda request: request.input_compression_type),
    ),
    writing=(
        buckets_exist(lambda request: request.s3_bucket_source.s3_key_prefix),
        *_IMPORTS.of_new(ActionRule("a table that exists", _check_free)),
    ),
)
def import_table(engine: Engine, request: ImportTable) -> Answer:
    """Create a table, and fill it in the background. It becomes usable when the import has ended."""
    return _IMPORTS.begin(engine, request, lambda members: _new_import(engine, request, members))


@action("DescribeImport", reading=(_IMPORTS.is_known(lambda request: request.import_arn),))
def describe_import(engine: Engine, request: DescribeImport) -> Answer:
    """An import's state, counts and parameters."""
    return _IMPORTS.describe(engine, request.import_arn)


@action(
    "ListImports",
    before=(
        TABLE_IS_NAMED,
        TOKEN_IS_VALID,
    ),
)
def list_imports(engine: Engine, request: ListImports) -> Answer:
    """The imports of the last 90 days, newest first, a page at a time."""
    size = request.page_size or limits.TRANSFER_PAGE
    return _IMPORTS.page(engine, size, request.next_token, request.table_arn)
