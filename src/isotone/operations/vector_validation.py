"""Checks items against the vector indexes of their table: dimensions, number range, types of the search schema.

An attribute may be missing; the item is then not in the index, or a filter does not find it. An update is checked only
for what it changes: an item that is older than an index and does not fit it can still be updated.
"""

from __future__ import annotations

from typing import Final

from isotone import limits
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import SearchPart
from isotone.engine.vector_index import StoredVectorIndex
from isotone.errors import ValidationException
from isotone.values.attribute_validation import AttributeValue, Item
from isotone.values.size import value_size

_INVALID: Final = "One or more parameter values were invalid."
# The service's message says "invalid" twice for a number that no 32-bit float can be. This error refuses a
# transaction, where the others cancel it.
_INVALID_TWICE: Final = (
    "One or more parameter values are not valid. One or more parameter values were invalid ."
)
_KINDS: Final = {"S": "string", "B": "binary"}
_LARGEST: Final = "[-3.4028235E38, 3.4028235E38]"


def check_vectors(table: StoredTable, item: Item, before: Item, empty: str) -> None:
    """Refuse an item with an attribute that differs from `before` and does not fit a vector index.

    `empty` is the message for an empty value of a partition attribute.
    """
    for index in table.vectors:
        name = index.schema.attribute
        value = item.get(name)
        if value is not None and value != before.get(name) and index.vector(value) is None:
            raise _vector_error(index, value)
        for part in index.schema.search:
            value = item.get(part.name)
            if value is not None and value != before.get(part.name):
                _check_part(index, part, value, empty)


def _vector_error(index: StoredVectorIndex, value: AttributeValue) -> ValidationException:
    schema = index.schema
    name, where = schema.attribute, f"IndexName: {index.name}"
    if "L" not in value:
        return ValidationException(
            f"{_INVALID} Invalid type for parameter {name}, "
            f"Expected: 32-bit floating point number list {where}"
        )
    elements: list[AttributeValue] = value["L"]
    if len(elements) != schema.dimensions:
        return ValidationException(
            f"{_INVALID} Invalid size for parameter {name}, Expected: {schema.dimensions}, "
            f"Actual: {len(elements)} {where}"
        )
    place, element = next(
        (place, element) for place, element in enumerate(elements) if not index.is_float(element)
    )
    if "N" not in element:
        return ValidationException(
            f"{_INVALID} Invalid type for parameter {name}[{place}], "
            f"Expected: 32-bit floating point number, Actual: {next(iter(element))}. {where}"
        )
    return ValidationException(
        f"{_INVALID_TWICE} Invalid value for parameter {name}[{place}], "
        f"Value: {_java_float(element['N'])} is outside valid range {_LARGEST}. {where}"
    )


def _java_float(text: str) -> str:
    """A number that no 32-bit float can be, as Java prints it: 1.0E39."""
    mantissa, _, exponent = repr(float(text)).partition("e+")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{exponent}"


def _check_part(
    index: StoredVectorIndex, part: SearchPart, value: AttributeValue, empty: str
) -> None:
    if part.type not in value:
        raise ValidationException(
            f"{_INVALID} Attribute '{part.name}' type mismatch. Expected: {part.type}, "
            f"Actual: {next(iter(value))}. IndexName: {index.name}"
        )
    if part.role == "INLINE_FILTER":
        if value_size(value) > limits.INLINE_FILTER_SIZE:
            raise ValidationException(
                "One or more parameter values were invalid: Size limit exceeded for SearchSchema "
                f"attribute '{part.name}': maximum {limits.INLINE_FILTER_SIZE} bytes"
            )
    elif not value[part.type]:
        raise ValidationException(
            empty.format(index=index.name, name=part.name, kind=_KINDS[part.type])
        )
    elif value_size(value) > limits.PARTITION_KEY_SIZE:
        raise ValidationException(
            "One or more parameter values were invalid: Aggregate size for HASH key attributes "
            f"exceeds the maximum of {limits.PARTITION_KEY_SIZE} bytes"
        )
