"""What more processes give: requests a second of one and two fronts, what a request costs, who waits beside heavy clients.

    python -m bench cores [--rounds N]

The load generator shares the cores with the server. A front that could not have a core for itself is counted with what it
had: the rate is divided by the part of its cores that the generator left to the server.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from statistics import quantiles
from typing import Final

from bench import heavy_clients, load, over_http, peers, requests
from bench.measuring import Effort, Row, Target
from bench.peers import Running, Server

GET, QUERY = (
    "GetItem, as if the generator took nothing",
    "Query of 100, as if the generator took nothing",
)
PUT = "durable PutItem, 64 connections"
FULL_PUT = f"{PUT}, as if the generator took nothing"
GET_COSTS, PUT_COSTS = "processor time of one GetItem", "processor time of one PutItem"
BESIDE, PUT_BESIDE = "p99 of GetItem beside a heavy client", "p99 of PutItem beside a heavy reader"
MEMORY = "proportional memory of an idle server"
READY = "served file ready to answer"

ONE, TWO = "one process", "two fronts"
WORST, ALL = "the worst of them", "all of them at once"
TARGETS: Final = (
    Target(GET, TWO, "at least", 1.7, ONE),
    Target(QUERY, TWO, "at least", 1.8, ONE),
    Target(FULL_PUT, TWO, "at least", 1.4, ONE),
    Target(GET_COSTS, TWO, "at most", 1.05, ONE),
    Target(PUT_COSTS, TWO, "at most", 1.25, ONE),
    Target(BESIDE, WORST, "at most", 10),
    Target(BESIDE, ALL, "at most", 50),
    Target(PUT_BESIDE, WORST, "at most", 25),
    Target(MEMORY, ONE, "at most", 40),
    Target(MEMORY, TWO, "at most", 70),
    Target(READY, ONE, "at most", 250),
)

CONNECTIONS: Final = 64
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def serving(name: str, *options: str, path: Path | None = None) -> Server:
    """A server of this file, or of one of its own."""

    def command(port: int, folder: Path) -> Sequence[str]:
        file = str(path or folder / "isotone.db")
        return peers.isotone(port, file, "--no-workbench", *options)

    return Server(name, command, durable=True)


SERVERS: Final = {serving(ONE): 1, serving(TWO, "--workers", "2"): 2}
"""With the number of their processes that read."""


@cache
def starts(server: Server) -> bool:
    """Whether it knows its options: one that does not is absent from the table."""
    try:
        with peers.started(server):
            return True
    except RuntimeError:
        return False


def processes(root: int) -> list[int]:
    """A process and its descendants (Linux)."""
    found = [root]
    for parent in found:
        children = Path(f"/proc/{parent}/task/{parent}/children")
        found += [int(child) for child in children.read_text().split()]
    return found


def processor_time(root: int) -> float:
    """Seconds that a process and its descendants have computed."""
    ticks = 0
    for each in processes(root):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS


def proportional_memory(root: int) -> float:
    """Megabytes of a process and its descendants, in which shared pages are divided among those that share them."""
    total = 0
    for each in processes(root):
        lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


class Loaded:
    """A server, the requests to load it with, and what has been seen of it."""

    def __init__(self, running: Running, made: over_http.Requests, fronts: int) -> None:
        over_http.fill(running)
        asked = list(made(running))
        for operation, request in asked[:20]:
            over_http.check(running, operation, request)
        self._running = running
        self._fronts = fronts
        self._sent = [requests.raw(*each, running.port) for each in asked]
        self.rates: list[float] = []
        self.full_rates: list[float] = []
        self.costs: list[float] = []

    def load(self, seconds: float) -> None:
        """Load it for so long. Notes requests a second, those it would reach alone, and microseconds of one."""
        server = self._running.process.pid
        before, generator = processor_time(server), _generated()
        began = time.perf_counter()
        seen = load.run(self._running.port, self._sent, seconds, CONNECTIONS)
        elapsed = time.perf_counter() - began
        left = (os.cpu_count() or 1) - (_generated() - generator) / elapsed
        self.rates.append(seen.per_second)
        self.full_rates.append(seen.per_second * self._fronts / min(self._fronts, left))
        self.costs.append((processor_time(server) - before) / (seen.per_second * elapsed) * 1e6)


def _generated() -> float:
    """Seconds that load generators have computed which have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def loaded(made: over_http.Requests, effort: Effort) -> dict[str, Loaded]:
    """Each server after its rounds. They take turns: only the one under load has work."""
    with ExitStack() as stack:
        found = {
            server.name: Loaded(stack.enter_context(peers.started(server)), made, fronts)
            for server, fronts in SERVERS.items()
            if starts(server)
        }
        for each in found.values():
            each.load(min(over_http.WARM_UP, effort.seconds))
            each.rates, each.full_rates, each.costs = [], [], []
        for _ in range(effort.rounds):
            for each in found.values():
                each.load(effort.seconds)
    return found


def throughput(effort: Effort) -> Iterator[Row]:
    for measure, made in ((GET, over_http.gets), (QUERY, over_http.queries)):
        for name, each in loaded(made, effort).items():
            yield Row(measure, name, "/s", each.full_rates)
            if measure == GET:
                yield Row(GET_COSTS, name, "µs", each.costs)
    for name, each in loaded(over_http.puts, effort).items():
        yield Row(PUT, name, "/s", each.rates)
        yield Row(FULL_PUT, name, "/s", each.full_rates)
        yield Row(PUT_COSTS, name, "µs", each.costs)
    for number in (2, 4):
        yield Row(PUT, f"{number} servers of one file", "/s", sharing(number, effort))


def sharing(number: int, effort: Effort) -> list[float]:
    """Requests a second of servers that share a file and know nothing of each other."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=peers.data_folder()))
        server = serving("one of several", path=Path(folder) / "isotone.db")
        servers = [stack.enter_context(peers.started(server)) for _ in range(number)]
        over_http.fill(servers[0])
        sent = [
            [requests.raw(*each, running.port) for each in over_http.puts(running)]
            for running in servers
        ]

        def one(running: Running, raw: list[bytes]) -> float:
            return load.run(running.port, raw, effort.seconds, CONNECTIONS // number).per_second

        with ThreadPoolExecutor(number) as pool:
            return [sum(pool.map(one, servers, sent)) for _ in range(effort.rounds)]


def waiting(effort: Effort) -> Iterator[Row]:
    """The slowest hundredth of small requests of one client, beside others with large ones."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "heavy.db")
        with heavy_clients.served(path, "--durability", "none") as url:
            heavy_clients.load(url)
        with heavy_clients.served(path) as url:
            for measure, small, names in (
                (BESIDE, heavy_clients.GET, list(heavy_clients.heavy())),
                (PUT_BESIDE, heavy_clients.PUT, list(heavy_clients.heavy_reads())),
            ):
                yield Row(measure, "nobody", "ms", [p99(url, small, effort)])
                each = [p99(url, small, effort, name) for name in names]
                yield from (
                    Row(measure, name, "ms", [one]) for name, one in zip(names, each, strict=True)
                )
                yield Row(measure, WORST, "ms", [max(each)])
                yield Row(measure, ALL, "ms", [p99(url, small, effort, *names)])


def p99(url: str, small: heavy_clients.Request, effort: Effort, *names: str) -> float:
    """Milliseconds, beside the heavy clients of these names."""
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(heavy_clients.beside(url, name))
        return quantiles(heavy_clients.latencies(url, effort.seconds, small), n=100)[98]


def idle(effort: Effort) -> Iterator[Row]:
    """What a server holds half a second after its start, and how long that took."""
    for server in filter(starts, SERVERS):
        ready, memory = [], []
        for _ in range(effort.rounds):
            began = time.perf_counter()
            with peers.started(server) as running:
                ready.append((time.perf_counter() - began) * 1000)
                time.sleep(0.5)
                memory.append(proportional_memory(running.process.pid))
        yield Row(READY, server.name, "ms", ready)
        yield Row(MEMORY, server.name, "MB", memory)


def run(effort: Effort) -> list[Row]:
    return [*throughput(effort), *waiting(effort), *idle(effort)]
