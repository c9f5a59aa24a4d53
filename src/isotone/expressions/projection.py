"""Projections compiled: some paths become one function from an item to the part of it that they address.

What is addressed keeps its place: maps hold the addressed members under their names, lists hold the
addressed elements in their old order with no gaps. A map or list of which nothing is found is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from isotone.expressions.analysis import Expression, cached
from isotone.expressions.names import NameMap, resolve
from isotone.expressions.nodes import ProjectionNode
from isotone.expressions.parser import parse_projection
from isotone.expressions.paths import Branch, PathTree, ResolvedPath, path_tree
from isotone.expressions.rules import checked_elements
from isotone.values.types import AttributeValue, Item

Project: TypeAlias = Callable[[Item], Item]
Pick: TypeAlias = Callable[[AttributeValue], AttributeValue | None]


class Projection(Expression):
    """A projection, ready to be applied to any item: `project(item)` gives the addressed part."""

    PARAMETER = "ProjectionExpression"

    __slots__ = ("project",)

    def __init__(self, node: ProjectionNode, names: NameMap | None, parameter: str) -> None:
        resolved = resolve(node, names)
        super().__init__(node, resolved, parameter)
        self.project: Project = project_paths(map(checked_elements, reversed(resolved.paths)))


def projection(source: str | ProjectionNode, names: NameMap | None = None) -> Projection:
    """The projection that a text or a tree says. O(length) the first time, then cached."""
    compiled: Projection = cached(
        Projection,
        parse_projection,
        source,
        tuple(names.items()) if names else (),
        Projection.PARAMETER,
    )
    return compiled


def project_paths(paths: Iterable[ResolvedPath]) -> Project:
    """The function that picks some paths, given from the last to the first, out of an item."""
    tree = path_tree((path, None) for path in paths)
    return _members(_children(tree))


def _children(tree: Branch[None]) -> list[tuple[Any, Pick | None]]:
    return [(element, _pick(member)) for element, member in reversed(tree.members.items())]


def _pick(tree: PathTree[None]) -> Pick | None:
    """How to pick from the value at this place; None means the whole of it."""
    if not isinstance(tree, Branch):
        return None
    return _list_pick(tree) if tree.by_index else _map_pick(tree)


def _members(children: Sequence[tuple[str, Pick | None]]) -> Project:
    def project(members: Item) -> Item:
        picked: Item = {}
        for name, pick in children:
            value = members.get(name)
            if value is not None and pick is not None:
                value = pick(value)
            if value is not None:
                picked[name] = value
        return picked

    return project


def _map_pick(tree: Branch[None]) -> Pick:
    project = _members(_children(tree))

    def pick(value: AttributeValue) -> AttributeValue | None:
        picked = project(value["M"]) if "M" in value else None
        return {"M": picked} if picked else None

    return pick


def _list_pick(tree: Branch[None]) -> Pick:
    children = sorted(_children(tree), key=lambda child: child[0])

    def pick(value: AttributeValue) -> AttributeValue | None:
        elements = value.get("L", ())
        found = (
            elements[index] if pick is None else pick(elements[index])
            for index, pick in children
            if index < len(elements)
        )
        picked = [element for element in found if element is not None]
        return {"L": picked} if picked else None

    return pick
