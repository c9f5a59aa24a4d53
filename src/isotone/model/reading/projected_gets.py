"""Reads of some fields by key: what a get of a `Projection` requests, and the projections of its items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from isotone.errors import InvalidItem
from isotone.expressions import nodes
from isotone.model.reading.index_projections import projection_of
from isotone.model.reading.item_selection import Found
from isotone.model.reading.projections import Projection
from isotone.model.reading.queries import Read, Scan
from isotone.model.reading.reader import Reader, results
from isotone.tables.batch_reads import FetchProgress, fetch
from isotone.tables.steps import Call, Steps
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema

V = TypeVar("V", bound=Projection[Any])


class ProjectedGet(Generic[V]):
    """How a class of projections is read by primary keys."""

    def __init__(self, projection: type[V]) -> None:
        self.schema: EntitySchema = projection.__entity__.__schema__
        wanted: Any = projection
        everything: Scan[Any] = Scan(
            name=self.schema.tag, schemas=(self.schema,), keys=(self.schema.primary,)
        )
        self._read: Read[V] = everything.select(wanted)
        self._paths = projection_of(self._read)

    @property
    def expression(self) -> nodes.ProjectionNode | None:
        """The ProjectionExpression; None if the whole item is needed, to upgrade it."""
        return None if self._paths is None else nodes.ProjectionNode(self._paths)

    @property
    def attributes(self) -> frozenset[str] | None:
        """The attributes that are read; None for all."""
        return (
            None
            if self._paths is None
            else frozenset(str(path.elements[0]) for path in self._paths)
        )

    def result(self, item: Item | None, now: float) -> V | None:
        """The projection of an item; None if it is missing, of another kind, or has expired. Raises `InvalidItem`."""
        found: list[Found] = []
        if item is not None:
            self._read.selection.entities([item], now, found, _raise)
        return results(self._read, found)[0] if found else None


def _raise(error: InvalidItem, _results: int) -> NoReturn:
    raise error


def get(
    reader: Reader, projection: type[V], values: Mapping[str, Any], *, consistent: bool
) -> Steps[V | None]:
    """The projection of the entity with this primary key; only its fields are transferred."""
    projected = ProjectedGet(projection)
    schema = projected.schema
    yield from reader.records.check((schema,), (schema.primary,))
    request: dict[str, Any] = {"TableName": schema.table.name, "Key": schema.identify(values)}
    if projected.expression is not None:
        request["ProjectionExpression"] = projected.expression
    if consistent:
        request["ConsistentRead"] = True
    item = (yield Call("GetItem", request)).get("Item")
    return projected.result(item, reader.clock.now())


def get_many(
    reader: Reader,
    projection: type[V],
    keys: Iterable[Mapping[str, Any]],
    *,
    consistent: bool,
    progress: FetchProgress | None,
) -> Steps[list[V | None]]:
    """The projections of the entities with these primary keys, as `Reader.get_many`."""
    projected = ProjectedGet(projection)
    schema = projected.schema
    yield from reader.records.check((schema,), (schema.primary,))
    items = yield from fetch(
        schema.table.name,
        [schema.identify(key) for key in keys],
        consistent=consistent,
        projection=projected.expression,
        progress=progress,
    )
    now = reader.clock.now()
    return [projected.result(item, now) for item in items]
