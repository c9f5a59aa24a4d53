"""How many instructions one request takes: the working tree against an earlier commit, by valgrind.

    python -m bench.instructions COMMIT [WORD…]     # WORD: only the paths whose name has one

Unlike time, the figure is the same in each run to a few thousandths, on a busy machine, too. It leaves out the kernel, so
`bench.since` has the last word where system calls count. The exit status is 1 where a path takes over 3 % more.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import isotone
from bench import peers, requests
from bench.since import ALLOWED, CALLS, checked_out, compiled

WARM: Final = 100  # requests that fill the caches
COUNTED: Final = 500


def _wired(operation: str, asked: Callable[[int], dict[str, Any]]) -> Callable[[], object]:
    """One request as it arrives at a busy server, from its bytes to those of the answer."""
    from bench.wired import WiredServer  # whose imports the earliest commits do not have

    with suppress(ImportError):  # earlier commits do not count the shapes of requests
        from isotone.operations import served_queries

        served_queries.BUSY = 0.0  # under valgrind, no server is busy
    database = isotone.open()
    database.measure()
    database.execute("CreateTable", requests.SCHEMA)
    for number in range(requests.PARTITION):
        database.execute("PutItem", requests.put(number))
    server = WiredServer(database)
    receive, end_turn = server.connect().data_received, server.run_group
    sent = cycle([requests.raw(operation, asked(number), 8000) for number in range(10)])

    def call() -> None:
        receive(next(sent))
        end_turn()

    return call


PATHS: Final[dict[str, Callable[[], Callable[[], object]]]] = {
    "GetItem of a server": lambda: _wired("GetItem", requests.get),
    "PutItem of a server": lambda: _wired("PutItem", requests.put),
    "Query of 100 items of a server": lambda: _wired("Query", lambda number: requests.query(0)),
    "GetItem in the process": CALLS["get"],
    "GetItem in the process, file": CALLS["get-file"],
    "PutItem in the process": CALLS["put"],
    "PutItem in the process, file": CALLS["put-file"],
    "Query of 100 items in the process": CALLS["query"],
    "Query of 100 items in the process, file": CALLS["query-file"],
}


def work(name: str) -> None:
    """In a process of its own, under valgrind: have the instructions of some requests counted."""
    call = PATHS[name]()
    gc.collect()
    gc.freeze()
    for _ in range(WARM):
        call()
    _count("on")
    for _ in range(COUNTED):
        call()
    _count("off")


def _count(wanted: str) -> None:
    """Have valgrind count this process, or not; without counting it is ten times as fast."""
    command = ["vgdb", f"--pid={os.getpid()}", "instrumentation", wanted]
    subprocess.run(command, check=True, capture_output=True)


def counted(name: str, tree: Path) -> int:
    """The instructions of one request."""
    with tempfile.TemporaryDirectory(dir=peers.data_folder()) as folder:
        done = subprocess.run(
            [
                *("valgrind", "--tool=callgrind", "--instr-atstart=no"),
                *(f"--callgrind-out-file={os.devnull}", sys.executable),
                *("-m", "bench.instructions", "--work", name),
            ],
            cwd=peers.ROOT,
            env={
                **os.environ,
                "PYTHONPATH": str(tree / "src"),
                "PYTHONHASHSEED": "0",
                "BENCH_FOLDER": folder,
            },
            stderr=subprocess.PIPE,
            text=True,
        )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or found is None:
        sys.exit(f"{name}: {done.stderr[-2000:]}")
    return int(found[1]) // COUNTED


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.instructions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("commit", metavar="COMMIT")
    parser.add_argument("words", nargs="*", metavar="WORD")
    options = parser.parse_intermixed_args()
    words = [word.lower() for word in options.words] or [""]
    chosen = [name for name in PATHS if any(word in name.lower() for word in words)]
    if not chosen:
        parser.error(f"no path is called so; there are: {'; '.join(PATHS)}")
    takes_more = False
    print("| path | before | now | ratio |\n|---|---:|---:|---:|", flush=True)
    with checked_out(options.commit) as before:
        compiled(before, peers.ROOT)
        for name in chosen:
            then, now = counted(name, before), counted(name, peers.ROOT)
            print(f"| {name} | {then:,} | {now:,} | {now / then:.3f} |", flush=True)
            takes_more |= now > then * ALLOWED
    return int(takes_more)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2])
    else:
        try:
            sys.exit(main())
        except KeyboardInterrupt:
            sys.exit(130)
        except FileNotFoundError:
            sys.exit("valgrind is not installed: apt-get install valgrind")
