"""Two servers over one database in PostgreSQL, and everything may die: what was acknowledged is there.

`ISOTONE_KILLS=300 pytest -s tests/crash/test_postgres_kill.py` for as many kills as one likes.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from urllib.error import HTTPError
from urllib.request import urlopen

from tests import figures
from tests.crash.server_storm import Caller, Gone, Refused, Storm
from tests.postgres_server import PostgresServer, needs_postgres
from tests.sdks.server_process import ServerProcess, start_server

from isotone.backends import embedded

pytestmark = needs_postgres

KILLS = int(os.environ.get("ISOTONE_KILLS", "5"))
KILLS_A_DATABASE = 12  # reading everything back takes longer as receipts gather
VICTIMS = (
    "a server",
    "a backend",
    "the postmaster",
    "all of PostgreSQL",
    "a server and all of PostgreSQL",
)
RECOVERY_SECONDS = 60.0


def until_it_answers(url: str) -> None:
    deadline = time.monotonic() + RECOVERY_SECONDS
    with Caller(url) as call:
        while True:
            try:
                call("ListTables")
            except (Refused, Gone):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            else:
                return


def health(url: str) -> tuple[int, str]:
    try:
        with urlopen(f"{url}/healthz", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def kill_a_backend(postgres: PostgresServer, random: Random) -> None:
    """One process of PostgreSQL is killed; it ends all the others, and recovers."""
    import psycopg

    with psycopg.connect(postgres.libpq_address) as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'isotone'"
        ).fetchall()
    os.kill(random.choice(found)[0], signal.SIGKILL)


def kill(
    victim: str, storm: Storm, server: ServerProcess, postgres: PostgresServer, random: Random
) -> None:
    """Kill at any moment after some writes were acknowledged; the survivors go on."""
    storm.wait_for(random.randrange(30, 90))
    time.sleep(random.uniform(0, 0.02))
    if victim.startswith("a server"):
        server.kill()
    if victim == "a server":
        storm.wait_for(11)
    elif victim == "a backend":
        kill_a_backend(postgres, random)
    elif victim == "the postmaster":
        postgres.kill_postmaster()
    else:
        postgres.kill()
    storm.is_over = True


def test_nothing_acknowledged_is_lost() -> None:
    random, killed, acknowledged, unanswered = Random(KILLS), Counter[str](), 0, 0
    with PostgresServer() as postgres:
        left = KILLS
        while left:
            kills = min(left, KILLS_A_DATABASE)
            left -= kills
            storm = storm_over(postgres, kills, random, killed)
            acknowledged += storm.acknowledged
            unanswered += storm.open
            each = ", ".join(f"{number} × {victim}" for victim, number in killed.items())
            figures.note(
                "kills",
                f"{killed.total()} ({each}); {acknowledged} writes acknowledged, none lost; {unanswered} had no answer",
            )
    assert acknowledged >= 30 * KILLS


def storm_over(postgres: PostgresServer, kills: int, random: Random, killed: Counter[str]) -> Storm:
    """A new database, and so many kills."""
    address = postgres.new_address()
    storm = Storm(random.randrange(1_000_000), may_fail=True)
    with ExitStack() as stack:
        # What a server complains of when PostgreSQL is gone is not the point here.
        log = stack.enter_context(Path(os.devnull).open("w"))
        servers = [stack.enter_context(start_server(address, stderr=log)) for _ in range(2)]
        for _ in range(kills):
            victim = VICTIMS[killed.total() % len(VICTIMS)]
            killed[victim] += 1
            urls = [server.url for server in servers]
            die = partial(kill, victim, storm, servers[0], postgres, random)
            storm.rage(urls[0], die, *urls[1:])
            if victim not in ("a server", "a backend"):
                status, reason = health(servers[1].url)
                assert status == 503
                assert "PostgreSQL" in reason
                postgres.start()
            if victim.startswith("a server"):
                servers[0] = stack.enter_context(start_server(address, stderr=log))
            for server in servers:
                until_it_answers(server.url)
            storm.verify(random.choice(servers).url)
            assert embedded.check(address).problems == []
    return storm
