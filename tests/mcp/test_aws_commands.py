"""Command lines of AWS's tool, read as actions: what is known is read as the tool would, and the rest is refused."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.errors import UsageError
from isotone.mcp.aws_commands import action_of


def test_a_query_as_the_tool_writes_it() -> None:
    command = action_of(
        "aws dynamodb query --table-name Orders --index-name GSI1 \\\n"
        "  --key-condition-expression '#s = :s AND placed_at > :from' \\\n"
        """  --expression-attribute-names '{"#s":"status"}' """
        """--expression-attribute-values '{":s":{"S":"it'"'"'s"},":from":{"S":"2026"}}' """
        "--no-scan-index-forward --limit 10 --return-consumed-capacity TOTAL "
        "--endpoint-url http://localhost:8000 --region us-east-1 --output json --no-cli-pager"
    )
    assert command == (
        "Query",
        {
            "TableName": "Orders",
            "IndexName": "GSI1",
            "KeyConditionExpression": "#s = :s AND placed_at > :from",
            "ExpressionAttributeNames": {"#s": "status"},
            "ExpressionAttributeValues": {":s": {"S": "it's"}, ":from": {"S": "2026"}},
            "ScanIndexForward": False,
            "Limit": 10,
            "ReturnConsumedCapacity": "TOTAL",
        },
    )


def test_switches_lists_and_a_whole_request() -> None:
    assert action_of("aws dynamodb get-item --consistent-read --table-name=T").request == {
        "ConsistentRead": True,
        "TableName": "T",
    }
    assert action_of("aws dynamodb scan --scan-index-forward").request["ScanIndexForward"] is True
    whole = """aws dynamodb put-item --cli-input-json '{"TableName": "T"}' --item '{}'"""
    assert action_of(whole) == ("PutItem", {"TableName": "T", "Item": {}})
    assert action_of("aws dynamodb scan --attributes-to-get a").request == {
        "AttributesToGet": ["a"]
    }


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("aws dynamodb scan --region=eu-west-1 --output=json --query='Items[0]'", {}),
        (
            "aws --region eu-west-1 --no-cli-pager dynamodb --output=text scan --limit 1",
            {"Limit": 1},
        ),
        (
            "aws dynamodb scan --attributes-to-get a b --limit 1",
            {"AttributesToGet": ["a", "b"], "Limit": 1},
        ),
        ("""aws dynamodb scan --attributes-to-get '["a","b"]'""", {"AttributesToGet": ["a", "b"]}),
        ("aws dynamodb scan \\\r\n  --table-name T \\\n --limit 1", {"TableName": "T", "Limit": 1}),
        (
            """aws dynamodb scan --cli-input-json '{"TableName":"a","Limit":1}' --table-name b""",
            {"TableName": "b", "Limit": 1},
        ),
        (
            """aws dynamodb scan --table-name b --cli-input-json '{"TableName":"a","Limit":1}'""",
            {"TableName": "b", "Limit": 1},
        ),
        (
            """aws dynamodb execute-statement --parameters '{"S":"a"}' --statement s""",
            {"Parameters": [{"S": "a"}], "Statement": "s"},
        ),
        (
            """aws dynamodb execute-statement --parameters '{"S":"a"}' '{"N":"1"}'""",
            {"Parameters": [{"S": "a"}, {"N": "1"}]},
        ),
        (
            """aws dynamodb transact-write-items --transact-items='[{"Put":{}}]'""",
            {"TransactItems": [{"Put": {}}]},
        ),
        (
            """aws dynamodb transact-write-items --transact-items '{"Put":{}}'""",
            {"TransactItems": [{"Put": {}}]},
        ),
    ],
)
def test_the_forms_that_the_tool_allows(text: str, request_: dict[str, Any]) -> None:
    assert action_of(text).request == request_


@given(
    st.dictionaries(st.text(min_size=1), st.text().map(lambda text: {"S": text}), max_size=4),
    st.text(min_size=1),
)
def test_any_request_that_a_shell_can_quote_comes_back(item: dict[str, Any], name: str) -> None:
    # a line that ends with \ goes on in the next, in the tool's examples
    words = ["--item", json.dumps(item), "--table-name", re.sub(r"\\\r?\n", "", name)]
    text = "aws dynamodb put-item " + shlex.join(words)
    assert action_of(text) == ("PutItem", {"Item": item, "TableName": words[3]})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "begins with 'aws dynamodb'"),
        ("aws s3 rm x", "begins with 'aws dynamodb'"),
        ("aws dynamodb", "begins with 'aws dynamodb'"),
        ("aws dynamodb delete-table --table-name T", "no operation on items"),
        ("aws dynamodb query --table-name 'T", "not a command line: No closing quotation"),
        ("aws dynamodb query --table-name", "--table-name has no value"),
        ("aws dynamodb query T", "'T' is no option"),
        ("aws dynamodb query --frobnicate x", "--frobnicate is no option"),
        ("aws dynamodb query --no-table-name x", "--no-table-name is no option"),
        ("aws dynamodb query --limit many", "--limit 'many' is not a number"),
        ("aws dynamodb get-item --key id={S=a}", "must be JSON"),
        ("aws dynamodb get-item --key file://key.json", "names a file"),
        ("aws dynamodb get-item --key '{'", "--key is not valid JSON"),
        ("aws dynamodb get-item --cli-input-json '[]'", "must be a JSON object"),
        ("aws dynamodb scan --table-name T | jq .", "without '|'"),
        ("aws dynamodb scan --table-name T && rm -rf x", "without '&&'"),
        ("aws dynamodb scan --table-name T --table-name U", "given twice"),
        ("aws dynamodb scan --consistent-read=false", "--consistent-read takes no value"),
        ("aws dynamodb query --no-scan-index-forward=1", "--no-scan-index-forward takes no value"),
        ("aws dynamodb scan --consistent-read false", "'false' is no option"),
        ("aws dynamodb scan --consistent-read --no-consistent-read", "given twice"),
        ("aws dynamodb scan --debug=1", "--debug takes no value"),
        ("aws --region", "--region has no value"),
        ("aws dynamodb scan --attributes-to-get a | jq .", "without '|'"),
        ("aws dynamodb scan --attributes-to-get=a b", "'b' is no option"),
        ("aws dynamodb put-item --item '[]'", "--item must be a JSON object"),
        ("aws dynamodb execute-statement --parameters a", "--parameters must be JSON"),
        ("""aws dynamodb execute-statement --parameters '{"S":"a"}' '[]'""", "a JSON object"),
    ],
)
def test_what_is_not_known_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        action_of(text)
    assert why in str(refused.value)


@given(st.text())
def test_no_text_raises_another_error(text: str) -> None:
    for line in (text, "aws dynamodb query " + text):
        with contextlib.suppress(UsageError):
            action_of(line)
