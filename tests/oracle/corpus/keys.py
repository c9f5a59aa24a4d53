"""Keys: what each operation says about keys that are missing, mistyped, empty, too long or too many."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator
from typing import Any

from tests.oracle.scripts import (
    BINARY,
    INDEXED,
    NULL,
    ORDERED,
    SIMPLE,
    Script,
    Step,
    b,
    n,
    s,
    ss,
    step,
)

Keys = list[dict[str, Any]]

SIMPLE_KEYS: Keys = [
    *({}, {"p": s("a")}, {"p": s("")}, {"p": n(1)}, {"p": NULL}, {"p": ss("a")}, {"q": s("a")}),
    *({"p": s("a"), "q": s("b")}, {"p": s("x" * 2048)}, {"p": s("x" * 2049)}, {"p": s("é" * 1024)}),
    *({"p": s("é" * 1024 + "x")}, {"p": {}}, {"p": {"S": "a", "N": "1"}}, {"P": s("a")}),
]
ORDERED_KEYS: Keys = [
    *({"p": s("a"), "s": n(1)}, {"p": s("a"), "s": n("1.0")}, {"p": s("a"), "s": n("1e0")}),
    *({"p": s("a")}, {"s": n(1)}, {"p": s("a"), "s": s("1")}, {"p": n(1), "s": n(1)}),
    *({"p": s("a"), "s": n("x")}, {"p": s("a"), "s": n(1), "x": n(1)}, {"p": s(""), "s": n(1)}),
    *({"p": s("a"), "s": n("1e126")}, {"p": s("a"), "s": n("1e-131")}, {"p": s("a"), "s": NULL}),
]
BINARY_KEYS: Keys = [
    *({"p": b("AA=="), "s": b("AQ==")}, {"p": b(""), "s": b("AQ==")}, {"p": b("AA=="), "s": b("")}),
    *({"p": s("AA=="), "s": b("AQ==")}, {"p": b("AA==")}),
    *(
        {
            "p": b(base64.b64encode(bytes(one)).decode()),
            "s": b(base64.b64encode(bytes(two)).decode()),
        }
        for one, two in ((2048, 1024), (2049, 1), (1, 1025))
    ),
]
BY_TABLE: tuple[tuple[str, Keys], ...] = (
    ("simple", SIMPLE_KEYS),
    ("ordered", ORDERED_KEYS),
    ("binary", BINARY_KEYS),
)


def _each(name: str, key: dict[str, Any]) -> Iterator[Step]:
    """The key in every operation that takes one."""
    yield step("PutItem", TableName=name, Item=key)
    yield step("PutItem", TableName=name, Item={**key, "x": n(1)}, ReturnValues="ALL_OLD")
    yield step("GetItem", TableName=name, Key=key)
    yield step("UpdateItem", TableName=name, Key=key, ReturnValues="ALL_NEW")
    yield step(
        "UpdateItem",
        TableName=name,
        Key=key,
        UpdateExpression="SET x = :x",
        ExpressionAttributeValues={":x": n(2)},
        ReturnValues="UPDATED_OLD",
    )
    yield step("DeleteItem", TableName=name, Key=key, ReturnValues="ALL_OLD")
    yield step("BatchGetItem", RequestItems={name: {"Keys": [key]}})
    yield step("BatchWriteItem", RequestItems={name: [{"PutRequest": {"Item": key}}]})
    yield step("BatchWriteItem", RequestItems={name: [{"DeleteRequest": {"Key": key}}]})
    yield step("TransactGetItems", TransactItems=[{"Get": {"TableName": name, "Key": key}}])
    yield step("TransactWriteItems", TransactItems=[{"Put": {"TableName": name, "Item": key}}])
    yield step("TransactWriteItems", TransactItems=[{"Delete": {"TableName": name, "Key": key}}])
    yield step(
        "Query",
        TableName=name,
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues={":p": key.get("p", s("a"))},
    )
    if len(str(key)) < 1000:  # DynamoDB Local starts a Scan at a key of any size
        yield step("Scan", TableName=name, ExclusiveStartKey=key)


INDEX_KEYS: Keys = [
    *(
        {"g": s("")},
        {"g": n(1)},
        {"r": s("a")},
        {"l": s("")},
        {"l": n(1)},
        {"g": NULL},
        {"g": s("a")},
    ),
    *({"g": s("x" * 2048)}, {"g": s("x" * 2049)}, {"l": s("x" * 1024)}, {"l": s("x" * 1025)}),
    *(
        {"g": s("a"), "r": n(1), "l": s("x")},
        {"g": s("a"), "r": n(1)},
        {"r": n(1)},
        {"g": {"SS": ["a"]}},
    ),
]


def _index_keys() -> Iterator[Step]:
    """Index key attributes must have their declared type wherever an item is written."""
    key = {"p": s("a"), "s": n(1)}
    for attributes in INDEX_KEYS:
        item = {**key, **attributes}
        yield step("PutItem", TableName="indexed", Item=item, ReturnConsumedCapacity="INDEXES")
        yield step("BatchWriteItem", RequestItems={"indexed": [{"PutRequest": {"Item": item}}]})
        yield step(
            "TransactWriteItems", TransactItems=[{"Put": {"TableName": "indexed", "Item": item}}]
        )
        for name, value in attributes.items():
            if name == "l" and value != s("x"):
                continue  # DynamoDB Local lets an update put anything into the key of a local index
            yield step(
                "UpdateItem",
                TableName="indexed",
                Key=key,
                UpdateExpression=f"SET {name} = :v",
                ExpressionAttributeValues={":v": value},
                ReturnConsumedCapacity="INDEXES",
                ReturnValues="ALL_NEW",
            )
        yield step("DeleteItem", TableName="indexed", Key=key, ReturnConsumedCapacity="INDEXES")


SCRIPTS = (
    *(
        Script(
            f"keys/{name}",
            (SIMPLE, ORDERED, BINARY),
            list(itertools.chain.from_iterable(_each(name, key) for key in keys)),
        )
        for name, keys in BY_TABLE
    ),
    Script("keys/indexed", (INDEXED,), list(_index_keys())),
    Script("keys/no-table", (), list(_each("nothing", {"p": s("a")}))),
)
