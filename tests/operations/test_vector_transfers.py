"""Vector indexes of tables that are imported, exported, and restored to a moment."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.operations.test_transfers import START, Transfers, ask
from tests.operations.test_vectors import DIVIDED, TYPES, near, vector

from isotone.operations.transfers import loading

__all__ = ["ask"]

INDEXES = [near(**DIVIDED), near("other", DistanceFunction="DOT_PRODUCT")]
ATTRIBUTES = [{"AttributeName": name, "AttributeType": kind} for name, kind in TYPES.items()]
KEYED = [{"AttributeName": "p", "AttributeType": "S"}, *ATTRIBUTES]


def item(number: int, **more: Any) -> dict[str, Any]:
    """An item on a spiral, in one of two partitions; each third has no vector."""
    made = {"p": {"S": f"p{number:03}"}, "g": {"S": f"g{number % 2}"}, **more}
    return made if number % 3 == 2 else {"v": vector(number, 50 - number), **made}


def found(ask: Transfers, table: str) -> list[Any]:
    """The results of three searches."""
    query = vector(1, 2)["L"]
    every = {"TableName": table, "SearchVector": query, "TopK": 100}
    divided = [
        ask(
            "SearchVectors",
            **every,
            IndexName="near",
            SearchConditionExpression="g = :g",
            ExpressionAttributeValues={":g": {"S": group}},
        )["SearchResults"]
        for group in ("g0", "g1")
    ]
    return [*divided, ask("SearchVectors", **every, IndexName="other")["SearchResults"]]


def fill(ask: Transfers, table: str = "vec") -> None:
    ask.table(table, types=TYPES, VectorIndexes=INDEXES)
    ask.recovery(table)
    for number in range(30):
        ask.put(table, **item(number))


@pytest.mark.parametrize("form", ["DYNAMODB_JSON", "ION"])
def test_an_export_is_imported_with_vector_indexes(
    ask: Transfers, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(loading, "SLICE", 7)
    fill(ask)
    export = ask.export("vec", ExportFormat=form)
    assert export["ItemCount"] == 30
    parameters = {"AttributeDefinitions": KEYED, "VectorIndexes": INDEXES}
    done = ask.load(
        "exports", InputFormat=form, InputCompressionType="GZIP", table_parameters=parameters
    )
    assert (done["ImportStatus"], done["ImportedItemCount"]) == ("COMPLETED", 30)
    assert done["TableCreationParameters"]["VectorIndexes"] == INDEXES
    described = ask("DescribeTable", TableName="again")["Table"]["VectorIndexes"]
    assert [(each["IndexName"], each["ItemCount"]) for each in described] == [
        ("near", 20),
        ("other", 20),
    ]
    assert found(ask, "again") == found(ask, "vec")
    assert len(found(ask, "again")[2]) == 20


def test_an_import_counts_what_cannot_be_indexed(ask: Transfers) -> None:
    wrong = [
        {"p": {"S": "a"}, "v": vector(1, 2, 3)},
        {"p": {"S": "b"}, "v": {"L": [{"S": "x"}, {"N": "1"}]}},
        {"p": {"S": "c"}, "v": vector(1, 2), "g": {"N": "1"}},
    ]
    records = [*wrong, item(0), item(1)]
    ask.write("input", "all.json", "".join(json.dumps({"Item": each}) + "\n" for each in records))
    parameters = {"AttributeDefinitions": KEYED, "VectorIndexes": INDEXES}
    done = ask.load("input", table_parameters=parameters)
    assert (done["ImportStatus"], done["ErrorCount"]) == ("FAILED", 3)
    assert done["ImportedItemCount"] == 2
    assert len(ask.errors(done["ImportArn"])) == 3
    assert len(found(ask, "again")[2]) == 2


def test_a_bulk_operation_writes_the_indexes(ask: Transfers) -> None:
    fill(ask)
    records = [{"Item": item(number, v=vector(number, number))} for number in range(20, 40)]
    ask.write("updates", "all.json", "".join(json.dumps(each) + "\n" for each in records))
    done = ask.bulk("updates", TableName="vec")
    assert done["BulkOperationStatus"] == "COMPLETED"
    ask.table("expected", types=TYPES, VectorIndexes=INDEXES)
    for number in range(20):
        ask.put("expected", **item(number))
    for each in records:
        ask.put("expected", **each["Item"])
    assert found(ask, "vec") == found(ask, "expected")


def test_a_restore_to_a_moment_has_the_vectors_of_that_moment(ask: Transfers) -> None:
    fill(ask)
    before = found(ask, "vec")
    ask.clock.advance(60)
    for number in range(0, 30, 4):
        ask.put("vec", **item(number, v=vector(-number, 1)))
    for number in range(1, 30, 4):
        ask("DeleteItem", TableName="vec", Key={"p": {"S": f"p{number:03}"}})
    ask.put("vec", **item(99))
    ask.clock.advance(60)
    assert found(ask, "vec") != before
    restores = {
        "then": {"RestoreDateTime": START + 30},
        "now": {"UseLatestRestorableTime": True},
        "one": {"RestoreDateTime": START + 30, "VectorIndexOverride": [INDEXES[1]]},
        "none": {"RestoreDateTime": START + 30, "VectorIndexOverride": []},
    }
    for target, more in restores.items():
        ask(
            "RestoreTableToPointInTime",
            SourceTableName="vec",
            TargetTableName=f"vec-{target}",
            **more,
        )
    ask.database.finish_maintenance()
    assert found(ask, "vec-then") == before
    assert found(ask, "vec-now") == found(ask, "vec")
    (other,) = ask("DescribeTable", TableName="vec-one")["Table"]["VectorIndexes"]
    assert (other["IndexName"], other["ItemCount"]) == ("other", 20)
    assert "VectorIndexes" not in ask("DescribeTable", TableName="vec-none")["Table"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"AttributeDefinitions": KEYED[:1]}, "is not defined in attribute definitions"),
        (
            {"AttributeDefinitions": [*KEYED, {"AttributeName": "q", "AttributeType": "S"}]},
            "not used",
        ),
        ({"VectorIndexes": []}, "List of VectorIndexes is empty"),
        ({"VectorIndexes": INDEXES[:1] * 2}, "Duplicate index name: near"),
    ],
)
def test_an_import_keeps_the_rules_of_a_new_table(
    ask: Transfers, wrong: dict[str, Any], words: str
) -> None:
    parameters = {
        "TableName": "again",
        "AttributeDefinitions": KEYED,
        "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
        "VectorIndexes": INDEXES,
        **wrong,
    }
    refused = ask.refused(
        "ImportTable",
        S3BucketSource={"S3Bucket": "exports"},
        InputFormat="DYNAMODB_JSON",
        TableCreationParameters=parameters,
    )
    assert refused.code == "ValidationException"
    assert words in refused.message
