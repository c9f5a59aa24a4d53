"""Which changes an update may make, and what they amount to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from isotone.errors import UsageError
from isotone.model.declaring.changes import Add, Change, Discard, Extend, Remove, Set, SetDefault

if TYPE_CHECKING:
    from isotone.model.declaring.fields import Attr
    from isotone.model.declaring.schema import EntitySchema

_OURS: Final = {
    "computed": "it is computed from the others",
    "version": "each write raises it by one",
    "created": "it is set when the entity is first written",
    "updated": "it is set by each write",
}
_NEITHER_NUMBER_NOR_SET: Final = (str, bytes, list, tuple)


def allowed(
    schema: EntitySchema, changes: Sequence[Change], *, may_move: bool = False
) -> list[Change]:
    """The changes with their values validated; raises `UsageError` for one that cannot be made.

    `may_move` allows changes of the primary key.
    """
    if not changes:
        raise UsageError(
            f"no change was given; write one such as {schema.tag}.{next(iter(schema.fields))}.set(…)"
        )
    for change in changes:
        if not isinstance(change, Change):
            field = next(iter(schema.fields))
            raise UsageError(
                f"{change!r} is no change; write one such as {schema.tag}.{field}.set(…)"
            )
        _check_field(schema, change.field, may_move)
    _check_together(changes)
    return [_VALIDATED[type(change)](schema, change) for change in changes]


def _check_field(schema: EntitySchema, field: Attr[Any], may_move: bool) -> None:
    if schema.fields.get(field.name) is not field:
        raise UsageError(f"{field.name!r} is not a field of {schema.tag}")
    reason = _OURS.get(field.options.role)
    if reason is not None:
        raise UsageError(f"field {field.name!r} cannot be changed: {reason}")
    if not may_move and field.name in schema.identity:
        raise UsageError(
            f"field {field.name!r} is part of the primary key of {schema.tag}, which cannot be changed "
            f"in place; store.move({schema.tag}, {schema.tag}.{field.name}.set(…), …) moves the item "
            "in one transaction"
        )


def _check_together(changes: Sequence[Change]) -> None:
    """DynamoDB refuses to change a place twice, or something inside of it."""
    for place, one in enumerate(changes):
        for other in changes[:place]:
            shorter = min(len(one.path), len(other.path))
            if one.field is other.field and one.path[:shorter] == other.path[:shorter]:
                raise UsageError(f"field {one.field.name!r} is changed twice in one update")


def _set(schema: EntitySchema, change: Set) -> Change:
    if change.path:
        return change
    value = schema.validator.one(change.field.name, change.value)
    if value is None or value == set():
        return _removal(schema, change.field)
    return replace(change, value=value)


def _set_default(schema: EntitySchema, change: SetDefault) -> Change:
    if change.path:
        return change
    return replace(change, value=schema.validator.one(change.field.name, change.value))


def _remove(schema: EntitySchema, change: Remove) -> Change:
    return change if change.path else _removal(schema, change.field)


def _extend(schema: EntitySchema, change: Extend) -> Change:
    if isinstance(change.values, str | bytes | Mapping):
        raise UsageError(
            f"field {change.field.name!r}: append and prepend take a list, not {change.values!r}; "
            "write a list of one element"
        )
    return change


def _take_members(schema: EntitySchema, change: Add | Discard) -> Change:
    if change.value == set():
        raise UsageError(
            f"field {change.field.name!r}: an empty set changes nothing; leave the change out"
        )
    if isinstance(change.value, _NEITHER_NUMBER_NOR_SET):
        raise UsageError(
            f"field {change.field.name!r}: {change.value!r} is no number and no set, which are all that "
            "add takes (and discard a set): write a set of one member, .append([…]) for a list, or "
            ".set(…)"
        )
    return change


def _removal(schema: EntitySchema, field: Attr[Any]) -> Change:
    """Nothing in place of a value: no attribute, or NULL where absence would mean the default."""
    absent = schema.absent(field)
    if absent == set() or (absent is None and schema.is_optional(field)):
        return Remove(field)
    if schema.is_optional(field):
        return Set(field, None)
    raise UsageError(
        f"field {field.name!r} cannot be removed: every {schema.tag} has one; set it to another value"
    )


_VALIDATED: Final[Mapping[type[Change], Callable[[EntitySchema, Any], Change]]] = {
    Set: _set,
    SetDefault: _set_default,
    Remove: _remove,
    Extend: _extend,
    Add: _take_members,
    Discard: _take_members,
}
