"""An answer without what may differ between two right ones: ids, dates, ARNs, the order of unordered members."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.oracle.endpoints import Answer

DROPPED = frozenset(
    {
        *("TableArn", "IndexArn", "TableId", "LatestStreamArn", "LatestStreamLabel"),
        *("CreationDateTime", "LastUpdateToPayPerRequestDateTime", "LastIncreaseDateTime"),
        *("LastDecreaseDateTime", "TableSizeBytes", "IndexSizeBytes", "ItemCount"),
        *("WarmThroughput", "TableClassSummary", "NumberOfDecreasesToday", "OnDemandThroughput"),
        "ItemCollectionMetrics",  # DynamoDB Local has none
        # DynamoDB Local makes tables and indexes at once; the real service answers CREATING first.
        *("TableStatus", "IndexStatus", "Backfilling", "TimeToLiveStatus"),
    }
)
# The service goes on with the reason, DynamoDB Local with the statement.
MALFORMED = "Statement wasn't well formed, can't be processed: "
SETS = frozenset({"SS", "NS", "BS"})
UNORDERED = frozenset(
    {
        *("AttributeDefinitions", "GlobalSecondaryIndexes", "LocalSecondaryIndexes"),
        *("NonKeyAttributes", "TableNames"),
    }
)


def canonical(value: Any) -> str:
    """A text by which values can be sorted and compared."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text.encode(errors="backslashreplace").decode()


def _sorted(values: list[Any]) -> list[Any]:
    return sorted((_plain(value) for value in values), key=canonical)


def _plain(value: Any) -> Any:
    """The value with sets sorted and volatile members dropped."""
    if isinstance(value, str) and value.startswith(MALFORMED):
        return MALFORMED
    if isinstance(value, list):
        return [_plain(member) for member in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _sorted(member)
        if name in SETS | UNORDERED and isinstance(member, list)
        else _plain(member)
        for name, member in value.items()
        if name not in DROPPED and not _is_on_demand(name, member)
    }


def _is_on_demand(name: str, member: Any) -> bool:
    """Throughput of an index of an on-demand table: zero in the service, absent in DynamoDB Local."""
    return name == "ProvisionedThroughput" and not member.get("ReadCapacityUnits")


def _table(body: dict[str, Any]) -> dict[str, Any]:
    """A description without the definitions that no key uses: DynamoDB Local keeps those of UpdateTable."""
    name = "Table" if "Table" in body else "TableDescription"
    table = body.get(name, {})
    indexes = [*table.get("GlobalSecondaryIndexes", []), *table.get("LocalSecondaryIndexes", [])]
    used = {
        part["AttributeName"] for each in (table, *indexes) for part in each.get("KeySchema", [])
    }
    definitions = [
        each for each in table.get("AttributeDefinitions", []) if each["AttributeName"] in used
    ]
    return {**body, name: {**table, "AttributeDefinitions": definitions}}


def _deleted(body: dict[str, Any]) -> dict[str, Any]:
    """DeleteTable: the service leaves out keys and indexes."""
    left_out = (
        "KeySchema",
        "AttributeDefinitions",
        "LocalSecondaryIndexes",
        "GlobalSecondaryIndexes",
    )
    table = body["TableDescription"]
    return {"TableDescription": {name: table[name] for name in table if name not in left_out}}


def _scan(body: dict[str, Any]) -> dict[str, Any]:
    """A Scan's order is a secret of each implementation, and with it where its pages end."""
    if "LastEvaluatedKey" in body:
        return {}
    return {**body, "Items": _sorted(body["Items"])} if "Items" in body else body


def _batch_get(body: dict[str, Any]) -> dict[str, Any]:
    answers: Mapping[str, list[Any]] = body.get("Responses", {})
    return {**body, "Responses": {name: _sorted(items) for name, items in answers.items()}}


def _statement(body: dict[str, Any]) -> dict[str, Any]:
    """Of a statement's page, only the items: tokens are opaque, and DynamoDB Local counts no units."""
    left_out = ("NextToken", "LastEvaluatedKey", "ConsumedCapacity")
    return {name: member for name, member in body.items() if name not in left_out}


def _capacity(operation: str, consumed: Any) -> Any:
    """ConsumedCapacity as far as DynamoDB Local can be trusted with it.

    It adds up transactions wrongly and charges batches for missing items as it likes; in transactions
    the service also tells read and write units apart, and of several tables the order is free.
    """
    if operation in ("TransactWriteItems", "BatchWriteItem", "BatchGetItem"):
        return sorted(one["TableName"] for one in consumed)
    if isinstance(consumed, list):
        return sorted((_capacity(operation, one) for one in consumed), key=canonical)
    return {
        name: _capacity(operation, member) if isinstance(member, dict) else member
        for name, member in consumed.items()
        if name not in ("ReadCapacityUnits", "WriteCapacityUnits")
    }


BY_OPERATION: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "DescribeTable": _table,
    "UpdateTable": _table,
    "DeleteTable": _deleted,
    "Scan": _scan,
    "BatchGetItem": _batch_get,
    "ExecuteStatement": _statement,
}


def normal(operation: str, answer: Answer) -> Answer:
    """The answer in the form that two right implementations share."""
    status, body = answer
    if status != 200:
        return status, _error(body)
    body = BY_OPERATION.get(operation, lambda same: same)(body)
    if "ConsumedCapacity" in body:
        body = {**body, "ConsumedCapacity": _capacity(operation, body["ConsumedCapacity"])}
    return status, _plain(body)


def _error(body: dict[str, Any]) -> dict[str, Any]:
    """An error by its short name; DynamoDB Local spells the member `Message` always."""
    rest = {
        name: value for name, value in body.items() if name.lower() not in ("message", "__type")
    }
    return {
        **_plain(rest),
        "code": body.get("__type", "").rpartition("#")[2],
        "message": _plain(body.get("message", body.get("Message", ""))),
    }
