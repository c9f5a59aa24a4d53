"""Keeps the tree of a ranking balanced: full nodes are split, sparse ones are joined to their neighbour.

Each step is one transaction of its own. It moves keys between items and changes no rank. Its conditions cover what it
relies on: the shape of the node above, so the first of two writers wins, and the keys or counts that it moves. Other
leaves, and the counts of other children, may change meanwhile.

A step changes nothing if another process was faster. After each step the caller reads the tree again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from isotone.errors import Contended, TransactionFailed
from isotone.model import Condition, Entity, Steps, Transaction
from isotone.structures.ranking_nodes import (
    FILL,
    HIGHEST,
    LOWEST,
    ROOT,
    Child,
    InnerNode,
    LeafPath,
    NodeState,
    PathTurn,
    RankingCounts,
    RankingLeaf,
    RewrittenChild,
    Sizes,
    borders,
    halves,
    new_name,
    total,
)
from isotone.structures.ranking_tree import Tree


class Balance:
    """The steps that change the form of one tree."""

    def __init__(self, tree: Tree, sizes: Sizes) -> None:
        self._tree = tree
        self._sizes = sizes

    def next_step(self, path: LeafPath, leaf: RankingLeaf, by: int) -> Steps[None] | None:
        """The first step that must be taken before a key enters (+1) or leaves (-1) a leaf; None if none is needed."""
        sizes, turns = self._sizes, path.turns
        for above, below in pairwise(turns):
            if len(below.inner.children) < sizes.least_children:
                return self._join(above)
        if by > 0 and len(leaf.keys) >= sizes.leaf:
            return self._make_room(turns)
        if by < 0 and len(leaf.keys) <= sizes.least_keys and len(turns[-1].inner.children) > 1:
            return self._join(turns[-1])
        return None

    def plant(self) -> Steps[None]:
        """Create a tree with one empty leaf."""
        tx, leaf = self._tree.calls.transaction(), RewrittenChild(LOWEST, new_name(), 0)
        _write(tx, self._tree.items(leaf.node, 0, (), LOWEST, HIGHEST))
        _write(tx, self._tree.items(ROOT, 1, [leaf], LOWEST, HIGHEST))
        yield from self._commit(tx)

    def _make_room(self, turns: Sequence[PathTurn]) -> Steps[None]:
        """Split the highest full node on the path to a full leaf: the node above it has room."""
        is_full = [len(turn.inner.children) >= self._sizes.inner for turn in turns]
        depth = is_full.index(True) if True in is_full else len(turns)
        return self._split(turns[depth - 1]) if depth else self._grow(turns[0].inner)

    def _split(self, turn: PathTurn) -> Steps[None]:
        """Split a full child in two."""
        above, place = turn
        nodes = yield from self._children(above, range(place, place + 1))
        if nodes and len(nodes[0].entries) >= self._sizes.most(above.level - 1):
            yield from self._regroup(above, place, nodes, halves(nodes[0].entries))
        else:
            self._tree.forget([above.node])

    def _join(self, turn: PathTurn) -> Steps[None]:
        """Join a sparse child to its neighbour, or share the entries of both if they are too many for one."""
        above, place = turn
        first = min(place, len(above.children) - 2)
        nodes = yield from self._children(above, range(first, first + 2))
        if not nodes:
            self._tree.forget([above.node])
            return
        level, entries = above.level - 1, [entry for node in nodes for entry in node.entries]
        fits_in_one = len(entries) <= FILL * self._sizes.most(level)
        if fits_in_one and level and above.node == ROOT and len(above.children) == 2:
            yield from self._shrink(above, nodes, entries)
        else:
            parts = [entries] if fits_in_one else halves(entries)
            yield from self._regroup(above, first, nodes, parts)

    def _grow(self, root: InnerNode) -> Steps[None]:
        """Put two nodes between a full root and its children."""
        node = yield from self._tree.node(ROOT, root.level, LOWEST, HIGHEST)
        if node is None or len(node.entries) < self._sizes.inner:
            self._tree.forget([ROOT])
            return
        tx, parts = self._tree.calls.transaction(), halves(node.entries)
        two = [RewrittenChild(part[0].low, new_name(), total(part)) for part in parts]
        for entry, part in zip(two, parts, strict=True):
            _write(tx, self._tree.items(entry.node, root.level, part, LOWEST, HIGHEST))
        root_items = self._tree.items(ROOT, root.level + 1, two, LOWEST, HIGHEST)
        _write(tx, root_items, node.unchanged)
        yield from self._commit(tx, ROOT)

    def _shrink(
        self, root: InnerNode, nodes: Sequence[NodeState], entries: Sequence[RewrittenChild]
    ) -> Steps[None]:
        """Move the entries of the root's two children into the root, and delete the children."""
        tx = self._tree.calls.transaction()
        root_items = self._tree.items(ROOT, root.level - 1, entries, LOWEST, HIGHEST)
        _write(tx, root_items, RankingCounts.shape == root.shape)
        for node in nodes:
            self._delete(tx, root.level - 1, node)
        yield from self._commit(tx, ROOT)

    def _regroup(
        self,
        above: InnerNode,
        first: int,
        nodes: Sequence[NodeState],
        parts: Sequence[Sequence[RewrittenChild]],
    ) -> Steps[None]:
        """Redistribute the entries of neighbouring children, from number `first` on, as `parts`.

        Each part goes into one of the nodes, in order. An additional part goes into a new node; a node without a part
        is deleted.
        """
        level, tx = above.level - 1, self._tree.calls.transaction()
        limits = [nodes[0].low, *borders(level, parts), nodes[-1].high]
        made: list[RewrittenChild] = []
        for place, (part, (low, high)) in enumerate(zip(parts, pairwise(limits), strict=True)):
            node = nodes[place] if place < len(nodes) else None
            entry = RewrittenChild(low, new_name() if node is None else node.name, total(part))
            items = self._tree.items(entry.node, level, part, low, high)
            _write(tx, items, None if node is None else node.unchanged)
            made.append(entry)
        for node in nodes[len(parts) :]:
            self._delete(tx, level, node)
        self._replace_children(tx, above, first, len(nodes), made)
        yield from self._commit(tx, above.node)

    def _replace_children(
        self,
        tx: Transaction,
        above: InnerNode,
        first: int,
        number: int,
        made: Sequence[RewrittenChild],
    ) -> None:
        """Replace some children of an inner node; the slots of its other children stay as they are."""
        replaced = slice(first, first + number)
        freed = [child.slot for child in above.children[replaced]]
        slots = iter([*freed, above.free_slot()])
        new = [Child(entry.node, next(slots)) for entry in made]
        counts = dict.fromkeys(freed, 0)
        counts |= {child.slot: entry.number for child, entry in zip(new, made, strict=True)}
        children, separators, shape = [*above.children], [*above.separators], new_name()
        children[replaced] = new
        separators[first : first + number - 1] = [entry.low for entry in made[1:]]
        tx.update(
            self._tree.counts_kind,
            RankingCounts.shape.set(shape),
            *(RankingCounts.counts[slot].set(count) for slot, count in counts.items()),
            when=RankingCounts.shape == above.shape,
            **self._tree.item_key(above.node),
        )
        inner = InnerNode(above.node, above.level, above.era, shape, children, separators)
        tx.put(self._tree.shape_item(inner))

    def _delete(self, tx: Transaction, level: int, node: NodeState) -> None:
        key = self._tree.item_key(node.name)
        kind = self._tree.counts_kind if level else self._tree.leaf_kind
        tx.delete(kind, when=node.unchanged, **key)
        if level:
            tx.delete(self._tree.shape_kind, **key)

    def _children(self, above: InnerNode, places: range) -> Steps[list[NodeState]]:
        """The current state of some neighbours; empty if they differ from the node above."""
        lows, nodes = [LOWEST, *above.separators, HIGHEST], list[NodeState]()
        for place in places:
            name = above.children[place].node
            node = yield from self._tree.node(name, above.level - 1, lows[place], lows[place + 1])
            if node is None or (nodes and nodes[-1].high != node.low):
                return []
            nodes.append(node)
        return nodes

    def _commit(self, tx: Transaction, *changed: str) -> Steps[None]:
        """Commit a step, and forget the shapes that it changed; if another process was faster, forget all shapes."""
        try:
            yield from tx.commit()
        except (TransactionFailed, Contended):
            self._tree.forget_all()
        else:
            self._tree.forget(changed)


def _write(tx: Transaction, items: Sequence[Entity], unchanged: Condition | None = None) -> None:
    """Write a node: a new one, or one that is unchanged."""
    for number, item in enumerate(items):
        if unchanged is None:
            tx.create(item)
        else:
            tx.put(item, when=None if number else unchanged)
