"""`isotone.moving.diff`: against a naive comparison, with the engine's own forms of numbers and sets."""

from __future__ import annotations

import asyncio
import random
import threading
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.moving.tables import (
    NAME,
    attributes,
    create,
    fill,
    items,
    key_of,
    numbers,
    order,
    write_at_random,
)

import isotone
from isotone.errors import UsageError
from isotone.moving import Stopped, adiff, diff
from isotone.moving.item_identity import canonical, item_digest, key_text


def test_equal_tables_are_equal() -> None:
    with isotone.open() as one, isotone.open() as two:
        for each in (one, two):
            create(each)
            fill(each, 300)
        report = diff(one, two)
        assert report.is_equal
        assert str(report) == "Orders: equal, 300 items"
        assert report.comparisons[NAME].examples == ()


def test_a_comparison_can_be_stopped() -> None:
    with isotone.open() as one:
        create(one)
        fill(one, 2)
        stop = threading.Event()
        stop.set()
        with pytest.raises(Stopped):
            diff(one, one, stop=stop)


def test_what_differs_is_shown_with_both_values() -> None:
    with isotone.open() as one, isotone.open() as two:
        for each in (one, two):
            create(each)
            fill(each, 100)
        one.execute("DeleteItem", {"TableName": NAME, "Key": key_of(order(3))})
        two.execute("DeleteItem", {"TableName": NAME, "Key": key_of(order(4))})
        changed = {**order(5), "total": {"N": "99"}, "extra": {"S": "x"}}
        two.execute("PutItem", {"TableName": NAME, "Item": changed})
        found = diff(one, two).comparisons[NAME]
        assert not found.is_equal
        assert (found.source_items, found.target_items) == (99, 99)
        assert (found.only_in_source, found.only_in_target, found.changed) == (1, 1, 1)
        by_key = {each.key["number"]["N"]: each for each in found.examples}
        assert by_key["3"].source is None
        assert by_key["4"].target is None
        assert by_key["5"].attributes == {
            "extra": (None, {"S": "x"}),
            "total": ({"N": "0"}, {"N": "99"}),
        }
        assert "1 only in the source, 1 only in the target, 1 different" in str(found)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 10**6), st.integers(0, 60), st.integers(0, 25), st.sampled_from([3, 64, 65536])
)
def test_the_counts_are_those_of_a_naive_comparison(
    seed: int, count: int, changes: int, buckets: int
) -> None:
    rng = random.Random(seed)
    with isotone.open() as one, isotone.open() as two, pytest.MonkeyPatch.context() as patch:
        patch.setattr("isotone.moving.comparing._BUCKETS", buckets)
        for each in (one, two):
            create(each)
            fill(each, count)
        for _ in range(changes):
            write_at_random(rng.choice((one, two)), rng, 60)
        mine, theirs = items(one), items(two)
        found = diff(one, two, segments=rng.randint(1, 3), shown=100).comparisons[NAME]
        assert (found.source_items, found.target_items) == (len(mine), len(theirs))
        assert found.only_in_source == len(mine.keys() - theirs.keys())
        assert found.only_in_target == len(theirs.keys() - mine.keys())
        both = mine.keys() & theirs.keys()
        assert found.changed == sum(mine[key] != theirs[key] for key in both)
        assert found.is_equal == (mine == theirs)
        assert len(found.examples) == found.differing


def test_many_differences_are_counted_as_far_as_memory_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("isotone.moving.comparing._MAX_KEYS", 50)
    monkeypatch.setattr("isotone.moving.comparing._BUCKETS", 256)
    with isotone.open() as one, isotone.open() as two:
        create(one)
        create(two)
        fill(one, 500)
        found = diff(one, two, shown=5).comparisons[NAME]
        assert not found.is_counted
        assert not found.is_equal
        assert 0 < found.only_in_source <= 50
        assert len(found.examples) == 5
        assert "at least" in str(found)


def test_tables_and_definitions_of_one_side_are_named() -> None:
    with isotone.open() as one, isotone.open() as two:
        create(one)
        create(one, "Alone")
        index: Any = [
            {
                "IndexName": "by_status",
                "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ]
        create(two, GlobalSecondaryIndexes=index, Tags=[{"Key": "a", "Value": "b"}])
        expiry = {"Enabled": True, "AttributeName": "gone"}
        two.execute("UpdateTimeToLive", {"TableName": NAME, "TimeToLiveSpecification": expiry})
        report = diff(one, two)
        assert report.only_in_source == ("Alone",)
        found = report.comparisons[NAME]
        assert "index by_status" in found.definition[0]
        assert found.definition[1] == "expiry: off and gone"
        assert found.settings == ("tags: {} and {'a': 'b'}",)
        assert not report.is_equal
        with pytest.raises(UsageError, match="neither side"):
            diff(one, two, ["Nothing"])
        with pytest.raises(UsageError, match="one name"):
            diff(one, two, "Orders")


def test_a_comparison_is_awaited() -> None:
    async def run() -> None:
        with isotone.open() as one, isotone.open() as two:
            create(one)
            create(two)
            assert (await adiff(one, two)).is_equal

    asyncio.run(run())


def shuffled(value: Any, rng: random.Random) -> Any:
    """The same value as another engine might write it: maps and sets in another order."""
    (code,) = value
    content = value[code]
    if code == "M":
        names = list(content)
        rng.shuffle(names)
        return {"M": {name: shuffled(content[name], rng) for name in names}}
    if code == "L":
        return {"L": [shuffled(each, rng) for each in content]}
    if code in ("SS", "NS", "BS"):
        return {code: rng.sample(content, len(content))}
    if code == "N" and "e" not in content and "." in content:
        return {"N": content + "0"}
    return value


def plain(value: Any) -> Any:
    """The meaning of a value."""
    ((code, content),) = value.items()
    if code == "N":
        return code, Decimal(content)
    if code == "NS":
        return code, frozenset(map(Decimal, content))
    if code in ("SS", "BS"):
        return code, frozenset(content)
    if code == "L":
        return code, tuple(plain(each) for each in content)
    if code == "M":
        return code, frozenset((name, plain(each)) for name, each in content.items())
    return code, content


@given(attributes, attributes, st.randoms(use_true_random=False))
def test_digests_are_equal_exactly_for_equal_items(
    one: dict[str, Any], other: dict[str, Any], rng: random.Random
) -> None:
    names = list(one)
    rng.shuffle(names)
    same = {name: shuffled(one[name], rng) for name in names}
    assert item_digest(same) == item_digest(one)
    assert canonical(canonical(one)) == canonical(one)
    equal = plain({"M": one}) == plain({"M": other})
    assert (item_digest(one) == item_digest(other)) == equal


@given(numbers, numbers)
def test_keys_are_equal_exactly_for_equal_numbers(one: str, other: str) -> None:
    equal = Decimal(one) == Decimal(other)
    texts = [key_text({"k": {"N": number}}, ["k"]) for number in (one, other)]
    assert (texts[0] == texts[1]) == equal
