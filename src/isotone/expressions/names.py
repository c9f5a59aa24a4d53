"""The third stage: placeholders. Names are put in their places; values stay to be given with each call.

A `#placeholder` stands for one element of a path, whatever characters the name has: dots in it are
part of the name. An expression that uses an undefined placeholder is refused, and so is a request that
defines one that no expression uses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import msgspec

from isotone.errors import ValidationException
from isotone.expressions import refusals
from isotone.expressions.nodes import NameRef, Node, Path, ValueRef
from isotone.limits import ATTRIBUTE_NAME_SIZE, NAME_PLACEHOLDER_SIZE
from isotone.values.types import AttributeValue

NameMap: TypeAlias = Mapping[str, str]
ValueMap: TypeAlias = Mapping[str, AttributeValue]

_Tree = TypeVar("_Tree")

NAMES: Final = "ExpressionAttributeNames"
VALUES: Final = "ExpressionAttributeValues"

_REST: Final = f"[A-Za-z0-9_]{{1,{NAME_PLACEHOLDER_SIZE - 1}}}"
_is_name_placeholder: Final = re.compile("#" + _REST).fullmatch
_is_value_placeholder: Final = re.compile(":" + _REST).fullmatch
_SURELY_SHORT: Final = ATTRIBUTE_NAME_SIZE // 4  # characters, whatever their size in UTF-8


@dataclass(frozen=True, slots=True)
class References:
    """What an expression refers to: placeholders as written, and attributes at the top of the item."""

    names: frozenset[str]
    values: frozenset[str]
    attributes: frozenset[str]
    nested: frozenset[str]


class UsesAttributes(Protocol):
    """What `check_scalar_keys` needs to know of an expression."""

    @property
    def nested_attributes(self) -> frozenset[str]: ...


class UsesPlaceholders(Protocol):
    """What `check_all_used` needs to know of an expression."""

    @property
    def names_used(self) -> frozenset[str]: ...

    @property
    def values_used(self) -> frozenset[str]: ...


def walk(node: Any) -> Iterator[Any]:
    """A node and all nodes below it, each before its own parts, in the order written."""
    yield node
    if isinstance(node, Path):
        return
    for member in parts(node):
        yield from walk(member)


def walk_up(node: Any) -> Iterator[Any]:
    """A node and all nodes below it, each after its own parts, in the order written."""
    if not isinstance(node, Path):
        for member in parts(node):
            yield from walk_up(member)
    yield node


def parts(node: Any) -> Iterator[Any]:
    """The nodes directly below a node, in the order written."""
    for slot in node.__struct_fields__:
        member = getattr(node, slot)
        yield from member if isinstance(member, tuple) else [member] if _is_node(member) else []


def _is_node(member: object) -> bool:
    return isinstance(member, msgspec.Struct)


def references(tree: Node) -> References:
    """Everything that a tree refers to. O(nodes)."""
    nodes = list(walk(tree))
    paths = [node.elements for node in nodes if isinstance(node, Path)]
    return References(
        frozenset(e.name for path in paths for e in path if isinstance(e, NameRef)),
        frozenset(node.name for node in nodes if isinstance(node, ValueRef)),
        frozenset(path[0] for path in paths if isinstance(path[0], str)),
        frozenset(path[0] for path in paths if isinstance(path[0], str) and len(path) > 1),
    )


def resolve(tree: _Tree, names: NameMap | None) -> _Tree:
    """The tree with all `#placeholders` replaced that are defined. O(nodes).

    Undefined ones stay, to be refused by `rules` in their turn.
    """
    return _resolved(tree, names or {})  # type: ignore[no-any-return] # a tree of the kind given


def _resolved(node: Any, names: NameMap) -> Any:
    if isinstance(node, NameRef):
        return names.get(node.name, node)
    if isinstance(node, tuple):
        return tuple(map(_resolved, node, repeat(names)))
    if not _is_node(node):
        return node
    members = map(_resolved, map(getattr, repeat(node), node.__struct_fields__), repeat(names))
    return type(node)(*members)


def check_placeholders(names: NameMap | None, values: Mapping[str, object] | None) -> None:
    """Refuse placeholder maps that are empty, or hold keys that cannot be placeholders. O(keys)."""
    if names is not None:
        _check_keys(NAMES, names, _is_name_placeholder)
        for key, name in names.items():
            if not 0 < len(name) <= _SURELY_SHORT:
                _check_name(key, name)
    if values is not None:
        _check_keys(VALUES, values, _is_value_placeholder)


def _check_keys(parameter: str, given: Mapping[str, object], is_well_formed: Any) -> None:
    if not given:
        raise ValidationException(f"{parameter} must not be empty")
    for key in given:
        if not is_well_formed(key):
            raise ValidationException(f"{parameter} contains invalid key: {_wrong_key(key)}")


def _wrong_key(key: str) -> str:
    if not key:
        return "The expression attribute map contains an empty key;"
    if len(key) > NAME_PLACEHOLDER_SIZE:
        return (
            f"The expression attribute map contains a key that is too long; size of key: {len(key)}"
        )
    return f'Syntax error; key: "{key}"'


def _check_name(key: str, name: str) -> None:
    if not name:
        wrong = "Empty attribute name"
    elif len(name.encode("utf-8", "surrogatepass")) > ATTRIBUTE_NAME_SIZE:
        wrong = f"Attribute name is too large, must be less than {ATTRIBUTE_NAME_SIZE + 1} bytes"
    else:
        return
    raise ValidationException(f"{NAMES} contains invalid value: {wrong} for key {key}")


def check_scalar_keys(
    expressions: Iterable[UsesAttributes], key_attributes: Iterable[str], label: str = "Key"
) -> None:
    """Refuse paths into key attributes, which never hold lists or maps. `label`: `Key`, or `IndexKey` of an index."""
    nested = [expression.nested_attributes for expression in expressions]
    for attribute in key_attributes:
        if any(attribute in attributes for attributes in nested):
            raise ValidationException(refusals.NESTED_KEY.format(label=label, attribute=attribute))


def check_expressions_given(
    names: NameMap | None, values: Mapping[str, object] | None, parameters: Mapping[str, object]
) -> None:
    """Refuse placeholders in a request that has none of the expressions that could use them.

    `parameters` are the request's expression parameters that may use values, by name; the value of
    one that the request lacks is None.
    """
    if any(text is not None for text in parameters.values()):
        return
    if names is not None:
        raise ValidationException(f"{NAMES} can only be specified when using expressions")
    if values is not None:
        absent = " and ".join(parameters)
        verb = "is" if len(parameters) == 1 else "are"
        raise ValidationException(
            f"{VALUES} can only be specified when using expressions: {absent} {verb} null"
        )


def check_all_used(
    expressions: Collection[UsesPlaceholders],
    names: NameMap | None,
    values: Mapping[str, object] | None,
) -> None:
    """Refuse a request that defines a placeholder which none of its expressions uses. O(keys)."""
    if names:
        unused = set(names)
        for expression in expressions:
            unused -= expression.names_used
        if unused:
            raise _unused(NAMES, unused)
    if values:
        unused = set(values)
        for expression in expressions:
            unused -= expression.values_used
        if unused:
            raise _unused(VALUES, unused)


def _unused(parameter: str, keys: set[str]) -> ValidationException:
    return ValidationException(
        f"Value provided in {parameter} unused in expressions: keys: {{{', '.join(sorted(keys))}}}"
    )
