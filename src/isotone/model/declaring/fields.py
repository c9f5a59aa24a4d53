"""`Attr`, `field(…)`, `created()`, `updated()`, `expires()` …: what can be declared, and the options of each.

On an instance `order.total` is the value. On the class `Order.total` is the `Attr` itself: its
comparisons make conditions (`Order.total > 3`), its methods make changes (`Order.total.add(1)`), and keys
are built from it. Type checkers see all three through the overloads of `__get__`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from decimal import Decimal
from functools import cached_property
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

from isotone.codec.ids import ID_TYPES, start_of
from isotone.errors import UsageError
from isotone.expressions import nodes
from isotone.expressions.operands import lookup, size
from isotone.model.declaring import changes
from isotone.model.declaring.absent_attributes import EMPTY_SETS
from isotone.model.declaring.comparability import (
    StoredForm,
    check_assignable,
    check_comparable,
    form_at,
)
from isotone.model.declaring.conditions import (
    ORDERINGS,
    Comparable,
    Condition,
    FunctionTest,
    NoneTest,
    Operand,
    PathElements,
    SizeComparison,
    ValueComparison,
    check_choices,
    check_member,
    check_values,
    compare_fields,
    compares_fields,
    place_in,
)
from isotone.model.declaring.field_arithmetic import (
    ZERO,
    Constant,
    Exact,
    OrElse,
    StoredValue,
    Sum,
    Value,
)
from isotone.model.declaring.field_codecs import Codec, coded_type
from isotone.model.declaring.nested_places import Place, inside, is_map_of_texts
from isotone.model.declaring.wire_types import (
    WireType,
    choices,
    epoch_type,
    expiry_type,
    plain,
    present_type,
    type_text,
    wire_type,
    zoned_type,
)
from isotone.values.json import to_wire
from isotone.values.types import AttributeValue

T = TypeVar("T")
X = TypeVar("X")
Role = Literal["plain", "computed", "version", "expires", "created", "created_id", "updated"]

UNREADABLE: Final = "_unreadable"
"""In the `__dict__` of an entity that could be read only in part: an `InvalidItem` for each unreadable field."""

UNKNOWN: Final = "_unknown"
"""In the `__dict__` of an entity that was read: the item's attributes that the entity does not declare."""

MISSING: Final[Any] = type("MISSING", (), {"__repr__": lambda _: "MISSING"})()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOptions:
    """The options of a field's declaration."""

    default: Any = MISSING
    default_factory: Callable[[], Any] | None = None
    name: str | None = None
    role: Role = "plain"
    compute: Callable[[Any], Any] | None = None
    min: int | None = None
    max: Any = None
    scale: int | None = None
    precision: Literal["seconds", "milliseconds", "microseconds"] = "microseconds"
    case: Literal["upper", "lower", "casefold"] | None = None
    alert: float | Literal["growing"] | None = "growing"
    epoch: bool = False
    zone: tzinfo | None = None
    unique: bool | tuple[Any, ...] = False
    in_order: bool = False
    was: Any = None
    description: str | None = None
    codec: Codec[Any, Any] | None = None
    hidden: bool = False
    read_only: bool = False

    @property
    def has_default(self) -> bool:
        """Whether the field has a fixed default."""
        return self.default is not MISSING

    @property
    def required(self) -> bool:
        """Whether the constructor requires a value."""
        is_given = self.role in ("plain", "expires")
        return is_given and not self.has_default and self.default_factory is None


class _FieldPlace(Operand[T], StoredValue[T]):
    """A field, or a place inside one."""

    __slots__ = ()

    def between(self, low: T | Comparable[T | None], high: T | Comparable[T | None]) -> Condition:
        """True if the value is between two values, both included."""
        return self._compare("between", low, high)

    def is_in(self, values: Iterable[T | Comparable[T | None]]) -> Condition:
        """True if the value is one of up to a hundred values."""
        return self._compare("in", *check_choices(self, values))

    def begins_with(self, prefix: str | bytes) -> Condition:
        """True if a text, or bytes, begins with a prefix."""
        if not isinstance(prefix, str | bytes):
            raise UsageError(
                f"{self!r}: begins_with takes a string or bytes, not {prefix!r}; for a range of other "
                "values use between"
            )
        self._check_kind("begins_with", ("S", "B"), "between(…)")
        return ValueComparison(self._field, "begins_with", (prefix,), self._path)

    def contains(self, value: Any) -> Condition:
        """True if a text contains another, or if a list or set has a member."""
        self._check_kind("contains", ("S", "B", "L", "SS", "NS", "BS"), "a comparison")
        (value,) = check_values(self, value)
        member = to_wire(plain(value))
        if self._field.annotation is not None:
            check_member(self, self._field.wire_at(self._path).code, value, member)
        return self._test("contains", member)

    def exists(self) -> Condition:
        """True if the item has the attribute."""
        return self._test("attribute_exists")

    def missing(self) -> Condition:
        """True if the item does not have the attribute."""
        return self._test("attribute_not_exists")

    @property
    def size(self) -> Size:
        """The number of characters, bytes or members; compare it with a number."""
        self._check_kind(
            "size", ("S", "B", "L", "M", "SS", "NS", "BS"), "a comparison of the field"
        )
        return Size(self._field, self._path)

    def __getitem__(self, element: str | int) -> Inner:
        """A place inside: an element of a list, or a member of a map; raises `UsageError` if the type has none."""
        path = (*self._path, element)
        field = self._field
        if field.annotation is not None and (
            type(element) is not str or (self._path, ...) not in field._places
        ):
            field.place(path)
        return Inner(self._field, path)

    def remove(self) -> changes.Change:
        """Remove the attribute."""
        return changes.RemoveField(self._field, self._path)

    def add(self, value: T | Value[T]) -> changes.Change:
        """Add to a number, or members to a set; one atomic write. A missing number counts from its default, or from 0.

        The added number may be another field: `Order.total.add(Order.tip)`.
        """
        if type(value) is not int and isinstance(value, Value):  # no call here: a hot path
            fallback = None if self._path else self._field.fallback
            start = ZERO
            if fallback is not None:
                start = Constant[Any](fallback, None, self._field.options.default)
            return self._computed(Sum(OrElse(self, start), "+", value))
        return changes.AddToField(self._field, value, self._path)

    # Values of other fields

    def or_else(self: _FieldPlace[X | None], value: X | Value[X]) -> Value[X]:
        """The value, or another value if the item does not have it: `Order.sold.or_else(0) + 1`."""
        return self._or_else(value)

    def _or_else(self, value: Any) -> Value[Any]:
        field, form = self._field, self._form()
        if not self._path and field.writes_none and field.wire.optional:
            raise UsageError(
                f"{self._text()}.or_else(…) would not replace None, which is stored as NULL, as the field has "
                "another default; read the entity and set the value"
            )
        if not isinstance(value, Value):
            value = Constant(
                field.encode_at(self._path, value),
                form and form._replace(optional=False, missing=False),
                value,
            )
        check_assignable(
            form and form._replace(optional=True), value._form(), self._text(), value._text()
        )
        return OrElse(self, value)

    def _computed(self, value: Value[Any]) -> changes.Change:
        """The change to a value that the database computes; raises `UsageError` for another type."""
        name = f"{self._text()}.set({value._text()})"
        check_assignable(form_at(self._field, self._path), value._form(), name, value._text())
        return changes.Compute(self._field, value, self._path)

    def _path_node(self) -> nodes.Path:
        path: nodes.Path = self._field.path(*self._path)
        return path

    def _operand(self) -> nodes.Operand:
        default = None if self._path else self._field.fallback
        node = self._path_node()
        return (
            node if default is None else nodes.Call("if_not_exists", (node, nodes.Literal(default)))
        )

    def _form(self) -> StoredForm | None:
        form = form_at(self._field, self._path)
        if self._field.wire_at(self._path).code in _SETS:
            raise UsageError(
                f"{self._text()} is a set, and an empty one is not stored, so the database cannot copy it; read "
                "the entity and set the value"
            )
        if form is None or self._path or not form.optional or self._field.fallback is not None:
            return form
        return form._replace(missing=True)

    def _sources(self) -> Iterator[Attr[Any]]:
        yield self._field

    def _must_exist(self) -> Iterator[Attr[Any]]:
        if self._path or self._field.fallback is None:
            yield self._field

    def _given(self, values: Mapping[str, Any]) -> Value[Any]:
        field = self._field
        if self._path or values.get(field.name) is None:
            return self
        value = values[field.name]
        return Constant(field.encode(value), self._form(), value)

    # Comparisons with other fields

    def _node(self) -> nodes.Operand:
        return self._path_node()

    def _implied(self) -> AttributeValue | None:
        implied: AttributeValue | None = self._field.implied
        if implied is None or not self._path:
            return implied
        return lookup(("", *self._path))({"": implied})

    def _encode(self, value: Any) -> AttributeValue:
        encoded: AttributeValue = self._field.encode_at(self._path, value)
        return encoded

    def _check_comparable(self, operator: str, other: Operand[Any] | None) -> None:
        field = self._field
        if other is None:
            _check_stored_order(field, self._path)
            return
        both = f"{self._text()} and {other._text()}"
        if isinstance(other, Size):
            other._check_comparable(operator, self)
            return
        for each in (self, other):
            if each._field.options.case is not None and not each._path:
                raise UsageError(
                    f"{both} cannot be compared: {each._field.name!r} has a case in keys, but is stored as it was "
                    "given; store the texts in one case, in a computed() field, and compare those"
                )
        if self._text() == other._text():
            raise UsageError(
                f"{self._text()} is compared with itself; give a value or another field"
            )
        left, right = form_at(field, self._path), form_at(other._field, other._path)
        check_comparable(left, right, both)

    def _text(self) -> str:
        return place_in(self._field, self._path)

    def _test(self, function: str, *operands: AttributeValue) -> Condition:
        return FunctionTest(self._field, function, operands, self._path)

    def _check_kind(self, what: str, codes: Collection[str], instead: str) -> None:
        """Raise if no value could satisfy the condition. DynamoDB would silently find nothing."""

    def __repr__(self) -> str:
        return f"<field {place_in(self._field, self._path)}>"


class Attr(_FieldPlace[T]):
    """A field of an entity.

    Made by `field()` and its siblings, never directly. `name` is the Python name, `attribute` the
    name in the item.
    """

    def __init__(self, options: FieldOptions) -> None:
        self.options = options
        self.name: str = ""
        self.attribute: str = options.name or ""
        self.annotation: Any = None
        self.is_in_order: bool = options.in_order
        self._field = self
        self._path = ()

    def __set_name__(self, owner: type, name: str) -> None:
        if not self.name:
            self.name = name
            self.attribute = self.options.name or name

    @overload
    def __get__(self: Attr[Decimal], instance: None, owner: Any) -> DecimalAttr[Decimal]: ...
    @overload
    def __get__(
        self: Attr[Decimal | None], instance: None, owner: Any
    ) -> DecimalAttr[Decimal | None]: ...
    @overload
    def __get__(self, instance: None, owner: Any) -> Attr[T]: ...
    @overload
    def __get__(self, instance: object, owner: Any) -> T: ...
    def __get__(self, instance: Any, owner: Any) -> Any:
        # An instance keeps its values in its __dict__, which takes precedence over a descriptor without __set__ at run
        # time. So only the class, or an instance that lacks the value, gets here.
        if instance is None:
            return self
        fault = instance.__dict__.get(UNREADABLE, {}).get(self.name)
        if fault is not None:
            raise fault.with_traceback(None)
        return instance.__schema__.computations.absent(instance, self.name)

    if TYPE_CHECKING:

        def __set__(self, instance: Any, value: T) -> None: ...

    else:

        def __class_getitem__(cls, annotation):
            # The cache of `typing` would return Literal["a", "b"] for Literal["b", "a"], because the two are equal.
            return GenericAlias(cls, annotation)

    # The type

    def bind(self, annotation: Any) -> None:
        """Take the declared type; called once, when the class is defined."""
        self.annotation = annotation

    @cached_property
    def wire(self) -> WireType:
        """How values are written in an item."""
        options = self.options
        if options.codec is not None:
            return coded_type(self.annotation, options.codec)
        if options.role == "expires":
            return expiry_type(self.annotation)
        if options.epoch:
            return epoch_type(self.annotation)
        if options.zone is not None:
            return zoned_type(self.annotation, options.zone)
        return wire_type(self.annotation)

    @cached_property
    def order(self) -> tuple[Any, ...] | None:
        """The values of an enum, a Literal or a bool, least first; empty if they have no order.

        None for other types, which DynamoDB compares itself.
        """
        if self.wire.code == "BOOL":
            return (False, True)
        values = choices(self.annotation)
        if values is None or self.is_in_order:
            return values
        if self.wire.code != "N":
            return ()
        return tuple(sorted(values, key=lambda value: Decimal(self.wire.encode(value)["N"])))

    def __invert__(self) -> Condition:
        """True if the field is False: `~Order.paid` is `Order.paid == False`. Only for a bool."""
        if self.annotation is not None and self.wire.code != "BOOL":
            raise UsageError(
                f"~{self.name}: only a bool or a condition has an opposite; write {self.name} != …"
            )
        return self._compare("=", False)

    def declare_order(self) -> None:
        """Make the values compare in the order of their declaration, as `in_order` in a key does."""
        self.is_in_order = True
        self.__dict__.pop("order", None)
        self.__dict__.pop("_orderless", None)

    def check_order_at(self, path: PathElements) -> None:
        """Raise `UsageError` if values at a place inside the field cannot be compared by order."""
        annotation, code = self.place(path).annotation, self.wire_at(path).code
        if code in _UNORDERED or code == "BOOL":
            raise UsageError(
                f"{place_in(self, path)} is stored as {code}, which has no order; write =="
            )
        if code != "N" and choices(annotation) is not None:
            raise UsageError(
                f"{place_in(self, path)} is one of {_listed(annotation)}, which have no declared order "
                "inside a field; write .is_in([…])"
            )

    @cached_property
    def _orderless(self) -> str:
        """Why the values cannot be compared by order; empty if they can."""
        if self.order == ():
            return (
                f"field {self.name!r} is one of {_listed(self.annotation)}, which have no declared order; "
                "declare it by field(in_order=True), or by in_order(…) in a key, or write .is_in([…])"
            )
        if self.wire.code in _UNORDERED:
            return f"field {self.name!r} is stored as {self.wire.code}, which has no order; write == or .size"
        return ""

    @property
    def writes_alike(self) -> bool:
        """Whether equal values are always stored alike."""
        return True

    @cached_property
    def why_fixed(self) -> str | None:
        """Why no change may set the field; None if changes may."""
        if self.options.read_only:
            return "it is read-only: set when the entity is created"
        return _MAINTAINED.get(self.options.role)

    @property
    def unique_within(self) -> tuple[Attr[Any], ...]:
        """The fields within which a unique value must be unique."""
        unique = self.options.unique
        return () if isinstance(unique, bool) else unique

    @property
    def writes_none(self) -> bool:
        """Whether None is written as NULL, because a missing attribute means another default."""
        options = self.options
        return options.default_factory is not None or options.default not in (MISSING, None)

    def encode(self, value: Any) -> AttributeValue:
        """The stored form of a value; raises `UsageError` that names the field."""
        try:
            return self.wire.encode(value)
        except UsageError as error:
            raise UsageError(f"field {self.name!r}: {error}") from None

    def encode_at(self, path: PathElements, value: Any) -> AttributeValue:
        """The stored form of a value of the field, or of a place in it; raises `UsageError` that names the place."""
        if not path:
            return self.encode(value)
        try:
            return self.place(path).wire.encode(value)
        except UsageError as error:
            raise UsageError(f"{place_in(self, path)}: {error}") from None

    def wire_at(self, path: PathElements) -> WireType:
        """How values of the field, or of a place inside it, are written."""
        return self.place(path).wire if path else self.wire

    def place(self, path: PathElements) -> Place:
        """What a place inside the field may hold; raises `UsageError` if the type has no such place."""
        # All members of a dict have the same type, and there may be any number of them: one entry serves all.
        outer, element = path[:-1], path[-1]
        known = (outer, ...) if type(element) is str else path
        place = self._places.get(known) or self._places.get(path)
        if place is None:
            around = self.place(outer).annotation if outer else self.annotation
            try:
                place = inside(around, element)
            except UsageError as error:
                raise UsageError(f"{place_in(self, outer)} {error}") from None
            self._places[known if is_map_of_texts(around) else path] = place
        return place

    @cached_property
    def _places(self) -> dict[tuple[Any, ...], Place]:
        return {}

    @cached_property
    def implied(self) -> AttributeValue | None:
        """What a missing attribute means, in stored form; None if it means None, or if that varies.

        It may be an empty set, which no item contains.
        """
        options, wire = self.options, self.wire
        default = options.default if options.has_default else None
        if options.default_factory in _EMPTY:
            default = options.default_factory()
        if wire.python in (set, frozenset) and (default == set() or not wire.optional):
            return {wire.code: []} if wire.code in _SETS else None
        return None if default is None else self.encode(default)

    @cached_property
    def fallback(self) -> AttributeValue | None:
        """As `implied`, but None for an empty set, which no item contains."""
        return None if self.implied in EMPTY_SETS else self.implied

    def path(self, *inner: str | int) -> nodes.Path:
        """The path to the field in an item, or to a place inside it."""
        if inner and len(inner) == 1 and type(inner[0]) is str and ((), ...) in self._places:
            return nodes.MemberPath((self.attribute, *inner))
        return nodes.Path((self.attribute, *inner))

    # Conditions

    def _check_kind(self, what: str, codes: Collection[str], instead: str) -> None:
        code = None if self.annotation is None else self.wire.code
        if code is not None and code not in codes:
            raise UsageError(
                f"field {self.name!r} is stored as {code}, for which {what} is never true; write {instead}"
            )

    def _compare(self, operator: str, *values: Any) -> Condition:
        if compares_fields(self, values):
            return compare_fields(self, operator, values)
        if operator in ORDERINGS and self.annotation is not None and self._orderless:
            raise UsageError(self._orderless)
        literals = []
        for value in values:
            if value is None:
                return self._compare_with_none(operator, values)
            if not value and operator in ("=", "<>") and isinstance(value, set | frozenset):
                return self.missing() if operator == "=" else self.exists()  # None is not stored
            if self.annotation is not None:  # not yet known while the class statement runs
                literals.append(nodes.Literal(self.encode(value)))  # raises for a wrong type
        return ValueComparison(self, operator, values, (), tuple(literals) or None)

    def _compare_with_none(self, operator: str, values: tuple[Any, ...]) -> Condition:
        if operator not in ("=", "<>"):
            raise UsageError(f"field {self.name!r} cannot be compared with None by {operator}")
        if self.writes_none:
            return ValueComparison(self, operator, values)
        return NoneTest(self, "attribute_not_exists" if operator == "=" else "attribute_exists")

    def since(self, at: datetime) -> Condition:
        """True for an id that was made at a time or later, in a field of KSUIDs, ULIDs or UUIDs of version 7.

        The time is rounded down to the second for a KSUID, to the millisecond for the others, as in the ids.

            Line.primary.where(Line.run == "a", Line.id.since(start), Line.id.before(end))
        """
        start, is_reached = self._start_of("since", at)
        return self._compare(">=" if is_reached else ">", start)

    def before(self, at: datetime) -> Condition:
        """True for an id that was made before a time; see `since`."""
        start, is_reached = self._start_of("before", at)
        return self._compare("<" if is_reached else "<=", start)

    def _start_of(self, call: str, at: datetime) -> tuple[Any, bool]:
        kind = present_type(self.annotation)
        if kind not in ID_TYPES:
            operator = {"since": ">=", "before": "<"}[call]
            raise UsageError(
                f"{call}() is for ids that begin with their time (KSUID, ULID, UUID), and {self.name!r} is "
                f"{type_text(self.annotation)}; write {self.name} {operator} …"
            )
        if not isinstance(at, datetime):
            raise UsageError(f"{call}({at!r}) takes a datetime")
        return start_of(kind, at)

    # Changes

    def set(self, value: T | Value[T]) -> changes.Change:
        """Set the field; None removes it.

        The value may be another field's, or a sum of two: `Order.due.set(Order.total - Order.paid)`.
        """
        if value is None:
            return changes.RemoveField(self)
        if isinstance(value, Value):
            return self._computed(value)
        return changes.SetField(self, value)

    def set_default(self, value: T | Value[T]) -> changes.Change:
        """Set the field if the item does not have it yet."""
        if isinstance(value, Value):
            return self._computed(self._or_else(value))
        return changes.SetDefault(self, value)

    def discard(self, value: T) -> changes.Change:
        """Remove members from a set."""
        return changes.Discard(self, value)

    def append(self, values: T) -> changes.Change:
        """Add elements at the end of a list, which is created if it is missing."""
        return changes.Extend(self, values, at_end=True)

    def prepend(self, values: T) -> changes.Change:
        """Add elements at the beginning of a list, which is created if it is missing."""
        return changes.Extend(self, values, at_end=False)


_EMPTY: Final = (list, dict, set, frozenset)
"""The default factories that always return the same."""

_MAINTAINED: Final[dict[Role, str]] = {
    "computed": "it is computed from other fields",
    "version": "each write raises it by one",
    "created": "it is set when the entity is first written",
    "created_id": "it is set when the entity is first written",
    "updated": "each write sets it",
}
_SETS: Final = frozenset({"SS", "NS", "BS"})
_UNORDERED: Final = _SETS | {"L", "M"}


def _check_stored_order(field: Attr[Any], path: PathElements) -> None:
    """Raise `UsageError` if stored values do not sort as the place's values do."""
    if path:
        field.check_order_at(path)
        return
    if field._orderless:
        raise UsageError(field._orderless)
    order = field.order
    if order is None:
        return
    numbers = (
        [Decimal(field.encode(value)["N"]) for value in order] if field.wire.code == "N" else None
    )
    if numbers is None or numbers != sorted(numbers):
        raise UsageError(
            f"the database compares two stored values, and does not know the order of {_listed(field.annotation)}: "
            f"compare {field.name!r} with values, or read the entity"
        )


def _listed(annotation: Any) -> str:
    return ", ".join(map(repr, choices(annotation) or ()))


class DecimalAttr(Attr[T]):
    """For type checkers: a Decimal field as seen on the class, which also accepts ints."""

    if TYPE_CHECKING:

        def __eq__(self, other: T | int | Comparable[T | int | None]) -> Condition: ...  # type: ignore[override] # makes a condition
        def __ne__(self, other: T | int | Comparable[T | int | None]) -> Condition: ...  # type: ignore[override] # makes a condition
        def __lt__(self, other: T | int | Comparable[T | int | None]) -> Condition: ...
        def __le__(self, other: T | int | Comparable[T | int | None]) -> Condition: ...
        def __gt__(self, other: T | int | Comparable[T | int | None]) -> Condition: ...
        def __ge__(self, other: T | int | Comparable[T | int | None]) -> Condition: ...
        def between(
            self,
            low: T | int | Comparable[T | int | None],
            high: T | int | Comparable[T | int | None],
        ) -> Condition: ...
        def is_in(self, values: Iterable[T | int | Comparable[T | int | None]]) -> Condition: ...
        def set(self, value: T | int | Value[T | int]) -> changes.Change: ...
        def set_default(self, value: T | int | Value[T | int]) -> changes.Change: ...
        def add(self, value: T | int | Value[T | int]) -> changes.Change: ...
        def or_else(self, value: Exact | Value[Exact]) -> Value[Decimal]: ...  # type: ignore[override] # narrower


class CodedAttr(Attr[T]):
    """A field with a codec. The database knows only the encoded form of its values."""

    @property
    def _codec(self) -> Codec[Any, Any]:
        codec: Codec[Any, Any] | None = self.options.codec
        assert codec is not None
        return codec

    @property
    def writes_alike(self) -> bool:
        return self._codec.deterministic

    @property
    def order(self) -> tuple[Any, ...] | None:
        return None

    @property
    def _orderless(self) -> str:
        if self._codec.ordered:
            return ""
        return self._refused("has no order") + ", or Codec(…, ordered=True) if it keeps the order"

    def _compare(self, operator: str, *values: Any) -> Condition:
        if not self._codec.deterministic and not all(value is None for value in values):
            raise UsageError(
                f"field {self.name!r} is encoded differently each time, so no condition finds a value; read the "
                "entities and compare theirs"
            )
        return super()._compare(operator, *values)

    def _check_kind(self, what: str, codes: Collection[str], instead: str) -> None:
        raise UsageError(self._refused(f"cannot be asked for {what}"))

    def _refused(self, what: str) -> str:
        return f"field {self.name!r} has a codec, so what is stored {what}; write =="

    def _unchangeable(self) -> UsageError:
        return UsageError(
            f"field {self.name!r} has a codec, so the database cannot change a part of it; write .set(…)"
        )

    def __getitem__(self, element: str | int) -> Inner:
        raise UsageError(
            f"field {self.name!r} has a codec, so the database sees nothing inside; use the whole field"
        )

    def __invert__(self) -> Condition:
        return self._compare("=", False)

    def add(self, value: Any) -> changes.Change:
        raise self._unchangeable()

    def discard(self, value: Any) -> changes.Change:
        raise self._unchangeable()

    def append(self, values: Any) -> changes.Change:
        raise self._unchangeable()

    def prepend(self, values: Any) -> changes.Change:
        raise self._unchangeable()


class Inner(_FieldPlace[Any]):
    """A place inside a field: `Order.address["city"]`, `Order.lines[0]["price"]`."""

    __slots__ = ("_field", "_path")

    def __init__(self, field: Attr[Any], path: PathElements) -> None:
        self._field = field
        self._path = path

    def _compare(self, operator: str, *values: Any) -> Condition:
        if compares_fields(self, values):
            return compare_fields(self, operator, values)
        comparison = ValueComparison(self._field, operator, values, self._path)
        if self._field.annotation is not None:
            comparison.check()
        return comparison

    def set(self, value: Any) -> changes.Change:
        """Set this place; None is written as NULL."""
        if isinstance(value, Value):
            return self._computed(value)
        return changes.SetField(self._field, value, self._path)


class Size(Operand[int]):
    """The size of a field, or of a place inside it; compare it with a number."""

    __slots__ = ("_field", "_path")

    def __init__(self, field: Attr[Any], path: PathElements) -> None:
        self._field = field
        self._path = path

    def _compare(self, operator: str, *values: Any) -> Condition:
        (size,) = values
        if compares_fields(self, values):
            return compare_fields(self, operator, values)
        if type(size) is not int:
            raise UsageError(f"{self!r} is compared with an int, not with {size!r}")
        return SizeComparison(self._field, operator, size, self._path)

    def _node(self) -> nodes.Operand:
        return nodes.Call("size", (self._field.path(*self._path),))

    def _implied(self) -> AttributeValue | None:
        implied = Inner(self._field, self._path)._implied()
        return None if implied is None else size(implied)

    def _encode(self, value: Any) -> AttributeValue:
        return wire_type(int).encode(value)

    def _check_comparable(self, operator: str, other: Operand[Any] | None) -> None:
        if other is None or isinstance(other, Size):
            return
        form = form_at(other._field, other._path)
        if form is not None and form.kind not in (int, float, Decimal):
            raise UsageError(f"{self._text()} is a number, and {other._text()} is {form}")

    def _text(self) -> str:
        return f"{place_in(self._field, self._path)}.size"

    def __repr__(self) -> str:
        return f"<size of {place_in(self._field, self._path)}>"


def field(
    *,
    default: Any = MISSING,
    default_factory: Callable[[], Any] | None = None,
    name: str | None = None,
    min: int | None = None,  # noqa: A002 - the word that users know
    max: Any = None,  # noqa: A002
    scale: int | None = None,
    precision: Literal["seconds", "milliseconds", "microseconds"] = "microseconds",
    case: Literal["upper", "lower", "casefold"] | None = None,
    alert: float | Literal["growing"] | None = "growing",
    epoch: bool = False,
    zone: tzinfo | None = None,
    unique: bool | tuple[Attr[Any], ...] = False,
    in_order: bool = False,
    was: Any = None,
    description: str | None = None,
    codec: Codec[Any, Any] | None = None,
    hidden: bool = False,
    read_only: bool = False,
) -> Any:
    """Declare a field of an entity.

    `default`, `default_factory`: the value of an entity that is made without one. `name`: the attribute's
    name in the item, if it is not the field's. `max` (and `min`, if below 0): the range of a number, which
    determines its width in a string key; `scale`: its decimal places there. `alert`: the fraction of `max` at
    which a number in a key is reported, so that there is time to widen it; by default 0.3 if `max` is a number
    of digits (999, 99_999, 1_000), and never otherwise (23, 100, 365); None for never. `precision`: of a
    datetime in a key. `case`: how a key normalizes a text; the field itself keeps its case. `epoch`: write a
    datetime as seconds since the epoch, to the microsecond. `zone`: the zone of existing texts without
    one. `unique`: no two entities of the kind have the same value; with a tuple of fields, no two that also
    agree in those fields. An existing item claims its value when `store.move` moves it to its own key.
    `in_order`: the values of an enum or a Literal are ordered as declared, in conditions and in keys.
    `was`: the previous `max`, while keys are being widened (`store.widen`). `codec`: functions that encode and decode
    the stored value. `hidden`: left out of `model_dump`, JSON and `repr`. `read_only`: set when the entity is created;
    updates and input refuse or ignore it.
    """
    kind = Attr if codec is None else CodedAttr
    return kind(
        FieldOptions(
            default=default,
            default_factory=default_factory,
            name=name,
            min=min,
            max=max,
            scale=scale,
            precision=precision,
            case=case,
            alert=alert,
            epoch=epoch,
            zone=zone,
            unique=unique,
            in_order=in_order,
            was=was,
            description=description,
            codec=codec,
            hidden=hidden,
            read_only=read_only,
        )
    )


def computed(
    compute: Callable[[Any], Any], *, name: str | None = None, init: Literal[False] = False
) -> Any:
    """Declare a field that is computed from the entity's other fields, after them: `total: Attr[Decimal] = computed(lambda order: order.price * order.count)`."""
    return Attr(FieldOptions(role="computed", compute=compute, name=name))


def version(*, name: str | None = None, init: Literal[False] = False) -> Any:
    """Declare the field that detects concurrent writes: each write increases it by one: `revision: Attr[int] = version()`."""
    return Attr(FieldOptions(role="version", default=0, name=name))


def expires(*, default: Any = MISSING, name: str | None = None) -> Any:
    """Declare the datetime at which the item expires, to the second: the table's TimeToLive attribute: `ends: Attr[datetime | None] = expires(default=None)`."""
    return Attr(FieldOptions(role="expires", default=default, name=name))


def created(*, name: str | None = None, init: Literal[False] = False) -> Any:
    """Declare the datetime at which the item was first written; set by the library: `placed_at: Attr[datetime] = created()`."""
    return Attr(FieldOptions(role="created", default=None, name=name))


def created_id(*, name: str | None = None, init: Literal[False] = False) -> Any:
    """Declare an id that the library makes when the entity is first written: a KSUID, a ULID or a UUID of version 7.

    It uses the store's clock, whereas `field(default_factory=ULID.new)` uses the machine's.
    """
    return Attr(FieldOptions(role="created_id", default=None, name=name))


def updated(*, name: str | None = None, init: Literal[False] = False) -> Any:
    """Declare the datetime at which the item was last written; set by the library: `changed_at: Attr[datetime] = updated()`."""
    return Attr(FieldOptions(role="updated", default=None, name=name))
