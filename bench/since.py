"""Has a hot path become slower? The working tree against an earlier commit, in one run.

    python -m bench.since COMMIT [--restarts N] [WORD…]     # WORD: only the paths whose name has one

The figures are processor time, which other programs disturb less than the clock, and files do not wait for the disk.
Both trees get new processes in each restart, since one process may be some per cent faster than the next with the same
code; the two take turns of some hundredths of a second. A restart gives one ratio; the table has the median of these
ratios, and the range of the middle half. The exit status is 1 where a path takes over 3 % longer. Linux only.

All of it runs on one core, where a server waits until the client has sent a request on each connection. On two cores the
time of a request depends on how many others the server finds with it, and with the same code varies by a half.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from time import process_time_ns
from typing import Any, Final

import isotone
from bench import at_scale, peers, requests
from bench import over_http as workload
from bench.in_process import cycled, versions

ALLOWED: Final = 1.03
CONNECTIONS: Final = 8  # so that a server has work, as it would otherwise measure how it wakes up
TURNS: Final = 12  # of each tree in a restart
MANY: Final = 10_000  # items, among which some are read

Subject = Callable[[int], int]
"""Makes so many requests, and returns the nanoseconds of processor time that they took."""


@dataclass(frozen=True, slots=True)
class HotPath:
    name: str
    block: int  # requests in a turn: long enough that caches filled by the other one hardly count
    started: Callable[[Path], AbstractContextManager[Subject]]


# In the process


def _memory() -> Any:
    return isotone.open().client()


def _file() -> Any:
    folder = tempfile.mkdtemp(dir=os.environ["BENCH_FOLDER"])
    return isotone.open(Path(folder) / "isotone.db", durability="none").client()


def _filled(client: Any) -> Any:
    client.create_table(**requests.SCHEMA)
    for number in range(requests.ROWS):
        client.put_item(**requests.put(number))
    return client


def _get(client: Any) -> Callable[[], object]:
    asked = [requests.get(number) for number in range(requests.ROWS)]
    return cycled(lambda request: client.get_item(**request), asked)


def _put(client: Any) -> Callable[[], object]:
    asked = [requests.put(*one) for one in versions()]
    return cycled(lambda request: client.put_item(**request), asked)


def _query(client: Any) -> Callable[[], object]:
    asked = [requests.query(number) for number in range(requests.ROWS // requests.PARTITION)]
    return cycled(lambda request: client.query(**request), asked)


def _at_scale(which: int) -> Callable[[], object]:
    client = _file()
    client.create_table(**requests.SCHEMA)
    at_scale.fill(client, MANY)
    return at_scale.calls(client, MANY)[which]


CALLS: Final[dict[str, Callable[[], Callable[[], object]]]] = {
    "get": lambda: _get(_filled(_memory())),
    "get-file": lambda: _get(_filled(_file())),
    "put": lambda: _put(_filled(_memory())),
    "put-file": lambda: _put(_filled(_file())),
    "query": lambda: _query(_filled(_memory())),
    "query-file": lambda: _query(_filled(_file())),
    "get-10000": lambda: _at_scale(0),
    "query-10000": lambda: _at_scale(1),
}


def work(name: str) -> None:
    """In a process of its own: make as many calls as each line says, and answer with the time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends when it is told
    call = CALLS[name]()
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        count = range(int(line))
        began = process_time_ns()
        for _ in count:
            call()
        print(process_time_ns() - began, flush=True)


@contextmanager
def in_process(name: str, tree: Path) -> Iterator[Subject]:
    with tempfile.TemporaryDirectory(dir=peers.data_folder()) as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.since", "--work", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=peers.ROOT,
            env={**os.environ, **_of(tree), "BENCH_FOLDER": folder},
        )
        to, back = process.stdin, process.stdout
        assert to is not None
        assert back is not None

        def subject(count: int) -> int:
            to.write(f"{count}\n")
            to.flush()
            return int(back.readline())

        with process:
            try:
                yield subject
            finally:
                process.terminate()


# Over HTTP


@contextmanager
def over_http(server: peers.Server, made: workload.Requests, tree: Path) -> Iterator[Subject]:
    with peers.started(server, **_of(tree)) as running:
        workload.fill(running)
        asked = list(made(running))
        for operation, request in asked[:20]:
            workload.check(running, operation, request)
        sent = cycle([requests.raw(*one, running.port) for one in asked])
        room = memoryview(bytearray(1 << 20))
        with ExitStack() as stack:
            address = ("127.0.0.1", running.port)
            connections = [
                stack.enter_context(socket.create_connection(address)) for _ in range(CONNECTIONS)
            ]

            _let_wait(running.process.pid)

            def subject(count: int) -> int:
                began = _processor_time(running.process.pid)
                for _ in range(count // CONNECTIONS):
                    for connection in connections:
                        connection.sendall(next(sent))
                    for connection in connections:
                        _receive(connection, room)
                return _processor_time(running.process.pid) - began

            yield subject


def _let_wait(process: int) -> None:
    """Let a server run only while its client waits, although they share a core."""
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.sched_setscheduler(int(thread.name), os.SCHED_BATCH, os.sched_param(0))


def _receive(connection: socket.socket, room: memoryview) -> None:
    """Read one response to its end."""
    got = connection.recv_into(room)
    head, _, _ = bytes(room[:1000]).lower().partition(b"\r\n\r\n")
    length = int(head.partition(b"content-length:")[2].partition(b"\r")[0])
    while got < len(head) + 4 + length:
        got += connection.recv_into(room[got:])


def _processor_time(process: int) -> int:
    """The nanoseconds that all threads of a process have run, which Linux counts to the nanosecond."""
    threads = Path(f"/proc/{process}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in threads)


def _without_disk(port: int, folder: Path) -> Sequence[str]:
    return [*peers.ISOTONE_FILE.command(port, folder), "--durability", "none"]


FILE: Final = peers.Server("Isotone (file, not durable)", _without_disk)


def _served(server: peers.Server, made: workload.Requests) -> Any:
    return partial(over_http, server, made)


HOT_PATHS: Final = (
    HotPath("GetItem over HTTP, memory", 4000, _served(peers.ISOTONE_MEMORY, workload.gets)),
    HotPath("GetItem over HTTP, file", 3000, _served(FILE, workload.gets)),
    HotPath("PutItem over HTTP, memory", 2000, _served(peers.ISOTONE_MEMORY, workload.puts)),
    HotPath("PutItem over HTTP, file", 1500, _served(FILE, workload.puts)),
    HotPath("Query of 100 items over HTTP, memory", 800, _served(peers.ISOTONE_MEMORY, workload.queries)),
    HotPath("Query of 100 items over HTTP, file", 400, _served(FILE, workload.queries)),
    HotPath("GetItem in the process, memory", 3000, partial(in_process, "get")),
    HotPath("GetItem in the process, file", 2000, partial(in_process, "get-file")),
    HotPath("PutItem in the process, memory", 1500, partial(in_process, "put")),
    HotPath("PutItem in the process, file", 800, partial(in_process, "put-file")),
    HotPath("Query of 100 items in the process, memory", 120, partial(in_process, "query")),
    HotPath("Query of 100 items in the process, file", 120, partial(in_process, "query-file")),
    HotPath("GetItem among 10,000 items, file", 2000, partial(in_process, "get-10000")),
    HotPath("Query Limit=10 among 10,000 items, file", 600, partial(in_process, "query-10000")),
)  # fmt: skip


# Both trees


@dataclass(frozen=True, slots=True)
class Compared:
    """What one restart measured: the microseconds of a request before and now."""

    before: float
    now: float

    @property
    def ratio(self) -> float:
        return self.now / self.before


def compare(path: HotPath, before: Path, now: Path) -> Compared:
    """Start both, let them take turns in a random order, and add up."""
    trees = [before, now]
    random.shuffle(trees)
    with ExitStack() as stack:
        subjects = {tree: stack.enter_context(path.started(tree)) for tree in trees}
        spent = dict.fromkeys(trees, 0)
        for tree in trees:
            subjects[tree](path.block * TURNS // 5)
        for _ in range(TURNS):
            random.shuffle(trees)
            for tree in trees:
                spent[tree] += subjects[tree](path.block)
    calls = path.block * TURNS * 1000
    return Compared(spent[before] / calls, spent[now] / calls)


def row(path: HotPath, seen: Sequence[Compared]) -> tuple[str, bool]:
    """A line of the table, and whether the path is slower than allowed."""
    ratios = sorted(each.ratio for each in seen)
    middle = statistics.median(ratios)
    low, high = ratios[len(ratios) // 4], ratios[len(ratios) * 3 // 4]
    before = statistics.median(each.before for each in seen)
    now = statistics.median(each.now for each in seen)
    line = f"| {path.name} | {before:.1f} µs | {now:.1f} µs | {middle:.3f} | {low:.3f}–{high:.3f} |"
    return line, middle > ALLOWED


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The files of a commit, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="isotone-since-") as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def compiled(*trees: Path) -> None:
    """Compile the sources of trees, so that what starts in one does not."""
    sources = [str(tree / "src") for tree in trees]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *sources], check=True)


def _git(*words: str) -> None:
    if subprocess.run(["git", *words], cwd=peers.ROOT).returncode:
        sys.exit(2)  # git has said why


def _of(tree: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(tree / "src")}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.since",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("commit", metavar="COMMIT")
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--restarts", type=int, default=15, metavar="N")
    options = parser.parse_intermixed_args()
    words = [word.lower() for word in options.words] or [""]
    chosen = [path for path in HOT_PATHS if any(word in path.name.lower() for word in words)]
    if not chosen:
        parser.error(
            f"no path is called so; there are: {'; '.join(each.name for each in HOT_PATHS)}"
        )
    slower = False
    one_core = {max(os.sched_getaffinity(0))}
    os.sched_setaffinity(0, one_core)  # for all processes that this one starts, too
    with checked_out(options.commit) as before:
        compiled(before, peers.ROOT)
        print(
            "| path | before | now | ratio | middle half |\n|---|---:|---:|---:|---:|", flush=True
        )
        for path in chosen:
            line, is_slower = row(
                path, [compare(path, before, peers.ROOT) for _ in range(options.restarts)]
            )
            print(line, flush=True)
            slower |= is_slower
    return int(slower)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2])
    else:
        try:
            sys.exit(main())
        except KeyboardInterrupt:
            sys.exit(130)
