"""What a session may use: items and units are counted as a naive count does, and nothing beyond a budget is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone.errors import UsageError
from isotone.mcp.budgets import Budgets, MeteredBackend, OverBudget

TABLE = {
    "TableName": "tab",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
ITEMS = 30


def key(number: int) -> dict[str, Any]:
    return {"pk": {"S": "a"}, "sk": {"N": str(number)}}


class Engine:
    """A database in memory that keeps what it was asked."""

    def __init__(self) -> None:
        self.database = isotone.open(":memory:")
        self.database.execute("CreateTable", TABLE)
        for number in range(ITEMS):
            self.database.execute("PutItem", {"TableName": "tab", "Item": key(number)})
        self.asked: list[str] = []
        self.items = 0

    def execute(
        self, operation: str, request: Mapping[str, Any], deadline: float | None = None
    ) -> dict[str, Any]:
        self.asked.append(operation)
        response = self.database.execute(operation, request)
        self.items += response.get("ScannedCount", 0)
        return response


QUERY = {
    "TableName": "tab",
    "KeyConditionExpression": "pk = :a",
    "ExpressionAttributeValues": {":a": {"S": "a"}},
}
REQUESTS = st.one_of(
    st.integers(1, 40).map(lambda limit: ("Query", {**QUERY, "Limit": limit})),
    st.just(("Query", QUERY)),
    st.just(("Scan", {"TableName": "tab"})),
    st.integers(0, 40).map(lambda at: ("GetItem", {"TableName": "tab", "Key": key(at)})),
    st.integers(1, 10).map(
        lambda count: (
            "BatchGetItem",
            {"RequestItems": {"tab": {"Keys": [*map(key, range(count))]}}},
        )
    ),
    st.integers(1, 10).map(
        lambda count: (
            "TransactGetItems",
            {
                "TransactItems": [
                    {"Get": {"TableName": "tab", "Key": key(at)}} for at in range(count)
                ]
            },
        )
    ),
)


@given(st.lists(REQUESTS, max_size=12), st.integers(1, 60), st.integers(1, 120))
def test_no_more_items_are_read_than_a_budget_has(
    requests: list[tuple[str, dict[str, Any]]], of_call: int, of_session: int
) -> None:
    engine = Engine()
    budgets = Budgets(call_items=of_call, session_items=of_session)
    metered = MeteredBackend(engine, budgets, writable=False)
    read = 0  # as the answers show it
    for number, (operation, request) in enumerate(requests):
        if number % 3 == 0:
            metered.begin()
            in_call = 0
        try:
            response = metered.execute(operation, request)
        except OverBudget:
            continue
        count = response.get("ScannedCount")
        if count is None:
            asked = request.get("TransactItems") or request.get("RequestItems", {}).get("tab", {})
            count = len(asked.get("Keys", ())) if isinstance(asked, dict) else len(asked)
            count = count or 1  # GetItem, whether it finds something or not
        read += count
        in_call += count
        assert in_call <= of_call
        assert read <= of_session
        assert metered.used()["items"] == in_call
        assert metered.used()["items_left_in_session"] == of_session - read


def test_a_call_begins_with_its_whole_budget_and_a_session_ends() -> None:
    metered = MeteredBackend(Engine(), Budgets(call_items=20, session_items=50), writable=False)
    for _ in range(2):
        metered.begin()
        assert metered.execute("Scan", {"TableName": "tab"})["Count"] == 20
        with pytest.raises(OverBudget, match=r"this call .* --max-items"):
            metered.execute("Scan", {"TableName": "tab"})
    metered.begin()
    assert metered.execute("Scan", {"TableName": "tab"})["Count"] == 10
    metered.begin()
    with pytest.raises(OverBudget, match=r"this session .* --session-items"):
        metered.execute("GetItem", {"TableName": "tab", "Key": key(1)})


def test_units_are_those_of_the_engine_and_the_request_that_passes_a_budget_is_the_last() -> None:
    engine = Engine()
    metered = MeteredBackend(engine, Budgets(call_units=1.0, session_units=2.0), writable=False)
    metered.begin()
    get = {"TableName": "tab", "Key": key(1)}  # half a unit
    metered.execute("GetItem", get)
    assert metered.used()["units"] == 0.5
    metered.execute("GetItem", get)
    with pytest.raises(OverBudget, match=r"this call .* 1 units .* --max-units"):
        metered.execute("GetItem", get)
    metered.begin()
    metered.execute("GetItem", {**get, "ConsistentRead": True})
    metered.begin()
    sent = len(engine.asked)
    with pytest.raises(OverBudget, match="this session"):
        metered.execute("GetItem", get)
    assert len(engine.asked) == sent


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("PutItem", {"TableName": "tab", "Item": key(1)}),
        ("DeleteTable", {"TableName": "tab"}),
        ("ExecuteStatement", {"Statement": "DELETE FROM tab WHERE pk = 'a' AND sk = 1"}),
        ("BatchExecuteStatement", {"Statements": [{"Statement": "INSERT INTO tab VALUE {}"}]}),
        ("SomethingNew", {}),
    ],
)
def test_what_may_write_is_not_sent(operation: str, request_: dict[str, Any]) -> None:
    engine = Engine()
    metered = MeteredBackend(engine, Budgets(), writable=False)
    with pytest.raises(UsageError, match="only reads; restart it with --write"):
        metered.execute(operation, request_)
    assert not engine.asked


def test_writes_are_counted_where_they_are_allowed() -> None:
    metered = MeteredBackend(Engine(), Budgets(call_items=3), writable=True)
    metered.begin()
    metered.execute("PutItem", {"TableName": "tab", "Item": key(100)})
    assert metered.used()["items"] == 1
    assert metered.used()["units"] == 1.0
    deletion = "DELETE FROM tab WHERE pk = 'a' AND sk = 100"
    metered.execute("ExecuteStatement", {"Statement": deletion})
    assert metered.used()["items"] == 2
    puts = [{"PutRequest": {"Item": key(number)}} for number in range(3)]
    with pytest.raises(OverBudget, match="3 items, and this call may use 1"):
        metered.execute("BatchWriteItem", {"RequestItems": {"tab": puts}})
