"""Inspects one stored item: its findings, compared with what its entity would write now.

    inspector = Inspector(shop)
    for item in items:
        entity, findings, claims = inspector.inspect(item, clock.now())

Nothing here reads or writes, and no item raises: an item that cannot be read is a finding. Each difference is found
once, under the most exact name that fits: an attribute of another type is `invalid`, and the index keys that
are made of it are then not looked at.

Unique values are compared with their markers, which are other items. So an inspection lists the markers that there
must be (`claims`), and `verification` reads the markers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from isotone.errors import InvalidItem, NewerVersion, UsageError
from isotone.model.declaring.fields import UNKNOWN, UNREADABLE
from isotone.model.declaring.keys import BoundKey, Slot
from isotone.model.declaring.previous_keys import fits
from isotone.model.declaring.table import VERSION_ATTRIBUTE
from isotone.model.expiry import has_expired
from isotone.model.writing import headroom, uniqueness
from isotone.values.json import item_from_wire
from isotone.values.types import AttributeValue, Item, is_same_value

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.declaring.fields import Attr
    from isotone.model.declaring.table import Table
    from isotone.model.entity import Entity

Kind = Literal[
    "unrecognized",  # no entity of the program has such an item
    "untagged",  # an item of the entity, by the form of its key, but without the tag
    "previous_tag",  # the tag that the entity had before: was_tag
    "wrong_tag",  # the key is that of another entity than the tag says
    "older_version",  # an @upgrade applies
    "newer_version",  # a later program wrote it
    "upgrade_failed",  # an @upgrade does not take the item
    "invalid",  # a value that is not of the field's type
    "missing",  # no attribute, and the field has no default
    "implied",  # no attribute; reads take the value from the default or a key
    "other_form",  # the right value, written in another way
    "computed",  # not what the function of a computed field returns
    "key",  # another primary key than the fields give
    "overflow",  # a value that does not fit into a key
    "headroom",  # a number that approaches the maximum of its key
    "index_missing",  # not in an index in which it must be
    "index_stale",  # in an index under another key than the fields give
    "index_orphaned",  # in an index in which it must not be
    "undeclared_index",  # in an index of which the entity has no key
    "unknown_attribute",  # an attribute that the entity does not declare
    "marker_missing",  # nothing keeps others from taking a unique value
    "marker_taken",  # another entity holds the unique value
    "marker_orphaned",  # a unique value is held for an entity that does not have it
]

REWRITTEN: Final[frozenset[Kind]] = frozenset(
    {
        "untagged",
        "previous_tag",
        "older_version",
        "implied",
        "other_form",
        "computed",
        "key",
        "index_missing",
        "index_stale",
        "index_orphaned",
        "marker_missing",
    }
)
"""The kinds that end when the item is written again as the entity that it is read as."""

NOTICES: Final[frozenset[Kind]] = frozenset({"headroom"})
"""The kinds that are no difference from what the entity would write now."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with an item.

    `name` is the field; for a key the name of the key in its class, for an attribute that the entity does not declare
    the attribute, for an unrecognized item its tag. `found` is the stored value as DynamoDB JSON, of a key as a
    map of its attributes. `declared` says what it would be.
    """

    kind: Kind
    entity: str | None = None
    name: str | None = None
    found: AttributeValue | None = None
    declared: str | None = None


class Inspection(NamedTuple):
    """What was found about an item.

    `entity` is None for an item of no declared entity. `claims` has the text of each marker that the item must have,
    with its field.
    """

    entity: EntitySchema | None
    findings: list[Finding]
    claims: Mapping[str, Attr[Any]]


_NO_CLAIMS: Final[Mapping[str, Any]] = {}
_LIBRARY_TAG: Final = re.compile("_[a-z_]+")  # `_keys`, `_unique`; a class has another name


class Inspector:
    """Compares the items of one table with the entities that the program declares on it.

    `other_index_attributes`: the key attributes of indexes that the table has and does not declare, each with the
    index's name.
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
        """Whether an item is not an entity, but one that the library keeps: a marker, a record, a position."""
        tag = item.get(self.table.tag, {}).get("S", "")
        return self.table.entity_of(tag) is None and _LIBRARY_TAG.fullmatch(tag) is not None

    def entity_of(self, item: Item) -> EntitySchema | None:
        """The entity of an item by its tag, or without a tag by the form of its key; None if there is none."""
        tag = item.get(self.table.tag)
        if tag is not None:
            return self.table.entity_of(tag.get("S", ""))
        return self._entity_with_key_of(item)

    def inspect(self, item: Item, now: float) -> Inspection:
        """What is wrong with an item that is not the library's. Nothing, if it has expired."""
        schema = self.entity_of(item)
        if schema is None:
            return Inspection(None, [self._unrecognized(item)], _NO_CLAIMS)
        return self.inspect_as(schema, item, now)

    def inspect_as(self, schema: EntitySchema, item: Item, now: float) -> Inspection:
        """What is wrong with an item of an entity."""
        if _is_over(schema, item, now):
            return Inspection(schema, [], _NO_CLAIMS)
        findings: list[Finding] = []
        tag = schema.table.tag
        if tag not in item:
            findings.append(Finding("untagged", schema.tag, declared=schema.tag))
        elif item[tag] != schema.marks[tag]:
            findings.append(Finding("previous_tag", schema.tag, None, item[tag], schema.tag))
        try:
            present = schema.upgraded(item)
        except (InvalidItem, UsageError) as error:
            findings.append(_of_version(schema, item, error))
            return Inspection(schema, findings, _NO_CLAIMS)
        comparison = _Comparison(schema, item, present)
        own = comparison.findings
        if own and not fits(schema, item):
            other = self._entity_with_key_of(item)
            if other is not None:
                key = {"M": _key_of(schema, item)}
                wrong = Finding(
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

    def _unrecognized(self, item: Item) -> Finding:
        tag = item.get(self.table.tag)
        near = None if tag is None else self._entity_with_key_of(item)
        name = None if tag is None else tag.get("S")
        declared = None if near is None else f"the key is one of {near.tag}"
        return Finding("unrecognized", None, name, tag, declared)

    def _undeclared(self, schema: EntitySchema, item: Item) -> Iterator[Finding]:
        for name, value in schema.unknown_in(item).items():
            index = self._index_attributes.get(name)
            if index is None:
                yield Finding("unknown_attribute", schema.tag, name, value)
            else:
                yield Finding("undeclared_index", schema.tag, name, value, f"not in index {index}")


def _is_over(schema: EntitySchema, item: Item, now: float) -> bool:
    expiry = schema.by_role.get("expires")
    return expiry is not None and has_expired(item.get(expiry.attribute), now)


def _key_of(schema: EntitySchema, item: Item) -> Item:
    return {each.name: item[each.name] for each in schema.table.keys.attributes}


def _of_version(schema: EntitySchema, item: Item, error: InvalidItem | UsageError) -> Finding:
    """The finding about an item that cannot be upgraded."""
    found = item.get(VERSION_ATTRIBUTE)
    if isinstance(error, NewerVersion):
        return Finding("newer_version", schema.tag, None, found, error.declared)
    if isinstance(error, InvalidItem) and error.declared is not None:
        return Finding("invalid", schema.tag, VERSION_ATTRIBUTE, found, error.declared)
    return Finding("upgrade_failed", schema.tag, None, found, str(error))


class _Comparison:
    """One item of an entity, compared with what a put of the same entity would write.

    `present` is the item upgraded to the present version. Of an older item only what reads depend on is compared:
    its values and its keys. The results are `findings` and `claims`.
    """

    def __init__(self, schema: EntitySchema, item: Item, present: Item) -> None:
        self.findings: list[Finding] = []
        self.claims: Mapping[str, Attr[Any]] = _NO_CLAIMS
        self._schema = schema
        self._item = item
        self._present = present
        self._is_older = present is not item
        entity = schema.from_invalid_item(present, require_all_fields=True)
        self._values = entity.__dict__
        self._faults: dict[str, InvalidItem] = self._values.pop(UNREADABLE, {})
        self._faulty = set(self._faults)  # fields without a value to compare
        self._fresh: Item = {}  # the attributes of fields that a put would write
        self.is_as_written = self._would_be_written(entity)
        if not self.is_as_written:
            self._compare(entity)
        self._note_headroom()
        if schema.unique:
            self._note_claims()

    def _would_be_written(self, entity: Entity) -> bool:
        """Whether the item is the one that a put would write: true for nearly all, and quickly found out."""
        schema, values = self._schema, self._values
        if self._is_older or self._faults or UNKNOWN in values:
            return False
        try:
            computed = {name: compute(entity) for name, compute in schema.computations.items()}
            return schema.to_item({**values, **computed} if computed else values) == self._item
        except Exception:  # noqa: BLE001 - whatever the functions of computed fields raise: look closer
            return False

    def _compare(self, entity: Entity) -> None:
        if self._is_older:
            found = self._item.get(VERSION_ATTRIBUTE)
            self._note("older_version", None, found, f"version {self._schema.version}")
        self._compare_faults()
        for name in self._schema.computations:
            self._compare_computed(entity, name)
        for name in self._schema.fields:
            if name in self._values and name not in self._schema.computations:
                self._compare_field(name)
        self._compare_primary_key()
        self._compare_index_keys()

    def _note(
        self,
        kind: Kind,
        name: str | None,
        found: AttributeValue | None = None,
        declared: str | None = None,
    ) -> None:
        self.findings.append(Finding(kind, self._schema.tag, name, found, declared))

    # Fields

    def _compare_faults(self) -> None:
        """Note the fields whose values cannot be read."""
        schema = self._schema
        for name, fault in self._faults.items():
            stored = self._present.get(schema.fields[name].attribute)
            if stored is not None:
                self._note("invalid", name, stored, fault.declared)
            elif fault.found is None and name not in schema.computations:
                self._note("missing", name, None, fault.declared)
        for key in schema.keys.values():  # which alone may hold the value, in another form
            if any(self._holds(slot, name) for slot in key.slots for name in self._faults):
                self._note_key(key, "key" if key.index is None else "index_stale", None)

    def _holds(self, slot: Slot, name: str) -> bool:
        """Whether a key is the only place of a field's value, and cannot be read."""
        return (
            self._schema.fields[name].attribute not in self._present
            and any(component.field.name == name for component in slot.components)
            and self._item.get(slot.attribute.name, ...) == self._faults[name].found
        )

    def _compare_computed(self, entity: Entity, name: str) -> None:
        """Compare a computed field, and set it to what it would be."""
        schema = self._schema
        field = schema.fields[name]
        stored = self._present.get(field.attribute)
        try:
            value = schema.computations[name](entity)
            written = schema.encoded(field, value)
        except Exception as error:  # noqa: BLE001 - whatever the function raises
            self._values.pop(name, None)
            self._faulty.add(name)
            if not self._faulty - schema.computations.keys():
                self._note("computed", name, stored, f"raises {error!r}")
            return
        self._values[name] = value
        self._faulty.discard(name)
        self._fresh |= written
        is_noted = self._is_older or (name in self._faults and stored is not None)
        if not is_noted and not is_same_value(stored, written.get(field.attribute)):
            self._note("computed", name, stored, _text(written))

    def _compare_field(self, name: str) -> None:
        """Compare how the value of a field is written."""
        schema = self._schema
        field = schema.fields[name]
        stored = self._present.get(field.attribute)
        try:
            written = schema.encoded(field, self._values[name])
        except UsageError as error:
            self._faulty.add(name)
            self._note("invalid", name, stored, str(error))
            return
        self._fresh |= written
        is_comparable = field.writes_alike or not (stored and written)
        is_same = is_same_value(stored, written.get(field.attribute))
        if not self._is_older and is_comparable and not is_same:
            kind: Kind = "implied" if stored is None else "other_form"
            self._note(kind, name, stored, _text(written))

    # Keys

    def _compare_primary_key(self) -> None:
        schema, key = self._schema, self._schema.primary
        if key.component_names & self._faulty:
            return
        try:
            expected = key.encode(self._values)
        except UsageError as error:
            self._note("overflow", key.name, None, str(error))
            return
        if expected != _key_of(schema, self._item):
            self._note_key(key, "key", expected)

    def _compare_index_keys(self) -> None:
        schema = self._schema
        expected: Item = {}
        comparable: list[BoundKey] = []
        ignored: set[str] = set()
        for key in schema.indexes:
            own = _own_attributes(schema, key)
            if {field.name for field in key.fields} & self._faulty:
                ignored |= own
                continue
            try:
                attributes = schema.key_attributes(key, self._values, self._fresh)
            except UsageError as error:
                ignored |= own
                self._note("overflow", key.name, None, str(error))
                continue
            expected |= {name: attributes[name] for name in own & attributes.keys()}
            comparable.append(key)
        for key in comparable:
            names = _own_attributes(schema, key) - ignored
            ignored |= names  # an attribute that two keys share is noted once
            wrong = {name for name in names if self._item.get(name) != expected.get(name)}
            if wrong:
                self._note_key(key, self._kind_of(wrong, expected), expected, wrong)

    def _kind_of(self, wrong: set[str], expected: Item) -> Kind:
        if not wrong & self._item.keys():
            return "index_missing"
        return "index_stale" if wrong & expected.keys() else "index_orphaned"

    def _note_key(
        self, key: BoundKey, kind: Kind, expected: Item | None, names: set[str] | None = None
    ) -> None:
        """Note a difference of a key, or of some of its attributes."""
        chosen = [slot.attribute.name for slot in key.slots]
        if names is not None:
            chosen = [name for name in chosen if name in names]
        stored = {name: self._item[name] for name in chosen if name in self._item}
        declared = None
        if expected is not None:
            wanted = {name: expected[name] for name in chosen if name in expected}
            declared = _text(wanted) if wanted else "no entry"
        self._note(kind, key.name, {"M": stored}, declared)

    def _note_headroom(self) -> None:
        fields: set[str] = set()
        for notice in headroom.near_maximum(self._schema, self._values):
            if notice.share <= 1 and notice.field not in fields:  # above it is an overflow
                fields.add(notice.field)
                found = self._schema.fields[notice.field].encode(notice.value)
                declared = f"at most {notice.maximum} in key {notice.key!r}"
                self._note("headroom", notice.field, found, declared)

    def _note_claims(self) -> None:
        try:
            self.claims = uniqueness.claims(self._schema, self._values)
        except UsageError as error:
            self._note("overflow", self._schema.unique[0].name, None, str(error))


@lru_cache(maxsize=4096)
def _own_attributes(schema: EntitySchema, key: BoundKey) -> frozenset[str]:
    """The attributes of an index key that are neither fields nor part of the primary key."""
    others = {field.attribute for field in schema.fields.values()}
    others |= {each.name for each in schema.table.keys.attributes}
    return frozenset(slot.attribute.name for slot in key.slots) - others


def _text(item: Item) -> str:
    """Attributes for people: one value by itself, several with their names."""
    values = item_from_wire(item)
    if len(values) == 1:
        return repr(next(iter(values.values())))
    return ", ".join(f"{name}={value!r}" for name, value in values.items()) or "no attribute"
