"""Checks an update's changes before they are sent: allowed fields, overlapping paths, and values of the right type.

    changes = validated(schema, [Order.status.set("paid"), Order.total.add(5)])

A change of the wrong field, of the wrong type, or of a path that another change covers raises `UsageError`. Clearing a
field becomes its removal, or NULL if a missing attribute would mean the default. This module does not know how changes
are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from isotone.errors import UsageError
from isotone.model.declaring.changes import (
    AddToField,
    Change,
    Compute,
    Discard,
    Extend,
    RemoveField,
    SetDefault,
    SetField,
)
from isotone.model.declaring.conditions import place_in

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.declaring.fields import Attr

_NEITHER_NUMBER_NOR_SET: Final = (str, bytes, list, tuple)


def validated(
    schema: EntitySchema, changes: Sequence[Change], *, may_move: bool = False
) -> list[Change]:
    """The changes with validated values; raises `UsageError` for an invalid change.

    `may_move` allows changes of the primary key.
    """
    if not changes:
        raise UsageError(
            f"no change was given; write one such as {schema.tag}.{_changeable(schema)}.set(…)"
        )
    for change in changes:
        if type(change) not in _VALIDATE:
            raise UsageError(
                f"{change!r} is not a change; write one such as {schema.tag}.{_changeable(schema)}.set(…)"
            )
        _check_field(schema, change, may_move)
    if len(changes) > 1:
        _check_overlap(changes)
    return [_VALIDATE[type(change)](schema, change) for change in changes]


def _changeable(schema: EntitySchema) -> str:
    """A field that an update may change, for a message; if there is none, any field."""
    names = [
        name
        for name, field in schema.fields.items()
        if field.why_fixed is None and name not in schema.identity
    ]
    return (names or [*schema.fields])[0]


def _check_field(schema: EntitySchema, change: Change, may_move: bool) -> None:
    field = change.field
    if field.name not in schema.fields or schema.fields[field.name] is not field:
        raise UsageError(f"{field.name!r} is not a field of {schema.tag}")
    if field.why_fixed is not None and not (field.options.read_only and type(change) is SetDefault):
        raise UsageError(f"field {field.name!r} cannot be changed: {field.why_fixed}")
    if not may_move and field.name in schema.identity:
        raise UsageError(
            f"field {field.name!r} is part of the primary key of {schema.tag}, which cannot be changed "
            f"in place; store.move({schema.tag}, {schema.tag}.{field.name}.set(…), …) moves the item "
            "in one transaction"
        )


def _check_overlap(changes: Sequence[Change]) -> None:
    """Refuse two changes of the same or of overlapping paths, as DynamoDB does."""
    for place, one in enumerate(changes):
        for other in changes[:place]:
            shorter = min(len(one.path), len(other.path))
            if one.field is other.field and one.path[:shorter] == other.path[:shorter]:
                raise UsageError(
                    f"field {one.field.name!r} is changed twice in one update; give one change"
                )


def _set(schema: EntitySchema, change: SetField) -> Change:
    if change.path:
        return _set_inside(schema, change)
    value = schema.validator.one(change.field.name, change.value)
    if value is None or (not value and isinstance(value, set | frozenset)):
        return _removal(schema, change.field)
    return SetField(change.field, value)


def _set_inside(schema: EntitySchema, change: SetField) -> Change:
    place = change.field.place(change.path)
    name = place_in(change.field, change.path)
    if place.is_computed:
        raise UsageError(f"{name} cannot be set: it is computed from other fields, so set those")
    if place.annotation is Any:
        return change
    return SetField(change.field, schema.validator.inside(name, place, change.value), change.path)


def _compute(schema: EntitySchema, change: Compute) -> Change:
    for field in change.sources():
        if schema.fields.get(field.name) is not field:
            raise UsageError(
                f"{field.name!r} in the new value of {change.field.name!r} is not a field of {schema.tag}; the "
                "database computes with the fields of one item"
            )
    return change


def _set_default(schema: EntitySchema, change: SetDefault) -> Change:
    if change.path:
        return change
    return replace(change, value=schema.validator.one(change.field.name, change.value))


def _remove(schema: EntitySchema, change: RemoveField) -> Change:
    if not change.path:
        return _removal(schema, change.field)
    if change.field.place(change.path).is_required:
        name = place_in(change.field, change.path)
        raise UsageError(
            f"{name} cannot be removed: the object that contains it requires it; set it to another value"
        )
    return change


def _extend(schema: EntitySchema, change: Extend) -> Change:
    if isinstance(change.values, str | bytes | Mapping):
        raise UsageError(
            f"field {change.field.name!r}: append and prepend take a list, not {change.values!r}; "
            "write a list of one element"
        )
    field = change.field
    if change.path or field.wire.python is not list:
        return change
    place = field.place((0,))
    if place.annotation is Any:
        return change
    inside = schema.validator.inside
    values = [inside(f"{field.name}[{n}]", place, each) for n, each in enumerate(change.values)]
    return replace(change, values=values)


def _add_or_discard(schema: EntitySchema, change: AddToField | Discard) -> Change:
    if change.value == set():
        raise UsageError(
            f"field {change.field.name!r}: an empty set changes nothing; leave the change out"
        )
    if isinstance(change.value, _NEITHER_NUMBER_NOR_SET):
        raise UsageError(
            f"field {change.field.name!r}: add takes a number or a set, and discard takes a set, not "
            f"{change.value!r}; for one member of a set, write {{member}}; for a list, .append([…])"
        )
    if change.path:
        code = change.field.wire_at(change.path).code
        if code not in (None, "N", "SS", "NS", "BS"):
            name = place_in(change.field, change.path)
            raise UsageError(
                f"{name} is stored as {code}, and add takes a number or a set; write .set(…)"
            )
    return change


def _removal(schema: EntitySchema, field: Attr[Any]) -> Change:
    """The change that clears a field: its removal, or NULL if a missing attribute would mean the default."""
    absent = schema.absent(field)
    if absent == set() or (absent is None and schema.is_optional(field)):
        return RemoveField(field)
    if schema.is_optional(field):
        return SetField(field, None)
    raise UsageError(
        f"field {field.name!r} cannot be removed: every {schema.tag} has one; set it to another value"
    )


_VALIDATE: Final[Mapping[type[Change], Callable[[EntitySchema, Any], Change]]] = {
    SetField: _set,
    Compute: _compute,
    SetDefault: _set_default,
    RemoveField: _remove,
    Extend: _extend,
    AddToField: _add_or_discard,
    Discard: _add_or_discard,
}
