"""`store.nearest`: searches a vector index, and returns the nearest entities with their scores.

Doc.by_embedding(tenant="a", language="en")                   # by name
Doc.by_embedding.where(Doc.tenant == "a")                     # or by conditions

A search supports only equality with one value per field, joined by AND. It finds items of one tag, so an entity with
kinds needs one search for each kind; the results are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, SupportsFloat, TypeVar

from isotone import limits
from isotone.errors import UnknownOperationException, Unsupported, UsageError
from isotone.model.declaring.conditions import Condition, ValueComparison
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.table import VERSION_ATTRIBUTE
from isotone.model.declaring.vector_index import BoundVectorIndex
from isotone.model.expiry import is_missing
from isotone.model.reading.reader import Reader
from isotone.tables.batch_reads import fetch
from isotone.tables.steps import Call, Steps
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")
E_co = TypeVar("E_co", bound="Entity", covariant=True)


class Neighbor(NamedTuple, Generic[E]):
    """An entity that a search found, and its score."""

    entity: E
    score: float


class VectorPattern(Generic[E]):
    """A vector index of an entity, as `Doc.by_embedding` on the class. Call it to make a search."""

    __slots__ = ("bound", "entity", "schema")

    def __init__(self, entity: type[E], schema: EntitySchema, bound: BoundVectorIndex) -> None:
        self.entity: type[E] = entity
        self.schema: EntitySchema = schema
        self.bound: BoundVectorIndex = bound

    def __call__(self, **values: Any) -> VectorSearch[E]:
        """The search among entities that have these values in the partition and filter fields.

        Raises `UsageError` for other fields, or if the partition's value is missing.
        """
        fields = self.bound.conditions
        for name in values:
            if name not in fields:
                raise self._not_searchable(name)
        return self._search({name: (fields[name], value) for name, value in values.items()})

    def where(self, *conditions: Condition) -> VectorSearch[E]:
        """The search among entities that satisfy the conditions: `==` on partition and filter fields.

        Raises `UsageError` for any other condition.
        """
        values: dict[str, tuple[Attr[Any], Any]] = {}
        for condition in conditions:
            if (
                not isinstance(condition, ValueComparison)
                or condition.operator != "="
                or condition.path
            ):
                raise UsageError(
                    f"{self} is searched by == alone, and {condition!r} is another condition; filter what "
                    "the search returns"
                )
            field, (value,) = condition.field, condition.values
            if self.bound.conditions.get(field.name) is not field:
                raise self._not_searchable(field.name)
            if field.name in values:
                raise UsageError(f"{self} is searched by two values of {field.name!r}; give one")
            values[field.name] = field, value
        return self._search(values)

    def _search(self, values: Mapping[str, tuple[Attr[Any], Any]]) -> VectorSearch[E]:
        partition = self.bound.partition
        if partition is not None and partition.name not in values:
            raise UsageError(
                f"{self} is divided by {partition.name!r}, so a search needs its value: "
                f"{self}({partition.name}=…)"
            )
        wanted = {}
        for name, (field, value) in values.items():
            if value is None:
                raise UsageError(f"{self}: {name}=None cannot be searched for; leave {name} out")
            wanted[field.attribute] = field.encode(value)
        return VectorSearch(self, wanted)

    def _not_searchable(self, name: str) -> UsageError:
        known = ", ".join(self.bound.conditions) or "no field"
        if name not in self.schema.fields:
            return UsageError(f"{self.entity.__name__} has no field {name!r}; {self} takes {known}")
        return UsageError(
            f"{self} cannot be searched by {name!r}, but by {known}; add it to filters=, or filter what the "
            "search returns"
        )

    def __str__(self) -> str:
        return f"{self.entity.__name__}.{self.bound.name}"

    def __repr__(self) -> str:
        return f"<vector index {self}>"


class VectorSearch(Generic[E]):
    """A search of a vector index, without the vector: `store.nearest(search, vector)`."""

    __slots__ = ("__dict__", "pattern", "wanted")

    def __init__(self, pattern: VectorPattern[E], wanted: Mapping[str, Any]) -> None:
        self.pattern: VectorPattern[E] = pattern
        self.wanted: Mapping[str, Any] = wanted

    def requests(
        self, vector: Iterable[SupportsFloat], limit: int, *, whole: bool
    ) -> Iterator[dict[str, Any]]:
        """One request for each tag that the entities may have."""
        bound, schema = self.pattern.bound, self.pattern.schema
        numbers = bound.field.elements(vector)
        request: dict[str, Any] = {
            "TableName": schema.table.name,
            "IndexName": bound.index_name,
            "SearchVector": numbers,
            "TopK": limit,
        }
        names = {}
        if whole:  # only what is needed to read them by their keys
            keys = [each.name for each in schema.table.keys.attributes]
            names = {f"#k{place}": name for place, name in enumerate(keys)}
            request["ProjectionExpression"] = ", ".join(names)
        tags = self._tags if bound.by_tag else (None,)
        for tag in tags:
            wanted = {**self.wanted}
            if tag is not None:
                wanted[schema.table.tag] = {"S": tag}
            yield request | _condition(wanted, names)

    @cached_property
    def is_whole(self) -> bool:
        """Whether the entities must be read by their keys, because upgrading an item needs all of it."""
        return any(schema.version > 1 for schema in self._schemas)

    @cached_property
    def returned(self) -> dict[str, frozenset[str]]:
        """The fields that a search returns for each kind, by its tag."""
        return {schema.tag: _returned(schema, self.pattern.bound) for schema in self._schemas}

    @property
    def _schemas(self) -> list[EntitySchema]:
        schema = self.pattern.schema
        return [schema, *schema.kinds()] if schema.has_kinds else [schema]

    @property
    def _tags(self) -> tuple[str, ...]:
        return tuple(tag for schema in self._schemas for tag in schema.tags)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.wanted.items())
        return f"<search of {self.pattern}({values})>"


def nearest(
    reader: Reader,
    search: VectorSearch[E] | VectorPattern[E],
    vector: Iterable[SupportsFloat],
    limit: int,
    *,
    whole: bool,
) -> Steps[list[Neighbor[E]]]:
    """The entities with the nearest vectors, nearest first."""
    if isinstance(search, VectorPattern):
        search = search()
    if not isinstance(search, VectorSearch):
        raise UsageError(
            f"nearest takes a search, such as Doc.by_embedding(tenant='a'), not {search!r}"
        )
    if type(limit) is not int or not 1 <= limit <= limits.SEARCH_RESULTS:
        raise UsageError(f"limit={limit!r}: a search returns 1 to {limits.SEARCH_RESULTS} entities")
    pattern = search.pattern
    schema = pattern.schema
    whole = whole or search.is_whole
    if schema.primary not in reader.records.checked:
        yield from reader.records.check((schema,), (schema.primary,))
    found: list[tuple[Item, float]] = []
    for request in search.requests(vector, limit, whole=whole):
        try:
            response = yield Call("SearchVectors", request)
        except UnknownOperationException as error:
            raise Unsupported(
                f"{pattern} cannot be searched: the engine has no SearchVectors ({error.message})"
            ) from error
        found += [(each["Item"], each["Score"]) for each in response["SearchResults"]]
    descending = pattern.bound.layout.distance == "DOT_PRODUCT"
    found.sort(key=lambda each: each[1], reverse=descending)
    del found[limit:]
    if whole:
        return (yield from _read_whole(reader, search, found))
    now = reader.clock.now()
    neighbors = []
    for item, score in found:
        kind = schema.kind_of(item)
        if kind is None or is_missing(kind, item, now):
            continue
        entity: Any = kind.from_item(item, only=search.returned[kind.tag], is_whole=False)
        neighbors.append(Neighbor(entity, score))
    return neighbors


def _read_whole(
    reader: Reader, search: VectorSearch[E], found: list[tuple[Item, float]]
) -> Steps[list[Neighbor[E]]]:
    """Read the entities by their keys. One that was deleted meanwhile is left out."""
    pattern = search.pattern
    items = yield from fetch(pattern.schema.table.name, [key for key, _ in found])
    entities = [reader.entity_of(pattern.entity, item) for item in items]
    return [
        Neighbor(entity, score)
        for entity, (_, score) in zip(entities, found, strict=True)
        if entity is not None
    ]


def _condition(wanted: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The request members for a condition of equal values."""
    members: dict[str, Any] = {}
    all_names = {**names}
    if wanted:
        all_names |= {f"#s{place}": name for place, name in enumerate(wanted)}
        members["SearchConditionExpression"] = " AND ".join(
            f"#s{place} = :s{place}" for place in range(len(wanted))
        )
        members["ExpressionAttributeValues"] = {
            f":s{place}": value for place, value in enumerate(wanted.values())
        }
    if all_names:
        members["ExpressionAttributeNames"] = all_names
    return members


def _returned(schema: EntitySchema, bound: BoundVectorIndex) -> frozenset[str]:
    """The fields that a search returns for an entity; never the vector."""
    layout, table = bound.layout, schema.table
    fields = schema.fields.items()
    if layout.projection == "ALL":
        return frozenset(name for name, field in fields if field.attribute != layout.attribute)
    further = () if layout.projection == "KEYS_ONLY" else layout.projection
    present = {
        VERSION_ATTRIBUTE,
        *further,
        *(each.name for each in table.keys.attributes),
        *(each.name for each, _ in layout.search),
    }
    in_key = {component.field for component in schema.primary.components}
    return frozenset(
        name
        for name, field in fields
        if field.attribute in present or (field in in_key and field.options.case is None)
    )
