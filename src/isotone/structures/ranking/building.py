"""A ranking as a whole: made from all keys at once, and taken away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final

from isotone.errors import RankingIncomplete, TransactionFailed, UsageError, WriteRefused
from isotone.model import Steps
from isotone.structures.ranking.keys import HIGHEST, LOWEST
from isotone.structures.ranking.nodes import (
    ROOT,
    Entry,
    RankingShape,
    borders,
    cut,
    fresh,
    key_entries,
    total,
)
from isotone.structures.ranking.tree import Stale, Tree

Batch = Callable[[], Steps[Sequence[str]]]
"""Reads the next keys, in ascending order; none at the end."""

_FULL: Final = 0.75  # of a node is filled by a rebuild


def rebuild(tree: Tree, batch: Batch, progress: Callable[[int], None] | None) -> Steps[int]:
    """Make the tree anew; see `Ranking.rebuild`."""
    mark = yield from _emptied(tree)
    level, entries = 1, (yield from _leaves(tree, batch, progress))
    while len(entries) > tree.sizes.inner:
        parts = cut(entries, _places(len(entries), tree.sizes.inner, is_end=True))
        entries = yield from _written(tree, level, parts, [LOWEST, *borders(level, parts), HIGHEST])
        level += 1
    counts, shape = tree.items(ROOT, level, entries, LOWEST, HIGHEST)
    together = tree.calls.transaction()
    together.put(shape, when=RankingShape.shape == mark.shape)
    together.put(counts)
    tree.forget()
    try:
        yield from together.commit()
    except TransactionFailed:
        yield from _close(tree, mark)  # one may have deleted what the other wrote
        raise RankingIncomplete(
            f"the ranking {tree.name!r} was made anew or taken away by somebody else at the same "
            "time: run it again, once"
        ) from None
    return total(entries)


def clear(tree: Tree) -> Steps[None]:
    """Delete everything; see `Ranking.clear`."""
    return tree.until(partial(_clear, tree))


def _clear(tree: Tree) -> Steps[None]:
    mark = yield from _emptied(tree)
    try:
        is_mine = RankingShape.shape == mark.shape
        yield from tree.calls.delete(tree.shapes, when=is_mine, **tree.key(ROOT))
    except WriteRefused:
        root = yield from tree.calls.get(tree.shapes, consistent=True, **tree.key(ROOT))
        if root is not None:  # somebody else's, of which parts may be deleted by now
            raise Stale from None


# Taking away


def _emptied(tree: Tree) -> Steps[RankingShape]:
    """Delete all, and leave a mark in the place of the root.

    By the mark nobody finds a way in, and nobody changes the root. Counts are deleted first, until there
    are none: a node is divided only where those above it still are, so from then on nobody makes a leaf
    behind the place that the deletion has come to. When the leaves are gone, nobody writes who knew a way
    to one.
    """
    run = fresh()
    mark = tree.shapes(**tree.key(ROOT), shape=run, era=run, level=0, children="", separators="")
    yield from _close(tree, mark)
    tree.forget()
    while (yield from _delete_all(tree, tree.counts)):
        pass
    yield from _delete_all(tree, tree.leaves)
    yield from _delete_all(tree, tree.shapes)
    return mark


def _close(tree: Tree, mark: RankingShape) -> Steps[None]:
    together = tree.calls.transaction()
    together.put(mark)
    together.delete(tree.counts, **tree.key(ROOT))
    yield from together.commit()


def _delete_all(tree: Tree, kind: Any) -> Steps[int]:
    """Delete the items of a kind that are there, but for the mark; how many they were."""
    nodes = yield from nodes_of(tree, kind)
    keys = [tree.key(node) for node in nodes if kind is not tree.shapes or node != ROOT]
    return (yield from tree.calls.delete_many(kind, keys))


def nodes_of(tree: Tree, kind: Any) -> Steps[list[str]]:
    """The nodes that have an item of a kind."""
    read = kind.primary.where(kind.ranking == tree.name).select(kind.ranking, kind.node)
    return [item.node for item in (yield from tree.calls.all(read.consistent()))]


# Making


def _leaves(tree: Tree, batch: Batch, progress: Callable[[int], None] | None) -> Steps[list[Entry]]:
    """Write leaves of all keys; the entries of what is to be above them."""
    above, waiting, low, is_end = list[Entry](), list[Entry](), LOWEST, False
    while not is_end:
        keys = yield from batch()
        is_end = not keys
        _check_order([*(entry.low for entry in waiting[-1:]), *keys])
        waiting += key_entries(keys)
        parts = cut(waiting, _places(len(waiting), tree.sizes.leaf, is_end=is_end))
        ends = [low, *borders(0, parts), HIGHEST]
        if not is_end:
            waiting = parts.pop()
        above += yield from _written(tree, 0, parts, ends)
        low = ends[len(parts)]
        if progress is not None:
            progress(total(above))
    return above


def _written(
    tree: Tree, level: int, parts: Sequence[Sequence[Entry]], ends: Sequence[str]
) -> Steps[list[Entry]]:
    """Write new nodes from one of the ends to the next; their own entries."""
    made = [Entry(low, fresh(), total(part)) for low, part in zip(ends, parts, strict=False)]
    yield from tree.calls.put_many(
        item
        for entry, part, high in zip(made, parts, ends[1:], strict=False)
        for item in tree.items(entry.node, level, part, entry.low, high)
    )
    return made


def _places(number: int, most: int, *, is_end: bool) -> list[int]:
    """Where to cut so many entries for nodes that hold `most`, three quarters full.

    The last part has entries enough for a node. Before the end it may have some more, and is to wait.
    """
    fill = max(2, int(_FULL * most))
    places = list(range(fill, number - fill + 1, fill))
    last = places[-1] if places else 0
    if is_end and number - last > most:
        places.append(last + (number - last) // 2)
    return places


def _check_order(keys: Sequence[str]) -> None:
    for left, right in pairwise(keys):
        if left >= right:
            raise UsageError(f"the keys of a rebuild must ascend, but {right!r} follows {left!r}")
