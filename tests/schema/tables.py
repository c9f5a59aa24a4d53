"""Tables for the tests of formats: random ones, and those of the examples."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import strategies as st
from tests.examples.printed import FOLDER, run

import isotone
from isotone.schema.deployable import DeployableTable, deployable, deployable_of
from isotone.tables.definition import TableDefinition, read_definition
from isotone.tables.description import table_names

EXAMPLES = sorted(path.stem for path in FOLDER.glob("[0-9]*.py"))

# Texts that some format must escape, or takes for something else than a text.
ODD_TEXTS = st.sampled_from(
    [
        *("N", "yes", "null", "1", "-", "a b", "a#b", "x: y", "- a", "#", "a.b", " a "),
        *("${var.a}", "%{if}", "$", "!Ref a", "*a", "&a", "{b}", "[", "|", "`", '"', "\\"),
        *("ä", "😀", "\u2028", "\x7f"),
    ]
)
TEXTS = ODD_TEXTS | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12
)
TABLE_NAMES = st.from_regex(r"[a-zA-Z0-9_.-]{3,20}", fullmatch=True)
UNITS = st.fixed_dictionaries(
    {"ReadCapacityUnits": st.integers(1, 50), "WriteCapacityUnits": st.integers(1, 50)}
)
WARM = st.fixed_dictionaries(
    {
        "ReadUnitsPerSecond": st.integers(12_000, 20_000),
        "WriteUnitsPerSecond": st.integers(4_000, 9_000),
    }
)
LIMITS = st.dictionaries(
    st.sampled_from(["MaxReadRequestUnits", "MaxWriteRequestUnits"]),
    st.integers(1, 1000),
    min_size=1,
)
PROJECTIONS = st.sampled_from([{"ProjectionType": "ALL"}, {"ProjectionType": "KEYS_ONLY"}]) | (
    st.lists(TEXTS, min_size=1, max_size=3, unique=True).map(
        lambda names: {"ProjectionType": "INCLUDE", "NonKeyAttributes": names}
    )
)
POLICIES = st.builds(
    lambda sid, actions: (
        f'{{"Version":"2012-10-17","Statement":[{{"Sid":"{sid}","Effect":"Allow","Principal":"*",'
        f'"Action":{actions},"Resource":"*"}}]}}'
    ),
    st.sampled_from(["A1", "b"]),
    st.sampled_from(['"dynamodb:*"', '["dynamodb:GetItem"]']),
)
TAGS = st.dictionaries(TEXTS, TEXTS, max_size=2).map(
    lambda tags: [{"Key": key, "Value": value} for key, value in tags.items()]
)


@st.composite
def deployables(draw: st.DrawFn) -> DeployableTable:
    """Tables with everything that a table may have."""
    names = draw(st.lists(TEXTS, min_size=8, max_size=8, unique=True))
    types = {name: draw(st.sampled_from("SNB")) for name in names}
    has_sort = draw(st.booleans())
    key = _key([names[0]], [names[1]] if has_sort else [])
    on_demand = draw(st.booleans())
    index_names = draw(st.lists(TABLE_NAMES, min_size=4, max_size=4, unique=True))
    local = [
        {
            "IndexName": index_names[0],
            "KeySchema": _key([names[0]], [names[2]]),
            "Projection": draw(PROJECTIONS),
        }
    ]
    request: dict[str, Any] = {
        "TableName": draw(TABLE_NAMES),
        "AttributeDefinitions": [],
        "KeySchema": key,
        "LocalSecondaryIndexes": local if has_sort and draw(st.booleans()) else [],
        "GlobalSecondaryIndexes": [
            draw(_global_indexes(name, names[3:], on_demand=on_demand))
            for name in index_names[1 : 1 + draw(st.integers(0, 2))]
        ],
        "VectorIndexes": [draw(_vector_indexes(index_names[3], names[3:]))]
        if draw(st.booleans())
        else [],
        "BillingMode": "PAY_PER_REQUEST" if on_demand else "PROVISIONED",
        "ProvisionedThroughput": None if on_demand else draw(UNITS),
        "OnDemandThroughput": draw(st.none() | LIMITS) if on_demand else None,
        "WarmThroughput": draw(st.none() | WARM),
        "StreamSpecification": draw(
            st.none()
            | st.sampled_from(["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"]).map(
                lambda view: {"StreamEnabled": True, "StreamViewType": view}
            )
        ),
        "SSESpecification": draw(
            st.sampled_from(
                [
                    None,
                    {"Enabled": True},
                    {
                        "Enabled": True,
                        "KMSMasterKeyId": "arn:aws:kms:eu-west-1:123456789012:key/0b5a41c0-1111-2222-3333-444455556666",
                    },
                ]
            )
        ),
        "TableClass": draw(st.sampled_from([None, "STANDARD_INFREQUENT_ACCESS"])),
        "DeletionProtectionEnabled": draw(st.booleans()),
        "ResourcePolicy": draw(st.none() | POLICIES),
        "Tags": draw(TAGS),
    }
    used = {
        each["AttributeName"]
        for part in (
            request,
            *request["LocalSecondaryIndexes"],
            *request["GlobalSecondaryIndexes"],
            *request["VectorIndexes"],
        )
        for each in (*part.get("KeySchema", ()), *part.get("SearchSchema", ()))
    }
    request["AttributeDefinitions"] = [
        {"AttributeName": name, "AttributeType": types[name]} for name in names if name in used
    ]
    if (name := draw(st.none() | TEXTS)) is not None:
        request["TimeToLiveSpecification"] = {"Enabled": True, "AttributeName": name}
    days = draw(st.sampled_from([0, 7, 35]))
    request["PointInTimeRecoverySpecification"] = recovery(days)
    return deployable(request)


def recovery(days: int) -> dict[str, Any]:
    """Point-in-time recovery that reaches back some days."""
    return {"PointInTimeRecoveryEnabled": days > 0, "RecoveryPeriodInDays": days}


def _key(partition: list[str], sort: list[str]) -> list[dict[str, str]]:
    return [
        *({"AttributeName": name, "KeyType": "HASH"} for name in partition),
        *({"AttributeName": name, "KeyType": "RANGE"} for name in sort),
    ]


@st.composite
def _global_indexes(
    draw: st.DrawFn, name: str, names: list[str], *, on_demand: bool
) -> dict[str, Any]:
    cut = draw(st.integers(1, 2))
    index = {
        "IndexName": name,
        "KeySchema": _key(names[:cut], names[cut : cut + draw(st.integers(0, 2))]),
        "Projection": draw(PROJECTIONS),
        "WarmThroughput": draw(st.none() | WARM),
    }
    if on_demand:
        return {**index, "OnDemandThroughput": draw(st.none() | LIMITS)}
    return {**index, "ProvisionedThroughput": draw(UNITS)}


@st.composite
def _vector_indexes(draw: st.DrawFn, name: str, names: list[str]) -> dict[str, Any]:
    return {
        "IndexName": name,
        "VectorAttribute": {"AttributeName": "embedding"},
        "SearchSchema": [{"AttributeName": names[0], "SearchSchemaElementType": "HASH"}],
        "Projection": draw(PROJECTIONS),
        "Dimensions": draw(st.integers(1, 2000)),
        "DistanceFunction": draw(st.sampled_from(["COSINE", "EUCLIDEAN"])),
    }


def _attributes(types: dict[str, str]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


ON_DEMAND = deployable(
    {
        "TableName": "Orders.on-demand_1",
        "AttributeDefinitions": _attributes(
            {"id": "S", "at": "N", "total": "N", "status": "S", "tenant": "S", "digest": "B"}
        ),
        "KeySchema": _key(["id"], ["at"]),
        "LocalSecondaryIndexes": [
            {
                "IndexName": "by_total",
                "KeySchema": _key(["id"], ["total"]),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by_tenant",
                "KeySchema": _key(["tenant", "status"], ["at", "digest"]),
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a b", "c"]},
                "OnDemandThroughput": {"MaxReadRequestUnits": 7},
                "WarmThroughput": {
                    "ReadUnitsPerSecond": 12_000,
                    "WriteUnitsPerSecond": 4_000,
                },
            }
        ],
        "BillingMode": "PAY_PER_REQUEST",
        "OnDemandThroughput": {"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 50},
        "WarmThroughput": {"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 5_000},
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        "SSESpecification": {
            "Enabled": True,
            "KMSMasterKeyId": "arn:aws:kms:eu-west-1:123456789012:key/0b5a41c0-1111-2222-3333-444455556666",
        },
        "TableClass": "STANDARD_INFREQUENT_ACCESS",
        "DeletionProtectionEnabled": True,
        "ResourcePolicy": (
            '{"Version":"2012-10-17","Statement":[{"Sid":"All","Effect":"Allow","Principal":'
            '{"AWS":"arn:aws:iam::123456789012:root"},"Action":["dynamodb:GetItem"],"Resource":"*"}]}'
        ),
        "Tags": [{"Key": "team", "Value": "shop"}, {"Key": "a:b", "Value": "x y/z+1=2@c"}],
        "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "expires"},
        "PointInTimeRecoverySpecification": recovery(7),
    }
)
PROVISIONED = deployable(
    {
        "TableName": "Sessions",
        "AttributeDefinitions": _attributes({"id": "B", "user": "S"}),
        "KeySchema": _key(["id"], []),
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by_user",
                "KeySchema": _key(["user"], []),
                "Projection": {"ProjectionType": "ALL"},
                "ProvisionedThroughput": {"ReadCapacityUnits": 3, "WriteCapacityUnits": 2},
            }
        ],
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 10, "WriteCapacityUnits": 4},
        "SSESpecification": {"Enabled": True},
        "PointInTimeRecoverySpecification": recovery(35),
    }
)
SIMPLE = deployable(
    {
        "TableName": "Settings",
        "AttributeDefinitions": _attributes({"number": "N"}),
        "KeySchema": _key(["number"], []),
        "BillingMode": "PAY_PER_REQUEST",
        "Tags": [{"Key": "team", "Value": "shop"}],
    }
)
VECTORS = deployable(
    {
        "TableName": "Documents",
        "AttributeDefinitions": _attributes({"id": "S", "tenant": "S"}),
        "KeySchema": _key(["id"], []),
        "VectorIndexes": [
            {
                "IndexName": "near",
                "VectorAttribute": {"AttributeName": "embedding"},
                "SearchSchema": [{"AttributeName": "tenant", "SearchSchemaElementType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
                "Dimensions": 384,
                "DistanceFunction": "COSINE",
            }
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
)
ALL_FEATURES = [ON_DEMAND, PROVISIONED, SIMPLE, VECTORS]
"""Tables that together use every feature, and that the service accepts."""


def example_tables(name: str) -> list[DeployableTable]:
    """The tables that an example has made, those of its structures included."""
    found = []
    for definition in example_definitions(name):
        deployable, notes = deployable_of(definition)
        assert notes == []
        found.append(deployable)
    return found


@cache
def example_definitions(name: str) -> list[TableDefinition]:
    """What the actions say about these tables."""
    with TemporaryDirectory() as folder:
        file = str(Path(folder) / "example.db")
        run(name, file)
        with isotone.open(file) as database:
            found = [read_definition(database, table) for table in table_names(database)]
    return [definition for definition in found if definition is not None]
