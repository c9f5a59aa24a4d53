"""Which items of a response become entities: kind, version (`upgrade`), not expired; `on_invalid` for misfits.

The database returns all items in a read's range. Here items of other kinds are dropped, items of older versions are
upgraded and filtered, and items of no declared kind are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from isotone.errors import InvalidItem
from isotone.expressions import CompiledCondition
from isotone.model.declaring.absent_attributes import absence_in
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.item_decoding import DecodeJson
from isotone.model.declaring.keys import BoundKey, StringSlot
from isotone.model.declaring.previous_keys import fits
from isotone.model.declaring.table import VERSION_ATTRIBUTE
from isotone.model.declaring.wire_types import type_text
from isotone.model.expiry import has_expired
from isotone.model.reading.index_projections import (
    expiry_attributes,
    key_attributes,
    projected_attributes,
    projected_fields,
)
from isotone.model.reading.key_bounds import text_of
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.entity import Entity

_decode: Final = msgspec.json.Decoder().decode

Found = tuple["Entity", Item | msgspec.Raw]
"""An entity with the item that it was read from, possibly as JSON."""

Note = Callable[[InvalidItem, int], None]
"""Called with an invalid item and the number of results before it."""


class ItemSelection:
    """Decides which items of a read become entities, and which fields are decoded.

    `excluded`: attribute values whose items are dropped. `filters`: conditions that the database cannot test on items
    of an older version, each with its entity. `kinds`: the kinds of the entities, each with the index of its entity.
    """

    def __init__(
        self,
        schemas: tuple[EntitySchema, ...],
        keys: tuple[BoundKey, ...],
        selected: frozenset[str] | None,
        with_expired: bool,
        excluded: tuple[tuple[str, frozenset[str]], ...],
        is_only_kind: bool,
        filters: tuple[tuple[EntitySchema, Condition], ...] = (),
        kinds: tuple[tuple[EntitySchema, int], ...] = (),
    ) -> None:
        table = schemas[0].table
        further = tuple(kind for kind, _ in kinds)
        keys = (*keys, *(kind.keys[keys[place].name] for kind, place in kinds))
        self._tag = table.tag
        self._selected = selected
        self._by_tag = {tag: schema for schema in (*schemas, *further) for tag in schema.tags}
        self._keyed = tuple(zip((*schemas, *further), keys, strict=True))
        self.is_whole: bool = projected_attributes(table, keys[0].index) is None
        self._is_only_kind = is_only_kind
        projected = projected_attributes(table, keys[0].index)
        self._has_tags = projected is None or table.tag in projected
        self._position = key_attributes(table, keys[0].index)
        self._filters = [
            (owner, CompiledCondition.from_node(each.node(absence_in(owner, keys[0].index))))
            for owner, each in filters
        ]
        self._excluded = excluded
        self._expiry = () if with_expired else expiry_attributes(schemas)
        self._fields = {
            schema.tag: _fields_to_read(selected, schema, key) for schema, key in self._keyed
        }
        self._decoders = {
            tag: schema.decode_whole
            for tag, schema in self._by_tag.items()
            if self._fields[schema.tag] is None
        }
        self._decode_json: DecodeJson | None = None
        is_one_kind = len(schemas) == len(self._decoders) == 1
        if is_one_kind and not self._excluded and not self._expiry:  # which a dict look-up covers
            self._decode_json = schemas[0].decode_json
        self.json_items: bool = self._decode_json is not None

    def entities(self, items: Sequence[Any], now: float, found: list[Found], note: Note) -> None:
        """Append the entities to `found`, each with its item. `note` is called for each invalid item.

        The items are dicts or, if `json_items` allows it, all JSON.
        """
        if self._decode_json is not None and items and type(items[0]) is msgspec.Raw:
            items = _add_while_usual(items, self._decode_json, found)
        if self._excluded:
            items = [item for item in items if not self._is_excluded(item)]
        if self._expiry:
            items = [item for item in items if not self._has_expired(item, now)]
        tag, decoders = self._tag, self._decoders
        for item in items:
            try:
                entity = decoders[item[tag]["S"]](item)
            except Exception:  # noqa: BLE001 - another kind or version, or an attribute is missing or invalid
                try:
                    unusual = self._unusual(item)
                except InvalidItem as error:
                    note(error, len(found))
                    continue
                if unusual is None:
                    continue
                entity, item = unusual
            found += ((entity, item),)

    def _unusual(self, item: Item) -> tuple[Entity, Item] | None:
        """The entity of any item; None if it is of another kind, or a filter drops it. Raises `InvalidItem`."""
        schema = self._schema_of(item)
        if schema is None:
            return None
        if schema.version > 1 and schema.is_older(item):
            older = self._upgraded(schema, item)
            if older is None:
                return None
            item = older
        entity = schema.from_item(
            item,
            only=self._fields[schema.tag],
            is_whole=self.is_whole,
            require_all_fields=True,
        )
        return entity, item

    def _upgraded(self, schema: EntitySchema, item: Item) -> Item | None:
        """An item of an older version, upgraded; None if a filter drops it.

        The database tests filters only on items of the current version.
        """
        if not self.is_whole:
            projected = projected_attributes(schema.table, self._keyed[0][1].index) or ()
            if VERSION_ATTRIBUTE in projected:
                raise schema.outdated(item)
            return item  # only fields in its keys are read
        upgraded = schema.upgraded(item)
        for owner, condition in self._filters:
            if owner.tag in schema.lineage and not condition.matches(upgraded, {}):
                return None
        return {**upgraded, **{name: item[name] for name in self._position if name in item}}

    def _schema_of(self, item: Item) -> EntitySchema | None:
        """The kind of an item; None if the read does not ask for it. Raises `InvalidItem` for an unknown kind.

        An item without a tag was not written by the library, or comes from an index that lacks the tag. Its kind is the
        one whose key form matches.
        """
        schema = self._keyed[0][0]
        if self._tag in item:
            tag = item[self._tag].get("S")
            if tag is None:
                raise schema.invalid(
                    item,
                    f"its tag {self._tag!r} has {item[self._tag]!r}, which is not the name of an entity; use "
                    "another attribute as the tag: Table(tag=…)",
                )
            if tag not in self._by_tag:
                return self._other_kind(tag, item)
            return self._by_tag[tag]
        if self._is_only_kind and not self._has_tags:
            return schema
        for own, _ in self._keyed:
            if own.base is None and fits(own, item):
                return own
        if any(fits(other, item) for other in tuple(schema.table.entities.values())):
            return None
        forms = " or ".join(_form_of(own) for own, _ in self._keyed)
        raise schema.invalid(
            item,
            f"the item has no tag and its key has another form than {forms}; declare the entity that has such "
            f"keys, give the item its tag (attribute {self._tag!r}), or read past it by "
            "query.on_invalid('skip')",
        )

    def _other_kind(self, tag: str, item: Item) -> EntitySchema | None:
        """The kind of an item whose tag is new to this read; raises `InvalidItem` for an unknown tag."""
        found = self._keyed[0][0].table.entity_of(tag)
        for schema, key in self._keyed:
            if found is not None and schema.tag in found.lineage:
                # A kind defined since the first read.
                fields = _fields_to_read(self._selected, found, found.keys[key.name])
                self._fields.setdefault(tag, fields)
                return found
            is_base = schema.has_kinds and schema.base is None
            if found is None and is_base and tag[:1] != "_" and fits(schema, item):
                raise schema.unknown_kind(item)
        return None

    def _is_excluded(self, item: Item) -> bool:
        return any(text_of(item[name]) in texts for name, texts in self._excluded)

    def _has_expired(self, item: Item, now: float) -> bool:
        return any(has_expired(item.get(name), now) for name in self._expiry)


def _add_while_usual(
    items: Sequence[msgspec.Raw], decode: DecodeJson, found: list[Found]
) -> list[Item]:
    """Append the entities of JSON items up to the first unusual one; return that one and the rest as dicts.

    Unusual items seldom come alone, and each of them would be parsed twice.
    """
    for place, item in enumerate(items):
        try:
            entity = decode(item)
        except Exception:  # noqa: BLE001 - another kind or version, or an attribute is unknown, missing or invalid
            return [_decode(each) for each in items[place:]]
        found += ((entity, item),)
    return []


def _form_of(schema: EntitySchema) -> str:
    """The form of an entity's primary key, for messages."""
    slots = ", ".join(
        str(slot.template) if isinstance(slot, StringSlot) else type_text(slot.field.annotation)
        for slot in schema.primary.slots
    )
    return f"that of {schema.tag} ({slots})"


def _fields_to_read(
    selected: frozenset[str] | None, schema: EntitySchema, key: BoundKey
) -> frozenset[str] | None:
    """The fields to decode from an item; None for all."""
    if selected is not None:
        return selected.intersection(schema.fields)
    return projected_fields(schema, key)


cached_selection: Callable[..., ItemSelection] = lru_cache(maxsize=512)(
    ItemSelection
)  # cached, because many reads differ only in their bounds
