"""Compares two tables that are in the same order, in one pass that holds a page of each.

Both must be in the order of a database in this process (`Database.frozen`). Items of other engines must first be copied
into such a database, or else be compared by buckets (`comparing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from isotone.moving.comparing import KeyDifference
from isotone.values.types import Item

OrderedItem = tuple[bytes, bytes, int]
"""The bytes that an item sorts by, its DynamoDB JSON, and its size."""

_decode: Final = msgspec.json.Decoder(dict[str, dict]).decode  # type: ignore[type-arg] # plain dicts, unchecked


def ordered_differences(
    source: Iterator[OrderedItem], target: Iterator[OrderedItem], key_names: Sequence[str]
) -> Iterator[KeyDifference]:
    """The differing items, in order. Only items whose bytes differ are decoded."""
    for mine, theirs in _unequal(source, target):
        before = None if mine is None else _decode(mine)
        after = None if theirs is None else _decode(theirs)
        item: Item = before or after or {}
        found = KeyDifference({name: item[name] for name in key_names}, before, after)
        if before is None or after is None or found.attributes:
            yield found


def _unequal(
    source: Iterator[OrderedItem], target: Iterator[OrderedItem]
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """The JSON of both sides wherever it differs; None for a missing item."""
    mine, theirs = next(source, None), next(target, None)
    while mine is not None or theirs is not None:
        if theirs is None or (mine is not None and mine[0] < theirs[0]):
            assert mine is not None
            yield mine[1], None
            mine = next(source, None)
        elif mine is None or theirs[0] < mine[0]:
            yield None, theirs[1]
            theirs = next(target, None)
        else:
            if mine[1] != theirs[1]:
                yield mine[1], theirs[1]
            mine, theirs = next(source, None), next(target, None)
