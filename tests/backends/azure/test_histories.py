"""The same requests go to Azurite, or Azure in a dict, and to a database in memory, and get the same answers.

A Scan is compared without its order: Azure's is that of partition keys, DynamoDB's is none.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.backends.azure.fake import FakeAzure
from tests.effort import examples

from isotone.backends import embedded
from isotone.backends.azure_table import AzureTable
from isotone.errors import ApiError

PARTITIONS = ["USER#1", "USER#1", "a/b?é"]
TEXTS = [
    "",
    "#",
    "2024-01-01",
    "a",
    "a.",
    "a./",
    "a.é",
    "a/",
    "b",
    "\uffff",
    "\U0001f600",
    "~",
    "%",
]
NUMBERS = ["-12", "-1.5", "0", "1", "10", "9223370375438007168", "1e30"]

OPERATIONS = [
    *("GetItem", "PutItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Query", "Scan"),
    *("BatchWriteItem", "BatchGetItem", "TransactWriteItems", "TransactGetItems"),
]

Json = dict[str, Any]


def definition(name: str, kind: str) -> Json:
    return {
        "TableName": name,
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": kind},
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }


def sort_values(kind: str) -> st.SearchStrategy[Json]:
    contents = TEXTS if kind == "S" else NUMBERS
    return st.sampled_from(contents).map(lambda content: {kind: content})


contents = st.fixed_dictionaries(
    {},
    optional={
        "n": st.sampled_from(["0", "1", "2.5", "12345678901234567890123456789012345678"]).map(
            lambda number: {"N": number}
        ),
        "title": st.sampled_from(["x", "Grüße", "\x00", "y" * 40_000]).map(
            lambda text: {"S": text}
        ),
        "tags": st.just({"SS": ["a", "b"]}),
        "map": st.just({"M": {"a": {"L": [{"NULL": True}, {"N": "1"}]}}}),
    },
)
conditions = st.sampled_from(
    [
        {},
        {"ConditionExpression": "attribute_not_exists(pk)"},
        {"ConditionExpression": "attribute_exists(sk)"},
        {"ConditionExpression": "n > :one", "ExpressionAttributeValues": {":one": {"N": "1"}}},
    ]
)
old_values = st.sampled_from([{}, {"ReturnValues": "ALL_OLD"}])
updates = st.sampled_from(
    [
        {"UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}},
        {
            "UpdateExpression": "SET title = if_not_exists(title, :new) REMOVE tags",
            "ExpressionAttributeValues": {":new": {"S": "new"}},
            "ConditionExpression": "attribute_not_exists(gone)",
        },
        {"UpdateExpression": "SET pk = :one", "ExpressionAttributeValues": {":one": {"N": "1"}}},
    ]
)
results = st.sampled_from(["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])


@st.composite
def requests(draw: st.DrawFn, kind: str) -> tuple[str, Json]:
    partition = {"S": draw(st.sampled_from(PARTITIONS))}
    sort = draw(sort_values(kind))
    key = {"pk": partition, "sk": sort}
    table = {"TableName": "table"}
    operation = draw(st.sampled_from(OPERATIONS))
    match operation:
        case "GetItem":
            return operation, {**table, "Key": key}
        case "PutItem":
            item = {**draw(contents), **key}
            return operation, {**table, "Item": item, **draw(conditions), **draw(old_values)}
        case "UpdateItem":
            return operation, {**table, "Key": key, **draw(updates), "ReturnValues": draw(results)}
        case "DeleteItem":
            return operation, {**table, "Key": key, **draw(conditions), **draw(old_values)}
        case "Query":
            return operation, {**table, **draw(queries(kind, partition))}
        case "Scan":
            return operation, {**table, **draw(filters)}
        case "BatchWriteItem":
            keys = draw(st.lists(sort_values(kind), min_size=1, max_size=5))
            entries: list[Json] = [
                {"PutRequest": {"Item": {"pk": partition, "sk": sort, **draw(contents)}}}
                if draw(st.booleans())
                else {"DeleteRequest": {"Key": {"pk": partition, "sk": sort}}}
                for sort in keys
            ]
            return operation, {"RequestItems": {"table": entries}}
        case "BatchGetItem":
            keys = draw(st.lists(sort_values(kind), min_size=1, max_size=5))
            members = {"Keys": [{"pk": partition, "sk": sort} for sort in keys]}
            return operation, {"RequestItems": {"table": members}}
        case "TransactGetItems":
            keys = draw(st.lists(sort_values(kind), min_size=1, max_size=3))
            gets = [{"Get": {**table, "Key": {"pk": partition, "sk": each}}} for each in keys]
            return operation, {"TransactItems": gets}
    keys = draw(st.lists(sort_values(kind), min_size=1, max_size=3))
    writes: list[Json] = []
    for each in keys:
        key = {"pk": partition, "sk": each}
        writes.append(
            draw(
                st.sampled_from(
                    [
                        {"Put": {**table, "Item": {**key, "n": {"N": "1"}}}},
                        {"Delete": {**table, "Key": key}},
                        {
                            "Put": {
                                **table,
                                "Item": key,
                                "ConditionExpression": "attribute_not_exists(pk)",
                            }
                        },
                        {
                            "Update": {
                                **table,
                                "Key": key,
                                "UpdateExpression": "ADD n :one",
                                "ExpressionAttributeValues": {":one": {"N": "1"}},
                            }
                        },
                        {
                            "ConditionCheck": {
                                **table,
                                "Key": key,
                                "ConditionExpression": "attribute_exists(pk)",
                            }
                        },
                    ]
                )
            )
        )
    return "TransactWriteItems", {"TransactItems": writes}


filters = st.sampled_from(
    [
        {},
        {"Limit": 2},
        {"Limit": 3, "FilterExpression": "attribute_exists(n)"},
        {"ProjectionExpression": "title, n"},
        {"Select": "COUNT"},
    ]
)


@st.composite
def queries(draw: st.DrawFn, kind: str, partition: Json) -> Json:
    values = {":pk": partition}
    operator = draw(
        st.sampled_from(
            ["", "=", "<", "<=", ">", ">=", "BETWEEN"] + ["begins_with"] * (kind == "S")
        )
    )
    condition = "pk = :pk"
    if operator:
        values[":a"] = draw(sort_values(kind))
    if operator == "BETWEEN":
        values[":b"] = draw(sort_values(kind))
        condition += " AND sk BETWEEN :a AND :b"
    elif operator == "begins_with":
        condition += " AND begins_with(sk, :a)"
    elif operator:
        condition += f" AND sk {operator} :a"
    return {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        "ScanIndexForward": draw(st.booleans()),
        **draw(filters),
    }


def named(request: Any, name: str) -> Any:
    """The request with the table's own name."""
    if isinstance(request, dict):
        return {
            (name if member == "table" else member): (
                name if member == "TableName" else named(value, name)
            )
            for member, value in request.items()
        }
    return [named(each, name) for each in request] if isinstance(request, list) else request


def answer(backend: Any, operation: str, request: Json) -> Any:
    """The answer of all pages, or the error."""
    pages: list[Json] = []
    start: Json = {}
    while True:
        try:
            page = backend.execute(operation, {**request, **start})
        except ApiError as error:
            return type(error), error.message, error.members
        pages.append(page)
        if operation not in ("Query", "Scan") or "LastEvaluatedKey" not in page:
            return comparable(operation, pages)
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def comparable(operation: str, pages: list[Json]) -> Any:
    if operation == "Scan":
        items = [repr(sorted(item.items())) for page in pages for item in page.get("Items", [])]
        return sorted(items), sum(page["Count"] for page in pages)
    if operation == "BatchGetItem":
        (items,) = pages[0]["Responses"].values()
        return sorted(repr(sorted(item.items())) for item in items)
    return pages


def compare(azure: Any, kind: str, data: st.DataObject) -> None:
    """Draw a history, and compare each answer, and everything at the end."""
    name = f"history-{kind}-{uuid.uuid4()}"
    azure.execute("CreateTable", definition(name, kind))
    with embedded.open() as memory:
        memory.execute("CreateTable", definition(name, kind))
        first = [
            {
                "PutRequest": {
                    "Item": {"pk": {"S": PARTITIONS[0]}, "sk": sort, **data.draw(contents)}
                }
            }
            for sort in data.draw(st.lists(sort_values(kind), unique_by=repr, min_size=4))
            if sort[kind]
        ]
        for backend in (azure, memory):
            backend.execute("BatchWriteItem", {"RequestItems": {name: first}})
        for _ in range(data.draw(st.integers(1, 12))):
            operation, request = data.draw(requests(kind))
            request = named(request, name)
            assert answer(azure, operation, request) == answer(memory, operation, request)
        everything = ("Scan", {"TableName": name})
        assert answer(azure, *everything) == answer(memory, *everything)
    azure.execute("DeleteTable", {"TableName": name})


@pytest.mark.parametrize("kind", ["S", "N"])
@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_azurite_answers_as_a_database_in_memory(
    kind: str, azure: AzureTable, data: st.DataObject
) -> None:
    compare(azure, kind, data)


@pytest.mark.parametrize("kind", ["S", "N"])
@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), utf_8=st.booleans(), largest_page=st.sampled_from([1, 2, 1000]))
def test_any_order_and_pages_of_azure_give_the_same_answers(
    kind: str, data: st.DataObject, utf_8: bool, largest_page: int
) -> None:
    compare(FakeAzure(utf_8=utf_8, largest_page=largest_page), kind, data)


@pytest.mark.parametrize("utf_8", [True, False])
@pytest.mark.parametrize("kind", ["S", "N"])
def test_every_operator_at_every_bound(kind: str, utf_8: bool) -> None:
    azure = FakeAzure(utf_8=utf_8)
    values = [{kind: content} for content in (TEXTS if kind == "S" else NUMBERS) if content]
    partition = {"S": PARTITIONS[0]}
    operators = ["=", "<", "<=", ">", ">="]
    conditions = [f"sk {operator} :a" for operator in operators] + ["sk BETWEEN :a AND :a"]
    conditions += ["begins_with(sk, :a)"] * (kind == "S")
    with embedded.open() as memory:
        for backend in (azure, memory):
            backend.execute("CreateTable", definition("operators", kind))
            for sort in values:
                item = {"pk": partition, "sk": sort}
                backend.execute("PutItem", {"TableName": "operators", "Item": item})
        for condition in conditions:
            for value in values:
                request = {
                    "TableName": "operators",
                    "KeyConditionExpression": f"pk = :pk AND {condition}",
                    "ExpressionAttributeValues": {":pk": partition, ":a": value},
                    "Limit": 5,
                }
                found = answer(azure, "Query", request)
                assert found == answer(memory, "Query", request)
                assert condition == "sk < :a" or condition == "sk > :a" or found[0]["Count"]
