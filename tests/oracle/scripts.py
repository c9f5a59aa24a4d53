"""A script: tables, then requests that both sides are asked in the same order.

The corpus is made of these. `Step.real` is the answer of the real service where DynamoDB Local is known
to give another: our side is then compared with it, and DynamoDB Local only keeps its state in step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Request = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One request; `drain` follows LastEvaluatedKey to the end, asking for one page after another."""

    operation: str
    request: Request | bytes
    real: str | None = None
    drain: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """A named run of steps on fresh tables."""

    name: str
    tables: tuple[Request, ...] = ()
    steps: list[Step] = field(default_factory=list)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)


def step(operation: str, /, real: str | None = None, drain: bool = False, **request: Any) -> Step:
    """A step written as a call: `step("GetItem", TableName="t", Key={...})`."""
    return Step(operation, request, real, drain)


def s(text: str) -> Request:
    return {"S": text}


def n(number: object) -> Request:
    return {"N": str(number)}


def b(base64: str) -> Request:
    return {"B": base64}


def ss(*members: str) -> Request:
    return {"SS": list(members)}


def ns(*members: object) -> Request:
    return {"NS": [str(member) for member in members]}


def bs(*members: str) -> Request:
    return {"BS": list(members)}


def lst(*members: Request) -> Request:
    return {"L": list(members)}


def m(**members: Request) -> Request:
    return {"M": members}


NULL: Request = {"NULL": True}
TRUE: Request = {"BOOL": True}
FALSE: Request = {"BOOL": False}


def key_schema(*names: str) -> list[Request]:
    """`("p", "s")` as a KeySchema of HASH and RANGE."""
    return [
        {"AttributeName": name, "KeyType": kind}
        for name, kind in zip(names, ("HASH", "RANGE"), strict=False)
    ]


def index(name: str, keys: Iterable[str], projection: str = "ALL", *include: str) -> Request:
    """A secondary index as CreateTable wants it."""
    names = {"NonKeyAttributes": list(include)} if include else {}
    return {
        "IndexName": name,
        "KeySchema": key_schema(*keys),
        "Projection": {"ProjectionType": projection, **names},
    }


def table(name: str, types: str, keys: Iterable[str], **more: Any) -> Request:
    """A CreateTable request; `types` is written `p:S s:N`."""
    pairs = [pair.split(":") for pair in types.split()]
    return {
        "TableName": name,
        "KeySchema": key_schema(*keys),
        "AttributeDefinitions": [
            {"AttributeName": attribute, "AttributeType": kind} for attribute, kind in pairs
        ],
        "BillingMode": "PAY_PER_REQUEST",
        **more,
    }


SIMPLE = table("simple", "p:S", "p")
ORDERED = table("ordered", "p:S s:N", "ps")
BINARY = table("binary", "p:B s:B", "ps")
INDEXED = table(
    "indexed",
    "p:S s:N g:S r:N l:S",
    "ps",
    LocalSecondaryIndexes=[index("l-all", "pl"), index("l-keys", "pl", "KEYS_ONLY")],
    GlobalSecondaryIndexes=[
        index("g-all", "gr"),
        index("g-keys", "g", "KEYS_ONLY"),
        index("g-some", "gr", "INCLUDE", "x"),
    ],
)
