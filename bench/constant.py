"""The floor of every HTTP measurement: a server that parses requests and answers a constant.

python -m bench.constant PORT FILE       FILE holds the body of every answer
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import httptools

try:
    from uvloop import run
except ImportError:
    run = asyncio.run


class Constant(asyncio.Protocol):
    """One connection."""

    answer: bytes

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._transport.write(self.answer)


async def main(port: int, body: bytes) -> None:
    """Serve until killed."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}"
    Constant.answer = f"{head}\r\n\r\n".encode() + body
    server = await asyncio.get_running_loop().create_server(Constant, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    run(main(int(sys.argv[1]), Path(sys.argv[2]).read_bytes()))
