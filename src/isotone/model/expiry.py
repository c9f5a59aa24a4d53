"""Expired items (TimeToLive): reads skip them, and writes treat them as missing, before DynamoDB deletes them.

DynamoDB may delete an item up to two days after the time in its TimeToLive attribute. Queries, gets, counts and write
conditions follow this module's rules, so an entity disappears at that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.expressions import nodes
from isotone.values.types import AttributeValue, Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema


def has_expired(expiry: AttributeValue | None, now: float) -> bool:
    """Whether an item with this TimeToLive value has expired."""
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
    """The condition that the attribute is a time in the past."""
    path = nodes.Path((attribute,))
    return nodes.Comparison("<=", path, nodes.Literal({"N": str(int(now))}))


def unexpired(attribute: str, now: float) -> nodes.ConditionNode:
    """The condition that the item has not expired; also true if the attribute is missing or NULL."""
    return nodes.Not(expired(attribute, now))


def alive(schema: EntitySchema, now: float) -> nodes.ConditionNode | None:
    """The condition that the stored item, if there is one, has not expired; None if the entity never expires."""
    if "expires" not in schema.by_role:
        return None
    return unexpired(schema.by_role["expires"].attribute, now)


def or_expired(
    schema: EntitySchema, condition: nodes.ConditionNode, now: float
) -> nodes.ConditionNode:
    """The condition, or that the stored item has expired."""
    if "expires" not in schema.by_role:
        return condition
    return nodes.Or((condition, expired(schema.by_role["expires"].attribute, now)))
