"""Kinds of an entity (subclasses): classes that extend an entity and share its table and keys.

    class Event(Entity, table=site):
        page: Attr[str] = field()
        at: Attr[datetime] = field()

        primary = Key("PAGE", page).sort("EVENT", at)

    class Click(Event):
        button: Attr[int] = field()

Each kind has its own tag. Keys, unique fields, expiry and versions must be the same for all kinds, so they are declared
in the base. A kind may add fields, computed fields and indexes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotone.errors import UsageError
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.keys import Key

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity


def check(entity: type[Entity], tag: str, version: int | None, base: EntitySchema) -> None:
    """Refuse a subclass that changes what its base decides, such as the table or a key; raises `UsageError`."""
    name = base.entity.__name__
    others = [each for each in entity.__bases__ if hasattr(each, "__schema__")]
    if len(others) > 1:
        raise UsageError(
            f"it extends {' and '.join(each.__name__ for each in others)}, but can be a kind of only one entity; "
            "extend one of them"
        )
    if tag in base.lineage:
        raise UsageError(f"{name} already has the tag {tag!r}; give this kind another one: tag=…")
    if version is not None:
        raise UsageError(
            f"it is a kind of {name} and has the version of {name}; declare version= there"
        )
    for member in _added(entity, base).values():
        _check_member(member, name, base)
    for key in base.indexes:
        projection = base.table.indexes[str(key.index)].projection
        if projection != "ALL" and base.table.tag not in projection:
            raise UsageError(
                f"index {key.index!r} does not project {base.table.tag!r}, which tells the kinds of {name} apart; "
                f"project it: Global(…, projection=({base.table.tag!r}, …))"
            )


def _added(entity: type, base: EntitySchema) -> dict[str, Any]:
    """The attributes that a class adds to its base."""
    inherited = base.entity.__mro__
    added: dict[str, Any] = {}
    for each in reversed(entity.__mro__):
        if each not in inherited:
            added |= vars(each)
    return added


def _check_member(member: Any, name: str, base: EntitySchema) -> None:
    if isinstance(member, Key):
        if member.name in base.keys or member.index is None:
            raise UsageError(
                f"key {member.name!r}: the class is a kind of {name} and has the keys of {name}; leave this one out, declare an "
                "Index(…) with another name, or give the class its own table="
            )
        if any(member.index == key.index for key in base.indexes):
            raise UsageError(
                f"key {member.name!r}: {name} has an entry in index {member.index!r} already; use another index"
            )
    if not isinstance(member, Attr):
        return
    if member.name in base.fields:
        raise UsageError(f"{name} already has a field {member.name!r}; give this one another name")
    role = member.options.role
    if role not in ("plain", "computed"):
        raise UsageError(
            f"field {member.name!r}: {role}() applies to all kinds of {name}, so declare it there"
        )
    if member.options.unique:
        raise UsageError(
            f"field {member.name!r} can only be unique among all kinds of {name}, so declare it there"
        )


def enter(schema: EntitySchema) -> None:
    """Register a schema with the entities that it is a kind of, and with the kinds that already extend it."""
    entities = tuple(schema.table.entities.values())
    for one in entities:
        for other in entities:
            if one.tag != other.tag and one.tag in other.lineage:
                schema.table.has_kinds = one.has_kinds = True
                one.has_special_kinds |= _is_special(other, one)
                for name in ("stored", "stored_node"):  # caches that name the kinds
                    one.__dict__.pop(name, None)


def _is_special(kind: EntitySchema, base: EntitySchema) -> bool:
    """Whether a kind has indexes or computed fields that its base does not have."""
    return len(kind.indexes) > len(base.indexes) or len(kind.computations) > len(base.computations)
