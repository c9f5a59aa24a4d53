"""A backup that takes the place of a database whose process was killed: its log is of the other file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import isotone
from isotone.errors import DamagedLog

KILLED = """
import os, sys
import isotone

def write(client, text, numbers):
    for number in numbers:
        client.put_item(TableName="tab", Item={"p": {"S": str(number)}, "text": {"S": text * 100}})

with isotone.open("shop.db", durability="none") as database:
    client = database.client()
    client.create_table(
        TableName="tab",
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    write(client, "old", range(300))
isotone.backup("shop.db", "copy.db")
with isotone.open("shop.db", durability="none") as database:
    write(database.client(), "new", range(300))
database = isotone.open("shop.db", durability=sys.argv[1])
write(database.client(), "end", [7])
os._exit(9)
"""


@pytest.fixture(params=["disk", "none"])
def replaced(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> bytes:
    """`shop.db` is the backup now; gets its bytes."""
    monkeypatch.chdir(tmp_path)
    assert subprocess.run([sys.executable, "-c", KILLED, request.param]).returncode == 9
    assert Path("shop.db-wal").stat().st_size
    return Path("copy.db").replace("shop.db").read_bytes()


def texts() -> set[str]:
    with isotone.open("shop.db") as database:
        assert database.check() == []
        pages = database.client().get_paginator("scan").paginate(TableName="tab")
        return {item["text"]["S"][:3] for page in pages for item in page["Items"]}


@pytest.mark.parametrize("durability", ["disk", "none"])
def test_a_file_is_not_opened_with_the_log_of_another(
    replaced: bytes, durability: isotone.Durability
) -> None:
    with pytest.raises(DamagedLog, match="of the file that was there before"):
        isotone.open("shop.db", durability=durability)
    assert Path("shop.db").read_bytes() == replaced
    for end in ("-wal", "-shm"):
        Path(f"shop.db{end}").unlink()
    assert texts() == {"old"}


def test_a_file_is_not_restored_with_the_log_of_another(replaced: bytes) -> None:
    with pytest.raises(DamagedLog):
        isotone.restore("shop.db", "seen.db")
    assert not Path("seen.db").exists()


def test_a_repair_leaves_that_log_out_and_says_so(replaced: bytes) -> None:
    repaired = isotone.repair("shop.db", "new.db")
    assert repaired.items == {"tab": 300}
    assert "was left out" in str(repaired.lost)
    Path("new.db").replace("shop.db")
    for end in ("-wal", "-shm"):
        Path(f"shop.db{end}").unlink()
    assert texts() == {"old"}


def test_a_forced_restore_replaces_it_without_that_log(replaced: bytes) -> None:
    Path("other.db").write_bytes(replaced)
    isotone.restore("other.db", "shop.db", force=True)
    assert texts() == {"old"}
