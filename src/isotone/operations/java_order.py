"""The iteration order of Java's `HashMap`, in which the service lists names in some error messages."""

from __future__ import annotations

from collections.abc import Iterable


def hashed(texts: Iterable[str], fewest: int = 4) -> list[str]:
    """Texts without duplicates, ordered by bucket. The map has at least `fewest` buckets, and is at most ¾ full."""
    distinct = dict.fromkeys(texts)
    room = fewest
    while room * 3 < len(distinct) * 4:
        room *= 2
    return sorted(distinct, key=lambda text: _hash(text) & (room - 1))


def _hash(text: str) -> int:
    """The hash by which a `HashMap` chooses a text's bucket."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value ^ (value >> 16)
