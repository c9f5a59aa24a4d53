"""Ranks and counts in a few item reads: an order-statistic tree in the items of one partition.

Structures compose the generators of `Ranking`. Keys are texts that sort as what they stand for, without
spaces; `ranking_key` makes one of a score and a member. A key enters and leaves in the caller's own
transaction, together with the item that it ranks:

    def attempt() -> Steps[None]:
        member = yield from self.calls.get(…, consistent=True)
        tx = self.calls.transaction()
        tx.update(…, when=Member.score == member.score)
        yield from self.ranking.change(tx, leaving=old, entering=new)
        yield from tx.commit()

    yield from self.ranking.settle(attempt)

Shapes of inner nodes change rarely and are remembered, so the way to a leaf usually takes no read. Everything
that a result needs is read in one transaction, and counts name the shape that they belong to. If that is not
the remembered one, the shape is read again, and then the rest. So a result never mixes two states of the tree.

A change within a leaf is one write to it. Otherwise it writes to two leaves and to the inner nodes in which
their ways differ: seven items at most for a million keys. `change` may first commit a transaction of its own
that splits a full node or joins a sparse one to its neighbour. That moves keys between items and changes no
rank. docs/design/decisions/019 explains the form of the tree and why it is right.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial, reduce
from itertools import pairwise
from operator import and_
from typing import Any, Final, NamedTuple, TypeVar

from isotone.errors import (
    Contended,
    RankingIncomplete,
    TransactionFailed,
    UsageError,
    WriteRefused,
)
from isotone.model import (
    Calls,
    Condition,
    Entity,
    Steps,
    Table,
    Transaction,
    escape,
    number_of,
    ordered_number,
    unescape,
)
from isotone.structures.ranking_nodes import (
    FILL,
    HIGHEST,
    LOWEST,
    ROOT,
    SIZES,
    Child,
    Entry,
    Inner,
    Move,
    Node,
    Path,
    Plan,
    RankingCounts,
    RankingLeaf,
    RankingShape,
    Sizes,
    Turn,
    Unknown,
    View,
    borders,
    cut,
    cuts,
    halves,
    key_entries,
    new_name,
    planned,
    sums,
    total,
)
from isotone.structures.retries import backoff
from isotone.structures.structure import bind_entity

R = TypeVar("R")
T = TypeVar("T")

Batch = Callable[[], Steps[Sequence[str]]]
"""Reads the next keys in ascending order; an empty batch ends."""

_ATTEMPTS: Final = 40
_FORM_ATTEMPTS: Final = 10  # to find or make a form that permits a change, before it starts again
_WITHOUT_PAUSE: Final = 3  # attempts: after a failure, a second look usually suffices
_LEAVES_AT_ONCE: Final = 50  # that are read at one moment
_MOST_REMEMBERED: Final = 1000  # shapes of ten kilobytes each, and as many lists of counts
_SEPARATOR: Final = "#"
_ABOVE_SEPARATOR: Final = "$"


# Keys


class Ranked(NamedTuple):
    """What a key stands for."""

    score: Decimal
    member: str


def ranking_key(score: Decimal | int, member: str) -> str:
    """The key of a member with a score: `128119644b#song:1`, which sorts as `(score, member.encode())`."""
    return ordered_number(score) + _SEPARATOR + escape(member)


def read_ranking_key(key: str) -> Ranked:
    """The score and the member of a key."""
    number, _, member = key.partition(_SEPARATOR)
    return Ranked(number_of(number), unescape(member))


def before_score(score: Decimal | int) -> str:
    """A bound below all keys with the score, and above those with a lesser one."""
    return ordered_number(score) + _SEPARATOR


def after_score(score: Decimal | int) -> str:
    """A bound above all keys with the score, and below those with a greater one."""
    return ordered_number(score) + _ABOVE_SEPARATOR


class Overtaken(Exception):
    """The leaving key is not there, or the entering one is: others changed the member. Read it again."""


class Findings(NamedTuple):
    """The result of a consistency check: faults in words, and the number of keys."""

    faults: list[str]
    keys: int


class Ranking:
    """The order of the keys of one ranking, in any table whose primary key is two strings.

    Give all objects of one ranking the same `sizes`. An object remembers the way to its leaves: keep it,
    instead of making one for each call.
    """

    def __init__(self, calls: Calls, table: Table, name: str, *, sizes: Sizes = SIZES) -> None:
        self.name = name
        self._calls = calls
        self._sizes = sizes
        self._shape_items = bind_entity(table, RankingShape)
        self._count_items = bind_entity(table, RankingCounts)
        self._leaf_items = bind_entity(table, RankingLeaf)
        self._shapes: dict[str, Inner] = {}
        self._counts: dict[
            str, list[int]
        ] = {}  # may be out of date; `at` starts its plans from them

    # Changes

    def settle(self, attempt: Callable[[], Steps[R]]) -> Steps[R]:
        """Run an attempt (read, `change`, commit) until nobody interferes; raises `Contended` in the end."""
        return self._retry(attempt, (TransactionFailed, Overtaken, Contended))

    def change(
        self, tx: Transaction, *, leaving: str | None = None, entering: str | None = None
    ) -> Steps[None]:
        """Add the writes to a transaction by which one key leaves and another enters.

        The transaction fails if a key has left or entered meanwhile, or its leaf was split: start again
        from a new read. Raises `Overtaken` if this is known beforehand.
        """
        if leaving == entering:
            return
        keys = {key: by for key, by in ((leaving, -1), (entering, +1)) if key is not None}
        moves = yield from self._fresh(partial(self._moves, keys), _FORM_ATTEMPTS)
        by_leaf: dict[str, list[Move]] = {}
        for move in moves:
            by_leaf.setdefault(move.path.leaf, []).append(move)
        for leaf, group in by_leaf.items():
            changes = [
                RankingLeaf.keys[key].set(True) if by > 0 else RankingLeaf.keys[key].remove()
                for key, by, _ in group
            ]
            tx.update(self._leaf_items, *changes, when=self._fits(group), **self._key(leaf))
        if len(by_leaf) == 1 and len(moves) == 2:
            return  # as many keys as before
        for inner, slots in sums(moves):
            tx.update(
                self._count_items,
                *(RankingCounts.counts[slot].add(by) for slot, by in slots.items()),
                when=RankingCounts.era == inner.era,
                **self._key(inner.node),
            )

    def _moves(self, keys: Mapping[str, int]) -> Steps[list[Move]]:
        """Where keys leave and enter, once the tree has a form that permits it."""
        paths = yield from self._paths(*keys)
        if paths is None:
            yield from self._plant()
            return []
        leaves = yield from self._leaves_now([path.leaf for path in paths])
        moves = [Move(key, by, path) for (key, by), path in zip(keys.items(), paths, strict=True)]
        for key, by, path in moves:
            leaf = leaves.get(path.leaf)
            if leaf is None or not leaf.low <= key < leaf.high:
                raise _Stale(path.inners)
            if (key in leaf.keys) != (by < 0):
                raise Overtaken(key)
        if len(leaves) == len(moves):  # otherwise one key replaces the other
            for _, by, path in moves:
                number = len(leaves[path.leaf].keys)
                is_full = by > 0 and number >= self._sizes.leaf
                is_sparse = by < 0 and number <= self._sizes.least_keys
                yield from self._reform(path, is_full=is_full, is_sparse=is_sparse)
        return moves

    def _fits(self, group: Sequence[Move]) -> Condition:
        """The condition that a leaf still takes the change: its keys, its range and its size."""
        keys, conditions = RankingLeaf.keys, list[Condition]()
        for key, by, _ in group:
            conditions.append(keys[key].missing() if by > 0 else keys[key].exists())
            if by > 0:
                conditions.append((RankingLeaf.low <= key) & (RankingLeaf.high > key))
        if len(group) == 1:
            is_only_leaf = (RankingLeaf.low == LOWEST) & (RankingLeaf.high == HIGHEST)
            if group[0].by > 0:
                conditions.append(keys.size < self._sizes.leaf)
            else:
                conditions.append((keys.size > self._sizes.least_keys) | is_only_leaf)
        return reduce(and_, conditions)

    # Reads

    def rank(self, key: str) -> Steps[int]:
        """The number of smaller keys; the key itself may be absent. Reads one item for each level."""
        (rank,) = yield from self._fresh(partial(self._ranks, [key]))
        return rank

    def place(self, key: str) -> Steps[tuple[int, int] | None]:
        """The numbers of smaller and of greater keys, at one moment; None if the key is absent.

        Reads as `rank` does.
        """
        return (yield from self._fresh(partial(self._place, key)))

    def count(self, low: str, high: str) -> Steps[int]:
        """The number of keys from `low` (included) to `high` (not included), at one moment."""
        if low >= high:
            return 0
        before, until = yield from self._fresh(partial(self._ranks, [low, high]))
        return until - before

    def size(self) -> Steps[int]:
        """The number of keys. Reads one item."""
        return (yield from self._fresh(self._size))

    def at(self, rank: int, count: int, *, reverse: bool = False) -> Steps[list[str]]:
        """Up to `count` keys from a rank on; with `reverse`, ranks count from the greatest key.

        Keys before the rank are not read. `read_ranking_key` gives score and member back. Five hundred
        keys at a time are as of one moment.
        """
        keys: list[str] = []
        at_once = _LEAVES_AT_ONCE * self._sizes.least_keys
        while count > len(keys):
            wanted = min(at_once, count - len(keys))
            part = yield from self._fresh(partial(self._at, rank + len(keys), wanted, reverse))
            keys += part
            if len(part) < wanted:
                break
        return keys

    def _place(self, key: str) -> Steps[tuple[int, int] | None]:
        paths = yield from self._paths(key)
        if paths is None:
            return None
        view = yield from self._view(paths)
        if key not in view.keys[paths[0].leaf]:
            return None
        rank = view.rank(key, paths[0])
        return rank, sum(view.counts[ROOT]) - rank - 1

    def _ranks(self, keys: Sequence[str]) -> Steps[list[int]]:
        paths = yield from self._paths(*keys)
        if paths is None:
            return [0] * len(keys)
        view = yield from self._view(paths)
        return [view.rank(key, path) for key, path in zip(keys, paths, strict=True)]

    def _size(self) -> Steps[int]:
        root = yield from self._calls.get(self._count_items, consistent=True, **self._key(ROOT))
        if root is not None:
            return sum(root.counts)
        self._forget(None)
        if (yield from self._shape(ROOT)) is None:  # raises while the tree is rebuilt
            return 0
        raise _Stale

    def _at(self, rank: int, count: int, reverse: bool) -> Steps[list[str]]:
        plan = yield from self._plan(rank, count, reverse)
        if plan is None:
            return []
        inners = {inner.node: inner for inner in plan.inners}
        view = yield from self._view_of(inners, [piece.leaf for piece in plan.pieces])
        try:
            plan = planned(inners, view.counts, rank, count, reverse=reverse)
            keys = [key for leaf, start, stop in plan.pieces for key in view.keys[leaf][start:stop]]
        except (Unknown, KeyError):
            raise _Stale(()) from None  # the ranks are in other leaves by now
        return keys[::-1] if reverse else keys

    def _plan(self, rank: int, count: int, reverse: bool) -> Steps[Plan | None]:
        """Where the keys of some ranks probably are; None if there is no tree yet."""
        for _ in range(_LEAVES_AT_ONCE):
            try:
                return planned(self._shapes, self._counts, rank, count, reverse=reverse)
            except Unknown as unknown:
                if (yield from self._learn(unknown.node)) is None:
                    if unknown.node == ROOT:
                        return None
                    raise _Stale from None
        raise _Stale

    # The whole ranking

    def rebuild(self, batch: Batch, *, progress: Callable[[int], None] | None = None) -> Steps[int]:
        """Build the ranking again from all keys in ascending order; the number of keys.

        `batch` is called for the next keys, first when the old ranking is deleted and nobody can write to
        it any more. It must read consistently; an empty batch ends. Writers and readers get
        `RankingIncomplete` meanwhile. If it is interrupted, run it again. `progress` is called with the
        number of keys so far.
        """
        mark = yield from self._empty()
        level, entries = 1, (yield from self._build_leaves(batch, progress))
        while len(entries) > self._sizes.inner:
            parts = cut(entries, cuts(len(entries), self._sizes.inner, is_end=True))
            bounds = [LOWEST, *borders(level, parts), HIGHEST]
            entries = yield from self._build_nodes(level, parts, bounds)
            level += 1
        counts, shape = self._items(ROOT, level, entries, LOWEST, HIGHEST)
        tx = self._calls.transaction()
        tx.put(shape, when=RankingShape.shape == mark.shape)
        tx.put(counts)
        self._forget(None)
        try:
            yield from tx.commit()
        except TransactionFailed:
            yield from self._close(mark)  # either may have deleted what the other wrote
            raise RankingIncomplete(
                f"the ranking {self.name!r} was rebuilt or deleted by another process at the same time: "
                "run it again, once"
            ) from None
        return total(entries)

    def clear(self) -> Steps[None]:
        """Delete all items of the ranking.

        Writers and readers get `RankingIncomplete` meanwhile. If it is interrupted, run it again.
        """
        return self._fresh(self._clear)

    def _clear(self) -> Steps[None]:
        mark = yield from self._empty()
        try:
            is_mine = RankingShape.shape == mark.shape
            yield from self._calls.delete(self._shape_items, when=is_mine, **self._key(ROOT))
        except WriteRefused:
            root = yield from self._calls.get(self._shape_items, consistent=True, **self._key(ROOT))
            if root is not None:  # another process's, of which parts may be deleted by now
                raise _Stale from None

    def _empty(self) -> Steps[RankingShape]:
        """Delete everything, and leave a mark in the place of the root.

        Because of the mark nobody finds a way in, and nobody changes the root. Counts are deleted until
        there are none: a node is split only while those above it exist, so from then on nobody adds a
        leaf. When the leaves are deleted, nobody writes any more who remembers a way to one.
        """
        run = new_name()
        mark = self._shape_items(
            **self._key(ROOT), shape=run, era=run, level=0, children="", separators=""
        )
        yield from self._close(mark)
        self._forget(None)
        while (yield from self._delete_all(self._count_items)):
            pass
        yield from self._delete_all(self._leaf_items)
        yield from self._delete_all(self._shape_items)
        return mark

    def _close(self, mark: RankingShape) -> Steps[None]:
        tx = self._calls.transaction()
        tx.put(mark)
        tx.delete(self._count_items, **self._key(ROOT))
        yield from tx.commit()

    def _delete_all(self, kind: Any) -> Steps[int]:
        """Delete the items of a kind, except the mark; the number of them."""
        nodes = yield from self._nodes(kind)
        keys = [self._key(node) for node in nodes if kind is not self._shape_items or node != ROOT]
        return (yield from self._calls.delete_many(kind, keys))

    def _nodes(self, kind: Any) -> Steps[list[str]]:
        """The names of the nodes that have an item of a kind."""
        query = kind.primary.where(kind.ranking == self.name).select(kind.ranking, kind.node)
        return [item.node for item in (yield from self._calls.all(query.consistent()))]

    def _build_leaves(
        self, batch: Batch, progress: Callable[[int], None] | None
    ) -> Steps[list[Entry]]:
        """Write leaves of all keys; their entries in the nodes above."""
        above, pending, low, is_end = list[Entry](), list[Entry](), LOWEST, False
        while not is_end:
            keys = yield from batch()
            is_end = not keys
            for left, right in pairwise([*(entry.low for entry in pending[-1:]), *keys]):
                if left >= right:
                    raise UsageError(
                        f"the keys of a rebuild must ascend, but {right!r} follows {left!r}"
                    )
            pending += key_entries(keys)
            parts = cut(pending, cuts(len(pending), self._sizes.leaf, is_end=is_end))
            bounds = [low, *borders(0, parts), HIGHEST]
            if not is_end:
                pending = parts.pop()
            above += yield from self._build_nodes(0, parts, bounds)
            low = bounds[len(parts)]
            if progress is not None:
                progress(total(above))
        return above

    def _build_nodes(
        self, level: int, parts: Sequence[Sequence[Entry]], bounds: Sequence[str]
    ) -> Steps[list[Entry]]:
        """Write new nodes, each from one bound to the next; their entries in the nodes above."""
        made = [
            Entry(low, new_name(), total(part)) for low, part in zip(bounds, parts, strict=False)
        ]
        yield from self._calls.put_many(
            item
            for entry, part, high in zip(made, parts, bounds[1:], strict=False)
            for item in self._items(entry.node, level, part, entry.low, high)
        )
        return made

    # Consistency

    def _check(self) -> Steps[Findings]:
        """Consistency check, for tests: every fault of the tree, while nobody writes to it. Reads it all."""
        self._forget(None)
        root, faults, expected, actual = (yield from self._learn(ROOT)), list[str](), 0, 0
        number = 0 if root is None else sum(root[1])
        if root is not None:
            entry = Entry(LOWEST, ROOT, number)
            expected = yield from self._check_node(faults, root[0].level, entry, HIGHEST)
        for kind in (self._leaf_items, self._count_items, self._shape_items):
            actual += len((yield from self._nodes(kind)))
        if actual != expected:
            faults.append(f"{actual} items where the tree has {expected}")
        return Findings(faults, number)

    def _check_node(self, faults: list[str], level: int, entry: Entry, high: str) -> Steps[int]:
        """Compare a node and all below it with its entry in the node above; the number of items."""
        name = f"{'inner node' if level else 'leaf'} {entry.node}"
        node = yield from self._node(entry.node, level, entry.low, high)
        if node is None:
            faults.append(f"there is no {name} of level {level}")
            return 0
        lows = [child.low for child in node.entries]
        keys = total(node.entries)
        least = self._sizes.least_children - 1 if level else self._sizes.least_keys
        if (entry.low, high) == (LOWEST, HIGHEST):  # the root, or its only leaf
            least = min(level, 2)
        for fault, is_so in (
            (f"has {len(lows)} entries", not least <= len(lows) <= self._sizes.most(level)),
            ("has another range", (node.low, node.high) != (entry.low, high)),
            ("has entries outside its range", not all(entry.low <= low < high for low in lows)),
            ("has entries out of order", any(left >= right for left, right in pairwise(lows))),
            (f"has {keys} keys, counted {entry.number}", keys != entry.number),
        ):
            if is_so:
                faults.append(f"{name} {fault}")
        if level == 0:
            return 1
        items = 2
        for child, end in zip(node.entries, [*lows[1:], high], strict=True):
            items += yield from self._check_node(faults, level - 1, child, end)
        return items

    # Attempts

    def _fresh(self, attempt: Callable[[], Steps[R]], attempts: int = _ATTEMPTS) -> Steps[R]:
        """Run an attempt until it does not find the remembered tree out of date."""
        return self._retry(attempt, (_Stale,), attempts)

    def _retry(
        self,
        attempt: Callable[[], Steps[R]],
        failures: tuple[type[Exception], ...],
        attempts: int = _ATTEMPTS,
    ) -> Steps[R]:
        """Run an attempt again after some failures; raises `Contended` in the end."""
        last: Exception | None = None
        for number in range(attempts):
            try:
                return (yield from attempt())
            except failures as failure:
                last = failure
                if isinstance(failure, _Stale):
                    self._forget(failure.inners)
                elif isinstance(failure, TransactionFailed):
                    self._forget(None)  # a slot may belong to another child by now
            if number >= _WITHOUT_PAUSE:
                yield from backoff(number - _WITHOUT_PAUSE)
        raise Contended(
            f"others changed the ranking {self.name!r} during each of {attempts} attempts; try again "
            "later; if there are no others, its scores were written by other means, and rerank() rebuilds it"
        ) from last

    # The way to a leaf

    def _key(self, node: str) -> dict[str, Any]:
        return {"ranking": self.name, "node": node}

    def _forget(self, inners: Iterable[Inner] | None) -> None:
        """Read some shapes again when they are needed; None is all of them."""
        if inners is None:
            self._shapes.clear()
        else:
            for inner in inners:
                self._shapes.pop(inner.node, None)

    def _paths(self, *keys: str) -> Steps[list[Path] | None]:
        """The ways to the leaves of keys, by remembered shapes; None if there is no tree yet."""
        paths, inners, shapes = list[Path](), dict[str, Inner](), self._shapes
        for key in keys:
            turns, node = list[Turn](), ROOT
            while True:
                inner = shapes.get(node) or (yield from self._shape(node))
                if inner is None:
                    if not turns:
                        return None
                    raise _Stale([turn.inner for turn in turns])
                if inners.setdefault(node, inner) is not inner:
                    raise _Stale(())  # it was read again between two of the ways
                place = bisect_right(inner.separators, key)
                turns.append(Turn(inner, place))
                node = inner.children[place].node
                if inner.level == 1:
                    break
            paths.append(Path(turns, node))
        return paths

    def _shape(self, node: str) -> Steps[Inner | None]:
        """The shape of an inner node, which may be out of date; None if there is no such node."""
        item = yield from self._calls.get(self._shape_items, consistent=True, **self._key(node))
        return None if item is None else self._remember_shape(item)

    def _learn(self, node: str) -> Steps[tuple[Inner, list[int]] | None]:
        """Shape and counts of an inner node at one moment; None if there is no such node."""
        key = self._key(node)
        shape, counts = yield from self._calls.get_together(
            (self._shape_items, key), (self._count_items, key)
        )
        inner = self._remember_shape(shape) if isinstance(shape, RankingShape) else None
        if inner is None or not isinstance(counts, RankingCounts):
            self._shapes.pop(node, None)
            return None
        return inner, _remember(self._counts, node, counts.counts)

    def _remember_shape(self, item: RankingShape) -> Inner:
        if item.level == 0:
            raise RankingIncomplete(
                f"the ranking {self.name!r} is being rebuilt or deleted, or this was interrupted: try again "
                "later, or run the interrupted call again: load(), rerank(), delete(), drop_ranks()"
            )
        return _remember(self._shapes, item.node, Inner.of(item))

    def _leaves_now(self, nodes: Sequence[str]) -> Steps[dict[str, RankingLeaf]]:
        """Leaves as they are now, each by itself, in one request; missing ones are left out."""
        if len(set(nodes)) == 1:
            key = self._key(nodes[0])
            leaf = yield from self._calls.get(self._leaf_items, consistent=True, **key)
            return {} if leaf is None else {leaf.node: leaf}
        keys = map(self._key, nodes)
        leaves = yield from self._calls.get_many(self._leaf_items, keys, consistent=True)
        return {leaf.node: leaf for leaf in leaves if leaf is not None}

    def _view(self, paths: Iterable[Path]) -> Steps[View]:
        """What lies on some ways, at one moment."""
        inners = {turn.inner.node: turn.inner for path in paths for turn in path.turns}
        return self._view_of(inners, {path.leaf: None for path in paths})

    def _view_of(self, inners: Mapping[str, Inner], leaves: Iterable[str]) -> Steps[View]:
        """Counts of inner nodes, and keys of leaves, at one moment."""
        targets: list[tuple[type[Entity], dict[str, Any]]] = [
            *[(self._count_items, self._key(node)) for node in inners],
            *[(self._leaf_items, self._key(node)) for node in leaves],
        ]
        view = View({}, {})
        for item in (yield from self._calls.get_together(*targets)):
            if isinstance(item, RankingLeaf):
                view.keys[item.node] = sorted(item.keys)
            elif isinstance(item, RankingCounts) and item.shape == inners[item.node].shape:
                view.counts[item.node] = _remember(self._counts, item.node, item.counts)
        if len(view.counts) + len(view.keys) < len(targets):
            raise _Stale([inner for node, inner in inners.items() if node not in view.counts])
        return view

    # The form: full nodes are split, sparse ones joined to their neighbour.
    #
    # Each step is a transaction of its own, which changes no rank. Its conditions are what it relies on: the
    # shape of the node above (of two who change it, the first wins), and the keys or counts that it moves.
    # Others may change the rest meanwhile: other leaves, and the counts of other children. Every step ends by
    # `_Stale`, after which the caller looks at the tree again.

    def _plant(self) -> Steps[None]:
        """Make a tree with one empty leaf."""
        tx, leaf = self._calls.transaction(), Entry(LOWEST, new_name(), 0)
        _write(tx, self._items(leaf.node, 0, (), LOWEST, HIGHEST))
        _write(tx, self._items(ROOT, 1, [leaf], LOWEST, HIGHEST))
        yield from _commit(tx)

    def _reform(self, path: Path, *, is_full: bool, is_sparse: bool) -> Steps[None]:
        """Do the first thing that the way to a leaf needs, if any: the leaf is to be split, or joined."""
        sizes, turns = self._sizes, path.turns
        for above, below in pairwise(turns):
            if len(below.inner.children) < sizes.least_children:
                yield from self._regroup(above, join=True)
        if is_full:
            full = [len(turn.inner.children) >= sizes.inner for turn in turns]
            depth = full.index(True) if any(full) else len(turns)
            if depth:
                yield from self._regroup(turns[depth - 1], join=False)
            yield from self._grow(turns[0].inner)
        if is_sparse and len(turns[-1].inner.children) > 1:
            yield from self._regroup(turns[-1], join=True)

    def _regroup(self, turn: Turn, *, join: bool) -> Steps[None]:
        """Split a child in two, or make one or two nodes of it and its neighbour."""
        above, place = turn
        first = min(place, len(above.children) - 2) if join else place
        nodes = yield from self._children(above, range(first, first + 1 + join))
        level, entries = above.level - 1, [entry for node in nodes for entry in node.entries]
        most = self._sizes.most(level)
        if not join and len(entries) < most:
            raise _Stale([above])
        parts = [entries] if join and len(entries) <= FILL * most else halves(entries)
        tx = self._calls.transaction()
        if above.node == ROOT and level and len(parts) == 1 and len(above.children) == 2:
            only = self._items(ROOT, level, entries, LOWEST, HIGHEST)
            _write(tx, only, RankingCounts.shape == above.shape)
            parts = []
        else:
            lows = [nodes[0].low, *borders(level, parts)]
            names = [*(node.name for node in nodes), new_name()]
            made = [
                Entry(low, name, total(part))
                for low, name, part in zip(lows, names, parts, strict=False)
            ]
            self._replace(tx, above, range(first, first + len(nodes)), made)
            conditions = [*(node.unchanged for node in nodes), None]
            highs = [*lows[1:], nodes[-1].high]
            for entry, part, high, same in zip(made, parts, highs, conditions, strict=False):
                _write(tx, self._items(entry.node, level, part, entry.low, high), same)
        for node in nodes[len(parts) :]:
            key = self._key(node.name)
            tx.delete(self._count_items if level else self._leaf_items, when=node.unchanged, **key)
            if level:
                tx.delete(self._shape_items, **key)
        yield from _commit(tx, above)

    def _children(self, above: Inner, places: range) -> Steps[list[Node]]:
        """Some neighbours as they are now."""
        lows, nodes = [LOWEST, *above.separators, HIGHEST], list[Node]()
        for place in places:
            name = above.children[place].node
            node = yield from self._node(name, above.level - 1, lows[place], lows[place + 1])
            if node is None or (nodes and nodes[-1].high != node.low):
                raise _Stale([above])
            nodes.append(node)
        return nodes

    def _grow(self, root: Inner) -> Steps[None]:
        """Put two nodes between a full root and its children."""
        node = yield from self._node(ROOT, root.level, LOWEST, HIGHEST)
        if node is None or len(node.entries) < self._sizes.inner:
            raise _Stale([root])
        tx, parts = self._calls.transaction(), halves(node.entries)
        two = [Entry(part[0].low, new_name(), total(part)) for part in parts]
        for entry, part in zip(two, parts, strict=True):
            _write(tx, self._items(entry.node, root.level, part, LOWEST, HIGHEST))
        _write(tx, self._items(ROOT, root.level + 1, two, LOWEST, HIGHEST), node.unchanged)
        yield from _commit(tx, root)

    def _replace(self, tx: Transaction, above: Inner, places: range, made: Sequence[Entry]) -> None:
        """Give an inner node other children in some places; its other slots stay as they are."""
        old, shape = above.children[places.start : places.stop], new_name()
        slots = [*(child.slot for child in old), above.free_slot()]
        numbers = dict.fromkeys(slots[:-1], 0)
        children, separators = [*above.children], [*above.separators]
        children[places.start : places.stop] = [
            Child(entry.node, slot) for entry, slot in zip(made, slots, strict=False)
        ]
        separators[places.start : places.stop - 1] = [entry.low for entry in made[1:]]
        numbers |= {slot: entry.number for entry, slot in zip(made, slots, strict=False)}
        tx.update(
            self._count_items,
            RankingCounts.shape.set(shape),
            *(RankingCounts.counts[slot].set(number) for slot, number in numbers.items()),
            when=RankingCounts.shape == above.shape,
            **self._key(above.node),
        )
        new = Inner(above.node, above.level, above.era, shape, children, separators)
        tx.put(self._shape_item(new))

    # Whole nodes

    def _node(self, name: str, level: int, low: str, high: str) -> Steps[Node | None]:
        """A node of a level as it is now; None if there is none. A leaf knows its range itself."""
        if level == 0:
            leaf = (yield from self._leaves_now([name])).get(name)
            if leaf is None:
                return None
            entries, same = key_entries(sorted(leaf.keys)), RankingLeaf.keys == leaf.keys
            return Node(name, entries, leaf.low, leaf.high, same)
        learned = yield from self._learn(name)
        if learned is None or learned[0].level != level:
            return None
        inner, counts = learned
        entries = [
            Entry(begin, child.node, counts[child.slot])
            for begin, child in zip([low, *inner.separators], inner.children, strict=True)
        ]
        same = (RankingCounts.shape == inner.shape) & (RankingCounts.counts == counts)
        return Node(name, entries, low, high, same)

    def _items(
        self, name: str, level: int, entries: Sequence[Entry], low: str, high: str
    ) -> list[Entity]:
        """The items of a node; `Node.unchanged` is a condition on the first one."""
        key, lows = self._key(name), [entry.low for entry in entries]
        if level == 0:
            keys = dict.fromkeys(lows, True)
            return [self._leaf_items.from_trusted({**key, "low": low, "high": high, "keys": keys})]
        shape, era = new_name(), new_name()
        numbers = [entry.number for entry in entries]
        children = [Child(entry.node, slot) for slot, entry in enumerate(entries)]
        return [
            self._count_items.from_trusted({**key, "shape": shape, "era": era, "counts": numbers}),
            self._shape_item(Inner(name, level, era, shape, children, lows[1:])),
        ]

    def _shape_item(self, inner: Inner) -> RankingShape:
        return self._shape_items.from_trusted({"ranking": self.name, **inner.fields()})


class _Stale(Exception):
    """The remembered tree is out of date: read these shapes again, or all of them (None)."""

    def __init__(self, inners: Iterable[Inner] | None = None) -> None:
        super().__init__()
        self.inners = inners


def _remember(memory: dict[str, T], node: str, value: T) -> T:
    """Keep a value of a node, and drop the oldest values if there are too many."""
    if len(memory) >= _MOST_REMEMBERED:
        for oldest in list(memory)[: _MOST_REMEMBERED // 10]:
            memory.pop(oldest, None)
    memory[node] = value
    return value


def _write(tx: Transaction, items: Sequence[Entity], unchanged: Condition | None = None) -> None:
    """Write a node: a new one, or one that is unchanged."""
    for number, item in enumerate(items):
        if unchanged is None:
            tx.create(item)
        else:
            tx.put(item, when=None if number else unchanged)


def _commit(tx: Transaction, *above: Inner) -> Steps[None]:
    """Commit a change of the form, then have the caller look at the tree again."""
    try:
        yield from tx.commit()
    except (TransactionFailed, Contended):
        raise _Stale from None  # another process was faster
    raise _Stale(above)
