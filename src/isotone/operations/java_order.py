"""The order in which a `HashMap` of Java lists texts, as the service does in some errors."""

from __future__ import annotations

from collections.abc import Iterable


def hashed(texts: Iterable[str], fewest: int = 4) -> list[str]:
    """Texts without duplicates, by the buckets of a map that has room for them: at least `fewest` buckets, at most ¾ full."""
    distinct = dict.fromkeys(texts)
    room = fewest
    while room * 3 < len(distinct) * 4:
        room *= 2
    return sorted(distinct, key=lambda text: _hash(text) & (room - 1))


def _hash(text: str) -> int:
    """The hash of a text by which a `HashMap` chooses its bucket."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value ^ (value >> 16)
