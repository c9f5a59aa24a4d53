"""Checks one stored item for `verify`: how it differs from what its entity would write now (wrong types, stale keys).

    inspector = Inspector(shop)
    for item in items:
        entity, findings, claims = inspector.inspect(item, clock.now())

This module neither reads nor writes, and no item makes it raise: an item that cannot be read is a finding. Each
difference is reported once, by the most precise kind: if an attribute has the wrong type it is `invalid`, and the index
keys made from it are not checked.

Unique values have markers, which are separate items. An inspection lists the markers that must exist (`claims`), and
`verification` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from isotone.errors import InvalidItem, NewerVersion, UsageError
from isotone.model.declaring.fields import UNKNOWN, UNREADABLE
from isotone.model.declaring.keys import BoundKey, Slot
from isotone.model.declaring.previous_keys import fits
from isotone.model.declaring.table import VERSION_ATTRIBUTE
from isotone.model.expiry import has_expired
from isotone.model.finding_kinds import Kind
from isotone.model.writing import headroom, uniqueness
from isotone.model.writing.derived_attributes import key_index_attributes
from isotone.values.json import item_from_wire
from isotone.values.types import AttributeValue, Item, is_same_value

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.declaring.fields import Attr
    from isotone.model.declaring.table import Table
    from isotone.model.entity import Entity


@dataclass(frozen=True, slots=True)
class ItemFinding:
    """One thing that is wrong with an item.

    `name` is the field; for a key, the key's name in its class; for an undeclared attribute, the attribute; for an
    unrecognized item, its tag. `found` is the stored value as DynamoDB JSON; for a key, a map of its attributes.
    `declared` says what it should be.
    """

    kind: Kind
    entity: str | None = None
    name: str | None = None
    found: AttributeValue | None = None
    declared: str | None = None


class Inspection(NamedTuple):
    """The findings about one item.

    `entity` is None for an item of no declared entity. `claims` maps the text of each marker that the item must have to
    its field.
    """

    entity: EntitySchema | None
    findings: list[ItemFinding]
    claims: Mapping[str, Attr[Any]]


_NO_CLAIMS: Final[Mapping[str, Any]] = {}
_LIBRARY_TAG: Final = re.compile(
    "_[a-z_]+"
)  # `_keys`, `_unique`; tags of classes never look like this


class Inspector:
    """Compares the items of one table with the entities that the program declares on it.

    `other_index_attributes`: the key attributes of indexes that the table has but the program does not declare, each
    with its index's name.
    """

    def __init__(
        self, table: Table, other_index_attributes: Mapping[str, str] | None = None
    ) -> None:
        self.table = table
        self._index_attributes = {
            **(other_index_attributes or {}),
            **{
                attribute.name: index
                for index, layout in table.layouts.items()
                for attribute in layout.attributes
            },
        }

    def is_of_library(self, item: Item) -> bool:
        """Whether an item belongs to the library, such as a marker, a key record or a saved position."""
        tag = item.get(self.table.tag, {}).get("S", "")
        return self.table.entity_of(tag) is None and _LIBRARY_TAG.fullmatch(tag) is not None

    def entity_of(self, item: Item) -> EntitySchema | None:
        """The entity of an item: by its tag, or else by the form of its key; None if there is none."""
        tag = item.get(self.table.tag)
        if tag is not None:
            return self.table.entity_of(tag.get("S", ""))
        return self._entity_with_key_of(item)

    def inspect(self, item: Item, now: float) -> Inspection:
        """Check an item that is not the library's. An expired item has no findings."""
        schema = self.entity_of(item)
        if schema is None:
            return Inspection(None, [self._unrecognized(item)], _NO_CLAIMS)
        return self.inspect_as(schema, item, now)

    def inspect_as(self, schema: EntitySchema, item: Item, now: float) -> Inspection:
        """Check an item as one of this entity."""
        if _is_over(schema, item, now):
            return Inspection(schema, [], _NO_CLAIMS)
        findings: list[ItemFinding] = []
        tag = schema.table.tag
        if tag not in item:
            findings.append(ItemFinding("untagged", schema.tag, declared=schema.tag))
        elif item[tag] != schema.marks[tag]:
            findings.append(ItemFinding("previous_tag", schema.tag, None, item[tag], schema.tag))
        try:
            present = schema.upgraded(item)
        except (InvalidItem, UsageError) as error:
            findings.append(_of_version(schema, item, error))
            return Inspection(schema, findings, _NO_CLAIMS)
        comparison = _compare(schema, item, present)
        own = comparison.findings
        if own and not fits(schema, item):
            other = self._entity_with_key_of(item)
            if other is not None:
                key = {"M": _key_of(schema, item)}
                wrong = ItemFinding(
                    "wrong_tag", schema.tag, None, key, f"the key is one of {other.tag}"
                )
                return Inspection(schema, [*findings, wrong], _NO_CLAIMS)
        if present is item and not comparison.is_as_written:
            own = [*own, *self._undeclared(schema, item)]
        return Inspection(schema, [*findings, *own], comparison.claims)

    def _entity_with_key_of(self, item: Item) -> EntitySchema | None:
        return next(
            (
                each
                for each in tuple(self.table.entities.values())
                if each.base is None and fits(each, item)
            ),
            None,
        )

    def _unrecognized(self, item: Item) -> ItemFinding:
        tag = item.get(self.table.tag)
        near = None if tag is None else self._entity_with_key_of(item)
        name = None if tag is None else tag.get("S")
        declared = None if near is None else f"the key is one of {near.tag}"
        return ItemFinding("unrecognized", None, name, tag, declared)

    def _undeclared(self, schema: EntitySchema, item: Item) -> Iterator[ItemFinding]:
        for name, value in schema.unknown_in(item).items():
            index = self._index_attributes.get(name)
            if index is None:
                yield ItemFinding("unknown_attribute", schema.tag, name, value)
            else:
                yield ItemFinding(
                    "undeclared_index", schema.tag, name, value, f"not in index {index}"
                )


def entity_of_item(table: Table, item: Item) -> EntitySchema | None:
    """The entity of a stored item: by its tag, or else by the form of its key; None if there is none."""
    return Inspector(table).entity_of(item)


def _is_over(schema: EntitySchema, item: Item, now: float) -> bool:
    expiry = schema.by_role.get("expires")
    return expiry is not None and has_expired(item.get(expiry.attribute), now)


def _key_of(schema: EntitySchema, item: Item) -> Item:
    return {each.name: item[each.name] for each in schema.table.keys.attributes}


def _of_version(schema: EntitySchema, item: Item, error: InvalidItem | UsageError) -> ItemFinding:
    """The finding for an item that cannot be upgraded."""
    found = item.get(VERSION_ATTRIBUTE)
    if isinstance(error, NewerVersion):
        return ItemFinding("newer_version", schema.tag, None, found, error.declared)
    if isinstance(error, InvalidItem) and error.declared is not None:
        return ItemFinding("invalid", schema.tag, VERSION_ATTRIBUTE, found, error.declared)
    return ItemFinding("upgrade_failed", schema.tag, None, found, str(error))


# One item of an entity, compared with what a put of the same entity would write


class _Comparison(NamedTuple):
    """The differences found; `is_as_written` if there are none, not even an undeclared attribute."""

    findings: list[ItemFinding]
    claims: Mapping[str, Attr[Any]]
    is_as_written: bool


class _Read(NamedTuple):
    """An item as it was read. `present` is the item, upgraded to the entity's current version.

    `values` are the entity's, with computed fields as they should be; `faults` are the fields that cannot be read.
    """

    schema: EntitySchema
    item: Item
    present: Item
    entity: Entity
    values: dict[str, Any]
    faults: Mapping[str, InvalidItem]

    @property
    def is_older(self) -> bool:
        """Whether an older version wrote the item. Then only values and keys are compared, on which reads depend."""
        return self.present is not self.item

    def finding(
        self,
        kind: Kind,
        name: str | None,
        found: AttributeValue | None = None,
        declared: str | None = None,
    ) -> ItemFinding:
        return ItemFinding(kind, self.schema.tag, name, found, declared)


class _Written(NamedTuple):
    """The attributes that a put would write; `faulty` are the fields without a value to compare."""

    attributes: Item
    faulty: set[str]


def _compare(schema: EntitySchema, item: Item, present: Item) -> _Comparison:
    """Compare an item in stages: values, fields, primary key, index keys, maximums, unique values.

    Computed fields come first, because the other stages use their values.
    """
    read = _read(schema, item, present)
    is_as_written = _would_be_written(read)
    findings: list[ItemFinding] = []
    if not is_as_written:
        findings += _of_values(read)
        written = _Written({}, set(read.faults))
        findings += _of_computed_fields(read, written)
        findings += _of_fields(read, written)
        findings += _of_primary_key(read, written)
        findings += _of_index_keys(read, written)
    findings += _of_headroom(read)
    claims, refused = _claims_of(read)
    return _Comparison([*findings, *refused], claims, is_as_written)


def _read(schema: EntitySchema, item: Item, present: Item) -> _Read:
    entity = schema.from_invalid_item(present, require_all_fields=True)
    values = entity.__dict__
    faults: dict[str, InvalidItem] = values.pop(UNREADABLE, {})
    return _Read(schema, item, present, entity, values, faults)


def _would_be_written(read: _Read) -> bool:
    """Whether a put would write exactly this item. A quick check that passes for nearly all items."""
    schema, values = read.schema, read.values
    if read.is_older or read.faults or UNKNOWN in values:
        return False
    try:
        computed = {name: compute(read.entity) for name, compute in schema.computations.items()}
        return schema.to_item({**values, **computed} if computed else values) == read.item
    except Exception:  # noqa: BLE001 - whatever the functions of computed fields raise: look closer
        return False


# The stages: values and fields


def _of_values(read: _Read) -> Iterator[ItemFinding]:
    """Check the item's version, and the fields whose values cannot be read."""
    schema = read.schema
    if read.is_older:
        found = read.item.get(VERSION_ATTRIBUTE)
        yield read.finding("older_version", None, found, f"version {schema.version}")
    for name, fault in read.faults.items():
        stored = read.present.get(schema.fields[name].attribute)
        if stored is not None:
            yield read.finding("invalid", name, stored, fault.declared)
        elif fault.found is None and name not in schema.computations:
            yield read.finding("missing", name, None, fault.declared)
    for key in schema.keys.values():  # an index key may hold the only copy, in another form
        if any(_holds(read, slot, name) for slot in key.slots for name in read.faults):
            yield _of_key(read, key, "key" if key.index is None else "index_stale", None)


def _holds(read: _Read, slot: Slot, name: str) -> bool:
    """Whether a field's value is stored only in this key, which cannot be read."""
    return (
        read.schema.fields[name].attribute not in read.present
        and any(component.field.name == name for component in slot.components)
        and read.item.get(slot.attribute.name, ...) == read.faults[name].found
    )


def _of_computed_fields(read: _Read, written: _Written) -> Iterator[ItemFinding]:
    """Compare the computed fields, and correct their values for the later stages."""
    schema = read.schema
    for name, compute in schema.computations.items():
        field = schema.fields[name]
        stored = read.present.get(field.attribute)
        try:
            value = compute(read.entity)
            attributes = schema.encoded(field, value)
        except Exception as error:  # noqa: BLE001 - whatever the function raises
            read.values.pop(name, None)
            written.faulty.add(name)
            if not written.faulty - schema.computations.keys():
                yield read.finding("computed", name, stored, f"raises {error!r}")
            continue
        read.values[name] = value
        written.faulty.discard(name)
        written.attributes.update(attributes)
        is_noted = read.is_older or (name in read.faults and stored is not None)
        if not is_noted and not is_same_value(stored, attributes.get(field.attribute)):
            yield read.finding("computed", name, stored, _text(attributes))


def _of_fields(read: _Read, written: _Written) -> Iterator[ItemFinding]:
    """Compare the stored form of the other fields."""
    schema = read.schema
    for name, field in schema.fields.items():
        if name not in read.values or name in schema.computations:
            continue
        stored = read.present.get(field.attribute)
        try:
            attributes = schema.encoded(field, read.values[name])
        except UsageError as error:
            written.faulty.add(name)
            yield read.finding("invalid", name, stored, str(error))
            continue
        written.attributes.update(attributes)
        is_comparable = field.writes_alike or not (stored and attributes)
        is_same = is_same_value(stored, attributes.get(field.attribute))
        if not read.is_older and is_comparable and not is_same:
            kind: Kind = "implied" if stored is None else "other_form"
            yield read.finding(kind, name, stored, _text(attributes))


# The stages: keys


def _of_primary_key(read: _Read, written: _Written) -> Iterator[ItemFinding]:
    schema, key = read.schema, read.schema.primary
    if key.component_names & written.faulty:
        return
    try:
        expected = key.encode(read.values)
    except UsageError as error:
        yield read.finding("overflow", key.name, None, str(error))
        return
    if expected != _key_of(schema, read.item):
        yield _of_key(read, key, "key", expected)


def _of_index_keys(read: _Read, written: _Written) -> Iterator[ItemFinding]:
    schema = read.schema
    expected: Item = {}
    comparable: list[BoundKey] = []
    ignored: set[str] = set()
    for key in schema.indexes:
        own = key_index_attributes(schema, key)
        if {field.name for field in key.fields} & written.faulty:
            ignored |= own
            continue
        try:
            attributes = schema.key_attributes(key, read.values, written.attributes)
        except UsageError as error:
            ignored |= own
            yield read.finding("overflow", key.name, None, str(error))
            continue
        expected |= {name: attributes[name] for name in own & attributes.keys()}
        comparable.append(key)
    for key in comparable:
        names = key_index_attributes(schema, key) - ignored
        ignored |= names  # report an attribute that two keys share only once
        wrong = {name for name in names if read.item.get(name) != expected.get(name)}
        if wrong:
            yield _of_key(read, key, _kind_of(read.item, wrong, expected), expected, wrong)


def _kind_of(item: Item, wrong: set[str], expected: Item) -> Kind:
    if not wrong & item.keys():
        return "index_missing"
    return "index_stale" if wrong & expected.keys() else "index_orphaned"


def _of_key(
    read: _Read, key: BoundKey, kind: Kind, expected: Item | None, names: set[str] | None = None
) -> ItemFinding:
    """The finding for a key, or for some of its attributes."""
    chosen = [slot.attribute.name for slot in key.slots]
    if names is not None:
        chosen = [name for name in chosen if name in names]
    stored = {name: read.item[name] for name in chosen if name in read.item}
    declared = None
    if expected is not None:
        wanted = {name: expected[name] for name in chosen if name in expected}
        declared = _text(wanted) if wanted else "no entry"
    return read.finding(kind, key.name, {"M": stored}, declared)


# The stages: maximums and unique values


def _of_headroom(read: _Read) -> Iterator[ItemFinding]:
    fields: set[str] = set()
    for notice in headroom.near_maximum(read.schema, read.values):
        if notice.share <= 1 and notice.field not in fields:
            # More than 1 is an overflow, reported elsewhere.
            fields.add(notice.field)
            found = read.schema.fields[notice.field].encode(notice.value)
            declared = f"at most {notice.maximum} in key {notice.key!r}"
            yield read.finding("headroom", notice.field, found, declared)


def _claims_of(read: _Read) -> tuple[Mapping[str, Attr[Any]], list[ItemFinding]]:
    """The markers that the item must have, or the finding that no marker can be made."""
    schema = read.schema
    if not schema.unique:
        return _NO_CLAIMS, []
    try:
        return uniqueness.claims(schema, read.values), []
    except UsageError as error:
        return _NO_CLAIMS, [read.finding("overflow", schema.unique[0].name, None, str(error))]


def _text(item: Item) -> str:
    """Attributes as text: one value on its own, several with their names."""
    values = item_from_wire(item)
    if len(values) == 1:
        return repr(next(iter(values.values())))
    return ", ".join(f"{name}={value!r}" for name, value in values.items()) or "no attribute"
