"""SearchVectors: finds the items whose vectors are nearest to a given vector, with filters, and within 1 MB."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from isotone import limits
from isotone.engine import vector_search
from isotone.engine.engine import Engine
from isotone.engine.layout import encode_item, size_of
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import SearchPart
from isotone.engine.vector_index import StoredVectorIndex
from isotone.engine.vector_search import VectorMatch
from isotone.errors import ValidationException
from isotone.expressions import CompiledProjection, SearchCondition
from isotone.operations.action import Answer, action
from isotone.operations.capacity import vector_search_bytes
from isotone.operations.item_validation import INVALID, empty_key
from isotone.operations.long_requests import raise_if_long
from isotone.operations.request_expressions import Binding, ExpressionParameters, Values, checker
from isotone.operations.request_members import (
    ApiStructure,
    AttributeValue,
    ExpressionNames,
    ExpressionValues,
    IndexName,
    PositiveInteger,
    ReturnConsumedCapacity,
    TableName,
)
from isotone.operations.table_lookup import open_table
from isotone.values.number import canonical_number

SearchVector = Annotated[
    list[AttributeValue], Meta(min_length=1, max_length=limits.VECTOR_DIMENSIONS)
]


class SearchVectors(ApiStructure, frozen=True, kw_only=True):
    """Find the items whose vectors are nearest to a vector."""

    is_strict = True

    table_name: TableName
    index_name: IndexName
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    projection_expression: str | None = None
    search_vector: SearchVector
    search_condition_expression: str | None = None
    top_k: PositiveInteger


_NO_FLOATS: Final = (
    "Search vector contains invalid values. "
    "All values in the search vector must be a 32-bit floating-point number attribute"
)
_PLAIN: Final = r"-?[0-9]{1,19}(?:\.[0-9]{1,18})?"
_are_plain: Final = re.compile(f"{_PLAIN}(?:,{_PLAIN})*").fullmatch
check_parameters: Final = checker(
    ExpressionParameters(
        expressions=("search_condition_expression", "projection_expression"),
        with_values=("search_condition_expression",),
    )
)


def check_top_k(request: SearchVectors) -> None:
    """Check that not too many results are asked for."""
    if request.top_k > limits.SEARCH_RESULTS:
        raise ValidationException(
            f"Provided TopK value '{request.top_k}' is out of valid range. "
            f"The value must be between 1 and {limits.SEARCH_RESULTS} inclusive"
        )


@action("SearchVectors")
def search_vectors(engine: Engine, request: SearchVectors) -> Answer:
    """Find the items whose vectors are nearest to a vector. Reads the partition of the index once."""
    check_parameters(request)
    check_top_k(request)
    binding = Binding(request.expression_attribute_names, request.expression_attribute_values)
    condition = binding.search_condition(request.search_condition_expression)
    projection = binding.projection(request.projection_expression)
    binding.check()
    floats = floats_of(request.search_vector)
    raise_if_long(True)  # it compares with all vectors of a partition
    with engine.reading:
        index = _index(open_table(engine, request.table_name), request.index_name)
        query = _query(index, floats)
        partition, filters = _conditions(index, condition, binding.values)
        if projection is not None:
            _check_projected(index, projection)
        found = vector_search.search(engine, index, partition, filters, query, request.top_k)
    return _answer(index, request, projection, found)


def _index(table: StoredTable, name: str) -> StoredVectorIndex:
    index = table.vector_index(name)
    if index is None:
        raise ValidationException(f"The table does not have the specified index: {name}")
    if index.schema.status == "CREATING":
        raise ValidationException(f"Cannot search backfilling vector index: {name}")
    return index


def _query(index: StoredVectorIndex, floats: list[float]) -> bytes:
    """The packed vector of a request."""
    dimensions = index.schema.dimensions
    if len(floats) != dimensions:
        raise ValidationException(
            f"Input search vector dimension {len(floats)} "
            f"does not match vector index dimension {dimensions}"
        )
    try:
        return index.pack(floats)
    except OverflowError:
        raise ValidationException(_NO_FLOATS) from None


def floats_of(elements: list[AttributeValue]) -> list[float]:
    """The numbers of a vector."""
    # One regular expression over all numbers is much faster than checking each; most requests pass it.
    texts = [element.get("N") if len(element) == 1 else None for element in elements]
    if all(type(text) is str for text in texts) and _are_plain(",".join(texts)):  # type: ignore[arg-type] # they are texts
        return list(map(float, texts))  # type: ignore[arg-type] # see above
    return [_float(element) for element in elements]


def _float(element: AttributeValue) -> float:
    if len(element) == 1 and type(element.get("N")) is str:
        try:
            return float(canonical_number(element["N"]))
        except ValidationException:
            pass
    raise ValidationException(_NO_FLOATS)


def _conditions(
    index: StoredVectorIndex, condition: SearchCondition | None, values: Values
) -> tuple[dict[str, Any] | None, dict[str, str]]:
    """The value of the partition attribute, and the texts of the filters by attribute."""
    schema = index.schema
    if condition is None:
        if schema.partition is not None:
            raise ValidationException(
                "SearchConditionExpression must be provided when SearchSchema has a HASH key"
            )
        return None, {}
    wanted = condition.resolve(values)
    parts = {part.name: part for part in schema.search}
    for name in wanted:
        if name not in parts:
            raise ValidationException(
                "SearchConditionExpression must not contain any attributes that is not in "
                f"SearchSchema. Invalid attribute: {name}"
            )
    if schema.partition is not None and schema.partition.name not in wanted:
        raise ValidationException(
            "SearchConditionExpression must have all HASH attributes in configured SearchSchema"
        )
    for name, value in wanted.items():
        _check_value(parts[name], value)
    partition = None if schema.partition is None else wanted.pop(schema.partition.name)
    return partition, {name: value[parts[name].type] for name, value in wanted.items()}


def _check_value(part: SearchPart, value: AttributeValue) -> None:
    if part.type not in value:
        raise ValidationException(
            f"Type of '{part.name}' attribute in SearchConditionExpression ({next(iter(value))}) "
            f"does not match type in search schema ({part.type})"
        )
    if part.role == "HASH" and not value[part.type]:
        raise empty_key(part.name, part.type)


def _check_projected(index: StoredVectorIndex, projection: CompiledProjection) -> None:
    missing = index.missing(projection.attributes)
    if missing:
        raise ValidationException(
            f"{INVALID}Vector index {index.name} does not project [{', '.join(missing)}]"
        )


def _answer(
    index: StoredVectorIndex,
    request: SearchVectors,
    projection: CompiledProjection | None,
    found: list[VectorMatch],
) -> dict[str, Any]:
    results, size = [], 0
    for each in found:
        item = _shown(index, projection, each.record)
        size += len(item)
        if size > limits.SEARCH_SIZE:
            break
        results.append({"Item": msgspec.Raw(item), "Score": each.score})
    answer: dict[str, Any] = {"SearchResults": results}
    if request.return_consumed_capacity in ("TOTAL", "INDEXES"):
        answer["ConsumedCapacity"] = {
            "VectorSearchRequestBytes": _search_bytes(index, projection, found[: len(results)])
        }
    return answer


def _shown(index: StoredVectorIndex, projection: CompiledProjection | None, record: bytes) -> bytes:
    """The item in a result. It has the vector only if the projection asks for it."""
    if projection is None:
        return index.body_of(record)
    asked = index.schema.attribute in projection.attributes
    item = index.whole_item(record) if asked else index.item(record)
    return encode_item(projection.project(item))


def _search_bytes(
    index: StoredVectorIndex, projection: CompiledProjection | None, found: list[VectorMatch]
) -> float:
    vector = index.vector_size
    asked = projection is not None and index.schema.attribute in projection.attributes
    returned = [size_of(each.record) - (0 if asked else vector) for each in found]
    return vector_search_bytes(index.schema.dimensions, returned)
