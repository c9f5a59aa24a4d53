"""Long Query and Scan pages: read in parts, so that other requests get the engine's lock in between.

The first part is read at once; a page of ordinary items has only one. Whoever finishes the request reads the rest, in
any thread.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Final, TypeVar

from isotone.engine.layout import Bounds
from isotone.engine.pages import OrderedSource, RangePage, RecordReader
from isotone.errors import ResourceNotFoundException

T = TypeVar("T")
Parts = Generator[None, None, T]
"""A generator that reads one part per step, under the engine's lock, and returns all that was read."""

# seconds; without a pause this thread would take the lock again before any other
_PAUSE: Final = 0.0005


def first_part(parts: Parts[T]) -> T | None:
    """Read the first part, under the engine's lock; returns the whole result if there are no more parts."""
    try:
        next(parts)
    except StopIteration as end:
        found: T = end.value
        return found
    return None


def finish(source: OrderedSource, parts: Parts[T]) -> T:
    """Read all remaining parts. Raises `ResourceNotFoundException` if the table is dropped meanwhile."""
    engine = source.engine.owner
    while True:
        time.sleep(_PAUSE)
        with engine.reading_beside() as source.engine:
            if not source.is_current():
                raise ResourceNotFoundException
            try:
                next(parts)
            except StopIteration as end:
                found: T = end.value
                return found


def page_in_parts(
    reader: RecordReader, source: OrderedSource, bounds: Bounds, page: RangePage, *, reverse: bool
) -> Parts[RangePage]:
    """The rest of a page whose first part has been read."""
    while page.reached is not None:
        yield
        start = source.position(source.last_key(page.reached))
        # No variable refers to the entries, so their cursor closes before the lock is released.
        reader.read(source.records(bounds, start, reverse=reverse), page)
    return page
