"""Reads the beginning of a key range, and estimates how many items follow, with the least and the most (even spread).

A range that ends within the budget is known exactly. Of a longer one, the position of the last key that was read,
between the first and the last key of the range, tells what share of the range that was: keys are taken as spread
evenly over the times, numbers or characters that they contain.
"""

from __future__ import annotations

import math
import os
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from isotone.advisor.read_plan import ReadPlan
from isotone.expressions.key_planning import KeyTerm, joined
from isotone.expressions.nodes import Between, Comparison, ConditionNode, Literal, Path
from isotone.expressions.nodes import Call as FunctionCall
from isotone.model import Call, Steps
from isotone.tables.pace import units_of
from isotone.values.types import AttributeValue, Item

_PROBE: Final = 100  # items of the first request
_ENDS: Final = 100  # items that are read at the far end of a long range
_MARGIN: Final = 4  # times that the extrapolated number of the items that follow may be wrong
_PLACEHOLDER: Final = re.compile(r"[#:][A-Za-z0-9_]+")
_KEPT: Final = (
    "TableName",
    "IndexName",
    "KeyConditionExpression",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
    "ScanIndexForward",
    "ConsistentRead",
    "ExclusiveStartKey",
)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?")
_ALPHABETS: Final = (
    "0123456789",
    "0123456789abcdef",
    "0123456789ABCDEFGHJKMNPQRSTVWXYZ",  # of ULIDs
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
)
_SEPARATORS: Final = frozenset("#|:/._-T Z")
_DIGITS: Final = 12  # characters of a key that count


class Figure(NamedTuple):
    """A figure, and the least and the most that it can be; `math.inf` if no most is known."""

    low: float
    middle: float
    high: float


class RangeBeginning(NamedTuple):
    """The first items of a range, in the order of reading; whether they are all, or enough; how many the range has."""

    items: list[Item]
    is_all: bool
    total: Figure
    units: float


def read_beginning(
    plan: ReadPlan,
    partition: tuple[AttributeValue, ...],
    pages: int,
    most: float,
    is_enough: Callable[[list[Item]], bool],
) -> Steps[RangeBeginning]:
    """Read a range of one collection: a small request, then up to `pages` whole pages.

    `most` is the number of items of the table or index, `math.inf` if it is not known. Of a plan that fetches, the
    whole items are read.
    """
    request = query_of(plan, partition)
    wanted = limit_of(plan) or math.inf
    found: list[Item] = []
    units = 0.0
    start: dict[str, Any] = {}
    for limit in (_PROBE, *[math.inf] * pages):
        left = min(limit, wanted - len(found))
        more = {} if left == math.inf else {"Limit": int(left)}
        response = yield Call(
            "Query", {**request, **start, **more, "ReturnConsumedCapacity": "TOTAL"}
        )
        found += response["Items"]
        units += units_of(response) or 0.0
        after = response.get("LastEvaluatedKey")
        if after is None or len(found) >= wanted or is_enough(found):
            return RangeBeginning(found, True, Figure(*[len(found)] * 3), units)
        start = {"ExclusiveStartKey": after}
    backward = {name: value for name, value in request.items() if name != "ExclusiveStartKey"}
    backward |= {"ScanIndexForward": not request.get("ScanIndexForward", True), "Limit": _ENDS}
    response = yield Call("Query", {**backward, "ReturnConsumedCapacity": "TOTAL"})
    units += units_of(response) or 0.0
    total = _items_of_range(plan, found, response["Items"], most)
    total = Figure(*(min(each, wanted) for each in total))
    return RangeBeginning(found, False, total, units)


def limit_of(plan: ReadPlan) -> int | None:
    """The most items that a read reads; None if only its results are limited, or nothing is."""
    return plan.limit or (plan.most_results if plan.filter is None else None)


def query_of(plan: ReadPlan, partition: tuple[AttributeValue, ...]) -> dict[str, Any]:
    """A Query of the plan's range in one collection, without its filter and projection."""
    operation, given = plan.request
    if operation == "Query":
        request = {name: given[name] for name in _KEPT if name in given}
        used = set(_PLACEHOLDER.findall(given["KeyConditionExpression"]))
        for member in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
            kept = {name: each for name, each in request.pop(member, {}).items() if name in used}
            request |= {member: kept} if kept else {}
    else:
        nodes: list[ConditionNode] = [
            Comparison("=", Path((name,)), Literal(value))
            for name, value in zip(plan.key.partition_names, partition, strict=True)
        ]
        nodes += [_node(term, plan) for term in (*plan.key_plan.equal, *one_range(plan))]
        request = {
            "TableName": plan.table,
            "KeyConditionExpression": joined(nodes),
            "ScanIndexForward": not plan.backward,
            "ConsistentRead": plan.consistent,
            **({} if plan.index is None else {"IndexName": plan.index}),
        }
    return {**request, "Select": "ALL_ATTRIBUTES"} if plan.fetches else request


def one_range(plan: ReadPlan) -> Sequence[KeyTerm]:
    """The conditions on the sort key as one: a Query takes no more, a statement may have a bound at either side."""
    ranges = plan.key_plan.ranges
    lows = [term for term in ranges if term.operator in (">", ">=")]
    highs = [term for term in ranges if term.operator in ("<", "<=")]
    if lows and highs:
        bounds = (*lows[0].operands, *highs[0].operands)
        return [KeyTerm(lows[0].attribute, "BETWEEN", bounds)]
    return ranges[:1]


def _node(term: KeyTerm, plan: ReadPlan) -> ConditionNode:
    """A condition on the sort key, with its values."""
    path = Path((term.attribute,))
    values = [Literal(value) for value in term.values(plan.values)]
    if term.operator == "BETWEEN":
        return Between(path, values[0], values[1])
    if term.operator == "begins_with":
        return FunctionCall("begins_with", (path, values[0]))
    return Comparison(term.operator, path, values[0])


# How many items follow


def _items_of_range(
    plan: ReadPlan, found: Sequence[Item], end: Sequence[Item], most: float
) -> Figure:
    """The number of items of a range of which the first ones and the last ones are known."""
    known = len(found)
    least = known + 1
    free = plan.key.sort_names[len(plan.key_plan.equal) :]
    share = 0.0
    if free and end:
        name = free[0]
        share = _share([each[name] for each in found], [each[name] for each in end])
    if share:
        rest = max(known / share - known, 1.0)
        expected = (known + rest / _MARGIN, known + rest, known + rest * _MARGIN)
        return Figure(*(min(max(each, least), max(most, least)) for each in expected))
    middle = math.sqrt(known * most) if most < math.inf else 2 * known
    return Figure(least, max(middle, least), max(most, least))


def _share(found: Sequence[AttributeValue], end: Sequence[AttributeValue]) -> float:
    """The share of a range that the first keys cover, by their positions; 0.0 if it cannot be told."""
    ((kind, _),) = found[0].items()
    if kind == "N":
        first, reached, last = (float(each["N"]) for each in (found[0], found[-1], end[0]))
    else:
        texts = [_text(each, kind) for each in (*found, *end)]
        position = _positions(texts)
        first, reached, last = map(position, (texts[0], texts[len(found) - 1], texts[len(found)]))
    whole, covered = last - first, reached - first
    share = covered / whole if whole else 0.0
    return share if 0.0 < share <= 1.0 else 0.0


def _text(value: AttributeValue, kind: str) -> str:
    return value["S"] if kind == "S" else b64decode(value["B"]).decode("latin-1")


def _positions(texts: Sequence[str]) -> Callable[[str], float]:
    """A function that maps keys to numbers in their order, so that evenly spread keys have evenly spread numbers."""
    shared = len(os.path.commonprefix(list(texts)))  # noqa: RUF071 - of texts, not of paths
    dated = _DATE.search(texts[0])
    if dated is not None and dated.start() <= shared and dated.end() > shared:
        start = dated.start()
        if all(_DATE.match(text, start) for text in texts):
            return lambda text: _instant(text, start)
    digits = [
        sorted({text[at] for text in texts if len(text) > at}) for at in _places(texts, shared)
    ]
    values = "".join(char for chars in digits for char in chars if char not in _SEPARATORS)
    alphabet = next((each for each in _ALPHABETS if set(values) <= set(each)), "")

    def position(text: str) -> float:
        total, weight = 0.0, 1.0
        for at, chars in enumerate(digits, shared):
            if alphabet and len(chars) == 1 and chars[0] in _SEPARATORS:
                continue
            base = len(alphabet) if alphabet else ord(chars[-1]) - ord(chars[0]) + 1
            char = text[at] if len(text) > at else ""
            place = (
                alphabet.find(char) if alphabet and char else ord(char or chars[0]) - ord(chars[0])
            )
            weight /= base
            total += max(place, 0) * weight
        return total

    return position


def _places(texts: Sequence[str], shared: int) -> range:
    """The characters after what all keys have in common."""
    return range(shared, min(shared + _DIGITS, max(map(len, texts))))


def _instant(text: str, start: int) -> float:
    found = _DATE.match(text, start)
    assert found is not None
    try:
        return datetime.fromisoformat(found[0]).replace(tzinfo=UTC).timestamp()
    except ValueError:  # no date of the calendar
        return 0.0
