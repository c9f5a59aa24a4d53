"""Access patterns: `Order.by_status.where(…)` is a query, a value that says what is to be read and how.

Nothing is read here. A `Query` or a `Scan` is made from a key of an entity, refined by methods that
each give a new one, and handed to a store. What it cannot answer is refused when it is made.

    Order.by_status.where(Order.customer_id == "2b5a41c0", Order.status == "SHIPPED").newest_first()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar, overload

from isotone.errors import Unanswerable
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.keys import BoundKey
from isotone.model.reading.bounds import bounds
from isotone.model.reading.collections import Children, Collection
from isotone.model.reading.queries import Query, Scan, check_unnamed, owner_of

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema
    from isotone.model.entity import Entity
    from isotone.model.reading.collections import Children, Collection

E = TypeVar("E", bound="Entity")
C = TypeVar("C", bound="Entity")
D = TypeVar("D", bound="Entity")
E_co = TypeVar("E_co", bound="Entity", covariant=True)


class Pattern(Generic[E]):
    """One key of an entity, to be asked: what `Order.primary` and `Order.by_status` are."""

    __slots__ = ("entity", "key", "schema")

    def __init__(self, entity: type[E], schema: EntitySchema, key: BoundKey) -> None:
        self.entity = entity
        self.schema = schema
        self.key = key

    def where(self, *conditions: Condition, **named: Never) -> Query[E]:
        """The entities that satisfy the conditions, which the key's order must be able to answer.

        That is `==` for each field that groups, `==` for the first fields of the order, and one range
        (or two bounds) on the field after them. Raises `Unanswerable` for anything else, with what to
        write instead.
        """
        check_unnamed("where", self.schema, named)
        for condition in conditions:
            owner_of(condition, (self.schema,))
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
        return Children(self, fields)

    @overload
    def with_children(self, child: Pattern[C], /) -> Collection[E, C]: ...
    @overload
    def with_children(self, one: Pattern[C], other: Pattern[D], /) -> Collection[E, C | D]: ...
    def with_children(self, *children: Pattern[Any]) -> Collection[E, Any]:
        """This entity and some kinds of its children, to be read by one query.

        Raises `UsageError` where another kind stands between them.
        """
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
        pattern: Pattern[E] = schema.patterns[key.name]
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
