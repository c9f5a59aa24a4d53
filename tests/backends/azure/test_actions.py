"""What Azure makes special: races, refusals, reading backwards, pages of 1 MB, tables after a crash; both forms of the backend."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from isotone import moving
from isotone.backends import embedded
from isotone.backends.azure_table import AsyncAzureTable, AzureTable, actions
from isotone.backends.azure_table.tables import azure_name
from isotone.cli import main
from isotone.errors import (
    AccessDeniedException,
    ConditionalCheckFailedException,
    ConnectionFailed,
    ResourceInUseException,
    ResourceNotFoundException,
    TransactionCanceledException,
    Unsupported,
    ValidationException,
)

Json = dict[str, Any]


def definition(name: str) -> Json:
    return {
        "TableName": name,
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }


@pytest.fixture
def table(azure: AzureTable) -> Iterator[str]:
    name = f"table-{uuid.uuid4()}"
    azure.execute("CreateTable", definition(name))
    yield name
    azure.execute("DeleteTable", {"TableName": name})


def item(pk: str, sk: int, **attributes: Json) -> Json:
    return {"pk": {"S": pk}, "sk": {"N": str(sk)}, **attributes}


def fill(azure: AzureTable, table: str, items: list[Json]) -> None:
    for start in range(0, len(items), 25):
        entries = [{"PutRequest": {"Item": each}} for each in items[start : start + 25]]
        azure.execute("BatchWriteItem", {"RequestItems": {table: entries}})


def increment(table: str, key: Json) -> tuple[str, Json]:
    return "UpdateItem", {
        "TableName": table,
        "Key": key,
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }


# Races


def test_concurrent_updates_all_count(azure: AzureTable, table: str) -> None:
    key = item("a", 1)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: azure.execute(*increment(table, key)), range(40)))
    stored = azure.execute("GetItem", {"TableName": table, "Key": key})["Item"]
    assert stored["n"] == {"N": "40"}


def test_of_concurrent_creations_and_deletions_one_wins(azure: AzureTable, table: str) -> None:
    def create(number: int) -> bool:
        request = {"TableName": table, "Item": item("a", 1, by={"N": str(number)})}
        try:
            azure.execute("PutItem", {**request, "ConditionExpression": "attribute_not_exists(pk)"})
        except ConditionalCheckFailedException:
            return False
        return True

    def delete(_: int) -> bool:
        request = {"TableName": table, "Key": item("a", 1), "ReturnValues": "ALL_OLD"}
        return "Attributes" in azure.execute("DeleteItem", request)

    for _ in range(5):
        with ThreadPoolExecutor(8) as threads:
            assert sum(threads.map(create, range(8))) == 1
            assert sum(threads.map(delete, range(8))) == 1


def test_a_transaction_moves_amounts_and_none_is_lost(azure: AzureTable, table: str) -> None:
    fill(azure, table, [item("a", at, n={"N": "100"}) for at in range(4)])

    def change(at: int, by: int) -> Json:
        _, request = increment(table, item("a", at))
        request["ExpressionAttributeValues"] = {":one": {"N": str(by)}}
        return {"Update": request}

    def move(number: int) -> None:
        changes = [change(number % 4, -5), change((number + 1) % 4, 5)]
        azure.execute("TransactWriteItems", {"TransactItems": changes})

    def total(_: int) -> int:
        gets = [{"Get": {"TableName": table, "Key": item("a", at)}} for at in range(4)]
        answers = azure.execute("TransactGetItems", {"TransactItems": gets})["Responses"]
        return sum(int(each["Item"]["n"]["N"]) for each in answers)

    with ThreadPoolExecutor(6) as threads:
        moves = [threads.submit(move, number) for number in range(12)]
        assert set(threads.map(total, range(6))) == {400}
        for each in moves:
            each.result()
    assert total(0) == 400


def test_a_transaction_is_all_or_nothing(azure: AzureTable, table: str) -> None:
    put = {"Put": {"TableName": table, "Item": item("a", 1)}}
    check = {
        "ConditionCheck": {
            "TableName": table,
            "Key": item("a", 2),
            "ConditionExpression": "attribute_exists(pk)",
        }
    }
    with pytest.raises(TransactionCanceledException):
        azure.execute("TransactWriteItems", {"TransactItems": [put, check]})
    assert azure.execute("Scan", {"TableName": table})["Items"] == []
    fill(azure, table, [item("a", 2)])
    azure.execute("TransactWriteItems", {"TransactItems": [put, check]})
    assert azure.execute("Scan", {"TableName": table})["Count"] == 2


# Refusals


def test_a_transaction_over_partitions_is_refused(azure: AzureTable, table: str) -> None:
    puts = [{"Put": {"TableName": table, "Item": item(pk, 1)}} for pk in "ab"]
    with pytest.raises(Unsupported, match="items of 2 partitions"):
        azure.execute("TransactWriteItems", {"TransactItems": puts})


def test_a_check_that_an_item_stays_absent_is_refused(azure: AzureTable, table: str) -> None:
    check = {
        "ConditionCheck": {
            "TableName": table,
            "Key": item("a", 2),
            "ConditionExpression": "attribute_not_exists(pk)",
        }
    }
    with pytest.raises(Unsupported, match="stays absent"):
        azure.execute("TransactWriteItems", {"TransactItems": [check]})


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ("ExecuteStatement", "write the request as Query"),
        ("ListStreams", "it has no streams"),
        ("UpdateTimeToLive", "items do not expire there"),
        ("UpdateTable", "not possible with Azure Table storage"),
    ],
)
def test_other_actions_are_refused_with_a_reason(
    azure: AzureTable, operation: str, reason: str
) -> None:
    with pytest.raises(Unsupported, match=reason):
        azure.execute(operation, {"TableName": "orders"})


def test_a_table_with_an_index_or_a_stream_is_refused(azure: AzureTable) -> None:
    index = {
        "IndexName": "by-sk",
        "KeySchema": [{"AttributeName": "sk", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    with pytest.raises(Unsupported, match="GlobalSecondaryIndexes 'by-sk', and Azure"):
        azure.execute("CreateTable", {**definition("orders"), "GlobalSecondaryIndexes": [index]})
    stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    with pytest.raises(Unsupported, match="StreamSpecification, and Azure"):
        azure.execute("CreateTable", {**definition("orders"), "StreamSpecification": stream})
    with pytest.raises(ResourceNotFoundException):
        azure.execute("DescribeTable", {"TableName": "orders"})


def test_a_key_or_an_item_beyond_azures_limits_is_refused(azure: AzureTable, table: str) -> None:
    with pytest.raises(ValidationException, match="700 characters in Azure Table storage"):
        azure.execute("PutItem", {"TableName": table, "Item": item("x" * 700, 1)})
    large = item("a", 1, many={"L": [{"NULL": True}] * 60_000})
    with pytest.raises(ValidationException, match="bytes in Azure Table storage"):
        azure.execute("PutItem", {"TableName": table, "Item": large})


# Ranges


def test_items_of_400_kb_come_back_in_pages_of_1_mb(azure: AzureTable, table: str) -> None:
    items = [item("a", at, text={"S": "x" * 390_000}) for at in range(7)]
    for each in items:
        azure.execute("PutItem", {"TableName": table, "Item": each})
    for operation, request in (
        ("Scan", {}),
        ("Query", {"ScanIndexForward": True}),
        ("Query", {"ScanIndexForward": False}),
    ):
        if operation == "Query":
            request["KeyConditionExpression"] = "pk = :a"
            request["ExpressionAttributeValues"] = {":a": {"S": "a"}}
        pages, start = [], {}
        while True:
            page = azure.execute(operation, {"TableName": table, **request, **start})
            pages.append(page["Items"])
            if "LastEvaluatedKey" not in page:
                break
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
        expected = items if request.get("ScanIndexForward", True) else items[::-1]
        assert [each for page in pages for each in page] == expected or operation == "Scan"
        assert sorted(int(each["sk"]["N"]) for page in pages for each in page) == list(range(7))
        assert len(pages) > 1


def test_more_items_than_a_page_of_azure_has(azure: AzureTable, table: str) -> None:
    fill(azure, table, [item("a", at) for at in range(1100)])
    query = {
        "TableName": table,
        "KeyConditionExpression": "pk = :a",
        "ExpressionAttributeValues": {":a": {"S": "a"}},
    }
    assert azure.execute("Query", {**query, "Select": "COUNT"})["Count"] == 1100
    last = azure.execute("Query", {**query, "ScanIndexForward": False, "Limit": 3})
    assert [each["sk"]["N"] for each in last["Items"]] == ["1099", "1098", "1097"]
    assert azure.execute("Scan", {"TableName": table, "Select": "COUNT"})["Count"] == 1100


def test_reading_a_long_range_backwards_is_refused(
    azure: AzureTable, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "LARGEST_REVERSAL", 10)
    fill(azure, table, [item("a", at) for at in range(11)])
    query = {
        "TableName": table,
        "KeyConditionExpression": "pk = :a AND sk > :low",
        "ScanIndexForward": False,
        "Limit": 1,
    }
    values = {":a": {"S": "a"}, ":low": {"N": "-1"}}
    with pytest.raises(Unsupported, match=r"declare the sort key with desc\(\.\.\.\)"):
        azure.execute("Query", {**query, "ExpressionAttributeValues": values})
    values = {":a": {"S": "a"}, ":low": {"N": "0"}}
    assert azure.execute("Query", {**query, "ExpressionAttributeValues": values})["Count"] == 1


def test_parallel_segments_have_everything_once(azure: AzureTable, table: str) -> None:
    fill(azure, table, [item("a", at) for at in range(5)])
    segments = [
        azure.execute("Scan", {"TableName": table, "Segment": segment, "TotalSegments": 3})["Items"]
        for segment in range(3)
    ]
    assert [len(each) for each in segments] == [5, 0, 0]


# Tables


def test_a_table_without_a_sort_key(azure: AzureTable) -> None:
    request = definition("simple.table")
    del request["KeySchema"][1], request["AttributeDefinitions"][1]
    azure.execute("CreateTable", request)
    for name in "abc":
        azure.execute("PutItem", {"TableName": "simple.table", "Item": {"pk": {"S": name}}})
    key = {"pk": {"S": "b"}}
    assert azure.execute("GetItem", {"TableName": "simple.table", "Key": key})["Item"] == key
    page = azure.execute("Scan", {"TableName": "simple.table", "Limit": 2})
    rest = azure.execute(
        "Scan", {"TableName": "simple.table", "ExclusiveStartKey": page["LastEvaluatedKey"]}
    )
    assert sorted(each["pk"]["S"] for each in page["Items"]) == ["a", "b"]
    assert rest["Items"] == [{"pk": {"S": "c"}}]
    azure.execute("DeleteTable", {"TableName": "simple.table"})


def test_names_are_listed_in_pages(azure: AzureTable) -> None:
    names = [f"list-{at}" for at in range(4)]
    for name in names:
        azure.execute("CreateTable", definition(name))
    page = azure.execute("ListTables", {"ExclusiveStartTableName": "list-", "Limit": 2})
    assert page == {"TableNames": names[:2], "LastEvaluatedTableName": names[1]}
    page = azure.execute("ListTables", {"ExclusiveStartTableName": names[1], "Limit": 2})
    assert page["TableNames"] == names[2:]
    for name in names:
        azure.execute("DeleteTable", {"TableName": name})
    assert not set(names) & set(azure.execute("ListTables", {})["TableNames"])


def test_a_description_has_no_invented_counts(azure: AzureTable, table: str) -> None:
    description = azure.execute("DescribeTable", {"TableName": table})["Table"]
    assert description["TableStatus"] == "ACTIVE"
    assert description["KeySchema"] == definition(table)["KeySchema"]
    assert "ItemCount" not in description


def test_features_that_were_never_enabled_are_described(azure: AzureTable, table: str) -> None:
    described = azure.execute("DescribeTimeToLive", {"TableName": table})
    assert described["TimeToLiveDescription"] == {"TimeToLiveStatus": "DISABLED"}
    described = azure.execute("DescribeContinuousBackups", {"TableName": table})
    assert described["ContinuousBackupsDescription"]["ContinuousBackupsStatus"] == "ENABLED"
    arn = azure.execute("DescribeTable", {"TableName": table})["Table"]["TableArn"]
    assert azure.execute("ListTagsOfResource", {"ResourceArn": arn}) == {"Tags": []}


def test_the_command_line_lists_tables_that_nobody_counts(
    azure_address: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tables", azure_address]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if table in line)
    assert line.split()[-2:] == ["—", "—"]
    assert main(["describe", azure_address, table]) == 0


def test_a_file_is_copied_to_azure_and_back(
    azure: AzureTable, azure_address: str, tmp_path: Path
) -> None:
    name = f"copied-{uuid.uuid4()}"
    files = [tmp_path / "source.db", tmp_path / "back.db"]
    with embedded.open(files[0]) as source:
        source.execute("CreateTable", definition(name))
        items = [item(f"P#{at % 7}", at, tags={"SS": ["a"]}) for at in range(60)]
        for each in items:
            source.execute("PutItem", {"TableName": name, "Item": each})
    moving.copy(files[0], azure_address, [name])
    moving.copy(azure_address, files[1], [name])
    with embedded.open(files[1]) as back:
        copied = back.execute("Scan", {"TableName": name})["Items"]
    assert sorted(copied, key=repr) == sorted(items, key=repr)
    azure.execute("DeleteTable", {"TableName": name})


def test_creation_is_finished_after_a_crash(azure: AzureTable, azure_address: str) -> None:
    name = f"crash-{uuid.uuid4()}"
    azure.execute("CreateTable", definition(name))
    azure._service._client.delete_table(azure_name(name))
    with AzureTable(azure_address) as other:
        with pytest.raises(ResourceNotFoundException):
            other.execute("PutItem", {"TableName": name, "Item": item("a", 1)})
        other.execute("CreateTable", definition(name))
        other.execute("PutItem", {"TableName": name, "Item": item("a", 1)})
        with pytest.raises(ResourceInUseException, match="Table already exists"):
            other.execute("CreateTable", definition(name))
        other.execute("DeleteTable", {"TableName": name})


def test_a_table_of_another_program_is_not_taken_over(azure: AzureTable) -> None:
    azure._service._client.create_table("theirs")
    with pytest.raises(ResourceInUseException, match="did not create"):
        azure.execute("CreateTable", definition("theirs"))
    assert "theirs" not in azure.execute("ListTables", {})["TableNames"]


# Reaching it


def test_nobody_listens() -> None:
    from isotone.backends.request_retries import Retries

    backend = AzureTable("azure-table://127.0.0.1:1/devstoreaccount1", retries=Retries.none())
    with backend, pytest.raises(ConnectionFailed, match="did not answer"):
        backend.execute("ListTables", {})


def test_a_wrong_key_is_denied(azure_address: str) -> None:
    from azure.core.credentials import AzureNamedKeyCredential

    credential = AzureNamedKeyCredential("devstoreaccount1", "d3Jvbmc=")
    backend = AzureTable(azure_address, credential=credential)
    with backend, pytest.raises(AccessDeniedException):
        backend.execute("ListTables", {})


def test_the_async_form_answers_alike_on_any_loop(
    azure: AzureTable, table: str, azure_address: str
) -> None:
    backend = AsyncAzureTable(azure_address)

    async def write() -> list[Json]:
        await asyncio.gather(
            *(backend.execute(*increment(table, item("a", at % 2))) for at in range(10))
        )
        entries = [{"PutRequest": {"Item": item(pk, 1)}} for pk in "bcd"]
        await backend.execute("BatchWriteItem", {"RequestItems": {table: entries}})
        keys = {"Keys": [item(pk, 1) for pk in "abcd"]}
        answer = await backend.execute("BatchGetItem", {"RequestItems": {table: keys}})
        backend.close()
        return answer["Responses"][table]

    async def read() -> Json:
        answer = await backend.execute("Scan", {"TableName": table})
        with pytest.raises(ConditionalCheckFailedException):
            await backend.execute(
                "PutItem",
                {
                    "TableName": table,
                    "Item": item("a", 1),
                    "ConditionExpression": "attribute_not_exists(pk)",
                },
            )
        with pytest.raises(ResourceNotFoundException):
            await backend.execute("GetItem", {"TableName": "nothing", "Key": item("a", 1)})
        await backend.execute("DeleteItem", {"TableName": table, "Key": item("a", 1)})
        backend.close()
        return answer

    assert len(asyncio.run(write())) == 4
    answer = asyncio.run(read())
    assert answer["Count"] == 5
    stored = [each["n"] for each in answer["Items"] if "n" in each]
    assert stored == [{"N": "5"}, {"N": "5"}]
    assert azure.execute("Scan", {"TableName": table})["Count"] == 4
