"""`merge`: several queries read as one (a feed of many authors), sorted together, with one cursor.

    mine = isotone.merge(*[Post.by_author.where(Post.author == name) for name in following])
    page = store.page(mine, size=25)

Each query is read in its own order. The merge takes the first of the next items until the page is full. A cursor has a
position in each query, so nothing is returned twice or left out. An item that is inserted behind the current position
may still appear on the next page.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from isotone.errors import InvalidItem, TooMany, UsageError
from isotone.model.declaring.keys import BoundKey, Component, NativeSlot
from isotone.model.reading.cost import CostMeter, Stats
from isotone.model.reading.cursors import identity
from isotone.model.reading.item_selection import Found
from isotone.model.reading.positions import packed, position, unpacked
from isotone.model.reading.queries import Query
from isotone.model.reading.reader import Page, Reader, results
from isotone.tables.steps import Steps
from isotone.values.types import Item, sort_key

if TYPE_CHECKING:
    from isotone.model.entity import Entity

E = TypeVar("E")

_SPARE: Final = 2  # items that each request reads beyond a query's share of the page
_PAGE: Final = 100
_AT_END: Final = False

_Place = list[str] | bool | None
"""A position in one query: the key parts of the last item; None at the start, False at the end."""


@dataclass(frozen=True, slots=True)
class Merge(Generic[E]):
    """Several queries that are read as one; made by `merge`."""

    queries: tuple[Query[E], ...]

    def reversed(self) -> Merge[E]:
        """The merge in the opposite direction."""
        return replace(self, queries=tuple(query.reversed() for query in self.queries))

    @property
    def is_descending(self) -> bool:
        """Whether the greatest values come first."""
        return any(map(_is_descending, self.queries[:1]))

    def __repr__(self) -> str:
        return f"<Merge of {', '.join(map(repr, self.queries))}>"


def merge(*queries: Query[E]) -> Merge[E]:
    """Merge several queries into one, for `page`, `iterate`, `all`, `first` and `count`.

    All queries must be ordered by a field of the same type, in the same direction. Among equal values, results of an
    earlier query come first. A page costs about as many items as it has, plus a few per query.

    >>> page = store.page(isotone.merge(posts_of("ann"), posts_of("bob")), size=25)
    """
    for query in queries:
        _check(query)
    orders = {(_order_of(query), _is_descending(query)): query for query in queries}
    if len(orders) > 1:
        one, other = list(orders.values())[:2]
        raise UsageError(
            f"{one!r} is ordered by {_title(one)}, and {other!r} by {_title(other)}, so their results have "
            "no common order; give all queries the same direction, and a key ordered by a field of the same type"
        )
    return Merge(queries)


def _check(query: Query[Any]) -> None:
    if not isinstance(query, Query):
        raise UsageError(
            f"{query!r} cannot be merged; give queries, such as Order.primary.where(…)"
        )
    if (query.most_results, query.most_units, query.most_requests) != (None, None, None):
        raise UsageError(
            f"{query!r} has bounds of its own; leave out limit(…), max_units(…) and max_requests(…), and "
            "read a page of the merge"
        )
    free = _free(query)
    if query.selected is not None and free.field.name not in query.selected:
        raise UsageError(
            f"{query!r} is merged by {free.field.name!r}, which it does not select; select it, too"
        )


def _free(query: Query[Any]) -> Component:
    """The field by which a query's results are ordered."""
    free = query.bounds.free
    if free is None or len(query.keys) != 1 or not query.keys[0].sorts_by(free):
        raise UsageError(
            f"{query!r} has no order to merge by: its conditions must leave open a field by which the key sorts"
        )
    return free


def _order_of(query: Query[Any]) -> tuple[object, ...]:
    """What two queries must have in common to be merged."""
    free = _free(query)
    slot, place = _slot_of(query.keys[0], free)
    return free.field.annotation, isinstance(slot, NativeSlot), free.form, place is None


def _is_descending(query: Query[Any]) -> bool:
    return _free(query).descending is not query.backward


def _title(query: Query[Any]) -> str:
    free = _free(query)
    return f"{free.field.name!r} {'descending' if _is_descending(query) else 'ascending'}"


def _slot_of(key: BoundKey, free: Component) -> tuple[Any, int]:
    return next(
        (slot, place)
        for slot in key.sort
        for place, each in enumerate(slot.components)
        if each is free
    )


def _ranker(query: Query[Any]) -> Callable[[Entity], Any]:
    """A function from an entity to the value by which merged results are compared."""
    free = _free(query)
    name = free.field.name
    slot, place = _slot_of(query.keys[0], free)
    if isinstance(slot, NativeSlot):
        return lambda entity: sort_key(slot.field.encode(entity.__dict__[name]))
    return lambda entity: slot.to_codec(place, entity.__dict__[name])


class _Stream:
    """One query while a page is read."""

    def __init__(self, query: Query[Any], place: _Place) -> None:
        self._query = query
        self._rank = _ranker(query)
        self._meter = CostMeter(query.is_consistent, query.when_invalid)
        self._next: Item | None = unpacked(query, place) if isinstance(place, list) else None
        self._taken = self._next
        self._first: Item | None = None
        self._is_read = place is _AT_END or query.is_empty
        self.ahead: deque[tuple[Any, Found]] = deque()
        self.invalid: list[InvalidItem] = []

    @property
    def is_short(self) -> bool:
        """Whether it must be read further before the next result is known."""
        return not self.ahead and not self._is_read

    def fill(self, reader: Reader, wanted: int) -> Steps[None]:
        """Read the next items."""
        found, self._next = yield from reader.collect_after(
            self._query, wanted, self._next, self._meter
        )
        self.invalid += self._meter.settle()
        self._is_read = self._next is None
        if found and self._first is None:
            self._first = position(self._query, found[0][1])
        self.ahead.extend((self._rank(entity), (entity, item)) for entity, item in found)

    def take(self) -> Any:
        """The next result."""
        _, found = self.ahead.popleft()
        self._taken = position(self._query, found[1])
        (result,) = results(self._query, [found])
        return result

    @property
    def after(self) -> _Place:
        """The position after the last result that was taken."""
        if self._is_read and not self.ahead:
            return _AT_END
        return None if self._taken is None else packed(self._query, self._taken)

    @property
    def before(self) -> _Place:
        """The position, for the opposite direction, before the first item read."""
        return None if self._first is None else packed(self._query, self._first)

    def stats(self, reader: Reader) -> Stats:
        """The cost. Each item counts once, although some are read again for the next page."""
        self._meter.returned -= len(self.ahead)
        return reader.stats(self._query, self._meter)


def page(reader: Reader, merge: Merge[E], size: int, cursor: str | None) -> Steps[Page[E]]:
    """`Reader.page` of a merge."""
    if type(size) is not int or size < 1:
        raise UsageError(f"a page cannot have size={size!r}; give 1 or more")
    of = identity(["merge", [query.cursor_identity.hex() for query in merge.queries]])
    is_back, places = False, [None] * len(merge.queries)
    if cursor is not None and cursor != "":
        is_back, places = reader.cursors.read(cursor, of)
    turned = merge.reversed() if is_back else merge
    streams = list(map(_Stream, turned.queries, places))
    entities = yield from _take(reader, turned, streams[::-1] if is_back else streams, size)
    if is_back:  # reading back: whether an item precedes tells whether this is the first page
        for stream in streams:
            if stream.is_short:
                yield from stream.fill(reader, 1)
        entities.reverse()
    after, before = [each.after for each in streams], [each.before for each in streams]
    far = _cursor(reader, is_back, after, of) if any(x is not _AT_END for x in after) else None
    is_start = not is_back and all(place is None for place in places)
    near = None if is_start else _cursor(reader, not is_back, before, of)
    return Page(
        cast("list[E]", entities),
        near if is_back else far,
        far if is_back else near,
        sum((stream.stats(reader) for stream in streams), Stats()),
        [error for stream in streams for error in stream.invalid],
        tuple({schema: 0 for query in merge.queries for schema in query.schemas}),
    )


def _cursor(reader: Reader, is_back: bool, places: list[_Place], of: bytes) -> str:
    return reader.cursors.write((is_back, places), of)


def _take(reader: Reader, merge: Merge[Any], streams: list[_Stream], size: int) -> Steps[list[Any]]:
    """The first results of all streams; among equal values, an earlier stream's come first."""
    entities: list[Any] = []
    share = min(size, -(-size // max(1, len(streams))) + _SPARE)
    first = max if merge.is_descending else min
    while len(entities) < size:
        for stream in streams:
            if stream.is_short:
                yield from stream.fill(reader, share)
        ready = [stream for stream in streams if stream.ahead]
        if not ready:
            break
        entities.append(first(ready, key=lambda stream: stream.ahead[0][0]).take())
    return entities


class MergeTraversal(Generic[E]):
    """A merge in progress: each step returns more results, until `is_over`."""

    def __init__(self, reader: Reader, merge: Merge[E]) -> None:
        self._reader = reader
        self._merge = merge
        self._streams = [_Stream(query, None) for query in merge.queries]

    @property
    def is_over(self) -> bool:
        """Whether there are no more results."""
        return all(stream.after is _AT_END for stream in self._streams)

    def step(self, size: int = _PAGE) -> Steps[list[E]]:
        """The next results, at most `size`."""
        entities = yield from _take(self._reader, self._merge, self._streams, size)
        return cast("list[E]", entities)


def read_all(reader: Reader, merge: Merge[E], at_most: int | None) -> Steps[list[E]]:
    """`Reader.all` of a merge."""
    traversal = MergeTraversal(reader, merge)
    entities: list[E] = []
    while not traversal.is_over:
        entities += yield from traversal.step(_PAGE if at_most is None else at_most + 1)
        if at_most is not None and len(entities) > at_most:
            raise TooMany(f"{merge!r} has more than {at_most} results", Stats())
    return entities


def read_first(reader: Reader, merge: Merge[E]) -> Steps[E | None]:
    """`Reader.first` of a merge."""
    entities = yield from MergeTraversal(reader, merge).step(1)
    return entities[0] if entities else None


def count(reader: Reader, merge: Merge[E]) -> Steps[int]:
    """`Reader.count` of a merge."""
    total = 0
    for query in merge.queries:
        total += yield from reader.count(query)
    return total
