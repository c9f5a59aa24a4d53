"""Keys as they were before they were widened: `field(max=9_999_999, was=99_999)`.

While `was` is declared, items may lie under keys of either width. A former key is the present one with
the former maximum in its place.
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
def former_of(schema: EntitySchema) -> EntitySchema | None:
    """The schema with its keys as they were; None where none is being widened."""
    keys = {name: former_form(key) for name, key in schema.keys.items()}
    if not any(keys.values()):
        return None
    former = copy.copy(schema)
    former.keys = {name: keys[name] or key for name, key in schema.keys.items()}
    former.primary = former.keys[schema.primary.name]
    former.indexes = [former.keys[key.name] for key in schema.indexes]
    return former


@lru_cache(maxsize=4096)
def former_form(key: BoundKey) -> BoundKey | None:
    """A key as it was; None where it is not being widened."""
    if not any(_is_widened(slot) for slot in key.slots):
        return None
    return replace(
        key,
        partition=tuple(map(_former_slot, key.partition)),
        sort=tuple(map(_former_slot, key.sort)),
    )


def former_key(schema: EntitySchema, key: Item) -> Item | None:
    """The primary key under which an item may still lie; None where there is no other than its own."""
    former = former_of(schema)
    if former is None or former.primary is schema.primary:
        return None
    values: dict[str, Any] = {}
    for slot in schema.primary.slots:
        values.update(slot.parse(key[slot.attribute.name]))
    try:
        return former.primary_key(values)
    except OutOfRange:
        return None  # there was no room for it before


def check(schema: EntitySchema) -> None:
    """Refuse a `was` that says nothing; called at definition."""
    for field in schema.fields.values():
        was = field.options.was
        if was is None:
            continue
        if field.options.max is None or was >= field.options.max:
            raise UsageError(
                f"field {field.name!r} cannot be widened from {was} to {field.options.max}; "
                "`was` is the former maximum, `max` the new, larger one"
            )


def _is_widened(slot: Slot) -> bool:
    return isinstance(slot, StringSlot) and any(
        component.field.options.was is not None for component in slot.components
    )


def _former_slot(slot: Slot) -> Slot:
    if not isinstance(slot, StringSlot):
        return slot
    components = iter(slot.components)
    template = readable.Template(
        tuple(
            part if isinstance(part, str) else _former_codec(part, next(components))
            for part in slot.template.parts
        ),
        slot.template.separator,
    )
    return slot.with_template(template)


def _former_codec(codec: readable.Codec[Any], component: Component) -> readable.Codec[Any]:
    was = component.field.options.was
    if was is None or not isinstance(codec, Measured):
        return codec
    # Each codec that measures is a dataclass with a maximum, which its protocol cannot say.
    narrower: readable.Codec[Any] = replace(codec, maximum=was)  # type: ignore[type-var]
    return narrower
