"""What `ENGINES` says of DynamoDB Local and of Isotone, tried: a feature that is said to be there works."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.oracle import optional_dynamodb_local

import isotone
from isotone import ENGINES
from isotone.backends.interface import Backend
from isotone.errors import ApiError, UnknownOperationException

KEYS = [{"AttributeName": "a", "KeyType": "HASH"}, {"AttributeName": "b", "KeyType": "RANGE"}]
TABLE = {
    "TableName": "tried",
    "KeySchema": KEYS,
    "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in "abc"],
    "BillingMode": "PAY_PER_REQUEST",
    "LocalSecondaryIndexes": [
        {
            "IndexName": "local",
            "KeySchema": [KEYS[0], {"AttributeName": "c", "KeyType": "RANGE"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
}
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/tried"
KEY = {"a": {"S": "x"}, "b": {"S": "y"}}
ADDED = {
    "IndexName": "added",
    "KeySchema": [{"AttributeName": "c", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}
WIDE = {
    **TABLE,
    "TableName": "wide",
    "LocalSecondaryIndexes": None,
    "StreamSpecification": None,
    "GlobalSecondaryIndexes": [
        {**ADDED, "KeySchema": [{"AttributeName": each, "KeyType": "HASH"} for each in "bc"]}
    ],
}

# A request for each feature; an engine without it does not know the operation, or refuses the request.
TRIED: dict[str, tuple[str, dict[str, Any]]] = {
    "transactions": (
        "TransactWriteItems",
        {"TransactItems": [{"Put": {"TableName": "tried", "Item": KEY}}]},
    ),
    "conditional_writes": (
        "PutItem",
        {"TableName": "tried", "Item": KEY, "ConditionExpression": "attribute_not_exists(z)"},
    ),
    "descending": (
        "Query",
        {
            "TableName": "tried",
            "KeyConditionExpression": "a = :a",
            "ExpressionAttributeValues": {":a": {"S": "x"}},
            "ScanIndexForward": False,
            "IndexName": "local",
            "ConsistentRead": True,
        },
    ),
    "parallel_scan": ("Scan", {"TableName": "tried", "Segment": 1, "TotalSegments": 2}),
    "partiql": ("ExecuteStatement", {"Statement": "SELECT * FROM tried"}),
    "vectors": (
        "SearchVectors",
        {"TableName": "tried", "IndexName": "none", "Vector": [1.0], "TopK": 1},
    ),
    "added_indexes": (
        "UpdateTable",
        {
            "TableName": "tried",
            "AttributeDefinitions": TABLE["AttributeDefinitions"],
            "GlobalSecondaryIndexUpdates": [{"Create": ADDED}],
        },
    ),
    "wide_index_keys": (
        "CreateTable",
        {name: value for name, value in WIDE.items() if value is not None},
    ),
    "expiry": (
        "UpdateTimeToLive",
        {
            "TableName": "tried",
            "TimeToLiveSpecification": {"AttributeName": "t", "Enabled": True},
        },
    ),
    "tags": ("ListTagsOfResource", {"ResourceArn": ARN}),
    "backups": ("ListBackups", {}),
    "exports": ("ListExports", {}),
    "global_tables": ("ListGlobalTables", {}),
}


@pytest.fixture(scope="module", params=["isotone", "dynamodb-local"])
def tried(request: pytest.FixtureRequest) -> Iterator[tuple[str, Backend]]:
    """An engine's name, and a store of it with a table."""
    if request.param == "isotone":
        with isotone.open() as database:
            database.execute("CreateTable", TABLE)
            yield request.param, database
        return
    with optional_dynamodb_local.dynamodb_local() as server, isotone.connect(server.url) as store:
        store.backend.execute("CreateTable", TABLE)
        assert store.capabilities == ENGINES["dynamodb-local"]
        yield request.param, store.backend


@pytest.mark.parametrize("feature", TRIED)
def test_a_feature_is_there_as_it_is_said(feature: str, tried: tuple[str, Backend]) -> None:
    name, backend = tried
    operation, request = TRIED[feature]
    try:
        backend.execute(operation, request)
        works = True
    except UnknownOperationException:
        works = False
    except ApiError as error:
        works = feature == "vectors" or "not found" in error.message  # it knows what is asked
    assert works == getattr(ENGINES[name], feature)
