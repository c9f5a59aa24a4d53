"""Rebuilds and deletes a whole ranking while others use it, who get `RankingIncomplete` meanwhile.

Both first replace the root by a mark, and delete the root's counts. From then on no reader or writer finds a path into
the tree, creates a new one, or changes the root. Then everything else is deleted, in an order that leaves nothing
behind: counts, until there are none (a node is split only while the nodes above it exist, so from then on no leaf is
added); leaves (so a writer with a cached path to one can no longer write); and shapes. A rebuild then writes all
leaves, and one level of inner nodes after the other. The root comes last, and replaces the mark.

If it is interrupted, the mark stays, and readers and writers get `RankingIncomplete` until it is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from isotone.errors import RankingIncomplete, TransactionFailed, UsageError, WriteRefused
from isotone.model import Steps
from isotone.structures.ranking_nodes import (
    HIGHEST,
    LOWEST,
    ROOT,
    RankingShape,
    RewrittenChild,
    Sizes,
    borders,
    cut,
    cut_points,
    key_entries,
    new_name,
    total,
)
from isotone.structures.ranking_tree import OutOfDate, Tree

Batch = Callable[[], Steps[Sequence[str]]]
"""Reads the next keys in ascending order; an empty batch ends."""
Progress = Callable[[int], None]


def rebuild(tree: Tree, sizes: Sizes, batch: Batch, progress: Progress | None) -> Steps[int]:
    """Delete a ranking, and build it again from all keys; returns the number of keys."""
    mark = yield from _empty(tree)
    level, entries = 1, (yield from _build_leaves(tree, sizes, batch, progress))
    while len(entries) > sizes.inner:
        parts = cut(entries, cut_points(len(entries), sizes.inner, is_end=True))
        bounds = [LOWEST, *borders(level, parts), HIGHEST]
        entries = yield from _build_nodes(tree, level, parts, bounds)
        level += 1
    counts, shape = tree.items(ROOT, level, entries, LOWEST, HIGHEST)
    tx = tree.calls.transaction()
    tx.put(shape, when=RankingShape.shape == mark.shape)
    tx.put(counts)
    tree.forget_all()
    try:
        yield from tx.commit()
    except TransactionFailed:
        yield from _close(tree, mark)  # each of the two may have deleted what the other wrote
        raise RankingIncomplete(
            f"the ranking {tree.name!r} was rebuilt or deleted by another process at the same time: "
            "run it again, once"
        ) from None
    return total(entries)


def clear(tree: Tree) -> Steps[None]:
    """Delete all items of a ranking."""
    yield from tree.until_current(partial(_clear, tree))


def _clear(tree: Tree) -> Steps[None]:
    """Delete everything; raises `OutOfDate` if another process has replaced the mark by its root."""
    mark = yield from _empty(tree)
    try:
        is_mine = RankingShape.shape == mark.shape
        yield from tree.calls.delete(tree.shape_kind, when=is_mine, **tree.item_key(ROOT))
    except WriteRefused:
        root = yield from tree.calls.get(tree.shape_kind, consistent=True, **tree.item_key(ROOT))
        if root is not None:  # parts of its tree may already be deleted
            tree.forget_all()
            raise OutOfDate from None


def _empty(tree: Tree) -> Steps[RankingShape]:
    """Delete everything, and leave a mark in place of the root."""
    run = new_name()
    mark = tree.shape_kind(
        **tree.item_key(ROOT), shape=run, era=run, level=0, children="", separators=""
    )
    yield from _close(tree, mark)
    tree.forget_all()
    while (yield from _delete_all(tree, tree.counts_kind)):
        pass
    yield from _delete_all(tree, tree.leaf_kind)
    yield from _delete_all(tree, tree.shape_kind)
    return mark


def _close(tree: Tree, mark: RankingShape) -> Steps[None]:
    tx = tree.calls.transaction()
    tx.put(mark)
    tx.delete(tree.counts_kind, **tree.item_key(ROOT))
    yield from tx.commit()


def _delete_all(tree: Tree, kind: Any) -> Steps[int]:
    """Delete the items of a kind, except the mark; returns their number."""
    names = yield from tree.names(kind)
    keys = [tree.item_key(name) for name in names if kind is not tree.shape_kind or name != ROOT]
    return (yield from tree.calls.delete_many(kind, keys))


def _build_leaves(
    tree: Tree, sizes: Sizes, batch: Batch, progress: Progress | None
) -> Steps[list[RewrittenChild]]:
    """Write leaves of all keys; returns their entries in the nodes above."""
    above, pending, low, is_end = list[RewrittenChild](), list[RewrittenChild](), LOWEST, False
    while not is_end:
        keys = yield from batch()
        is_end = not keys
        for left, right in pairwise([*(entry.low for entry in pending[-1:]), *keys]):
            if left >= right:
                raise UsageError(
                    f"the keys of a rebuild must ascend, but {right!r} follows {left!r}"
                )
        pending += key_entries(keys)
        parts = cut(pending, cut_points(len(pending), sizes.leaf, is_end=is_end))
        bounds = [low, *borders(0, parts), HIGHEST]
        if not is_end:
            pending = parts.pop()
        above += yield from _build_nodes(tree, 0, parts, bounds)
        low = bounds[len(parts)]
        if progress is not None:
            progress(total(above))
    return above


def _build_nodes(
    tree: Tree, level: int, parts: Sequence[Sequence[RewrittenChild]], bounds: Sequence[str]
) -> Steps[list[RewrittenChild]]:
    """Write new nodes, each from one bound to the next; returns their entries in the nodes above."""
    made = [
        RewrittenChild(low, new_name(), total(part))
        for low, part in zip(bounds, parts, strict=False)
    ]
    yield from tree.calls.put_many(
        item
        for entry, part, high in zip(made, parts, bounds[1:], strict=False)
        for item in tree.items(entry.node, level, part, entry.low, high)
    )
    return made
