"""Vector search: reads a partition of the index, or takes it from the cache, and ranks its vectors.

The search is exact. Reading a partition costs as much as reading its entries. A partition that is too large for the
cache is read again by every search, in parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import nsmallest
from typing import Final, NamedTuple

from isotone.engine.engine import Engine
from isotone.engine.vector_cache import Rows
from isotone.engine.vector_index import StoredVectorIndex
from isotone.engine.vector_scores import Nearest, nearest
from isotone.values.attribute_validation import AttributeValue

# bytes of vectors read at a time from a partition that is not cached
_PART: Final = 8 * 1024 * 1024


class VectorMatch(NamedTuple):
    """One result: the index entry's record, and its score."""

    record: bytes
    score: float


def search(
    engine: Engine,
    index: StoredVectorIndex,
    partition: AttributeValue | None,
    filters: Mapping[str, str],
    query: bytes,
    most: int,
) -> list[VectorMatch]:
    """The entries nearest to a packed vector, nearest first.

    `partition` is the value of the partition attribute, `filters` the texts that filter attributes must equal. The
    caller holds `engine.reading`.
    """
    best: list[Nearest] = []
    for rows in _rows(engine, index, partition):
        chosen = _chosen(index, rows, filters) if filters else None
        best = nsmallest(most, [*best, *nearest(rows, query, most, chosen)])
    found = []
    for each in best:
        record = engine.store.get(index.tree, each.key)
        assert record is not None, "a cached vector has no entry"
        found.append(VectorMatch(record, each.score(index.schema.distance)))
    return found


def _chosen(index: StoredVectorIndex, rows: Rows, filters: Mapping[str, str]) -> list[int]:
    """The positions of the rows that pass the filters."""
    wanted = [
        (position, filters[part.name])
        for position, part in enumerate(index.schema.filters)
        if part.name in filters
    ]
    return [
        row
        for row, labels in enumerate(rows.labels)
        if all(labels[position] == text for position, text in wanted)
    ]


def _rows(
    engine: Engine, index: StoredVectorIndex, partition: AttributeValue | None
) -> Iterator[Rows]:
    """The rows of a partition: all at once if the cache has room for them, otherwise in parts."""
    bounds = index.bounds(partition)
    cached = engine.vectors.find(index.tree, bounds[0])
    if cached is not None:
        yield cached
        return
    rows, is_whole = Rows(index, bounds), True
    for key, record in engine.store.range(index.tree, *bounds):
        rows.add(key, record)
        if is_whole and engine.vectors.fits(rows):
            continue
        if is_whole or len(rows.vectors) >= _PART:
            yield rows
            rows, is_whole = Rows(index, bounds), False
    if is_whole:
        engine.vectors.keep(index.tree, rows)
    yield rows
