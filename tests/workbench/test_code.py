"""Copied code: where it connects to, and how it looks. tests/sdks runs it in every language."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.workbench.page import Browserless

import isotone
from isotone.backends.opening import open_backend
from isotone.server import running_server
from isotone.workbench import Workbench
from isotone.workbench.code import snippets


def test_copied_code_asks_the_region_that_the_page_shows(tmp_path, monkeypatch):
    """Of a server whose regions have tables of their own: that of the page, whatever the terminal's is."""
    request = {"TableName": "Words", "Key": {"id": {"S": "a"}}}
    table = {
        "TableName": "Words",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    with isotone.open(regions=True) as database, running_server(database) as url:
        ireland = database.region("eu-west-1")
        ireland.execute("CreateTable", table)
        ireland.execute("PutItem", {"TableName": "Words", "Item": request["Key"]})
        monkeypatch.setenv("AWS_REGION", "eu-west-1")
        with contextlib.closing(open_backend(url).backend) as remote:
            pages = Workbench(remote, target=url, is_endpoint=False)
            with running_server(database, pages=pages) as own:
                shown = Browserless(own).call("code", {"action": "GetItem", "request": request})
        monkeypatch.delenv("AWS_REGION")
        texts = {each["name"]: each["text"] for each in shown["snippets"]}
        assert 'region: "eu-west-1"' in texts["JavaScript"]
        assert " --region eu-west-1" in texts["AWS CLI"]
        assert texts["isotone call"].startswith("AWS_REGION=eu-west-1 isotone call ")
        for name in ("Isotone", "boto3"):
            names: dict[str, Any] = {}
            exec(compile(texts[name], name, "exec"), names)
            (names.get("store") or names["client"]).close()
            assert names["response"]["Item"] == request["Key"]


def test_the_region_is_named_where_the_environment_has_another(monkeypatch):
    request = {"TableName": "t", "Key": {}}
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    for set_, is_named in (("", False), ("us-east-1", False), ("eu-west-1", True)):
        monkeypatch.setenv("AWS_REGION", set_)
        texts = {
            each["name"]: each["text"]
            for each in snippets("GetItem", request, "http://localhost:8000")
        }
        assert ('region="us-east-1"' in texts["Isotone"]) == is_named
        assert ("AWS_REGION=us-east-1 isotone" in texts["isotone call"]) == is_named


@pytest.mark.parametrize(
    ("target", "region"),
    [
        ("dynamodb://", "eu-west-1"),
        ("dynamodb://us-west-2", "us-west-2"),
        ("https://dynamodb.us-west-2.amazonaws.com", "us-west-2"),
        ("http://localhost:8000", "eu-west-1"),
    ],
)
def test_the_region_of_an_address_wins(target, region):
    for each in snippets("GetItem", {"TableName": "t", "Key": {}}, target, "eu-west-1"):
        if each["name"] in ("boto3", "JavaScript", "AWS CLI"):
            assert region in each["text"], each["text"]
            assert ("any" in each["text"]) == target.startswith("http:")


def test_copied_code_keeps_the_parameters_of_an_address():
    target = "dynamodb://eu-west-1?profile=my%20work&fips=true&dualstack=true"
    texts = {
        each["name"]: each["text"]
        for each in snippets("GetItem", {"TableName": "t", "Key": {}}, target)
    }
    assert 'boto3.Session(profile_name="my work")' in texts["boto3"]
    assert "config=Config(use_fips_endpoint=True, use_dualstack_endpoint=True)" in texts["boto3"]
    for option in ('profile: "my work"', "useFipsEndpoint: true", "useDualstackEndpoint: true"):
        assert option in texts["JavaScript"]
    assert " --profile 'my work'" in texts["AWS CLI"]
    for variable in ("AWS_USE_FIPS_ENDPOINT=true ", "AWS_USE_DUALSTACK_ENDPOINT=true "):
        assert variable in texts["AWS CLI"]


def test_boto3_connects_with_the_parameters_of_an_address(tmp_path, monkeypatch):
    (tmp_path / "config").write_text(
        "[profile work]\naws_access_key_id = theirs\naws_secret_access_key = s\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    target = "dynamodb://eu-west-1?profile=work&fips=true&dualstack=true"
    (text,) = [
        each["text"]
        for each in snippets("GetItem", {"TableName": "t", "Key": {}}, target)
        if each["name"] == "boto3"
    ]
    names: dict[str, Any] = {}
    exec(compile(text.partition("response = ")[0], "boto3", "exec"), names)
    client = names["client"]
    client.close()
    assert client.meta.endpoint_url == "https://dynamodb-fips.eu-west-1.api.aws"
    assert client._request_signer._credentials.access_key == "theirs"


LONG = {f":value{number}": {"S": f"it's number {number}"} for number in range(9)}


@pytest.mark.parametrize(
    "request_",
    [
        {"TableName": "t"},
        {"TableName": "t", "ExpressionAttributeValues": LONG, "FilterExpression": "a = :b " * 20},
        {
            "TableName": "t",
            "Limit": 1,
            "Item": {"l": {"L": [{"M": LONG}, {"BS": ["AAE=", "Jw=="]}]}},
        },
        {
            "TableName": "t",
            "Item": {"a": {"S": "both \" and '"}, "b": {"S": "\n\\"}, "c": {"NULL": True}},
        },
        {"TableName": "t" * 66, "Limit": 1},
        {"TableName": "t" * 67, "Limit": 1},
        {},
    ],
)
@pytest.mark.parametrize(
    ("target", "region"),
    [
        ("shop.db", "us-east-1"),
        ("http://localhost:8000", "eu-west-1"),
        (f"https://{'long.' * 12}example.com:8000", "eu-west-1"),
        ("dynamodb://eu-west-1?profile=work&fips=true", "us-east-1"),
    ],
)
def test_copied_python_is_what_a_formatter_writes(request_, target, region):
    for action in ("Scan", "PutItem"):
        for each in snippets(action, request_, target, region):
            if each["language"] == "python":
                assert formatted(each["text"]) == each["text"]


def formatted(text: str) -> str:
    """The text as ruff formats it without any configuration."""
    ruff = Path(sys.executable).with_name("ruff")
    done = subprocess.run(
        [ruff, "format", "--isolated", "--stdin-filename", "copied.py", "-"],
        input=text.encode(),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode()
