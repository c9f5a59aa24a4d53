"""The one condition on a sort key that holds for exactly the keys that are meant.

DynamoDB takes one condition on a sort key: `=`, `<`, `<=`, `>`, `>=`, BETWEEN (both ends included) or
begins_with. With `p`, what the keys begin with (it ends in `#`, or is empty), `p$`, the same with `$` in
the place of that `#`, and `v`, the text of the operand, these are the bounds:

    condition   v goes on            v is last            where p is empty, v last
    all         begins_with p        begins_with p        no condition
    >= v        p v #  …  p$         p v    …  p$         >= v
    > v         p v $  …  p$         p v $  …  p$         > v
    <= v        p      …  p v $      p      …  p v        <= v
    < v         p      …  p v        p      …  p v⁻       < v
    v to w      p v #  …  p w $      p v    …  p w        v … w

Nothing is ever written that equals a text which ends in `$`. `v⁻` is the text before `v`, where values
are discrete; elsewhere the bound is `p v`, and that one text is `excluded`: the caller drops it. A raw
text, whose `v $` would not be above all that follow `v`, has U+0000 there. A descending component turns
its operator round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from isotone.codec.readable.interface import ABOVE_SEPARATOR, SEPARATOR, Codec
from isotone.errors import UsageError

Operator = Literal["=", "<", "<=", ">", ">=", "between", "begins_with"]

_TURNED: Final[dict[str, Operator]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPERANDS: Final[dict[Operator | None, int]] = {
    None: 0,
    "=": 1,
    "<": 1,
    "<=": 1,
    ">": 1,
    ">=": 1,
    "between": 2,
    "begins_with": 1,
}
_HOLDS: Final[dict[Operator | None, Callable[..., bool]]] = {
    None: lambda text: True,
    "=": lambda text, value: text == value,
    "<": lambda text, value: text < value,
    "<=": lambda text, value: text <= value,
    ">": lambda text, value: text > value,
    ">=": lambda text, value: text >= value,
    "between": lambda text, low, high: low <= text <= high,
    "begins_with": str.startswith,
}


@dataclass(frozen=True, slots=True)
class Selection:
    """A condition on a sort key; without an operator, there is none to state.

    `excluded` are texts that the condition holds for and that are not meant: one at the most, and
    only where no exact bound exists.
    """

    operator: Operator | None = None
    operands: tuple[str, ...] = ()
    excluded: frozenset[str] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether no key at all can be meant, so that nothing need be read."""
        return (
            self.operator == "between"
            and self.operands[0] == self.operands[1]
            and self.operands[0] in self.excluded
        )

    def admits(self, text: str) -> bool:
        """Whether a key is selected."""
        return text not in self.excluded and _HOLDS[self.operator](text, *self.operands)


def check_operands(operator: Operator | None, operands: tuple[Any, ...]) -> None:
    """Raises `UsageError` for an operator that there is not, or operands of another number."""
    wanted = _OPERANDS.get(operator)
    if wanted is None:
        operators = ", ".join(each for each in _OPERANDS if each)
        raise UsageError(f"{operator!r} cannot be asked of a key; there are {operators}")
    if len(operands) != wanted:
        name = operator or "a selection without an operator"
        raise UsageError(f"{name} takes {wanted} operands, not {len(operands)}")


def nothing(text: str) -> Selection:
    """The selection of no key, which reads at the most one."""
    return Selection("between", (text, text), frozenset((text,)))


def under(lead: str) -> Selection:
    """All keys that begin with `lead`."""
    return Selection("begins_with", (lead,)) if lead else Selection()


def ceiling(lead: str) -> str:
    """What is above all that begins with `lead`, which ends in a separator."""
    return lead[:-1] + ABOVE_SEPARATOR


@dataclass(frozen=True, slots=True)
class Component:
    """The component that a condition is on: what stands before it, and whether anything follows."""

    lead: str
    codec: Codec[Any]
    last: bool

    def select(self, operator: Operator, operands: tuple[Any, ...]) -> Selection:
        """The selection of the keys whose component satisfies a comparison or BETWEEN."""
        if operator == "between":
            low, high = operands if self.codec.ascending else operands[::-1]
            return self._between(low, high)
        if not self.codec.ascending:
            operator = _TURNED[operator]
        selection = self._open(operator, operands[0])
        return self._closed(selection) if self.lead else selection

    def _between(self, low: Any, high: Any) -> Selection:
        first, final = self._from(low), self._to(high)
        if self._text(low) > self._text(high):
            return nothing(first)
        return Selection("between", (first, final))

    def _open(self, operator: Operator, value: Any) -> Selection:
        """The selection as it is where nothing else can be in the collection."""
        if operator == ">=":
            return Selection(">=", (self._from(value),))
        if operator == "<=":
            return Selection("<=", (self._to(value),))
        if operator == ">":
            return Selection(">=", (self._past(value),))
        return self._below(value)

    def _closed(self, selection: Selection) -> Selection:
        """The same between the ends of what begins with `lead`."""
        (text,) = selection.operands
        low, high = (text, ceiling(self.lead)) if selection.operator == ">=" else (self.lead, text)
        return Selection("between", (low, high), selection.excluded)

    def _text(self, value: Any) -> str:
        return self.lead + self.codec.encode(value)

    def _from(self, value: Any) -> str:
        return self._text(value) if self.last else self._text(value) + SEPARATOR

    def _to(self, value: Any) -> str:
        return self._text(value) if self.last else self._text(value) + ABOVE_SEPARATOR

    def _past(self, value: Any) -> str:
        return self._text(value) + ("\x00" if self.codec.takes_the_rest else ABOVE_SEPARATOR)

    def _below(self, value: Any) -> Selection:
        text = self._text(value)
        if not self.last:
            return Selection("<=", (text,))
        codec = self.codec
        neighbour = codec.before(value) if codec.ascending else codec.after(value)
        if neighbour is not None:
            return Selection("<=", (self._text(neighbour),))
        if not self.lead:
            return Selection("<", (text,))
        return Selection("<=", (text,), frozenset((text,)))


def without_empty_texts(selection: Selection) -> Selection:
    """The same selection without the empty text, which no key is and DynamoDB takes in no condition."""
    if "" not in selection.operands or selection.operator is None:
        return selection
    if selection.operator in (">=", "begins_with"):
        return Selection()
    if selection.operator == "between" and not selection.empty:
        high = selection.operands[1]
        return Selection("<=", (high,)) if high else nothing(ABOVE_SEPARATOR)
    return nothing(ABOVE_SEPARATOR)
