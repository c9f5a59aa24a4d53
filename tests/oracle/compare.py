"""Ask both sides the same and say where they part.

A mismatch is what remains after the normal form (`normal.py`) and the table of known differences
(`known.py`) have been applied.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.oracle.known import excuse
from tests.oracle.normal import canonical, normal
from tests.oracle.scripts import Script, Step
from tests.oracle.sides import Answer, Side, drop_tables

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


def play(script: Script, theirs: Side, ours: Side) -> list[Mismatch]:
    """Run a script on both sides, on fresh tables that are dropped afterwards."""
    try:
        made = [Step("CreateTable", request) for request in script.tables]
        found = [compare(script.name, step, theirs, ours) for step in itertools.chain(made, script)]
        return [mismatch for mismatch in found if mismatch]
    finally:
        drop_tables(theirs)
        drop_tables(ours)


def compare(script: str, step: Step, theirs: Side, ours: Side) -> Mismatch | None:
    """One step on both sides; None where they agree or the difference is known."""
    if step.drain:
        left, right = _drained(step, theirs), _drained(step, ours)
        return None if left == right else Mismatch(script, step, left, right)
    left, right = (
        normal(step.operation, side.ask(step.operation, step.request)) for side in (theirs, ours)
    )
    if isinstance(step.request, dict) and "ReturnConsumedCapacity" not in step.request:
        left[1].pop("ConsumedCapacity", None)  # DynamoDB Local tells it after some deletes, unasked
    if step.real is not None:
        said = f"{right[1].get('code')}: {right[1].get('message')}"
        return None if said == step.real else Mismatch(script, step, step.real, said)
    if left == right or excuse(left, right):
        return None
    return Mismatch(script, step, left, right)


def _drained(step: Step, side: Side) -> dict[str, Any]:
    """All pages of a Query or Scan as one: how many, how long, and the items.

    Items that are equal in an index's key have no order of their own, so they are compared as a set,
    and the order of the sort keys by itself.
    """
    answers = list(_pages(step, side))
    items = [item for _, body in answers for item in body.get("Items", [])]
    pages = [(status, body.get("Count"), body.get("ScannedCount")) for status, body in answers]
    assert isinstance(step.request, dict)
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


def _pages(step: Step, side: Side) -> Iterator[Answer]:
    assert isinstance(step.request, dict)
    request = dict(step.request)
    for _ in range(PAGES):
        status, body = side.ask(step.operation, request)
        yield normal("", (status, body))
        if status != 200 or "LastEvaluatedKey" not in body:
            return
        request["ExclusiveStartKey"] = body["LastEvaluatedKey"]
    raise AssertionError(f"no end after {PAGES} pages: {step}")
