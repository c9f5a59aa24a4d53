"""Access patterns: `Order.by_status.where(…)` is a query, a value that says what is to be read and how.

Nothing is read here. A `Query` or a `Scan` is made from a key of an entity, refined by methods that
each give a new one, and handed to a store. What it cannot answer is refused when it is made.

    Order.by_status.where(Order.customer_id == "2b5a41c0", Order.status == "SHIPPED").newest_first()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Never, NoReturn, Self, TypeVar

from isotone.backends.interface import Request
from isotone.errors import MalformedKey, UsageError
from isotone.expressions import nodes
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.keys import BoundKey
from isotone.model.declaring.schema import VERSION_ATTRIBUTE, EntitySchema
from isotone.model.declaring.table import Table
from isotone.model.reading.bounds import KeyBounds, Restriction, text_of
from isotone.model.rendering import conjunction, expressions, unexpired
from isotone.values.types import AttributeValue, Item

if TYPE_CHECKING:
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")
C = TypeVar("C", bound="Entity")
D = TypeVar("D", bound="Entity")
E_co = TypeVar("E_co", bound="Entity", covariant=True)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Read(ABC, Generic[E_co]):
    """What queries and scans have in common: of which entities, by which key, and how much.

    There is a key for each of the schemas, all on the same index.
    """

    operation: ClassVar[str]

    name: str
    schemas: tuple[EntitySchema, ...]
    keys: tuple[BoundKey, ...]
    filters: tuple[Condition, ...] = ()
    selected: frozenset[str] | None = None
    is_consistent: bool = False
    most_results: int | None = None
    items_a_page: int | None = None
    most_units: float | None = None
    most_requests: int | None = None
    with_expired: bool = False

    @property
    def table(self) -> Table:
        """The table that is read."""
        return self.schemas[0].table

    @property
    def index(self) -> str | None:
        """The index that is read; None for the table itself."""
        return self.keys[0].index

    def __repr__(self) -> str:
        asked = ", ".join(map(repr, getattr(self, "asked", ())))
        filters = ", ".join(map(repr, self.filters))
        return (
            f"<{self.operation} of {self.name}"
            + (f" where {asked}" if asked else "")
            + (f", filtered by {filters}" if filters else "")
            + ">"
        )

    if not TYPE_CHECKING:  # a type checker refuses the loop by itself

        def __iter__(self) -> NoReturn:
            raise TypeError(
                f"{self!r} only says what to read; a store reads it: store.all(query), "
                "store.iterate(query) or store.page(query, size=25)"
            )

    # What of it comes back

    def filter(self, *conditions: Condition, **named: Never) -> Self:
        """Drop what does not satisfy the conditions, after it was read and paid for.

        `stats` of a page tell how much that was. Raises `UsageError` for a condition on an attribute
        of the key, which DynamoDB filters no query by.
        """
        check_unnamed("filter", self.schemas[0], named)
        for condition in conditions:
            owner_of(condition, self.schemas)
            check_filtered(self.table, self.index, condition)
        return replace(self, filters=(*self.filters, *conditions))

    def select(self, *fields: Attr[Any]) -> Self:
        """Bring only some fields; reading another one of an entity that comes back raises.

        It saves what travels, not capacity units.
        """
        own = {field for schema in self.schemas for field in schema.fields.values()}
        for each in fields:
            if not isinstance(each, Attr) or each not in own:
                what = each.name if isinstance(each, Attr) else each
                raise UsageError(
                    f"{what!r} is no field of {titles(self.schemas)}; select whole fields, "
                    "such as Order.total"
                )
        names = frozenset(each.name for each in fields)
        for schema, key in zip(self.schemas, self.keys, strict=True):
            check_selected(schema, key, names)
        return replace(self, selected=names)

    def consistent(self) -> Self:
        """See every write that was acknowledged before, for twice the units; not of a global index."""
        index = None if self.index is None else self.table.indexes[self.index]
        if index is not None and index.kind == "global":
            raise UsageError(
                f"{self.name} reads the global index {self.index!r}, which cannot be read consistently; "
                "read by the primary key or by a local index"
            )
        return replace(self, is_consistent=True)

    def including_expired(self) -> Self:
        """Bring also what has expired and is not deleted yet."""
        return replace(self, with_expired=True)

    # How much

    def limit(self, results: int) -> Self:
        """Bring at most so many entities, whatever is read for them."""
        return replace(self, most_results=_positive(results, "limit"))

    def page_size(self, items: int) -> Self:
        """Read at most so many items with each request."""
        return replace(self, items_a_page=_positive(items, "page_size"))

    def max_units(self, units: float) -> Self:
        """Make no further request once so many capacity units are spent; the last may go beyond."""
        if units <= 0:
            raise UsageError(f"max_units({units}) leaves nothing to read with; give more than 0")
        return replace(self, most_units=units)

    def max_requests(self, requests: int) -> Self:
        """Make at most so many requests."""
        return replace(self, most_requests=_positive(requests, "max_requests"))

    # What the reader asks

    @abstractmethod
    def request(self) -> Request:
        """The request that is sent; a page adds its Limit and its ExclusiveStartKey."""

    @property
    def is_empty(self) -> bool:
        """Whether it is known without reading that nothing can come back."""
        return False

    @cached_property
    def takes(self) -> Selection:
        """Which of the items read are meant, and what of them."""
        return Selection(self)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Query(Read[E_co]):
    """The entities of one item collection that lie in a range of a key."""

    operation: ClassVar[str] = "Query"

    bounds: KeyBounds
    asked: tuple[Condition, ...] = ()
    backward: bool = field(default=False)

    def filter(self, *conditions: Condition, **named: Never) -> Self:
        """Drop what does not satisfy the conditions, after it was read and paid for.

        Raises `UsageError` for a condition on an attribute of the key, which DynamoDB does not filter
        by.
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

    def newest_first(self) -> Self:
        """The greatest values first, however the key stores them."""
        self._check_order()
        return replace(self, backward=self._stored_ascending)

    def oldest_first(self) -> Self:
        """The least values first, however the key stores them."""
        self._check_order()
        return replace(self, backward=not self._stored_ascending)

    def _check_order(self) -> None:
        """Raises `UsageError` where the key has values in a form by which they do not sort."""
        free = self.bounds.free
        if free is not None and not all(key.sorts_by(free) for key in self.keys):
            name = free.field.name
            raise UsageError(
                f"{self.name} has {name!r} as it stands, so items do not lie in the order of {name}: "
                f"sort what you have read, or take the order of the key as it is, or .reversed()"
            )

    def reversed(self) -> Self:
        """The other way round than now."""
        return replace(self, backward=not self.backward)

    @property
    def _stored_ascending(self) -> bool:
        return self.bounds.free is None or not self.bounds.free.descending

    @property
    def is_empty(self) -> bool:
        return self.bounds.is_empty

    def request(self) -> Request:
        return query(self)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Scan(Read[E_co]):
    """All entities of a table or an index, in no order; reads and pays for everything there."""

    operation: ClassVar[str] = "Scan"

    part: tuple[int, int] | None = None

    def segment(self, number: int, *, of: int) -> Self:
        """One of several parts that can be read at the same time."""
        if not 0 <= number < of:
            raise UsageError(f"segment {number} of {of} does not exist; they count from 0")
        return replace(self, part=(number, of))

    def request(self) -> Request:
        return scan(self)


def check_unnamed(call: str, schema: EntitySchema, named: Mapping[str, object]) -> None:
    """Raise `UsageError` where fields are named as in other libraries, with the conditions to write."""
    if named:
        entity = schema.entity.__name__
        conditions = ", ".join(f"{entity}.{name} == {each!r}" for name, each in named.items())
        raise UsageError(f"{call} takes conditions; write {call}({conditions})")


def _positive(number: int, what: str) -> int:
    if type(number) is not int:
        raise UsageError(f"{what}({number!r}) is given a {type(number).__name__}; give an int")
    if number < 1:
        raise UsageError(f"{what}({number}) asks for nothing; give 1 or more")
    return number


def position(read: Read[Any], item: Item) -> Item:
    """The key of an item as a read continues from it: the table's, and the index's that is read."""
    return {name: item[name] for name in key_attributes(read.table, read.index)}


Found = tuple["Entity", Item]


def query(read: Query[Any]) -> dict[str, Any]:
    """The Query request of a query; raises `UsageError` for one that is known to find nothing."""
    if read.is_empty:
        raise UsageError(f"the conditions on {read.name} exclude one another, so nothing is asked")
    request = _request(read)
    if read.backward:
        request["ScanIndexForward"] = False
    return request


def scan(read: Scan[Any]) -> dict[str, Any]:
    """The Scan request of a scan."""
    request = _request(read)
    if read.part is not None:
        request["Segment"], request["TotalSegments"] = read.part
    return request


def can_be_counted(read: Read[Any]) -> bool:
    """Whether the database can judge all that decides which items are meant.

    A filter of a query cannot look at the key that is queried by, nor one of a scan at the form of a key,
    which tells kinds apart that have no tag.
    """
    has = projected_attributes(read.table, read.index)
    judged = {read.table.tag} | {schema.by_role["expires"].attribute for schema in _mortal(read)}
    if has is not None and not has >= judged:
        return False
    bounds = _bounds(read)
    if bounds is None:
        return len(read.table.entities) == 1
    keyed = {each.name for each in read.table.layout(read.index).attributes}
    return not bounds.excluded and keyed.isdisjoint(judged)


def counting(read: Read[Any], now: float) -> dict[str, Any]:
    """The request that counts, with everything judged by the database."""
    request = dict(read.request())
    further = [_of_kind(read)]
    further += (
        []
        if read.with_expired
        else [unexpired(schema.by_role["expires"].attribute, now) for schema in _mortal(read)]
    )
    for name in ("ProjectionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"):
        request.pop(name, None)
    return {**request, **_expressions(replace(read, selected=None), further), "Select": "COUNT"}


class Selection:
    """Which items of a read are meant, and how they become entities."""

    def __init__(self, read: Read[Any]) -> None:
        self._table = read.table
        self._by_tag = {schema.tag: schema for schema in read.schemas}
        self._keyed = tuple(zip(read.schemas, read.keys, strict=True))
        self.is_whole = projected_attributes(read.table, read.index) is None
        self._is_alone = len(read.table.entities) == 1
        bounds = _bounds(read)
        self._excluded = () if bounds is None else bounds.excluded
        mortal = () if read.with_expired else _mortal(read)
        self._expiry = {schema.by_role["expires"].attribute for schema in mortal}
        self._only = {
            schema.tag: _wanted(read, schema, projected_fields(schema, key))
            for schema, key in self._keyed
        }

    def entities(self, items: Iterable[Item], now: float) -> Iterator[Found]:
        """The entities that are meant, each with its item."""
        for item in items:
            if self._excluded and self._is_excluded(item):
                continue
            if self._expiry and self._has_expired(item, now):
                continue
            schema = self._schema_of(item)
            if schema is not None:
                only = self._only[schema.tag]
                yield (
                    schema.from_item(
                        item, only=only, is_whole=self.is_whole, require_all_fields=True
                    ),
                    item,
                )

    def _schema_of(self, item: Item) -> EntitySchema | None:
        tag = item.get(self._table.tag)
        if tag is not None:
            return self._by_tag.get(tag.get("S", ""))
        # No tag: the table is older than the library, or the index does not project it.
        if self._is_alone:
            return self._keyed[0][0]
        return next((schema for schema, key in self._keyed if _fits(schema, key, item)), None)

    def _is_excluded(self, item: Item) -> bool:
        return any(text_of(item[name]) in texts for name, texts in self._excluded)

    def _has_expired(self, item: Item, now: float) -> bool:
        return any(has_expired(item.get(name), now) for name in self._expiry)


def has_expired(expiry: Any, now: float) -> bool:
    """Whether the value of a TimeToLive attribute says that its item is to be gone."""
    return expiry is not None and "N" in expiry and float(expiry["N"]) <= now


def _fits(schema: EntitySchema, key: BoundKey, item: Item) -> bool:
    """Whether the item's keys are of the form that the entity's are."""
    try:
        for slot in (*schema.primary.slots, *key.slots):
            slot.parse(item[slot.attribute.name])
    except (MalformedKey, KeyError):
        return False
    return True


def _wanted(
    read: Read[Any], schema: EntitySchema, available: frozenset[str] | None
) -> frozenset[str] | None:
    """The fields to be read of an item; None for all."""
    if read.selected is not None:
        return read.selected.intersection(schema.fields)
    return available


def _mortal(read: Read[Any]) -> list[EntitySchema]:
    return [schema for schema in read.schemas if "expires" in schema.by_role]


# Requests


def _request(read: Read[Any]) -> dict[str, Any]:
    request: dict[str, Any] = {"TableName": read.table.name}
    if read.index is not None:
        request["IndexName"] = read.index
    request.update(_expressions(read))
    if read.items_a_page is not None:
        request["Limit"] = read.items_a_page
    if read.is_consistent:
        request["ConsistentRead"] = True
    request["ReturnConsumedCapacity"] = "TOTAL"
    return request


def _expressions(read: Read[Any], further: Sequence[nodes.ConditionNode] = ()) -> dict[str, Any]:
    bounds, paths = _bounds(read), _paths(read)
    if bounds is not None and not (further or read.filters or paths):
        return _of_key(bounds)
    return expressions(
        KeyConditionExpression=_key_node(read),
        FilterExpression=conjunction([*_filter_nodes(read), *further]),
        ProjectionExpression=None if paths is None else nodes.ProjectionNode(paths),
    )


def _bounds(read: Read[Any]) -> KeyBounds | None:
    """The bounds of a query; None for a scan."""
    return getattr(read, "bounds", None)


def _key_node(read: Read[Any]) -> nodes.ConditionNode | None:
    bounds = _bounds(read)
    if bounds is None:
        return None
    return conjunction([restriction.node() for restriction in bounds.restrictions])


def _of_key(bounds: KeyBounds) -> dict[str, Any]:
    """The members of a request that has no expression but its key condition.

    What the text says follows from attributes and operators alone, so it is written once for each
    kind of query.
    """
    shape = tuple((r.attribute, r.operator, len(r.operands)) for r in bounds.restrictions)
    operands = [operand for r in bounds.restrictions for operand in r.operands]
    values = {f":v{place}": operand for place, operand in enumerate(operands)}
    members = {**_of_shape(shape), "ExpressionAttributeValues": values}
    if "ExpressionAttributeNames" in members:  # a copy, which whoever gets the request may change
        members["ExpressionAttributeNames"] = dict(members["ExpressionAttributeNames"])
    return members


@lru_cache(maxsize=512)
def _of_shape(shape: tuple[tuple[str, str, int], ...]) -> dict[str, Any]:
    some: AttributeValue = {"S": ""}
    members = expressions(
        KeyConditionExpression=conjunction(
            [Restriction(name, operator, (some,) * count).node() for name, operator, count in shape]
        )
    )
    del members["ExpressionAttributeValues"]
    return members


def _filter_nodes(read: Read[Any]) -> Iterator[nodes.ConditionNode]:
    for condition in read.filters:
        yield _scoped(read, condition)


def _scoped(read: Read[Any], condition: Condition) -> nodes.ConditionNode:
    """A condition that only judges the entities whose fields it is on."""
    owner = owner_of(condition, read.schemas)
    if len(read.schemas) == 1:
        return condition.node()
    of_another = nodes.Comparison("<>", _tag_path(read), nodes.Literal({"S": owner.tag}))
    return nodes.Or((of_another, condition.node()))


def _of_kind(read: Read[Any]) -> nodes.ConditionNode:
    tags = tuple(nodes.Literal({"S": schema.tag}) for schema in read.schemas)
    untagged = nodes.Call("attribute_not_exists", (_tag_path(read),))
    return nodes.Or((nodes.In(_tag_path(read), tags), untagged))


def _tag_path(read: Read[Any]) -> nodes.Path:
    return nodes.Path((read.table.tag,))


def _paths(read: Read[Any]) -> tuple[nodes.Path, ...] | None:
    """The attributes to bring: the selected ones, and those that reading itself needs."""
    has = projected_attributes(read.table, read.index)
    is_upgraded = has is None and any(schema.version > 1 for schema in read.schemas)
    if read.selected is None or is_upgraded:
        return None  # an upgrade looks at the whole item
    names = dict.fromkeys(_own_attributes(read, has))
    for schema, key in zip(read.schemas, read.keys, strict=True):
        there = projected_fields(schema, key)
        for name in sorted(read.selected & schema.fields.keys()):
            attribute = schema.fields[name].attribute
            # What a local index does not have is fetched from the table; a key tells the rest.
            if has is None or attribute in has or (there is not None and name not in there):
                names[attribute] = None
    return tuple(nodes.Path((name,)) for name in names)


def _own_attributes(read: Read[Any], has: frozenset[str] | None) -> list[str]:
    """The attributes that reading itself needs, as far as an index has them."""
    names = [*key_attributes(read.table, read.index), read.table.tag, VERSION_ATTRIBUTE]
    names += [schema.by_role["expires"].attribute for schema in _mortal(read)]
    return [name for name in names if has is None or name in has]


# Whose fields a condition is on


def owner_of(condition: Condition, schemas: tuple[EntitySchema, ...]) -> EntitySchema:
    """The schema, among those read, whose fields a condition is on."""
    if not isinstance(condition, Condition):
        raise UsageError(f"{condition!r} is no condition; write one such as Order.number == 157")
    fields = list(condition.fields())
    for schema in schemas:
        if all(schema.fields.get(each.name) is each for each in fields):
            return schema
    names = ", ".join(dict.fromkeys(each.name for each in fields))
    raise UsageError(
        f"the condition is on {names}, which {'is' if len(fields) == 1 else 'are'} not of "
        f"{titles(schemas)}; use that class's own fields"
    )


def titles(schemas: tuple[EntitySchema, ...]) -> str:
    """The names of the entities, for a message."""
    return " or ".join(schema.entity.__name__ for schema in schemas)


def key_attributes(table: Table, index: str | None) -> list[str]:
    """The attributes of the table's key and the index's, each once."""
    layouts = (table.keys, table.layout(index))
    return list(dict.fromkeys(each.name for layout in layouts for each in layout.attributes))


def projected_attributes(table: Table, index: str | None) -> frozenset[str] | None:
    """The attributes that an index's entries have; None where that is all of them."""
    projection = "ALL" if index is None else table.indexes[index].projection
    if projection == "ALL":
        return None
    further = () if projection == "KEYS_ONLY" else projection
    return frozenset((*key_attributes(table, index), *further))


def projected_fields(schema: EntitySchema, key: BoundKey) -> frozenset[str] | None:
    """The fields that an index's entries have; None where that is all of them."""
    attributes = projected_attributes(schema.table, key.index)
    if attributes is None:
        return None
    named = {name for name, each in schema.fields.items() if each.attribute in attributes}
    parts = [each.field for own in (schema.primary, key) for each in own.components]
    return frozenset(named | {each.name for each in parts if each.options.case is None})


def check_selected(schema: EntitySchema, key: BoundKey, names: frozenset[str]) -> None:
    """Raise `UsageError` for fields that an index does not have.

    A local index has the others fetched from the table; but for an upgrade, which looks at whole items.
    """
    available = projected_fields(schema, key)
    if available is None:
        return
    if schema.table.indexes[str(key.index)].kind == "local" and schema.version == 1:
        return
    missing = sorted((names & schema.fields.keys()) - available)
    if missing:
        raise UsageError(
            f"index {key.index!r} does not project {', '.join(missing)}; "
            "project it, or read by the primary key"
        )


def check_filtered(table: Table, index: str | None, condition: Condition) -> None:
    """Raise `UsageError` for a condition on attributes that an index does not have."""
    attributes = projected_attributes(table, index)
    if attributes is None:
        return
    missing = sorted({each.attribute for each in condition.fields()} - attributes)
    if missing:
        raise UsageError(
            f"index {index!r} does not project {', '.join(missing)}, so it cannot be filtered by it; "
            "project it, or read by the primary key"
        )
