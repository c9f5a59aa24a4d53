"""Paging: each Limit, both directions, index ties, the 1 MB page, filters."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tests.oracle.scripts import INDEXED, ORDERED, Script, Step, n, s, step

ROWS = 13


def _rows() -> Iterator[Step]:
    """Thirteen items of one partition with ties in every index, and some that no index holds."""
    for row in range(ROWS):
        item = {"p": s("a"), "s": n(row - 6), "x": n(row)}
        if row % 4:
            item |= {"g": s("g"), "r": n(row // 4)}
        if row % 3:
            item |= {"l": s("x" * (row % 3))}
        yield step("PutItem", TableName="indexed", Item=item)


def _drains() -> Iterator[Step]:
    yield from _rows()
    for limit, forward in itertools.product((*range(1, ROWS + 2), None), (True, False)):
        more = {"Limit": limit} if limit else {}
        for text, where in (
            ("p = :v", {}),
            ("p = :v", {"IndexName": "l-all"}),
            ("p = :v", {"IndexName": "l-keys"}),
            ("g = :v", {"IndexName": "g-all"}),
            ("g = :v", {"IndexName": "g-keys"}),
            ("g = :v", {"IndexName": "g-some"}),
        ):
            base = {
                "TableName": "indexed",
                "KeyConditionExpression": text,
                "ScanIndexForward": forward,
            }
            values = {":v": s("a" if text[0] == "p" else "g")}
            yield Step(
                "Query", {**base, **where, **more, "ExpressionAttributeValues": values}, drain=True
            )
            if where.get("IndexName") in ("l-keys", "g-keys"):
                continue
            filtered = {
                "FilterExpression": "x > :x",
                "ExpressionAttributeValues": {**values, ":x": n(5)},
            }
            yield Step("Query", {**base, **where, **more, **filtered}, drain=True)
    for limit, where in itertools.product(
        (*range(1, ROWS + 2), None), ({}, {"IndexName": "l-all"}, {"IndexName": "g-keys"})
    ):
        more = {"Limit": limit} if limit else {}
        yield Step("Scan", {"TableName": "indexed", **where, **more}, drain=True)


def _keys() -> Iterator[Step]:
    """The exact LastEvaluatedKey of each first page: names, values, and when there is none."""
    yield from _rows()
    for limit, forward in itertools.product((1, 4, 12, 13, 14), (True, False)):
        yield step(
            "Query",
            TableName="indexed",
            KeyConditionExpression="p = :v",
            ExpressionAttributeValues={":v": s("a")},
            Limit=limit,
            ScanIndexForward=forward,
        )
        yield step(
            "Query",
            TableName="indexed",
            KeyConditionExpression="p = :v AND s BETWEEN :l AND :h",
            ExpressionAttributeValues={":v": s("a"), ":l": n(-3), ":h": n(2)},
            Limit=limit,
            ScanIndexForward=forward,
        )


def _megabytes() -> Iterator[Step]:
    """Pages end when what was read passes 1 MB, whatever the filter and the projection."""
    for row in range(30):
        yield step(
            "PutItem", TableName="ordered", Item={"p": s("a"), "s": n(row), "x": s("x" * 100_000)}
        )
    values = {":v": s("a")}
    base = {
        "TableName": "ordered",
        "KeyConditionExpression": "p = :v",
        "ExpressionAttributeValues": values,
    }
    for more in (
        {},
        {"ProjectionExpression": "s"},
        {"Select": "COUNT"},
        {"Limit": 11},
        {"Limit": 10},
        {"ScanIndexForward": False},
    ):
        yield Step("Query", {**base, **more, "ReturnConsumedCapacity": "TOTAL"})
    yield step("Scan", TableName="ordered", Select="COUNT", ReturnConsumedCapacity="TOTAL")
    exact = 1024 * 1024 // 8
    for row in range(10):
        item = {"p": s("b"), "s": n(row + 1), "x": s("x" * (exact - 6))}
        yield step("PutItem", TableName="ordered", Item=item)
    for slack in (-3, -2, -1, 1, 2):
        yield step(
            "PutItem",
            TableName="ordered",
            Item={"p": s("b"), "s": n(8), "x": s("x" * (exact - 6 + slack))},
        )
        yield Step(
            "Query",
            {**base, "ExpressionAttributeValues": {":v": s("b")}, "ProjectionExpression": "s"},
        )


SCRIPTS = (
    Script("pages/drains", (INDEXED,), list(_drains())),
    Script("pages/keys", (INDEXED,), list(_keys())),
    Script("pages/megabytes", (ORDERED,), list(_megabytes())),
)
