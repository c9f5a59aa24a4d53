"""Expression trees that the model puts into its requests: absent, present, equal, unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from isotone.expressions import nodes
from isotone.values.types import AttributeValue, Item

_SECTIONS: Final[dict[type, int]] = {nodes.Set: 0, nodes.Remove: 1, nodes.Add: 2, nodes.Delete: 3}


def expressions(**trees: nodes.Node | None) -> dict[str, nodes.Node]:
    """The members of a request that hold expressions, without those that are None."""
    return {name: tree for name, tree in trees.items() if tree is not None}


def update_of(actions: Sequence[nodes.Action]) -> nodes.UpdateNode:
    """An update with the actions grouped by section; each section may occur once in an expression."""
    if len(actions) > 1:
        actions = sorted(actions, key=lambda action: _SECTIONS[type(action)])
    return nodes.UpdateNode(tuple(actions))


def conjunction(conditions: Sequence[nodes.ConditionNode | None]) -> nodes.ConditionNode | None:
    """The conditions joined by AND, without those that are None; None if none is left."""
    present: list[Any] = [*filter(None, conditions)]
    if not present:
        return None
    return present[0] if len(present) == 1 else nodes.And(tuple(present))


@lru_cache(maxsize=512)
def absent(attribute: str) -> nodes.ConditionNode:
    """The item does not have the attribute."""
    return nodes.Call("attribute_not_exists", (nodes.Path((attribute,)),))


@lru_cache(maxsize=512)
def present(attribute: str) -> nodes.ConditionNode:
    """The item has the attribute."""
    return nodes.Call("attribute_exists", (nodes.Path((attribute,)),))


def equal(attribute: str, value: AttributeValue | None) -> nodes.ConditionNode:
    """The attribute has this value; None means that the item does not have the attribute."""
    if value is None:
        return absent(attribute)
    return nodes.Comparison("=", nodes.Path((attribute,)), nodes.Literal(value))


def unchanged(
    attributes: Sequence[str], item: Mapping[str, AttributeValue] | Item
) -> nodes.ConditionNode | None:
    """The attributes have the same values as in the item."""
    return conjunction([equal(name, item.get(name)) for name in sorted(attributes)])
