"""Commands on a file, or in a folder, that cannot be written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.programs import python

import isotone
from isotone.storage import file as file_store
from isotone.storage import sqlite

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs permissions that bind root")

COUNT = {"TableName": "Orders", "Select": "COUNT"}
READS = [
    ("tables", "{file}"),
    ("get", "{file}", "Orders", "id=1"),
    ("query", "{file}", "Orders", "id=1"),
    ("scan", "{file}", "Orders"),
    ("export", "{file}", "Orders", "-"),
    ("sql", "{file}", "SELECT * FROM Orders WHERE id = '1'"),
    ("check", "{file}"),
]
# Root keeps its user, but loses the capability to pass over permissions (CAP_DAC_OVERRIDE).
BIND = """
import ctypes, os

if os.geteuid() == 0:
    libc = ctypes.CDLL(None)
    this_process = (ctypes.c_uint32 * 2)(0x20080522, 0)
    held = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, twice 32 of them
    assert libc.capget(this_process, held) == 0
    for kind in range(3):
        held[kind] &= ~(1 << 1)
    assert libc.capset(this_process, held) == 0
"""
# Runs command lines one after the other, each with its standard input, and prints what came of them.
BOUND = f"""{BIND}
import contextlib, io, json, sys
from isotone.cli import main

for words, text in json.loads(sys.argv[1]):
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""
# Keeps a file open, and counts its items each time that it is told to.
COUNTING = f"""{BIND}
import sys, isotone

with isotone.open(sys.argv[1]) as database:
    for _ in sys.stdin:
        answer = database.execute("Scan", {{"TableName": "Orders", "Select": "COUNT"}})
        print(answer["Count"], flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "closed"
    folder.mkdir()
    with isotone.open(folder / "shop.db") as database:
        client = database.client()
        client.create_table(
            TableName="Orders",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        for number in range(3):
            client.put_item(TableName="Orders", Item={"id": {"S": str(number)}})
    yield folder
    folder.chmod(0o755)


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def run_bound(*commands: tuple[str, ...], text: str = "") -> list[Outcome]:
    """What comes of the commands for a user whom permissions bind; each reads `text`."""
    process = python("-c", BOUND, json.dumps([(words, text) for words in commands]), cwd="/")
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0, "a command has raised"
    return [Outcome(*json.loads(line)) for line in printed.splitlines()]


def close_to_writers(folder: Path, what: str) -> str:
    file = folder / "shop.db"
    if what == "file":
        folder.chmod(0o777)
        file.chmod(0o444)
    else:
        file.chmod(0o666)
        folder.chmod(0o555)
    return str(file)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_reads_work_and_a_write_says_why_it_does_not(folder: Path, what: str) -> None:
    file = close_to_writers(folder, what)
    before = Path(file).read_bytes()
    reads = [*(tuple(word.format(file=file) for word in words) for words in READS), ("shell", file)]
    writes = [("put", file, "Orders", '{"id": "9"}'), ("create", file, "Other", "id")]
    outcomes = run_bound(*reads, *writes, text="get Orders id=1\n")
    assert len(outcomes) == len(reads) + len(writes)
    for words, outcome in zip(reads, outcomes, strict=False):
        assert outcome.code == 0, (words, outcome.err)
    for outcome in outcomes[len(reads) :]:
        assert outcome.code != 0
        assert "is read-only, so nothing can be written" in outcome.err
    assert Path(file).read_bytes() == before
    assert [each.name for each in folder.iterdir()] == ["shop.db"]


def test_a_reader_sees_what_another_user_begins_to_write(folder: Path) -> None:
    file = close_to_writers(folder, "folder")
    with subprocess.Popen(
        [sys.executable, "-c", COUNTING, file],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None

        def count() -> int:
            print(file=reader.stdin, flush=True)
            return int(reader.stdout.readline())

        assert count() == 3
        folder.chmod(0o777)
        Path(file).chmod(0o666)
        for number in (3, 5):
            with isotone.open(file) as database:  # whose log is there, and then is not
                client = database.client()
                client.put_item(TableName="Orders", Item={"id": {"S": str(number)}})
                assert count() == number + 1
                client.put_item(TableName="Orders", Item={"id": {"S": str(number + 1)}})
            assert count() == number + 2
        reader.stdin.close()


def test_a_writer_that_ends_while_the_file_is_opened_is_not_the_last_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log was there when somebody first looked. What is written later must be seen all the same."""
    file = folder / "shop.db"
    looks = iter([None])
    state = file_store.state_without_log
    monkeypatch.setattr(sqlite, "state_without_log", lambda path: next(looks, state(path)))
    monkeypatch.setattr(file_store, "is_read_only", lambda _: True)
    with isotone.open(file) as reader:
        monkeypatch.undo()
        assert reader.execute("Scan", COUNT)["Count"] == 3
        with isotone.open(file) as writer:
            writer.execute("PutItem", {"TableName": "Orders", "Item": {"id": {"S": "4"}}})
        assert reader.execute("Scan", COUNT)["Count"] == 4


def test_a_log_that_cannot_be_read_is_not_ignored(folder: Path) -> None:
    with isotone.open(folder / "shop.db") as database:
        database.client().put_item(TableName="Orders", Item={"id": {"S": "in the log"}})
        left = folder / "left.db"
        for end in ("", "-wal"):
            shutil.copyfile(f"{folder / 'shop.db'}{end}", f"{left}{end}")
            Path(f"{left}{end}").chmod(0o444)
    folder.chmod(0o555)
    (outcome,) = run_bound(("scan", str(left), "Orders"))
    if outcome.code == 0:
        assert "in the log" in outcome.out
    else:
        assert "has a log" in outcome.err


def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    folder: Path, tmp_path: Path
) -> None:
    """Each target is in a folder that can be written, so that only the check of the output comes before it."""
    (folder / "log").write_text('{"table":"shop","items":[]}\n')
    file = close_to_writers(folder, "folder")
    made, out = str(tmp_path / "new.db"), str(folder / "out")
    outcomes = run_bound(
        ("repair", file, made, "--report", out),
        ("model", file, "Orders", "--output", out),
        ("explain", file, "SELECT * FROM Orders", "--html", out),
        ("export", file, "Orders", f"{out}.jsonl"),
        ("backup", file, f"{out}.db"),
        ("repair", file, f"{out}.db"),
    )
    codes = [1, 2, 1, 1, 1, 1]  # 1 of `model` is what it found
    for outcome, code in zip(outcomes, codes, strict=True):
        assert outcome.code == code
        assert f"{folder}/out" in outcome.err
        assert "cannot be written there: permission denied" in outcome.err
        assert outcome.err.count("\n") == 1, "work was begun"
    assert not Path(made).exists()
    (written,) = run_bound(("repair", file, made, "--report", str(tmp_path / "lost.jsonl")))
    assert written.code == 0
