"""The async form of `Remote`: the same messages and retries over asyncio's transports.

A connection belongs to the event loop that opened it. No other loop uses it, neither that of a second `asyncio.run` nor
that of another thread.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from isotone.backends.endpoint import Endpoint, Timeouts, closed_early
from isotone.backends.http_messages import HttpReply, encode_request
from isotone.backends.idle_connections import LONGEST_IDLE, is_quiet
from isotone.backends.interface import Native, Request, Response
from isotone.backends.proxies import connect_through, proxy_of, tls_context
from isotone.backends.request_retries import Retries
from isotone.backends.signing import STREAM_OPERATIONS
from isotone.errors import ApiError, ConnectionFailed


class AsyncRemote(Native):
    """The `AsyncBackend` of an endpoint. Nothing is connected before the first request."""

    __slots__ = ("_codec", "_pool", "_retries", "_sleep", "_streams", "endpoint")

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        retries: Retries | None = None,
        timeouts: Timeouts | None = None,
        connections: int = 10,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.endpoint: Endpoint = endpoint
        self._codec = endpoint.codec()
        self._pool = _Pool(endpoint, timeouts or Timeouts(), connections)
        self._retries = retries or Retries()
        self._sleep = sleep
        apart = endpoint.of_streams
        self._streams: AsyncRemote | None = None
        if apart is not endpoint:
            self._streams = AsyncRemote(
                apart, retries=retries, timeouts=timeouts, connections=connections, sleep=sleep
            )

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Answer one action; raises `ApiError`, or `ConnectionFailed` if there was no answer."""
        if self._streams is not None and operation in STREAM_OPERATIONS:
            return await self._streams.execute(operation, request, deadline)
        body = encode_request(operation, request)
        attempts = self._retries.begin(deadline)
        while True:
            try:
                return await self.attempt(operation, body)
            except (ApiError, ConnectionFailed) as error:
                delay = attempts.delay(error)
                if delay is None:
                    raise
            await self._sleep(delay)

    async def get(self, path: str, within: float | None = None) -> HttpReply:
        """The answer to a GET, which is neither signed nor retried; raises `ConnectionFailed`.

        `within` are the seconds until the answer must be whole, as for `Remote.get`.
        """
        try:
            async with asyncio.timeout(within):
                return await self._exchange(self._codec.get(path))
        except TimeoutError as error:
            url = self.endpoint.url
            raise ConnectionFailed(f"{url} did not end its answer within {within} s") from error

    async def attempt(self, operation: str, body: bytes) -> Response:
        """Send a request, encoded by `encode_request`, once; raises as `execute` does, without retries."""
        reply = await self._exchange(self._codec.message(operation, body))
        return self._codec.answer(reply)

    async def _exchange(self, message: bytes) -> HttpReply:
        connection = await self._pool.take()
        try:
            reply = await connection.exchange(message)
        except BaseException:  # including a cancellation: the answer may still arrive
            connection.close()
            raise
        self._pool.release(connection, reply)
        return reply

    def close(self) -> None:
        """Close the idle connections. A later request opens new ones."""
        self._pool.close()
        if self._streams is not None:
            self._streams.close()


class _Pool:
    """The idle connections of each event loop, the most recently used last."""

    __slots__ = ("_endpoint", "_idle", "_kept", "_proxy", "_timeouts", "_tls")

    def __init__(self, endpoint: Endpoint, timeouts: Timeouts, kept: int) -> None:
        self._endpoint = endpoint
        self._timeouts = timeouts
        self._kept = kept
        self._idle: dict[asyncio.AbstractEventLoop, list[_Connection]] = {}
        self._tls = tls_context() if endpoint.is_tls else None
        self._proxy = proxy_of(endpoint.host, is_tls=endpoint.is_tls)

    async def take(self) -> _Connection:
        loop = asyncio.get_running_loop()
        if loop not in self._idle:
            self._forget_closed_loops()
        idle = self._idle.setdefault(loop, [])
        oldest = loop.time() - LONGEST_IDLE
        while idle:
            connection = idle.pop()
            if connection.used > oldest and connection.is_quiet:
                return connection
            connection.close()
        return await self._connect(loop)

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> _Connection:
        endpoint = self._endpoint
        try:
            async with asyncio.timeout(self._timeouts.connect):
                where: dict[str, Any] = {"host": endpoint.host, "port": endpoint.port}
                if self._proxy is not None:
                    tunnel = await connect_through(self._proxy, endpoint.host, endpoint.port)
                    where = {"sock": tunnel, "server_hostname": endpoint.host}
                _, connection = await loop.create_connection(
                    lambda: _Connection(endpoint.url, self._timeouts.read, loop),
                    ssl=self._tls,
                    **where,
                )
        except OSError as error:
            raise endpoint.unreachable(error) from error
        return connection

    def release(self, connection: _Connection, reply: HttpReply) -> None:
        idle = self._idle.setdefault(connection.loop, [])
        if reply.keep_alive and connection.is_open and len(idle) < self._kept:
            connection.used = connection.loop.time()
            idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def _forget_closed_loops(self) -> None:
        for loop in [each for each in tuple(self._idle) if each.is_closed()]:
            self._idle.pop(loop, None)


class _Connection(asyncio.Protocol):
    """One socket, with at most one request at a time."""

    def __init__(self, address: str, timeout: float, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.used = 0.0
        self.is_open = False
        self._address = address
        self._timeout = timeout
        self._transport: asyncio.Transport | None = None
        self._reply = HttpReply()
        self._waiting: asyncio.Future[HttpReply] | None = None
        self._alarm: asyncio.TimerHandle | None = None

    async def exchange(self, message: bytes) -> HttpReply:
        self._reply = HttpReply()
        self._waiting = self.loop.create_future()
        self._set_alarm()
        if self._transport is None or not self.is_open:
            self._fail(f"{self._address} closed the connection")
        else:
            self._transport.write(message)
        try:
            return await self._waiting
        finally:
            self._waiting = None
            if self._alarm is not None:
                self._alarm.cancel()

    @property
    def is_quiet(self) -> bool:
        """Whether it can be used again. Detects a closed socket even if the loop has not run since."""
        if self._transport is None or not self.is_open:
            return False
        return is_quiet(self._transport.get_extra_info("socket").fileno())

    def close(self) -> None:
        self.is_open = False
        if self._transport is None or self.loop.is_closed():
            return
        if self.loop.is_running() and self.loop is not _running_loop():
            with contextlib.suppress(RuntimeError):  # that loop was just closed
                self.loop.call_soon_threadsafe(self._transport.abort)
        else:
            self._transport.abort()

    def _set_alarm(self) -> None:
        """Restart the read time-out for the next part of the answer."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self.loop.call_later(self._timeout, self._give_up)

    def _give_up(self) -> None:
        self._fail(f"{self._address} gave no answer for {self._timeout} s")

    def _fail(self, reason: str) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionFailed(reason))

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            self.close()  # no request waits for this data: it would be taken for a later answer
            return
        try:
            self._reply.feed(data)
        except ConnectionFailed as error:
            self._fail(str(error))
            return
        if not self._reply.complete:
            self._set_alarm()
        elif not self._waiting.done():
            self._waiting.set_result(self._reply)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        self._fail(closed_early(self._address))


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
