"""What is asked about values that a component has no text for: beyond its width, or finer than its scale.

No key holds such a value, but it has a place in the order of those that keys hold. So a bound moves to the
next value there is, and what lies above all keys, or below all, is asked for everything or for nothing:

    asked of Natural(9999)     is
    > 10_000_000               nothing
    < 10_000_000               <= 9999, which is everything
    == 10_000_000              nothing
    between -5 and 12          between 0 and 12
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeGuard

from isotone.codec.readable.interface import Codec, Enclosing
from isotone.codec.readable.selection import Operator


class Asked(NamedTuple):
    """A condition on a component."""

    operator: Operator
    operands: tuple[Any, ...]


def has_text(codec: Codec[Any], value: Any) -> bool:
    """Whether the value is among those that the codec encloses others by."""
    if not _encloses(codec):
        return True
    below, above = codec.around(value)
    return below is not None and below == above


def fitting(codec: Codec[Any], operator: Operator, operands: Sequence[Any]) -> Asked | None:
    """The same condition on values that have a text; None where nothing satisfies it."""
    if operator == "begins_with" or not _encloses(codec):
        return Asked(operator, tuple(operands))
    return _FITTING[operator](*(codec.around(operand) for operand in operands))


def _encloses(codec: Codec[Any]) -> TypeGuard[Enclosing[Any]]:
    return _is_enclosing(type(codec))


@lru_cache(maxsize=256)
def _is_enclosing(kind: type[Codec[Any]]) -> bool:
    """What a class implements; to look a protocol's methods up takes microseconds, and each query asks."""
    return issubclass(kind, Enclosing)


_Around = tuple[Any, Any]


def _above(operator: Operator, around: _Around) -> Asked | None:
    below, above = around
    return None if above is None else Asked(operator if below == above else ">=", (above,))


def _below(operator: Operator, around: _Around) -> Asked | None:
    below, above = around
    return None if below is None else Asked(operator if below == above else "<=", (below,))


def _equal(around: _Around) -> Asked | None:
    below, above = around
    return Asked("=", (below,)) if below is not None and below == above else None


def _between(low: _Around, high: _Around) -> Asked | None:
    if low[1] is None or high[0] is None:
        return None
    return Asked("between", (low[1], high[0]))


_FITTING: Final[dict[Operator, Callable[..., Asked | None]]] = {
    "=": _equal,
    "<": partial(_below, "<"),
    "<=": partial(_below, "<="),
    ">": partial(_above, ">"),
    ">=": partial(_above, ">="),
    "between": _between,
}
