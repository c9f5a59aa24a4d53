"""Design files of AWS's tool: what works, what DynamoDB refuses, and what is odd, each said where it is."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from isotone.errors import UsageError
from isotone.mcp.data_models import FILE_NAME, read_data_model, validate


def item(customer: str, placed_at: str, status: str) -> dict[str, Any]:
    values = {"customer": customer, "placed_at": placed_at, "status": status}
    return {"PutRequest": {"Item": {name: {"S": value} for name, value in values.items()}}}


def query(*options: str, **values: str) -> str:
    typed = json.dumps({f":{name}": {"S": value} for name, value in values.items()})
    return (
        f"aws dynamodb query --table-name Orders --expression-attribute-values '{typed}' "
        + " ".join(options)
    )


OF_CUSTOMER = "--key-condition-expression 'customer = :c'"
BY_STATUS = (
    "--index-name ByStatus --key-condition-expression '#s = :s' "
    """--expression-attribute-names '{"#s": "status"}'"""
)
DESIGN: dict[str, Any] = {
    "tables": [
        {
            "TableName": "Orders",
            "AttributeDefinitions": [
                {"AttributeName": "customer", "AttributeType": "S"},
                {"AttributeName": "placed_at", "AttributeType": "S"},
                {"AttributeName": "status", "AttributeType": "S"},
            ],
            "KeySchema": [
                {"AttributeName": "customer", "KeyType": "HASH"},
                {"AttributeName": "placed_at", "KeyType": "RANGE"},
            ],
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": "ByStatus",
                    "KeySchema": [
                        {"AttributeName": "status", "KeyType": "HASH"},
                        {"AttributeName": "placed_at", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
            "BillingMode": "PAY_PER_REQUEST",
        }
    ],
    "items": {
        "Orders": [
            item("ann", "2026-01-11", "OPEN"),
            item("ann", "2026-02-01", "PAID"),
            item("bob", "2026-01-12", "OPEN"),
        ]
    },
    "access_patterns": [
        {
            "pattern": "1",
            "description": "the orders of a customer, the newest first",
            "table": "Orders",
            "dynamodb_operation": "Query",
            "implementation": query(OF_CUSTOMER, "--no-scan-index-forward", c="ann"),
        },
        {
            "pattern": "2",
            "description": "open orders",
            "table": "Orders",
            "index": "ByStatus",
            "dynamodb_operation": "Query",
            "implementation": query(BY_STATUS, s="OPEN"),
        },
        {
            "pattern": "3",
            "description": "pay an order",
            "table": "Orders",
            "dynamodb_operation": "UpdateItem",
            "implementation": "aws dynamodb update-item --table-name Orders --key "
            """'{"customer": {"S": "bob"}, "placed_at": {"S": "2026-01-12"}}' """
            "--update-expression 'SET #s = :p' --expression-attribute-names "
            """'{"#s": "status"}' --expression-attribute-values '{":p": {"S": "PAID"}}'""",
        },
        {
            "pattern": "4",
            "description": "search by text",
            "reason": "OpenSearch does it",
        },
    ],
}


def changed(**patterns: Any) -> dict[str, Any]:
    """The design with another first pattern."""
    design = copy.deepcopy(DESIGN)
    design["access_patterns"] = [{**design["access_patterns"][0], **patterns}]
    return design


def test_a_design_that_works() -> None:
    found = validate(DESIGN)
    assert found["valid"]
    assert (found["passed"], found["failed"], found["not_tried"]) == (3, 0, 1)
    assert found["tables"] == [{"table": "Orders", "made": True}]
    assert found["items"] == [{"table": "Orders", "put": 3, "refused": []}]
    of_customer, by_status, pay, search = found["patterns"]
    assert of_customer["items"] == 2
    assert [each["placed_at"]["S"] for each in of_customer["first_items"]] == [
        "2026-02-01",
        "2026-01-11",
    ]
    assert of_customer["units"] == 0.5
    assert of_customer["notes"] == []
    assert by_status["items"] == 2
    assert pay["passed"]
    assert "items" not in pay
    assert search == {
        "pattern": "4",
        "description": "search by text",
        "passed": None,
        "reason": "OpenSearch does it",
    }


def test_patterns_see_what_those_before_them_have_written() -> None:
    design = copy.deepcopy(DESIGN)
    design["access_patterns"].append(design["access_patterns"][1])
    assert validate(design)["patterns"][-1]["items"] == 1


def test_a_table_that_dynamodb_refuses_is_said_in_its_words() -> None:
    design = copy.deepcopy(DESIGN)
    unused = {"AttributeName": "total", "AttributeType": "N"}
    design["tables"][0]["AttributeDefinitions"].append(unused)
    found = validate(design)
    assert not found["valid"]
    (table,) = found["tables"]
    assert not table["made"]
    assert "AttributeDefinitions" in table["error"]
    assert found["items"][0]["refused"][0]["item"] == 1
    assert found["failed"] == 3


def test_each_item_that_is_refused_is_named() -> None:
    design = copy.deepcopy(DESIGN)
    design["items"]["Orders"][1] = {"PutRequest": {"Item": {"customer": {"S": "ann"}}}}
    design["items"]["Orders"].append({"Put": {}})
    found = validate(design)
    assert not found["valid"]
    first, second = found["items"][0]["refused"]
    assert found["items"][0]["put"] == 2
    assert first["item"] == 2
    assert "Missing the key placed_at in the item" in first["error"]
    assert second["item"] == 4
    assert "PutRequest" in second["error"]


@pytest.mark.parametrize(
    ("implementation", "error"),
    [
        (query("--key-condition-expression 'amount = :c'", c="ann"), "Query condition missed key"),
        (query(OF_CUSTOMER, "--index-name Nothing", c="ann"), "does not have the specified index"),
        ("aws dynamodb delete-table --table-name Orders", "no operation on items"),
        ("psql -c 'select 1'", "begins with 'aws dynamodb'"),
        (17, "begins with 'aws dynamodb'"),
    ],
)
def test_a_pattern_that_fails_says_why(implementation: Any, error: str) -> None:
    found = validate(changed(implementation=implementation))
    assert not found["valid"]
    (pattern,) = found["patterns"]
    assert pattern["passed"] is False
    assert error in pattern["error"]


@pytest.mark.parametrize(
    ("pattern", "note"),
    [
        ({"implementation": query(OF_CUSTOMER, c="zoe")}, "no sample item answers it"),
        ({"dynamodb_operation": "GetItem"}, "the file says GetItem, and its command is a Query"),
        ({"table": "Other"}, "the file names table Other, and its command Orders"),
        ({"index": "ByStatus"}, "names index ByStatus, and its command reads the table"),
        (
            {"implementation": "aws dynamodb scan --table-name Orders"},
            "a Scan reads the whole table",
        ),
        (
            {
                "implementation": query(
                    OF_CUSTOMER, "--filter-expression 'begins_with(placed_at2, :c)'", c="ann"
                )
            },
            "its filter drops 2 of 2 items",
        ),
    ],
)
def test_what_is_odd_about_a_pattern_is_noted(pattern: dict[str, Any], note: str) -> None:
    (found,) = validate(changed(**pattern))["patterns"]
    assert found["passed"] is True
    assert any(note in each for each in found["notes"]), found["notes"]


@pytest.mark.parametrize(
    ("command", "count"),
    [
        (query(OF_CUSTOMER, "--select COUNT", c="ann"), 2),
        ("aws dynamodb scan --table-name Orders --select COUNT", 3),
    ],
)
def test_a_count_is_an_answer_without_items(command: str, count: int) -> None:
    (found,) = validate(changed(implementation=command))["patterns"]
    assert (found["items"], found["first_items"]) == (count, [])
    assert not any("no sample item" in each for each in found["notes"])


def test_lint_looks_at_the_tables() -> None:
    design = copy.deepcopy(DESIGN)
    design["items"]["Orders"] = [item("one", str(number), "OPEN") for number in range(1, 31)]
    codes = {each["code"] for each in validate(design)["findings"]}
    assert "ISO101" in codes, "10 sorts before 2"


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ([], "a design file is a JSON object"),
        ({}, "has 'tables', a list; here it is nothing"),
        ({"tables": {}}, "has 'tables', a list"),
        ({"tables": [], "items": []}, "has 'items', an object"),
        ({"tables": [], "items": {}}, "has 'access_patterns', a list"),
    ],
)
def test_what_is_no_design_file_is_refused(document: Any, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        validate(document)
    assert why in str(refused.value)


def test_odd_entries_fail_alone() -> None:
    found = validate({"tables": [3], "items": {"Orders": 3}, "access_patterns": [3]})
    assert not found["valid"]
    assert (found["failed"], len(found["items"][0]["refused"])) == (1, 1)


# The file


def test_a_file_is_read_in_its_folder_alone(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "design").mkdir(parents=True)
    (folder / FILE_NAME).write_text(json.dumps(DESIGN))
    (folder / "design" / "other.json").write_text("{}")
    (tmp_path / "secret.json").write_text('{"password": "x"}')
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    assert read_data_model(folder, None) == DESIGN
    assert read_data_model(folder, "design/other.json") == {}
    for path in ("../secret.json", str(tmp_path / "secret.json"), "link.json"):
        with pytest.raises(UsageError, match="is outside of"):
            read_data_model(folder, path)


def test_what_cannot_be_read_is_said_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("password=hunter2")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    (tmp_path / "c.txt").write_text("{}")
    for name, why in (
        ("a.json", "not valid JSON"),
        ("b.json", "not a text in UTF-8"),
        ("c.txt", r"there is no \.json file"),
        ("d.json", r"there is no \.json file"),
        (".", r"there is no \.json file"),
        ("a\0.json", "is no path"),
    ):
        with pytest.raises(UsageError, match=why) as refused:
            read_data_model(tmp_path, name)
        assert "hunter2" not in str(refused.value)
