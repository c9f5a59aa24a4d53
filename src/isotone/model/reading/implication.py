"""Whether conditions imply another one: decides if a sparse index has all wanted items, or a filter is superfluous.

The truth of a condition on a field changes only at the values that it names. So a few values of each field stand for
all values: the named ones, one between each two of them, and a missing value; or all values of an enum. `implies` tries
every combination. Conditions that it cannot analyse (`contains`, sizes, two fields) may be true or false, but the same
in each place. If there are too many combinations, the answer is no, which costs a filter or another key, but is never
wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, Final

from isotone.model.declaring.conditions import (
    ORDERINGS,
    PRESENCE,
    All,
    AnyOf,
    Condition,
    FunctionTest,
    Negation,
    NoneTest,
    PathElements,
    ValueComparison,
    values_in_range,
)
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.fields import Attr, Inner
from isotone.model.declaring.wire_types import NULL, choices
from isotone.model.reading.key_bounds import end_of_prefix, flat
from isotone.values.types import AttributeValue, sort_key

_MOST: Final = 20_000  # combinations that are tried
_ABSENT: Final = -1
_OTHER: Final = -2  # stands for a value of another type
_DEFAULT: Final = -3  # stands for a missing attribute, which means the default
_NULL: Final = -4  # stands for a NULL that another program wrote, which means None


_Place = tuple[str, PathElements]  # by name, because `==` of two fields makes a condition
_Atom = _Place | str
_World = dict[_Atom, int]
_Test = Callable[[_World], bool]


def implies(facts: Iterable[Condition], goal: Condition) -> bool:
    """Whether every item that satisfies the facts satisfies the goal; False if unsure."""
    known = list(flat(facts))
    return all(_implied(known, part) for part in flat([goal]))


def exclude_one_another(conditions: Iterable[Condition]) -> bool:
    """Whether no item can satisfy all conditions; False if unsure."""
    about: dict[_Atom, list[Condition]] = {}
    for condition in flat(conditions):
        atoms = {*_atoms(condition)}
        if len(atoms) == 1:
            about.setdefault(atoms.pop(), []).append(condition)
    return any(len(each) > 1 and not _satisfiable(each) for each in about.values())


def _implied(facts: list[Condition], goal: Condition) -> bool:
    related: list[Condition] = [Negation(goal)]
    atoms, others = {*_atoms(goal)}, facts
    while near := [fact for fact in others if atoms & {*_atoms(fact)}]:
        related += near
        others = [fact for fact in others if not any(fact is one for one in near)]
        atoms |= {atom for fact in near for atom in _atoms(fact)}
    return len(related) > 1 and not _satisfiable(related)


def _satisfiable(conditions: Sequence[Condition]) -> bool:
    """Whether some combination of values satisfies all conditions; True if there are too many to try."""
    atoms = list(dict.fromkeys(atom for each in conditions for atom in _atoms(each)))
    lines = _lines(conditions)
    domains = [lines[atom].domain if isinstance(atom, tuple) else (0, 1) for atom in atoms]
    if prod(map(len, domains)) > _MOST:
        return True
    tests = [_test(each, lines) for each in conditions]
    for values in product(*domains):
        world = dict(zip(atoms, values, strict=True))
        if all(test(world) for test in tests):
            return True
    return False


# The parts of conditions


def _is_plain(condition: Condition) -> bool:
    """Whether a condition's truth depends only on where one place's value lies."""
    return isinstance(condition, ValueComparison) or (
        isinstance(condition, FunctionTest) and condition.function in PRESENCE
    )


def _leaves(condition: Condition) -> Iterator[Condition]:
    if isinstance(condition, All | AnyOf):
        for operand in condition.operands:
            yield from _leaves(operand)
    elif isinstance(condition, Negation):
        yield from _leaves(condition.operand)
    else:
        yield condition


def _atom_of(leaf: Any) -> _Atom:
    return (leaf.field.name, leaf.path) if _is_plain(leaf) else repr(leaf.node())


def _atoms(condition: Condition) -> Iterator[_Atom]:
    return map(_atom_of, _leaves(condition))


def _lines(conditions: Iterable[Condition]) -> dict[_Place, _NumberLine]:
    """The values with which the conditions compare each place."""
    compared: dict[_Place, list[Any]] = {}
    for each in conditions:
        for leaf in _leaves(each):
            if isinstance(place := _atom_of(leaf), tuple):
                compared.setdefault(place, []).append(leaf)
    return {
        place: _NumberLine(leaves[0].field, place[1], leaves) for place, leaves in compared.items()
    }


def _test(condition: Condition, lines: dict[_Place, _NumberLine]) -> _Test:
    """A condition's truth, given the values of its atoms."""
    if isinstance(condition, All | AnyOf):
        tests = [_test(each, lines) for each in condition.operands]
        join = all if isinstance(condition, All) else any
        return lambda world: join(test(world) for test in tests)
    if isinstance(condition, Negation):
        test = _test(condition.operand, lines)
        return lambda world: not test(world)
    atom = _atom_of(condition)
    if not isinstance(atom, tuple):
        return lambda world: bool(world[atom])
    is_true = lines[atom].test(condition)
    return lambda world: is_true(world[atom])


# The values of one place


class _NumberLine:
    """A place's values as numbers: odd numbers are the values that comparisons name, even ones lie between them."""

    def __init__(self, field: Attr[Any], path: PathElements, leaves: Sequence[Condition]) -> None:
        listed = None if path else choices(field.annotation)
        named = [
            value
            for leaf in leaves
            if isinstance(leaf, ValueComparison)
            for value in _operands(leaf)
        ]
        implied = (Inner(field, path) if path else field)._implied()
        named += [] if implied is None else [implied]
        if listed is not None:
            named += [field.encode(value) for value in listed]
        elif field.wire.code == "BOOL" and not path:
            named += [{"BOOL": False}, {"BOOL": True}]
        self._keys = sorted({_sortable(value) for value in named})
        places = range(2 * len(self._keys) + 1)
        is_listed = listed is not None or (field.wire.code == "BOOL" and not path)
        domain = [number for number in places if number % 2 or not is_listed]
        if field.implied is not None:
            domain += [_DEFAULT]
        if path or (field.implied is None and EntitySchema.is_optional(field)):
            domain += [_ABSENT]
            if any(isinstance(leaf, NoneTest) for leaf in leaves):
                domain += [_NULL]
        if path or field.wire.code is None or (field.writes_none and field.wire.optional):
            domain += [_OTHER]
        self.domain = tuple(domain)
        self._implied = _ABSENT if implied is None else self._number(implied)

    def _number(self, value: AttributeValue) -> int:
        return 2 * bisect_left(self._keys, _sortable(value)) + 1

    def test(self, condition: Any) -> Callable[[int], bool]:
        """A function that tells whether a value satisfies a comparison or an existence test."""
        if isinstance(condition, FunctionTest):
            wanted = condition.function == "attribute_exists"
            none = (_ABSENT, _DEFAULT, _NULL)[: 3 if isinstance(condition, NoneTest) else 2]
            return lambda value: (value not in none) is wanted
        test, implied = self._compared(condition), self._implied
        return lambda value: test(implied if value == _DEFAULT else value)

    def _compared(self, condition: ValueComparison) -> Callable[[int], bool]:
        numbers = [self._number(value) for value in _operands(condition)]
        operator, field = condition.operator, condition.field
        if operator in ORDERINGS and not condition.path and field.order is not None:
            within = values_in_range(field.order, operator, condition.values)
            allowed = {self._number(field.encode(value)) for value in within}
            return allowed.__contains__
        if operator == "in":
            return {*numbers}.__contains__
        test = _TESTS[operator](*numbers)
        if operator not in ORDERINGS or _sortable(NULL) not in self._keys:
            return test
        null = self._number(NULL)
        return lambda value: value != null and test(value)


def _sortable(value: AttributeValue) -> tuple[str, Any]:
    """A value that sorts within its type, and separately from other types."""
    ((code, content),) = value.items()
    return code, sort_key(value) if code in ("S", "N", "B") else repr(content)


def _operands(comparison: ValueComparison) -> list[AttributeValue]:
    """The values at which a comparison's truth changes."""
    values = [comparison.wire(value) for value in comparison.values]
    if comparison.operator == "begins_with":
        end = end_of_prefix(values[0])
        return values if end is None else [*values, end]
    return values


def _begins(first: int, end: int | None = None) -> Callable[[int], bool]:
    return lambda value: value >= first and (end is None or value < end)


_TESTS: Final[dict[str, Callable[..., Callable[[int], bool]]]] = {
    "=": lambda number: lambda value: value == number,
    "<>": lambda number: lambda value: value != number,
    "<": lambda number: lambda value: 0 <= value < number,
    "<=": lambda number: lambda value: 0 <= value <= number,
    ">": lambda number: lambda value: value > number,
    ">=": lambda number: lambda value: value >= number,
    "between": lambda low, high: lambda value: low <= value <= high,
    "begins_with": _begins,
}
