"""Resource policies of tables and streams: revisions, and documents that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import botocore.exceptions
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operations.conftest import Asker, key_schema

import isotone
from isotone import limits
from isotone.errors import ApiError, ValidationException
from isotone.operations.resource_policies import check_policy
from isotone.server import running_server

STATEMENT: dict[str, Any] = {
    "Sid": "readers",
    "Effect": "Allow",
    "Principal": {"AWS": ["arn:aws:iam::111122223333:user/Ann", "444455556666"]},
    "Action": ["dynamodb:GetItem", "dynamodb:Query"],
    "Resource": "*",
    "Condition": {"IpAddress": {"aws:SourceIp": "203.0.113.0/24"}},
}


def document(**changes: Any) -> str:
    """A valid policy, with members of its statement replaced, or removed if None."""
    statement = {**STATEMENT, **changes}
    kept = {name: value for name, value in statement.items() if value is not None}
    return json.dumps({"Version": "2012-10-17", "Id": "x", "Statement": [kept]})


def arn(ask: Asker, name: str = "tab") -> str:
    return str(ask("DescribeTable", TableName=name)["Table"]["TableArn"])


@pytest.fixture(params=["table", "stream"])
def resource(request: pytest.FixtureRequest, ask: Asker) -> str:
    ask.table(StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    if request.param == "table":
        return arn(ask)
    return str(ask("DescribeTable", TableName="tab")["Table"]["LatestStreamArn"])


def test_a_policy_is_returned_as_it_was_attached(ask: Asker, resource: str) -> None:
    text = "  " + document()
    revision = ask("PutResourcePolicy", ResourceArn=resource, Policy=text)["RevisionId"]
    assert ask("GetResourcePolicy", ResourceArn=resource) == {
        "Policy": text,
        "RevisionId": revision,
    }
    assert ask("DeleteResourcePolicy", ResourceArn=resource) == {"RevisionId": revision}
    missing = ask.refused("GetResourcePolicy", ResourceArn=resource)
    assert missing.code == "PolicyNotFoundException"


def test_the_revision_changes_with_the_content(ask: Asker, resource: str) -> None:
    first = ask("PutResourcePolicy", ResourceArn=resource, Policy=document())["RevisionId"]
    again = ask("PutResourcePolicy", ResourceArn=resource, Policy=" " + document())["RevisionId"]
    other = ask("PutResourcePolicy", ResourceArn=resource, Policy=document(Effect="Deny"))
    assert first == again
    assert int(other["RevisionId"]) > int(first)


def test_an_expected_revision_must_be_the_present_one(ask: Asker, resource: str) -> None:
    def put(expected: str) -> dict[str, Any]:
        return ask(
            "PutResourcePolicy",
            ResourceArn=resource,
            Policy=document(Sid=expected),
            ExpectedRevisionId=expected,
        )

    with pytest.raises(ApiError) as caught:
        put("17")
    assert caught.value.code == "PolicyNotFoundException"
    first = put("NO_POLICY")["RevisionId"]
    with pytest.raises(ApiError):
        put("NO_POLICY")
    second = put(first)["RevisionId"]
    with pytest.raises(ApiError):
        put(first)
    stale = ask.refused("DeleteResourcePolicy", ResourceArn=resource, ExpectedRevisionId=first)
    assert stale.code == "PolicyNotFoundException"
    ask("DeleteResourcePolicy", ResourceArn=resource, ExpectedRevisionId=second)
    assert ask("DeleteResourcePolicy", ResourceArn=resource) == {}
    gone = ask.refused("DeleteResourcePolicy", ResourceArn=resource, ExpectedRevisionId=second)
    assert gone.code == "PolicyNotFoundException"


def test_a_table_can_be_created_with_a_policy(ask: Asker) -> None:
    ask.table(ResourcePolicy=document())
    assert ask("GetResourcePolicy", ResourceArn=arn(ask))["Policy"] == document()
    refused = ask.refused(
        "CreateTable",
        TableName="other",
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        KeySchema=key_schema("p"),
        BillingMode="PAY_PER_REQUEST",
        ResourcePolicy="{}",
    )
    assert refused.code == "ValidationException"


def test_a_policy_goes_with_its_table_and_stays_with_its_stream(ask: Asker) -> None:
    for _ in range(2):
        ask.table(StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
        stream = ask("DescribeTable", TableName="tab")["Table"]["LatestStreamArn"]
        assert ask.refused("GetResourcePolicy", ResourceArn=arn(ask)).code[:6] == "Policy"
        for resource in (arn(ask), stream):
            ask("PutResourcePolicy", ResourceArn=resource, Policy=document())
        ask("DeleteTable", TableName="tab")
        assert ask("GetResourcePolicy", ResourceArn=stream)["Policy"] == document()
        ask.clock.advance(1)


@pytest.mark.parametrize("action", ["GetResourcePolicy", "DeleteResourcePolicy"])
def test_only_tables_and_streams_have_policies(ask: Asker, action: str) -> None:
    ask.table()
    present = arn(ask)
    for resource in ("tab", f"{present}/index/by_g", f"{present}/backup/1", "arn:aws:s3:::x"):
        assert ask.refused(action, ResourceArn=resource).code == "ValidationException"
    absent = (
        present + "x",
        present.replace("us-east-1", "eu-west-1"),
        present + "/stream/2020-01-01T00:00:00.000",
    )
    for resource in absent:
        assert ask.refused(action, ResourceArn=resource).code == "ResourceNotFoundException"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "{}",
        '{"Version": "2012-10-17", "Statement": []}',
        '{"Version": "2013-10-17", "Statement": ' + json.dumps(STATEMENT) + "}",
        '{"Statement": ' + json.dumps(STATEMENT) + ', "Other": 1}',
        document(Effect="allow"),
        document(Principal=None),
        document(NotPrincipal="*"),
        document(Principal="Ann"),
        document(Principal={"Person": "Ann"}),
        document(Action=None),
        document(Action=[]),
        document(Action="GetItem"),
        document(Resource=None),
        document(Resource="tab"),
        document(Condition="x"),
        document(Other=1),
    ],
)
def test_a_malformed_document_is_refused(ask: Asker, text: str) -> None:
    ask.table()
    refused = ask.refused("PutResourcePolicy", ResourceArn=arn(ask), Policy=text)
    assert (refused.code, "malformed" in refused.message) == ("ValidationException", True)


def test_a_document_has_at_most_20_kb_with_its_white_space(ask: Asker) -> None:
    ask.table()
    text = document()
    full = text + " " * (limits.POLICY - len(text))
    ask("PutResourcePolicy", ResourceArn=arn(ask), Policy=full)
    refused = ask.refused("PutResourcePolicy", ResourceArn=arn(ask), Policy=full + " ")
    assert refused.code == "ValidationException"
    assert "20480" in refused.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3) | st.just("*"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Version", "Statement", "AWS", "x", *STATEMENT]), inner, max_size=4
        )
    ),
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(STATEMENT, JSON)) | JSON)
def test_random_statements_raise_only_validation_exceptions(statement: Any) -> None:
    for text in (json.dumps({"Statement": statement}), json.dumps(statement)):
        try:
            check_policy(text)
        except ValidationException:
            continue
        assert json.loads(text)["Statement"]


def test_over_http_with_boto3_and_after_the_file_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    with isotone.open(path) as database, running_server(database) as url:
        client = boto3.client(
            "dynamodb",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
        )
        made = client.create_table(
            TableName="tab",
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
            KeySchema=key_schema("p"),
            BillingMode="PAY_PER_REQUEST",
        )
        table = made["TableDescription"]["TableArn"]
        with pytest.raises(client.exceptions.PolicyNotFoundException):
            client.get_resource_policy(ResourceArn=table)
        put = client.put_resource_policy(
            ResourceArn=table, Policy=document(), ConfirmRemoveSelfResourceAccess=True
        )
        with pytest.raises(botocore.exceptions.ClientError):
            client.put_resource_policy(ResourceArn=table, Policy="{}")
    with isotone.open(path) as database:
        got = database.client().get_resource_policy(ResourceArn=table)
        assert (got["Policy"], got["RevisionId"]) == (document(), put["RevisionId"])
