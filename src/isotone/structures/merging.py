"""What is spread over several partitions: where each lies, and the first of all in their order.

Something lies in the partition that a hash of its name gives. What is taken of each partition's stream is
always its beginning, so a place in every stream says where the next page begins: nothing is given twice, and
nothing is left out.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from isotone.errors import UsageError
from isotone.model import Calls, Entity, Page, Query, Stats, Steps

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
    of_each: int | None = None,
) -> Steps[Merged[E]]:
    """The first `size` of all streams, behind a place in each. Cost: `size` items of each stream.

    Or `of_each` items of each stream, and as many of the first as these show: at least so many.
    """
    behind = behind or [None] * len(streams)
    pages: list[Page[E] | None] = []
    for (query, same), place in zip(streams, behind, strict=True):
        if place is AT_THE_END:
            pages.append(None)
            continue
        cursor = None
        if isinstance(place, Sequence):
            cursor = calls.cursor_after(query, **same, **marks.fields(place))
        pages.append((yield from calls.page(query, size=of_each or size, cursor=cursor)))
    numbered = [
        [(marks.of(each), number, each) for each in page.items] if page else []
        for number, page in enumerate(pages)
    ]
    ordered: Iterator[tuple[tuple[str, ...], int, E]] = heapq.merge(
        *numbered, key=itemgetter(0), reverse=descending
    )
    # Behind the end of a page that is not the last, there may be what comes before the others.
    ends = [marks.of(page.items[-1]) for page in pages if page and page.cursor is not None]
    if ends:
        end = max(ends) if descending else min(ends)
        ordered = takewhile(lambda each: each[0] >= end if descending else each[0] <= end, ordered)
    taken = list(islice(ordered, size))
    after = [
        _behind(marks, place, page, [each for _, its, each in taken if its == number])
        for number, (place, page) in enumerate(zip(behind, pages, strict=True))
    ]
    found = [each for _, _, each in taken]
    return Merged(found, after, total([page.stats for page in pages if page]))


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
