"""The primary of PostgreSQL dies under load, and its replica is promoted: servers go on without a restart.

`ISOTONE_FAILOVERS=20 pytest -s tests/crash/test_postgres_failover.py` for as many as one likes.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests import figures
from tests.crash.server_storm import Storm
from tests.crash.test_postgres_kill import until_it_answers
from tests.postgres_server import PostgresServer, needs_postgres
from tests.sdks.server_process import start_server

import isotone
from isotone.backends import embedded
from isotone.errors import StorageError

pytestmark = needs_postgres

FAILOVERS = int(os.environ.get("ISOTONE_FAILOVERS", "1"))
SECONDS_TO_GO_ON = 5.0
TABLE = "Orders"
WRITES = 20


def address_of(*servers: PostgresServer, schema: str) -> str:
    """One address with several hosts."""
    hosts = ",".join(str(server.folder) for server in servers)
    return f"postgresql://isotone@/postgres?host={hosts}&schema={schema}"


def fail(storm: Storm, primary: PostgresServer, replica: PostgresServer, random: Random) -> None:
    storm.wait_for(random.randrange(30, 120))
    time.sleep(random.uniform(0, 0.02))
    primary.kill()
    storm.is_over = True
    replica.promote()


def failover(random: Random) -> tuple[Storm, float]:
    with ExitStack() as stack:
        primary = stack.enter_context(PostgresServer())
        replica = primary.replica(is_synchronous=True)
        stack.callback(replica.__exit__)
        address = address_of(primary, replica, schema="shop")
        log = stack.enter_context(Path(os.devnull).open("w"))
        servers = [stack.enter_context(start_server(address, stderr=log)) for _ in range(2)]
        storm = Storm(random.randrange(1_000_000), may_fail=True)
        urls = [server.url for server in servers]
        storm.rage(urls[0], partial(fail, storm, primary, replica, random), *urls[1:])
        promoted = time.monotonic()
        for url in urls:
            until_it_answers(url)
        seconds = time.monotonic() - promoted
        storm.verify(urls[0])
        storm.verify(urls[1])
        assert embedded.check(address).problems == []
        return storm, seconds


def test_nothing_acknowledged_is_lost_with_a_synchronous_replica() -> None:
    random, acknowledged, longest = Random(FAILOVERS), 0, 0.0
    for number in range(1, FAILOVERS + 1):
        storm, seconds = failover(random)
        acknowledged += storm.acknowledged
        longest = max(longest, seconds)
        assert seconds < SECONDS_TO_GO_ON
        figures.note(
            "failovers",
            f"{number}; {acknowledged} writes acknowledged, none lost; the servers went on {longest:.1f} seconds "
            "after the promotion at the latest",
        )


# What the replica has not received


def write(database: isotone.Database, numbers: Iterable[int]) -> int:
    """Write items until one is not acknowledged; how many were."""
    acknowledged = 0
    with suppress(StorageError):
        for number in numbers:
            database.execute("PutItem", {"TableName": TABLE, "Item": {"pk": {"S": f"{number}"}}})
            acknowledged += 1
    return acknowledged


def stop_sending(primary: PostgresServer) -> None:
    """Stop the process that sends to the replica, once that has everything."""
    has_all = "SELECT pid FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()"
    while not (found := primary.execute(has_all)):
        time.sleep(0.02)
    (pid,) = found[0]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGSTOP)


@pytest.mark.parametrize("is_synchronous", [False, True])
def test_what_a_replica_did_not_receive(is_synchronous: bool) -> None:
    """Without `synchronous_standby_names` it is lost, although it was acknowledged; with it, it was not acknowledged."""
    with ExitStack() as stack:
        primary = stack.enter_context(PostgresServer())
        replica = primary.replica(is_synchronous=is_synchronous)
        stack.callback(replica.__exit__)
        address = address_of(primary, replica, schema="shop")
        database = stack.enter_context(isotone.open(address))
        pool = stack.enter_context(ThreadPoolExecutor(1))
        database.execute("CreateTable", table_of(TABLE))
        assert write(database, range(WRITES)) == WRITES
        stop_sending(primary)
        later = pool.submit(write, database, range(WRITES, 2 * WRITES))
        if not is_synchronous:
            later.result()
            database.execute("CreateTable", table_of("Late"))
        else:
            waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            while not primary.execute(waiting):
                time.sleep(0.02)
        primary.kill()
        replica.promote()
        acknowledged = WRITES + later.result()
        await_primary(database)
        there = database.execute("Scan", {"TableName": TABLE, "Select": "COUNT"})["Count"]
        assert there == WRITES
        assert acknowledged == (WRITES if is_synchronous else 2 * WRITES)
        assert database.execute("ListTables", {})["TableNames"] == [TABLE]
        assert embedded.check(address).problems == []
        assert write(database, range(WRITES, 2 * WRITES)) == WRITES
        assert database.check() == []
        kind = "synchronous" if is_synchronous else "asynchronous"
        figures.note(
            f"{kind} replica that was cut off",
            f"{acknowledged - there} of {acknowledged} writes lost",
        )


def table_of(name: str) -> dict[str, Any]:
    return {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    }


def await_primary(database: isotone.Database) -> None:
    deadline = time.monotonic() + SECONDS_TO_GO_ON
    while database.health():
        assert time.monotonic() < deadline
        time.sleep(0.05)
