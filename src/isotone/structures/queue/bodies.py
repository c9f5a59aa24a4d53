"""Bodies of messages: each comes back equal to what was put, and fits into an item, some into a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any, Final

from isotone.errors import UsageError

LARGEST_BODY: Final = 390_000  # bytes; an item has 400 KB, for its keys and for a reason as well
_MOST_TOGETHER: Final = 90  # messages of a group that one transaction puts
_LARGEST_TOGETHER: Final = 3_500_000  # bytes of their bodies; a transaction takes 4 MB

_INSTEAD: Final = (
    (float, "put Decimal(str(…)), or a text"),
    (tuple, "put a list"),
    (date, "put its isoformat()"),
    (set | frozenset, "put None, or a list: the database has no empty sets"),
)
_OTHERWISE: Final = (
    "put texts, ints, Decimals, bytes, bools, None, and lists, dicts and sets of them"
)


def checked(body: Any) -> Any:
    """The body, if it fits into an item, and comes back as it is."""
    size = _size(body)
    if size > LARGEST_BODY:
        raise UsageError(
            f"a body of {size:,} bytes is too large for an item, beside what a queue keeps of it: at most "
            f"{LARGEST_BODY:,}; put it elsewhere, and its address into the queue"
        )
    return body


def natural(body: Any) -> Any:
    """What was put, as Python has it: a number without decimals is an int, and not a Decimal."""
    if isinstance(body, Decimal):
        return int(body) if body == body.to_integral_value() else body
    if isinstance(body, list | set):
        return type(body)(map(natural, body))
    if isinstance(body, dict):
        return {name: natural(each) for name, each in body.items()}
    return body


def portions(bodies: Iterable[Any]) -> Iterator[list[Any]]:
    """As many messages of a group at a time as one transaction puts."""
    portion: list[Any] = []
    total = 0
    for each in bodies:
        size = _size(each)
        if len(portion) == _MOST_TOGETHER or total + size > _LARGEST_TOGETHER:
            yield portion
            portion, total = [], 0
        portion.append(each)
        total += size
    if portion:
        yield portion


def _size(value: Any) -> int:
    """The bytes that the database counts for a value, or a few more: numbers have up to 21."""
    if isinstance(value, str):
        return _length(value)
    if isinstance(value, bytes | bytearray):
        return len(value)
    if isinstance(value, dict):
        return 3 + sum(1 + _length(name) + _size(each) for name, each in value.items())
    if isinstance(value, list | set | frozenset) and (value or isinstance(value, list)):
        return 3 + sum(1 + _size(each) for each in value)
    if value is None or isinstance(value, int | Decimal):
        return 21
    raise UsageError(
        f"{value!r} is of type {type(value).__name__}, and would not come back as it was put; "
        + next((said for kind, said in _INSTEAD if isinstance(value, kind)), _OTHERWISE)
    )


def _length(text: Any) -> int:
    if not isinstance(text, str):
        raise UsageError(f"a dict in a body has texts as its keys, not {text!r}; put {str(text)!r}")
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise UsageError(f"{text!r} has half a character, and cannot be kept: {error}") from None
