"""The relations of a model's entities: which one a key belongs to, and which ones fields refer to.

A key that holds the whole key of another entity belongs to it: `Order` with `customer_id` and `number` is a child of
`Customer` with `customer_id`. Which field is which follows from a collection that both share (`children`), or else from
names: `customer_id` and `customer` in another entity are the key of a `Customer`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from isotone.model import Attr, EntitySchema, present_type

_COMMON: Final = frozenset(
    [
        "at",
        "code",
        "date",
        "day",
        "id",
        "key",
        "month",
        "name",
        "number",
        "slug",
        "sort",
        "time",
        "title",
        "type",
        "uuid",
        "year",
    ]
)
"""Names that say nothing about whose key they are part of."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Fields that hold the key of another entity: for each own field its name there."""

    target: EntitySchema
    fields: Mapping[str, str]
    is_shared: bool
    """Whether they name an item collection that both entities are in."""


@dataclass(frozen=True, slots=True)
class EntityRelations:
    """What an entity belongs to, and what else its fields refer to."""

    owner: Reference | None
    others: tuple[Reference, ...]


def relations_of(schemas: Iterable[EntitySchema]) -> dict[str, EntityRelations]:
    """The relations of each entity, by its tag; the schemas are those of entities, without their kinds.

    An entity always belongs to one with fewer fields in its key, or to an earlier one with as many, so nothing belongs to
    itself.
    """
    known = list(schemas)
    place = {schema.tag: (len(schema.identity), at) for at, schema in enumerate(known)}
    candidates = {
        schema.tag: [each for other in known if (each := _reference(schema, other)) is not None]
        for schema in known
    }
    links = {schema.tag for schema in known if _is_link(schema, candidates[schema.tag])}
    found = {}
    for schema in known:
        lower = [
            each for each in candidates[schema.tag] if place[each.target.tag] < place[schema.tag]
        ]
        owner = max(
            (each for each in lower if _may_own(each, schema)),
            key=lambda each: (len(each.fields), each.is_shared),
            default=None,
        )
        owned = frozenset[str]() if owner is None else owner.fields.keys()
        others = [
            each
            for each in candidates[schema.tag]
            if each is not owner
            and each.target.tag not in links
            and _may_refer(each, schema, owned, is_lower=each in lower)
        ]
        found[schema.tag] = EntityRelations(owner, _without_overlap(others, owned))
    return found


def _is_link(schema: EntitySchema, candidates: Iterable[Reference]) -> bool:
    """Whether a key is made of the keys of others, as that of a review by a customer of a product.

    The same fields in a third entity are a product and a customer, and no review.
    """
    parts = [each.fields.keys() for each in candidates if len(each.fields) < len(schema.identity)]
    return bool(parts) and schema.identity.keys() <= frozenset[str]().union(*parts)


def _may_own(reference: Reference, schema: EntitySchema) -> bool:
    fields = reference.fields.keys()
    return fields <= schema.identity.keys() and (
        len(fields) < len(schema.identity) or _is_one_to_one(reference)
    )


def _is_one_to_one(reference: Reference) -> bool:
    """Whether a key that is the whole key of another entity belongs to it, rather than being like it."""
    names = list(reference.fields)
    stem = _snake(reference.target.entity.__name__)
    return reference.is_shared or (len(names) == 1 and names[0].startswith(stem))


def _may_refer(
    reference: Reference, schema: EntitySchema, owned: AbstractSet[str], *, is_lower: bool
) -> bool:
    """Whether fields can refer to others: outside the key to any, in the key to those that need no key of this entity.

    A part that the owner decides is shared with those that are referred to: the tenant of a task and of its assignee.
    """
    own = reference.fields.keys() - owned
    if not own:
        return False
    if not own & schema.identity.keys():
        return True
    return is_lower and own == reference.fields.keys()


def _without_overlap(
    references: Iterable[Reference], owned: AbstractSet[str]
) -> tuple[Reference, ...]:
    """References that share no field besides those of the owner, those with the most fields first."""
    kept: list[Reference] = []
    for each in sorted(references, key=lambda each: -len(each.fields)):
        own = each.fields.keys() - owned
        if not any(own & other.fields.keys() for other in kept):
            kept.append(each)
    return tuple(kept)


def _reference(schema: EntitySchema, other: EntitySchema) -> Reference | None:
    """The fields of an entity that hold the whole key of another one."""
    if other is schema or not other.identity:
        return None
    for pairs in _shared_partitions(schema, other):
        named = {**pairs, **_named(schema, other, other.identity.keys() - pairs.values())}
        if other.identity.keys() == set(named.values()) and _of_same_types(schema, other, named):
            return Reference(other, named, is_shared=len(pairs) == len(named))
    fields = _named(schema, other, other.identity)
    if other.identity.keys() == set(fields.values()):
        return Reference(other, fields, is_shared=False)
    return None


def _shared_partitions(schema: EntitySchema, other: EntitySchema) -> Iterator[dict[str, str]]:
    """For each item collection that both entities are in, the fields that name it, by those of the first."""
    if schema.table is not other.table:
        return
    for own in schema.keys.values():
        for theirs in other.keys.values():
            if own.index == theirs.index and own.components and has_same_partitions(own, theirs):
                yield {
                    mine.field.name: its.field.name
                    for slot, their in zip(own.partition, theirs.partition, strict=True)
                    for mine, its in zip(slot.components, their.components, strict=True)
                }


def has_same_partitions(own: Any, theirs: Any) -> bool:
    """Whether two keys name the same item collections: the same literals around values of the same form."""
    return all(
        getattr(one, "template", None) == getattr(another, "template", None)
        and len(one.components) == len(another.components)
        for one, another in zip(own.partition, theirs.partition, strict=True)
    )


def _named(schema: EntitySchema, other: EntitySchema, wanted: Iterable[str]) -> dict[str, str]:
    """The fields that the names say are these fields of another entity's key."""
    stem = _snake(other.entity.__name__)
    is_part = other.identity.keys() < schema.identity.keys() and len(other.identity) > 1
    found = {}
    for name in wanted:
        names = [name] if name not in _COMMON or is_part else []
        names.append(f"{stem}_{name}")
        if len(other.identity) == 1 or name in ("id", "name", stem, f"{stem}_id"):
            names += [f"{stem}_id", stem]
        for own in names:
            if own in schema.fields and _is_alike(schema.fields[own], other.fields[name]):
                found[own] = name
                break
    return found


def _of_same_types(schema: EntitySchema, other: EntitySchema, fields: Mapping[str, str]) -> bool:
    return all(_is_alike(schema.fields[own], other.fields[its]) for own, its in fields.items())


def _is_alike(one: Attr[Any], other: Attr[Any]) -> bool:
    given = ("plain", "created_id")
    return (
        one.options.role in given
        and other.options.role in given
        and present_type(one.annotation) == present_type(other.annotation)
    )


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
