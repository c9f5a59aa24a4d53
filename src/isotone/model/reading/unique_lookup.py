"""`store.get(User, mail=…)`: finds an entity by a unique value, through the marker item that names its key.

    store.get(User, mail="ann@example.com")
    store.get(Seat, hall="A", number=7)          # number: field(unique=(hall,))

Both reads are consistent, but a write may happen between them. If the entity found does not have the value, the marker
is read again. If it is unchanged, no entity has the value; otherwise the new marker is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from isotone.errors import Contended, UsageError
from isotone.model.writing import uniqueness
from isotone.model.writing.write import read_item
from isotone.tables.retries import STALE_READS, RetryNeeded
from isotone.tables.steps import Steps
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.declaring.fields import Attr
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")


def unique_field(schema: EntitySchema, names: frozenset[str]) -> Attr[Any] | None:
    """The unique field that values of exactly these fields identify; None if there is none."""
    for field in schema.unique:
        if names == {field.name, *(each.name for each in field.unique_within)}:
            return field
    return None


def get_by_unique_value(
    entity: type[E],
    field: Attr[Any],
    values: Mapping[str, Any],
    entity_of: Callable[[type[E], Item | None], E | None],
) -> Steps[E | None]:
    """The entity with these values; None if there is none. Cost: two consistent reads."""
    schema = entity.__schema__
    text = uniqueness.claim(schema, field, values)
    if text is None:
        raise UsageError(
            f"{schema.tag}: many may have no {field.name!r}; give a value, or use a query with .filter(…)"
        )
    last: Item | None = None

    def attempt() -> Steps[E | None]:
        nonlocal last
        marker = yield from read_item(schema, uniqueness.marker_key(schema, text))
        owner = uniqueness.owner_in(marker)
        if owner is None or marker == last:
            return None
        found = entity_of(entity, (yield from read_item(schema, owner)))
        if found is not None and text in uniqueness.claims(schema, found.__dict__):
            return found
        last = marker
        raise RetryNeeded

    return (
        yield from STALE_READS.run(
            attempt,
            lambda attempts: Contended(
                f"the {schema.tag} with this {field.name} changed during each of {attempts} attempts to "
                "read it; try again later"
            ),
        )
    )
