"""The bounds of the key attributes (prefix, range) that the conditions of `where` make, or `Unanswerable`.

DynamoDB reads one range of one partition. So a key answers conditions that give `==` for every partition field, then
`==` for the first sort fields, then at most one range, on the next field. Items that satisfy other conditions are
scattered over the key's order. Such conditions are refused, with advice, because reading and dropping items has a
hidden cost.

DynamoDB allows one condition on a sort key: a comparison, BETWEEN (both bounds included) or begins_with. So `>= a` and
`< b` must become one condition. They are intersected as intervals; for an exclusive bound of a BETWEEN, the reader
drops that value.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from isotone.codec.readable import SortKeySelection
from isotone.errors import Unanswerable, UsageError
from isotone.expressions import nodes
from isotone.model.declaring.conditions import (
    ORDERINGS,
    PRESENCE,
    All,
    Condition,
    FunctionTest,
    ValueComparison,
    not_a_condition,
)
from isotone.model.declaring.keys import BoundKey, Component, NativeSlot, Slot, StringSlot
from isotone.values.json import text_of_bytes
from isotone.values.types import AttributeValue, Item, sort_key

RANGES: Final = ORDERINGS | {"begins_with"}

_PYTHON: Final = {"<>": "!=", "in": "is_in()"}
_INSTEAD: Final = {
    "<>": "put it in .filter(…)",
    "in": "make one query for each value, or put it in .filter(…)",
}


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """The part of a key's order that contains the wanted items.

    `is_empty`: the conditions exclude one another, so nothing is read. `free` is the first field that varies within the
    range; the items are sorted by it.
    """

    restrictions: tuple[Restriction, ...]
    free: Component | None = None
    is_empty: bool = False

    @property
    def excluded(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """For each attribute, the values in the range that must be dropped."""
        return tuple((r.attribute, r.excluded) for r in self.restrictions if r.excluded)


def bounds(key: BoundKey, conditions: Iterable[Condition]) -> KeyBounds:
    """The bounds of a key that contain exactly the items satisfying the conditions.

    Raises `Unanswerable` if the key's order cannot answer a condition.
    """
    asked = _ConditionsByField(key, conditions)
    restrictions = [_partition(slot, asked) for slot in key.partition]
    free: Component | None = None
    is_empty = asked.contradictory or any(each.is_empty for each in restrictions)
    for slot in key.sort:
        if free is not None:
            asked.refuse_after(free, slot.components)
            continue
        equal, free = asked.leading(slot)
        joined, impossible = _sort(slot, asked, equal, free)
        is_empty = is_empty or impossible
        restrictions += joined
    return KeyBounds(tuple(restrictions), free, is_empty)


def flat(conditions: Iterable[Condition]) -> Iterator[Condition]:
    """The conditions, with each `&` split into its parts."""
    for condition in conditions:
        if isinstance(condition, All):
            yield from flat(condition.operands)
        else:
            yield condition


class _ConditionsByField:
    """A query's conditions by field: equal values and ranges."""

    def __init__(self, key: BoundKey, conditions: Iterable[Condition]) -> None:
        self.key = key
        self.equal: dict[str, Any] = {}
        self.ranges: dict[str, list[ValueComparison]] = {}
        self.contradictory = False
        for condition in flat(conditions):
            self._add(_comparison(key, condition, key.component_names))

    def _add(self, condition: ValueComparison) -> None:
        name = condition.field.name
        if condition.operator in RANGES:
            self.ranges.setdefault(name, []).append(condition)
        elif name in self.equal and self.equal[name] != condition.values[0]:
            self.contradictory = True
        else:
            self.equal[name] = condition.values[0]
        if name in self.equal and name in self.ranges:
            raise Unanswerable(
                f"{self.key.name}: {name!r} must equal a value and lie in a range; give only one of them"
            )

    def leading(self, slot: Slot) -> tuple[int, Component | None]:
        """How many leading components of a slot have equal values, and the component after them."""
        for place, component in enumerate(slot.components):
            if component.field.name not in self.equal:
                self.refuse_after(component, slot.components[place + 1 :])
                return place, component
        return len(slot.components), None

    def refuse_after(self, free: Component, components: Iterable[Component]) -> None:
        """Raise for a condition on a component that follows one without a fixed value."""
        partition = {c.field.name for slot in self.key.partition for c in slot.components}
        for component in components:
            name = component.field.name
            if name in partition or not (name in self.equal or name in self.ranges):
                continue
            first = free.field.name
            raise Unanswerable(
                f"{self.key.name} orders by {first!r} before {name!r}, so a condition on {name!r} does not select "
                f"one range; add {first} == …, use a key with {name} before {first}, or put the condition in "
                f".filter(…), which reads and pays for the items that it drops"
            )


def _comparison(key: BoundKey, condition: Condition, in_key: frozenset[str]) -> ValueComparison:
    """The condition, if it compares a key field in a way that an order can answer."""
    if not isinstance(condition, Condition):
        raise not_a_condition(condition)
    if (
        isinstance(condition, ValueComparison)
        and not condition.path
        and _is_answered(condition, in_key)
    ):
        return condition
    names = ", ".join(dict.fromkeys(field.name for field in condition.fields()))
    if isinstance(condition, FunctionTest) and condition.function in PRESENCE and names in in_key:
        raise Unanswerable(
            f"{key.name}: every item in it has a value for {names!r}, and items without one are not in it, "
            "so leave this condition out; to find those without one, use another key and .filter(…)"
        )
    if not isinstance(condition, ValueComparison) or condition.path:
        if names not in in_key:
            _refuse_sparse(key, names)
        raise Unanswerable(
            f"{key.name}: a key cannot answer a condition on {names} that is not a plain comparison of a "
            "field; put it in .filter(…)"
        )
    if condition.field.name not in in_key:
        _refuse_sparse(key, condition.field.name)
        parts = ", ".join(dict.fromkeys(component.field.name for component in key.components))
        raise Unanswerable(
            f"{names!r} is not part of key {key.name} ({parts or 'no fields'}); put the condition in "
            ".filter(…), which reads and pays for the items that it drops, or declare an index"
        )
    raise Unanswerable(
        f"{key.name}: {_PYTHON[condition.operator]} on {names!r} is not one range of a key; "
        f"{_INSTEAD[condition.operator]}"
    )


def _is_answered(condition: ValueComparison, in_key: frozenset[str]) -> bool:
    operator = condition.operator
    return condition.field.name in in_key and (operator == "=" or operator in RANGES)


def _refuse_sparse(key: BoundKey, name: str) -> None:
    """Raise for a condition on a field of the index's own `when`, which all its entries satisfy already."""
    if key.when is not None and name in {field.name for field in key.when.fields()}:
        raise Unanswerable(
            f"{key.name} has entries only for what satisfies its when=, a condition on {name!r}; leave "
            "this one out if it means the same, put it in .filter(…) if it demands more, and use another "
            "key if it means something else"
        )


# The restriction of each key attribute


def _partition(slot: Slot, asked: _ConditionsByField) -> Restriction:
    for component in slot.components:
        name = component.field.name
        if name in asked.equal:
            continue
        given = "only has a range" if name in asked.ranges else "has no condition on it"
        raise Unanswerable(
            f"{asked.key.name} groups items by {name!r}, so a query needs {name} == …, and this one "
            f"{given}; to read all groups, write .scan()"
        )
    if isinstance(slot, StringSlot) and not slot.can_hold(asked.equal):
        return Restriction(slot.attribute.name, "=", EMPTY[:1])  # no key is ever empty
    value = slot.encode(asked.equal)
    if value is None:
        raise UsageError(
            f"{asked.key.name}: a key never contains None; use another key and .filter(…)"
        )
    if asked.key.reserved:
        asked.key.check_reserved(value, asked.equal)
    return Restriction(slot.attribute.name, "=", (value,))


def _sort(
    slot: Slot, asked: _ConditionsByField, equal: int, free: Component | None
) -> tuple[list[Restriction], bool]:
    """The restriction of a sort key attribute, and whether no value can satisfy it."""
    ranges: Sequence[ValueComparison | None] = (
        asked.ranges.get(free.field.name, ()) if free is not None else ()
    )
    joined: Restriction | None = None
    for condition in ranges or (None,):
        restriction = _restriction(slot, asked, equal, condition)
        if restriction is None:
            continue
        if restriction.is_empty:
            return [], True
        joined = restriction if joined is None else intersection(joined, restriction)
        if joined is None:
            return [], True
    return ([] if joined is None else [joined]), False


def _restriction(
    slot: Slot, asked: _ConditionsByField, equal: int, condition: ValueComparison | None
) -> Restriction | None:
    """One condition as a restriction of a sort key attribute; None if no value satisfies it."""
    if condition is not None and condition.field.order is not None:
        _check_order(asked.key, slot, equal, condition)
    if isinstance(slot, NativeSlot):
        return _native(slot, asked, condition)
    if condition is None and equal == 0:
        return _whole(slot)
    leading = [
        slot.to_codec(place, asked.equal[component.field.name])
        for place, component in enumerate(slot.components[:equal])
    ]
    operator: Any = None if condition is None else condition.operator
    operands: Sequence[Any] = () if condition is None else condition.values
    if operator != "begins_with":  # its operand is a text, whatever the field's type
        operands = [slot.to_codec(equal, value) for value in operands]
    try:
        selection = slot.template.select(leading, operator, operands)
    except Unanswerable as error:
        if operator == "begins_with":
            raise Unanswerable(f"{asked.key.name}: {error}") from None
        name = slot.components[equal].field.name
        raise Unanswerable(
            f"{asked.key.name} has {name!r} in a form that does not sort, so items are not in the order of "
            f"{name}; give {name} == …, or .begins_with(…) of a string, or put the condition in "
            ".filter(…), which reads and pays for the items that it drops"
        ) from None
    return _restricted(slot, selection)


def _check_order(key: BoundKey, slot: Slot, place: int, condition: ValueComparison) -> None:
    """Raise if the key sorts an enum's values in another order than the condition compares them."""
    order = condition.field.order or ()
    if condition.operator in ORDERINGS and not _has_order(slot, place, order):
        name = condition.field.name
        raise Unanswerable(
            f"{key.name} sorts {name!r} by its stored text, which is not the order of its values; write "
            f"in_order({name}) in a key, or put the condition in .filter(…), which reads and pays for the "
            "items that it drops"
        )


@lru_cache(maxsize=1024)
def _has_order(slot: Slot, place: int, order: tuple[Any, ...]) -> bool:
    """Whether a key sorts the values of an enum, a Literal or a bool in this order."""
    if isinstance(slot, NativeSlot):
        keys: list[Any] = [sort_key(slot.encode({slot.field.name: value}) or {}) for value in order]
    else:
        encode = slot.template.codecs[place].encode
        keys = [encode(slot.to_codec(place, value)) for value in order]
    return keys == sorted(keys, reverse=slot.components[place].descending)


@lru_cache(maxsize=1024)
def _whole(slot: StringSlot) -> Restriction | None:
    """The attribute's range for this entity, whatever its values; None for the whole attribute."""
    return _restricted(slot, slot.template.select())


def _restricted(slot: StringSlot, selection: SortKeySelection) -> Restriction | None:
    if selection.operator is None:
        return None
    texts = tuple({"S": text} for text in selection.operands)
    return Restriction(slot.attribute.name, selection.operator, texts, selection.excluded)


def _native(
    slot: NativeSlot, asked: _ConditionsByField, condition: ValueComparison | None
) -> Restriction | None:
    name = slot.field.name
    if name in asked.equal:
        return Restriction(
            slot.attribute.name, "=", (slot.stored(slot.field.encode(asked.equal[name])),)
        )
    if condition is None:
        return None
    operands = tuple(map(condition.wire, condition.values))
    if slot.components[0].descending:
        turned = tuple(slot.stored(operand) for operand in reversed(operands))
        return Restriction(slot.attribute.name, _TURNED[condition.operator], turned)
    if operands[0] in EMPTY and condition.operator in (">", ">=", "begins_with"):
        return None  # every key is above an empty text, and begins with it
    if operands[0] in EMPTY and condition.operator == "between":
        return Restriction(slot.attribute.name, "<=", operands[1:])
    return Restriction(slot.attribute.name, condition.operator, operands)


_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "between": "between"}
"""The operators to use for numbers that are stored in descending order."""

# Values that DynamoDB refuses in keys, and therefore in key conditions.
EMPTY: Final[tuple[AttributeValue, ...]] = ({"S": ""}, {"B": ""})


@dataclass(frozen=True, slots=True)
class Restriction:
    """One condition on one key attribute.

    `operator` is `=`, `<`, `<=`, `>`, `>=`, `between` or `begins_with`. `excluded` lists values (as texts) that satisfy
    it but must be dropped.
    """

    attribute: str
    operator: str
    operands: tuple[AttributeValue, ...]
    excluded: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether no value can satisfy it."""
        if not self.excluded:
            if self.operator == "=":
                return self.operands[0] in EMPTY
            if self.operator == "begins_with":
                return False
        low, high, *_ = interval_of(self)
        if high in EMPTY:
            return True
        if low is None or high is None:
            return False
        first, last = sort_key(low), sort_key(high)
        return bool(first > last or (first == last and text_of(low) in self.excluded))

    def node(self) -> nodes.ConditionNode:
        """The restriction as part of a key condition."""
        path = nodes.Path((self.attribute,))
        literals = tuple(nodes.Literal(operand) for operand in self.operands)
        if self.operator == "between":
            return nodes.Between(path, *literals)
        if self.operator == "begins_with":
            return nodes.Call("begins_with", (path, *literals))
        return nodes.Comparison(self.operator, path, literals[0])


def text_of(value: AttributeValue) -> str:
    """A key value as text, to compare with the excluded ones."""
    ((_, content),) = value.items()
    return str(content)


# Intervals


class Interval(NamedTuple):
    """A range of values. None means unbounded; an open bound is not included."""

    low: AttributeValue | None = None
    high: AttributeValue | None = None
    low_open: bool = False
    high_open: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it contains no value."""
        if self.low is None or self.high is None:
            return False
        low, high = sort_key(self.low), sort_key(self.high)
        return bool(low > high or (low == high and (self.low_open or self.high_open)))


def interval_of(restriction: Restriction) -> Interval:
    """The values that satisfy a restriction, including the excluded ones."""
    return _INTERVALS[restriction.operator](*restriction.operands)


_INTERVALS: Final[dict[str, Callable[..., Interval]]] = {
    "=": lambda value: Interval(value, value),
    "<": lambda value: Interval(None, value, high_open=True),
    "<=": lambda value: Interval(None, value),
    ">": lambda value: Interval(value, None, low_open=True),
    ">=": lambda value: Interval(value, None),
    "between": lambda low, high: Interval(low, high),
    "begins_with": lambda prefix: Interval(prefix, end_of_prefix(prefix), high_open=True),
}


def intersection(one: Restriction, other: Restriction) -> Restriction | None:
    """The values that satisfy both; None if there are none."""
    both = (interval_of(one), interval_of(other))
    low = max((each for each in both if each.low is not None), key=_low, default=Interval())
    high = min((each for each in both if each.high is not None), key=_high, default=Interval())
    joined = Interval(low.low, high.high, low.low_open, high.high_open)
    return None if joined.is_empty else _of_interval(one, other, joined)


def side_of(bounds: KeyBounds, key: Item) -> int:
    """Where a key lies: -1 below the bounds, 0 within them, 1 above them."""
    for restriction in bounds.restrictions:
        value = sort_key(key[restriction.attribute])
        low, high, low_open, high_open = interval_of(restriction)
        if low is not None and (value < sort_key(low) or (low_open and value == sort_key(low))):
            return -1
        if high is not None and (value > sort_key(high) or (high_open and value == sort_key(high))):
            return 1
    return 0


def hull(one: Restriction, other: Restriction) -> Restriction | None:
    """One range from the lower bound of both to the higher; None if that covers all values.

    Values that one of them excludes stay excluded, so the other must not contain them.
    """
    both = (interval_of(one), interval_of(other))
    low = Interval() if any(each.low is None for each in both) else min(both, key=_low)
    high = Interval() if any(each.high is None for each in both) else max(both, key=_high)
    if low.low is None and high.high is None:
        return None
    return _of_interval(one, other, Interval(low.low, high.high, low.low_open, high.high_open))


def contains(range_: KeyBounds, key: Item) -> bool:
    """Whether a key lies in the bounds."""
    return not range_.is_empty and all(_admits(each, key) for each in range_.restrictions)


def _admits(restriction: Restriction, key: Item) -> bool:
    value = key.get(restriction.attribute)
    if value is None or text_of(value) in restriction.excluded:
        return False
    low, high, low_open, high_open = interval_of(restriction)
    place = sort_key(value)
    return not (
        (low is not None and (place < sort_key(low) or (low_open and low == value)))
        or (high is not None and (place > sort_key(high) or (high_open and high == value)))
    )


def lies_before(one: Restriction, other: Restriction) -> bool:
    """Whether all values of one lie below all values of the other."""
    below, above = interval_of(one), interval_of(other)
    if below.high is None or above.low is None:
        return False
    if below.high == above.low:
        return below.high_open or above.low_open
    return bool(sort_key(below.high) < sort_key(above.low))


def _low(interval: Interval) -> Any:
    """A sort key for intervals by lower bound; only for those that have one."""
    assert interval.low is not None
    return sort_key(interval.low), interval.low_open


def _high(interval: Interval) -> Any:
    """A sort key for intervals by upper bound; only for those that have one."""
    assert interval.high is not None
    return sort_key(interval.high), not interval.high_open


def _of_interval(one: Restriction, other: Restriction, interval: Interval) -> Restriction:
    """The restriction to an interval, with the values that the two exclude."""
    attribute, excluded = one.attribute, one.excluded | other.excluded
    low, high, low_open, high_open = interval
    if low is None or high is None:
        operator = (">" if low_open else ">=") if high is None else ("<" if high_open else "<=")
        bound = low if high is None else high
        assert bound is not None
        return Restriction(attribute, operator, (bound,), excluded)
    if low == high:
        return Restriction(attribute, "=", (low,), excluded)
    if high_open and not low_open and "N" not in low and end_of_prefix(low) == high:
        return Restriction(attribute, "begins_with", (low,), excluded)
    dropped = {text_of(bound) for bound, is_open in ((low, low_open), (high, high_open)) if is_open}
    return Restriction(attribute, "between", (low, high), excluded | dropped)


_LAST_CHARACTER: Final = "\U0010ffff"
_SURROGATES: Final = (
    0xD800,
    0xE000,
)  # from the first up to the second, code points are not characters


def end_of_prefix(prefix: AttributeValue) -> AttributeValue | None:
    """The least value above all values that begin with the prefix; None if there is none."""
    if "B" in prefix:
        raw = a2b_base64(prefix["B"]).rstrip(b"\xff")
        return {"B": text_of_bytes(raw[:-1] + bytes([raw[-1] + 1]))} if raw else None
    text = prefix["S"].rstrip(_LAST_CHARACTER)
    if not text:
        return None
    code = ord(text[-1]) + 1
    return {"S": text[:-1] + chr(_SURROGATES[1] if code == _SURROGATES[0] else code)}


# Keys as a whole


def range_of(key: BoundKey) -> Restriction | None:
    """The range in which all items of a key lie; None if they can lie anywhere."""
    slot = key.sort[0] if len(key.sort) == 1 else None
    if not isinstance(slot, StringSlot):
        return None
    selection = slot.template.select()
    if selection.operator is None:
        return None
    texts = tuple({"S": text} for text in selection.operands)
    return Restriction(slot.attribute.name, selection.operator, texts)


def may_share(one: BoundKey, other: BoundKey) -> bool:
    """Whether items of two keys can be in the same collection."""
    for slot, its in zip(one.partition, other.partition, strict=True):
        if (
            isinstance(slot, StringSlot)
            and isinstance(its, StringSlot)
            and slot.template.is_ambiguous_with(its.template) is None
        ):
            return False
    return True
