"""The differential fuzzer: histories of random requests to Isotone and to DynamoDB Local, which must agree.

    ISOTONE_FUZZ=100000 python -m tests.oracle.fuzz [SEED…]     run so many requests, print what differs

Of several seeds, each is a process of its own, with its share of the requests and its own database in DynamoDB Local.
A history begins with the table `tab`. Isotone is in memory, on a file or behind HTTP, by turns. Where the two
differ and `known_differences.py` has no reason, the history is shrunk: requests are left out, then members of the last one,
as long as it still differs. Of a request with a fault that both refuse, only the code is compared; `faults.py`
compares the words. Capacity is compared by `test_random.py`.
"""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.oracle import local
from tests.oracle.compare import Mismatch, compare, pairs
from tests.oracle.endpoints import Answer, Isotone, RawApi, drop_tables
from tests.oracle.faults import ITEM, KEY, Prepared
from tests.oracle.known_differences import COUNT, KNOWN_FOR_FAULTS, excuse
from tests.oracle.requests import Dice, Drawn, random_request
from tests.oracle.scripts import Step
from tests.sdks.server_process import server_process

HISTORY: Final = 80
QUICK: Final = 1500
PROGRESS: Final = 5000
READS: Final = ("Get", "BatchGet", "TransactGet", "Query", "Scan", "Describe", "List")
# ARNs, ids and shards are each side's own: of these, that they succeed.
OWN_NAMES: Final = ("ListStreams", "DescribeStream", "GetShardIterator", "GetRecords")


TABLE_WRITES: Final = ("CreateTable", "UpdateTable", "DeleteTable", "UpdateTimeToLive")
REUSES: Final = 20
TOKEN: Final = re.compile(r'"ClientRequestToken": "(?!")')


class Placed:
    """A side whose own names are put into requests, and taken out of answers."""

    def __init__(self, side: RawApi) -> None:
        self._side = side
        self._names: dict[str, str] = {}
        self._histories = 0
        self._is_intact = False
        self.status = 200

    def begin(self) -> None:
        """Start a history: only the table `tab`. Tokens outlive tables, so those of each history are its own."""
        self._histories += 1
        if self._histories % REUSES and self._is_intact and self._is_emptied():
            return
        drop_tables(self._side)
        self._names = Prepared(self._side).names
        self._is_intact = True

    def _is_emptied(self) -> bool:
        """Leave one item in the table, as `Prepared` does; a new table takes DynamoDB Local much longer."""
        status, found = self._side.ask("Scan", {"TableName": "tab"})
        if status != 200:
            return False
        keys = [{name: item[name] for name in ("p", "s")} for item in found["Items"]]
        writes = [{"DeleteRequest": {"Key": key}} for key in keys if key != KEY]
        put = {"PutRequest": {"Item": ITEM}}
        asked = {"RequestItems": {"tab": [*writes, put]}}
        return self._side.ask("BatchWriteItem", asked)[0] == 200

    def ask(self, operation: str, request: dict[str, Any] | bytes) -> Answer:
        text = request.decode() if isinstance(request, bytes) else json.dumps(request)
        for name, own in self._names.items():
            text = text.replace(f'"{name}"', json.dumps(own))
        self._is_intact = self._is_intact and operation not in TABLE_WRITES
        text = TOKEN.sub(rf"\g<0>{self._histories}-", text)
        status, body = self._side.ask(operation, text.encode())
        self.status = status
        body.pop("ConsumedCapacity", None)
        if operation in OWN_NAMES and status == 200:
            return status, {}
        return status, body


def differs(theirs: Placed, ours: Placed, drawn: Drawn) -> Mismatch | None:
    """Ask both; None where they agree, or where the difference is known."""
    mismatch = compare("fuzz", Step(drawn.action, drawn.request), theirs, ours)
    return None if mismatch and drawn.faults and _is_excused(mismatch) else mismatch


def _is_excused(mismatch: Mismatch) -> bool:
    """Whether the difference is one that a fault explains."""
    asked = f"{mismatch.step.operation} {json.dumps(mismatch.step.request)}"
    return all(
        left == right
        or (200 not in (left[0], right[0]) and left[1]["code"] == right[1]["code"])
        or excuse(left, right, asked, KNOWN_FOR_FAULTS)
        for left, right in pairs(mismatch.theirs, mismatch.ours)
    )


def _may_part(drawn: Drawn, theirs: Placed, ours: Placed) -> bool:
    """Whether the two may have unlike states after a request, whose difference is known."""
    if drawn.action == "BatchExecuteStatement" and theirs.status != 200:
        return True  # DynamoDB Local executes statements before it refuses the batch
    wrote = not drawn.action.startswith(READS)
    return wrote and (theirs.status == 200) != (ours.status == 200)


@dataclass
class Report:
    """What a run has found."""

    asked: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    found: dict[str, Mismatch] = field(default_factory=dict)
    """The first mismatch of those that look alike, with its shrunk history, by what they look like."""
    times: Counter[str] = field(default_factory=Counter)
    """How many look like that."""

    def add(self, other: Report) -> None:
        """Add what another run has found."""
        self.asked += other.asked
        self.accepted += other.accepted
        self.times += other.times
        self.found = {**other.found, **self.found}

    def __str__(self) -> str:
        total = sum(self.asked.values())
        lines = [f"{total} requests, {self.accepted} accepted, {sum(self.times.values())} differed"]
        for look, times in self.times.most_common():
            lines.append(f"\n{times} × {look}")
            if look in self.found:
                lines.append(str(self.found[look]))
        return "\n".join(lines)


def look_of(mismatch: Mismatch) -> str:
    """A mismatch without what is random in it: the action, and both errors without values."""
    return (
        f"{mismatch.step.operation}: theirs {_told(mismatch.theirs)}; ours {_told(mismatch.ours)}"
    )


def _told(answer: Answer) -> str:
    status, body = answer
    if status == 200:
        return "OK"
    message = str(body["message"]).replace(COUNT, "")
    return f"{body['code']}: {' '.join(message.split()[:8])}"


Plays = Callable[[list[Drawn]], "Mismatch | None"]


def player(theirs: Placed, ours: Placed) -> Plays:
    """A function that plays a history anew, and returns how its last request differs."""

    def play(history: list[Drawn]) -> Mismatch | None:
        theirs.begin()
        ours.begin()
        last = None
        for drawn in history:
            last = differs(theirs, ours, drawn)
        return last

    return play


def shrunk(history: list[Drawn], look: str, play: Plays) -> list[Drawn]:
    """The shortest history that is found by leaving out requests, and members of the last, that looks the same."""

    def still(candidate: list[Drawn]) -> bool:
        found = play(candidate)
        return found is not None and look_of(found) == look

    size = len(history)
    while size > 1:
        size = (size + 1) // 2
        place = 0
        while place < len(history) - 1:
            end = min(place + size, len(history) - 1)
            candidate = history[:place] + history[end:]
            history, place = (candidate, place) if still(candidate) else (history, end)
        if size == 1:
            break
    last = history[-1]
    for path in _paths(last.request):
        candidate_request = _without(last.request, path)
        if candidate_request is not None:
            candidate = [*history[:-1], last._replace(request=candidate_request)]
            if still(candidate):
                history, last = candidate, candidate[-1]
    return history


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all members, the outer first; of lists, the last first."""
    steps: list[Any] = []
    if isinstance(value, dict):
        steps = list(value)
    elif isinstance(value, list):
        steps = list(reversed(range(len(value))))
    for step in steps:
        yield (*path, step)
        yield from _paths(value[step], (*path, step))


def _without(request: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any] | None:
    """The request without the member at a path; None if there is none any more."""
    request = copy.deepcopy(request)
    parent: Any = request
    try:
        for step in path[:-1]:
            parent = parent[step]
        del parent[path[-1]]
    except (KeyError, IndexError, TypeError):
        return None
    return request


@contextmanager
def our_sides() -> Iterator[dict[str, Placed]]:
    """Isotone in memory, on a file, and as a server."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(server_process(folder / "served.db"))
        served = local.Endpoint(int(url.rpartition(":")[2]))
        stack.callback(served.close)
        yield {
            "memory": Placed(stack.enter_context(Isotone())),
            "file": Placed(stack.enter_context(Isotone(str(folder / "fuzz.db")))),
            "HTTP": Placed(served),
        }


def run(count: int, start: int, theirs_raw: RawApi, *, most: int = 30) -> Report:
    """Ask `count` requests in histories; shrink the first of each kind of mismatch."""
    report = Report()
    theirs = Placed(theirs_raw)
    history: list[Drawn] = []
    with our_sides() as sides:
        turns = list(sides.values())

        dice = Dice(start)

        def ask(drawn: Drawn) -> None:
            total = sum(report.asked.values())
            ours = turns[total // HISTORY % len(turns)]
            if total % HISTORY == 0 or not history:
                history.clear()
                theirs.begin()
                ours.begin()
            report.asked[drawn.action] += 1
            history.append(drawn)
            mismatch = differs(theirs, ours, drawn)
            report.accepted += ours.status == 200
            if mismatch is None:
                if _may_part(drawn, theirs, ours):
                    history.clear()
                return
            look = look_of(mismatch)
            report.times[look] += 1
            if look not in report.found and len(report.found) < most:
                play = player(theirs, ours)
                short = shrunk(list(history), look, play)
                last = play(short) or mismatch
                context = [f"{each.action} {json.dumps(each.request)}" for each in short[:-1]]
                name = " | ".join(context)[:1500] or "alone"
                report.found[look] = Mismatch(name, last.step, last.theirs, last.ours)
                print(f"after {total} requests: {look}", report.found[look], flush=True)
            history.clear()  # the states may have parted

        for done in range(1, count + 1):
            ask(random_request(dice))
            if not done % PROGRESS:
                print(f"seed {start}: {done} requests", flush=True)
    return report


def _share(count: int, start: int, port: int) -> Report:
    """What one process of several does."""
    theirs = local.Endpoint(port, f"seed{start}")
    report = run(count, start, theirs)
    theirs.close()
    return report


def main(arguments: list[str]) -> int:
    """The command line of this file."""
    count = int(os.environ.get("ISOTONE_FUZZ", QUICK))
    starts = [int(each) for each in arguments] or [random.randrange(2**32)]
    print("seeds", *starts, flush=True)
    report = Report()
    with (
        local.DynamoDBLocal(shared=False) as theirs,
        ProcessPoolExecutor(len(starts), multiprocessing.get_context("spawn")) as pool,
    ):
        shares = [pool.submit(_share, count // len(starts), start, theirs.port) for start in starts]
        for share in shares:
            report.add(share.result())
    print(report)
    return int(bool(report.times))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
