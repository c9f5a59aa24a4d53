"""From conditions on fields to exact conditions on key attributes.

DynamoDB reads a range of one partition. So a key answers conditions that say `==` for every field of
its partition, then `==` for the first fields of its order, then at most one range, on the field that
comes next. Whatever else is asked for lies scattered over the key's order, and is refused with what to
write instead: silently reading and dropping it would cost what nobody sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isotone.errors import Unanswerable, UsageError
from isotone.model.declaring.components import Component
from isotone.model.declaring.conditions import All, Comparison, Condition, Test
from isotone.model.declaring.keys import BoundKey, NativeSlot, Slot, StringSlot
from isotone.model.reading.intervals import EMPTY, Restriction, intersection

RANGES: Final = frozenset({"<", "<=", ">", ">=", "between", "begins_with"})


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """The part of a key's order that holds what was asked for.

    `is_empty` says that the conditions exclude one another, so that nothing needs to be read. `free`
    is the first field that differs among the items of the range: the one by which they come sorted.
    """

    restrictions: tuple[Restriction, ...]
    free: Component | None = None
    is_empty: bool = False

    @property
    def excluded(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """For each attribute that has such, the values to be dropped from the range."""
        return tuple((r.attribute, r.excluded) for r in self.restrictions if r.excluded)


def bounds(key: BoundKey, conditions: Iterable[Condition]) -> KeyBounds:
    """The bounds of a key that hold exactly the items that satisfy the conditions.

    Raises `Unanswerable` for conditions that the key's order cannot answer.
    """
    asked = _Asked(key, conditions)
    restrictions = [_partition(slot, asked) for slot in key.partition]
    free: Component | None = None
    is_empty = asked.contradictory or any(each.is_empty for each in restrictions)
    for slot in key.sort:
        if free is not None:
            asked.refuse_beyond(slot.components, free)
            continue
        equal, free = asked.leading(slot)
        found, impossible = _sort(slot, asked, equal, free)
        is_empty = is_empty or impossible
        restrictions += found
    return KeyBounds(tuple(restrictions), free, is_empty)


class _Asked:
    """The conditions, sorted by field and by what they ask."""

    def __init__(self, key: BoundKey, conditions: Iterable[Condition]) -> None:
        self.key = key
        self.equal: dict[str, Any] = {}
        self.ranges: dict[str, list[Comparison]] = {}
        self.contradictory = False
        own = {component.field.name for component in key.components}
        for condition in flat(conditions):
            self._take(_comparison(key, condition, own))

    def _take(self, condition: Comparison) -> None:
        name = condition.field.name
        if condition.operator in RANGES:
            self.ranges.setdefault(name, []).append(condition)
        elif name in self.equal and self.equal[name] != condition.values[0]:
            self.contradictory = True
        else:
            self.equal[name] = condition.values[0]
        if name in self.equal and name in self.ranges:
            raise Unanswerable(
                f"{self.key.name}: {name!r} is asked to equal a value and to lie in a range; ask for one"
            )

    def leading(self, slot: Slot) -> tuple[int, Component | None]:
        """How many components of a slot are given by equality, and the one after them."""
        for place, component in enumerate(slot.components):
            if component.field.name not in self.equal:
                beyond = slot.components[place + 1 :]
                self.refuse_beyond(beyond, component)
                return place, component
        return len(slot.components), None

    def refuse_beyond(self, components: Iterable[Component], free: Component) -> None:
        """Raise for a condition on a component behind one whose value is not fixed."""
        partition = {c.field.name for slot in self.key.partition for c in slot.components}
        for component in components:
            name = component.field.name
            if name in partition or not (name in self.equal or name in self.ranges):
                continue
            first = free.field.name
            raise Unanswerable(
                f"{self.key.name} orders by {first!r} before {name!r}, so items of one {name} do not "
                f"lie together; give {first} == …, use a key that has {name} before {first}, or put "
                f"the condition in .filter(…), which reads and pays for what it drops"
            )


def flat(conditions: Iterable[Condition]) -> Iterator[Condition]:
    """The conditions, with those that are joined by `&` one by one."""
    for condition in conditions:
        if isinstance(condition, All):
            yield from flat(condition.operands)
        else:
            yield condition


def _comparison(key: BoundKey, condition: Condition, own: set[str]) -> Comparison:
    """The condition, if it compares a field of the key in a way that an order can answer."""
    if not isinstance(condition, Condition):
        raise UsageError(f"{condition!r} is no condition; write one such as Order.number == 157")
    names = ", ".join(dict.fromkeys(field.name for field in condition.fields()))
    if isinstance(condition, Test) and condition.function in _PRESENCE and names in own:
        raise Unanswerable(
            f"{key.name}: everything in it has a value for {names!r}, and what has none is not in it, so "
            "leave this condition out; to find what has none, use another key and .filter(…)"
        )
    if not isinstance(condition, Comparison) or condition.path:
        raise Unanswerable(
            f"{key.name}: a condition on {names} that is no plain comparison of a field cannot be "
            "answered by a key; put it in .filter(…)"
        )
    if condition.field.name not in own:
        _refuse_sparse(key, condition.field.name)
        raise Unanswerable(
            f"{names!r} is no part of key {key.name} ({', '.join(_names(key)) or 'no fields'}); put the "
            "condition in .filter(…), which reads and pays for what it drops, or declare an index"
        )
    if condition.operator != "=" and condition.operator not in RANGES:
        raise Unanswerable(
            f"{key.name}: {_WORDS[condition.operator]} on {names!r} is not one range of a key; {_INSTEAD[condition.operator]}"
        )
    return condition


def _refuse_sparse(key: BoundKey, name: str) -> None:
    """Raise for a condition on a field of the key's own `when`, which its entries satisfy anyway."""
    if key.when is not None and name in {field.name for field in key.when.fields()}:
        raise Unanswerable(
            f"{key.name} has entries only for what satisfies its when=, a condition on {name!r}; leave "
            "this one out where it says the same, put it in .filter(…) where it says more, and use "
            "another key where it says something else"
        )


_PRESENCE: Final = frozenset({"attribute_exists", "attribute_not_exists"})
_WORDS: Final = {"<>": "!=", "in": "is_in()"}
_INSTEAD: Final = {
    "<>": "put it in .filter(…)",
    "in": "make one query for each value, or put it in .filter(…)",
}


def _names(key: BoundKey) -> list[str]:
    return list(dict.fromkeys(component.field.name for component in key.components))


def _partition(slot: Slot, asked: _Asked) -> Restriction:
    for component in slot.components:
        name = component.field.name
        if name in asked.equal:
            continue
        found = "a range" if name in asked.ranges else "nothing"
        raise Unanswerable(
            f"{asked.key.name} groups items by {name!r}, so a query has to say {name} == …, "
            f"and it says {found}; to read all groups, ask for a scan by name"
        )
    if isinstance(slot, StringSlot) and not slot.can_hold(asked.equal):
        return Restriction(slot.attribute.name, "=", EMPTY[:1])  # which no key is
    value = slot.encode(asked.equal)
    if value is None:
        raise UsageError(f"{asked.key.name}: a key holds no None")
    return Restriction(slot.attribute.name, "=", (value,))


def _sort(
    slot: Slot, asked: _Asked, equal: int, free: Component | None
) -> tuple[list[Restriction], bool]:
    """The restriction of a sort attribute, and whether nothing can satisfy it."""
    ranges: Sequence[Comparison | None] = (
        asked.ranges.get(free.field.name, ()) if free is not None else ()
    )
    joined: Restriction | None = None
    for condition in ranges or (None,):
        found = _restriction(slot, asked, equal, condition)
        if found is None:
            continue
        if found.is_empty:
            return [], True
        joined = found if joined is None else intersection(joined, found)
        if joined is None:
            return [], True
    return ([] if joined is None else [joined]), False


def _restriction(
    slot: Slot, asked: _Asked, equal: int, condition: Comparison | None
) -> Restriction | None:
    if isinstance(slot, NativeSlot):
        return _native(slot, asked, condition)
    assert isinstance(slot, StringSlot)
    leading = [
        slot.outward(place, asked.equal[component.field.name])
        for place, component in enumerate(slot.components[:equal])
    ]
    operator: Any = None if condition is None else condition.operator
    operands: Sequence[Any] = () if condition is None else condition.values
    if operator != "begins_with":  # whose operand is a text, whatever the field is
        operands = [slot.outward(equal, value) for value in operands]
    try:
        selection = slot.template.select(leading, operator, operands)
    except Unanswerable as error:
        if operator == "begins_with":
            raise Unanswerable(f"{asked.key.name}: {error}") from None
        raise _not_sorted(slot, asked, equal) from None
    if selection.operator is None:
        return None
    texts = tuple({"S": text} for text in selection.operands)
    return Restriction(slot.attribute.name, selection.operator, texts, selection.excluded)


def _not_sorted(slot: Slot, asked: _Asked, place: int) -> Unanswerable:
    name = slot.components[place].field.name
    return Unanswerable(
        f"{asked.key.name} has {name!r} as it stands, so items do not lie in the order of {name}; "
        f"give {name} == …, or .begins_with(…) of a text, or put the condition in .filter(…), which "
        "reads and pays for what it drops"
    )


def _native(slot: NativeSlot, asked: _Asked, condition: Comparison | None) -> Restriction | None:
    name = slot.field.name
    if name in asked.equal:
        return Restriction(slot.attribute.name, "=", (slot.field.encode(asked.equal[name]),))
    if condition is None:
        return None
    operands = tuple(map(condition.wire, condition.values))
    if operands[0] in EMPTY and condition.operator in (">", ">=", "begins_with"):
        return None  # every key is above nothing, and begins with it
    if operands[0] in EMPTY and condition.operator == "between":
        return Restriction(slot.attribute.name, "<=", operands[1:])
    return Restriction(slot.attribute.name, condition.operator, operands)
