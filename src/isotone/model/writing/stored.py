"""What is stored where a write goes: the conditions on it, and what to say where they do not hold.

An item that has expired and waits to be removed counts as none: DynamoDB may take two days to do it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from isotone.errors import ConditionFailed, UsageError, VersionConflict, WriteRefused
from isotone.expressions import nodes
from isotone.model import rendering
from isotone.model.declaring.conditions import Condition
from isotone.model.rendering import absent, equal, present
from isotone.model.writing.writing import Write, identify
from isotone.values.types import AttributeValue, Item

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema
    from isotone.model.entity import Entity


def insisted(schema: EntitySchema, when: Condition | None) -> nodes.ConditionNode | None:
    """The caller's own condition; raises `UsageError` where it is about another entity."""
    if when is not None and not isinstance(when, Condition):
        field = next(iter(schema.fields))
        raise UsageError(
            f"when takes a condition on fields of the class, such as {schema.tag}.{field} == …, not {when!r}"
        )
    for field in () if when is None else when.fields():
        if schema.fields.get(field.name) is not field:
            raise UsageError(
                f"{field.name!r} in the condition is not a field of {schema.tag}; "
                "for a condition on another entity use check() of a transaction"
            )
    return None if when is None else when.node()


def standing(schema: EntitySchema, now: datetime) -> nodes.ConditionNode:
    """There is an item, and it has not expired."""
    here = present(schema.table.keys.attributes[0].name)
    alive = unexpired(schema, now)
    return here if alive is None else nodes.And((here, alive))


def unexpired(schema: EntitySchema, now: datetime) -> nodes.ConditionNode | None:
    """Whatever is there has not expired; None where nothing can."""
    expiry = schema.by_role.get("expires")
    if expiry is None:
        return None
    return rendering.unexpired(expiry.attribute, now.timestamp())


def vacant(schema: EntitySchema, now: datetime) -> nodes.ConditionNode:
    """There is no item, or only one that has expired and waits to be removed."""
    return _or_expired(schema, absent(schema.table.keys.attributes[0].name), now)


def expected_version(
    schema: EntitySchema, values: Mapping[str, Any], now: datetime
) -> nodes.ConditionNode | None:
    """The stored version is the one that was read; 0 says that there was none."""
    field = schema.by_role.get("version")
    if field is None:
        return None
    read = read_version(schema, values)
    return _or_expired(schema, absent(field.attribute), now) if read is None else read


def read_version(schema: EntitySchema, values: Mapping[str, Any]) -> nodes.ConditionNode | None:
    """The stored version is the one that was read; None where none was."""
    field = schema.by_role.get("version")
    if field is None or not values[field.name]:
        return None
    return equal(field.attribute, field.encode(values[field.name]))


def as_read(entity: Entity) -> Mapping[str, Any]:
    """The values of an entity that was read with its version; none where it was not."""
    values = entity.__dict__
    return {} if read_version(entity.__schema__, values) is None else values


def is_gone(schema: EntitySchema, item: Item | None, now: datetime) -> bool:
    """Whether there is no item, or one that has expired and waits to be removed."""
    if item is None:
        return True
    expiry = schema.by_role.get("expires")
    value = None if expiry is None else item.get(expiry.attribute)
    return value is not None and "N" in value and float(value["N"]) <= now.timestamp()


def _or_expired(
    schema: EntitySchema, condition: nodes.ConditionNode, now: datetime
) -> nodes.ConditionNode:
    expiry = schema.by_role.get("expires")
    if expiry is None:
        return condition
    return nodes.Or((condition, rendering.expired(expiry.attribute, now.timestamp())))


def refusal(write: Write[Any], item: Item | None, values: Mapping[str, Any]) -> WriteRefused | None:
    """Why the item stood in the way; None where only what the write was planned from has changed."""
    schema = write.schema
    version = schema.by_role.get("version")
    if version is not None and values.get(version.name):
        stored = (item or {}).get(version.attribute)
        if stored != version.encode(values[version.name]):
            return VersionConflict(
                f"{described(schema, write.key)} was read as version {values[version.name]}, "
                f"but is now {_version_of(item, stored)}",
                entity_of(schema, item),
            )
    elif version is not None and version.name in values and version.attribute in (item or {}):
        return VersionConflict(
            f"{described(schema, write.key)} is new here, but stored already",
            entity_of(schema, item),
        )
    if write.is_seen and item != write.current:
        return None
    current = entity_of(schema, item)
    if write.otherwise is not None:
        return write.otherwise(current)
    when: Condition | None = getattr(write, "when", None)
    return ConditionFailed(
        f"the condition on {described(schema, write.key)} does not hold"
        + ("" if when is None else f": {when!r}")
        + ("; there is no such item" if current is None else ""),
        current,
    )


def _version_of(item: Item | None, stored: AttributeValue | None) -> str:
    if item is None:
        return "gone"
    return "without a version" if stored is None else f"version {stored['N']}"


# Targets


def schema_of(target: type[Entity] | Entity) -> EntitySchema:
    """The schema of an entity or its class; raises `UsageError` for anything else."""
    schema: EntitySchema | None = getattr(target, "__schema__", None)
    if schema is None:
        raise UsageError(
            f"{target!r} is no entity of a table; declare one: class Order(Entity, table=…)"
        )
    return schema


def schema_of_one(entity: Entity) -> EntitySchema:
    """The schema of an entity; raises `UsageError` for its class, too."""
    schema = schema_of(entity)
    if isinstance(entity, type):
        raise UsageError(f"{schema.tag} is a class; give an entity of it: {schema.tag}(…)")
    return schema


def class_of(call: str, target: Any, values: Sequence[Any] = ()) -> None:
    """Raise `UsageError` where `get` is not given a class and the fields of its key by name."""
    schema = schema_of(target)
    if isinstance(target, type) and not values:
        return
    names = schema.identity
    known = values or [getattr(target, "__dict__", {}).get(name, ...) for name in names]
    fields = [
        f"{name}={'…' if each is ... else repr(each)}"
        for name, each in zip_longest(names, known, fillvalue=...)
        if name is not ...
    ]
    raise UsageError(
        f"{call} takes a class and its key's fields by name; write "
        f"{call}({', '.join([schema.entity.__name__, *fields])})"
    )


def key_of(target: type[Entity] | Entity, key: Mapping[str, Any]) -> Item:
    """The primary key that is meant: that of an entity, or of a class and the key's fields."""
    schema = schema_of(target)
    if isinstance(target, type):
        return identify(schema, key)
    if key:
        raise UsageError(
            f"an entity has its own key; give {schema.tag} itself, or the class and a key"
        )
    return schema.primary_key(target.__dict__)


def entity_of(
    schema: EntitySchema, item: Item | None, *, require_all_fields: bool = False
) -> Entity | None:
    """The entity that an item is, of whatever kind; None without an item."""
    if item is None:
        return None
    tag = item.get(schema.table.tag, {}).get("S", schema.tag)
    return schema.table.entities.get(tag, schema).from_item(
        item, require_all_fields=require_all_fields
    )


def values_of(schema: EntitySchema, item: Item | None) -> dict[str, Any] | None:
    """The values of an item's fields."""
    return None if item is None else schema.from_item(item).__dict__


def values_held(schema: EntitySchema, item: Item | None, now: datetime) -> dict[str, Any] | None:
    """The values of an item that others cannot take; one that has expired has given up all of its own."""
    return None if is_gone(schema, item, now) else values_of(schema, item)


def described(schema: EntitySchema, key: Item) -> str:
    """An item, for a message."""
    parts = ", ".join(str(next(iter(value.values()))) for value in key.values())
    return f"{schema.tag} {parts}"
