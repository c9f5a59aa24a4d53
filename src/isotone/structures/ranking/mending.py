"""How a ranking's tree keeps its form: full nodes are divided, sparse ones joined to their neighbour.

Each of these is a transaction of its own that changes no rank. It is made for what was seen: the shape of
the node above (whoever gives it another one first wins), and the keys or the counts that change their
place. What it did not see, writers may change meanwhile: other leaves, and the counts of other children.
Its steps end in the `Stale` by which the caller looks at the tree again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from isotone.errors import Contended, TransactionFailed
from isotone.model import Condition, Entity, Steps, Transaction
from isotone.structures.ranking.keys import HIGHEST, LOWEST
from isotone.structures.ranking.nodes import (
    ROOT,
    Child,
    Entry,
    Inner,
    Node,
    RankingCounts,
    borders,
    fresh,
    halves,
    total,
)
from isotone.structures.ranking.tree import Path, Stale, Tree, Turn

_ROOM: Final = 0.75  # of a node may be full when two are joined into it


def plant(tree: Tree) -> Steps[Stale]:
    """Make a tree with one empty leaf, where there is none."""
    together, leaf = tree.calls.transaction(), Entry(LOWEST, fresh(), 0)
    _write(together, tree.items(leaf.node, 0, (), LOWEST, HIGHEST))
    _write(together, tree.items(ROOT, 1, [leaf], LOWEST, HIGHEST))
    return (yield from _commit(together))


def needed(tree: Tree, path: Path, *, crowded: bool, sparse: bool) -> Steps[Stale] | None:
    """The first thing that has to be done on the way to a leaf; None where there is nothing.

    `crowded` is a leaf that has to be divided, `sparse` one to join to its neighbour.
    """
    sizes = tree.sizes
    for above, below in pairwise(path):
        if len(below.inner.children) < sizes.least_children:
            return _regroup(tree, above, join=True)
    if crowded:
        full = [len(turn.inner.children) >= sizes.inner for turn in path]
        depth = full.index(True) if any(full) else len(path)
        return _regroup(tree, path[depth - 1], join=False) if depth else _grow(tree, path[0].inner)
    if sparse and len(path[-1].inner.children) > 1:
        return _regroup(tree, path[-1], join=True)
    return None


def _regroup(tree: Tree, turn: Turn, *, join: bool) -> Steps[Stale]:
    """Divide a child in two, or make one or two of it and its neighbour."""
    above, place = turn
    first = min(place, len(above.children) - 2) if join else place
    seen = yield from _children(tree, above, range(first, first + 1 + join))
    level, entries = above.level - 1, [entry for node in seen for entry in node.entries]
    most = tree.sizes.most(level)
    if not join and len(entries) < most:
        return Stale([above])
    parts = [entries] if join and len(entries) <= _ROOM * most else halves(entries)
    together = tree.calls.transaction()
    if above.node == ROOT and level and len(parts) == 1 and len(above.children) == 2:
        only = tree.items(ROOT, level, entries, LOWEST, HIGHEST)
        _write(together, only, RankingCounts.shape == above.shape)
        parts = []
    else:
        lows = [seen[0].low, *borders(level, parts)]
        names = [*(node.name for node in seen), fresh()]
        made = [
            Entry(low, name, total(part))
            for low, name, part in zip(lows, names, parts, strict=False)
        ]
        _replace(tree, together, above, range(first, first + len(seen)), made)
        conditions = [*(node.unchanged for node in seen), None]
        highs = [*lows[1:], seen[-1].high]
        for entry, part, high, same in zip(made, parts, highs, conditions, strict=False):
            _write(together, tree.items(entry.node, level, part, entry.low, high), same)
    for node in seen[len(parts) :]:
        _remove(tree, together, node, level)
    return (yield from _commit(together, above))


def _children(tree: Tree, above: Inner, places: range) -> Steps[list[Node]]:
    """Some neighbours as they are now."""
    lows, seen = [LOWEST, *above.separators, HIGHEST], list[Node]()
    for place in places:
        name = above.children[place].node
        node = yield from tree.node(name, above.level - 1, lows[place], lows[place + 1])
        if node is None or (seen and seen[-1].high != node.low):
            raise Stale([above])
        seen.append(node)
    return seen


def _grow(tree: Tree, root: Inner) -> Steps[Stale]:
    """Put two nodes between a full root and its children."""
    was = yield from tree.node(ROOT, root.level, LOWEST, HIGHEST)
    if was is None or len(was.entries) < tree.sizes.inner:
        return Stale([root])
    together, parts = tree.calls.transaction(), halves(was.entries)
    two = [Entry(part[0].low, fresh(), total(part)) for part in parts]
    for entry, part in zip(two, parts, strict=True):
        _write(together, tree.items(entry.node, root.level, part, LOWEST, HIGHEST))
    _write(together, tree.items(ROOT, root.level + 1, two, LOWEST, HIGHEST), was.unchanged)
    return (yield from _commit(together, root))


def _replace(
    tree: Tree, together: Transaction, above: Inner, places: range, made: Sequence[Entry]
) -> None:
    """Let an inner node have other children in some places; its other slots stay as they are."""
    old, shape = above.children[places.start : places.stop], fresh()
    slots = [*(child.slot for child in old), above.free_slot()]
    numbers = dict.fromkeys(slots[:-1], 0)
    children, separators = [*above.children], [*above.separators]
    children[places.start : places.stop] = [
        Child(entry.node, slot) for entry, slot in zip(made, slots, strict=False)
    ]
    separators[places.start : places.stop - 1] = [entry.low for entry in made[1:]]
    numbers |= {slot: entry.number for entry, slot in zip(made, slots, strict=False)}
    together.update(
        tree.counts,
        RankingCounts.shape.set(shape),
        *(RankingCounts.counts[slot].set(number) for slot, number in numbers.items()),
        when=RankingCounts.shape == above.shape,
        **tree.key(above.node),
    )
    new = Inner(above.node, above.level, above.era, shape, children, separators)
    together.put(tree.shape_item(new))


def _write(
    together: Transaction, items: Sequence[Entity], unchanged: Condition | None = None
) -> None:
    """Write a node that is new, or still as it was seen."""
    for number, item in enumerate(items):
        if unchanged is None:
            together.create(item)
        else:
            together.put(item, when=None if number else unchanged)


def _remove(tree: Tree, together: Transaction, node: Node, level: int) -> None:
    key = tree.key(node.name)
    together.delete(tree.counts if level else tree.leaves, when=node.unchanged, **key)
    if level:
        together.delete(tree.shapes, **key)


def _commit(together: Transaction, *above: Inner) -> Steps[Stale]:
    try:
        yield from together.commit()
    except (TransactionFailed, Contended):
        return Stale()  # somebody else was faster
    return Stale(above)
