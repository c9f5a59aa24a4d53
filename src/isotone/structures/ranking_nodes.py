"""The nodes of a ranking's tree: their items, forms in memory and walks, and how many keys one holds.

A leaf is one item. Its keys are the names of a map, so writers of different keys do not fail each other. An
inner node is two items. COUNTS has a slot for each child, and writers add to it. SHAPE says which child has which
slot, and at which keys the ranges of children meet. Counts change with almost every write, a shape only when a
child is split or joined, so shapes are remembered.

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
from typing import Any, Final, NamedTuple

from isotone.model import Attr, Condition, Entity, Key, field

LOWEST: Final = ""
"""Before every key."""
HIGHEST: Final = "\U0010ffff"
"""After every key."""
ROOT: Final = "root"

FILL: Final = 0.75
"""How full a rebuild makes nodes, and how full two may be together to become one."""


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

    primary = Key("RANKING", ranking).sort("SHAPE", node)


class RankingCounts(Entity):
    """The number of keys below each child of an inner node."""

    ranking: Attr[str] = field()
    node: Attr[str] = field()
    shape: Attr[str] = field(description="of the RankingShape that says what the slots mean")
    era: Attr[str] = field(description="changes when a slot is given to another child")
    counts: Attr[list[int]] = field()

    primary = Key("RANKING", ranking).sort("COUNTS", node)


class RankingLeaf(Entity):
    """The keys from `low` (included) to `high` (not included)."""

    ranking: Attr[str] = field()
    node: Attr[str] = field()
    low: Attr[str] = field()
    high: Attr[str] = field()
    keys: Attr[dict[str, bool]] = field()

    primary = Key("RANKING", ranking).sort("LEAF", node)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The most that a node holds: `leaf` keys, `inner` children. Nodes are kept a quarter full or more."""

    leaf: int = 40
    inner: int = 80

    @property
    def least_keys(self) -> int:
        return max(1, self.leaf // 4)

    @property
    def least_children(self) -> int:
        return max(2, self.inner // 4)

    def most(self, level: int) -> int:
        """The most entries of a node of a level."""
        return self.inner if level else self.leaf


SIZES: Final = Sizes()


# Shapes, and paths by them


class Child(NamedTuple):
    """A child of an inner node, and its slot in the node's counts."""

    node: str
    slot: int


@dataclass(frozen=True, slots=True)
class InnerNode:
    """The shape of an inner node; `separators` has one text less than `children`."""

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
        """The fields of its item, without the ranking's name."""
        return {
            "node": self.node,
            "level": self.level,
            "era": self.era,
            "shape": self.shape,
            "children": " ".join(f"{node}:{slot}" for node, slot in self.children),
            "separators": " ".join(self.separators),
        }

    def free_slot(self) -> int:
        """A slot that no child has: one in the list of counts, or the next one after its end."""
        taken = {child.slot for child in self.children}
        return next(slot for slot in count_from() if slot not in taken)


class PathTurn(NamedTuple):
    """An inner node on a path, and the place of the child to which the path leads."""

    inner: InnerNode
    place: int


class LeafPath(NamedTuple):
    """The way from the root to the leaf whose range has a key.

    It ends early, at an inner node, where that node's shape is not known.
    """

    turns: list[PathTurn]
    end: str

    @property
    def reaches_leaf(self) -> bool:
        return bool(self.turns) and self.turns[-1].inner.level == 1


NOWHERE: Final = LeafPath([], "")
"""The path to any key where there is no tree."""


def walk(shapes: Mapping[str, InnerNode], key: str) -> LeafPath:
    """The path to a key, as far as shapes are known."""
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
    """Some of the keys of a leaf, by their places."""

    leaf: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class RankReadPlan:
    """What to read for the keys of some ranks: inner nodes by name, and pieces of leaves in order.

    `unknown` are the nodes whose shape or counts are needed first.
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
        """Add what is below a node from one rank to another, which count from the node's first key."""
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
    """How to read `count` keys from a rank on; with `reverse`, ranks count from the greatest key."""
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
    """What to add to the slots of inner nodes, except where as many keys leave as enter."""
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
    """A child in a node that is rewritten: the start of its range, its name, and the number of its keys.

    In a leaf it is a key, which starts at itself.
    """

    low: str
    node: str
    number: int


@dataclass(frozen=True, slots=True)
class NodeState:
    """A leaf or an inner node at one moment, and the condition that it is unchanged."""

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
    """The entries in parts: all but the first start at these places."""
    return [list(entries[a:b]) for a, b in pairwise([0, *places, len(entries)])]


def halves(entries: Sequence[RewrittenChild]) -> list[list[RewrittenChild]]:
    return cut(entries, [len(entries) // 2])


def cut_points(number: int, most: int, *, is_end: bool) -> list[int]:
    """Where to cut entries into nodes that hold `most`, three quarters full.

    The last part has enough entries for a node. If more entries follow, it may have too many, and waits for them.
    """
    fill = max(2, int(FILL * most))
    places = list(range(fill, number - fill + 1, fill))
    last = places[-1] if places else 0
    if is_end and number - last > most:
        places.append(last + (number - last) // 2)
    return places


def borders(level: int, parts: Sequence[Sequence[RewrittenChild]]) -> list[str]:
    """The starts of the ranges of all parts but the first, as nodes of a level."""
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


def new_name() -> str:
    """A name that no node or shape has had."""
    return secrets.token_urlsafe(6)
