"""Query and Scan: reads a page, filters, projects; Count, ExclusiveStartKey ("The provided starting key …"), Select."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Annotated, Any, Final

from msgspec import Meta

from isotone import limits
from isotone.engine.consumed_units import per_thread
from isotone.engine.engine import Engine
from isotone.engine.layout import Bounds, size_of
from isotone.engine.pages import OrderedSource, RangePage, RecordReader, segment_bounds
from isotone.engine.table_indexes import SecondaryIndex, StoredTable
from isotone.errors import TakesLong, ValidationException
from isotone.expressions import CompiledCondition, CompiledProjection, KeyCondition, KeyRange
from isotone.operations import legacy
from isotone.operations.action import Answer, action
from isotone.operations.capacity import CapacityMeter, Charged, meter_for
from isotone.operations.item_responses import JsonItems
from isotone.operations.item_validation import (
    INVALID,
    MISMATCH,
    check_key_condition,
    key_value_error,
)
from isotone.operations.long_requests import this_thread
from isotone.operations.request_expressions import (
    Binding,
    ExpressionParameters,
    Values,
    bound,
    checker,
)
from isotone.operations.request_members import (
    ApiStructure,
    AttributeMap,
    AttributeName,
    AttributeNames,
    ConditionalOperator,
    ExpressionNames,
    ExpressionValues,
    Flag,
    IndexNameOfRead,
    ReturnConsumedCapacity,
    Select,
    TableName,
)
from isotone.operations.request_members import (
    Condition as LegacyCondition,
)
from isotone.operations.table_lookup import open_table
from isotone.values.attribute_validation import canonical_item

Limit = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Segment = Annotated[int, Meta(ge=0, le=limits.TOTAL_SEGMENTS - 1)]
TotalSegments = Annotated[int, Meta(ge=1, le=limits.TOTAL_SEGMENTS)]


class QueryRequest(ApiStructure, frozen=True):
    """Read the items of one partition key, in the order of their sort key."""

    table_name: TableName
    index_name: IndexNameOfRead | None = None
    select: Select | None = None
    attributes_to_get: AttributeNames | None = None
    limit: Limit | None = None
    consistent_read: Flag | None = None
    key_conditions: dict[AttributeName, LegacyCondition] | None = None
    query_filter: dict[AttributeName, LegacyCondition] | None = None
    conditional_operator: ConditionalOperator | None = None
    scan_index_forward: Flag | None = None
    exclusive_start_key: AttributeMap | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    projection_expression: str | None = None
    filter_expression: str | None = None
    key_condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None


class ScanRequest(ApiStructure, frozen=True):
    """Read all items of a table or an index, or one segment of them."""

    table_name: TableName
    index_name: IndexNameOfRead | None = None
    attributes_to_get: AttributeNames | None = None
    limit: Limit | None = None
    select: Select | None = None
    scan_filter: dict[AttributeName, LegacyCondition] | None = None
    conditional_operator: ConditionalOperator | None = None
    exclusive_start_key: AttributeMap | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    total_segments: TotalSegments | None = None
    segment: Segment | None = None
    projection_expression: str | None = None
    filter_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    consistent_read: Flag | None = None


INVALID_START: Final = "The provided starting key is invalid"
# Most queries have none of these, and avoid checking each of them.
_options_of: Final = attrgetter(
    "filter_expression", "query_filter", "projection_expression", "attributes_to_get", "select"
)
_NO_OPTIONS: Final = (None,) * 5
QUERY: Final = ExpressionParameters(
    expressions=("projection_expression", "filter_expression", "key_condition_expression"),
    with_values=("filter_expression", "key_condition_expression"),
    legacy=("attributes_to_get", "query_filter", "conditional_operator", "key_conditions"),
    filters=("query_filter",),
)
SCAN: Final = ExpressionParameters(
    expressions=("projection_expression", "filter_expression"),
    with_values=("filter_expression",),
    legacy=("attributes_to_get", "scan_filter", "conditional_operator"),
    filters=("scan_filter",),
)
_check_query: Final = checker(QUERY)
_check_scan: Final = checker(SCAN)


@action("Query")
def query(engine: Engine, request: QueryRequest) -> Answer:
    """Read the items of one partition key, in the order of their sort key."""
    _check_query(request)
    binding = Binding(request.expression_attribute_names, request.expression_attribute_values)
    has_options = _options_of(request) != _NO_OPTIONS
    filters = _filter(request, request.query_filter, binding) if has_options else None
    written = binding.key_condition(request.key_condition_expression)
    prepared = request, binding, filters, written, has_options
    selection, page = engine.read_optimistically(_page, prepared)
    return selection.answer(page)


_Prepared = tuple[QueryRequest, Binding, CompiledCondition | None, KeyCondition | None, bool]
"""A Query whose expressions are parsed as far as possible without the table, and whether it has options."""


def _page(engine: Engine, prepared: _Prepared) -> tuple[Selection, RangePage]:
    """The page of a Query, whose records are not converted yet."""
    request, binding, filters, written, has_options = prepared
    table = open_table(engine, request.table_name)
    source = source_of(engine, table, request)
    if request.exclusive_start_key is not None:
        canonical_item(request.exclusive_start_key)
    projection = _projection(request, filters, binding) if has_options else None
    if written is not None:
        written.check(binding.values)
    binding.check()
    keys = legacy.key_conditions(request.key_conditions) if written is None else written
    if has_options:
        check_choice(request)
    binding.check_keys(table)
    keyspace = source.keyspace
    wanted = keys.resolve(binding.values, keyspace.partition_names, keyspace.sort_names)
    check_key_condition(keyspace, wanted)
    bounds = keyspace.bounds(wanted)
    start = None
    if request.exclusive_start_key is not None:
        start = query_start(source, request.exclusive_start_key, wanted, bounds)
    if filters is not None:
        refuse_key_filter(source, filters.attributes, request)
    selection = Selection(source, request, filters, projection, binding.values)
    # No variable refers to the entries, so their cursor closes before the lock is released.
    briefly = this_thread.raises_if_long
    page = selection.reader.read(
        source.records(
            bounds, start, reverse=request.scan_index_forward is False, expected=request.limit
        ),
        briefly=briefly,
    )
    if briefly and page.is_long:
        raise TakesLong
    return selection, page


@action("Scan")
def scan(engine: Engine, request: ScanRequest) -> Answer:
    """Read all items of a table or an index in hash order, or one segment of them."""
    _check_scan(request)
    binding = Binding(request.expression_attribute_names, request.expression_attribute_values)
    filters = _filter(request, request.scan_filter, binding)
    with engine.reading_beside as engine:
        table = open_table(engine, request.table_name)
        source = source_of(engine, table, request)
        if request.exclusive_start_key is not None:
            canonical_item(request.exclusive_start_key)
        projection = _projection(request, filters, binding)
        binding.check()
        check_choice(request)
        check_segment(request.segment, request.total_segments)
        binding.check_keys(table)
        bounds = segment_bounds(request.segment, request.total_segments)
        start = scan_start(source, request, bounds)
        selection = Selection(source, request, filters, projection, binding.values)
        briefly = this_thread.raises_if_long
        records = source.records(bounds, start, expected=request.limit)
        page = selection.reader.read(records, briefly=briefly)
        del records  # closes the cursor before the lock is released
        if briefly and page.is_long:
            raise TakesLong
    return selection.answer(page)


def source_of(
    engine: Engine, table: StoredTable, request: QueryRequest | ScanRequest
) -> OrderedSource:
    """The table or index that a request reads. It must support the request."""
    index = None if request.index_name is None else _index(table, request.index_name)
    if index is not None and index.kind == "global" and request.consistent_read:
        raise ValidationException("Consistent reads are not supported on global secondary indexes")
    return OrderedSource(engine, table, index)


def _index(table: StoredTable, name: str) -> SecondaryIndex:
    """An index that can be read."""
    index = table.index(name)
    if index is None:
        raise ValidationException(f"The table does not have the specified index: {name}")
    if index.schema.status == "CREATING":
        raise ValidationException(f"Cannot read from backfilling global secondary index: {name}")
    return index


def query_start(
    source: OrderedSource, requested: dict[str, Any], wanted: KeyRange, bounds: Bounds
) -> bytes:
    """The position after which a Query begins. It must be in the partition."""
    key = start_position(source, requested)
    if _within(key, bounds):
        if _has_one_item(source):
            raise ValidationException(
                "The provided exclusive start key is invalid: ExclusiveStartKey cannot be specified "
                # only the beginning of AWS's message is known
                "for a Query of a table without a sort key"
            )
        return key
    raise ValidationException(
        "The provided starting key is outside query boundaries based on provided conditions"
        if wanted.operator is None and not wanted.equal
        else "The provided starting key does not match the range key predicate"
    )


def _has_one_item(source: OrderedSource) -> bool:
    """Whether a Query can find at most one item, because the key has no sort key."""
    return source.index is None and not source.keyspace.sort_names


def scan_start(source: OrderedSource, request: ScanRequest, bounds: Bounds) -> bytes | None:
    requested: dict[str, Any] | None = request.exclusive_start_key
    if requested is None:
        return None
    try:
        key = start_position(source, requested)
    except ValidationException as error:
        if error.message == INVALID_START:
            raise _misfit_of_scan(source, requested) from None
        raise
    if not _within(key, bounds):
        raise ValidationException(
            f"{INVALID_START}: Invalid ExclusiveStartKey. Please use "
            "ExclusiveStartKey with correct Segment. TotalSegments: "
            f"{request.total_segments} Segment: {request.segment}"
        )
    return key


def _misfit_of_scan(source: OrderedSource, requested: dict[str, Any]) -> ValidationException:
    """The error of a Scan whose start key does not fit; a Query's error says less."""
    parts = (*source.keyspace.schema.parts, *source.table.keyspace.schema.parts)
    if source.index is not None and requested.keys() == {part.name for part in parts}:
        for part in parts:
            if part.type not in requested[part.name]:
                actual = next(iter(requested[part.name]))
                return ValidationException(
                    f"{INVALID}Type mismatch for Index Key {part.name} Expected: {part.type} "
                    f"Actual: {actual} IndexName: {source.index.name}"
                )
    return ValidationException(f"{INVALID_START}: {MISMATCH}")


def _within(key: bytes, bounds: Bounds) -> bool:
    low, high = bounds
    return low <= key and (high is None or key < high)


def start_position(source: OrderedSource, requested: dict[str, Any]) -> bytes:
    """The physical key that an `ExclusiveStartKey` names."""
    start, _ = canonical_item(requested)
    table = source.table.keyspace
    types = {part.name: part.type for part in table.schema.parts + source.keyspace.schema.parts}
    if start.keys() != types.keys() or any(kind not in start[name] for name, kind in types.items()):
        raise ValidationException(INVALID_START)
    if not table.fits(start):
        raise ValidationException(f"{INVALID_START}: {key_value_error(table, start).message}")
    return source.position(start)


def refuse_key_filter(
    source: OrderedSource, attributes: frozenset[str], request: QueryRequest
) -> None:
    """Refuse a filter on the Query's key attributes, which belong in the key condition."""
    for name in source.keyspace.names:
        if name in attributes:
            kind = "Filter Expression" if request.filter_expression is not None else "QueryFilter"
            raise ValidationException(
                f"{kind} can only contain non-primary key attributes: Primary key attribute: {name}"
            )


def _filter(
    request: QueryRequest | ScanRequest,
    legacy_filter: Mapping[str, LegacyCondition] | None,
    binding: Binding,
) -> CompiledCondition | None:
    """The filter of the request; None for all items. Also refuses repeated names in AttributesToGet."""
    filters = None
    if request.filter_expression is not None:
        filters = binding.filter(request.filter_expression)
    if legacy_filter is not None:
        filters = legacy.filter_condition(legacy_filter, request.conditional_operator)
    if request.attributes_to_get is not None:
        legacy.refuse_repeated_names(request.attributes_to_get)
    return filters


def _projection(
    request: QueryRequest | ScanRequest, filters: CompiledCondition | None, binding: Binding
) -> CompiledProjection | None:
    """The projection of the request; None for whole items. The values of the filter are checked first."""
    if filters is not None and request.filter_expression is not None:
        filters.check(binding.values)
    if request.projection_expression is not None:
        return binding.projection(request.projection_expression)
    if request.attributes_to_get is not None:
        return legacy.projection_of(request.attributes_to_get)
    return None


class Selection:
    """How each entry of a source becomes an item in the response."""

    def __init__(
        self,
        source: OrderedSource,
        request: QueryRequest | ScanRequest,
        filters: CompiledCondition | None,
        projection: CompiledProjection | None,
        values: Values,
    ) -> None:
        self.source = source
        self.request = request
        self.meter: Charged | None = meter_for(request, source.table)
        self._fetched: list[int] = []
        if source.index is not None:
            _check_projected(source.index, request, filters, projection)
        expand = None if source.index is None else self._expander(source.index, projection)
        is_plain = filters is None and projection is None and expand is None
        self.reader: RecordReader = RecordReader(
            limit=request.limit,
            expand=expand,
            matches=bound(filters, values),
            project=None if projection is None else projection.project,
            counting=request.select == "COUNT",
            nodes=0 if filters is None else filters.nodes,
            sizing=self.meter is not None or not is_plain,
        )

    def answer(self, page: RangePage) -> dict[str, Any]:
        """The members of the response for a page; converts the records to items first."""
        self.reader.evaluate(page)
        request = self.request
        answer: dict[str, Any] = {}
        if request.select != "COUNT":
            answer["Items"] = JsonItems(page.items)
        answer["Count"] = page.count
        answer["ScannedCount"] = page.scanned
        # With a key without a sort key there is only one item, so no page follows.
        if page.last is not None and (
            isinstance(request, ScanRequest) or not _has_one_item(self.source)
        ):
            answer["LastEvaluatedKey"] = self.source.last_key(page.last)
        meter = self.meter
        if meter is not None:
            self.charge(meter, page)
        if type(meter) is CapacityMeter:
            answer["ConsumedCapacity"] = meter.report()
        return answer

    def charge(self, meter: Charged, page: RangePage) -> None:
        """Charge the reads of a page."""
        consistent = bool(self.request.consistent_read)
        meter.read(page.size, consistent=consistent, index=self.source.index)
        for size in self._fetched:
            meter.read(size, consistent=consistent)
        self._fetched = []
        spent = per_thread.spent  # without a call of `add_items`, as this is hot
        spent.read += page.scanned
        spent.returned += page.count

    def _expander(
        self, index: SecondaryIndex, projection: CompiledProjection | None
    ) -> Callable[[bytes], bytes] | None:
        """For a local index that lacks requested attributes: a function that fetches the table's item."""
        if index.kind == "global":
            return None
        if self.request.select == "ALL_ATTRIBUTES":
            return None if index.schema.projection.kind == "ALL" else self._fetch
        covered = projection is None or index.covers(projection.attributes)
        return None if covered else self._fetch

    def _fetch(self, record: bytes) -> bytes:
        whole = self.source.whole_item(record)
        self._fetched.append(size_of(whole))
        return whole


def _check_projected(
    index: SecondaryIndex,
    request: QueryRequest | ScanRequest,
    filters: CompiledCondition | None,
    projection: CompiledProjection | None,
) -> None:
    """Refuse attributes that an index lacks. A local index fetches them from the table, but not for a filter.

    The filter of a Scan may use them; they are missing in every entry.
    """
    unseen = []
    if filters is not None and isinstance(request, QueryRequest):
        unseen = index.missing(filters.attributes)
    if unseen:
        raise ValidationException(
            f"{INVALID}Secondary index {index.name} "
            f"does not project one or more filter attributes: [{', '.join(unseen)}]"
        )
    if index.kind == "local":
        return
    if request.select == "ALL_ATTRIBUTES" and index.schema.projection.kind != "ALL":
        raise ValidationException(
            f"{INVALID}Select type ALL_ATTRIBUTES is not supported "
            f"for global secondary index {index.name} because its projection type is not ALL"
        )
    missing = [] if projection is None else index.missing(projection.attributes)
    if missing:
        raise ValidationException(
            f"{INVALID}Global secondary index {index.name} does not project [{', '.join(missing)}]"
        )


def check_choice(request: QueryRequest | ScanRequest) -> None:
    """Refuse a Select that contradicts the requested attributes; the service checks this after expressions."""
    select = request.select
    if select is None:
        return
    chosen = _chosen(request)
    if select == "SPECIFIC_ATTRIBUTES":
        if chosen is None:
            raise ValidationException(
                "Must specify the AttributesToGet or ProjectionExpression "
                "when choosing to get SPECIFIC_ATTRIBUTES"
            )
    elif chosen is not None:
        wanted = "only the Count" if select == "COUNT" else select
        raise ValidationException(f"Cannot specify the {chosen} when choosing to get {wanted}")
    if select == "ALL_PROJECTED_ATTRIBUTES" and request.index_name is None:
        raise ValidationException(
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
        )


def _chosen(request: QueryRequest | ScanRequest) -> str | None:
    """The parameter that names the attributes to return."""
    if request.projection_expression is not None:
        return "ProjectionExpression"
    return None if request.attributes_to_get is None else "AttributesToGet"


def check_segment(segment: int | None, total: int | None) -> None:
    if segment is None and total is None:
        return
    if total is None:
        raise ValidationException(
            "The TotalSegments parameter is required but was not present in the request "
            "when Segment parameter is present"
        )
    if segment is None:
        raise ValidationException(
            "The Segment parameter is required but was not present in the request "
            "when parameter TotalSegments is present"
        )
    if segment >= total:
        raise ValidationException(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
            f"Segment: {segment} is not less than TotalSegments: {total}"
        )
