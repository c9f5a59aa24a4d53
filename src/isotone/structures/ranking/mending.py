"""How a ranking's tree keeps its form: full nodes are divided, empty ones joined to their neighbour.

Each of these is a transaction of its own that changes no rank. It is made for what was seen: the shape of
the node above (whoever gives it another one first wins), and the keys or the counts that change their
place. What it did not see, writers may change meanwhile: other leaves, and the counts of other children.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from isotone.errors import Contended, TransactionFailed
from isotone.model.declaring.conditions import Condition
from isotone.model.steps import Steps
from isotone.model.writing.transactions import Transaction
from isotone.structures.ranking.keys import HIGHEST, LOWEST
from isotone.structures.ranking.nodes import (
    ROOT,
    Child,
    Inner,
    RankingCounts,
    RankingLeaf,
    RankingShape,
    fresh,
    packed,
    separator,
)
from isotone.structures.ranking.tree import Learnt, Path, Tree


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much a node holds: `leaf` keys, `inner` children; at least a quarter of it, but for the last."""

    leaf: int = 40
    inner: int = 80

    @property
    def least_keys(self) -> int:
        return max(1, self.leaf // 4)

    @property
    def least_children(self) -> int:
        return max(2, self.inner // 4)


class Branch(NamedTuple):
    """What is below an inner node: children with their counts, and a separator between each two."""

    children: list[tuple[str, int]]
    separators: list[str]

    @property
    def total(self) -> int:
        return sum(count for _, count in self.children)

    def halves(self) -> tuple[Branch, str, Branch]:
        """Two of about the same number of children, and what separates them."""
        middle = len(self.children) // 2
        return (
            Branch(self.children[:middle], self.separators[: middle - 1]),
            self.separators[middle - 1],
            Branch(self.children[middle:], self.separators[middle:]),
        )


SIZES: Final = Sizes()
_ROOM: Final = 0.75  # of a node may be full when two are joined into it


class Mending:
    """Changes of the form of one tree. Each says whether it was made; others may have been faster."""

    def __init__(self, tree: Tree, sizes: Sizes = SIZES) -> None:
        self._tree = tree
        self.sizes = sizes

    # What is to be done

    def plant(self) -> Steps[bool]:
        """Make a tree with one leaf, where there is none."""
        together, leaf = self._tree.calls.transaction(), fresh()
        together.create(self.leaf_item(leaf, LOWEST, HIGHEST, ()))
        self.write(together, ROOT, 1, Branch([(leaf, 0)], []))
        return (yield from self._made(together, ()))

    def mend(self, path: Path, *, crowded: bool, sparse: bool) -> Steps[bool]:
        """Do the first thing that has to be done on the way to a leaf, if anything has to.

        `crowded` is a leaf that has to be divided, `sparse` one to join to its neighbour. What it returns
        is whether the tree may have another form now.
        """
        inners = path.inners
        if inners[0].level > 1 and len(inners[0].children) == 1:
            return (yield from self._shrink())
        for (above, below), place in zip(pairwise(inners), path.places, strict=False):
            if len(below.children) < self.sizes.least_children:
                return (yield from self._regroup(above, place, join=True))
        if crowded:
            return (yield from self._make_room(path))
        if sparse and len(inners[-1].children) > 1:
            return (yield from self._regroup(inners[-1], path.places[-1], join=True))
        return False

    def _make_room(self, path: Path) -> Steps[bool]:
        """Divide the leaf, or first the uppermost of the full nodes right above it."""
        depth = len(path.inners)
        while depth and len(path.inners[depth - 1].children) >= self.sizes.inner:
            depth -= 1
        if depth == 0:
            return (yield from self._grow())
        return (
            yield from self._regroup(path.inners[depth - 1], path.places[depth - 1], join=False)
        )

    def _regroup(self, above: Inner, place: int, *, join: bool) -> Steps[bool]:
        """Divide a child in two, or make one or two of it and its neighbour."""
        first = min(place, len(above.children) - 2) if join else place
        children = above.children[first : first + 1 + join]
        together = self._tree.calls.transaction()
        make = self._regroup_leaves if above.level == 1 else self._regroup_inners
        parts = yield from make(together, above, first, [child.node for child in children])
        if parts is None:
            self._tree.forget([above])
            return True
        self._replace_children(together, above, first, len(children), parts)
        return (yield from self._made(together, [above]))

    # Leaves

    def _regroup_leaves(
        self, together: Transaction, above: Inner, first: int, nodes: Sequence[str]
    ) -> Steps[Branch | None]:
        leaves: list[RankingLeaf] = []
        for node in nodes:
            leaf = yield from self._tree.leaf(node)
            if leaf is None or (leaves and leaf.low != leaves[-1].high):
                return None
            leaves.append(leaf)
        keys = sorted(key for leaf in leaves for key in leaf.keys)
        if len(leaves) == 1 and len(keys) < self.sizes.leaf:
            return None
        parts = _parts(keys, join=len(leaves) > 1, limit=self.sizes.leaf)
        between = [separator(left[-1], right[0]) for left, right in pairwise(parts)]
        bounds = [leaves[0].low, *between, leaves[-1].high]
        names = [*nodes, fresh()][: len(parts)]
        for name, keys, (low, high) in zip(names, parts, pairwise(bounds), strict=True):
            item = self.leaf_item(name, low, high, keys)
            seen = next((leaf for leaf in leaves if leaf.node == name), None)
            if seen is None:
                together.create(item)
            else:
                together.put(item, when=_as_seen(seen))
        for leaf in leaves[len(parts) :]:
            together.delete(self._tree.leaves, when=_as_seen(leaf), **self._tree.key(leaf.node))
        counted = [(name, len(keys)) for name, keys in zip(names, parts, strict=True)]
        return Branch(counted, between)

    def leaf_item(self, node: str, low: str, high: str, keys: Sequence[str]) -> RankingLeaf:
        """The item of a leaf."""
        held = dict.fromkeys(keys, True)
        return self._tree.leaves(**self._tree.key(node), low=low, high=high, keys=held)

    # Inner nodes

    def _regroup_inners(
        self, together: Transaction, above: Inner, first: int, nodes: Sequence[str]
    ) -> Steps[Branch | None]:
        learnt: dict[str, Learnt] = {}
        for node in nodes:
            found = yield from self._tree.learn(node)
            if found is None:
                return None
            learnt[node] = found
        whole = _joined(list(learnt.values()), above.separators[first:])
        parts, between = [whole], []
        if len(nodes) == 1 and len(whole.children) < self.sizes.inner:
            return None
        if len(nodes) == 1 or len(whole.children) > _ROOM * self.sizes.inner:
            left, separation, right = whole.halves()
            parts, between = [left, right], [separation]
        names = [*nodes, fresh()][: len(parts)]
        for name, part in zip(names, parts, strict=True):
            self.write(together, name, above.level - 1, part, was=learnt.get(name))
        for node in nodes[len(parts) :]:
            self._remove(together, learnt[node])
        return Branch(
            [(name, part.total) for name, part in zip(names, parts, strict=True)], between
        )

    def _grow(self) -> Steps[bool]:
        """Put two nodes between a full root and its children."""
        root = yield from self._tree.learn(ROOT)
        if root is None or len(root.inner.children) < self.sizes.inner:
            return True
        left, separation, right = _joined([root], ()).halves()
        together, names = self._tree.calls.transaction(), (fresh(), fresh())
        for name, half in zip(names, (left, right), strict=True):
            self.write(together, name, root.inner.level, half)
        two = Branch([(names[0], left.total), (names[1], right.total)], [separation])
        self.write(together, ROOT, root.inner.level + 1, two, was=root)
        return (yield from self._made(together, [root.inner]))

    def _shrink(self) -> Steps[bool]:
        """Put the children of a root's only child in its place."""
        root = yield from self._tree.learn(ROOT)
        if root is None or root.inner.level == 1 or len(root.inner.children) > 1:
            return True
        only = yield from self._tree.learn(root.inner.children[0].node)
        if only is None:
            self._tree.forget()
            return True
        together = self._tree.calls.transaction()
        self.write(together, ROOT, only.inner.level, _joined([only], ()), was=root)
        self._remove(together, only)
        return (yield from self._made(together, [root.inner]))

    def write(
        self,
        together: Transaction,
        node: str,
        level: int,
        branch: Branch,
        *,
        was: Learnt | None = None,
    ) -> None:
        """A whole inner node, which is new, or still as it was learnt."""
        shape, counts = self.inner_items(node, level, branch)
        if was is None:
            together.create(shape)
            together.create(counts)
        else:
            together.put(shape)
            together.put(counts, when=_as_learnt(was))

    def inner_items(
        self, node: str, level: int, branch: Branch
    ) -> tuple[RankingShape, RankingCounts]:
        """The two items of an inner node."""
        tree, names = self._tree, {"shape": fresh(), "era": fresh()}
        children = [Child(child, slot) for slot, (child, _) in enumerate(branch.children)]
        counts = [count for _, count in branch.children]
        separators = " ".join(branch.separators)
        shape = tree.shapes(
            **tree.key(node), **names, level=level, children=packed(children), separators=separators
        )
        return shape, tree.counts(**tree.key(node), **names, counts=counts)

    def _remove(self, together: Transaction, learnt: Learnt) -> None:
        key = self._tree.key(learnt.inner.node)
        together.delete(self._tree.counts, when=_as_learnt(learnt), **key)
        together.delete(self._tree.shapes, **key)

    # The node above

    def _replace_children(
        self, together: Transaction, above: Inner, first: int, number: int, parts: Branch
    ) -> None:
        """Let an inner node have other children in the place of some; its other slots stay as they are."""
        old = above.children[first : first + number]
        slots = [*(child.slot for child in old), above.free_slot()][: len(parts.children)]
        children = [
            Child(node, slot) for (node, _), slot in zip(parts.children, slots, strict=True)
        ]
        counts = dict(zip(slots, (count for _, count in parts.children), strict=True))
        counts |= {child.slot: 0 for child in old[len(parts.children) :]}
        tree, shape = self._tree, fresh()
        together.update(
            tree.counts,
            RankingCounts.shape.set(shape),
            *(RankingCounts.counts[slot].set(count) for slot, count in counts.items()),
            when=RankingCounts.shape == above.shape,
            **tree.key(above.node),
        )
        separators = [*above.separators]
        separators[first : first + number - 1] = parts.separators
        together.put(
            tree.shapes(
                **tree.key(above.node),
                level=above.level,
                era=above.era,
                shape=shape,
                children=packed(
                    [*above.children[:first], *children, *above.children[first + number :]]
                ),
                separators=" ".join(separators),
            )
        )

    def _made(self, together: Transaction, above: Sequence[Inner]) -> Steps[bool]:
        """Commit; whoever comes second finds another tree."""
        self._tree.forget(above)
        try:
            yield from together.commit()
        except (TransactionFailed, Contended):
            self._tree.forget()
        return True


def _as_seen(leaf: RankingLeaf) -> Condition:
    same: Condition = RankingLeaf.keys == leaf.keys
    return same


def _as_learnt(node: Learnt) -> Condition:
    return (RankingCounts.shape == node.inner.shape) & (RankingCounts.counts == node.counts)


def _joined(nodes: Sequence[Learnt], between: Sequence[str]) -> Branch:
    """What is below neighbours, as one branch; what separates them is there between them."""
    children: list[tuple[str, int]] = []
    separators: list[str] = []
    for number, (inner, counts) in enumerate(nodes):
        children += [(child.node, counts[child.slot]) for child in inner.children]
        separators += (
            [*between[number - 1 : number], *inner.separators] if number else inner.separators
        )
    return Branch(children, separators)


def _parts(keys: list[str], *, join: bool, limit: int) -> list[list[str]]:
    """The keys in one part, where two are joined that have room in it, or in two halves."""
    if join and len(keys) <= _ROOM * limit:
        return [keys]
    middle = len(keys) // 2
    return [keys[:middle], keys[middle:]]
