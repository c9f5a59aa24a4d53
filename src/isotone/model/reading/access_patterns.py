"""`Order.primary`, `Order.by_status`: an entity's keys on the class, with `where(…)`, `at` and `with_children`.

Order.by_status.where(Order.customer_id == "2b5a41c0", Order.status == "SHIPPED")    # a query
Organization.primary.with_children(User.primary)                                     # a collection
Order.find(Order.customer_id == "2b5a41c0")                                          # by any key
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar, overload

from isotone.errors import UsageError
from isotone.model.declaring.children import Children
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.keys import BoundKey
from isotone.model.reading.families import Collection
from isotone.model.reading.key_bounds import bounds
from isotone.model.reading.queries import Query, Scan, check_unnamed, owner_of

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")
C1 = TypeVar("C1", bound="Entity")
C2 = TypeVar("C2", bound="Entity")
C3 = TypeVar("C3", bound="Entity")
C4 = TypeVar("C4", bound="Entity")
C5 = TypeVar("C5", bound="Entity")
C6 = TypeVar("C6", bound="Entity")
C7 = TypeVar("C7", bound="Entity")


class Pattern(Generic[E]):
    """One key of an entity, as `Order.primary` or `Order.by_status` on the class."""

    __slots__ = ("entity", "key", "schema")

    def __init__(self, entity: type[E], schema: EntitySchema, key: BoundKey) -> None:
        self.entity: type[E] = entity
        self.schema: EntitySchema = schema
        self.key: BoundKey = key

    def where(self, *conditions: Condition, **named: Never) -> Query[E]:
        """The query for the entities that satisfy the conditions.

        The key must be able to answer them: `==` for each partition field, `==` for the first sort fields, and one
        range (or two bounds) on the next field. Raises `Unanswerable` for anything else, with advice.
        """
        if named:
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

    def at(self, **key: Any) -> EntityKey[E]:
        """The primary key with these fields, as a value that store calls accept instead of class and fields.

        Raises `UsageError` for a missing, unknown or wrong field.

        >>> order = store.get(Order.primary.at(customer_id="2b5a41c0", number=157))
        """
        if self.key.index is not None:
            raise UsageError(
                f"{self} is the key of an index, where several entities may have the same values; read it with "
                f".where(…), or use {self.entity.__name__}.{self.schema.primary.name}.at(…)"
            )
        return EntityKey(self.entity, **key)

    def children(self, *fields: Attr[Any]) -> Children:
        """Declares the key of child entities in the same collections, `before` or `after` this one.

        `fields` are the child's own fields that replace this entity's partition fields.

        >>> primary = Organization.primary.children(organization).after("USER", name)
        """
        return Children(self, fields)

    @overload
    def with_children(self, c1: Pattern[C1], /) -> Collection[E, C1]: ...
    @overload
    def with_children(self, c1: Pattern[C1], c2: Pattern[C2], /) -> Collection[E, C1 | C2]: ...
    @overload
    def with_children(
        self, c1: Pattern[C1], c2: Pattern[C2], c3: Pattern[C3], /
    ) -> Collection[E, C1 | C2 | C3]: ...
    @overload
    def with_children(
        self, c1: Pattern[C1], c2: Pattern[C2], c3: Pattern[C3], c4: Pattern[C4], /
    ) -> Collection[E, C1 | C2 | C3 | C4]: ...
    @overload
    def with_children(
        self, c1: Pattern[C1], c2: Pattern[C2], c3: Pattern[C3], c4: Pattern[C4], c5: Pattern[C5], /
    ) -> Collection[E, C1 | C2 | C3 | C4 | C5]: ...
    @overload
    def with_children(
        self,
        c1: Pattern[C1],
        c2: Pattern[C2],
        c3: Pattern[C3],
        c4: Pattern[C4],
        c5: Pattern[C5],
        c6: Pattern[C6],
        /,
    ) -> Collection[E, C1 | C2 | C3 | C4 | C5 | C6]: ...
    @overload
    def with_children(
        self,
        c1: Pattern[C1],
        c2: Pattern[C2],
        c3: Pattern[C3],
        c4: Pattern[C4],
        c5: Pattern[C5],
        c6: Pattern[C6],
        c7: Pattern[C7],
        /,
    ) -> Collection[E, C1 | C2 | C3 | C4 | C5 | C6 | C7]: ...
    @overload
    def with_children(
        self, child: Pattern[Any], /, *others: Pattern[Any]
    ) -> Collection[E, Any]: ...
    def with_children(self, *children: Pattern[Any]) -> Collection[E, Any]:
        """This entity and any number of kinds of its children, in one query. Type checkers know up to seven.

        Raises `UsageError` if they are not in one collection, or if entities of another kind lie between them.

            account = Tenant.primary.with_children(Member.primary, Invoice.primary)
            page = store.page(account.where(Tenant.id == "t1"), size=100)
        """
        for child in children:
            if not isinstance(child, Pattern):
                raise UsageError(f"with_children takes keys, such as Member.primary, not {child!r}")
        return Collection(self, children)

    def scan(self) -> Scan[E]:
        """All entities of this kind in the table or index. Items of other kinds are read and paid for, too."""
        return Scan(name=str(self), schemas=(self.schema,), keys=(self.key,))

    def __str__(self) -> str:
        return f"{self.entity.__name__}.{self.key.name}"

    def __repr__(self) -> str:
        return f"<pattern {self}>"
