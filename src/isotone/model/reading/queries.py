"""`Query`, `Scan`: `filter`, `limit`, `newest_first`, `select`, `max_units` …, and the request that they make.

Nothing is read here. An entity's key (`access_patterns`) creates a `Query` or a `Scan`; its methods return refined
copies; a store reads it. Invalid queries are refused when they are created.

    Order.by_status.where(Order.customer_id == "2b5a41c0", Order.status == "SHIPPED").newest_first()

The request leaves as much as possible to DynamoDB. `item_selection` does the rest: it drops items of other kinds in the
same collection, bounds that BETWEEN includes, and expired items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    Never,
    NoReturn,
    Self,
    TypeVar,
    overload,
)

import msgspec

from isotone.backends.interface import Request, as_text
from isotone.errors import InvalidItem, UsageError
from isotone.expressions import nodes
from isotone.model.declaring.absent_attributes import absence_in
from isotone.model.declaring.conditions import ORDERINGS, Condition, not_a_condition
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.keys import BoundKey
from isotone.model.declaring.table import VERSION_ATTRIBUTE, Table
from isotone.model.expiry import unexpired
from isotone.model.expression_trees import conjunction, expressions
from isotone.model.reading.cursors import identity
from isotone.model.reading.explaining import explain
from isotone.model.reading.index_projections import (
    check_filtered,
    check_selected,
    expiry_attributes,
    is_on_key,
    key_attributes,
    projected_attributes,
    projection_of,
)
from isotone.model.reading.item_selection import ItemSelection, cached_selection
from isotone.model.reading.key_bounds import (
    KeyBounds,
    Restriction,
    flat,
    lies_before,
    may_share,
    range_of,
)
from isotone.model.reading.projections import Projection
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.reading.projections import ProjectionOf

E_co = TypeVar("E_co", covariant=True)
"""What a read returns: entities, or projections of them."""
V = TypeVar("V", bound=Projection[Any])
OnInvalid = Literal["raise", "skip", "collect"] | Callable[[InvalidItem], object]
"""What a read does with an item that does not fit its entity's declaration."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Read(Generic[E_co]):
    """The base of queries and scans: entities, key and limits.

    There is one key for each schema, all on the same index.
    """

    operation: ClassVar[str]

    name: str
    schemas: tuple[EntitySchema, ...]
    keys: tuple[BoundKey, ...]
    bounds: KeyBounds | None = None
    asked: tuple[Condition, ...] = ()
    filters: tuple[Condition, ...] = ()
    selected: frozenset[str] | None = None
    projection: type[Projection[Any]] | None = None
    """What the results become, if not entities."""
    is_consistent: bool = False
    most_results: int | None = None
    items_a_page: int | None = None
    most_units: float | None = None
    most_requests: int | None = None
    with_expired: bool = False
    when_invalid: OnInvalid = "raise"
    because: tuple[str, ...] = ()
    """Why `match` chose this key, and not each of the others."""

    @property
    def table(self) -> Table:
        """The table that is read."""
        return self.schemas[0].table

    @property
    def index(self) -> str | None:
        """The index that is read; None for the table itself."""
        return self.keys[0].index

    @cached_property
    def is_empty(self) -> bool:
        """Whether the conditions exclude one another, so that nothing is read."""
        return self.bounds is not None and self.bounds.is_empty

    def __repr__(self) -> str:
        asked = ", ".join(map(repr, self.asked))
        filters = ", ".join(map(repr, self.filters))
        return (
            f"<{self.operation} of {self.name}"
            + (f" where {asked}" if asked else "")
            + (f", filtered by {filters}" if filters else "")
            + ">"
        )

    if not TYPE_CHECKING:  # hidden from type checkers, which refuse the loop on their own

        def __iter__(self) -> NoReturn:
            raise TypeError(
                f"{self!r} only says what to read; a store reads it: store.all(query), "
                "store.iterate(query) or store.page(query, size=25)"
            )

    # Selecting items

    def filter(self, *conditions: Condition, **named: Never) -> Self:
        """Drop entities that do not satisfy the conditions, after they were read and paid for.

        A page's `stats` show the cost. Raises `UsageError` for a condition on a key attribute, which DynamoDB cannot
        filter by.
        """
        check_unnamed("filter", self.schemas[0], named)
        for condition in conditions:
            check_filtered(self.table, self.index, condition, owner_of(condition, self.schemas))
        return replace(self, filters=(*self.filters, *conditions))

    @overload
    def select(self, projection: ProjectionOf[E_co, V], /) -> Read[V]: ...
    @overload
    def select(self, *fields: Attr[Any]) -> Self: ...
    def select(self, *fields: Any) -> Read[Any]:
        """Read only some fields; access to another field of a returned entity raises.

        Given a `Projection`, the results are of that class, and type checkers refuse access to other fields. Both save
        bandwidth, not capacity units.
        """
        projection = None
        if len(fields) == 1 and isinstance(fields[0], type) and issubclass(fields[0], Projection):
            projection = fields[0]
            fields = self._projected(projection)
        known = {field for schema in self.schemas for field in schema.fields.values()}
        for each in fields:
            if not isinstance(each, Attr) or each not in known:
                what = each.name if isinstance(each, Attr) else each
                raise UsageError(
                    f"{what!r} is not a field of {_titles(self.schemas)}; select whole fields, "
                    "such as Order.total"
                )
        names = frozenset(each.name for each in fields)
        for schema, key in zip(self.schemas, self.keys, strict=True):
            check_selected(schema, key, names)
        return replace(self, selected=names, projection=projection)

    def _projected(self, projection: type[Projection[Any]]) -> tuple[Attr[Any], ...]:
        """The fields of a projection; raises `UsageError` if it is of another entity."""
        if not all(issubclass(schema.entity, projection.__entity__) for schema in self.schemas):
            raise UsageError(
                f"{projection.__name__} is a projection of {projection.__entity__.__name__}, and {self.name} reads "
                f"{_titles(self.schemas)}"
            )
        return tuple(projection.__selected__.values())

    def consistent(self) -> Self:
        """Include all acknowledged writes, for twice the units; not available for global indexes."""
        index = None if self.index is None else self.table.indexes[self.index]
        if index is not None and index.kind == "global":
            raise UsageError(
                f"{self.name} reads the global index {self.index!r}, which cannot be read consistently; "
                "read by the primary key or by a local index"
            )
        return replace(self, is_consistent=True)

    def including_expired(self) -> Self:
        """Include entities that have expired but are not deleted yet."""
        return replace(self, with_expired=True)

    def on_invalid(self, action: OnInvalid) -> Self:
        """Set what to do with items that do not fit their entity's declaration.

        "raise", the default, ends the read with `InvalidItem`. "skip" leaves such items out and counts them in
        `stats.invalid`. "collect" also lists the errors: `page.invalid`, `family.invalid`, `snapshot.invalid`. A
        function is called with each error, in any read; in a parallel `scan`, from several threads.

        >>> orders = store.all(query.on_invalid(errors.append))
        """
        if action not in ("raise", "skip", "collect") and not callable(action):
            raise UsageError(
                f"on_invalid({action!r}) is not an action; give 'raise', 'skip', 'collect' or a function that "
                "takes each InvalidItem"
            )
        return replace(self, when_invalid=action)

    # Limits

    def limit(self, results: int) -> Self:
        """Return at most this many entities, however many items must be read for them."""
        return replace(self, most_results=_positive(results, "limit"))

    def page_size(self, items: int) -> Self:
        """Read at most this many items with each request."""
        return replace(self, items_a_page=_positive(items, "page_size"))

    def max_units(self, units: float) -> Self:
        """Send no further request once this many capacity units are spent; the last request may exceed them."""
        if units <= 0:
            raise UsageError(f"max_units({units}) leaves nothing to read with; give more than 0")
        return replace(self, most_units=units)

    def max_requests(self, requests: int) -> Self:
        """Send at most this many requests."""
        return replace(self, most_requests=_positive(requests, "max_requests"))

    # The request, and the entities of its response

    def request(self) -> Request:
        """The request as servers take it. The reader adds `Limit` and `ExclusiveStartKey`."""
        return as_text(self.composed)

    def explain(self) -> str:
        """What the read does, in a few lines: its key, filter, order and cost.

        print(Order.match(Order.customer_id == "36ab", Order.total > 5).explain())
        """
        return explain(self)

    @cached_property
    def composed(self) -> dict[str, Any]:
        """The request with its expressions as trees. It is cached and shared: do not change it."""
        return self._compose()

    def _compose(self) -> dict[str, Any]:
        request: dict[str, Any] = {"TableName": self.table.name}
        if self.index is not None:
            request["IndexName"] = self.index
        request |= _expressions(self)
        if self.items_a_page is not None:
            request["Limit"] = self.items_a_page
        if self.is_consistent:
            request["ConsistentRead"] = True
        request["ReturnConsumedCapacity"] = "TOTAL"
        return request

    @cached_property
    def cursor_identity(self) -> bytes:
        """The text that binds cursors to this read.

        It leaves out the values of inequalities, because they may depend on the current time.
        """
        conditions = [_without_bounds(each.node()) for each in (*flat(self.asked), *self.filters)]
        return identity(
            [
                *(self.operation, self.table.name, self.index, self._direction_or_part),
                [schema.tag for schema in self.schemas],
                sorted(map(msgspec.json.encode, conditions)),
            ]
        )

    @property
    def _direction_or_part(self) -> object:
        """A query's direction, or a scan's segment."""
        return None

    @property
    def conditions_by_key(self) -> tuple[Sequence[Condition], ...]:
        """For each key, the conditions that its bounds answer."""
        return (self.asked,)

    @cached_property
    def selection(self) -> ItemSelection:
        """Decides which items become entities, and which of their fields are decoded."""
        excluded = () if self.bounds is None else self.bounds.excluded
        is_only_kind = len(self.table.entities) == 1  # a class that is defined later changes it
        make: Callable[..., ItemSelection] = cached_selection
        filters: tuple[tuple[EntitySchema, Condition], ...] = ()
        if self.filters and _may_be_older(self.schemas):
            make = ItemSelection
            filters = tuple((owner_of(each, self.schemas), each) for each in self.filters)
        return make(
            self.schemas,
            self.keys,
            self.selected,
            self.with_expired,
            excluded,
            is_only_kind,
            filters,
            _kinds_of(self.schemas) if self.table.has_kinds else (),
        )

    @cached_property
    def position_attributes(self) -> tuple[str, ...]:
        """The attributes of a position in the read: the keys of the table and of the index."""
        return key_attributes(self.table, self.index)

    @property
    def fixed_position(self) -> Item:
        """The position attributes that are the same throughout the read."""
        bounds = () if self.bounds is None else self.bounds.restrictions
        return {each.attribute: each.operands[0] for each in bounds if each.operator == "="}

    @cached_property
    def open_position(self) -> tuple[tuple[str, str], ...]:
        """The other position attributes, with their types."""
        fixed = self.fixed_position
        layouts = (self.table.keys, self.table.layout(self.index))
        types = {each.name: each.type for layout in layouts for each in layout.attributes}
        names = [name for name in self.position_attributes if name not in fixed]
        return tuple((name, types[name]) for name in names)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Query(Read[E_co]):
    """Entities of one item collection, in a range of a key."""

    operation: ClassVar[str] = "Query"

    bounds: KeyBounds
    backward: bool = False

    if TYPE_CHECKING:

        @overload
        def select(self, projection: ProjectionOf[E_co, V], /) -> Query[V]: ...
        @overload
        def select(self, *fields: Attr[Any]) -> Self: ...
        def select(self, *fields: Any) -> Any: ...

    def filter(self, *conditions: Condition, **named: Never) -> Self:
        """Drop entities that do not satisfy the conditions, after they were read and paid for.

        Raises `UsageError` for a condition on a key attribute, which DynamoDB cannot filter by.
        """
        filtered = super().filter(*conditions, **named)
        keyed = {each.name for each in self.table.layout(self.index).attributes}
        for condition in conditions:
            for each in condition.fields():
                if each.attribute in keyed:
                    raise UsageError(
                        f"{each.name!r} is an attribute of {self.name}'s own key, which DynamoDB does "
                        "not filter by; put the condition in .where(…)"
                    )
        return filtered

    def descending(self) -> Self:
        """Order by the greatest values first, however the key stores them."""
        self._check_order()
        return replace(self, backward=self._stored_ascending)

    def ascending(self) -> Self:
        """Order by the least values first, however the key stores them."""
        self._check_order()
        return replace(self, backward=not self._stored_ascending)

    def newest_first(self) -> Self:
        """As `descending`, for times."""
        return self.descending()

    def oldest_first(self) -> Self:
        """As `ascending`, for times."""
        return self.ascending()

    def reversed(self) -> Self:
        """Read in the opposite direction."""
        return replace(self, backward=not self.backward)

    def _check_order(self) -> None:
        """Raise `UsageError` if the key stores values in a form that does not sort."""
        free = self.bounds.free
        if free is not None and not all(key.sorts_by(free) for key in self.keys):
            name = free.field.name
            raise UsageError(
                f"{self.name} has {name!r} in a form that does not sort, so items are not in the order of "
                f"{name}; sort the entities after reading, or use the order of the key, or .reversed()"
            )

    @property
    def _direction_or_part(self) -> object:
        return self.backward

    @property
    def _stored_ascending(self) -> bool:
        return self.bounds.free is None or not self.bounds.free.descending

    def _compose(self) -> dict[str, Any]:
        if self.is_empty:
            raise UsageError(f"the conditions on {self.name} exclude one another: nothing to read")
        request = super()._compose()
        if self.backward:
            request["ScanIndexForward"] = False
        return request


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Scan(Read[E_co]):
    """All entities of a table or an index, in no particular order. Reads and pays for everything there."""

    operation: ClassVar[str] = "Scan"

    part: tuple[int, int] | None = None

    if TYPE_CHECKING:

        @overload
        def select(self, projection: ProjectionOf[E_co, V], /) -> Scan[V]: ...
        @overload
        def select(self, *fields: Attr[Any]) -> Self: ...
        def select(self, *fields: Any) -> Any: ...

    def segment(self, number: int, *, of: int) -> Self:
        """One segment of the scan; several segments can be read at the same time."""
        if not 0 <= number < of:
            raise UsageError(f"segment {number} of {of} does not exist; segments count from 0")
        return replace(self, part=(number, of))

    @property
    def _direction_or_part(self) -> object:
        return self.part

    def _compose(self) -> dict[str, Any]:
        request = super()._compose()
        if self.part is not None:
            request["Segment"], request["TotalSegments"] = self.part
        return request


def _without_bounds(node: nodes.ConditionNode) -> nodes.ConditionNode | tuple[object, ...]:
    """A condition without the values of inequalities."""
    match node:
        case nodes.Comparison(operator, left, nodes.Literal()) if operator in ORDERINGS:
            return (operator, left)
        case nodes.Between(operand, nodes.Literal(), nodes.Literal()):
            return ("between", operand)
        case nodes.And(operands):
            return ("and", *map(_without_bounds, operands))
        case nodes.Or(operands):
            return ("or", *map(_without_bounds, operands))
        case nodes.Not(operand):
            return ("not", _without_bounds(operand))
    return node


def check_unnamed(call: str, schema: EntitySchema, named: Mapping[str, object]) -> None:
    """Raise `UsageError` for fields passed as keyword arguments; the message has the conditions to write."""
    if named:
        entity = schema.entity.__name__
        conditions = ", ".join(f"{entity}.{name} == {each!r}" for name, each in named.items())
        raise UsageError(f"{call} takes conditions; write {call}({conditions})")


def _positive(number: int, what: str) -> int:
    if type(number) is not int:
        raise UsageError(f"{what}({number!r}) is given a {type(number).__name__}; give an int")
    if number < 1:
        raise UsageError(f"{what}({number}) allows nothing; give 1 or more")
    return number


def _kinds_of(schemas: tuple[EntitySchema, ...]) -> tuple[tuple[EntitySchema, int], ...]:
    """All kinds of the read entities, each with the index of its entity."""
    read = {schema.tag for schema in schemas}
    return tuple(
        (kind, place)
        for place, schema in enumerate(schemas)
        if schema.has_kinds
        for kind in schema.kinds()
        if kind.tag not in read
    )


# Counting


def can_be_counted(read: Read[Any]) -> bool:
    """Whether the database can decide by itself which items count.

    A query's filter cannot use the key that is queried. No filter can test the form of a key, by which items without a
    tag are recognised, so no other kind may lie in the range.
    """
    projected = projected_attributes(read.table, read.index)
    needed = {read.table.tag, *expiry_attributes(read.schemas)}
    if projected is not None and not projected >= needed:
        return False
    if read.filters and _may_be_older(read.schemas):
        return False
    if read.bounds is None:
        return len(_others(read)) == 0
    keyed = {each.name for each in read.table.layout(read.index).attributes}
    return (
        not read.bounds.excluded
        and keyed.isdisjoint(needed)
        and not _may_have_others(read, read.bounds)
    )


def _may_have_others(read: Read[Any], bounds: KeyBounds) -> bool:
    """Whether items of other kinds may lie in a query's range."""
    key, table = read.keys[0], read.table
    if len(table.entities) == len(read.schemas):
        return False
    asked = bounds.restrictions[len(key.partition) :]
    others = _others(read)
    return any(
        range_ is None
        or not asked
        or not (lies_before(range_, asked[0]) or lies_before(asked[0], range_))
        for range_ in _ranges_beside(key, others)
    )


def _others(read: Read[Any]) -> tuple[EntitySchema, ...]:
    """The table's other entities, whose items may lack a tag or be mistaken for the wanted ones.

    Kinds of an entity always have tags, so a read of some kinds has no such others.
    """
    if all(schema.base is not None for schema in read.schemas):
        return ()
    tags = {schema.tag for schema in read.schemas}
    entities = tuple(read.table.entities.values())
    return tuple(each for each in entities if not each.lineage & tags)


@lru_cache(maxsize=512)
def _ranges_beside(
    key: BoundKey, others: tuple[EntitySchema, ...]
) -> tuple[Restriction | None, ...]:
    """The ranges of other entities that may be in one collection with this key's items."""
    return tuple(
        range_of(its)
        for schema in others
        for its in schema.keys.values()
        if its.index == key.index and may_share(key, its)
    )


def counting(read: Read[Any], now: float) -> Request:
    """The counting request; the database decides which items count."""
    tag = nodes.Path((read.table.tag,))
    is_of_kind: nodes.ConditionNode = nodes.Or(
        tuple(schema.is_of_kind() for schema in read.schemas)
    )
    if any(schema.base is None for schema in read.schemas):
        is_of_kind = nodes.Or((is_of_kind, nodes.Call("attribute_not_exists", (tag,))))
    expiring = () if read.with_expired else expiry_attributes(read.schemas)
    further = [is_of_kind, *(unexpired(attribute, now) for attribute in expiring)]
    unselected = replace(read, selected=None)
    return {**unselected.composed, **_expressions(unselected, further), "Select": "COUNT"}


# Expressions


def _expressions(read: Read[Any], further: Sequence[nodes.ConditionNode] = ()) -> dict[str, Any]:
    paths = projection_of(read)
    filters = [_scoped(read, condition) for condition in read.filters]
    return expressions(
        KeyConditionExpression=None
        if read.bounds is None
        else conjunction([restriction.node() for restriction in read.bounds.restrictions]),
        FilterExpression=conjunction([*filters, *further]),
        ProjectionExpression=None if paths is None else nodes.ProjectionNode(paths),
    )


def _scoped(read: Read[Any], condition: Condition) -> nodes.ConditionNode:
    """A condition that applies only to the entities that have its fields, in their current version."""
    owner = owner_of(condition, read.schemas)
    exempt: list[nodes.ConditionNode] = []
    if len(read.schemas) > 1:
        exempt.append(nodes.Not(owner.is_of_kind()))
    if owner.version > 1 and not is_on_key(read.table, read.index, condition):
        present = nodes.Literal(owner.marks[VERSION_ATTRIBUTE])
        same = nodes.Comparison("=", nodes.Path((VERSION_ATTRIBUTE,)), present)
        exempt.append(nodes.Not(same))
    node = condition.node(absence_in(owner, read.index))
    return nodes.Or((*exempt, node)) if exempt else node


def _may_be_older(schemas: tuple[EntitySchema, ...]) -> bool:
    """Whether an older version of an entity may have written some items."""
    return any(schema.version > 1 for schema in schemas)


def owner_of(condition: Condition, schemas: tuple[EntitySchema, ...]) -> EntitySchema:
    """The schema, among the read ones, whose fields a condition uses."""
    if not isinstance(condition, Condition):
        raise not_a_condition(condition)
    fields = list(condition.fields())
    for schema in schemas:
        known = schema.fields
        for field in fields:
            if known.get(field.name) is not field:
                break
        else:
            return schema
    names = ", ".join(dict.fromkeys(each.name for each in fields))
    raise UsageError(
        f"the condition is on {names}, which {'is' if len(fields) == 1 else 'are'} not of "
        f"{_titles(schemas)}; use that class's own fields"
    )


def _titles(schemas: tuple[EntitySchema, ...]) -> str:
    return " or ".join(schema.entity.__name__ for schema in schemas)
