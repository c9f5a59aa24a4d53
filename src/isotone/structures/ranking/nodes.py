"""The nodes of a ranking's tree: leaves with keys, and inner nodes with what lies below each child.

A leaf is an item with the keys of a range, as names of a map, so that one key is exchanged for another
by a write that fails nobody else's. An inner node is two items: COUNTS has a slot for each child, to which
writers add; SHAPE says which child has which slot and where their ranges meet. A shape changes when a
child is divided or joined, a thousand times as rarely as counts, so readers remember it, and read it
anew when the counts say that it is another one.
"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Final, NamedTuple

from isotone.model import Attr, Condition, Entity, Key, field

ROOT: Final = "root"


class RankingShape(Entity):
    """The children of an inner node, and the texts at which one child's range ends and the next begins."""

    ranking: Attr[str] = field()
    node: Attr[str] = field()
    shape: Attr[str] = field()
    era: Attr[str] = field()
    level: Attr[int] = field(
        description="1 right above leaves; 0 where the tree is being made anew"
    )
    children: Attr[str] = field()
    separators: Attr[str] = field()

    primary = Key("RANKING", ranking).sort("SHAPE", node)


class RankingCounts(Entity):
    """How many keys there are below each child of an inner node."""

    ranking: Attr[str] = field()
    node: Attr[str] = field()
    shape: Attr[str] = field(description="of the RankingShape that says what the slots mean")
    era: Attr[str] = field(description="another one whenever a slot no longer belongs to its child")
    counts: Attr[list[int]] = field()

    primary = Key("RANKING", ranking).sort("COUNTS", node)


class RankingLeaf(Entity):
    """The keys from `low` on that are below `high`."""

    ranking: Attr[str] = field()
    node: Attr[str] = field()
    low: Attr[str] = field()
    high: Attr[str] = field()
    keys: Attr[dict[str, bool]] = field()

    primary = Key("RANKING", ranking).sort("LEAF", node)

    def covers(self, key: str) -> bool:
        """Whether the key would be in this leaf."""
        return self.low <= key < self.high


class Child(NamedTuple):
    """A child of an inner node, and where in the node's counts its own is."""

    node: str
    slot: int


@dataclass(frozen=True, slots=True)
class Inner:
    """The shape of an inner node, ready for use; `separators` has one text less than `children`."""

    node: str
    level: int
    era: str
    shape: str
    children: list[Child]
    separators: list[str]

    def place(self, key: str) -> int:
        """Which child's range has the key."""
        return bisect_right(self.separators, key)

    def free_slot(self) -> int:
        """A slot that no child has: one in the list of counts, or the next one after its end."""
        taken = {child.slot for child in self.children}
        return next(slot for slot in count() if slot not in taken)


def inner_of(item: RankingShape) -> Inner:
    """The shape that an item says."""
    children = [each.rpartition(":") for each in item.children.split(" ")]
    return Inner(
        item.node,
        item.level,
        item.era,
        item.shape,
        [Child(node, int(slot)) for node, _, slot in children],
        item.separators.split(" ") if item.separators else [],
    )


def fresh() -> str:
    """A name that no node or shape has had."""
    return secrets.token_urlsafe(6)


# Nodes as those see them who divide and join


class Entry(NamedTuple):
    """What a node has in one place: a child, where its range begins, and how many keys are below it.

    In a leaf it is a key, which begins with itself.
    """

    low: str
    node: str
    number: int


@dataclass(frozen=True, slots=True)
class Node:
    """A leaf or an inner node as it is at one moment, and the condition that it is still so."""

    name: str
    entries: list[Entry]
    low: str
    high: str
    unchanged: Condition


def key_entries(keys: Sequence[str]) -> list[Entry]:
    """The entries of a leaf with the keys, which are in order."""
    return [Entry(key, key, 1) for key in keys]


def total(entries: Sequence[Entry]) -> int:
    """How many keys there are below all of them."""
    return sum(entry.number for entry in entries)


def cut(entries: Sequence[Entry], places: Sequence[int]) -> list[list[Entry]]:
    """The entries in parts, of which the second and the following ones begin at the places."""
    return [list(entries[a:b]) for a, b in pairwise([0, *places, len(entries)])]


def halves(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The entries in two parts of about the same number."""
    return cut(entries, [len(entries) // 2])


def borders(level: int, parts: Sequence[Sequence[Entry]]) -> list[str]:
    """Where each part but the first begins, as nodes of a level."""
    return [
        right[0].low if level else _between(left[-1].low, right[0].low)
        for left, right in pairwise(parts)
    ]


def _between(left: str, right: str) -> str:
    """The shortest text above `left` that is not above `right`."""
    same = next(
        (place for place, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), len(left)
    )
    return right[: same + 1]
