"""The primary of PostgreSQL dies under load, and its replica is promoted: servers go on without a restart.

`ISOTONE_FAILOVERS=20 pytest -s tests/crash/test_postgres_failover.py` for as many as one likes.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random

from tests.crash.server_storm import Storm
from tests.crash.test_postgres_kill import until_it_answers
from tests.postgres_server import PostgresServer, needs_postgres
from tests.sdks.server_process import start_server

from isotone.backends import embedded

pytestmark = needs_postgres

FAILOVERS = int(os.environ.get("ISOTONE_FAILOVERS", "1"))
SECONDS_TO_GO_ON = 5.0


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
        print(
            f"\n{number} failovers: {acknowledged} writes acknowledged, none lost; the servers went on "
            f"{longest:.1f} seconds after the promotion at the latest"
        )
