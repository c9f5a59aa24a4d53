"""What is spread over several partitions: where each lies, and the first of all in their order.

Something lies in the partition that a hash of its name gives. What is taken of each partition's stream is
always its beginning, so a place in every stream says where the next page begins: nothing is given twice, and
nothing is left out.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from isotone.errors import UsageError
from isotone.model.calls import Calls
from isotone.model.entity import Entity
from isotone.model.reading.patterns import Query
from isotone.model.reading.reading import Page
from isotone.model.reading.stats import Stats
from isotone.model.steps import Steps

E = TypeVar("E", bound=Entity)

AT_THE_END: Final = False
Behind = Sequence[str] | bool | None
"""Where a stream is read on: behind a mark; not at all (False); from its beginning (None)."""


@dataclass(frozen=True, slots=True)
class Marks(Generic[E]):
    """The order of what is merged: `of` gives texts that sort as it does, and `fields` what they mean.

    With the fields that are the same in a whole stream, those of a mark make up the entity's keys.
    """

    of: Callable[[E], tuple[str, ...]]
    fields: Callable[[Sequence[str]], Mapping[str, Any]]


Stream = tuple[Query[E], Mapping[str, Any]]
"""One of the queries, with the fields that are the same in all that it brings."""


@dataclass(frozen=True, slots=True)
class Merged(Generic[E]):
    """The first of all streams, and where each goes on."""

    items: list[E]
    behind: list[Behind]
    stats: Stats

    @property
    def is_over(self) -> bool:
        """Whether nothing follows."""
        return all(place is AT_THE_END for place in self.behind)


def shard_of(identity: str, shards: int) -> int:
    """In which of so many partitions something lies; raises `UsageError` for what is no text."""
    try:
        return zlib.crc32(identity.encode()) % shards
    except UnicodeEncodeError:
        raise UsageError(f"{identity!r} is no text: it has half of a surrogate pair") from None


def merged(
    calls: Calls,
    streams: Sequence[Stream[E]],
    marks: Marks[E],
    size: int,
    *,
    behind: Sequence[Behind] = (),
    descending: bool = False,
) -> Steps[Merged[E]]:
    """The first `size` of all streams, behind a place in each. Cost: `size` items of each stream."""
    behind = behind or [None] * len(streams)
    pages: list[Page[E] | None] = []
    for (query, same), place in zip(streams, behind, strict=True):
        if place is AT_THE_END:
            pages.append(None)
            continue
        cursor = None
        if isinstance(place, Sequence):
            cursor = calls.cursor_behind(query, **same, **marks.fields(place))
        pages.append((yield from calls.page(query, size=size, cursor=cursor)))
    numbered = [
        [(number, each) for each in page.items] if page else [] for number, page in enumerate(pages)
    ]
    ordered = heapq.merge(*numbered, key=lambda each: marks.of(each[1]), reverse=descending)
    taken = list(islice(ordered, size))
    after = [
        _behind(marks, place, page, [each for its, each in taken if its == number])
        for number, (place, page) in enumerate(zip(behind, pages, strict=True))
    ]
    return Merged([each for _, each in taken], after, total([page.stats for page in pages if page]))


def _behind(marks: Marks[E], place: Behind, page: Page[E] | None, taken: Sequence[E]) -> Behind:
    """Where a stream goes on, after some of a page were taken."""
    if page is None or (len(taken) == len(page.items) and page.cursor is None):
        return AT_THE_END
    return marks.of(taken[-1]) if taken else place


def total(stats: Sequence[Stats]) -> Stats:
    """What several reads cost together."""
    return Stats(
        sum(each.scanned for each in stats),
        sum(each.returned for each in stats),
        sum(each.units for each in stats),
        sum(each.requests for each in stats),
        sum(each.bytes for each in stats),
    )
