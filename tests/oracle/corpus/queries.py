"""Query and Scan: key conditions, options and what they refuse."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from tests.oracle.corpus.item import used
from tests.oracle.scripts import BINARY, INDEXED, NULL, Script, Step, b, n, s, ss, step, table

TEXTS = table("texts", "p:S s:S", "ps")
SORTS = [
    "",
    "#1",
    "Banana",
    "apple",
    "app",
    "apple pie",
    "cherry",
    "é",
    "～",
    "😀",
    "a\u0000",
    "zz",
]
NUMBERS = [
    "-1e125",
    "-2",
    "-1.5",
    "0",
    "1e-130",
    "2",
    "10",
    "123456789012345678901234567890.12345678",
]

VALUES: dict[str, Any] = {
    ":p": s("a"),
    ":q": s("b"),
    ":n": n(1),
    ":m": n(5),
    ":s": s("app"),
    ":t": s("cherry"),
    ":e": s(""),
    ":b": b("AQ=="),
    ":nil": NULL,
    ":ss": ss("a"),
    ":bad": {},
}
NAMES = {"#p": "p", "#s": "s", "#g": "g", "#r": "r"}

ON_NUMBERS = [
    *(
        "p = :p",
        "p = :p AND s = :n",
        "p = :p AND s < :m",
        "p = :p AND s <= :m",
        "p = :p AND s > :n",
        "p = :p AND s >= :n",
        "p = :p AND s BETWEEN :n AND :m",
        "s = :n AND p = :p",
        "#p = :p AND #s > :n",
        "(p = :p) AND (s > :n)",
        "(p = :p AND s > :n)",
        ":p = p",
        ":p = p AND :n < s",
        "p = :p and s between :n and :m",
    ),
    *(
        "",
        " ",
        "p",
        "p = ",
        "p > :p",
        "p <> :p",
        "p BETWEEN :p AND :q",
        "begins_with(p, :p)",
        "s = :n",
        "p = :p AND p = :q",
        "p = :p AND s = :n AND s = :m",
        "p = :p AND s > :n AND s < :m",
        "p = :p AND s <> :n",
        "p = :p OR s = :n",
        "NOT p = :p",
        "p = :p AND NOT s = :n",
        "p = :p AND s IN (:n, :m)",
        "p = :p AND x = :n",
        "x = :p",
        "p = :p AND contains(s, :n)",
        "p = :p AND attribute_exists(s)",
        "p = :p AND size(s) = :n",
        "p = :p AND begins_with(s, :n)",
        "p = :p AND begins_with(s, :s)",
    ),
    *(
        "p = :n",
        "p = :p AND s = :s",
        "p = :p AND s BETWEEN :m AND :n",
        "p = :p AND s BETWEEN :n AND :s",
        "p = :nil",
        "p = :ss",
        "p = :e",
        "p = :bad",
        "p = :undefined",
        "#u = :p",
        "p = :p AND s > p",
        "p = p",
        "p = :p AND s = s",
        ":p = :p",
        "p.x = :p",
        "p[0] = :p",
        "p = :p AND s.x = :n",
        "p = :p AND",
        "p = :p s = :n",
        "p = :p AND AND s = :n",
        "size = :p",
        "p = :p AND s = :n + :n",
        "p = :p, s = :n",
    ),
]
ON_TEXTS = [
    *(
        "p = :p AND begins_with(s, :s)",
        "p = :p AND begins_with(s, :e)",
        "p = :p AND s > :s",
        "p = :p AND s < :t",
        "p = :p AND s BETWEEN :s AND :t",
        "p = :p AND s = :e",
        "p = :p AND s >= :e",
        "p = :p AND begins_with(s, :n)",
        "p = :p AND begins_with(p, :s)",
        "p = :p AND begins_with(s)",
        "p = :p AND begins_with(s, p)",
        "p = :p AND begins_with(:s, s)",
        "begins_with(s, :s) AND p = :p",
        "p = :p AND begins_with(#s, :s)",
        "p = :p AND s BETWEEN :t AND :s",
    ),
]
ON_BINARY = [
    "p = :b",
    "p = :b AND s > :b",
    "p = :b AND begins_with(s, :b)",
    "p = :b AND s = :p",
    "p = :p",
]


def placeholders(*texts: str) -> dict[str, Any]:
    """Names and values as the texts need them."""
    names, values = used(texts, NAMES), used(texts, VALUES)
    return {
        **({"ExpressionAttributeNames": names} if names else {}),
        **({"ExpressionAttributeValues": values} if values else {}),
    }


def _query(name: str, text: str, **more: Any) -> Step:
    return step("Query", TableName=name, KeyConditionExpression=text, **placeholders(text), **more)


def _rows() -> Iterator[Step]:
    for text in SORTS:
        if text:
            yield step("PutItem", TableName="texts", Item={"p": s("a"), "s": s(text)})
    for index, text in enumerate(NUMBERS):
        item = {
            "p": s("a"),
            "s": n(text),
            "g": s("gg"[: 1 + index % 2]),
            "r": n(index // 2),
            "l": s("l"),
            "x": n(index),
            "y": s("y"),
        }
        yield step("PutItem", TableName="indexed", Item=item)
    for one in ("AA==", "AQ==", "AQA=", "/w==", "f/8="):
        yield step("PutItem", TableName="binary", Item={"p": b("AQ=="), "s": b(one)})


def _key_conditions() -> Iterator[Step]:
    yield from _rows()
    for forward in (True, False):
        for name, texts in (("indexed", ON_NUMBERS), ("texts", ON_TEXTS), ("binary", ON_BINARY)):
            for text in texts:
                yield _query(name, text, ScanIndexForward=forward)


OPTIONS: list[dict[str, Any]] = [
    *({"Limit": value} for value in (0, -1, 1, 3, 8, 9, 1000, 1001, 1000000)),
    *(
        {"Select": value}
        for value in (
            "COUNT",
            "ALL_ATTRIBUTES",
            "ALL_PROJECTED_ATTRIBUTES",
            "SPECIFIC_ATTRIBUTES",
            "X",
        )
    ),
    {"Select": "SPECIFIC_ATTRIBUTES", "ProjectionExpression": "x"},
    {"Select": "COUNT", "ProjectionExpression": "x"},
    {"Select": "ALL_ATTRIBUTES", "ProjectionExpression": "x"},
    {"Select": "ALL_PROJECTED_ATTRIBUTES", "ProjectionExpression": "x"},
    *({"ConsistentRead": value} for value in (True, False)),
    *({"ReturnConsumedCapacity": value} for value in ("TOTAL", "INDEXES", "NONE")),
    {"ProjectionExpression": "x, y"},
    {"ProjectionExpression": "x.y"},
    {"FilterExpression": "x > :m"},
    {"FilterExpression": "x > :m", "Select": "COUNT"},
    {"FilterExpression": "x > :m", "Limit": 3},
    {"FilterExpression": "s > :n"},
    {"FilterExpression": "p = :p"},
    {"FilterExpression": "r = :n AND x = :n"},
    {"FilterExpression": "g = :p"},
    {"FilterExpression": ""},
    {"FilterExpression": "attribute_exists(y)", "ProjectionExpression": "x"},
    {"IndexName": ""},
    {"IndexName": "no"},
    {"IndexName": "nothing"},
    *(
        {"ExclusiveStartKey": key}
        for key in (
            {},
            {"p": s("a")},
            {"p": s("a"), "s": n(2)},
            {"p": s("a"), "s": s("2")},
            {"p": s("b"), "s": n(2)},
            {"p": s("a"), "s": n(3)},
            {"p": s("a"), "s": n(2), "x": n(1)},
            {"p": s("a"), "s": n(2), "g": s("g"), "r": n(1)},
            {"p": s("a"), "s": n(2), "g": s("other"), "r": n(1)},
            {"p": s("a"), "s": n(2), "l": s("l")},
            {"p": s("a"), "s": n(2), "g": s("g")},
            {"p": s(""), "s": n(2)},
            {"p": {}, "s": n(2)},
        )
    ),
]
INDEXES = (
    ("p = :p", {}),
    ("p = :p", {"IndexName": "l-all"}),
    ("p = :p", {"IndexName": "l-keys"}),
    ("g = :g", {"IndexName": "g-all"}),
    ("g = :g", {"IndexName": "g-keys"}),
    ("g = :g", {"IndexName": "g-some"}),
)


def _options() -> Iterator[Step]:
    yield from _rows()
    for (text, where), options in itertools.product(INDEXES, OPTIONS):
        texts = [text, options.get("FilterExpression", "")]
        values = used(texts, {**VALUES, ":g": s("g")})
        if options.get("IndexName") == "nothing" or not values:
            continue
        request = {"TableName": "indexed", **where, **options}
        yield Step(
            "Query",
            {**request, "KeyConditionExpression": text, "ExpressionAttributeValues": values},
        )
        values.pop(":p" if ":p" not in texts[1] else ":g", None)
        values.pop(":g", None)
        if where and ("FilterExpression" in options or "ExclusiveStartKey" in options):
            continue  # DynamoDB Local's Scan of an index sees whole items, in an order of its own
        yield Step("Scan", {**request, **({"ExpressionAttributeValues": values} if values else {})})


SEGMENTS: list[dict[str, Any]] = [
    *(
        {"TotalSegments": total, "Segment": segment}
        for total, segment in ((1, 0), (0, 0), (2, 2), (2, -1), (1000001, 0), (1000000, 0), (-1, 0))
    ),
    {"TotalSegments": 4},
    {"Segment": 0},
]


def _scans() -> Iterator[Step]:
    yield from _rows()
    for options in SEGMENTS:
        yield step(
            "Scan",
            TableName="indexed",
            Select="COUNT" if options.get("TotalSegments", 0) <= 1 else "X",
            **options,
        )
    yield step("Scan", TableName="nothing")
    yield step(
        "Query",
        TableName="nothing",
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues={":p": s("a")},
    )
    yield step("Query", TableName="indexed")
    yield step(
        "Query",
        TableName="indexed",
        FilterExpression="x = :n",
        ExpressionAttributeValues={":n": n(1)},
    )
    yield step(
        "Scan",
        TableName="indexed",
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues={":p": s("a")},
    )
    for wrong in (
        "p = :p",
        "g = :p",
        "g = :p AND s = :n",
        "g = :p AND r = :n",
        "g = :p AND r = :p",
        "p = :p AND s = :n",
        "p = :p AND l = :s",
        "p = :p AND begins_with(l, :s)",
    ):
        for name in ("g-all", "g-keys", "l-all"):
            yield _query("indexed", wrong, IndexName=name)


SCRIPTS = (
    Script("queries/key-conditions", (TEXTS, INDEXED, BINARY), list(_key_conditions())),
    Script("queries/options", (TEXTS, INDEXED, BINARY), list(_options())),
    Script("queries/scans", (TEXTS, INDEXED, BINARY), list(_scans())),
)
