"""Closed-loop load: so many connections, each sending its next request when the last is answered.

`wrk` generates it where there is one (`apt install wrk`), because it takes the least from the cores
that it shares with the server; otherwise `bench.closed_loop` does. Every distinct request is sent once
before and its answer checked; during the run the statuses and the total of bytes are.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CONNECTIONS: Final = 8
SCRIPT: Final = """
local requests = {}
for line in io.lines(os.getenv("BENCH_REQUESTS"), "L") do
  requests[#requests + 1] = line:sub(1, -2):gsub("\\\\r", "\\r"):gsub("\\\\n", "\\n")
end
local at = 0
request = function()
  at = at % #requests + 1
  return requests[at]
end
done = function(summary, latency, all)
  io.write(string.format('\\nJSON {"requests": %d, "microseconds": %d, "bytes": %d, "bad": %d, "p50": %d, "p99": %d}\\n',
    summary.requests, summary.duration, summary.bytes,
    summary.errors.status + summary.errors.read + summary.errors.write + summary.errors.timeout + summary.errors.connect,
    latency:percentile(50), latency:percentile(99)))
end
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of the generator saw."""

    per_second: float
    p50_us: float
    p99_us: float
    bytes_per_answer: float
    generator: str


class BadAnswers(RuntimeError):
    """The server answered with errors, so its speed means nothing."""


def run(port: int, requests: list[bytes], seconds: float, connections: int = CONNECTIONS) -> Load:
    """Load a server with these requests, over and over; raises `BadAnswers`."""
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "requests"
        lines.write_bytes(
            b"".join(one.replace(b"\r", b"\\r").replace(b"\n", b"\\n") + b"\n" for one in requests)
        )
        generate = _wrk if shutil.which("wrk") else _own
        seen = generate(port, lines, seconds, connections)
    if seen["bad"] or not seen["requests"]:
        raise BadAnswers(f"{seen['bad']} of {seen['requests']} answers were errors")
    return Load(
        seen["requests"] / seen["microseconds"] * 1e6,
        seen["p50"],
        seen["p99"],
        seen["bytes"] / seen["requests"],
        "wrk" if shutil.which("wrk") else "bench.closed_loop",
    )


def _wrk(port: int, lines: Path, seconds: float, connections: int) -> dict[str, int]:
    script = lines.with_suffix(".lua")
    script.write_text(SCRIPT)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "10s"]
    return _json([*command, "-s", str(script), f"http://127.0.0.1:{port}/"], lines)


def _own(port: int, lines: Path, seconds: float, connections: int) -> dict[str, int]:
    command = [sys.executable, "-m", "bench.closed_loop", str(port), str(connections), str(seconds)]
    return _json(command, lines)


def _json(command: list[str], lines: Path) -> dict[str, int]:
    environment = {"BENCH_REQUESTS": str(lines), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    text = next(line for line in done.stdout.splitlines() if line.startswith("JSON "))
    seen: dict[str, int] = json.loads(text.removeprefix("JSON "))
    return seen
