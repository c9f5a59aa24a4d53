"""Global indexes whose key parts have several attributes, and bodies that are no requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.oracle.scripts import Script, Step, index, n, s, step, table


def multi(hashes: str, ranges: str) -> list[dict[str, Any]]:
    """A KeySchema with several attributes in each part."""
    return [
        *({"AttributeName": name, "KeyType": "HASH"} for name in hashes),
        *({"AttributeName": name, "KeyType": "RANGE"} for name in ranges),
    ]


def _multiple() -> Iterator[Step]:
    """Global indexes with up to four attributes in each part of the key (November 2025)."""
    for hashes, ranges in (
        ("ab", ""),
        ("ab", "cd"),
        ("abcd", "efgh"),
        ("abcde", ""),
        ("a", "bcdef"),
        ("aa", ""),
        ("a", "a"),
        ("", "a"),
        ("ab", "ca"),
    ):
        types = " ".join(f"{name}:S" for name in sorted({*hashes, *ranges}))
        indexes = [{**index("gsi", "a"), "KeySchema": multi(hashes, ranges)}]
        yield Step(
            "CreateTable", table("multi", f"p:S {types}", "p", GlobalSecondaryIndexes=indexes)
        )
        yield step("DeleteTable", TableName="multi")
    indexes = [{**index("gsi", "a"), "KeySchema": multi("ab", "cd")}]
    yield Step(
        "CreateTable", table("multi", "p:S a:S b:N c:S d:N", "p", GlobalSecondaryIndexes=indexes)
    )
    for row in range(12):
        item = {"p": s(row), "a": s("a"), "b": n(row % 2), "c": s("xy"[row % 3 > 0]), "d": n(row)}
        item = {name: value for name, value in item.items() if row != 11 or name != "d"}
        yield step(
            "PutItem",
            TableName="multi",
            Item={**item, "p": s(str(row))},
            ReturnConsumedCapacity="INDEXES",
        )
    values = {":a": s("a"), ":b": n(1), ":c": s("y"), ":d": n(5), ":e": n(9)}
    texts = [
        "a = :a AND b = :b",
        "a = :a",
        "b = :b",
        "a = :a AND b > :b",
        "a = :a AND b = :b AND c = :c",
        "a = :a AND b = :b AND c = :c AND d > :d",
        "a = :a AND b = :b AND d > :d",
        "a = :a AND b = :b AND c > :c",
        "a = :a AND b = :b AND c > :c AND d = :d",
        "a = :a AND b = :b AND begins_with(c, :c)",
        "a = :a AND b = :b AND c = :c AND d BETWEEN :d AND :e",
        "a = :a AND c = :c",
    ]
    for text in texts:
        needed = {name: value for name, value in values.items() if name in text}
        yield step(
            "Query",
            TableName="multi",
            IndexName="gsi",
            KeyConditionExpression=text,
            ExpressionAttributeValues=needed,
        )
        yield step(
            "Query",
            TableName="multi",
            IndexName="gsi",
            KeyConditionExpression=text,
            ExpressionAttributeValues=needed,
            ScanIndexForward=False,
            Limit=1,
        )
    yield step("Scan", TableName="multi", IndexName="gsi", Limit=3)


NULLS = (
    "GetItem",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "Query",
    "Scan",
    "CreateTable",
    "DeleteTable",
    "DescribeTable",
    "BatchGetItem",
    "BatchWriteItem",
    "TransactGetItems",
    "TransactWriteItems",
    "UpdateTable",
    "UpdateTimeToLive",
    "DescribeTimeToLive",
)
BODIES = (
    b"",
    b"{",
    b"[]",
    b'"x"',
    b"{}",
    b'{"TableName": 1}',
    b'{"TableName": ["a"]}',
    b'{"TableName": null}',
    b'{"TableName": "ab"}',
    b'{"TableName": "a b c"}',
    b"\xff\xfe",
)


def _bodies() -> Iterator[Step]:
    for operation in NULLS:
        for body in BODIES:
            yield Step(operation, body)


SCRIPTS = (
    Script("multiple/indexes", (), list(_multiple())),
    Script("bodies/all", (), list(_bodies())),
)
