"""The HTTP stack of Isotone's own (connections, signing, retries) against botocore's: GetItem from one constant server."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3

import isotone
from bench import requests
from bench.measuring import Effort, Row, Target

RATE = "GetItem over HTTP by one thread"
PROCESSOR = "GetItem over HTTP, processor time of the client"
OURS, BOTOCORE = "Isotone's own stack", "botocore's stack"
TARGETS = (
    Target(RATE, OURS, "at least", 2.0, BOTOCORE),
    Target(PROCESSOR, OURS, "at most", 0.5, BOTOCORE),
)
KEYS = isotone.Credentials("any", "any")


@contextmanager
def constant_server() -> Iterator[str]:
    """The URL of a server in another process, which answers every request with the same item."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        body = Path(folder) / "answer.json"
        body.write_text(json.dumps({"Item": requests.item(1)}))
        process = subprocess.Popen([sys.executable, "-m", "bench.constant", str(port), str(body)])
        try:
            _wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _wait_for(port: int) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


def measure(call: Callable[[], object], calls: int) -> tuple[float, float]:
    """Calls per second, and microseconds of this process's processor time for each."""
    began, used = time.perf_counter(), time.process_time()
    for _ in range(calls):
        call()
    used, took = time.process_time() - used, time.perf_counter() - began
    return calls / took, used / calls * 1e6


def run(effort: Effort) -> list[Row]:
    request = requests.get(1)
    rates: dict[str, list[float]] = {OURS: [], BOTOCORE: []}
    processor: dict[str, list[float]] = {OURS: [], BOTOCORE: []}
    secrets = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
    with constant_server() as url, isotone.connect(url, credentials=KEYS, engine="isotone") as own:
        client = boto3.session.Session().client(
            "dynamodb", region_name="us-east-1", endpoint_url=url, **secrets
        )
        subjects = {
            OURS: lambda: own.backend.execute("GetItem", request),
            BOTOCORE: lambda: client.get_item(**request),
        }
        for call in subjects.values():
            measure(call, 20)
        for _ in range(effort.rounds):
            for name, call in subjects.items():
                rate, used = measure(call, max(100, effort.calls // 5))
                rates[name].append(rate)
                processor[name].append(used)
    return [Row(RATE, name, "calls/s", samples) for name, samples in rates.items()] + [
        Row(PROCESSOR, name, "µs", samples) for name, samples in processor.items()
    ]
