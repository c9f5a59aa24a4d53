"""Saved queries in a file that a team can commit."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.workbench.page import Browserless

import isotone
from isotone.output_paths import write_whole
from isotone.server import running_server
from isotone.workbench import Workbench, saved_queries
from isotone.workbench.saved_queries import SavedQueries

OPEN = {"name": "Open orders", "words": "shop: all items", "address": "#/t/shop/items"}
ANN = {"name": "ann's", "words": "shop: pk = ann", "address": "#/t/shop/items?pk=ann"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "queries.json"


@pytest.fixture
def page(file: Path) -> Iterator[Browserless]:
    with isotone.open() as database:
        pages = Workbench(database, target=":memory:", writable=False, queries=file)
        with running_server(database, pages=pages) as url:
            yield Browserless(url)


def error(answer: Any) -> str:
    return str(answer["error"]["message"])


def test_queries_are_kept_in_the_order_of_their_names(page, file):
    assert page.call("session")["queries"] == "queries.json"
    assert page.call("queries") == {"queries": []}
    page.call("save_query", OPEN)
    assert page.call("save_query", ANN) == {"queries": [ANN, OPEN]}
    assert json.loads(file.read_text()) == [ANN, OPEN]
    lines = file.read_text().splitlines()
    assert '    "name": "Open orders",' in lines  # one member a line, so that two branches merge
    assert file.read_text().endswith("]\n")
    changed = {**ANN, "words": "other"}
    assert page.call("save_query", changed)["queries"] == [changed, OPEN]
    assert page.call("forget_query", {"name": "ann's"}) == {"queries": [OPEN]}


def test_what_others_commit_appears(page, file):
    page.call("save_query", OPEN)
    file.write_text(json.dumps([ANN]))
    assert page.call("queries") == {"queries": [ANN]}
    assert page.call("save_query", OPEN)["queries"] == [ANN, OPEN]


def test_a_file_of_something_else_is_left_alone(page, file):
    for text in (
        "not JSON",
        '{"a": 1}',
        '[{"name": "x"}]',
        '[{"name":"x","words":"","address":"javascript:1"}]',
    ):
        file.write_text(text)
        assert "not a file of saved queries" in error(page.call("queries"))
        assert "not a file of saved queries" in error(page.call("save_query", OPEN))
        assert file.read_text() == text


def test_a_file_that_is_not_utf_8_is_left_alone(page, file):
    text = '[{"name": "Gr\xfc\xdfe", "words": "", "address": "#/t/shop/items"}]'.encode("latin-1")
    file.write_bytes(text)
    assert "not a file of saved queries" in error(page.call("queries"))
    assert "not a file of saved queries" in error(page.call("save_query", OPEN))
    assert file.read_bytes() == text


def test_an_address_leads_to_a_view(page, file):
    assert "not one of a view" in error(page.call("save_query", {**OPEN, "address": "https://x/"}))
    assert "needs a name" in error(page.call("save_query", {"name": "x"}))
    assert not file.exists()


def test_a_link_is_not_written_through(page, file, tmp_path):
    other = tmp_path / "precious.json"
    other.write_text("[]")
    file.symlink_to(other)
    assert "symbolic link" in error(page.call("save_query", OPEN))
    assert other.read_text() == "[]"


def test_two_workbenches_keep_what_each_other_saves(file, monkeypatch):
    """Two servers, or a server and `isotone workbench`, of one file: no query that was answered for is lost."""

    def slow_write(path: Path, content: bytes) -> None:
        time.sleep(0.01)
        write_whole(path, content)

    monkeypatch.setattr(saved_queries, "write_whole", slow_write)
    each = [SavedQueries(file), SavedQueries(file)]  # as processes, they share no lock in memory
    names = [f"query {number:02}" for number in range(20)]
    with ThreadPoolExecutor(4) as threads:
        list(
            threads.map(
                lambda name: asyncio.run(each[int(name[-1]) % 2].save({**OPEN, "name": name})),
                names,
            )
        )
    assert [query["name"] for query in json.loads(file.read_text())] == names
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_file_beside_it_that_is_no_lock_is_left_alone(page, file):
    lock = file.with_name("queries.json.lock")
    lock.write_text("precious")
    assert "is not a lock" in error(page.call("save_query", OPEN))
    assert lock.read_text() == "precious"
    assert not file.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_a_pipe_or_a_folder_in_its_place_is_not_waited_for(page, file):
    for make, kind in ((os.mkfifo, "a pipe"), (os.mkdir, "a folder")):
        make(file)
        for call, given in (("queries", {}), ("save_query", OPEN)):
            assert f"is {kind}, not a regular file" in error(page.call(call, given))
        file.rmdir() if kind == "a folder" else file.unlink()
    assert page.call("save_query", OPEN) == {"queries": [OPEN]}


def test_without_a_file_the_browser_keeps_them():
    with isotone.open() as database:
        pages = Workbench(database, target=":memory:")
        with running_server(database, pages=pages) as url:
            page = Browserless(url)
            assert page.call("session")["queries"] is None
            assert "--queries FILE" in error(page.call("queries"))
