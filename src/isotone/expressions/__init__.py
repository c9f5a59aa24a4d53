"""DynamoDB's expression language: text to tree to function.

    condition("attribute_not_exists(pk)")     ConditionExpression and FilterExpression
    update("SET #c = #c + :one", names)       UpdateExpression
    projection("a, b.c[0]")                   ProjectionExpression
    key_condition("pk = :p AND sk > :s")      KeyConditionExpression

Each takes a text and ExpressionAttributeNames and gives an object that is made once, cached, and applied
to any item with any values. Each also takes a tree of `nodes` after `lift` has replaced its literals by
placeholders. `check(values)` comes before everything that takes values. One stage a file: `tokens`, `parser` (to `nodes`),
`names`, `rules`, then `predicate`, `update`, `projection` or `keyrange`; `render` goes back to text.
"""

from __future__ import annotations

from isotone.expressions.keyrange import KeyCondition, KeyRange, key_condition
from isotone.expressions.names import (
    check_all_used,
    check_expressions_given,
    check_placeholders,
    check_scalar_keys,
)
from isotone.expressions.nodes import lift
from isotone.expressions.predicate import Condition, condition
from isotone.expressions.projection import Projection, projection
from isotone.expressions.render import Writer, render
from isotone.expressions.update import Update, update

__all__ = [
    "Condition",
    "KeyCondition",
    "KeyRange",
    "Projection",
    "Update",
    "Writer",
    "check_all_used",
    "check_expressions_given",
    "check_placeholders",
    "check_scalar_keys",
    "condition",
    "key_condition",
    "lift",
    "projection",
    "render",
    "update",
]
