"""Sets that begin with many members, and sets that get ranks later."""

from __future__ import annotations

from decimal import Decimal

import pytest

from isotone import Store, errors
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
    with pytest.raises(errors.UsageError, match="no score"):
        ranked.load([("b", 2), ("c", "nan")])
    with pytest.raises(errors.RankingIncomplete, match="rerank"):
        ranked.zincrby(1, "a")
    with pytest.raises(errors.RankingIncomplete):
        ranked.zrank("a")
    assert ranked.load([("b", 2), ("c", 3)]) == 2
    assert ranked.zrange(0, -1) == ["a", "b", "c"]
