"""Proxies and certificates from the environment: `HTTPS_PROXY`, `NO_PROXY`, `AWS_CA_BUNDLE`.

Only TLS connections go through a proxy, in a tunnel (`CONNECT`), so the proxy sees neither requests nor keys.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from isotone.authority import host_in
from isotone.errors import ConnectionFailed, UsageError

_NAMES: Final = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_HEAD_LIMIT: Final = 16 * 1024
_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3})([^\r\n]*)")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy's address, and the credentials for it."""

    host: str
    port: int
    authorization: str = ""

    def tunnel(self, host: str, port: int) -> Generator[bytes | None, bytes, None]:
        """Request a tunnel to a host: yields the bytes to send, then None for each read, and is sent the bytes read."""
        authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        yield f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{self.authorization}\r\n".encode()
        head = b""
        while b"\r\n\r\n" not in head:
            data = yield None
            head += data
            if not data or len(head) > _HEAD_LIMIT:
                raise self._failure("gave no answer")
        status = _STATUS.match(head)
        if status is None or not status[1].startswith(b"2"):
            said = (status[1] + status[2]).decode("latin-1") if status else "no HTTP"
            raise self._failure(f"refused a connection to {authority} ({said})")

    def _failure(self, what: str) -> ConnectionFailed:
        return ConnectionFailed(f"the proxy {self.host}:{self.port} {what}", sent=False)


def proxy_of(host: str, *, is_tls: bool) -> Proxy | None:
    """The proxy for a host; None for a direct connection. Raises `UsageError` for an invalid setting."""
    url = next((os.environ[name] for name in _NAMES if os.environ.get(name)), None)
    if url is None or not is_tls:
        return None
    from urllib.request import proxy_bypass  # imported here because it loads much

    if proxy_bypass(host):
        return None
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or 80
    except ValueError:
        raise _bad_proxy() from None
    if (
        parts.scheme != "http"
        or not parts.hostname
        or host_in(parts.netloc.rpartition("@")[2]) is None
    ):
        raise _bad_proxy()
    authorization = ""
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Proxy-Authorization: Basic {b64encode(user.encode()).decode()}\r\n"
    return Proxy(parts.hostname, port, authorization)


def _bad_proxy() -> UsageError:
    """The error for a setting that is not a proxy's address. It hides the setting, which may contain a password."""
    return UsageError(
        "HTTPS_PROXY is not the address of an HTTP proxy; write, for example, http://proxy.example:3128"
    )


def tls_context() -> ssl.SSLContext:
    """The trusted certificates: those in the file `AWS_CA_BUNDLE`, or the system's. Raises `UsageError`."""
    bundle = os.environ.get("AWS_CA_BUNDLE") or None
    try:
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:
        raise UsageError(f"AWS_CA_BUNDLE={bundle!r} cannot be read: {error}") from None


def open_tunnel(connection: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    """Turn a connection to a proxy into one to a host."""
    steps = proxy.tunnel(host, port)
    connection.sendall(next(steps) or b"")
    try:
        next(steps)
        while True:
            steps.send(connection.recv(4096))
    except StopIteration:
        return


async def connect_through(proxy: Proxy, host: str, port: int) -> socket.socket:
    """A socket connected to a host through a proxy, for the running event loop."""
    loop = asyncio.get_running_loop()
    connection = await _connect(proxy, loop)
    try:
        steps = proxy.tunnel(host, port)
        await loop.sock_sendall(connection, next(steps) or b"")
        try:
            next(steps)
            while True:
                steps.send(await loop.sock_recv(connection, 4096))
        except StopIteration:
            return connection
    except BaseException:
        connection.close()
        raise


async def _connect(proxy: Proxy, loop: asyncio.AbstractEventLoop) -> socket.socket:
    """A connection to the first of a proxy's addresses that accepts one."""
    failure: OSError | None = None
    infos = await loop.getaddrinfo(proxy.host, proxy.port, type=socket.SOCK_STREAM)
    for family, kind, protocol, _, address in infos:
        connection = socket.socket(family, kind, protocol)
        try:
            connection.setblocking(False)
            await loop.sock_connect(connection, address)
        except OSError as error:
            connection.close()
            failure = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise failure or OSError(f"{proxy.host} has no address")
