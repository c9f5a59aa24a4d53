"""A ranking's stored tree: reads paths and counts at one moment, and caches the shapes of nodes.

Shapes of inner nodes are cached, so finding the path to a leaf usually takes no read. Two rules make up for a cache
that is out of date:

- A read gets counts and leaves in one transaction. Counts name the shape that they belong to. If that is not the cached
  shape, the result is dropped and the shape is read again.
- A write has conditions on the leaf and the inner nodes that it relies on (`Ranking.change`, `Balance`).

A method that finds the cache out of date removes the wrong part and raises `OutOfDate`. `until_current` runs it again:
`look_up_once` is one attempt of `look_up`, and so on.

`ranking_nodes` computes a rank from what is read here (`RankingView.rank`); the public calls are in `ranking`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from isotone.errors import Contended, RankingIncomplete
from isotone.model import Calls, Entity, Steps, Table
from isotone.structures.ranking_nodes import (
    NOWHERE,
    ROOT,
    Child,
    InnerNode,
    LeafPath,
    NodeState,
    RankingCounts,
    RankingLeaf,
    RankingShape,
    RankingView,
    RankReadPlan,
    RewrittenChild,
    key_entries,
    new_name,
    plan_ranks,
    walk,
)
from isotone.structures.structure import bind_entity
from isotone.tables.retries import STALE_READS, RetryNeeded

R = TypeVar("R")
T = TypeVar("T")

_MOST_LEVELS: Final = 50  # more than any tree has
_MAX_CACHED: Final = 1000  # shapes, of ten kilobytes each, and as many lists of counts


class OutOfDate(RetryNeeded):
    """The cached tree is out of date. The wrong part has been removed from the cache: read again."""


class Tree:
    """The items of one ranking, and the shapes and counts that this object caches."""

    def __init__(self, calls: Calls, table: Table, name: str) -> None:
        self.calls = calls
        self.name = name
        self.shape_kind: type[RankingShape] = bind_entity(table, RankingShape)
        self.counts_kind: type[RankingCounts] = bind_entity(table, RankingCounts)
        self.leaf_kind: type[RankingLeaf] = bind_entity(table, RankingLeaf)
        self.shapes: dict[str, InnerNode] = {}
        self.counts: dict[str, list[int]] = {}
        """The counts that were read last. They only help to plan reads."""

    def item_key(self, node: str) -> dict[str, Any]:
        """The fields of the primary key of a node's items."""
        return {"ranking": self.name, "node": node}

    def forget(self, nodes: Iterable[str]) -> None:
        """Forget the shapes of some nodes; they are read again when they are needed."""
        for node in nodes:
            self.shapes.pop(node, None)

    def forget_paths_to(self, nodes: Collection[str]) -> None:
        """Forget the shapes of some nodes, and those that lead to them."""
        self.forget(
            [
                name
                for name, inner in [*self.shapes.items()]
                if name in nodes or any(child.node in nodes for child in inner.children)
            ]
        )

    def forget_all(self) -> None:
        """Forget all shapes."""
        self.shapes.clear()

    # Attempts

    def until_current(self, attempt: Callable[[], Steps[R]]) -> Steps[R]:
        """Repeat an attempt while it finds the cached tree out of date; raises `Contended` after too many."""
        return STALE_READS.run(attempt, self.contended, lost=OutOfDate)

    def contended(self, attempts: int) -> Contended:
        return Contended(
            f"others changed the ranking {self.name!r} during each of {attempts} attempts; try again "
            "later; if there are no others, its scores were written by other means, and rerank() rebuilds it"
        )

    # Reading at one moment

    def look_up(self, *keys: str) -> Steps[tuple[list[LeafPath], RankingView]]:
        """The paths to some keys, with the counts and leaves on them, at one moment."""
        return self.until_current(partial(self.look_up_once, keys))

    def look_up_once(self, keys: Sequence[str]) -> Steps[tuple[list[LeafPath], RankingView]]:
        paths = yield from self.paths(keys)
        if paths[0] is NOWHERE:
            return paths, RankingView({}, {NOWHERE.end: []})
        inners = {inner.node: inner for path in paths for inner, _ in path.turns}
        return paths, (yield from self._view(inners, [*{path.end for path in paths}]))

    def keys_at(self, rank: int, count: int, *, reverse: bool) -> Steps[list[str]]:
        """Up to `count` keys from a rank on, at one moment."""
        return self.until_current(partial(self._keys_at, rank, count, reverse))

    def _keys_at(self, rank: int, count: int, reverse: bool) -> Steps[list[str]]:
        plan = yield from self._plan(rank, count, reverse)
        if not plan.inners:
            return []
        view = yield from self._view(plan.inners, [piece.leaf for piece in plan.pieces])
        plan = plan_ranks(plan.inners, view.counts, rank, count, reverse=reverse)
        if plan.unknown or any(piece.leaf not in view.keys for piece in plan.pieces):
            raise OutOfDate  # the counts have changed: the ranks are in other leaves
        keys = [key for leaf, start, stop in plan.pieces for key in view.keys[leaf][start:stop]]
        return keys[::-1] if reverse else keys

    def _plan(self, rank: int, count: int, reverse: bool) -> Steps[RankReadPlan]:
        """What to read for some ranks, according to the cached counts; an empty plan if there is no tree."""
        for _ in range(_MOST_LEVELS):
            plan = plan_ranks(self.shapes, self.counts, rank, count, reverse=reverse)
            if not plan.unknown:
                return plan
            for node in plan.unknown:
                if (yield from self.learn(node)) is None:
                    self.forget_all()
                    if node == ROOT:
                        return RankReadPlan()
                    raise OutOfDate
        raise OutOfDate

    def _view(self, inners: Mapping[str, InnerNode], leaves: Sequence[str]) -> Steps[RankingView]:
        """Counts of inner nodes and keys of leaves, at one moment."""
        targets: list[tuple[type[Entity], dict[str, Any]]] = [
            *[(self.counts_kind, self.item_key(node)) for node in inners],
            *[(self.leaf_kind, self.item_key(leaf)) for leaf in leaves],
        ]
        items: list[Any] = yield from self.calls.get_together(*targets)
        view, is_current = RankingView({}, {}), True
        for inner, item in zip(inners.values(), items, strict=False):
            if item is None or item.shape != inner.shape:
                self.forget([inner.node])
                is_current = False
            else:
                view.counts[inner.node] = _cache_value(self.counts, inner.node, item.counts)
        for leaf, item in zip(leaves, items[len(inners) :], strict=True):
            if item is None:
                is_current = False
            else:
                view.keys[leaf] = sorted(item.keys)
        if not is_current:
            raise OutOfDate
        return view

    def size(self) -> Steps[int]:
        """The number of keys. Reads one item."""
        return self.until_current(self._size)

    def _size(self) -> Steps[int]:
        counts = yield from self.calls.get(self.counts_kind, consistent=True, **self.item_key(ROOT))
        if counts is not None:
            return sum(counts.counts)
        self.forget_all()
        # No counts: either there is no tree, or it is being rebuilt, and then this raises.
        if (yield from self._read_shape(ROOT)):
            raise OutOfDate
        return 0

    # Reading single nodes

    def paths(self, keys: Sequence[str]) -> Steps[list[LeafPath]]:
        """The paths to some keys, according to the cached shapes; `NOWHERE` for each if there is no tree."""
        while True:
            paths = [walk(self.shapes, key) for key in keys]
            for path in paths:
                if not path.reaches_leaf:
                    break
            else:
                return paths
            if not (yield from self._read_shape(path.end)):
                self.forget([turn.inner.node for turn in path.turns])
                if path.turns:
                    raise OutOfDate
                return [NOWHERE for _ in keys]

    def leaves(self, nodes: Sequence[str]) -> Steps[dict[str, RankingLeaf]]:
        """The current leaves, read separately in one request; missing ones are left out."""
        if len(set(nodes)) == 1:
            key = self.item_key(nodes[0])
            leaf = yield from self.calls.get(self.leaf_kind, consistent=True, **key)
            return {} if leaf is None else {leaf.node: leaf}
        keys = map(self.item_key, nodes)
        leaves = yield from self.calls.get_many(self.leaf_kind, keys, consistent=True)
        return {leaf.node: leaf for leaf in leaves if leaf is not None}

    def learn(self, node: str) -> Steps[tuple[InnerNode, list[int]] | None]:
        """Shape and counts of an inner node at one moment; None if there is no such node."""
        key = self.item_key(node)
        items: list[Any] = yield from self.calls.get_together(
            (self.shape_kind, key), (self.counts_kind, key)
        )
        shape, counts = items
        inner = None if shape is None else self._cache_shape(shape)
        if inner is None or counts is None or counts.shape != inner.shape:
            self.forget([node])
            return None
        return inner, _cache_value(self.counts, node, counts.counts)

    def node(self, name: str, level: int, low: str, high: str) -> Steps[NodeState | None]:
        """The current state of a node of a level; None if there is none. A leaf stores its own range."""
        if level == 0:
            leaf = (yield from self.leaves([name])).get(name)
            if leaf is None:
                return None
            entries, unchanged = key_entries(sorted(leaf.keys)), RankingLeaf.keys == leaf.keys
            return NodeState(name, entries, leaf.low, leaf.high, unchanged)
        learned = yield from self.learn(name)
        if learned is None or learned[0].level != level:
            return None
        inner, counts = learned
        entries = [
            RewrittenChild(begin, child.node, counts[child.slot])
            for begin, child in zip([low, *inner.separators], inner.children, strict=True)
        ]
        unchanged = (RankingCounts.shape == inner.shape) & (RankingCounts.counts == counts)
        return NodeState(name, entries, low, high, unchanged)

    def names(self, kind: Any) -> Steps[list[str]]:
        """The names of the nodes that have an item of a kind."""
        query = kind.primary.where(kind.ranking == self.name).select(kind.ranking, kind.node)
        return [item.node for item in (yield from self.calls.all(query.consistent()))]

    def _read_shape(self, node: str) -> Steps[bool]:
        """Read the shape of an inner node; returns whether there is such a node."""
        item = yield from self.calls.get(self.shape_kind, consistent=True, **self.item_key(node))
        if item is not None:
            self._cache_shape(item)
        return item is not None

    def _cache_shape(self, item: RankingShape) -> InnerNode:
        if item.level == 0:
            raise RankingIncomplete(
                f"the ranking {self.name!r} is being rebuilt or deleted, or this was interrupted: try again "
                "later, or run the interrupted call again: load(), rerank(), delete(), drop_ranks()"
            )
        return _cache_value(self.shapes, item.node, InnerNode.of(item))

    # Items to write

    def items(
        self, name: str, level: int, entries: Sequence[RewrittenChild], low: str, high: str
    ) -> list[Entity]:
        """The items of a node; `NodeState.unchanged` is a condition on the first one."""
        key, lows = self.item_key(name), [entry.low for entry in entries]
        if level == 0:
            keys = dict.fromkeys(lows, True)
            return [self.leaf_kind.from_trusted({**key, "low": low, "high": high, "keys": keys})]
        shape, era = new_name(), new_name()
        numbers = [entry.number for entry in entries]
        children = [Child(entry.node, slot) for slot, entry in enumerate(entries)]
        return [
            self.counts_kind.from_trusted({**key, "shape": shape, "era": era, "counts": numbers}),
            self.shape_item(InnerNode(name, level, era, shape, children, lows[1:])),
        ]

    def shape_item(self, inner: InnerNode) -> RankingShape:
        return self.shape_kind.from_trusted({"ranking": self.name, **inner.fields()})


def _cache_value(memory: dict[str, T], node: str, value: T) -> T:
    """Cache a value of a node. If there are too many, drop the least recently read ones, but never the root's."""
    memory.pop(node, None)  # so that the value becomes the last in the order of the dict
    if len(memory) >= _MAX_CACHED:
        for oldest in [*islice(memory, _MAX_CACHED // 10 + 1)]:
            if oldest != ROOT:
                del memory[oldest]
    memory[node] = value
    return value
