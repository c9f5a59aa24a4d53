"""boto3's low-level client, with its retries, its checksums and its pool of connections."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from tests.sdks import orders
from tests.sdks.orders import natural_item, of_customer, order, wire, wire_item
from tests.sdks.server_process import start_server

CUSTOMER_IS = {"KeyConditionExpression": "customer = :c"}
FAST = {"Delay": 0.05, "MaxAttempts": 200}


def key_of(number: int) -> dict[str, Any]:
    return wire_item(orders.key(order(number)))


def items_of(pages: Any) -> list[dict[str, Any]]:
    return [natural_item(item) for page in pages for item in page["Items"]]


def test_a_table_from_its_birth_to_its_end(client: Any, name: str) -> None:
    made = client.create_table(**orders.definition(name))["TableDescription"]
    assert (made["TableName"], made["TableStatus"]) == (name, "CREATING")
    assert made["GlobalSecondaryIndexes"][0]["IndexStatus"] == "CREATING"
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=FAST)
    described = client.describe_table(TableName=name)["Table"]
    assert described["TableStatus"] == "ACTIVE"
    assert described["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE"
    assert described["CreationDateTime"] == made["CreationDateTime"]
    assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert described["TableArn"].endswith(f"table/{name}")
    with pytest.raises(client.exceptions.ResourceInUseException):
        client.create_table(**orders.definition(name))
    pages = client.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": 1})
    assert name in [found for page in pages for found in page["TableNames"]]
    client.delete_table(TableName=name)
    client.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig=FAST)
    with pytest.raises(client.exceptions.ResourceNotFoundException) as refused:
        client.describe_table(TableName=name)
    assert refused.value.response["Error"] == {
        "Code": "ResourceNotFoundException",
        "Message": f"Requested resource not found: Table: {name} not found",
    }
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_every_type_comes_back(client: Any, table: str) -> None:
    for item in orders.ORDERS:
        found = client.get_item(TableName=table, Key=wire_item(orders.key(item)))["Item"]
        assert natural_item(found) == item


@pytest.mark.parametrize(
    "number", [orders.LARGEST, orders.LARGEST.copy_negate(), orders.SMALLEST.copy_negate()]
)
def test_the_ends_of_the_numbers(client: Any, table: str, number: Decimal) -> None:
    item = {**orders.key(order(0)), "number": number}
    client.put_item(TableName=table, Item=wire_item(item))
    assert natural_item(client.get_item(TableName=table, Key=key_of(0))["Item"]) == item


def test_conditions(client: Any, table: str) -> None:
    request = {
        "TableName": table,
        "Key": key_of(1),
        "UpdateExpression": "SET #s = :new, versions = if_not_exists(versions, :zero) + :one REMOVE note",
        "ConditionExpression": "#s = :old AND contains(tags, :tag)",
        "ExpressionAttributeNames": {"#s": "status"},
        "ExpressionAttributeValues": {
            ":new": {"S": "sent"},
            ":old": {"S": "paid"},
            ":tag": {"S": "gift"},
            ":zero": {"N": "0"},
            ":one": {"N": "1"},
        },
    }
    changed = client.update_item(**request, ReturnValues="UPDATED_NEW")
    assert changed["Attributes"] == {"status": {"S": "sent"}, "versions": {"N": "1"}}
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as refused:
        client.update_item(**request, ReturnValuesOnConditionCheckFailure="ALL_OLD")
    assert refused.value.response["Error"]["Message"] == "The conditional request failed"
    assert refused.value.response["Item"]["status"] == {"S": "sent"}
    with pytest.raises(client.exceptions.ConditionalCheckFailedException):
        client.put_item(
            TableName=table,
            Item=wire_item(order(2)),
            ConditionExpression="attribute_not_exists(customer)",
        )
    gone = client.delete_item(TableName=table, Key=key_of(2), ReturnValues="ALL_OLD")
    assert natural_item(gone["Attributes"]) == order(2)
    assert "Item" not in client.get_item(TableName=table, Key=key_of(2), ConsistentRead=True)


@pytest.mark.parametrize("page_size", [1, 4, 100])
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("index", [None, "by_amount"])
def test_query_page_by_page(
    client: Any, table: str, index: str | None, forward: bool, page_size: int
) -> None:
    where = {"IndexName": index} if index else {}
    for customer in orders.CUSTOMERS:
        pages = client.get_paginator("query").paginate(
            TableName=table,
            **where,
            **CUSTOMER_IS,
            ExpressionAttributeValues={":c": {"S": customer}},
            ScanIndexForward=forward,
            PaginationConfig={"PageSize": page_size},
        )
        by = "amount" if index else "placed_at"
        assert items_of(pages) == of_customer(customer, by=by, reverse=not forward)


@pytest.mark.parametrize("forward", [True, False])
def test_query_a_global_index(client: Any, table: str, forward: bool) -> None:
    pages = client.get_paginator("query").paginate(
        TableName=table,
        IndexName="by_status",
        KeyConditionExpression="#s = :s AND amount BETWEEN :low AND :high",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":s": {"S": "paid"}, ":low": {"N": "-2"}, ":high": {"N": "29"}},
        ScanIndexForward=forward,
        PaginationConfig={"PageSize": 2},
    )
    found = items_of(pages)
    projected = {"customer", "placed_at", "status", "amount", "paid"}
    expected = [
        {name: item[name] for name in projected}
        for item in orders.ORDERS
        if item["status"] == "paid" and -2 <= item["amount"] <= 29
    ]
    amounts = sorted((item["amount"] for item in expected), reverse=not forward)
    assert [item["amount"] for item in found] == amounts
    assert sorted(found, key=lambda item: item["placed_at"]) == expected


def test_scan_in_parallel(client: Any, table: str) -> None:
    def segment(number: int) -> list[dict[str, Any]]:
        pages = client.get_paginator("scan").paginate(
            TableName=table,
            Segment=number,
            TotalSegments=4,
            PaginationConfig={"PageSize": 3},
        )
        return items_of(pages)

    with ThreadPoolExecutor(4) as threads:
        found = [item for part in threads.map(segment, range(4)) for item in part]
    assert sorted(found, key=lambda item: item["placed_at"]) == orders.ORDERS
    filtered = client.scan(
        TableName=table,
        FilterExpression="size(basket) = :two",
        ExpressionAttributeValues={":two": {"N": "2"}},
        Select="COUNT",
    )
    wanted = sum(len(item["basket"]) == 2 for item in orders.ORDERS)
    assert (filtered["Count"], filtered["ScannedCount"]) == (wanted, orders.COUNT)


def test_a_paginator_resumes(client: Any, table: str) -> None:
    request = {"TableName": table, **CUSTOMER_IS, "ExpressionAttributeValues": {":c": {"S": "ann"}}}
    paginator = client.get_paginator("query")
    first = paginator.paginate(
        **request, PaginationConfig={"MaxItems": 5, "PageSize": 2}
    ).build_full_result()
    rest = paginator.paginate(
        **request, PaginationConfig={"StartingToken": first["NextToken"]}
    ).build_full_result()
    assert items_of([first, rest]) == of_customer("ann")


def test_batches(client: Any, table: str) -> None:
    more = [order(number) for number in range(30, 54)]
    puts = [{"PutRequest": {"Item": wire_item(item)}} for item in more]
    delete = {"DeleteRequest": {"Key": key_of(0)}}
    written = client.batch_write_item(RequestItems={table: [*puts, delete]})
    assert written["UnprocessedItems"] == {}
    keys = [wire_item(orders.key(item)) for item in [*more, order(0), order(1)]]
    found = client.batch_get_item(RequestItems={table: {"Keys": keys, "ConsistentRead": True}})
    assert found["UnprocessedKeys"] == {}
    by_time = sorted(found["Responses"][table], key=lambda item: item["placed_at"]["S"])
    assert [natural_item(item) for item in by_time] == [order(1), *more]
    with pytest.raises(ClientError, match="Member must have length less than or equal to 25"):
        client.batch_write_item(RequestItems={table: [*puts, *puts]})


def test_transactions(client: Any, table: str) -> None:
    request = {
        "TransactItems": [
            {"Put": {"TableName": table, "Item": wire_item(order(40))}},
            {
                "Update": {
                    "TableName": table,
                    "Key": key_of(3),
                    "UpdateExpression": "SET amount = amount + :n",
                    "ExpressionAttributeValues": {":n": {"N": "1"}},
                }
            },
            {"Delete": {"TableName": table, "Key": key_of(4)}},
            {
                "ConditionCheck": {
                    "TableName": table,
                    "Key": key_of(5),
                    "ConditionExpression": "attribute_exists(photo)",
                }
            },
        ],
        "ClientRequestToken": "4f0a6b1c",
    }
    client.transact_write_items(**request)
    client.transact_write_items(**request)
    gets = [{"Get": {"TableName": table, "Key": key_of(number)}} for number in (40, 3, 4)]
    answers = client.transact_get_items(TransactItems=gets)["Responses"]
    assert natural_item(answers[0]["Item"]) == order(40)
    assert natural_item(answers[1]["Item"])["amount"] == order(3)["amount"] + 1
    assert "Item" not in answers[2]
    request["TransactItems"].pop()
    with pytest.raises(client.exceptions.IdempotentParameterMismatchException):
        client.transact_write_items(**request)


def test_a_cancelled_transaction(client: Any, table: str) -> None:
    check = {
        "TableName": table,
        "Key": key_of(6),
        "ConditionExpression": "attribute_not_exists(customer)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    put = {"TableName": table, "Item": wire_item(order(41))}
    with pytest.raises(client.exceptions.TransactionCanceledException) as refused:
        client.transact_write_items(TransactItems=[{"Put": put}, {"ConditionCheck": check}])
    response = refused.value.response
    assert response["Error"]["Message"] == (
        "Transaction cancelled, please refer cancellation reasons for specific reasons "
        "[None, ConditionalCheckFailed]"
    )
    nothing, failed = response["CancellationReasons"]
    assert nothing == {"Code": "None"}
    assert failed["Code"] == "ConditionalCheckFailed"
    assert failed["Message"] == "The conditional request failed"
    assert natural_item(failed["Item"]) == order(6)
    assert "Item" not in client.get_item(TableName=table, Key=key_of(41))


def test_an_index_is_added_and_dropped(client: Any, table: str) -> None:
    index = {
        "IndexName": "by_time",
        "KeySchema": [
            {"AttributeName": "status", "KeyType": "HASH"},
            {"AttributeName": "placed_at", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    attributes = orders.definition(table)["AttributeDefinitions"]
    client.update_table(
        TableName=table,
        AttributeDefinitions=attributes,
        GlobalSecondaryIndexUpdates=[{"Create": index}],
    )
    wait_for_indexes(client, table, {"by_status", "by_time"})
    found = client.query(
        TableName=table,
        IndexName="by_time",
        KeyConditionExpression="#s = :s",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":s": {"S": "open"}},
    )
    expected = [item["placed_at"] for item in orders.ORDERS if item["status"] == "open"]
    assert [item["placed_at"]["S"] for item in found["Items"]] == expected
    client.update_table(
        TableName=table, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by_time"}}]
    )
    wait_for_indexes(client, table, {"by_status"})


def wait_for_indexes(client: Any, table: str, names: set[str]) -> None:
    for _ in range(200):
        described = client.describe_table(TableName=table)["Table"]
        indexes = described["GlobalSecondaryIndexes"]
        if {index["IndexName"] for index in indexes if index["IndexStatus"] == "ACTIVE"} == names:
            return
    raise AssertionError(f"the indexes never became {names}: {described}")


def test_expiry_and_tags(client: Any, table: str) -> None:
    setting = {"Enabled": True, "AttributeName": "expires"}
    answer = client.update_time_to_live(TableName=table, TimeToLiveSpecification=setting)
    assert answer["TimeToLiveSpecification"] == setting
    described = client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    assert described["AttributeName"] == "expires"
    assert described["TimeToLiveStatus"] in ("ENABLING", "ENABLED")
    arn = client.describe_table(TableName=table)["Table"]["TableArn"]
    tags = [{"Key": "team", "Value": "shop"}, {"Key": "stage", "Value": "test"}]
    client.tag_resource(ResourceArn=arn, Tags=tags)
    client.untag_resource(ResourceArn=arn, TagKeys=["stage"])
    pages = client.get_paginator("list_tags_of_resource").paginate(ResourceArn=arn)
    assert [tag for page in pages for tag in page["Tags"]] == tags[:1]


def test_refusals_are_not_tried_again(client: Any, table: str) -> None:
    with pytest.raises(ClientError) as refused:
        client.get_item(TableName=table, Key={"customer": {"S": "ann"}})
    response = refused.value.response
    assert response["Error"] == {
        "Code": "ValidationException",
        "Message": "The provided key element does not match the schema",
    }
    assert response["ResponseMetadata"]["RetryAttempts"] == 0
    assert len(response["ResponseMetadata"]["RequestId"]) == 52


def test_one_connection_serves_many_calls(
    client: Any, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "urllib3.connectionpool"):
        for number in range(40):
            client.update_item(
                TableName=table,
                Key=key_of(number % 3),
                UpdateExpression="SET seen = :n",
                ExpressionAttributeValues={":n": wire(order(number)["extremes"])},
            )
            client.get_item(TableName=table, Key=key_of(number % 3))
            with pytest.raises(ClientError):
                client.get_item(TableName=table, Key={})
    messages = [record.getMessage() for record in caplog.records]
    assert not [text for text in messages if "Starting new" in text or "Resetting" in text]


def test_a_large_answer_comes_in_pages_of_a_megabyte(client: Any, name: str) -> None:
    client.create_table(**orders.definition(name))
    parts = [bytes([number]) * 300_000 for number in range(7)]
    for number, part in enumerate(parts):
        item = wire_item({**orders.key(order(0)), "placed_at": str(number), "part": part})
        client.put_item(TableName=name, Item=item)
    pages = list(
        client.get_paginator("query").paginate(
            TableName=name, **CUSTOMER_IS, ExpressionAttributeValues={":c": {"S": "ann"}}
        )
    )
    # The item that crosses 1 MB is in the page: four of 300 KB, then the other three.
    assert [page["Count"] for page in pages] == [4, 3]
    assert [item["part"] for item in items_of(pages)] == parts


def test_many_threads_count_exactly(client: Any, table: str) -> None:
    def add(_: int) -> str:
        answer = client.update_item(
            TableName=table,
            Key=key_of(0),
            UpdateExpression="ADD visits :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
            ReturnValues="UPDATED_NEW",
        )
        return str(answer["Attributes"]["visits"]["N"])

    with ThreadPoolExecutor(8) as threads:
        numbers = sorted(map(int, threads.map(add, range(200))))
    assert numbers == list(range(1, 201))


@pytest.fixture
def restarting(tmp_path: Path) -> Iterator[Any]:
    """A server's URL, and what kills it and starts its file on the same port anew."""
    file = tmp_path / "shop.db"
    with ExitStack() as servers:
        server = servers.enter_context(start_server(file))

        def restart() -> str:
            nonlocal server
            server.kill()
            server = servers.enter_context(start_server(file, port=server.address[1]))
            return server.url

        yield server.url, restart
        assert server.stop() == 0


def test_a_client_outlives_a_server(restarting: Any, name: str) -> None:
    url, restart = restarting
    client = boto3.client("dynamodb", endpoint_url=url, config=Config(retries={"mode": "standard"}))
    client.create_table(**orders.definition(name))
    for number in range(3):
        client.put_item(TableName=name, Item=wire_item(order(number)))
        assert restart() == url
        found = client.get_item(TableName=name, Key=key_of(number))
        assert natural_item(found["Item"]) == order(number)
    client.close()
