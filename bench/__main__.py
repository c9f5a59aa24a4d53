"""All measurements, a table on standard output and a JSON file.

    python -m bench [--quick] [--rounds N] [--json FILE] [WORKLOAD…]

Workloads: calls, over_http, in_process, with_boto3, own_transport, small_tests, model, at_scale, backups, leaderboard, sorted_set, structures, feed,
startup, verifying, vectors, signatures, counting, postgres. The machine should have nothing else to do; only `calls` does not mind. `--quick` proves that everything runs; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import sys
from dataclasses import asdict, replace
from pathlib import Path

from bench.measuring import FULL, QUICK, Row, Target
from bench.report import judged, table
from bench.versions import versions

WORKLOADS = (
    "calls",
    "startup",
    "in_process",
    "with_boto3",
    "own_transport",
    "small_tests",
    "model",
    "at_scale",
    "backups",
    "leaderboard",
    "sorted_set",
    "structures",
    "feed",
    "verifying",
    "vectors",
    "over_http",
    "signatures",
    "counting",
    "postgres",
)


def described() -> dict[str, object]:
    """The machine, and how busy it was before we began."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cores": os.cpu_count(),
        "processor": models[0] if models else platform.processor(),
        "system": platform.platform(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def main() -> int:
    """The exit status is 1 where a target that could be judged was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, help="how many rounds the medians are taken of")
    parser.add_argument("--json", type=Path, default=Path(".peers/bench.json"))
    options = parser.parse_args()
    effort = QUICK if options.quick else FULL
    effort = replace(effort, rounds=options.rounds or effort.rounds)
    machine = described()
    rows: list[Row] = []
    targets: list[Target] = []
    for name in options.workloads or WORKLOADS:
        print(f"… {name}", file=sys.stderr, flush=True)
        workload = importlib.import_module(f"bench.{name}")
        rows += workload.run(effort)
        targets += workload.TARGETS
    verdicts = judged(targets, rows)
    print(table(rows, verdicts))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    found = {
        "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "versions": versions(),
        "effort": asdict(effort),
        "rows": [row.as_json() for row in rows],
        "targets": [verdict.as_json() for verdict in verdicts],
    }
    options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False))
    return int(any(verdict.met is False for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
