"""`isotone serve --workers N`: the parent process: forks fronts and writer, accepts connections, replaces dead processes.

The supervisor has imported everything and opened nothing, neither a database nor an event loop. So it can fork at any time,
and a new process costs only the memory that it changes. It accepts connections, and passes each to the front with the
fewest. See docs/design/processes.md.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Unpack

from isotone.errors import IsotoneError, StorageError
from isotone.server import process_control as orders
from isotone.server.child_process import ProcessRole, run
from isotone.server.front import FrontProcess, Services, SharedSettings
from isotone.server.listener import GRACE, ServerOptions, admission_of, bind, url_of
from isotone.server.pages_process import PagesProcess
from isotone.server.process_messages import Failed, FrameReader
from isotone.server.shared_counts import SharedCounts
from isotone.server.writer import WriterProcess

assert sys.platform != "win32"  # it forks

_MOST_DEATHS: Final = 10  # deaths of processes within a minute; then the server ends
_MINUTE: Final = 60.0
_FAREWELL: Final = GRACE + 3.0  # seconds between the order to stop and a kill
_BURST: Final = 64  # connections that are accepted before other events are handled
_PAUSE: Final = 0.05  # seconds
_FILES: Final = ("credentials", "audit_log", "tls_cert")  # options whose files are read again

log: logging.Logger = logging.getLogger("isotone.server")


@dataclass(slots=True, eq=False)
class _Child:
    """A forked process, and the supervisor's socket to it."""

    name: str
    number: int = -1  # of a front
    pid: int = 0
    control: socket.socket = field(init=False)
    is_ready: bool = False
    failure: IsotoneError | None = None  # why it could not start


class TooManyDeaths(StorageError):
    """The processes of a server keep dying."""


def serve_by_processes(
    services: Services,
    host: str,
    port: int,
    ready: Callable[[str], None] | None = None,
    **options: Unpack[ServerOptions],
) -> None:
    """Serve a file with `workers` fronts and a writer, until SIGINT or SIGTERM. The options are those of `serve`."""
    workers = options.get("workers", 1)
    listening = bind(host, port)
    with listening:
        admission_of(host, listening, options)
        shared = SharedSettings(services, SharedCounts(workers), host, listening, options)
        supervisor = _Supervisor(shared, workers)
        try:
            supervisor.run(ready)
        finally:
            supervisor.end()


class _Supervisor:
    """The processes of one server."""

    def __init__(self, shared: SharedSettings, workers: int) -> None:
        self._shared = shared
        self._listening = shared.listening
        self._counts = shared.counts
        self._options = shared.options
        self._writer: _Child | None = None
        self._fronts: dict[int, _Child] = {}
        self._pages: _Child | None = None
        self._workers = workers
        self._deaths: deque[float] = deque()
        self._selector = selectors.DefaultSelector()
        self._signals, self._wakeup = socket.socketpair()
        self._signals.setblocking(False)
        self._wakeup.setblocking(False)
        self._selector.register(self._signals, selectors.EVENT_READ, self._handle_signals)
        self._channels: set[socket.socket] = set()  # ends of channels that no other process has yet
        self._has_begun = False
        self._is_stopping = False

    # The life of the server

    def run(self, ready: Callable[[str], None] | None) -> None:
        """Start all processes, and replace those that die, until a signal to stop."""
        self._listening.setblocking(False)
        with contextlib.suppress(ImportError):
            import uvloop  # noqa: F401 - imported once for all processes
        gc.freeze()  # a garbage collection in one process would copy memory that all share
        with self._noting_signals():
            self._begin()
            self._has_begun = True
            self._selector.register(self._listening, selectors.EVENT_READ, self._accept)
            if ready is not None and not self._is_stopping:
                is_secure = self._options.get("tls_cert") is not None
                ready(url_of(self._listening, secure=is_secure))
            try:
                while not self._is_stopping:
                    self._handle_events()
            finally:
                self._stop()

    def end(self) -> None:
        """Kill the processes that are left, and close everything."""
        for child in self._children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)
            child.control.close()
        self._selector.close()
        for end in (self._signals, self._wakeup, *self._channels):
            end.close()

    def _begin(self) -> None:
        """Start the writer, which creates or upgrades the file, and then the fronts."""
        ends = self._start_writer()
        assert self._writer is not None
        self._wait_until(lambda: self._writer is not None and self._writer.is_ready)
        for number, end in enumerate(ends):
            self._start_front(number, end)
        self._wait_until(lambda: all(front.is_ready for front in self._fronts.values()))

    def _wait_until(self, done: Callable[[], bool]) -> None:
        while not (done() or self._is_stopping):
            self._handle_events()

    def _stop(self) -> None:
        """Accept no more connections; stop the fronts, which answer received requests, and then the writer."""
        self._is_stopping = True
        with contextlib.suppress(KeyError):
            self._selector.unregister(self._listening)
        self._listening.close()
        self._end_all(lambda: [child for child in self._children() if child is not self._writer])
        self._end_all(lambda: [] if self._writer is None else [self._writer])

    def _end_all(self, left: Callable[[], list[_Child]]) -> None:
        """Order processes to stop, and kill those that have not after a while."""
        for child in left():
            orders.send(child.control, orders.STOP)
        deadline = time.monotonic() + _FAREWELL
        while left() and (rest := deadline - time.monotonic()) > 0:
            self._handle_events(rest)
        for child in left():
            log.error("%s (process %d) did not stop, so it was killed", child.name, child.pid)
            os.kill(child.pid, signal.SIGKILL)

    def _handle_events(self, seconds: float | None = None) -> None:
        for key, _ in self._selector.select(seconds):
            key.data()

    # Signals

    @contextlib.contextmanager
    def _noting_signals(self) -> Iterator[None]:
        """While the block runs, signals wake the selector, which calls `_handle_signals`."""
        noted = [signal.SIGINT, signal.SIGTERM, signal.SIGCHLD]
        if any(self._options.get(name) is not None for name in _FILES):
            noted.append(signal.SIGHUP)  # otherwise it ends the server, as by default
        before = {number: signal.signal(number, _ignore_signal) for number in noted}
        wakeup = signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)

    def _handle_signals(self) -> None:
        for number in self._signals.recv(4096):
            if number in (signal.SIGINT, signal.SIGTERM):
                if self._is_stopping:
                    self._end_at_once(number)
                self._is_stopping = True
            elif number == signal.SIGHUP:
                for front in self._fronts.values():
                    orders.send(front.control, orders.RELOAD)
        self._reap()  # for every signal: several SIGCHLD may be noted as one

    def _end_at_once(self, number: int) -> None:
        """After a second signal: kill the other processes, and let the signal end this one."""
        for child in self._children():
            os.kill(child.pid, signal.SIGKILL)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    # Connections

    def _accept(self) -> None:
        """Accept waiting connections, and pass each to the front with the fewest."""
        for _ in range(_BURST):
            try:
                connection, _ = self._listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                log.error("a connection could not be accepted: %s", error)
                time.sleep(
                    _PAUSE
                )  # too many open files: without a pause, accept would fail in a loop
                return
            with connection:
                self._hand(connection)

    def _hand(self, connection: socket.socket) -> None:
        fronts = sorted(
            self._fronts.items(),
            key=lambda each: (not each[1].is_ready, self._counts.connections(each[0])),
        )
        for number, front in fronts:
            if orders.send(front.control, orders.CONNECTION, connection):
                self._counts.hand(number)
                return
        log.error("a connection was closed: no process takes it")

    # Processes

    def _children(self) -> list[_Child]:
        others = [child for child in (self._pages, self._writer) if child is not None]
        return [*self._fronts.values(), *others]

    def _start_writer(self) -> list[socket.socket]:
        """Start a writer, and return the other ends of its channels, one for each front."""
        pairs = [self._pair() for _ in range(self._workers)]
        ours, theirs = [end for end, _ in pairs], [end for _, end in pairs]

        def make(_: socket.socket) -> ProcessRole:
            return WriterProcess(self._shared.services.writer(), theirs, self._options)

        self._writer = self._fork(_Child("the writer"), make, theirs)
        return ours

    def _start_front(self, number: int, end: socket.socket) -> None:
        child = _Child(f"front {number + 1}", number)
        make = partial(FrontProcess, self._shared, number, end)
        self._fronts[number] = self._fork(child, make, [end, self._listening])

    def _connect_to_pages(self, front: _Child) -> None:
        """Send a front a channel to the process with the pages, and start that process if there is none."""
        open_pages = self._shared.services.pages
        if open_pages is None or self._is_stopping:
            return
        ours, theirs = self._pair()
        orders.send(front.control, orders.PAGES, ours)
        self._close(ours)
        if self._pages is not None:
            orders.send(self._pages.control, orders.PAGES, theirs)
            self._close(theirs)
            return

        def make(_: socket.socket) -> ProcessRole:
            service = self._shared.services.front()
            return PagesProcess(service, open_pages(service), theirs)

        self._pages = self._fork(_Child("the process with the pages"), make, [theirs])

    def _pair(self) -> tuple[socket.socket, socket.socket]:
        """The two ends of a channel. A forked process closes them, except those that `_fork` lets it keep."""
        pair = socket.socketpair()
        self._channels.update(pair)
        return pair

    def _close(self, end: socket.socket) -> None:
        """Close our copy of an end that another process has."""
        self._channels.discard(end)
        end.close()

    def _fork(
        self, child: _Child, make: Callable[[socket.socket], ProcessRole], kept: list[socket.socket]
    ) -> _Child:
        """Fork a process. It keeps the sockets in `kept` and closes our others; we close its ends of channels."""
        ours, theirs = self._pair()
        pid = os.fork()
        if not pid:
            run(partial(self._close_inherited, [theirs, *kept]), make, theirs)
        for end in self._channels.intersection([theirs, *kept]):
            self._close(end)
        self._channels.discard(ours)
        ours.setblocking(False)
        child.pid, child.control = pid, ours
        self._selector.register(ours, selectors.EVENT_READ, partial(self._take_orders, child))
        return child

    def _close_inherited(self, kept: list[socket.socket]) -> None:
        """In a forked process: close the supervisor's sockets, so that their other ends notice when it dies."""
        self._selector.close()
        others = (self._signals, self._wakeup, self._listening, *self._channels)
        controls = (child.control for child in self._children())
        for end in (*others, *controls):
            if end not in kept:
                end.close()

    def _take_orders(self, child: _Child) -> None:
        """Handle the orders of a process: ready, failed, a request for pages, its end."""
        if child.control.fileno() < 0:  # its end was handled before, by the same select
            return
        for order in orders.received(child.control):
            if order.kind == orders.READY:
                child.is_ready = True
            elif order.kind == orders.FAILED:
                child.failure = _failure(child.control)
            elif order.kind == orders.PAGES:
                self._connect_to_pages(child)
            elif order is orders.ENDED:
                self._selector.unregister(child.control)

    def _reap(self) -> None:
        """Handle the processes that have ended."""
        for child in self._children():
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self._handle_end(child, os.waitstatus_to_exitcode(status))

    def _handle_end(self, child: _Child, status: int) -> None:
        """Replace a process that has ended, unless the server stops."""
        with contextlib.suppress(KeyError):
            self._take_orders(child)
            self._selector.unregister(child.control)
        child.control.close()
        replace: Callable[[], None] = self._replace_writer
        if child is self._writer:
            self._writer = None
        elif child is self._pages:
            self._pages = None
            replace = _do_nothing
        else:
            del self._fronts[child.number]
            self._counts.clear(child.number)
            replace = partial(self._replace_front, child.number)
        if self._is_stopping:
            return
        if not self._has_begun:
            raise child.failure or StorageError(f"{child.name} {_end_of(status)} when it began")
        self._count_death(child, status)
        replace()

    def _count_death(self, child: _Child, status: int) -> None:
        how = _end_of(status) if child.failure is None else f"could not begin: {child.failure}"
        now = time.monotonic()
        self._deaths.append(now)
        while now - self._deaths[0] > _MINUTE:
            self._deaths.popleft()
        if len(self._deaths) >= _MOST_DEATHS:
            raise TooManyDeaths(
                f"{len(self._deaths)} processes of the server have died within a minute; "
                f"the last one, {child.name} (process {child.pid}), {how}"
            )
        log.error("%s (process %d) %s; another takes its place", child.name, child.pid, how)

    def _replace_writer(self) -> None:
        ends = self._start_writer()
        for number, end in enumerate(ends):
            if number in self._fronts:
                self._send_channel(self._fronts[number], end)
            self._close(end)

    def _replace_front(self, number: int) -> None:
        ours, theirs = self._pair()
        if self._writer is not None:
            self._send_channel(self._writer, theirs)
        self._close(theirs)
        self._start_front(number, ours)

    def _send_channel(self, child: _Child, end: socket.socket) -> None:
        """Send a process a channel. If it cannot be sent, kill the process, so that it is replaced."""
        if not orders.send(child.control, orders.CHANNEL, end):
            os.kill(child.pid, signal.SIGKILL)


def _do_nothing() -> None:
    """Do nothing: the next request for a page starts another process with the pages."""


def _ignore_signal(number: int, frame: object) -> None:
    """Do nothing: Python writes the signal's number to the wakeup socket, which the selector reads."""


def _end_of(status: int) -> str:
    """How a process has ended, in words."""
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"


def _failure(control: socket.socket) -> IsotoneError:
    """The error with which a process could not start, as it sent it before it ended."""
    reader = FrameReader()
    control.setblocking(True)
    while data := control.recv(4096):
        for message in reader.messages(data):
            if isinstance(message, Failed):
                return message.error()
    return StorageError("a process of the server could not begin, and did not say why")
