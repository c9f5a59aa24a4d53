"""`load`: a small collection in memory (`Snapshot`), to filter, sort and group by any field; no copy of a table.

Under a megabyte, one read costs less than an index for each order and filter. Conditions mean the same as in the
database, because they are evaluated on the stored items.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from isotone.errors import InvalidItem, UsageError
from isotone.expressions import CompiledCondition
from isotone.model.declaring.absent_attributes import DEFAULTS
from isotone.model.declaring.conditions import Condition, not_a_condition
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.keys import Component, component_of, declared_values
from isotone.model.reading.cost import Stats
from isotone.model.reading.projections import Projection
from isotone.model.reading.showing import table_text
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.entity import Entity

R = TypeVar("R")
T = TypeVar("T")


class Snapshot(Sequence[R], Generic[R]):
    """Loaded entities, or projections of them. `size` is that of their items in bytes, `stats` the cost of loading them.

    Conditions and orders are by fields of the entity, also for projections. Every method returns a new snapshot.
    `is_whole` is False if an index supplied the entities, and lacks attributes.
    `invalid` is as on a page.
    """

    def __init__(
        self,
        results: list[R],
        sources: list[tuple[Entity, Item]],
        size: int,
        stats: Stats,
        *,
        is_whole: bool = True,
        invalid: Sequence[InvalidItem] = (),
    ) -> None:
        self._results = results
        self._sources = sources
        self._is_whole = is_whole
        self.size = size
        self.stats = stats
        self.invalid = invalid

    @overload
    def __getitem__(self, place: int) -> R: ...
    @overload
    def __getitem__(self, place: slice) -> list[R]: ...
    def __getitem__(self, place: int | slice) -> R | list[R]:
        return self._results[place]

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[R]:
        return iter(self._results)

    def where(self, *conditions: Condition) -> Snapshot[R]:
        """The entities that satisfy the conditions, evaluated as in the database. O(n); reads nothing.

        An entity satisfies a condition only if its class has the field. Raises `UsageError` for a condition on a field
        that was not loaded.
        """
        tests = [self._test(condition) for condition in conditions]
        return self._of(place for place in range(len(self)) if all(test(place) for test in tests))

    def sorted_by(self, *parts: Attr[Any] | Component) -> Snapshot[R]:
        """The entities sorted by fields, as in a key: the most significant field first.

        `desc(field)` reverses a field's order; `in_order(field)` uses the order of declaration. Entities without a
        value come last.
        """
        places = list(range(len(self)))
        for part in reversed(parts):
            component = component_of(part)
            rank, value = _rank(component), self._values(component.field.name)
            known, unknown = self._by_presence(places, component.field.name)
            try:
                known.sort(key=lambda place: rank(value(place)), reverse=component.descending)
            except TypeError:
                raise _orderless(component.field) from None
            places = known + unknown
        return self._of(places)

    def group_by(self, field: Attr[T]) -> dict[T, list[R]]:
        """The entities grouped by a field's value; values in the order in which they first appear."""
        groups: dict[T, list[R]] = {}
        for result, (entity, _) in zip(self._results, self._sources, strict=True):
            groups.setdefault(getattr(entity, field.name), []).append(result)
        return groups

    def gaps(self, start: Attr[T], end: Attr[T], *, between: tuple[T, T]) -> list[tuple[T, T]]:
        """The gaps between intervals from `start` to `end`, within bounds: a calendar's free slots."""
        reached, last = between
        free: list[tuple[T, T]] = []
        for each, _ in self.sorted_by(start)._sources:
            begins: Any = getattr(each, start.name)
            ends: Any = getattr(each, end.name)
            if begins >= last:
                break
            if begins > reached:
                free.append((reached, begins))
            reached = max(reached, ends)
        if reached < last:  # type: ignore[operator] # T has an order where gaps make sense
            free.append((reached, last))
        return free

    def table(self, *fields: Attr[Any]) -> str:
        """The entities as a text table with one column for each field; all that were read by default."""
        entities = [entity for entity, _ in self._sources]
        if not fields and isinstance(next(iter(self), None), Projection):
            return table_text(cast("list[Any]", self._results))
        if not fields and entities:
            fields = tuple(entities[0].__schema__.fields.values())
        return table_text(entities, fields)

    def _of(self, places: Any) -> Snapshot[R]:
        kept = list(places)
        return Snapshot(
            [self._results[place] for place in kept],
            [self._sources[place] for place in kept],
            self.size,
            self.stats,
            is_whole=self._is_whole,
            invalid=self.invalid,
        )

    def _test(self, condition: Condition) -> Callable[[int], bool]:
        """A function that tells whether the entity at a position satisfies a condition."""
        if not isinstance(condition, Condition):
            raise not_a_condition(condition)
        fields = list(condition.fields())
        owners = {
            schema
            for schema in {entity.__schema__ for entity, _ in self._sources}
            if all(schema.fields.get(each.name) is each for each in fields)
        }
        names = ", ".join(dict.fromkeys(each.name for each in fields))
        if self._sources and not owners:
            raise UsageError(f"no loaded entity has the field {names}; use its own fields")
        matches = CompiledCondition.from_node(condition.node(DEFAULTS)).matches

        def test(place: int) -> bool:
            entity, item = self._sources[place]
            if entity.__schema__ not in owners:
                return False
            for each in fields:
                if each.name not in entity.__dict__:
                    raise UsageError(f"the field {each.name!r} was not loaded; select it as well")
                schema, value = entity.__schema__, entity.__dict__[each.name]
                is_in_key = not self._is_whole or value != schema.absent(each)
                if is_in_key and each.attribute not in item:
                    item = {**item, **schema.encoded(each, value)}
            return matches(item, {})

        return test

    def _values(self, name: str) -> Callable[[int], Any]:
        return lambda place: getattr(self._sources[place][0], name)

    def _by_presence(self, places: list[int], name: str) -> tuple[list[int], list[int]]:
        value = self._values(name)
        try:
            known = [place for place in places if value(place) is not None]
        except AttributeError:
            raise UsageError(
                f"not every loaded entity has a field {name!r}; if the query selects fields, select it as well"
            ) from None
        return known, [place for place in places if value(place) is None]

    def __repr__(self) -> str:
        return f"<snapshot of {len(self)} entities, {self.size} bytes>"


def _rank(component: Component) -> Callable[[Any], Any]:
    """A function from a value to how it sorts in a key: an enum by its value, a text in the key's case."""
    field = component.field
    if field.wire.python in (set, frozenset):
        raise _orderless(field)  # Python would compare sets by inclusion
    order = declared_values(field) if component.form == "in_order" else field.order
    if order:
        return {choice: place for place, choice in enumerate(order)}.__getitem__
    if field.options.case is not None:
        return operator.methodcaller(field.options.case)
    return lambda value: value.value if isinstance(value, Enum) else value


def _orderless(field: Attr[Any]) -> UsageError:
    return UsageError(f"the values of {field.name!r} have no order; sort by another field")
