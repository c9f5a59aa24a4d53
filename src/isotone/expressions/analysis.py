"""What all four kinds of expression have in common: what they refer to, and the look at their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, ClassVar, Final, NoReturn, Self

from isotone.errors import UsageError
from isotone.expressions import refusals
from isotone.expressions.names import NameMap, ValueMap, references
from isotone.expressions.nodes import Node
from isotone.expressions.refusals import Refusal, invalid, refused_as
from isotone.expressions.render import Writer
from isotone.expressions.rules import OperandCheck, check_words
from isotone.limits import EXPRESSION_SIZE

_CACHED: Final = 4096  # compiled expressions kept, of all kinds


class Expression:
    """An expression whose names are known and whose values come with each use.

    `names_used` and `values_used` are the placeholders as written, `attributes` the names at the top of
    the item that it refers to, and `nested_attributes` those of them that it looks into.

    Some expressions are wrong whatever their values are. They are refused when they are made, unless the
    service would find fault with a value first: those are refused by `check`, and are not `_sound`, which
    is to say that there is nothing else to be done with them.
    """

    PARAMETER: ClassVar[str]

    __slots__ = (
        "_checks",
        "_sound",
        "attributes",
        "names_used",
        "nested_attributes",
        "node",
        "parameter",
        "values_used",
    )

    def __init__(
        self, node: Node, resolved: Node, parameter: str, checks: Iterable[OperandCheck] = ()
    ) -> None:
        referred = references(resolved)
        self.node = node
        self.parameter = parameter
        self.names_used = references(node).names
        self.values_used = referred.values
        self.attributes = referred.attributes
        self.nested_attributes = referred.nested
        self._checks, self._sound = _gathered(checks)

    @classmethod
    def from_node(
        cls, node: Any, names: NameMap | None = None, parameter: str | None = None
    ) -> Self:
        """An expression from a tree, which may carry literals. O(nodes), not cached."""
        parameter = parameter or cls.PARAMETER
        make: Any = cls
        with refused_as(parameter):
            check_words(node, written=False)
            return make(node, names, parameter)  # type: ignore[no-any-return] # an instance of cls

    def check(self, values: ValueMap | None) -> None:
        """Raise `ValidationException` where values are undefined or of types that do not fit. O(values)."""
        given = values or {}
        try:
            for check in self._checks:
                check(given)
        except Refusal as refusal:
            raise invalid(self.parameter, refusal) from None

    def __bool__(self) -> NoReturn:
        raise UsageError(f"a {type(self).__name__} is neither true nor false")


@lru_cache(_CACHED)
def cached(
    kind: Any,
    parse: Callable[[str], Node],
    source: str | Node,
    names: tuple[tuple[str, str], ...],
    parameter: str,
) -> Any:
    """The expression of this kind that a text or a lifted tree says. O(length) the first time."""
    with refused_as(parameter):
        if isinstance(source, str):
            return kind(parse(source), dict(names), parameter)
        check_words(source, written=False)
        size = len(Writer().text(source))
        if size > EXPRESSION_SIZE:
            raise Refusal(refusals.TOO_LONG, size=size)
        return kind(source, dict(names), parameter)


def _gathered(checks: Iterable[OperandCheck]) -> tuple[tuple[OperandCheck, ...], bool]:
    """The checks, up to a refusal that needs no values; and whether there was none."""
    found: list[OperandCheck] = []
    try:
        for check in checks:
            found.append(check)  # noqa: PERF402  # what came before a refusal counts
    except Refusal as refusal:
        if not found:
            raise
        found.append(_refusing(refusal.with_traceback(None)))
        return tuple(found), False
    return tuple(found), True


def _refusing(refusal: Refusal) -> OperandCheck:
    def check(values: ValueMap) -> NoReturn:
        raise refusal

    return check
