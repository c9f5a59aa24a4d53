"""The audit log: a line for each request, whatever comes of it, and never what must not be in it."""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import logging
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from tests.sdks.server_process import start_server
from tests.server.fakes import FakeService, headers_of
from tests.server.signing import write_credentials

import isotone
import isotone.testing
from isotone.clock import ManualClock, SystemClock
from isotone.errors import UsageError
from isotone.server import running_server
from isotone.server.audit import AuditEntry, AuditLog, TornLine

SECRET = "what nobody should read in a log"
KEY = {"id": {"S": SECRET}}
SCHEMA = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def database():
    with isotone.open() as database:
        database.execute("CreateTable", SCHEMA)
        yield database


def client(url, name="ann", secret=None):
    return boto3.Session().client(
        "dynamodb",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=f"ISOT{name.upper()}",
        aws_secret_access_key=secret or f"a secret of {name}",
        config=Config(retries={"max_attempts": 0}),
    )


def test_each_request_leaves_a_line(database, tmp_path):
    credentials = write_credentials(tmp_path / "users.json", ann={}, reader={"read_only": True})
    log = tmp_path / "audit.log"
    calls = [
        ("ann", None, "put_item", {"TableName": "Orders", "Item": {**KEY, "total": {"N": "1"}}}),
        ("ann", None, "get_item", {"TableName": "Orders", "Key": KEY}),
        ("ann", None, "list_tables", {}),
        ("ann", None, "put_item", {"TableName": "Orders", "Item": KEY, "ConditionExpression": "attribute_not_exists(id)"}),
        ("ann", None, "batch_get_item", {"RequestItems": {"Orders": {"Keys": [KEY]}, "Nothing": {"Keys": [KEY]}}}),
        ("ann", None, "execute_statement", {"Statement": f"SELECT * FROM \"Orders\" WHERE id = '{SECRET}'"}),
        ("ann", None, "execute_statement", {"Statement": "nonsense"}),
        ("reader", None, "delete_item", {"TableName": "Orders", "Key": KEY}),
        ("ann", "wrong", "get_item", {"TableName": "Orders", "Key": KEY}),
        ("eve", None, "get_item", {"TableName": "Orders", "Key": KEY}),
    ]  # fmt: skip
    with running_server(database, credentials=credentials, audit_log=log) as url:
        for name, secret, method, request in calls:
            with contextlib.suppress(ClientError):
                getattr(client(url, name, secret), method)(**request)
    found = [
        (each["key"], each["user"], each["action"], each["tables"], each["outcome"], each["status"], each["error"])
        for each in lines(log)
    ]  # fmt: skip
    ann, reader = ("ISOTANN", "ann"), ("ISOTREADER", "reader")
    assert found == [
        (*ann, "PutItem", ["Orders"], "ok", 200, None),
        (*ann, "GetItem", ["Orders"], "ok", 200, None),
        (*ann, "ListTables", [], "ok", 200, None),
        (*ann, "PutItem", ["Orders"], "error", 400, "ConditionalCheckFailedException"),
        (*ann, "BatchGetItem", ["Orders", "Nothing"], "error", 400, "ResourceNotFoundException"),
        (*ann, "ExecuteStatement", ["Orders"], "ok", 200, None),
        (*ann, "ExecuteStatement", [], "error", 400, "ValidationException"),
        (*reader, "DeleteItem", ["Orders"], "refused", 400, "AccessDeniedException"),
        ("ISOTANN", None, "GetItem", [], "refused", 400, "InvalidSignatureException"),
        ("ISOTEVE", None, "GetItem", [], "refused", 400, "UnrecognizedClientException"),
    ]
    assert {each["source"] for each in lines(log)} == {"127.0.0.1"}
    text = log.read_text()
    assert SECRET not in text
    assert "a secret of" not in text
    assert "Signature" not in text.replace("InvalidSignatureException", "")
    assert log.stat().st_mode & 0o077 == 0


def ask(url, method="POST", path="/", body=b"{}", **headers):
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request(method, path, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_what_is_refused_before_it_is_read_leaves_a_line(tmp_path):
    log, service = tmp_path / "audit.log", FakeService()
    with running_server(service, audit_log=log) as url:
        ask(url, **headers_of("GetItem"), Origin="http://evil.example")
        ask(url, **headers_of("GetItem"), Host="evil.example")
        ask(url, path="/elsewhere", **headers_of("GetItem"))
        ask(url, **{"Content-Type": "application/x-amz-json-1.0"})
        ask(url, method="GET", body=None)  # a health check is no request of the API
    found = [
        (each["action"], each["outcome"], each["status"], each["error"]) for each in lines(log)
    ]
    assert found == [
        (None, "refused", 403, None),
        (None, "refused", 403, None),
        ("GetItem", "refused", 404, None),
        (None, "error", 400, "UnknownOperationException"),
    ]
    assert service.reads == []


def test_without_credentials_the_key_is_what_the_client_says(database, tmp_path):
    log = tmp_path / "audit.log"
    with running_server(database, audit_log=log) as url:
        client(url, "anybody").list_tables()
    (line,) = lines(log)
    assert (line["key"], line["user"], line["outcome"]) == ("ISOTANYBODY", None, "ok")
    moment = datetime.fromisoformat(line["time"])
    assert abs((datetime.now(UTC) - moment).total_seconds()) < 60


def test_the_log_changes_no_answer(database, tmp_path):
    statements = {"TransactStatements": [{"Statement": "DELETE FROM Orders WHERE id = 'x' AND t"}]}
    restore = {"TargetTableName": "Again", "UseLatestRestorableTime": True}

    def answers(url):
        for method, request in (
            ("execute_transaction", statements),
            ("restore_table_to_point_in_time", restore),
            ("describe_table", {"TableName": "no name"}),
        ):
            with pytest.raises(ClientError) as raised:
                getattr(client(url), method)(**request)
            yield raised.value.response["Error"]

    credentials = write_credentials(tmp_path / "users.json", ann={})
    log = tmp_path / "audit.log"
    with running_server(database) as url:
        plain = list(answers(url))
    with running_server(database, audit_log=log) as url:
        assert list(answers(url)) == plain
    with running_server(database, audit_log=log, credentials=credentials) as url:
        assert list(answers(url)) == plain
    assert [each["outcome"] for each in lines(log)] == ["error"] * 6


def test_faults_can_be_ordered_of_a_server_with_a_log(database, tmp_path):
    log = tmp_path / "audit.log"
    service = isotone.testing.Faults().served(database)
    with running_server(service, threaded=True, audit_log=log) as url:
        assert ask(url, path="/faults", body=b'{"fault": "fail", "operation": "PutItem"}') == 200
        with pytest.raises(ClientError, match="ProvisionedThroughputExceeded"):
            client(url).put_item(TableName="Orders", Item=KEY)
    assert [each["action"] for each in lines(log)] == ["POST /faults", "PutItem"]


def test_many_writes_at_once_leave_a_line_each(database, tmp_path):
    log = tmp_path / "audit.log"
    with running_server(database, audit_log=log) as url, ThreadPoolExecutor(8) as pool:

        def put(number):
            item = {"id": {"S": str(number)}}
            client(url).put_item(TableName="Orders", Item=item)

        list(pool.map(put, range(40)))
    assert len(lines(log)) == 40


# The file


@pytest.fixture
def audit(tmp_path):
    return AuditLog(tmp_path / "audit.log", ManualClock(1_767_268_800.25))


def test_a_line_that_a_crash_cut_off_spoils_no_other(audit, tmp_path):
    path = tmp_path / "audit.log"
    entry = AuditEntry(source="::1", key="k", action="GetItem")
    audit.write(entry, b"{}")
    audit.close()
    path.write_bytes(path.read_bytes() + b'{"time":"2026')
    later = AuditLog(path, ManualClock(1_767_268_800.25))
    later.write(entry, b"{}")
    later.write(entry, b"{}")
    later.close()
    first, torn, *rest = path.read_text().splitlines()
    assert torn == '{"time":"2026'
    assert rest == [first, first]


def test_a_line(audit, tmp_path):
    audit.write(AuditEntry(source="::1", key="k" * 1000, action="GetItem"), b"{}")
    (line,) = lines(tmp_path / "audit.log")
    assert line == {
        "time": "2026-01-01T12:00:00.250Z",
        "key": "k" * 256,
        "user": None,
        "source": "::1",
        "action": "GetItem",
        "tables": [],
        "outcome": "ok",
        "status": 200,
        "error": None,
    }


def test_on_a_full_disk_the_line_goes_to_the_log_of_the_server(
    audit, tmp_path, monkeypatch, caplog
):
    entry = AuditEntry(source="::1", action="GetItem")
    written = os.write

    def full(file, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with caplog.at_level(logging.ERROR, "isotone.server"):
        audit.write(entry, b"{}")
    assert "the audit log cannot be written (No space left on device): {" in caplog.text
    assert '"action":"GetItem"' in caplog.text
    monkeypatch.setattr(os, "write", lambda file, data: written(file, data[:10]))
    audit.write(entry, b"{}")
    assert "only a part of it was written" in caplog.text
    monkeypatch.setattr(os, "write", written)
    audit.write(entry, b"{}")
    torn, whole = (tmp_path / "audit.log").read_text().splitlines()
    assert len(torn) == 10
    assert json.loads(whole)["action"] == "GetItem", "after half a line a new one begins"


@pytest.mark.skipif(os.name == "nt", reason="Windows does not delete an open file")
@pytest.mark.parametrize("there", ["nothing", "another file", "a folder"])
def test_no_line_goes_to_a_file_that_was_deleted(audit, tmp_path, caplog, there):
    path = tmp_path / "audit.log"
    audit.write(AuditEntry(source="::1", action="GetItem"), b"{}")
    path.unlink()
    if there == "another file":
        path.write_text('{"time":"of another server"}\n')
    elif there == "a folder":
        path.mkdir()
    with caplog.at_level(logging.ERROR, "isotone.server"):
        audit.write(AuditEntry(source="::1", action="PutItem"), b"{}")
    if there == "a folder":
        assert "the audit log cannot be written (the file was deleted): {" in caplog.text
        assert '"action":"PutItem"' in caplog.text
    else:
        assert lines(path)[-1]["action"] == "PutItem"


def test_a_large_request_leaves_one_line_when_it_is_answered(database, tmp_path):
    target = tmp_path / "audit.log"
    with running_server(database, audit_log=target) as url:
        for size in (10, 70_000, 200_000):
            client(url).put_item(TableName="Orders", Item={**KEY, "text": {"S": "x" * size}})
        with pytest.raises(ClientError):
            client(url).put_item(TableName="Orders", Item={"text": {"S": "x" * 70_000}})
    found = [(each["action"], each["tables"], each["outcome"]) for each in lines(target)]
    assert found == [("PutItem", ["Orders"], "ok")] * 3 + [("PutItem", ["Orders"], "error")]


def test_requests_are_answered_while_the_disk_is_full(database, tmp_path, monkeypatch, caplog):
    target = Path("/dev/full")
    if not target.exists():
        pytest.skip("there is no /dev/full")
    with running_server(database, audit_log=target) as url:
        client(url).put_item(TableName="Orders", Item=KEY)
    assert caplog.text.count("the audit log cannot be written") == 1
    assert SECRET not in caplog.text


def test_a_file_that_cannot_be_opened(database, tmp_path):
    with (
        pytest.raises(UsageError, match="cannot be written: No such file"),
        running_server(database, audit_log=tmp_path / "none" / "audit.log"),
    ):
        pass


def test_a_server_with_an_audit_log_has_no_pages(database, tmp_path):
    with (
        pytest.raises(UsageError, match="neither verified nor audited"),
        running_server(database, audit_log=tmp_path / "audit.log", pages=lambda visit: None),
    ):
        pass


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP")
def test_after_a_signal_the_log_continues_in_a_new_file(tmp_path):
    log, moved = tmp_path / "audit.log", tmp_path / "audit.log.1"
    with start_server(None, "--audit-log", str(log)) as server:
        client(server.url).list_tables()
        log.rename(moved)
        client(server.url).list_tables()
        server.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 30
        while not log.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        client(server.url).list_tables()
        assert server.stop() == 0
    assert (len(lines(moved)), len(lines(log))) == (2, 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_that_nobody_reads_stops_no_server(database, tmp_path, caplog):
    """Lines that its reader does not take go to the server's log; those after it reads again go to the pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (
        pytest.raises(UsageError, match="cannot be written: no process reads this pipe"),
        running_server(database, audit_log=pipe),
    ):
        pass
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    log = AuditLog(pipe, SystemClock())
    entry = AuditEntry(source="::1", action="PutItem", tables=["a" * 200] * 30)  # over 4,096 bytes
    began = time.monotonic()
    with caplog.at_level(logging.ERROR, "isotone.server"):
        for _ in range(50):
            log.write(entry, b"{}")
    assert time.monotonic() - began < 5
    refused = caplog.text.count("the audit log cannot be written")
    assert refused > 20
    taken = b""
    with contextlib.suppress(BlockingIOError):
        while part := os.read(reader, 1 << 16):
            taken += part
    assert taken.count(b"\n") in (50 - refused, 50 - refused - 1)  # one may be torn
    caplog.clear()
    log.write(entry, b"{}")
    assert os.read(reader, 1 << 16).endswith(b"}\n")
    assert not caplog.text
    os.close(reader)
    log.write(entry, b"{}")
    assert "the audit log cannot be written (Broken pipe)" in caplog.text
    log.close()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_requests_are_answered_while_standard_output_is_not_read(tmp_path):
    with start_server(None, "--audit-log", "-") as server:
        ann = client(server.url)
        for _ in range(600):
            ann.list_tables()
        assert server.process.stdout is not None
        server.process.stdout.close()
        assert server.stop() == 0


def test_standard_output(tmp_path):
    with start_server(None, "--audit-log", "-") as server:
        client(server.url).list_tables()
        assert server.process.stdout is not None
        line = json.loads(server.process.stdout.readline())
        assert (line["action"], line["outcome"]) == ("ListTables", "ok")
        assert server.stop() == 0


def test_a_line_that_one_process_has_torn_is_ended_by_another(tmp_path: Path) -> None:
    path, torn = tmp_path / "audit", TornLine()
    torn.share()
    logs = [AuditLog(path, SystemClock()) for _ in range(2)]
    for log in logs:
        log.use(torn)
    entry = AuditEntry(source="here")
    whole = os.write
    with patch.object(os, "write", lambda file, line: whole(file, line[:10])):
        logs[0].write(entry, b"{}")
    logs[1].write(entry, b"{}")
    logs[0].write(entry, b"{}")
    assert path.read_bytes().count(b"\n{") == 2
    for log in logs:
        log.close()
