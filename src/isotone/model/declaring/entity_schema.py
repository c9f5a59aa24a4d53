"""The schema of an entity: items to entities and back; upgrades, kinds, defaults; `InvalidItem`, `NewerVersion`.

`value_validation` checks values; `pydantic_type` shows an entity to pydantic and FastAPI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from isotone.errors import InvalidItem, MalformedKey, NewerVersion, UsageError
from isotone.expressions import nodes
from isotone.model.declaring.computing import Computations
from isotone.model.declaring.fields import MISSING, UNKNOWN, UNREADABLE, Attr
from isotone.model.declaring.item_decoding import DecodeItem, DecodeJson, item_decoder, json_decoder
from isotone.model.declaring.keys import BoundKey, Slot
from isotone.model.declaring.pydantic_type import Adapter
from isotone.model.declaring.table import VERSION_ATTRIBUTE, Table
from isotone.model.declaring.value_validation import Validator, default_of
from isotone.model.declaring.wire_types import NULL, WireType, type_text
from isotone.values.json import from_wire, item_from_wire, item_to_wire
from isotone.values.types import AttributeValue, Item

if TYPE_CHECKING:
    from isotone.model.declaring.vector_index import BoundVectorIndex
    from isotone.model.entity import Entity
    from isotone.model.reading.access_patterns import Pattern
    from isotone.model.reading.nearest import VectorPattern

_VERSION: Final = nodes.Path((VERSION_ATTRIBUTE,))
_SET_WHEN_WRITTEN: Final = frozenset({"expires", "created", "created_id", "updated"})
_FIRST: Final[AttributeValue] = {"N": "1"}
_EMPTY: Final[set[Any]] = set()
_new: Final[Any] = object.__new__

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
Unknown = Literal["keep", "drop", "refuse"]
"""What happens to the attributes of an item that its entity does not declare."""

_Encoders = tuple[tuple[str, str, type | None, str, Callable[[Any], AttributeValue]], ...]
_Decoders = tuple[
    tuple[str, str, str | None, Callable[[Any], Any], Callable[[AttributeValue], Any]], ...
]


class EntitySchema:
    """One entity: its fields, keys and table, and the conversion between items and instances."""

    def __init__(
        self,
        entity: type[Entity],
        table: Table,
        tag: str,
        fields: dict[str, Attr[Any]],
        keys: dict[str, BoundKey],
        version: int | None,
        upgrades: Mapping[int, Upgrade],
        unknown: Unknown = "keep",
        base: EntitySchema | None = None,
    ) -> None:
        self.entity = entity
        self.base = base
        """The entity that this one is a kind of."""
        self.lineage: frozenset[str] = frozenset({tag}) | (base.lineage if base else frozenset())
        """The tags of the entity and of those that it is a kind of."""
        self.has_kinds = False
        self.has_special_kinds = False
        """Whether a kind has indexes or computed fields of its own."""
        self.table = table
        self.tag = tag
        self.fields = fields
        self.keys = keys
        self.version: int = version or 1
        self.declares_version: bool = version is not None
        self.unknown = unknown
        self.upgrades = upgrades
        self.primary: BoundKey = next(key for key in keys.values() if key.index is None)
        self.identity: dict[str, Attr[Any]] = {field.name: field for field in self.primary.fields}
        self.indexes: list[BoundKey] = [key for key in keys.values() if key.index is not None]
        self.previous: EntitySchema | None = None
        """The schema with the previous keys and tag, if the class declares any; see `previous_keys`."""
        self.patterns: dict[str, Pattern[Any]] = {}
        """The class attribute of each key, by its name; `Entity` fills it."""
        self.vector_indexes: dict[str, BoundVectorIndex] = {}
        """The vector indexes, by the names of their class attributes."""
        self.vector_patterns: dict[str, VectorPattern[Any]] = {}
        """The class attribute of each vector index; `Entity` fills it."""
        self.by_role: dict[str, Attr[Any]] = {
            field.options.role: field for field in fields.values()
        }
        self.unique: list[Attr[Any]] = [field for field in fields.values() if field.options.unique]
        self.computations: Computations = Computations(entity, fields)
        self.marks: Item = {table.tag: {"S": tag}}
        if self.version > 1:
            self.marks[VERSION_ATTRIBUTE] = {"N": str(version)}
        self._decoders_of: dict[frozenset[str] | None, _Decoders] = {}

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """The tags that the entity's items may have."""
        previous = self.previous
        return (self.tag,) if previous is None else tuple({self.tag: 0, previous.tag: 0})

    @cached_property
    def required(self) -> frozenset[str]:
        """The fields that have a value in every instance."""
        return frozenset(
            name
            for name, field in self.fields.items()
            if field.options.required and not self.is_optional(field)
        )

    @cached_property
    def validator(self) -> Validator:
        """pydantic's validation of the fields, built when the first instance is made."""
        return Validator(self.entity.__name__, self.fields)

    @cached_property
    def adapter(self) -> Adapter:
        """pydantic's view of the entity, built at first use."""
        return Adapter(self)

    # Kinds

    @property
    def root(self) -> EntitySchema:
        """The entity at the top of this kind's bases; the schema itself if it is not a kind."""
        return self if self.base is None else self.base.root

    def kinds(self) -> list[EntitySchema]:
        """All kinds of the entity that are defined so far, at every depth."""
        entities = tuple(self.table.entities.values())
        return [each for each in entities if self.tag in each.lineage and each.tag != self.tag]

    def kind_of(self, item: Item) -> EntitySchema | None:
        """The schema for an item: this entity or one of its kinds; None if the item is of another entity.

        Raises `InvalidItem` if the entity has kinds, and the item is of a kind that this program does not declare.
        """
        table = self.table
        if table.tag not in item:
            return self if self.base is None else None  # kinds always have tags
        tag = item[table.tag].get("S", "")
        if tag in self.tags:
            return self
        found = table.entity_of(tag)
        if found is not None:
            return found if self.tag in found.lineage else None
        if self.has_kinds and self.base is None:
            raise self.unknown_kind(item)
        return None

    def unknown_kind(self, item: Item) -> InvalidItem:
        """The error for an item whose key is this entity's, but whose tag names no known entity."""
        return self.invalid(
            item,
            f"its tag {self.table.tag!r} has {item[self.table.tag]!r}, which is not a kind of {self.tag} in this "
            "program; import the module that declares it, or read past it by query.on_invalid('skip')",
        )

    # To an item

    @cached_property
    def _encoders(self) -> _Encoders:
        """For each field: its name, its attribute, the type whose values are written unchanged, and the encoder."""
        return tuple(
            (name, field.attribute, field.wire.verbatim, str(field.wire.code), field.wire.encode)
            for name, field in self.fields.items()
        )

    def to_item(self, values: Mapping[str, Any]) -> Item:
        """The item of an entity, with all key attributes; raises `UsageError` for invalid values."""
        item: Item = {**values[UNKNOWN]} if UNKNOWN in values else {}
        for name, attribute, verbatim, code, encode in self._encoders:
            if name not in values:
                raise self.incomplete(values)
            value = values[name]
            if type(value) is verbatim:
                item[attribute] = {code: value}
                continue
            if not value and (value is None or value == _EMPTY):
                item |= self.encoded(self.fields[name], value)
                continue
            try:
                item[attribute] = encode(value)
            except UsageError as error:
                raise UsageError(f"field {name!r}: {error}") from None
        item |= self.marks
        item |= self.primary_key(values)
        for key in self.indexes:
            item |= self.key_attributes(key, values, item)
        if UNKNOWN in values:
            for key in self.indexes:
                if not self._is_in(key, item):
                    # So its index entry is removed, even one that could not be read.
                    for slot in key.slots:
                        if slot.attribute.name not in self._attributes | self._primary_attributes:
                            item.pop(slot.attribute.name, None)
        return item

    def incomplete(self, values: Mapping[str, Any]) -> UsageError | InvalidItem:
        """The error for an entity that was read only in part, where all fields are needed."""
        faults: Mapping[str, InvalidItem] = values.get(UNREADABLE, {})
        for name in self.fields:
            if name not in values and name in faults:
                return faults[name]
        missing = ", ".join(name for name in self.fields if name not in values)
        return UsageError(
            f"{self.entity.__name__} was read without its fields {missing}; read all of them, without "
            "select(…), by its primary key or by an index that projects all attributes"
        )

    def encoded(self, field: Attr[Any], value: Any) -> Item:
        """The attribute of a field with this value; empty if a missing attribute means the same value."""
        if value is not None and value != _EMPTY:
            return {field.attribute: field.encode(value)}
        if value is None and self.absent(field) is not None:
            return {field.attribute: NULL}
        return {}

    @staticmethod
    def is_optional(field: Attr[Any]) -> bool:
        """Whether the field may be None."""
        return field.wire.optional or field.options.role in _SET_WHEN_WRITTEN

    @staticmethod
    def absent(field: Attr[Any]) -> Any:
        """What a field reads as if its attribute is missing. DynamoDB has no empty sets: they are not stored."""
        if field.wire.python in (set, frozenset) and not field.wire.optional:
            return field.wire.python()
        return default_of(field)

    def key_attributes(self, key: BoundKey, values: Mapping[str, Any], item: Item) -> Item:
        """The attributes of one key; empty if the entity is not in the index."""
        if key.index is None:
            return self.primary_key(values)
        if key.applies is not None and not key.applies.matches(item, {}):
            return {}
        return key.encode(values) or {}

    def primary_key(self, values: Mapping[str, Any]) -> Item:
        """The primary key's attributes, from the fields' values."""
        key = self.primary.encode(values)
        if key is None:
            raise self._without_key(values)
        return key

    def identify(self, values: Mapping[str, Any]) -> Item:
        """The primary key from its fields; raises `UsageError` for missing or additional fields."""
        try:
            is_complete = values.keys() == self._identifying
        except AttributeError:  # this is not a mapping
            fields = ", ".join(f"{name!r}: …" for name in self.identity)
            raise UsageError(
                f"{values!r} is not a key of {self.entity.__name__}: give {{{fields}}}, or a key made by "
                f"{self.entity.__name__}.primary.at(…)"
            ) from None
        if not is_complete:
            raise self._other_fields(values)
        key = self.primary.encode(values)
        if key is None:
            raise self._without_key(values)
        return key

    def identity_of(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the primary key; raises `UsageError` if one of them was not read."""
        if not self._identifying <= values.keys():
            raise self.incomplete(values)
        return {name: values[name] for name in self.identity}

    def _without_key(self, values: Mapping[str, Any]) -> UsageError:
        missing = dict.fromkeys(
            component.field.name
            for component in self.primary.components
            if values.get(component.field.name) is None
        )
        return UsageError(f"{self.tag}: the primary key needs a value for {', '.join(missing)}")

    @cached_property
    def _identifying(self) -> frozenset[str]:
        return frozenset(self.identity)

    def _other_fields(self, values: Mapping[str, Any]) -> UsageError:
        missing = ", ".join(sorted(self.identity.keys() - values.keys()))
        foreign = ", ".join(sorted(values.keys() - self.identity.keys()))
        faults = [f"{missing} is missing"] if missing else []
        faults += [f"{foreign} is not a part of its key"] if foreign else []
        unique = next((each.name for each in self.unique if each.name in values), None)
        return UsageError(
            f"{self.tag} is identified by {', '.join(self.identity) or 'no field at all'}: "
            + " and ".join(faults)
            + (f"; only store.get finds an entity by the unique {unique}" if unique else "")
        )

    # From an item

    def _decoders(self, only: frozenset[str] | None) -> _Decoders:
        """For each field: its name, attribute, type code, how to read the content, and how to read the whole value."""
        decoders = self._decoders_of.get(only)
        if decoders is None:
            decoders = self._decoders_of[only] = tuple(
                (name, field.attribute, *_readers(field.wire))
                for name, field in self.fields.items()
                if only is None or name in only
            )
        return decoders

    def from_item(
        self,
        item: Item,
        *,
        only: frozenset[str] | None = None,
        is_whole: bool = True,
        require_all_fields: bool = False,
    ) -> Entity:
        """The entity of an item; raises `InvalidItem` for a value of the wrong type.

        `only` names the fields that were read; access to any other field of the entity raises. `is_whole=False` is for
        an index entry that lacks attributes; it is not upgraded. `require_all_fields` applies to whole items: missing
        computed fields are computed, and other missing required fields raise `InvalidItem`.
        """
        present = item
        if VERSION_ATTRIBUTE in item or (is_whole and self.version > 1):
            present = self.upgraded(item) if is_whole else self.checked(item)
        if only is None and is_whole:
            try:
                return self.decode_whole(present)
            except Exception:  # noqa: BLE001 - an attribute is missing or invalid: look closer
                pass
        entity = self._decode(present, item, only, is_whole, require_all_fields)
        faults = entity.__dict__.get(UNREADABLE)
        if faults:
            raise next(iter(faults.values()))
        if self.unknown == "refuse" and is_whole and only is None and self.unknown_in(present):
            raise self._with_unknown(present)
        return entity

    def from_invalid_item(self, item: Item, *, require_all_fields: bool = False) -> Entity:
        """The entity of an item with the fields that can be read; access to the others raises `InvalidItem`.

        For items that must be returned although a value in them is invalid.
        """
        try:
            return self.decode_whole(item)
        except Exception:  # noqa: BLE001 - it is of another version, or see from_item
            pass
        try:
            present = self.upgraded(item)
        except (InvalidItem, UsageError) as error:  # `UsageError` if an upgrade returns no item
            fault = error if isinstance(error, InvalidItem) else self.invalid(item, str(error))
            entity: Entity = _new(self.entity)
            entity.__dict__[UNREADABLE] = dict.fromkeys(self.fields, fault)
            return entity
        return self._decode(present, item, None, True, require_all_fields)

    def _decode(
        self,
        item: Item,
        stored: Item,
        only: frozenset[str] | None,
        is_whole: bool,
        require_all_fields: bool,
    ) -> Entity:
        """Decode the entity field by field, and note the `UNREADABLE` ones.

        `stored` is the item before it was upgraded.
        """
        entity: Entity = _new(self.entity)
        values = entity.__dict__
        faults: dict[str, InvalidItem] = {}
        is_complete = True
        for name, attribute, code, read, decode in (
            self.decoders if only is None else self._decoders(only)
        ):
            if attribute not in item:
                is_complete = False
                continue
            value = item[attribute]
            try:
                values[name] = read(value[code]) if code in value else decode(value)
            except Exception as error:  # noqa: BLE001 - whatever the field's type raises
                if "NULL" in value and self.is_optional(self.fields[name]):
                    values[name] = None
                else:
                    faults[name] = self._wrong_value(name, value, stored, error)
        if not is_complete:
            self._fill_missing(
                entity, item, stored, only, is_whole, require_all_fields and is_whole, faults
            )
        if faults:
            values[UNREADABLE] = faults
        if is_whole and only is None and self.unknown != "drop":
            unknown = self.unknown_in(item)
            if not is_complete:
                unknown |= {name: item[name] for name in self.unread_keys(item)}
            if unknown:
                values[UNKNOWN] = unknown
        return entity

    @cached_property
    def decode_whole(self) -> DecodeItem:
        """Decodes a whole item of the current version; raises an exception of any class for other items."""
        return item_decoder(self)

    @cached_property
    def decode_json(self) -> DecodeJson | None:
        """Decodes a whole item from JSON, like `decode_whole`; also refuses items of other entities.

        None if the entity can only be read from dicts.
        """
        return json_decoder(self)

    @cached_property
    def declared_attributes(self) -> frozenset[str]:
        """All attributes that the entity writes: its fields, keys, tag and version."""
        keys = {slot.attribute.name for key in self.keys.values() for slot in key.slots}
        return self._attributes | keys | {self.table.tag, VERSION_ATTRIBUTE}

    def unknown_in(self, item: Item) -> Item:
        """The attributes of an item that the entity does not declare."""
        declared = self.declared_attributes
        return {name: value for name, value in item.items() if name not in declared}

    def _with_unknown(self, item: Item) -> InvalidItem:
        """The error for an item with undeclared attributes, if the entity refuses them."""
        return self.invalid(
            item,
            f"the item has attributes that {self.tag} does not declare: {', '.join(sorted(self.unknown_in(item)))}; "
            "declare them, remove them with @upgrade, or declare the entity with unknown='keep'",
        )

    @cached_property
    def decoders(self) -> _Decoders:
        """As `_decoders`, cached."""
        return self._decoders(None)

    def _fill_missing(
        self,
        entity: Entity,
        item: Item,
        stored: Item,
        only: frozenset[str] | None,
        is_whole: bool,
        require_all_fields: bool,
        faults: dict[str, InvalidItem],
    ) -> None:
        """Set the fields whose attributes are missing; add those without a value to `faults`."""
        values = entity.__dict__
        parsed: dict[Slot, dict[str, Any]] = {}
        names = [name for name, *_ in self._decoders(only)]
        for name in names:
            if name in values or name in faults:
                continue
            try:
                values[name] = self._missing(name, item, is_whole, parsed)
            except _OtherForm as error:
                faults[name] = self._other_form(name, error, stored)
                continue
            if require_all_fields and values[name] is None and name in self.required:
                del values[name]
                faults[name] = self._lacking(name, stored)
        if require_all_fields:
            lacking = [
                name
                for name in names
                if name in self.computations and name not in faults and values[name] is None
            ]
            for name in lacking:
                del values[name]
            for name in lacking:
                if name not in values:
                    try:
                        self.compute(entity, (name,), stored)
                    except InvalidItem as error:
                        faults[name] = error

    def compute(self, entity: Entity, names: Iterable[str], stored: Item) -> None:
        """Set computed fields; raises `InvalidItem` if one cannot be computed from the item's values."""

        def refuse(name: str, error: Exception) -> InvalidItem:
            return self.invalid(
                stored,
                f"computed field {name!r} has no value, because its function raised {error!r}; set the fields "
                "that it depends on with store.update, or make the function accept them",
                name,
            )

        self.computations.fill(entity, entity.__dict__, names, refuse)

    def _missing(
        self, name: str, item: Item, is_whole: bool, parsed: dict[Slot, dict[str, Any]]
    ) -> Any:
        """The value of a field whose attribute is missing: from a key, or the default."""
        value = self._held_by_key(name, item, is_whole, parsed)
        return self.absent(self.fields[name]) if value is MISSING else value

    def _held_by_key(
        self, name: str, item: Item, is_whole: bool, parsed: dict[Slot, dict[str, Any]]
    ) -> Any:
        """A field's value from the item's keys; MISSING if no key contains it.

        If the field has a default, an index key of another form is skipped: an item written before the field was added
        has such a key. `parsed` caches the keys that were already parsed.
        """
        options = self.fields[name].options
        if is_whole and options.compute is not None:
            return MISSING  # computed on read instead
        for slot in self._slots_with.get(name, ()):
            value = item.get(slot.attribute.name)
            if value is None:
                continue
            if slot not in parsed:
                try:
                    parsed[slot] = slot.parse(value)
                except MalformedKey as error:
                    if self.previous is not None and self._was_of_form(slot.attribute.name, value):
                        continue  # the previous form of the slot is tried later
                    if is_whole and not options.required and slot not in self.primary.slots:
                        continue
                    raise _OtherForm(slot.attribute.name, value, error) from None
            return parsed[slot][name]
        return MISSING

    def _was_of_form(self, attribute: str, value: AttributeValue) -> bool:
        """Whether a declared form of a key attribute, current or previous, can read this value."""
        slots = [slot for key in self.keys_of_both_forms for slot in key.slots]
        return any(
            _reads(slot, value) is not None for slot in slots if slot.attribute.name == attribute
        )

    def held_by_keys(self, item: Item) -> dict[str, Any]:
        """The fields that a whole item stores only in its keys; raises `InvalidItem`."""
        parsed: dict[Slot, dict[str, Any]] = {}
        values = {}
        for name in self._slots_with:
            if self.fields[name].attribute not in item:
                try:
                    value = self._held_by_key(name, item, True, parsed)
                except _OtherForm as error:
                    raise self._other_form(name, error, item) from None
                if value is not MISSING:
                    values[name] = value
        return values

    def unread_keys(self, item: Item) -> dict[str, set[str]]:
        """The index-key attributes that cannot be read, though the item stores fields only there.

        Returned with the names of these fields. Writes do not remove such an attribute on their own, because it may be
        the only place where a value is stored.
        """
        unread: dict[str, set[str]] = {}
        for key in self.indexes:
            fields = {name for slot in key.slots for name in self._unread(slot, item)}
            if fields and self._is_in(key, item):
                names = {slot.attribute.name for slot in key.slots} & item.keys()
                for name in names - self._primary_attributes:
                    unread.setdefault(name, set()).update(fields)
        return unread

    def _is_in(self, key: BoundKey, item: Item) -> bool:
        """Whether the item, which may lack attributes, is in a sparse index."""
        if key.when is None or key.applies is None:
            return True
        tested = dict(item)
        for field in key.when.fields():
            if field.attribute not in item:
                tested |= self.encoded(field, self.absent(field))
        return key.applies.matches(tested, {})

    def _unread(self, slot: Slot, item: Item) -> list[str]:
        """The fields that the item stores neither in an attribute nor in a readable form of this key."""
        value = item.get(slot.attribute.name)
        fields = [component.field for component in slot.components]
        missing = [field.name for field in fields if field.attribute not in item]
        if value is None or not missing or slot in self.primary.slots:
            return []
        return [] if self._was_of_form(slot.attribute.name, value) else missing

    @cached_property
    def _primary_attributes(self) -> frozenset[str]:
        return frozenset(slot.attribute.name for slot in self.primary.slots)

    # Items that are not valid

    def invalid(
        self,
        item: Item,
        what: str,
        name: str | None = None,
        found: AttributeValue | None = None,
        *,
        cause: BaseException | None = None,
    ) -> InvalidItem:
        """The error for an invalid item; `what` says what is wrong, and what to do about it."""
        key = {
            each.name: from_wire(item[each.name])
            for each in self.table.keys.attributes
            if each.name in item
        }
        declared = None if name is None else type_text(self.fields[name].annotation)
        error = InvalidItem(
            f"{self.tag} {key!r} in table {self.table.name!r}: {what}",
            table=self.table.name,
            key=key,
            entity=self.tag,
            field=name,
            found=found,
            declared=declared,
        )
        error.__cause__ = cause
        return error

    def _wrong_value(
        self, name: str, value: AttributeValue, stored: Item, error: Exception
    ) -> InvalidItem:
        field = self.fields[name]
        where = "" if field.attribute == name else f" (attribute {field.attribute!r})"
        why = f": {error}" if isinstance(error, UsageError) else ""
        shown = "a value that is hidden" if field.options.hidden else _shortened(value)
        return self.invalid(
            stored,
            f"field {name!r}{where} has {shown}, but is declared as "
            f"{type_text(field.annotation)}{why}; {_INSTEAD}",
            name,
            value,
            cause=error,
        )

    def _other_form(self, name: str, error: _OtherForm, stored: Item) -> InvalidItem:
        """The error for a field that is stored only in a key attribute which does not have the declared form."""
        return self.invalid(
            stored,
            f"field {name!r} is only in the key attribute {error.attribute!r}, which {self.tag} does not write "
            f"so: {error.cause}; put the item again, or delete it; until then, select(…) of other fields, or "
            "query.on_invalid('skip'), reads past it",
            name,
            error.found,
            cause=error.cause,
        )

    def _lacking(self, name: str, stored: Item) -> InvalidItem:
        """The error for an item that lacks a field: an older item, or one of another program."""
        return self.invalid(
            stored,
            f"the item has no attribute {self.fields[name].attribute!r}, and field {name!r} has no default: "
            "declare one, or that the field may be None, or add it with @upgrade; until then, select(…) reads "
            "the other fields, and query.on_invalid('skip') the other items",
            name,
        )

    @cached_property
    def _slots_with(self) -> dict[str, list[Slot]]:
        """The key attributes that contain a field; previous forms come last."""
        slots: dict[str, list[Slot]] = {}
        for key in self.keys_of_both_forms:
            for slot in key.slots:
                for component in slot.components:
                    slots.setdefault(component.field.name, []).append(slot)
        return slots

    @cached_property
    def keys_of_both_forms(self) -> list[BoundKey]:
        """All keys, followed by the previous forms of those that have one."""
        keys = list(self.keys.values())
        previous = {} if self.previous is None else self.previous.keys
        return keys + [key for name, key in previous.items() if key is not self.keys[name]]

    def keys_with(self, name: str) -> list[str]:
        """The key attributes, besides the field's own attribute, that contain a field."""
        own = self.fields[name].attribute
        slots = self._slots_with.get(name, ())
        return list(dict.fromkeys(s.attribute.name for s in slots if s.attribute.name != own))

    def upgraded(self, item: Item) -> Item:
        """The item, upgraded to the entity's current version; the same object if it is current.

        Raises `NewerVersion` for an item of a later version.
        """
        if self.version == 1 and VERSION_ATTRIBUTE not in item:
            return item
        written = self._version_of(item)
        if written > self.version:
            raise self._newer(item, written)
        if written == self.version:
            return item
        natural = item_from_wire(item)
        for version in range(written, self.version):
            natural = self._upgraded_from(version, natural, item)
        upgraded = {**item_to_wire(natural), **self.marks}
        # A value that the upgrade removed must not come back from an index key that the older version wrote.
        for name, field in self.fields.items():
            if field.attribute in item and field.attribute not in upgraded:
                for key in set(self.keys_with(name)) - self._primary_attributes:
                    upgraded.pop(key, None)
        return upgraded

    def _upgraded_from(self, version: int, natural: dict[str, Any], stored: Item) -> dict[str, Any]:
        upgrade, before = self.upgrades[version], dict(natural)
        try:
            result = upgrade(natural)
        except Exception as error:
            name = getattr(upgrade, "__name__", "…")
            raise self.invalid(
                stored, f"@upgrade({version}) {name} raised {error!r}; make it accept the item"
            ) from error
        if not isinstance(result, dict):
            name = f"{self.entity.__name__}.{getattr(upgrade, '__name__', '…')}"
            raise UsageError(
                f"{self.tag}: @upgrade({version}) {name} returned {result!r}, which is not an item; end it with "
                "`return item`"
            )
        # `{**item, "title": item.pop("called")}` removes `called`, although it is copied first.
        removed = before.keys() - natural.keys() - self._attributes
        kept = [name for name in removed if result.get(name, MISSING) is before[name]]
        return {name: value for name, value in result.items() if name not in kept}

    @cached_property
    def _attributes(self) -> frozenset[str]:
        return frozenset(field.attribute for field in self.fields.values())

    def checked(self, item: Item) -> Item:
        """The item itself; raises `NewerVersion` if a later version of the entity wrote it."""
        written = self._version_of(item)
        if written > self.version:
            raise self._newer(item, written)
        return item

    def is_older(self, item: Item) -> bool:
        """Whether an older version of the entity wrote the item; raises `NewerVersion` for a later one."""
        if VERSION_ATTRIBUTE not in item:
            return self.version > 1
        return self._version_of(self.checked(item)) < self.version

    def _version_of(self, item: Item) -> int:
        """The version of the entity that wrote an item; raises `InvalidItem`."""
        found = item.get(VERSION_ATTRIBUTE, _FIRST)
        try:
            version = int(found["N"])
            if version < 1:
                raise ValueError(version)
            return version
        except (KeyError, ValueError):
            raise self._of_version(
                InvalidItem,
                item,
                f"attribute {VERSION_ATTRIBUTE!r} has {_shortened(found)}, but is the version of the entity, a whole number from 1; "
                "another program must store its own values under another name",
            ) from None

    def _newer(self, item: Item, written: int) -> InvalidItem:
        return self._of_version(
            NewerVersion,
            item,
            f"the item has version {written}, and this program knows {self.tag} up to version {self.version}; it "
            f"neither reads the item nor writes over it. Deploy the program that declares version={written}",
        )

    def outdated(self, item: Item) -> InvalidItem:
        """The error for an index entry that an older version wrote, and that lacks attributes."""
        return self._of_version(
            InvalidItem,
            item,
            f"the entry has an older version than {self.version}, and the index lacks attributes that an upgrade "
            "needs; read it by the primary key, or put it again",
        )

    def _of_version(self, kind: type[InvalidItem], item: Item, what: str) -> InvalidItem:
        key = {
            each.name: from_wire(item[each.name])
            for each in self.table.keys.attributes
            if each.name in item
        }
        return kind(
            f"{self.tag} {key!r} in table {self.table.name!r}: {what}",
            table=self.table.name,
            key=key,
            entity=self.tag,
            found=item.get(VERSION_ATTRIBUTE),
            declared=f"version {self.version}",
        )

    @cached_property
    def no_newer(self) -> nodes.ConditionNode:
        """The condition that no later version of the entity wrote the stored item, if one is stored."""
        unversioned = nodes.Call("attribute_not_exists", (_VERSION,))
        if self.version == 1:
            return unversioned
        known = nodes.Comparison("<=", _VERSION, nodes.Literal({"N": str(self.version)}))
        return nodes.Or((unversioned, known))

    @cached_property
    def same_version(self) -> nodes.ConditionNode:
        """The condition that this version of the entity wrote the stored item, if one is stored."""
        if self.version == 1:
            return self.no_newer
        same = nodes.Comparison("=", _VERSION, nodes.Literal(self.marks[VERSION_ATTRIBUTE]))
        nothing = nodes.Path((self.table.keys.partition[0].name,))
        return nodes.Or((same, nodes.Call("attribute_not_exists", (nothing,))))

    @cached_property
    def stored(self) -> tuple[nodes.ConditionNode, ...]:
        """The conditions that an item is stored, and, for a first version, that no later version wrote it.

        For later versions, updates check for the same version instead.
        """
        here: nodes.ConditionNode = nodes.Call(
            "attribute_exists", (nodes.Path((self.table.keys.partition[0].name,)),)
        )
        if self.base is not None:
            here = self.is_of_kind()
        return (here, self.no_newer) if self.version == 1 else (here,)

    def is_of_kind(self) -> nodes.ConditionNode:
        """The condition that the stored item's tag is the entity's or one of its kinds'."""
        tag = nodes.Path((self.table.tag,))
        kinds = self.kinds() if self.has_kinds else ()
        tags = [nodes.Literal({"S": each}) for schema in (self, *kinds) for each in schema.tags]
        return nodes.Comparison("=", tag, tags[0]) if len(tags) == 1 else nodes.In(tag, tuple(tags))

    @cached_property
    def stored_node(self) -> nodes.ConditionNode:
        """The conditions of `stored`, joined."""
        return self.stored[0] if len(self.stored) == 1 else nodes.And(self.stored)

    def __repr__(self) -> str:
        return f"<schema of {self.tag} on {self.table.name}>"


def _reads(slot: Slot, value: AttributeValue) -> dict[str, Any] | None:
    """The fields in a key attribute's value; None if it has another form."""
    try:
        return slot.parse(value)
    except MalformedKey:
        return None


class _OtherForm(Exception):
    """A key attribute contains fields, but does not have the declared form."""

    def __init__(self, attribute: str, found: AttributeValue, cause: MalformedKey) -> None:
        super().__init__(str(cause))
        self.attribute = attribute
        self.found = found
        self.cause = cause


_INSTEAD: Final = (
    "set the field with store.update, or declare the type that is stored; until then, query.on_invalid('skip') "
    "reads past the item"
)
_SHOWN: Final = 200  # characters of a value shown in a message


def _shortened(value: AttributeValue) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _readers(wire: WireType) -> tuple[str | None, Callable[[Any], Any], Callable[[Any], Any]]:
    """A type code, how to read the content under it, and how to decode a value with another code."""
    if wire.read is None:
        return None, wire.decode, wire.decode
    return wire.code, wire.read, wire.decode
