"""A server that answers each request with the next bytes of a script, and can do so badly."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Scripted:
    """`requests` are what was received, `connections` how many were opened."""

    script: list[bytes | None]
    url: str = ""
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    closed: threading.Event = field(default_factory=threading.Event)
    tls: ssl.SSLContext | None = None

    def serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self.connections += 1
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        if self.tls is not None:
            try:
                connection = self.tls.wrap_socket(connection, server_side=True)
            except OSError:  # a client that does not trust the certificate
                connection.close()
                return
        with connection, contextlib.suppress(OSError):
            while request := _receive(connection):
                self.requests.append(request)
                answer = self.script.pop(0) if self.script else b""
                if answer is None:  # silence
                    self.closed.wait(5)
                    return
                connection.sendall(answer)
                if not answer or b"Connection: close" in answer:
                    return


def _receive(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = (
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    length = next(lengths, 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@contextlib.contextmanager
def scripted_server(*script: bytes | None, tls: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
        server = Scripted(list(script), url, tls=tls)
        thread = threading.Thread(target=server.serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.closed.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def answer(
    content: Any = None, *, status: int = 200, headers: Sequence[str] = (), raw: bytes | None = None
) -> bytes:
    """An HTTP response with JSON, or with raw bytes."""
    body = json.dumps({} if content is None else content).encode() if raw is None else raw
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def with_checksum(content: Any, error: int = 0) -> bytes:
    body = json.dumps(content).encode()
    return answer(content, headers=[f"x-amz-crc32: {zlib.crc32(body) ^ error}"])


def refusal(code: str, message: str = "", status: int = 400, **more: Any) -> bytes:
    headers = [f"{name}: {value}" for name, value in more.items()]
    return answer(
        {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message},
        status=status,
        headers=headers,
    )
