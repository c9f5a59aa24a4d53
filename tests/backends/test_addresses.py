"""A host with a port means a server, wherever an address is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import isotone
from isotone import moving
from isotone.backends.addresses import is_file, is_remote, whole
from isotone.backends.opening import open_backend
from isotone.cli import main
from isotone.server import running_server

TABLE: dict[str, Any] = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
ITEM = {"p": {"S": "x"}}


@pytest.mark.parametrize(
    "address",
    ["localhost:8000", "db:8000", "db.internal:80/", "10.0.0.7:8000", "[::1]:8000", "my-db:1"],
)
def test_a_host_with_a_port_is_a_server(address):
    assert whole(address) == f"http://{address}"
    assert is_remote(address)
    assert not is_file(address)


@pytest.mark.parametrize(
    "address",
    ["shop.db", "C:8000", "C:\\shop.db", "a/b:80", "shop:v1", "shop:", ":8000", "./db:80", "8000"],
)
def test_a_path_stays_a_path(address):
    assert whole(address) == address
    assert not is_remote(address)
    assert is_file(address)


def test_path_objects_are_files():
    assert not is_remote(Path("localhost:8000"))


def test_every_entrance_takes_it(tmp_path):
    with isotone.open() as database, running_server(database) as url:
        here = f"localhost:{urlsplit(url).port}"
        database.execute("CreateTable", TABLE)
        database.execute("PutItem", {"TableName": "Orders", "Item": ITEM})

        opened = open_backend(here)
        assert opened.backend.execute("ListTables", {}) == {"TableNames": ["Orders"]}
        opened.close()
        for command in (
            ["tables", here],
            ["get", here, "Orders", "p=x"],
            ["export", here, "Orders", str(tmp_path / "orders.jsonl")],
            ["diff", here, url],
        ):
            assert main(command) == 0, command
        target = tmp_path / "copy.db"
        moving.copy(here, target)
        with isotone.open(target) as copied:
            assert copied.execute("Scan", {"TableName": "Orders"})["Items"] == [ITEM]
    assert not Path(here).exists()
