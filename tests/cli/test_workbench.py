"""`isotone workbench` as a process: the page of a file and of a server, and safe mode."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests import programs
from tests.workbench.page import Browserless

import isotone
from isotone.server import running_server

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

TABLE = {
    "TableName": "Words",
    "KeySchema": [{"AttributeName": "word", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "word", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
PUT = {"TableName": "Words", "Item": {"word": {"S": "new"}}}


@contextlib.contextmanager
def started(source: str, *words: str) -> Iterator[Browserless]:
    command = ("workbench", source, "--no-open", *words)
    process = programs.isotone(*command, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        found = re.fullmatch(
            r"the workbench for \S+ is at (http://\S+)/workbench/\n", process.stdout.readline()
        )
        assert found is not None
        yield Browserless(found[1])
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == ("", "")
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


def test_a_file_is_shown_and_can_be_changed(tmp_path):
    file = tmp_path / "words.db"
    with isotone.open(file) as database:
        database.execute("CreateTable", TABLE)
    with started(str(file)) as page:
        assert page.call("session")["writable"] is True
        assert "error" not in page.execute("PutItem", PUT)
        code = page.call("code", {"action": "PutItem", "request": PUT, "origin": page.url})
        assert str(file) in json.dumps(code)  # this server has no API to connect to
    with isotone.open(file) as database:
        assert database.execute("Scan", {"TableName": "Words"})["Count"] == 1


def test_a_server_is_in_safe_mode_unless_it_is_unlocked():
    with isotone.open() as database, running_server(database) as url:
        database.execute("CreateTable", TABLE)
        with started(url) as page:
            assert page.call("session")["writable"] is False
            assert page.execute("PutItem", PUT)["error"]["code"] == "SafeMode"
        with started(url.removeprefix("http://")) as page:
            assert page.call("session")["writable"] is False
        with started(url, "--read-write") as page:
            assert "error" not in page.execute("PutItem", PUT)
        assert database.execute("Scan", {"TableName": "Words"})["Count"] == 1


def test_a_file_that_does_not_exist_is_one_sentence(isotone):
    found = isotone("workbench", "nowhere.db", "--no-open")
    assert (found.code, found.out) == (1, "")
    assert found.err.startswith("isotone: the file nowhere.db does not exist")


ENDLESS = """
import threading
from isotone import Attr, Entity, Key, Table, field
from isotone.advisor.simulation import Workload

class Thing(Entity, table=Table("things")):
    name: Attr[str] = field()
    primary = Key("THING", name).sort("THING")

load = Workload("endless", tables=[Thing.__schema__.table])

@load.action(per_second=1)
def wait(call):
    threading.Event().wait()
"""


def test_work_that_continues_does_not_delay_the_end(tmp_path):
    """A simulation that never ends. The process is a new one: one that was forked would not wait for its threads."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    command = [sys.executable, "-m", "isotone", "workbench", ":memory:", "--no-open"]
    process = subprocess.Popen(
        [*command, "--workload", "endless"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().rpartition(" ")[2].partition("/workbench/")[0]
        assert "running" in Browserless(url).call("simulation")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.communicate()
