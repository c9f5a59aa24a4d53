"""The server on the real service: what only shows when both are there."""

from __future__ import annotations

import http.client
import json
import threading
import zlib
from urllib.parse import urlsplit

import pytest
from tests.server.fakes import headers_of

import isotone
from isotone.server import running_server
from isotone.testing import Faults

NOT_JSON = {
    "empty": b"",
    "cut": b"{",
    "a list": b"[]",
    "not UTF-8 in a name": b'{"\xff":1}',
    "not UTF-8 in a value": b'{"TableName":"\xff"}',
    "not UTF-8 in an unknown value": b'{"x":{"y":"\xff"}}',
    "lists without end": b"[" * 200_000,
    "maps without end": b'{"a":' * 200_000,
    "a deep member": b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "a deep item": b'{"Item":' * 100_000,
}

TABLE = {
    "TableName": "Items",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture(params=["memory", "file"])
def served(request, tmp_path):
    path = ":memory:" if request.param == "memory" else tmp_path / "items.db"
    with isotone.open(path) as database, running_server(database) as url:
        with Asker(url) as ask:
            ask("CreateTable", TABLE)
        yield url
        assert database.check() == []


class Asker:
    """A connection that is kept."""

    def __init__(self, url):
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._connection.close()

    def __call__(self, operation, request, **headers):
        body = request if isinstance(request, bytes) else json.dumps(request).encode()
        self._connection.request("POST", "/", body, headers_of(operation, **headers))
        response = self._connection.getresponse()
        answer = response.read()
        assert response.headers["x-amz-crc32"] == str(zlib.crc32(answer))
        if response.headers["Content-Encoding"] == "gzip":
            answer = zlib.decompress(answer, wbits=31)
        return response.status, json.loads(answer)


def put(name, **attributes):
    item = {"id": {"S": name}} | {key: {"S": value} for key, value in attributes.items()}
    return {"TableName": "Items", "Item": item}


def at_once(url, number, work):
    """Run `work(ask, number)` on as many connections at the same time."""
    barrier = threading.Barrier(number)

    def run(which):
        with Asker(url) as ask:
            barrier.wait(5)
            work(ask, which)

    threads = [threading.Thread(target=run, args=(which,)) for which in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_of_writers_of_one_new_item_exactly_one_wins(served):
    statuses = []

    def work(ask, which):
        for item in range(10):
            condition = {"ConditionExpression": "attribute_not_exists(id)"}
            status, _ = ask("PutItem", put(f"item-{item}", by=str(which)) | condition)
            statuses.append(status)

    at_once(served, 8, work)
    assert sorted(statuses) == [200] * 10 + [400] * 70


def test_a_bad_write_does_not_harm_those_committed_with_it(served):
    answers = {}

    def work(ask, which):
        requests = {
            0: put(f"good-{which}"),
            1: {"TableName": "Nowhere", "Item": {"id": {"S": "x"}}},
            2: {"TableName": "Items", "Item": {"id": {"N": "1"}}},
            3: b"{",
        }
        answers[which] = [ask("PutItem", requests[which % 4])[0] for _ in range(10)]

    at_once(served, 8, work)
    expected = {which: [200 if which % 4 == 0 else 400] * 10 for which in range(8)}
    assert answers == expected
    with Asker(served) as ask:
        _, scanned = ask("Scan", {"TableName": "Items"})
    assert sorted(item["id"]["S"] for item in scanned["Items"]) == ["good-0", "good-4"]


def test_each_client_reads_its_own_writes(served):
    failures = []

    def work(ask, which):
        for number in range(20):
            ask("PutItem", put(f"mine-{which}", n=str(number)))
            _, got = ask("GetItem", {"TableName": "Items", "Key": {"id": {"S": f"mine-{which}"}}})
            if got["Item"]["n"] != {"S": str(number)}:
                failures.append((which, number))

    at_once(served, 6, work)
    assert failures == []


def test_counters_count_every_addition(served):
    update = {
        "TableName": "Items",
        "Key": {"id": {"S": "counter"}},
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }

    def work(ask, which):
        for _ in range(25):
            assert ask("UpdateItem", update)[0] == 200

    at_once(served, 8, work)
    with Asker(served) as ask:
        _, got = ask("GetItem", {"TableName": "Items", "Key": {"id": {"S": "counter"}}})
    assert got["Item"]["n"] == {"N": "200"}


def test_malformed_json_and_unknown_operations_have_the_names_of_the_service(served):
    with Asker(served) as ask:
        status, answer = ask("GetItem", b"{")
        assert (status, answer["__type"]) == (
            400,
            "com.amazon.coral.service#SerializationException",
        )
        assert ask("NoSuchThing", {}) == (
            400,
            {"__type": "com.amazon.coral.service#UnknownOperationException"},
        )


def test_large_answers_travel_compressed_and_whole(served):
    with Asker(served) as ask:
        ask("PutItem", put("large", text="x" * 300_000))
        request = {"TableName": "Items", "Key": {"id": {"S": "large"}}}
        _, plain = ask("GetItem", request)
        assert ask("GetItem", request, Accept_Encoding="gzip") == (200, plain)


def test_plain_json_is_wrapped(served):
    with Asker(served) as ask:
        connection = ask._connection
        headers = headers_of("ListTables") | {"Content-Type": "application/json"}
        connection.request("POST", "/", b"{}", headers)
        answer = json.loads(connection.getresponse().read())
    assert answer == {"Output": {"TableNames": ["Items"]}, "Version": "1.0"}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON)
@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
@pytest.mark.parametrize("kind", ["plain", "with faults"])
def test_a_body_that_is_no_json_is_the_clients_fault(body, signed, kind, caplog):
    headers = headers_of("PutItem")
    codes = ["SerializationException", "ValidationException"]
    if not signed:
        codes.append("MissingAuthenticationTokenException")  # values are not looked at before that
        del headers["Authorization"]
    with isotone.open() as database:
        service = Faults().served(database) if kind == "with faults" else database
        with running_server(service, threaded=kind == "with faults") as url:
            for operation, path in (("PutItem", "/"), ("Query", "/"), ("x", "/faults")):
                connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
                headers["X-Amz-Target"] = f"DynamoDB_20120810.{operation}"
                connection.request("POST", path, body, headers)
                response = connection.getresponse()
                answer = json.loads(response.read())
                connection.close()
                if path == "/faults" and body == b"[]" and kind == "with faults":
                    continue  # no faults are ordered
                assert response.status == 400
                if path == "/":
                    assert answer["__type"].rpartition("#")[2] in codes
    assert caplog.records == []
