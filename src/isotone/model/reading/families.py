"""`with_children`: a parent and any number of kinds of children in one query; refuses kinds that stand elsewhere.

    Organization.primary.with_children(User.primary, Project.primary).where(Organization.name == "BERKSHIRE")

The query reads one range, which holds all these kinds and no other. If items of another kind could lie in it, the
collection is refused. `declaring.children` makes the children's keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, Union

from isotone.errors import InvalidItem, Unanswerable, UsageError
from isotone.model.declaring.conditions import Condition, ValueComparison
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.keys import BoundKey, groups_alike, partition_in_words
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
from isotone.values.types import sort_key

if TYPE_CHECKING:
    from isotone.model.entity import Entity
    from isotone.model.reading.access_patterns import Pattern
    from isotone.model.reading.cost import Stats

P = TypeVar("P", bound="Entity")
C = TypeVar("C", bound="Entity")
P_co = TypeVar("P_co", bound="Entity", covariant=True)
C_co = TypeVar("C_co", bound="Entity", covariant=True)
K = TypeVar("K", bound="Entity")

if TYPE_CHECKING:
    Some_co = TypeVar("Some_co", covariant=True)
    One_co = TypeVar("One_co", covariant=True)

    class KindOf(Protocol[Some_co, One_co]):
        """The class of one of several entities: type checkers know which, and refuse others."""

        def from_trusted(self, values: dict[str, Any]) -> Some_co: ...
        def model_validate_json(self, json_data: str | bytes | bytearray) -> One_co: ...


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
    schemas: tuple[EntitySchema, ...] = field(default=(), repr=False, compare=False)

    def __iter__(self) -> Iterator[P_co | C_co]:
        """The parent, then its children."""
        if self.parent is not None:
            yield self.parent
        yield from self.children

    def of(self, kind: KindOf[P_co | C_co, K]) -> list[K]:
        """The entities of one kind, in their order; raises `UsageError` for a kind that was not read."""
        return of_kind(self, kind, self.schemas)


def of_kind(
    entities: Iterable[object], kind: KindOf[Any, K], schemas: tuple[EntitySchema, ...]
) -> list[K]:
    """Those of the entities that are of one kind, which must be among the schemas that were read."""
    wanted: Any = kind
    if not isinstance(wanted, type) or not any(
        issubclass(wanted, each.entity) or issubclass(each.entity, wanted) for each in schemas
    ):
        name = wanted.__name__ if isinstance(wanted, type) else repr(wanted)
        read = " or ".join(each.entity.__name__ for each in schemas)
        raise UsageError(f"of({name}): the query does not read this kind; give {read}")
    found: list[Any] = [each for each in entities if isinstance(each, wanted)]
    return found


class Collection(Generic[P, C]):
    """A parent and some kinds of its children, read by one query."""

    def __init__(self, parent: Pattern[P], children: tuple[Pattern[Any], ...]) -> None:
        self._parent = parent
        self._children = children
        for child in children:
            _check_partition(parent, child)
        self._ranges = [_whole(each) for each in (parent, *children)]
        self.check_places()
        parent.schema.table.collections[str(self)] = self

    @property
    def parent(self) -> Pattern[P]:
        """The key of the parent."""
        return self._parent

    def where(self, *conditions: Condition) -> FamilyQuery[P, C]:
        """The query for one parent and its children: `==` for the partition fields, and ranges.

        A single range is read. So only the first kind in it may have a lower bound, and only the last an upper one.
        """
        of_parent, of_child = self._sorted(conditions)
        own = bounds(self._parent.key, of_parent)
        partition = own.restrictions[: len(self._parent.key.partition)]
        asked: list[Sequence[Condition]] = [of_parent]
        whole = [bounds(self._parent.key, self._inherited(self._parent, of_parent))]
        reach = [own]
        for child in self._children:
            inherited = self._inherited(child, of_parent)
            asked.append([*inherited, *of_child[child.schema.tag]])
            whole.append(bounds(child.key, inherited))
            reach.append(bounds(child.key, asked[-1]))
        is_empty = any(each.is_empty for each in reach)
        ranges = self._ranges if is_empty else [each.restrictions[-1] for each in reach]
        if not is_empty:
            self._check_reach(ranges, [each.restrictions[-1] for each in whole])
        return FamilyQuery(
            name=str(self),
            schemas=(self._parent.schema, *(child.schema for child in self._children)),
            keys=(self._parent.key, *(child.key for child in self._children)),
            bounds=KeyBounds((*partition, reduce(_joined, ranges)), reach[-1].free, is_empty),
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
        """The parent's partition conditions, applied to a kind's fields."""
        equal = {c.field.name: c for c in conditions if isinstance(c, ValueComparison)}
        inherited: dict[str, Condition] = {}
        for slot, its in zip(self._parent.key.partition, child.key.partition, strict=True):
            for ours, theirs in zip(slot.components, its.components, strict=True):
                values = equal[ours.field.name].values
                inherited[theirs.field.name] = ValueComparison(theirs.field, "=", values)
        return list(inherited.values())

    def _check_reach(self, ranges: list[Restriction], whole: list[Restriction]) -> None:
        """Raise `Unanswerable` if the range of all kinds contains entities outside the range of one."""
        order = sorted(range(len(whole)), key=lambda place: _start_of(whole[place]))
        for before, after in pairwise(order):
            if interval_of(ranges[before]).high != interval_of(whole[before]).high:
                raise self._unreachable(before, "end", after)
            if interval_of(ranges[after]).low != interval_of(whole[after]).low:
                raise self._unreachable(after, "begin", before)

    def _unreachable(self, place: int, what: str, neighbour: int) -> Unanswerable:
        patterns = (self._parent, *self._children)
        pattern, other = patterns[place], patterns[neighbour].entity.__name__
        return Unanswerable(
            f"the range of {pattern.entity.__name__} does not {what} next to the {other}, so one query would read "
            f"others as well; read them by {pattern} on its own, or put the condition in .filter(…)"
        )

    def check_places(self) -> None:
        """Raise `UsageError` if another kind sorts between the kinds that are read together."""
        schemas = self._parent.schema.table.entities
        for place, one in enumerate(self._ranges):
            for other in self._ranges[place + 1 :]:
                if not (lies_before(one, other) or lies_before(other, one)):
                    raise UsageError(f"{self}: their keys interleave; declare them by children(…)")
        reach = reduce(_joined, self._ranges)
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
                    f"{self} would also read {schema.tag}, whose keys are between theirs; read it with them "
                    f"({schema.entity.__name__}.{key.name}), or put it on the other side of the parent, or in "
                    "another index"
                )


def _joined(one: Restriction, other: Restriction) -> Restriction:
    """The range that spans both; both have bounds, because they begin with literals."""
    joined = hull(one, other)
    assert joined is not None
    return joined


def _start_of(range_: Restriction) -> Any:
    """A sort key for ranges that begin with literals."""
    low = interval_of(range_).low
    assert low is not None
    return sort_key(low)


def _check_partition(parent: Pattern[Any], child: Pattern[Any]) -> None:
    """Raise `UsageError` if a child's items do not stand in the parent's collections."""
    if _has_same_partition(parent, child.schema, child.key):
        return
    where, own = _place_of(parent), _place_of(child)
    instead = "declare its key by children(…), on fields of the same types, or read it by itself"
    for key in child.schema.keys.values():
        if _has_same_partition(parent, child.schema, key):
            instead = f"give {child.entity.__name__}.{key.name}, which does"
    raise UsageError(
        f"{child} does not group its items as {parent} does: it stands in {own}, and {parent} in {where}, so no "
        f"key range holds both; {instead}"
    )


def _has_same_partition(parent: Pattern[Any], schema: EntitySchema, key: BoundKey) -> bool:
    """Whether a key's partition is written exactly like the parent's."""
    if schema.table is not parent.schema.table or key.index != parent.key.index:
        return False
    return groups_alike(parent.key, key)


def _place_of(pattern: Pattern[Any]) -> str:
    """Where the items of a key stand, for messages."""
    index = pattern.key.index
    where = f"table {pattern.schema.table.name!r}" if index is None else f"index {index!r}"
    return f"{where} under {partition_in_words(pattern.key)}"


def _whole(pattern: Pattern[Any]) -> Restriction:
    range_ = range_of(pattern.key)
    if range_ is None:
        raise UsageError(
            f"{pattern}: a collection of several kinds needs string sort keys that begin with literals"
        )
    return range_
