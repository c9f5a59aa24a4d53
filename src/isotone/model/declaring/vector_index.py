"""`VectorIndex`: declares the vector field that a nearest-neighbour search uses, its partition, filters and metric.

The index belongs to the table, and several entities may share it. So the entity's tag is one of the filters, and a
search finds only entities of its own class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, get_args

from isotone import limits
from isotone.errors import UsageError
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.table import (
    KeyAttribute,
    KeyType,
    Projection,
    Table,
    VectorLayout,
    check_name,
)
from isotone.model.declaring.vectors import VectorAttr

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity
    from isotone.model.reading.nearest import VectorPattern

E = TypeVar("E", bound="Entity")
Metric = Literal["cosine", "euclidean", "dot_product"]
Role = Literal["HASH", "INLINE_FILTER"]

_KEY_TYPES: Final = get_args(KeyType)


class VectorIndex:
    """Finds the entities with the nearest vectors: `store.nearest(Doc.by_embedding(tenant="a"), vector)`.

    `partition` divides the index: a search names one value of this field, and reads only those entities. `filters` are
    further fields that a search may narrow down with `==`. `metric` is the metric for which the vectors were made.
    `projection` is "ALL", "KEYS_ONLY", or the additional fields that a search returns. `name` is the index's name in
    the table; the default is the class attribute's name. `one_kind` leaves the tag out of the index, for when no other
    entity has a vector in this attribute.
    """

    def __init__(
        self,
        field: Attr[Any],
        *,
        partition: Attr[Any] | None = None,
        filters: Iterable[Attr[Any]] = (),
        metric: Metric = "cosine",
        projection: Literal["ALL", "KEYS_ONLY"] | Sequence[Attr[Any]] = "ALL",
        name: str | None = None,
        one_kind: bool = False,
    ) -> None:
        self.field = field
        self.partition = partition
        self.filters: tuple[Attr[Any], ...] = (
            (filters,) if isinstance(filters, Attr) else tuple(filters)
        )
        self.metric = metric
        self.projection = projection
        self.one_kind = one_kind
        self.index = name
        self.name: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type[E]) -> VectorPattern[E]:
        schema = getattr(owner, "__schema__", None)
        if schema is None:
            raise AttributeError(
                f"{owner.__name__} has no table, so its index {self.name!r} finds nothing; use that of an "
                f"entity that is derived from it: class …({owner.__name__}, table=…)"
            )
        pattern: VectorPattern[E] = schema.vector_patterns[self.name]
        return pattern


class BoundVectorIndex(NamedTuple):
    """A vector index of one entity."""

    name: str
    index_name: str
    field: Any  # the VectorAttr; type checkers would take a descriptor for its value
    partition: Attr[Any] | None
    filters: tuple[Attr[Any], ...]
    layout: VectorLayout
    by_tag: bool

    @property
    def conditions(self) -> dict[str, Attr[Any]]:
        """The fields by which a search may be narrowed, by name."""
        fields = self.filters if self.partition is None else (self.partition, *self.filters)
        return {field.name: field for field in fields}


def bind_vector_indexes(
    schema: EntitySchema, declared: dict[str, VectorIndex]
) -> dict[str, BoundVectorIndex]:
    """The vector indexes of an entity; raises `UsageError` for an invalid declaration."""
    return {name: _bind(schema, name, each) for name, each in declared.items()}


def enter(schema: EntitySchema) -> None:
    """Declare the entity's vector indexes in its table."""
    for bound in schema.vector_indexes.values():
        schema.table.vectors[bound.index_name] = bound.layout


def _bind(schema: EntitySchema, name: str, declared: VectorIndex) -> BoundVectorIndex:
    table, what = schema.table, f"vector index {name!r}"
    field = declared.field
    if not isinstance(field, VectorAttr):
        raise UsageError(
            f"{what} is of {field!r}, which is not a vector; declare the field by vector(…)"
        )
    searched = declared.filters
    if declared.partition is not None:
        searched = (declared.partition, *searched)
    for each in (field, *searched):
        if not isinstance(each, Attr) or schema.fields.get(each.name) is not each:
            raise UsageError(f"{what}: {each!r} is not a field of the entity")
    if declared.metric not in get_args(Metric):
        raise UsageError(
            f"{what}: metric={declared.metric!r} is not known; use one of {', '.join(get_args(Metric))}"
        )
    search: list[tuple[KeyAttribute, Role]] = [
        (_key_attribute(what, each), "HASH" if each is declared.partition else "INLINE_FILTER")
        for each in searched
    ]
    if len({attribute.name for attribute, _ in search}) < len(search):
        raise UsageError(f"{what} has a field twice in its partition and filters; leave one out")
    if not declared.one_kind:
        search.append((KeyAttribute(table.tag), "INLINE_FILTER"))
    if sum(role == "INLINE_FILTER" for _, role in search) > limits.INLINE_FILTERS:
        raise UsageError(
            f"{what} has too many filters; with the tag, an index has at most {limits.INLINE_FILTERS}"
        )
    index = declared.index or name
    layout = VectorLayout(
        field.attribute,
        field.dimensions,
        declared.metric.upper(),
        tuple(search),
        _projection(schema, what, declared.projection),
    )
    _check_index(schema, what, index, layout)
    return BoundVectorIndex(
        name, index, field, declared.partition, declared.filters, layout, not declared.one_kind
    )


def _key_attribute(what: str, field: Attr[Any]) -> KeyAttribute:
    code: Any = field.wire.code
    if code not in _KEY_TYPES:
        raise UsageError(
            f"{what}: field {field.name!r} is stored as {code or 'several types'}, and a search is narrowed down "
            "by strings, numbers and bytes only"
        )
    return KeyAttribute(field.attribute, code)


def _projection(schema: EntitySchema, what: str, wanted: Any) -> Projection:
    if wanted in ("ALL", "KEYS_ONLY"):
        chosen: Projection = wanted
        return chosen
    fields = tuple(wanted) if not isinstance(wanted, str) else (wanted,)
    for each in fields:
        if not isinstance(each, Attr) or schema.fields.get(each.name) is not each:
            raise UsageError(
                f"{what} projects {each!r}, which is not a field of the entity; give 'ALL', 'KEYS_ONLY' or fields"
            )
    return tuple(each.attribute for each in fields)


def _check_index(schema: EntitySchema, what: str, index: str, layout: VectorLayout) -> None:
    """Refuse a name that is taken, or that another entity uses for a different index."""
    table: Table = schema.table
    check_name("an index", index)
    if index in table.indexes:
        raise UsageError(f"{what}: table {table.name!r} has another index {index!r}; give name=…")
    for other in tuple(table.entities.values()):
        if other.tag == schema.tag:
            continue  # the class is redefined, in a notebook or a reloaded module
        for bound in other.vector_indexes.values():
            if bound.index_name == index and bound.layout != layout:
                raise UsageError(
                    f"{what}: {other.tag} declares index {index!r} differently; give this one another name: name=…"
                )
    if any(layout.attribute == each.name for keys in _layouts(table) for each in keys):
        raise UsageError(f"{what}: attribute {layout.attribute!r} is a key; give the field name=…")


def _layouts(table: Table) -> Iterable[tuple[KeyAttribute, ...]]:
    return (keys.attributes for keys in (table.keys, *table.layouts.values()))
