"""TransactWriteItems and TransactGetItems: reasons of cancellation, tokens, limits, capacity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.oracle.scripts import INDEXED, ORDERED, SIMPLE, Script, Step, n, s, ss, step

Action = dict[str, Any]


def _put(key: str, table: str = "simple", **more: Any) -> Action:
    options = {name: more.pop(name) for name in list(more) if name[0].isupper()}
    return {"Put": {"TableName": table, "Item": {"p": s(key), **more}, **options}}


def _delete(key: str, **more: Any) -> Action:
    return {"Delete": {"TableName": "simple", "Key": {"p": s(key)}, **more}}


def _check(key: str, condition: str = "attribute_exists(p)", **more: Any) -> Action:
    return {
        "ConditionCheck": {
            "TableName": "simple",
            "Key": {"p": s(key)},
            "ConditionExpression": condition,
            **more,
        }
    }


def _update(key: str, text: str = "SET x = :x", value: Any = None, **more: Any) -> Action:
    values = {":x": value or n(1)}
    return {
        "Update": {
            "TableName": "simple",
            "Key": {"p": s(key)},
            "UpdateExpression": text,
            "ExpressionAttributeValues": values,
            **more,
        }
    }


KEEP = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
NEW = {"ConditionExpression": "attribute_not_exists(p)"}
ACTIONS: list[Any] = [
    *([], [{}], None, [_put("a"), {}], [{"Foo": {}}], [{**_put("a"), **_delete("b")}]),
    [_put("a", x=n(1))],
    [_put("b"), _delete("c"), _update("d"), _check("a")],
    [_check("missing")],
    [_check("a", "x = :x", ExpressionAttributeValues={":x": n(2)}, **KEEP)],
    [_check("a", "attribute_not_exists(p)", **KEEP), _check("missing", **KEEP), _put("z")],
    [_put("a", **NEW)],
    [_put("a", **NEW, **KEEP), _delete("b", ConditionExpression="attribute_not_exists(p)", **KEEP)],
    [_update("a", ConditionExpression="attribute_not_exists(p)", **KEEP)],
    [_update("a", "SET x = x + :x"), _put("e")],
    [_update("a", "SET y = y + :x"), _put("e")],
    [_update("a", "SET x = x + :x", s("text"))],
    [_update("a", "ADD x :x", ss("a"))],
    [_update("a", "SET a.b.c = :x")],
    [_update("a", "SET p = :x")],
    [_update("a", "SET x = :y")],
    [_update("a", "SET x = = :x")],
    [_update("a", "")],
    [_put("f"), _put("f")],
    [_put("f"), _delete("f")],
    [_put("f"), _check("f")],
    [_update("f"), _update("f")],
    [_put("g"), _put("g", "ordered", s=n(1))],
    [_put("g", "ordered")],
    [_put("g", "ordered", s=s("1"))],
    [_put("")],
    [_put("a", x={"N": "x"})],
    [_put("a", x={})],
    [_put("a", x=s("x" * 400 * 1024))],
    [_put("a", "nothing")],
    [_put("ok"), _put("a", "nothing")],
    [_check("a", "")],
    [{"ConditionCheck": {"TableName": "simple", "Key": {"p": s("a")}}}],
    [{"Put": {"TableName": "simple"}}],
    [{"Delete": {"TableName": "simple"}}],
    [{"Delete": {"Key": {"p": s("a")}}}],
    [_delete("a", ConditionExpression="x = :x")],
    [
        _delete(
            "a", ConditionExpression="x = :x", ExpressionAttributeValues={":x": n(1), ":y": n(1)}
        )
    ],
    [_put(str(i)) for i in range(100)],
    [_put(str(i)) for i in range(101)],
    [_check(str(i)) for i in range(100)],
    [_put(f"big{i}", x=s("x" * 390_000)) for i in range(11)],
    [_put(f"big{i}", x=s("x" * 390_000)) for i in range(10)],
]
GETS: list[Any] = [
    *([], [{}], None, [{"Get": {}}]),
    [{"Get": {"TableName": "simple", "Key": {"p": s("a")}}}],
    [
        {"Get": {"TableName": "simple", "Key": {"p": s("missing")}}},
        {"Get": {"TableName": "simple", "Key": {"p": s("a")}}},
    ],
    [{"Get": {"TableName": "simple", "Key": {"p": s("a")}}}] * 2,
    [{"Get": {"TableName": "simple", "Key": {"p": s("a")}, "ProjectionExpression": "x"}}],
    [
        {
            "Get": {
                "TableName": "simple",
                "Key": {"p": s("a")},
                "ProjectionExpression": "#x",
                "ExpressionAttributeNames": {"#x": "x"},
            }
        }
    ],
    [
        {
            "Get": {
                "TableName": "simple",
                "Key": {"p": s("a")},
                "ProjectionExpression": "x",
                "ExpressionAttributeNames": {"#x": "x"},
            }
        }
    ],
    [
        {
            "Get": {
                "TableName": "simple",
                "Key": {"p": s("a")},
                "ExpressionAttributeNames": {"#x": "x"},
            }
        }
    ],
    [{"Get": {"TableName": "simple", "Key": {"p": n(1)}}}],
    [{"Get": {"TableName": "simple", "Key": {}}}],
    [{"Get": {"TableName": "nothing", "Key": {"p": s("a")}}}],
    [{"Get": {"TableName": "simple", "Key": {"p": s(str(i))}}} for i in range(100)],
    [{"Get": {"TableName": "simple", "Key": {"p": s(str(i))}}} for i in range(101)],
    [
        {"Get": {"TableName": "simple", "Key": {"p": s("a")}}},
        {"Get": {"TableName": "ordered", "Key": {"p": s("a"), "s": n(1)}}},
    ],
]


def _writes() -> Iterator[Step]:
    for actions in ACTIONS:
        yield step("TransactWriteItems", TransactItems=actions, ReturnConsumedCapacity="TOTAL")
        yield step("Scan", TableName="simple", Select="COUNT")
        yield step("GetItem", TableName="simple", Key={"p": s("a")})
    yield step("TransactWriteItems")


def _gets() -> Iterator[Step]:
    yield step("PutItem", TableName="simple", Item={"p": s("a"), "x": n(1), "y": s("y" * 5000)})
    for gets in GETS:
        for capacity in ("TOTAL", "INDEXES"):
            yield step("TransactGetItems", TransactItems=gets, ReturnConsumedCapacity=capacity)


def _tokens() -> Iterator[Step]:
    """The same token and request again changes nothing; with another request it is refused."""
    add = [_update("t", "ADD x :x")]
    for token in ("one", "two"):
        for _ in range(2):
            yield step(
                "TransactWriteItems",
                TransactItems=add,
                ClientRequestToken=token,
                ReturnConsumedCapacity="TOTAL",
            )
            yield step("GetItem", TableName="simple", Key={"p": s("t")})
    yield step(
        "TransactWriteItems",
        TransactItems=[_update("t", "ADD x :x", n(2))],
        ClientRequestToken="one",
    )
    for token in ("x" * 36, "x" * 37):
        yield step("TransactWriteItems", TransactItems=add, ClientRequestToken=token)
    failing = [_check("missing")]
    for _ in range(2):
        yield step("TransactWriteItems", TransactItems=failing, ClientRequestToken="fails")
    yield step("TransactWriteItems", TransactItems=add, ClientRequestToken="fails")


def _indexed() -> Iterator[Step]:
    """Units of a transaction are double, in the table and in each index."""
    for size in (1, 3000):
        item = {"p": s("a"), "s": n(size), "g": s("g"), "r": n(1), "l": s("l"), "x": s("x" * size)}
        actions = [{"Put": {"TableName": "indexed", "Item": item}}]
        for _ in range(2):
            yield step(
                "TransactWriteItems",
                TransactItems=actions,
                ReturnConsumedCapacity="INDEXES",
                ReturnItemCollectionMetrics="SIZE",
            )
        get = {"TableName": "indexed", "Key": {"p": s("a"), "s": n(size)}}
        yield step(
            "TransactGetItems", TransactItems=[{"Get": get}], ReturnConsumedCapacity="INDEXES"
        )
        yield step(
            "TransactWriteItems", TransactItems=[{"Delete": get}], ReturnConsumedCapacity="INDEXES"
        )
        check = {**get, "ConditionExpression": "attribute_not_exists(p)"}
        yield step(
            "TransactWriteItems",
            TransactItems=[{"ConditionCheck": check}],
            ReturnConsumedCapacity="INDEXES",
        )
    bad = {"p": s("a"), "s": n(1), "g": n(1)}
    yield step("TransactWriteItems", TransactItems=[{"Put": {"TableName": "indexed", "Item": bad}}])
    text = {"UpdateExpression": "SET g = :g", "ExpressionAttributeValues": {":g": n(1)}}
    update = {"TableName": "indexed", "Key": {"p": s("a"), "s": n(1)}, **text}
    yield step("TransactWriteItems", TransactItems=[{"Update": update}])


SCRIPTS = (
    Script("transactions/writes", (SIMPLE, ORDERED), list(_writes())),
    Script("transactions/gets", (SIMPLE, ORDERED), list(_gets())),
    Script("transactions/tokens", (SIMPLE,), list(_tokens())),
    Script("transactions/indexed", (INDEXED,), list(_indexed())),
)
