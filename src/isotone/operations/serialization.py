"""SerializationException: converts JSON to a request's types as the service's parser does (null, clamping, coercion).

A null is an absent member (in a map: an empty structure or list), a decimal in place of an integer loses its fraction,
and a number outside the range of the Java type is clamped. Any other wrong type is refused; the first in the body is
reported. Constraints are checked later (`request_validation`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from isotone.errors import SerializationException
from isotone.operations.request_grammar import (
    AttributeValueShape,
    ListShape,
    Mapping,
    Scalar,
    Shape,
    StructureShape,
)
from isotone.values.shape import check_value, flag_of_text

_MODEL: Final = "com.amazonaws.dynamodb.v20120810."
_STRUCTURE: Final = "Start of structure or map found where not expected"
_FIELD: Final = "Unexpected field type"
_PAYLOAD: Final = "Unexpected value type in payload"
_TOKEN: Final = "Unexpected token received from parser"
_GENERIC: Final = "sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl"
# The service's parser has no message for it.
_NO_CLASS: Final = (
    f"class {_GENERIC} cannot be cast to class java.lang.Class "
    f"({_GENERIC} and java.lang.Class are in module java.base of loader 'bootstrap')"
)

_CLASSES: Final = {
    "String": "java.lang.String",
    "Integer": "java.lang.Integer",
    "Long": "java.lang.Long",
    "Boolean": "java.lang.Boolean",
    "Timestamp": "java.util.Date",
    "Double": "java.lang.Double",
}
_RANGES: Final = {"Integer": 2**31 - 1, "Long": 2**63 - 1}
_JSON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "String": (str,),
    "Boolean": (bool,),
    "Integer": (int, float),
    "Long": (int, float),
    "Timestamp": (int, float),
    "Double": (int, float),
}


_EMPTY: Final[dict[type, Any]] = {AttributeValueShape: None, StructureShape: {}, ListShape: []}
"""What a null in a map becomes, by the shape of the map's values; scalars become absent."""
_COLLECTIONS: Final[dict[type, type]] = {ListShape: list, Mapping: dict}


def with_types_of(document: Any, shape: Shape) -> Any:
    """The document with the types of `shape` and without nulls. Raises SerializationException for other types."""
    return _WITH_TYPES[type(shape)](document, shape)


def _scalar(document: Any, shape: Scalar) -> Any:
    if isinstance(document, dict):
        raise SerializationException(_STRUCTURE)
    if isinstance(document, list):
        raise SerializationException(f"Unrecognized collection type class {_CLASSES[shape.java]}")
    token = _token(document)
    accepted = _JSON_TYPES[shape.java]
    if isinstance(document, accepted) and (bool in accepted or not isinstance(document, bool)):
        return _clamped(document, shape.java)
    if shape.java == "Boolean" and isinstance(document, str):
        flag = flag_of_text(document)
        if flag is not None:
            return flag
        raise SerializationException(_TOKEN)
    raise SerializationException(f"{token} cannot be converted to {shape.java}")


def _token(document: Any) -> str:
    """The service's name for a JSON scalar."""
    if isinstance(document, bool):
        return "TRUE_VALUE" if document else "FALSE_VALUE"
    try:
        return {int: "NUMBER_VALUE", float: "DECIMAL_VALUE", str: "STRING_VALUE"}[type(document)]
    except KeyError:  # a value that did not come from JSON
        raise SerializationException from None


def _clamped(document: Any, java: str) -> Any:
    largest = _RANGES.get(java)
    if largest is None:
        return document
    return int(max(-largest - 1, min(largest, document)))


def _value(document: Any, _: AttributeValueShape) -> Any:
    check_value(document)
    return {} if document is None else document


def _sequence(document: Any, shape: ListShape) -> Any:
    if isinstance(document, dict):
        raise SerializationException(_STRUCTURE)
    if not isinstance(document, list):
        raise SerializationException(_FIELD)
    return [
        _element(member, shape.member)
        if member is not None or isinstance(shape.member, AttributeValueShape)
        else None
        for member in document
    ]


def _mapping(document: Any, shape: Mapping) -> Any:
    if isinstance(document, list):
        raise SerializationException(f"Unrecognized collection type {java_type(shape)}")
    if not isinstance(document, dict):
        raise SerializationException(_FIELD)
    if not all(isinstance(name, str) for name in document):  # a mapping that did not come from JSON
        raise SerializationException
    return {
        name: _element(_EMPTY[type(shape.value)] if value is None else value, shape.value)
        for name, value in document.items()
        if value is not None or type(shape.value) in _EMPTY
    }


def _element(document: Any, shape: Shape) -> Any:
    """A document in a list or a map; the service words a wrong type differently there."""
    if isinstance(shape, ListShape | Mapping) and not isinstance(
        document, _COLLECTIONS[type(shape)]
    ):
        raise SerializationException(_NO_CLASS)
    if isinstance(shape, StructureShape) and not isinstance(document, dict | list):
        raise SerializationException(_PAYLOAD)
    return with_types_of(document, shape)


def _record(document: Any, shape: StructureShape) -> Any:
    if isinstance(document, list):
        raise SerializationException(f"Unrecognized collection type {java_type(shape)}")
    if not isinstance(document, dict):
        raise SerializationException(_FIELD)
    return {
        name: value if _is_tree(name, value) else with_types_of(value, shape.members[name].shape)
        for name, value in document.items()
        if value is not None and name in shape.members
    }


def _is_tree(name: str, value: Any) -> bool:
    """Whether a member is an expression tree; only callers in this process can pass one."""
    return isinstance(value, msgspec.Struct) and name.endswith("Expression")


_WITH_TYPES: Final[dict[type, Callable[[Any, Any], Any]]] = {
    Scalar: _scalar,
    AttributeValueShape: _value,
    ListShape: _sequence,
    Mapping: _mapping,
    StructureShape: _record,
}


def java_type(shape: Shape) -> str:
    """The service's name of a shape's type: a collection, or a class."""
    name = _java_name(shape)
    return name if isinstance(shape, Mapping | ListShape) else f"class {name}"


def _java_name(shape: Shape) -> str:
    match shape:
        case Scalar():
            return _CLASSES[shape.java]
        case AttributeValueShape():
            return _MODEL + "AttributeValue"
        case StructureShape():
            return _MODEL + shape.name
        case ListShape():
            return f"java.util.List<{_java_name(shape.member)}>"
        case Mapping():
            return f"java.util.Map<java.lang.String, {_java_name(shape.value)}>"
