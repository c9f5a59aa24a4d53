"""A load generator in Python, for machines without wrk.

BENCH_REQUESTS=FILE python -m bench.closed_loop PORT CONNECTIONS SECONDS
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from pathlib import Path

import httptools

try:
    from uvloop import run
except ImportError:
    run = asyncio.run


class Loop(asyncio.Protocol):
    """One connection that always has one request under way."""

    def __init__(
        self, requests: itertools.cycle[bytes], latencies: list[float], bad: list[int]
    ) -> None:
        self._requests = requests
        self._latencies = latencies
        self._bad = bad
        self.read = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._parser = httptools.HttpResponseParser(self)
        self._send()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self.read += len(data)
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._latencies.append(time.perf_counter() - self._sent)
        if self._parser.get_status_code() != 200:
            self._bad.append(self._parser.get_status_code())
        self._parser = httptools.HttpResponseParser(self)
        self._send()


async def main(port: int, connections: int, seconds: float) -> None:
    """Load for so long and print what was seen as one line of JSON."""
    lines = Path(os.environ["BENCH_REQUESTS"]).read_bytes().splitlines()
    requests = itertools.cycle([one.replace(b"\\r", b"\r").replace(b"\\n", b"\n") for one in lines])
    latencies: list[float] = []
    bad: list[int] = []
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    made = [
        await loop.create_connection(lambda: Loop(requests, latencies, bad), "127.0.0.1", port)
        for _ in range(connections)
    ]
    await asyncio.sleep(seconds)
    took = time.perf_counter() - began
    for transport, _ in made:
        transport.abort()
    latencies.sort()
    seen = {
        "requests": len(latencies),
        "microseconds": round(took * 1e6),
        "bytes": sum(protocol.read for _, protocol in made),
        "bad": len(bad),
        "p50": round(latencies[len(latencies) // 2] * 1e6),
        "p99": round(latencies[len(latencies) * 99 // 100] * 1e6),
    }
    print("JSON " + json.dumps(seen))


if __name__ == "__main__":
    run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
