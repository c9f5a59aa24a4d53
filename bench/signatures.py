"""What verified signatures cost: GetItem over HTTP with and without credentials, in one run."""

from __future__ import annotations

from bench import over_http, peers
from bench.measuring import Effort, Row, Target

GET = "GetItem over HTTP, signed"
SERVERS = (peers.ISOTONE_MEMORY, peers.ISOTONE_VERIFYING, peers.ISOTONE_AUDITED)
TARGETS = (Target(GET, peers.ISOTONE_VERIFYING.name, "at least", 0.4, peers.ISOTONE_MEMORY.name),)


def run(effort: Effort) -> list[Row]:
    return over_http.measure(GET, SERVERS, over_http.gets, effort)
