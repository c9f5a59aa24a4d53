"""DynamoDB's expression language: text to tree to function.

    condition("attribute_not_exists(pk)")     ConditionExpression and FilterExpression
    update("SET #c = #c + :one", names)       UpdateExpression
    projection("a, b.c[0]")                   ProjectionExpression
    key_condition("pk = :p AND sk > :s")      KeyConditionExpression
    search_condition("brand = :b")            SearchConditionExpression

Each takes a text and ExpressionAttributeNames, or a tree of `nodes` in which `lift` has replaced literals by
placeholders. It returns a compiled expression, which is cached and applies to any item with any values; call its
`check(values)` first.

A text passes `tokenizer` and `parser`. `rules` has DynamoDB's checks beyond the grammar. `expression` is the base class
of all five kinds, and each kind has its own module. `render` turns trees back into text.
"""

from __future__ import annotations

from isotone.expressions.condition import CompiledCondition, condition
from isotone.expressions.key_condition import KeyCondition, KeyRange, key_condition
from isotone.expressions.nodes import lift
from isotone.expressions.operands import equal
from isotone.expressions.placeholders import check_all_used, check_placeholders, check_scalar_keys
from isotone.expressions.projection import CompiledProjection, projection
from isotone.expressions.render import PlaceholderWriter, Writer, render
from isotone.expressions.search_condition import SearchCondition, search_condition
from isotone.expressions.update import CompiledUpdate, update

__all__ = [
    "CompiledCondition",
    "CompiledProjection",
    "CompiledUpdate",
    "KeyCondition",
    "KeyRange",
    "PlaceholderWriter",
    "SearchCondition",
    "Writer",
    "check_all_used",
    "check_placeholders",
    "check_scalar_keys",
    "condition",
    "equal",
    "key_condition",
    "lift",
    "projection",
    "render",
    "search_condition",
    "update",
]
