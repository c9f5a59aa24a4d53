"""What runs when: reads at once, writes in groups, defects as 500."""

from __future__ import annotations

import asyncio
import json

import pytest

import isotone
from isotone.errors import InternalServerError, StorageFull, UnknownOperationException
from isotone.server.dispatcher import Dispatcher
from isotone.server.request import ServiceCall
from isotone.server.response import ORDINARY

TABLE = {
    "TableName": "tab",
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def call(operation, body=b"{}"):
    return ServiceCall(operation, body, ORDINARY)


def run(steps):
    """Run `steps(loop)` on a fresh loop until nothing is left to do in this turn."""

    async def main():
        answer = steps(asyncio.get_running_loop())
        await asyncio.sleep(0.01)
        return answer

    return asyncio.run(main())


def test_a_read_is_answered_at_once(service):
    def steps(loop):
        return Dispatcher(service, loop).submit(call("GetItem"), print)

    assert run(steps) == b'{"GetItem":{}}'
    assert service.reads == [("GetItem", b"{}")]


def test_the_writes_of_one_turn_are_one_group(service):
    answers = []

    def steps(loop):
        dispatcher = Dispatcher(service, loop)
        for number in range(3):
            body = b"%d" % number
            assert dispatcher.submit(call("PutItem", body), answers.append) is None
        assert not answers

    run(steps)
    assert [len(group) for group in service.groups] == [3]
    assert answers == [b'{"PutItem":0}', b'{"PutItem":1}', b'{"PutItem":2}']


def test_large_writes_are_groups_of_several_turns(service):
    answers = []
    reads = []

    def steps(loop):
        dispatcher = Dispatcher(service, loop)
        for number in range(7):
            body = b"%d" % number + b" " * (100_000 if number == 3 else 50_000)
            dispatcher.submit(call("PutItem", body), answers.append)

        def read():
            reads.append(len(answers))
            if len(answers) < 8:
                loop.call_soon(read)

        loop.call_soon(read)
        loop.call_soon(dispatcher.submit, call("PutItem", b"7"), answers.append)

    run(steps)
    assert [len(group) for group in service.groups] == [2, 1, 1, 2, 2]
    assert answers == [b'{"PutItem":%b}' % body for group in service.groups for _, body in group]
    assert [body.strip() for group in service.groups for _, body in group] == [
        b"%d" % number for number in range(8)
    ]
    assert set(reads) == {2, 3, 4, 6, 8}, "others are served between the groups"


def test_writes_of_later_turns_are_later_groups(service):
    answers = []

    def steps(loop):
        dispatcher = Dispatcher(service, loop)

        def again(answer):
            answers.append(answer)
            if len(answers) < 3:
                dispatcher.submit(call("PutItem"), again)

        dispatcher.submit(call("PutItem"), again)

    run(steps)
    assert [len(group) for group in service.groups] == [1, 1, 1]


def test_an_api_error_is_a_result(service):
    def steps(loop):
        return Dispatcher(service, loop).submit(call("Nonsense"), print)

    assert isinstance(run(steps), UnknownOperationException)


def test_a_defect_is_an_internal_error_in_the_log(service, caplog):
    def steps(loop):
        return Dispatcher(service, loop).submit(call("GetItem", b'"explode"'), print)

    result = run(steps)
    assert isinstance(result, InternalServerError)
    assert "a defect" not in result.message
    assert "a defect" in caplog.text
    assert "Traceback" in caplog.text


def test_a_defect_in_a_group_acknowledges_nobody(service, caplog):
    answers = []

    def steps(loop):
        dispatcher = Dispatcher(service, loop)
        dispatcher.submit(call("PutItem"), answers.append)
        dispatcher.submit(call("PutItem", b'"explode"'), answers.append)

    run(steps)
    assert [type(answer) for answer in answers] == [InternalServerError] * 2
    assert "Traceback" in caplog.text


def test_a_full_disk_is_reported_in_its_own_words(service, monkeypatch):
    def full(requests, region):
        raise StorageFull("no room left on the disk")

    monkeypatch.setattr(service, "send_many", full)
    answers = []

    def steps(loop):
        Dispatcher(service, loop).submit(call("PutItem"), answers.append)

    run(steps)
    assert isinstance(answers[0], InternalServerError)
    assert answers[0].message == "no room left on the disk"


class Broken:
    """Fails in the engine's reads and writes."""

    def __init__(self, error):
        self.error = error

    def __call__(self, *_args, **_kwargs):
        raise self.error


@pytest.mark.parametrize("operation", ["GetItem", "PutItem"])
@pytest.mark.parametrize("error", [RuntimeError("a defect"), InternalServerError("on purpose")])
def test_a_failure_is_answered_and_logged_in_the_same_way_for_reads_and_writes(
    operation, error, monkeypatch, caplog
):
    key = {"p": {"S": "a"}}
    body = json.dumps({"TableName": "tab", "Key": key, "Item": key}).encode()
    answers = []
    with isotone.open() as database:
        database.execute("CreateTable", TABLE)
        monkeypatch.setattr("isotone.operations.checks.first_fault.first_fault", lambda *_: None)
        monkeypatch.setattr("isotone.operations.item_actions.open_table", Broken(error))

        def steps(loop):
            dispatcher = Dispatcher(database, loop)
            result = dispatcher.submit(call(operation, body), answers.append)
            if result is not None:
                answers.append(result)

        run(steps)
        database.allow_waiting(True)  # the thread is no event loop's any more
    (answer,) = answers
    unexpected = "The server encountered an internal error trying to fulfill the request."
    assert isinstance(answer, InternalServerError)
    assert answer.message == (unexpected if isinstance(error, RuntimeError) else error.message)
    (record,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert record.name == "isotone.server"
    assert record.message.startswith(f"{operation} failed")
