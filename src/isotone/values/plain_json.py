"""Converts a Python program's request to plain JSON types: subclasses of str and int, other mappings, bytes.

Hot paths pass a request through unchanged. Only a request that fails is converted here, and then executed once more or
refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from isotone.errors import SerializationException

_PLAIN: Final = frozenset({type(None), bool, int, float})


def plain(value: Any) -> Any:
    """The value with JSON types only; the same object if it has no others. Expression trees are left alone.

    Raises `SerializationException` for what JSON cannot represent, such as half a surrogate pair or bytes.
    """
    try:
        return _plain(value)
    except (RecursionError, UnicodeEncodeError):
        raise SerializationException from None


def _plain(value: Any) -> Any:
    if type(value) in _PLAIN or isinstance(value, msgspec.Struct):
        return value
    for kind, convert in _CONVERT:
        if isinstance(value, kind):
            return convert(value)
    raise SerializationException


def _text(value: str) -> str:
    text = str.__str__(value)  # the characters themselves, even if a subclass overrides __str__
    str.encode(text)
    return text


def _mapping(value: Mapping[Any, Any]) -> Any:
    if not all(isinstance(name, str) for name in value):
        raise SerializationException
    members = {_text(name): _plain(member) for name, member in value.items()}
    is_plain = type(value) is dict and all(
        type(name) is str and members[name] is member for name, member in value.items()
    )
    return value if is_plain else members


def _sequence(value: Any) -> Any:
    elements = [_plain(element) for element in value]
    is_plain = type(value) is list and all(map(operator.is_, elements, value))
    return value if is_plain else elements


_CONVERT: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    (str, _text),
    (int, int.__int__),
    (float, float.__float__),
    (Mapping, _mapping),
    ((list, tuple, set, frozenset), _sequence),
)
