"""SIGKILL while backups are made and tables restored, beside a writer: each is the table after one of its writes.

`ISOTONE_KILLS=50 pytest tests/crash/test_backup_kill.py` for as many kills as one likes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

import pytest
from tests.crash import backup_site
from tests.programs import python

import isotone
from isotone import Client

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

KILLS = int(os.environ.get("ISOTONE_KILLS", "3"))


def test_killed_backups_and_restores_are_completed_by_the_next_process(tmp_path: Path) -> None:
    file = tmp_path / "site.db"
    random = Random(11)
    backup_site.create(file)
    interrupted = kills = 0
    while kills < KILLS or not interrupted:  # a fast machine may have completed all before a kill
        kills += 1
        assert kills < 20 * KILLS, "every restore was complete: the test has shown nothing"
        with python(backup_site.__file__, file) as site:
            assert site.stdout is not None
            assert site.stdout.readline()
            time.sleep(random.choice((0, random.uniform(0, 0.15))))
            site.kill()
        with isotone.open(file) as database:
            interrupted += sum(state != "ACTIVE" for state in states(database.client()))
            assert database.check() == []
    with isotone.open(file) as database:
        database.finish_maintenance()
        assert database.check() == []
        client = database.client()
        for backup in client.list_backups()["BackupSummaries"]:
            assert backup["BackupStatus"] == "AVAILABLE"
            target = backup["BackupName"].replace("at", "last")
            client.restore_table_from_backup(TargetTableName=target, BackupArn=backup["BackupArn"])
            database.finish_maintenance()  # the service restores no more than 50 at a time
        assert set(states(client)) == {"ACTIVE"}
        for table in client.list_tables()["TableNames"]:
            if table != "tab":
                assert content(client, table) == backup_site.expected(int(table.split("-")[1]))
        assert database.check() == []


def states(client: Client) -> list[str]:
    tables = client.list_tables()["TableNames"]
    return [client.describe_table(TableName=table)["Table"]["TableStatus"] for table in tables]


def content(client: Client, table: str) -> dict[str, int]:
    pages = client.get_paginator("scan").paginate(TableName=table)
    return {item["p"]["S"]: int(item["n"]["N"]) for page in pages for item in page["Items"]}
