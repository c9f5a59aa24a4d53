"""Requests with two faults that only the rules of their action can find: which of the two is told?

    python -m tests.oracle.fault_pairs [Action…]     where no witness tells the fault that Isotone tells

`faults.py` has the pairs that the service model refuses. A fault is a change of the valid request of `faults.BASES`.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, Final

from tests.oracle.endpoints import Answer
from tests.oracle.faults import ABSENT, BASES, ITEM, KEY, Prepared
from tests.oracle.known_differences import COUNT, excuse
from tests.oracle.normalized_answers import normal
from tests.oracle.scripts import Request, n, s
from tests.oracle.witnesses import shown, witnesses

Fault = tuple[str, Request]

_TABLE: Final[Fault] = ("absent table", {"TableName": "absent"})
_NAMES: Final[Fault] = ("unused name", {"ExpressionAttributeNames": {"#z": "z"}})
_VALUES: Final[Fault] = ("unused value", {"ExpressionAttributeValues": {":z": s("z")}})
_BAD_VALUE: Final[Fault] = ("no number", {"ExpressionAttributeValues": {":n": {"N": "x"}}})
_IN_KEY: Final[tuple[Fault, ...]] = (
    ("short key", {"Key": {"s": ABSENT}}),
    ("long key", {"Key": {"z": s("z")}}),
    ("key of a type", {"Key": {"p": n(1)}}),
    ("empty key", {"Key": {"p": s("")}}),
    ("key no number", {"Key": {"s": {"N": "x"}}}),
)
_CONDITIONS: Final[tuple[Fault, ...]] = (
    ("syntax", {"ConditionExpression": "a ="}),
    ("undefined value", {"ConditionExpression": "a = :u"}),
    ("undefined name", {"ConditionExpression": "#u = a"}),
    ("reserved", {"ConditionExpression": "attribute_exists(size)"}),
    ("function", {"ConditionExpression": "foo(a)"}),
    ("false", {"ConditionExpression": "attribute_exists(zz)"}),
    ("legacy", {"Expected": {"a": {"Exists": True}}}),
)
_ON_PUT: Final[tuple[Fault, ...]] = (
    ("short item", {"Item": {"s": ABSENT}}),
    ("key of a type", {"Item": {"p": n(1)}}),
    ("empty key", {"Item": {"p": s("")}}),
    ("index key of a type", {"Item": {"g": n(1)}}),
    ("empty index key", {"Item": {"l": s("")}}),
    ("no number", {"Item": {"a": {"N": "x"}}}),
    ("duplicates", {"Item": {"b": {"SS": ["a", "a"]}}}),
    ("large", {"Item": {"c": s("c" * 410_000)}}),
)
_PROJECTIONS: Final[tuple[Fault, ...]] = (
    ("projection", {"ProjectionExpression": "a,"}),
    ("overlap", {"ProjectionExpression": "a, a.b"}),
    ("projection name", {"ProjectionExpression": "#u"}),
    ("legacy names", {"AttributesToGet": ["a", "a"]}),
)
_FILTERS: Final[tuple[Fault, ...]] = (
    ("filter", {"FilterExpression": "a ="}),
    ("filter value", {"FilterExpression": "a = :u"}),
    ("filter reserved", {"FilterExpression": "attribute_exists(size)"}),
    ("index", {"IndexName": "absent"}),
    ("count", {"Select": "COUNT", "ProjectionExpression": "a"}),
    ("specific", {"Select": "SPECIFIC_ATTRIBUTES"}),
    ("start", {"ExclusiveStartKey": {"p": s("a")}}),
    ("start no number", {"ExclusiveStartKey": {"p": s("a"), "s": {"N": "x"}}}),
)

RULES: Final[Mapping[str, tuple[Fault, ...]]] = {
    "PutItem": (
        *(_TABLE, _NAMES, _VALUES, _BAD_VALUE, *_CONDITIONS, *_ON_PUT),
        ("returned", {"ReturnValues": "ALL_NEW"}),
    ),
    "DeleteItem": (
        *(_TABLE, _NAMES, _VALUES, _BAD_VALUE, *_CONDITIONS, *_IN_KEY),
        ("returned", {"ReturnValues": "ALL_NEW"}),
    ),
    "UpdateItem": (
        *(_TABLE, _NAMES, _VALUES, _BAD_VALUE, *_CONDITIONS, *_IN_KEY),
        ("update", {"UpdateExpression": "SET y ="}),
        ("of the key", {"UpdateExpression": "SET s = :v"}),
        ("of an index key", {"UpdateExpression": "SET r = :v"}),
        ("path", {"UpdateExpression": "SET zz.y = :v"}),
        ("operand", {"UpdateExpression": "SET x = x + :v"}),
    ),
    "GetItem": (_TABLE, _NAMES, *_IN_KEY, *_PROJECTIONS),
    "Query": (
        *(_TABLE, _NAMES, _VALUES, _BAD_VALUE, *_FILTERS, *_PROJECTIONS),
        ("condition", {"KeyConditionExpression": "p ="}),
        ("condition value", {"KeyConditionExpression": "p = :u"}),
        ("condition of others", {"KeyConditionExpression": "p = :v AND a = :v"}),
        ("no partition", {"KeyConditionExpression": "s = :v"}),
        ("type", {"ExpressionAttributeValues": {":v": n(1)}}),
        ("filter of the key", {"FilterExpression": "s = :v"}),
    ),
    "Scan": (
        *(_TABLE, _NAMES, _VALUES, _BAD_VALUE, *_FILTERS, *_PROJECTIONS),
        ("segment", {"Segment": 5, "TotalSegments": 2}),
        ("segment alone", {"Segment": 0}),
    ),
}
_TRANSACTED: Final = {
    "Put": [*_CONDITIONS[:-1], *_ON_PUT, _TABLE, _NAMES, _VALUES],
    "Delete": [*_CONDITIONS[:-1], *_IN_KEY, _TABLE, _NAMES, _VALUES],
}


def changed(request: Any, change: Any) -> Any:
    """The request with a change: members are replaced, or left out; structures are changed inside."""
    if not isinstance(request, dict) or not isinstance(change, dict) or _is_value(change):
        return copy.deepcopy(change)
    result = copy.deepcopy(request)
    for name, value in change.items():
        if value is ABSENT:
            result.pop(name, None)
        elif name in result:
            result[name] = changed(result[name], value)
        else:
            result[name] = copy.deepcopy(value)
    return result


def _is_value(change: Request) -> bool:
    """Whether this is an attribute value."""
    return len(change) == 1 and not change.keys().isdisjoint(("S", "N", "SS"))


def pairs(action: str) -> Iterator[tuple[str, Request]]:
    """The requests of an action with two faults of `RULES` that do not replace each other."""
    if action == "TransactWriteItems":
        yield from _transactions()
        return
    if action in ("BatchGetItem", "BatchWriteItem"):
        yield from _batches(action)
        return
    for (label, change), (other, more) in combinations(RULES[action], 2):
        if not _is_same_place(change, more):
            yield f"{label} + {other}", changed(changed(BASES[action], change), more)


def _is_same_place(one: Any, other: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(other, dict) or _is_value(one):
        return True
    return any(name in other and _is_same_place(one[name], other[name]) for name in one)


def _transactions() -> Iterator[tuple[str, Request]]:
    """One fault in each of two entries."""
    put = {"TableName": "tab", "Item": ITEM}
    delete = {"TableName": "tab", "Key": {**KEY, "s": n(2)}}
    for label, change in _TRANSACTED["Put"]:
        for other, more in _TRANSACTED["Delete"]:
            entries = [{"Put": changed(put, change)}, {"Delete": changed(delete, more)}]
            yield f"{label} + {other}", {"TransactItems": entries}
            yield f"{other} + {label}", {"TransactItems": entries[::-1]}


def _batches(action: str) -> Iterator[tuple[str, Request]]:
    """One fault in each of two entries of a table, or of a table that is and one that is absent."""
    faults = [each for each in _IN_KEY if action == "BatchGetItem"] or list(_ON_PUT)
    member = "Key" if action == "BatchGetItem" else "Item"
    valid = KEY if action == "BatchGetItem" else ITEM
    entries = [(label, changed(valid, change[member])) for label, change in faults]
    entries += [("valid", valid), ("valid", {**valid, "s": n(2)})]
    for (label, one), (other, another) in combinations(entries, 2):
        for tables in (("tab", "tab"), ("tab", "absent"), ("absent", "tab")):
            requested: dict[str, list[Request]] = {}
            for table, entry in zip(tables, (one, another), strict=True):
                requested.setdefault(table, []).append(entry)
            if action == "BatchGetItem":
                items: Any = {table: {"Keys": keys} for table, keys in requested.items()}
            else:
                items = {
                    table: [{"PutRequest": {"Item": item}} for item in of_table]
                    for table, of_table in requested.items()
                }
            yield f"{tables[0]} {label} + {tables[1]} {other}", {"RequestItems": items}


ACTIONS: Final = (*RULES, "BatchGetItem", "BatchWriteItem", "TransactWriteItems")


def same(action: str, request: Request, ours: Answer, theirs: Answer) -> bool:
    """Whether both tell the same fault; known differences of wording do not count."""
    left, right = normal(action, theirs), normal(action, ours)
    if left[1].get("message") == str(right[1].get("message")).replace(COUNT, "", 1):
        return True
    asked = f"{action} {json.dumps(request)}"
    return left == right or excuse(left, right, asked) is not None


def main(arguments: list[str]) -> int:
    """The command line of this file."""
    with witnesses() as sides:
        for action in arguments or ACTIONS:
            asked = differing = 0
            for label, request in pairs(action):
                for side in sides.values():
                    Prepared(side)
                answers = {name: side.ask(action, request) for name, side in sides.items()}
                asked += 1
                ours = answers.pop("isotone")
                if not any(same(action, request, ours, other) for other in answers.values()):
                    differing += 1
                    print(f"{action} {label}\n    isotone  {shown(ours)[:400]}")
                    for name, answer in answers.items():
                        print(f"    {name:8} {shown(answer)[:400]}")
            print(f"{action}: {asked} requests, {differing} of which no witness answers as we do\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
