"""Processes of a server that die and are replaced under heavy load leave nothing: memory, descriptors, sockets, processes.

`ISOTONE_SOAK_SECONDS=3600 pytest -s tests/attack/test_process_soak.py` goes on for an hour; the quick form for seconds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.attack.soak_load import cycle, prepare
from tests.crash.server_storm import Caller, Gone, Refused
from tests.sdks.server_process import ServerProcess, start_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

SECONDS = float(os.environ.get("ISOTONE_SOAK_SECONDS", "10"))
MEASUREMENTS = 40 if SECONDS > 60 else 4
BETWEEN_KILLS = 8.0 if SECONDS > 60 else 2.0  # the tenth death within a minute ends a server
CLIENTS = 3
FRONTS = 2
MOST_MEGABYTES = 16.0  # that the second half of a long run may add to the memory of all processes
PATIENCE = 60.0


def processes(root: int) -> list[int]:
    """The process, and all that came of it and run, in the order of their start."""
    found = [root]
    for process in found:
        with contextlib.suppress(OSError):  # it has ended
            for children in Path(f"/proc/{process}/task").glob("*/children"):  # of each thread
                found += filter(is_running, map(int, children.read_text().split()))
    return found


def is_running(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def descriptors(process: int) -> int:
    return len([*Path(f"/proc/{process}/fd").iterdir()])


def own_memory(process: int) -> float:
    """Megabytes that are no pages of files."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


def wait_until(done: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


class Held(NamedTuple):
    """What all processes of a server hold together."""

    megabytes: float
    descriptors: int


class Load:
    """Clients that send cycles of heavy requests, whatever becomes of the processes that answer them."""

    def __init__(self, url: str) -> None:
        self.cycles = 0
        self.failures: list[BaseException] = []
        self._url = url
        self._is_over = False
        self._may_send = threading.Event()
        self._pausing = [threading.Event() for _ in range(CLIENTS)]

    def _run(self, client: int) -> None:
        try:
            number = client * 10_000_000
            while not self._is_over:
                with Caller(
                    self._url, timeout=PATIENCE
                ) as call:  # its connection ends with each cycle
                    cycle(lambda action, request: answered(call, action, request), number)
                number += 1
                self.cycles += 1
                if not self._may_send.is_set():
                    self._pausing[client].set()
                    self._may_send.wait()
                    self._pausing[client].clear()
        except BaseException as failure:  # noqa: BLE001 - the test raises it
            self.failures.append(failure)
            self._pausing[client].set()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._run, args=(client,)) for client in range(CLIENTS)]
        self._may_send.set()
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._is_over = True
            self._may_send.set()
            for thread in threads:
                thread.join()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        self._may_send.clear()
        for pausing in self._pausing:
            assert pausing.wait(PATIENCE)
        yield
        self._may_send.set()


def answered(call: Caller, action: str, request: dict[str, Any]) -> object:
    """The answer, or the refusal, or nothing where the process that was asked has died."""
    try:
        return call(action, **request)
    except (Refused, Gone) as refused:
        return refused


class Family:
    """The processes of a server: how many there are, what they hold, and those that have been."""

    def __init__(self, server: ServerProcess) -> None:
        self._root = server.process.pid
        self._url = server.url
        self.seen: set[int] = set()
        self.settle()

    def settle(self) -> None:
        """Wait for the processes that are always there, until they answer."""
        wait_until(lambda: len(processes(self._root)) >= 2 + FRONTS, "a process was not replaced")
        with Caller(self._url) as call:
            wait_until(lambda: isinstance(answered(call, "ListTables", {}), dict), "no answer")
        self.seen |= {*processes(self._root)}

    def kill_one(self, random: Random) -> None:
        victim = random.choice(processes(self._root)[1:])
        self.seen.add(victim)
        with contextlib.suppress(ProcessLookupError):  # it was idle, and has ended
            os.kill(victim, signal.SIGKILL)
        wait_until(lambda: not is_running(victim), "a killed process goes on")
        self.settle()

    def _lanes(self) -> list[int]:
        """The processes for long work: those that come of fronts and the writer."""
        return [
            process
            for child in processes(self._root)[1 : 2 + FRONTS]
            for process in processes(child)[1:]
        ]

    def at_rest(self) -> Held:
        """What is held without clients and lanes."""
        for lane in self._lanes():  # each would end after a minute
            os.kill(lane, signal.SIGKILL)
        wait_until(lambda: len(processes(self._root)) == 2 + FRONTS, "a lane did not end")
        time.sleep(1)  # connections are being closed
        found = processes(self._root)
        return Held(sum(map(own_memory, found)), sum(map(descriptors, found)))


def rotate(log: Path, server: ServerProcess) -> None:
    """Put the audit log aside, as `logrotate` does, and tell the server."""
    log.replace(log.with_suffix(".before"))
    server.process.send_signal(signal.SIGHUP)
    wait_until(log.exists, "the audit log was not opened again")


def test_processes_that_die_leave_nothing(tmp_path: Path) -> None:
    log, random = tmp_path / "audit.log", Random(7)
    options = ("--workers", str(FRONTS), "--audit-log", str(log))
    measured: list[Held] = []
    kills = 0
    with start_server(tmp_path / "soak.db", *options) as server:
        with Caller(server.url) as call:
            prepare(lambda action, request: call(action, **request))
        family, load = Family(server), Load(server.url)
        beginning = time.monotonic()
        with load.running():
            for turn in range(1, MEASUREMENTS + 1):
                while time.monotonic() < beginning + SECONDS * turn / MEASUREMENTS:
                    time.sleep(BETWEEN_KILLS)
                    family.kill_one(random)
                    kills += 1
                rotate(log, server)
                with load.paused():
                    measured.append(family.at_rest())
                print(f"{time.monotonic() - beginning:.0f} s, {load.cycles} cycles, {kills} kills: "
                      f"{measured[-1].megabytes:.1f} MB and {measured[-1].descriptors} descriptors in all processes", flush=True)  # fmt: skip
        assert not load.failures, load.failures
        assert load.cycles
        assert server.stop() == 0
    wait_until(lambda: not any(map(is_running, family.seen)), "a process was left behind")
    assert not [path for path in tmp_path.iterdir() if path.is_socket()]
    first, second = measured[: MEASUREMENTS // 2], measured[MEASUREMENTS // 2 :]
    assert max(second).megabytes < max(first).megabytes + MOST_MEGABYTES, measured
    # A process that has had a lane keeps the socket to the dead keeper until it needs a lane again.
    most = max(each.descriptors for each in first) + 1 + FRONTS
    assert min(each.descriptors for each in second) <= most, measured
