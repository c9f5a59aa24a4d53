"""How much fits: a body into an item, and the messages of a group into a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from isotone.errors import UsageError

LARGEST_BODY: Final = 390_000  # bytes; an item has 400 KB, for its keys and for a reason as well
_MOST_TOGETHER: Final = 90  # messages of a group that one transaction puts
_LARGEST_TOGETHER: Final = 3_500_000  # bytes of their bodies; a transaction takes 4 MB


def checked(body: Any) -> Any:
    """The body, if it fits into an item."""
    size = _size(body)
    if size > LARGEST_BODY:
        raise UsageError(
            f"a body of {size:,} bytes is too large for an item, beside what a queue keeps of it: at most "
            f"{LARGEST_BODY:,}; put it elsewhere, and its address into the queue"
        )
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
        return len(value) if value.isascii() else len(value.encode(errors="surrogatepass"))
    if isinstance(value, bytes | bytearray):
        return len(value)
    if isinstance(value, Mapping):
        return 3 + sum(1 + _size(name) + _size(each) for name, each in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return 3 + sum(1 + _size(each) for each in value)
    return 21
