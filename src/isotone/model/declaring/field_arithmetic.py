"""Values that an update computes from other fields: `Order.sold + 1`, `Order.nick.or_else(Order.name)`.

A change accepts them in place of a value: `Order.total.set(Order.price + Order.tax)`. The database reads all fields
before it writes any, in one atomic update. It can compute one sum or difference of two operands, or the first of two
values that exists.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, overload

from isotone.errors import UsageError
from isotone.expressions import nodes
from isotone.model.declaring.comparability import EXPIRY, StoredForm, form_of, sum_of
from isotone.model.declaring.wire_types import wire_type
from isotone.values.types import AttributeValue

if TYPE_CHECKING:
    from isotone.model.declaring.fields import Attr

T_co = TypeVar("T_co", covariant=True)
Exact: TypeAlias = int | Decimal
Span: TypeAlias = "timedelta | Value[timedelta]"


class Value(Generic[T_co]):
    """A value that an item stores, or that the database computes from it."""

    # Abstract for type checkers only: ABCMeta would slow down every isinstance.
    __slots__ = ()

    @abstractmethod
    def _operand(self) -> nodes.Operand:
        """The value in an update expression."""

    @abstractmethod
    def _form(self) -> StoredForm | None:
        """How the value is stored; None if unknown."""

    @abstractmethod
    def _sources(self) -> Iterator[Attr[Any]]:
        """The fields from which the value is computed."""

    @abstractmethod
    def _must_exist(self) -> Iterator[Attr[Any]]:
        """The fields that must exist, or the value cannot be computed."""

    @abstractmethod
    def _text(self) -> str:
        """The value as source code, without the class name."""

    @abstractmethod
    def _given(self, values: Mapping[str, Any]) -> Value[Any]:
        """The same value, with fields replaced by their known values."""

    # Sums

    @overload
    def __add__(self: Value[int], other: int | Value[int]) -> Value[int]: ...  # type: ignore[overload-overlap] # a sum of ints is an int
    @overload
    def __add__(self: Value[Exact], other: Exact | Value[Exact]) -> Value[Decimal]: ...
    @overload
    def __add__(self: Value[float], other: float | Value[float]) -> Value[float]: ...
    @overload
    def __add__(self: Value[timedelta], other: Span) -> Value[timedelta]: ...
    @overload
    def __add__(self: Value[datetime], other: Span) -> Value[datetime]: ...
    def __add__(self, other: Any) -> Value[Any]:
        return Sum(self, "+", _value(other))

    @overload
    def __sub__(self: Value[int], other: int | Value[int]) -> Value[int]: ...  # type: ignore[overload-overlap] # a sum of ints is an int
    @overload
    def __sub__(self: Value[Exact], other: Exact | Value[Exact]) -> Value[Decimal]: ...
    @overload
    def __sub__(self: Value[float], other: float | Value[float]) -> Value[float]: ...
    @overload
    def __sub__(self: Value[timedelta], other: Span) -> Value[timedelta]: ...
    @overload
    def __sub__(self: Value[datetime], other: Span) -> Value[datetime]: ...
    def __sub__(self, other: Any) -> Value[Any]:
        return Sum(self, "-", _value(other))

    @overload
    def __radd__(self: Value[int], other: int) -> Value[int]: ...  # type: ignore[overload-overlap] # a sum of ints is an int
    @overload
    def __radd__(self: Value[Exact], other: Exact) -> Value[Decimal]: ...
    @overload
    def __radd__(self: Value[float], other: float) -> Value[float]: ...
    @overload
    def __radd__(self: Value[timedelta], other: timedelta) -> Value[timedelta]: ...
    def __radd__(self, other: Any) -> Value[Any]:
        return Sum(_value(other), "+", self)

    @overload
    def __rsub__(self: Value[int], other: int) -> Value[int]: ...  # type: ignore[overload-overlap] # a sum of ints is an int
    @overload
    def __rsub__(self: Value[Exact], other: Exact) -> Value[Decimal]: ...
    @overload
    def __rsub__(self: Value[float], other: float) -> Value[float]: ...
    @overload
    def __rsub__(self: Value[timedelta], other: timedelta) -> Value[timedelta]: ...
    def __rsub__(self, other: Any) -> Value[Any]:
        return Sum(_value(other), "-", self)


class StoredValue(Value[T_co]):
    """A value that an item stores under a path."""

    __slots__ = ()

    @abstractmethod
    def _path_node(self) -> nodes.Path:
        """The value's path."""


def _value(given: Any) -> Value[Any]:
    if isinstance(given, Value):
        return given
    form = form_of(given)
    return Constant(wire_type(type(given)).encode(given), form, given)


class Constant(Value[T_co]):
    """A constant that is sent in the request."""

    __slots__ = ("_is_of", "_shown", "_wire")

    def __init__(self, wire: AttributeValue, form: StoredForm | None, shown: Any) -> None:
        self._wire = wire
        self._is_of = form
        self._shown = shown

    def _operand(self) -> nodes.Operand:
        return nodes.Literal(self._wire)

    def _form(self) -> StoredForm | None:
        return self._is_of

    def _sources(self) -> Iterator[Attr[Any]]:
        return iter(())

    def _must_exist(self) -> Iterator[Attr[Any]]:
        return iter(())

    def _given(self, values: Mapping[str, Any]) -> Value[Any]:
        return self

    def _text(self) -> str:
        return repr(self._shown)


ZERO: Final = Constant[Any]({"N": "0"}, None, 0)


class Sum(Value[T_co]):
    """The sum or the difference of two values."""

    __slots__ = ("_is_of", "_left", "_operator", "_right")

    def __init__(self, left: Value[Any], operator: str, right: Value[Any]) -> None:
        self._left, self._operator, self._right = left, operator, right
        if isinstance(left, Sum) or isinstance(right, Sum):
            raise UsageError(
                f"{self._text()} has three operands, and the database adds two: join the numbers, add in two "
                "updates, or read the entity and set the value"
            )
        self._is_of = sum_of(left._form(), right._form(), self._text())
        if self._is_of == StoredForm(EXPIRY) and isinstance(right, Constant):
            _check_whole_seconds(self, right._shown)

    def _operand(self) -> nodes.Operand:
        return nodes.Arithmetic(self._operator, self._left._operand(), self._right._operand())

    def _form(self) -> StoredForm | None:
        return self._is_of

    def _sources(self) -> Iterator[Attr[Any]]:
        yield from self._left._sources()
        yield from self._right._sources()

    def _must_exist(self) -> Iterator[Attr[Any]]:
        yield from self._left._must_exist()
        yield from self._right._must_exist()

    def _given(self, values: Mapping[str, Any]) -> Value[Any]:
        given: Sum[Any] = object.__new__(Sum)
        given._left, given._right = self._left._given(values), self._right._given(values)
        given._operator, given._is_of = self._operator, self._is_of
        return given

    def _text(self) -> str:
        return f"{self._left._text()} {self._operator} {self._right._text()}"

    __repr__ = _text


def _check_whole_seconds(both: Sum[Any], span: Any) -> None:
    if isinstance(span, timedelta) and span % timedelta(seconds=1):
        raise UsageError(f"{both._text()}: an item expires at a whole second, so add whole seconds")


class OrElse(Value[T_co]):
    """The value of a field or a place inside it, or another value if the item does not have it."""

    __slots__ = ("_other", "_place")

    def __init__(self, place: StoredValue[Any], other: Value[Any]) -> None:
        self._place, self._other = place, other
        if isinstance(other, Sum):
            raise UsageError(
                f"{self._text()}: the database cannot fall back to a sum; give one value"
            )

    def _operand(self) -> nodes.Operand:
        return nodes.Call("if_not_exists", (self._place._path_node(), self._other._operand()))

    def _form(self) -> StoredForm | None:
        form, other = self._place._form(), self._other._form()
        if form is None:
            return None
        optional, missing = (False, False) if other is None else (other.optional, other.missing)
        return form._replace(optional=optional, missing=missing)

    def _sources(self) -> Iterator[Attr[Any]]:
        yield from self._place._sources()
        yield from self._other._sources()

    def _must_exist(self) -> Iterator[Attr[Any]]:
        return self._other._must_exist()

    def _given(self, values: Mapping[str, Any]) -> Value[Any]:
        place = self._place._given(values)
        return (
            place if place is not self._place else OrElse(self._place, self._other._given(values))
        )

    def _text(self) -> str:
        return f"{self._place._text()}.or_else({self._other._text()})"

    __repr__ = _text
