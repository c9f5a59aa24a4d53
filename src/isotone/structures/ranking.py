"""Ranks and counts in a few item reads: an order-statistic tree stored in the items of one partition.

A key is a text that sorts like the score and the member that it was made from (`ranking_key`). A tree of eleven keys,
with up to four keys in a leaf:

    COUNTS#root  [6, 5]              6 keys below x, 5 below y
    SHAPE#root   x:0 "k" y:1         x has slot 0 of the counts, y slot 1; keys from "k" on are below y
     |
     +-- COUNTS#x  [4, 2]
     |   SHAPE#x   1:0 "f" 2:1
     |    +-- LEAF#1  a b d e        from the lowest key up to "f"
     |    +-- LEAF#2  f h            from "f" up to "k"
     |
     +-- COUNTS#y  [3, 2]
         SHAPE#y   3:0 "p" 4:1
          +-- LEAF#3  k m n
          +-- LEAF#4  p r

- **A rank** is the number of smaller keys: those before the key in its leaf, and the counts left of its path. For
  `m` these are 1 in LEAF#3, 0 in COUNTS#y and 6 in COUNTS#root: 7. One transaction reads the three items. Shapes are
  remembered (`ranking_tree`), so the path takes no read. `Ranking.rank` and `place` ask for it, `ranking_tree` reads,
  and `View.rank` in `ranking_nodes` adds it up.
- **A change within a leaf** (`a` to `c`) is one write to the leaf. It reads nothing.
- **A change across leaves** writes both leaves, and adds to the counts where the two paths differ. `m` to `q` adds
  -1 and +1 to COUNTS#y. `h` to `q` adds -1 to COUNTS#x, +1 to COUNTS#y, and -1 and +1 to COUNTS#root.
- **A full leaf** is split before a key enters, and a sparse one joined to its neighbour before a key leaves
  (`ranking_balance`). **A rebuild** makes all nodes again (`ranking_rebuild`).

The invariants, which `check` verifies:

1. A child of a node of level n is a node of level n - 1; leaves have level 0.
2. The entries of a node (keys, or starts of children) ascend, and lie in its range. A leaf holds the range that the
   node above gives it.
3. The count of a child is the number of keys below it.
4. COUNTS and SHAPE of a node name the same shape.
5. A node has no more entries than `Sizes` says, and a quarter of them or more; an inner node may lack one. The root
   has two children or more, or one leaf, which may be empty.
6. There are no other items of the ranking.

Structures compose the generators of `Ranking`. A key enters and leaves in the caller's own transaction, together
with the item that it ranks:

    def attempt() -> Steps[None]:
        member = yield from self.calls.get(…, consistent=True)
        tx = self.calls.transaction()
        tx.update(…, when=Member.score == member.score)
        yield from self.ranking.change(tx, leaving=old, entering=new)
        yield from tx.commit()

    yield from self.ranking.settle(attempt)

docs/design/decisions/019 explains why the tree has this form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from isotone.errors import Contended, TransactionFailed
from isotone.model import (
    Calls,
    Change,
    Condition,
    Steps,
    Table,
    Transaction,
    all_of,
    escape,
    number_of,
    ordered_number,
    unescape,
)
from isotone.structures import ranking_rebuild
from isotone.structures.ranking_balance import Balance
from isotone.structures.ranking_nodes import (
    HIGHEST,
    LOWEST,
    NOWHERE,
    ROOT,
    SIZES,
    KeyMove,
    RankingCounts,
    RankingLeaf,
    RewrittenChild,
    Sizes,
    count_changes,
    total,
    walk,
)
from isotone.structures.ranking_rebuild import Batch, Progress
from isotone.structures.ranking_tree import OutOfDate, Tree
from isotone.tables.retries import STALE_READS, RetryNeeded

R = TypeVar("R")

_LEAVES_AT_ONCE: Final = 50  # leaves that are read at one moment
_SEPARATOR: Final = "#"
_ABOVE_SEPARATOR: Final = "$"


# Keys


class Ranked(NamedTuple):
    """The score and the member of a key."""

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


class Overtaken(RetryNeeded):
    """The leaving key is missing, or the entering one exists: others changed the member. Read it again."""


class KeyRank(NamedTuple):
    """The position of a key: how many keys are smaller, and how many greater."""

    smaller: int
    greater: int


class Findings(NamedTuple):
    """The result of a consistency check: faults in words, and the number of keys."""

    faults: list[str]
    keys: int


class Ranking:
    """The order of the keys of one ranking, in any table whose primary key is two strings.

    Give all objects of one ranking the same `sizes`. An object caches the shapes of its tree: reuse it, instead of
    making one for each call.
    """

    def __init__(self, calls: Calls, table: Table, name: str, *, sizes: Sizes = SIZES) -> None:
        self.name = name
        self._sizes = sizes
        self._tree = Tree(calls, table, name)
        self._balance = Balance(self._tree, sizes)

    # Reads

    def rank(self, key: str) -> Steps[int]:
        """The number of smaller keys; the key itself may be absent. Reads one item for each level."""
        (path,), view = yield from self._tree.look_up(key)
        return view.rank(key, path)

    def place(self, key: str) -> Steps[KeyRank | None]:
        """The position of a key, at one moment; None if it is absent.

        Reads as `rank` does.
        """
        return self._tree.until_current(partial(self.place_once, key))

    def place_once(self, key: str) -> Steps[KeyRank | None]:
        """One attempt of `place`; raises `RetryNeeded` if the cached tree is out of date."""
        (path,), view = yield from self._tree.look_up_once((key,))
        if key not in view.keys[path.end]:
            return None
        rank = view.rank(key, path)
        return KeyRank(rank, sum(view.counts[ROOT]) - rank - 1)

    def count(self, low: str, high: str) -> Steps[int]:
        """The number of keys from `low` (included) to `high` (not included), at one moment."""
        if low >= high:
            return 0
        (to_low, to_high), view = yield from self._tree.look_up(low, high)
        return view.rank(high, to_high) - view.rank(low, to_low)

    def size(self) -> Steps[int]:
        """The number of keys. Reads one item."""
        return self._tree.size()

    def at(self, rank: int, count: int, *, reverse: bool = False) -> Steps[list[str]]:
        """Up to `count` keys from a rank on; with `reverse`, ranks count from the greatest key.

        Keys before the rank are not read. `read_ranking_key` gives score and member back. Five hundred
        keys at a time are as of one moment.
        """
        keys: list[str] = []
        at_once = _LEAVES_AT_ONCE * self._sizes.least_keys
        while count > len(keys):
            wanted = min(at_once, count - len(keys))
            part = yield from self._tree.keys_at(rank + len(keys), wanted, reverse=reverse)
            keys += part
            if len(part) < wanted:
                break
        return keys

    # Changes

    def settle(self, attempt: Callable[[], Steps[R]]) -> Steps[R]:
        """Repeat an attempt (read, `change`, commit) while others interfere; raises `Contended` after too many."""
        return STALE_READS.run(
            attempt,
            self._tree.contended,
            lost=(RetryNeeded, Contended, TransactionFailed),
            note=self._forget_failed,
        )

    def _forget_failed(self, error: Exception) -> None:
        """Forget the shapes that led a failed transaction to nodes whose conditions were false."""
        if isinstance(error, TransactionFailed):
            keys = [failure.key.fields for failure in error.failures]
            self._tree.forget_paths_to(
                {key["node"] for key in keys if key.get("ranking") == self.name}
            )

    def change(
        self, tx: Transaction, *, leaving: str | None = None, entering: str | None = None
    ) -> Steps[None]:
        """Add writes to a transaction: one key leaves the ranking, and another enters.

        The transaction fails if a key has left or entered meanwhile, or its leaf was split: start again
        from a new read. Raises `Overtaken` if this is known beforehand.
        """
        if leaving == entering:
            return
        keys = {key: by for key, by in ((leaving, -1), (entering, +1)) if key is not None}
        moves = self._cached_exchange(keys)
        if moves is None:
            moves = yield from self._tree.until_current(partial(self._moves, keys))
        if _is_exchange(moves):
            self._change_leaf(tx, moves)  # the leaf keeps its number of keys, so no count changes
            return
        for move in moves:
            self._change_leaf(tx, [move])
        for inner, slots in count_changes(moves):
            tx.update(
                self._tree.counts_kind,
                *(RankingCounts.counts[slot].add(by) for slot, by in slots.items()),
                when=RankingCounts.era == inner.era,
                **self._tree.item_key(inner.node),
            )

    def _cached_exchange(self, keys: Mapping[str, int]) -> list[KeyMove] | None:
        """Both moves, if the cached tree has both keys in one leaf; None otherwise. Nothing is read.

        Such a change relies on the leaf only, so the conditions of its write suffice. If they do not hold, `settle`
        forgets the shape above the leaf, and the next attempt reads.
        """
        moves = [KeyMove(key, by, walk(self._tree.shapes, key)) for key, by in keys.items()]
        return moves if _is_exchange(moves) and moves[0].path.reaches_leaf else None

    def _moves(self, keys: Mapping[str, int]) -> Steps[list[KeyMove]]:
        """Where keys leave and enter. If the tree had to be balanced first, it raises `OutOfDate` as well."""
        tree = self._tree
        paths = yield from tree.paths([*keys])
        if paths[0] is NOWHERE:
            yield from self._balance.plant()
            raise OutOfDate
        leaves = yield from tree.leaves([path.end for path in paths])
        moves = [
            KeyMove(key, by, path) for (key, by), path in zip(keys.items(), paths, strict=True)
        ]
        for key, by, path in moves:
            leaf = leaves.get(path.end)
            if leaf is None or not leaf.low <= key < leaf.high:
                tree.forget([turn.inner.node for turn in path.turns])
                raise OutOfDate
            is_there, is_leaving = key in leaf.keys, by < 0
            if is_there is not is_leaving:
                raise Overtaken(key)
        if _is_exchange(moves):
            return moves  # the leaf keeps its size
        for _, by, path in moves:
            step = self._balance.next_step(path, leaves[path.end], by)
            if step is not None:
                yield from step
                raise OutOfDate
        return moves

    def _change_leaf(self, tx: Transaction, moves: Sequence[KeyMove]) -> None:
        """Write a key that leaves or enters a leaf, or both; the leaf must still have room for it, and contain it."""
        changes, conditions = list[Change](), list[Condition]()
        for key, by, _ in moves:
            field = RankingLeaf.keys[key]
            if by > 0:
                changes.append(field.set(True))
                conditions += [field.missing(), RankingLeaf.low <= key, RankingLeaf.high > key]
            else:
                changes.append(field.remove())
                conditions.append(field.exists())
        if len(moves) == 1:
            conditions.append(self._keeps_its_size(moves[0]))
        leaf = self._tree.item_key(moves[0].path.end)
        tx.update(self._tree.leaf_kind, *changes, when=all_of(tuple(conditions)), **leaf)

    def _keeps_its_size(self, move: KeyMove) -> Condition:
        size = RankingLeaf.keys.size
        if move.by > 0:
            return size < self._sizes.leaf
        is_only_leaf = (RankingLeaf.low == LOWEST) & (RankingLeaf.high == HIGHEST)
        return (size > self._sizes.least_keys) | is_only_leaf

    # The whole ranking

    def rebuild(self, batch: Batch, *, progress: Progress | None = None) -> Steps[int]:
        """Build the ranking again from all keys in ascending order; returns the number of keys.

        `batch` returns the next keys; an empty batch ends. It is first called when the old ranking is deleted and
        closed to writers, and it must read consistently. Writers and readers get `RankingIncomplete` meanwhile. If it
        is interrupted, run it again. `progress` is called with the number of keys so far.
        """
        return ranking_rebuild.rebuild(self._tree, self._sizes, batch, progress)

    def clear(self) -> Steps[None]:
        """Delete all items of the ranking.

        Writers and readers get `RankingIncomplete` meanwhile. If it is interrupted, run it again.
        """
        return ranking_rebuild.clear(self._tree)

    # Consistency

    def check(self) -> Steps[Findings]:
        """Consistency check, for tests: verifies the invariants above. There must be no writers meanwhile."""
        tree, faults, expected, actual = self._tree, list[str](), 0, 0
        tree.forget_all()
        root = yield from tree.learn(ROOT)
        number = 0 if root is None else sum(root[1])
        if root is not None:
            entry = RewrittenChild(LOWEST, ROOT, number)
            expected = yield from self._check_node(faults, root[0].level, entry, HIGHEST)
        for kind in (tree.leaf_kind, tree.counts_kind, tree.shape_kind):
            actual += len((yield from tree.names(kind)))
        if actual != expected:
            faults.append(f"{actual} items where the tree has {expected}")
        return Findings(faults, number)

    def _check_node(
        self, faults: list[str], level: int, entry: RewrittenChild, high: str
    ) -> Steps[int]:
        """Compare a node and everything below it with its entry in the node above; returns the number of items."""
        name = f"{'inner node' if level else 'leaf'} {entry.node}"
        node = yield from self._tree.node(entry.node, level, entry.low, high)
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


def _is_exchange(moves: Sequence[KeyMove]) -> bool:
    """Whether one key takes the place of another in the same leaf."""
    return len(moves) == 2 and moves[0].path.end == moves[1].path.end
