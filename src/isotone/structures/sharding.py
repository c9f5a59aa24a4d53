"""Shards of structures: which partition an item is in, and pages merged from all shards.

A hash of an item's name selects its shard. A page is merged from the first items of each shard's query. A position in
each query determines the next page, so nothing is returned twice or left out.
"""

from __future__ import annotations

import heapq
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from isotone.errors import UsageError
from isotone.model import Calls, Entity, Page, Query, Stats, Steps

E = TypeVar("E", bound=Entity)

AT_END: Final = False
Position = Sequence[str] | bool | None
"""The position in a query: after these texts; at the start (None); at the end (False)."""

Stream = tuple[Query[E], Mapping[str, Any]]
"""A query, with the fields that all of its results share."""


@dataclass(frozen=True, slots=True)
class MergeOrder(Generic[E]):
    """The order of merged results: `position` returns texts that sort as they do.

    `fields` turns them back into fields; with the fields that a stream shares, these are the entity's keys.
    """

    position: Callable[[E], tuple[str, ...]]
    fields: Callable[[Sequence[str]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class MergedStreams(Generic[E]):
    """The first results of all streams, and where each stream continues."""

    items: list[E]
    positions: list[Position]
    stats: Stats

    @property
    def is_over(self) -> bool:
        """Whether no results follow."""
        return all(position is AT_END for position in self.positions)


def shard_of(identity: str, shards: int) -> int:
    """The shard of an item, by its name; raises `UsageError` for half of a surrogate pair."""
    try:
        return zlib.crc32(identity.encode()) % shards
    except UnicodeEncodeError:
        raise UsageError(
            f"{identity!r} cannot be encoded: it has half of a surrogate pair"
        ) from None


def merged(
    calls: Calls,
    streams: Sequence[Stream[E]],
    order: MergeOrder[E],
    size: int,
    *,
    positions: Sequence[Position] = (),
    descending: bool = False,
    of_each: int | None = None,
) -> Steps[MergedStreams[E]]:
    """The first `size` results of all streams, after a position in each. Cost: `size` items of each.

    With `of_each`, it reads that many items of each stream, and returns at least that many results.
    """
    positions = positions or [None] * len(streams)
    pages: list[Page[E] | None] = []
    for (query, shared), position in zip(streams, positions, strict=True):
        if position is AT_END:
            pages.append(None)
            continue
        cursor = None
        if isinstance(position, Sequence):
            cursor = calls.cursor_after(query, **shared, **order.fields(position))
        pages.append((yield from calls.page(query, size=of_each or size, cursor=cursor)))
    numbered = [
        [(order.position(item), number, item) for item in page.items] if page else []
        for number, page in enumerate(pages)
    ]
    ordered: Iterator[tuple[tuple[str, ...], int, E]] = heapq.merge(
        *numbered, key=itemgetter(0), reverse=descending
    )
    # Unless a page is the last, unread items of its stream may sort before those of other streams.
    ends = [order.position(page.items[-1]) for page in pages if page and page.cursor is not None]
    if ends:
        end = max(ends) if descending else min(ends)
        ordered = takewhile(lambda row: row[0] >= end if descending else row[0] <= end, ordered)
    taken = list(islice(ordered, size))
    counts = Counter(number for _, number, _ in taken)
    following = [
        _following(order, position, page, counts[number])
        for number, (position, page) in enumerate(zip(positions, pages, strict=True))
    ]
    stats = sum((page.stats for page in pages if page), Stats())
    return MergedStreams([item for _, _, item in taken], following, stats)


def _following(
    order: MergeOrder[E], position: Position, page: Page[E] | None, taken: int
) -> Position:
    """The position in a stream after `taken` items of its page."""
    if page is None or (taken == len(page.items) and page.cursor is None):
        return AT_END
    return order.position(page.items[taken - 1]) if taken else position
