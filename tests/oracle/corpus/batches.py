"""BatchGetItem and BatchWriteItem: limits, duplicates, several tables, capacity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.oracle.scripts import INDEXED, ORDERED, SIMPLE, Script, Step, n, s, step


def _put(key: str, **more: Any) -> dict[str, Any]:
    return {"PutRequest": {"Item": {"p": s(key), **more}}}


def _delete(key: str) -> dict[str, Any]:
    return {"DeleteRequest": {"Key": {"p": s(key)}}}


WRITES: list[Any] = [
    *(
        {},
        {"simple": []},
        {"nothing": [_put("a")]},
        {"simple": [{}]},
        {"simple": [{"PutRequest": {}}]},
        {"simple": [{"DeleteRequest": {}}]},
    ),
    {"simple": [_put("a", x=n(1)), _put("b"), _delete("c")]},
    {"simple": [_put("a"), _put("a")]},
    {"simple": [_put("a"), _delete("a")]},
    {"simple": [_delete("a"), _delete("a")]},
    {"simple": [{**_put("a"), **_delete("b")}]},
    {"simple": [_put(str(i)) for i in range(25)]},
    {"simple": [_put(str(i)) for i in range(26)]},
    {"simple": [_delete(str(i)) for i in range(24)]},
    {"simple": [_put("a")], "ordered": [{"PutRequest": {"Item": {"p": s("a"), "s": n(1)}}}]},
    {"simple": [_put("a")], "nothing": [_put("a")]},
    {"simple": [_put("a", x={"N": "x"})]},
    {"simple": [_put("a", x=s("x" * 400 * 1024))]},
    {"simple": [{"PutRequest": {"Item": {"q": s("a")}}}]},
    {"simple": [_put("")]},
    {"simple": [{"PutRequest": {"Item": {}}}]},
    {"simple": [{"DeleteRequest": {"Key": {"p": s("a"), "q": s("b")}}}]},
    {"simple": {}},
    {"a": [_put("a")]},
    None,
]
GETS: list[Any] = [
    *({}, {"simple": {}}, {"simple": {"Keys": []}}, {"nothing": {"Keys": [{"p": s("a")}]}}),
    {"simple": {"Keys": [{"p": s("a")}, {"p": s("b")}, {"p": s("missing")}]}},
    {"simple": {"Keys": [{"p": s("a")}, {"p": s("a")}]}},
    {"ordered": {"Keys": [{"p": s("a"), "s": n(1)}]}},
    {"simple": {"Keys": [{"p": s(str(i))} for i in range(100)]}},
    {"simple": {"Keys": [{"p": s(str(i))} for i in range(101)]}},
    {
        "simple": {"Keys": [{"p": s(str(i))} for i in range(50)]},
        "ordered": {"Keys": [{"p": s("a"), "s": n(i)} for i in range(51)]},
    },
    {"simple": {"Keys": [{"p": s("a")}], "ConsistentRead": True}},
    {"simple": {"Keys": [{"p": s("a")}], "ProjectionExpression": "x"}},
    {
        "simple": {
            "Keys": [{"p": s("a")}],
            "ProjectionExpression": "#x",
            "ExpressionAttributeNames": {"#x": "x"},
        }
    },
    {
        "simple": {
            "Keys": [{"p": s("a")}],
            "ProjectionExpression": "x",
            "ExpressionAttributeNames": {"#x": "x"},
        }
    },
    {"simple": {"Keys": [{"p": s("a")}], "ExpressionAttributeNames": {"#x": "x"}}},
    {"simple": {"Keys": [{"p": s("a")}], "AttributesToGet": ["x"]}},
    {"simple": {"Keys": [{"p": s("a")}], "AttributesToGet": ["x"], "ProjectionExpression": "x"}},
    {"simple": {"Keys": [{"p": s("a")}], "AttributesToGet": ["x", "x"]}},
    {"simple": {"Keys": [{"p": s("a")}]}, "ordered": {"Keys": [{"p": s("a"), "s": n(1)}]}},
    {"simple": {"Keys": [{"p": s("a")}]}, "nothing": {"Keys": [{"p": s("a")}]}},
    {"simple": {"Keys": [{"p": n(1)}]}},
    {"simple": {"Keys": [{}]}},
    {"simple": {"Keys": [{"p": s("a")}, {"q": s("a")}]}},
    None,
]


def _writes() -> Iterator[Step]:
    for items in WRITES:
        for capacity in ("TOTAL", "INDEXES"):
            yield step(
                "BatchWriteItem",
                RequestItems=items,
                ReturnConsumedCapacity=capacity,
                ReturnItemCollectionMetrics="SIZE",
            )
        yield step("Scan", TableName="simple")
    yield step("BatchWriteItem")


def _gets() -> Iterator[Step]:
    for name in "ab0123456789":
        yield step("PutItem", TableName="simple", Item={"p": s(name), "x": n(1), "y": s("y")})
    yield step("PutItem", TableName="ordered", Item={"p": s("a"), "s": n(1), "x": s("x" * 5000)})
    for items in GETS:
        for capacity in ("TOTAL", "INDEXES"):
            yield step("BatchGetItem", RequestItems=items, ReturnConsumedCapacity=capacity)
    yield step("BatchGetItem")


def _indexed() -> Iterator[Step]:
    """Capacity of a batch on a table with indexes, and the metrics of its item collections."""
    for size in (1, 1500):
        item = {"p": s("a"), "s": n(size), "g": s("g"), "r": n(1), "l": s("l"), "x": s("x" * size)}
        for _ in range(2):
            yield step(
                "BatchWriteItem",
                RequestItems={"indexed": [{"PutRequest": {"Item": item}}]},
                ReturnConsumedCapacity="INDEXES",
                ReturnItemCollectionMetrics="SIZE",
            )
    for size in (1, 1500):
        key = {"p": s("a"), "s": n(size)}
        yield step(
            "BatchWriteItem",
            RequestItems={"indexed": [{"DeleteRequest": {"Key": key}}]},
            ReturnConsumedCapacity="INDEXES",
        )


SCRIPTS = (
    Script("batches/writes", (SIMPLE, ORDERED), list(_writes())),
    Script("batches/gets", (SIMPLE, ORDERED), list(_gets())),
    Script("batches/indexed", (INDEXED,), list(_indexed())),
)
