"""Commands whose input, output or arguments are broken: one sentence on standard error and exit code 1, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests import programs

import isotone

LONG = "n" * 5000
DEEP = "[" * 100_000
NOT_TEXT = b"\xff"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    with isotone.open(folder / "d.db") as database:
        client = database.client()
        client.create_table(
            TableName="Orders",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        for number in range(500):
            text = {"S": "x" * 1000}
            client.put_item(TableName="Orders", Item={"id": {"S": str(number)}, "text": text})
    (folder / "items.jsonl").write_text('{"id": "1"}\n')
    (folder / "dir").mkdir()
    return folder


def run(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell in which `isotone` is this program."""
    line = command.replace("isotone", f"{sys.executable} -m isotone")
    return subprocess.run(
        ["bash", "-c", "set -o pipefail; " + line],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        text=True,
        errors="replace",
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state")},
    )


@pytest.mark.parametrize(
    "words",
    [
        ["create", NOT_TEXT + b".db", "Tab", "id"],
        ["call", "d.db", "PutItem", NOT_TEXT],
        ["call", "d.db", "PutItem", '{"a":' + DEEP],
        ["put", "d.db", "Orders", '{"id":' + DEEP],
        ["sql", "d.db", b"SELECT * FROM Orders WHERE id = '" + NOT_TEXT + b"'"],
        ["export", "d.db", "Orders", NOT_TEXT],
        ["copy", "d.db", NOT_TEXT],
        ["backup", "d.db", NOT_TEXT],
        ["tables", LONG],
        ["check", LONG],
        ["backup", "d.db", LONG],
        ["compact", LONG],
        ["copy", LONG, "e.db"],
        ["export", "d.db", "Orders", LONG],
        ["import", LONG, "d.db", "Orders"],
        ["import", "items.jsonl", "d.db", "Orders", "--state", "dir"],
        ["put", "d.db", "Orders", "@dir"],
    ],
    ids=lambda words: b" ".join(map(os.fsencode, words))[:60].decode(errors="replace"),
)
def test_what_cannot_be_used_is_reported_in_a_sentence(
    folder: Path, words: list[str | bytes]
) -> None:
    state = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    process = programs.isotone(
        *map(os.fsdecode, words), cwd=folder, env=state, stderr=subprocess.PIPE
    )
    _, told = process.communicate(timeout=120)
    assert process.returncode == 1
    assert told.startswith("isotone: ")
    assert told.count("\n") == 1
    assert len(told) < 12_000


@pytest.mark.parametrize(
    "line",
    [
        "env -u HOME -u XDG_STATE_HOME isotone shell d.db < /dev/null",
        "TERM=dumb isotone scan d.db Orders --limit 2",
        "TERM= COLUMNS=0 isotone scan d.db Orders --limit 2",
        "LANG=C LC_ALL=C PYTHONUTF8=0 isotone get d.db Orders é || true",
        "LC_ALL=no.such isotone tables d.db",
        "XDG_STATE_HOME=/dev/null/x isotone shell d.db < /dev/null",
    ],
)
def test_a_poor_environment_will_do(folder: Path, line: str) -> None:
    done = run(folder, line)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_an_interrupt_ends_a_command_without_a_word(folder: Path) -> None:
    command = [sys.executable, "-m", "isotone", "put", "d.db", "Orders", "-"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as put:
        assert put.stdin is not None
        # It reads now what a pipe cannot hold, so it has begun.
        put.stdin.write(b'{"id": "interrupted"}\n' * 10_000)
        put.stdin.flush()
        put.send_signal(signal.SIGINT)
        _, told = put.communicate()
    assert (put.returncode, told) == (130, b"")


@pytest.mark.parametrize(
    "line",
    ["scan d.db Orders --all --format jsonl", "--help", "export d.db Orders -"],
)
def test_a_full_disk_is_reported_in_a_sentence(folder: Path, line: str) -> None:
    done = run(folder, f"isotone {line} > /dev/full")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "isotone scan d.db Orders --all --format jsonl | head -1",
        "isotone scan d.db Orders --all --format json | head -1",
    ],
)
def test_a_reader_that_leaves_early_is_no_error_to_tell(folder: Path, line: str) -> None:
    done = run(folder, line)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("isotone tables d.db >&-", 0),
        ("isotone --help >&-", 0),
        ("isotone put d.db Orders - <&-", 0),
        ("isotone shell d.db <&-", 0),
        ("isotone tables nofile 2>&-", 1),
        ("isotone tables nofile 2>/dev/full", 1),
        ("isotone nosuch 2>/dev/full", 2),
    ],
)
def test_streams_may_be_closed(folder: Path, line: str, code: int) -> None:
    done = run(folder, line)
    assert (done.returncode, done.stderr) == (code, "")
