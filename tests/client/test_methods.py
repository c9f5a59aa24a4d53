from __future__ import annotations

import json
import pickle
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import boto3
import botocore.exceptions
import pytest

from isotone import errors
from isotone.client import Client


class Service:
    """Answers each call with what it was given, and remembers the calls."""

    def __init__(self, answer: dict[str, Any] | errors.ApiError) -> None:
        self.answer = answer
        self.calls: list[tuple[str, Any]] = []

    def __call__(self, operation: str, body: bytes) -> bytes:
        self.calls.append((operation, json.loads(body)))
        if isinstance(self.answer, errors.ApiError):
            raise self.answer
        return json.dumps(self.answer, separators=(",", ":")).encode()


def answering(answer: Any) -> Client:
    return Client(Service(answer))


def boto3_client() -> Any:
    return boto3.client(
        "dynamodb", region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b"
    )


def test_calls_the_action_with_its_request() -> None:
    service = Service({"Attributes": {"n": {"N": "1"}}})
    response = Client(service).update_item(
        TableName="t", Key={"pk": {"S": "a"}}, UpdateExpression="ADD n :one"
    )
    assert response["Attributes"] == {"n": {"N": "1"}}
    assert service.calls == [
        (
            "UpdateItem",
            {"TableName": "t", "Key": {"pk": {"S": "a"}}, "UpdateExpression": "ADD n :one"},
        )
    ]


# Actions that the service has, but the botocore of the tests does not know yet.
NEWER = {
    "cancel_bulk_operation": "CancelBulkOperation",
    "describe_bulk_operation": "DescribeBulkOperation",
    "list_bulk_operations": "ListBulkOperations",
    "search_vectors": "SearchVectors",
    "start_bulk_put_items": "StartBulkPutItems",
}


def test_has_every_method_of_boto3() -> None:
    # The installed boto3 may be older than the newest actions.
    theirs = {**NEWER, **boto3_client().meta.method_to_api_mapping}
    assert answering({}).meta.method_to_api_mapping == theirs
    assert all(callable(getattr(Client, name)) for name in theirs)


def test_describes_itself_as_boto3_does() -> None:
    ours, theirs = Client(Service({}), region_name="eu-west-1").meta, boto3_client().meta
    assert (ours.region_name, ours.endpoint_url) == (theirs.region_name, theirs.endpoint_url)


def test_refuses_positional_arguments() -> None:
    with pytest.raises(TypeError):
        answering({}).get_item("t")  # type: ignore[call-arg, misc]


def test_adds_response_metadata() -> None:
    client = answering({})
    first, second = (client.list_tables()["ResponseMetadata"] for _ in range(2))
    assert first["HTTPStatusCode"] == 200
    assert first["RetryAttempts"] == 0
    assert first["HTTPHeaders"]["x-amzn-requestid"] == first["RequestId"] != second["RequestId"]
    assert len(first["RequestId"]) == 52


def test_binary_values_come_out_as_bytes() -> None:
    item = {
        "B": {"B": "AP8="},
        "BS": {"BS": ["YQ==", "Yg=="]},
        "M": {"M": {"B": {"L": [{"B": ""}, {"S": "B"}]}, "L": {"S": '"B":'}}},
    }
    assert answering({"Items": [item]}).scan(TableName="t")["Items"] == [
        {
            "B": {"B": b"\x00\xff"},
            "BS": {"BS": [b"a", b"b"]},
            "M": {"M": {"B": {"L": [{"B": b""}, {"S": "B"}]}, "L": {"S": '"B":'}}},
        }
    ]


def test_times_come_out_as_aware_datetimes() -> None:
    table = {"CreationDateTime": 1700000000.123, "ItemCount": 3, "TableStatus": "ACTIVE"}
    described = answering({"Table": table}).describe_table(TableName="t")["Table"]
    assert described["CreationDateTime"] == datetime(2023, 11, 14, 22, 13, 20, 123000, UTC)
    assert described["CreationDateTime"].tzinfo is not None
    assert described["ItemCount"] == 3


def test_attributes_called_like_times_stay_numbers() -> None:
    item = {"DateTime": {"N": "17"}}
    assert answering({"Item": item}).get_item(TableName="t", Key={})["Item"] == item


REFUSAL = errors.ConditionalCheckFailedException(
    "The conditional request failed", Item={"pk": {"B": "YQ=="}}
)


def test_an_error_is_isotones_and_botocores() -> None:
    client = answering(REFUSAL)
    for caught in (
        errors.ConditionalCheckFailedException,
        client.exceptions.ConditionalCheckFailedException,
        client.exceptions.ClientError,
        botocore.exceptions.ClientError,
    ):
        with pytest.raises(caught):
            client.put_item(TableName="t", Item={})


def test_an_error_carries_what_botocore_parses() -> None:
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        answering(REFUSAL).put_item(TableName="t", Item={})
    error = caught.value
    assert str(error) == (
        "An error occurred (ConditionalCheckFailedException) when calling the PutItem operation: "
        "The conditional request failed"
    )
    assert error.operation_name == "PutItem"
    metadata = error.response.pop("ResponseMetadata")
    assert metadata["HTTPStatusCode"] == 400
    assert error.response == {
        "Error": {
            "Message": "The conditional request failed",
            "Code": "ConditionalCheckFailedException",
        },
        "message": "The conditional request failed",
        "Item": {"pk": {"B": b"a"}},
    }
    assert REFUSAL.members == {"Item": {"pk": {"B": "YQ=="}}}, "the service's error is its own"


def test_cancellation_reasons_are_at_the_top() -> None:
    reasons = [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Message": "no"}]
    failure = errors.TransactionCanceledException(
        "Transaction cancelled", CancellationReasons=reasons
    )
    client = answering(failure)
    with pytest.raises(client.exceptions.TransactionCanceledException) as caught:
        client.transact_write_items(TransactItems=[{}])
    response = caught.value.response
    assert response["CancellationReasons"] == reasons
    assert response["Message"] == "Transaction cancelled"


def test_an_undeclared_error_is_a_client_error() -> None:
    client = answering(errors.ValidationException("One or more parameter values were invalid"))
    with pytest.raises(errors.ValidationException) as caught:
        client.scan(TableName="t")
    assert set(caught.value.response) == {"Error", "ResponseMetadata"}
    with pytest.raises(AttributeError, match="Valid exceptions are: "):
        _ = client.exceptions.ValidationException


def test_has_the_exceptions_of_boto3() -> None:
    ours, theirs = answering({}).exceptions, boto3_client().exceptions
    for code in theirs._code_to_exception:
        assert getattr(ours, code).__name__ == code
        assert issubclass(getattr(ours, code), errors.ApiError)
        assert ours.from_code(code) is getattr(ours, code)
    assert ours.from_code("ValidationException") is botocore.exceptions.ClientError


def test_exceptions_are_made_like_botocores() -> None:
    """As code under test that raises them itself does."""
    client = answering({})
    made = client.exceptions.ConditionalCheckFailedException(
        {"Error": {"Code": "ConditionalCheckFailedException", "Message": "no"}, "Item": {}},
        "PutItem",
    )
    assert str(made) == (
        "An error occurred (ConditionalCheckFailedException) when calling the PutItem operation: no"
    )
    assert (made.code, made.message, made.members) == (
        "ConditionalCheckFailedException",
        "no",
        {"Item": {}},
    )


def test_errors_can_be_pickled() -> None:
    with pytest.raises(errors.ConditionalCheckFailedException) as caught:
        answering(REFUSAL).put_item(TableName="t", Item={})
    copy = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(copy, errors.ConditionalCheckFailedException)
    assert isinstance(copy, botocore.exceptions.ClientError)
    assert (copy.response, str(copy)) == (caught.value.response, str(caught.value))


def test_parameter_errors_are_botocores_too() -> None:
    client = answering({})
    with pytest.raises(botocore.exceptions.ParamValidationError, match='"TableName"'):
        client.get_item(Key={})  # type: ignore[typeddict-item]
    with pytest.raises(errors.UsageError):
        client.get_item(Key={})  # type: ignore[typeddict-item]


WITHOUT_BOTOCORE = """
import sys
from isotone import errors
from isotone.client import Client

def execute(operation, body):
    raise errors.ResourceNotFoundException("Requested resource not found")

client = Client(execute)
try:
    client.scan(TableName="t")
except client.exceptions.ResourceNotFoundException as error:
    assert error.response["Error"]["Code"] == "ResourceNotFoundException"
    assert error.operation_name == "Scan"
try:
    client.scan()
except errors.UsageError as error:
    assert str(error) == 'Parameter validation failed:\\nMissing required parameter in input: "TableName"'
assert issubclass(client.exceptions.ClientError, errors.ApiError)
assert not {"botocore", "boto3"} & set(sys.modules)
"""


def test_needs_no_botocore() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_BOTOCORE], check=True, timeout=30)


def test_waits_until_a_table_is_active() -> None:
    statuses = iter(["CREATING", "CREATING", "ACTIVE"])

    def execute(operation: str, body: bytes) -> bytes:
        return json.dumps({"Table": {"TableStatus": next(statuses)}}).encode()

    Client(execute).get_waiter("table_exists").wait(TableName="t")
    assert list(statuses) == []


def test_waits_until_a_table_is_gone() -> None:
    missing = errors.ResourceNotFoundException("Requested resource not found: Table: t not found")
    client = answering(missing)
    client.get_waiter("table_not_exists").wait(TableName="t")
    with pytest.raises(botocore.exceptions.WaiterError, match="Max attempts exceeded"):
        client.get_waiter("table_exists").wait(
            TableName="t", WaiterConfig={"Delay": 0, "MaxAttempts": 2}
        )


def test_a_waiter_reports_other_errors() -> None:
    client = answering(errors.ValidationException("bad name"))
    with pytest.raises(botocore.exceptions.WaiterError, match="ValidationException"):
        client.get_waiter("table_exists").wait(TableName="t")


def test_refuses_unknown_waiters_and_paginators() -> None:
    client = answering({})
    assert client.waiter_names == [
        "bulk_operation_completed",
        "export_completed",
        "import_completed",
        "table_exists",
        "table_not_exists",
    ]
    with pytest.raises(ValueError, match="Waiter does not exist: tea"):
        client.get_waiter("tea")
    assert not client.can_paginate("get_item")
    with pytest.raises(ValueError, match="Operation cannot be paginated: get_item"):
        client.get_paginator("get_item")
