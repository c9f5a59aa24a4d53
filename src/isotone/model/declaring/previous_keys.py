"""Changing the keys of existing items: previous keys and tags (`was`, `was_tag`) that items may still have.

    class Order(Entity, table=shop, was_tag="Purchase"):
        customer: Attr[str] = field()
        number: Attr[int] = field(max=9_999_999, was=99_999)

        primary = Key("ORDERS", customer).sort("ORDER", number).was(
            Key("CUSTOMER", customer).sort("ORDER", number)
        )

`was` makes a second schema of the entity, `schema.previous`: the same fields with the previous keys. Reads look under
both keys, a write first moves the item to the current key, and `store.rewrite` moves all items.

A previous primary key contains the same fields, so each key has exactly one previous form. The two forms must never be
equal for different values; otherwise an item could overwrite another one.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isotone.codec import readable
from isotone.codec.readable import Measured
from isotone.errors import OutOfRange, UsageError
from isotone.model.declaring.keys import (
    BoundKey,
    Component,
    Key,
    NativeSlot,
    Slot,
    StringSlot,
    bind_key,
    collision,
)
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema


def bind(schema: EntitySchema, declared: Mapping[str, Key], was_tag: str | None) -> None:
    """Give a schema its previous schema, if the class declares one; raises `UsageError`."""
    _check_fields(schema)
    keys = _previous_keys(schema, declared)
    if was_tag is not None:
        _check_tag(schema, was_tag)
    elif all(keys[name] is key for name, key in schema.keys.items()):
        return
    previous = copy.copy(schema)  # copied before anything that depends on its keys is cached
    previous.keys = keys
    previous.primary = keys[schema.primary.name]
    previous.indexes = [keys[key.name] for key in schema.indexes]
    if was_tag is not None:
        previous.tag = was_tag
        previous.marks = {**schema.marks, schema.table.tag: {"S": was_tag}}
    if previous.primary is not schema.primary:
        _check_primary(schema.primary, previous.primary)
    for key, before in zip(schema.indexes, previous.indexes, strict=True):
        _check_index(key, before)
    schema.previous = previous


def previous_form(schema: EntitySchema, key: BoundKey) -> BoundKey | None:
    """The previous form of a key; None if it has none."""
    previous = schema.previous
    if previous is None or key.name not in previous.keys:
        return None
    before = previous.keys[key.name]
    return None if before is key else before


def previous_key(schema: EntitySchema, key: Item) -> Item | None:
    """The previous primary key under which an item may still be stored; None if there is none."""
    previous = schema.previous
    if previous is None or previous.primary is schema.primary:
        return None
    before = converted(key, schema.primary, previous.primary)
    return None if before == key else before


def converted(item: Item, source: BoundKey, target: BoundKey) -> Item | None:
    """A key's attributes, converted to another form; None if that form has no room for the values.

    Raises `MalformedKey` if the item's attributes do not have the form of the source.
    """
    values: dict[str, Any] = {}
    for slot in source.slots:
        values.update(slot.parse(item[slot.attribute.name]))
    try:
        return target.encode(values)
    except OutOfRange:
        return None


def fits(schema: EntitySchema, item: Item) -> bool:
    """Whether the item's primary key has the entity's form, current or previous."""
    return schema.primary.has_form_of(item) or (
        schema.previous is not None and schema.previous.primary.has_form_of(item)
    )


# The previous keys


def _previous_keys(schema: EntitySchema, declared: Mapping[str, Key]) -> dict[str, BoundKey]:
    """Each key in its previous form, or unchanged if it has none."""
    bound = {name: _declared(schema, key) for name, key in declared.items()}
    primary = bound[schema.primary.name]
    # An index may share attributes with the primary key, such as the partition of a local index.
    shared = {} if primary is None else {slot.attribute.name: slot for slot in primary.slots}
    return {
        name: _previous(bound[name] or key, {} if key is schema.primary else shared)
        for name, key in schema.keys.items()
    }


def _declared(schema: EntitySchema, key: Key) -> BoundKey | None:
    """The previous key that `Key.was` declares."""
    if not key.previous:
        return None
    (before,) = key.previous
    if before.index not in (None, key.index):
        raise UsageError(
            f"key {key.name!r} is on index {key.index!r} and was on {before.index!r}; declare both indexes "
            "until all items are in the new one"
        )
    before = copy.copy(before)
    before.index, before.name = key.index, key.name
    before.when = key.when if before.when is None else before.when
    if repr(before.when) != repr(key.when):
        raise UsageError(
            f"key {key.name!r} had another condition when=, so entries are missing that no read could find; leave "
            "was(…) out, and run store.rewrite before the index is read"
        )
    return bind_key(before, schema.table, schema.tag)


def _previous(key: BoundKey, shared: Mapping[str, Slot]) -> BoundKey:
    """A key with the previous primary key's attributes, and with previous widths."""
    partition = tuple(_previous_slot(shared.get(s.attribute.name, s)) for s in key.partition)
    sort = tuple(_previous_slot(shared.get(slot.attribute.name, slot)) for slot in key.sort)
    if partition == key.partition and sort == key.sort:
        return key
    return replace(key, partition=partition, sort=sort)


def _previous_slot(slot: Slot) -> Slot:
    if not isinstance(slot, StringSlot) or not any(map(_is_widened, slot.components)):
        return slot
    components = iter(slot.components)
    template = readable.Template(
        tuple(
            part if isinstance(part, str) else _previous_codec(part, next(components))
            for part in slot.template.parts
        ),
        slot.template.separator,
    )
    return slot.with_template(template)


def _previous_codec(codec: readable.Codec[Any], component: Component) -> readable.Codec[Any]:
    if not _is_widened(component) or not isinstance(codec, Measured):
        return codec
    narrower: readable.Codec[Any] = replace(  # type: ignore[type-var] # each that measures is a dataclass
        codec, maximum=component.field.options.was
    )
    return narrower


def _is_widened(component: Component) -> bool:
    return component.field.options.was is not None


# Checks, at definition


def _check_fields(schema: EntitySchema) -> None:
    """Refuse a `was` on a field where it has no effect."""
    for field in schema.fields.values():
        was = field.options.was
        if was is None:
            continue
        if field.options.max is None or was >= field.options.max:
            raise UsageError(
                f"field {field.name!r} cannot be widened from {was} to {field.options.max}; "
                "`was` is the previous maximum, `max` the new, larger one"
            )


def _check_tag(schema: EntitySchema, was_tag: str) -> None:
    if schema.unique:
        raise UsageError(
            f"was_tag={was_tag!r}: the markers of unique values, of field {schema.unique[0].name!r}, have the tag in "
            f"their keys; keep the stored tag: tag={was_tag!r}"
        )
    if was_tag == schema.tag:
        raise UsageError(f"was_tag={was_tag!r} is the present tag; give the previous one")
    if was_tag in schema.table.entities:
        raise UsageError(
            f"was_tag={was_tag!r} is the tag of another entity of {schema.table!r}, whose items it would take"
        )


def _check_primary(key: BoundKey, before: BoundKey) -> None:
    """Check that each value has one key in either form, and that no key stands for two values."""
    if key.component_names != before.component_names:
        others = ", ".join(sorted(key.component_names ^ before.component_names))
        raise UsageError(
            f"key {key.name!r} and the key that it was are not made of the same fields ({others}), so the one does "
            "not tell the other; leave was(…) out, and run store.rewrite while no program uses the entity"
        )
    reason = collision(key, before)
    if reason is not None and not all(map(_coincide, key.slots, before.slots)):
        raise UsageError(
            f"key {key.name!r} of one item could equal the previous key of another one: {reason}; begin the new "
            "key with another literal"
        )


def _check_index(key: BoundKey, before: BoundKey) -> None:
    """Check that each item with an entry under the current key had one under the previous key."""
    parts = [component.field for component in before.components]
    optional = [f for f in parts if f.wire.optional and f.name not in key.component_names]
    if optional:
        raise UsageError(
            f"key {key.name!r} had no entries without {optional[0].name}, which no read could find; leave was(…) out, "
            "and run store.rewrite before the index is read"
        )


def _coincide(slot: Slot, before: Slot) -> bool:
    """Whether two slots write the same text only for the same values."""
    if isinstance(slot, NativeSlot) and isinstance(before, NativeSlot):
        return slot.field is before.field and slot.form == before.form
    if isinstance(slot, NativeSlot) or isinstance(before, NativeSlot):
        return slot.components[0].field is before.components[0].field
    ours = [component.field.name for component in slot.components]
    theirs = [component.field.name for component in before.components]
    return (
        ours == theirs
        and slot.template.literals == before.template.literals
        and all(map(_is_same_number, slot.template.codecs, before.template.codecs))
    )


_DECIMAL = (readable.Natural, readable.Unpadded)


def _is_same_number(codec: readable.Codec[Any], before: readable.Codec[Any]) -> bool:
    if codec == before:
        return True
    both_decimal = isinstance(codec, _DECIMAL) and isinstance(before, _DECIMAL)
    return both_decimal and codec.ascending and before.ascending
