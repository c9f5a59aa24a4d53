"""How much a small request can make the database compute, counted in calls and not in seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

import isotone
from isotone.errors import ValidationException

ITEMS = 400


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    with isotone.open() as database:
        database.execute(
            "CreateTable",
            {
                "TableName": "tab",
                "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "N"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        for number in range(ITEMS):
            item = {"p": {"N": str(number)}, "v": {"N": "5"}, "set": {"SS": ["a", "b"]}}
            database.execute("PutItem", {"TableName": "tab", "Item": item})
        yield database


def calls_of(database: isotone.Database, **request: Any) -> tuple[int, dict[str, Any]]:
    """How many functions a Scan calls, Python's and built-in ones, and its answer."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        answer = database.execute("Scan", {"TableName": "tab", **request})
    finally:
        sys.setprofile(None)
    return calls, answer


def test_an_in_of_many_constants_is_a_look_up(database):
    values = {f":{number}": {"N": str(number + 10)} for number in range(98)}
    values |= {":set": {"SS": ["b", "a"]}, ":other": {"S": "5"}}
    calls, answer = calls_of(
        database,
        FilterExpression=f"v IN ({','.join(values)}) OR #s IN ({','.join(values)})",
        ExpressionAttributeNames={"#s": "set"},
        ExpressionAttributeValues=values,
    )
    assert answer["Count"] == ITEMS  # the set is equal in another order; "5" is no number
    assert calls < ITEMS * 30 + 15_000


def test_a_projection_costs_what_the_item_has(database):
    names = ",".join(f"a{number}" for number in range(700))
    calls, answer = calls_of(database, ProjectionExpression=names + ",v")
    assert answer["Items"] == [{"v": {"N": "5"}}] * ITEMS
    assert calls < ITEMS * 15 + 40_000


def test_many_attributes_to_get_cost_little_each(database):
    names = [f"a{number}" for number in range(100_000)]
    calls, answer = calls_of(database, AttributesToGet=["v", *names])
    assert answer["Items"] == [{"v": {"N": "5"}}] * ITEMS
    assert calls < 2 * len(names) + 20_000
    for wrong in (["v", "v"], ["v", ""]):
        with pytest.raises(ValidationException):
            calls_of(database, AttributesToGet=wrong)


def test_contains_compares_the_elements_of_a_long_list_at_once(database):
    elements = [{"N": str(number % 10)} for number in range(20_000)]
    elements.append({"SS": ["x", "y"]})
    item = {"p": {"N": "-1"}, "l": {"L": elements}}
    database.execute("PutItem", {"TableName": "tab", "Item": item})
    values = {":n": {"N": "60"}, ":set": {"SS": ["y", "x"]}}
    calls, answer = calls_of(
        database,
        FilterExpression="contains(l, :n) OR contains(l, :n) OR contains(l, :set)",
        ExpressionAttributeValues=values,
    )
    assert answer["Count"] == 1
    assert calls < 2 * len(elements)


def test_many_searches_of_one_list_cost_little_each(database):
    elements: list[Any] = [{"N": str(number)} for number in range(2000)]
    elements += [{"SS": ["x", str(number)]} for number in range(2000)]
    elements += [{"M": {"a": {"L": [{"NS": ["1", str(number + 2)]}]}}} for number in range(2000)]
    database.execute(
        "PutItem", {"TableName": "tab", "Item": {"p": {"N": "-1"}, "l": {"L": elements}}}
    )
    found = [
        {"N": "7"},
        {"SS": ["12", "x"]},
        {"M": {"a": {"L": [{"NS": ["9", "1"]}]}}},
    ]
    absent = [{"S": str(number)} for number in range(30)] + [
        {"SS": ["x", str(-number)]} for number in range(30)
    ]
    missed, _ = calls_with(database, absent)
    assert missed < 25 * len(elements)
    for value in found:
        assert calls_with(database, [*absent, value])[1] == 1


def test_searches_of_several_lists_in_turn_cost_little_each(database):
    lists = [[{"SS": ["x", f"{name}{number}"]} for number in range(1000)] for name in "klm"]
    for p in ("-1", "-2"):
        item = {
            "p": {"N": p},
            **{name: {"L": each} for name, each in zip("klm", lists, strict=True)},
        }
        database.execute("PutItem", {"TableName": "tab", "Item": item})
    absent = [{"SS": ["x", str(-number)]} for number in range(60)]
    missed, _ = calls_with(database, absent, "klm")
    assert missed < 2 * 25 * 3000
    assert calls_with(database, [*absent, {"SS": ["k7", "x"]}], "mlk")[1] == 0
    assert calls_with(database, [*absent, {"SS": ["k7", "x"]}], "klm")[1] == 2


def test_many_searches_of_one_set_find_its_members(database):
    members = [f"m{number}" for number in range(500)]
    item = {"p": {"N": "-1"}, "l": {"SS": members}}
    database.execute("PutItem", {"TableName": "tab", "Item": item})
    absent: list[Any] = [{"S": f"{number}"} for number in range(5)] + [{"N": "1"}, {"SS": ["m1"]}]
    assert calls_with(database, absent)[1] == 0
    assert calls_with(database, [*absent, {"S": "m499"}])[1] == 1


def calls_with(database: isotone.Database, values: list[Any], lists: str = "l") -> tuple[int, int]:
    """The calls of a Scan for items whose lists, in turn, contain one of the values; how many items it found."""
    named = {f":{number}": value for number, value in enumerate(values)}
    condition = " OR ".join(
        f"contains({lists[place % len(lists)]}, {name})" for place, name in enumerate(named)
    )
    calls, answer = calls_of(database, FilterExpression=condition, ExpressionAttributeValues=named)
    return calls, answer["Count"]
