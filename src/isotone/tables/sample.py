"""Reads some items of a table without reading all of it: from its start, or spread over the whole table.

A scan reads a table's collections one after the other, so its first items come from few partitions. Segments cover
different partitions: the same number of items is read from each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from isotone.tables.pace import units_of
from isotone.tables.scan import Position, ScannedPage, segments_at
from isotone.tables.steps import Call, Steps
from isotone.values.types import Item

SEGMENTS: Final = 8


@dataclass(frozen=True, slots=True)
class SampledItems:
    """Some items of a table, whether they are all of its items, and the units that the reads cost."""

    items: list[Item]
    is_whole: bool
    units: float


def sample_items(
    table: str,
    most: int | None,
    *,
    segments: int = 1,
    a_page: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Steps[SampledItems]:
    """Read up to `most` items of a table (None: all), in requests of up to `a_page`."""
    items: list[Item] = []
    units = 0.0
    waiting = deque(segments_at(table, [Position()] * segments))
    while waiting and (most is None or len(items) < most):
        segment = waiting.popleft()
        share = None if most is None else -(-(most - len(items)) // (len(waiting) + 1))
        limit = min(filter(None, (share, a_page)), default=None)
        response = yield Call("Scan", segment.request(limit, consistent=False))
        page = ScannedPage.of(response)
        items += page.items
        units += units_of(response) or 0.0
        if progress is not None:
            progress(len(items))
        if page.after is not None:
            waiting.append(segment.moved_to(page.after))
    return SampledItems(items, not waiting, units)
