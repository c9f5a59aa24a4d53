"""A lane: a process, forked by the keeper, that executes long requests one at a time.

    server ── control ──> keeper            started with the first long request, ended with the last lane
       │                    │ forks
       └──── a channel ──> lane             opens the database for itself

A lane must not be forked from a process that has the file open, because SQLite's locks belong to a process, nor from one
with threads. So the keeper is a program of its own, which has imported everything and has nothing open: a lane costs some
milliseconds and the memory that it writes to. A lane ends with its channel, and the keeper with the server, even if that
was killed.
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
"""A message of a lane: it has opened the database; its body is the number of the process."""
CONSUMED: Final = "/consumed"
"""A message of a lane: what its last request has read and written, for the metrics of the server."""

_NICENESS: Final = 5  # a lane leaves the processor to the server and to other programs
_CHUNK: Final = 256 * 1024  # bytes that are received at once
_REAP: Final = 1.0  # seconds between two looks for lanes that have ended

log: logging.Logger = logging.getLogger("isotone.server")


Consumed = list[tuple[str, str, str, float, float]]
"""Region, table, index, and the units that were read and written."""


class LaneService(Protocol):
    """What a lane needs from a database; `backends.embedded.Database` implements it."""

    def send(self, operation: str, body: bytes, *, region: str = "") -> bytes: ...

    def measure(self) -> None: ...

    def take_consumed(self) -> Consumed: ...


OpenService = Callable[[], LaneService]
"""Opens the service of a lane: the same database as that of the server, without background work."""


class LaneKeeper:
    """The server's side of the keeper, which is started when a lane is, and after its death."""

    def __init__(self, command: Sequence[str]) -> None:
        """`command` begins a program that calls `keep_lanes` with the descriptor in its last argument."""
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start_lane(self) -> socket.socket:
        """The server's end of the channel to a new lane. Raises `OSError` if no process can be started."""
        if sys.platform == "win32":
            raise OSError("a server of several processes needs POSIX")
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self._control is not None
        ours, its = socket.socketpair()
        with its:
            try:
                socket.send_fds(self._control, [b"+"], [its.fileno()])
            except OSError:
                ours.close()
                raise
        return ours

    def _start(self) -> None:
        self.stop()
        self._control, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(
                [*self._command, str(its.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
                process_group=0,  # a Ctrl-C is for the server, which decides when to end
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
    gc.freeze()  # what is loaded stays: a collection must not write to pages that all lanes share
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
                _be_lane(end, open_service)
            lanes.add(lane)
    for lane in lanes:
        os.kill(lane, signal.SIGKILL)
        os.waitpid(lane, 0)


def _be_lane(end: socket.socket, open_service: OpenService) -> None:
    """Be the process of a lane, until its channel ends."""
    if sys.platform == "win32":
        raise OSError("a server of several processes needs POSIX")
    try:
        os.nice(_NICENESS)
        serve_lane(end, open_service())
    except ConnectionError:
        pass  # the server has ended, and nobody waits for the answer
    except Exception:
        log.exception("a lane has ended")
    finally:
        os._exit(0)


def serve_lane(end: socket.socket, service: LaneService) -> None:
    """Execute the requests that arrive, one after the other."""
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
            end.sendall(frame(messages))


def _executed(service: LaneService, request: Request) -> Answer | Failed:
    try:
        body = service.send(request.operation, request.body, region=request.region)
    except Exception as error:  # noqa: BLE001 - an error must not end the lane
        failure = logged_failure(error, request.operation)
        assert isinstance(failure, IsotoneError)
        return failed(request.number, failure)
    return Answer(request.number, body)
