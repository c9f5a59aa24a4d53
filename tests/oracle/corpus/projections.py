"""Projection expressions in every operation that reads, and the rules of placeholders."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from tests.oracle.corpus.item import ITEM, placeholders
from tests.oracle.scripts import SIMPLE, Script, Step, n, s, ss, step


def _placeholder_rules() -> Iterator[Step]:
    """Unused, undefined and ill-formed placeholders."""
    base = {"TableName": "simple", "Key": {"p": s("key")}}
    cases: list[dict[str, Any]] = [
        {"ExpressionAttributeNames": {"#a": "a"}},
        {"ExpressionAttributeValues": {":a": n(1)}},
        {"ConditionExpression": "num = :n", "ExpressionAttributeValues": {}},
        {"ConditionExpression": "num = :n"},
        {"ConditionExpression": "num = :n", "ExpressionAttributeValues": {":n": n(10), ":m": n(1)}},
        {
            "ConditionExpression": "num = :n",
            "ExpressionAttributeValues": {":n": n(10)},
            "ExpressionAttributeNames": {"#x": "x"},
        },
        {
            "ConditionExpression": "#x = :n",
            "ExpressionAttributeValues": {":n": n(10)},
            "ExpressionAttributeNames": {},
        },
        {
            "ConditionExpression": "#x = :n",
            "ExpressionAttributeValues": {":n": n(10)},
            "ExpressionAttributeNames": {"x": "x"},
        },
        {
            "ConditionExpression": "#x = :n",
            "ExpressionAttributeValues": {"n": n(10)},
            "ExpressionAttributeNames": {"#x": "x"},
        },
        {
            "ConditionExpression": "#x = :n",
            "ExpressionAttributeValues": {":n": n(10)},
            "ExpressionAttributeNames": {"#x": ""},
        },
        {
            "ConditionExpression": "#x = :n",
            "ExpressionAttributeValues": {":n": {}},
            "ExpressionAttributeNames": {"#x": "num"},
        },
        {
            "ConditionExpression": "#x = :n",
            "ExpressionAttributeValues": {":n": n("x")},
            "ExpressionAttributeNames": {"#x": "num"},
        },
        {
            "ConditionExpression": "#x = :n",
            "ExpressionAttributeValues": {":n": ss()},
            "ExpressionAttributeNames": {"#x": "num"},
        },
        {
            "ConditionExpression": "#x-y = :n",
            "ExpressionAttributeValues": {":n": n(10)},
            "ExpressionAttributeNames": {"#x-y": "num"},
        },
        {
            "ConditionExpression": "#1 = :1",
            "ExpressionAttributeValues": {":1": n(10)},
            "ExpressionAttributeNames": {"#1": "num"},
        },
        {
            "ConditionExpression": "#_a = :_",
            "ExpressionAttributeValues": {":_": n(10)},
            "ExpressionAttributeNames": {"#_a": "num"},
        },
        {
            "ConditionExpression": "#a = :b",
            "ExpressionAttributeValues": {":b": s("x"), ":c": {}},
            "ExpressionAttributeNames": {"#a": "num"},
        },
        {
            "ConditionExpression": "#a = :b AND #b = :d",
            "ExpressionAttributeValues": {":b": s("x")},
            "ExpressionAttributeNames": {"#a": "num"},
        },
        {"ConditionExpression": None, "ExpressionAttributeValues": {":b": s("x")}},
        {
            "ConditionExpression": "attribute_exists(p)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
        {
            "ConditionExpression": "attribute_not_exists(p)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
        {
            "ConditionExpression": "attribute_not_exists(p)",
            "ReturnValuesOnConditionCheckFailure": "NONE",
        },
        {
            "ConditionExpression": "attribute_not_exists(p)",
            "ReturnValuesOnConditionCheckFailure": "X",
        },
    ]
    yield step("PutItem", TableName="simple", Item=ITEM)
    for case, operation in itertools.product(cases, ("DeleteItem", "PutItem", "UpdateItem")):
        own = {"TableName": "simple", "Item": ITEM} if operation == "PutItem" else base
        yield Step(operation, {**own, **case})
        if operation == "DeleteItem":
            yield step("PutItem", TableName="simple", Item=ITEM)


PROJECTIONS = [
    *(
        "p",
        "str",
        "str, num",
        "absent",
        "doc.a",
        "doc.a, doc.b",
        "doc.c.d[0]",
        "lst[0]",
        "lst[1], lst[0]",
        "lst[2].deep",
        "lst[3][0], lst[0]",
        "doc.lst[1]",
        "lst[9]",
        "doc.z, str",
        "str.x",
        "lst[0].x",
        "#m.a, #s",
        "doc.c.d[0], doc.lst[0]",
        "lst[2], lst[3]",
    ),
    *(
        "",
        " ",
        ",",
        "p,",
        ",p",
        "p p",
        "p, p",
        "doc, doc.a",
        "doc.a, doc",
        "doc.a, doc.a",
        "lst[0], lst",
        "lst[0], lst[0]",
        "doc[0], doc.a",
        "lst.a, lst[0]",
        "status",
        "doc.status",
        "#undefined",
        ":str",
        "p = :str",
        "size(p)",
        "p.",
        "p[",
        "lst[-1]",
        "lst[01]",
        "1a",
        "*",
    ),
    "doc" + ".a" * 31,
    "doc" + ".a" * 32,
]


def _projections() -> Iterator[Step]:
    yield step("PutItem", TableName="simple", Item=ITEM)
    for text in PROJECTIONS:
        more = placeholders(text)
        more.pop("ExpressionAttributeValues", None)
        key = {"p": s("key")}
        yield step("GetItem", TableName="simple", Key=key, ProjectionExpression=text, **more)
        yield step("Scan", TableName="simple", ProjectionExpression=text, **more)
        get = {"TableName": "simple", "Key": key, "ProjectionExpression": text, **more}
        yield step("TransactGetItems", TransactItems=[{"Get": get}])
        yield step(
            "BatchGetItem",
            RequestItems={"simple": {"Keys": [key], "ProjectionExpression": text, **more}},
        )


SCRIPTS = (
    Script("projections/placeholders", (SIMPLE,), list(_placeholder_rules())),
    Script("projections/paths", (SIMPLE,), list(_projections())),
)
