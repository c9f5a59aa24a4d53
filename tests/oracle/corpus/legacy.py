"""The parameters from before expressions: Expected, AttributeUpdates, KeyConditions and the filters."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from tests.oracle.corpus.item import ITEM
from tests.oracle.scripts import INDEXED, SIMPLE, Script, Step, b, lst, n, ns, s, ss, step

KEY = {"TableName": "simple", "Key": {"p": s("key")}}
OPERATORS = (
    "EQ",
    "NE",
    "LE",
    "LT",
    "GE",
    "GT",
    "NOT_NULL",
    "NULL",
    "CONTAINS",
    "NOT_CONTAINS",
    "BEGINS_WITH",
    "IN",
    "BETWEEN",
    "X",
)
OPERANDS: list[Any] = [
    *(
        [],
        [s("hello")],
        [n(10)],
        [b("AAEC")],
        [s("he")],
        [ss("a", "b")],
        [lst()],
        [n(1), n(20)],
        [n(20), n(1)],
    ),
    *([s("a"), n(1)], [n(1), n(2), n(10)], [s("a")], [{}], None),
]
EXPECTED: list[Any] = [
    *(
        {},
        {"num": {}},
        {"num": {"Value": n(10)}},
        {"num": {"Value": n(11)}},
        {"num": {"Exists": True}},
    ),
    *(
        {"num": {"Exists": True, "Value": n(10)}},
        {"num": {"Exists": False}},
        {"fresh": {"Exists": False}},
    ),
    *(
        {"num": {"Exists": False, "Value": n(1)}},
        {"num": {"Value": n(1), "ComparisonOperator": "EQ"}},
    ),
    *({"num": {"Exists": True, "ComparisonOperator": "EQ", "AttributeValueList": [n(10)]}},),
    *(
        {"num": {"AttributeValueList": [n(10)]}},
        {"num": {"Value": n(10), "AttributeValueList": [n(10)]}},
    ),
    {"num": {"Value": n(10)}, "str": {"Value": s("no")}},
    {"": {"Value": n(10)}},
]


def _expected() -> Iterator[Step]:
    yield step("PutItem", TableName="simple", Item=ITEM)
    for expected, operator in itertools.product(EXPECTED, (None, "AND", "OR", "X")):
        more = {"ConditionalOperator": operator} if operator else {}
        yield step("UpdateItem", **KEY, Expected=expected, **more)
    yield step("UpdateItem", **KEY, ConditionalOperator="AND")
    for operator, operands, name in itertools.product(
        OPERATORS, OPERANDS, ("num", "str", "sset", "lst", "fresh")
    ):
        test = {"ComparisonOperator": operator, "AttributeValueList": operands}
        if operands is None:
            del test["AttributeValueList"]
        yield step("UpdateItem", **KEY, Expected={name: test})


UPDATES: list[Any] = [
    *(
        {},
        {"num": {}},
        {"num": {"Action": "PUT"}},
        {"num": {"Action": "X", "Value": n(1)}},
    ),
    *(
        {"num": {"Action": "PUT", "Value": s("a")}},
        {"fresh": {"Action": "PUT", "Value": lst(n(1))}},
    ),
    *(
        {"num": {"Action": "DELETE"}},
        {"fresh": {"Action": "DELETE"}},
        {"sset": {"Action": "DELETE", "Value": ss("a")}},
    ),
    *(
        {"sset": {"Action": "DELETE", "Value": ss("a", "b")}},
        {"num": {"Action": "DELETE", "Value": n(1)}},
    ),
    *(
        {"sset": {"Action": "DELETE", "Value": ns(1)}},
        {"fresh": {"Action": "DELETE", "Value": ss("a")}},
    ),
    *(
        {"num": {"Action": "ADD", "Value": n(5)}},
        {"fresh": {"Action": "ADD", "Value": n(5)}},
        {"sset": {"Action": "ADD", "Value": ss("z")}},
    ),
    *(
        {"num": {"Action": "ADD", "Value": ss("z")}},
        {"str": {"Action": "ADD", "Value": n(1)}},
        {"fresh": {"Action": "ADD", "Value": s("a")}},
    ),
    *(
        {"lst": {"Action": "ADD", "Value": lst(n(1))}},
        {"fresh": {"Action": "ADD", "Value": lst(n(1))}},
        {"num": {"Action": "ADD"}},
    ),
    *(
        {"p": {"Action": "PUT", "Value": s("x")}},
        {"p": {"Action": "DELETE"}},
        {"num": {"Action": "PUT", "Value": {}}},
        {"a.b": {"Action": "PUT", "Value": n(1)}},
    ),
    {
        "num": {"Action": "PUT", "Value": n(1)},
        "str": {"Action": "DELETE"},
        "sset": {"Action": "ADD", "Value": ss("q")},
    },
]


def _updates() -> Iterator[Step]:
    for updates, returned in itertools.product(UPDATES, ("ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")):
        yield step("PutItem", TableName="simple", Item=ITEM)
        yield step("UpdateItem", **KEY, AttributeUpdates=updates, ReturnValues=returned)
        yield step("GetItem", **KEY)
        yield step("DeleteItem", TableName="simple", Key={"p": s("fresh")})
        yield step(
            "UpdateItem",
            TableName="simple",
            Key={"p": s("fresh")},
            AttributeUpdates=updates,
            ReturnValues=returned,
        )


def _test(operator: str, *operands: Any) -> dict[str, Any]:
    return {"ComparisonOperator": operator, "AttributeValueList": list(operands)}


CONDITIONS: list[Any] = [
    *(
        {},
        {"p": _test("EQ", s("a"))},
        {"p": _test("EQ", s("a")), "s": _test("GT", n(1))},
        {"p": _test("EQ", n(1))},
    ),
    *(
        {"p": _test("EQ", s("a")), "s": _test(name, n(2))}
        for name in (
            "EQ",
            "LT",
            "LE",
            "GE",
            "GT",
            "NE",
            "BEGINS_WITH",
            "CONTAINS",
            "NULL",
            "IN",
            "X",
        )
    ),
    *(
        {"p": _test("EQ", s("a")), "s": _test("BETWEEN", n(1), n(3))},
        {"p": _test("EQ", s("a")), "s": _test("BETWEEN", n(3), n(1))},
    ),
    *(
        {"p": _test("EQ", s("a")), "s": _test("BETWEEN", n(3))},
        {"p": _test("EQ", s("a")), "s": _test("EQ")},
        {"p": _test("LT", s("a"))},
    ),
    *(
        {"s": _test("EQ", n(1))},
        {"p": _test("EQ", s("a")), "x": _test("EQ", n(1))},
        {"p": _test("EQ", s("a"), s("b"))},
    ),
    {"p": _test("EQ", s("a")), "s": _test("EQ", n(1)), "x": _test("EQ", n(1))},
    {"p": {"ComparisonOperator": "EQ"}},
    {"p": {"AttributeValueList": [s("a")]}},
]
FILTERS: list[Any] = [
    *(
        {},
        {"x": _test("GT", n(2))},
        {"x": _test("NOT_NULL")},
        {"z": _test("NULL")},
        {"x": _test("IN", n(1), n(2))},
        {"s": _test("GT", n(2))},
        {"p": _test("EQ", s("a"))},
    ),
    {"x": _test("GT", n(2)), "y": _test("EQ", s("y"))},
    {"x": _test("GT", s("a"))},
    {"x": _test("CONTAINS", lst())},
]


def _queries() -> Iterator[Step]:
    for row in range(5):
        yield step(
            "PutItem",
            TableName="indexed",
            Item={"p": s("a"), "s": n(row), "x": n(row), "y": s("y"), "g": s("g"), "r": n(row)},
        )
    for conditions in CONDITIONS:
        yield step("Query", TableName="indexed", KeyConditions=conditions)
    for filters, operator in itertools.product(FILTERS, (None, "AND", "OR")):
        more = {"ConditionalOperator": operator} if operator else {}
        yield step(
            "Query",
            TableName="indexed",
            KeyConditions={"p": _test("EQ", s("a"))},
            QueryFilter=filters,
            **more,
        )
        yield step("Scan", TableName="indexed", ScanFilter=filters, **more)
    for names in (["x"], ["x", "y"], ["x", "x"], ["nothing"], [""], None, ["a.b"]):
        yield step(
            "Query",
            TableName="indexed",
            KeyConditions={"p": _test("EQ", s("a"))},
            AttributesToGet=names,
        )
        yield step("Scan", TableName="indexed", AttributesToGet=names, Select="SPECIFIC_ATTRIBUTES")
        yield step(
            "GetItem", TableName="indexed", Key={"p": s("a"), "s": n(1)}, AttributesToGet=names
        )
    yield step(
        "Query",
        TableName="indexed",
        IndexName="g-all",
        KeyConditions={"g": _test("EQ", s("g")), "r": _test("GE", n(2))},
    )


OLD: dict[str, Any] = {
    "Expected": {"num": {"Value": n(10)}},
    "AttributeUpdates": {"num": {"Action": "PUT", "Value": n(10)}},
    "ConditionalOperator": "AND",
    "KeyConditions": {"p": _test("EQ", s("key"))},
    "QueryFilter": {"num": _test("EQ", n(10))},
    "ScanFilter": {"num": _test("EQ", n(10))},
    "AttributesToGet": ["num"],
}
MODERN: dict[str, Any] = {
    "ConditionExpression": "attribute_exists(p)",
    "UpdateExpression": "REMOVE x",
    "KeyConditionExpression": "p = :p",
    "FilterExpression": "attribute_exists(p)",
    "ProjectionExpression": "p",
    "ExpressionAttributeNames": {"#p": "p"},
    "ExpressionAttributeValues": {":p": s("key")},
}
TAKEN = {
    "PutItem": ("Expected", "ConditionalOperator", "ConditionExpression"),
    "DeleteItem": ("Expected", "ConditionalOperator", "ConditionExpression"),
    "UpdateItem": (
        "Expected",
        "AttributeUpdates",
        "ConditionalOperator",
        "ConditionExpression",
        "UpdateExpression",
    ),
    "GetItem": ("AttributesToGet", "ProjectionExpression"),
    "Query": (
        "KeyConditions",
        "QueryFilter",
        "AttributesToGet",
        "ConditionalOperator",
        "KeyConditionExpression",
        "FilterExpression",
        "ProjectionExpression",
    ),
    "Scan": (
        "ScanFilter",
        "AttributesToGet",
        "ConditionalOperator",
        "FilterExpression",
        "ProjectionExpression",
    ),
}
PLACEHOLDERS = ("ExpressionAttributeNames", "ExpressionAttributeValues")


def _mixtures() -> Iterator[Step]:
    """Every two or three parameters of both ages in one request."""
    for operation, names in TAKEN.items():
        known = (
            *names,
            *(name for name in PLACEHOLDERS if operation != "GetItem" or name.endswith("Names")),
        )
        base: dict[str, Any] = {"TableName": "simple"}
        if operation == "PutItem":
            base["Item"] = ITEM
        elif operation not in ("Query", "Scan"):
            base["Key"] = {"p": s("key")}
        for count in (1, 2, 3):
            for chosen in itertools.combinations(known, count):
                yield Step(
                    operation, {**base, **{name: {**OLD, **MODERN}[name] for name in chosen}}
                )


SCRIPTS = (
    Script("legacy/expected", (SIMPLE,), list(_expected())),
    Script("legacy/updates", (SIMPLE,), list(_updates())),
    Script("legacy/queries", (INDEXED,), list(_queries())),
    Script("legacy/mixtures", (SIMPLE,), list(_mixtures())),
)
