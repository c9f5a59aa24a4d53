"""Finding one's way in a ranking's tree, and seeing parts of it as they are at one moment.

The way to a key goes by shapes, which are remembered, so that it takes no read as long as they last. What
is read for a result is read together, and counts tell the shape that they belong to: with another one
the shapes are read anew, and the rest again. So no result mixes what was before a change with what
was after it, and no stale way leads to a wrong result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from isotone.errors import Contended, RankingIncomplete
from isotone.model import Calls, Entity, Steps, Table, pause_after
from isotone.structures.operation import bind_entity
from isotone.structures.ranking.nodes import (
    ROOT,
    Child,
    Entry,
    Inner,
    Node,
    RankingCounts,
    RankingLeaf,
    RankingShape,
    fresh,
    inner_of,
    key_entries,
)

R = TypeVar("R")
T = TypeVar("T")

ATTEMPTS: Final = 40
_AT_ONCE: Final = 3  # attempts without a pause: what was found out of date is known better at once
_MOST_REMEMBERED: Final = 1000  # shapes, ten kilobytes each, and as many lists of counts


class Stale(Exception):
    """The tree is not as it was remembered: look again, at these shapes or at all."""

    def __init__(self, inners: Iterable[Inner] | None = None) -> None:
        super().__init__()
        self.inners = inners


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

    def most(self, level: int) -> int:
        """How many entries a node of a level holds."""
        return self.inner if level else self.leaf


SIZES: Final = Sizes()


class Turn(NamedTuple):
    """An inner node on a way, and the place of the child in which it goes on."""

    inner: Inner
    place: int

    @property
    def child(self) -> Child:
        return self.inner.children[self.place]


class Path(list[Turn]):
    """The way from the root to the leaf that has a key's range."""

    @property
    def leaf(self) -> str:
        return self[-1].child.node

    @property
    def inners(self) -> list[Inner]:
        return [turn.inner for turn in self]


class View(NamedTuple):
    """Parts of the tree as they are at one moment."""

    inners: Mapping[str, Inner]
    counts: Mapping[str, list[int]]
    keys: Mapping[str, list[str]]


class Tree:
    """The items of one ranking, and what is remembered of their shapes."""

    def __init__(self, calls: Calls, table: Table, name: str, sizes: Sizes) -> None:
        self.calls = calls
        self.name = name
        self.sizes = sizes
        self.shapes = bind_entity(table, RankingShape)
        self.counts = bind_entity(table, RankingCounts)
        self.leaves = bind_entity(table, RankingLeaf)
        self.known: dict[str, Inner] = {}
        self.seen: dict[str, list[int]] = {}  # counts, which a plan may begin with

    def key(self, node: str) -> dict[str, Any]:
        """The key's fields of a node's items."""
        return {"ranking": self.name, "node": node}

    def until(self, attempt: Callable[[], Steps[R]], attempts: int = ATTEMPTS) -> Steps[R]:
        """What an attempt gives that does not find the tree stale."""
        for number in range(attempts):
            try:
                return (yield from attempt())
            except Stale as stale:
                self.forget(stale.inners)
                yield from self.wait(number)
        raise self.contended()

    def wait(self, attempt: int) -> Steps[None]:
        """Pause before the next attempt, where several have failed."""
        if attempt >= _AT_ONCE:
            yield pause_after(attempt - _AT_ONCE)

    def contended(self) -> Contended:
        """The error at the end of all attempts."""
        return Contended(
            f"others changed the ranking {self.name!r} during each of {ATTEMPTS} attempts; "
            "try again later; where there are no others, its scores were written by other means, and "
            "rerank() makes it anew"
        )

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

    def learn(self, node: str) -> Steps[tuple[Inner, list[int]] | None]:
        """Shape and counts of an inner node at one moment; None where it is not there."""
        key = self.key(node)
        shape, counts = yield from self.calls.get_together((self.shapes, key), (self.counts, key))
        inner = self._remembered(shape) if isinstance(shape, RankingShape) else None
        if inner is None or not isinstance(counts, RankingCounts):
            self.known.pop(node, None)
            return None
        return inner, _remember(self.seen, node, counts.counts)

    def _remembered(self, item: RankingShape) -> Inner:
        if item.level == 0:
            raise RankingIncomplete(
                f"the ranking {self.name!r} is being made anew or taken away, or this was interrupted: "
                "try again later, or do what was interrupted again: load(), rerank(), delete(), "
                "drop_ranks()"
            )
        return _remember(self.known, item.node, inner_of(item))

    # The way

    def paths(self, *keys: str) -> Steps[list[Path] | None]:
        """The ways to the leaves of keys, by what is remembered; None where there is no tree yet."""
        paths: list[Path] = []
        met: dict[str, Inner] = {}
        for key in keys:
            inner = yield from self.shape(ROOT)
            if inner is None:
                return None
            path = Path()
            while True:
                path.append(Turn(inner, inner.place(key)))
                if met.setdefault(inner.node, inner) is not inner:
                    raise Stale(())  # it was learnt anew between two of the ways
                if inner.level == 1:
                    break
                inner = yield from self.shape(path[-1].child.node)
                if inner is None:
                    raise Stale(path.inners)
            paths.append(path)
        return paths

    def leaves_now(self, nodes: Iterable[str]) -> Steps[dict[str, RankingLeaf]]:
        """Leaves as they are now, each by itself, in one request; without those that are not there."""
        wanted = [*map(self.key, dict.fromkeys(nodes))]
        if len(wanted) == 1:
            found = [(yield from self.calls.get(self.leaves, consistent=True, **wanted[0]))]
        else:
            found = yield from self.calls.get_many(self.leaves, wanted, consistent=True)
        return {leaf.node: leaf for leaf in found if leaf is not None}

    def view(self, inners: Iterable[Inner], leaves: Iterable[str]) -> Steps[View]:
        """Counts and keys at one moment."""
        wanted, below = {inner.node: inner for inner in inners}, list(dict.fromkeys(leaves))
        found = yield from self.calls.get_together(
            *((self.counts, self.key(node)) for node in wanted),
            *((self.leaves, self.key(node)) for node in below),
        )
        counts = {
            item.node: item.counts
            for item in found
            if isinstance(item, RankingCounts) and item.shape == wanted[item.node].shape
        }
        keys = {leaf.node: sorted(leaf.keys) for leaf in found if isinstance(leaf, RankingLeaf)}
        if len(counts) < len(wanted) or len(keys) < len(below):
            raise Stale([inner for node, inner in wanted.items() if node not in counts])
        for node, numbers in counts.items():
            _remember(self.seen, node, numbers)
        return View(wanted, counts, keys)

    # Whole nodes

    def node(self, name: str, level: int, low: str, high: str) -> Steps[Node | None]:
        """A node of a level as it is now; None where it is not there. A leaf knows its range itself."""
        if level == 0:
            leaf = (yield from self.leaves_now([name])).get(name)
            if leaf is None:
                return None
            entries, same = key_entries(sorted(leaf.keys)), RankingLeaf.keys == leaf.keys
            return Node(name, entries, leaf.low, leaf.high, same)
        found = yield from self.learn(name)
        if found is None or found[0].level != level:
            return None
        inner, counts = found
        entries = [
            Entry(begin, child.node, counts[child.slot])
            for begin, child in zip([low, *inner.separators], inner.children, strict=True)
        ]
        same = (RankingCounts.shape == inner.shape) & (RankingCounts.counts == counts)
        return Node(name, entries, low, high, same)

    def items(
        self, name: str, level: int, entries: Sequence[Entry], low: str, high: str
    ) -> list[Entity]:
        """The items of a node; the first one is that which `Node.unchanged` is about."""
        key, lows = self.key(name), [entry.low for entry in entries]
        if level == 0:
            return [self.leaves(**key, low=low, high=high, keys=dict.fromkeys(lows, True))]
        shape, era = fresh(), fresh()
        numbers = [entry.number for entry in entries]
        children = [Child(entry.node, slot) for slot, entry in enumerate(entries)]
        return [
            self.counts(**key, shape=shape, era=era, counts=numbers),
            self.shape_item(Inner(name, level, era, shape, children, lows[1:])),
        ]

    def shape_item(self, inner: Inner) -> RankingShape:
        """The item that says a shape."""
        return self.shapes(
            **self.key(inner.node),
            shape=inner.shape,
            era=inner.era,
            level=inner.level,
            children=" ".join(f"{node}:{slot}" for node, slot in inner.children),
            separators=" ".join(inner.separators),
        )


def _remember(memory: dict[str, T], node: str, what: T) -> T:
    """Keep what was read of a node, and drop the oldest where that is too much."""
    if len(memory) >= _MOST_REMEMBERED:
        for oldest in list(memory)[: _MOST_REMEMBERED // 10]:
            memory.pop(oldest, None)
    memory[node] = what
    return what
