"""Turns a condition on values into one condition on a sort key (begins_with, BETWEEN) that selects exactly the same.

DynamoDB takes one condition on a sort key: `=`, `<`, `<=`, `>`, `>=`, BETWEEN (which includes both ends) or
begins_with. In the table `p` is the prefix of the keys (it ends in `#`, or is empty), `p$` the same with `$`
in place of that `#`, and `v` the text of the operand:

    condition   something follows v  v is last            p is empty, v is last
    all         begins_with p        begins_with p        no condition
    >= v        p v #  …  p$         p v    …  p$         >= v
    > v         p v $  …  p$         p v $  …  p$         > v
    <= v        p      …  p v $      p      …  p v        <= v
    < v         p      …  p v        p      …  p v⁻       < v
    v to w      p v #  …  p w $      p v    …  p w        v … w

No key ever equals a text that ends in `$`. `v⁻` is the text before `v`, if values are discrete; otherwise the bound is
`p v`, which is `excluded`: the caller drops that key. For a raw text, U+0000 replaces the `$`, because `v $` would not
be above everything that begins with `v`. A descending component reverses the operator.

With another separator, that separator replaces `#`, and its last character plus one replaces `$`. Such a bound may be
an existing key, so it is `excluded` if it does not satisfy the condition.

A value has no text if it is beyond the component's width or finer than its scale. It still has a position in the order,
so a bound is first moved to the next value with a text (`fitting`):

    of Natural(9999)     is
    > 10_000_000         nothing
    < 10_000_000         <= 9999, which is everything
    == 10_000_000        nothing
    between -5 and 12    between 0 and 12
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, Literal, NamedTuple, TypeGuard

from isotone.codec.readable.interface import ABOVE_SEPARATOR, NEVER, Codec, Rounding
from isotone.errors import UsageError

Operator = Literal["=", "<", "<=", ">", ">=", "between", "begins_with"]

_REVERSED: Final[dict[str, Operator]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
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
class SortKeySelection:
    """A condition on a sort key; without an operator, every key satisfies it.

    `excluded` are bounds that DynamoDB includes but the caller must drop, because there is no exact bound.
    """

    operator: Operator | None = None
    operands: tuple[str, ...] = ()
    excluded: frozenset[str] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether no key can satisfy it, so nothing need be read."""
        return (
            self.operator == "between"
            and self.operands[0] == self.operands[1]
            and self.operands[0] in self.excluded
        )

    def admits(self, text: str) -> bool:
        """Whether a key is selected."""
        return text not in self.excluded and _HOLDS[self.operator](text, *self.operands)


def check_operands(operator: Operator | None, operands: tuple[Any, ...]) -> None:
    """Raises `UsageError` for an unknown operator or a wrong number of operands."""
    expected = _OPERANDS.get(operator)
    if expected is None:
        operators = ", ".join(name for name in _OPERANDS if name)
        raise UsageError(f"{operator!r} is not an operator of a key; use one of {operators}")
    if len(operands) != expected:
        name = operator or "a selection without an operator"
        raise UsageError(f"{name} takes {expected} operands, not {len(operands)}")


def nothing(text: str) -> SortKeySelection:
    """A selection without keys; it reads one key at most."""
    return SortKeySelection("between", (text, text), frozenset((text,)))


def under(lead: str) -> SortKeySelection:
    """All keys that begin with `lead`."""
    return SortKeySelection("begins_with", (lead,)) if lead else SortKeySelection()


def beyond(text: str) -> str:
    """The least text above all texts that begin with this one."""
    text = text.rstrip(NEVER)
    return text[:-1] + _NEXT.get(text[-1:], chr(ord(text[-1:]) + 1))


_NEXT: Final = {"\ud7ff": "\ue000"}  # the code points in between are not characters


_NOTHING: Final[frozenset[str]] = frozenset()


class Bound(NamedTuple):
    """An end of a range, and whether a key equal to it must be dropped."""

    text: str
    is_dropped: bool = False


@dataclass(frozen=True, slots=True)
class AddressedComponent:
    """The component that a condition is on: the text before it, the stop after it, and whether it is the last one.

    `is_guarded`: no key ends in the character above the separator.
    """

    lead: str
    codec: Codec[Any]
    stop: str
    last: bool
    is_guarded: bool

    def select(self, operator: Operator, operands: tuple[Any, ...]) -> SortKeySelection:
        """The selection of keys whose component satisfies a comparison or BETWEEN."""
        if operator == "between":
            low, high = operands if self.codec.ascending else operands[::-1]
            return self._between(low, high)
        value = operands[0]
        if not self.codec.ascending:
            operator = _REVERSED[operator]
        if operator in (">", ">="):
            return self._upwards(self._from(value) if operator == ">=" else self._past(value))
        if operator == "<=":
            return self._downwards(self._to(value))
        return self._below(value)

    def _between(self, low: Any, high: Any) -> SortKeySelection:
        if self._text(low) > self._text(high):
            return nothing(self._from(low).text)
        return _range(self._from(low), self._to(high))

    def _upwards(self, low: Bound) -> SortKeySelection:
        if not self.lead:
            return SortKeySelection(">=", (low.text,), _dropped(low))
        return _range(low, Bound(beyond(self.lead), not self.is_guarded))

    def _downwards(self, high: Bound) -> SortKeySelection:
        if not self.lead:
            return SortKeySelection("<=", (high.text,), _dropped(high))
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
            return Bound(text + min(self.codec.least_continuation, ABOVE_SEPARATOR))
        is_dropped = bool(self.stop) and not self.is_guarded
        return Bound(beyond(text + self.stop), is_dropped)

    def _below(self, value: Any) -> SortKeySelection:
        text = self._text(value)
        if not self.last:
            return self._downwards(Bound(text, not self.is_guarded))
        codec = self.codec
        neighbour = codec.before(value) if codec.ascending else codec.after(value)
        if neighbour is not None:
            return self._downwards(Bound(self._text(neighbour)))
        if not self.lead:
            return SortKeySelection("<", (text,))
        return self._downwards(Bound(text, is_dropped=True))


def _range(low: Bound, high: Bound) -> SortKeySelection:
    return SortKeySelection("between", (low.text, high.text), _dropped(low) | _dropped(high))


def _dropped(bound: Bound) -> frozenset[str]:
    return frozenset((bound.text,)) if bound.is_dropped else _NOTHING


def without_empty_texts(selection: SortKeySelection) -> SortKeySelection:
    """The same selection without empty texts: no key is empty, and DynamoDB refuses empty operands."""
    if "" not in selection.operands or selection.operator is None:
        return selection
    if selection.operator in (">=", "begins_with"):
        return SortKeySelection()
    if selection.operator == "between" and not selection.empty:
        high = selection.operands[1]
        return SortKeySelection("<=", (high,)) if high else nothing(ABOVE_SEPARATOR)
    return nothing(ABOVE_SEPARATOR)


# Values without a text


class ComponentCondition(NamedTuple):
    """A condition on a component."""

    operator: Operator
    operands: tuple[Any, ...]


def has_text(codec: Codec[Any], value: Any) -> bool:
    """Whether the codec has a text for the value."""
    if not _rounds(codec):
        return True
    below, above = codec.nearest(value)
    return below is not None and below == above


def fitting(
    codec: Codec[Any], operator: Operator, operands: Sequence[Any]
) -> ComponentCondition | None:
    """The same condition on values that have a text; None if nothing satisfies it."""
    if operator == "begins_with" or not _rounds(codec):
        return ComponentCondition(operator, tuple(operands))
    return _FITTING[operator](*(codec.nearest(operand) for operand in operands))


def _rounds(codec: Codec[Any]) -> TypeGuard[Rounding[Any]]:
    return _is_rounding(type(codec))


@lru_cache(maxsize=256)
def _is_rounding(kind: type[Codec[Any]]) -> bool:
    """Whether a class implements `Rounding`; cached, because `issubclass` with a protocol is slow."""
    return issubclass(kind, Rounding)


_Nearest = tuple[Any, Any]


def _above(operator: Operator, nearest: _Nearest) -> ComponentCondition | None:
    below, above = nearest
    return (
        None
        if above is None
        else ComponentCondition(operator if below == above else ">=", (above,))
    )


def _below(operator: Operator, nearest: _Nearest) -> ComponentCondition | None:
    below, above = nearest
    return (
        None
        if below is None
        else ComponentCondition(operator if below == above else "<=", (below,))
    )


def _equal(nearest: _Nearest) -> ComponentCondition | None:
    below, above = nearest
    return ComponentCondition("=", (below,)) if below is not None and below == above else None


def _between(low: _Nearest, high: _Nearest) -> ComponentCondition | None:
    if low[1] is None or high[0] is None:
        return None
    return ComponentCondition("between", (low[1], high[0]))


_FITTING: Final[dict[Operator, Callable[..., ComponentCondition | None]]] = {
    "=": _equal,
    "<": partial(_below, "<"),
    "<=": partial(_below, "<="),
    ">": partial(_above, ">"),
    ">=": partial(_above, ">="),
    "between": _between,
}
