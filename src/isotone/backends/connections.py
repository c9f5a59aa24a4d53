"""The pool of keep-alive HTTP connections to one address, for threads (`Remote` and S3); `ConnectionFailed`.

An exchange takes a connection from the pool, sends one request, reads the reply, and releases the connection. After a
failed exchange the connection is closed instead, because the rest of its reply may still arrive. `async_remote.py` has
the same for asyncio, whose connections belong to an event loop.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from contextlib import suppress
from threading import Lock
from typing import Final

from isotone.backends.endpoint import Address, Timeouts, closed_early
from isotone.backends.http_messages import HttpReply
from isotone.backends.idle_connections import LONGEST_IDLE, is_quiet
from isotone.backends.proxies import Proxy, open_tunnel, proxy_of, tls_context
from isotone.errors import ConnectionFailed

_CHUNK: Final = 256 * 1024


class Pool:
    """The idle connections to one address, shared by threads.

    The most recently used one is taken first, so unneeded ones grow old and are closed. A new one is opened if none is
    idle; at most `kept` stay open. After a fork, the child opens connections of its own.
    """

    __slots__ = ("_address", "_idle", "_kept", "_lock", "_process", "_proxy", "_timeouts", "_tls")

    def __init__(self, address: Address, timeouts: Timeouts, kept: int) -> None:
        self._address = address
        self._timeouts = timeouts
        self._kept = kept
        self._idle: list[ClientConnection] = []
        self._lock = Lock()
        self._process = os.getpid()
        self._tls = tls_context() if address.is_tls else None
        self._proxy = proxy_of(address.host, is_tls=address.is_tls)

    def take(self) -> ClientConnection:
        """An idle connection that is still open, or a new one. Raises `ConnectionFailed` if none can be opened."""
        if self._process != os.getpid():
            self._forget()
        oldest = time.monotonic() - LONGEST_IDLE
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return ClientConnection(self._address, self._timeouts, self._tls, self._proxy)
            if connection.used > oldest and connection.is_quiet:
                return connection
            connection.close()

    def release(self, connection: ClientConnection, reply: HttpReply) -> None:
        """Keep a connection after its reply, if both sides allow it and there is room; else close it."""
        connection.used = time.monotonic()
        if reply.keep_alive:
            with self._lock:
                if len(self._idle) < self._kept:
                    self._idle.append(connection)
                    return
        connection.close()

    def close(self) -> None:
        """Close the idle connections; those in use stay open until they are given back."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _forget(self) -> None:
        """Close our copies of the parent's connections after a fork."""
        self._lock = Lock()
        self._process = os.getpid()
        self.close()


class ClientConnection:
    """A socket to an address, through a proxy and TLS if needed. One thread uses it at a time.

    `used` is the time of its last reply, since when it has been idle.
    """

    __slots__ = ("_read", "_socket", "_url", "used")

    def __init__(
        self,
        address: Address,
        timeouts: Timeouts,
        tls: ssl.SSLContext | None,
        proxy: Proxy | None = None,
    ) -> None:
        self._url = address.url
        self._read = timeouts.read
        self.used: float = 0.0
        try:
            first = proxy or address
            plain = socket.create_connection((first.host, first.port), timeouts.connect)
            try:
                if proxy is not None:
                    open_tunnel(plain, proxy, address.host, address.port)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socket = (
                    tls.wrap_socket(plain, server_hostname=address.host) if tls else plain
                )
            except BaseException:
                plain.close()
                raise
        except OSError as error:
            raise address.unreachable(error) from error
        self._socket.settimeout(timeouts.read)

    def exchange(self, message: bytes, within: float | None = None) -> HttpReply:
        """Send a request and wait for its whole reply; after a `ConnectionFailed` it must be closed.

        `within` are the seconds for all of it. Without them, only the wait for the next bytes has an end.
        """
        reply = HttpReply()
        end = None if within is None else time.monotonic() + within
        try:
            if end is not None:
                self._wait_until(end)
            self._socket.sendall(message)
            while not reply.complete:
                if end is not None:
                    self._wait_until(end)
                data = self._socket.recv(_CHUNK)
                if not data:
                    raise ConnectionFailed(closed_early(self._url))
                reply.feed(data)
            if end is not None:
                self._socket.settimeout(self._read)  # for the next exchange
        except TimeoutError as error:
            if self._socket.gettimeout() != self._read:
                reason = f"did not end its answer within {within} s"
            else:
                reason = f"gave no answer for {self._read} s"
            raise ConnectionFailed(f"{self._url} {reason}") from error
        except OSError as error:
            raise ConnectionFailed(f"the connection to {self._url} broke: {error}") from error
        return reply

    def _wait_until(self, end: float) -> None:
        """Let the next wait for the other side end at `end`, if that is before the read time-out."""
        # Never 0, which would not wait at all.
        self._socket.settimeout(min(self._read, max(end - time.monotonic(), 0.0001)))

    @property
    def is_quiet(self) -> bool:
        """Whether nothing has arrived since the last reply: no bytes, and no end of the connection."""
        return is_quiet(self._socket.fileno())

    def interrupt(self) -> None:
        """Make the exchange that another thread waits for fail now."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
