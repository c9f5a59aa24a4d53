"""Previous keys, before they were widened: `field(max=9_999_999, was=99_999)`.

While `was` is declared, items may have keys of either width. A previous key is the current key with the
previous maximum.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from isotone.codec import readable
from isotone.codec.readable import Measured
from isotone.errors import OutOfRange, UsageError
from isotone.model.declaring.keys import BoundKey, Component, Slot, StringSlot
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema


@lru_cache(maxsize=1024)
def previous_schema(schema: EntitySchema) -> EntitySchema | None:
    """The schema with its previous keys; None if none is being widened."""
    keys = {name: previous_bound_key(key) for name, key in schema.keys.items()}
    if not any(keys.values()):
        return None
    previous = copy.copy(schema)
    previous.keys = {name: keys[name] or key for name, key in schema.keys.items()}
    previous.primary = previous.keys[schema.primary.name]
    previous.indexes = [previous.keys[key.name] for key in schema.indexes]
    return previous


@lru_cache(maxsize=4096)
def previous_bound_key(key: BoundKey) -> BoundKey | None:
    """The previous form of a key; None if it is not being widened."""
    if not any(_is_widened(slot) for slot in key.slots):
        return None
    return replace(
        key,
        partition=tuple(map(_previous_slot, key.partition)),
        sort=tuple(map(_previous_slot, key.sort)),
    )


def previous_key(schema: EntitySchema, key: Item) -> Item | None:
    """The previous primary key under which an item may still be stored; None if there is none."""
    previous = previous_schema(schema)
    if previous is None or previous.primary is schema.primary:
        return None
    values: dict[str, Any] = {}
    for slot in schema.primary.slots:
        values.update(slot.parse(key[slot.attribute.name]))
    try:
        return previous.primary_key(values)
    except OutOfRange:
        return None  # out of the previous range


def fits(schema: EntitySchema, item: Item) -> bool:
    """Whether the item's primary key has the form of the entity's, also while that is widened."""
    previous = previous_schema(schema)
    return schema.primary.has_form_of(item) or (
        previous is not None and previous.primary.has_form_of(item)
    )


def check(schema: EntitySchema) -> None:
    """Refuse a `was` without effect; called at definition."""
    for field in schema.fields.values():
        was = field.options.was
        if was is None:
            continue
        if field.options.max is None or was >= field.options.max:
            raise UsageError(
                f"field {field.name!r} cannot be widened from {was} to {field.options.max}; "
                "`was` is the previous maximum, `max` the new, larger one"
            )


def _is_widened(slot: Slot) -> bool:
    return isinstance(slot, StringSlot) and any(
        component.field.options.was is not None for component in slot.components
    )


def _previous_slot(slot: Slot) -> Slot:
    if not isinstance(slot, StringSlot):
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
    was = component.field.options.was
    if was is None or not isinstance(codec, Measured):
        return codec
    # Each codec that measures is a dataclass with a maximum, which its protocol cannot express.
    narrower: readable.Codec[Any] = replace(codec, maximum=was)  # type: ignore[type-var]
    return narrower
