"""boto3's resource layer: natural values, condition objects, batch writers, waiters on tables."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import boto3
import pytest
from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import ClientError
from tests.sdks import orders
from tests.sdks.orders import of_customer, order, plain


@pytest.fixture
def dynamodb(url: str, account: None) -> Iterator[Any]:
    resource = boto3.resource("dynamodb", endpoint_url=url)
    yield resource
    resource.meta.client.close()


@pytest.fixture
def shop(dynamodb: Any, name: str) -> Any:
    """A table resource with all orders in it, written by a batch writer."""
    table = dynamodb.create_table(**orders.definition(name))
    table.wait_until_exists()
    with table.batch_writer(overwrite_by_pkeys=["customer", "placed_at"]) as batch:
        for item in [*orders.ORDERS, order(40), order(5)]:
            batch.put_item(Item=item)
        batch.delete_item(Key=orders.key(order(40)))
    return table


def test_a_table_from_its_birth_to_its_end(dynamodb: Any, shop: Any) -> None:
    assert shop.name in [table.name for table in dynamodb.tables.all()]
    shop.reload()
    assert shop.table_status == "ACTIVE"
    assert shop.key_schema == orders.definition(shop.name)["KeySchema"]
    shop.delete()
    shop.wait_until_not_exists()
    with pytest.raises(dynamodb.meta.client.exceptions.ResourceNotFoundException):
        shop.load()


def test_every_type_comes_back(shop: Any) -> None:
    for item in orders.ORDERS:
        assert plain(shop.get_item(Key=orders.key(item))["Item"]) == item


def test_conditions(shop: Any) -> None:
    request = {
        "Key": orders.key(order(1)),
        "UpdateExpression": "SET #s = :sent ADD tags :tag DELETE blobs :blob",
        "ConditionExpression": Attr("status").eq("paid") & ~Attr("basket").size().gt(3),
        "ExpressionAttributeNames": {"#s": "status"},
        "ExpressionAttributeValues": {":sent": "sent", ":tag": {"new"}, ":blob": {b"\x00"}},
    }
    changed = plain(shop.update_item(**request, ReturnValues="ALL_NEW")["Attributes"])
    assert changed == {
        **order(1),
        "status": "sent",
        "tags": order(1)["tags"] | {"new"},
        "blobs": {bytes([1, 128])},
    }
    with pytest.raises(ClientError) as refused:
        shop.update_item(**request)
    assert refused.value.response["Error"]["Code"] == "ConditionalCheckFailedException"


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [1, 5])
def test_query_page_by_page(shop: Any, forward: bool, limit: int) -> None:
    request: dict[str, Any] = {
        "KeyConditionExpression": Key("customer").eq("böb") & Key("placed_at").gt("2026-01-05"),
        "ScanIndexForward": forward,
        "Limit": limit,
    }
    found = []
    while True:
        page = shop.query(**request)
        found.extend(plain(page["Items"]))
        assert page["Count"] == len(page["Items"]) <= limit
        if "LastEvaluatedKey" not in page:
            break
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    everything = of_customer("böb", reverse=not forward)
    assert found == [item for item in everything if item["placed_at"] > "2026-01-05"]


def test_query_indexes(shop: Any) -> None:
    local = shop.query(
        IndexName="by_amount",
        KeyConditionExpression=Key("customer").eq("ann") & Key("amount").gte(Decimal("8.5")),
        FilterExpression=Attr("paid").eq(True),
    )
    cheap = [item for item in of_customer("ann", by="amount") if item["amount"] >= Decimal("8.5")]
    assert plain(local["Items"]) == [item for item in cheap if item["paid"]]
    assert local["ScannedCount"] == len(cheap)
    distant = shop.query(
        IndexName="by_status",
        KeyConditionExpression=Key("status").eq("open"),
        ProjectionExpression="amount, placed_at",
    )
    opened = [item for item in orders.ORDERS if item["status"] == "open"]
    assert [item["amount"] for item in distant["Items"]] == sorted(i["amount"] for i in opened)
    assert {frozenset(item) for item in distant["Items"]} == {frozenset({"amount", "placed_at"})}


def test_scan_and_batch_get(dynamodb: Any, shop: Any) -> None:
    scanned = shop.scan(FilterExpression=Attr("status").is_in(["open", "sent"]))
    expected = [item for item in orders.ORDERS if item["status"] != "paid"]
    assert sorted(plain(scanned["Items"]), key=lambda item: item["placed_at"]) == expected
    keys = [orders.key(item) for item in orders.ORDERS]
    found = dynamodb.batch_get_item(RequestItems={shop.name: {"Keys": keys}})
    got = sorted(plain(found["Responses"][shop.name]), key=lambda item: item["placed_at"])
    assert got == orders.ORDERS


def test_transactions(dynamodb: Any, shop: Any) -> None:
    client = dynamodb.meta.client
    puts = [{"Put": {"TableName": shop.name, "Item": order(number)}} for number in (41, 42)]
    client.transact_write_items(TransactItems=puts)
    puts[1]["Put"]["ConditionExpression"] = "attribute_not_exists(customer)"
    with pytest.raises(client.exceptions.TransactionCanceledException) as refused:
        client.transact_write_items(TransactItems=puts)
    codes = [reason["Code"] for reason in refused.value.response["CancellationReasons"]]
    assert codes == ["None", "ConditionalCheckFailed"]
    assert plain(shop.get_item(Key=orders.key(order(42)))["Item"]) == order(42)
