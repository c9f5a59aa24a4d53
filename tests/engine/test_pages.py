"""Pages: what ends them, and that together they are the whole, each thing once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.operations.conftest import Asker, key_schema

import isotone
from isotone import limits
from isotone.engine.layout import item_of, pack, size_of
from isotone.engine.pages import RangePage, RecordReader
from isotone.values.attribute_validation import canonical_item

KB = 1024


def records(sizes: list[int]) -> Iterator[list[bytes]]:
    """Records of items that say to be of these sizes, as a store gives them: in lists."""
    each = (pack({"n": {"N": str(place)}}, size) for place, size in enumerate(sizes))
    return iter(lambda: list(islice(each, 2)), [])


def shown(page: RangePage) -> list[int]:
    return [int(item_of(bytes(4) + json)["n"]["N"]) for json in page.items]


def last(page: RangePage) -> int | None:
    return None if page.last is None else int(item_of(page.last)["n"]["N"])


@pytest.mark.parametrize(
    ("sizes", "limit", "count", "stopped_at"),
    [
        ([], None, 0, None),
        ([1, 1, 1], None, 3, None),
        ([1, 1, 1], 4, 3, None),
        ([1, 1, 1], 3, 3, 2),  # the end is reached too, but the service does not look further
        ([1, 1, 1], 1, 1, 0),
        ([limits.QUERY_PAGE, 1, 1], None, 2, 1),  # exactly 1 MB is not over it
        ([limits.QUERY_PAGE + 1, 1, 1], None, 1, 0),
        ([400 * KB] * 5, None, 3, 2),  # the item that passes the line is in
        ([400 * KB] * 5, 2, 2, 1),
        ([400 * KB] * 3, None, 3, 2),
    ],
)
def test_a_page_ends_with_its_limit_or_behind_1_megabyte(
    sizes: list[int], limit: int | None, count: int, stopped_at: int | None
) -> None:
    page = RecordReader(limit=limit).page(records(sizes))
    assert page.count == page.scanned == count
    assert shown(page) == list(range(count))
    assert last(page) == stopped_at
    assert page.size == sum(sizes[:count])


@given(st.lists(st.sampled_from([1, 100, 30 * KB, 300 * KB]), max_size=12), st.integers(1, 5))
def test_a_page_ends_there_too_if_nobody_asks_for_its_size(lengths: list[int], part: int) -> None:
    items: list[Any] = [
        {"n": {"N": str(place)}, "a": {"S": "x" * length}} for place, length in enumerate(lengths)
    ]
    stored = [pack(item, canonical_item(item)[1]) for item in items]
    pages = []
    for sizing in (True, False):
        parts = [stored[start : start + part] for start in range(0, len(stored), part)]
        pages.append(RecordReader(sizing=sizing).page(iter(parts)))
    exact, unasked = pages
    assert (shown(unasked), last(unasked)) == (shown(exact), last(exact))
    assert unasked.size >= exact.size == sum(size_of(record) for record in stored[: exact.scanned])


@pytest.mark.parametrize(
    ("count", "reader", "is_long"),
    [
        (2000, RecordReader(), False),
        (2001, RecordReader(), True),
        (2001, RecordReader(limit=2000), False),
        (100, RecordReader(matches=bool, nodes=50), False),
        (101, RecordReader(matches=bool), True),
        (100, RecordReader(matches=bool, nodes=51), True),
        (101, RecordReader(project=dict), True),
        (200, RecordReader(expand=bytes), False),
        (201, RecordReader(expand=bytes), True),
    ],
)
def test_a_page_that_is_read_briefly_says_whether_it_is_long(
    count: int, reader: RecordReader, is_long: bool
) -> None:
    page = reader.read(records([1] * count), briefly=True)
    assert page.is_long == is_long
    if is_long:
        assert page.scanned <= count
    else:
        reader.evaluate(page)
        whole = reader.page(records([1] * count))
        assert (page.items, page.last, page.scanned) == (whole.items, whole.last, whole.scanned)


def test_a_filter_does_not_make_a_page_longer() -> None:
    def odd(item: dict[str, Any]) -> bool:
        return int(item["n"]["N"]) % 2 == 1

    page = RecordReader(limit=4, matches=odd).page(records([1] * 9))
    assert (page.count, page.scanned, shown(page), last(page)) == (2, 4, [1, 3], 3)
    counted = RecordReader(limit=4, matches=odd, counting=True).page(records([1] * 9))
    assert (counted.count, counted.scanned, counted.items, last(counted)) == (2, 4, [], 3)


def test_nothing_is_taken_beyond_the_page() -> None:
    taken: list[bytes] = []

    def lazily() -> Iterator[list[bytes]]:
        for some in records([1] * 9):
            taken.extend(some)
            yield some

    RecordReader(limit=3).page(lazily())
    assert len(taken) == 4


# Bytes around the ends of the alphabet, where a range that is off by one would show.
alphabet = st.sampled_from(["\x00", "\x01", "\x02", "a", "ÿ", "\U0010ffff"])
texts = st.lists(alphabet, min_size=1, max_size=3).map("".join)


def paged(ask: Asker, limit: int, **request: Any) -> list[dict[str, Any]]:
    """All items of a Query, page by page."""
    found: list[dict[str, Any]] = []
    start: dict[str, Any] = {}
    while True:
        page = ask("Query", TableName="tab", Limit=limit, **request, **start)
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return found
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


@settings(max_examples=examples(60), deadline=None)
@given(
    keys=st.sets(texts, min_size=1, max_size=12),
    start=texts,
    binary=st.booleans(),
    limit=st.integers(1, 4),
    forward=st.booleans(),
)
def test_begins_with_gives_all_that_begin_so_and_nothing_else(
    keys: set[str], start: str, binary: bool, limit: int, forward: bool
) -> None:
    import base64

    def value(text: str) -> dict[str, str]:
        return {"B": base64.b64encode(text.encode()).decode()} if binary else {"S": text}

    with isotone.open(":memory:") as database:
        ask = Asker(database, isotone.ManualClock())
        ask.table(keys="p s:B" if binary else "p s")
        for partition in ("p", "p\x00", "o"):
            for key in keys:
                ask("PutItem", TableName="tab", Item={"p": {"S": partition}, "s": value(key)})
        found = paged(
            ask,
            limit,
            KeyConditionExpression="p = :p AND begins_with(s, :s)",
            ExpressionAttributeValues={":p": {"S": "p"}, ":s": value(start)},
            ScanIndexForward=forward,
        )
    expected = sorted((key for key in keys if key.startswith(start)), key=str.encode)
    if not forward:
        expected.reverse()
    assert found == [{"p": {"S": "p"}, "s": value(key)} for key in expected]


BY_PLACE = {
    "IndexName": "by-place",
    "KeySchema": [
        {"AttributeName": "land", "KeyType": "HASH"},
        {"AttributeName": "town", "KeyType": "HASH"},
        {"AttributeName": "street", "KeyType": "RANGE"},
        {"AttributeName": "number", "KeyType": "RANGE"},
    ],
    "Projection": {"ProjectionType": "ALL"},
}
PLACES = {"land": "S", "town": "S", "street": "S", "number": "N"}
places = st.tuples(
    st.sampled_from(["a", "ab"]), st.sampled_from(["b", "bc"]), texts, st.integers(-2, 2)
)


def place_item(number: int, place: tuple[str, str, str, int]) -> dict[str, Any]:
    land, town, street, house = place
    return {
        "p": {"S": str(number)},
        "land": {"S": land},
        "town": {"S": town},
        "street": {"S": street},
        "number": {"N": str(house)},
    }


@settings(max_examples=examples(60), deadline=None)
@given(
    found=st.lists(places, min_size=1, max_size=12),
    wanted=places,
    other=texts,
    limit=st.integers(1, 4),
    forward=st.booleans(),
)
def test_a_range_of_the_first_of_two_sort_attributes(
    found: list[tuple[str, str, str, int]],
    wanted: tuple[str, str, str, int],
    other: str,
    limit: int,
    forward: bool,
) -> None:
    low, high = sorted((wanted[2], other), key=str.encode)
    with isotone.open(":memory:") as database:
        ask = Asker(database, isotone.ManualClock())
        ask.table(types=PLACES, GlobalSecondaryIndexes=[BY_PLACE])
        items = [place_item(number, place) for number, place in enumerate(found)]
        for item in items:
            ask("PutItem", TableName="tab", Item=item)
        answer = paged(
            ask,
            limit,
            IndexName="by-place",
            KeyConditionExpression="land = :l AND town = :t AND street BETWEEN :low AND :high",
            ExpressionAttributeValues={
                ":l": {"S": wanted[0]},
                ":t": {"S": wanted[1]},
                ":low": {"S": low},
                ":high": {"S": high},
            },
            ScanIndexForward=forward,
        )
    expected = [
        item
        for item in items
        if item["land"]["S"] == wanted[0]
        and item["town"]["S"] == wanted[1]
        and low.encode() <= item["street"]["S"].encode() <= high.encode()
    ]

    def order(item: dict[str, Any]) -> tuple[bytes, int]:
        return item["street"]["S"].encode(), int(item["number"]["N"])

    assert [order(item) for item in answer] == sorted(map(order, expected), reverse=not forward)
    assert sorted(item["p"]["S"] for item in answer) == sorted(item["p"]["S"] for item in expected)


@settings(max_examples=examples(30), deadline=None)
@given(
    ties=st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=12),
    limit=st.integers(1, 4),
    forward=st.booleans(),
    deleting=st.booleans(),
)
def test_equal_index_keys_lose_nothing_at_a_page_end(
    ties: list[str], limit: int, forward: bool, deleting: bool
) -> None:
    index = {
        "IndexName": "by-g",
        "KeySchema": key_schema("g"),
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    with isotone.open(":memory:") as database:
        ask = Asker(database, isotone.ManualClock())
        ask.table(types={"g": "S"}, GlobalSecondaryIndexes=[index])
        for number, group in enumerate(ties):
            ask("PutItem", TableName="tab", Item={"p": {"S": str(number)}, "g": {"S": group}})
        request: dict[str, Any] = {
            "TableName": "tab",
            "IndexName": "by-g",
            "KeyConditionExpression": "g = :g",
            "ExpressionAttributeValues": {":g": {"S": "x"}},
            "ScanIndexForward": forward,
            "Limit": limit,
        }
        found = []
        while True:
            page = ask("Query", **request)
            found += [item["p"]["S"] for item in page["Items"]]
            if "LastEvaluatedKey" not in page:
                break
            start = page["LastEvaluatedKey"]
            if deleting:  # a page goes on behind a key that is there no more
                ask("DeleteItem", TableName="tab", Key={"p": start["p"]})
            request["ExclusiveStartKey"] = start
    assert len(found) == len(set(found))
    assert sorted(found) == sorted(str(place) for place, group in enumerate(ties) if group == "x")
