"""Condition and filter expressions: what holds, what fails, what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tests.oracle.corpus.condition_texts import COMPARED, FUNCTIONS, LOGIC, REFUSED, SHAPES
from tests.oracle.corpus.item import ITEM, placeholders
from tests.oracle.scripts import ORDERED, SIMPLE, Script, Step, n, s, step


def _both(texts: list[str]) -> list[Step]:
    """Each text as the condition of a delete that is never done on a absent item, and as a filter."""
    steps = [step("PutItem", TableName="simple", Item=ITEM)]
    for text in texts:
        steps.append(
            step(
                "UpdateItem",
                TableName="simple",
                Key={"p": s("key")},
                ConditionExpression=text,
                **placeholders(text),
            )
        )
        steps.append(step("Scan", TableName="simple", FilterExpression=text, **placeholders(text)))
    return steps


def _writes() -> Iterator[Step]:
    """The same condition on each kind of write, holding and failing, on an item and on none."""
    conditions = [
        "attribute_exists(p)",
        "attribute_not_exists(p)",
        "v > :one",
        "attribute_exists(p) AND v = :one",
    ]
    for text, returned, kept in itertools.product(
        conditions, ("NONE", "ALL_OLD"), ("NONE", "ALL_OLD")
    ):
        values = {"ExpressionAttributeValues": {":one": n(1)}} if ":one" in text else {}
        more = {"ConditionExpression": text, "ReturnValuesOnConditionCheckFailure": kept, **values}
        for item in ({"v": n(1)}, {"v": n(2)}, None):
            key = {"p": s("a"), "s": n(1)}
            if item is None:
                yield step("DeleteItem", TableName="ordered", Key=key)
            else:
                yield step("PutItem", TableName="ordered", Item={**key, **item})
            yield step(
                "UpdateItem",
                TableName="ordered",
                Key=key,
                ReturnValues=returned,
                ReturnConsumedCapacity="TOTAL",
                **more,
            )
            yield step(
                "PutItem",
                TableName="ordered",
                Item={**key, "v": n(2)},
                ReturnValues=returned,
                ReturnConsumedCapacity="TOTAL",
                **more,
            )
            yield step(
                "DeleteItem",
                TableName="ordered",
                Key=key,
                ReturnValues=returned,
                ReturnConsumedCapacity="TOTAL",
                **more,
            )
            yield step("GetItem", TableName="ordered", Key=key)


SCRIPTS = (
    Script("conditions/compared", (SIMPLE,), _both(COMPARED)),
    Script("conditions/functions", (SIMPLE,), _both(FUNCTIONS)),
    Script("conditions/logic", (SIMPLE,), _both(LOGIC)),
    Script("conditions/refused", (SIMPLE,), _both(REFUSED)),
    Script("conditions/shapes", (SIMPLE,), _both(SHAPES)),
    Script("conditions/writes", (ORDERED,), list(_writes())),
)
