"""What a program does with `aws-sdk-dynamodb`, asserted step by step; run by `test_aws_sdk.py` in its environment.

python story.py URL TABLE
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable
from typing import Any

from aws_sdk_dynamodb import models
from aws_sdk_dynamodb.client import AsyncDynamoDBClient
from aws_sdk_dynamodb.config import AsyncDynamoDBConfig
from aws_sdk_dynamodb.models import AttributeValue


async def refused(answer: Awaitable[object], kind: type[Exception]) -> Any:
    """The error of a call that must fail."""
    try:
        await answer
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def s(text: str) -> AttributeValue:
    return models.AttributeValueS(text)


def n(number: object) -> AttributeValue:
    return models.AttributeValueN(str(number))


def key(number: int) -> dict[str, AttributeValue]:
    return {"customer": s("ann"), "number": n(number)}


ORDER: dict[str, AttributeValue] = {
    **key(1),
    "paid": models.AttributeValueBOOL(True),
    "note": models.AttributeValueNULL(True),
    "photo": models.AttributeValueB(b"\x00\xff"),
    "tags": models.AttributeValueSS(["a", "☃"]),
    "sizes": models.AttributeValueNS(["-0.5", "12345678901234567890.123456789012345678"]),
    "blobs": models.AttributeValueBS([b"\x00", b"\x01"]),
    "basket": models.AttributeValueL([models.AttributeValueM({"sku": s("x")})]),
}


async def tables(client: AsyncDynamoDBClient, name: str) -> None:
    """Create and describe a table; an error has a class."""
    await client.create_table(
        models.CreateTableInput(
            table_name=name,
            billing_mode="PAY_PER_REQUEST",
            attribute_definitions=[
                models.AttributeDefinition(attribute_name="customer", attribute_type="S"),
                models.AttributeDefinition(attribute_name="number", attribute_type="N"),
            ],
            key_schema=[
                models.KeySchemaElement(attribute_name="customer", key_type="HASH"),
                models.KeySchemaElement(attribute_name="number", key_type="RANGE"),
            ],
        )
    )
    described = await client.describe_table(models.DescribeTableInput(table_name=name))
    assert described.table is not None
    assert described.table.table_status == "ACTIVE"
    assert described.table.creation_date_time is not None
    listed = await client.list_tables(models.ListTablesInput())
    assert name in (listed.table_names or [])
    absent = client.describe_table(models.DescribeTableInput(table_name="absent"))
    error = await refused(absent, models.ResourceNotFoundException)
    assert "absent" in str(error.message)


async def items(client: AsyncDynamoDBClient, name: str) -> None:
    """Every type of value, a failed condition, an update and a query."""
    put = models.PutItemInput(
        table_name=name, item=ORDER, condition_expression="attribute_not_exists(customer)"
    )
    await client.put_item(put)
    got = await client.get_item(models.GetItemInput(table_name=name, key=key(1)))
    assert got.item == ORDER, got.item
    error = await refused(client.put_item(put), models.ConditionalCheckFailedException)
    assert error.message == "The conditional request failed"
    updated = await client.update_item(
        models.UpdateItemInput(
            table_name=name,
            key=key(2),
            update_expression="SET paid = :no ADD visits :one",
            expression_attribute_values={":no": models.AttributeValueBOOL(False), ":one": n(1)},
            return_values="ALL_NEW",
        )
    )
    assert updated.attributes == {
        **key(2),
        "paid": models.AttributeValueBOOL(False),
        "visits": n(1),
    }
    found = await client.query(
        models.QueryInput(
            table_name=name,
            key_condition_expression="customer = :c",
            expression_attribute_values={":c": s("ann")},
            scan_index_forward=False,
        )
    )
    assert [item["number"] for item in found.items or []] == [n(2), n(1)]


async def transactions(client: AsyncDynamoDBClient, name: str) -> None:
    """Writes that happen together, and the reasons of those that do not."""
    check = models.ConditionCheck(
        table_name=name, key=key(1), condition_expression="attribute_not_exists(customer)"
    )
    put = models.Put(table_name=name, item=key(3))
    both = [
        models.TransactWriteItem(put=put),
        models.TransactWriteItem(condition_check=check),
    ]
    written = client.transact_write_items(models.TransactWriteItemsInput(transact_items=both))
    error = await refused(written, models.TransactionCanceledException)
    codes = [reason.code for reason in error.cancellation_reasons or []]
    assert codes == ["None", "ConditionalCheckFailed"], codes
    await client.transact_write_items(models.TransactWriteItemsInput(transact_items=both[:1]))
    got = await client.transact_get_items(
        models.TransactGetItemsInput(
            transact_items=[
                models.TransactGetItem(get=models.Get(table_name=name, key=key(each)))
                for each in (3, 9)
            ]
        )
    )
    assert [each.item for each in got.responses or []] in ([key(3), None], [key(3), {}])


async def statements(client: AsyncDynamoDBClient, name: str) -> None:
    """PartiQL, alone and in a transaction."""
    await client.execute_statement(
        models.ExecuteStatementInput(
            statement=f"INSERT INTO \"{name}\" VALUE {{'customer': 'ann', 'number': ?}}",
            parameters=[n(4)],
        )
    )
    found = await client.execute_statement(
        models.ExecuteStatementInput(
            statement=f"SELECT number FROM \"{name}\" WHERE customer = 'ann' ORDER BY number"
        )
    )
    assert found.items == [{"number": n(number)} for number in (1, 2, 3, 4)]
    await client.execute_transaction(
        models.ExecuteTransactionInput(
            transact_statements=[
                models.ParameterizedStatement(
                    statement=f"DELETE FROM \"{name}\" WHERE customer = 'ann' AND number = 4"
                )
            ]
        )
    )


async def backups(client: AsyncDynamoDBClient, name: str) -> None:
    """A backup, and the table that is restored from it."""
    made = await client.create_backup(
        models.CreateBackupInput(table_name=name, backup_name="nightly")
    )
    assert made.backup_details is not None
    arn = made.backup_details.backup_arn
    await client.delete_item(models.DeleteItemInput(table_name=name, key=key(1)))
    await client.restore_table_from_backup(
        models.RestoreTableFromBackupInput(target_table_name=f"{name}-restored", backup_arn=arn)
    )
    for _ in range(200):
        described = await client.describe_table(
            models.DescribeTableInput(table_name=f"{name}-restored")
        )
        assert described.table is not None
        if described.table.table_status == "ACTIVE":
            break
        await asyncio.sleep(0.05)
    restored = await client.get_item(models.GetItemInput(table_name=f"{name}-restored", key=key(1)))
    assert restored.item == ORDER
    await client.delete_backup(models.DeleteBackupInput(backup_arn=arn))


async def main(url: str, name: str) -> None:
    config = await AsyncDynamoDBConfig.resolve(
        endpoint_uri=url,
        region="eu-west-1",
        aws_access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
    )
    client = AsyncDynamoDBClient(config=config)
    for part in (tables, items, transactions, statements, backups):
        await part(client, name)
        print(f"{part.__name__}: passed")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
