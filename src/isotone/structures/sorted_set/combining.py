"""Unions, intersections and differences of sorted sets that have been read: no I/O here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from isotone.errors import UsageError
from isotone.structures.sorted_set.bounds import EXACT

Scores = Mapping[str, Decimal]
"""A set as it was read: members and their scores."""

_AGGREGATES: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "SUM": EXACT.add,
    "MIN": min,
    "MAX": max,
}


def weighed(scores: Scores, weight: Decimal) -> dict[str, Decimal]:
    """The set with each score multiplied."""
    return {member: EXACT.multiply(score, weight) for member, score in scores.items()}


def union(sets: Sequence[Scores], aggregate: str | None = None) -> dict[str, Decimal]:
    """All members of any of the sets, with the SUM, MIN or MAX of their scores."""
    join = _AGGREGATES.get((aggregate or "SUM").upper())
    if join is None:
        raise UsageError(f"aggregate is SUM, MIN or MAX, not {aggregate!r}")
    joined: dict[str, Decimal] = {}
    for scores in sets:
        for member, score in scores.items():
            joined[member] = join(joined[member], score) if member in joined else score
    return joined


def intersection(sets: Sequence[Scores], aggregate: str | None = None) -> dict[str, Decimal]:
    """The members of all of the sets."""
    shared = set(sets[0]).intersection(*sets[1:])
    return union([{member: scores[member] for member in shared} for scores in sets], aggregate)


def difference(sets: Sequence[Scores]) -> dict[str, Decimal]:
    """The members of the first set that are in none of the others."""
    others = set().union(*sets[1:])
    return {member: score for member, score in sets[0].items() if member not in others}
