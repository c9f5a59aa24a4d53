"""The base class of the five kinds of expression, and the cache of compiled expressions.

An expression that uses an undefined placeholder is refused here. `placeholders` refuses placeholders that a request
defines but never uses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NoReturn, Self, TypeAlias

from isotone.errors import UsageError
from isotone.expressions import messages
from isotone.expressions.messages import RefusalMessage, RefusedAs, invalid, refused
from isotone.expressions.nodes import (
    Call,
    Literal,
    Node,
    ValueRef,
    references,
    resolve,
    walk_up,
)
from isotone.expressions.operands import ValueMap
from isotone.expressions.render import Writer
from isotone.expressions.rules import OperandCheck, ValueDefinition, add_checks, check_words
from isotone.limits import EXPRESSION_OPERATORS, EXPRESSION_SIZE
from isotone.values.cache import Cache
from isotone.values.types import Item

NameMap: TypeAlias = Mapping[str, str]

Key: TypeAlias = tuple[type["Expression"], str | Node, tuple[tuple[str, str], ...], str]
"""What an expression is compiled from: its kind, its text or lifted tree, its names, and its request parameter."""

_CACHED: Final = 24 << 20  # bytes of compiled expressions of all kinds together
_VALUES: Final = frozenset({ValueRef, Literal})


class Expression(ABC):
    """A compiled expression. Its names are resolved; values are passed with each use.

    `names_used` and `values_used` are the placeholders as written. `attributes` are the top-level attribute names that
    the expression refers to, and `nested_attributes` those with paths into them. `nodes` counts the nodes of the tree,
    and `searches` the functions that look for an element.

    An expression that is wrong for any values is refused when it is compiled, unless DynamoDB would report an error in
    a value first. In that case `check` refuses it, and the expression cannot be used.
    """

    PARAMETER: ClassVar[str]
    TOO_LONG: ClassVar[str] = messages.TOO_LONG
    MOST_OPERATORS: ClassVar[float] = EXPRESSION_OPERATORS

    __slots__ = (
        "_checks",
        "_type_checks",
        "attributes",
        "names_used",
        "nested_attributes",
        "nodes",
        "parameter",
        "searches",
        "values_used",
    )

    def __init__(self, node: Node, names: NameMap | None, parameter: str) -> None:
        tree = resolve(node, names)
        nodes = self._nodes(tree)
        used = references(nodes)
        self.parameter: str = parameter
        self.names_used: frozenset[str] = (
            used.names if tree is node else references(self._nodes(node)).names
        )
        self.values_used: frozenset[str] = used.values
        self.attributes: frozenset[str] = used.attributes
        self.nested_attributes: frozenset[str] = used.nested
        self.nodes: int = 0
        self.searches: int = 0
        each: Any
        for each in nodes:  # inlined: some expressions are compiled for a single request
            kind = type(each)
            if kind in _VALUES:
                continue
            self.nodes += 1
            if kind is Call and each.function == "contains":
                self.searches += 1
        self._checks: list[OperandCheck] = []
        self._compile(tree, nodes)
        self._type_checks = [each for each in self._checks if type(each) is not ValueDefinition]

    @classmethod
    def from_node(cls, node: Node, parameter: str | None = None) -> Self:
        """An expression from a tree, which may carry literals. O(nodes), not cached."""
        parameter = cls.PARAMETER if parameter is None else parameter
        with RefusedAs(parameter):
            check_words(node, written=False)
            return cls(node, None, parameter)

    @staticmethod
    @abstractmethod
    def parse(text: str) -> Any:
        """The tree of a text of this kind."""

    @staticmethod
    def _nodes(tree: Any) -> list[Node]:
        """All nodes of a tree, in DynamoDB's order of checks."""
        return walk_up(tree)

    @abstractmethod
    def _compile(self, tree: Any, nodes: list[Node]) -> None:
        """Take what this kind needs from the tree and its nodes; names are resolved."""

    def check(self, values: ValueMap | None) -> None:
        """Raise `ValidationException` for undefined values and values of a wrong type. O(values)."""
        given = values or {}
        # If all values are defined, the checks for undefined values need not run.
        checks = self._type_checks if self.values_used.issubset(given) else self._checks
        try:
            for check in checks:
                check(given)
        except RefusalMessage as refusal:
            raise invalid(self.parameter, refusal) from None

    def _gather(self, nodes: list[Node]) -> bool:
        """Collect the checks of all nodes; returns whether the expression can be compiled.

        If building a check raises, the checks before it still run first, because they may find an error in a value.
        """
        try:
            add_checks(nodes, self._checks, self.MOST_OPERATORS)
        except RefusalMessage as refusal:
            if not self._checks:
                raise
            self._checks.append(_refusing(refusal.with_traceback(None)))
            return False
        return True

    def __bool__(self) -> NoReturn:
        raise UsageError(f"a {type(self).__name__} is neither true nor false")


def unchecked(item: Item, values: ValueMap) -> NoReturn:
    """Replaces the function of an expression that `check` refuses whatever the values are."""
    raise AssertionError("an expression was used that check() refuses")


def _refusing(refusal: RefusalMessage) -> OperandCheck:
    def check(values: ValueMap) -> NoReturn:
        raise refusal

    return check


def _compiled(key: Key, length: int) -> Any:
    """The expression of a kind for a text or a lifted tree. O(length)."""
    kind, source, names, parameter = key
    try:
        if isinstance(source, str):
            _check_size(kind, len(source))
            return kind(kind.parse(source), dict(names), parameter)
        check_words(source, written=False)
        # The repr of a tree is at least half as long as its text, and much cheaper to measure.
        if 2 * length > EXPRESSION_SIZE:
            _check_size(kind, len(Writer().text(source)))
        return kind(source, dict(names), parameter)
    except (RefusalMessage, RecursionError) as error:
        raise refused(parameter, error) from None


def _check_size(kind: type[Expression], size: int) -> None:
    if size > EXPRESSION_SIZE:
        raise RefusalMessage(kind.TOO_LONG, size=size)


COMPILED: Final[Cache[Key, Any]] = Cache(_compiled, _CACHED)
"""The compiled expressions of all kinds."""
