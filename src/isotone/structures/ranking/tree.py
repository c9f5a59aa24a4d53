"""Finding one's way in a ranking's tree, and seeing parts of it as they are at one moment.

The way to a key goes by shapes, which are remembered, so that it takes no read as long as they last. What
is read for a result is read together, and counts tell the shape that they belong to: with another one
the shapes are read anew, and the rest again. So no result mixes what was before a change with what
was after it, and no stale way leads to a wrong result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from isotone.errors import Contended, RankingIncomplete
from isotone.model.calls import Calls
from isotone.model.declaring.table import Table
from isotone.model.steps import Steps
from isotone.model.writing.carrying import pause_after
from isotone.structures.operation import kept_in
from isotone.structures.ranking.nodes import (
    ROOT,
    Child,
    Inner,
    RankingCounts,
    RankingLeaf,
    RankingShape,
    inner_of,
)

ATTEMPTS: Final = 40
_AT_ONCE: Final = 3  # attempts without a pause: what was found out of date is known better at once
MOST_REMEMBERED: Final = 1000  # shapes; ten kilobytes each


class Path(NamedTuple):
    """The way from the root to the leaf that has a key's range."""

    inners: list[Inner]
    places: list[int]

    @property
    def leaf(self) -> str:
        return self.inners[-1].children[self.places[-1]].node

    def children(self) -> Iterable[tuple[Inner, Child]]:
        """Each inner node, with the child in which it goes on."""
        for inner, place in zip(self.inners, self.places, strict=True):
            yield inner, inner.children[place]


class Learnt(NamedTuple):
    """An inner node as it is at one moment."""

    inner: Inner
    counts: list[int]


@dataclass(frozen=True, slots=True)
class View:
    """Parts of the tree as they are at one moment."""

    inners: Mapping[str, Inner]
    counts: Mapping[str, list[int]]
    keys: Mapping[str, list[str]]


class Tree:
    """The items of one ranking, and what is remembered of their shapes."""

    def __init__(self, calls: Calls, table: Table, name: str) -> None:
        self.calls = calls
        self.name = name
        self.shapes = kept_in(table, RankingShape)
        self.counts = kept_in(table, RankingCounts)
        self.leaves = kept_in(table, RankingLeaf)
        self.known: dict[str, Inner] = {}
        self.seen: dict[str, list[int]] = {}

    def key(self, node: str) -> dict[str, Any]:
        """The key's fields of a node's items."""
        return {"ranking": self.name, "node": node}

    # What is remembered

    def forget(self, inners: Iterable[Inner] | None = None) -> None:
        """Read some shapes anew, or all, when they are wanted again."""
        if inners is None:
            self.known.clear()
        else:
            for inner in inners:
                self.known.pop(inner.node, None)

    def shape(self, node: str) -> Steps[Inner | None]:
        """The shape of an inner node, which may be out of date; None where the node is not there."""
        known = self.known.get(node)
        if known is not None:
            return known
        item = yield from self.calls.get(self.shapes, consistent=True, **self.key(node))
        return None if item is None else self._remembered(item)

    def learn(self, node: str) -> Steps[Learnt | None]:
        """Shape and counts of an inner node at one moment; None where it is not there."""
        key = self.key(node)
        shape, counts = yield from self.calls.get_together((self.shapes, key), (self.counts, key))
        inner = self._remembered(shape) if isinstance(shape, RankingShape) else None
        if inner is None or not isinstance(counts, RankingCounts):
            self.known.pop(node, None)
            return None
        self.seen[node] = counts.counts
        return Learnt(inner, counts.counts)

    def _remembered(self, item: RankingShape) -> Inner:
        if item.level == 0:
            raise RankingIncomplete(
                f"the ranking {self.name!r} is being made anew, or this was interrupted: "
                "try again later, or run load() or rerank() again"
            )
        if len(self.known) >= MOST_REMEMBERED:
            for node in list(self.known)[: MOST_REMEMBERED // 10]:  # the oldest
                self.known.pop(node, None)
                self.seen.pop(node, None)
        inner = self.known[item.node] = inner_of(item)
        return inner

    # The way

    def path(self, key: str) -> Steps[Path | None]:
        """The way to the leaf of a key, by what is remembered; None where there is no tree yet."""
        for _ in range(ATTEMPTS):
            inner = yield from self.shape(ROOT)
            if inner is None:
                return None
            inners, places = [inner], [inner.place(key)]
            while inner is not None and inner.level > 1:
                inner = yield from self.shape(inner.children[places[-1]].node)
                if inner is not None:
                    inners.append(inner)
                    places.append(inner.place(key))
            if inner is not None:
                return Path(inners, places)
            self.forget(inners)
        raise self.contended()

    def leaf(self, node: str) -> Steps[RankingLeaf | None]:
        """A leaf as it is now."""
        return (yield from self.calls.get(self.leaves, consistent=True, **self.key(node)))

    def leaves_now(self, nodes: Iterable[str]) -> Steps[dict[str, RankingLeaf]]:
        """Leaves as they are now, each by itself, in one request; without those that are not there."""
        wanted = list(dict.fromkeys(nodes))
        if len(wanted) == 1:
            found = [(yield from self.leaf(wanted[0]))]
        else:
            found = yield from self.calls.get_many(
                self.leaves, map(self.key, wanted), consistent=True
            )
        return {leaf.node: leaf for leaf in found if leaf is not None}

    def view(self, inners: Iterable[Inner], leaves: Iterable[str]) -> Steps[View | None]:
        """Counts and keys at one moment; None where shapes were out of date."""
        wanted, below = {inner.node: inner for inner in inners}, list(dict.fromkeys(leaves))
        found = yield from self.calls.get_together(
            *((self.counts, self.key(node)) for node in wanted),
            *((self.leaves, self.key(node)) for node in below),
        )
        counts = self._fitting(wanted, found[: len(wanted)])
        items = [leaf for leaf in found[len(wanted) :] if isinstance(leaf, RankingLeaf)]
        if counts is None or len(items) < len(below):
            return None
        self.seen.update(counts)
        return View(wanted, counts, {leaf.node: sorted(leaf.keys) for leaf in items})

    def _fitting(
        self, wanted: Mapping[str, Inner], found: Sequence[object]
    ) -> dict[str, list[int]] | None:
        """The counts of each node; None where one is not of the shape that is known."""
        counts = {}
        for inner, item in zip(wanted.values(), found, strict=True):
            if isinstance(item, RankingCounts) and item.shape == inner.shape:
                counts[inner.node] = item.counts
            else:
                self.known.pop(inner.node, None)
        return counts if len(counts) == len(wanted) else None

    def again(self, attempt: int) -> Steps[None]:
        """Wait before the next attempt, where several have failed."""
        if attempt >= _AT_ONCE:
            yield pause_after(attempt - _AT_ONCE)

    def contended(self) -> Contended:
        """The error at the end of all attempts."""
        return Contended(
            f"others changed the ranking {self.name!r} during each of {ATTEMPTS} attempts; "
            "try again later; where there are no others, its scores were written by other means, and "
            "rerank() makes it anew"
        )
