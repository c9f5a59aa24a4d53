"""Requests with one, two and three faults to Isotone and to dynoxide: the words of both answers must be the same.

    python -m tests.oracle.faulty 100000 [Action…] [--seed N] [--faults N]     print what differs, by its look

dynoxide is the best witness of which fault the service tells first, and in which words. A fault is a change of a valid
request (`base_requests`): a member gets a value that it may not have, or is left out (the service model knows which), or a rule of
the action is broken (`rule_faults`). Differences that are explained in `known_dynoxide_differences.py` do not count.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from tests.oracle.base_requests import BASES_OF, ITEMS_OF_TAB, OF_ITEMS, OF_STREAMS
from tests.oracle.endpoints import Answer, Isotone, drop_tables
from tests.oracle.faults import ABSENT, Path_, members, replaced, wrong_values
from tests.oracle.fuzz import Placed
from tests.oracle.known_differences import Known, said
from tests.oracle.known_dynoxide_differences import OF_DYNOXIDE
from tests.oracle.normalized_answers import normal
from tests.oracle.prepared_tables import prepare
from tests.oracle.requests import model_of
from tests.oracle.rule_faults import BAD_VALUES, OF_KEYS, RULE_FAULTS
from tests.oracle.scripts import Request, n, s
from tests.oracle.witnesses import Dynoxide


class Fault(NamedTuple):
    """A change of a request: the value of the member at a path."""

    label: str
    path: Path_
    value: Any


OF_SETTINGS: Final = (
    *("CreateTable", "UpdateTable", "DeleteTable", "DescribeTable", "ListTables"),
    *("UpdateTimeToLive", "DescribeTimeToLive"),
    *("TagResource", "UntagResource", "ListTagsOfResource"),
)
COMPARED: Final = (*ITEMS_OF_TAB, *OF_SETTINGS, *OF_STREAMS)
"""The actions whose differences all have a reason; others must be named."""


@cache
def faults(action: str, number: int) -> tuple[Fault, ...]:
    """All faults of one of the bases of an action."""
    return tuple(_faults(action, BASES_OF[action][number]))


def _faults(action: str, base: Request) -> Iterator[Fault]:
    known = model_of(action)
    for path, name in members(known, action, base):
        where = ".".join(map(str, path))
        yield Fault(f"{where}: absent", path, ABSENT)
        yield Fault(f"{where}: null", path, None)
        for label, value in wrong_values(known, name):
            yield Fault(f"{where}: {label}", path, value)
        for label, value in RULE_FAULTS.get(str(path[-1]), ()):
            yield Fault(f"{where}: {label}", path, value)
        if name in ("Key", "PutItemInputAttributeMap"):
            yield from _of_items(path, where, name)
        if str(path[-1]) == "ExpressionAttributeValues":
            for label, value in BAD_VALUES:
                yield Fault(f"{where}.:v: {label}", (*path, ":v"), value)


def _of_items(path: Path_, where: str, name: str) -> Iterator[Fault]:
    for attribute in ("p", "s"):
        yield Fault(f"{where}.{attribute}: absent", (*path, attribute), ABSENT)
        for label, value in (*BAD_VALUES, *OF_KEYS):
            yield Fault(f"{where}.{attribute}: {label}", (*path, attribute), value)
    if name == "Key":
        yield Fault(f"{where}.z: too many", (*path, "z"), s("z"))
        return
    for label, value in BAD_VALUES:
        yield Fault(f"{where}.a: {label}", (*path, "a"), value)
    yield Fault(f"{where}.g: of another type", (*path, "g"), n(1))
    yield Fault(f"{where}.l: empty", (*path, "l"), s(""))
    yield Fault(f"{where}.c: large", (*path, "c"), s("c" * 410_000))
    yield Fault(f"{where}.: empty name", (*path, ""), s("a"))


def spoiled(action: str, number: int, chosen: list[Fault]) -> Request:
    """The base with its faults."""
    request = json.loads(json.dumps(BASES_OF[action][number]))  # bases share parts
    for fault in chosen:
        value = fault.value if fault.value is ABSENT else copy.deepcopy(fault.value)
        request = replaced(model_of(action), action, request, fault.path, value)
    return request


def overlaps(one: Path_, other: Path_) -> bool:
    size = min(len(one), len(other))
    return one[:size] == other[:size]


class Case(NamedTuple):
    """A request with its faults."""

    action: str
    number: int
    chosen: tuple[Fault, ...]

    @property
    def request(self) -> Request:
        return spoiled(self.action, self.number, list(self.chosen))

    def __str__(self) -> str:
        labels = " + ".join(fault.label for fault in self.chosen)
        return f"{self.action} #{self.number} {labels}"


def random_case(dice: random.Random, actions: tuple[str, ...], most: int) -> Case:
    """A request of one of the actions, with one to three faults."""
    action = dice.choice(actions)
    number = dice.randrange(len(BASES_OF[action]))
    chosen: list[Fault] = []
    for _ in range(dice.randint(1, most)):
        fault = dice.choice(faults(action, number))
        if not any(overlaps(fault.path, each.path) for each in chosen):
            chosen.append(fault)
    return Case(action, number, tuple(sorted(chosen, key=lambda fault: fault.label)))


class WithTables(Placed):
    """A side with all tables of `prepared_tables`, not `tab` alone."""

    def begin(self) -> None:
        self._histories += 1
        drop_tables(self._side)
        while self._side.ask("ListTables", {})[1].get("TableNames"):  # an index was being changed
            time.sleep(0.02)
            drop_tables(self._side)
        self._names = prepare(self._side.ask, settings=False)


class Sides:
    """Isotone and dynoxide, with the same tables."""

    def __init__(self, ours: Isotone, theirs: Dynoxide, actions: Collection[str]) -> None:
        kind = Placed if OF_ITEMS.keys() >= set(actions) else WithTables
        self.ours, self.theirs = kind(ours), kind(theirs)
        self.begin()

    def begin(self) -> None:
        """Both have the tables of the start again."""
        self.ours.begin()
        self.theirs.begin()

    def ask(self, case: Case) -> tuple[Answer, Answer]:
        """Both answers in the form in which they are compared."""
        try:
            request = case.request
        except (KeyError, IndexError, TypeError, AttributeError):  # a fault took the other's place
            return (200, {}), (200, {})
        ours, theirs = (
            normal(case.action, side.ask(case.action, request)) for side in (self.ours, self.theirs)
        )
        is_changed = 200 in (ours[0], theirs[0]) and case.action not in _READS
        if is_changed or case.action == "UpdateTable":  # dynoxide keeps half of what it refuses
            self.begin()
        return ours, theirs


_READS: Final = (
    *("GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems", "DescribeTable"),
    *("ListTables", "DescribeTimeToLive", "ListTagsOfResource", *OF_STREAMS),
)


def agree(case: Case, ours: Answer, theirs: Answer) -> bool:
    """Whether both gave the same answer, or the difference is explained."""
    if ours[0] == theirs[0] == 200 or ours == theirs:
        return True
    left, right = said(theirs), said(ours)
    if left == right:
        return True
    asked = f"{case.action} {json.dumps(case.request)}"
    return any(_explains(known, asked, left, right) for known in OF_DYNOXIDE)


def _explains(known: Known, asked: str, theirs: str, ours: str) -> bool:
    return bool(
        re.search(known.request, asked)
        and re.fullmatch(known.theirs, theirs, re.S)
        and re.fullmatch(known.ours, ours, re.S)
    )


def smallest(case: Case, sides: Sides) -> Case:
    """The case without the faults that are not needed for the difference."""
    for fault in case.chosen:
        rest = tuple(each for each in case.chosen if each is not fault)
        smaller = case._replace(chosen=rest)
        if rest and not agree(smaller, *sides.ask(smaller)):
            case = smaller
    return case


def look(case: Case, ours: Answer, theirs: Answer) -> str:
    """A difference without what is particular in it."""
    return f"{case.action}: theirs {_short(theirs)} ; ours {_short(ours)}"


def _short(answer: Answer) -> str:
    if answer[0] == 200:
        return "OK"
    text = re.sub(r"'[^']{30,}'|\{.*\}|\d{4,}", "…", str(answer[1]["message"]))
    return f"{answer[1]['code'][:6]} {text[:170]}"


def _groups(actions: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The actions on items, which need one table, and the others."""
    groups = (
        [each for each in actions if (each in OF_ITEMS) is of_items] for of_items in (True, False)
    )
    return (tuple(group) for group in groups if group)


def main(arguments: list[str]) -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.faulty")
    parser.add_argument("count", type=int)
    parser.add_argument("actions", nargs="*", default=list(COMPARED))
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--faults", type=int, default=3)
    parser.add_argument(
        "--shown", type=int, default=3, help="examples of each look of a difference"
    )
    given = parser.parse_args(arguments)
    dice = random.Random(given.seed)
    times: Counter[str] = Counter()
    print("seed", given.seed, flush=True)
    for actions in _groups(given.actions):
        with Isotone() as ours, Dynoxide() as theirs:
            sides = Sides(ours, theirs, actions)
            asked = given.count * len(actions) // len(given.actions)
            for number in range(asked):
                if number % 1000 == 0:
                    progress = f"{number:,} of {asked:,} to {len(actions)} actions, {sum(times.values())} differ"
                    print(progress, file=sys.stderr, flush=True)
                case = random_case(dice, actions, given.faults)
                answers = sides.ask(case)
                if agree(case, *answers):
                    continue
                case = smallest(case, sides)
                answers = sides.ask(case)
                kind = look(case, *answers)
                times[kind] += 1
                if times[kind] == 1:
                    print(kind)
                if times[kind] <= given.shown:
                    theirs_said, ours_said = (said(each)[:600] for each in reversed(answers))
                    print(
                        f"    {case}\n      theirs {theirs_said}\n      ours   {ours_said}",
                        flush=True,
                    )
    for kind, count in times.most_common():
        print(f"{count} × {kind}")
    print(f"{given.count} requests, {sum(times.values())} differ, in {len(times)} ways")
    return int(bool(times))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
