"""`isotone check` in several processes: each checks parts of a file over its own connection.

    with CheckProcesses(path, 4, ()) as processes, processes.one_snapshot(engine):
        for part, found in processes.check(region, survey, parts, step): ...

Before a process checks a part, it asks the system for all pages of the part in file order. So it does not wait for the
disk page by page, however scattered the pages are.

All processes read one snapshot: each begins a read transaction, and all begin again if anybody has committed meanwhile.
`one_snapshot` tells whether that succeeded.

A process ends with the process that started it, however that ends. Ctrl-C interrupts only the starting process, which
then ends the others. They exchange nothing through files.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from typing import Any, Final, NamedTuple, NoReturn, Self, TypeAlias

from isotone.engine.checked_trees import TreeFindings
from isotone.engine.engine import Engine
from isotone.engine.integrity import PART_SIZE, Part, Step, Survey
from isotone.errors import IsotoneError, StorageError
from isotone.storage.reading_ahead import read_ahead, read_through
from isotone.storage.sqlite import SQLiteStore

# attempts to begin all snapshots at one moment; each takes about a millisecond
_ATTEMPTS: Final = 200
_INTERVAL: Final = 0.2  # seconds between two reports of a process
_LAST_MOMENT: Final = 10.0  # seconds that a process has to end

_BEGIN: Final = "begin"  # begin to read a snapshot
_END: Final = "end"  # stop reading it
_DONE: Final = "done"
_FAILED: Final = "failed"


class _Batch(NamedTuple):
    """Numbered parts that a process must check."""

    region: str
    parts: list[tuple[int, Part]]


class _Report(NamedTuple):
    """How many entries were read in each part since the last report. The last report has the findings of each part."""

    read: list[tuple[int, int]]
    found: list[tuple[int, TreeFindings]] | None = None


if sys.platform == "win32":
    from multiprocessing.connection import PipeConnection as _Connection
else:
    from multiprocessing.connection import Connection as _Connection

Connection: TypeAlias = "_Connection[Any, Any]"
"""An end of a pipe between two processes."""


class CheckProcesses:
    """Processes that check all or some tables of a file. They live as long as the `with` block."""

    def __init__(self, path: str, number: int, tables: Collection[str]) -> None:
        self._path = path
        self._number = number
        self._tables = tuple(tables)
        self._processes: dict[Connection, Any] = {}

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")
        try:
            with _without_ctrl_c():
                for _ in range(self._number):
                    ours, theirs = context.Pipe()
                    arguments = (theirs, self._path, self._tables)
                    process = context.Process(target=_run, args=arguments, daemon=True)
                    process.start()
                    self._processes[ours] = process
                    theirs.close()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._send_all(None)
                for process in self._processes.values():
                    process.join(_LAST_MOMENT)
        finally:
            self._kill()

    def _kill(self) -> None:
        for process in self._processes.values():
            process.kill()
        for connection, process in self._processes.items():
            process.join()
            connection.close()
        self._processes.clear()

    # One snapshot

    @contextmanager
    def one_snapshot(self, engine: Engine) -> Iterator[bool]:
        """Make all processes read the file as it is at one moment; False if constant writes allow only the engine to."""
        with (
            closing(SQLiteStore(self._path, memory_map=0, read_only=True)) as watching,
            ExitStack() as reading,
        ):
            is_one = any(self._have_begun(engine, reading, watching) for _ in range(_ATTEMPTS))
            if not is_one:
                reading.enter_context(engine.reading)
            yield is_one

    def _have_begun(self, engine: Engine, reading: ExitStack, watching: SQLiteStore) -> bool:
        """Whether nobody committed while all processes began to read. If somebody did, all stop reading again."""
        _has_changed(watching)
        reading.enter_context(engine.reading)
        self._send_all(_BEGIN)
        self._await_all()
        if not _has_changed(watching):
            return True
        self._send_all(_END)
        self._await_all()
        reading.close()
        return False

    # Messages

    def _send_all(self, message: str | None) -> None:
        for connection in self._processes:
            self._send(connection, message)

    def _await_all(self) -> None:
        for connection in self._processes:
            self._receive(connection)

    def _send(self, connection: Connection, message: object) -> None:
        with suppress(OSError):  # the error's traceback would keep the message alive
            connection.send(message)
            return
        self._fail(connection)

    def _receive(self, connection: Connection) -> Any:
        message = None
        with suppress(EOFError, OSError):
            message = connection.recv()
        if message is None:
            self._fail(connection)
        kind, content = message
        if kind == _FAILED:
            raise StorageError(content)
        return content

    def _fail(self, connection: Connection) -> NoReturn:
        process = self._processes[connection]
        process.join(_LAST_MOMENT)
        raise StorageError(
            f"a process that checked {self._path} ended with code {process.exitcode}: check it with --processes 1"
        )

    # The parts

    def check(
        self, region: str, survey: Survey, parts: Sequence[Part], step: Step
    ) -> Iterator[tuple[Part, TreeFindings]]:
        """Yield the findings of each part, in the order in which the parts are finished."""
        batches = deque(
            _Batch(region, [(number, parts[number]) for number in group])
            for group in _grouped(parts)
        )
        idle, busy = list(self._processes), set[Connection]()
        while batches or busy:
            while batches and idle:
                connection = idle.pop()
                self._send(connection, batches.popleft())
                busy.add(connection)
            ready = wait(busy)
            for connection in [each for each in busy if each in ready]:
                report: _Report = self._receive(connection)
                for number, count in report.read:
                    step(parts[number], count)
                if report.found is not None:
                    busy.remove(connection)
                    idle.append(connection)
                    yield from ((parts[number], found) for number, found in report.found)


def _grouped(parts: Sequence[Part]) -> list[list[int]]:
    """The numbers of the parts; small parts are grouped, and the structure stays alone."""
    groups: list[list[int]] = []
    room = 0
    for number, part in enumerate(parts):
        size = max(1, len(part.keys.pages))
        if part.tree is None or size > room:
            groups.append([])
            room = 0 if part.tree is None else PART_SIZE
        groups[-1].append(number)
        room -= size
    return groups


def _has_changed(watching: SQLiteStore) -> bool:
    """Whether anybody has committed since the last call."""
    with watching.snapshot():
        return watching.changed_elsewhere()


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Processes started in the block ignore Ctrl-C, which terminals send to all. This process obeys it again
    afterwards.
    """
    if sys.platform == "win32":
        yield
        return
    # otherwise the first process starts it, and that would unblock Ctrl-C again
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# In a process


def _run(connection: Connection, path: str, tables: tuple[str, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        # never closed, because closing it would release SQLite's locks
        file = os.open(path, os.O_RDONLY)
        with closing(Engine(SQLiteStore(path, memory_map=0, read_only=True))) as engine:
            _Checker(connection, engine, file, tables).run()
    except EOFError:
        pass  # the process that started this one has ended
    except IsotoneError as error:
        connection.send((_FAILED, str(error)))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _Checker:
    """Executes the commands that arrive over a connection."""

    def __init__(
        self, connection: Connection, engine: Engine, file: int, tables: tuple[str, ...]
    ) -> None:
        self._connection = connection
        self._engine = engine
        self._file = file
        self._tables = tables
        self._surveys: dict[str, Survey] = {}

    def run(self) -> None:
        with ExitStack() as reading:
            while (message := self._connection.recv()) is not None:
                if message == _BEGIN:
                    reading.enter_context(self._engine.reading)
                    self._connection.send((_DONE, None))
                elif message == _END:
                    reading.close()
                    self._connection.send((_DONE, None))
                else:
                    self._check(message)

    def _survey(self, region: str) -> Survey:
        if region not in self._surveys:
            self._surveys[region] = Survey(self._engine.regions[region], self._tables)
        return self._surveys[region]

    def _check(self, batch: _Batch) -> None:
        if any(part.tree is None for _, part in batch.parts):
            read_through(self._file)  # SQLite reads every page, in its own order
        read_ahead(self._file, chain.from_iterable(part.keys.pages for _, part in batch.parts))
        survey = self._survey(batch.region)
        read: Counter[int] = Counter()
        found: list[tuple[int, TreeFindings]] = []
        reported = time.monotonic()
        for number, part in batch.parts:

            def step(_: Part, count: int, number: int = number) -> None:
                nonlocal reported
                read[number] += count
                if time.monotonic() - reported >= _INTERVAL:
                    self._connection.send((_DONE, _Report(list(read.items()))))
                    read.clear()
                    reported = time.monotonic()

            found.append((number, survey.check(part, step)))
        self._connection.send((_DONE, _Report(list(read.items()), found)))
