"""The nodes of a ranking's tree: items, forms in memory, paths through them, and sizes.

A leaf is one item. Its keys are the names of a map, so writers of different keys do not conflict. An inner node is two
items. COUNTS has a slot for each child, and writers add to it. SHAPE says which child has which slot, and at which keys
the ranges of the children meet. Counts change with almost every write, but a shape only when a child is split or
joined, so shapes are cached.

Nothing here reads or writes items. `RankingView.rank` adds up the rank of a key from what `ranking_tree` has read.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from itertools import count as count_from
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple

from isotone.model import Attr, Condition, Entity, Key, field

LOWEST: Final = ""
"""Sorts before every key."""
HIGHEST: Final = "\U0010ffff"
"""Sorts after every key."""
ROOT: Final = "root"

FILL: Final = 0.75
"""How full a rebuild makes nodes, and how full two neighbours together may be to be joined."""


# Items


class RankingShape(Entity):
    """The children of an inner node, and the keys at which their ranges meet."""

    ranking: Attr[str] = field()
    node: Attr[str] = field()
    shape: Attr[str] = field()
    era: Attr[str] = field()
    level: Attr[int] = field(description="1 right above leaves; 0 while the tree is rebuilt")
    children: Attr[str] = field()
    separators: Attr[str] = field()

    primary: ClassVar[Key] = Key("RANKING", ranking).sort("SHAPE", node)


class RankingCounts(Entity):
    """The number of keys below each child of an inner node."""

    ranking: Attr[str] = field()
    node: Attr[str] = field()
    shape: Attr[str] = field(description="of the RankingShape that says what the slots mean")
    era: Attr[str] = field(description="changes when a slot is given to another child")
    counts: Attr[list[int]] = field()

    primary: ClassVar[Key] = Key("RANKING", ranking).sort("COUNTS", node)


class RankingLeaf(Entity):
    """The keys from `low` (included) to `high` (not included)."""

    ranking: Attr[str] = field()
    node: Attr[str] = field()
    low: Attr[str] = field()
    high: Attr[str] = field()
    keys: Attr[dict[str, bool]] = field()

    primary: ClassVar[Key] = Key("RANKING", ranking).sort("LEAF", node)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The most keys in a leaf, and the most children of an inner node. Nodes are at least a quarter full."""

    leaf: int = 40
    inner: int = 80

    @property
    def least_keys(self) -> int:
        return max(1, self.leaf // 4)

    @property
    def least_children(self) -> int:
        return max(2, self.inner // 4)

    def most(self, level: int) -> int:
        """The maximum number of entries in a node of a level."""
        return self.inner if level else self.leaf


SIZES: Final = Sizes()


# Shapes, and paths through them


class Child(NamedTuple):
    """A child of an inner node, and its slot in the node's counts."""

    node: str
    slot: int


@dataclass(frozen=True, slots=True)
class InnerNode:
    """The shape of an inner node; there is one separator between two children."""

    node: str
    level: int
    era: str
    shape: str
    children: list[Child]
    separators: list[str]

    @classmethod
    def of(cls, item: RankingShape) -> InnerNode:
        """The shape in an item."""
        children = [child.rpartition(":") for child in item.children.split(" ")]
        return cls(
            item.node,
            item.level,
            item.era,
            item.shape,
            [Child(node, int(slot)) for node, _, slot in children],
            item.separators.split(" ") if item.separators else [],
        )

    def fields(self) -> dict[str, Any]:
        """The fields of the node's item, without the ranking's name."""
        return {
            "node": self.node,
            "level": self.level,
            "era": self.era,
            "shape": self.shape,
            "children": " ".join(f"{node}:{slot}" for node, slot in self.children),
            "separators": " ".join(self.separators),
        }

    def free_slot(self) -> int:
        """A slot that no child uses: a free one, or the next one after the end of the counts."""
        taken = {child.slot for child in self.children}
        return next(slot for slot in count_from() if slot not in taken)


class PathTurn(NamedTuple):
    """An inner node on a path, and the position of the child through which the path continues."""

    inner: InnerNode
    place: int


class LeafPath(NamedTuple):
    """The path from the root to the leaf whose range contains a key.

    It ends early at an inner node whose shape is not cached.
    """

    turns: list[PathTurn]
    end: str

    @property
    def reaches_leaf(self) -> bool:
        return bool(self.turns) and self.turns[-1].inner.level == 1


NOWHERE: Final = LeafPath([], "")
"""The path to any key if there is no tree."""


def walk(shapes: Mapping[str, InnerNode], key: str) -> LeafPath:
    """The path to a key, as far as the shapes are known."""
    turns, node, level = list[PathTurn](), ROOT, 2
    while level > 1 and (inner := shapes.get(node)) is not None:
        place = bisect_right(inner.separators, key)
        turns.append(PathTurn(inner, place))
        node, level = inner.children[place].node, inner.level
    return LeafPath(turns, node)


class RankingView(NamedTuple):
    """Parts of the tree at one moment: counts of inner nodes, and sorted keys of leaves."""

    counts: dict[str, list[int]]
    keys: dict[str, list[str]]

    def rank(self, key: str, path: LeafPath) -> int:
        """The number of smaller keys: those in the key's leaf, and the counts to the left of its path."""
        rank = bisect_left(self.keys[path.end], key)
        for inner, place in path.turns:
            counts = self.counts[inner.node]
            rank += sum([counts[slot] for _, slot in inner.children[:place]])
        return rank


# Ranges of ranks


class Piece(NamedTuple):
    """A slice of a leaf's keys."""

    leaf: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class RankReadPlan:
    """What to read to find the keys of some ranks: inner nodes by name, and slices of leaves in order.

    `unknown` are nodes whose shape or counts must be read first.
    """

    inners: dict[str, InnerNode] = dataclass_field(default_factory=dict)
    pieces: list[Piece] = dataclass_field(default_factory=list)
    unknown: list[str] = dataclass_field(default_factory=list)

    def descend(
        self,
        shapes: Mapping[str, InnerNode],
        counts: Mapping[str, list[int]],
        node: str,
        start: int,
        stop: int,
    ) -> None:
        """Add what to read below a node for ranks `start` to `stop`, counted from the node's first key."""
        inner, numbers = shapes.get(node), counts.get(node, ())
        if inner is None or any(slot >= len(numbers) for _, slot in inner.children):
            self.unknown.append(node)
            return
        self.inners[node] = inner
        for child, slot in inner.children:
            number = numbers[slot]
            if start < number and stop > 0:
                first = max(0, start)
                if inner.level == 1:
                    self.pieces.append(Piece(child, first, min(number, stop)))
                else:
                    self.descend(shapes, counts, child, first, stop)
            start, stop = start - number, stop - number


def plan_ranks(
    shapes: Mapping[str, InnerNode],
    counts: Mapping[str, list[int]],
    rank: int,
    count: int,
    *,
    reverse: bool,
) -> RankReadPlan:
    """What to read for `count` keys from a rank on; with `reverse`, ranks count from the greatest key."""
    start, stop = rank, rank + count
    if reverse:
        size = sum(counts.get(ROOT, ()))
        start, stop = size - stop, size - start
    plan = RankReadPlan()
    plan.descend(shapes, counts, ROOT, max(0, start), stop)
    return plan


# Changes


class KeyMove(NamedTuple):
    """A key that leaves (-1) or enters (+1), and the path to its leaf."""

    key: str
    by: int
    path: LeafPath


def count_changes(moves: Sequence[KeyMove]) -> list[tuple[InnerNode, dict[int, int]]]:
    """What to add to the slots of inner nodes. Slots with as many leaving as entering keys are left out."""
    by_node: dict[str, tuple[InnerNode, dict[int, int]]] = {}
    for _, by, path in moves:
        for inner, place in path.turns:
            _, slots = by_node.setdefault(inner.node, (inner, {}))
            slot = inner.children[place].slot
            slots[slot] = slots.get(slot, 0) + by
    changed = [
        (inner, {slot: by for slot, by in slots.items() if by}) for inner, slots in by_node.values()
    ]
    return [(inner, slots) for inner, slots in changed if slots]


class RewrittenChild(NamedTuple):
    """A child of a rewritten node: the start of its range, its name, and the number of keys below it.

    In a leaf it is a key, and its own start.
    """

    low: str
    node: str
    number: int


@dataclass(frozen=True, slots=True)
class NodeState:
    """A leaf or an inner node at one moment, and the condition that it has not changed since."""

    name: str
    entries: list[RewrittenChild]
    low: str
    high: str
    unchanged: Condition


def key_entries(keys: Sequence[str]) -> list[RewrittenChild]:
    return [RewrittenChild(key, key, 1) for key in keys]


def total(entries: Sequence[RewrittenChild]) -> int:
    return sum(entry.number for entry in entries)


def cut(entries: Sequence[RewrittenChild], places: Sequence[int]) -> list[list[RewrittenChild]]:
    """Split entries into parts: each part but the first starts at one of these positions."""
    return [list(entries[a:b]) for a, b in pairwise([0, *places, len(entries)])]


def halves(entries: Sequence[RewrittenChild]) -> list[list[RewrittenChild]]:
    return cut(entries, [len(entries) // 2])


def cut_points(number: int, most: int, *, is_end: bool) -> list[int]:
    """Where to cut entries into nodes that hold `most`, three quarters full.

    The last part has enough entries for a node. Unless it is the end, it may have too many, and waits for more.
    """
    fill = max(2, int(FILL * most))
    places = list(range(fill, number - fill + 1, fill))
    last = places[-1] if places else 0
    if is_end and number - last > most:
        places.append(last + (number - last) // 2)
    return places


def borders(level: int, parts: Sequence[Sequence[RewrittenChild]]) -> list[str]:
    """The starts of the ranges of all parts but the first, for nodes of a level."""
    return [
        right[0].low if level else _between(left[-1].low, right[0].low)
        for left, right in pairwise(parts)
    ]


def _between(left: str, right: str) -> str:
    """The shortest text above `left` and not above `right`."""
    same = next(
        (place for place, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), len(left)
    )
    return right[: same + 1]


def new_name() -> str:
    """A random name that no node or shape has had."""
    return secrets.token_urlsafe(6)
