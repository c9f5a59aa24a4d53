from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

import isotone
from isotone.backends.async_remote import AsyncRemote
from isotone.backends.interface import InThread, Tape
from isotone.backends.opening import MEMORY, InEventLoop, open_async_backend, open_backend
from isotone.backends.remote import Remote
from isotone.backends.request_retries import Retries
from isotone.errors import ResourceNotFoundException, StorageBusy, UsageError
from isotone.storage.sqlite import SQLiteStore

NONE: dict[str, Any] = {"TableNames": []}
TABLE = {
    "TableName": "music",
    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def test_memory_is_gone_when_it_is_closed() -> None:
    backend, close = open_backend(MEMORY)
    backend.execute("CreateTable", TABLE)
    close()
    backend, close = open_backend(MEMORY)
    assert backend.execute("ListTables", {}) == NONE
    close()


@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_keeps_what_was_written(tmp_path: Path, kind: Any) -> None:
    for expected in ([], ["music"]):
        backend, close = open_backend(kind(tmp_path / "shop.db"), durability="none")
        assert backend.execute("ListTables", {})["TableNames"] == expected
        if not expected:
            backend.execute("CreateTable", TABLE)
        close()


def test_a_server_is_not_asked_before_it_is_used() -> None:
    backend, close = open_backend("http://localhost:1")
    assert isinstance(backend, Remote)
    close()


def test_what_somebody_else_opened_stays_open() -> None:
    with isotone.open() as database:
        for target in (database, database.client()):
            backend, close = open_backend(target)
            assert backend.execute("ListTables", {}) == NONE
            close()
        assert database.client().list_tables()["TableNames"] == []
    tape = Tape([NONE])
    assert open_backend(tape).backend.execute("ListTables", {}) == NONE
    assert tape.asked == [("ListTables", {})]


def test_async_backends() -> None:
    memory, close = open_async_backend(MEMORY)
    assert isinstance(memory, InEventLoop)
    assert asyncio.run(memory.execute("ListTables", {})) == NONE
    close()
    assert isinstance(open_async_backend("http://localhost:1").backend, AsyncRemote)
    assert isinstance(open_async_backend(Tape()).backend, InThread)
    again = open_async_backend(InEventLoop(Tape([NONE]))).backend
    assert asyncio.run(again.execute("ListTables", {})) == NONE


def test_an_async_file_answers_from_a_thread(tmp_path: Path) -> None:
    file, close = open_async_backend(tmp_path / "shop.db", durability="none")
    assert isinstance(file, InThread)
    with pytest.raises(ResourceNotFoundException):
        asyncio.run(file.execute("DescribeTable", {"TableName": "music"}))
    close()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("", "the address is empty"),
        ("sqlite:///shop.db", "is not an address"),
        (42, "cannot connect to 42"),
    ],
)
def test_what_is_no_address(target: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        open_backend(target)


def test_options_that_do_not_fit_the_address(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="profile= is for a server"):
        open_backend(tmp_path / "shop.db", profile="work")
    with pytest.raises(UsageError, match="durability= is for a file"):
        open_backend("http://localhost:8000", durability="none")
    with pytest.raises(UsageError, match="connections= is for a server"):
        open_backend(tmp_path / "shop.db", connections=3)
    assert not (tmp_path / "shop.db").exists()
    for open_target in (open_backend, open_async_backend):
        with pytest.raises(UsageError, match="retries= is for an address"):
            open_target(Tape(), retries=Retries.none())


def test_a_write_waits_as_long_as_told_for_another_process(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    backend, close = open_backend(path, durability="none", busy_timeout=0.05)
    backend.execute("CreateTable", TABLE)
    with SQLiteStore(path).transaction():
        began = time.monotonic()
        with pytest.raises(StorageBusy):
            backend.execute("PutItem", {"TableName": "music", "Item": {"k": {"S": "a"}}})
        assert time.monotonic() - began < 4
    close()
    with pytest.raises(UsageError, match="busy_timeout= is for a file"):
        isotone.connect("http://localhost:8000", busy_timeout=1.0)
