"""Reads of many records: in parts, between which other requests get the engine's lock.

The first part is read at once; a page of ordinary items has no other. Whoever finishes the request reads the rest, in any
thread.
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
"""Reads one part each time that it is advanced, under the engine's lock; returns what has been read."""

_PAUSE: Final = 0.0005  # seconds; without it the thread would have the lock again before any other


def first_part(parts: Parts[T]) -> T | None:
    """Read the first part, under the engine's lock; returns what it found if there is no other."""
    try:
        next(parts)
    except StopIteration as end:
        found: T = end.value
        return found
    return None


def finish(source: OrderedSource, parts: Parts[T]) -> T:
    """Read all parts that are left. Raises `ResourceNotFoundException` if the table is dropped meanwhile."""
    engine = source.engine
    while True:
        time.sleep(_PAUSE)
        with engine.reading:
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
        # No variable refers to the entries, so their cursor is closed before the lock is released.
        reader.read(source.records(bounds, start, reverse=reverse), page)
    return page
