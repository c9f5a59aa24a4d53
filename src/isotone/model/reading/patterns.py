"""Access patterns: `Order.by_status.where(…)` is a query, a value that says what is to be read and how.

Nothing is read here. A `Query` or a `Scan` is made from a key of an entity, refined by methods that
each give a new one, and handed to a store. What it cannot answer is refused when it is made.

    Order.by_status.where(Order.customer_id == "2b5a41c0", Order.status == "SHIPPED").newest_first()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Never, NoReturn, Self, TypeVar, overload

from isotone.backends.interface import Request
from isotone.errors import Unanswerable, UsageError
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.keys import BoundKey
from isotone.model.declaring.table import Table
from isotone.model.reading import requests
from isotone.model.reading.bounds import KeyBounds, bounds
from isotone.model.reading.projecting import check_filtered, check_selected, key_attributes
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema
    from isotone.model.entity import Entity
    from isotone.model.reading.collections import Children, Collection

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
            requests.owner_of(condition, self.schemas)
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
                    f"{what!r} is no field of {requests.titles(self.schemas)}; select whole fields, "
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
    def takes(self) -> requests.Selection:
        """Which of the items read are meant, and what of them."""
        return requests.Selection(self)


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
        return requests.query(self)


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
        return requests.scan(self)


class Pattern(Generic[E]):
    """One key of an entity, to be asked: what `Order.primary` and `Order.by_status` are."""

    __slots__ = ("entity", "key", "schema")

    def __init__(self, entity: type[E], key: BoundKey) -> None:
        self.entity = entity
        self.schema = entity.__schema__
        self.key = key

    def where(self, *conditions: Condition, **named: Never) -> Query[E]:
        """The entities that satisfy the conditions, which the key's order must be able to answer.

        That is `==` for each field that groups, `==` for the first fields of the order, and one range
        (or two bounds) on the field after them. Raises `Unanswerable` for anything else, with what to
        write instead.
        """
        check_unnamed("where", self.schema, named)
        for condition in conditions:
            requests.owner_of(condition, (self.schema,))
        return Query(
            name=str(self),
            schemas=(self.schema,),
            keys=(self.key,),
            bounds=bounds(self.key, conditions),
            asked=conditions,
        )

    def children(self, *fields: Attr[Any]) -> Children:
        """To declare the key of entities in the same collections, `before` or `after` this one.

        `fields` are the child's own, in the places of those that group this one's items.

        >>> primary = Organization.primary.children(organization).after("USER", name)  # doctest: +SKIP
        """
        from isotone.model.reading.collections import Children

        return Children(self, fields)

    @overload
    def with_children(self, child: Pattern[C], /) -> Collection[E, C]: ...
    @overload
    def with_children(self, one: Pattern[C], other: Pattern[D], /) -> Collection[E, C | D]: ...
    def with_children(self, *children: Pattern[Any]) -> Collection[E, Any]:
        """This entity and some kinds of its children, to be read by one query.

        Raises `UsageError` where another kind stands between them.
        """
        from isotone.model.reading.collections import Collection

        return Collection(self, children)

    def scan(self) -> Scan[E]:
        """Everything in the table, or in the index; what other entities have there is paid for too."""
        return Scan(name=str(self), schemas=(self.schema,), keys=(self.key,))

    def __str__(self) -> str:
        return f"{self.entity.__name__}.{self.key.name}"

    def __repr__(self) -> str:
        return f"<pattern {self}>"


def find(entity: type[E], conditions: tuple[Condition, ...]) -> Query[E]:
    """The query by the first key, the primary one before the indexes, that answers all conditions.

    Indexes that lack some of the entities or of their fields are not considered. Raises
    `Unanswerable` with each key's reason where there is none: nothing is ever scanned instead.
    """
    schema = entity.__schema__
    reasons = []
    for key in (schema.primary, *schema.indexes):
        pattern = Pattern(entity, key)
        try:
            found = pattern.where(*conditions)
        except Unanswerable as error:
            reasons.append(str(error))
            continue
        lacking = _lacking(schema, key, conditions)
        if lacking is None:
            return found
        reasons.append(f"{key.name} {lacking}; ask it by name if that is what you mean")
    raise Unanswerable(
        f"no key of {entity.__name__} answers these conditions:\n  " + "\n  ".join(reasons)
    )


def _lacking(schema: EntitySchema, key: BoundKey, conditions: tuple[Condition, ...]) -> str | None:
    """Why an index may not show all that satisfies the conditions."""
    if key.index is None:
        return None
    if key.when is not None:
        return "is sparse, so it lacks some entities"
    if schema.table.indexes[key.index].projection != "ALL":
        return "does not project all attributes"
    asked = {each.name for condition in conditions for each in condition.fields()}
    optional = [
        name
        for component in key.components
        if component.field.wire.optional and (name := component.field.name) not in asked
    ]
    return f"lacks entities without {optional[0]}" if optional else None


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
