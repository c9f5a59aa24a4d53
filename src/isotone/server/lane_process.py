"""A lane: a process that executes long requests one at a time; and the keeper: the process that forks lanes.

    server ── control ──> keeper            starts with the first long request, ends with the last lane
       │                    │ forks
       └──── a channel ──> lane             opens the database itself

A lane must not be forked from a process that has the file open, because SQLite's locks belong to a process, nor from one
with threads. So the keeper is a program of its own that has imported everything and opened nothing: a fork of it costs some
milliseconds, and the memory that the lane writes to. A lane ends when its channel closes, and the keeper when the server
ends, even if the server was killed.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from isotone.errors import IsotoneError
from isotone.server.dispatcher import logged_failure
from isotone.server.process_messages import (
    Answer,
    Failed,
    FrameReader,
    Message,
    Request,
    failed,
    frame,
)

READY: Final = "/ready"
"""From a lane: it has opened the database. The body is its process id."""
CONSUMED: Final = "/consumed"
"""From a lane: the capacity units that its last request consumed, for the server's metrics."""

SERVED: Final = "/served"
"""From a lane: what its last request has cost, by its shape, for `/queries`."""

_NICENESS: Final = 5  # a lower priority than the server's
_CHUNK: Final = 256 * 1024  # bytes per receive
_REAP: Final = 1.0  # seconds between two checks for lanes that have ended

log: logging.Logger = logging.getLogger("isotone.server")


Consumed = list[tuple[str, str, str, float, float]]
"""Region, table, index, read units, write units."""


class LaneService(Protocol):
    """What a lane needs from a database; `backends.embedded.Database` implements it."""

    def send(self, operation: str, body: bytes, *, region: str = "") -> bytes: ...

    def measure(self) -> None: ...

    def take_consumed(self) -> Consumed: ...

    def take_served(self) -> bytes: ...


OpenService = Callable[[], LaneService]
"""Opens the server's database for a lane, without background work."""


class LaneKeeper:
    """The server's side of the keeper. The keeper starts with the first lane, and again after its death."""

    def __init__(self, command: Sequence[str]) -> None:
        """`command` begins a program that calls `keep_lanes` with the descriptor in its last argument."""
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start_lane(self) -> socket.socket:
        """Start a lane, and return the server's end of its channel. Raises `OSError` if no process can be started."""
        if sys.platform == "win32":
            raise OSError("a server of several processes needs POSIX")
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self._control is not None
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [b"+"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        return ours

    def _start(self) -> None:
        self.stop()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [*self._command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C reaches only the server, which decides when to end
            )

    def stop(self) -> None:
        """End the keeper and all lanes."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.wait()
            self._process = None


def keep_lanes(control: socket.socket, open_service: OpenService) -> None:
    """Fork a lane for each socket that arrives, until the server ends; then kill them all."""
    if sys.platform == "win32":
        raise OSError("a server of several processes needs POSIX")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()  # a garbage collection must not write to the memory that all lanes share
    lanes: set[int] = set()
    while True:
        arrived, _, _ = select.select([control], [], [], _REAP if lanes else None)
        lanes -= {lane for lane in lanes if os.waitpid(lane, os.WNOHANG)[0]}
        if not arrived:
            continue
        data, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not data:
            break
        with socket.socket(fileno=descriptors[0]) as end:
            try:
                lane = os.fork()
            except OSError as error:
                log.error("no lane can be started: %s", error)
                continue
            if lane == 0:
                control.close()
                _run_lane(end, open_service)
            lanes.add(lane)
    for lane in lanes:
        os.kill(lane, signal.SIGKILL)
        os.waitpid(lane, 0)


def _run_lane(end: socket.socket, open_service: OpenService) -> None:
    """In a forked process: serve as a lane until the channel closes."""
    if sys.platform == "win32":
        raise OSError("a server of several processes needs POSIX")
    try:
        os.nice(_NICENESS)
        serve_lane(end, open_service())
    except ConnectionError:
        pass  # the server has ended
    except Exception:  # the process ends below in any case; this says why
        log.exception("a lane has ended")
    finally:
        os._exit(0)


def serve_lane(end: socket.socket, service: LaneService) -> None:
    """Execute the requests from a channel, one after the other."""
    service.measure()
    reader = FrameReader()
    end.sendall(frame([Request(0, READY, str(os.getpid()).encode())]))
    while data := end.recv(_CHUNK):
        for message in reader.messages(data):
            assert isinstance(message, Request)
            answered = _executed(service, message)
            consumed = service.take_consumed()
            messages: list[Message] = [answered]
            if consumed:
                messages.insert(0, Request(0, CONSUMED, msgspec.msgpack.encode(consumed)))
            if served := service.take_served():
                messages.insert(0, Request(0, SERVED, served))
            end.sendall(frame(messages))


def _executed(service: LaneService, request: Request) -> Answer | Failed:
    try:
        body = service.send(request.operation, request.body, region=request.region)
    except Exception as error:  # noqa: BLE001 - an error must not end the lane
        failure = logged_failure(error, request.operation)
        assert isinstance(failure, IsotoneError)
        return failed(request.number, failure)
    return Answer(request.number, body)
