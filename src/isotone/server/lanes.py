"""Runs long requests (large scans, bodies or expressions) in lanes: processes on the same file, one request each.

The first long request starts a lane, further ones start more while all are busy, and a lane ends after a minute without a
request. When a lane dies, only its request is lost: a read is executed again; a write is answered with an error that SDKs
retry, because it is unknown whether it was executed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, cast

import msgspec

from isotone.errors import InternalServerError
from isotone.server.dispatcher import Deliver, Dispatcher, Result, Service
from isotone.server.lane_process import CONSUMED, READY, SERVED, Consumed, LaneKeeper
from isotone.server.process_channel import Channel
from isotone.server.process_messages import LOST, Request
from isotone.server.request import ServiceCall

MOST_LANES: Final = min(max(2, os.cpu_count() or 1), 8)
IDLE: Final = 60.0
"""Seconds without a request after which a lane ends."""

_ATTEMPTS: Final = 2  # executions of a read whose lane dies
_AFTER_FAILURE: Final = 5.0  # seconds between a failure to start a lane and the next attempt
_consumed: Final = msgspec.msgpack.Decoder(Consumed).decode

log: logging.Logger = logging.getLogger("isotone.server")

RunInThread = Callable[[ServiceCall, Deliver], None]
"""Executes a call in a thread of the server, if no lane can be started."""


class SharedFile(Protocol):
    """What lanes need from the service of their server; `backends.embedded.Database` implements it."""

    def is_read(self, operation: str, body: bytes) -> bool: ...

    def add_consumed(self, consumed: Consumed) -> None: ...

    def add_served(self, taken: bytes) -> None: ...


def use_lanes(dispatcher: Dispatcher, service: Service, keeper: LaneKeeper, workers: int) -> None:
    """Make a dispatcher run long requests in lanes. `workers` processes on one file divide `MOST_LANES` among them."""
    loop, shared = asyncio.get_running_loop(), cast(SharedFile, service)
    most = max(1, MOST_LANES // workers)
    dispatcher.use_lanes(Lanes(keeper, loop, shared, dispatcher.run_in_thread, most=most))


class _Task:
    """A call that waits for a lane, or runs in one."""

    __slots__ = ("attempts", "call", "deliver")

    def __init__(self, call: ServiceCall, deliver: Deliver) -> None:
        self.call: ServiceCall = call
        self.deliver: Deliver = deliver
        self.attempts: int = 0


class Lanes:
    """The lanes of one server, on the thread of its event loop."""

    def __init__(
        self,
        keeper: LaneKeeper,
        loop: asyncio.AbstractEventLoop,
        service: SharedFile,
        run_in_thread: RunInThread,
        *,
        most: int = MOST_LANES,
        idle: float = IDLE,
    ) -> None:
        self._keeper = keeper
        self._loop = loop
        self._service = service
        self._run_in_thread = run_in_thread
        self._most = most
        self._idle = idle
        self._lanes: list[_Lane] = []
        self._waiting: deque[_Task] = deque()
        self._no_start_before = 0.0
        self._is_stopped = False

    def run(self, call: ServiceCall, deliver: Deliver) -> None:
        """Execute a call in a lane; its result is passed to `deliver`."""
        self._waiting.append(_Task(call, deliver))
        self._assign()

    def stop(self) -> None:
        """End all lanes, even busy ones."""
        self._is_stopped = True
        self._waiting.clear()
        self._keeper.stop()
        for lane in self._lanes:
            lane.close()

    def _assign(self) -> None:
        """Give waiting calls to free lanes; start one more lane if calls are left."""
        for lane in self._lanes:
            if self._waiting and lane.is_free:
                lane.execute(self._waiting.popleft())
        if not self._waiting or any(lane.process is None for lane in self._lanes):
            return
        if len(self._lanes) < self._most and time.monotonic() >= self._no_start_before:
            self._start()
        elif not self._lanes:
            self._run_without_lanes()

    def _start(self) -> None:
        try:
            end = self._keeper.start_lane()
        except OSError as error:
            log.error("no lane can be started: %s", error)
            self._failed_to_start()
            return
        lane = _Lane(self)
        self._lanes.append(lane)
        lane.opening = self._loop.create_task(lane.channel.open(end))

    def _failed_to_start(self) -> None:
        self._no_start_before = time.monotonic() + _AFTER_FAILURE
        if not self._lanes:
            self._run_without_lanes()

    def _run_without_lanes(self) -> None:
        while self._waiting:
            task = self._waiting.popleft()
            self._run_in_thread(task.call, task.deliver)

    # Called by lanes

    def is_ready(self, lane: _Lane) -> None:
        """Called when a lane has opened the database, or has answered a request."""
        self._assign()
        if lane.is_free:
            lane.idle = self._loop.call_later(self._idle, lane.close)

    def consumed(self, body: bytes) -> None:
        self._service.add_consumed(_consumed(body))

    def served(self, body: bytes) -> None:
        self._service.add_served(body)

    def lost(self, lane: _Lane, task: _Task | None) -> None:
        """Called when a lane has ended: closed after idling, or dead."""
        self._lanes.remove(lane)
        if self._is_stopped:
            return
        if lane.is_closing:
            if not self._lanes:
                self._keeper.stop()
            return
        if lane.process is None:
            log.error("a lane has ended before it had opened the database")
            self._failed_to_start()
            return
        what = "while it was idle" if task is None else f"during {task.call.operation}"
        log.error("a lane (process %d) has died %s", lane.process, what)
        if task is not None:
            self._retry_or_fail(task)
        self._assign()

    def _retry_or_fail(self, task: _Task) -> None:
        task.attempts += 1
        if task.attempts < _ATTEMPTS and self._service.is_read(task.call.operation, task.call.body):
            self._waiting.appendleft(task)
        else:
            task.deliver(InternalServerError(LOST))


class _Lane:
    """One lane: its channel, its process id once it is ready, and the call that it executes."""

    __slots__ = ("_lanes", "_task", "channel", "idle", "is_closing", "opening", "process")

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._task: _Task | None = None
        self.channel: Channel = Channel(self._on_message, self._lost)
        self.process: int | None = None
        self.idle: asyncio.TimerHandle | None = None
        self.is_closing: bool = False
        self.opening: asyncio.Task[None] | None = None

    @property
    def is_free(self) -> bool:
        return self.process is not None and self._task is None and not self.is_closing

    def execute(self, task: _Task) -> None:
        if self.idle is not None:
            self.idle.cancel()
        self._task = task
        call = task.call
        self.channel.ask(call.operation, call.body, call.region, self._answered)

    def close(self) -> None:
        self.is_closing = True
        self.channel.close()

    def _answered(self, result: Result) -> None:
        if isinstance(result, InternalServerError) and result.message == LOST:
            return  # `_lost` follows
        task, self._task = self._task, None
        assert task is not None
        task.deliver(result)
        self._lanes.is_ready(self)

    def _on_message(self, channel: Channel, message: Request) -> None:
        """Handle a message of the lane that is not an answer."""
        if message.operation == READY:
            self.process = int(message.body)
            self._lanes.is_ready(self)
        elif message.operation == CONSUMED:
            self._lanes.consumed(message.body)
        elif message.operation == SERVED:
            self._lanes.served(message.body)

    def _lost(self, channel: Channel) -> None:
        if self.idle is not None:
            self.idle.cancel()
        self._lanes.lost(self, self._task)
