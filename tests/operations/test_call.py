"""`call`, the door for callers in the same process: it says what `execute` says, without JSON."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.expressions import trees
from tests.operations.conftest import key_schema
from tests.operations.test_random_requests import documents

import isotone
from isotone import limits
from isotone.errors import (
    ApiError,
    ConditionalCheckFailedException,
    UsageError,
    ValidationException,
)
from isotone.expressions import Writer
from isotone.expressions.nodes import (
    Call,
    Comparison,
    Literal,
    Not,
    Path,
    ProjectionNode,
    Set,
    UpdateNode,
)
from isotone.operations.api import ACTIONS
from isotone.operations.request_grammar import shape_of

Outcome = tuple[str, Any, Any]
KEY = {"p": {"S": "a"}}


def executed(database: isotone.Database, operation: str, request: Any) -> Outcome:
    try:
        answer = database.send(operation, msgspec.json.encode(request))
    except ApiError as error:
        members = msgspec.json.decode(msgspec.json.encode(error.members))
        return error.code, error.message, members
    return "answer", msgspec.json.decode(answer), None


def called(database: isotone.Database, operation: str, request: Any) -> Outcome:
    try:
        answer = database.execute(operation, request)
    except ApiError as error:
        return error.code, error.message, error.members
    return "answer", answer, None


def database() -> isotone.Database:
    """Two tables: one with a key of one attribute, one with items in order and an index."""
    opened = isotone.open(":memory:", clock=isotone.ManualClock())
    for name, keys in (("plain", ["p"]), ("sorted", ["p", "s"])):
        opened.execute(
            "CreateTable",
            {
                "TableName": name,
                "AttributeDefinitions": [{"AttributeName": k, "AttributeType": "S"} for k in keys],
                "KeySchema": key_schema(*keys),
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
    return opened


@pytest.fixture
def db() -> Iterator[isotone.Database]:
    with database() as opened:
        yield opened


@cache
def requests(operation: str) -> st.SearchStrategy[Any]:
    return documents(shape_of(ACTIONS[operation].request))


@settings(deadline=None)
@given(st.data())
def test_both_doors_say_the_same_of_any_request(data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from(sorted(ACTIONS)))
    request = data.draw(requests(operation).filter(lambda request: isinstance(request, dict)))
    with database() as one, database() as other:
        expected = executed(one, operation, request)
        actual = called(other, operation, request)
        if operation != "CreateTable":  # whose answer has a random id
            assert actual == expected
        assert actual[0] == expected[0]


def test_both_doors_say_the_same_of_a_request_that_a_decoder_of_its_own_reads() -> None:
    with database() as db:
        for request in ({}, {"TableName": None}, {"IndexName": 1}, {"TopK": float("nan")}):
            said = executed(db, "SearchVectors", request)
            assert said == called(db, "SearchVectors", request)
            assert "line 1" in said[1]


VALUES = trees.literals
CONDITION = trees.conditions(VALUES, trees.paths())
UPDATE = trees.updates(VALUES, trees.paths()) | trees.fitting_updates()
PROJECTION = trees.projections(trees.paths())
CHOICE = st.fixed_dictionaries({}, optional={"ProjectionExpression": PROJECTION})
SHOWN = st.fixed_dictionaries(
    {}, optional={"ReturnValuesOnConditionCheckFailure": st.just("ALL_OLD")}
)
KEY_CONDITION = st.builds(
    lambda operator: Comparison(operator, Path(("p",)), Literal({"S": "a"})),
    st.sampled_from(["=", "=", "<"]),
)


def write(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    optional = {
        "ConditionExpression": CONDITION,
        "ReturnValuesOnConditionCheckFailure": st.just("ALL_OLD"),
    }
    return st.fixed_dictionaries({"TableName": st.just("plain"), **members}, optional=optional)


KEYED = st.just(KEY)
PUT = write(Item=trees.items.map(lambda item: {**item, **KEY}))
DELETE = write(Key=KEYED)
CHANGE = write(Key=KEYED, UpdateExpression=UPDATE)
ENTRY = st.one_of(
    PUT.map(lambda entry: {"Put": entry}),
    DELETE.map(lambda entry: {"Delete": entry}),
    CHANGE.map(lambda entry: {"Update": entry}),
)
RETURNED = st.sampled_from(["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
WITH_TREES: dict[str, st.SearchStrategy[Any]] = {
    "PutItem": PUT,
    "DeleteItem": DELETE,
    "UpdateItem": st.builds(lambda c, r: {**c, "ReturnValues": r}, CHANGE, RETURNED),
    "GetItem": CHOICE.map(lambda c: {"TableName": "plain", "Key": KEY, **c}),
    "Query": st.builds(
        lambda k, f, c: {
            "TableName": "plain",
            "KeyConditionExpression": k,
            "FilterExpression": f,
            **c,
        },
        KEY_CONDITION,
        CONDITION,
        CHOICE,
    ),
    "Scan": st.builds(
        lambda f, c: {"TableName": "plain", "FilterExpression": f, **c}, CONDITION, CHOICE
    ),
    "BatchGetItem": CHOICE.map(lambda c: {"RequestItems": {"plain": {"Keys": [KEY], **c}}}),
    "TransactGetItems": CHOICE.map(
        lambda c: {"TransactItems": [{"Get": {"TableName": "plain", "Key": KEY, **c}}]}
    ),
    "TransactWriteItems": ENTRY.map(lambda entry: {"TransactItems": [entry]}),
}


def rendered(request: Any) -> Any:
    """The same request with its trees as texts, and the placeholders of each structure beside them."""
    if isinstance(request, list):
        return [rendered(member) for member in request]
    if not isinstance(request, dict):
        return request
    writer = Writer()
    members = {
        name: writer.text(member) if isinstance(member, msgspec.Struct) else rendered(member)
        for name, member in request.items()
    }
    if writer.names:
        members["ExpressionAttributeNames"] = writer.names
    if writer.values:
        members["ExpressionAttributeValues"] = writer.values
    return members


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(trees.documents, max_size=1), st.data())
def test_a_tree_means_what_its_text_means(before: list[Any], data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from(sorted(WITH_TREES)))
    request = data.draw(WITH_TREES[operation])
    try:
        text = rendered(request)
    except UsageError:  # the actions of one kind do not stand together, which no text can say
        return
    with database() as one, database() as other:
        for item in before:
            for each in (one, other):
                each.execute("PutItem", {"TableName": "plain", "Item": {**item, **KEY}})
        expected, actual = executed(one, operation, text), called(other, operation, request)
        assert actual == expected
        scan = {"TableName": "plain"}
        assert called(other, "Scan", scan) == executed(one, "Scan", scan)


def test_an_answer_is_the_callers_own(db: isotone.Database) -> None:
    append = UpdateNode((Set(Path(("a",)), Literal({"L": [{"S": "x"}]})),))
    request = {
        "TableName": "plain",
        "Key": KEY,
        "UpdateExpression": append,
        "ReturnValues": "ALL_NEW",
    }
    item = {"p": {"S": "a"}, "a": {"L": [{"S": "x"}]}}
    for _ in range(2):
        attributes = db.execute("UpdateItem", request)["Attributes"]
        assert attributes == item
        attributes["a"]["L"].append({"S": "mine"})
    for operation, member in (("GetItem", "Key"), ("GetItem", "Key")):
        answer = db.execute(operation, {"TableName": "plain", member: KEY})
        assert answer == {"Item": item}
        answer["Item"]["a"]["L"].clear()
    page = db.execute("Scan", {"TableName": "plain"})
    assert page["Items"] == [item]


def test_the_item_in_an_error_is_decoded(db: isotone.Database) -> None:
    db.execute("PutItem", {"TableName": "plain", "Item": KEY})
    absent = Call("attribute_not_exists", (Path(("p",)),))
    put = {"TableName": "plain", "Item": KEY, "ConditionExpression": absent}
    shown = {**put, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    with pytest.raises(ConditionalCheckFailedException) as failed:
        db.execute("PutItem", shown)
    assert failed.value.members == {"Item": KEY}
    with pytest.raises(ApiError) as cancelled:
        db.execute("TransactWriteItems", {"TransactItems": [{"Put": shown}]})
    (reason,) = cancelled.value.members["CancellationReasons"]
    assert reason["Item"] == KEY


def test_a_request_may_be_any_mapping_and_have_tuples_and_nulls(db: isotone.Database) -> None:
    db.execute("PutItem", {"TableName": "plain", "Item": KEY, "ReturnValues": None})
    keys = {"plain": {"Keys": (KEY,), "ConsistentRead": None}}
    answer = db.execute("BatchGetItem", {"RequestItems": keys})
    assert answer == {"Responses": {"plain": [KEY]}, "UnprocessedKeys": {}}


def test_unprocessed_keys_come_back_with_their_tree(db: isotone.Database) -> None:
    size = limits.ITEM_SIZE - 100
    keys = [{"p": {"S": str(number)}} for number in range(limits.BATCH_GET_SIZE // size + 2)]
    for key in keys:
        db.execute("PutItem", {"TableName": "plain", "Item": {**key, "a": {"S": "x" * size}}})
    projection = ProjectionNode((Path(("p",)),))
    requested = {"plain": {"Keys": keys, "ProjectionExpression": projection}}
    answer = db.execute("BatchGetItem", {"RequestItems": requested})
    left = answer["UnprocessedKeys"]
    assert left["plain"]["ProjectionExpression"] is projection
    rest = db.execute("BatchGetItem", {"RequestItems": left})
    assert answer["Responses"]["plain"] + rest["Responses"]["plain"] == keys


def test_values_in_a_tree_are_checked(db: isotone.Database) -> None:
    equal = Comparison("=", Path(("a",)), Literal({"N": "x"}))
    with pytest.raises(
        ValidationException, match="parameter cannot be converted to a numeric value: x"
    ):
        db.execute("Scan", {"TableName": "plain", "FilterExpression": equal})
    large = {"S": "x" * (limits.EXPRESSION_VALUES_SIZE + 1)}
    with pytest.raises(ValidationException, match="size exceeds"):
        db.execute(
            "Scan",
            {
                "TableName": "plain",
                "FilterExpression": Comparison("=", Path(("a",)), Literal(large)),
            },
        )


def test_a_tree_has_no_placeholders_beside_it(db: isotone.Database) -> None:
    equal = Comparison("=", Path(("a",)), Literal({"N": "1"}))
    with pytest.raises(UsageError, match="leave out ExpressionAttributeNames"):
        db.execute(
            "Scan",
            {
                "TableName": "plain",
                "FilterExpression": equal,
                "ExpressionAttributeNames": {"#a": "a"},
            },
        )


def test_a_token_distinguishes_trees(db: isotone.Database) -> None:
    def write(node: Any) -> dict[str, Any]:
        put = {"TableName": "plain", "Item": KEY, "ConditionExpression": node}
        return {"TransactItems": [{"Put": put}], "ClientRequestToken": "once"}

    exists, absent = (
        Call(name, (Path(("p",)),)) for name in ("attribute_exists", "attribute_not_exists")
    )
    db.execute("TransactWriteItems", write(absent))
    db.execute("TransactWriteItems", write(absent))
    with pytest.raises(ApiError) as refused:
        db.execute("TransactWriteItems", write(exists))
    assert refused.value.code == "IdempotentParameterMismatchException"


@pytest.mark.parametrize("odd", [5, {}, [], True, b"a = b"])
def test_what_is_neither_a_text_nor_a_tree_is_refused(db: isotone.Database, odd: Any) -> None:
    request = {"TableName": "plain", "FilterExpression": odd}
    refused = called(db, "Scan", request)
    assert refused[0] == "SerializationException"
    if not isinstance(odd, bytes):  # which no JSON can say
        assert refused == executed(db, "Scan", request)


@pytest.mark.parametrize("odd", ["a\ud800", b"bytes", 5.5, object()])
def test_what_json_cannot_say_is_refused(db: isotone.Database, odd: Any) -> None:
    with pytest.raises(ApiError) as refused:
        db.execute("PutItem", {"TableName": "plain", "Item": {"p": {"S": odd}}})
    assert refused.value.code == "SerializationException"
    with pytest.raises(ApiError) as refused:
        db.execute("PutItem", {"TableName": "plain", "Item": {**KEY, odd: {"S": "x"}}})
    assert refused.value.code == "SerializationException"
    assert db.execute("Scan", {"TableName": "plain"})["Count"] == 0


FIRST_REQUESTS = """
import sys, threading
import msgspec
from isotone.operations import request_decoding
from isotone.operations.request_members import ApiStructure

DEPTH, THREADS = 5, 4
request = {}
for level in range(DEPTH):
    request = {"Inner": [request]}
body = msgspec.json.encode(request)

def nested():
    shape = msgspec.defstruct("Innermost", [], bases=(ApiStructure,))
    for level in range(DEPTH):
        shape = msgspec.defstruct(f"Level{level}", [("inner", list[shape])], bases=(ApiStructure,))
    return shape

def work(ask):
    for shape in shapes:
        together.wait()
        ask(shape)

sys.setswitchinterval(1e-6)
together = threading.Barrier(THREADS)
for ask in (
    lambda shape: request_decoding.decode(shape, body),
    lambda shape: request_decoding.decode_mapping(shape, request),
):
    shapes = [nested() for _ in range(20)]
    threads = [threading.Thread(target=work, args=(ask,)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_first_requests_may_come_from_several_threads() -> None:
    """A structure is compiled when it is first used. msgspec crashes if two threads do that at once."""
    subprocess.run([sys.executable, "-c", FIRST_REQUESTS], check=True, timeout=60)


@pytest.mark.parametrize("depth", [400, 900, 20_000])
def test_a_tree_that_is_very_deep_is_refused(depth: int) -> None:
    tree: Any = Call("attribute_exists", (Path(("p",)),))
    for _ in range(depth):
        tree = Not(tree)
    with isotone.open() as database:
        database.execute(
            "CreateTable",
            {
                "TableName": "tab",
                "KeySchema": key_schema("p"),
                "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        with pytest.raises(ValidationException, match="too many operators"):
            database.execute(
                "PutItem", {"TableName": "tab", "Item": KEY, "ConditionExpression": tree}
            )
