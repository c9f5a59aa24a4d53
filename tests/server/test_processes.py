"""`isotone serve FILE --workers 2`: to its users it is one server, whichever of its processes they reach.

A connection goes to the front that has the fewest, so two that are open at once reach two fronts.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from urllib.request import urlopen

import msgspec
import pytest
from botocore.credentials import Credentials
from tests.crash.server_storm import Caller, Refused, Request
from tests.programs import isotone
from tests.sdks.server_process import STOP_SECONDS, ServerProcess, start_server
from tests.server.exposition_reader import values
from tests.server.fakes import FakeService, request_bytes
from tests.server.signing import ANN, signed, write_credentials

from isotone.errors import UsageError
from isotone.server import check_options, running_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

TABLE: Request = {
    "TableName": "Things",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


class Served:
    """A server with two fronts, and a table."""

    def __init__(self, server: ServerProcess, log: Path, stack: ExitStack) -> None:
        self.server = server
        self.url = server.url
        self._log = log
        self._stack = stack

    def caller(self) -> Caller:
        """A connection, which is open from now on."""
        call = self._stack.enter_context(Caller(self.url))
        call("ListTables")
        return call

    def log(self) -> str:
        return self._log.read_text()

    def get(self, path: str, **headers: str) -> str:
        """The page at a path, over a connection of its own."""
        connection = HTTPConnection(*self.server.address, timeout=30)
        connection.request("GET", path, headers=headers)
        text = connection.getresponse().read().decode()
        connection.close()
        return text

    def children(self) -> list[int]:
        """The processes of the server, but for the supervisor: first the writer, then the fronts."""
        return self.server.processes()[1:]

    def kill(self, process: int) -> None:
        """End a process, and wait until another is in its place."""
        before = self.log().count("another takes its place")
        os.kill(process, signal.SIGKILL)
        wait_until(lambda: self.log().count("another takes its place") > before)


def wait_until(done: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def options() -> list[str]:
    return []


@pytest.fixture
def served(tmp_path: Path, options: list[str]) -> Iterator[Served]:
    log = tmp_path / "log"
    with log.open("w") as complaints, ExitStack() as stack:
        server = stack.enter_context(
            start_server(tmp_path / "shop.db", "--workers", "2", *options, stderr=complaints)
        )
        served = Served(server, log, stack)
        served.caller()("CreateTable", **TABLE)
        yield served
        if server.process.poll() is None:
            assert server.stop() == 0


def item(key: str, **members: str) -> Request:
    return {"pk": {"S": key}, **{name: {"S": value} for name, value in members.items()}}


def put(call: Caller, key: str, **members: str) -> None:
    call("PutItem", TableName="Things", Item=item(key, **members))


def got(call: Caller, key: str) -> Request | None:
    return call("GetItem", TableName="Things", Key=item(key)).get("Item")


def test_what_is_written_through_one_front_is_read_through_the_other_at_once(
    served: Served,
) -> None:
    first, second = served.caller(), served.caller()
    for number in range(200):
        put(first, "a", version=str(number))
        assert got(second, "a") == item("a", version=str(number))
        first, second = second, first
    assert served.log() == ""


def test_a_table_of_one_front_is_known_to_the_other(served: Served) -> None:
    first, second = served.caller(), served.caller()
    first("CreateTable", **{**TABLE, "TableName": "Others"})
    assert second("ListTables")["TableNames"] == ["Others", "Things"]
    assert second("Query", TableName="Others", **ONE_KEY)["Count"] == 0
    second("DeleteTable", TableName="Others")
    with pytest.raises(Refused, match="ResourceNotFoundException"):
        first("GetItem", TableName="Others", Key=item("a"))


ONE_KEY: Request = {
    "KeyConditionExpression": "pk = :k",
    "ExpressionAttributeValues": {":k": {"S": "a"}},
}


def test_errors_are_those_of_one_process(served: Served) -> None:
    call = served.caller()
    put(call, "a", colour="red")
    with pytest.raises(Refused) as refused:
        call(
            "PutItem",
            TableName="Things",
            Item=item("a"),
            ConditionExpression="attribute_not_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert refused.value.code == "ConditionalCheckFailedException"
    with pytest.raises(Refused, match="ValidationException"):
        call("PutItem", TableName="Things", Item={"other": {"S": "a"}})
    with pytest.raises(Refused, match="UnknownOperationException"):
        call("PutThing", TableName="Things")


def test_a_token_holds_across_fronts(served: Served) -> None:
    calls = [served.caller(), served.caller()]
    put(calls[0], "count")
    addition = {
        "Update": {
            "TableName": "Things",
            "Key": item("count"),
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    }
    for call in calls * 3:
        call("TransactWriteItems", TransactItems=[addition], ClientRequestToken="once")
    found = got(calls[0], "count")
    assert found is not None
    assert found["n"] == {"N": "1"}


def test_statements_read_in_a_front_and_write_in_the_writer(served: Served) -> None:
    first, second = served.caller(), served.caller()
    first("ExecuteStatement", Statement="INSERT INTO Things VALUE {'pk': 'a', 'n': 1}")
    found = second("ExecuteStatement", Statement="SELECT n FROM Things WHERE pk = 'a'")
    assert found["Items"] == [{"n": {"N": "1"}}]


def test_a_stream_is_read_through_any_front(served: Served) -> None:
    first, second = served.caller(), served.caller()
    first(
        "UpdateTable",
        TableName="Things",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )
    for number in range(20):
        put(first, str(number))
    streams = [first, second]
    arn = streams[0]("ListStreams", TableName="Things")["Streams"][0]["StreamArn"]
    [shard] = streams[1]("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]
    place = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
    iterator = streams[0]("GetShardIterator", **place)["ShardIterator"]
    records = streams[1]("GetRecords", ShardIterator=iterator)["Records"]
    keys = [record["dynamodb"]["Keys"]["pk"]["S"] for record in records]
    assert keys == [str(number) for number in range(20)]


def test_metrics_are_those_of_all_processes(served: Served) -> None:
    first, second = served.caller(), served.caller()
    for number in range(30):
        put(first, str(number))
        got(second, str(number))
        got(first, str(number))
    with pytest.raises(Refused):
        second("PutItem", TableName="Things", Item={"other": {"S": "a"}})
    found = values(served.get("/metrics"))
    assert found['isotone_requests_total{action="PutItem"}'] == 31
    assert found['isotone_requests_total{action="GetItem"}'] == 60
    assert found['isotone_request_duration_seconds_count{action="PutItem"}'] == 31
    assert found['isotone_errors_total{action="PutItem",error="ValidationException"}'] == 1
    assert found["isotone_write_group_size_sum"] == 31
    units = {name: number for name, number in found.items() if "_units_total" in name}
    assert sum(number for name, number in units.items() if "write" in name) == 30
    assert sum(number for name, number in units.items() if "read" in name) == 30
    assert found["isotone_connections"] == 4  # with that of the fixture and our own
    assert found["isotone_tables"] == 1


def test_health_and_hot_keys_are_those_of_all_processes(served: Served) -> None:
    assert served.get("/healthz") == "ok\n"
    served.get("/hotkeys")
    first, second = served.caller(), served.caller()
    for call in (first, second, second):
        put(call, "warm")
        got(call, "warm")
    found = json.loads(served.get("/hotkeys"))
    assert found["keys"][0] == {"table": "Things", "key": "warm", "reads": 3, "writes": 3}


def test_answers_of_all_fronts_have_different_ids(served: Served) -> None:
    ids = set()
    for _ in range(10):
        with socket.create_connection(served.server.address) as client:
            client.sendall(request_bytes("ListTables") * 5)
            text = b""
            while text.count(b"x-amzn-RequestId") < 5 or not text.endswith(b"}"):
                text += client.recv(65536)
            ids.update(re.findall(rb"x-amzn-RequestId: (\w+)", text))
    assert len(ids) == 50


@pytest.mark.parametrize("options", [["--body-budget", "1"]])
def test_there_is_one_budget_for_bodies(served: Served) -> None:
    half = request_bytes("PutItem", b"x" * 700_000)
    with ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(served.server.address)) for _ in range(2)
        ]
        clients[0].sendall(half[:-1])
        wait_until(lambda: "isotone_bodies_bytes 0" not in served.get("/metrics"))
        clients[1].sendall(half[:-1])
        assert clients[1].recv(4096).startswith(b"HTTP/1.1 503")
        clients[0].sendall(half[-1:])
        assert clients[0].recv(4096).startswith(b"HTTP/1.1 400")
    wait_until(lambda: "isotone_bodies_bytes 0" in served.get("/metrics"))


def test_there_is_one_limit_of_connections(tmp_path: Path) -> None:
    def few_files() -> None:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (84, 84)
        )  # 20 connections, and 64 for the database

    server = start_server(tmp_path / "shop.db", "--workers", "2", prepare=few_files)
    with server, ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(server.address)) for _ in range(24)]
        answers = []
        for client in clients:
            client.settimeout(30)
            client.sendall(request_bytes("ListTables"))
            answers.append(client.recv(4096).split(b"\r\n")[0])
        assert Counter(answers) == {
            b"HTTP/1.1 200 OK": 20,
            b"HTTP/1.1 503 Service Unavailable": 4,
        }
        assert server.stop() == 0


@pytest.mark.parametrize("options", [["--faults"]])
def test_a_fault_strikes_at_every_front(served: Served) -> None:
    connection = HTTPConnection(*served.server.address, timeout=30)
    connection.request("POST", "/faults", '{"fault": "fail", "operation": "GetItem"}')
    assert connection.getresponse().status == 200
    for call in (served.caller(), served.caller()):
        with pytest.raises(Refused):
            got(call, "a")
    connection.close()


def test_every_request_leaves_one_whole_line_in_the_audit_log(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    with (
        start_server(tmp_path / "shop.db", "--workers", "2", "--audit-log", str(audit)) as server,
        ExitStack() as stack,
    ):
        calls = [stack.enter_context(Caller(server.url)) for _ in range(4)]
        calls[0]("CreateTable", **TABLE)
        with ThreadPoolExecutor(4) as pool:
            for call in calls:
                pool.submit(lambda call: [put(call, str(n)) for n in range(50)], call)
        server.process.send_signal(signal.SIGHUP)
        got(calls[1], "1")
        assert server.stop() == 0
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert len(lines) == 202
    assert {line["action"] for line in lines} == {"CreateTable", "PutItem", "GetItem"}


def test_users_are_read_again_by_all_fronts(tmp_path: Path) -> None:
    users = write_credentials(tmp_path / "users.json", ann={})
    options = ("--workers", "2", "--credentials", str(users), "--log-level", "info")
    log = tmp_path / "log"
    with (
        log.open("w") as complaints,
        start_server(tmp_path / "shop.db", *options, stderr=complaints) as server,
        ExitStack() as stack,
    ):
        connections = [
            stack.enter_context(closing(HTTPConnection(*server.address, timeout=30)))
            for _ in range(2)
        ]
        assert [status_for(each, ANN) for each in connections] == [200, 200]
        assert [status_for(each, BOB) for each in connections] == [400, 400]
        write_credentials(users, bob={})
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: log.read_text().count("the credentials were read again") == 2)
        assert [status_for(each, ANN) for each in connections] == [400, 400]
        assert [status_for(each, BOB) for each in connections] == [200, 200]
        users.unlink()
        os.mkfifo(users)  # opening it would wait for its writer
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: log.read_text().count(f"{users} is a pipe, not a regular file") == 2)
        assert [status_for(each, BOB) for each in connections] == [200, 200]
        assert server.stop() == 0


BOB = Credentials("ISOTBOB", "a secret of bob")


def status_for(connection: HTTPConnection, credentials: Credentials) -> int:
    """What a user is answered."""
    method, url, headers, body = signed(
        credentials=credentials,
        moment=datetime.now(UTC),
        host=f"{connection.host}:{connection.port}",
    )
    shown = {name.decode(): value.decode() for name, value in headers.items()}
    connection.request(method.decode(), url.decode(), body, shown)
    response = connection.getresponse()
    response.read()
    return response.status


def test_pages_are_answered_by_one_process_for_all_fronts(served: Served) -> None:
    before = served.children()
    held = [served.caller(), served.caller()]
    pages = [served.get("/workbench/") for _ in range(4)]
    assert len(set(pages)) == 1
    assert "<html" in pages[0]
    assert len(served.children()) == len(before) + 1
    assert held


def test_a_stop_answers_what_was_received_and_leaves_no_process(served: Served) -> None:
    children = served.children()
    clients = [socket.create_connection(served.server.address) for _ in range(4)]
    for number, client in enumerate(clients):
        body = msgspec.json.encode({"TableName": "Things", "Item": item(str(number))})
        client.sendall(request_bytes("PutItem", body))
    time.sleep(0.1)
    assert served.server.stop() == 0
    for client in clients:
        with client:
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(served.server.address)
    assert served.log() == ""


def test_a_front_that_dies_is_replaced_and_the_other_continues(served: Served) -> None:
    calls = [served.caller(), served.caller(), served.caller()]
    served.kill(served.children()[-1])
    alive = 0
    for call in calls:
        try:
            put(call, "a")
            alive += 1
        except Exception:  # noqa: BLE001 - it was a connection of the front that died
            continue
    assert 1 <= alive <= 2
    again = [served.caller() for _ in range(4)]
    for number, call in enumerate(again):
        put(call, str(number))
        assert got(again[0], str(number)) == item(str(number))
    assert re.search(r"front \d \(process \d+\) was ended by SIGKILL; another", served.log())


def test_a_writer_that_dies_is_replaced_and_no_client_is_disconnected(served: Served) -> None:
    calls = [served.caller(), served.caller()]
    served.kill(served.children()[0])
    for number, call in enumerate(calls * 3):
        put(call, str(number))
        assert got(calls[0], str(number)) == item(str(number))
    assert served.get("/healthz") == "ok\n"
    assert re.search(r"the writer \(process \d+\) was ended by SIGKILL; another", served.log())


def test_without_a_supervisor_all_processes_end(served: Served) -> None:
    children = served.children()
    served.server.kill()
    wait_until(lambda: not any(is_running(child) for child in children))


def is_running(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def test_ten_deaths_in_a_minute_end_the_server(served: Served) -> None:
    for _ in range(9):
        served.kill(served.children()[-1])
    os.kill(served.children()[-1], signal.SIGKILL)
    assert served.server.process.wait(STOP_SECONDS) == 1
    assert "10 processes of the server have died within a minute" in served.log()


def refused(*words: object) -> str:
    """What is said on standard error by a server that does not start."""
    with isotone("serve", *words, stderr=subprocess.PIPE) as command:
        assert command.wait(STOP_SECONDS) != 0
        assert command.stderr is not None
        said: str = command.stderr.read()
        return said


def test_workers_need_a_file_and_a_number() -> None:
    assert "--workers needs a FILE: a database in memory" in refused("--workers", "2")
    assert "'0' is not a number of processes" in refused("shop.db", "--workers", "0")


def test_a_file_that_cannot_be_opened_is_refused_in_the_same_words(tmp_path: Path) -> None:
    file = tmp_path / "no.db"
    file.write_bytes(b"this is not a database, but it is long enough to be looked at" * 20)
    said = refused(file, "--port", 0)
    assert "no.db" in said
    assert refused(file, "--port", 0, "--workers", "2") == said


def test_windows_and_servers_inside_programs_are_one_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UsageError, match="a server inside a program is one process"):
        running_server(FakeService(), workers=2).__enter__()
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(UsageError, match="need Linux or macOS"):
        check_options(port=0, workers=2)


def test_the_url_is_answered(served: Served) -> None:
    assert urlopen(f"{served.url}/healthz", timeout=30).status == 200
