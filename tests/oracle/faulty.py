"""Requests with one, two and three faults to Isotone and to dynoxide: the words of both answers must be the same.

    python -m tests.oracle.faulty 100000 [Action…] [--seed N] [--faults N]     print what differs, by its look

dynoxide is the best witness of which fault the service tells first, and in which words. A fault is a change of a valid
request (`bases`): a member gets a value that it may not have, or is left out (the service model knows which), or a rule of
the action is broken (`RULES`). Differences that are explained in `known.py` do not count.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from tests.oracle.faults import ABSENT, BASES, ITEM, KEY, Path_, members, replaced, wrong_values
from tests.oracle.fuzz import Placed
from tests.oracle.known import Known, said
from tests.oracle.known_of_dynoxide import OF_DYNOXIDE
from tests.oracle.normal import normal
from tests.oracle.requests import model_of
from tests.oracle.scripts import Request, n, s
from tests.oracle.sides import Answer, Isotone
from tests.oracle.witnesses import Dynoxide

_VALUES: Final = {"ExpressionAttributeValues": {":v": s("a")}}
_EQ: Final = {"ComparisonOperator": "EQ", "AttributeValueList": [s("a")]}
_OTHER: Final = {"p": s("b"), "s": n(1)}


class Fault(NamedTuple):
    """A change of a request: the value of the member at a path."""

    label: str
    path: Path_
    value: Any


def nested(levels: int, kind: str = "L") -> Request:
    """A value so many levels deep."""
    value = s("a")
    for _ in range(levels - 1):
        value = {"L": [value]} if kind == "L" else {"M": {"m": value}}
    return value


BASES_OF: Final[dict[str, tuple[Request, ...]]] = {
    "PutItem": (
        BASES["PutItem"],
        {**BASES["PutItem"], "ConditionExpression": "attribute_not_exists(zz)"},
        {**BASES["PutItem"], "Expected": {"zz": {"Exists": False}}},
    ),
    "DeleteItem": (
        BASES["DeleteItem"],
        {**BASES["DeleteItem"], "ConditionExpression": "zz <> :v", **_VALUES},
        {**BASES["DeleteItem"], "Expected": {"zz": {"Exists": False}}},
    ),
    "UpdateItem": (
        BASES["UpdateItem"],
        {**BASES["UpdateItem"], "ConditionExpression": "zz <> :v"},
        {
            "TableName": "tab",
            "Key": KEY,
            "AttributeUpdates": {"y": {"Action": "PUT", "Value": s("a")}},
            "Expected": {"zz": {"Exists": False}},
        },
        {"TableName": "tab", "Key": KEY},
    ),
    "GetItem": (
        BASES["GetItem"],
        {**BASES["GetItem"], "ProjectionExpression": "x"},
        {**BASES["GetItem"], "AttributesToGet": ["x"]},
    ),
    "Query": (
        BASES["Query"],
        {**BASES["Query"], "FilterExpression": "x = :v", "ProjectionExpression": "x"},
        {
            "TableName": "tab",
            "KeyConditions": {"p": _EQ},
            "QueryFilter": {"x": _EQ},
            "AttributesToGet": ["x"],
        },
        {
            "TableName": "tab",
            "IndexName": "g-all",
            "KeyConditionExpression": "g = :v AND r = :n",
            "ExpressionAttributeValues": {":v": s("g"), ":n": n(1)},
        },
    ),
    "Scan": (
        BASES["Scan"],
        {"TableName": "tab", "FilterExpression": "x = :v", **_VALUES, "ProjectionExpression": "x"},
        {"TableName": "tab", "ScanFilter": {"x": _EQ}, "AttributesToGet": ["x"]},
        {"TableName": "tab", "Segment": 0, "TotalSegments": 1},
    ),
    "BatchGetItem": (
        BASES["BatchGetItem"],
        {"RequestItems": {"tab": {"Keys": [KEY, _OTHER], "ProjectionExpression": "x"}}},
        {"RequestItems": {"tab": {"Keys": [_OTHER, KEY], "AttributesToGet": ["x"]}}},
    ),
    "BatchWriteItem": (
        BASES["BatchWriteItem"],
        {
            "RequestItems": {
                "tab": [{"PutRequest": {"Item": ITEM}}, {"DeleteRequest": {"Key": _OTHER}}]
            }
        },
    ),
    "TransactGetItems": (
        BASES["TransactGetItems"],
        {
            "TransactItems": [
                {"Get": {"TableName": "tab", "Key": KEY, "ProjectionExpression": "x"}},
                {"Get": {"TableName": "tab", "Key": _OTHER}},
            ]
        },
    ),
    "TransactWriteItems": (
        BASES["TransactWriteItems"],
        {
            "TransactItems": [
                {
                    "Update": {
                        "TableName": "tab",
                        "Key": KEY,
                        "UpdateExpression": "SET y = :v",
                        **_VALUES,
                    }
                },
                {
                    "ConditionCheck": {
                        "TableName": "tab",
                        "Key": _OTHER,
                        "ConditionExpression": "attribute_not_exists(zz)",
                    }
                },
            ],
            "ClientRequestToken": "token",
        },
    ),
    "CreateTable": (BASES["CreateTable"],),
    "SearchVectors": (
        {
            "TableName": "tab",
            "IndexName": "vec",
            "SearchVector": [{"N": "1"}, {"N": "2"}],
            "TopK": 3,
        },
    ),
}
"""More valid requests of an action than one: with expressions, with legacy parameters, with several entries."""


COMPARED: Final = tuple(BASES_OF)[:-2]
"""The actions in which dynoxide checks what the service model says."""


def bases(action: str) -> tuple[Request, ...]:
    """The valid requests of an action."""
    return BASES_OF.get(action) or (BASES[action],)


BAD_VALUES: Final[tuple[tuple[str, Any], ...]] = (
    ("empty value", {}),
    ("two types", {"S": "a", "N": "1"}),
    ("unknown type", {"X": "a"}),
    ("no number", {"N": "x"}),
    ("empty number", {"N": ""}),
    ("overflow", {"N": "1e126"}),
    ("zero overflow", {"N": "0e126"}),
    ("underflow", {"N": "1e-131"}),
    ("zero underflow", {"N": "0e-131"}),
    ("far overflow", {"N": "1e99999999999"}),
    ("far underflow", {"N": "1e-99999999999"}),
    ("int overflow", {"N": "1e2147483647"}),
    ("int overflow by one", {"N": "1e2147483648"}),
    ("int underflow", {"N": "-1e-2147483649"}),
    ("39 digits", {"N": "1" * 39}),
    ("empty set of texts", {"SS": []}),
    ("empty set of numbers", {"NS": []}),
    ("empty set of binaries", {"BS": []}),
    ("empty text in a set", {"SS": [""]}),
    ("duplicates", {"SS": ["b", "a", "b"]}),
    ("duplicate numbers", {"NS": ["2", "1.0", "1"]}),
    ("duplicate binaries", {"BS": ["AQ==", "AA==", "AQ=="]}),
    ("no number in a set", {"NS": ["1", "x"]}),
    ("null is false", {"NULL": False}),
    ("33 levels", nested(33)),
    ("34 levels", nested(34)),
    ("63 levels", nested(63)),
    ("64 levels", nested(64)),
    ("100 levels", nested(100)),
    ("40 levels of maps", nested(40, "M")),
    ("bad inside", {"L": [{"M": {"m": {"N": "x"}}}]}),
    ("empty inside", {"M": {"m": {"L": [{}]}}}),
    ("empty name inside", {"M": {"": s("a")}}),
    ("text for a list", {"L": "a"}),
    ("number for a text", {"S": 1}),
    ("no base64", {"B": "!"}),
)
OF_KEYS: Final[tuple[tuple[str, Any], ...]] = (
    ("of another type", n(1)),
    ("empty", s("")),
    ("a list", {"L": []}),
    ("long", s("k" * 3000)),
)
_CONDITION: Final = (
    ("syntax", "a ="),
    ("undefined value", "a = :u"),
    ("undefined name", "#u = a"),
    ("reserved", "attribute_exists(size)"),
    ("function", "foo(a)"),
    ("false", "attribute_exists(zz)"),
    ("operand", "begins_with(a, :num)"),
    ("empty", ""),
    ("redundant parentheses", "((a = a))"),
    ("long", f"a = :v OR {'x' * 4100} = :v"),
)
_PROJECTION: Final = (
    ("syntax", "a,"),
    ("overlap", "a, a.b"),
    ("undefined name", "#u"),
    ("reserved", "size"),
    ("empty", ""),
)
_UPDATE: Final = (
    ("syntax", "SET y ="),
    ("of the key", "SET s = :v"),
    ("of an index key", "SET r = :v"),
    ("path", "SET zz.y = :v"),
    ("operand", "SET x = x + :v"),
    ("undefined value", "SET y = :u"),
    ("overlap", "SET y = :v, y.z = :v"),
    ("twice", "SET y = :v SET z = :v"),
    ("empty", ""),
)
_KEY_CONDITION: Final = (
    ("syntax", "p ="),
    ("undefined value", "p = :u"),
    ("of others", "p = :v AND a = :v"),
    ("no partition", "s = :v"),
    ("two on the sort key", "p = :v AND s > :v AND s < :v"),
    ("three", "p = :v AND s = :v AND a = :v AND b = :v"),
    ("or", "p = :v OR s = :v"),
    ("unequal", "p > :v"),
    ("begins with", "p = :v AND begins_with(s, :num)"),
    ("of the type", "p = :num"),
)
_CHOICES: Final = ("COUNT", "SPECIFIC_ATTRIBUTES", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES")
_EXPECTED: Final = (
    ("exists without value", {"a": {"Exists": True}}),
    ("operator", {"a": {"ComparisonOperator": "XX"}}),
    ("arguments", {"a": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [n(1)]}}),
    ("types", {"a": {"ComparisonOperator": "LT", "AttributeValueList": [{"SS": ["a"]}]}}),
    ("both", {"a": {"Exists": False, "Value": n(1)}}),
    ("false", {"x": {"Exists": False}}),
    ("bad value", {"a": {"Value": {"N": "x"}}}),
    ("100 levels", {"a": {"Value": nested(100)}}),
)
_START: Final = (
    ("short", {"p": s("a")}),
    ("no number", {"p": s("a"), "s": {"N": "x"}}),
    ("of another type", {"p": s("a"), "s": s("a")}),
    ("outside", {"p": s("b"), "s": n(1)}),
    ("valid", KEY),
)
_NAMES: Final = (
    ("unused", {"#z": "z"}),
    ("malformed", {"z": "z"}),
    ("empty name", {"#z": ""}),
    ("none", {}),
)
_VALUE_SETS: Final = (
    ("unused", {":z": s("z")}),
    ("malformed", {"z": s("z")}),
    ("number", {":num": n(1), ":v": s("a")}),
    ("none", {}),
)

EXPRESSIONS: Final[dict[str, tuple[tuple[str, Any], ...]]] = {
    "ConditionExpression": _CONDITION,
    "FilterExpression": _CONDITION,
    "ProjectionExpression": _PROJECTION,
    "UpdateExpression": _UPDATE,
    "KeyConditionExpression": _KEY_CONDITION,
    "ExpressionAttributeNames": _NAMES,
    "ExpressionAttributeValues": _VALUE_SETS,
    "Expected": _EXPECTED,
    "ScanFilter": _EXPECTED[1:4],
    "QueryFilter": _EXPECTED[1:4],
    "KeyConditions": (*_EXPECTED[1:4], ("none", {}), ("of others", {"a": _EQ})),
    "ExclusiveStartKey": _START,
    "Select": tuple((each, each) for each in _CHOICES),
    "ConditionalOperator": (("XOR", "XOR"), ("or", "OR"), ("empty", "")),
    "AttributesToGet": (("repeated", ["a", "a"]), ("one", ["a"]), ("empty name", [""])),
    "IndexName": (("absent", "absent"), ("short", "ab"), ("empty", "")),
    "TableName": (("absent", "absent"), ("arn", "arn:aws:dynamodb:us-east-1:1:table/x")),
    "ReturnValues": (("all new", "ALL_NEW"), ("all old", "ALL_OLD"), ("updated", "UPDATED_NEW")),
    "ConsistentRead": (("yes", True),),
    "Segment": (("five", 5), ("none", 0)),
    "TotalSegments": (("two", 2),),
    "ClientRequestToken": (("long", "t" * 37), ("empty", "")),
    "AttributeUpdates": (
        ("add a text", {"y": {"Action": "ADD", "Value": s("a")}}),
        ("put nothing", {"y": {"Action": "PUT"}}),
        ("of the key", {"s": {"Action": "PUT", "Value": n(2)}}),
        ("bad value", {"y": {"Action": "PUT", "Value": {"N": "x"}}}),
        ("100 levels", {"y": {"Action": "PUT", "Value": nested(100)}}),
        ("none", {}),
    ),
}
"""Values that break a rule of an action, by the member that has them."""


@cache
def faults(action: str, number: int) -> tuple[Fault, ...]:
    """All faults of one of the bases of an action."""
    return tuple(_faults(action, bases(action)[number]))


def _faults(action: str, base: Request) -> Iterator[Fault]:
    known = model_of(action)
    for path, name in members(known, action, base):
        where = ".".join(map(str, path))
        yield Fault(f"{where}: absent", path, ABSENT)
        yield Fault(f"{where}: null", path, None)
        for label, value in wrong_values(known, name):
            yield Fault(f"{where}: {label}", path, value)
        for label, value in EXPRESSIONS.get(str(path[-1]), ()):
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
    request = json.loads(json.dumps(bases(action)[number]))  # bases share parts
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
    number = dice.randrange(len(bases(action)))
    chosen: list[Fault] = []
    for _ in range(dice.randint(1, most)):
        fault = dice.choice(faults(action, number))
        if not any(overlaps(fault.path, each.path) for each in chosen):
            chosen.append(fault)
    return Case(action, number, tuple(sorted(chosen, key=lambda fault: fault.label)))


class Sides:
    """Isotone and dynoxide, with the same tables."""

    def __init__(self, ours: Isotone, theirs: Dynoxide) -> None:
        self.ours, self.theirs = Placed(ours), Placed(theirs)
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
        if 200 in (ours[0], theirs[0]) and case.action not in _READS:
            self.begin()
        return ours, theirs


_READS: Final = ("GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems", "DescribeTable")


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
    found: dict[str, list[str]] = defaultdict(list)
    times: Counter[str] = Counter()
    print("seed", given.seed, flush=True)
    with Isotone() as ours, Dynoxide() as theirs:
        sides = Sides(ours, theirs)
        for _ in range(given.count):
            case = random_case(dice, tuple(given.actions), given.faults)
            answers = sides.ask(case)
            if agree(case, *answers):
                continue
            case = smallest(case, sides)
            answers = sides.ask(case)
            kind = look(case, *answers)
            times[kind] += 1
            if len(found[kind]) < given.shown and str(case) not in "".join(found[kind]):
                ours_said, theirs_said = (said(each)[:600] for each in answers)
                found[kind].append(f"{case}\n      theirs {theirs_said}\n      ours   {ours_said}")
    for kind, count in times.most_common():
        print(f"{count} × {kind}")
        for each in found[kind]:
            print(f"    {each}")
    print(f"{given.count} requests, {sum(times.values())} differ, in {len(times)} ways")
    return int(bool(times))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
