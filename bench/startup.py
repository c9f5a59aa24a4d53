"""How long until we are there, and how much memory we hold while nobody asks."""

from __future__ import annotations

import subprocess
import sys
import time

from bench import peers
from bench.measuring import Effort, Row, Target

IMPORT, READY, MEMORY = (
    "import isotone",
    "server ready to answer",
    "resident memory of an idle server",
)
OURS, FILE = peers.ISOTONE_MEMORY.name, peers.ISOTONE_FILE.name
SERVERS = (
    peers.ISOTONE_MEMORY,
    peers.ISOTONE_FILE,
    peers.DYNALITE_MEMORY,
    peers.DYNAMODB_LOCAL,
    peers.MOTO_SERVER,
    peers.DYNOXIDE_MEMORY,
)
TARGETS = (
    Target(IMPORT, OURS, "at most", 60),
    Target(READY, OURS, "at most", 300),
    Target(READY, FILE, "at most", 300),
    Target(MEMORY, OURS, "at most", 50),
    Target(MEMORY, FILE, "at most", 50),
)
TIMER = (
    "import time; began = time.perf_counter(); import isotone; print(time.perf_counter() - began)"
)


def _import() -> Row:
    """Milliseconds of the import statement in a fresh interpreter, files in the page cache."""
    taken = [
        float(subprocess.run([sys.executable, "-c", TIMER], capture_output=True, check=True).stdout)
        for _ in range(10)
    ]
    return Row(IMPORT, OURS, "ms", [seconds * 1000 for seconds in taken])


def _started(server: peers.Server, rounds: int) -> list[Row]:
    """Milliseconds from spawning the process to its first answer; megabytes half a second later."""
    ready: list[float] = []
    resident: list[float] = []
    if not server.is_here:
        return [
            Row(name, server.name, unit, absent="not installed")
            for name, unit in ((READY, "ms"), (MEMORY, "MB"))
        ]
    for _ in range(rounds):
        began = time.perf_counter()
        with peers.started(server) as running:
            ready.append((time.perf_counter() - began) * 1000)
            time.sleep(0.5)
            resident.append(running.resident() / 1024 / 1024)
    return [Row(READY, server.name, "ms", ready), Row(MEMORY, server.name, "MB", resident)]


def run(effort: Effort) -> list[Row]:
    rows = [_import()]
    for server in SERVERS:
        rows += _started(server, effort.rounds)
    return rows
