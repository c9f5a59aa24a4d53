"""Tables for the tests of copies: made, filled at random, read whole, and compared naively."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import isotone
from isotone.backends.interface import Backend

NAME = "Orders"

REQUEST: dict[str, Any] = {
    "TableName": NAME,
    "KeySchema": [
        {"AttributeName": "customer", "KeyType": "HASH"},
        {"AttributeName": "number", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "customer", "AttributeType": "S"},
        {"AttributeName": "number", "AttributeType": "N"},
        {"AttributeName": "status", "AttributeType": "S"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_status",
            "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["total"]},
        }
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "by_customer_status",
            "KeySchema": [
                {"AttributeName": "customer", "KeyType": "HASH"},
                {"AttributeName": "status", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


def create(backend: Backend, name: str = NAME, **more: Any) -> None:
    backend.execute("CreateTable", {**REQUEST, "TableName": name, **more})


def order(number: int, total: int = 0) -> dict[str, Any]:
    return {
        "customer": {"S": f"c{number % 7}"},
        "number": {"N": str(number)},
        "status": {"S": ("OPEN", "PAID")[number % 2]},
        "total": {"N": str(total)},
        "tags": {"SS": ["a", "b"]},
        "note": {"S": "n" * (number % 50)},
    }


def key_of(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("customer", "number")}


def fill(backend: Backend, count: int, name: str = NAME) -> None:
    for start in range(0, count, 25):
        puts = [{"PutRequest": {"Item": order(n)}} for n in range(start, min(start + 25, count))]
        backend.execute("BatchWriteItem", {"RequestItems": {name: puts}})


def items(backend: Backend, name: str = NAME) -> dict[tuple[str, str], dict[str, Any]]:
    """All items by their keys."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    start: dict[str, Any] = {}
    while True:
        page = backend.execute("Scan", {"TableName": name, "ConsistentRead": True, **start})
        for item in page["Items"]:
            for code in ("SS", "NS", "BS"):
                for value in item.values():
                    if code in value:
                        value[code] = sorted(value[code])
            found[item["customer"]["S"], item["number"]["N"]] = item
        if "LastEvaluatedKey" not in page:
            return found
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


@contextmanager
def two_files(folder: Path) -> Iterator[tuple[isotone.Database, isotone.Database]]:
    with isotone.open(folder / "source.db") as one, isotone.open(folder / "target.db") as two:
        yield one, two


def write_at_random(backend: Backend, rng: random.Random, count: int, name: str = NAME) -> None:
    """One put, update or delete of an order."""
    item = order(rng.randrange(count), rng.randrange(1000))
    dice = rng.random()
    if dice < 0.25:
        backend.execute("DeleteItem", {"TableName": name, "Key": key_of(item)})
    elif dice < 0.6:
        backend.execute(
            "UpdateItem",
            {
                "TableName": name,
                "Key": key_of(item),
                "UpdateExpression": "ADD #t :one SET #s = :s",
                "ExpressionAttributeNames": {"#s": "status", "#t": "total"},
                "ExpressionAttributeValues": {":one": {"N": "1"}, ":s": {"S": "SENT"}},
            },
        )
    else:
        backend.execute("PutItem", {"TableName": name, "Item": item})


numbers = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(-1000, 1000, places=3).map(str),
    st.sampled_from(["1e5", "+7", "007", "-0", "1.500"]),
)
scalars = st.one_of(
    st.text(max_size=5).map(lambda text: {"S": text}),
    numbers.map(lambda number: {"N": number}),
    st.sampled_from([{"BOOL": True}, {"BOOL": False}, {"NULL": True}, {"B": "aGk="}]),
    st.sets(st.text(min_size=1, max_size=3), min_size=1, max_size=4).map(
        lambda members: {"SS": list(members)}
    ),
    st.sets(st.integers(-99, 99).map(str), min_size=1, max_size=4).map(
        lambda members: {"NS": list(members)}
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda elements: {"L": elements}),
        st.dictionaries(st.text(min_size=1, max_size=3), inner, max_size=3).map(
            lambda members: {"M": members}
        ),
    ),
    max_leaves=5,
)
attributes = st.dictionaries(
    st.text(min_size=1, max_size=4).filter(
        lambda name: name not in ("customer", "number", "status")
    ),
    values,
    max_size=4,
)
"""Attributes of any type, besides those of keys."""
