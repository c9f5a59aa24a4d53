"""Vector search scores (cosine, Euclidean, dot product): finds the nearest vectors exactly, with or without NumPy.

A score is computed from the 32-bit floats in double precision, and is the same with and without NumPy: NumPy only finds
the rows that can be among the nearest, with a bound on its rounding errors, and `score` decides between them. Equal
scores are ordered by key. As on the service, scores are capped at the largest 32-bit float, and the cosine distance of
a zero vector to any other is 1.
"""

from __future__ import annotations

import math
from array import array
from functools import cache
from heapq import nsmallest
from typing import Any, Final, NamedTuple

from isotone.engine.table_schema import Distance
from isotone.engine.vector_cache import Rows
from isotone.engine.vector_index import Floats, dot

_LARGEST: Final = 3.4028234663852886e38  # the largest 32-bit float
_SINGLE_ERROR: Final = 1.2e-7  # twice the rounding error of one 32-bit operation
_DOUBLE_ERROR: Final = 2.3e-16
_SAFE: Final = (1e-15, 1e15)  # vector lengths whose products neither overflow nor underflow 32 bits
_BLOCK: Final = 4096  # rows converted to double precision at a time


class Nearest(NamedTuple):
    """A vector among the nearest. `rank` sorts nearest first: the score, or its negative for a dot product."""

    rank: float
    key: bytes

    def score(self, distance: Distance) -> float:
        return -self.rank if distance == "DOT_PRODUCT" else self.rank


def rank(distance: Distance, query: Floats, vector: Floats, square: float | None = None) -> float:
    """How far a vector is from the query; `square` is its squared length, if known."""
    if distance == "EUCLIDEAN":
        return min(math.dist(query, vector), _LARGEST)
    if distance == "DOT_PRODUCT":
        return -max(-_LARGEST, min(dot(query, vector), _LARGEST))
    if query == vector and any(query):
        return 0.0
    length = math.sqrt(dot(query, query) * (dot(vector, vector) if square is None else square))
    if not length:
        return 1.0
    return min(max(1.0 - dot(query, vector) / length, 0.0), 2.0)


def nearest(rows: Rows, query: bytes, most: int, chosen: list[int] | None = None) -> list[Nearest]:
    """The nearest rows, nearest first. `chosen` are the positions to consider; None for all."""
    numpy = numpy_if_installed()
    if numpy is None or not rows.keys:
        return _nearest_by_python(rows, query, most, chosen)
    positions = _candidates(numpy, rows, query, most, chosen)
    distance, floats = rows.index.schema.distance, rows.index.floats
    wanted = floats(query)
    ranks: dict[bytes, float] = {}  # many candidates often include equal vectors
    for position in positions:
        vector = rows.vector(position)
        if vector not in ranks:
            ranks[vector] = rank(distance, wanted, floats(vector))
    return sorted(
        Nearest(ranks[rows.vector(position)], rows.keys[position]) for position in positions
    )[:most]


def _nearest_by_python(
    rows: Rows, query: bytes, most: int, chosen: list[int] | None
) -> list[Nearest]:
    distance, floats = rows.index.schema.distance, rows.index.floats
    wanted, keys = floats(query), rows.keys
    if distance == "COSINE" and len(rows.squares) < len(rows):
        rows.squares = array("d", [dot(each, each) for each in map(floats, rows.packed())])
    squares = rows.squares if distance == "COSINE" else None
    found = []
    for position in range(len(rows)) if chosen is None else chosen:
        square = None if squares is None else squares[position]
        found.append(
            Nearest(rank(distance, wanted, floats(rows.vector(position)), square), keys[position])
        )
    return nsmallest(most, found)


# With NumPy


@cache
def numpy_if_installed() -> Any:
    """The NumPy module, or None. The first search imports it, because that takes a tenth of a second."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _candidates(
    numpy: Any, rows: Rows, query: bytes, most: int, chosen: list[int] | None
) -> list[int]:
    """The positions of the rows that can be among the nearest: few more than `most`, if vectors differ."""
    matrix = numpy.frombuffer(rows.vectors, "<f4").reshape(len(rows), -1)
    if len(rows.squares) < len(rows):
        rows.squares = _squares(numpy, matrix)
    squares = numpy.frombuffer(rows.squares, "f8")
    positions = numpy.arange(len(rows))
    if chosen is not None:
        positions = numpy.array(chosen, dtype=positions.dtype)
        matrix, squares = matrix[positions], squares[positions]
    wanted = numpy.frombuffer(query, "<f4")
    for rough in (_rough_ranks, _close_ranks):
        if len(positions) <= most:
            break
        ranks, errors = rough(numpy, rows.index.schema.distance, matrix, squares, wanted)
        limit = numpy.partition(ranks + errors, most - 1)[most - 1]
        kept = numpy.flatnonzero(ranks - errors <= limit)
        positions, matrix, squares = positions[kept], matrix[kept], squares[kept]
    found: list[int] = positions.tolist()
    return found


def _squares(numpy: Any, matrix: Any) -> array[float]:
    squares = numpy.empty(len(matrix))
    for first in range(0, len(matrix), _BLOCK):
        block = matrix[first : first + _BLOCK].astype("f8")
        squares[first : first + _BLOCK] = (block * block).sum(axis=1)
    return array("d", squares.tobytes())


def _rough_ranks(
    numpy: Any, distance: Distance, matrix: Any, squares: Any, query: Any
) -> tuple[Any, Any]:
    """Ranks in 32 bits (squared for the Euclidean distance), and bounds on their errors."""
    lengths = numpy.sqrt(squares)
    length = math.sqrt(dot(query.tolist(), query.tolist()))
    low, high = _SAFE
    extremes = (length, lengths.max(), lengths[lengths > 0].min(initial=high))
    if not all(each == 0 or low <= each <= high for each in extremes):
        return _close_ranks(numpy, distance, matrix, squares, query)
    products = (matrix @ query).astype("f8")
    error = _SINGLE_ERROR * (len(query) + 8)
    errors = error * length * lengths
    if distance == "DOT_PRODUCT":
        return -products, errors
    if distance == "EUCLIDEAN":
        sums = squares + length * length
        return sums - 2 * products, 2 * errors + 1e-12 * sums
    cosines = numpy.zeros(len(products))
    numpy.divide(products, length * lengths, out=cosines, where=length * lengths > 0)
    return 1 - cosines, numpy.full(len(products), error)


def _close_ranks(
    numpy: Any, distance: Distance, matrix: Any, squares: Any, query: Any
) -> tuple[Any, Any]:
    """Ranks in 64 bits, which never overflow, and bounds on their errors."""
    query = query.astype("f8")
    length, lengths = math.sqrt(float((query * query).sum())), numpy.sqrt(squares)
    sums = numpy.empty(len(matrix))
    for first in range(0, len(matrix), _BLOCK):
        block = matrix[first : first + _BLOCK].astype("f8")
        if distance == "EUCLIDEAN":
            block -= query
            sums[first : first + _BLOCK] = (block * block).sum(axis=1)
        else:
            sums[first : first + _BLOCK] = block @ query
    error = _DOUBLE_ERROR * 4 * (len(query) + 8)
    if distance == "EUCLIDEAN":
        distances = numpy.sqrt(sums)
        return numpy.minimum(distances, _LARGEST), error * distances
    if distance == "DOT_PRODUCT":
        return -numpy.clip(sums, -_LARGEST, _LARGEST), error * length * lengths
    cosines = numpy.zeros(len(sums))
    numpy.divide(sums, length * lengths, out=cosines, where=length * lengths > 0)
    return 1 - cosines, numpy.full(len(sums), error)
