"""Some items of a table: how many, from where, and whether these are all."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone.tables.sample import SampledItems, sample_items

ITEMS = 200


@pytest.fixture(scope="module")
def store() -> Any:
    """A table of 20 partitions with 10 items each, of 250 bytes."""
    with isotone.open(":memory:") as database:
        database.execute(
            "CreateTable",
            {
                "TableName": "Readings",
                "AttributeDefinitions": [
                    {"AttributeName": "sensor", "AttributeType": "S"},
                    {"AttributeName": "at", "AttributeType": "N"},
                ],
                "KeySchema": [
                    {"AttributeName": "sensor", "KeyType": "HASH"},
                    {"AttributeName": "at", "KeyType": "RANGE"},
                ],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        for number in range(ITEMS):
            item = {"sensor": {"S": f"s{number % 20}"}, "at": {"N": str(number)}}
            item["note"] = {"S": "x" * 230}
            database.execute("PutItem", {"TableName": "Readings", "Item": item})
        with isotone.connect(database) as connected:
            yield connected


def numbers(sample: SampledItems) -> list[int]:
    return [int(item["at"]["N"]) for item in sample.items]


@given(most=st.integers(1, ITEMS + 20), segments=st.integers(1, 9), a_page=st.integers(1, 90))
def test_as_many_items_as_wanted_and_each_once(
    store: Any, most: int, segments: int, a_page: int
) -> None:
    told: list[int] = []
    found = store.run(
        sample_items("Readings", most, segments=segments, a_page=a_page, progress=told.append)
    )
    assert len(set(numbers(found))) == len(found.items) == min(most, ITEMS)
    assert not found.is_whole or len(found.items) == ITEMS
    if most > ITEMS:
        assert found.is_whole
    assert told == sorted(told)
    assert told[-1] == len(found.items)
    assert max(b - a for a, b in zip([0, *told], told, strict=False)) <= a_page


def test_all_items_without_a_number(store: Any) -> None:
    found = store.run(sample_items("Readings", None, a_page=30))
    assert found.is_whole
    assert sorted(numbers(found)) == [*range(ITEMS)]
    # An eventually consistent read costs half a unit for each 4 KB, rounded up in each of seven requests.
    assert 6.0 <= found.units <= 6.0 + 7 * 0.5 + 0.5


def test_nothing_is_read_for_no_items(store: Any) -> None:
    assert store.run(sample_items("Readings", 0)) == SampledItems([], False, 0.0)


def test_segments_have_more_partitions(store: Any) -> None:
    first = store.run(sample_items("Readings", 20))
    spread = store.run(sample_items("Readings", 20, segments=8))
    assert len(Counter(item["sensor"]["S"] for item in first.items)) == 2
    assert len(Counter(item["sensor"]["S"] for item in spread.items)) > 5
