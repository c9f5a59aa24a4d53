"""ProjectionExpression: compiles paths to a function that picks the addressed parts of an item.

Addressed parts keep their position: maps contain the addressed members under their names, and lists the addressed
elements in their order, without gaps. A map or list without addressed parts is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final, Self, TypeAlias, cast

from isotone.expressions.expression import COMPILED, Expression, NameMap
from isotone.expressions.nodes import Node, ProjectionNode, ResolvedPath
from isotone.expressions.parser import parse_projection
from isotone.expressions.path_tree import PathBranch, PathTree, path_tree
from isotone.expressions.rules import resolved_path
from isotone.values.types import AttributeValue, Item

_SLICE: Final = 5000  # names that take a fraction of a millisecond to add
Project: TypeAlias = Callable[[Item], Item]
Pick: TypeAlias = Callable[[AttributeValue], AttributeValue | None]


class CompiledProjection(Expression):
    """A projection for any item: `project(item)` returns the addressed parts."""

    PARAMETER: ClassVar[str] = "ProjectionExpression"

    __slots__ = ("project",)

    @staticmethod
    def parse(text: str) -> ProjectionNode:
        return parse_projection(text)

    @classmethod
    def of_names(cls, names: Sequence[str]) -> Self:
        """A projection on different top-level attributes. O(names); there may be many."""
        made = cls.__new__(cls)
        made.parameter = cls.PARAMETER
        made.names_used = made.values_used = made.nested_attributes = frozenset()
        made.attributes = _set_of(names)
        made._checks = made._type_checks = []
        made.project = _named(names, made.attributes)
        return made

    def _compile(self, tree: ProjectionNode, nodes: list[Node]) -> None:
        self.project: Project = project_paths(map(resolved_path, reversed(tree.paths)))


def projection(source: str | ProjectionNode, names: NameMap | None = None) -> CompiledProjection:
    """The projection of a text or a tree. O(length) the first time, then cached."""
    compiled: CompiledProjection = COMPILED[
        CompiledProjection,
        source,
        tuple(names.items()) if names else (),
        CompiledProjection.PARAMETER,
    ]
    return compiled


def project_paths(paths: Iterable[ResolvedPath]) -> Project:
    """The function that picks paths (given from last to first) out of an item."""
    tree = path_tree((path, None) for path in paths)
    return _members(_children(tree))


def _set_of(names: Sequence[str]) -> frozenset[str]:
    """The names as a set, which must not be changed. One call for 100,000 names would block other threads for several
    milliseconds.
    """
    found: set[str] = set()
    for start in range(0, len(names), _SLICE):
        found.update(names[start : start + _SLICE])
    return cast("frozenset[str]", found)  # copying it would be one such call


def _named(names: Sequence[str], known: frozenset[str]) -> Project:
    """The function that picks whole attributes."""

    def project(members: Item) -> Item:
        if len(members) < len(names):  # walk the shorter of the two
            return {name: value for name, value in members.items() if name in known}
        return {name: members[name] for name in names if name in members}

    return project


def _children(tree: PathBranch[None]) -> list[tuple[Any, Pick | None]]:
    return [(element, _pick(member)) for element, member in reversed(tree.members.items())]


def _pick(tree: PathTree[None]) -> Pick | None:
    """The parts to pick from the value at this position; None for the whole value."""
    if not isinstance(tree, PathBranch):
        return None
    return _list_pick(tree) if tree.by_index else _map_pick(tree)


def _members(children: Sequence[tuple[str, Pick | None]]) -> Project:
    by_name = dict(children)

    def project(members: Item) -> Item:
        picked: Item = {}
        if len(members) < len(children):  # walk the shorter of the two
            for name, value in members.items():
                if name in by_name:
                    pick = by_name[name]
                    part = value if pick is None else pick(value)
                    if part is not None:
                        picked[name] = part
            return picked
        for name, pick in children:
            found = members.get(name)
            if found is not None and pick is not None:
                found = pick(found)
            if found is not None:
                picked[name] = found
        return picked

    return project


def _map_pick(tree: PathBranch[None]) -> Pick:
    project = _members(_children(tree))

    def pick(value: AttributeValue) -> AttributeValue | None:
        picked = project(value["M"]) if "M" in value else None
        return {"M": picked} if picked else None

    return pick


def _list_pick(tree: PathBranch[None]) -> Pick:
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
