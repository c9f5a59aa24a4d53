"""Where the keys of some ranks lie in a ranking's tree, by the counts above them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from isotone.structures.ranking.nodes import ROOT, Inner


class Unknown(Exception):
    """A node whose shape or counts it takes to go on."""

    def __init__(self, node: str) -> None:
        super().__init__(node)
        self.node = node


class Piece(NamedTuple):
    """Some of the keys of a leaf, by their places in it."""

    leaf: str
    start: int
    stop: int


class Plan(NamedTuple):
    """What has to be read for the keys of some ranks, in their order."""

    inners: list[Inner]
    pieces: list[Piece]


def planned(
    known: Mapping[str, Inner],
    counts: Mapping[str, list[int]],
    rank: int,
    count: int,
    *,
    reverse: bool,
) -> Plan:
    """How to read so many keys from a rank on; raises `Unknown` for a node that it takes to know."""
    if ROOT not in counts:
        raise Unknown(ROOT)
    start, stop = rank, rank + count
    if reverse:
        size = sum(counts[ROOT])
        start, stop = size - stop, size - start
    plan = Plan([], [])
    for part in _chosen(known, counts, ROOT, max(0, start), stop):
        if isinstance(part, Inner):
            plan.inners.append(part)
        else:
            plan.pieces.append(part)
    return plan


def _chosen(
    known: Mapping[str, Inner], counts: Mapping[str, list[int]], node: str, start: int, stop: int
) -> Iterator[Inner | Piece]:
    inner, numbers = known.get(node), counts.get(node)
    if inner is None or numbers is None:
        raise Unknown(node)
    yield inner
    for child, slot in inner.children:
        if slot >= len(numbers):
            raise Unknown(node)
        number = numbers[slot]
        if start < number and stop > 0:
            if inner.level == 1:
                yield Piece(child, max(0, start), min(number, stop))
            else:
                yield from _chosen(known, counts, child, max(0, start), stop)
        start, stop = start - number, stop - number
