"""`with_children`: a parent and its children in one query; refuses kinds whose items would lie between them.

    Organization.primary.with_children(User.primary).where(Organization.name == "BERKSHIRE")

The query reads a parent and its neighbouring kind, starting from the parent. If items of another kind could lie between
the two, the collection is refused. `declaring.children` makes the children's keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union

from isotone.errors import InvalidItem, Unanswerable, UsageError
from isotone.model.declaring.conditions import Condition, ValueComparison
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.keys import BoundKey, StringSlot
from isotone.model.reading.key_bounds import (
    KeyBounds,
    Restriction,
    bounds,
    flat,
    hull,
    interval_of,
    lies_before,
    may_share,
    range_of,
)
from isotone.model.reading.queries import Query, owner_of

if TYPE_CHECKING:
    from isotone.model.entity import Entity
    from isotone.model.reading.access_patterns import Pattern
    from isotone.model.reading.cost import Stats

P = TypeVar("P", bound="Entity")
C = TypeVar("C", bound="Entity")
P_co = TypeVar("P_co", bound="Entity", covariant=True)
C_co = TypeVar("C_co", bound="Entity", covariant=True)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FamilyQuery(Query[Union[P_co, C_co]], Generic[P_co, C_co]):  # noqa: UP007 - evaluated at run time
    """A parent and its children, read as one range that starts from the parent."""

    parent: EntitySchema
    parent_is_last: bool | None
    """Whether the parent sorts after its children; None if there are children on both sides."""
    asked_by_key: tuple[Sequence[Condition], ...] = ()

    @property
    def conditions_by_key(self) -> tuple[Sequence[Condition], ...]:
        """The conditions on the parent, and those on each kind of children, which include the parent's."""
        return self.asked_by_key

    @property
    def begins_with_parent(self) -> bool:
        """Whether the parent comes first in the direction of the read."""
        return self.parent_is_last is not None and self.backward == self.parent_is_last


@dataclass(frozen=True, slots=True)
class Family(Generic[P_co, C_co]):
    """A parent (or None) and its children in order; `invalid` is as on a page."""

    parent: P_co | None
    children: list[C_co]
    stats: Stats
    invalid: Sequence[InvalidItem] = ()

    def __iter__(self) -> Iterator[P_co | C_co]:
        """The parent, then its children."""
        if self.parent is not None:
            yield self.parent
        yield from self.children


class Collection(Generic[P, C]):
    """A parent and some kinds of its children, read by one query."""

    def __init__(self, parent: Pattern[P], children: tuple[Pattern[Any], ...]) -> None:
        self._parent = parent
        self._children = children
        for child in children:
            _check_partition(parent.key, child)
        self._ranges = [_whole(each) for each in (parent, *children)]
        self.check_places()
        parent.schema.table.collections[str(self)] = self

    def where(self, *conditions: Condition) -> FamilyQuery[P, C]:
        """The query for one parent and its children: `==` for the partition fields, and a range of children.

        The range must begin next to the parent, because a single range is read.
        """
        of_parent, of_child = self._sorted(conditions)
        own = bounds(self._parent.key, of_parent)
        partition = own.restrictions[: len(self._parent.key.partition)]
        range_, free, is_empty = own.restrictions[-1], own.free, own.is_empty
        asked: list[Sequence[Condition]] = [of_parent]
        for child in self._children:
            inherited = self._inherited(child, of_parent)
            asked.append([*inherited, *of_child[child.schema.tag]])
            reach = bounds(child.key, asked[-1])
            if is_empty or reach.is_empty:
                is_empty = True
                continue
            if of_child[child.schema.tag]:
                self._check_reach(child, reach, bounds(child.key, inherited))
            range_, free = _joined(range_, reach.restrictions[-1]), reach.free
        return FamilyQuery(
            name=str(self),
            schemas=(self._parent.schema, *(child.schema for child in self._children)),
            keys=(self._parent.key, *(child.key for child in self._children)),
            bounds=KeyBounds((*partition, range_), free, is_empty),
            asked=conditions,
            asked_by_key=tuple(asked),
            backward=bool(self._parent_is_last),
            parent=self._parent.schema,
            parent_is_last=self._parent_is_last,
        )

    def __str__(self) -> str:
        return f"{self._parent} with " + " and ".join(map(str, self._children))

    @property
    def _parent_is_last(self) -> bool | None:
        parent, *children = self._ranges
        sides = {lies_before(child, parent) for child in children}
        return sides.pop() if len(sides) == 1 else None

    def _sorted(
        self, conditions: tuple[Condition, ...]
    ) -> tuple[list[Condition], dict[str, list[Condition]]]:
        schemas = (self._parent.schema, *(child.schema for child in self._children))
        by_tag: dict[str, list[Condition]] = {schema.tag: [] for schema in schemas}
        for condition in flat(conditions):
            by_tag[owner_of(condition, schemas).tag].append(condition)
        return by_tag.pop(self._parent.schema.tag), by_tag

    def _inherited(self, child: Pattern[Any], conditions: list[Condition]) -> list[Condition]:
        """The parent's partition conditions, applied to the child's fields."""
        equal = {c.field.name: c for c in conditions if isinstance(c, ValueComparison)}
        inherited: dict[str, Condition] = {}
        for slot, its in zip(self._parent.key.partition, child.key.partition, strict=True):
            for ours, theirs in zip(slot.components, its.components, strict=True):
                values = equal[ours.field.name].values
                inherited[theirs.field.name] = ValueComparison(theirs.field, "=", values)
        return list(inherited.values())

    def _check_reach(self, child: Pattern[Any], asked: KeyBounds, whole: KeyBounds) -> None:
        """Raise `Unanswerable` for a range of children that does not start next to the parent."""
        reached, all_ = (interval_of(each.restrictions[-1]) for each in (asked, whole))
        is_before = lies_before(whole.restrictions[-1], self._ranges[0])
        if reached.high == all_.high if is_before else reached.low == all_.low:
            return
        raise Unanswerable(
            f"the range of {child.entity.__name__} does not begin next to the "
            f"{self._parent.entity.__name__}, so one query would read others as well; "
            f"read them by {child} on its own"
        )

    def check_places(self) -> None:
        """Raise `UsageError` if another kind sorts between the kinds that are read together."""
        schemas = self._parent.schema.table.entities
        for place, one in enumerate(self._ranges):
            for other in self._ranges[place + 1 :]:
                if not (lies_before(one, other) or lies_before(other, one)):
                    raise UsageError(f"{self}: their keys interleave; declare them by children(…)")
        reach = self._ranges[0]
        for range_ in self._ranges[1:]:
            reach = _joined(reach, range_)
        own = {self._parent.schema.tag, *(child.schema.tag for child in self._children)}
        for schema in schemas.values():
            self._check_stranger(schema, own, reach)

    def _check_stranger(self, schema: EntitySchema, own: set[str], reach: Restriction) -> None:
        if schema.lineage & own:
            return
        for key in schema.keys.values():
            if key.index != self._parent.key.index or not may_share(self._parent.key, key):
                continue
            range_ = range_of(key)
            if range_ is None or not (lies_before(range_, reach) or lies_before(reach, range_)):
                raise UsageError(
                    f"{self} would also read {schema.tag}, whose keys are between theirs; put that kind on the "
                    "other side of the parent, or in another index"
                )


def _joined(one: Restriction, other: Restriction) -> Restriction:
    """The range that spans both; both have bounds, because they begin with literals."""
    joined = hull(one, other)
    assert joined is not None
    return joined


def _check_partition(parent: BoundKey, child: Pattern[Any]) -> None:
    """Raise `UsageError` if a child's partition key is not written exactly like its parent's."""
    if child.key.index != parent.index:
        raise UsageError(
            f"{child} is not on the same index as its parent's key; declare it by children(…), or read it by itself"
        )
    for slot, its in zip(parent.partition, child.key.partition, strict=True):
        same = isinstance(slot, StringSlot) is isinstance(its, StringSlot)
        if same and isinstance(slot, StringSlot) and isinstance(its, StringSlot):
            same = slot.template == its.template
        if not same:
            raise UsageError(
                f"{child} does not group its items as its parent does, so they are not in one "
                "collection; declare its key by children(…), on fields of the same types"
            )


def _whole(pattern: Pattern[Any]) -> Restriction:
    range_ = range_of(pattern.key)
    if range_ is None:
        raise UsageError(
            f"{pattern}: a collection of several kinds needs string sort keys that begin with literals"
        )
    return range_
