"""What all four kinds of expression have in common: what they refer to, and the look at their values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from isotone.errors import UsageError
from isotone.expressions.names import ValueMap, references
from isotone.expressions.nodes import Node
from isotone.expressions.refusals import Refusal, invalid
from isotone.expressions.rules import OperandCheck


class Expression:
    """An expression whose names are known and whose values come with each use.

    `names_used` and `values_used` are the placeholders as written, `attributes` the names at the top of
    the item that it refers to, and `nested_attributes` those of them that it looks into.

    Some expressions are wrong whatever their values are. They are refused when they are made, unless the
    service would find fault with a value first: those are refused by `check`, and are not `_sound`, which
    is to say that there is nothing else to be done with them.
    """

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
