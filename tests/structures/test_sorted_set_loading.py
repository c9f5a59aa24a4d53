"""Sets that begin with many members, and sets that get ranks later."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.structures.interleaving import Interleaved

import isotone
from isotone import Store, errors
from isotone.model import Steps
from isotone.structures import SortedSet


@pytest.mark.parametrize("shards", [1, 3])
def test_a_set_is_loaded_and_ranked(store: Store, table_name: str, shards: int) -> None:
    loaded = SortedSet(store, "s", table=SortedSet.layout(table_name), ranked=True, shards=shards)
    loaded.create_table()
    loaded.zadd({"there": 5, "changed": 7})
    told: list[int] = []
    scores = {f"m{number}": number % 10 for number in range(150)} | {"changed": 3}
    assert loaded.load(scores.items(), progress=told.append) == 151
    assert told[-1] == 152
    expected = sorted(
        [(Decimal(score), member) for member, score in {**scores, "there": 5}.items()]
    )
    assert loaded.zrange(0, -1) == [member for _, member in expected]
    assert loaded.zcard() == 152
    assert loaded.zrank("m57") == [member for _, member in expected].index("m57")
    loaded.zincrby(100, "m57")
    assert loaded.zrevrank("m57") == 0


def test_a_set_gets_ranks(memory: Store) -> None:
    without, ranked = SortedSet(memory, "s"), SortedSet(memory, "s", ranked=True)
    without.create_table()
    assert without.load({f"m{number}": number for number in range(40)}) == 40
    assert ranked.rerank() == 40
    assert [ranked.zrank(f"m{number}") for number in range(40)] == [*range(40)]
    assert ranked.rerank() == 40
    with pytest.raises(errors.UsageError, match="ranked=True"):
        without.rerank()


def test_an_interrupted_load_is_run_again(memory: Store) -> None:
    ranked = SortedSet(memory, "s", ranked=True)
    ranked.create_table()
    ranked.zadd({"a": 1})
    with pytest.raises(errors.UsageError, match="cannot be a score"):
        ranked.load([("b", 2), ("c", "nan")])
    with pytest.raises(errors.RankingIncomplete, match="rerank"):
        ranked.zincrby(1, "a")
    with pytest.raises(errors.RankingIncomplete):
        ranked.zrank("a")
    assert ranked.load([("b", 2), ("c", 3)]) == 2
    assert ranked.zrange(0, -1) == ["a", "b", "c"]


def steps_of(operation: Any, *arguments: Any) -> Steps[Any]:
    """The steps of an operation, which nobody runs yet."""
    return operation.__wrapped__(*arguments)  # type: ignore[no-any-return]


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 10**6), members=st.integers(1, 120), reranks=st.integers(1, 2))
def test_ranks_that_are_made_anew_miss_no_change_of_others(
    seed: int, members: int, reranks: int
) -> None:
    refused: list[str] = []
    with isotone.connect() as store:
        first = SortedSet(store, "s", ranked=True)
        first.create_table()
        first.load({f"m{number}": number for number in range(members)})

        def write(member: str) -> Steps[None]:
            ranked = SortedSet(store, "s", ranked=True)
            for _ in range(5):
                try:
                    yield from steps_of(SortedSet.zincrby, ranked, 7, member)
                except (errors.RankingIncomplete, errors.Contended):
                    refused.append(member)

        def rerank() -> Steps[None]:
            try:
                yield from steps_of(SortedSet.rerank, SortedSet(store, "s", ranked=True))
            except errors.RankingIncomplete:
                assert reranks == 2

        writers = [write(member) for member in ("m0", "m1", "new")]
        Interleaved(store, [*writers, *(rerank() for _ in range(reranks))]).run(seed)
        if reranks == 2:
            first.rerank()
        assert first.zrange(0, -1, withscores=True) == SortedSet(store, "s").zrange(
            0, -1, withscores=True
        )
        assert first.ranking is not None
        assert store.run(first.ranking.check()).faults == []
        added = 7 * (15 - len(refused))
        assert sum(score for _, score in first.zrange(0, -1, withscores=True)) == (
            added + sum(range(members))
        )
