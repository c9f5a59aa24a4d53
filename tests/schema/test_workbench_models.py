"""Models of NoSQL Workbench as AWS publishes them: read, written again, made, and modelled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.schema.test_round_trips import described, made

import isotone
from isotone.errors import UsageError
from isotone.schema.deployable import DeployableTable, make
from isotone.schema.formats import FORMATS, ReadTables, read_file, read_text, written

FOLDER = Path(__file__).parent / "models"
FILES = sorted(FOLDER.glob("*.json"))
FORM = FORMATS["nosql-workbench"]


def read(text: str, source: str) -> ReadTables:
    return read_text(FORM, text, source, {})


def table_of(path: Path) -> DeployableTable:
    (table,) = read_file(str(path), {}).tables
    return table


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_published_model_is_read_whole_and_written_again(path: Path) -> None:
    table = table_of(path)
    text, lost = written([table], FORM)
    assert lost == []
    assert read(text, "again.json").tables == [table]
    given, again = (json.loads(each)["DataModel"][0] for each in (path.read_text("utf-8"), text))
    for member in ("TableName", "KeyAttributes", "GlobalSecondaryIndexes"):
        assert again[member] == given[member]
    assert names(again["NonKeyAttributes"]) == names(given["NonKeyAttributes"])


def names(attributes: list[dict[str, str]]) -> set[tuple[str, str]]:
    return {(each["AttributeName"], each["AttributeType"]) for each in attributes}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", ["cloudformation", "terraform", "create-table"])
def test_a_published_model_goes_through_the_other_formats(name: str, path: Path) -> None:
    table, form = table_of(path), FORMATS[name]
    text, lost = written([table], form)
    assert lost == []
    (again,) = read_text(form, text, "again", {}).tables
    assert again.definition == table.definition
    plain = DeployableTable(definition=table.definition)
    assert described(made(again)) == described(made(plain))


@pytest.mark.parametrize(
    ("stem", "entities"),
    [
        ("chat", {"Room", "User"}),
        ("complaints", {"Comm", "Metadata"}),
        ("device_log", {"DeviceStateLog"}),
        ("online_shop", {"Customer", "Product", "Warehouse", "OrderItem"}),
        ("sessions", {"Child", "Suuid"}),
    ],
)
def test_the_sample_items_give_a_model(stem: str, entities: set[str]) -> None:
    table = table_of(FOLDER / f"{stem}.json")
    with isotone.open(":memory:") as database, isotone.connect(database) as store:
        assert make(database, table) == []
        inferred = isotone.infer(store, table.name, verify=True)
    assert inferred.items == len(table.items)
    assert inferred.is_complete
    assert {each.name for each in inferred.entities} == entities


def test_what_a_model_says_of_capacity() -> None:
    chat, log = table_of(FOLDER / "chat.json"), table_of(FOLDER / "device_log.json")
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    assert chat.definition["ProvisionedThroughput"] == units
    assert chat.definition["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] == units
    assert log.definition["BillingMode"] == "PAY_PER_REQUEST"  # a file of version 1.0 does not say
    notes = read_file(str(FOLDER / "chat.json"), {}).notes
    assert notes == [f"{FOLDER / 'chat.json'}: Chat: auto scaling is not read"]


def test_items_in_facets_are_items_of_the_table_once() -> None:
    content = json.loads((FOLDER / "online_shop.json").read_text("utf-8"))
    table = content["DataModel"][0]
    table["TableData"] = table["TableFacets"][0]["TableData"]
    (found,) = read(json.dumps(content), "shop.json").tables
    assert len(found.items) == 7
    assert [facet.name for facet in found.facets] == [
        *("customer", "product", "warehouse", "orderItem"),
    ]
    assert found.attributes["Detail"] == "M"
    assert "GSI1-PK" not in found.attributes


def test_an_item_without_its_key_is_said() -> None:
    content = json.loads((FOLDER / "chat.json").read_text("utf-8"))
    content["DataModel"][0]["TableData"].append({"SK": {"S": "meta"}})
    (found,) = read(json.dumps(content), "chat.json").tables
    with isotone.open(":memory:") as database:
        (refused,) = make(database, found)
        assert refused.startswith("sample item 7, with the key None, {'S': 'meta'}, is not valid: ")
        assert "Missing the key PK" in refused
        assert database.execute("Scan", {"TableName": "Chat", "Select": "COUNT"})["Count"] == 6


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({}, "m.json: has no DataModel, so it is no model of NoSQL Workbench"),
        ({"DataModel": {}}, "m.json: DataModel must be a list, not {}"),
        ({"DataModel": [{}]}, "m.json: DataModel[0] lacks TableName"),
        (
            {"DataModel": [{"TableName": "a", "KeyAttributes": {}}]},
            "m.json: DataModel[0].KeyAttributes lacks PartitionKey",
        ),
        (
            {
                "DataModel": [
                    {
                        "TableName": "a",
                        "KeyAttributes": {
                            "PartitionKey": {"AttributeName": "a", "AttributeType": "S"}
                        },
                        "TableData": [5],
                    }
                ]
            },
            "m.json: DataModel[0] has a sample item that is no object: 5",
        ),
    ],
)
def test_wrong_models_are_refused_in_a_sentence(content: Any, error: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(json.dumps(content), "m.json")
    assert str(caught.value) == error
