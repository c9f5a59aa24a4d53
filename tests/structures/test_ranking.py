"""The ranking's tree against a sorted list: ranks, counts, ranges, and its form after every change."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import isotone
from isotone import Store, Table, errors
from isotone.model.ordering import number_of, ordered_number
from isotone.model.steps import Steps
from isotone.structures.ranking import Ranking
from isotone.structures.ranking_keys import (
    HIGHEST,
    LOWEST,
    after_score,
    before_score,
    ranking_key,
    read_ranking_key,
)
from isotone.structures.ranking_mending import Sizes

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
            together = self.store.calls.transaction()
            yield from self.ranking.change(together, leaving=leaving, entering=entering)
            yield from together.commit()

        self.store.run(self.ranking.settle(attempt))

    def rank(self, key: str) -> int:
        return self.store.run(self.ranking.rank(key))

    def size(self) -> int:
        return self.store.run(self.ranking.size())

    def count(self, low: str, high: str) -> int:
        return self.store.run(self.ranking.count(low, high))

    def at(self, rank: int, count: int, *, reverse: bool = False) -> list[str]:
        return self.store.run(self.ranking.at(rank, count, reverse=reverse))

    def rebuild(self, keys: Iterable[str], size: int = 5, **more: Any) -> int:
        return self.store.run(self.ranking.rebuild(in_batches(keys, size), **more))

    def check(self, keys: list[str]) -> None:
        findings = self.store.run(self.ranking.verify())
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
        assert self.ranks[which].rank(key) == bisect_left(self.keys, key)

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
TestAgainstASortedList.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
