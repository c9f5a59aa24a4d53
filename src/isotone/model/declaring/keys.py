"""Keys: `Key("CUSTOMER", id)`, `desc`, `in_order`, `raw`; each value's codec, and the field that `OutOfRange` names.

A key is declared from literals and fields: `Key("CUSTOMER", id).sort("ORDER", desc(number))`. When its entity is defined it is bound to the table as *slots*,
one for each key attribute. A string slot joins its parts with `#`, each in a form that sorts like its
value; a native slot contains one field unchanged. A field's type and declaration determine its codec; a field
that could not sort correctly is refused. Keys of existing tables may have another
separator, or none, and forms that `raw`, `written` and `since_epoch` declare. Keys in the collection of another
entity are made in `children`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin
from uuid import UUID

from isotone import limits
from isotone.codec import readable
from isotone.codec.ids import KSUID, ULID
from isotone.errors import MalformedKey, OutOfRange, UsageError, ValidationException
from isotone.expressions import CompiledCondition, nodes
from isotone.model.declaring.absent_attributes import DEFAULTS
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.field_codecs import Codec
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.table import KeyAttribute, KeyLayout, Table
from isotone.model.declaring.wire_types import choices, present_type, type_text
from isotone.values.number import canonical_number, subtract
from isotone.values.types import AttributeValue, Item

if TYPE_CHECKING:
    from typing import Self

    from isotone.model.entity import Entity
    from isotone.model.reading.access_patterns import Pattern

    E = TypeVar("E", bound=Entity)

# Characters have 4 bytes at most, so as many characters in long slots and in short ones are never too long.
_SAFE_LENGTH: Final = limits.SORT_KEY_SIZE // 8


class Key:
    """An entity's primary key: parts that group items into partitions, then parts that sort them there.

    Parts are literals and fields. On the class it is a `Pattern`: `Order.primary.where(…)`.

    `separator` joins the parts; with `""` only literals separate them. Texts are escaped only if the separator is `#`;
    with any other, texts that contain it are refused.
    """

    index: str | None = None
    parent: Pattern[Any] | None = None  # of a key that was declared by `children`
    previous: tuple[Key, ...] = ()  # a tuple, because a Key itself is a descriptor

    def __init__(self, *partition: Part, separator: str = readable.SEPARATOR) -> None:
        self.partition = partition
        self.separator = separator
        self.sorted_by: tuple[Part, ...] = ()
        self.sort_separator: str = separator
        self.when: Condition | None = None
        self.name: str = ""

    def sort(self, *parts: Part, separator: str | None = None) -> Self:
        """Add the sort key's parts, the most significant first; `separator` replaces the key's own."""
        self.sorted_by = parts
        self.sort_separator = self.separator if separator is None else separator
        return self

    def was(self, previous: Key) -> Self:
        """Declare the previous form of the key, under which items may still be stored.

        Reads look under both keys, and a write moves the item to the new key; `store.rewrite` moves all of them.

        >>> primary = Key("MEMBER", name).sort(number).was(Key("USER", name).sort(number))
        """
        if not isinstance(previous, Key):
            raise UsageError(f"was({previous!r}) is not a key; write was(Key(…).sort(…))")
        self.previous = (previous,)
        return self

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type[E]) -> Pattern[E]:
        schema = getattr(owner, "__schema__", None)
        if schema is None:
            raise AttributeError(
                f"{owner.__name__} has no table, so its key {self.name!r} reads nothing; use the key of an "
                f"entity that is derived from it: class …({owner.__name__}, table=…)"
            )
        pattern: Pattern[E] = schema.patterns[self.name]
        return pattern


class Index(Key):
    """A secondary index's key. `when` makes it sparse: only entities that satisfy it have an entry.

    by_status = Index("GSI1", "CUSTOMER", customer_id, when=status != "DONE").sort(status, number)
    """

    def __init__(
        self,
        index: str,
        *partition: Part,
        when: Condition | None = None,
        separator: str = readable.SEPARATOR,
    ) -> None:
        super().__init__(*partition, separator=separator)
        if not isinstance(index, str):
            raise UsageError(
                "Index(…) begins with the name of an index of the table; write Index('GSI1', …), then the parts of its key"
            )
        if when is not None and not isinstance(when, Condition):
            raise UsageError(_not_a_condition(index, when))
        self.index: str = index
        self.when = when


def _not_a_condition(index: str, when: object) -> str:
    if isinstance(when, Attr):
        return f"Index({index!r}, when={when.name}): a field is not a condition; write when={when.name} == True"
    return (
        f"Index({index!r}, when={when!r}): {when!r} is not a condition; Python itself evaluates `is`, `in`, "
        "`not`, `and` and `or`, so write when=deleted == False, or when=~deleted, and join by & and |"
    )


class KeySegment(NamedTuple):
    """A part of a stored key, shown to people: `field` is None for a literal, `value` is the field's value."""

    text: str
    field: str | None
    value: Any


class StringSlot:
    """A string attribute of a key: literals and field values, joined by a separator."""

    __slots__ = ("_decoders", "_encoders", "_start", "attribute", "components", "template")

    def __init__(
        self,
        attribute: KeyAttribute,
        template: readable.Template,
        components: tuple[Component, ...],
    ) -> None:
        self.attribute: KeyAttribute = attribute
        self.template: readable.Template = template
        self.components: tuple[Component, ...] = components
        names = [component.field.name for component in components]
        converters = [_converters(component) for component in components]
        encoders = [codec.encode for codec in template.codecs]
        self._start = template.literals[0]
        # For each component: its field, to_codec, the codec's encode, and the literal after it.
        self._encoders = tuple(
            (name, to_codec, encode, literal)
            for name, (to_codec, _), encode, literal in zip(
                names, converters, encoders, template.literals[1:], strict=True
            )
        )
        self._decoders = tuple(
            (name, from_codec) for name, (_, from_codec) in zip(names, converters, strict=True)
        )

    @property
    def is_short(self) -> bool:
        """Whether its texts are always so short that the check of the key's length can skip them."""
        width = self.template.width
        return width is not None and width <= _SAFE_LENGTH // (2 * limits.INDEX_KEY_PARTS)

    @property
    def is_unfilled(self) -> nodes.ConditionNode:
        """The condition that the attribute is missing, or has another form."""
        path = nodes.Path((self.attribute.name,))
        if not self._start:
            return nodes.Call("attribute_not_exists", (path,))
        return nodes.Not(nodes.Call("begins_with", (path, nodes.Literal({"S": self._start}))))

    def with_template(self, template: readable.Template) -> StringSlot:
        """The same slot in another form."""
        return StringSlot(self.attribute, template, self.components)

    def encode(self, values: Mapping[str, Any]) -> AttributeValue | None:
        """The attribute's value; None if a field that it needs is None."""
        text = self._start
        for name, to_codec, encode, literal in self._encoders:
            value = values.get(name)
            if value is None:
                return None
            try:
                text += encode(value if to_codec is None else to_codec(value)) + literal
            except UsageError as error:
                if any(values.get(other) is None for other, *_ in self._encoders):
                    return None
                kind = OutOfRange if isinstance(error, OutOfRange) else UsageError
                raise kind(f"field {name!r}: {error}") from None
        return {"S": text}

    def parse(self, value: AttributeValue) -> dict[str, Any]:
        """The fields' values in the attribute; raises `MalformedKey`."""
        if "S" not in value:
            raise MalformedKey(f"{value!r} is not a text of the form {self.template}")
        fields = {}
        for (name, from_codec), part in zip(
            self._decoders, self.template.parse(value["S"]), strict=True
        ):
            try:
                fields[name] = part if from_codec is None else from_codec(part)
            except KeyError:
                raise MalformedKey(
                    f"the key {value['S']!r} has {part!r}, which field {name!r} cannot be"
                ) from None
        return fields

    def segments(self, value: AttributeValue) -> list[KeySegment]:
        """The parts of a stored value, in order; raises `MalformedKey`."""
        fields = self.parse(value)
        text = value["S"]
        segments: list[KeySegment] = []
        done = 0
        for component, (start, end) in zip(self.components, self.template.spans(text), strict=True):
            if start > done:
                segments.append(KeySegment(text[done:start], None, None))
            name = component.field.name
            segments.append(KeySegment(text[start:end], name, fields[name]))
            done = end
        if done < len(text):
            segments.append(KeySegment(text[done:], None, None))
        return segments

    def can_hold(self, values: Mapping[str, Any]) -> bool:
        """Whether the key has room for the given values: none is wider than its field allows."""
        return all(
            self.template.has_text(place, self.to_codec(place, values[name]))
            for place, (name, *_) in enumerate(self._encoders)
            if values.get(name) is not None
        )

    def to_codec(self, place: int, value: Any) -> Any:
        """A field's value as its codec takes it."""
        to_codec = self.converter(place)
        return value if to_codec is None else to_codec(value)

    def converter(self, place: int) -> Callable[[Any], Any] | None:
        """How to convert a field's value for its codec; None if no conversion is needed."""
        return self._encoders[place][1]


class NativeSlot:
    """A key attribute that contains one field unchanged: a number, bytes, or a text.

    A number in descending order is subtracted from the field's `max`, or from 0 if it has none.
    """

    __slots__ = ("_subtracted_from", "attribute", "components", "field")

    def __init__(self, attribute: KeyAttribute, component: Component) -> None:
        self._subtracted_from = _subtracted_from(attribute, component)
        code, codec = component.field.wire.code, component.field.options.codec
        if codec is not None:
            _check_sorts(component, codec)
        elif code != attribute.type:
            raise UsageError(
                f"key attribute {attribute.name!r} is of type {attribute.type}, but field "
                f"{component.field.name!r} is written as {code or 'a map'}"
            )
        if component.codec is not None or component.form == "in_order":
            raise UsageError(
                f"key attribute {attribute.name!r} holds {component.field.name!r} as it is, not in another "
                "form; give the field another attribute: field(name=…)"
            )
        self.attribute: KeyAttribute = attribute
        self.components: tuple[Component] = (component,)
        self.field: Any = component.field

    @property
    def is_short(self) -> bool:
        """Whether its texts are always so short that the check of the key's length can skip them."""
        return self.attribute.type != "S"

    @property
    def is_unfilled(self) -> nodes.ConditionNode:
        """The condition that the attribute is missing."""
        return nodes.Call("attribute_not_exists", (nodes.Path((self.attribute.name,)),))

    def encode(self, values: Mapping[str, Any]) -> AttributeValue | None:
        """The attribute's value; None if the field is None."""
        value = values.get(self.field.name)
        if value is None:
            return None
        encoded = self.field.encode(value)
        if self.attribute.type not in encoded:
            # Only a program's codec can have written another type.
            raise UsageError(
                f"key attribute {self.attribute.name!r} is of type {self.attribute.type}, but the codec of field "
                f"{self.field.name!r} wrote {encoded}"
            )
        return encoded if self._subtracted_from is None else self.stored(encoded)

    def stored(self, value: AttributeValue) -> AttributeValue:
        """Convert a field's encoded value to the attribute's value, or back."""
        if self._subtracted_from is None:
            return value
        try:
            return {"N": subtract(self._subtracted_from, canonical_number(value["N"]))}
        except ValidationException:
            raise OutOfRange(
                f"{value['N']} subtracted from {self._subtracted_from} has more than 38 digits, the most that "
                f"key attribute {self.attribute.name!r} can hold"
            ) from None

    @property
    def form(self) -> str:
        """How the attribute is made from the field, shown to people."""
        if self._subtracted_from is None:
            return f"{{{self.field.attribute}}}"
        return f"{{{self.field.attribute}: subtracted from {self._subtracted_from}}}"

    def segments(self, value: AttributeValue) -> list[KeySegment]:
        """The one part of a stored value; raises `MalformedKey`."""
        ((name, field),) = self.parse(value).items()
        ((_, text),) = value.items()
        return [KeySegment(str(text), name, field)]

    def parse(self, value: AttributeValue) -> dict[str, Any]:
        """The field's value in the attribute; raises `MalformedKey`."""
        try:
            value = self.stored(value)
            return {self.field.name: self.field.wire.decode(value)}
        except Exception as error:  # a codec may raise any exception
            raise MalformedKey(f"{value!r} is not a {type_text(self.field.annotation)}") from error


def _subtracted_from(attribute: KeyAttribute, component: Component) -> str | None:
    """What a field in descending order is subtracted from; None if the field is stored unchanged."""
    field = component.field
    if not component.descending:
        return None
    if attribute.type != "N":
        raise UsageError(
            f"key attribute {attribute.name!r} holds {field.name!r} as it is, so it cannot be stored in descending "
            "order: only numbers can; read it with descending() instead"
        )
    if field.attribute == attribute.name:
        raise UsageError(
            f"key attribute {attribute.name!r} stores {field.name!r} subtracted, in descending order, so it "
            "cannot be the field's own attribute; give the field another one: field(name=…)"
        )
    return canonical_number(str(0 if field.options.max is None else field.options.max))


Slot = StringSlot | NativeSlot


@dataclass(frozen=True, eq=False)
class BoundKey:
    """An entity's key, bound to its table; `index` is None for the primary key."""

    name: str
    index: str | None
    partition: tuple[Slot, ...]
    sort: tuple[Slot, ...]
    when: Condition | None
    tag: str
    reserved: dict[str, str] = field(default_factory=dict)
    """Partitions that belong to other entities of the table, with their tags; see `neighbours`."""

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        return self.partition + self.sort

    @cached_property
    def components(self) -> tuple[Component, ...]:
        return tuple(component for slot in self.slots for component in slot.components)

    @cached_property
    def component_names(self) -> frozenset[str]:
        """The names of the fields in the key."""
        return frozenset(component.field.name for component in self.components)

    @cached_property
    def fields(self) -> list[Attr[Any]]:
        """The fields in the key, and the fields that decide whether an entity has the key."""
        named = {component.field.name: component.field for component in self.components}
        if self.when is not None:
            named.update({field.name: field for field in self.when.fields()})
        return list(named.values())

    @cached_property
    def applies(self) -> CompiledCondition | None:
        """The condition for an item to be in a sparse index."""
        return None if self.when is None else CompiledCondition.from_node(self.when.node(DEFAULTS))

    @cached_property
    def _encoders(self) -> tuple[tuple[str, Callable[[Any], AttributeValue | None], bool], ...]:
        return tuple((slot.attribute.name, slot.encode, slot.is_short) for slot in self.slots)

    def encode(self, values: Mapping[str, Any]) -> Item | None:
        """The key's attributes; None if a field that they need is None.

        Raises `UsageError` for invalid values, and for a key longer than DynamoDB allows.
        """
        attributes: Item = {}
        text = ""
        for name, encode, is_short in self._encoders:
            value = encode(values)
            if value is None:
                return None
            attributes[name] = value
            if not is_short:
                text += value["S"]
        if self.reserved:
            self.check_reserved(attributes[self.partition[0].attribute.name], values)
        if len(text) > _SAFE_LENGTH:
            self._check_size(self.partition, attributes, limits.PARTITION_KEY_SIZE)
            self._check_size(self.sort, attributes, limits.SORT_KEY_SIZE)
        return attributes

    def check_reserved(self, partition: AttributeValue, values: Mapping[str, Any]) -> None:
        """Refuse a partition key that is reserved for another entity."""
        owner = self.reserved.get(partition.get("S", ""))
        if owner is not None:
            names = [component.field.name for component in self.partition[0].components]
            given = ", ".join(f"{name}={values[name]!r}" for name in names)
            raise OutOfRange(
                f"{given} makes the partition key {partition['S']!r}, which is reserved for {owner}; give another "
                f"value, or begin the key with a literal of its own: Key('PREFIX', {', '.join(names)})"
            )

    def _check_size(self, slots: tuple[Slot, ...], attributes: Item, limit: int) -> None:
        texts = [attributes[slot.attribute.name].get("S", "") for slot in slots]
        size = sum(len(text.encode()) for text in texts)
        if size > limit:
            names = ", ".join(repr(slot.attribute.name) for slot in slots)
            raise UsageError(
                f"{self.tag}: key {self.name!r} has {size} bytes in {names}, and DynamoDB takes {limit}; "
                f"it begins with {texts[0][:60]!r}"
            )

    def has_form_of(self, item: Item) -> bool:
        """Whether the item has all attributes of the key, in its form."""
        try:
            for slot in self.slots:
                slot.parse(item[slot.attribute.name])
        except (MalformedKey, KeyError):
            return False
        return True

    def sorts_by(self, component: Component) -> bool:
        """Whether items sort by this part of the key; False for some forms that `raw` declares."""
        return not any(
            each is component and not slot.template.keeps_order(place)
            for slot in self.sort
            if isinstance(slot, StringSlot)
            for place, each in enumerate(slot.components)
        )


def bind_key(key: Key, table: Table, tag: str) -> BoundKey:
    """Bind a declared key to the attributes of its table or index."""
    layout = table.layout(key.index)
    where = f"key {key.name!r}"
    if not key.partition:
        raise UsageError(f"{where} has no partition part; begin it with a literal or a field")
    if not layout.sort and key.sorted_by:
        raise UsageError(
            f"{where} has sort parts, but {_described(table, key)} has no sort key; leave out .sort(…), or declare one"
        )
    if layout.sort and not key.sorted_by:
        raise UsageError(f"{where} has no sort parts; add .sort(…) with a literal or a field")
    try:
        return BoundKey(
            key.name,
            key.index,
            _slots(layout, layout.partition, key.partition, key.separator),
            _slots(layout, layout.sort, key.sorted_by, key.sort_separator),
            key.when,
            tag,
        )
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def groups_alike(one: BoundKey, other: BoundKey) -> bool:
    """Whether two keys of a table or an index write their partition in exactly the same form."""
    return all(
        slot.template == its.template
        if isinstance(slot, StringSlot) and isinstance(its, StringSlot)
        else isinstance(slot, StringSlot) is isinstance(its, StringSlot)
        for slot, its in zip(one.partition, other.partition, strict=True)
    )


def partition_in_words(key: BoundKey) -> str:
    """The form of a key's partition, for messages: `CUSTOMER#{number: Natural width=5}`."""
    forms = [
        slot.template.form([component.field.name for component in slot.components])
        if isinstance(slot, StringSlot)
        else slot.form
        for slot in key.partition
    ]
    return " and ".join(forms)


def collision(one: BoundKey, other: BoundKey) -> str | None:
    """Why two keys can be equal, or None if some slot distinguishes them."""
    reasons = []
    for slot, its in zip(one.slots, other.slots, strict=False):
        if not (isinstance(slot, StringSlot) and isinstance(its, StringSlot)):
            continue
        reason = slot.template.is_ambiguous_with(its.template)
        if reason is None:
            return None
        reasons.append(reason)
    return "; ".join(reasons) or "nothing in the keys tells them apart"


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
                f"{len(attributes)} key attributes need a field each, but there are {len(parts)} parts"
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
            f"key attribute {attribute.name!r} is of type {attribute.type}, so it holds exactly one field"
        )
    return (_string(attribute, parts, separator),)


def _string(attribute: KeyAttribute, parts: tuple[Part, ...], separator: str) -> Slot:
    pieces = [part if isinstance(part, str) else _ordered(component_of(part)) for part in parts]
    template = readable.Template(
        [piece if isinstance(piece, str) else codec_of(piece, separator) for piece in pieces],
        separator,
    )
    return StringSlot(
        attribute, template, tuple(piece for piece in pieces if isinstance(piece, Component))
    )


def _is_native(layout: KeyLayout, attribute: KeyAttribute, part: Attr[Any] | Component) -> bool:
    own = component_of(part).field.attribute == attribute.name
    return own or attribute.type != "S" or layout.is_wide


def _native(attribute: KeyAttribute, part: Part) -> Slot:
    if isinstance(part, str):
        raise UsageError(
            f"key attribute {attribute.name!r} holds one field as it is, not the literal {part!r}"
        )
    return NativeSlot(attribute, component_of(part))


# Components


Form = Literal["value", "in_order", "raw"]


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """A field in a key, with its direction and its form."""

    field: Attr[Any]
    descending: bool = False
    form: Form = "value"
    codec: Callable[[Attr[Any]], readable.Codec[Any]] | None = None


Part = str | Attr[Any] | Component


def desc(part: Attr[Any] | Component) -> Component:
    """The field in descending order: the greatest value comes first.

    >>> primary = Key("ORDER").sort(desc(number))
    """
    component = component_of(part)
    return replace(component, descending=not component.descending)


def in_order(part: Attr[Any] | Component) -> Component:
    """An enum or Literal, sorted in the order of its declared values, not by their text.

    The field may be optional: as with any field, None means that the index has no entry.

        by_urgency = Index("GSI1", "TEAM", team).sort(in_order(urgency))
    """
    return replace(component_of(part), form="in_order")


def raw(part: Attr[Any] | Component) -> Component:
    """An unescaped text, or an int without leading zeros, for keys that exist already.

    A text that contains the separator is refused, unless it is the last part. Keys do not sort by such a number, nor by
    such a text if another part follows. Conditions on them may only use `==`, and `begins_with` on texts.

    >>> primary = Key("USER", raw(name)).sort("ORDER", raw(number))
    """
    return replace(component_of(part), form="raw")


def written(part: Attr[Any] | Component, pattern: str) -> Component:
    """A date, or a datetime in UTC, in a custom format as for `strftime`.

    Its parts must be ordered by significance (year before month), or keys would not sort by them.

    >>> primary = Key("DAY", written(day, "%Y%m%d")).sort(written(at, "%Y-%m-%d %H:%M:%S"))
    """
    return replace(
        component_of(part),
        codec=lambda field: readable.Written(pattern, day=_is_day(field, "written")),
    )


def since_epoch(
    part: Attr[Any] | Component,
    unit: Literal["seconds", "milliseconds", "microseconds"] = "seconds",
    *,
    digits: int | None = None,
) -> Component:
    """A datetime as the number of seconds, milliseconds or microseconds since 1970.

    It is padded to `digits`. The default covers the years 2001 to 2286: 10 digits for seconds, 13 for milliseconds, 16
    for microseconds.

    >>> primary = Key("SENSOR", sensor).sort(since_epoch(at, "milliseconds"))
    """
    return replace(component_of(part), codec=lambda field: _epoch_instant(field, unit, digits))


def component_of(part: Attr[Any] | Component) -> Component:
    """A plain field as a key component in ascending order."""
    return part if isinstance(part, Component) else Component(part)


def _ordered(component: Component) -> Component:
    """The component, sorted by the field's declared order if it has one."""
    if component.form == "value" and component.codec is None and component.field.options.in_order:
        return in_order(component)
    return component


def codec_of(component: Component, separator: str) -> readable.Codec[Any]:
    """The codec of a part of a string key; raises `UsageError` if its values could not sort correctly.

    Texts are escaped if the separator is `#`. No escape keeps their order with another separator, so they are then
    written as they are, and may not contain it.
    """
    field = component.field
    if field.options.codec is not None:
        codec = _coded(component, field.options.codec, separator)
    elif component.codec is not None:
        codec = component.codec(field)
    elif component.form == "raw":
        codec = _raw(field)
    elif component.form == "in_order":
        codec = readable.Choice(tuple(map(str, _choices(field))))
    else:
        codec = _by_type(field)
        if separator != readable.SEPARATOR and isinstance(codec, readable.Text):
            codec = codec if component.descending else readable.RawText(codec.case, separator)
    return codec.descending() if component.descending else codec


def _coded(component: Component, codec: Codec[Any, Any], separator: str) -> readable.Codec[Any]:
    """The codec for a field with a `Codec`, whose texts must sort like its values."""
    _check_sorts(component, codec)
    name = component.field.name
    if component.form != "value" or component.codec is not None:
        raise UsageError(f"field {name!r} has a codec, which says how it is written; name it alone")
    if separator == readable.SEPARATOR or component.descending:
        return readable.Text(None)
    return readable.RawText(None, separator)


def _check_sorts(component: Component, codec: Codec[Any, Any]) -> None:
    if not codec.ordered:
        raise UsageError(
            f"field {component.field.name!r} has a codec, whose values do not sort in a key; declare "
            "Codec(…, ordered=True) if they do, or another field for the key"
        )


def _raw(field: Attr[Any]) -> readable.Codec[Any]:
    python = _python_type(field.annotation)
    if isinstance(python, type) and issubclass(python, int) and not issubclass(python, bool | Enum):
        return readable.Unpadded(signed=(field.options.min or 0) < 0)
    if isinstance(python, type) and issubclass(python, str | Enum):
        return readable.RawText(field.options.case)
    raise UsageError(
        f"raw({field.name}) is a {_name(python)}, and only a str or an int can be written as it is: leave "
        "raw(…) out, or declare the field as str"
    )


def _is_day(field: Attr[Any], what: str) -> bool:
    """Whether a field is a date and not a datetime; raises `UsageError` for any other type."""
    python = _python_type(field.annotation)
    if isinstance(python, type) and issubclass(python, date):
        return not issubclass(python, datetime)
    raise UsageError(f"{what}({field.name}, …) is a {_name(python)}, neither a date nor a datetime")


_DIGITS: Final = {"seconds": 10, "milliseconds": 13, "microseconds": 16}


def _epoch_instant(
    field: Attr[Any], unit: readable.Precision, digits: int | None
) -> readable.Codec[Any]:
    if _is_day(field, "since_epoch"):
        raise UsageError(f"since_epoch({field.name}) is a date; declare the field as datetime")
    return readable.EpochInstant(unit, _DIGITS.get(unit, 0) if digits is None else digits)


def _name(python: Any) -> str:
    return getattr(python, "__name__", repr(python))


def _by_type(field: Attr[Any]) -> readable.Codec[Any]:
    python = _python_type(field.annotation)
    for kind, make in _CODECS.items():
        if isinstance(python, type) and issubclass(python, kind):
            return make(field)
    raise UsageError(
        f"field {field.name!r} of type {python!r} cannot be part of a string key; "
        "a key is made of strings, numbers, times, ids, enums, bools and bytes"
    )


def _python_type(annotation: Any) -> Any:
    """The class of a field's values, ignoring None; for a Literal, the class of its values."""
    present = present_type(annotation)
    if get_origin(present) is Literal:
        kinds = {type(choice) for choice in get_args(present)}
        return kinds.pop() if len(kinds) == 1 else present
    return present


def _natural(field: Attr[Any]) -> readable.Codec[Any]:
    options = field.options
    maximum = options.max
    if maximum is None:
        maximum = max(choices(field.annotation) or (), default=None)
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


# The first class here that a field's type is a subclass of: bool before int, datetime before date.
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
    return tuple(each.value if isinstance(each, Enum) else each for each in declared_values(field))


def declared_values(field: Attr[Any]) -> tuple[Any, ...]:
    """The values of an enum or a Literal in the order of their declaration; raises `UsageError`."""
    values = choices(field.annotation)
    if values is None:
        raise UsageError(
            f"in_order({field.name}) needs an enum or a Literal, whose values have an order"
        )
    return values


Converter = Callable[[Any], Any] | None


def _converters(component: Component) -> tuple[Converter, Converter]:
    """The conversions between a field's value and its codec's value; None if they are the same."""
    coded = component.field.options.codec
    if coded is not None:
        return coded.text_of, coded.value_of
    python = _python_type(component.field.annotation)
    if isinstance(python, type) and issubclass(python, Enum):
        by_text = {str(member.value): member for member in python}

        def text_of(member: Any) -> str:
            if not isinstance(member, python):
                raise UsageError(f"{member!r} is not a member of {python.__name__}")
            return str(member.value)

        return text_of, by_text.__getitem__
    if component.form == "in_order":
        by_text = {str(choice): choice for choice in _choices(component.field)}
        return str, by_text.__getitem__
    return None, None
