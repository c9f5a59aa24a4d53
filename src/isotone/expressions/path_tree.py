"""The paths of one expression as a tree; refuses paths that overlap or conflict, in updates and projections.

Each map and list that several paths share is visited once. DynamoDB refuses two paths if one contains the other (they
overlap), or if one takes a value for a map and the other takes it for a list (they conflict). Building the tree finds
both.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Generic, TypeAlias, TypeVar

import msgspec

from isotone.expressions import messages
from isotone.expressions.messages import RefusalMessage, path_text
from isotone.expressions.nodes import ResolvedPath, ValueRef

T = TypeVar("T")


class Leaf(msgspec.Struct, Generic[T], frozen=True):
    """The end of a path, with its value."""

    path: ResolvedPath
    value: T


class PathBranch(msgspec.Struct, Generic[T], frozen=True):
    """A node where paths diverge: all continue by name, or all by index."""

    members: dict[str | int | ValueRef, PathBranch[T] | Leaf[T]]
    by_index: bool


PathTree: TypeAlias = PathBranch[T] | Leaf[T]


def path_tree(entries: Iterable[tuple[ResolvedPath, T]]) -> PathBranch[T]:
    """The tree of paths and their values. O(elements). Refuses paths that overlap or conflict.

    Pass the paths from last to first, the order in which DynamoDB checks them. It decides which two paths the message
    names.
    """
    root: PathBranch[T] = PathBranch({}, by_index=False)
    for path, value in entries:
        _insert(root, path, value)
    return root


def _insert(root: PathBranch[T], path: ResolvedPath, value: T) -> None:
    branch = root
    for element, after in pairwise(path):
        following = branch.members.get(element)
        if following is None:
            following = PathBranch({}, type(after) is int)
            _add(branch, element, following, path)
        elif isinstance(following, Leaf):
            raise _clash(messages.OVERLAP, path, following)
        branch = following
    if path[-1] in branch.members:
        raise _clash(messages.OVERLAP, path, branch.members[path[-1]])
    _add(branch, path[-1], Leaf(path, value), path)


def _add(
    branch: PathBranch[T], element: str | int | ValueRef, tree: PathTree[T], path: ResolvedPath
) -> None:
    if branch.by_index != (type(element) is int):
        raise _clash(messages.CONFLICT, path, branch)
    branch.members[element] = tree


def _clash(sentence: str, path: ResolvedPath, tree: PathTree[T]) -> RefusalMessage:
    return RefusalMessage(sentence, one=path_text(path), two=path_text(_first_path(tree)))


def _first_path(tree: PathTree[T]) -> ResolvedPath:
    while isinstance(tree, PathBranch):
        tree = next(iter(tree.members.values()))
    return tree.path
