"""Files with anything in any place: they are read, or refused in one sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.schema.tables import ALL_FEATURES, SIMPLE
from tests.schema.test_workbench_models import FILES

import isotone
from isotone.errors import ApiError, UsageError
from isotone.schema.deployable import make
from isotone.schema.formats import FORMATS, read_text, written
from isotone.schema.yaml_text import parsed_yaml

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["HASH", "RANGE", "S", "INCLUDE", "PROVISIONED", "${a}", '"a"', "${var.a}"]),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(
        st.sampled_from(["Ref", "Fn::Sub", "Fn::If", "Fn::Join", "Condition", "a", "KeyType", ""]),
        inner,
        max_size=2,
    ),
    max_leaves=5,
)  # fmt: skip
GLOBAL_TABLE = json.dumps(
    {
        "Globals": {"SimpleTable": {"SSESpecification": {"SSEEnabled": True}}},
        "Resources": {
            "Orders": {
                "Type": "AWS::DynamoDB::GlobalTable",
                "Properties": {
                    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                    "BillingMode": "PAY_PER_REQUEST",
                    "WriteOnDemandThroughputSettings": {"MaxWriteRequestUnits": 5},
                    "Replicas": [{"Region": "eu-west-1", "Tags": [{"Key": "a", "Value": "b"}]}],
                },
            },
            "Users": {"Type": "AWS::Serverless::SimpleTable", "Properties": {"Tags": {"a": "b"}}},
        },
    }
)
JSON_FILES = {
    "create-table": [written(ALL_FEATURES, FORMATS["create-table"])[0]],
    "cloudformation-json": [
        written(ALL_FEATURES, FORMATS["cloudformation-json"])[0],
        json.dumps(parsed_yaml(written([SIMPLE], FORMATS["sam"])[0], "file")),
        GLOBAL_TABLE,
    ],
    "nosql-workbench": [path.read_text(encoding="utf-8") for path in FILES],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values in a document."""
    found = [path]
    if isinstance(value, dict | list):
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(each, (*path, name))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A document with another value in one place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def read_and_make(name: str, text: str) -> None:
    try:
        found = read_text(FORMATS[name], text, "file", {})
    except UsageError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert refused.startswith("file")
        assert "\n" not in refused
        return
    with isotone.open(":memory:") as database:
        for table in found.tables:
            try:
                make(database, table)
            except ApiError:
                return
            for form in FORMATS.values():
                written([table], form)


@pytest.mark.parametrize("name", JSON_FILES)
@settings(max_examples=examples(2000), deadline=None)
@given(data=st.data())
def test_another_value_in_any_place(name: str, data: st.DataObject) -> None:
    document = json.loads(data.draw(st.sampled_from(JSON_FILES[name])))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(places(document)))
        document = replaced(document, path, data.draw(ANYTHING))
    read_and_make(name, json.dumps(document))


TERRAFORM = written(ALL_FEATURES, FORMATS["terraform"])[0]
PIECES = st.sampled_from(
    ["", "{", "}", '"', "${", "= ", "[", "]", "\n", "var.a", "local.a", "true", "null", "5", "<<E\nx\nE\n"]
)  # fmt: skip


@settings(max_examples=examples(600), deadline=None)
@given(
    at=st.integers(0, len(TERRAFORM)), length=st.integers(0, 40), piece=PIECES | st.text(max_size=5)
)
def test_another_text_in_any_place_of_terraform(at: int, length: int, piece: str) -> None:
    text = TERRAFORM[:at] + piece + TERRAFORM[at + length :]
    read_and_make("terraform", text)


YAML = written(ALL_FEATURES, FORMATS["cloudformation"])[0]


@settings(max_examples=examples(600), deadline=None)
@given(
    at=st.integers(0, len(YAML)),
    length=st.integers(0, 40),
    piece=st.sampled_from(["!Ref a", "!Sub ", "&a ", "*a", "- ", "? ", "| \n", "{", "[", ": ", "!!x "])
    | st.text(max_size=5),
)  # fmt: skip
def test_another_text_in_any_place_of_yaml(at: int, length: int, piece: str) -> None:
    read_and_make("cloudformation", YAML[:at] + piece + YAML[at + length :])
