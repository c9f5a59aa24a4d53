"""Finds the fault of one attribute value that the service reports first: decoding, names, nesting, then empty sets.

`attribute_validation` checks in one pass whether a value is valid, and most values are. After a refusal these functions
find the fault that the service reports. Each layer checks a whole value before the next layer begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from isotone import limits
from isotone.errors import ValidationException
from isotone.values import attribute_validation as validation
from isotone.values.number import canonical_number
from isotone.values.shape import flag_of_text, known_members

DECODED: Final = 63
"""How many levels of nested values the service decodes."""


def check_decoded(value: Any, check_number: Callable[[str], object] = canonical_number) -> None:
    """Decoding faults: a value without a type or with two, an invalid number, a false NULL.

    Values nested deeper than `DECODED` levels are not decoded. All values already passed `shape.check_value`.
    """
    for level, each in _levels(value):
        if level > DECODED:
            return
        known = known_members(each)
        for code, content in known.items():
            if code == "N":
                check_number(content)
            elif code == "NS":
                for member in content:
                    if member is not None:
                        check_number(member)
            elif code == "NULL":
                _check_null(content)
        if not known:
            raise ValidationException(validation.NO_TYPE)
        if len(known) > 1:
            raise ValidationException(validation.MANY_TYPES)


def check_names(members: Mapping[str, Any], *, nested: bool = True) -> None:
    """Refuse an empty attribute name; with `nested`, also in maps."""
    if "" in members:
        raise ValidationException(validation.EMPTY_NAME)
    if nested:
        for value in members.values():
            for each in _inside(value):
                if "" in (each.get("M") or ()):
                    raise ValidationException(validation.EMPTY_NAME)


def check_nesting(value: Any) -> None:
    """Refuse a list or a map on the last level."""
    for level, each in _levels(value):
        if level >= limits.NESTING_DEPTH and not known_members(each).keys().isdisjoint("LM"):
            raise ValidationException(validation.TOO_DEEP)


def check_sets(members: Mapping[str, Any]) -> None:
    """Refuse an empty set."""
    for value in members.values():
        for each in _inside(value):
            for code, message in validation.EMPTY_SET.items():
                if each.get(code) == []:
                    raise ValidationException(message)


def has_several_types(value: Any) -> bool:
    """Whether a value, or one nested in it, has several types."""
    return any(len(known_members(each)) > 1 for each in _inside(value))


def _check_null(flag: Any) -> None:
    if flag is False or (isinstance(flag, str) and flag_of_text(flag) is False):
        raise ValidationException(validation.NULL_NOT_TRUE)


def _inside(value: Any) -> Iterator[Any]:
    """A value and all values nested in it, in document order."""
    return (each for _, each in _levels(value))


def _levels(value: Any) -> Iterator[tuple[int, Any]]:
    """The same, with the level of each. Uses its own stack, so that deep nesting cannot exhaust Python's."""
    pending = [(1, value)]
    while pending:
        level, each = pending.pop()
        each = {} if each is None else each
        yield level, each
        known = known_members(each)
        parts = [*known.get("L", ()), *known.get("M", {}).values()]
        pending += [(level + 1, part) for part in reversed(parts)]
