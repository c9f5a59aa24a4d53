"""Keys: `Key("CUSTOMER", customer_id).sort("ORDER", desc(number))`.

A key is declared from literals and fields and turned, when its entity is defined, into *slots*: one for
each key attribute of the table or index. A string slot renders its parts joined by `#`, each in a form
that sorts as its value does; a native slot carries one field as it is. What cannot sort rightly is
refused at definition. Keys of tables that are there already may have another separator, or none.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from isotone.codec import readable
from isotone.errors import OutOfRange, UsageError
from isotone.model.declaring.components import Component, Part, codec_of, component_of, conversion
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.table import KeyAttribute, KeyLayout, Table
from isotone.values.types import AttributeValue

if TYPE_CHECKING:
    from typing import Self

    from isotone.model.entity import Entity
    from isotone.model.reading.patterns import Pattern

    E = TypeVar("E", bound=Entity)


class Key:
    """The primary key of an entity: what groups it, then what orders it within its group.

    Parts are literals and fields. On the class it is a `Pattern`: `Order.primary.where(…)`.

    `separator` joins them; `""` joins them by nothing, so that literals say it all. With another one
    than `#`, texts stand in the key as they are, and are refused where they hold it.
    """

    index: str | None = None

    def __init__(self, *partition: Part, separator: str = readable.SEPARATOR) -> None:
        self.partition = partition
        self.separator = separator
        self.sorted_by: tuple[Part, ...] = ()
        self.sort_separator = separator
        self.when: Condition | None = None
        self.name = ""

    def sort(self, *parts: Part, separator: str | None = None) -> Self:
        """The sort key's parts, the most significant first; joined as the others, or by their own separator."""
        self.sorted_by = parts
        self.sort_separator = self.separator if separator is None else separator
        return self

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type[E]) -> Pattern[E]:
        from isotone.model.reading.patterns import Pattern

        return Pattern(owner, owner.__schema__.keys[self.name])


class Index(Key):
    """A secondary index's key. `when` makes it sparse: only entities that satisfy it have an entry."""

    def __init__(
        self,
        index: str,
        *partition: Part,
        when: Condition | None = None,
        separator: str = readable.SEPARATOR,
    ) -> None:
        super().__init__(*partition, separator=separator)
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
    """A string attribute: literals and components, joined by a separator."""

    __slots__ = ("_converters", "attribute", "components", "template")

    def __init__(
        self,
        attribute: KeyAttribute,
        parts: tuple[Part, ...],
        separator: str = readable.SEPARATOR,
    ) -> None:
        self.attribute = attribute
        self.components = tuple(component_of(part) for part in parts if not isinstance(part, str))
        self.template = readable.Template(
            [
                part if isinstance(part, str) else codec_of(component_of(part), separator)
                for part in parts
            ],
            separator,
        )
        self._converters = tuple(
            (component.field.name, *conversion(component)) for component in self.components
        )

    def encode(self, values: Mapping[str, Any]) -> AttributeValue | None:
        found = []
        for name, outward, _ in self._converters:
            value = values.get(name)
            if value is None:
                return None
            found.append(outward(value))
        try:
            return {"S": self.template.render(found)}
        except UsageError:
            self._name_the_field(found)
            raise

    def _name_the_field(self, found: list[Any]) -> None:
        """Raise what is wrong with a value together with the name of its field."""
        for (name, *_), codec, value in zip(
            self._converters, self.template.codecs, found, strict=True
        ):
            try:
                codec.encode(value)
            except UsageError as error:
                kind = OutOfRange if isinstance(error, OutOfRange) else UsageError
                raise kind(f"field {name!r}: {error}") from None

    def parse(self, value: AttributeValue) -> dict[str, Any]:
        parsed = self.template.parse(value["S"])
        return {
            name: inward(each)
            for (name, _, inward), each in zip(self._converters, parsed, strict=True)
        }

    def can_hold(self, values: Mapping[str, Any]) -> bool:
        """Whether a key can have these values, as far as they are given: none is beyond its width."""
        given = [values.get(name) for name, *_ in self._converters]
        return all(
            self.template.has_text(place, self.outward(place, value))
            for place, value in enumerate(given)
            if value is not None
        )

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
        if component.codec is not None or component.form == "declared order":
            raise UsageError(
                f"key attribute {attribute.name!r} carries {component.field.name!r} as it is, and not in "
                "another form; give the field an attribute of its own: field(name=…)"
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

    def sorts_by(self, component: Component) -> bool:
        """Whether items lie in the order of a component: of all but those that stand there as made by hand."""
        return not any(
            each is component and not slot.template.keeps_order(place)
            for slot in self.sort
            if isinstance(slot, StringSlot)
            for place, each in enumerate(slot.components)
        )

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
            _slots(layout, layout.partition, key.partition, key.separator),
            _slots(layout, layout.sort, key.sorted_by, key.sort_separator),
            key.when,
        )
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _described(table: Table, key: Key) -> str:
    return f"table {table.name!r}" if key.index is None else f"index {key.index!r}"


def _slots(
    layout: KeyLayout,
    attributes: tuple[KeyAttribute, ...],
    parts: tuple[Part, ...],
    separator: str,
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
    return (StringSlot(attribute, parts, separator),)


def _is_native(layout: KeyLayout, attribute: KeyAttribute, part: Attr[Any] | Component) -> bool:
    own = component_of(part).field.attribute == attribute.name
    return own or attribute.type != "S" or layout.is_wide


def _native(attribute: KeyAttribute, part: Part) -> Slot:
    if isinstance(part, str):
        raise UsageError(
            f"key attribute {attribute.name!r} carries one field as it is, not the literal {part!r}"
        )
    return NativeSlot(attribute, component_of(part))
