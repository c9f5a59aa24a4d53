"""`isotone serve` and `isotone demo` as processes: announcement, signals, exit codes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests import programs
from tests.workbench.page import Browserless

import isotone
from isotone.cli.database import connect
from isotone.demo import samples
from isotone.demo.tour import CHAPTERS
from isotone.tables.description import table_names

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")


@contextlib.contextmanager
def started(*words):
    process = programs.isotone(*words, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def url_from(process):
    found = re.search(r"http://\S+:\d+", process.stdout.readline())
    assert found is not None
    return found[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_file_is_served_until_a_signal(tmp_path, number):
    file = tmp_path / "new.db"
    with started("serve", file, "--port", 0) as process:
        line = process.stdout.readline()
        url = re.search(r"http://\S+:\d+", line)[0]
        assert line == (
            f'isotone serves {file} at {url} (boto3: endpoint_url="{url}"; '
            f"AWS CLI: export AWS_ENDPOINT_URL_DYNAMODB={url})\n"
        )
        assert process.stdout.readline() == f"workbench: {url}/workbench/\n"
        with connect(url) as connection:
            assert table_names(connection) == []
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
        assert (process.returncode, out, err) == (0, "", "")
    assert file.exists()


# Modules of which a server needs nothing for its first answer; each would delay it.
NOT_AT_THE_START = (
    *(
        "advisor",
        "client",
        "demo",
        "exchange",
        "inference",
        "model",
        "moving",
        "schema",
        "structures",
        "testing",
    ),
    *("backends.capabilities", "backends.connections", "backends.engines", "backends.s3"),
    *("engine.checked_trees", "engine.file_check", "engine.integrity", "engine.repair"),
    *("engine.transfers", "engine.vector_scores", "engine.vector_search"),
    *("expressions.partiql", "operations.checks", "operations.transfers"),
    *("operations.item_actions", "operations.permissions"),
    *("operations.statements", "operations.tables"),
    *("server.gate", "server.policies", "server.signatures", "server.supervisor", "server.users"),
    *("storage.file_copies", "workbench.calls"),
)
LIBRARIES_NOT_AT_THE_START = (
    *("boto3", "botocore", "dataclasses", "difflib", "email", "http", "importlib.metadata", "json"),
    *("multiprocessing", "numpy", "opentelemetry", "pydantic", "secrets"),
    *("tempfile", "webbrowser"),
)


def test_a_server_starts_without_what_its_first_answer_does_not_need(tmp_path):
    program = """
import os, signal, sys
from isotone.cli import main, serving
def announce(*_):
    loaded.extend(sys.modules)
    os.kill(os.getpid(), signal.SIGTERM)
    return ""
loaded = []
serving.announcement = announce
main(["serve", "shop.db", "--port", "0"])
print(*loaded, file=sys.stderr)
"""
    words = [sys.executable, "-c", program]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(ran.stderr.split())
    assert {"isotone.server.listener", "isotone.operations.api", "asyncio"} <= loaded
    unwanted = {f"isotone.{name}" for name in NOT_AT_THE_START} | {*LIBRARIES_NOT_AT_THE_START}
    assert loaded & unwanted == set()
    for name in NOT_AT_THE_START:
        path = Path(isotone.__path__[0], *name.split("."))
        assert path.is_dir() or path.with_suffix(".py").exists(), "the module has another name now"


def test_what_was_written_is_there_after_a_restart(tmp_path):
    for answers in ([], ["Words"]):
        with started("serve", tmp_path / "x.db", "--port", 0) as process:
            with connect(url_from(process)) as connection:
                assert table_names(connection) == answers
                if not answers:
                    connection.execute(
                        "CreateTable",
                        {
                            "TableName": "Words",
                            "KeySchema": [{"AttributeName": "w", "KeyType": "HASH"}],
                            "AttributeDefinitions": [{"AttributeName": "w", "AttributeType": "S"}],
                            "BillingMode": "PAY_PER_REQUEST",
                        },
                    )
            process.terminate()
            assert process.wait(10) == 0


def test_memory_needs_no_file():
    with started("serve", "--port", 0, "--memory") as process:
        assert "isotone serves memory at http://127.0.0.1:" in process.stdout.readline()


def test_quiet_is_quiet():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with started("serve", "--quiet", "--port", port) as process:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            time.sleep(0.02)
        process.terminate()
        assert process.communicate(timeout=10) == ("", "")
        assert process.returncode == 0


def test_a_port_in_use_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with started("serve", "--port", port) as process:
            _, err = process.communicate(timeout=10)
            assert process.returncode == 1
            assert err == (
                f"isotone: port {port} of 127.0.0.1 is in use by another program; "
                "choose another port, or 0 for any free one\n"
            )


def test_an_open_address_needs_credentials():
    with started("serve", "--host", "0.0.0.0", "--port", 0) as process:
        _, err = process.communicate(timeout=10)
        assert process.returncode == 1
        assert err == (
            "isotone: other machines can reach 0.0.0.0, and without credentials any access key reads and writes "
            "everything; give --credentials FILE (isotone user add makes one; credentials= in Python), or --insecure "
            "(insecure=True) to serve it to all of them\n"
        )


def test_an_open_address_is_warned_of():
    with started("serve", "--host", "0.0.0.0", "--insecure", "--port", 0) as process:
        url_from(process)
        process.terminate()
        _, err = process.communicate(timeout=10)
        assert "0.0.0.0 can be reached from other machines" in err


def test_an_open_address_with_credentials(tmp_path, isotone):
    file = tmp_path / "users.json"
    assert isotone("user", "add", "ann", "--credentials", file).code == 0
    with started("serve", "--host", "0.0.0.0", "--credentials", file, "--port", 0) as process:
        url_from(process)
        process.terminate()
        assert process.communicate(timeout=10) == ("", "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--credentials", "none.json"),
            "there is no credentials file none.json; isotone user add NAME",
        ),
        (("--credentials", "x", "--insecure"), "--insecure is for a server without --credentials"),
        (
            ("--credentials", "x", "--faults"),
            "--faults lets everybody order faults, so it cannot be",
        ),
    ],
)
def test_credentials_that_cannot_be(isotone, tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    outcome = isotone("serve", "--port", 0, *words)
    assert outcome.code == 1
    assert outcome.err.startswith(f"isotone: {told}")


def test_the_words_of_dynamodb_local(tmp_path):
    with (
        started("serve", "-sharedDb", "-dbPath", tmp_path, "-port", "0") as process,
        connect(url_from(process)) as connection,
    ):
        assert table_names(connection) == []
    assert (tmp_path / "isotone.db").exists()
    with (
        started("serve", "-inMemory", "-sharedDb", "-port", "0") as process,
        connect(url_from(process)) as connection,
    ):
        assert table_names(connection) == []


@pytest.mark.parametrize("words", [["shop.db", "-dbPath", "."], ["-inMemory", "-dbPath", "."]])
def test_words_of_dynamodb_local_that_contradict(isotone, words):
    outcome = isotone("serve", *words)
    assert (outcome.code, "cannot be combined with FILE" in outcome.err) == (1, True)


def test_memory_and_a_file_exclude_each_other(isotone, tmp_path):
    outcome = isotone("serve", tmp_path / "x.db", "--memory")
    assert (outcome.code, outcome.err) == (
        1,
        "isotone: --memory cannot be combined with FILE; use one of them\n",
    )


def test_requests_are_logged_on_demand():
    with started("serve", "--port", 0, "--log-level", "debug") as process:
        with connect(url_from(process)) as connection:
            table_names(connection)
        process.terminate()
        assert "ListTables" in process.communicate(timeout=10)[1]


@pytest.mark.parametrize("more", [["--memory"], ["shop.db", "--workers", 2]])
def test_a_file_of_users_that_others_may_read_is_warned_of_once(isotone, tmp_path, more):
    file = tmp_path / "users.json"
    isotone("user", "add", "ann", "--credentials", file)
    file.chmod(0o644)
    words = [tmp_path / word if word == "shop.db" else word for word in more]
    with started("serve", *words, "--port", 0, "--credentials", file) as process:
        url_from(process)
        process.terminate()
        err = process.communicate(timeout=20)[1]
    assert err.count("other users of this machine may read the secrets") == 1


@pytest.fixture
def with_ctrl_c():
    """A program that a shell started in the background ignores Ctrl-C, and so would those that it starts."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


def test_ctrl_c_ends_a_command_without_a_traceback(with_ctrl_c):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with started("tables", url) as process:
            asking, _ = silent.accept()
            asking.recv(1000)  # it is in the middle of its work now
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=10) == ("", "")
            assert process.returncode == 130
            asking.close()


def test_the_demo_serves_every_sample_and_the_tour(isotone):
    with started("demo", "--port", 0, "--no-open") as process:
        url = url_from(process)
        text = ""
        while "Ctrl-C" not in text:
            text += process.stdout.readline()
        for word in ("boto3.client", "aws dynamodb", "new DynamoDBClient", f"tables {url}"):
            assert word in text
        assert f"{url}/workbench/" in text
        with connect(url) as connection:
            assert {table.name for table in samples.tables()} <= set(table_names(connection))
        page = Browserless(url)
        assert page.send("GET", "/workbench/").status == 200
        assert page.call("session")["tour"] is True
        assert len(page.call("tour")["chapters"]) == len(CHAPTERS)
        process.terminate()
        assert process.wait(10) == 0


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--stream-shards", "99"), 2, "--stream-shards: '99' is not a number of shards"),
        (("--replication-lag", "soon"), 2, "--replication-lag: 'soon' is not a number of seconds"),
        (("--audit-log", "none/log"), 1, "the audit log none/log cannot be written: No such file"),
        (("--port", "0", "--allow-host", "http://db"), 1, "'http://db' is not the name of a host"),
        (("--prot", "80"), 2, "unrecognized arguments: --prot; did you mean --port?; isotone"),
    ],
)
def test_what_an_option_refuses(isotone, tmp_path, monkeypatch, words, code, told):
    monkeypatch.chdir(tmp_path)
    outcome = isotone("serve", *words)
    assert (outcome.code, outcome.out) == (code, "")
    assert told in outcome.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
@pytest.mark.parametrize(
    "line",
    [
        "serve --port 0 --credentials {}",
        "serve --port 0 --tls-cert {}",
        "serve --port 0 --tls-cert cert.pem --tls-key {}",
        "user list --credentials {}",
        "user add ann --policy {}",
    ],
)
def test_a_pipe_is_not_waited_for(tmp_path, line):
    """Opening a pipe waits for its writer, without a word."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "cert.pem").write_text("")
    words = line.format("pipe").split()
    with programs.isotone(*words, cwd=tmp_path, stderr=subprocess.PIPE) as running:
        try:
            _, err = running.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            running.kill()
            raise
    assert running.returncode == 1
    assert "pipe is a pipe, not a regular file" in err
    assert [path.name for path in tmp_path.iterdir() if "json" in path.name] == []


@pytest.mark.parametrize("words", ["serve new.db", "serve", "demo new.db --no-open", "demo"])
@pytest.mark.parametrize(
    ("option", "code", "told"),
    [
        ("--port 99999", 2, "'99999' is not a port; write 0 (any free one) to 65535"),
        ("--port -1", 2, "is not a port"),
        ("--port web", 2, "'web' is not a port"),
        ("--port BUSY", 1, "is in use by another program"),
        ("--host 192.0.2.1 --insecure", 1, "cannot listen on 192.0.2.1"),
        ("--host 0.0.0.0 --port 0", 1, "other machines can reach 0.0.0.0"),
        ("--credentials none.json", 1, "there is no credentials file none.json"),
        ("--tls-cert none.pem", 1, "none.pem cannot be read"),
        ("--audit-log none/log", 1, "the audit log none/log cannot be written"),
        ("--allow-host http://db --port 0", 1, "'http://db' is not the name of a host"),
    ],
)
def test_a_server_that_cannot_listen_opens_and_loads_nothing(
    isotone, tmp_path, monkeypatch, words, option, code, told
):
    def load(_):
        raise AssertionError("the samples are loaded")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(samples, "load", load)
    with socket.create_server(("127.0.0.1", 0)) as busy:
        option = option.replace("BUSY", str(busy.getsockname()[1]))
        outcome = isotone(*words.split(), *option.split())
    assert (outcome.code, outcome.out) == (code, "")
    assert told in outcome.err
    assert outcome.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        "serve new.db --port 0 --model no_such_module",
        "serve new.db --port 0 --workload no_such_module",
        "serve new.db --port 0 --s3 s3://exports",
        "serve new.db --port 0 --localnodes 127.0.0.1:99999",
        "serve new.db --port 0 --localnodes 127.0.0.1:0",
    ],
)
def test_what_serve_refuses_makes_no_file(isotone, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    outcome = isotone(*words.split())
    assert (outcome.code, outcome.out) == (1, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "code", "told"),
    [
        ("--port 99999", 2, "'99999' is not a port"),
        ("--port BUSY", 1, "is in use by another program"),
        ("--model no_such_module", 1, "there is no module 'no_such_module'"),
    ],
)
def test_what_a_workbench_refuses(isotone, shop, option, code, told):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        words = option.replace("BUSY", str(busy.getsockname()[1])).split()
        outcome = isotone("workbench", shop, "--no-open", *words)
    assert (outcome.code, outcome.out) == (code, "")
    assert told in outcome.err


def test_an_address_with_a_port_that_cannot_be_is_refused(isotone):
    for address in ("http://localhost:99999", "localhost:99999", "http://localhost:web"):
        outcome = isotone("tables", address)
        assert outcome.code == 1
        assert outcome.err.count("\n") == 1
