"""Vector indexes through the API: definitions, writes, searches, what they cost, and what is refused."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.operations.conftest import Asker, key_schema

import isotone
from isotone.engine import restores
from isotone.errors import ApiError

ALL = {"ProjectionType": "ALL"}
ONE_ACTION = "Only one vector index action is allowed per VectorIndexUpdate object"
LARGEST_FLOAT = 3.4028234663852886e38


def vector(*elements: object) -> dict[str, Any]:
    return {"L": [{"N": str(element)} for element in elements]}


def near(name: str = "near", **more: Any) -> dict[str, Any]:
    """A vector index of two dimensions."""
    return {
        "IndexName": name,
        "VectorAttribute": {"AttributeName": "v"},
        "Dimensions": 2,
        "DistanceFunction": "EUCLIDEAN",
        "Projection": ALL,
        **more,
    }


def schema(**roles: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "SearchSchemaElementType": role} for name, role in roles.items()
    ]


DIVIDED = {"SearchSchema": schema(g="HASH", brand="INLINE_FILTER", year="INLINE_FILTER")}
TYPES = {"g": "S", "brand": "S", "year": "N"}


@pytest.fixture(params=["memory", "file"])
def ask(request: pytest.FixtureRequest, tmp_path: Path, by_hand: None) -> Iterator[Asker]:
    """Like the common one, on both stores; nothing happens in the background by itself."""
    clock = isotone.ManualClock()
    path = ":memory:" if request.param == "memory" else tmp_path / "file.db"
    with isotone.open(path, clock=clock, durability="none") as database:
        yield Asker(database, clock)
        assert database.check() == []


def put(ask: Asker, key: str, *elements: object, **more: Any) -> dict[str, Any]:
    options = {name: more.pop(name) for name in list(more) if name[0].isupper()}
    attributes = {
        name: value if isinstance(value, dict) else {"S": value} for name, value in more.items()
    }
    item = {"p": {"S": key}, **attributes}
    if elements:
        item["v"] = vector(*elements)
    return ask("PutItem", TableName="tab", Item=item, **options)


def search(ask: Asker, *elements: object, k: int = 10, **more: Any) -> list[dict[str, Any]]:
    answer = ask(
        "SearchVectors",
        **{
            "TableName": "tab",
            "IndexName": "near",
            "SearchVector": vector(*elements)["L"],
            "TopK": k,
            **more,
        },
    )
    results: list[dict[str, Any]] = answer["SearchResults"]
    return results


def keys_of(results: list[dict[str, Any]]) -> list[str]:
    return [result["Item"]["p"]["S"] for result in results]


def where(condition: str, **values: Any) -> dict[str, Any]:
    return {
        "SearchConditionExpression": condition,
        "ExpressionAttributeValues": {
            f":{name}": value if isinstance(value, dict) else {"S": value}
            for name, value in values.items()
        },
    }


# Searches


@pytest.mark.parametrize(
    ("distance", "expected"),
    [
        ("EUCLIDEAN", [("far", 5.0), ("zero", 5.0), ("near", 50**0.5), ("back", 10.0)]),
        ("COSINE", [("far", 0.0), ("zero", 1.0), ("near", 1.0), ("back", 2.0)]),
        ("DOT_PRODUCT", [("far", 50.0), ("near", 0.0), ("zero", 0.0), ("back", -25.0)]),
    ],
)
def test_results_are_ordered_by_the_distance_function(
    ask: Asker, distance: str, expected: list[tuple[str, float]]
) -> None:
    ask.table(VectorIndexes=[near(DistanceFunction=distance)])
    put(ask, "far", 6, 8)
    put(ask, "near", -4, 3)
    put(ask, "zero", 0, 0)
    put(ask, "back", -3, -4)
    put(ask, "none")
    results = search(ask, 3, 4)
    found = {key: result["Score"] for key, result in zip(keys_of(results), results, strict=True)}
    assert found == pytest.approx(dict(expected))
    scores = [result["Score"] for result in results]
    assert scores == sorted(scores, reverse=distance == "DOT_PRODUCT")
    assert search(ask, 3, 4, k=2) == results[:2]


def test_a_result_has_the_vector_only_if_asked(ask: Asker) -> None:
    ask.table(VectorIndexes=[near()])
    put(ask, "a", "0.1", "123456789", x="y", m={"M": {"n": {"N": "1"}}})
    (plain,) = search(ask, 0, 0)
    assert plain["Item"] == {"p": {"S": "a"}, "x": {"S": "y"}, "m": {"M": {"n": {"N": "1"}}}}
    (shown,) = search(ask, 0, 0, ProjectionExpression="v, m.n")
    # The index keeps 32-bit floats, the table what was written.
    assert shown["Item"] == {"v": vector("0.1", "123456790"), "m": {"M": {"n": {"N": "1"}}}}
    (one,) = search(ask, 0, 0, ProjectionExpression="v[1]")
    assert one["Item"] == {"v": vector("123456790")}
    stored = ask("GetItem", TableName="tab", Key={"p": {"S": "a"}})["Item"]
    assert stored["v"] == vector("0.1", "123456789")


@pytest.mark.parametrize(
    "text", ["0.1", "-0", "1E-40", "3.4028235E38", "16777217", "1e-130", "-2.5"]
)
def test_a_returned_vector_is_the_shortest_number_that_is_the_float(ask: Asker, text: str) -> None:
    ask.table(VectorIndexes=[near(Dimensions=1)])
    put(ask, "a", text)
    (result,) = search(ask, 0, ProjectionExpression="v")
    (shown,) = result["Item"]["v"]["L"]
    assert struct.pack("<f", float(shown["N"])) == struct.pack(
        "<f", abs(float(text)) and float(text)
    )
    assert "E" not in shown["N"]
    assert len(shown["N"].strip("-0.").replace(".", "")) <= 9


def test_projections(ask: Asker) -> None:
    include = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x", "v"]}
    indexes = [
        near("every"),
        near("keys", Projection={"ProjectionType": "KEYS_ONLY"}, **DIVIDED),
        near("some", Projection=include),
    ]
    ask.table(keys="p s", types=TYPES, VectorIndexes=indexes)
    put(ask, "a", 1, 2, s="s", g="g", brand="b", x="x", y="y")

    def attributes(index: str, **more: Any) -> set[str]:
        (result,) = search(ask, 0, 0, IndexName=index, **more)
        return set(result["Item"])

    in_g = where("g = :g", g="g")
    assert attributes("every") == {"p", "s", "g", "brand", "x", "y"}
    assert attributes("keys", **in_g) == {"p", "s", "g", "brand"}
    assert attributes("some") == {"p", "s", "x"}
    assert attributes("some", ProjectionExpression="v, x") == {"v", "x"}
    for index, projection, missing in (("keys", "v", "v"), ("some", "y, x", "y")):
        more = in_g if index == "keys" else {}
        error = ask.refused(
            "SearchVectors",
            TableName="tab",
            IndexName=index,
            SearchVector=vector(0, 0)["L"],
            TopK=1,
            ProjectionExpression=projection,
            **more,
        )
        assert error.message == (
            f"One or more parameter values were invalid: Vector index {index} does not project [{missing}]"
        )


def test_a_partition_and_filters(ask: Asker) -> None:
    ask.table(types=TYPES, VectorIndexes=[near(**DIVIDED)])
    for number in range(12):
        brand = {} if number % 4 == 3 else {"brand": f"b{number % 2}"}
        put(
            ask,
            f"p{number:02}",
            number,
            0,
            g=f"g{number % 3}",
            year={"N": f"{number % 2}.0"},
            **brand,
        )
    put(ask, "lost", 0, 0)  # without the partition attribute

    assert keys_of(search(ask, 0, 0, **where("g = :g", g="g1"))) == ["p01", "p04", "p07", "p10"]
    both = where("brand = :b AND (:g = g)", g="g1", b="b1")
    assert keys_of(search(ask, 0, 0, **both)) == ["p01"]
    named = {
        **where("#g = :g AND #y = :y", g="g1", y={"N": "1"}),
        "ExpressionAttributeNames": {"#g": "g", "#y": "year"},
    }
    assert keys_of(search(ask, 0, 0, **named)) == ["p01", "p07"]
    assert search(ask, 0, 0, **where("g = :g", g="unknown")) == []


def test_an_index_without_a_partition_can_be_filtered(ask: Asker) -> None:
    index = near(SearchSchema=schema(brand="INLINE_FILTER"))
    ask.table(types={"brand": "B"}, VectorIndexes=[index])
    put(ask, "a", 0, 1, brand={"B": "AAA="})
    put(ask, "b", 0, 2)
    assert keys_of(search(ask, 0, 0)) == ["a", "b"]
    assert keys_of(search(ask, 0, 0, **where("brand = :b", b={"B": "AAA="}))) == ["a"]


def test_writes_of_every_kind_reach_the_index(ask: Asker) -> None:
    ask.table(types=TYPES, VectorIndexes=[near(**DIVIDED)])

    def found(partition: str = "g") -> list[str]:
        return keys_of(search(ask, 0, 0, **where("g = :g", g=partition)))

    put(ask, "a", 1, 1, g="g")
    ask(
        "BatchWriteItem",
        RequestItems={
            "tab": [{"PutRequest": {"Item": {"p": {"S": "b"}, "g": {"S": "g"}, "v": vector(2, 2)}}}]
        },
    )
    put_c = {"TableName": "tab", "Item": {"p": {"S": "c"}, "g": {"S": "g"}, "v": vector(3, 3)}}
    ask("TransactWriteItems", TransactItems=[{"Put": put_c}])
    assert found() == ["a", "b", "c"]

    def update(key: str, expression: str, **values: Any) -> None:
        more = {"ExpressionAttributeValues": values} if values else {}
        ask(
            "UpdateItem",
            TableName="tab",
            Key={"p": {"S": key}},
            UpdateExpression=expression,
            **more,
        )

    update("a", "SET v = :v", **{":v": vector(9, 9)})
    assert found() == ["b", "c", "a"]
    update("a", "SET v[0] = :n, v[1] = :n", **{":n": {"N": "0"}})
    assert found() == ["a", "b", "c"]
    update("b", "SET g = :g", **{":g": {"S": "other"}})
    assert (found(), found("other")) == (["a", "c"], ["b"])
    update("a", "REMOVE g")
    update("c", "REMOVE v")
    assert found() == []
    ask("DeleteItem", TableName="tab", Key={"p": {"S": "b"}})
    assert found("other") == []
    assert ask("DescribeTable", TableName="tab")["Table"]["VectorIndexes"][0]["ItemCount"] == 0


def test_a_transaction_that_fails_changes_nothing(ask: Asker) -> None:
    ask.table(VectorIndexes=[near()])
    put(ask, "a", 1, 1)
    before = search(ask, 0, 0)
    good = {"Put": {"TableName": "tab", "Item": {"p": {"S": "b"}, "v": vector(0, 0)}}}
    condition = {"ConditionExpression": "attribute_not_exists(p)"}
    bad = {"Put": {"TableName": "tab", "Item": {"p": {"S": "a"}}, **condition}}
    ask.refused("TransactWriteItems", TransactItems=[good, bad])
    assert search(ask, 0, 0) == before


def test_expired_items_leave_the_index(ask: Asker) -> None:
    ask.table(VectorIndexes=[near()])
    ask(
        "UpdateTimeToLive",
        TableName="tab",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "until"},
    )
    put(ask, "a", 1, 1, until={"N": str(int(ask.clock.now()) + 10)})
    put(ask, "b", 2, 2)
    assert keys_of(search(ask, 0, 0)) == ["a", "b"]
    ask.clock.advance(20)
    ask.database.finish_maintenance()
    assert keys_of(search(ask, 0, 0)) == ["b"]


# Creating, deleting and describing


def test_descriptions(ask: Asker) -> None:
    ask.table(types=TYPES, VectorIndexes=[near(**DIVIDED), near("plain")])
    put(ask, "a", 1, 1, g="g", x="12345")
    divided, plain = ask("DescribeTable", TableName="tab")["Table"]["VectorIndexes"]
    size = 8 + 1 + (1 + 1) + (1 + 1) + (1 + 5)  # the vector and its name, p, g, x
    assert divided == {
        **near(**DIVIDED),
        "IndexStatus": "ACTIVE",
        "ItemCount": 1,
        "IndexSizeBytes": size,
        "IndexArn": "arn:aws:dynamodb:us-east-1:000000000000:table/tab/index/near",
    }
    assert "SearchSchema" not in plain


def test_an_index_is_added_filled_and_deleted(ask: Asker) -> None:
    ask.table()
    for number in range(8):
        put(ask, f"p{number}", number, 0, g="g")
    put(ask, "short", 1)
    put(ask, "text", g={"N": "1"}, v="text")
    put(ask, "other type", 1, 2, g={"N": "1"})

    def update(**change: Any) -> dict[str, Any]:
        definitions = [{"AttributeName": "g", "AttributeType": "S"}]
        answer = ask(
            "UpdateTable",
            TableName="tab",
            AttributeDefinitions=definitions,
            VectorIndexUpdates=[change],
        )
        indexes: list[dict[str, Any]] = answer["TableDescription"]["VectorIndexes"]
        return indexes[0]

    with ask.database.engine.writing:  # the background thread does not come between
        created = update(Create=near(SearchSchema=schema(g="HASH")))
        assert (created["IndexStatus"], created["Backfilling"]) == ("CREATING", True)
        put(ask, "during", -1, 0, g="g")
        put(ask, "p7", 100, 0, g="g")
        request = {
            "TableName": "tab",
            "IndexName": "near",
            "SearchVector": vector(0, 0)["L"],
            "TopK": 1,
        }
        error = ask.refused("SearchVectors", **request)
        assert error.message == "Cannot search backfilling vector index: near"
        error = ask.refused(
            "UpdateTable", TableName="tab", VectorIndexUpdates=[{"Create": near("two")}]
        )
        assert error.code == "LimitExceededException"
        error = ask.refused("UpdateTable", TableName="tab", VectorIndexUpdates=[{"Create": near()}])
        assert error.code == "ResourceInUseException"
        assert error.message.endswith("Index is being created.  Table: tab Index: near")

    ask.database.finish_maintenance()
    (described,) = ask("DescribeTable", TableName="tab")["Table"]["VectorIndexes"]
    assert described["IndexStatus"] == "ACTIVE"
    assert "Backfilling" not in described
    assert keys_of(search(ask, 0, 0, **where("g = :g", g="g"))) == [
        "p0", "during", "p1", "p2", "p3", "p4", "p5", "p6", "p7",
    ]  # fmt: skip
    # An item that the index could not take can still be updated.
    ask(
        "UpdateItem",
        TableName="tab",
        Key={"p": {"S": "short"}},
        UpdateExpression="SET x = :x",
        ExpressionAttributeValues={":x": {"S": "x"}},
    )
    assert update(Delete={"IndexName": "near"})["IndexStatus"] == "DELETING"
    table = ask("DescribeTable", TableName="tab")["Table"]
    assert "VectorIndexes" not in table
    assert [each["AttributeName"] for each in table["AttributeDefinitions"]] == ["p"]
    assert ask.refused("SearchVectors", **request).message == (
        "The table does not have the specified index: near"
    )


def test_a_refused_update_names_its_index(ask: Asker) -> None:
    ask.table()
    gone = {"Delete": {"IndexName": "gone"}}
    error = ask.refused("UpdateTable", TableName="tab", VectorIndexUpdates=[gone])
    assert error.message == "Requested resource not found: Index gone for table tab"
    both = [{**gone, "Create": near()}]
    error = ask.refused("UpdateTable", TableName="tab", VectorIndexUpdates=both)
    assert error.message == f"{INVALID}{ONE_ACTION}"


def test_the_capacity_of_a_table_comes_before_its_vector_indexes(ask: Asker) -> None:
    wrong = near(Dimensions=5000, Projection={})
    error = ask.refused(
        "CreateTable",
        TableName="tab",
        KeySchema=key_schema("p"),
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
        VectorIndexes=[wrong],
    )
    assert error.message == f"{INVALID}Vector indexes are only supported for PAY_PER_REQUEST tables"


def test_an_index_that_is_being_filled_can_be_deleted(ask: Asker) -> None:
    ask.table()
    put(ask, "a", 1, 1)
    ask("UpdateTable", TableName="tab", VectorIndexUpdates=[{"Create": near()}])
    ask("UpdateTable", TableName="tab", VectorIndexUpdates=[{"Delete": {"IndexName": "near"}}])
    ask.database.finish_maintenance()


def test_a_table_is_deleted_with_its_vectors(ask: Asker) -> None:
    ask.table(VectorIndexes=[near()])
    put(ask, "a", 1, 1)
    search(ask, 0, 0)
    ask("DeleteTable", TableName="tab")
    ask.table(VectorIndexes=[near()])
    assert search(ask, 0, 0) == []


def test_backups_and_restores_have_vector_indexes(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restores, "SLICE", 3)
    ask.table(types=TYPES, VectorIndexes=[near(**DIVIDED), near("other")])
    for number in range(7):
        put(ask, f"p{number}", number, 0, g="g")
    backup = ask("CreateBackup", TableName="tab", BackupName="bak")["BackupDetails"]["BackupArn"]
    features = ask("DescribeBackup", BackupArn=backup)["BackupDescription"][
        "SourceTableFeatureDetails"
    ]
    assert features["VectorIndexes"] == [near(**DIVIDED), near("other")]
    ask("RestoreTableFromBackup", TargetTableName="all", BackupArn=backup)
    ask(
        "RestoreTableFromBackup",
        TargetTableName="one",
        BackupArn=backup,
        VectorIndexOverride=[near("other")],
    )
    ask.database.finish_maintenance()
    in_g = where("g = :g", g="g")
    assert search(ask, 9, 0, TableName="all", **in_g) == search(ask, 9, 0, **in_g)
    (other,) = ask("DescribeTable", TableName="one")["Table"]["VectorIndexes"]
    assert (other["IndexName"], other["ItemCount"]) == ("other", 7)
    for override in (near("other", Dimensions=3), near("unknown")):
        error = ask.refused(
            "RestoreTableFromBackup",
            TargetTableName="two",
            BackupArn=backup,
            VectorIndexOverride=[override],
        )
        assert "does not match an index" in error.message
    error = ask.refused(
        "RestoreTableFromBackup",
        TargetTableName="two",
        BackupArn=backup,
        BillingModeOverride="PROVISIONED",
        ProvisionedThroughputOverride={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    )
    assert "PAY_PER_REQUEST" in error.message


# What it costs


def test_writes_report_the_bytes_of_the_index(ask: Asker) -> None:
    """An entry costs four bytes for each dimension, the attribute's name, and the rest of the item."""
    ask.table(
        types={"t": "S"},
        VectorIndexes=[
            near("every", Dimensions=1024, SearchSchema=schema(t="HASH")),
            near("keys", Dimensions=1024, Projection={"ProjectionType": "KEYS_ONLY"}),
        ],
    )
    many = ["0.1"] * 1024

    def cost(answer: dict[str, Any]) -> dict[str, float]:
        indexes = answer["ConsumedCapacity"].get("VectorIndexes", {})
        assert all(set(units) == {"VectorWriteRequestBytes"} for units in indexes.values())
        return {name: units["VectorWriteRequestBytes"] for name, units in indexes.items()}

    indexes = {"ReturnConsumedCapacity": "INDEXES"}
    base = 4096 + 1 + 2  # the vector, its name, and the key
    assert cost(put(ask, "a", *many, t="t1", **indexes)) == {"every": base + 3, "keys": base}
    assert cost(put(ask, "a", *many, t="t1", **indexes)) == {}
    assert cost(put(ask, "a", *many, t="t1", x="x" * 2000, **indexes)) == {"every": base + 3 + 2001}
    assert cost(put(ask, "a", *many, t="t1", **indexes)) == {"every": base + 3 + 2001}
    assert cost(put(ask, "a", *many, t="t2", **indexes)) == {"every": 2 * (base + 3)}
    assert cost(put(ask, "b", t="t2", **indexes)) == {}
    total = put(ask, "a", *many, t="t3", ReturnConsumedCapacity="TOTAL")
    assert "VectorIndexes" not in total["ConsumedCapacity"]
    deleted = ask("DeleteItem", TableName="tab", Key={"p": {"S": "a"}}, **indexes)
    assert cost(deleted) == {"every": base + 3, "keys": base}


def test_a_small_entry_costs_a_kilobyte(ask: Asker) -> None:
    ask.table(VectorIndexes=[near()])
    write = {"PutRequest": {"Item": {"p": {"S": "a"}, "v": vector(1, 1)}}}
    answer = ask("BatchWriteItem", RequestItems={"tab": [write]}, ReturnConsumedCapacity="INDEXES")
    (capacity,) = answer["ConsumedCapacity"]
    assert capacity["VectorIndexes"] == {"near": {"VectorWriteRequestBytes": 1024.0}}
    assert capacity["CapacityUnits"] == 1.0


@pytest.mark.parametrize("mode", ["TOTAL", "INDEXES", "NONE", None])
def test_searches_report_bytes(ask: Asker, mode: str | None) -> None:
    ask.table(VectorIndexes=[near()])
    for number in range(3):
        put(ask, f"{number}", number, 0, x="x" * 999)
    request = {
        "TableName": "tab",
        "IndexName": "near",
        "SearchVector": vector(0, 0)["L"],
        "TopK": 2,
    }
    answer = ask(
        "SearchVectors", **request, **({} if mode is None else {"ReturnConsumedCapacity": mode})
    )
    if mode in (None, "NONE"):
        assert set(answer) == {"SearchResults"}
    else:
        assert answer["ConsumedCapacity"] == {"VectorSearchRequestBytes": 2 * 17.6 + 2 * 1002}


# Refusals

INVALID = "One or more parameter values were invalid: "
BAD_DEFINITIONS: list[tuple[str, dict[str, Any]]] = [
    ("List of VectorIndexes is empty", {"VectorIndexes": []}),
    (
        "Vector indexes are only supported for PAY_PER_REQUEST tables",
        {
            "VectorIndexes": [near()],
            "BillingMode": "PROVISIONED",
            "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
        },
    ),
    (
        "VectorIndex count exceeds the per-table limit of 5",
        {"VectorIndexes": [near(f"near{number}") for number in range(6)]},
    ),
    (
        "Number of dimensions must be between 1 and 4096 inclusive.",
        {"VectorIndexes": [near(Dimensions=4097)]},
    ),
    ("Duplicate index name: near", {"VectorIndexes": [near(), near()]}),
    (
        "Duplicate index name: near",
        {
            "types": {"g": "S"},
            "VectorIndexes": [near()],
            "GlobalSecondaryIndexes": [
                {"IndexName": "near", "KeySchema": key_schema("g"), "Projection": ALL}
            ],
        },
    ),
    (
        "Conflicting attribute definition for 'v'. All VectorIndexes on the same vector attribute "
        "must use the same dimensions.",
        {"VectorIndexes": [near(), near("other", Dimensions=3)]},
    ),
    (
        "Conflicting attribute definition for 'v'. An attribute cannot be defined in "
        "AttributeDefinitions when used as a VectorAttribute.",
        {"types": {"v": "S"}, "VectorIndexes": [near()]},
    ),
    (
        "One element in SearchSchema is not defined in attribute definitions",
        {"VectorIndexes": [near(**DIVIDED)]},
    ),
    (
        "Value '2' at 'SearchSchema' failed to satisfy constraint: "
        "Member must have HASH count less than or equal to 1",
        {"types": TYPES, "VectorIndexes": [near(SearchSchema=schema(g="HASH", brand="HASH"))]},
    ),
    (
        "Value '19' at 'SearchSchema' failed to satisfy constraint: "
        "Member must have INLINE_FILTER count less than or equal to 18",
        {
            "types": {f"f{n}": "S" for n in range(19)},
            "VectorIndexes": [
                near(SearchSchema=schema(**{f"f{n}": "INLINE_FILTER" for n in range(19)}))
            ],
        },
    ),
    (
        "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
        {"VectorIndexes": [near(Projection={"ProjectionType": "INCLUDE"})]},
    ),
    (
        "Number of NonKeyAttributes over all indexes exceeds per-table limit of 100",
        {
            "types": {"f": "S"},
            "VectorIndexes": [
                near(
                    f"near{number}",
                    SearchSchema=schema(f="INLINE_FILTER"),
                    Projection={
                        "ProjectionType": "INCLUDE",
                        "NonKeyAttributes": [f"x{name}" for name in range(19)],
                    },
                )
                for number in range(5)
            ],
        },
    ),
    (
        "Some AttributeDefinitions are not used. AttributeDefinitions: [p, brand, g], keys used: [p, g]",
        {
            "types": {"g": "S", "brand": "S"},
            "VectorIndexes": [near(SearchSchema=schema(g="HASH"))],
        },
    ),
]


@pytest.mark.parametrize(("message", "members"), BAD_DEFINITIONS)
def test_a_bad_definition_is_refused(ask: Asker, message: str, members: dict[str, Any]) -> None:
    with pytest.raises(isotone.errors.ValidationException) as refused:
        ask.table(**members)
    assert refused.value.message == INVALID + message
    assert ask("ListTables")["TableNames"] == []


def test_updates_that_do_not_fit_the_table_are_refused(ask: Asker) -> None:
    ask.table(VectorIndexes=[near(f"near{number}") for number in range(4)])

    def refused(*updates: dict[str, Any], **more: Any) -> tuple[str, str]:
        error = ask.refused("UpdateTable", TableName="tab", VectorIndexUpdates=[*updates], **more)
        return error.code, error.message

    code, message = refused({"Create": near("near0")})
    assert (code, message) == (
        "ValidationException",
        "Attempting to create an index which already exists",
    )
    code, message = refused({"Create": near(VectorAttribute={"AttributeName": "p"})})
    assert message.startswith(f"{INVALID}Attributes cannot be redefined.")
    assert "key{p:S:HASH}" in message
    assert "key{p:L:2}" in message
    code, message = refused({"Create": near("a" * 3)}, {"Create": near("b" * 3)})
    assert code == "LimitExceededException"
    assert refused({"Delete": {"IndexName": "other"}})[0] == "ResourceNotFoundException"
    assert refused({})[0] == "ValidationException"
    assert "must use the same dimensions" in refused({"Create": near(Dimensions=3)})[1]
    throughput = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    error = ask.refused(
        "UpdateTable", TableName="tab", BillingMode="PROVISIONED", ProvisionedThroughput=throughput
    )
    assert error.message == f"{INVALID}Vector indexes are only supported for PAY_PER_REQUEST tables"
    ask("UpdateTable", TableName="tab", VectorIndexUpdates=[{"Create": near()}])
    ask.database.finish_maintenance()
    code, message = refused({"Create": near("sixth")})
    assert (code, message) == (
        "LimitExceededException",
        "Subscriber limit exceeded: Number of vector secondary indexes exceeds per-table limit of 5",
    )


TWICE = "One or more parameter values are not valid. One or more parameter values were invalid ."
ONCE = "One or more parameter values were invalid."
BAD_ITEMS: list[tuple[str, dict[str, Any]]] = [
    (f"{ONCE} Invalid type for parameter v, Expected: 32-bit floating point number list IndexName: near", {"v": {"S": "x"}}),
    (f"{ONCE} Invalid size for parameter v, Expected: 2, Actual: 3 IndexName: near", {"v": vector(1, 2, 3)}),
    (
        f"{ONCE} Invalid type for parameter v[1], Expected: 32-bit floating point number, Actual: BOOL. IndexName: near",
        {"v": {"L": [{"N": "1"}, {"BOOL": True}]}},
    ),
    (
        f"{TWICE} Invalid value for parameter v[0], Value: 1.0E39 is outside valid range "
        "[-3.4028235E38, 3.4028235E38]. IndexName: near",
        {"v": vector("1e39", 1)},
    ),
    (f"{ONCE} Attribute 'g' type mismatch. Expected: S, Actual: N. IndexName: near", {"g": {"N": "1"}}),
    (f"{ONCE} Attribute 'year' type mismatch. Expected: N, Actual: S. IndexName: near", {"year": {"S": "1"}}),
    (
        "One or more parameter values are not valid. A value specified for a secondary index key is not "
        "supported. The AttributeValue for a key attribute cannot contain an empty string value. "
        "IndexName: near, IndexKey: g",
        {"g": {"S": ""}},
    ),
    (f"{INVALID}Aggregate size for HASH key attributes exceeds the maximum of 2048 bytes", {"g": {"S": "x" * 2049}}),
    (
        f"{INVALID}Size limit exceeded for SearchSchema attribute 'brand': maximum 10240 bytes",
        {"brand": {"S": "x" * 10241}},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("message", "attributes"), BAD_ITEMS)
def test_an_item_that_does_not_fit_is_refused(
    ask: Asker, message: str, attributes: dict[str, Any]
) -> None:
    ask.table(types=TYPES, VectorIndexes=[near(**DIVIDED)])
    item = {"p": {"S": "a"}, **attributes}
    assert ask.refused("PutItem", TableName="tab", Item=item).message == message
    ((name, value),) = attributes.items()
    error = ask.refused(
        "UpdateItem",
        TableName="tab",
        Key={"p": {"S": "a"}},
        UpdateExpression="SET #a = :a",
        ExpressionAttributeNames={"#a": name},
        ExpressionAttributeValues={":a": value},
    )
    assert error.code == "ValidationException"
    if "empty" not in message:
        assert error.message == message
    assert ask("Scan", TableName="tab")["Count"] == 0


NO_FLOATS = (
    "Search vector contains invalid values. "
    "All values in the search vector must be a 32-bit floating-point number attribute"
)
IN_G = where("g = :g", g="g")
CONDITION = "Invalid SearchConditionExpression: "
BAD_SEARCHES: list[tuple[str, dict[str, Any]]] = [
    ("Provided TopK value '101' is out of valid range. The value must be between 1 and 100 inclusive", {"TopK": 101}),
    ("The table does not have the specified index: other", {"IndexName": "other"}),
    ("Input search vector dimension 1 does not match vector index dimension 2", {"SearchVector": vector(1)["L"]}),
    (NO_FLOATS, {"SearchVector": [vector(1, 2)]}),
    (NO_FLOATS, {"SearchVector": vector(1, "1e39")["L"]}),
    (NO_FLOATS, {"SearchVector": vector(1, "nan")["L"]}),
    (
        "SearchConditionExpression must be provided when SearchSchema has a HASH key",
        {"SearchConditionExpression": None, "ExpressionAttributeValues": None},
    ),
    (
        "SearchConditionExpression must have all HASH attributes in configured SearchSchema",
        where("brand = :b", b="b"),
    ),
    (
        "SearchConditionExpression must not contain any attributes that is not in SearchSchema. "
        "Invalid attribute: x",
        where("g = :g AND x = :g", g="g"),
    ),
    (f"{CONDITION}Invalid comparator used in SearchConditionExpression", where("g > :g", g="g")),
    (f"{CONDITION}Invalid comparator used in SearchConditionExpression", where("g = :g AND begins_with(brand, :g)", g="g")),
    (f"{CONDITION}Invalid operator used in SearchConditionExpression: OR", where("g = :g OR brand = :g", g="g")),
    (
        f"{CONDITION}SearchConditionExpression cannot have conditions on nested attributes",
        where("g = :g AND brand.x = :g", g="g"),
    ),
    (
        f"{CONDITION}SearchConditionExpression must only contain one condition per attribute",
        where("g = :g AND g = :g", g="g"),
    ),
    (
        "Type of 'g' attribute in SearchConditionExpression (N) does not match type in search schema (S)",
        where("g = :g", g={"N": "1"}),
    ),
    (
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: g",
        where("g = :g", g=""),
    ),
    (
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:unused}",
        where("g = :g", g="g", unused="x"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("message", "members"), BAD_SEARCHES)
def test_a_bad_search_is_refused(ask: Asker, message: str, members: dict[str, Any]) -> None:
    ask.table(types=TYPES, VectorIndexes=[near(**DIVIDED)])
    request = {
        "TableName": "tab",
        "IndexName": "near",
        "SearchVector": vector(0, 0)["L"],
        "TopK": 1,
        **IN_G,
        **members,
    }
    error = ask.refused("SearchVectors", **request)
    assert (error.code, error.message) == ("ValidationException", message)
    assert search(ask, 0, 0, **IN_G) == []


def test_only_searches_read_a_vector_index(ask: Asker) -> None:
    ask.table(VectorIndexes=[near()])
    for operation, more in (
        ("Scan", {}),
        (
            "Query",
            {
                "KeyConditionExpression": "p = :p",
                "ExpressionAttributeValues": {":p": {"S": "a"}},
            },
        ),
    ):
        error = ask.refused(operation, TableName="tab", IndexName="near", **more)
        assert error.message == "The table does not have the specified index: near"
    error = ask.refused("ExecuteStatement", Statement='SELECT * FROM "tab"."near"')
    assert error.code == "ValidationException"


def test_results_end_at_16_megabytes(ask: Asker) -> None:
    ask.table(VectorIndexes=[near()])
    for number in range(45):
        put(ask, f"{number:02}", number, 0, x="x" * 390_000)
    assert len(search(ask, 0, 0, k=100)) == 16 * 1024 * 1024 // 390_100


# Histories

PLACES = st.sampled_from(["a", "b", "c", "d", "e"])
VECTORS = st.one_of(
    st.none(), st.tuples(*[st.integers(-3, 3)] * 2), st.tuples(*[st.floats(-2, 2, width=32)] * 2)
)
WRITES = st.tuples(
    PLACES, VECTORS, st.sampled_from([None, "g1", "g2"]), st.sampled_from([None, "x"])
)
SEARCHES = st.tuples(st.integers(-3, 3), st.integers(-3, 3))


@pytest.mark.parametrize("store", ["memory", "file"])
@settings(deadline=None, max_examples=examples(40))
@given(steps=st.lists(st.one_of(WRITES, SEARCHES), max_size=30), late=st.integers(0, 30))
def test_any_history_finds_what_a_list_would(
    store: str,
    steps: list[Any],
    late: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Writes and searches in any order; the index is created at any step."""
    path = ":memory:" if store == "memory" else tmp_path_factory.mktemp("file") / "file.db"
    with isotone.open(path, durability="none") as database:
        ask = Asker(database, isotone.ManualClock())
        index = near(SearchSchema=schema(g="HASH", x="INLINE_FILTER"))
        types = {"g": "S", "x": "S"}
        definitions = [{"AttributeName": name, "AttributeType": "S"} for name in types]
        ask.table()
        items: dict[str, dict[str, Any]] = {}
        for step, action in enumerate([*steps, (0, 0)]):
            if step == min(late, len(steps)):
                ask(
                    "UpdateTable",
                    TableName="tab",
                    AttributeDefinitions=definitions,
                    VectorIndexUpdates=[{"Create": index}],
                )
                database.finish_maintenance()
            if len(action) == 4:
                key, elements, group, mark = action
                attributes = {"g": group, "x": mark}
                attributes = {name: value for name, value in attributes.items() if value}
                items[key] = {"v": elements, **attributes}
                put(ask, key, *(elements or ()), **attributes)
            elif step >= late or step == len(steps):
                _search_and_compare(ask, items, action)
        assert database.check() == []


def _search_and_compare(ask: Asker, items: dict[str, dict[str, Any]], query: Any) -> None:
    for condition, fits in (
        (where("g = :g", g="g1"), lambda _: True),
        (where("g = :g AND x = :x", g="g1", x="x"), lambda item: item.get("x") == "x"),
    ):
        expected = sorted(
            sum((a - float(b)) ** 2 for a, b in zip(query, item["v"], strict=True)) ** 0.5
            for item in items.values()
            if item["v"] is not None and item.get("g") == "g1" and fits(item)
        )
        found = search(ask, *query, k=3, **condition)
        assert [result["Score"] for result in found] == pytest.approx(expected[:3])


def test_another_process_is_seen(tmp_path: Path) -> None:
    """Two databases on one file: a search after the other's write reads what it wrote."""
    with isotone.open(tmp_path / "f.db") as one, isotone.open(tmp_path / "f.db") as two:
        first, second = (Asker(each, isotone.ManualClock()) for each in (one, two))
        first.table(VectorIndexes=[near()])
        put(first, "a", 1, 0)
        assert keys_of(search(second, 0, 0)) == ["a"]
        put(first, "b", 0, 0)
        assert keys_of(search(second, 0, 0)) == ["b", "a"]
        put(second, "b", 5, 0)
        assert keys_of(search(first, 0, 0)) == ["a", "b"]
        assert one.check() == two.check() == []


def test_a_partition_larger_than_the_cache_is_searched_in_parts(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from isotone.engine import vector_search

    ask.table(VectorIndexes=[near()])
    for number in range(30):
        put(ask, f"{number:02}", number, 0)
    expected = search(ask, 12, 0, k=5)
    cache = ask.database._api.engine.vectors
    cache.forget()
    monkeypatch.setattr(cache, "_most", 1000, raising=False)
    monkeypatch.setattr(vector_search, "_PART", 40)
    assert search(ask, 12, 0, k=5) == expected
    assert cache.kept() == []


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"TableName": "", "IndexName": "x", "TopK": 0},
            "1 validation error detected: Value at 'TableName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1",
        ),
        (
            {"TableName": "x!", "IndexName": "x!", "SearchVector": [], "TopK": 0},
            "3 validation errors detected: Value at 'IndexName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 3; Value at 'SearchVector' failed to "
            "satisfy constraint: Member must have length greater than or equal to 1; Value at 'TopK' "
            "failed to satisfy constraint: Member must have value greater than or equal to 1",
        ),
        (
            {"TableName": "x!", "ReturnConsumedCapacity": "X"},
            "Value 'x!' at 'tableName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 3",
        ),
        (
            {"ReturnConsumedCapacity": "X", "TopK": 1000},
            "Value 'X' at 'returnConsumedCapacity' failed to satisfy constraint: "
            "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]",
        ),
        (
            {"SearchVector": [{"S": "1"}]},
            "Search vector contains invalid values. All values in the search vector must be a "
            "32-bit floating-point number attribute",
        ),
    ],
)
def test_the_first_fault_of_a_search_is_reported(members: dict[str, Any], message: str) -> None:
    usual = {"TableName": "absent", "IndexName": "near", "SearchVector": [{"N": "1"}], "TopK": 1}
    with isotone.open(":memory:") as db, pytest.raises(ApiError) as caught:
        db.execute("SearchVectors", {**usual, **members})
    assert caught.value.message == message
