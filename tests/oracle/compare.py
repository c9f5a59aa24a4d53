"""Ask both sides the same and say where they part.

A mismatch is what remains after the normal form (`normalized_answers.py`) and the table of known differences
(`known_differences.py`) have been applied.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.oracle.endpoints import Answer, RawApi, drop_tables
from tests.oracle.known_differences import excuse, is_own_words
from tests.oracle.normalized_answers import canonical, normal
from tests.oracle.scripts import Script, Step

SETTLING = 20.0  # seconds that DynamoDB Local may take to fill or drop an index
PAGES = 500  # a drain that has not ended after so many pages never will


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One request on which the two sides differ and nobody knows why."""

    script: str
    step: Step
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        request = self.step.request
        shown = (
            request.decode(errors="replace") if isinstance(request, bytes) else canonical(request)
        )
        return (
            f"[{self.script}] {self.step.operation}{' (drained)' if self.step.drain else ''}\n"
            f"  request {shown[:1500]}\n"
            f"  theirs  {canonical(self.theirs)[:1500]}\n"
            f"  ours    {canonical(self.ours)[:1500]}\n"
        )


def play(script: Script, theirs: RawApi, ours: RawApi) -> list[Mismatch]:
    """Run a script on both sides, on fresh tables that are dropped afterwards."""
    try:
        made = [Step("CreateTable", request) for request in script.tables]
        found = [compare(script.name, step, theirs, ours) for step in itertools.chain(made, script)]
        return [mismatch for mismatch in found if mismatch]
    finally:
        drop_tables(theirs)
        drop_tables(ours)


def compare(script: str, step: Step, theirs: RawApi, ours: RawApi) -> Mismatch | None:
    """One step on both sides; None where they agree or the difference is known."""
    if step.drain:
        left, right = _drained(step, theirs), _drained(step, ours)
        return None if left == right else Mismatch(script, step, left, right)
    left, right = (normal(step.operation, _answer(side, step)) for side in (theirs, ours))
    if isinstance(step.request, dict) and "ReturnConsumedCapacity" not in step.request:
        left[1].pop("ConsumedCapacity", None)  # DynamoDB Local tells it after some deletes, unasked
    if _is_at_its_bound(step, left, right):
        right[1].pop("LastEvaluatedKey")
    if _shows_more(step, left, right):
        return None
    if _is_unordered(step):
        left, right = (_without_order(answer) for answer in (left, right))
    if step.real is not None:
        said = f"{right[1].get('code')}: {right[1].get('message')}"
        return None if said == step.real else Mismatch(script, step, step.real, said)
    asked = f"{step.operation} {step.request}".replace("'", '"')
    if is_own_words(step.operation, left, right) or all(
        one == other or excuse(one, other, asked) for one, other in pairs(left, right)
    ):
        return None
    return Mismatch(script, step, left, right)


def pairs(left: Answer, right: Answer) -> list[tuple[Answer, Answer]]:
    """Both answers; of a batch of statements, those to each."""
    lists = [body.get("Responses") if status == 200 else None for status, body in (left, right)]
    if not all(isinstance(each, list) for each in lists) or len(lists[0]) != len(lists[1]):
        return [(left, right)]
    return [(_of_statement(one), _of_statement(other)) for one, other in zip(*lists, strict=True)]


def _of_statement(response: dict[str, Any]) -> Answer:
    """The answer to one statement of a batch, as if it had been alone."""
    if "Error" not in response:
        return 200, response
    error = response["Error"]
    code = error["Code"].replace("ValidationError", "ValidationException")
    rest = {name: member for name, member in error.items() if name not in ("Code", "Message")}
    return 400, {**rest, "code": code, "message": error["Message"]}


def _answer(side: RawApi, step: Step) -> Answer:
    """One answer; after UpdateTable only when the table's indexes have settled."""
    answer = side.ask(step.operation, step.request)
    if step.operation == "UpdateTable" and answer[0] == 200 and isinstance(step.request, dict):
        deadline = time.monotonic() + SETTLING
        while _is_settling(side, step.request["TableName"]) and time.monotonic() < deadline:
            time.sleep(0.05)
    return answer


def _is_settling(side: RawApi, table: str) -> bool:
    described = side.ask("DescribeTable", {"TableName": table})[1].get("Table", {})
    indexes = described.get("GlobalSecondaryIndexes", [])
    return any(index.get("IndexStatus") != "ACTIVE" for index in indexes)


def _is_at_its_bound(step: Step, left: Answer, right: Answer) -> bool:
    """Whether a page is full and has the last key of its range, which DynamoDB Local takes for the end.

    In the service a full page has a LastEvaluatedKey.
    """
    request = step.request
    return (
        step.operation == "Query"
        and isinstance(request, dict)
        and re.search("BETWEEN|<=|>=", str(request.get("KeyConditionExpression"))) is not None
        and "LastEvaluatedKey" not in left[1]
        and "LastEvaluatedKey" in right[1]
        and right[1].get("ScannedCount") == request.get("Limit")
    )


def _shows_more(step: Step, left: Answer, right: Answer) -> bool:
    """Whether DynamoDB Local returns more than what an update changed: the whole attribute of a path.

    The service returns what is at the path only: https://github.com/ExtendDB/extenddb/issues/98
    """
    request = step.request
    return (
        step.operation == "UpdateItem"
        and isinstance(request, dict)
        and str(request.get("ReturnValues")).startswith("UPDATED")
        and re.search(r"\w(\.\w+|\[\d+\])", str(request.get("UpdateExpression"))) is not None
        and (left[0], right[0]) == (200, 200)
        and _is_within(right[1], left[1])
    )


def _is_within(part: Any, whole: Any) -> bool:
    """Whether every member of a structure, and an element for each of a list, is in the other."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and _is_within(part[name], whole[name]) for name in part)
    if isinstance(part, list) and isinstance(whole, list):
        return all(any(_is_within(each, other) for other in whole) for each in part)
    return bool(part == whole)


def _is_unordered(step: Step) -> bool:
    """Whether items may come in any order: ties of an index, the rest of a Scan, a SELECT without ORDER BY."""
    request = step.request
    if not isinstance(request, dict):
        return False
    if step.operation == "ExecuteStatement":
        return "ORDER BY" not in str(request.get("Statement"))
    return (step.operation == "Query" and "IndexName" in request) or (
        step.operation == "Scan" and "ExclusiveStartKey" in request
    )


def _without_order(answer: Answer) -> Answer:
    """An answer of which only what does not depend on the order is left."""
    status, body = answer
    if "Items" not in body:
        return answer
    rest = {
        name: member for name, member in body.items() if name not in ("Items", "LastEvaluatedKey")
    }
    if "LastEvaluatedKey" in body:
        return status, {"ScannedCount": rest.get("ScannedCount")}
    return status, {**rest, "Items": sorted(canonical(item) for item in body["Items"])}


def _drained(step: Step, side: RawApi) -> dict[str, Any]:
    """All pages of a Query or Scan as one: how many, how long, and the items.

    Items that are equal in an index's key have no order of their own, so they are compared as a set,
    and the order of the sort keys by itself.
    """
    answers = list(_pages(step, side))
    items = [item for _, body in answers for item in body.get("Items", [])]
    assert isinstance(step.request, dict)
    ties = "IndexName" in step.request and "FilterExpression" in step.request
    counted = "ScannedCount" if ties else "Count"
    pages = [(status, body.get(counted), body.get("ScannedCount")) for status, body in answers]
    scan = step.operation == "Scan"
    orders = [] if scan else [[item.get(name) for item in items] for name in ("s", "r", "l")]
    order = (
        orders[{"g": 1, "l": 2}.get(step.request.get("IndexName", "p")[0], 0)] if orders else None
    )
    return {
        "pages": len(pages) if scan else pages,
        "order": order,
        "items": sorted(canonical(item) for item in items),
    }


def _pages(step: Step, side: RawApi) -> Iterator[Answer]:
    assert isinstance(step.request, dict)
    request = dict(step.request)
    for _ in range(PAGES):
        status, body = side.ask(step.operation, request)
        yield normal("", (status, body))
        if status != 200 or "LastEvaluatedKey" not in body:
            return
        request["ExclusiveStartKey"] = body["LastEvaluatedKey"]
    raise AssertionError(f"no end after {PAGES} pages: {step}")
