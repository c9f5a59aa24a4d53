"""Keys: `Key("CUSTOMER", customer_id).sort("ORDER", desc(number))`.

A key is declared from literals and fields and turned, when its entity is defined, into *slots*: one for
each key attribute of the table or index. A string slot renders its parts joined by `#`, each in a form
that sorts as its value does; a native slot carries one field as it is. What cannot sort rightly is
refused at definition.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args, get_origin
from uuid import UUID

from isotone.codec import readable
from isotone.codec.ids import KSUID, ULID
from isotone.errors import UsageError
from isotone.model.conditions import Condition
from isotone.model.fields import Attr
from isotone.model.table import KeyAttribute, KeyLayout, Table
from isotone.values.types import AttributeValue

if TYPE_CHECKING:
    from typing import Self

    from isotone.model.entity import Entity
    from isotone.model.patterns import Pattern

    E = TypeVar("E", bound=Entity)

Form = Literal["value", "declared order", "raw"]


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """A field's place in a key: which way it sorts, and in which form it is written."""

    field: Attr[Any]
    descending: bool = False
    form: Form = "value"


Part = str | Attr[Any] | Component


def desc(part: Attr[Any] | Component) -> Component:
    """The field in descending order: the greatest value comes first.

    >>> Key("ORDER").sort(desc(number))  # doctest: +SKIP
    """
    component = _component(part)
    return replace(component, descending=not component.descending)


def in_order(part: Attr[Any] | Component) -> Component:
    """An enum or Literal in the order in which its values are declared, not by their text."""
    return replace(_component(part), form="declared order")


def raw(part: Attr[Any] | Component) -> Component:
    """A text as it is, for the last place of a key; elsewhere it could leak into its neighbour."""
    return replace(_component(part), form="raw")


def _component(part: Attr[Any] | Component) -> Component:
    return part if isinstance(part, Component) else Component(part)


class Key:
    """The primary key of an entity: what groups it, then what orders it within its group.

    Parts are literals and fields. On the class it is a `Pattern`: `Order.primary.where(…)`.
    """

    index: str | None = None

    def __init__(self, *partition: Part) -> None:
        self.partition = partition
        self.sorted_by: tuple[Part, ...] = ()
        self.when: Condition | None = None
        self.name = ""

    def sort(self, *parts: Part) -> Self:
        """The sort key's parts, the most significant first."""
        self.sorted_by = parts
        return self

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type[E]) -> Pattern[E]:
        from isotone.model.patterns import Pattern

        return Pattern(owner, owner.__schema__.keys[self.name])


class Index(Key):
    """A secondary index's key. `when` makes it sparse: only entities that satisfy it have an entry."""

    def __init__(self, index: str, *partition: Part, when: Condition | None = None) -> None:
        super().__init__(*partition)
        self.index = index
        self.when = when


class Slot(typing.Protocol):
    """One key attribute of an entity, and how its value is made."""

    attribute: KeyAttribute

    @property
    def components(self) -> tuple[Component, ...]:
        """The fields in it, the most significant first."""

    def encode(self, values: Mapping[str, Any]) -> AttributeValue | None:
        """The attribute's value; None where a field that it needs is None."""

    def parse(self, value: AttributeValue) -> dict[str, Any]:
        """The fields that a value of the attribute holds."""


class StringSlot:
    """A string attribute: literals and components, joined by `#`."""

    __slots__ = ("_converters", "attribute", "components", "template")

    def __init__(self, attribute: KeyAttribute, parts: tuple[Part, ...]) -> None:
        self.attribute = attribute
        self.components = tuple(_component(part) for part in parts if not isinstance(part, str))
        written: list[str | readable.Codec[Any]] = []
        for place, part in enumerate(parts):
            if isinstance(part, str):
                written.append(part)
            else:
                written.append(codec_of(_component(part), is_last=place == len(parts) - 1))
        self.template = readable.Template(tuple(written))
        self._converters = tuple(
            (component.field.name, *_conversion(component)) for component in self.components
        )

    def encode(self, values: Mapping[str, Any]) -> AttributeValue | None:
        found = []
        for name, outward, _ in self._converters:
            value = values.get(name)
            if value is None:
                return None
            found.append(outward(value))
        return {"S": self.template.render(found)}

    def parse(self, value: AttributeValue) -> dict[str, Any]:
        parsed = self.template.parse(value["S"])
        return {
            name: inward(each)
            for (name, _, inward), each in zip(self._converters, parsed, strict=True)
        }

    def outward(self, place: int, value: Any) -> Any:
        """A field's value as its codec takes it."""
        return self._converters[place][1](value)


class NativeSlot:
    """An attribute that carries one field as it is: a number, bytes, or a text of its own."""

    __slots__ = ("attribute", "components", "field")

    def __init__(self, attribute: KeyAttribute, component: Component) -> None:
        if component.descending:
            raise UsageError(
                f"key attribute {attribute.name!r} carries {component.field.name!r} as it is, so it "
                "cannot be stored in descending order; read it with newest_first() instead"
            )
        code = component.field.wire.code
        if code != attribute.type:
            raise UsageError(
                f"key attribute {attribute.name!r} is of type {attribute.type}, but field "
                f"{component.field.name!r} is written as {code or 'a map'}"
            )
        self.attribute = attribute
        self.components = (component,)
        self.field = component.field

    def encode(self, values: Mapping[str, Any]) -> AttributeValue | None:
        value = values.get(self.field.name)
        return None if value is None else self.field.encode(value)

    def parse(self, value: AttributeValue) -> dict[str, Any]:
        return {self.field.name: self.field.wire.decode(value)}


@dataclass(frozen=True, slots=True, eq=False)
class BoundKey:
    """A key on its table: `index` is None for the primary key."""

    name: str
    index: str | None
    partition: tuple[Slot, ...]
    sort: tuple[Slot, ...]
    when: Condition | None = None

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self.partition + self.sort

    @property
    def components(self) -> Iterator[Component]:
        for slot in self.slots:
            yield from slot.components

    @property
    def fields(self) -> list[Attr[Any]]:
        """The fields that the key is made of, and those that decide whether it is there at all."""
        found = {component.field.name: component.field for component in self.components}
        if self.when is not None:
            found.update({field.name: field for field in self.when.fields()})
        return list(found.values())


def bind_key(key: Key, table: Table) -> BoundKey:
    """Lay a declared key over the attributes of its table or index."""
    layout = table.layout(key.index)
    where = f"key {key.name!r}"
    if not key.partition:
        raise UsageError(f"{where} has no partition part")
    if not layout.sort and key.sorted_by:
        raise UsageError(f"{where} has sort parts, but {_described(table, key)} has no sort key")
    if layout.sort and not key.sorted_by:
        raise UsageError(f"{where} has no sort parts; add .sort(…) with a literal or a field")
    try:
        return BoundKey(
            key.name,
            key.index,
            _slots(layout, layout.partition, key.partition),
            _slots(layout, layout.sort, key.sorted_by),
            key.when,
        )
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _described(table: Table, key: Key) -> str:
    return f"table {table.name!r}" if key.index is None else f"index {key.index!r}"


def _slots(
    layout: KeyLayout, attributes: tuple[KeyAttribute, ...], parts: tuple[Part, ...]
) -> tuple[Slot, ...]:
    if not attributes:
        return ()
    if len(attributes) > 1:
        if len(attributes) != len(parts):
            raise UsageError(
                f"{len(attributes)} key attributes want a field each, but there are {len(parts)} parts"
            )
        return tuple(
            _native(attribute, part) for attribute, part in zip(attributes, parts, strict=True)
        )
    (attribute,) = attributes
    if (
        len(parts) == 1
        and not isinstance(parts[0], str)
        and _is_native(layout, attribute, parts[0])
    ):
        return (_native(attribute, parts[0]),)
    if attribute.type != "S":
        raise UsageError(
            f"key attribute {attribute.name!r} is of type {attribute.type}, so it carries exactly one field"
        )
    return (StringSlot(attribute, parts),)


def _is_native(layout: KeyLayout, attribute: KeyAttribute, part: Attr[Any] | Component) -> bool:
    own = _component(part).field.attribute == attribute.name
    return own or attribute.type != "S" or layout.is_wide


def _native(attribute: KeyAttribute, part: Part) -> Slot:
    if isinstance(part, str):
        raise UsageError(
            f"key attribute {attribute.name!r} carries one field as it is, not the literal {part!r}"
        )
    return NativeSlot(attribute, _component(part))


# Which codec writes a field


def codec_of(component: Component, *, is_last: bool) -> readable.Codec[Any]:
    """The codec of a component of a string key; raises `UsageError` where none could sort rightly."""
    field = component.field
    if component.form == "raw":
        if not is_last:
            raise UsageError(f"raw({field.name}) can only be the last part of a key")
        codec: readable.Codec[Any] = readable.RawText(field.options.case)
    elif component.form == "declared order":
        codec = readable.Choice(tuple(map(str, _choices(field))))
    else:
        codec = _by_type(field)
    return codec.descending() if component.descending else codec


def _by_type(field: Attr[Any]) -> readable.Codec[Any]:
    python = _python_type(field.annotation)
    for kind, make in _CODECS.items():
        if isinstance(python, type) and issubclass(python, kind):
            return make(field)
    raise UsageError(
        f"field {field.name!r} of type {python!r} cannot be part of a string key; "
        "a key is made of texts, numbers, times, ids, enums, flags and bytes"
    )


def _python_type(annotation: Any) -> Any:
    """The class behind an annotation: without Optional and Annotated, a Literal by its values' class."""
    origin = get_origin(annotation)
    if origin is typing.Annotated:
        return _python_type(get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        rest = [each for each in get_args(annotation) if each is not type(None)]
        return _python_type(rest[0]) if len(rest) == 1 else annotation
    if origin is Literal:
        kinds = {type(choice) for choice in get_args(annotation)}
        return kinds.pop() if len(kinds) == 1 else annotation
    return annotation


def _natural(field: Attr[Any]) -> readable.Codec[Any]:
    options = field.options
    maximum = options.max
    if maximum is None and get_origin(field.annotation) is Literal:
        maximum = max(get_args(field.annotation))
    if maximum is None:
        raise UsageError(
            f"field {field.name!r} has no declared width: in a string key 10 would come before 2 "
            "(as '10' < '2'); declare the greatest value it can have: field(max=99_999)"
        )
    if options.min is not None and options.min < 0:
        return readable.Integer(options.min, int(maximum))
    return readable.Natural(int(maximum))


def _fixed_point(field: Attr[Any]) -> readable.Codec[Any]:
    options = field.options
    if options.max is None or options.scale is None:
        raise UsageError(
            f"field {field.name!r} has no declared width: in a string key 10 would come before 2 "
            "(as '10' < '2'); declare its greatest value and its decimal places: "
            "field(max=99_999, scale=2)"
        )
    return readable.FixedPoint(options.max, options.scale, signed=(options.min or 0) < 0)


# The first class that a field's type is a subclass of; bool before int, datetime before date.
_CODECS: Final[dict[type, Callable[[Attr[Any]], readable.Codec[Any]]]] = {
    Enum: lambda field: readable.Text(field.options.case),
    KSUID: lambda field: readable.Ksuid(),
    ULID: lambda field: readable.Ulid(),
    str: lambda field: readable.Text(field.options.case),
    bool: lambda field: readable.Flag(),
    int: _natural,
    Decimal: _fixed_point,
    float: lambda field: readable.Float(),
    datetime: lambda field: readable.Instant(field.options.precision),
    date: lambda field: readable.Day(),
    time: lambda field: readable.TimeOfDay(),
    timedelta: lambda field: readable.Span(),
    UUID: lambda field: readable.Uuid(),
    bytes: lambda field: readable.Hex(),
}


def _choices(field: Attr[Any]) -> tuple[Any, ...]:
    python = field.annotation
    if get_origin(python) is Literal:
        return get_args(python)
    if isinstance(python, type) and issubclass(python, Enum):
        return tuple(member.value for member in python)
    raise UsageError(
        f"in_order({field.name}) needs an enum or a Literal, whose values have an order"
    )


def _conversion(component: Component) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Between a field's value and what its codec takes: an enum goes by its value."""
    python = _python_type(component.field.annotation)
    if isinstance(python, type) and issubclass(python, Enum):
        by_text = {str(member.value): member for member in python}
        return (lambda member: str(member.value)), by_text.__getitem__
    if component.form == "declared order":
        by_text = {str(choice): choice for choice in _choices(component.field)}
        return str, by_text.__getitem__
    return _same, _same


def _same(value: Any) -> Any:
    return value
