"""Builds the expression trees of the model's requests: attribute absent, present, equal to, unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from isotone.expressions import nodes
from isotone.values.types import AttributeValue, Item

_SECTIONS: Final[dict[type, int]] = {nodes.Set: 0, nodes.Remove: 1, nodes.Add: 2, nodes.Delete: 3}


def expressions(**trees: nodes.Node | None) -> dict[str, nodes.Node]:
    """The request members for expressions, without those that are None."""
    return {name: tree for name, tree in trees.items() if tree is not None}


def update_of(actions: Sequence[nodes.Action]) -> nodes.UpdateNode:
    """An update expression with its actions grouped by section, because each section may occur only once."""
    if len(actions) > 1:
        actions = sorted(actions, key=lambda action: _SECTIONS[type(action)])
    return nodes.UpdateNode(tuple(actions))


def conjunction(conditions: Sequence[nodes.ConditionNode | None]) -> nodes.ConditionNode | None:
    """The conditions joined by AND, ignoring None; None if none is left."""
    present: list[nodes.ConditionNode] = []
    for each in conditions:
        if type(each) is nodes.And:
            present += each.operands
        elif each is not None:
            present.append(each)
    if not present:
        return None
    return present[0] if len(present) == 1 else nodes.And(tuple(present))


@lru_cache(maxsize=512)
def absent(attribute: str) -> nodes.ConditionNode:
    """The condition that the item does not have the attribute."""
    return nodes.Call("attribute_not_exists", (nodes.Path((attribute,)),))


@lru_cache(maxsize=512)
def present(attribute: str) -> nodes.ConditionNode:
    """The condition that the item has the attribute."""
    return nodes.Call("attribute_exists", (nodes.Path((attribute,)),))


def equal(attribute: str, value: AttributeValue | None) -> nodes.ConditionNode:
    """The condition that the attribute has this value; None stands for a missing attribute."""
    if value is None:
        return absent(attribute)
    return nodes.Comparison("=", nodes.Path((attribute,)), nodes.Literal(value))


def unchanged(
    attributes: Sequence[str], item: Mapping[str, AttributeValue] | Item
) -> nodes.ConditionNode | None:
    """The condition that the attributes still have the item's values."""
    return conjunction([equal(name, item.get(name)) for name in sorted(attributes)])
