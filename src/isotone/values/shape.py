"""Checks that JSON has the shape of attribute values, and raises AWS's SerializationException if not.

DynamoDB decodes a whole request before it validates it. So a JSON value of the wrong kind anywhere is a
`SerializationException`, which comes before every `ValidationException`. `attribute_validation` calls this module only
after it has found an error.

Unknown members, and members that are null, count as absent.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from isotone.errors import SerializationException
from isotone.values.types import AttributeValue

_JAVA_VALUE: Final = "com.amazonaws.dynamodb.v20120810.AttributeValue"
_JAVA_NAMES: Final = {
    "String": "java.lang.String",
    "Boolean": "java.lang.Boolean",
    "Blob": "java.nio.ByteBuffer",
}
_foreign_base64: Final = re.compile(r"[^a-zA-Z0-9+/=]|=(?=[^=])").search


def check_item(members: Any) -> None:
    """Raise `SerializationException` unless this is a map whose values have the shape of values."""
    for value in _map_members(members):
        check_value(value)


def check_value(value: Any) -> None:
    """Raise `SerializationException` unless this has the shape of a value; null counts as absent.

    Uses its own stack, so that deep nesting cannot exhaust Python's. Visits values in document order, and each object
    once, because a value that a program has built may contain itself.
    """
    pending = [value]
    visited: set[int] = set()
    while pending:
        visiting = pending.pop()
        if id(visiting) not in visited:
            visited.add(id(visiting))
            parts = [part for content in _contents(visiting) for part in content]
            pending.extend(reversed(parts))


def _contents(value: Any) -> Iterator[Iterable[Any]]:
    """For each type in a value, the values nested in it."""
    if type(value) is list:
        raise SerializationException(f"Unrecognized collection type class {_JAVA_VALUE}")
    if value is None:
        return
    if type(value) is not dict:
        raise SerializationException("Unexpected value type in payload")
    for code, content in known_members(value).items():
        yield _SHAPES[code](content)


def known_members(value: AttributeValue) -> AttributeValue:
    """The members of a value that are of a known type and not null."""
    return {
        code: content for code, content in value.items() if code in _SHAPES and content is not None
    }


def decode_base64(text: str) -> bytes:
    """The bytes of a base64 text, which must be padded and in canonical spelling."""
    try:
        raw = a2b_base64(text)
    except (Base64Error, ValueError):
        raise _bad_base64(text) from None
    if b2a_base64(raw, newline=False) != text.encode():
        raise _bad_base64(text)
    return raw


def _bad_base64(text: str) -> SerializationException:
    if len(text) % 4:
        return SerializationException(
            f"Base64 encoded length is expected a multiple of 4 bytes but found: {len(text)}"
        )
    foreign = _foreign_base64(text)
    if foreign:
        return SerializationException(f"Invalid Base64 character: '{foreign[0]}'")
    # The misspelling is AWS's.
    return SerializationException("Invalid last non-pad Base64 character dectected")


_Shape = Callable[[Any], Iterable[Any]]  # checks content, and returns the values nested in it


def _scalar(name: str, accepted: type) -> _Shape:
    """Content of one Python type; the check raises AWS's message for any other type."""

    def check(content: Any) -> Iterable[Any]:
        if type(content) is not accepted:
            raise SerializationException(_mismatch(content, name))
        return ()

    return check


def _mismatch(content: Any, name: str) -> str:
    if type(content) is dict:
        return "Start of structure or map found where not expected"
    if type(content) is list:
        return f"Unrecognized collection type class {_JAVA_NAMES[name]}"
    if type(content) is str:
        return "Unexpected token received from parser"
    return f"{_token(content)} cannot be converted to {name}"


def _token(content: Any) -> str:
    """What AWS's JSON parser calls a number or a boolean."""
    if type(content) is bool:
        return "TRUE_VALUE" if content else "FALSE_VALUE"
    return "DECIMAL_VALUE" if type(content) is float else "NUMBER_VALUE"


def _blob(content: Any) -> Iterable[Any]:
    _blob_text(content)
    decode_base64(content)
    return ()


def _list_elements(content: Any) -> Iterable[Any]:
    if type(content) is dict:
        raise SerializationException("Start of structure or map found where not expected")
    if type(content) is not list:
        raise SerializationException("Unexpected field type")
    return content


def _set_of(member: _Shape) -> _Shape:
    """A list whose elements, except nulls, have this shape."""

    def check(content: Any) -> Iterable[Any]:
        for element in _list_elements(content):
            if element is not None:
                member(element)
        return ()

    return check


def _map_members(content: Any) -> Iterable[Any]:
    if type(content) is list:
        raise SerializationException(
            f"Unrecognized collection type java.util.Map<java.lang.String, {_JAVA_VALUE}>"
        )
    if type(content) is not dict:
        raise SerializationException("Unexpected field type")
    return content.values()


def flag_of_text(text: str) -> bool | None:
    """The boolean that a text spells, in any case; None if it spells neither."""
    return {"true": True, "false": False}.get(text.lower())


def _flag(content: Any) -> Iterable[Any]:
    if type(content) is not str or flag_of_text(content) is None:
        _bare_flag(content)
    return ()


_text: Final = _scalar("String", str)
_blob_text: Final = _scalar("Blob", str)
_bare_flag: Final = _scalar("Boolean", bool)

_SHAPES: Final[dict[str, _Shape]] = {
    "S": _text,
    "N": _text,
    "B": _blob,
    "BOOL": _flag,
    "NULL": _flag,
    "SS": _set_of(_text),
    "NS": _set_of(_text),
    "BS": _set_of(_blob),
    "L": _list_elements,
    "M": _map_members,
}
