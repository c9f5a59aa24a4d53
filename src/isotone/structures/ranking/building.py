"""A ranking as a whole: made from all keys at once, taken away, and checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeVar

from isotone.errors import RankingIncomplete, TransactionFailed, UsageError
from isotone.model.entity import Entity
from isotone.model.reading.collecting import Traversal
from isotone.model.steps import Steps
from isotone.structures.ranking.keys import HIGHEST, LOWEST
from isotone.structures.ranking.mending import Branch, Mending
from isotone.structures.ranking.nodes import ROOT, RankingShape, fresh, separator
from isotone.structures.ranking.tree import Tree

Batch = Callable[[], Steps[Sequence[str]]]
"""Reads the next keys, in ascending order; none at the end."""

_FULL: Final = 0.75  # of a node is filled by a rebuild

T = TypeVar("T")


class Findings(NamedTuple):
    """What `verify` found: the faults in words, and the tree's measures."""

    faults: list[str]
    keys: int
    leaves: int
    levels: int  # of inner nodes


class Building:
    """The making, the clearing and the checking of one tree."""

    def __init__(self, tree: Tree, mending: Mending) -> None:
        self._tree = tree
        self._mending = mending

    # Making

    def rebuild(self, batch: Batch, progress: Callable[[int], None] | None) -> Steps[int]:
        """Make the tree anew; see `Ranking.rebuild`."""
        tree, run = self._tree, fresh()
        mark = tree.shapes(
            **tree.key(ROOT), shape=run, era=run, level=0, children="", separators=""
        )
        # From here on nobody finds a way in, nor changes the root; and when the leaves are gone, nobody
        # writes who knew a way to one.
        yield from self._close(mark)
        yield from self._delete_nodes()
        whole = yield from self._leaves(batch, progress)
        level = 1
        while len(whole.children) > self._mending.sizes.inner:
            whole = yield from self._inners(whole, level)
            level += 1
        shape, counts = self._mending.inner_items(ROOT, level, whole)
        together = tree.calls.transaction()
        together.put(shape, when=RankingShape.shape == run)
        together.put(counts)
        tree.forget()
        try:
            yield from together.commit()
        except TransactionFailed:
            yield from self._close(mark)  # one may have deleted what the other wrote
            raise RankingIncomplete(
                f"the ranking {tree.name!r} was made anew by somebody else at the same time: run it "
                "again, once"
            ) from None
        return whole.total

    def _close(self, mark: RankingShape) -> Steps[None]:
        """Put a mark in the place of the root."""
        together = self._tree.calls.transaction()
        together.put(mark)
        together.delete(self._tree.counts, **self._tree.key(ROOT))
        yield from together.commit()

    def _leaves(self, batch: Batch, progress: Callable[[int], None] | None) -> Steps[Branch]:
        """Write leaves of all keys, and tell what is to be above them."""
        most = self._mending.sizes.leaf
        whole, waiting, low, is_end = Branch([], []), list[str](), LOWEST, False
        while not is_end:
            keys = yield from batch()
            is_end = not keys
            _check_order([*waiting[-1:], *keys])
            parts, waiting = _divided([*waiting, *keys], most, is_end=is_end)
            leaves = []
            for part, following in pairwise([*parts, waiting]):
                high = separator(part[-1], following[0]) if following else HIGHEST
                leaves.append(self._mending.leaf_item(fresh(), low, high, part))
                whole.children.append((leaves[-1].node, len(part)))
                whole.separators.extend([high] if following else [])
                low = high
            yield from self._tree.calls.put_many(leaves)
            if progress is not None:
                progress(whole.total)
        return whole

    def _inners(self, below: Branch, level: int) -> Steps[Branch]:
        """Write a level of inner nodes, and tell what is to be above them."""
        parts, _ = _divided(below.children, self._mending.sizes.inner, is_end=True)
        whole, start, items = Branch([], []), 0, list[Entity]()
        for part in parts:
            node, end = fresh(), start + len(part)
            branch = Branch(part, below.separators[start : end - 1])
            items += self._mending.inner_items(node, level, branch)
            whole.children.append((node, branch.total))
            whole.separators.extend(below.separators[end - 1 : end])
            start = end
        yield from self._tree.calls.put_many(items)
        return whole

    # Taking away

    def clear(self) -> Steps[None]:
        """Delete everything: the root first, so that nobody finds a way in."""
        tree = self._tree
        together = tree.calls.transaction()
        together.delete(tree.shapes, **tree.key(ROOT))
        together.delete(tree.counts, **tree.key(ROOT))
        yield from together.commit()
        yield from self._delete_nodes()

    def _delete_nodes(self) -> Steps[None]:
        """Delete all but the root's shape.

        Counts come first, until there are none: a node is divided only where those above it still are, so
        from then on nobody makes a leaf behind the place that the deletion has come to.
        """
        tree = self._tree
        tree.forget()
        while (yield from self._delete_all(tree.counts)):
            pass
        yield from self._delete_all(tree.leaves)
        yield from self._delete_all(tree.shapes)

    def _delete_all(self, kind: Any) -> Steps[int]:
        """Delete the items of a kind that are there, but for the root's shape; how many they were."""
        tree, found, deleted = self._tree, self._all(kind), 0
        while not found.is_over:
            nodes = [item.node for item in (yield from found.step())]
            keys = [tree.key(node) for node in nodes if kind is not tree.shapes or node != ROOT]
            deleted += yield from tree.calls.delete_many(kind, keys)
        return deleted

    def _all(self, kind: Any) -> Traversal[Any]:
        read = kind.primary.where(kind.ranking == self._tree.name)
        return self._tree.calls.traverse(read.select(kind.ranking, kind.node).consistent())

    # Checking

    def verify(self) -> Steps[Findings]:
        """What is wrong; see `Ranking.verify`."""
        tree, faults = self._tree, list[str]()
        tree.forget()
        root = yield from tree.learn(ROOT)
        if root is None:
            return Findings(faults, 0, 0, 0)
        keys, leaves, inners = 0, 0, 1
        level = [_Expected(ROOT, sum(root.counts), LOWEST, HIGHEST)]
        for height in range(root.inner.level, 0, -1):
            below: list[_Expected] = []
            for expected in level:
                below += yield from self._checked_inner(expected, height, faults)
            level, inners = below, inners + (len(below) if height > 1 else 0)
        for expected in level:
            keys, leaves = keys + expected.number, leaves + 1
            yield from self._check_leaf(expected, faults, is_alone=len(level) == 1)
        there = 0
        for kind in (tree.leaves, tree.counts, tree.shapes):
            found = self._all(kind)
            while not found.is_over:
                there += len((yield from found.step()))
        if there != leaves + 2 * inners:
            faults.append(f"{there} items where the tree has {leaves + 2 * inners}")
        return Findings(faults, keys, leaves, root.inner.level)

    def _checked_inner(
        self, expected: _Expected, level: int, faults: list[str]
    ) -> Steps[list[_Expected]]:
        """The children of an inner node, which is checked."""
        node = yield from self._tree.learn(expected.node)
        if node is None:
            faults.append(f"there is no inner node {expected.node}")
            return []
        inner, sizes = node.inner, self._mending.sizes
        bounds = [expected.low, *inner.separators, expected.high]
        slots = {child.slot for child in inner.children}
        least = 1 if expected.node == ROOT else sizes.least_children - 1
        for fault, is_so in (
            ("is at another level", inner.level != level),
            ("has too many or too few children", not least <= len(inner.children) <= sizes.inner),
            ("has separators that are no order", sorted(set(bounds)) != bounds),
            ("has not one separator between each two", len(bounds) != len(inner.children) + 1),
            ("has slots of two children", len(slots) != len(inner.children)),
            ("counts otherwise than its parent", sum(node.counts) != expected.number),
        ):
            if is_so:
                faults.append(f"inner node {expected.node} {fault}")
        return [
            _Expected(child.node, node.counts[child.slot], low, high)
            for child, (low, high) in zip(inner.children, pairwise(bounds), strict=False)
        ]

    def _check_leaf(self, expected: _Expected, faults: list[str], *, is_alone: bool) -> Steps[None]:
        leaf = yield from self._tree.leaf(expected.node)
        if leaf is None:
            faults.append(f"there is no leaf {expected.node}")
            return
        sizes, number = self._mending.sizes, len(leaf.keys)
        least = 0 if is_alone else sizes.least_keys
        for fault, is_so in (
            ("has another range", (leaf.low, leaf.high) != (expected.low, expected.high)),
            ("has keys beyond its range", not all(leaf.covers(key) for key in leaf.keys)),
            (f"has {number} keys, counted {expected.number}", number != expected.number),
            (f"has {number} keys", not least <= number <= sizes.leaf),
        ):
            if is_so:
                faults.append(f"leaf {expected.node} {fault}")


class _Expected(NamedTuple):
    """What a node should be, by what is above it."""

    node: str
    number: int
    low: str
    high: str


def _check_order(keys: Sequence[str]) -> None:
    for left, right in pairwise(keys):
        if left >= right:
            raise UsageError(f"the keys of a rebuild must ascend, but {right!r} follows {left!r}")


def _divided(items: Sequence[T], most: int, *, is_end: bool) -> tuple[list[list[T]], list[T]]:
    """Portions for nodes that hold so many, three quarters full, and what waits for more.

    Something always waits that would fill a node, so that the last one is not too small.
    """
    fill = max(2, int(_FULL * most))
    parts, start = [], 0
    while len(items) - start >= 2 * fill:
        parts.append(list(items[start : start + fill]))
        start += fill
    rest = list(items[start:])
    if not is_end:
        return parts, rest
    middle = 0 if len(rest) <= most else len(rest) // 2
    return [*parts, *filter(None, [rest[:middle]]), rest[middle:]], []
