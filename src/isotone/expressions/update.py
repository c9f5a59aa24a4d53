"""UpdateExpression: compiles SET, REMOVE, ADD, DELETE; which paths UPDATED_NEW returns. `messages` has the errors' texts.

First each action computes its new value from the old item, which must have a place for it. Then the values are put into
their places. The paths of an expression never overlap, so they form one tree: each map and list on a path is copied
once, and the old and new items share everything else. List indexes are positions before the update: elements are
removed after all others were set, and elements set beyond the end are appended in the order of their indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from isotone.errors import ValidationException
from isotone.expressions import messages
from isotone.expressions.expression import (
    COMPILED,
    Expression,
    NameMap,
    unchecked,
)
from isotone.expressions.nodes import (
    Action,
    Add,
    Delete,
    Node,
    Remove,
    ResolvedPath,
    Set,
    UpdateNode,
    ValueRef,
    walk_up,
)
from isotone.expressions.operands import Evaluate, ValueMap, compile_operand, compile_value, lookup
from isotone.expressions.parser import parse_update
from isotone.expressions.path_tree import PathBranch, PathTree, path_tree
from isotone.expressions.projection import Project, project_paths
from isotone.expressions.rules import resolved_path
from isotone.expressions.update_size import UpdateSize, update_size
from isotone.limits import NESTING_DEPTH
from isotone.values import number
from isotone.values.types import AttributeValue, Item, sorted_members

Results: TypeAlias = Sequence[AttributeValue | None]
"""The results of the actions, in order; None removes the value."""

Place: TypeAlias = Callable[[Any, Results, ValueMap], AttributeValue | None]
"""Puts results into an old value and returns the new one; None means no value before or after."""


class CompiledUpdate(Expression):
    """An update that can be applied to any item.

    `apply(item, values)` returns the new item and leaves the old one unchanged. It raises `ValidationException` if the
    item lacks something that the update needs. An update that `only_removes` does nothing to a missing item: it does
    not create it, and does not raise for missing paths.
    """

    PARAMETER: ClassVar[str] = "UpdateExpression"

    __slots__ = ("_paths", "_project", "apply", "attributes_written", "only_removes", "size")

    @staticmethod
    def parse(text: str) -> UpdateNode:
        return parse_update(text)

    @staticmethod
    def _nodes(tree: UpdateNode) -> list[Node]:
        # DynamoDB checks the actions from the last to the first.
        return walk_up(*tree.actions[::-1])

    def _compile(self, tree: UpdateNode, nodes: list[Node]) -> None:
        self._paths = [resolved_path(action.path) for action in tree.actions[::-1]]
        self._project: Project | None = None
        places = path_tree(zip(self._paths, range(len(self._paths) - 1, -1, -1), strict=True))
        self.attributes_written: frozenset[str] = frozenset([str(path[0]) for path in self._paths])
        self.only_removes: bool = all(
            isinstance(action, Remove | Delete) for action in tree.actions
        )
        sound = self._gather(nodes)
        self.size: UpdateSize | None = update_size(tree) if sound else None
        self.apply: Callable[[Item, ValueMap], Item] = (
            _compile(tree, places) if sound else unchecked
        )

    def project(self, item: Item, values: ValueMap) -> Item:
        """The values at the addressed paths of an old or new item, for ReturnValues."""
        if any(type(path[-1]) is ValueRef for path in self._paths):
            return project_paths([_with_key(path, values) for path in self._paths])(item)
        if self._project is None:
            self._project = project_paths(self._paths)
        return self._project(item)


def update(source: str | UpdateNode, names: NameMap | None = None) -> CompiledUpdate:
    """The update of a text or a lifted tree. O(length) the first time, then cached."""
    compiled: CompiledUpdate = COMPILED[
        CompiledUpdate, source, tuple(names.items()) if names else (), CompiledUpdate.PARAMETER
    ]
    return compiled


def _compile(node: UpdateNode, tree: PathBranch[int]) -> Callable[[Item, ValueMap], Item]:
    if all(len(action.path.elements) == 1 for action in node.actions):
        return _compile_flat(node.actions)
    computations = [(_container(action), _ACTIONS[type(action)](action)) for action in node.actions]
    places = _children(tree)

    def apply(item: Item, values: ValueMap) -> Item:
        results: list[AttributeValue | None] = []
        has_places = True
        for is_in, compute in computations:
            if is_in is None or is_in(item):
                results.append(compute(item, values))
            else:  # the service refuses wrong operands of other actions first
                has_places = False
        if not has_places:
            raise ValidationException(messages.PATH_INVALID)
        return _placed(item, places, results, values)

    return apply


def _compile_flat(actions: Sequence[Action]) -> Callable[[Item, ValueMap], Item]:
    """The update if all paths are plain attribute names."""
    named: list[tuple[Any, Evaluate]] = [
        (action.path.elements[0], _ACTIONS[type(action)](action)) for action in actions
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


def _container(action: Action) -> Callable[[Item], bool] | None:
    """The check that an item has a place for the result of an action; None if every item has."""
    outer: Any
    *outer, last = action.path.elements
    if not outer:
        return None
    find = lookup(outer)
    code = "L" if isinstance(last, int) else "M"

    def is_in(item: Item) -> bool:
        container = find(item)
        return container is not None and code in container

    return is_in


def _with_key(path: ResolvedPath, values: ValueMap) -> ResolvedPath:
    """A path in which a key from the request's values is filled in."""
    *outer, last = path
    return (*outer, values[last.name]["S"]) if type(last) is ValueRef else path


# Putting results into their places


def _children(tree: PathBranch[int]) -> list[tuple[Any, Place]]:
    return [(element, _place(member)) for element, member in reversed(tree.members.items())]


def _place(tree: PathTree[int]) -> Place:
    if isinstance(tree, PathBranch):
        return _place_in_list(tree) if tree.by_index else _place_in_map(tree)
    position = tree.value
    return lambda old, results, values: results[position]


def _placed(
    members: Item, places: Sequence[tuple[Any, Place]], results: Results, values: ValueMap
) -> Item:
    changed = members.copy()
    for element, place in places:
        name = values[element.name]["S"] if type(element) is ValueRef else element
        value = place(members.get(name), results, values)
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = value
    return changed


def _place_in_map(tree: PathBranch[int]) -> Place:
    places = _children(tree)
    return lambda old, results, values: {"M": _placed(old["M"], places, results, values)}


def _place_in_list(tree: PathBranch[int]) -> Place:
    places = sorted(_children(tree), key=lambda child: child[0])

    def place(old: Any, results: Results, values: ValueMap) -> AttributeValue:
        changed: list[AttributeValue | None] = old["L"].copy()
        length = len(changed)
        for index, place_element in places:
            if index < length:
                changed[index] = place_element(changed[index], results, values)
            else:
                changed.append(place_element(None, results, values))
        return {"L": [element for element in changed if element is not None]}

    return place


# Computing results


def _set(action: Set) -> Evaluate:
    compute = compile_value(action.value)
    # The item is the first level; each element of the path except the last adds one.
    allowed = NESTING_DEPTH - len(action.path.elements)

    def evaluate(item: Item, values: ValueMap) -> AttributeValue:
        value = compute(item, values)
        if ("M" in value or "L" in value) and _depth(value) > allowed:
            raise ValidationException(messages.TOO_NESTED)
        return value

    return evaluate


def _depth(value: AttributeValue) -> int:
    """How deep lists and maps are nested, this one included."""
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
            raise ValidationException(messages.WRONG_TYPE)
        return {code: _ADDITIONS[code](old[code], addend)}

    return evaluate


def _union(code: str) -> Callable[[list[str], list[str]], list[str]]:
    # Both parts are sorted already, so sorting takes about one comparison per member.
    return lambda members, added: sorted_members(code, dict.fromkeys(members + added))


_ADDITIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "N": number.add,
    "SS": _union("SS"),
    "NS": _union("NS"),
    "BS": _union("BS"),
}


def _delete(action: Delete) -> Evaluate:
    find, compute = compile_operand(action.path), compile_value(action.value)

    def evaluate(item: Item, values: ValueMap) -> AttributeValue | None:
        old = find(item, values)
        if old is None:
            return None
        ((code, members),) = compute(item, values).items()
        if code not in old:
            raise ValidationException(messages.WRONG_TYPE)
        deleted = set(members)
        rest = [member for member in old[code] if member not in deleted]
        return {code: rest} if rest else None

    return evaluate


_ACTIONS: Final[dict[type, Callable[[Any], Evaluate]]] = {
    Set: _set,
    Remove: _remove,
    Add: _add,
    Delete: _delete,
}
