"""The oracle is botocore's own validator and serializer, asked for the same request."""

from __future__ import annotations

import enum
import io
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any, get_args, get_origin

import botocore.session
import pytest
from boto3.dynamodb.types import Binary
from botocore.model import ServiceModel
from botocore.serialize import create_serializer
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta
from tests.client import request_types_writer
from tests.service_model import NOT_SUPPORTED, REQUIRED_WITHOUT_THEM, SERVICES, document

from isotone.client.exceptions import ParamValidationError
from isotone.client.parameters import encode_request, members, request_type, required
from isotone.client.request_types import AttributeValue

MODEL = botocore.session.Session().get_service_model("dynamodb")


class Color(str, enum.Enum):  # noqa: UP042
    """A str that is also an enum member, as application code passes for names."""

    RED = "red"


def botocore_report(operation: str, request: dict[str, Any]) -> str:
    shape = MODEL.operation_model(operation).input_shape
    return ParamValidator().validate(request, shape).generate_report()


def botocore_body(operation: str, request: dict[str, Any]) -> Any:
    serializer = create_serializer("json", include_validation=False)
    model = MODEL.operation_model(operation)
    return json.loads(serializer.serialize_to_request(request, model)["body"])


def scaled_to(target: Any) -> dict[str, Any]:
    policy = {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": target}}
    update = {"ScalingPolicyUpdate": policy}
    return {"TableName": "t", "ProvisionedWriteCapacityAutoScalingUpdate": update}


ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("GetItem", {"TableName": "t", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}}),
    ("GetItem", {"TableName": "t", "Key": {"pk": {"B": b"\x00\xff"}}, "ConsistentRead": True}),
    ("UpdateTableReplicaAutoScaling", scaled_to(70)),
    ("UpdateTableReplicaAutoScaling", scaled_to(70.5)),
    ("UpdateTableReplicaAutoScaling", scaled_to(True)),
    ("GetItem", {"TableName": Color.RED, "Key": {"pk": {"S": Color.RED}}}),
    ("PutItem", {"TableName": "t", "Item": {"a": {"B": "text is sent as UTF-8: é"}}}),
    ("PutItem", {"TableName": "t", "Item": {"a": {"B": bytearray(b"x")}}}),
    ("PutItem", {"TableName": "t", "Item": {"a": {"BS": (b"x", bytearray(b"y"))}}}),
    (
        "PutItem",
        {"TableName": "t", "Item": {"a": {"M": {"b": {"L": [{"B": b"x"}, {"NULL": True}]}}}}},
    ),
    ("PutItem", {"TableName": "t", "Item": {"a": {"L": ()}, "e": {"M": {}}, "s": {"S": ""}}}),
    ("Query", {"TableName": "t", "Limit": 1, "KeyConditionExpression": "pk = :a"}),
    ("BatchWriteItem", {"RequestItems": {"t": [{"PutRequest": {"Item": {"a": {"N": "1"}}}}]}}),
    (
        "TransactWriteItems",
        {"TransactItems": [{"Delete": {"TableName": "t", "Key": {"a": {"S": "b"}}}}]},
    ),
    ("BatchGetItem", {"RequestItems": {}}),
    ("ListTables", {}),
    *(
        ("RestoreTableToPointInTime", {"TargetTableName": "new", "RestoreDateTime": moment})
        for moment in (
            datetime(2026, 11, 22, 12, 30, 5, 999_000, UTC),
            datetime(2026, 11, 22, 12, 30, 5, tzinfo=timezone(timedelta(hours=9))),
            datetime(2026, 11, 22, 12, 30, 5),
            "2026-11-22T12:30:05+00:00",
            1_800_000_000,
        )
    ),
    (
        "UpdateTable",
        {"TableName": "t", "ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}]},
    ),
]

REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("GetItem", {}),
    ("GetItem", {"TableName": "", "Key": {}}),
    ("GetItem", {"TableName": 1, "Key": {"pk": {"S": "a"}}}),
    ("GetItem", {"TableName": "t", "Key": [("pk", "a")]}),
    ("GetItem", {"TableName": "t", "Key": {"pk": "a"}}),
    ("GetItem", {"TableName": "t", "Key": {"pk": {"S": b"bytes are not text"}}}),
    ("GetItem", {"TableName": "t", "Key": {"pk": {"N": 1}}}),
    (
        "GetItem",
        {"TableName": "t", "Key": {"pk": {"N": 1.5, "X": 1}}, "Keys": {}, "tablename": "t"},
    ),
    ("GetItem", {"TableName": "t", "Key": {"pk": {"S": None}}, "ConsistentRead": "yes"}),
    ("GetItem", {"TableName": "t", "Key": {"pk": {"B": 12}}}),
    ("GetItem", {"TableName": "t", "Key": {"pk": {"M": {"a": {"L": [{"S": "x"}, {"S": 1}]}}}}}),
    ("GetItem", {"TableName": "t", "Key": {1: {"S": "a"}}}),
    ("Query", {"TableName": "t", "Limit": 0}),
    ("Scan", {"TableName": "t", "Segment": -1, "TotalSegments": 0, "AttributesToGet": []}),
    ("BatchGetItem", {"RequestItems": {"t": {"Keys": []}}}),
    ("BatchGetItem", {"RequestItems": {"": {"Keys": [{"a": {"S": "b"}}]}}}),
    ("BatchWriteItem", {"RequestItems": {"": [{"PutRequest": {"Item": {"a": {"N": "1"}}}}]}}),
    ("BatchWriteItem", {"RequestItems": {"t": [{"PutRequest": {}}]}}),
    ("TransactWriteItems", {"TransactItems": [{"Update": {"TableName": "t"}}]}),
    ("CreateTable", {"TableName": "t", "KeySchema": [{"AttributeName": "a"}]}),
    ("UpdateTimeToLive", {"TableName": "t", "TimeToLiveSpecification": {"Enabled": True}}),
    ("ListBackups", {"TimeRangeLowerBound": "soon"}),
    ("UpdateTableReplicaAutoScaling", scaled_to("half")),
    ("ListBackups", {"TimeRangeLowerBound": [1], "Limit": 0}),
]


@pytest.mark.parametrize(("operation", "request_"), ACCEPTED)
def test_sends_what_botocore_sends(operation: str, request_: dict[str, Any]) -> None:
    assert json.loads(encode_request(operation, request_)) == botocore_body(operation, request_)


@pytest.mark.parametrize(("operation", "request_"), REFUSED)
def test_refuses_in_botocores_words(operation: str, request_: dict[str, Any]) -> None:
    with pytest.raises(ParamValidationError) as refused:
        encode_request(operation, request_)
    report = botocore_report(operation, request_)
    assert report
    assert str(refused.value) == f"Parameter validation failed:\n{report}"


def test_sends_files_and_boto3_binaries_as_bytes() -> None:
    item = {"a": {"B": Binary(b"abc")}, "b": {"BS": [io.BytesIO(b"abc"), memoryview(b"abd")]}}
    body = json.loads(encode_request("PutItem", {"TableName": "t", "Item": item}))
    assert body["Item"] == {"a": {"B": "YWJj"}, "b": {"BS": ["YWJj", "YWJk"]}}


def test_leaves_the_request_as_it_was() -> None:
    request = {"TableName": "t", "Item": {"a": {"B": "text"}}}
    encode_request("PutItem", request)
    assert request == {"TableName": "t", "Item": {"a": {"B": "text"}}}


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.binary(max_size=3)
names = st.sampled_from(["S", "N", "B", "SS", "BS", "M", "L", "NULL", "BOOL", "Z"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=6,
)


@given(value=values, limit=scalars)
def test_agrees_with_botocore_on_any_request(value: Any, limit: Any) -> None:
    request = {"TableName": "t", "ExclusiveStartKey": {"pk": value}, "Limit": limit}
    report = botocore_report("Query", request)
    if report:
        with pytest.raises(ParamValidationError) as refused:
            encode_request("Query", request)
        assert str(refused.value) == f"Parameter validation failed:\n{report}"
    else:
        assert json.loads(encode_request("Query", request)) == botocore_body("Query", request)


OPERATIONS = [
    (service, operation)
    for service in SERVICES
    for operation in ServiceModel(document(service)).operation_names
]


@pytest.mark.parametrize(("service", "operation"), OPERATIONS)
def test_declared_requests_are_botocores(service: str, operation: str) -> None:
    """Every member that botocore declares, in its order, so that reports name them alike, and with its bounds."""
    theirs = ServiceModel(document(service)).operation_model(operation).input_shape
    compare(request_type(operation), theirs, operation)


def compare(hint: Any, theirs: Any, path: str) -> None:
    bare, bounds = get_args(hint) if get_origin(hint) is Annotated else (hint, Meta())
    least = theirs.metadata.get("min")
    if theirs.type_name != "map":  # whose size botocore does not check
        assert (bounds.min_length or bounds.ge or None) == (least or None), path
    if bare is AttributeValue:
        assert theirs.name == "AttributeValue", path
    elif theirs.type_name == "structure":
        needed = {*theirs.required_members, *REQUIRED_WITHOUT_THEM.get(path, ())}
        assert list(members(bare)) == [each for each in theirs.members if each not in NOT_SUPPORTED]
        assert set(required(bare)) == needed, path
        for name, member in members(bare).items():
            compare(member, theirs.members[name], f"{path}.{name}")
    elif theirs.type_name == "list":
        compare(get_args(bare)[0], theirs.member, f"{path}[]")
    elif theirs.type_name == "map":
        compare(get_args(bare)[0], theirs.key, f"{path}{{key}}")
        compare(get_args(bare)[1], theirs.value, f"{path}{{}}")
    else:
        assert bare is KINDS[theirs.type_name], path


KINDS = {
    "string": str,
    "integer": int,
    "long": int,
    "double": float,
    "boolean": bool,
    "timestamp": datetime,
}


def test_the_declared_requests_are_those_of_the_operations() -> None:
    assert request_types_writer.FILE.read_text(encoding="utf-8") == request_types_writer.text(), (
        "client/request_types.py is not what operations declare: make files"
    )
