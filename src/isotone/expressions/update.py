"""Updates compiled: a tree becomes one function from an item and the values to the new item.

First every action computes its new value, and all of them see the item as it was; then the values are
put into their places. The paths of an expression never overlap, so they make one tree: each map and
list on the way is copied once, and whatever no path goes through is shared between the old item and the
new. List indexes mean positions before the update: elements are removed after all were set, and those
set beyond the end are appended in the order of their indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from isotone.errors import ValidationException
from isotone.expressions import refusals
from isotone.expressions.analysis import Expression
from isotone.expressions.names import NameMap, ValueMap, resolve
from isotone.expressions.nodes import Action, Add, Delete, Remove, Set, UpdateNode
from isotone.expressions.operands import Evaluate, compile_operand, compile_value
from isotone.expressions.parser import parse_update
from isotone.expressions.paths import Branch, PathTree, path_tree
from isotone.expressions.predicate import CACHED_EXPRESSIONS
from isotone.expressions.projection import Project, project_paths
from isotone.expressions.refusals import refused_as
from isotone.expressions.rules import check_words, checked_elements, update_checks
from isotone.limits import NESTING_DEPTH
from isotone.values import number
from isotone.values.types import AttributeValue, Item

Results: TypeAlias = Sequence[AttributeValue | None]
"""What the actions computed, one after the other; None means that the value is to go."""

Place: TypeAlias = Callable[[AttributeValue | None, Results], AttributeValue | None]
"""Puts results into an old value and gives the new one; None on either side means that there is none."""

_PARAMETER: Final = "UpdateExpression"


class Update(Expression):
    """An update, ready to be applied to any item.

    `apply(item, values)` gives the new item and leaves the old as it was; it raises
    `ValidationException` where the item does not have what the update needs. `project_old` and
    `project_new` pick the addressed paths out of the item before and after, for ReturnValues.
    """

    __slots__ = ("apply", "attributes_written", "project_new", "project_old")

    def __init__(self, node: UpdateNode, names: NameMap | None) -> None:
        resolved = resolve(node, names)
        paths = [checked_elements(action.path) for action in reversed(resolved.actions)]
        tree = path_tree((path, len(paths) - 1 - place) for place, path in enumerate(paths))
        super().__init__(node, resolved, _PARAMETER, update_checks(resolved))
        self.attributes_written = frozenset(str(path[0]) for path in paths)
        self.project_old: Project = project_paths(paths)
        self.project_new: Project = self.project_old
        if self._sound:
            self.apply = _compile(resolved, tree)

    @classmethod
    def from_node(cls, node: UpdateNode, names: NameMap | None = None) -> Update:
        """An update from a tree that was built without text. O(nodes), not cached."""
        with refused_as(_PARAMETER):
            check_words(node, written=False)
            return cls(node, names)


def update(text: str, names: NameMap | None = None) -> Update:
    """The update that a text says. O(length) the first time, then a look into a cache."""
    return _update(text, tuple(names.items()) if names else ())


@lru_cache(CACHED_EXPRESSIONS)
def _update(text: str, names: tuple[tuple[str, str], ...]) -> Update:
    with refused_as(_PARAMETER):
        return Update(parse_update(text), dict(names))


def _compile(node: UpdateNode, tree: Branch[int]) -> Callable[[Item, ValueMap], Item]:
    computations = [_ACTIONS[type(action)](action) for action in node.actions]
    if not any(isinstance(member, Branch) for member in tree.members.values()):
        return _compile_flat(node.actions, computations)
    places = _children(tree)

    def apply(item: Item, values: ValueMap) -> Item:
        results = [compute(item, values) for compute in computations]
        return _placed(item, places, results)

    return apply


def _compile_flat(
    actions: Sequence[Action], computations: Sequence[Evaluate]
) -> Callable[[Item, ValueMap], Item]:
    """Where all paths are attribute names, nothing needs to be looked for."""
    named: list[tuple[Any, Evaluate]] = [
        (action.path.elements[0], compute)
        for action, compute in zip(actions, computations, strict=True)
    ]

    def apply(item: Item, values: ValueMap) -> Item:
        changed = item.copy()
        for name, compute in named:
            value = compute(item, values)
            if value is None:
                changed.pop(name, None)
            else:
                changed[name] = value
        return changed

    return apply


# Putting results into their places


def _children(tree: Branch[int]) -> list[tuple[Any, Place]]:
    return [(element, _place(member)) for element, member in reversed(tree.members.items())]


def _place(tree: PathTree[int]) -> Place:
    if isinstance(tree, Branch):
        return _place_in_list(tree) if tree.by_index else _place_in_map(tree)
    position = tree.value
    return lambda old, results: results[position]


def _placed(members: Item, places: Sequence[tuple[str, Place]], results: Results) -> Item:
    changed = members.copy()
    for name, place in places:
        value = place(members.get(name), results)
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = value
    return changed


def _place_in_map(tree: Branch[int]) -> Place:
    places = _children(tree)

    def place(old: AttributeValue | None, results: Results) -> AttributeValue:
        if old is None or "M" not in old:
            raise ValidationException(refusals.PATH_INVALID)
        return {"M": _placed(old["M"], places, results)}

    return place


def _place_in_list(tree: Branch[int]) -> Place:
    places = sorted(_children(tree), key=lambda child: child[0])

    def place(old: AttributeValue | None, results: Results) -> AttributeValue:
        if old is None or "L" not in old:
            raise ValidationException(refusals.PATH_INVALID)
        changed: list[AttributeValue | None] = old["L"].copy()
        length = len(changed)
        for index, place_element in places:
            if index < length:
                changed[index] = place_element(changed[index], results)
            else:
                changed.append(place_element(None, results))
        return {"L": [element for element in changed if element is not None]}

    return place


# Computing results


def _set(action: Set) -> Evaluate:
    compute = compile_value(action.value)
    # The item is the first level; each element of the path but the last opens one more.
    allowed = NESTING_DEPTH - len(action.path.elements)

    def evaluate(item: Item, values: ValueMap) -> AttributeValue:
        value = compute(item, values)
        if ("M" in value or "L" in value) and _depth(value) > allowed:
            raise ValidationException(refusals.TOO_NESTED)
        return value

    return evaluate


def _depth(value: AttributeValue) -> int:
    """How many lists and maps are inside each other, this one included."""
    if "M" in value:
        return 1 + max(map(_depth, value["M"].values()), default=0)
    if "L" in value:
        return 1 + max(map(_depth, value["L"]), default=0)
    return 0


def _remove(action: Remove) -> Evaluate:
    return lambda item, values: None


def _add(action: Add) -> Evaluate:
    find, compute = compile_operand(action.path), compile_value(action.value)

    def evaluate(item: Item, values: ValueMap) -> AttributeValue:
        old, value = find(item, values), compute(item, values)
        if old is None:
            return value
        ((code, addend),) = value.items()
        if code not in old:
            raise ValidationException(refusals.WRONG_TYPE)
        return {code: _ADDITIONS[code](old[code], addend)}

    return evaluate


def _union(members: list[str], added: list[str]) -> list[str]:
    return list(dict.fromkeys(members + added))


_ADDITIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "N": number.add,
    "SS": _union,
    "NS": _union,
    "BS": _union,
}


def _delete(action: Delete) -> Evaluate:
    find, compute = compile_operand(action.path), compile_value(action.value)

    def evaluate(item: Item, values: ValueMap) -> AttributeValue | None:
        old = find(item, values)
        if old is None:
            return None
        ((code, members),) = compute(item, values).items()
        if code not in old:
            raise ValidationException(refusals.WRONG_TYPE)
        gone = set(members)
        kept = [member for member in old[code] if member not in gone]
        return {code: kept} if kept else None

    return evaluate


_ACTIONS: Final[dict[type, Callable[[Any], Evaluate]]] = {
    Set: _set,
    Remove: _remove,
    Add: _add,
    Delete: _delete,
}
