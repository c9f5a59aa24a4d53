"""What Azure refuses, and what it does not answer, as errors of DynamoDB; without a server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ServiceRequestError, ServiceResponseError
from tests.backends.azure.fake import FakeAzure, requests_of
from tests.backends.azure.test_actions import definition, increment, item
from tests.backends.scripted import scripted_server

from isotone.backends.azure_table import AzureTable, entities, service
from isotone.backends.azure_table.evaluation import Evaluator, Stored, StoredDefinition
from isotone.backends.azure_table.service import (
    Conflict,
    GetEntity,
    TableGone,
    WriteEntity,
    WriteTogether,
    translated,
)
from isotone.backends.request_retries import Retries
from isotone.errors import (
    AccessDeniedException,
    ApiError,
    ConditionalCheckFailedException,
    ConnectionFailed,
    DeadlineExceeded,
    InternalServerError,
    ProvisionedThroughputExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    ThrottlingException,
    TransactionCanceledException,
    ValidationException,
)

Json = dict[str, Any]


def refuse(*kinds: type, error: Exception, times: int = 1_000) -> Callable[[Any], None]:
    left = [times]

    def fault(request: Any) -> None:
        if isinstance(request, kinds) and left[0]:
            left[0] -= 1
            raise error

    return fault


@pytest.fixture
def azure() -> FakeAzure:
    azure = FakeAzure()
    azure.execute("CreateTable", definition("orders"))
    azure.requests.clear()
    return azure


def test_an_unconditional_put_is_one_request(azure: FakeAzure) -> None:
    azure.execute("PutItem", {"TableName": "orders", "Item": item("a", 1)})
    assert [type(each) for each in azure.requests] == [WriteEntity]


def test_a_conditional_write_is_repeated_until_nobody_comes_between(azure: FakeAzure) -> None:
    azure.fault = refuse(WriteEntity, error=Conflict(), times=3)
    azure.execute(*increment("orders", item("a", 1)))
    assert len(requests_of(azure, WriteEntity)) == 4
    assert len(requests_of(azure, GetEntity)) == 4


def test_a_write_that_always_loses_is_throttled(azure: FakeAzure) -> None:
    azure.fault = refuse(WriteEntity, error=Conflict())
    with pytest.raises(ThrottlingException, match="during each of 50 attempts"):
        azure.execute(*increment("orders", item("a", 1)))


def test_a_transaction_that_always_loses_is_cancelled(azure: FakeAzure) -> None:
    azure.fault = refuse(WriteTogether, error=Conflict())
    puts = [{"Put": {"TableName": "orders", "Item": item("a", at)}} for at in range(2)]
    with pytest.raises(TransactionCanceledException) as caught:
        azure.execute("TransactWriteItems", {"TransactItems": puts})
    reasons = caught.value.members["CancellationReasons"]
    assert [each["Code"] for each in reasons] == ["TransactionConflict"] * 2


def test_a_read_of_items_that_always_change_is_cancelled(azure: FakeAzure) -> None:
    def change(request: Any) -> None:
        if isinstance(request, GetEntity) and request.table == "orders":
            entity = entities.EntityLayout("orders", (("pk", "S"), ("sk", "N"))).entity(
                item("a", 1)
            )
            azure.writes += 1
            azure.tables["orders"][request.partition, request.row] = entity, str(azure.writes)

    azure.fault = change
    gets = [{"Get": {"TableName": "orders", "Key": item("a", at)}} for at in range(2)]
    with pytest.raises(TransactionCanceledException):
        azure.execute("TransactGetItems", {"TransactItems": gets})


def test_the_throttled_part_of_a_batch_is_unprocessed(azure: FakeAzure) -> None:
    entries = [{"PutRequest": {"Item": item(pk, 1)}} for pk in "abc"]
    busy = ProvisionedThroughputExceededException("busy")
    azure.fault = refuse(WriteEntity, error=busy, times=1)
    answer = azure.execute("BatchWriteItem", {"RequestItems": {"orders": entries}})
    assert answer["UnprocessedItems"] == {"orders": entries[:1]}
    assert len(azure.tables["orders"]) == 2
    azure.fault = refuse(WriteEntity, error=busy)
    with pytest.raises(ProvisionedThroughputExceededException):
        azure.execute("BatchWriteItem", {"RequestItems": {"orders": entries}})
    azure.fault = refuse(WriteEntity, error=ConnectionFailed("gone"), times=1)
    with pytest.raises(ConnectionFailed):
        azure.execute("BatchWriteItem", {"RequestItems": {"orders": entries}})


def test_a_batch_is_a_request_for_each_partition(azure: FakeAzure) -> None:
    entries = [{"PutRequest": {"Item": item(pk, at)}} for pk in "ab" for at in range(5)]
    entries.append({"DeleteRequest": {"Key": item("a", 9)}})
    azure.execute("BatchWriteItem", {"RequestItems": {"orders": entries}})
    assert len(requests_of(azure, WriteTogether)) == 2
    assert len(requests_of(azure, WriteEntity)) == 1


def test_large_puts_of_a_partition_are_several_requests(azure: FakeAzure) -> None:
    text = {"S": "x" * 200_000}
    entries = [{"PutRequest": {"Item": item("a", at, text=text)}} for at in range(6)]
    azure.execute("BatchWriteItem", {"RequestItems": {"orders": entries}})
    assert [len(each.changes) for each in requests_of(azure, WriteTogether)] == [2, 2, 2]


def test_a_table_that_another_process_deleted(azure: FakeAzure) -> None:
    azure.execute("PutItem", {"TableName": "orders", "Item": item("a", 1)})
    FakeAzure(tables=azure.tables).execute("DeleteTable", {"TableName": "orders"})
    with pytest.raises(ResourceNotFoundException):
        azure.execute("PutItem", {"TableName": "orders", "Item": item("a", 1)})
    azure.fault = refuse(GetEntity, error=TableGone())
    with pytest.raises(ResourceNotFoundException):
        azure.execute("GetItem", {"TableName": "orders", "Key": item("a", 1)})


def test_processes_that_create_one_table_at_once_have_it(azure: FakeAzure) -> None:
    """The second one makes the table that the first one has listed; the first one must not take it off the list."""
    other = FakeAzure(tables=azure.tables)

    def make_first(request: Any) -> None:
        azure.fault = lambda request: None
        if isinstance(request, service.MakeTable):
            other.execute("CreateTable", definition("others"))

    azure.fault = lambda request: (
        make_first(request) if isinstance(request, service.MakeTable) else None
    )
    with pytest.raises(ResourceInUseException, match="already exists"):
        azure.execute("CreateTable", definition("others"))
    for each in (azure, other, FakeAzure(tables=azure.tables)):
        assert each.execute("ListTables", {}) == {"TableNames": ["orders", "others"]}
        each.execute("PutItem", {"TableName": "others", "Item": item("a", 1)})


def test_a_table_of_somebody_else_is_not_taken_over(azure: FakeAzure) -> None:
    azure.tables["others"] = {}
    for _ in range(2):
        with pytest.raises(ResourceInUseException, match="that Isotone did not create"):
            azure.execute("CreateTable", definition("others"))
    assert azure.execute("ListTables", {}) == {"TableNames": ["orders"]}


def test_a_creation_whose_answer_was_lost_can_be_finished(azure: FakeAzure) -> None:
    def lose(request: Any) -> None:
        if isinstance(request, service.MakeTable):
            azure.tables[request.table] = {}
            azure.fault = lambda request: None
            raise ConnectionFailed("no answer")

    azure.fault = lose
    with pytest.raises(ConnectionFailed):
        azure.execute("CreateTable", definition("others"))
    with pytest.raises(ResourceInUseException, match="Table already exists: others"):
        azure.execute("CreateTable", definition("others"))
    azure.execute("PutItem", {"TableName": "others", "Item": item("a", 1)})


def test_a_throttled_update_is_tried_again(azure: FakeAzure) -> None:
    azure.fault = refuse(WriteEntity, error=ProvisionedThroughputExceededException("busy"), times=3)
    azure.execute(*increment("orders", item("a", 1)))
    azure.fault = refuse(WriteEntity, error=ProvisionedThroughputExceededException("busy"))
    with pytest.raises(ProvisionedThroughputExceededException):
        azure.execute(*increment("orders", item("a", 1)))


@pytest.mark.parametrize(
    "operation", ["BatchGetItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems"]
)
@pytest.mark.parametrize("entry", [{}, {"Put": {}, "Delete": {}}, {"Get": {}}])
def test_a_malformed_entry_is_refused_in_dynamodbs_words(
    azure: FakeAzure, operation: str, entry: Any
) -> None:
    entries: Any = [entry]
    if operation.startswith("Batch"):
        entries = {"orders": entry if operation == "BatchGetItem" else [entry]}
    member = "TransactItems" if operation.startswith("Transact") else "RequestItems"
    with pytest.raises(ApiError):
        azure.execute(operation, {member: entries})


def reply(status: str, body: Json | None = None) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


@pytest.mark.parametrize("failure", [b"", reply("500 Internal"), reply("503 Unavailable")])
def test_a_conditional_write_is_sent_once(azure: FakeAzure, failure: bytes) -> None:
    """After a lost answer the ETag has changed: to read, execute and write again could add twice."""
    (registered,) = azure.tables["isotonetables"].values()
    stored = {"PartitionKey": "a", "RowKey": "p501.1", "odata.etag": "1"}
    listed = {**registered[0], "odata.etag": "1"}
    with scripted_server(reply("200 OK", listed), reply("200 OK", stored), failure) as server:
        address = server.url.replace("http", "azure-table") + "/devstoreaccount1"
        with (
            AzureTable(address, retries=Retries(base=0.01)) as backend,
            pytest.raises((ConnectionFailed, InternalServerError)),
        ):
            backend.execute(*increment("orders", item("a", 1)))
    methods = [each.partition(b" ")[0] for each in server.requests]
    assert methods == [b"GET", b"GET", b"PUT"]


def test_pauses_of_lost_writes_end_at_the_deadline() -> None:
    """A write of an item that others always change went on for all its attempts, whatever the caller's time."""

    def losing() -> Any:
        for _ in range(50):
            yield service.Sleep(0.02)
        return "all attempts"

    passed: list[float] = []
    sync = service.AzureService(client=None, sleep=passed.append)
    assert sync.run(losing(), None) == "all attempts"
    assert len(passed) == 50
    soon = time.monotonic() + 0.01
    with pytest.raises(DeadlineExceeded, match="longer deadline="):
        sync.run(losing(), soon)
    with pytest.raises(DeadlineExceeded, match="longer deadline="):
        asyncio.run(service.AsyncService(lambda: (None, lambda: None)).run(losing(), soon))
    assert len(passed) == 50


def test_a_refused_creation_leaves_no_trace(azure: FakeAzure) -> None:
    deleting = ResourceInUseException("being deleted")
    azure.fault = refuse(service.MakeTable, error=deleting)
    with pytest.raises(ResourceInUseException, match="being deleted"):
        azure.execute("CreateTable", definition("others"))
    assert azure.execute("ListTables", {}) == {"TableNames": ["orders"]}


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (412, "UpdateConditionNotSatisfied", Conflict),
        (409, "EntityAlreadyExists", Conflict),
        (409, "TableBeingDeleted", ResourceInUseException),
        (404, "ResourceNotFound", service.Absent),
        (404, "TableNotFound", TableGone),
        (409, "TableAlreadyExists", service.TableExists),
        (503, "ServerBusy", ProvisionedThroughputExceededException),
        (500, "OperationTimedOut", InternalServerError),
        (500, "InternalError", InternalServerError),
        (403, "AuthorizationFailure", AccessDeniedException),
        (401, "NoAuthenticationInformation", AccessDeniedException),
        (429, "Unheard", ThrottlingException),
        (400, "EntityTooLarge", ValidationException),
    ],
)
def test_an_error_of_azure(status: int, code: str, expected: type) -> None:
    error = HttpResponseError(message=f"what happened\nRequestId:1\nErrorCode:{code}")
    error.status_code = status
    error.error_code = code  # type: ignore[attr-defined] # as the SDK sets it
    made = translated(error)
    assert type(made) is expected
    assert str(made) == f"Azure Table storage: {code}: what happened"


@pytest.mark.parametrize("kind", [ServiceRequestError, ServiceResponseError])
def test_no_answer(kind: Any) -> None:
    failed = translated(kind("refused"))
    assert isinstance(failed, ConnectionFailed)
    assert failed.sent is (kind is ServiceResponseError)
    other = RuntimeError()
    assert translated(other) is other


def test_an_evaluation_knows_the_table_as_it_is_now() -> None:
    evaluator = Evaluator()
    key = item("a", 1)
    get = {"TableName": "orders", "Key": key}
    first = StoredDefinition(definition("orders"), "orders", 0.0, "1")
    assert evaluator.execute("GetItem", get, [first], [Stored(first, key)]).response["Item"] == key
    assert "Item" not in evaluator.execute("GetItem", get, [first]).response
    request = definition("orders")
    del request["KeySchema"][1], request["AttributeDefinitions"][1]
    second = StoredDefinition(request, "orders", 1.0, "2")
    with pytest.raises(ValidationException):
        evaluator.execute("GetItem", get, [second])
    for number in range(110):  # more than a scratch database remembers
        other = StoredDefinition(definition(f"table-{number}"), "any", 0.0, "3")
        evaluator.execute("GetItem", {**get, "TableName": other.name}, [other])


def test_the_item_of_a_failed_condition_is_plain() -> None:
    azure = FakeAzure()
    azure.execute("CreateTable", definition("orders"))
    put = {
        "TableName": "orders",
        "Item": item("a", 1),
        "ConditionExpression": "attribute_not_exists(pk)",
    }
    azure.execute("PutItem", put)
    with pytest.raises(ConditionalCheckFailedException) as caught:
        azure.execute("PutItem", {**put, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"})
    assert caught.value.members["Item"] == item("a", 1)
