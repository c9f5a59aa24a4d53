"""`Walk`: visits every item of a table for `verify` and `rewrite`: segments, pace, progress, from a given position.

    walk = Walk(shop, segments=4, units_per_second=100)
    while not walk.is_over:
        yield from walk.step(visit)             # a page of each segment, given to `visit`
        save(walk.position)                     # a plain JSON value; Walk(shop, position=…) continues there
        tell(walk.progress)

A walk is a Scan with consistent reads. Its segments are read at the same time if the store can. Nothing runs between
two steps, so the position then covers exactly the pages that `visit` has handled. Items written during the walk may or
may not be visited, as in every Scan.

A walk may have a budget of capacity units per second. It then reads smaller pages, and pauses between steps. Units that
`visit` itself uses count, too, if it passes the responses to `count`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from isotone import limits
from isotone.backends.interface import Response
from isotone.errors import ResourceNotFoundException, UsageError
from isotone.model.declaring.table import Table
from isotone.tables.description import TableDescription, describe_table
from isotone.tables.pace import Pace, units_of
from isotone.tables.progress import Estimates, Meter
from isotone.tables.scan import ITEM_UNITS, Position, ScannedPage, Segment, segments_at
from isotone.tables.steps import Call, Pause, Steps, Together
from isotone.text_table import pluralized
from isotone.values.types import Item

Visit = Callable[[list[Item]], Steps[None]]

ITEMS_A_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class WalkProgress(Estimates):
    """The progress of a walk.

    `of_items` is the table's own count, which DynamoDB updates every six hours. `seconds` and `items_per_second` are
    those of this run; the other numbers include earlier runs that it continues.
    """

    table: str
    seen: int
    of_items: int
    units: float
    seconds: float
    items_per_second: float
    is_over: bool

    @property
    def _done(self) -> int:
        return self.seen

    def __str__(self) -> str:
        return self._text(self.table, pluralized(self.units, "unit", form=",.0f"))


class _Position(msgspec.Struct):
    """The saved position of a walk."""

    table: str
    segments: list[Position]
    seen: int = 0
    units: float = 0.0


def check_units(units_per_second: float | None) -> None:
    """Raise `UsageError` for a budget of capacity units with which a walk would read nothing."""
    if units_per_second is not None and not units_per_second > 0:
        raise UsageError(
            f"units_per_second={units_per_second!r} would read nothing; give a number above 0"
        )


class Walk:
    """A walk over the items of one table.

    `segments` are read at the same time, one page of each per step. `units_per_second` is the budget for all of them;
    without it, the walk reads at full speed. `position` is that of an interrupted walk, whose number of segments is
    kept.
    """

    def __init__(
        self,
        table: Table,
        *,
        segments: int = 1,
        units_per_second: float | None = None,
        position: Any = None,
        items_a_page: int = ITEMS_A_PAGE,
        description: TableDescription | None = None,
    ) -> None:
        if type(segments) is not int or not 1 <= segments <= limits.TOTAL_SEGMENTS:
            raise UsageError(f"a table cannot be read in segments={segments!r}; give 1 or more")
        check_units(units_per_second)
        self.table = table
        self.description = description
        """The table's description; the first step reads it, unless it is given."""
        self._items_a_page = items_a_page
        self._pace = Pace(units_per_second)
        at = _restored(table, position) or _Position(table.name, [Position()] * segments)
        self._segments = segments_at(table.name, at.segments)
        self._meter = Meter("walk", table.name, items=at.seen, read_units=at.units)

    @property
    def is_over(self) -> bool:
        """Whether all items have been visited."""
        return all(segment.is_over for segment in self._segments)

    @property
    def position(self) -> Any:
        """Where a later walk can continue, as a JSON value. Read it between two steps."""
        done = self._meter.progress()
        segments = [segment.position for segment in self._segments]
        return msgspec.to_builtins(
            _Position(self.table.name, segments, done.items, done.read_units)
        )

    @property
    def progress(self) -> WalkProgress:
        """Progress so far."""
        done = self._meter.progress(is_over=self.is_over)
        return WalkProgress(
            done.table,
            done.items,
            self.description.item_count if self.description else 0,
            done.read_units,
            done.seconds,
            done.items_per_second,
            done.is_over,
        )

    def count(self, response: Response) -> None:
        """Add a response's units to those that the walk has used."""
        self._spend(units_of(response) or 0.0)

    def step(self, visit: Visit) -> Steps[None]:
        """Read the next page of each segment and pass its items to `visit`; then pause to keep within the budget."""
        if self.description is None:
            self.description = yield from describe(self.table)
        rest = [segment for segment in self._segments if not segment.is_over]
        limit = self._pace.affordable(self._item_units, self._items_a_page, max(len(rest), 1))
        steps = [self._page(segment, limit, visit) for segment in rest]
        if len(steps) == 1:
            yield from steps[0]
        elif steps:
            yield Together(tuple(steps))
        seconds = self._pace.seconds_owed()
        if seconds > 0 and not self.is_over:
            yield Pause(seconds)

    def _page(self, segment: Segment, limit: int, visit: Visit) -> Steps[None]:
        page = ScannedPage.of((yield Call("Scan", segment.request(limit))))
        self._spend(page.units)
        yield from visit(page.items)
        self._meter.add(items=len(page.items))
        self._segments[segment.number] = segment.moved_to(page.after)

    @property
    def _item_units(self) -> float:
        """The average units for an item, including those that visits used."""
        done = self._meter.progress()
        return done.read_units / done.items if done.items else ITEM_UNITS

    def _spend(self, units: float) -> None:
        self._meter.add(read_units=units)
        self._pace.spend(units)


def _restored(table: Table, position: Any) -> _Position | None:
    """The position of an interrupted walk; raises `UsageError` if it is of another table."""
    if position is None:
        return None
    try:
        found = msgspec.convert(position, _Position)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{position!r} is not the position of a walk ({error}); give one that was saved, or None"
        ) from None
    if found.table != table.name or not found.segments:
        raise UsageError(
            f"the position is that of a walk over table {found.table!r}, and this one is over {table.name!r}; "
            "start without a position"
        )
    return found


def describe(table: Table) -> Steps[TableDescription]:
    """The table's description; raises `UsageError` if it does not exist, or has another key."""
    try:
        description = yield from describe_table(table.name)
    except ResourceNotFoundException:
        raise UsageError(
            f"table {table.name!r} does not exist; store.create_tables(…) creates it"
        ) from None
    found = description.key.names
    declared = [each.name for each in table.keys.attributes]
    if found and set(found) != set(declared):
        raise UsageError(
            f"table {table.name!r} has the key {', '.join(found)}, but is declared with {', '.join(declared)}; "
            "correct the declaration, or give it the name of another table"
        )
    return description
