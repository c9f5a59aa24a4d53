"""The ranking's tree against a sorted list: ranks, counts, ranges, and its form after every change."""

from __future__ import annotations

import asyncio
import random
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.effort import LONG, examples
from tests.structures.interleaving import Interleaved

import isotone
from isotone import Store, Table, errors
from isotone.model import Steps, number_of, ordered_number
from isotone.structures import SortedSet
from isotone.structures.ranking import (
    Overtaken,
    Ranking,
    after_score,
    before_score,
    ranking_key,
    read_ranking_key,
)
from isotone.structures.ranking_nodes import (
    HIGHEST,
    LOWEST,
    SIZES,
    RankingCounts,
    RankingLeaf,
    RankingShape,
    Sizes,
)
from isotone.structures.structure import bind_entity

SMALL = Sizes(leaf=4, inner=4)

numbers = st.decimals(allow_nan=False, allow_infinity=False, places=None).filter(
    lambda number: len(number.as_tuple().digits) <= 38 and -100 < number.adjusted() < 100
)


# Keys


@given(st.lists(st.tuples(numbers, st.text(st.characters(exclude_categories=["Cs"]))), min_size=2))
def test_keys_sort_by_score_then_by_the_bytes_of_the_member(
    pairs: list[tuple[Decimal, str]],
) -> None:
    keys = sorted(pairs, key=lambda pair: (pair[0], pair[1].encode()))
    by_text = sorted(pairs, key=lambda pair: ranking_key(*pair).encode())
    assert [(score, member) for score, member in by_text] == keys


@given(numbers, st.text(st.characters(exclude_categories=["Cs"])))
def test_a_key_says_score_and_member(score: Decimal, member: str) -> None:
    key = ranking_key(score, member)
    assert read_ranking_key(key) == (score, member)
    assert " " not in key
    assert LOWEST < before_score(score) <= key < after_score(score) < HIGHEST


@given(numbers, numbers, st.text(st.characters(exclude_categories=["Cs"])))
def test_bounds_of_a_score_are_beyond_all_of_other_scores(
    score: Decimal, other: Decimal, member: str
) -> None:
    assert (ranking_key(other, member) < before_score(score)) == (other < score)
    assert (ranking_key(other, member) >= after_score(score)) == (other > score)


@pytest.mark.parametrize(
    "number", ["0", "-0", "9" * 38, "-" + "9" * 38, "1e-130", "-1e-130", "9.99e125", "-9.99e125"]
)
def test_the_whole_range_of_numbers_comes_back(number: str) -> None:
    assert number_of(ordered_number(Decimal(number))) == Decimal(number)


@pytest.mark.parametrize("text", ["", "zz", "12", "1280", "12800a00", "2041"])
def test_a_text_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(errors.MalformedKey):
        number_of(text)


# What every test does with a ranking


class Ranks:
    """A ranking that is run."""

    def __init__(self, store: Store, table: Table, name: str = "r", sizes: Sizes = SMALL) -> None:
        self.store = store
        self.ranking = Ranking(store.calls, table, name, sizes=sizes)

    def change(self, leaving: str | None = None, entering: str | None = None) -> None:
        def attempt() -> Steps[None]:
            tx = self.store.calls.transaction()
            yield from self.ranking.change(tx, leaving=leaving, entering=entering)
            yield from tx.commit()

        self.store.run(self.ranking.settle(attempt))

    def rank(self, key: str) -> int:
        return self.store.run(self.ranking.rank(key))

    def place(self, key: str) -> tuple[int, int] | None:
        return self.store.run(self.ranking.place(key))

    def size(self) -> int:
        return self.store.run(self.ranking.size())

    def count(self, low: str, high: str) -> int:
        return self.store.run(self.ranking.count(low, high))

    def at(self, rank: int, count: int, *, reverse: bool = False) -> list[str]:
        return self.store.run(self.ranking.at(rank, count, reverse=reverse))

    def rebuild(self, keys: Iterable[str], size: int = 5, **more: Any) -> int:
        return self.store.run(self.ranking.rebuild(in_batches(keys, size), **more))

    def check(self, keys: list[str]) -> None:
        findings = self.store.run(self.ranking.check())
        assert findings.faults == []
        assert findings.keys == len(keys) == self.size()
        assert self.at(0, len(keys) + 1) == keys


def in_batches(keys: Iterable[str], size: int) -> Callable[[], Steps[list[str]]]:
    rest = list(keys)

    def batch() -> Steps[list[str]]:
        yield from ()
        found, rest[:] = rest[:size], rest[size:]
        return found

    return batch


def key_of(number: int) -> str:
    return ranking_key(number, f"m{number}")


# Against a sorted list


class AgainstASortedList(RuleBasedStateMachine):
    """Two objects of one ranking, each with a memory of its own that the other makes stale."""

    @initialize(leaf=st.integers(4, 6), inner=st.integers(4, 7))
    def begin(self, leaf: int, inner: int) -> None:
        self.store = isotone.connect()
        self.table = Table("ranks")
        self.store.create_tables(self.table)
        self.keys: list[str] = []
        self.sizes = Sizes(leaf, inner)
        self.ranks = [Ranks(self.store, self.table, sizes=self.sizes) for _ in range(2)]

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()

    numbers = st.integers(0, 99)
    which = st.integers(0, 1)

    @rule(which=which, number=numbers)
    def enter(self, which: int, number: int) -> None:
        key = key_of(number)
        if key not in self.keys:
            self.ranks[which].change(entering=key)
            self.keys = sorted([*self.keys, key])

    @rule(which=which, start=numbers, count=st.integers(1, 12), step=st.integers(1, 3))
    def enter_many(self, which: int, start: int, count: int, step: int) -> None:
        for number in range(start, start + count * step, step):
            self.enter(which, number)

    @precondition(lambda self: self.keys)
    @rule(which=which, data=st.data())
    def leave(self, which: int, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.keys))
        self.ranks[which].change(leaving=key)
        self.keys.remove(key)

    @precondition(lambda self: self.keys)
    @rule(which=which, data=st.data(), count=st.integers(1, 20))
    def leave_many(self, which: int, data: st.DataObject, count: int) -> None:
        start = data.draw(st.integers(0, len(self.keys) - 1))
        for key in self.keys[start : start + count]:
            self.ranks[which].change(leaving=key)
        del self.keys[start : start + count]

    @precondition(lambda self: self.keys)
    @rule(which=which, data=st.data(), number=numbers)
    def move(self, which: int, data: st.DataObject, number: int) -> None:
        old, new = data.draw(st.sampled_from(self.keys)), key_of(number)
        if new == old or new not in self.keys:
            self.ranks[which].change(leaving=old, entering=new)
            self.keys.remove(old)
            self.keys = sorted([*self.keys, new])

    @rule(which=which, number=st.integers(-1, 100))
    def rank(self, which: int, number: int) -> None:
        key = key_of(number)
        below, behind = bisect_left(self.keys, key), sum(each > key for each in self.keys)
        assert self.ranks[which].rank(key) == below
        expected = (below, behind) if key in self.keys else None
        assert self.ranks[which].place(key) == expected

    @rule(which=which, low=numbers, high=numbers)
    def count(self, which: int, low: int, high: int) -> None:
        bounds = before_score(low), after_score(high)
        expected = sum(bounds[0] <= key < bounds[1] for key in self.keys)
        assert self.ranks[which].count(*bounds) == expected

    @rule(which=which, rank=numbers, count=st.integers(0, 70), reverse=st.booleans())
    def at(self, which: int, rank: int, count: int, reverse: bool) -> None:
        keys = self.keys[::-1] if reverse else self.keys
        found = self.ranks[which].at(rank, count, reverse=reverse)
        assert found == keys[rank : rank + count]

    @rule(which=which, size=st.integers(1, 20))
    def rebuild(self, which: int, size: int) -> None:
        assert self.ranks[which].rebuild(self.keys, size) == len(self.keys)

    @invariant()
    def is_right(self) -> None:
        if hasattr(self, "keys"):
            Ranks(self.store, self.table, sizes=self.sizes).check(self.keys)


TestAgainstASortedList = AgainstASortedList.TestCase
TestAgainstASortedList.settings = settings(
    max_examples=examples(40), stateful_step_count=30, deadline=None
)


# What others do meanwhile


def test_readers_see_one_moment_while_writers_divide_and_join(tmp_path: Path) -> None:
    """Keys move below a last one, whose rank therefore never changes; all share two rankings."""
    table, members, rounds = Table("ranks"), 60, 8 if LONG else 3
    last, failures = key_of(10**6), list[Exception]()
    with isotone.connect(f"{tmp_path}/ranks.db", durability="none") as store:
        store.create_tables(table)
        both = [Ranks(store, table) for _ in range(2)]
        both[0].rebuild(sorted([*(ranking_key(0, f"m{each}") for each in range(members)), last]))
        writing = threading.Event()

        def write(seed: int) -> None:
            chosen, scores = random.Random(seed), dict.fromkeys(range(seed, members, 4), 0)
            for _ in range(rounds):
                for member, score in scores.items():
                    scores[member] = chosen.randrange(1000) if chosen.random() < 0.7 else 500
                    old, new = (ranking_key(each, f"m{member}") for each in (score, scores[member]))
                    both[seed % 2].change(leaving=old, entering=new)

        def read(seed: int) -> None:
            ranks = both[seed % 2]
            while not writing.is_set():
                assert ranks.rank(last) == members
                assert ranks.count(LOWEST, HIGHEST) == members + 1
                assert ranks.count(LOWEST, last) == members
                assert ranks.at(members, 5) == [last]
                (first,) = ranks.at(members, 1, reverse=True)
                assert first < last
                assert len(set(ranks.at(0, 40))) == 40

        def noting(work: Callable[[int], None], seed: int) -> Callable[[], None]:
            def run() -> None:
                try:
                    work(seed)
                except Exception as failure:  # noqa: BLE001 - told by the test
                    failures.append(failure)

            return run

        writers = [threading.Thread(target=noting(write, seed)) for seed in range(4)]
        readers = [threading.Thread(target=noting(read, seed)) for seed in range(2)]
        for thread in (*writers, *readers):
            thread.start()
        for thread in writers:
            thread.join()
        writing.set()
        for thread in readers:
            thread.join()
        assert failures == []
        findings = store.run(both[0].ranking.check())
        assert findings.faults == []
        assert findings.keys == members + 1


MOVES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 15)), min_size=3, max_size=12)


@settings(max_examples=examples(60), deadline=None)
@given(
    moves=st.tuples(MOVES, MOVES, MOVES),
    leaf=st.integers(4, 5),
    seed=st.integers(0, 10**6),
)
def test_whatever_the_order_of_requests(
    moves: tuple[list[tuple[int, int]], ...], leaf: int, seed: int
) -> None:
    """Three writers move members of their own, two readers ask for the rank of one that is always last."""
    count, last = 8 * len(moves), ranking_key(10**6, "last")
    with isotone.connect() as store:
        store.create_tables(table := Table("ranks"))
        sizes = Sizes(leaf=leaf, inner=4)
        scores = dict.fromkeys(range(count), 0)
        Ranks(store, table, sizes=sizes).rebuild(
            sorted([*(ranking_key(0, f"m{member}") for member in scores), last])
        )

        def write(writer: int) -> Steps[None]:
            ranking = Ranking(store.calls, table, "r", sizes=sizes)
            for offset, score in moves[writer]:
                member = 8 * writer + offset
                leaving, entering = (ranking_key(n, f"m{member}") for n in (scores[member], score))

                def attempt(leaving: str = leaving, entering: str = entering) -> Steps[None]:
                    tx = store.calls.transaction()
                    yield from ranking.change(tx, leaving=leaving, entering=entering)
                    yield from tx.commit()

                yield from ranking.settle(attempt)
                scores[member] = score

        def read() -> Steps[None]:
            ranking = Ranking(store.calls, table, "r", sizes=sizes)
            for _ in range(6):
                assert (yield from ranking.rank(last)) == count
                assert (yield from ranking.count(LOWEST, HIGHEST)) == count + 1
                assert (yield from ranking.at(count, 2)) == [last]

        Interleaved(store, [*map(write, range(len(moves))), read(), read()]).run(seed)
        keys = [ranking_key(score, f"m{member}") for member, score in scores.items()]
        Ranks(store, table, sizes=sizes).check(sorted([*keys, last]))


# The picture at the top of ranking.py


def picture_of(store: Store) -> tuple[Ranks, Callable[[str], list[int]]]:
    """The tree of the picture, and the counts of one of its nodes."""
    store.create_tables(table := Table("ranks"))
    shapes, counts, leaves = (
        bind_entity(table, kind) for kind in (RankingShape, RankingCounts, RankingLeaf)
    )
    for node, level, numbers, children, separator in (
        ("root", 2, [6, 5], "x:0 y:1", "k"),
        ("x", 1, [4, 2], "1:0 2:1", "f"),
        ("y", 1, [3, 2], "3:0 4:1", "p"),
    ):
        key = {"ranking": "r", "node": node, "shape": f"shape of {node}", "era": "e"}
        store.put(shapes(**key, level=level, children=children, separators=separator))
        store.put(counts(**key, counts=numbers))
    bounds = [LOWEST, "f", "k", "p", HIGHEST]
    for number, keys in enumerate(["abde", "fh", "kmn", "pr"]):
        low, high = bounds[number : number + 2]
        items = dict.fromkeys(keys, True)
        store.put(leaves(ranking="r", node=f"{number + 1}", low=low, high=high, keys=items))

    def counts_of(node: str) -> list[int]:
        found = store.get(counts, ranking="r", node=node)
        assert found is not None
        return found.counts

    return Ranks(store, table), counts_of


def test_the_picture_is_a_tree(memory: Store) -> None:
    ranks, _ = picture_of(memory)
    ranks.check([*"abdefhkmnpr"])
    assert ranks.rank("m") == 7


@pytest.mark.parametrize(
    ("leaving", "entering", "root", "x", "y"),
    [
        ("a", "c", [6, 5], [4, 2], [3, 2]),
        ("m", "q", [6, 5], [4, 2], [2, 3]),
        ("h", "q", [5, 6], [4, 1], [3, 3]),
    ],
)
def test_the_changes_of_the_picture(
    memory: Store, leaving: str, entering: str, root: list[int], x: list[int], y: list[int]
) -> None:
    ranks, counts_of = picture_of(memory)
    ranks.change(leaving=leaving, entering=entering)
    assert [*map(counts_of, ("root", "x", "y"))] == [root, x, y]
    ranks.check(sorted({*"abdefhkmnpr", entering} - {leaving}))


# Several ways to go wrong


def test_a_key_that_is_not_there_does_not_leave(memory: Store) -> None:
    memory.create_tables(table := Table("ranks"))
    ranks = Ranks(memory, table)
    ranks.change(entering=key_of(1))
    tx = memory.calls.transaction()
    with pytest.raises(Overtaken):
        memory.run(ranks.ranking.change(tx, leaving=key_of(2)))
    with pytest.raises(Overtaken):
        memory.run(ranks.ranking.change(tx, entering=key_of(1)))


def test_a_transaction_that_was_overtaken_fails_whole(memory: Store) -> None:
    memory.create_tables(table := Table("ranks"))
    ranks = Ranks(memory, table)
    ranks.rebuild(map(key_of, range(100, 130)))
    tx = memory.calls.transaction()
    memory.run(ranks.ranking.change(tx, leaving=key_of(105), entering=key_of(900)))
    for number in range(900, 930):  # divides the leaf that the key was to enter
        ranks.change(entering=ranking_key(number, "other"))
    with pytest.raises(errors.TransactionFailed):
        memory.run(tx.commit())
    keys = [*map(key_of, range(100, 130)), *(ranking_key(n, "other") for n in range(900, 930))]
    ranks.check(keys)


def test_an_interrupted_rebuild_is_said_and_can_be_run_again(memory: Store) -> None:
    memory.create_tables(table := Table("ranks"))
    ranks, keys = Ranks(memory, table), [*map(key_of, range(100, 200))]
    ranks.rebuild(keys)
    ranks.rank(keys[3])
    told: list[int] = []
    with pytest.raises(errors.UsageError, match="must ascend"):
        Ranks(memory, table).rebuild([*keys, keys[0]], progress=told.append)
    assert told[-1] > 0
    for call in (
        lambda: ranks.rank(keys[3]),
        lambda: ranks.size(),
        lambda: ranks.at(0, 10),
        lambda: ranks.change(leaving=keys[0], entering=key_of(500)),
        lambda: ranks.change(leaving=keys[5], entering=keys[5] + "x"),
    ):
        with pytest.raises(errors.RankingIncomplete, match="'r'"):
            call()
    assert ranks.rebuild(keys[:50]) == 50
    ranks.check(keys[:50])


def test_nobody_divides_a_node_behind_the_deletion_of_a_rebuild() -> None:
    """Leaves go only when nothing is left by which another one could be made."""
    spent: list[isotone.Observation] = []
    with isotone.connect(observe=[isotone.at_end(spent.append)]) as store:
        store.create_tables(table := Table("ranks"))
        ranks = Ranks(store, table)
        ranks.rebuild([key_of(number) for number in range(100)])
        spent.clear()
        ranks.rebuild([])
    entries = [
        entry
        for each in spent
        if each.operation == "BatchWriteItem"
        for entry in each.request["RequestItems"]["ranks"]
    ]
    keys = [
        entry["DeleteRequest"]["Key"]["SK"]["S"] for entry in entries if "DeleteRequest" in entry
    ]
    assert list(dict.fromkeys(key.partition("#")[0] for key in keys)) == ["COUNTS", "LEAF", "SHAPE"]


def test_rankings_live_side_by_side_and_are_cleared_alone(memory: Store) -> None:
    memory.create_tables(table := Table("ranks"))
    one, other = Ranks(memory, table, "one"), Ranks(memory, table, "two")
    one.rebuild(map(key_of, range(100, 140)))
    other.rebuild(map(key_of, range(100, 120)))
    memory.run(one.ranking.clear())
    one.check([])
    other.check([*map(key_of, range(100, 120))])
    one.change(entering=key_of(1))
    one.check([key_of(1)])


# Cost


def test_a_rank_among_a_hundred_thousand_takes_three_items() -> None:
    spent: list[isotone.Observation] = []

    def items() -> list[int]:
        return [len(each.request["TransactItems"]) for each in spent]

    with isotone.connect(observe=[isotone.at_end(spent.append)]) as store:
        store.create_tables(table := Table("ranks"))
        ranks = Ranks(store, table, sizes=SIZES)
        keys = sorted(map(key_of, range(100_000)))
        ranks.rebuild(keys, 5000)
        ranks.rank(keys[777])
        spent.clear()
        assert ranks.rank(keys[777]) == 777
        assert items() == [3]
        assert ranks.at(0, 10, reverse=True) == keys[:-11:-1]
        spent.clear()
        assert ranks.at(0, 10, reverse=True) == keys[:-11:-1]
        assert items() == [3]


# On every backend


def test_on_every_backend(store: Store, table_name: str) -> None:
    store.create_tables(table := Table(table_name))
    ranks, keys, chosen = Ranks(store, table), list[str](), random.Random(6)
    for number in [*range(30), *range(60, 30, -1)]:
        ranks.change(entering=key_of(number))
        keys.append(key_of(number))
    for _ in range(40):
        old = keys.pop(chosen.randrange(len(keys)))
        new = key_of(chosen.randrange(100, 100_000))
        ranks.change(leaving=old, entering=new)
        keys.append(new)
    keys.sort()
    ranks.check(keys)
    for place, key in enumerate(keys):
        assert ranks.rank(key) == place
    for key in keys[10:]:
        ranks.change(leaving=key)
    ranks.check(keys[:10])


def test_members_as_long_as_keys_allow(memory: Store) -> None:
    """Leaves and shapes hold keys, so they grow with them: 40 and 79 of a kilobyte fit into an item."""
    memory.create_tables(table := Table("ranks"))
    ranks = Ranks(memory, table, sizes=SIZES)
    keys = [ranking_key(7, "é" * 480 + f"{number:04}") for number in range(2500)]
    ranks.rebuild(keys[::2], 500)
    for key in keys[1:200:2]:
        ranks.change(entering=key)
    assert ranks.rank(keys[150]) == 150
    assert ranks.at(0, 3, reverse=True) == [keys[2498], keys[2496], keys[2494]]
    assert memory.run(ranks.ranking.check()).faults == []


def test_over_an_async_store() -> None:
    async def program() -> tuple[int | None, list[str]]:
        async with isotone.aconnect() as store:
            ranked = SortedSet(store, "s", ranked=True)
            await ranked.create_table()
            await asyncio.gather(*(ranked.zincrby(n % 7, f"m{n:02}") for n in range(60)))
            return await ranked.zrank("m05"), await ranked.zrevrange(0, 2)

    order = sorted((number % 7, f"m{number:02}") for number in range(60))
    expected = order.index((5, "m05")), [member for _, member in order[:-4:-1]]
    assert asyncio.run(program()) == expected


def test_a_place_is_that_of_a_key_that_is_there(memory: Store) -> None:
    table = Table("places")
    memory.create_tables(table)
    ranking = Ranking(memory.calls, table, "few")
    batches = iter([["a", "b", "d"], []])

    def batch() -> Steps[list[str]]:
        yield from ()
        return next(batches)

    memory.run(ranking.rebuild(batch))
    assert [memory.run(ranking.place(key)) for key in ("a", "b", "c", "d", "e")] == [
        (0, 2),
        (1, 1),
        None,
        (2, 0),
        None,
    ]
