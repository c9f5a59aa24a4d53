"""What a query asks of one key attribute, and how two such things are joined.

DynamoDB takes one condition on a sort key: a comparison, BETWEEN (both bounds included) or begins_with.
So `>= a` together with `< b` has to become one condition. Joining happens on intervals of the
attribute's own values; an open bound of a BETWEEN becomes a value that the reader drops, of which there
can be at most the two bounds themselves.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from isotone.expressions import nodes
from isotone.values.json import text_of_bytes
from isotone.values.order import sort_key
from isotone.values.types import AttributeValue

# Values that DynamoDB refuses in a key, and so in a condition on one.
EMPTY: Final[tuple[AttributeValue, ...]] = ({"S": ""}, {"B": ""})


@dataclass(frozen=True, slots=True)
class Restriction:
    """One condition on one key attribute.

    `operator` is `=`, `<`, `<=`, `>`, `>=`, `between` or `begins_with`; `excluded` are the texts of
    values that satisfy it all the same and are to be dropped.
    """

    attribute: str
    operator: str
    operands: tuple[AttributeValue, ...]
    excluded: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether no value can satisfy it."""
        low, high, *_ = interval_of(self)
        if high in EMPTY:
            return True  # as no key attribute is
        if low is None or high is None:
            return False
        first, last = sort_key(low), sort_key(high)
        return bool(first > last or (first == last and text_of(low) in self.excluded))

    def node(self) -> nodes.ConditionNode:
        """The restriction as a part of a key condition."""
        path = nodes.Path((self.attribute,))
        literals = tuple(nodes.Literal(operand) for operand in self.operands)
        if self.operator == "between":
            return nodes.Between(path, *literals)
        if self.operator == "begins_with":
            return nodes.Call("begins_with", (path, *literals))
        return nodes.Comparison(self.operator, path, literals[0])


class Interval(NamedTuple):
    """A range of values; a bound that is None is not there, an open one is not included."""

    low: AttributeValue | None
    high: AttributeValue | None
    low_open: bool = False
    high_open: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no value can lie in it."""
        if self.low is None or self.high is None:
            return False
        low, high = sort_key(self.low), sort_key(self.high)
        return bool(low > high or (low == high and (self.low_open or self.high_open)))


def interval_of(restriction: Restriction) -> Interval:
    """The values that satisfy a restriction, the excluded ones among them."""
    return _INTERVALS[restriction.operator](*restriction.operands)


def _beginning(prefix: AttributeValue) -> Interval:
    return Interval(prefix, _above(prefix), high_open=True)


_INTERVALS: Final[dict[str, Callable[..., Interval]]] = {
    "=": lambda value: Interval(value, value),
    "<": lambda value: Interval(None, value, high_open=True),
    "<=": lambda value: Interval(None, value),
    ">": lambda value: Interval(value, None, low_open=True),
    ">=": lambda value: Interval(value, None),
    "between": lambda low, high: Interval(low, high),
    "begins_with": _beginning,
}


def intersection(one: Restriction, other: Restriction) -> Restriction | None:
    """What satisfies both; None where nothing can."""
    a, b = interval_of(one), interval_of(other)
    low, low_open = _tighter(a.low, a.low_open, b.low, b.low_open, lambda x, y: x > y)
    high, high_open = _tighter(a.high, a.high_open, b.high, b.high_open, lambda x, y: x < y)
    joined = Interval(low, high, low_open, high_open)
    if joined.is_empty:
        return None
    return _restriction(one.attribute, joined, one.excluded | other.excluded)


def hull(one: Restriction, other: Restriction) -> Restriction | None:
    """One range from the lower of the two to the higher; None where that is all values.

    What the two exclude stays excluded, so it must not be in the other one.
    """
    a, b = interval_of(one), interval_of(other)
    low, low_open = _wider(a.low, a.low_open, b.low, b.low_open, lambda x, y: x < y)
    high, high_open = _wider(a.high, a.high_open, b.high, b.high_open, lambda x, y: x > y)
    if low is None and high is None:
        return None
    return _restriction(
        one.attribute, Interval(low, high, low_open, high_open), one.excluded | other.excluded
    )


def lies_before(one: Restriction, other: Restriction) -> bool:
    """Whether all values of one are below all values of the other."""
    high, low = interval_of(one).high, interval_of(other).low
    if high is None or low is None:
        return False
    if high == low:
        return interval_of(one).high_open or interval_of(other).low_open
    return bool(sort_key(high) < sort_key(low))


def _tighter(
    a: AttributeValue | None,
    a_open: bool,
    b: AttributeValue | None,
    b_open: bool,
    beats: Callable[[Any, Any], bool],
) -> tuple[AttributeValue | None, bool]:
    if a is None or b is None:
        return (b, b_open) if a is None else (a, a_open)
    if a == b:
        return a, a_open or b_open
    return (a, a_open) if beats(sort_key(a), sort_key(b)) else (b, b_open)


def _wider(
    a: AttributeValue | None,
    a_open: bool,
    b: AttributeValue | None,
    b_open: bool,
    beats: Callable[[Any, Any], bool],
) -> tuple[AttributeValue | None, bool]:
    if a is None or b is None:
        return None, False
    if a == b:
        return a, a_open and b_open
    return (a, a_open) if beats(sort_key(a), sort_key(b)) else (b, b_open)


def _restriction(attribute: str, interval: Interval, excluded: frozenset[str]) -> Restriction:
    low, high, low_open, high_open = interval
    if low is None or high is None:
        operator = (">" if low_open else ">=") if high is None else ("<" if high_open else "<=")
        bound = low if high is None else high
        assert bound is not None
        return Restriction(attribute, operator, (bound,), excluded)
    if low == high:
        return Restriction(attribute, "=", (low,), excluded)
    if high_open and not low_open and "N" not in low and _above(low) == high:
        return Restriction(attribute, "begins_with", (low,), excluded)
    dropped = {text_of(bound) for bound, is_open in ((low, low_open), (high, high_open)) if is_open}
    return Restriction(attribute, "between", (low, high), excluded | dropped)


def text_of(value: AttributeValue) -> str:
    """The text by which a key value is compared with the excluded ones."""
    ((_, content),) = value.items()
    return str(content)


_LAST_CHARACTER: Final = "\U0010ffff"
_SURROGATES: Final = (
    0xD800,
    0xE000,
)  # code points from the first up to the second are no characters


def _above(prefix: AttributeValue) -> AttributeValue | None:
    """The least value above all that begin with the prefix; None where there is none."""
    if "B" in prefix:
        raw = a2b_base64(prefix["B"]).rstrip(b"\xff")
        return {"B": text_of_bytes(raw[:-1] + bytes([raw[-1] + 1]))} if raw else None
    text = prefix["S"].rstrip(_LAST_CHARACTER)
    if not text:
        return None
    code = ord(text[-1]) + 1
    return {"S": text[:-1] + chr(_SURROGATES[1] if code == _SURROGATES[0] else code)}
