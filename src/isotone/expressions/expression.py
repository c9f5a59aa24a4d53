"""The base class of the four kinds of expression, their cache, and the check of placeholders.

A `#placeholder` stands for one element of a path, whatever characters the name has: dots in it are part
of the name. An expression that uses an undefined placeholder is refused, and so is a request that defines
one that no expression uses.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final, NoReturn, Self, TypeAlias

from isotone.errors import UsageError, ValidationException
from isotone.expressions import messages
from isotone.expressions.messages import Refusal, RefusedAs, invalid
from isotone.expressions.nodes import Node, references, resolve, walk_up
from isotone.expressions.operands import ValueMap
from isotone.expressions.render import Writer
from isotone.expressions.rules import OperandCheck, add_checks, check_words
from isotone.limits import ATTRIBUTE_NAME_SIZE, EXPRESSION_SIZE, NAME_PLACEHOLDER_SIZE
from isotone.values.types import Item

NameMap: TypeAlias = Mapping[str, str]

_CACHED: Final = 4096  # compiled expressions kept, of all kinds


class Expression(ABC):
    """A compiled expression. Its names are resolved; its values come with each use.

    `names_used` and `values_used` are the placeholders as written, `attributes` the names at the top of
    the item that the expression refers to, and `nested_attributes` those of them that a path leads into.

    An expression that is wrong with any values is refused when it is compiled, unless DynamoDB would first
    report an error of a value. Then `check` refuses it, and it cannot be used.
    """

    PARAMETER: ClassVar[str]

    __slots__ = (
        "_checks",
        "attributes",
        "names_used",
        "nested_attributes",
        "parameter",
        "values_used",
    )

    def __init__(self, node: Node, names: NameMap | None, parameter: str) -> None:
        tree = resolve(node, names)
        nodes = self._nodes(tree)
        used = references(nodes)
        self.parameter = parameter
        self.names_used = used.names if tree is node else references(self._nodes(node)).names
        self.values_used = used.values
        self.attributes = used.attributes
        self.nested_attributes = used.nested
        self._checks: list[OperandCheck] = []
        self._compile(tree, nodes)

    @classmethod
    def from_node(
        cls, node: Node, names: NameMap | None = None, parameter: str | None = None
    ) -> Self:
        """An expression from a tree, which may carry literals. O(nodes), not cached."""
        parameter = cls.PARAMETER if parameter is None else parameter
        with RefusedAs(parameter):
            check_words(node, written=False)
            return cls(node, names, parameter)

    @staticmethod
    @abstractmethod
    def parse(text: str) -> Any:
        """The tree of a text of this kind."""

    @staticmethod
    def _nodes(tree: Any) -> list[Node]:
        """All nodes of a tree, in the order in which DynamoDB checks them."""
        return walk_up(tree)

    @abstractmethod
    def _compile(self, tree: Any, nodes: list[Node]) -> None:
        """Take what this kind needs from a tree with resolved names, and from its nodes."""

    def check(self, values: ValueMap | None) -> None:
        """Raise `ValidationException` for undefined values and values of a wrong type. O(values)."""
        given = values or {}
        try:
            for check in self._checks:
                check(given)
        except Refusal as refusal:
            raise invalid(self.parameter, refusal) from None

    def _gather(self, nodes: list[Node]) -> bool:
        """Keep the checks of all nodes; returns whether the expression can be compiled.

        If building a check raises, the checks before it still run first: they may find an error of a value.
        """
        try:
            add_checks(nodes, self._checks)
        except Refusal as refusal:
            if not self._checks:
                raise
            self._checks.append(_refusing(refusal.with_traceback(None)))
            return False
        return True

    def __bool__(self) -> NoReturn:
        raise UsageError(f"a {type(self).__name__} is neither true nor false")


def unchecked(item: Item, values: ValueMap) -> NoReturn:
    """Stands in for the function of an expression that `check` refuses with any values."""
    raise AssertionError("an expression was used that check() refuses")


def _refusing(refusal: Refusal) -> OperandCheck:
    def check(values: ValueMap) -> NoReturn:
        raise refusal

    return check


@lru_cache(_CACHED)
def cached(
    kind: type[Expression], source: str | Node, names: tuple[tuple[str, str], ...], parameter: str
) -> Any:
    """The expression of this kind for a text or a lifted tree. O(length) the first time."""
    with RefusedAs(parameter):
        if isinstance(source, str):
            return kind(kind.parse(source), dict(names), parameter)
        check_words(source, written=False)
        # A tree's repr is more than half as long as its text, and takes much less time.
        if 2 * len(repr(source)) > EXPRESSION_SIZE:
            size = len(Writer().text(source))
            if size > EXPRESSION_SIZE:
                raise Refusal(messages.TOO_LONG, size=size)
        return kind(source, dict(names), parameter)


# Placeholders

_NAMES: Final = "ExpressionAttributeNames"
_VALUES: Final = "ExpressionAttributeValues"

_REST: Final = f"[A-Za-z0-9_]{{1,{NAME_PLACEHOLDER_SIZE - 1}}}"
_is_name_placeholder: Final = re.compile("#" + _REST).fullmatch
_is_value_placeholder: Final = re.compile(":" + _REST).fullmatch
_SURELY_SHORT: Final = ATTRIBUTE_NAME_SIZE // 4  # characters, whatever their size in UTF-8


def check_placeholders(names: NameMap | None, values: Mapping[str, object] | None) -> None:
    """Refuse placeholder maps that are empty or have malformed keys. O(keys)."""
    if names is not None:
        _check_keys(_NAMES, names, _is_name_placeholder)
        for key, name in names.items():
            if not 0 < len(name) <= _SURELY_SHORT:
                _check_name(key, name)
    if values is not None:
        _check_keys(_VALUES, values, _is_value_placeholder)


def _check_keys(parameter: str, given: Mapping[str, object], is_well_formed: Any) -> None:
    if not given:
        raise ValidationException(messages.PLACEHOLDERS_EMPTY.format(parameter=parameter))
    for key in given:
        if not is_well_formed(key):
            raise ValidationException(
                messages.PLACEHOLDER_INVALID.format(parameter=parameter, wrong=_wrong_key(key))
            )


def _wrong_key(key: str) -> str:
    if not key:
        return messages.PLACEHOLDER_EMPTY
    if len(key) > NAME_PLACEHOLDER_SIZE:
        return messages.PLACEHOLDER_TOO_LONG.format(size=len(key))
    return messages.PLACEHOLDER_SYNTAX.format(key=key)


def _check_name(key: str, name: str) -> None:
    if not name:
        wrong = messages.NAME_EMPTY
    elif len(name.encode("utf-8", "surrogatepass")) > ATTRIBUTE_NAME_SIZE:
        wrong = messages.NAME_TOO_LONG.format(size=ATTRIBUTE_NAME_SIZE + 1)
    else:
        return
    raise ValidationException(messages.NAME_INVALID.format(parameter=_NAMES, wrong=wrong, key=key))


def check_scalar_keys(
    expressions: Iterable[Expression], key_attributes: Iterable[str], label: str = "Key"
) -> None:
    """Refuse paths into key attributes, which never hold lists or maps.

    `label` is what the message calls the attribute: `Key` of a table, `IndexKey` of an index.
    """
    nested = [expression.nested_attributes for expression in expressions]
    for attribute in key_attributes:
        if any(attribute in attributes for attributes in nested):
            raise ValidationException(messages.NESTED_KEY.format(label=label, attribute=attribute))


def check_all_used(
    expressions: Iterable[Expression],
    names: NameMap | None,
    values: Mapping[str, object] | None,
) -> None:
    """Refuse a request with a placeholder that none of its expressions uses. O(keys)."""
    if names:
        unused = set(names)
        for expression in expressions:
            unused -= expression.names_used
        _refuse_unused(_NAMES, unused)
    if values:
        unused = set(values)
        for expression in expressions:
            unused -= expression.values_used
        _refuse_unused(_VALUES, unused)


def _refuse_unused(parameter: str, keys: set[str]) -> None:
    if keys:
        listed = ", ".join(sorted(keys))
        raise ValidationException(messages.UNUSED.format(parameter=parameter, keys=listed))
