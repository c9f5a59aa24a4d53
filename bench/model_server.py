"""The other side of the modelling libraries: a server that answers at once what they wrote themselves.

python -m bench.model_server PORT

Each PutItem becomes the answer of GetItem and, a hundred times, of Query. So every library reads its own
form of the item, and what the answers cost falls on nobody.
"""

from __future__ import annotations

import asyncio
import json
import sys
import zlib
from typing import Any

import httptools

from bench.model_values import PAGE, TABLE

CONSUMED = {"TableName": TABLE, "CapacityUnits": 1.0}


def framed(answer: dict[str, Any]) -> bytes:
    """An answer with the headers that the service sends."""
    body = json.dumps(answer, separators=(",", ":")).encode()
    head = (
        "HTTP/1.1 200 OK\r\nServer: Server\r\nDate: Sun, 11 Jan 2026 09:30:15 GMT\r\n"
        f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n"
        "Connection: keep-alive\r\nx-amzn-RequestId: 4KBNVRGD25RG1KEO9UT4V3FQDJVV4KQNSO5AEMVJF66Q9ASUAAJG\r\n"
        f"x-amz-crc32: {zlib.crc32(body)}\r\n\r\n"
    )
    return head.encode() + body


ANSWERS: dict[str, bytes] = {"PutItem": framed({"ConsumedCapacity": CONSUMED})}


def learn(item: dict[str, Any]) -> None:
    """Answer with this item from now on."""
    ANSWERS["GetItem"] = framed({"Item": item, "ConsumedCapacity": CONSUMED})
    page = {"Items": [item] * PAGE, "Count": PAGE, "ScannedCount": PAGE}
    ANSWERS["Query"] = framed({**page, "ConsumedCapacity": CONSUMED})


class Answering(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""
        self._operation = ""

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"x-amz-target":
            self._operation = value.decode().partition(".")[2]

    def on_body(self, part: bytes) -> None:
        self._body += part

    def on_message_complete(self) -> None:
        if self._operation == "PutItem" and "GetItem" not in ANSWERS:
            learn(json.loads(self._body)["Item"])
        self._body = b""
        self._transport.write(ANSWERS.get(self._operation) or framed({}))


async def main(port: int) -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
