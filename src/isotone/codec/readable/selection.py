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

With another separator, or none, it is in the place of `#`, and its last character raised by one in that
of `$`. Then such a bound may be somebody's key, and is `excluded` where it is not meant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from isotone.codec.readable.interface import ABOVE_SEPARATOR, NEVER, Codec
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

    `excluded` are texts that the condition holds for and that are not meant: the bounds themselves,
    and only where no exact bound exists.
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


def beyond(text: str) -> str:
    """What is above all that begins with a text, and below all that sorts above it."""
    text = text.rstrip(NEVER)
    return text[:-1] + _NEXT.get(text[-1:], chr(ord(text[-1:]) + 1))


_NEXT: Final = {"\ud7ff": "\ue000"}  # the code points between them are no characters


_NOTHING: Final[frozenset[str]] = frozenset()


class Bound(NamedTuple):
    """An end of a range, and whether a key that equals it would be dropped."""

    text: str
    is_dropped: bool = False


@dataclass(frozen=True, slots=True)
class Component:
    """The component that a condition is on: what stands before it, what it stops before, and whether
    anything follows.

    `is_guarded` says that nobody writes a key which ends in the character above the separator.
    """

    lead: str
    codec: Codec[Any]
    stop: str
    last: bool
    is_guarded: bool

    def select(self, operator: Operator, operands: tuple[Any, ...]) -> Selection:
        """The selection of the keys whose component satisfies a comparison or BETWEEN."""
        if operator == "between":
            low, high = operands if self.codec.ascending else operands[::-1]
            return self._between(low, high)
        value = operands[0]
        if not self.codec.ascending:
            operator = _TURNED[operator]
        if operator in (">", ">="):
            return self._upwards(self._from(value) if operator == ">=" else self._past(value))
        if operator == "<=":
            return self._downwards(self._to(value))
        return self._below(value)

    def _between(self, low: Any, high: Any) -> Selection:
        if self._text(low) > self._text(high):
            return nothing(self._from(low).text)
        return _range(self._from(low), self._to(high))

    def _upwards(self, low: Bound) -> Selection:
        if not self.lead:
            return Selection(">=", (low.text,), _dropped(low))
        return _range(low, Bound(beyond(self.lead), not self.is_guarded))

    def _downwards(self, high: Bound) -> Selection:
        if not self.lead:
            return Selection("<=", (high.text,), _dropped(high))
        return _range(Bound(self.lead), high)

    def _text(self, value: Any) -> str:
        return self.lead + self.codec.encode(value)

    def _from(self, value: Any) -> Bound:
        return Bound(self._text(value) + self.stop)

    def _to(self, value: Any) -> Bound:
        if self.last:
            return Bound(self._text(value))
        return Bound(beyond(self._text(value) + self.stop), not self.is_guarded)

    def _past(self, value: Any) -> Bound:
        text = self._text(value)
        if self.last:
            return Bound(text + min(self.codec.goes_on, ABOVE_SEPARATOR))
        is_dropped = bool(self.stop) and not self.is_guarded
        return Bound(beyond(text + self.stop), is_dropped)

    def _below(self, value: Any) -> Selection:
        text = self._text(value)
        if not self.last:
            return self._downwards(Bound(text, not self.is_guarded))
        codec = self.codec
        neighbour = codec.before(value) if codec.ascending else codec.after(value)
        if neighbour is not None:
            return self._downwards(Bound(self._text(neighbour)))
        if not self.lead:
            return Selection("<", (text,))
        return self._downwards(Bound(text, is_dropped=True))


def _range(low: Bound, high: Bound) -> Selection:
    return Selection("between", (low.text, high.text), _dropped(low) | _dropped(high))


def _dropped(bound: Bound) -> frozenset[str]:
    return frozenset((bound.text,)) if bound.is_dropped else _NOTHING


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
