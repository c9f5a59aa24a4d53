"""Conditions on fields, such as `Order.total > 3`: combining them with & | ~, and which ones are refused.

A condition is a tree. Queries derive bounds from the conditions on key fields; filters and
conditional writes turn conditions into the expression trees of `isotone.expressions`. A condition refuses
`bool()`, because `a and b` would silently drop one of the two.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, NoReturn, TypeVar

from isotone import limits
from isotone.errors import UsageError
from isotone.expressions import nodes
from isotone.expressions.operands import ORDERINGS as ORDER_RELATIONS
from isotone.expressions.operands import equal
from isotone.model.declaring.absent_attributes import EMPTY_SETS, Absence
from isotone.model.declaring.field_arithmetic import Value
from isotone.values.json import from_wire, to_wire
from isotone.values.types import AttributeValue

if TYPE_CHECKING:
    from isotone.model.declaring.fields import Attr

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
PathElements = tuple[str | int, ...]

ORDERINGS: Final = frozenset({"<", "<=", ">", ">=", "between"})
"""The operators that compare by order."""


class Comparable(Generic[T_co]):
    """Tells type checkers which values a condition can be compared with."""

    __slots__ = ()


class Operand(Comparable[T]):
    """The subject of a condition: a field, a place inside a field, or a size. It is not a value."""

    __slots__ = ()

    _field: Attr[Any]
    _path: PathElements

    # Otherwise `list(Order.lines)` would loop forever over __getitem__.
    __iter__: ClassVar[None] = None

    def __contains__(self, value: object) -> NoReturn:
        raise TypeError(
            f"only the database knows whether {value!r} is in {self!r}; write .contains(…), or "
            "field.is_in(values) for the reverse"
        )

    @abstractmethod
    def _compare(self, operator: str, *values: Any) -> Condition:
        """The comparison with values; raises `UsageError` for invalid ones."""

    @abstractmethod
    def _node(self) -> nodes.Operand:
        """The operand in an expression."""

    @abstractmethod
    def _implied(self) -> AttributeValue | None:
        """What an item without the attribute reads as; None if nothing, or if that varies."""

    @abstractmethod
    def _text(self) -> str:
        """The operand as source code, without the class name."""

    @abstractmethod
    def _encode(self, value: Any) -> AttributeValue:
        """The stored form of a value to compare with; raises `UsageError` for a value of another type."""

    @abstractmethod
    def _check_comparable(self, operator: str, other: Operand[Any] | None) -> None:
        """Raise `UsageError` unless the database can compare the two, or can order this one if `other` is None."""

    def __eq__(self, other: T | Comparable[T | None]) -> Condition:  # type: ignore[override] # makes a condition
        return self._compare("=", other)

    def __ne__(self, other: T | Comparable[T | None]) -> Condition:  # type: ignore[override] # makes a condition
        return self._compare("<>", other)

    def __lt__(self, other: T | Comparable[T | None]) -> Condition:
        return self._compare("<", other)

    def __le__(self, other: T | Comparable[T | None]) -> Condition:
        return self._compare("<=", other)

    def __gt__(self, other: T | Comparable[T | None]) -> Condition:
        return self._compare(">", other)

    def __ge__(self, other: T | Comparable[T | None]) -> Condition:
        return self._compare(">=", other)

    if TYPE_CHECKING:

        def __hash__(self) -> int: ...

    else:  # hidden from type checkers, which refuse `&` and `|` on their own

        def __and__(self, other: object) -> NoReturn:
            raise not_a_condition(self)

        __or__ = __and__
        __hash__ = object.__hash__


def place_in(field: Attr[Any], path: PathElements) -> str:
    """A field, or a place inside it, as source code."""
    return field.name + "".join(map("[{!r}]".format, path))


def compares_fields(operand: Operand[Any], values: tuple[Any, ...]) -> bool:
    """Whether an operand is compared with other fields; raises `UsageError` for operands that no item contains."""
    for value in values:
        if isinstance(value, _IN_ITEMS):  # called for each value of each condition
            if isinstance(value, Operand):
                return True
            check_values(operand, value)
    return False


def compare_fields(operand: Operand[Any], operator: str, values: tuple[Any, ...]) -> Condition:
    """The comparison of a field with other fields; raises `UsageError` if the database cannot make it."""
    for value in values:
        if not isinstance(value, Operand):
            check_values(operand, value)
    comparison = FieldComparison(operand, operator, values)
    # While the class statement runs, the types are not known yet.
    if all(field.annotation is not None for field in comparison.fields()):
        comparison.check()
    return comparison


def check_values(operand: Operand[Any], *values: Any) -> tuple[Any, ...]:
    """The values to compare an operand with; raises `UsageError` if one is itself an operand."""
    for value in values:
        if isinstance(value, Value) and not isinstance(value, Operand):
            raise UsageError(
                f"{operand._text()} is compared with {value._text()}, and conditions cannot compute: store it "
                "in a field, such as a computed() one, and compare with that"
            )
        if isinstance(value, Operand | Condition):
            raise UsageError(
                f"{operand!r} is given {value!r}, which is not a value; two fields are compared by ==, !=, <, "
                "<=, >, >=, between and is_in"
            )
    return values


_MEMBERS: Final = {"S": "S", "SS": "S", "NS": "N", "B": "B", "BS": "B"}
"""The type code of the members of a string, of bytes or of a set."""
_CALLED: Final = {"S": "a string", "N": "a number", "B": "bytes"}


def check_member(
    operand: Operand[Any], code: str | None, value: Any, member: AttributeValue
) -> None:
    """Refuse a member that a field of this type can never contain. DynamoDB would silently find nothing."""
    kind = _MEMBERS.get(code or "")
    if kind is not None and kind not in member:
        raise UsageError(
            f"{operand!r} is stored as {code}, which never contains {value!r}; give {_CALLED[kind]}"
        )


def check_choices(operand: Operand[Any], values: Any) -> tuple[Any, ...]:
    """The values of `is_in`: at least one, and at most as many as DynamoDB allows."""
    if isinstance(values, str | bytes):
        raise UsageError(f"{operand!r}: is_in takes several values; write is_in([{values!r}])")
    listed = tuple(values)
    if not 1 <= len(listed) <= limits.IN_OPERANDS:
        raise UsageError(
            f"{operand!r}: is_in takes 1 to {limits.IN_OPERANDS} values, not {len(listed)}; "
            + ("join several by |" if listed else "no item can satisfy it, so leave the read out")
        )
    return listed


class Condition:
    """A test that an item passes or fails; join conditions with `&`, `|` and `~`."""

    # Abstract for type checkers only: ABCMeta would slow down every isinstance.
    __slots__ = ()

    def __and__(self, other: Condition) -> Condition:
        if not isinstance(other, Condition):
            raise _not_joined(other)
        return All((self, other))

    def __or__(self, other: Condition) -> Condition:
        if not isinstance(other, Condition):
            raise _not_joined(other)
        return AnyOf((self, other))

    def __invert__(self) -> Condition:
        return Negation(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a condition is neither true nor false until the database evaluates it; "
            "join conditions with & | ~ (not with `and`, `or`, `not` or 1 < x < 4), each in parentheses"
        )

    @abstractmethod
    def node(self, absence: Absence | None = None) -> nodes.ConditionNode:
        """The condition as an expression tree. Without `absence`, it tests the stored attributes only."""

    @abstractmethod
    def fields(self) -> Sequence[Attr[Any]]:
        """The fields in the condition."""

    def check(self) -> None:
        """Raise `UsageError` for a wrong value; for conditions in a class statement, once the types are known."""

    @abstractmethod
    def __repr__(self) -> str:
        """The condition as source code, without the class name."""


def not_a_condition(given: object) -> UsageError:
    """The error for an argument that is not a condition. For a field, it shows how to compare it."""
    if not isinstance(given, Operand):
        return UsageError(f"{given!r} is not a condition; write one such as Order.number == 157")
    field, text = given._field, given._text()
    instead = f"{text} == …"
    if text == field.name and field.annotation is not None and field.wire.code == "BOOL":
        instead = f"{text} == True, or ~{text} for the opposite"
    return UsageError(f"{given!r} is not a condition; write {instead}")


def _not_joined(other: object) -> UsageError:
    if isinstance(other, Operand):
        return not_a_condition(other)
    return UsageError(
        f"{other!r} is not a condition, and cannot be joined; Python itself evaluates `is`, `in` and `not`, so "
        "write ==, .is_in(…) and ~(…), each condition in parentheses"
    )


_IN_ITEMS: Final = (Operand, Value, Condition)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ValueComparison(Condition):
    """A field compared with values: `=`, `<>`, `<`, `<=`, `>`, `>=`, `between`, `in`, `begins_with`."""

    field: Attr[Any]
    operator: str
    values: tuple[Any, ...]
    path: PathElements = ()
    literals: tuple[nodes.Literal, ...] | None = None
    """The values in stored form, if the field's type was known when the comparison was made."""

    def node(self, absence: Absence | None = None) -> nodes.ConditionNode:
        field, left = self.field, self.field.path(*self.path)
        if self.operator in ORDERINGS and not self.path and field.order is not None:
            among = values_in_range(field.order, self.operator, self.values)
            test = self._among(left, among)
        else:
            right = self.literals or self._encoded()
            test = _comparison_node(self.operator, left, right)
        default = field.implied
        if absence is None or default is None:
            return test
        is_scalar = "N" in default or "S" in default
        if self.operator == "=" and is_scalar and not self.path and right[0].value != default:
            return test  # no call here: a hot path
        return absence.complete(field, default, test)

    def plain_node(self) -> nodes.ConditionNode:
        """The comparison as written. For ordered choices, `node` lists the choices in the range instead."""
        right = self.literals or self._encoded()
        return _comparison_node(self.operator, self.field.path(*self.path), right)

    def _encoded(self) -> tuple[nodes.Literal, ...]:
        return tuple([nodes.Literal(self.wire(value)) for value in self.values])

    def _among(self, left: nodes.Path, values: Sequence[Any]) -> nodes.ConditionNode:
        """The test that the field has one of these values, because DynamoDB does not know the order of an enum."""
        literals = [nodes.Literal(self.wire(value)) for value in values]
        if not literals:  # never true, not even for an item without the attribute
            functions = ("attribute_exists", "attribute_not_exists")
            return nodes.And(tuple([nodes.Call(function, (left,)) for function in functions]))
        groups = [
            nodes.In(left, tuple(literals[start : start + limits.IN_OPERANDS]))
            for start in range(0, len(literals), limits.IN_OPERANDS)
        ]
        return groups[0] if len(groups) == 1 else nodes.Or(tuple(groups))

    def check(self) -> None:
        if not self.path:
            self.field._compare(self.operator, *self.values)
            return
        if self.operator in ORDERINGS:
            self.field.check_order_at(self.path)
        for value in self.values:
            self.wire(value)

    def wire(self, value: Any) -> AttributeValue:
        """A value in the stored form of the compared attribute; the prefix of `begins_with` is left as it is."""
        if self.operator == "begins_with":
            return to_wire(value)
        return self.field.encode_at(self.path, value)

    def fields(self) -> Sequence[Attr[Any]]:
        return (self.field,)

    def __repr__(self) -> str:
        shown = self.values
        if self.field.options.hidden:
            shown = (_HIDDEN,) * len(shown)
        return _comparison_text(place_in(self.field, self.path), self.operator, shown)


_HIDDEN: Final[Any] = type("Hidden", (), {"__repr__": lambda _: "…"})()


def _comparison_node(
    operator: str, left: nodes.Operand, right: tuple[nodes.Operand, ...]
) -> nodes.ConditionNode:
    if operator == "between":
        return nodes.Between(left, *right)
    if operator == "in":
        return nodes.In(left, right)
    if operator == "begins_with":
        return nodes.Call("begins_with", (left, *right))
    return nodes.Comparison(operator, left, right[0])


def _comparison_text(left: str, operator: str, right: Sequence[Any]) -> str:
    texts = [each._text() if isinstance(each, Operand) else repr(each) for each in right]
    if operator == "in":
        return f"{left}.is_in([{', '.join(texts)}])"
    if operator in ("between", "begins_with"):
        return f"{left}.{operator}({', '.join(texts)})"
    return f"{left} {_SIGNS.get(operator, operator)} {texts[0]}"


_SIGNS: Final = {"=": "==", "<>": "!="}  # Python's sign for DynamoDB's


def values_in_range(order: Sequence[Any], operator: str, values: tuple[Any, ...]) -> Sequence[Any]:
    """The ordered values that satisfy a comparison."""
    places = [order.index(value) for value in values]
    if operator == "between":
        return order[places[0] : places[1] + 1]
    place = places[0] + (operator in ("<=", ">"))
    return order[:place] if operator in ("<", "<=") else order[place:]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FieldComparison(Condition):
    """A field compared with other fields of the same entity, and with values: `sold < capacity`.

    Keys cannot answer it, and it does not fix a field's value.
    """

    left: Operand[Any]
    operator: str
    right: tuple[Any, ...]

    def node(self, absence: Absence | None = None) -> nodes.ConditionNode:
        if absence is None or all(field.implied is None for field in self.fields()):
            right = tuple([self._side(each).node for each in self.right])
            return _comparison_node(self.operator, self.left._node(), right)
        operators = {"in": ["="] * len(self.right), "between": [">=", "<="], "<>": ["="]}
        left = self._side(self.left)
        pairs = [
            _pair(absence, left, operator, self._side(each))
            for operator, each in zip(
                operators.get(self.operator, [self.operator]), self.right, strict=True
            )
        ]
        if self.operator == "between":
            return nodes.And(tuple(pairs))
        found = pairs[0] if len(pairs) == 1 else nodes.Or(tuple(pairs))
        return nodes.Not(found) if self.operator == "<>" else found

    def _side(self, value: Any) -> _Side:
        if not isinstance(value, Operand):
            return _Side(nodes.Literal(self.left._encode(value)))
        return _Side(value._node(), value._field, value._implied())

    def check(self) -> None:
        if self.operator in ORDERINGS:
            self.left._check_comparable(self.operator, None)
        for each in self.right:
            if isinstance(each, Operand):
                self.left._check_comparable(self.operator, each)
            elif each is None:
                raise UsageError(f"{self!r} compares with None; write .exists() or .missing()")
            else:
                self.left._encode(each)

    def fields(self) -> Sequence[Attr[Any]]:
        return [
            self.left._field,
            *(each._field for each in self.right if isinstance(each, Operand)),
        ]

    def __repr__(self) -> str:
        return _comparison_text(self.left._text(), self.operator, self.right)


class _Side(NamedTuple):
    """An operand of a comparison, and its value if the attribute is missing."""

    node: nodes.Operand
    field: Attr[Any] | None = None
    implied: AttributeValue | None = None


def _pair(absence: Absence, left: _Side, operator: str, right: _Side) -> nodes.ConditionNode:
    """Compare two operands, either of which may be missing and have a default, by `=` or by order.

    The database does not know defaults, so each case becomes an alternative.
    """
    alternatives: list[nodes.ConditionNode] = []
    for one, no_left in _cases(absence, left):
        for other, no_right in _cases(absence, right):
            missing = [node for node in (no_left, no_right) if node is not None]
            if left.field is right.field and len(missing) == 1:
                continue  # two places in one attribute are missing together
            missing = missing[:1] if left.field is right.field else missing
            if isinstance(one, nodes.Literal) and isinstance(other, nodes.Literal):
                if not _RELATIONS[operator](one.value, other.value):
                    continue
                parts = missing
            elif any(each in (one, other) for each in _EMPTY_SETS):
                continue  # empty sets are never stored
            else:
                parts = [*missing, nodes.Comparison(operator, one, other)]
            alternatives.append(parts[0] if len(parts) == 1 else nodes.And(tuple(parts)))
    return alternatives[0] if len(alternatives) == 1 else nodes.Or(tuple(alternatives))


def _cases(
    absence: Absence, side: _Side
) -> Iterator[tuple[nodes.Operand, nodes.ConditionNode | None]]:
    """The operand's possible values; for one that is not stored, with the condition that it is missing."""
    yield side.node, None
    if side.field is not None and side.implied is not None:
        missing = absence.of(side.field)
        if missing is not None:
            yield nodes.Literal(side.implied), missing


_RELATIONS: Final = {"=": equal, **ORDER_RELATIONS}
_EMPTY_SETS: Final = [nodes.Literal(each) for each in EMPTY_SETS]


class _PathTest(Condition):
    """A test of a field, or of a path within it."""

    __slots__ = ()
    field: Attr[Any]
    path: PathElements

    def check(self) -> None:
        if self.path:
            self.field.place(self.path)

    def fields(self) -> Sequence[Attr[Any]]:
        return (self.field,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FunctionTest(_PathTest):
    """A function of a field: whether it exists, its type, or what it contains."""

    field: Attr[Any]
    function: str
    operands: tuple[AttributeValue, ...] = ()
    path: PathElements = ()

    def node(self, absence: Absence | None = None) -> nodes.ConditionNode:
        field = self.field
        literals = tuple([nodes.Literal(operand) for operand in self.operands])
        test = nodes.Call(self.function, (field.path(*self.path), *literals))
        if absence is None or field.implied is None or self.function in PRESENCE:
            return test
        return absence.complete(field, field.implied, test)

    def __repr__(self) -> str:
        method = _METHODS.get(self.function, self.function)
        operands = ", ".join(repr(from_wire(each)) for each in self.operands)
        return f"{place_in(self.field, self.path)}.{method}({operands})"


_METHODS: Final = {"attribute_exists": "exists", "attribute_not_exists": "missing"}
PRESENCE: Final = frozenset(_METHODS)
"""The functions that test whether the attribute is stored, whatever the field's default."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NoneTest(FunctionTest):
    """A field compared with None: true if the attribute is missing, or if another program wrote NULL."""

    def node(self, absence: Absence | None = None) -> nodes.ConditionNode:
        left = self.field.path(*self.path)
        presence = nodes.Call(self.function, (left,))
        if self.function == "attribute_not_exists":
            return nodes.Or((presence, nodes.Comparison("=", left, _NULL)))
        return nodes.And((presence, nodes.Comparison("<>", left, _NULL)))

    def __repr__(self) -> str:
        sign = "==" if self.function == "attribute_not_exists" else "!="
        return f"{place_in(self.field, self.path)} {sign} None"


_NULL: Final = nodes.Literal({"NULL": True})


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SizeComparison(_PathTest):
    """The size of a field compared with a number."""

    field: Attr[Any]
    operator: str
    size: int
    path: PathElements = ()

    def node(self, absence: Absence | None = None) -> nodes.ConditionNode:
        field = self.field
        size = nodes.Call("size", (field.path(*self.path),))
        test = nodes.Comparison(self.operator, size, nodes.Literal({"N": str(self.size)}))
        if absence is None or field.implied is None:
            return test
        return absence.complete(field, field.implied, test)

    def __repr__(self) -> str:
        sign = _SIGNS.get(self.operator, self.operator)
        return f"{place_in(self.field, self.path)}.size {sign} {self.size}"


class _Joined(Condition):
    """Several conditions joined; `a & b & c` is one conjunction of three."""

    __slots__ = ("operands",)

    operands: tuple[Condition, ...]
    sign: ClassVar[str]

    def __init__(self, operands: tuple[Condition, ...]) -> None:
        flat: list[Condition] = []
        for operand in operands:
            flat.extend(operand.operands if isinstance(operand, type(self)) else (operand,))
        self.operands = tuple(flat)

    def fields(self) -> Sequence[Attr[Any]]:
        return [field for operand in self.operands for field in operand.fields()]

    def check(self) -> None:
        for operand in self.operands:
            operand.check()

    def __repr__(self) -> str:
        return f" {self.sign} ".join(
            repr(each) if isinstance(each, Negation) else f"({each!r})" for each in self.operands
        )


class All(_Joined):
    """True if all operands are true."""

    __slots__ = ()
    sign = "&"

    def node(self, absence: Absence | None = None) -> nodes.ConditionNode:
        return nodes.And(tuple([operand.node(absence) for operand in self.operands]))


class AnyOf(_Joined):
    """True if any operand is true."""

    __slots__ = ()
    sign = "|"

    def node(self, absence: Absence | None = None) -> nodes.ConditionNode:
        return nodes.Or(tuple([operand.node(absence) for operand in self.operands]))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Negation(Condition):
    """True if the operand is false."""

    operand: Condition

    def node(self, absence: Absence | None = None) -> nodes.ConditionNode:
        return nodes.Not(self.operand.node(absence))

    def fields(self) -> Sequence[Attr[Any]]:
        return self.operand.fields()

    def check(self) -> None:
        self.operand.check()

    def __repr__(self) -> str:
        return f"~({self.operand!r})"


def all_of(conditions: tuple[Condition, ...]) -> Condition | None:
    """All conditions joined by `&`; None if there are none."""
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else All(conditions)
