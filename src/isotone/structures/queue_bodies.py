"""Bodies of queue messages: which are accepted, how large they may be, and how they are read back unchanged.

A body is stored as attribute values, not as text. So a type that the database would return as another type is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any, Final

from isotone.errors import UsageError

_MAX_BODY: Final = 390_000  # bytes; an item has 400 KB, including its keys and a reason
_MAX_TOGETHER: Final = 90  # messages of a group in one transaction
_MAX_BYTES_TOGETHER: Final = 3_500_000  # of their bodies; a transaction takes 4 MB

_INSTEAD: Final = (
    (float, "put Decimal(str(…)), or a string"),
    (tuple, "put a list"),
    (date, "put its isoformat()"),
    (set | frozenset, "put None, or a list: the database has no empty sets"),
)
_OTHERWISE: Final = (
    "put strings, ints, Decimals, bytes, bools, None, and lists, dicts and sets of them"
)


def check_body(body: Any) -> Any:
    """The body; raises `UsageError` if it is too large or would not be read back equal."""
    size = _size(body)
    if size > _MAX_BODY:
        raise UsageError(
            f"a body of {size:,} bytes is too large for an item; a queue takes {_MAX_BODY:,}: put it "
            "elsewhere, and its address into the queue"
        )
    return body


def split_bodies(bodies: Iterable[Any]) -> Iterator[list[Any]]:
    """Bodies of a group, as many at a time as fit into one transaction."""
    chunk: list[Any] = []
    total = 0
    for body in bodies:
        size = _size(body)
        if len(chunk) == _MAX_TOGETHER or total + size > _MAX_BYTES_TOGETHER:
            yield chunk
            chunk, total = [], 0
        chunk.append(body)
        total += size
    if chunk:
        yield chunk


def plain_body(body: Any) -> Any:
    """A body as it was put: whole numbers are ints again, not Decimals."""
    if isinstance(body, Decimal):
        return int(body) if body == body.to_integral_value() else body
    if isinstance(body, list | set):
        return type(body)(map(plain_body, body))
    if isinstance(body, dict):
        return {name: plain_body(value) for name, value in body.items()}
    return body


def _size(value: Any) -> int:
    """The stored size of a value, overestimated by a few bytes: a number counts as 21."""
    if isinstance(value, str):
        return _length(value)
    if isinstance(value, bytes | bytearray):
        return len(value)
    if isinstance(value, dict):
        return 3 + sum(1 + _length(name) + _size(member) for name, member in value.items())
    if isinstance(value, list | set | frozenset) and (value or isinstance(value, list)):
        return 3 + sum(1 + _size(member) for member in value)
    if value is None or isinstance(value, int | Decimal):
        return 21
    raise UsageError(
        f"{value!r} is of type {type(value).__name__}, and would not come back equal; "
        + next((advice for kind, advice in _INSTEAD if isinstance(value, kind)), _OTHERWISE)
    )


def _length(text: Any) -> int:
    if not isinstance(text, str):
        raise UsageError(
            f"the keys of a dict in a body must be strings, not {text!r}; put {str(text)!r}"
        )
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{text!r} has half of a surrogate pair and cannot be stored: {error}"
        ) from None
