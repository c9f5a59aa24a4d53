"""Validates attribute values (error texts for empty sets, duplicates, nesting …) and converts them to normal form.

In normal form a value has exactly one known type, numbers are as `number.canonical_number` returns them, sets are
sorted and have no duplicates, and base64 has its canonical spelling. Two scalars of one type are therefore equal
exactly when their texts are. The same pass computes the item's size.

A value that is already in normal form is returned as the same object. The engine checks key attributes (not empty,
limited in size).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from isotone import limits
from isotone.errors import ValidationException
from isotone.values import shape
from isotone.values.number import NOT_A_NUMBER, canonical_number
from isotone.values.size import (
    COLLECTION_OVERHEAD,
    ELEMENT_OVERHEAD,
    number_size,
    text_size,
)
from isotone.values.types import AttributeValue, Item, sorted_members

__all__ = ["AttributeValue", "Item", "Misshapen", "canonical_item", "canonical_value", "measured"]

NO_TYPE: Final = (
    "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
)
MANY_TYPES: Final = (
    "Supplied AttributeValue has more than one datatypes set, "
    "must contain exactly one of the supported datatypes"
)
TOO_DEEP: Final = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)
EMPTY_NAME: Final = "Empty attribute name"
LONG_NAME: Final = "Attribute name is too large, must be less than 65536 bytes"
DUPLICATE_NUMBERS: Final = "Input collection contains duplicates"
_INVALID: Final = "One or more parameter values were invalid: "
NULL_NOT_TRUE: Final = _INVALID + "Null attribute value types must have the value of true"
EMPTY_SET: Final = {
    "SS": _INVALID + "An string set  may not be empty",
    "NS": _INVALID + "An number set  may not be empty",
    "BS": _INVALID + "Binary sets should not be empty",
}
NULL_MEMBER: Final = {
    "SS": _INVALID + "An string set may not have a null string as a member",
    "NS": NOT_A_NUMBER,
    "BS": _INVALID + "Binary sets may not contain null or empty values",
}

Measured = tuple[AttributeValue, int]


class Misshapen(Exception):
    """JSON that is not an attribute value; `shape` finds the message."""


def canonical_item(item: Item) -> tuple[Item, int]:
    """The item with all values in normal form, and its size in bytes.

    One pass over the item. Returns the same objects if nothing had to change.

    >>> canonical_item({"id": {"S": "a"}, "n": {"N": "+7.0"}})
    ({'id': {'S': 'a'}, 'n': {'N': '7'}}, 6)

    Raises `ValidationException`, or `SerializationException` if anything in the item does not have the shape
    of a value: DynamoDB decodes the whole request before it validates any of it.
    """
    try:
        return _measured_members(item, 1)
    except (Misshapen, ValidationException):
        shape.check_item(item)
        raise


def canonical_value(value: AttributeValue, level: int = 1) -> Measured:
    """One value in normal form, and its size in bytes without a name; raises as `canonical_item`.

    `level` is how deep the value is nested; DynamoDB limits the levels.
    """
    try:
        return measured(value, level)
    except (Misshapen, ValidationException):
        shape.check_value(value)
        raise


def _measured_members(members: Item, depth: int) -> tuple[Item, int]:
    size = 0
    changed: Item = {}
    for name, value in members.items():
        try:
            (code,) = value
            content = value[code]
            rule = _RULES[code]
        except _NOT_ONE_KNOWN_TYPE:
            canonical, value_size = _only_type(value, depth)
        else:
            if code == "S" and type(content) is str and content.isascii():
                # the most frequent type, handled without a call
                size += _name_sizes[name] + len(content)
                continue
            canonical, value_size = rule(value, content, depth)
        size += _name_sizes[name] + value_size
        if canonical is not value:
            changed[name] = canonical
    return ({**members, **changed} if changed else members), size


class _NameSizes(dict[str, int]):
    """The sizes of attribute names: `sizes[name]` measures a new name, and refuses an invalid one."""

    def __missing__(self, name: str) -> int:
        size = text_size(name)
        if not 0 < size <= limits.ATTRIBUTE_NAME_SIZE:
            raise ValidationException(LONG_NAME if name else EMPTY_NAME)
        if size <= _SHORT_NAME:
            if len(self) >= _KNOWN_NAMES:
                self.clear()
            self[name] = size
        return size


_KNOWN_NAMES: Final = 4096
_SHORT_NAME: Final = 255  # longer names are not cached
_name_sizes: Final = _NameSizes()


def measured(value: AttributeValue, depth: int) -> Measured:
    """As `canonical_value`, minus a call; raises `Misshapen` in place of the error of the shape."""
    try:
        (code,) = value
        content = value[code]
        rule = _RULES[code]
    except _NOT_ONE_KNOWN_TYPE:
        return _only_type(value, depth)
    if code == "S" and type(content) is str and content.isascii():
        return value, len(content)  # the most frequent type, handled without a call
    return rule(value, content, depth)


# Raised above for a value with two members, with an unknown member, or that is not a dict.
_NOT_ONE_KNOWN_TYPE: Final = (ValueError, LookupError, TypeError)


def _only_type(value: Any, depth: int) -> Measured:
    """The slow path, for a value that is not a dict with one known type."""
    if type(value) is not dict:
        raise _misfit(value)
    known = shape.known_members(value)
    # DynamoDB validates the content of each type before it counts the types.
    measured = [_RULES[code]({code: content}, content, depth) for code, content in known.items()]
    if not measured:
        raise ValidationException(NO_TYPE)
    if len(measured) > 1:
        raise ValidationException(MANY_TYPES)
    return measured[0]


def _misfit(content: Any) -> Exception:
    """The error for content of a wrong JSON type; null counts as absent."""
    return ValidationException(NO_TYPE) if content is None else Misshapen()


def _string(value: AttributeValue, text: Any, _depth: int) -> Measured:
    if type(text) is not str:
        raise _misfit(text)
    return value, len(text) if text.isascii() else text_size(text)


def _number(value: AttributeValue, text: Any, _depth: int) -> Measured:
    if type(text) is not str:
        raise _misfit(text)
    canonical, size = _number_of(text) if len(text) <= _SHORT else _canonical_number(text)
    return (value if canonical == text else {"N": canonical}), size


def _canonical_number(text: str) -> tuple[str, int]:
    canonical = canonical_number(text)
    return canonical, number_size(canonical)


_SHORT: Final = 40  # longer numbers are not cached
_number_of: Final = lru_cache(4096)(_canonical_number)


def _binary(value: AttributeValue, base64: Any, _depth: int) -> Measured:
    if type(base64) is not str:
        raise _misfit(base64)
    return value, len(shape.decode_base64(base64))


def _boolean(value: AttributeValue, content: Any, _depth: int) -> Measured:
    if type(content) is not bool:
        return {"BOOL": _flag_of(content)}, 1
    return value, 1


def _null(value: AttributeValue, content: Any, _depth: int) -> Measured:
    if type(content) is not bool:
        value = {"NULL": _flag_of(content)}
    if not value["NULL"]:
        raise ValidationException(NULL_NOT_TRUE)
    return value, 1


def _flag_of(content: Any) -> bool:
    """The boolean that a text spells; the service accepts "true" and "false"."""
    if type(content) is str and (flag := shape.flag_of_text(content)) is not None:
        return flag
    raise _misfit(content)


def _string_set(value: AttributeValue, members: Any, _depth: int) -> Measured:
    _check_members("SS", members)
    if len(set(members)) < len(members):
        raise _repeated(members, " ")
    return _sorted_set(value, "SS", members), text_size("".join(members))


def _number_set(value: AttributeValue, members: Any, _depth: int) -> Measured:
    _check_members("NS", members)
    canonical = [canonical_number(member) for member in members]
    if len(set(canonical)) < len(canonical):
        raise ValidationException(DUPLICATE_NUMBERS)
    return _sorted_set(value, "NS", canonical), sum(map(number_size, canonical))


def _binary_set(value: AttributeValue, members: Any, _depth: int) -> Measured:
    _check_members("BS", members)
    size = sum(len(shape.decode_base64(member)) for member in members)
    if len(set(members)) < len(members):
        raise _repeated(members, "of type BS ")  # AWS's message lacks a blank, too
    return _sorted_set(value, "BS", members), size


def _repeated(members: Sequence[str], kind: str) -> ValidationException:
    error = ValidationException(
        f"{_INVALID}Input collection [{', '.join(members)}]{kind}contains duplicates."
    )
    error.repeated_set = members
    return error


def _sorted_set(value: AttributeValue, code: str, members: list[str]) -> AttributeValue:
    """The set with its members in order: strings by UTF-8, numbers by value, binary by unsigned bytes."""
    if len(members) > 1:
        members = sorted_members(code, members)
    return value if members == value[code] else {code: members}


_ONLY_TEXTS: Final = {str}


def _check_members(code: str, members: Any) -> None:
    """Refuse anything but a list of at least one text."""
    if type(members) is not list:
        raise _misfit(members)
    if not members:
        raise ValidationException(EMPTY_SET[code])
    if {*map(type, members)} != _ONLY_TEXTS:
        first = next(member for member in members if type(member) is not str)
        raise ValidationException(NULL_MEMBER[code]) if first is None else Misshapen


def _list(value: AttributeValue, elements: Any, depth: int) -> Measured:
    if type(elements) is not list:
        raise _misfit(elements)
    _check_depth(depth)
    size = COLLECTION_OVERHEAD + ELEMENT_OVERHEAD * len(elements)
    canonical = []
    changed = False
    for element in elements:
        element_canonical, element_size = measured(element, depth + 1)
        canonical.append(element_canonical)
        size += element_size
        changed = changed or element_canonical is not element
    return ({"L": canonical} if changed else value), size


def _map(value: AttributeValue, members: Any, depth: int) -> Measured:
    if type(members) is not dict:
        raise _misfit(members)
    _check_depth(depth)
    canonical, size = _measured_members(members, depth + 1)
    size += COLLECTION_OVERHEAD + ELEMENT_OVERHEAD * len(members)
    return (value if canonical is members else {"M": canonical}), size


def _check_depth(depth: int) -> None:
    # Only scalars and sets may stand on the last of 32 levels. Lists and maps are refused there, even empty ones.
    if depth >= limits.NESTING_DEPTH:
        raise ValidationException(TOO_DEEP)


_RULES: Final[dict[str, Callable[[AttributeValue, Any, int], Measured]]] = {
    "S": _string,
    "N": _number,
    "B": _binary,
    "BOOL": _boolean,
    "NULL": _null,
    "SS": _string_set,
    "NS": _number_set,
    "BS": _binary_set,
    "L": _list,
    "M": _map,
}
