"""Document paths at work: finding what one leads to, and many of them as one tree.

A resolved path is a tuple of attribute names and list indexes. A path leads to a value only through
maps by name and through lists by index; anything else on the way means that there is no value.

A `PathTree` joins the paths of one expression, so that each map and list on the way is visited once.
DynamoDB refuses two paths of which one contains the other (they overlap), and two that take the same
value for a map and for a list (they conflict); building the tree finds both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from isotone.expressions import refusals
from isotone.expressions.refusals import Refusal
from isotone.values.types import AttributeValue, Item

T = TypeVar("T")

ResolvedPath: TypeAlias = tuple[str | int, ...]
Lookup: TypeAlias = Callable[[Item], AttributeValue | None]


def lookup(path: ResolvedPath) -> Lookup:
    """The function that finds the value at a path in an item, or None. O(elements) a call."""
    first: Any = path[0]
    name: str = first
    rest = path[1:]
    if not rest:
        return lambda item: item.get(name)

    def find(item: Item) -> AttributeValue | None:
        value = item.get(name)
        for element in rest:
            if value is None:
                return None
            value = child(value, element)
        return value

    return find


def child(value: AttributeValue, element: str | int) -> AttributeValue | None:
    """The member of a map or the element of a list, or None where there is none."""
    if isinstance(element, str):
        return value["M"].get(element) if "M" in value else None
    elements = value.get("L", ())
    return elements[element] if element < len(elements) else None


def path_text(path: ResolvedPath) -> str:
    """A path as AWS's messages show it: `[a, b, [0]]`."""
    return f"[{', '.join(f'[{e}]' if isinstance(e, int) else e for e in path)}]"


@dataclass(frozen=True, slots=True)
class Leaf(Generic[T]):
    """The end of a path, with what belongs to it."""

    path: ResolvedPath
    value: T


@dataclass(frozen=True, slots=True)
class Branch(Generic[T]):
    """What several paths have in common, and how they go on: all by name, or all by index."""

    members: dict[str | int, Branch[T] | Leaf[T]]

    @property
    def by_index(self) -> bool:
        return isinstance(next(iter(self.members)), int)


PathTree: TypeAlias = Branch[T] | Leaf[T]


def path_tree(entries: Iterable[tuple[ResolvedPath, T]]) -> Branch[T]:
    """The tree of some paths with their values. O(elements).

    Raises for paths that overlap or conflict. Like the service it takes the paths from the last to the
    first (the caller gives them so), which decides which two of several are named.
    """
    root: Branch[T] = Branch({})
    for path, value in entries:
        _insert(root, path, value)
    return root


def _insert(root: Branch[T], path: ResolvedPath, value: T) -> None:
    branch = root
    for element in path[:-1]:
        _check_kind(branch, element, path)
        following = branch.members.setdefault(element, Branch({}))
        if isinstance(following, Leaf):
            raise _clash(refusals.OVERLAP, path, following)
        branch = following
    _check_kind(branch, path[-1], path)
    if path[-1] in branch.members:
        raise _clash(refusals.OVERLAP, path, branch.members[path[-1]])
    branch.members[path[-1]] = Leaf(path, value)


def _check_kind(branch: Branch[T], element: str | int, path: ResolvedPath) -> None:
    if branch.members and branch.by_index != isinstance(element, int):
        raise _clash(refusals.CONFLICT, path, branch)


def _clash(sentence: str, path: ResolvedPath, tree: PathTree[T]) -> Refusal:
    return Refusal(sentence, one=path_text(path), two=path_text(_first_path(tree)))


def _first_path(tree: PathTree[T]) -> ResolvedPath:
    while isinstance(tree, Branch):
        tree = next(iter(tree.members.values()))
    return tree.path
