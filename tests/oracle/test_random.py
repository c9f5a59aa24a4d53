"""Random requests, made by Hypothesis, get the same answers here and in Amazon's DynamoDB Local."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.oracle.compare import compare
from tests.oracle.endpoints import Isotone, drop_tables
from tests.oracle.grammar import Value, expressions, items, numbers
from tests.oracle.local import Endpoint
from tests.oracle.scripts import INDEXED, SIMPLE, Step, n, s

KEY = {"p": {"S": "key"}}
Expression = tuple[str, dict[str, Value]]

EXAMPLES = int(os.environ.get("ISOTONE_ORACLE_EXAMPLES", "300"))
asked = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Both:
    """Both sides, asked the same; differing answers fail the test."""

    def __init__(self, theirs: Endpoint, ours: Isotone) -> None:
        self.theirs = theirs
        self.ours = ours

    def ask(self, operation: str, request: dict[str, Any], *, drain: bool = False) -> None:
        step = Step(operation, request, drain=drain)
        mismatch = compare("random", step, self.theirs, self.ours)
        assert mismatch is None, f"\n{mismatch}"


@pytest.fixture(scope="module")
def both(theirs: Endpoint, ours: Isotone) -> Iterator[Both]:
    for side in (theirs, ours):
        drop_tables(side)
        side.ask("CreateTable", SIMPLE)
        side.ask("CreateTable", INDEXED)
    yield Both(theirs, ours)
    for side in (theirs, ours):
        drop_tables(side)


def _valued(values: dict[str, Value]) -> dict[str, Any]:
    return {"ExpressionAttributeValues": values} if values else {}


@asked
@given(item=items, expression=expressions("condition"))
def test_conditions_and_filters(both: Both, item: dict[str, Value], expression: Expression) -> None:
    text, values = expression
    both.ask("PutItem", {"TableName": "simple", "Item": {**KEY, **item}})
    own = {"TableName": "simple", **_valued(values)}
    both.ask("Scan", {**own, "FilterExpression": text})
    both.ask("UpdateItem", {**own, "Key": KEY, "ConditionExpression": text})


@asked
@given(item=items, expression=expressions("update"))
def test_updates(both: Both, item: dict[str, Value], expression: Expression) -> None:
    text, values = expression
    both.ask("PutItem", {"TableName": "simple", "Item": {**KEY, **item}})
    request = {"TableName": "simple", "Key": KEY, "UpdateExpression": text, **_valued(values)}
    both.ask("UpdateItem", {**request, "ReturnValues": "ALL_NEW"})
    both.ask("GetItem", {"TableName": "simple", "Key": KEY})


@asked
@given(item=items, expression=expressions("projection"))
def test_projections(both: Both, item: dict[str, Value], expression: Expression) -> None:
    both.ask("PutItem", {"TableName": "simple", "Item": {**KEY, **item}})
    both.ask("GetItem", {"TableName": "simple", "Key": KEY, "ProjectionExpression": expression[0]})


writes = st.lists(
    st.tuples(
        st.sampled_from(["PutItem", "PutItem", "UpdateItem", "UpdateItem", "DeleteItem"]),
        st.sampled_from(["1", "2"]),
        st.fixed_dictionaries(
            # DynamoDB Local charges for the index of two attributes also where one of them is absent.
            {"g": st.sampled_from("gh").map(s), "r": st.sampled_from("12").map(n)},
            optional={
                "l": st.sampled_from("kl").map(s),
                # Sizes that stay clear of a unit's end, where DynamoDB Local charges local indexes more.
                "x": st.sampled_from([1, 400, 1500, 2500]).map(lambda size: s("x" * size)),
                "y": st.sampled_from("yz").map(s),
            },
        ),
    ),
    min_size=1,
    max_size=8,
)


@settings(asked, max_examples=EXAMPLES // 2)
@given(writes=writes)
def test_what_writes_cost_and_return(
    both: Both, writes: list[tuple[str, str, dict[str, Value]]]
) -> None:
    for number in "12":
        both.ask("DeleteItem", {"TableName": "indexed", "Key": {"p": s("a"), "s": n(number)}})
    for operation, number, attributes in writes:
        key = {"p": s("a"), "s": n(number)}
        request: dict[str, Any] = {"TableName": "indexed", "ReturnConsumedCapacity": "INDEXES"}
        if operation == "PutItem":
            request |= {"Item": {**key, **attributes}, "ReturnValues": "ALL_OLD"}
        elif operation == "DeleteItem":
            request |= {"Key": key, "ReturnValues": "ALL_OLD"}
        else:
            request |= {"Key": key, "ReturnValues": "UPDATED_NEW", **_assigning(attributes)}
        both.ask(operation, request)


def _assigning(attributes: dict[str, Value]) -> dict[str, Any]:
    """An UpdateExpression that sets these attributes and removes one that they lack."""
    values = {f":{name}": value for name, value in attributes.items()}
    sets = ", ".join(f"{name} = :{name}" for name in attributes)
    absent = next((name for name in "lxy" if name not in attributes), None)
    text = f"SET {sets} " * bool(sets) + f"REMOVE {absent}" * bool(absent)
    return {"UpdateExpression": text, **_valued(values)}


rows = st.lists(
    st.fixed_dictionaries(
        {"s": numbers.map(n)},
        optional={
            "g": st.sampled_from("gh").map(s),
            "r": numbers.map(n),
            "l": st.sampled_from(["k", "kl", "l"]).map(s),
            "x": numbers.map(n),
        },
    ),
    max_size=12,
)
BOUNDS = ("{0} = :a", "{0} < :a", "{0} <= :a", "{0} > :a", "{0} >= :a", "{0} BETWEEN :a AND :b")


@settings(asked, max_examples=EXAMPLES // 2)
@given(
    rows=rows,
    where=st.sampled_from(
        [("p", "s", None), ("p", "l", "l-all"), ("g", "r", "g-all"), ("g", "r", "g-some")]
    ),
    bound=st.sampled_from((*BOUNDS, "", "")),
    operands=st.tuples(numbers, numbers, st.sampled_from(["k", "kl", "l"])),
    limit=st.sampled_from([None, 1, 2, 3, 5]),
    forward=st.booleans(),
)
def test_queries(
    both: Both,
    rows: list[dict[str, Value]],
    where: tuple[str, str, str | None],
    bound: str,
    operands: tuple[str, str, str],
    limit: int | None,
    forward: bool,
) -> None:
    for side in (both.theirs, both.ours):
        for item in side.ask("Scan", {"TableName": "indexed"})[1]["Items"]:
            side.ask(
                "DeleteItem", {"TableName": "indexed", "Key": {"p": item["p"], "s": item["s"]}}
            )
    for row in rows:
        both.ask("PutItem", {"TableName": "indexed", "Item": {"p": s("a"), **row}})
    hashed, ranged, index = where
    low, high, text = operands
    values = {":h": s("a" if hashed == "p" else "g")}
    for name, operand in ((":a", low), (":b", high)):
        if name in bound:
            values[name] = s(text) if ranged == "l" else n(operand)
    request = {
        "TableName": "indexed",
        "KeyConditionExpression": f"{hashed} = :h"
        + (f" AND {bound.format(ranged)}" if bound else ""),
        "ExpressionAttributeValues": values,
        "ScanIndexForward": forward,
        **({"IndexName": index} if index else {}),
    }
    both.ask("Query", request, drain=True)
    if limit and not bound:
        both.ask("Query", {**request, "Limit": limit}, drain=True)
