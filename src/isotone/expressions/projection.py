"""ProjectionExpression: some paths become one function from an item to the parts of it that they address.

Addressed parts keep their position: maps have the addressed members under their names, lists have the
addressed elements in their order, without gaps. A map or list without addressed parts is left out.

A `Branch` joins the paths of one expression into a tree, so that each map and list on the way is visited
once; updates use it, too. DynamoDB refuses two paths of which one contains the other (they overlap), and
two that take the same value for a map and for a list (they conflict). Building the tree finds both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeAlias, TypeVar

from isotone.expressions import messages
from isotone.expressions.expression import Expression, NameMap, cached
from isotone.expressions.messages import Refusal, path_text
from isotone.expressions.nodes import Node, ProjectionNode, ResolvedPath
from isotone.expressions.parser import parse_projection
from isotone.expressions.rules import resolved_path
from isotone.values.types import AttributeValue, Item

T = TypeVar("T")

Project: TypeAlias = Callable[[Item], Item]
Pick: TypeAlias = Callable[[AttributeValue], AttributeValue | None]


class Projection(Expression):
    """A projection, applicable to any item: `project(item)` returns the addressed parts."""

    PARAMETER = "ProjectionExpression"
    parse = staticmethod(parse_projection)

    __slots__ = ("project",)

    def _compile(self, tree: ProjectionNode, nodes: list[Node]) -> None:
        self.project: Project = project_paths(map(resolved_path, reversed(tree.paths)))


def projection(source: str | ProjectionNode, names: NameMap | None = None) -> Projection:
    """The projection of a text or a tree. O(length) the first time, then cached."""
    compiled: Projection = cached(
        Projection, source, tuple(names.items()) if names else (), Projection.PARAMETER
    )
    return compiled


def project_paths(paths: Iterable[ResolvedPath]) -> Project:
    """The function that picks paths, given from the last to the first, out of an item."""
    tree = path_tree((path, None) for path in paths)
    return _members(_children(tree))


def _children(tree: Branch[None]) -> list[tuple[Any, Pick | None]]:
    return [(element, _pick(member)) for element, member in reversed(tree.members.items())]


def _pick(tree: PathTree[None]) -> Pick | None:
    """The parts to pick from the value at this position; None for all of it."""
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
        parts = [
            elements[index] if pick is None else pick(elements[index])
            for index, pick in children
            if index < len(elements)
        ]
        picked = [part for part in parts if part is not None]
        return {"L": picked} if picked else None

    return pick


# Paths as a tree


@dataclass(frozen=True, slots=True)
class Leaf(Generic[T]):
    """The end of a path, and the value that belongs to it."""

    path: ResolvedPath
    value: T


@dataclass(frozen=True, slots=True)
class Branch(Generic[T]):
    """A node where paths diverge: all continue by name, or all by index."""

    members: dict[str | int, Branch[T] | Leaf[T]]
    by_index: bool


PathTree: TypeAlias = Branch[T] | Leaf[T]


def path_tree(entries: Iterable[tuple[ResolvedPath, T]]) -> Branch[T]:
    """The tree of paths and their values. O(elements). Refuses paths that overlap or conflict.

    The caller passes the paths from the last to the first, as DynamoDB checks them. That decides which
    two paths the message names.
    """
    root: Branch[T] = Branch({}, by_index=False)
    for path, value in entries:
        _insert(root, path, value)
    return root


def _insert(root: Branch[T], path: ResolvedPath, value: T) -> None:
    branch = root
    for element, after in pairwise(path):
        following = branch.members.get(element)
        if following is None:
            following = Branch({}, type(after) is int)
            _add(branch, element, following, path)
        elif isinstance(following, Leaf):
            raise _clash(messages.OVERLAP, path, following)
        branch = following
    if path[-1] in branch.members:
        raise _clash(messages.OVERLAP, path, branch.members[path[-1]])
    _add(branch, path[-1], Leaf(path, value), path)


def _add(branch: Branch[T], element: str | int, tree: PathTree[T], path: ResolvedPath) -> None:
    if branch.by_index != (type(element) is int):
        raise _clash(messages.CONFLICT, path, branch)
    branch.members[element] = tree


def _clash(sentence: str, path: ResolvedPath, tree: PathTree[T]) -> Refusal:
    return Refusal(sentence, one=path_text(path), two=path_text(_first_path(tree)))


def _first_path(tree: PathTree[T]) -> ResolvedPath:
    while isinstance(tree, Branch):
        tree = next(iter(tree.members.values()))
    return tree.path
