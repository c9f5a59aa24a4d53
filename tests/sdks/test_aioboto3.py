"""aioboto3: many calls at once over aiohttp's connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aioboto3
import pytest
from boto3.dynamodb.conditions import Key
from tests.sdks import orders
from tests.sdks.orders import natural_item, of_customer, order, plain, wire_item


@asynccontextmanager
async def shop(url: str, name: str) -> AsyncIterator[Any]:
    """A client, and a table with all orders in it, written all at once."""
    async with aioboto3.Session().client("dynamodb", endpoint_url=url) as client:
        await client.create_table(**orders.definition(name))
        await client.get_waiter("table_exists").wait(TableName=name)
        puts = (client.put_item(TableName=name, Item=wire_item(item)) for item in orders.ORDERS)
        await asyncio.gather(*puts)
        yield client


def test_a_table_from_its_birth_to_its_end(url: str, name: str) -> None:
    async def story() -> None:
        async with shop(url, name) as client:
            with pytest.raises(client.exceptions.ResourceInUseException):
                await client.create_table(**orders.definition(name))
            await client.delete_table(TableName=name)
            await client.get_waiter("table_not_exists").wait(TableName=name)
            with pytest.raises(client.exceptions.ResourceNotFoundException):
                await client.describe_table(TableName=name)

    asyncio.run(story())


def test_query_and_scan_page_by_page(url: str, name: str) -> None:
    async def pages(client: Any, action: str, **request: Any) -> list[dict[str, Any]]:
        paginator = client.get_paginator(action).paginate(
            TableName=name, PaginationConfig={"PageSize": 3}, **request
        )
        return [natural_item(item) async for page in paginator for item in page["Items"]]

    async def story() -> None:
        async with shop(url, name) as client:
            for forward in (True, False):
                found = await pages(
                    client,
                    "query",
                    IndexName="by_amount",
                    KeyConditionExpression="customer = :c",
                    ExpressionAttributeValues={":c": {"S": "ann"}},
                    ScanIndexForward=forward,
                )
                assert found == of_customer("ann", by="amount", reverse=not forward)
            segments = await asyncio.gather(
                *(pages(client, "scan", Segment=part, TotalSegments=5) for part in range(5))
            )
            scanned = [item for segment in segments for item in segment]
            assert sorted(scanned, key=lambda item: item["placed_at"]) == orders.ORDERS

    asyncio.run(story())


def test_conditions_and_transactions(url: str, name: str) -> None:
    async def story() -> None:
        async with shop(url, name) as client:
            fresh = {
                "TableName": name,
                "Item": wire_item(order(30)),
                "ConditionExpression": "attribute_not_exists(customer)",
            }
            await client.put_item(**fresh)
            with pytest.raises(client.exceptions.ConditionalCheckFailedException):
                await client.put_item(**fresh)
            other = {"TableName": name, "Item": wire_item(order(31))}
            with pytest.raises(client.exceptions.TransactionCanceledException) as refused:
                await client.transact_write_items(TransactItems=[{"Put": other}, {"Put": fresh}])
            reasons = refused.value.response["CancellationReasons"]
            assert [reason["Code"] for reason in reasons] == ["None", "ConditionalCheckFailed"]
            await client.transact_write_items(TransactItems=[{"Put": other}])
            gets = [
                {"Get": {"TableName": name, "Key": wire_item(orders.key(order(number)))}}
                for number in (30, 31)
            ]
            answers = await client.transact_get_items(TransactItems=gets)
            found = [natural_item(answer["Item"]) for answer in answers["Responses"]]
            assert found == [order(30), order(31)]

    asyncio.run(story())


def test_batches_expiry_and_tags(url: str, name: str) -> None:
    async def story() -> None:
        async with shop(url, name) as client:
            more = [order(number) for number in range(30, 50)]
            puts = [{"PutRequest": {"Item": wire_item(item)}} for item in more]
            written = await client.batch_write_item(RequestItems={name: puts})
            assert written["UnprocessedItems"] == {}
            keys = [wire_item(orders.key(item)) for item in more]
            answer = await client.batch_get_item(RequestItems={name: {"Keys": keys}})
            found = [natural_item(item) for item in answer["Responses"][name]]
            assert sorted(found, key=lambda item: item["placed_at"]) == more
            setting = {"Enabled": True, "AttributeName": "expires"}
            await client.update_time_to_live(TableName=name, TimeToLiveSpecification=setting)
            expiry = await client.describe_time_to_live(TableName=name)
            assert expiry["TimeToLiveDescription"]["AttributeName"] == "expires"
            arn = (await client.describe_table(TableName=name))["Table"]["TableArn"]
            tags = [{"Key": "team", "Value": "shop"}]
            await client.tag_resource(ResourceArn=arn, Tags=tags)
            assert (await client.list_tags_of_resource(ResourceArn=arn))["Tags"] == tags

    asyncio.run(story())


def test_many_tasks_count_exactly(url: str, name: str) -> None:
    async def story() -> None:
        async with shop(url, name) as client:

            async def add() -> int:
                answer = await client.update_item(
                    TableName=name,
                    Key=wire_item(orders.key(order(0))),
                    UpdateExpression="ADD visits :one",
                    ExpressionAttributeValues={":one": {"N": "1"}},
                    ReturnValues="UPDATED_NEW",
                )
                return int(answer["Attributes"]["visits"]["N"])

            numbers = await asyncio.gather(*(add() for _ in range(200)))
            assert sorted(numbers) == list(range(1, 201))

    asyncio.run(story())


def test_the_resource(url: str, name: str) -> None:
    async def story() -> None:
        async with aioboto3.Session().resource("dynamodb", endpoint_url=url) as dynamodb:
            table = await dynamodb.create_table(**orders.definition(name))
            await table.wait_until_exists()
            async with table.batch_writer() as batch:
                for item in orders.ORDERS:
                    await batch.put_item(Item=item)
            page = await table.query(
                KeyConditionExpression=Key("customer").eq("böb"), ScanIndexForward=False
            )
            assert plain(page["Items"]) == of_customer("böb", reverse=True)
            await table.delete()

    asyncio.run(story())


def test_statements_and_backups(url: str, name: str) -> None:
    async def story() -> None:
        async with shop(url, name) as client:
            paginator = client.get_paginator("list_tables")
            assert name in [
                each async for page in paginator.paginate() for each in page["TableNames"]
            ]
            select = f'SELECT * FROM "{name}" WHERE customer = ? ORDER BY placed_at'
            page = await client.execute_statement(Statement=select, Parameters=[{"S": "ann"}])
            assert [natural_item(item) for item in page["Items"]] == of_customer("ann")
            key = orders.key(order(0))
            delete = f'DELETE FROM "{name}" WHERE customer = ? AND placed_at = ?'
            one = {"Statement": delete, "Parameters": list(wire_item(key).values())}
            backup = await client.create_backup(TableName=name, BackupName="nightly")
            await client.execute_transaction(TransactStatements=[one])
            answer = await client.get_item(TableName=name, Key=wire_item(key))
            assert "Item" not in answer
            arn = backup["BackupDetails"]["BackupArn"]
            restored = f"{name}-restored"
            await client.restore_table_from_backup(TargetTableName=restored, BackupArn=arn)
            await client.get_waiter("table_exists").wait(TableName=restored)
            answer = await client.get_item(TableName=restored, Key=wire_item(key))
            assert natural_item(answer["Item"]) == order(0)
            await client.delete_backup(BackupArn=arn)

    asyncio.run(story())
