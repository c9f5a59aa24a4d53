"""Two entities of one table with clashing keys: refuses equal keys, and reserves partitions made of literals.

If two entities could have the same primary key, one would overwrite the other. Literals keep them apart, and this is
checked when a class is defined. A partition key that begins with a field has no literal to keep it apart:

    Key(raw(store)).sort(written(at, "%Y-%m-%d %H:%M:%S"))      one partition for each store
    Key("LEADERBOARD").sort(raw(store))                         one partition for all stores

A store named LEADERBOARD would write into the other entity's partition. So a partition made of literals alone is
*reserved* for the entities that declare it, and a key whose value leads into it is refused.
"""

from __future__ import annotations

from itertools import product

from isotone.errors import MalformedKey, UsageError
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.keys import BoundKey, StringSlot, collision
from isotone.model.declaring.table import Table


def check(schema: EntitySchema) -> None:
    """Refuse an entity whose primary key could equal that of another entity in its table."""
    for tag, other in tuple(schema.table.entities.items()):
        # Other threads define entities meanwhile.
        if tag == schema.tag:
            continue  # the class is redefined, in a notebook or a reloaded module
        if _is_same_family(schema, other):
            continue
        for one, its in product(_primary_keys(schema), _primary_keys(other)):
            if _is_kept_apart(one, other, its) or _is_kept_apart(its, schema, one):
                continue
            reason = collision(one, its)
            if reason is not None:
                raise UsageError(
                    f"its primary key could equal one of {tag}: {reason}; give one of them another literal "
                    "in the same place"
                )
        _check_overloading(schema, other)


def reserve_partitions(table: Table) -> None:
    """Note for each entity of a table which partitions the other entities have reserved so far."""
    schemas = tuple(table.entities.values())
    owned = [(schema, _reserved_by(schema.primary)) for schema in schemas]
    for schema in schemas:
        key = schema.primary
        reserved = {
            text: owner.tag
            for owner, text in owned
            if text is not None and not _is_same_family(schema, owner) and _leads_into(key, text)
        }
        for text in key.reserved.keys() - reserved.keys():
            del key.reserved[text]
        key.reserved.update(reserved)


def _is_same_family(schema: EntitySchema, other: EntitySchema) -> bool:
    """Whether both are kinds of one entity, and therefore share its keys."""
    return schema.root.tag == other.root.tag


def _reserved_by(key: BoundKey) -> str | None:
    """The partition of a key whose partition key is made of literals alone."""
    slot = key.partition[0]
    if isinstance(slot, StringSlot) and not slot.components:
        return slot.template.render(())
    return None


def _leads_into(key: BoundKey, partition: str) -> bool:
    """Whether a key whose partition begins with a field could lead into this partition."""
    slot = key.partition[0]
    if isinstance(slot, StringSlot) and (not slot.components or slot.template.literals[0]):
        return False
    if slot.attribute.type != "S":
        return False
    try:
        slot.parse({"S": partition})
    except MalformedKey:
        return False
    return True


def _is_kept_apart(owner: BoundKey, other: EntitySchema, key: BoundKey) -> bool:
    """Whether a reserved partition keeps another entity's key apart from its owner's.

    Previous keys with a partition of their own are not checked against values.
    """
    partition = _reserved_by(owner)
    is_checked = key.partition[0] is other.primary.partition[0]
    return partition is not None and is_checked and _leads_into(key, partition)


def _check_overloading(schema: EntitySchema, other: EntitySchema) -> None:
    """Refuse a second entity in an index that was declared for one (`one_kind`)."""
    taken = {key.index for key in other.indexes}
    for key in schema.indexes:
        if key.index in taken and schema.table.indexes[str(key.index)].one_kind:
            raise UsageError(
                f"index {key.index!r} is declared with one_kind=True and already has {other.tag}; "
                "declare another index"
            )


def _primary_keys(schema: EntitySchema) -> list[BoundKey]:
    """The primary key of an entity, and the previous one."""
    keys = [schema.primary]
    if schema.previous is not None and schema.previous.primary is not schema.primary:
        keys.append(schema.previous.primary)
    return keys
