"""What a class statement declared, ready for use: how an entity becomes an item and an item an entity."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from isotone.errors import InvalidEntity, MalformedKey, UsageError
from isotone.expressions import Condition as CompiledCondition
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.keys import BoundKey, Slot, check_sizes
from isotone.model.declaring.table import Table
from isotone.model.declaring.validation import Validator, default_of
from isotone.model.declaring.wire import NULL
from isotone.values.json import item_from_wire, item_to_wire
from isotone.values.types import AttributeValue, Item

if TYPE_CHECKING:
    from isotone.model.entity import Entity
    from isotone.model.reading.patterns import Pattern

VERSION_ATTRIBUTE = "_v"
_EMPTY: Final[set[Any]] = set()

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]


class EntitySchema:
    """One entity: its fields, its keys, its table, and the translation between items and instances."""

    def __init__(
        self,
        entity: type[Entity],
        table: Table,
        tag: str,
        fields: dict[str, Attr[Any]],
        keys: dict[str, BoundKey],
        version: int,
        upgrades: Mapping[int, Upgrade],
    ) -> None:
        self.entity = entity
        self.table = table
        self.tag = tag
        self.fields = fields
        self.keys = keys
        self.version = version
        self.upgrades = upgrades
        self.primary = next(key for key in keys.values() if key.index is None)
        self.identity = {field.name: field for field in self.primary.fields}
        self.indexes = [key for key in keys.values() if key.index is not None]
        self.by_role = {field.options.role: field for field in fields.values()}
        self.unique = [field for field in fields.values() if field.options.unique]
        self.computations: Mapping[str, Callable[[Any], Any]] = {
            name: field.options.compute
            for name, field in fields.items()
            if field.options.compute is not None
        }
        self.patterns: dict[str, Pattern[Any]] = {}
        """What each key is on the class, by its name; filled by `Entity`."""
        self._when = {
            key.name: CompiledCondition.from_node(key.when.node())
            for key in self.indexes
            if key.when is not None
        }
        self.marks: Item = {table.tag: {"S": tag}}
        if version > 1:
            self.marks[VERSION_ATTRIBUTE] = {"N": str(version)}

    @cached_property
    def required(self) -> frozenset[str]:
        """The fields of which every entity is given a value."""
        return frozenset(
            name
            for name, field in self.fields.items()
            if field.options.required and not self.is_optional(field)
        )

    @cached_property
    def validator(self) -> Validator:
        """pydantic's validation of the fields, built when the first instance is made."""
        return Validator(self.entity.__name__, self.fields)

    # To an item

    @cached_property
    def _encoders(self) -> tuple[tuple[str, str, Callable[[Any], AttributeValue]], ...]:
        return tuple(
            (name, field.attribute, field.wire.encode) for name, field in self.fields.items()
        )

    def to_item(self, values: Mapping[str, Any]) -> Item:
        """The item of an entity, with all key attributes; raises `UsageError` for what does not fit."""
        item: Item = {}
        if not self.fields.keys() <= values.keys():
            raise self.partial(values)
        for name, attribute, encode in self._encoders:
            value = values[name]
            if not value and (value is None or value == _EMPTY):
                item.update(self.encoded(self.fields[name], value))
                continue
            try:
                item[attribute] = encode(value)
            except UsageError as error:
                raise self.fields[name].named(error) from None
        item.update(self.marks)
        for key in self.keys.values():
            item.update(self.key_attributes(key, values, item))
        return item

    def partial(self, values: Mapping[str, Any]) -> UsageError:
        """The error about an entity of which only some fields were read, where all are needed."""
        missing = ", ".join(name for name in self.fields if name not in values)
        return UsageError(
            f"{self.entity.__name__} was read without its fields {missing}; read it whole, without "
            "select(…), by its primary key or by an index that projects all attributes"
        )

    def encoded(self, field: Attr[Any], value: Any) -> Item:
        """The attribute that says the value of a field; no attribute where absence says it."""
        if value is not None and value != _EMPTY:
            return {field.attribute: field.encode(value)}
        if value is None and self.absent(field) is not None:
            return {field.attribute: NULL}  # absence is the default's, so None has to be said
        return {}

    @staticmethod
    def is_optional(field: Attr[Any]) -> bool:
        """Whether an entity may be without a value for the field."""
        return field.wire.optional or field.options.role in ("expires", "created", "updated")

    @staticmethod
    def absent(field: Attr[Any]) -> Any:
        """What an item without the attribute means. DynamoDB has no empty sets, so they are absence too."""
        if field.wire.python in (set, frozenset) and not field.wire.optional:
            return field.wire.python()
        return default_of(field)

    def key_attributes(self, key: BoundKey, values: Mapping[str, Any], item: Item) -> Item:
        """The attributes of one key; none of them where the entity is not in the index."""
        when = self._when.get(key.name)
        if when is not None and not when.matches(item, {}):
            return {}
        found: Item = {}
        for slot in key.slots:
            value = slot.encode(values)
            if value is None:
                if key.index is None:
                    missing = [
                        c.field.name for c in slot.components if values.get(c.field.name) is None
                    ]
                    raise UsageError(
                        f"{self.tag}: the primary key needs a value for {', '.join(missing)}"
                    )
                return {}
            found[slot.attribute.name] = value
        check_sizes(self.tag, key, found)
        return found

    def primary_key(self, values: Mapping[str, Any]) -> Item:
        """The primary key's attributes, from the values of its fields."""
        return self.key_attributes(self.primary, values, {})

    # From an item

    @cached_property
    def _decoders(self) -> tuple[tuple[str, str, Callable[[AttributeValue], Any]], ...]:
        return tuple(
            (name, field.attribute, field.wire.decode) for name, field in self.fields.items()
        )

    def from_item(
        self,
        item: Item,
        *,
        validate: bool = False,
        only: Collection[str] | None = None,
        is_whole: bool = True,
        insists: bool = False,
    ) -> Entity:
        """The entity of an item. An item that the library wrote needs no validation.

        `only` names the fields that were read; reading another one of the entity raises. What is not
        whole, an entry of an index that lacks attributes, is not upgraded. Where it `insists`, computed
        fields that a whole item lacks are computed, and other required ones raise `InvalidEntity`.
        """
        insists = insists and is_whole and only is None
        if is_whole:
            item = self.upgraded(item)
        decoders = self._decoders
        if only is not None:
            decoders = tuple(each for each in decoders if each[0] in only)
        values: dict[str, Any] = {}
        missing = []
        for name, attribute, decode in decoders:
            value = item.get(attribute)
            if value is None:
                missing.append(name)
            else:
                values[name] = decode(value)
        if missing:
            values.update(self._told_otherwise(missing, item, is_whole, insists))
        if validate:
            values = self.validator.all(values)
        entity = self.entity.from_trusted(values)
        if insists and self.computations:
            self._compute_missing(entity)
        return entity

    def _told_otherwise(
        self, names: list[str], item: Item, is_whole: bool, insists: bool
    ) -> dict[str, Any]:
        """The values of fields whose attributes an item does not have."""
        parsed: dict[Slot, dict[str, Any]] = {}
        found = {name: self._missing(name, item, is_whole, parsed) for name in names}
        for name, value in found.items() if insists else ():
            if value is None:
                self._check_missing(name, item)
        return found

    def _compute_missing(self, entity: Entity) -> None:
        for name, compute in self.computations.items():
            if entity.__dict__[name] is None:
                entity.__dict__[name] = compute(entity)

    def _check_missing(self, name: str, item: Item) -> None:
        """Raise where an item lacks what every entity has: it is older than the field, or of another program."""
        field = self.fields[name]
        if name not in self.required:
            return
        raise InvalidEntity(
            f"{self.tag}: the item {self._told_key(item)} has no attribute {field.attribute!r}, and field {name!r} has no "
            "default: declare one, or that the field may be None, or add it with @upgrade; until then, "
            "select(…) reads the other fields",
            [{"field": name, "error": "is missing"}],
        )

    def _missing(
        self, name: str, item: Item, is_whole: bool, parsed: dict[Slot, dict[str, Any]]
    ) -> Any:
        """The value of a field whose attribute the item does not have: as a key tells it, or the default.

        Of a whole item absence tells the default. An entry of an index has its attributes or not, whatever
        their values, so there the keys are asked first. `parsed` remembers what they hold.
        """
        field = self.fields[name]
        if field.options.required or not is_whole:
            for slot in self._slots_of.get(name, ()):
                value = item.get(slot.attribute.name)
                if value is not None:
                    if slot not in parsed:
                        parsed[slot] = self._parsed(slot, value, item)
                    return parsed[slot][name]
        return self.absent(field)

    def _parsed(self, slot: Slot, value: AttributeValue, item: Item) -> dict[str, Any]:
        """The fields that a key attribute holds; raises `MalformedKey` that tells which item's it is."""
        try:
            return slot.parse(value)
        except MalformedKey as error:
            fields = ", ".join(component.field.name for component in slot.components)
            raise MalformedKey(
                f"{self.tag}: the item {self._told_key(item)} has an attribute {slot.attribute.name!r} that "
                f"{self.tag} does not write: {error}. Nothing else tells its {fields}: put that item anew, or "
                "delete it; until then, select(…) of other fields reads on past it"
            ) from None

    def _told_key(self, item: Item) -> str:
        """The primary key of an item, for a message."""
        return ", ".join(
            f"{each.name}={next(iter(item[each.name].values()), None)!r}"
            for each in self.table.keys.attributes
            if each.name in item
        )

    @cached_property
    def _slots_of(self) -> dict[str, list[Slot]]:
        """The key attributes that hold a field."""
        found: dict[str, list[Slot]] = {}
        for key in self.keys.values():
            for slot in key.slots:
                for component in slot.components:
                    found.setdefault(component.field.name, []).append(slot)
        return found

    def upgraded(self, item: Item) -> Item:
        """The item as the present version of the entity has it; the same object where it is."""
        if self.version == 1:
            return item
        written = int(item.get(VERSION_ATTRIBUTE, {}).get("N", "1"))
        if written >= self.version:
            return item
        natural = item_from_wire(item)
        for version in range(written, self.version):
            natural = self.upgrades[version](natural)
        return {**item_to_wire(natural), **self.marks}

    def __repr__(self) -> str:
        return f"<schema of {self.tag} on {self.table.name}>"
