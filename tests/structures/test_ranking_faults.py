"""The ranking's tree when others come between any two requests, when requests fail, and when a program ends."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeVar

import pytest
from tests.effort import LONG
from tests.structures.interleaving import Interleaved
from tests.structures.simulation import WRITES, Hasty, Repeating
from tests.structures.test_ranking import SMALL, Ranks, in_batches, key_of

import isotone
from isotone import ManualClock, Store, Table, errors
from isotone.backends.interface import Request, Response
from isotone.model import Pause, Steps
from isotone.structures import SortedSet
from isotone.structures.ranking import Ranking, ranking_key
from isotone.structures.ranking_nodes import (
    HIGHEST,
    LOWEST,
    ROOT,
    SIZES,
    RankingCounts,
    RankingLeaf,
    RankingShape,
)
from isotone.structures.structure import bind_entity
from isotone.tables.retries import STALE_READS

E = TypeVar("E", RankingShape, RankingCounts, RankingLeaf)

KEYS = [key_of(number) for number in range(100, 130)]


@pytest.fixture
def hasty(memory: Store) -> Store:
    """A store in memory whose pauses take no time, with a table for rankings."""
    requests_alone = isotone.connect(memory.backend, clock=memory.clock, check_keys=False)
    store = Hasty.over(requests_alone)
    store.create_tables(Table("ranks"))
    return store


def ranks_in(store: Store, **more: Any) -> Ranks:
    """One who knows nothing of a ranking yet."""
    return Ranks(store, Table("ranks"), **more)


def items_of(store: Store, kind: type[E]) -> list[E]:
    """All items of a kind in the rankings' table."""
    here = bind_entity(Table("ranks"), kind)
    return list(store.iterate(here.primary.where(here.ranking == "r").consistent()))


def requests_of(store: Store, steps: Steps[Any]) -> Iterator[str]:
    """Run steps one request at a time, so that others can come between; each request's operation."""
    answer: Any = None
    try:
        while True:
            failed = isinstance(answer, errors.ApiError)
            step = steps.throw(answer) if failed else steps.send(answer)
            if isinstance(step, Pause):
                answer = {}
                continue
            try:
                answer = store.backend.execute(step.operation, step.request)
            except errors.ApiError as error:
                answer = error
            yield step.operation
    except StopIteration:
        return


class Meanwhile:
    """A backend that lets others go on when it has carried out the first request, before it answers."""

    def __init__(self, backend: Any, others: Callable[[], object]) -> None:
        self._backend = backend
        self._others = [others]

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        response: Response = self._backend.execute(operation, request)
        if self._others:
            self._others.pop()()
        return response


def through(store: Store, backend: Any) -> Store:
    """The same store by way of another backend."""
    return Hasty.over(Store(backend, store.calls._reader, store.clock, lambda: None))


# Others between two requests


def test_a_ranking_that_is_cleared_while_others_write_is_whole_afterwards(hasty: Store) -> None:
    """Whoever wrote between the deletion of the root and that of the rest left a root without counts."""
    number = len([*requests_of(hasty, ranks_in(hasty).ranking.clear())])
    for request in range(number):
        ranks_in(hasty).rebuild(KEYS)
        for place, _ in enumerate(requests_of(hasty, ranks_in(hasty).ranking.clear())):
            if place == request:
                try:
                    ranks_in(hasty).change(entering=key_of(500))
                except errors.RankingIncomplete as error:
                    assert "or deleted" in str(error)  # noqa: PT017 - it may also go through
        ranks = ranks_in(hasty)
        ranks.change(entering=key_of(501))
        findings = hasty.run(ranks.ranking.check())
        assert findings.faults == []
        hasty.run(ranks.ranking.clear())


def test_a_ranking_that_is_cleared_while_others_rebuild_it_is_whole_or_reported(
    hasty: Store,
) -> None:
    """It deleted parts of what the others had made in between, and told nobody."""
    number = len([*requests_of(hasty, ranks_in(hasty).ranking.clear())])
    for before in range(1, number + 2):
        for between in range(1, 16, 1 if LONG else 3):
            ranks_in(hasty).rebuild(KEYS)
            clearing = requests_of(hasty, ranks_in(hasty).ranking.clear())
            making = ranks_in(hasty).ranking.rebuild(in_batches(KEYS, 20))
            rebuilding = requests_of(hasty, making)
            _ = [*islice(clearing, before)], [*islice(rebuilding, between)], [*clearing]
            try:
                _ = [*rebuilding]
            except errors.RankingIncomplete:
                with pytest.raises(errors.RankingIncomplete):
                    ranks_in(hasty).size()
            else:
                is_there = ranks_in(hasty).size() > 0
                ranks_in(hasty).check(KEYS if is_there else [])


def test_two_callers_that_clear_a_ranking_leave_nothing(hasty: Store) -> None:
    ranks = ranks_in(hasty)
    for seed in range(50 if LONG else 16):
        ranks.rebuild(KEYS)
        clears = [ranks_in(hasty).ranking.clear() for _ in range(2 + seed % 2)]
        Interleaved(hasty, clears, conflicts=20).run(seed)
        for kind in (RankingShape, RankingCounts, RankingLeaf):
            assert items_of(hasty, kind) == []


def test_a_size_that_is_asked_for_while_a_rebuild_ends_is_not_none(hasty: Store) -> None:
    """There were no counts yet, and then no mark any more."""
    rebuilding = requests_of(hasty, ranks_in(hasty).ranking.rebuild(in_batches(KEYS, 20)))
    while next(rebuilding) != "BatchWriteItem":  # of leaves
        pass
    late = through(hasty, Meanwhile(hasty.backend, lambda: [*rebuilding]))
    assert ranks_in(late).size() == len(KEYS)


def test_the_first_writer_does_not_open_a_ranking_that_is_being_made(hasty: Store) -> None:
    """Who has seen no tree makes one, unless somebody has begun to in the meantime."""
    rebuilding = requests_of(hasty, ranks_in(hasty).ranking.rebuild(in_batches(KEYS, 20)))
    late = through(hasty, Meanwhile(hasty.backend, lambda: next(rebuilding)))  # the mark is there
    with pytest.raises(errors.RankingIncomplete):
        ranks_in(late).change(entering=key_of(1))
    assert [*rebuilding]
    ranks_in(hasty).check(KEYS)


def test_a_slow_writer_is_not_overtaken_by_quick_ones_in_the_same_leaf(hasty: Store) -> None:
    """Changes of other keys of a leaf do not fail one another, however many come between two requests."""
    quick, slow = ranks_in(hasty), ranks_in(hasty)
    quick.rebuild(KEYS)
    tx = hasty.calls.transaction()

    def change() -> Steps[None]:
        yield from slow.ranking.change(tx, leaving=KEYS[3], entering=KEYS[3] + "x")
        yield from tx.commit()

    place = 0
    for _ in requests_of(hasty, change()):
        place = 1 - place
        for key in (KEYS[4], KEYS[5]):
            quick.change(leaving=key + "y" * (1 - place), entering=key + "y" * place)
    at_end = sorted({*KEYS} - {KEYS[3]} | {KEYS[3] + "x"})
    moved = [key + "y" if place and key in (KEYS[4], KEYS[5]) else key for key in at_end]
    quick.check(sorted(moved))


# Requests that fail


class Throttling:
    """A backend that has no units left for some requests, or for some items of a transaction."""

    def __init__(self, backend: Any, seed: int, of_a_hundred: int) -> None:
        self._backend = backend
        self._chosen = random.Random(seed)
        self.of_a_hundred = of_a_hundred
        self.plain = False
        self.count = 0

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        items = request.get("TransactItems")
        if self._chosen.randrange(100) < self.of_a_hundred and (items or self.plain):
            self.count += 1
            if not items:
                raise errors.ProvisionedThroughputExceededException("no units left")
            reasons = [{"Code": "None"} for _ in items]
            code = self._chosen.choice(["ThrottlingError", "ProvisionedThroughputExceeded"])
            reasons[self._chosen.randrange(len(items))] = {"Code": code}
            raise errors.TransactionCanceledException("cancelled", CancellationReasons=reasons)
        response: Response = self._backend.execute(operation, request)
        return response


def move_some(ranks: Ranks, keys: list[str], seed: int, moves: int) -> None:
    """Move keys of the list that the ranking has, anywhere."""
    chosen = random.Random(seed)
    for number in range(moves):
        old = keys.pop(chosen.randrange(len(keys)))
        new = ranking_key(chosen.randrange(200), f"moved {seed} {number}")
        ranks.change(leaving=old, entering=new)
        keys.append(new)


def test_throttled_transactions_are_repeated(hasty: Store) -> None:
    throttling = Throttling(hasty.backend, 7, of_a_hundred=30)
    ranks, keys = ranks_in(through(hasty, throttling)), [*KEYS]
    ranks.rebuild(KEYS)
    move_some(ranks, keys, 1, 150)
    assert throttling.count > 50
    assert ranks.rank(HIGHEST) == len(KEYS)
    ranks_in(hasty).check(sorted(keys))


def test_what_throttling_ends_is_done_or_not(hasty: Store) -> None:
    """A plain read that is throttled ends the call, whose caller tries again."""
    throttling = Throttling(hasty.backend, 8, of_a_hundred=15)
    ranks, keys, ended = ranks_in(through(hasty, throttling)), [*KEYS], 0
    ranks.rebuild(KEYS)
    throttling.plain = True
    for number in range(150):
        old, new = keys[0], ranking_key(number % 50, f"moved {number}")
        try:
            ranks.change(leaving=old, entering=new)
        except errors.ProvisionedThroughputExceededException:
            ended += 1
        else:
            keys = [*keys[1:], new]
    assert ended > 10
    ranks_in(hasty).check(sorted(keys))


def test_answers_that_are_lost_change_nothing(hasty: Store) -> None:
    """The request is sent again, with the token of the first time, which the member's write always takes."""
    store, chosen, sums = through(hasty, Repeating(hasty.backend)), random.Random(2), Counter[str]()
    ranked = SortedSet(store, "lost", ranked=True)
    ranked.create_table()
    for _ in range(300):
        member, by = f"m{chosen.randrange(100)}", chosen.randrange(50)
        ranked.zincrby(by, member)
        sums[member] += by
    expected = sorted((score, member) for member, score in sums.items())
    assert ranked.zrange(0, -1) == [member for _, member in expected]
    assert ranked.ranking is not None
    assert hasty.run(ranked.ranking.check()).faults == []


def test_eight_writers_whose_transactions_meet(hasty: Store) -> None:
    """A third of all transactions are cancelled because others are under way with the same items."""
    all_keys = {seed: [ranking_key(0, f"{seed} {n}") for n in range(6)] for seed in range(8)}
    ranks_in(hasty).rebuild(sorted(key for keys in all_keys.values() for key in keys))

    def write(seed: int) -> Steps[None]:
        ranking = Ranking(hasty.calls, Table("ranks"), "r", sizes=SMALL)
        chosen, keys = random.Random(seed), all_keys[seed]
        for number in range(12):
            old, new = keys.pop(0), ranking_key(chosen.randrange(9), f"{seed} moved {number}")

            def attempt(old: str = old, new: str = new) -> Steps[None]:
                tx = hasty.calls.transaction()
                yield from ranking.change(tx, leaving=old, entering=new)
                yield from tx.commit()

            yield from ranking.settle(attempt)
            keys.append(new)

    Interleaved(hasty, map(write, all_keys), conflicts=33).run(3)
    ranks_in(hasty).check(sorted(key for keys in all_keys.values() for key in keys))


# What is remembered


def test_a_change_within_a_remembered_leaf_reads_nothing(hasty: Store) -> None:
    ranks = ranks_in(hasty)
    ranks.rebuild(KEYS)
    ranks.rank(KEYS[3])

    def change() -> Steps[None]:
        tx = hasty.calls.transaction()
        yield from ranks.ranking.change(tx, leaving=KEYS[3], entering=KEYS[3] + "x")
        yield from tx.commit()

    assert len([*requests_of(hasty, change())]) == 1
    ranks_in(hasty).check(sorted({*KEYS} - {KEYS[3]} | {KEYS[3] + "x"}))


def test_a_remembered_leaf_that_others_have_split_is_read_again(hasty: Store) -> None:
    slow, quick = ranks_in(hasty), ranks_in(hasty)
    quick.rebuild(KEYS)
    slow.rank(KEYS[3])
    added = [f"{KEYS[2]}{number:02}" for number in range(20)]  # below KEYS[3], in its leaf
    for key in added:
        quick.change(entering=key)
    slow.change(leaving=KEYS[3], entering=KEYS[3] + "x")
    slow.check(sorted({*KEYS, *added} - {KEYS[3]} | {KEYS[3] + "x"}))


class Noting:
    """A backend that notes its requests; transactions lose to others if they should."""

    def __init__(self, backend: Any, *, loses: bool = False) -> None:
        self._backend = backend
        self._loses = loses
        self.asked: list[tuple[str, Request]] = []

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        self.asked.append((operation, request))
        if self._loses and operation == "TransactWriteItems":
            reasons = [{"Code": "TransactionConflict"} for _ in request["TransactItems"]]
            raise errors.TransactionCanceledException("met", CancellationReasons=reasons)
        response: Response = self._backend.execute(operation, request)
        return response


def test_a_lost_transaction_forgets_only_what_led_to_its_leaf(hasty: Store) -> None:
    backend = Noting(hasty.backend)
    slow, quick = Ranks(through(hasty, backend), Table("ranks")), ranks_in(hasty)
    quick.rebuild(KEYS)
    for key in KEYS:
        slow.rank(key)
    shapes = len(items_of(hasty, RankingShape))
    assert shapes > 3
    added = [f"{KEYS[3]}{number}" for number in range(4)]  # they split its leaf
    for key in added:
        quick.change(entering=key)
    backend.asked.clear()
    slow.change(leaving=KEYS[3], entering=KEYS[3] + "x")
    writes = [call for call in backend.asked if call[0] in WRITES]
    assert len(writes) > 1  # it relied on what it remembered, and lost
    assert sum("SHAPE" in str(request) for _, request in backend.asked) == 1
    slow.check(sorted({*KEYS, *added} - {KEYS[3]} | {KEYS[3] + "x"}))


def test_attempts_of_an_increment_are_not_multiplied(hasty: Store) -> None:
    """Forty attempts of twelve each sent 480 transactions."""
    scores = SortedSet(hasty, "scores", ranked=True)
    scores.create_table()
    scores.zadd({"ann": 1, "bob": 2})
    backend = Noting(hasty.backend, loses=True)
    losing = SortedSet(through(hasty, backend), "scores", ranked=True)
    with pytest.raises(errors.Contended, match="during each of 100 attempts"):
        losing.zincrby(5, "ann")
    sent = [operation for operation, _ in backend.asked if operation == "TransactWriteItems"]
    assert len(sent) <= STALE_READS.attempts
    assert scores.zscore("ann") == 1


# What is left half done, or lost


def test_a_rebuild_that_ends_at_any_request_is_said_and_run_again(hasty: Store) -> None:
    ranks_in(hasty).rebuild(KEYS)
    steps = [*requests_of(hasty, ranks_in(hasty).ranking.rebuild(in_batches(KEYS, 10)))]
    for last in range(len(steps) - 1):
        running = requests_of(hasty, ranks_in(hasty).ranking.rebuild(in_batches(KEYS, 10)))
        for _ in range(last + 1):
            next(running)
        reader = ranks_in(hasty)
        for ask in (reader.size, lambda reader=reader: reader.rank(KEYS[3])):
            with pytest.raises(errors.RankingIncomplete, match="again"):
                ask()
        assert reader.rebuild(KEYS) == len(KEYS)
        reader.check(KEYS)


def test_a_tree_without_one_of_its_leaves_is_reported_within_a_minute(hasty: Store) -> None:
    """Attempts that are made of attempts took five minutes to give up."""
    clock = hasty.clock
    assert isinstance(clock, ManualClock)
    ranks = ranks_in(hasty)
    ranks.rebuild(KEYS)
    (leaf,) = [leaf for leaf in items_of(hasty, RankingLeaf) if KEYS[5] in leaf.keys]
    hasty.delete(leaf)
    for call in (
        lambda: ranks.rank(KEYS[5]),
        lambda: ranks.at(0, 30),
        lambda: ranks.change(leaving=KEYS[5]),
    ):
        begin = clock.now()
        with pytest.raises(errors.Contended, match="rerank"):
            call()
        assert clock.now() - begin < 60


# The consistency check


def test_the_check_finds_damage_of_each_kind(hasty: Store) -> None:
    def leaf_of(key: str) -> RankingLeaf:
        return next(leaf for leaf in items_of(hasty, RankingLeaf) if key in leaf.keys)

    def root_counts() -> RankingCounts:
        return next(item for item in items_of(hasty, RankingCounts) if item.node == "root")

    def drop_leaf() -> None:
        hasty.delete(leaf_of(KEYS[5]))

    def drop_key() -> None:
        leaf = leaf_of(KEYS[5])
        hasty.update(leaf, type(leaf).keys[KEYS[5]].remove())

    def add_foreign_key() -> None:
        leaf = leaf_of(KEYS[5])
        hasty.update(leaf, type(leaf).keys[key_of(900)].set(True))

    def move_bound() -> None:
        leaf = leaf_of(KEYS[5])
        hasty.update(leaf, type(leaf).high.set(KEYS[5] + "x"))

    def miscount() -> None:
        counts = root_counts()
        hasty.update(counts, type(counts).counts[0].add(1))

    def rename_shape() -> None:
        counts = root_counts()
        hasty.update(counts, type(counts).shape.set("another"))

    def add_orphan() -> None:
        leaf = leaf_of(KEYS[5])
        kind = type(leaf)
        hasty.put(kind(ranking="r", node="orphan", low=leaf.low, high=leaf.high, keys=leaf.keys))

    for damage in (drop_leaf, drop_key, add_foreign_key, move_bound, miscount, add_orphan):
        ranks = ranks_in(hasty)
        ranks.rebuild(KEYS)
        assert hasty.run(ranks.ranking.check()).faults == []
        damage()
        assert hasty.run(ranks.ranking.check()).faults != [], damage.__name__
    ranks.rebuild(KEYS)
    rename_shape()
    assert hasty.run(ranks.ranking.check()).faults != []


# Sizes


def test_one_key_that_comes_and_goes(hasty: Store) -> None:
    ranks = ranks_in(hasty)
    for number in range(5):
        ranks.change(entering=key_of(number))
        ranks.check([key_of(number)])
        assert ranks.place(key_of(number)) == (0, 0)
        assert ranks.count(LOWEST, HIGHEST) == 1
        ranks.change(leaving=key_of(number))
        ranks.check([])


def test_a_tree_that_all_keys_leave_is_low_again(hasty: Store) -> None:
    ranks, keys, chosen = (
        ranks_in(hasty),
        [key_of(number) for number in range(400)],
        random.Random(4),
    )
    ranks.rebuild(sorted(keys))
    chosen.shuffle(keys)
    while keys:
        ranks.change(leaving=keys.pop())
        if len(keys) % 40 == 0:
            ranks.check(sorted(keys))
    (root,) = items_of(hasty, RankingShape)
    assert root.level == 1
    assert len(items_of(hasty, RankingLeaf)) == 1


def test_thousands_of_the_same_score(hasty: Store) -> None:
    """Members order them, also where long ones differ in their last character alone."""
    count = 3000 if LONG else 1200
    names = [f"{'same ' * 20}{number:05}" for number in range(count)]
    keys, chosen = [ranking_key(7, name) for name in names], random.Random(5)
    ranks = ranks_in(hasty, sizes=SIZES)
    chosen.shuffle(keys)
    ranks.rebuild(sorted(keys[: count * 3 // 4]), 500)
    for key in keys[count * 3 // 4 :]:
        ranks.change(entering=key)
    ordered = sorted(keys)
    assert [ranks.rank(key) for key in ordered[::300]] == [*range(0, count, 300)]
    ranks.check(ordered)


def test_what_is_remembered_of_a_large_tree_has_an_end(
    hasty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts were kept of every node that was ever read, where shapes were forgotten in between."""
    monkeypatch.setattr("isotone.structures.ranking_tree._MAX_CACHED", 30)
    keys = [key_of(number) for number in range(1000, 1900)]
    ranks = ranks_in(hasty)
    ranks.rebuild(keys)
    tree = ranks.ranking._tree
    for place in range(0, 900, 3):
        assert ranks.rank(keys[place]) == place
        assert ranks.at(place, 2) == keys[place : place + 2]
        if place % 20 == 0:
            tree.forget_all()
        assert max(len(tree.shapes), len(tree.counts)) <= 30


def test_the_root_is_remembered_whatever_is_dropped(
    hasty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The root was read first, so it was the first to be dropped, though every call needs it."""
    monkeypatch.setattr("isotone.structures.ranking_tree._MAX_CACHED", 30)
    keys = [key_of(number) for number in range(1000, 1900)]
    ranks = ranks_in(hasty)
    ranks.rebuild(keys)
    tree = ranks.ranking._tree
    for place in range(0, 900, 3):
        assert ranks.rank(keys[place]) == place
        assert ROOT in tree.shapes
        assert ROOT in tree.counts
        kept = set(tree.counts)
        assert ranks.rank(keys[place]) == place  # reads known counts again
        assert set(tree.counts) == kept
    assert len(tree.shapes) > 20
