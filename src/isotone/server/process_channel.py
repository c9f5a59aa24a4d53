"""With --workers: requests and answers over a Unix socket between two processes; waits while the writer is restarted.

Both ends of a channel send requests and answer those of the other. The messages of one turn of the event loop are sent as
one frame. The budget of bodies limits how many bytes wait to be sent. When the other process ends, `on_lost` is called, and
the requests that wait for an answer get an error that SDKs retry.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import cast

from isotone.errors import ApiError, ConnectionFailed, InternalServerError, IsotoneError
from isotone.server.process_messages import (
    LOST,
    Answer,
    Failed,
    FrameReader,
    Message,
    Request,
    failed,
    frame,
)

Outcome = bytes | ApiError | ConnectionFailed
"""The result of a request."""

OnOutcome = Callable[[Outcome], object]
"""Called with the result of a request. It must not raise."""

Serve = Callable[["Channel", Request], object]
"""Executes a request of the other end, and calls `Channel.answer`, at once or later."""

log: logging.Logger = logging.getLogger("isotone.server")


class Channel(asyncio.Protocol):
    """One end of a channel, on the running event loop."""

    __slots__ = (
        "_asked",
        "_is_due",
        "_loop",
        "_next",
        "_on_lost",
        "_outbox",
        "_reader",
        "_serve",
        "_transport",
    )

    def __init__(self, serve: Serve, on_lost: Callable[[Channel], object]) -> None:
        self._serve = serve
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader()
        self._outbox: list[Message] = []
        self._is_due = False
        self._asked: dict[int, OnOutcome] = {}
        self._next = 0
        self._transport: asyncio.Transport | None = None

    async def open(self, end: socket.socket) -> None:
        """Start with a connected socket, which the channel owns and closes."""
        end.setblocking(False)
        await self._loop.create_unix_connection(lambda: self, sock=end)

    def ask(self, operation: str, body: bytes, region: str, take: OnOutcome) -> None:
        """Send a request; what comes of it is passed to `take`."""
        number = self._next = self._next + 1
        self._asked[number] = take
        self._send(Request(number, operation, body, region))

    def answer(self, number: int, outcome: Outcome) -> None:
        """Send the result of a request of the other end."""
        if type(outcome) is bytes:
            self._send(Answer(number, outcome))
        else:
            self._send(failed(number, cast(IsotoneError, outcome)))

    def close(self) -> None:
        """Send the messages that wait, and close the socket."""
        if self._transport is not None:
            self._send_all()
            self._transport.close()

    def _send(self, message: Message) -> None:
        self._outbox.append(message)
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._send_all)

    def _send_all(self) -> None:
        self._is_due = False
        messages, self._outbox = self._outbox, []
        if messages and self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame(messages))

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for message in self._reader.messages(data):
            if type(message) is Request:
                self._serve(self, message)
            elif type(message) is Answer:
                self._asked.pop(message.number)(message.body)
            elif type(message) is Failed:
                self._asked.pop(message.number)(_error(message))

    def connection_lost(self, exc: Exception | None) -> None:
        waiting, self._asked = self._asked, {}
        for take in waiting.values():
            take(InternalServerError(LOST))
        self._on_lost(self)


class Link:
    """A front's channel to another process, which may be replaced. Without a process, requests wait for the next one.

    `want` is called when a request arrives and there is no process.
    """

    def __init__(self, serve: Serve, want: Callable[[], object] | None = None) -> None:
        self._serve = serve
        self._want = want
        self._channel: Channel | None = None
        self._held: list[tuple[str, bytes, str, OnOutcome]] = []

    async def connect(self, end: socket.socket) -> None:
        """Use a channel to a new process, and send it the requests that wait."""
        channel = Channel(self._serve, self._lost)
        await channel.open(end)
        self._channel = channel
        held, self._held = self._held, []
        for request in held:
            channel.ask(*request)

    def ask(self, operation: str, body: bytes, region: str, take: OnOutcome) -> None:
        """Send a request; what comes of it is passed to `take`."""
        if self._channel is not None:
            self._channel.ask(operation, body, region, take)
            return
        self._held.append((operation, body, region, take))
        if self._want is not None and len(self._held) == 1:
            self._want()

    @property
    def is_open(self) -> bool:
        """Whether a process is connected."""
        return self._channel is not None

    def close(self) -> None:
        """Close the channel; requests that wait get an error."""
        held, self._held = self._held, []
        for *_, take in held:
            take(InternalServerError("The server is stopping."))
        if self._channel is not None:
            self._channel.close()

    def _lost(self, channel: Channel) -> None:
        if self._channel is channel:
            self._channel = None


def _error(message: Failed) -> ApiError | ConnectionFailed:
    error = message.error()
    if isinstance(error, ApiError | ConnectionFailed):
        return error
    return InternalServerError(str(error))
