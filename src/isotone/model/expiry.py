"""Expired items: reads skip them, and writes treat them as missing.

DynamoDB may take two days to delete an item after the time in its TimeToLive attribute. Queries, gets, counts
and conditions of writes use the rules of this module, so an entity disappears at that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.expressions import nodes
from isotone.values.types import AttributeValue, Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema


def has_expired(expiry: AttributeValue | None, now: float) -> bool:
    """Whether an item with this value in its TimeToLive attribute has expired."""
    return expiry is not None and "N" in expiry and float(expiry["N"]) <= now


def is_missing(schema: EntitySchema, item: Item | None, now: float) -> bool:
    """Whether the item does not exist, or has expired."""
    if item is None:
        return True
    if "expires" not in schema.by_role:
        return False
    return has_expired(item.get(schema.by_role["expires"].attribute), now)


# As conditions


def expired(attribute: str, now: float) -> nodes.ConditionNode:
    """The attribute holds a time in the past."""
    path = nodes.Path((attribute,))
    return nodes.Comparison("<=", path, nodes.Literal({"N": str(int(now))}))


def unexpired(attribute: str, now: float) -> nodes.ConditionNode:
    """The item has not expired: also true without the attribute, or if it is NULL."""
    return nodes.Not(expired(attribute, now))


def alive(schema: EntitySchema, now: float) -> nodes.ConditionNode | None:
    """The stored item, if any, has not expired; None if the entity never expires."""
    if "expires" not in schema.by_role:
        return None
    return unexpired(schema.by_role["expires"].attribute, now)


def or_expired(
    schema: EntitySchema, condition: nodes.ConditionNode, now: float
) -> nodes.ConditionNode:
    """The condition is true, or the stored item has expired."""
    if "expires" not in schema.by_role:
        return condition
    return nodes.Or((condition, expired(schema.by_role["expires"].attribute, now)))
