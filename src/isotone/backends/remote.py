"""A server with the DynamoDB API over HTTP: Amazon's, Isotone's own, or any other.

Requests are signed and sent over a pool of keep-alive connections. A connection that the server has closed is
detected before it is used. A failed request is retried according to `Retries`. Safe to use from several
threads: each request takes one connection.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import Final, Self

from isotone.backends.endpoint import Endpoint, Timeouts
from isotone.backends.http_messages import (
    LONGEST_IDLE,
    Conversation,
    Reply,
    encode_request,
    is_quiet,
)
from isotone.backends.interface import Native, Request, Response
from isotone.backends.request_retries import Retries
from isotone.backends.signing import STREAM_OPERATIONS
from isotone.errors import ApiError, ConnectionFailed

_CHUNK: Final = 256 * 1024


class Remote(Native):
    """The `Backend` of an endpoint. Nothing is connected before the first request."""

    __slots__ = ("_conversation", "_pool", "_retries", "_sleep", "_streams")

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        retries: Retries | None = None,
        timeouts: Timeouts | None = None,
        connections: int = 10,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._conversation: Conversation = endpoint.conversation()
        self._pool = _Pool(endpoint, timeouts or Timeouts(), connections)
        self._retries = retries or Retries()
        self._sleep = sleep
        apart = endpoint.of_streams
        self._streams: Remote | None = None
        if apart is not endpoint:
            self._streams = Remote(
                apart, retries=retries, timeouts=timeouts, connections=connections, sleep=sleep
            )

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Answer one action; raises `ApiError`, or `ConnectionFailed` where there was no answer."""
        if self._streams is not None and operation in STREAM_OPERATIONS:
            return self._streams.execute(operation, request, deadline)
        body = encode_request(operation, request)
        attempts = self._retries.begin(deadline)
        while True:
            try:
                return self._conversation.answer(self._send(operation, body))
            except (ApiError, ConnectionFailed) as error:
                delay = attempts.delay(error)
                if delay is None:
                    raise
            self._sleep(delay)

    def _send(self, operation: str, body: bytes) -> Reply:
        message = self._conversation.message(operation, body)
        connection = self._pool.take()
        try:
            reply = connection.exchange(message)
        except BaseException:
            connection.close()
            raise
        self._pool.give_back(connection, reply)
        return reply

    def close(self) -> None:
        """Close the idle connections. A later request opens new ones."""
        self._pool.close()
        if self._streams is not None:
            self._streams.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Pool:
    """Idle connections, the last used on top. A new one is opened if none is idle."""

    __slots__ = ("_endpoint", "_idle", "_kept", "_lock", "_process", "_timeouts", "_tls")

    def __init__(self, endpoint: Endpoint, timeouts: Timeouts, kept: int) -> None:
        self._endpoint = endpoint
        self._timeouts = timeouts
        self._kept = kept
        self._idle: list[_Connection] = []
        self._lock = Lock()
        self._process = os.getpid()
        self._tls = ssl.create_default_context() if endpoint.is_tls else None

    def take(self) -> _Connection:
        """A connection that can be written to."""
        if self._process != os.getpid():
            self._forget()
        oldest = time.monotonic() - LONGEST_IDLE
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return _Connection(self._endpoint, self._timeouts, self._tls)
            if connection.used > oldest and connection.is_quiet:
                return connection
            connection.close()

    def give_back(self, connection: _Connection, reply: Reply) -> None:
        connection.used = time.monotonic()
        if reply.keep_alive:
            with self._lock:
                if len(self._idle) < self._kept:
                    self._idle.append(connection)
                    return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _forget(self) -> None:
        """Close our copies of the parent's connections after a fork."""
        self._lock = Lock()
        self._process = os.getpid()
        self.close()


class _Connection:
    """One socket."""

    __slots__ = ("_address", "_poll", "_socket", "used")

    def __init__(self, endpoint: Endpoint, timeouts: Timeouts, tls: ssl.SSLContext | None) -> None:
        self._address = endpoint.url
        self.used = 0.0
        try:
            plain = socket.create_connection((endpoint.host, endpoint.port), timeouts.connect)
            try:
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socket = (
                    tls.wrap_socket(plain, server_hostname=endpoint.host) if tls else plain
                )
            except BaseException:
                plain.close()
                raise
        except OSError as error:
            raise endpoint.unreachable(error) from error
        self._socket.settimeout(timeouts.read)

    def exchange(self, message: bytes) -> Reply:
        reply = Reply()
        try:
            self._socket.sendall(message)
            while not reply.complete:
                data = self._socket.recv(_CHUNK)
                if not data:
                    raise ConnectionFailed(
                        f"{self._address} closed the connection without an answer"
                    )
                reply.feed(data)
        except TimeoutError as error:
            raise ConnectionFailed(
                f"{self._address} gave no answer for {self._socket.gettimeout()} s"
            ) from error
        except OSError as error:
            raise ConnectionFailed(f"the connection to {self._address} broke: {error}") from error
        return reply

    @property
    def is_quiet(self) -> bool:
        """Whether it can be used again."""
        return is_quiet(self._socket.fileno())

    def close(self) -> None:
        self._socket.close()
