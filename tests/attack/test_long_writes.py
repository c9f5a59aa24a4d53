"""Writes that compute for long leave the event loop and the engine's lock: other requests are served meanwhile."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone.errors import (
    ApiError,
    ConditionalCheckFailedException,
    TakesLong,
    TransactionCanceledException,
)
from isotone.expressions.expression import COMPILED
from isotone.operations import long_writes
from isotone.server.dispatcher import Dispatcher
from isotone.server.metrics import Metrics
from isotone.server.request import ServiceCall
from isotone.server.response import ORDINARY

TABLE = {
    "TableName": "tab",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
LIST = {"L": [{"N": str(number % 7)} for number in range(20_000)]}
KEY = {"p": {"S": "big"}}
CONDITION = " OR ".join(f"contains(l, :v{number})" for number in range(60))
ABSENT = {f":v{number}": {"N": str(-number - 1)} for number in range(60)}
PRESENT = {**ABSENT, ":v0": {"N": "6"}}
CHECK = {"ConditionExpression": CONDITION, "ExpressionAttributeValues": PRESENT}
FAILING = {**CHECK, "ExpressionAttributeValues": ABSENT}
SET = {"UpdateExpression": "SET a = :one"}
ONE = {":one": {"N": "1"}}
IN_PARTIQL = " OR ".join(f"contains(l, {number})" for number in range(5, 30))


@pytest.fixture(params=["memory", "file"])
def database(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[isotone.Database]:
    path = ":memory:" if request.param == "memory" else tmp_path / "long.db"
    with isotone.open(path, durability="none") as database:
        database.execute("CreateTable", TABLE)
        database.execute("PutItem", {"TableName": "tab", "Item": {**KEY, "l": LIST}})
        yield database
        assert database.check() == []


def body(**request: Any) -> bytes:
    return json.dumps(request).encode()


def on(**request: Any) -> dict[str, Any]:
    return {"TableName": "tab", **request}


LONG_WRITES: dict[str, tuple[str, bytes]] = {
    "a put": ("PutItem", body(**on(Item={**KEY, "a": {"N": "1"}}, **CHECK))),
    "a delete": ("DeleteItem", body(**on(Key=KEY, **CHECK))),
    "an update": (
        "UpdateItem",
        body(**on(Key=KEY, **SET, **{**CHECK, "ExpressionAttributeValues": PRESENT | ONE})),
    ),
    "an update that appends": (
        "UpdateItem",
        body(
            **on(
                Key=KEY,
                UpdateExpression="SET " + ",".join(f"m{n} = list_append(l, l)" for n in range(20)),
            )
        ),
    ),
    "Expected": (
        "PutItem",
        body(
            **on(
                Item=KEY,
                ConditionalOperator="OR",
                Expected={
                    name: {
                        "ComparisonOperator": "CONTAINS",
                        "AttributeValueList": [{"N": str(-place - 1)}],
                    }
                    for place, name in enumerate(["l", *(f"x{n}" for n in range(60))])
                },
            )
        ),
    ),
    "a transaction": (
        "TransactWriteItems",
        body(
            TransactItems=[
                {"Put": on(Item={"p": {"S": "other"}})},
                {"ConditionCheck": on(Key=KEY, **CHECK)},
            ]
        ),
    ),
    "a statement": (
        "ExecuteStatement",
        body(Statement=f"UPDATE tab SET a = 1 WHERE p = 'big' AND ({IN_PARTIQL})"),
    ),
    "a batch of statements": (
        "BatchExecuteStatement",
        body(
            Statements=[
                {"Statement": "UPDATE tab SET n = n + 1 WHERE p = 'counter'"},
                {"Statement": f"UPDATE tab SET a = 1 WHERE p = 'big' AND ({IN_PARTIQL})"},
            ]
        ),
    ),
    "a transaction of statements": (
        "ExecuteTransaction",
        body(
            TransactStatements=[
                {"Statement": "INSERT INTO tab VALUE {'p': 'new'}"},
                {"Statement": f"EXISTS (SELECT * FROM tab WHERE p = 'big' AND ({IN_PARTIQL}))"},
            ]
        ),
    ),
    "many legacy conditions": (
        "PutItem",
        body(
            **on(
                Item={"p": {"S": "other"}},
                Expected={f"x{place}": {"Exists": False} for place in range(1000)},
            )
        ),
    ),
    "a list compared with many others": (
        "UpdateItem",
        body(
            **on(
                Key=KEY,
                UpdateExpression="SET a = p",
                ConditionExpression=f"NOT l IN ({', '.join(f'm{place}' for place in range(15))})",
            )
        ),
    ),
    "a statement that reads, disguised as a write": (
        "ExecuteStatement",
        rb'{"Statement": "\u0053ELECT p FROM tab WHERE contains(l, 6)"}',
    ),
    "new long expressions": (
        "TransactWriteItems",
        body(
            TransactItems=[
                {
                    "Delete": on(
                        Key={"p": {"S": str(place)}},
                        ConditionExpression=" OR ".join(
                            f"attribute_not_exists(x{place}_{each})" for each in range(100)
                        ),
                    )
                }
                for place in range(10)
            ]
        ),
    ),
}
SHORT_WRITES: dict[str, tuple[str, bytes]] = {
    "a put": ("PutItem", body(**on(Item=KEY))),
    "a delete": ("DeleteItem", body(**on(Key=KEY))),
    "a put if absent": (
        "PutItem",
        body(**on(Item={"p": {"S": "x"}}, ConditionExpression="attribute_not_exists(p)")),
    ),
    "an update of a small item": (
        "UpdateItem",
        body(**on(Key={"p": {"S": "y"}}, **SET, ExpressionAttributeValues=ONE)),
    ),
}


def bounded(database: isotone.Database, *requests: tuple[str, bytes]) -> list[Any]:
    """The results in a thread that may not compute for long, as an event loop gets them."""
    short = [request for request in requests if not database.is_long(*request)]
    database.allow_waiting(False)
    try:
        results = iter(database.send_many(short))
    finally:
        database.allow_waiting(True)
    return [next(results) if request in short else TakesLong() for request in requests]


def answer_to(database: isotone.Database, request: tuple[str, bytes]) -> Any:
    """The answer in a thread that may compute as long as it wants, or the type of the error."""
    try:
        return json.loads(database.send(*request))
    except ApiError as error:
        return type(error)


def items_of(database: isotone.Database) -> list[Any]:
    found = database.execute("Scan", {"TableName": "tab"})["Items"]
    return sorted(found, key=lambda item: item["p"]["S"])


@pytest.mark.parametrize("name", SHORT_WRITES)
def test_a_short_write_stays_in_its_group(database, name):
    assert all(isinstance(result, bytes) for result in bounded(database, SHORT_WRITES[name]))


@pytest.mark.parametrize("name", LONG_WRITES)
def test_a_long_write_leaves_the_group_and_does_what_it_should(database, name):
    database.execute("PutItem", on(Item={"p": {"S": "counter"}, "n": {"N": "0"}}))
    before = items_of(database)
    with isotone.open() as other:  # answers as ever, in one go
        other.execute("CreateTable", TABLE)
        for item in before:
            other.execute("PutItem", on(Item=item))
        expected = answer_to(other, LONG_WRITES[name])
        written = items_of(other)
    COMPILED.clear()
    COMPILED._before.clear()
    short, result = bounded(
        database, ("PutItem", body(**on(Item={"p": {"S": "beside"}}))), LONG_WRITES[name]
    )
    assert short == b"{}"
    assert type(result) is TakesLong
    assert items_of(database) == [{"p": {"S": "beside"}}, *before]  # nothing of it is done
    assert answer_to(database, LONG_WRITES[name]) == expected
    assert items_of(database) == [{"p": {"S": "beside"}}, *written]


def test_a_select_is_no_write_however_it_is_laid_out(database):
    for text in ("SELECT * FROM tab", "\n  select p\n  FROM tab", "\t\r\n SELECT p FROM tab"):
        assert not database.is_grouped("ExecuteStatement", body(Statement=text))
        assert not database.is_grouped(
            "BatchExecuteStatement", body(Statements=[{"Statement": text}])
        )
    assert database.is_grouped("ExecuteStatement", body(Statement="\nDELETE FROM tab"))


@pytest.mark.parametrize("length", [1000, 8193, 20_000])
@pytest.mark.parametrize(
    ("action", "member"),
    [("ExecuteTransaction", "TransactStatements"), ("BatchExecuteStatement", "Statements")],
)
def test_a_fault_that_takes_long_to_show_is_reported(database, action, member, length):
    body = json.dumps({member: [{"Statement": "a" * length}]}).encode()

    def outcome():
        try:
            return database.send(action, body)
        except TakesLong:
            return "later"
        except ApiError as error:
            return error.code, error.message

    expected = outcome()
    database.allow_waiting(False)
    try:
        found = outcome()
    finally:
        database.allow_waiting(True)
    assert found in (expected, "later")


def test_elsewhere_a_write_takes_as_long_as_it_takes(database):
    for request in LONG_WRITES.values():
        (answer,) = database.send_many([request])
        assert isinstance(answer, bytes | ApiError)
    answers = database.send_many(list(LONG_WRITES.values()))  # in one transaction
    assert all(isinstance(each, bytes | ApiError) for each in answers)
    assert not any(isinstance(each, long_writes.EvaluateFirst) for each in answers)


def test_a_long_write_is_among_the_queries_of_a_server(database):
    database.measure()
    database.send(*LONG_WRITES["an update"])
    (found,) = json.loads(database.served())["queries"]
    assert (found["action"], found["calls"]) == ("UpdateItem", 1)


def evaluating(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> list[str]:
    """Call a function each time that a condition is evaluated ahead; returns the names of the threads that do it."""
    threads: list[str] = []
    evaluate = long_writes.evaluate

    def noted(change: Any, record: bytes | None) -> Any:
        threads.append(threading.current_thread().name)
        meanwhile()
        return evaluate(change, record)

    monkeypatch.setattr(long_writes, "evaluate", noted)
    return threads


def test_the_loop_answers_while_a_condition_is_evaluated(database, monkeypatch):
    begun, may_end = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert may_end.wait(10)

    threads = evaluating(monkeypatch, wait)

    async def main() -> tuple[Any, Any]:
        loop = asyncio.get_running_loop()
        dispatcher = Dispatcher(database, loop)
        try:
            long: asyncio.Future[Any] = loop.create_future()
            operation, content = LONG_WRITES["an update"]
            assert (
                dispatcher.submit(ServiceCall(operation, content, ORDINARY), long.set_result)
                is None
            )
            await loop.run_in_executor(None, begun.wait, 10)
            get = ServiceCall("GetItem", body(**on(Key=KEY, ProjectionExpression="p")), ORDINARY)
            read: asyncio.Future[Any] = loop.create_future()
            quick = ServiceCall("GetItem", body(**on(Key={"p": {"S": "none"}})), ORDINARY)
            assert dispatcher.submit(quick, read.set_result) == b"{}"
            assert dispatcher.submit(get, read.set_result) is None  # a large item: after the write
            written: asyncio.Future[Any] = loop.create_future()
            put = ServiceCall("PutItem", body(**on(Item={"p": {"S": "meanwhile"}})), ORDINARY)
            assert dispatcher.submit(put, written.set_result) is None
            assert await asyncio.wait_for(written, 10) == b"{}"
            assert not long.done()
            may_end.set()
            return await asyncio.wait_for(long, 10), await asyncio.wait_for(read, 10)
        finally:
            may_end.set()
            dispatcher.stop()

    long, read = asyncio.run(main())
    assert (long, json.loads(read)) == (b"{}", {"Item": KEY})
    assert threads == ["isotone-long-work"]


def test_what_was_evaluated_for_another_record_does_not_count(database, monkeypatch):
    changes = iter([{"L": [{"N": "9"}] * 5000}, {"L": []}])

    def change() -> None:
        for value in changes:
            database.execute("PutItem", on(Item={**KEY, "l": value}))
            return

    threads = evaluating(monkeypatch, change)
    with pytest.raises(ConditionalCheckFailedException):
        database.send(*LONG_WRITES["an update"])
    assert len(threads) == 2  # for each large record
    (item,) = items_of(database)
    assert "a" not in item


def test_an_item_that_changes_all_the_time_is_evaluated_in_the_end(database, monkeypatch):
    numbers = iter(range(10_000))
    written: list[int] = []

    def change() -> None:
        assert not database.engine.lock._is_owned()
        written.append(next(numbers))
        grown = {"L": [*LIST["L"], {"N": str(written[-1])}]}
        database.execute("PutItem", on(Item={**KEY, "l": grown, "n": {"N": "7"}}))

    evaluating(monkeypatch, change)
    assert database.send(*LONG_WRITES["an update"]) == b"{}"
    (item,) = items_of(database)
    assert item["a"] == {"N": "1"}
    assert item["l"]["L"][-1] == {"N": str(written[-1])}


def test_a_transaction_is_cancelled_for_the_reasons_that_it_has(database):
    request = json.loads(LONG_WRITES["a transaction"][1])
    request["TransactItems"][1]["ConditionCheck"] |= FAILING
    with pytest.raises(TransactionCanceledException) as caught:
        database.send("TransactWriteItems", json.dumps(request).encode())
    codes = [reason["Code"] for reason in caught.value.members["CancellationReasons"]]
    assert codes == ["None", "ConditionalCheckFailed"]
    assert len(items_of(database)) == 1


LARGE_ITEMS = st.fixed_dictionaries(
    {
        "l": st.lists(st.integers(0, 3), max_size=6).map(
            lambda some: {"L": [{"N": str(each)} for each in some * 800]}
        ),
        "s": st.sampled_from(["a", "ab", "b"]).map(lambda text: {"S": text * 3000}),
    }
)
CONDITIONS = st.sampled_from(
    [
        "contains(l, :v)",
        "NOT contains(l, :v)",
        "size(l) > :v",
        "contains(s, :t)",
        "begins_with(s, :t)",
        "l = s OR contains(l, :v)",
    ]
)


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["one", "two"]),
            LARGE_ITEMS,
            CONDITIONS,
            st.integers(0, 3),
            st.booleans(),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_a_history_of_long_writes_is_that_of_short_ones(history):
    with isotone.open() as bounded_database, isotone.open() as oracle:
        for each in (bounded_database, oracle):
            each.execute("CreateTable", TABLE)
        for key, item, condition, value, updates in history:
            values = {":v": {"N": str(value)}, ":t": {"S": "ab"}}
            used = {name: values[name] for name in values if name in condition}
            check = {"ConditionExpression": condition, "ExpressionAttributeValues": used}
            named = {"p": {"S": key}}
            if updates:
                change = {"UpdateExpression": "SET l = list_append(if_not_exists(l, s), l)"}
                request = ("UpdateItem", body(**on(Key=named, **change, **check)))
            else:
                check["ConditionExpression"] += " OR attribute_not_exists(p)"
                request = ("PutItem", body(**on(Item={**named, **item}, **check)))
            expected = answer_to(oracle, request)
            (result,) = bounded(bounded_database, request)
            if type(result) is TakesLong:
                assert answer_to(bounded_database, request) == expected
            else:
                found = json.loads(result) if isinstance(result, bytes) else type(result)
                assert found == expected
        assert items_of(bounded_database) == items_of(oracle)


def test_a_large_put_is_executed_in_the_thread(database):
    item = {"p": {"S": "large"}, "l": {"L": [{"N": "1"}] * 20_000}}

    async def main() -> bytes:
        loop = asyncio.get_running_loop()
        metrics = Metrics()
        dispatcher = Dispatcher(database, loop, metrics=metrics)
        try:
            answered: asyncio.Future[Any] = loop.create_future()
            call = ServiceCall("PutItem", body(**on(Item=item)), ORDINARY)
            assert dispatcher.submit(call, answered.set_result) is None
            assert not dispatcher._group
            answer: bytes = await asyncio.wait_for(answered, 10)
            assert metrics.long_work == 1
            return answer
        finally:
            dispatcher.stop()

    assert asyncio.run(main()) == b"{}"
    assert items_of(database)[1] == item


LARGE_ITEM = {"p": {"S": "large"}, "l": {"L": [{"N": "1"}] * 20_000}}


def test_what_was_evaluated_for_a_refused_write_is_free_before_its_answer(
    database: isotone.Database,
) -> None:
    gc.collect()
    gc.disable()
    try:
        for operation, request_ in [
            ("PutItem", on(Item={**KEY, "l": LIST}, **FAILING)),
            ("TransactWriteItems", {"TransactItems": [{"ConditionCheck": on(Key=KEY, **FAILING)}]}),
        ]:
            with pytest.raises(ApiError) as raised:
                database.send(operation, body(**request_))
            assert "onditional" in str(raised.value)
            alive = [each for each in gc.get_objects() if type(each) is long_writes.Evaluated]
            assert alive == []
    finally:
        gc.enable()


def test_of_a_write_that_needs_no_index_the_old_item_is_not_kept(
    database: isotone.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[long_writes.Evaluated] = []

    def noted(change: Any, record: bytes | None) -> long_writes.Evaluated:
        found.append(evaluate(change, record))
        return found[-1]

    evaluate = long_writes.evaluate
    monkeypatch.setattr(long_writes, "evaluate", noted)
    put = on(Item={**KEY, "l": LIST}, **CHECK)
    database.send("PutItem", body(**put))
    with pytest.raises(ConditionalCheckFailedException):
        database.send("PutItem", body(**{**put, **FAILING}))
    kept, failed = found
    assert kept.record is not None
    assert kept.item is None
    assert failed.item is None
    assert failed.error is not None


@pytest.mark.parametrize(
    "request_",
    [
        (
            "TransactWriteItems",
            {
                "ClientRequestToken": "one",
                "TransactItems": [
                    {"Put": on(Item={**LARGE_ITEM, "t": {"M": {"ü'\"": {"NS": ["1", "2"]}}}})},
                    {"Update": on(Key=KEY, **SET, ExpressionAttributeValues=ONE)},
                ],
            },
        ),
        (
            "ExecuteTransaction",
            {
                "ClientRequestToken": "two",
                "TransactStatements": [
                    {
                        "Statement": "INSERT INTO tab VALUE {'p': ?, 'l': ?}",
                        "Parameters": [{"S": "inserted"}, LIST],
                    }
                ],
            },
        ),
    ],
    ids=["items", "statements"],
)
def test_a_large_transaction_with_a_token_is_executed_once(
    database: isotone.Database, request_: tuple[str, Any]
) -> None:
    operation, content = request_
    text = body(**content)
    first = database.send(operation, text)
    before = items_of(database)
    assert database.send(operation, text) == first  # nothing is inserted twice
    assert items_of(database) == before
    other = text.replace(b'{"N": "1"}', b'{"N": "2"}', 1)
    assert other != text
    with pytest.raises(ApiError, match="ClientRequestToken is being used with different"):
        database.send(operation, other)
