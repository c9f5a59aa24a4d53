"""`pytest --processes N`: the tests are imported and collected once, and then run in N forked processes.

With pytest-xdist each worker imports and collects all tests for itself. To collect tests/model and tests/operations,
the largest folders, takes 11 s of processor time (10.5 and 11.7 s, 2026-11-28). So four workers would spend 33 s more on
these alone, where the whole suite takes 538 s. The processes here are forked when everything is collected, so they
share it.

The parent hands out chunks of neighbouring tests, which share fixtures of modules: in the order of the collection,
each to the process that is first done. It gets their reports through pipes, and prints them.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

LARGEST_CHUNK = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--processes",
        metavar="N",
        help="run the tests in N forked processes; 'auto' takes two for each core",
    )


def number_of(config: pytest.Config) -> int:
    """How many processes are asked for; 0 where the tests run in this one."""
    wanted = config.getoption("--processes")
    if not wanted or not hasattr(os, "fork"):
        return 0
    # Many tests wait for a disk, for another process, or for time to pass.
    return 2 * (os.cpu_count() or 1) if wanted == "auto" else int(wanted)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    number = number_of(session.config)
    if not number or session.testsfailed or session.config.option.collectonly:
        return None
    Parent(session, number).run()
    return True


def chunks(items: list[pytest.Item], number: int) -> Iterator[list[int]]:
    """Neighbours of one module; fewer towards the end, so that all processes end at about the same time."""
    first = 0
    while first < len(items):
        most = min(max((len(items) - first) // (6 * number), 1), LARGEST_CHUNK)
        end = first + 1
        while end < min(first + most, len(items)) and items[end].path == items[first].path:
            end += 1
        yield [*range(first, end)]
        first = end


class Parent:
    """Hands out the tests, and takes their reports."""

    def __init__(self, session: pytest.Session, number: int) -> None:
        self.session = session
        self.number = number
        self.left = deque(chunks(session.items, number))
        self.running: dict[Connection, Any] = {}
        self.given: dict[Connection, list[int]] = {}
        self.done = 0

    @property
    def is_stopped(self) -> bool:
        return bool(self.session.shouldfail or self.session.shouldstop)

    def run(self) -> None:
        # All share one folder for temporary files, whose names are numbered.
        self.session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] # pytest's own
        try:
            for _ in range(self.number):
                self.fork()
            while self.running and not self.is_stopped:
                for connection in wait(list(self.running)):
                    assert isinstance(connection, Connection)
                    self.hear(connection)
        finally:
            self.end()
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)
        assert self.done == len(self.session.items), "some tests did not run"

    def fork(self) -> None:
        mine, its = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(
            target=work, args=(self.session, its, [mine, *self.running])
        )
        process.start()
        its.close()
        self.running[mine] = process
        self.given[mine] = []

    def give(self, connection: Connection) -> None:
        """The next tests, or none after the last."""
        numbers = self.left.popleft() if self.left else []
        self.given[connection] += numbers
        with suppress(BrokenPipeError):
            connection.send(numbers)

    def hear(self, connection: Connection) -> None:
        hook = self.session.config.hook
        try:
            kind, told = connection.recv()
        except (EOFError, ConnectionResetError):
            self.ended(connection)
            return
        if kind == "more":
            self.give(connection)
        elif kind == "report":
            report = hook.pytest_report_from_serializable(config=self.session.config, data=told)
            hook.pytest_runtest_logreport(report=report)
        elif kind == "warning":
            hook.pytest_warning_recorded.call_historic(kwargs=told)
        else:
            if kind == "end":
                self.given[connection].remove(told)
                self.done += 1
            item = self.session.items[told]
            told = {"nodeid": item.nodeid, "location": item.location}
            if kind == "begin":
                hook.pytest_runtest_logstart(**told)
            else:
                hook.pytest_runtest_logfinish(**told)

    def ended(self, connection: Connection) -> None:
        """A process has ended: if it had something left to do, the test that it was at is to blame."""
        process = self.running.pop(connection)
        process.join()
        numbers = self.given.pop(connection)
        if numbers:
            item = self.session.items[numbers.pop(0)]
            why = f"the process that ran it has ended with exit code {process.exitcode}"
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
            self.session.config.hook.pytest_runtest_logreport(report=report)
            self.done += 1
            if numbers:
                self.left.appendleft(numbers)
            self.fork()

    def end(self) -> None:
        """Interrupt the processes that still run, so that they end what they have started."""
        for process in self.running.values():
            if process.is_alive():
                os.kill(process.pid, signal.SIGINT)
        for process in self.running.values():
            process.join(10)
            process.kill()
            process.join()


def work(session: pytest.Session, parent: Connection, others: list[Connection]) -> None:
    """Run what the parent gives out, until it gives no more."""
    for other in others:
        other.close()
    config = session.config
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture.is_globally_capturing():  # the file that captures belongs to the parent
        capture.stop_global_capturing()
        capture.start_global_capturing()
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(Reporter(config, parent))
    numbers = deque[int]()

    def next_number() -> int | None:
        if not numbers:
            parent.send(("more", None))
            numbers.extend(parent.recv())
        return numbers.popleft() if numbers else None

    try:
        number = next_number()
        while number is not None:
            following = next_number()
            parent.send(("begin", number))
            config.hook.pytest_runtest_protocol(
                item=session.items[number],
                nextitem=None if following is None else session.items[following],
            )
            parent.send(("end", number))
            number = following
    except (KeyboardInterrupt, pytest.exit.Exception):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal and the parent both send it
        session._setupstate.teardown_exact(None)


class Reporter:
    """Sends what is to be shown to the parent."""

    def __init__(self, config: pytest.Config, parent: Connection) -> None:
        self.config = config
        self.parent = parent

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.parent.send(("report", data))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        told = {"warning_message": warning_message, "when": when}
        self.parent.send(("warning", {**told, "nodeid": nodeid, "location": location}))
