"""Rank and count in a few item reads: an order-statistic tree in the items of one partition.

Structures compose its generators; nobody runs them alone. Keys are texts that sort as what they stand
for (`keys`), without spaces. A key enters and leaves in the caller's own transaction, together
with whatever it is the rank of:

    def attempt() -> Steps[None]:
        member = yield from self.calls.get(…, consistent=True)
        together = self.calls.transaction()
        together.update(…, when=Member.score == member.score)
        yield from self.ranking.change(together, leaving=old, entering=new)
        yield from together.commit()

    yield from self.ranking.settle(attempt)

Within a leaf a change is one write to it; otherwise it writes to two leaves and to the inner nodes in which
they differ, seven items for a million keys at most. `change` may first commit a transaction of its own, in which a
full node is divided or a sparse one joined to its neighbour: that moves keys between items, and changes
no rank. The form of the tree, and what makes it right, is told in docs/design/decisions/019.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import and_
from typing import Final, NamedTuple, TypeVar

from isotone.errors import Contended, TransactionFailed
from isotone.model import Calls, Condition, Steps, Table, Transaction
from isotone.structures.ranking import building, checking
from isotone.structures.ranking.keys import HIGHEST, LOWEST
from isotone.structures.ranking.mending import needed, plant
from isotone.structures.ranking.nodes import ROOT, Inner, RankingCounts, RankingLeaf
from isotone.structures.ranking.ranges import Plan, Unknown, planned
from isotone.structures.ranking.tree import ATTEMPTS, SIZES, Path, Sizes, Stale, Tree, View

R = TypeVar("R")

_LOOKS: Final = 10  # at the tree, or changes of its form, before a caller begins again
_AT_ONCE: Final = 50  # leaves that are read at one moment
_NEXT: Final = " "  # no key has it: a key and this is above that key, and below every greater one


class Overtaken(Exception):
    """The leaving key is not there, or the entering one is: others changed the member. Read it again."""


class Ranking:
    """The order of the keys of one ranking, in any table whose primary key is two strings.

    Give all objects of one ranking the same `sizes`. An object remembers the way to its leaves: keep it,
    rather than make one for each call.
    """

    def __init__(self, calls: Calls, table: Table, name: str, *, sizes: Sizes = SIZES) -> None:
        self._tree = Tree(calls, table, name, sizes)
        self.name = name

    # Writing

    def settle(self, attempt: Callable[[], Steps[R]]) -> Steps[R]:
        """Run an attempt (read, `change`, commit) until none overtakes it; raises `Contended` in the end."""
        last: Exception | None = None
        for number in range(ATTEMPTS):
            try:
                return (yield from attempt())
            except TransactionFailed as failure:
                last = failure
                self._tree.forget()  # a count that it adds to may be another node's by now
            except (Overtaken, Contended) as failure:
                last = failure
            yield from self._tree.wait(number)
        raise self._tree.contended() from last

    def change(
        self, together: Transaction, *, leaving: str | None = None, entering: str | None = None
    ) -> Steps[None]:
        """Add to a transaction the writes by which one key leaves and another enters.

        The transaction fails where a key is not there any more, or is there already, or its leaf has been
        divided: begin again, with what is there now. Raises `Overtaken` where this is known beforehand.
        """
        if leaving == entering:
            return
        keys = {key: by for key, by in ((leaving, -1), (entering, +1)) if key is not None}
        places = yield from self._tree.until(partial(self._places, keys), _LOOKS)
        self._write(together, places)

    def _places(self, keys: dict[str, int]) -> Steps[list[_Place]]:
        """Where keys leave and enter, when the tree has a form in which they can."""
        tree, sizes = self._tree, self._tree.sizes
        paths = yield from tree.paths(*keys)
        if paths is None:
            raise (yield from plant(tree))
        places = [
            _Place(key, by, path) for (key, by), path in zip(keys.items(), paths, strict=True)
        ]
        leaves = yield from tree.leaves_now(path.leaf for path in paths)
        for key, by, path in places:
            leaf = leaves.get(path.leaf)
            if leaf is None or not leaf.covers(key):
                raise Stale(path.inners)
            if (key in leaf.keys) != (by < 0):
                raise Overtaken(key)
        if len(leaves) == len(places):  # else one key takes the other one's place
            for _, by, path in places:
                number = len(leaves[path.leaf].keys)
                crowded = by > 0 and number >= sizes.leaf
                sparse = by < 0 and number <= sizes.least_keys
                change = needed(tree, path, crowded=crowded, sparse=sparse)
                if change is not None:
                    raise (yield from change)
        return places

    def _write(self, together: Transaction, places: Sequence[_Place]) -> None:
        tree, groups = self._tree, dict[str, list[_Place]]()
        for place in places:
            groups.setdefault(place.path.leaf, []).append(place)
        for leaf, group in groups.items():
            changes = [
                RankingLeaf.keys[key].set(True) if by > 0 else RankingLeaf.keys[key].remove()
                for key, by, _ in group
            ]
            together.update(tree.leaves, *changes, when=_still(group, tree.sizes), **tree.key(leaf))
        for inner, slots in _counted(places):
            together.update(
                tree.counts,
                *(RankingCounts.counts[slot].add(by) for slot, by in slots.items()),
                when=RankingCounts.era == inner.era,
                **tree.key(inner.node),
            )

    # Reading

    def rank(self, key: str) -> Steps[int]:
        """How many keys are smaller; the key need not be there. Reads one item for each level."""
        (rank,), _ = yield from self._ranks(key)
        return rank

    def place(self, key: str) -> Steps[tuple[int, int] | None]:
        """How many keys are smaller and how many greater, at one moment; None where the key is not there then.

        Reads as `rank` does.
        """
        (below, until), size = yield from self._ranks(key, key + _NEXT)
        return None if below == until else (below, size - until)

    def count(self, low: str, high: str) -> Steps[int]:
        """How many keys there are from `low` (included) to `high` (not included), at one moment."""
        if low >= high:
            return 0
        (before, until), _ = yield from self._ranks(low, high)
        return until - before

    def size(self) -> Steps[int]:
        """How many keys there are. Reads one item."""
        return (yield from self._tree.until(self._size))

    def _size(self) -> Steps[int]:
        tree = self._tree
        root = yield from tree.calls.get(tree.counts, consistent=True, **tree.key(ROOT))
        if root is not None:
            return sum(root.counts)
        tree.forget()
        if (yield from tree.shape(ROOT)) is None:  # which raises where the tree is being made
            return 0
        raise Stale

    def _ranks(self, *keys: str) -> Steps[tuple[list[int], int]]:
        """How many keys are smaller than each, and how many there are, at one moment."""
        return self._tree.until(partial(self._ranks_once, keys))

    def _ranks_once(self, keys: Sequence[str]) -> Steps[tuple[list[int], int]]:
        paths = yield from self._tree.paths(*keys)
        if paths is None:
            return [0] * len(keys), 0
        inners = [inner for path in paths for inner in path.inners]
        view = yield from self._tree.view(inners, [path.leaf for path in paths])
        ranks = [_below(view, key, path) for key, path in zip(keys, paths, strict=True)]
        return ranks, sum(view.counts[ROOT])

    def at(self, rank: int, count: int, *, reverse: bool = False) -> Steps[list[str]]:
        """Up to `count` keys from a rank on; with `reverse`, ranks count from the greatest key.

        No skipped key is read. `read_ranking_key` gives score and member back. Five hundred keys at a time
        are as of one moment.
        """
        found: list[str] = []
        at_once = _AT_ONCE * self._tree.sizes.least_keys
        while count > len(found):
            wanted = min(at_once, count - len(found))
            once = partial(self._at, rank + len(found), wanted, reverse)
            part = yield from self._tree.until(once)
            found += part
            if len(part) < wanted:
                break
        return found

    def _at(self, rank: int, count: int, reverse: bool) -> Steps[list[str]]:
        plan = yield from self._plan(rank, count, reverse)
        if plan is None:
            return []
        view = yield from self._tree.view(plan.inners, [piece.leaf for piece in plan.pieces])
        try:
            plan = planned(view.inners, view.counts, rank, count, reverse=reverse)
            found = [
                key for leaf, start, stop in plan.pieces for key in view.keys[leaf][start:stop]
            ]
        except (Unknown, KeyError):
            raise Stale(()) from None  # other leaves have these ranks by now
        return found[::-1] if reverse else found

    def _plan(self, rank: int, count: int, reverse: bool) -> Steps[Plan | None]:
        """Where the keys of some ranks probably are; None where there is no tree yet."""
        tree = self._tree
        for _ in range(_AT_ONCE):
            try:
                return planned(tree.known, tree.seen, rank, count, reverse=reverse)
            except Unknown as unknown:
                if (yield from tree.learn(unknown.node)) is None:
                    if unknown.node == ROOT:
                        return None
                    raise Stale from None
        raise Stale

    # The whole

    def rebuild(
        self, batch: building.Batch, *, progress: Callable[[int], None] | None = None
    ) -> Steps[int]:
        """Make the ranking anew from all keys in ascending order; how many there were.

        `batch` is called for the next keys, first when the old ranking is gone and nobody can write to
        it any more; it gives none at the end, and must read consistently. Writers and readers get
        `RankingIncomplete` while it goes on. Interrupted, it is run again, from its beginning. `progress`
        is called with the number of keys so far.
        """
        return building.rebuild(self._tree, batch, progress)

    def clear(self) -> Steps[None]:
        """Delete everything that the ranking keeps.

        Writers and readers get `RankingIncomplete` while it goes on. Interrupted, it is run again.
        """
        return building.clear(self._tree)

    def verify(self) -> Steps[checking.Findings]:
        """What is wrong with the tree while nobody writes to it: nothing, unless items were changed by hand.

        Reads everything: an item for some thirty keys.
        """
        return checking.verify(self._tree)


class _Place(NamedTuple):
    """Where a key leaves (-1) or enters (+1)."""

    key: str
    by: int
    path: Path


def _still(group: Sequence[_Place], sizes: Sizes) -> Condition:
    """That a leaf still takes the change: keys are there or not, in its range, and within its size."""
    keys, conditions = RankingLeaf.keys, list[Condition]()
    for key, by, _ in group:
        conditions.append(keys[key].missing() if by > 0 else keys[key].exists())
        if by > 0:
            conditions.append((RankingLeaf.low <= key) & (RankingLeaf.high > key))
    if len(group) == 1:
        is_alone = (RankingLeaf.low == LOWEST) & (RankingLeaf.high == HIGHEST)
        if group[0].by > 0:
            conditions.append(keys.size < sizes.leaf)
        else:
            conditions.append((keys.size > sizes.least_keys) | is_alone)
    return reduce(and_, conditions)


def _counted(places: Sequence[_Place]) -> list[tuple[Inner, dict[int, int]]]:
    """What is to be added to the slots of inner nodes; nothing where as many leave as enter."""
    sums: dict[str, tuple[Inner, dict[int, int]]] = {}
    for _, by, path in places:
        for turn in path:
            _, slots = sums.setdefault(turn.inner.node, (turn.inner, {}))
            slots[turn.child.slot] = slots.get(turn.child.slot, 0) + by
    found = [
        (inner, {slot: by for slot, by in slots.items() if by}) for inner, slots in sums.values()
    ]
    return [(inner, slots) for inner, slots in found if slots]


def _below(view: View, key: str, path: Path) -> int:
    """How many keys of a view are below a key."""
    rank = bisect_left(view.keys[path.leaf], key)
    for inner, place in path:
        counts = view.counts[inner.node]
        rank += sum([counts[child.slot] for child in inner.children[:place]])
    return rank
