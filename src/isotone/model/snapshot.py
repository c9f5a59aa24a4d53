"""A small collection in memory: loaded once, then filtered, sorted and shown by any attribute.

Under a megabyte, one read costs less than the indexes that every order and every filter would need.
Conditions mean here what they mean in the database, because they judge the very items that it sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from isotone.errors import UsageError
from isotone.expressions import Condition as Predicate
from isotone.model.components import Component
from isotone.model.conditions import Condition
from isotone.model.fields import Attr
from isotone.model.showing import table_text
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")
T = TypeVar("T")


class Snapshot(Sequence[E], Generic[E]):
    """Entities as they were when they were loaded; `size` is what their items have in bytes.

    Every method gives a new one.
    """

    def __init__(self, entities: list[E], items: list[Item], size: int) -> None:
        self._entities = entities
        self._items = items
        self.size = size

    @overload
    def __getitem__(self, place: int) -> E: ...
    @overload
    def __getitem__(self, place: slice) -> list[E]: ...
    def __getitem__(self, place: int | slice) -> E | list[E]:
        return self._entities[place]

    def __len__(self) -> int:
        return len(self._entities)

    def __iter__(self) -> Iterator[E]:
        return iter(self._entities)

    def where(self, *conditions: Condition) -> Snapshot[E]:
        """Those that satisfy the conditions. O(n), and nothing is read."""
        judges = [Predicate.from_node(condition.node()) for condition in conditions]
        return self._of(
            place
            for place, item in enumerate(self._items)
            if all(judge.matches(item, {}) for judge in judges)
        )

    def sorted_by(self, *parts: Attr[Any] | Component) -> Snapshot[E]:
        """In the order of fields, the most significant first; `desc(field)` turns one round.

        Entities without a value come last.
        """
        places = list(range(len(self)))
        for part in reversed(parts):
            component = part if isinstance(part, Component) else Component(part)
            known, unknown = self._by_presence(places, component.field.name)
            known.sort(key=self._values(component.field.name), reverse=component.descending)
            places = known + unknown
        return self._of(places)

    def group_by(self, field: Attr[T]) -> dict[T, list[E]]:
        """The entities of each value, in the order of their first appearance."""
        groups: dict[T, list[E]] = {}
        for each in self:
            groups.setdefault(getattr(each, field.name), []).append(each)
        return groups

    def gaps(self, start: Attr[T], end: Attr[T], *, between: tuple[T, T]) -> list[tuple[T, T]]:
        """What the intervals from `start` to `end` leave free within bounds: a calendar's free slots."""
        reached, last = between
        free: list[tuple[T, T]] = []
        for each in self.sorted_by(start):
            begins: Any = getattr(each, start.name)
            ends: Any = getattr(each, end.name)
            if begins >= last:
                break
            if begins > reached:
                free.append((reached, begins))
            reached = max(reached, ends)
        if reached < last:  # type: ignore[operator]
            free.append((reached, last))
        return free

    def table(self, *fields: Attr[Any]) -> str:
        """The entities as lines of text, a column for each field (all of them, unless some are named)."""
        if not fields and self._entities:
            fields = tuple(self._entities[0].__schema__.fields.values())
        return table_text(self._entities, fields)

    def _of(self, places: Any) -> Snapshot[E]:
        kept = list(places)
        return Snapshot(
            [self._entities[place] for place in kept],
            [self._items[place] for place in kept],
            self.size,
        )

    def _values(self, name: str) -> Callable[[int], Any]:
        return lambda place: getattr(self._entities[place], name)

    def _by_presence(self, places: list[int], name: str) -> tuple[list[int], list[int]]:
        value = self._values(name)
        try:
            known = [place for place in places if value(place) is not None]
        except AttributeError:
            raise UsageError(f"not every entity that was loaded has a field {name!r}") from None
        return known, [place for place in places if value(place) is None]

    def __repr__(self) -> str:
        return f"<snapshot of {len(self)} entities, {self.size} bytes>"
