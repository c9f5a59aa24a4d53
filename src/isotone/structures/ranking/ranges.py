"""Where the keys of some ranks lie in a ranking's tree, by the counts above them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from isotone.structures.ranking.nodes import ROOT, Inner
from isotone.structures.ranking.tree import View


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


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to be read for the keys from a rank on."""

    inners: list[Inner]
    pieces: list[Piece]


def planned(
    inners: Mapping[str, Inner],
    counts: Mapping[str, list[int]],
    rank: int,
    count: int,
    reverse: bool,
) -> Plan:
    """The leaves with the keys of some ranks; raises `Unknown` for a node that it takes to know."""
    plan = Plan([], [])
    if ROOT not in inners or ROOT not in counts:
        raise Unknown(ROOT)
    start, stop = rank, rank + count
    if reverse:
        size = sum(counts[ROOT])
        start, stop = size - stop, size - start
    _choose(plan, inners, counts, ROOT, max(0, start), stop)
    return plan


def _choose(
    plan: Plan,
    inners: Mapping[str, Inner],
    counts: Mapping[str, list[int]],
    node: str,
    start: int,
    stop: int,
) -> None:
    inner, numbers = inners.get(node), counts.get(node)
    if inner is None or numbers is None:
        raise Unknown(node)
    plan.inners.append(inner)
    for child, slot in inner.children:
        if slot >= len(numbers):
            raise Unknown(node)
        number = numbers[slot]
        if start < number and stop > 0:
            if inner.level == 1:
                plan.pieces.append(Piece(child, max(0, start), min(number, stop)))
            else:
                _choose(plan, inners, counts, child, max(0, start), stop)
        start, stop = start - number, stop - number


def gathered(view: View, rank: int, count: int, reverse: bool) -> list[str] | None:
    """The keys of some ranks, where all that it takes is in the view."""
    try:
        plan = planned(view.inners, view.counts, rank, count, reverse)
    except Unknown:
        return None
    if not all(piece.leaf in view.keys for piece in plan.pieces):
        return None
    found = [key for leaf, start, stop in plan.pieces for key in view.keys[leaf][start:stop]]
    return found[::-1] if reverse else found
