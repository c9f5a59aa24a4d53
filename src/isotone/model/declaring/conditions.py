"""Conditions on fields: what `Order.total > 3` is.

A condition is a tree that can be looked at. Queries take those on key fields apart to compose bounds;
filters and conditional writes turn them into the expression trees of `isotone.expressions`. A condition
has no truth of its own: `bool()` refuses, because `a and b` would silently drop one of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from isotone import limits
from isotone.errors import UsageError
from isotone.expressions import nodes
from isotone.values.json import from_wire, to_wire
from isotone.values.types import AttributeValue

if TYPE_CHECKING:
    from isotone.model.declaring.fields import Attr

PathElements = tuple[str | int, ...]


class Named:
    """What a condition is on: a field, something inside of one, a size. It is no value itself."""

    __slots__ = ()

    __iter__: ClassVar[None] = None  # or `list(Order.lines)` would go on for ever by __getitem__

    def __contains__(self, value: object) -> NoReturn:
        raise TypeError(
            f"whether {value!r} is in {self!r} is known to the database alone; write .contains(…), or "
            "field.is_in(values) for the other way round"
        )


def place_in(field: Attr[Any], path: PathElements) -> str:
    """A field, or what lies inside it, as it is written."""
    return field.name + "".join(f"[{element!r}]" for element in path)


def checked(named: Named, *values: Any) -> tuple[Any, ...]:
    """The values that something is compared with; raises `UsageError` where one is none."""
    for value in values:
        if isinstance(value, Named | Condition):
            raise UsageError(
                f"{named!r} is compared with {value!r}, which is no value: conditions compare a field with "
                "values; to compare two fields, read the entities and compare those of each"
            )
    return values


def listed(named: Named, values: Any) -> tuple[Any, ...]:
    """The values of `is_in`: some, and as many as DynamoDB takes."""
    if isinstance(values, str | bytes):
        raise UsageError(f"{named!r}: is_in takes several values; write is_in([{values!r}])")
    found = tuple(values)
    if not 1 <= len(found) <= limits.IN_OPERANDS:
        raise UsageError(
            f"{named!r}: is_in takes 1 to {limits.IN_OPERANDS} values, not {len(found)}; "
            + ("join several by |" if found else "nothing can satisfy it, so do not ask")
        )
    return found


class Condition(ABC):
    """Something that an item either satisfies or not; join with `&`, `|` and `~`."""

    __slots__ = ()

    def __and__(self, other: Condition) -> Condition:
        return All((self, other))

    def __or__(self, other: Condition) -> Condition:
        return AnyOf((self, other))

    def __invert__(self) -> Condition:
        return Negation(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a condition is neither true nor false before the database has judged it; "
            "join conditions with & | ~ (not with `and`, `or`, `not`), each in parentheses"
        )

    @abstractmethod
    def node(self) -> nodes.ConditionNode:
        """The condition as an expression tree."""

    @abstractmethod
    def fields(self) -> Iterator[Attr[Any]]:
        """The fields that the condition looks at."""

    @abstractmethod
    def __repr__(self) -> str:
        """The condition as it is written, without the name of the class."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Condition):
    """A field compared with values: `=`, `<>`, `<`, `<=`, `>`, `>=`, `between`, `in`, `begins_with`."""

    field: Attr[Any]
    operator: str
    values: tuple[Any, ...]
    path: PathElements = ()

    def node(self) -> nodes.ConditionNode:
        left = self.field.path(*self.path)
        right = tuple(nodes.Literal(self.wire(value)) for value in self.values)
        if self.operator == "between":
            return nodes.Between(left, *right)
        if self.operator == "in":
            return nodes.In(left, right)
        if self.operator in _FUNCTIONS:
            return nodes.Call(self.operator, (left, *right))
        return nodes.Comparison(self.operator, left, right[0])

    def wire(self, value: Any) -> AttributeValue:
        """A value as the compared attribute has it; a beginning is a text or bytes of its own."""
        if self.operator in _FUNCTIONS:
            return to_wire(value)
        return self.field.encode_at(self.path, value)

    def fields(self) -> Iterator[Attr[Any]]:
        yield self.field

    def __repr__(self) -> str:
        place = place_in(self.field, self.path)
        if self.operator == "in":
            return f"{place}.is_in({list(self.values)!r})"
        if self.operator == "between" or self.operator in _FUNCTIONS:
            return f"{place}.{self.operator}({', '.join(map(repr, self.values))})"
        return f"{place} {_SIGNS.get(self.operator, self.operator)} {self.values[0]!r}"


_FUNCTIONS: Final = frozenset({"begins_with"})
_SIGNS: Final = {"=": "==", "<>": "!="}  # of Python, for DynamoDB's


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Test(Condition):
    """A function of a field: whether it exists, what it contains, of what type it is."""

    field: Attr[Any]
    function: str
    operands: tuple[AttributeValue, ...] = ()
    path: PathElements = ()

    def node(self) -> nodes.ConditionNode:
        literals = tuple(nodes.Literal(operand) for operand in self.operands)
        return nodes.Call(self.function, (self.field.path(*self.path), *literals))

    def fields(self) -> Iterator[Attr[Any]]:
        yield self.field

    def __repr__(self) -> str:
        method = _METHODS.get(self.function, self.function)
        operands = ", ".join(repr(from_wire(each)) for each in self.operands)
        return f"{place_in(self.field, self.path)}.{method}({operands})"


_METHODS: Final = {"attribute_exists": "exists", "attribute_not_exists": "missing"}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SizeComparison(Condition):
    """The size of a field compared with a number."""

    field: Attr[Any]
    operator: str
    size: int
    path: PathElements = ()

    def node(self) -> nodes.ConditionNode:
        size = nodes.Call("size", (self.field.path(*self.path),))
        return nodes.Comparison(self.operator, size, nodes.Literal({"N": str(self.size)}))

    def fields(self) -> Iterator[Attr[Any]]:
        yield self.field

    def __repr__(self) -> str:
        sign = _SIGNS.get(self.operator, self.operator)
        return f"{place_in(self.field, self.path)}.size {sign} {self.size}"


class _Joined(Condition):
    """Several conditions joined; joining flattens, as `a & b & c` reads."""

    __slots__ = ("operands",)

    operands: tuple[Condition, ...]
    sign: ClassVar[str]

    def __init__(self, operands: tuple[Condition, ...]) -> None:
        flat: list[Condition] = []
        for operand in operands:
            flat.extend(operand.operands if isinstance(operand, type(self)) else (operand,))
        self.operands = tuple(flat)

    def fields(self) -> Iterator[Attr[Any]]:
        for operand in self.operands:
            yield from operand.fields()

    def __repr__(self) -> str:
        return f" {self.sign} ".join(
            repr(each) if isinstance(each, Negation) else f"({each!r})" for each in self.operands
        )


class All(_Joined):
    """Every one of the operands."""

    __slots__ = ()
    sign = "&"

    def node(self) -> nodes.ConditionNode:
        return nodes.And(tuple(operand.node() for operand in self.operands))


class AnyOf(_Joined):
    """At least one of the operands."""

    __slots__ = ()
    sign = "|"

    def node(self) -> nodes.ConditionNode:
        return nodes.Or(tuple(operand.node() for operand in self.operands))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Negation(Condition):
    """Not the operand."""

    operand: Condition

    def node(self) -> nodes.ConditionNode:
        return nodes.Not(self.operand.node())

    def fields(self) -> Iterator[Attr[Any]]:
        yield from self.operand.fields()

    def __repr__(self) -> str:
        return f"~({self.operand!r})"


def all_of(conditions: tuple[Condition, ...]) -> Condition | None:
    """The conditions joined into one; None where there is none."""
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else All(conditions)
