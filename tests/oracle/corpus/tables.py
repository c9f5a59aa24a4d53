"""CreateTable, UpdateTable, DeleteTable, DescribeTable, ListTables and TimeToLive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.oracle.scripts import (
    INDEXED,
    ORDERED,
    SIMPLE,
    Script,
    Step,
    index,
    key_schema,
    s,
    step,
    table,
)

UNITS = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
PROVISIONED = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": UNITS}


def _without(request: dict[str, Any], *names: str, **changes: Any) -> dict[str, Any]:
    return {**{name: member for name, member in request.items() if name not in names}, **changes}


CREATED: list[dict[str, Any]] = [
    table("plain", "p:S", "p"),
    table("provisioned", "p:S", "p", **PROVISIONED),
    _without(table("default", "p:S", "p", ProvisionedThroughput=UNITS), "BillingMode"),
    _without(table("nounits", "p:S", "p"), "BillingMode"),
    table(
        "zero",
        "p:S",
        "p",
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 0, "WriteCapacityUnits": 1},
    ),
    table("badmode", "p:S", "p", BillingMode="X"),
    table("noname", "p:S", "p", KeySchema=[]),
    table(
        "twohash",
        "p:S s:S",
        "ps",
        KeySchema=[
            {"AttributeName": "p", "KeyType": "HASH"},
            {"AttributeName": "s", "KeyType": "HASH"},
        ],
    ),
    table("norange", "p:S s:S", "ps", KeySchema=[{"AttributeName": "p", "KeyType": "RANGE"}]),
    table(
        "swapped",
        "p:S s:S",
        "ps",
        KeySchema=[
            {"AttributeName": "p", "KeyType": "RANGE"},
            {"AttributeName": "s", "KeyType": "HASH"},
        ],
    ),
    table("same", "p:S", "pp"),
    table(
        "three",
        "p:S s:S t:S",
        "ps",
        KeySchema=[*key_schema("p", "s"), {"AttributeName": "t", "KeyType": "RANGE"}],
    ),
    table("badkey", "p:S", "p", KeySchema=[{"AttributeName": "p", "KeyType": "X"}]),
    table("undefined", "q:S", "p"),
    table("undefined2", "p:S", "ps"),
    table("unused", "p:S q:S", "p"),
    table("unused2", "p:S q:S r:N", "p"),
    table("twice", "p:S p:S", "p"),
    table("twotypes", "p:S p:N", "p"),
    table("badtype", "p:X", "p"),
    table("booltype", "p:BOOL", "p"),
    table("nodefs", "p:S", "p", AttributeDefinitions=[]),
    _without(table("nodefs2", "p:S", "p"), "AttributeDefinitions"),
    _without(table("noschema", "p:S", "p"), "KeySchema"),
    _without(table("x", "p:S", "p"), "TableName"),
    *(
        table(name, "p:S", "p")
        for name in ("", "ab", "abc", "a.b-c_D", "a b", "a/b", "x" * 255, "x" * 256, "é__")
    ),
    table("plain", "p:S", "p"),
    table("protected", "p:S", "p", DeletionProtectionEnabled=True),
    table("streamed", "p:S", "p", StreamSpecification={"StreamEnabled": False}),
    table("classy", "p:S", "p", TableClass="STANDARD_INFREQUENT_ACCESS"),
    table(
        "limits",
        "p:S",
        "p",
        OnDemandThroughput={"MaxReadRequestUnits": 5, "MaxWriteRequestUnits": 5},
    ),
]
LOCAL: list[Any] = [
    *(
        [index("ind", "ps")],
        [index("ind", "pt")],
        [index("ind", "p")],
        [index("ind", "tp")],
        [index("ind", "ts")],
    ),
    *(
        [index("ind", "pt"), index("ind", "pt")],
        [index("ind", "pt", "KEYS_ONLY")],
        [index("ind", "pt", "INCLUDE", "x")],
    ),
    *(
        [index("ind", "pt", "INCLUDE")],
        [index("ind", "pt", "ALL", "x")],
        [index("ind", "pt", "X")],
        [index("ab", "pt")],
    ),
    *(
        [index("ind", "pt", "INCLUDE", "x", "y")],
        [index("ind", "pt", "INCLUDE", "p")],
        [index("ind", "pu")],
        [],
    ),
    [index(f"ind{i}", "pt") for i in range(5)],
    [index(f"ind{i}", "pt") for i in range(6)],
    [{"IndexName": "ind", "KeySchema": key_schema("p", "t")}],
    [{"IndexName": "ind", "KeySchema": key_schema("p", "t"), "Projection": {}}],
    [{"IndexName": "ind", "Projection": {"ProjectionType": "ALL"}}],
    [index("ind", "pt", "INCLUDE", *(f"x{i}" for i in range(20)))],
    [index(f"in{i}", "pt", "INCLUDE", *(f"x{j}" for j in range(20))) for i in range(5)],
]
GLOBAL: list[Any] = [
    *(
        [index("ind", "t")],
        [index("ind", "ts")],
        [index("ind", "tt")],
        [index("ind", "p")],
        [index("ind", "sp")],
        [index("ind", "u")],
        [],
    ),
    *(
        [index("ind", "t"), index("ind", "s")],
        [index("ind", "t", "INCLUDE")],
        [index("ind", "t", "KEYS_ONLY", "x")],
    ),
    *(
        [index("ind", "t", "KEYS_ONLY")],
        [index("in", "t")],
        [index("ind", "t", "X")],
    ),
    [index(f"ind{i}", "t") for i in range(20)],
    [index(f"ind{i}", "t") for i in range(21)],
    [index(f"in{i}", "t", "INCLUDE", *(f"x{j}" for j in range(20))) for i in range(5)],
    [index(f"in{i}", "t", "INCLUDE", *(f"x{j}" for j in range(20))) for i in range(6)],
]


def _created() -> Iterator[Step]:
    for request in CREATED:
        yield Step("CreateTable", request)
        if request.get("TableName"):
            yield step("DescribeTable", TableName=request["TableName"])
    yield step("CreateTable")
    yield step("ListTables")
    for name in ("plain", "protected", "nothing", "", "ab", "provisioned"):
        yield step("DeleteTable", TableName=name)
    yield step("DeleteTable")
    yield step("DescribeTable")
    yield step("DescribeTable", TableName="plain")


def _indexes() -> Iterator[Step]:
    for local in LOCAL:
        yield Step("CreateTable", table("locals", "p:S s:S t:S", "ps", LocalSecondaryIndexes=local))
        yield step("DeleteTable", TableName="locals")
        yield Step("CreateTable", table("locals", "p:S t:S", "p", LocalSecondaryIndexes=local))
        yield step("DeleteTable", TableName="locals")
    for indexes in GLOBAL:
        yield Step(
            "CreateTable", table("globals", "p:S s:S t:S", "ps", GlobalSecondaryIndexes=indexes)
        )
        yield step("DeleteTable", TableName="globals")
        yield Step(
            "CreateTable",
            table("globals", "p:S t:S", "p", GlobalSecondaryIndexes=indexes, **PROVISIONED),
        )
        yield step("DeleteTable", TableName="globals")
    both = {
        "LocalSecondaryIndexes": [index("ind", "pt")],
        "GlobalSecondaryIndexes": [index("ind", "t")],
    }
    yield Step("CreateTable", table("twice", "p:S s:S t:S", "ps", **both))


def _create(name: str, *keys: str, **more: Any) -> dict[str, Any]:
    return {"Create": {**index(name, keys[0] if keys else "g"), **more}}


G = {"AttributeDefinitions": [{"AttributeName": "g", "AttributeType": "S"}]}
CHANGES: list[dict[str, Any]] = [
    *(
        {},
        {"BillingMode": "PROVISIONED"},
        {"BillingMode": "PROVISIONED", "ProvisionedThroughput": UNITS},
    ),
    *(
        {"ProvisionedThroughput": UNITS},
        {"ProvisionedThroughput": {"ReadCapacityUnits": 2, "WriteCapacityUnits": 3}},
    ),
    *(
        {"ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 3}},
        {"BillingMode": "PAY_PER_REQUEST"},
    ),
    *({"BillingMode": "X"}, {"BillingMode": "PAY_PER_REQUEST"}),
    *({"DeletionProtectionEnabled": True}, {"DeletionProtectionEnabled": False}),
    *(
        {"GlobalSecondaryIndexUpdates": []},
        {"GlobalSecondaryIndexUpdates": [{}]},
        {"GlobalSecondaryIndexUpdates": [_create("ind")]},
    ),
    {"GlobalSecondaryIndexUpdates": [_create("ind")], **G},
    {"GlobalSecondaryIndexUpdates": [_create("ind")], **G},
    {"GlobalSecondaryIndexUpdates": [_create("ind2"), _create("ind3")], **G},
    {"GlobalSecondaryIndexUpdates": [_create("ind2")], **G},
    {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "nothing"}}]},
    {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "ind2"}}]},
    {
        "GlobalSecondaryIndexUpdates": [
            {"Delete": {"IndexName": "ind"}},
            {"Delete": {"IndexName": "ind"}},
        ]
    },
    {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "ind"}}]},
    {"GlobalSecondaryIndexUpdates": [{"Delete": {}}]},
    {"GlobalSecondaryIndexUpdates": [{"Create": {"IndexName": "ind"}}]},
    {"AttributeDefinitions": [{"AttributeName": "z", "AttributeType": "S"}]},
]


def _changed() -> Iterator[Step]:
    yield step("PutItem", TableName="simple", Item={"p": s("a"), "g": s("g")})
    for change in CHANGES:
        yield step("UpdateTable", TableName="simple", **change)
        yield step("DescribeTable", TableName="simple")
        yield step("Scan", TableName="simple", IndexName="ind")
    yield step("UpdateTable", TableName="nothing", BillingMode="PAY_PER_REQUEST")
    yield step("UpdateTable")


def _listed() -> Iterator[Step]:
    for limit in (0, 1, 2, 3, 100, 101, -1):
        yield step("ListTables", Limit=limit)
    for start in ("indexed", "simple", "a", "jjj", "zzz", "ordered"):
        yield step("ListTables", ExclusiveStartTableName=start)
        yield step("ListTables", ExclusiveStartTableName=start, Limit=1)


def _expiry() -> Iterator[Step]:
    specifications: list[Any] = [
        *({"Enabled": True, "AttributeName": "ttl"}, {"Enabled": True, "AttributeName": "ttl"}),
        *(
            {"Enabled": True, "AttributeName": "other"},
            {"Enabled": False, "AttributeName": "other"},
        ),
        *({"Enabled": False, "AttributeName": "ttl"}, {"Enabled": False, "AttributeName": "ttl"}),
        *(
            {},
            {"Enabled": True},
            {"AttributeName": "x"},
            {"Enabled": True, "AttributeName": ""},
            None,
        ),
    ]
    for specification in specifications:
        yield step("UpdateTimeToLive", TableName="simple", TimeToLiveSpecification=specification)
        yield step("DescribeTimeToLive", TableName="simple")
    yield step("DescribeTimeToLive", TableName="nothing")
    yield step(
        "UpdateTimeToLive",
        TableName="nothing",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "a"},
    )
    yield step("DescribeTimeToLive")


SCRIPTS = (
    Script("tables/created", (), list(_created())),
    Script("tables/indexes", (), list(_indexes())),
    Script("tables/changed", (SIMPLE,), list(_changed())),
    Script("tables/listed", (SIMPLE, ORDERED, INDEXED), list(_listed())),
    Script("tables/expiry", (SIMPLE,), list(_expiry())),
)
