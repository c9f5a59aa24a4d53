"""Hands what may take long to lanes: processes over the same file, which the operating system preempts.

A lane is started when the first long request comes, more of them while all are busy, and each ends when it was idle for a
while. A lane has one request at a time, so its death loses no more: a read is executed again, and a write is answered
with an error that SDKs retry, because it may have been done.
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
from isotone.server.lane_process import CONSUMED, READY, Consumed, LaneKeeper
from isotone.server.process_channel import Channel
from isotone.server.process_messages import LOST, Request
from isotone.server.request import ServiceCall

MOST_LANES: Final = min(max(2, os.cpu_count() or 1), 8)
IDLE: Final = 60.0
"""Seconds without a request after which a lane ends."""

_ATTEMPTS: Final = 2  # of a read whose lane dies
_AFTER_FAILURE: Final = 5.0  # seconds until it is tried again to start a lane
_consumed: Final = msgspec.msgpack.Decoder(Consumed).decode

log: logging.Logger = logging.getLogger("isotone.server")

Otherwise = Callable[[ServiceCall, Deliver], None]
"""Executes a call where no lane can be started."""


class SharedFile(Protocol):
    """What lanes need from the service of their server; `backends.embedded.Database` implements it."""

    def is_read(self, operation: str, body: bytes) -> bool: ...

    def add_consumed(self, consumed: Consumed) -> None: ...


def use_lanes(dispatcher: Dispatcher, service: Service, keeper: LaneKeeper, workers: int) -> None:
    """Let a dispatcher hand what takes long to lanes. Of several processes with one file, each has its share of them."""
    loop, shared = asyncio.get_running_loop(), cast(SharedFile, service)
    most = max(1, MOST_LANES // workers)
    dispatcher.use_lanes(Lanes(keeper, loop, shared, dispatcher.run_in_thread, most=most))


class _Task:
    """A call that waits for a lane, or is executed by one."""

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
        otherwise: Otherwise,
        *,
        most: int = MOST_LANES,
        idle: float = IDLE,
    ) -> None:
        self._keeper = keeper
        self._loop = loop
        self._service = service
        self._otherwise = otherwise
        self._most = most
        self._idle = idle
        self._lanes: list[_Lane] = []
        self._waiting: deque[_Task] = deque()
        self._no_start_before = 0.0
        self._is_stopped = False

    def run(self, call: ServiceCall, deliver: Deliver) -> None:
        """Execute a call in a lane; what comes of it is passed to `deliver`."""
        self._waiting.append(_Task(call, deliver))
        self._assign()

    def stop(self) -> None:
        """End all lanes, whatever they do."""
        self._is_stopped = True
        self._waiting.clear()
        self._keeper.stop()
        for lane in self._lanes:
            lane.close()

    def _assign(self) -> None:
        """Give the calls that wait to lanes that are free, and start one more lane if that is not enough."""
        for lane in self._lanes:
            if self._waiting and lane.is_free:
                lane.execute(self._waiting.popleft())
        if not self._waiting or any(lane.process is None for lane in self._lanes):
            return
        if len(self._lanes) < self._most and time.monotonic() >= self._no_start_before:
            self._start()
        elif not self._lanes:
            self._do_without()

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
            self._do_without()

    def _do_without(self) -> None:
        while self._waiting:
            task = self._waiting.popleft()
            self._otherwise(task.call, task.deliver)

    # Called by lanes

    def is_ready(self, lane: _Lane) -> None:
        """A lane has begun, or has answered."""
        self._assign()
        if lane.is_free:
            lane.idle = self._loop.call_later(self._idle, lane.close)

    def consumed(self, body: bytes) -> None:
        self._service.add_consumed(_consumed(body))

    def lost(self, lane: _Lane, task: _Task | None) -> None:
        """A lane has ended: it was idle, or it has died."""
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
            self._begin_again(task)
        self._assign()

    def _begin_again(self, task: _Task) -> None:
        task.attempts += 1
        if task.attempts < _ATTEMPTS and self._service.is_read(task.call.operation, task.call.body):
            self._waiting.appendleft(task)
        else:
            task.deliver(InternalServerError(LOST))


class _Lane:
    """One lane: its channel, the number of its process once it is ready, and the call that it executes."""

    __slots__ = ("_lanes", "_task", "channel", "idle", "is_closing", "opening", "process")

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._task: _Task | None = None
        self.channel: Channel = Channel(self._told, self._lost)
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

    def _told(self, channel: Channel, message: Request) -> None:
        """Take a message that is no answer."""
        if message.operation == READY:
            self.process = int(message.body)
            self._lanes.is_ready(self)
        elif message.operation == CONSUMED:
            self._lanes.consumed(message.body)

    def _lost(self, channel: Channel) -> None:
        if self.idle is not None:
            self.idle.cancel()
        self._lanes.lost(self, self._task)
