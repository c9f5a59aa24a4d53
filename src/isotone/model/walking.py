"""Walks: every item of a table, once, at a pace and from any position, for programs that verify or rewrite it.

    walk = Walk(shop, segments=4, units_per_second=100)
    while not walk.is_over:
        yield from walk.step(visit)             # a page of each segment, given to `visit`
        save(walk.position)                     # a plain JSON value; Walk(shop, position=…) continues there
        tell(walk.progress)

A walk is a Scan with consistent reads. Its segments are read at the same time where the store can do so. Between
two steps nothing runs, so the position then covers exactly the pages that `visit` has handled. Items that are written
while the walk is under way may or may not be met, as in every Scan.

A walk may have a budget of capacity units a second. It then reads smaller pages, and pauses between steps. What
`visit` itself reads and writes counts as well, if it passes the responses to `count`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from isotone import limits
from isotone.backends.interface import Response
from isotone.errors import ResourceNotFoundException, UsageError
from isotone.model.declaring.table import Table
from isotone.tables.steps import Call, Pause, Steps, Together
from isotone.text_table import counted
from isotone.values.size import item_size
from isotone.values.types import Item

Visit = Callable[[list[Item]], Steps[None]]

ITEMS_A_PAGE: Final = 500
_UNITS_AN_ITEM: Final = 1.0  # assumed until the first page is read


@dataclass(frozen=True, slots=True)
class WalkProgress:
    """How far a walk has come.

    `of_items` is the table's own count, which DynamoDB updates every six hours. `seconds` and `items_per_second`
    are those of this run; the other numbers include the runs that it continues.
    """

    table: str
    seen: int
    of_items: int
    units: float
    seconds: float
    items_per_second: float
    is_over: bool

    @property
    def share(self) -> float:
        """The fraction of the table that was seen, as far as its count is right."""
        if self.is_over:
            return 1.0
        return min(self.seen / self.of_items, 0.99) if self.of_items else 0.0

    @property
    def seconds_left(self) -> float | None:
        """An estimate of the time to the end; None if there is nothing to estimate it by."""
        if self.is_over:
            return 0.0
        left = self.of_items - self.seen
        return left / self.items_per_second if left > 0 and self.items_per_second else None

    def __str__(self) -> str:
        text = f"{self.table}: {counted(self.seen, 'item')}, "
        if not self.is_over and self.of_items:
            text = f"{self.table}: {self.seen:,} of about {counted(self.of_items, 'item')}, "
        text += counted(self.units, "unit", form=",.0f")
        if self.items_per_second:
            text += f", {self.items_per_second:,.0f} a second"
        left = self.seconds_left
        return f"{text}, {_duration(left)} left" if left else text


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class _Segment(msgspec.Struct):
    """Where a segment continues: after this key, or at its start."""

    after: Item | None = None
    is_over: bool = False


class _Position(msgspec.Struct):
    """Where a walk continues."""

    table: str
    segments: list[_Segment]
    seen: int = 0
    units: float = 0.0


class Walk:
    """A walk over the items of one table.

    `segments` are read at the same time, one page of each in a step. `units_per_second` is the budget for all of
    them; without it, the walk reads as fast as it can. `position` is that of an interrupted walk, whose
    segments it keeps.
    """

    def __init__(
        self,
        table: Table,
        *,
        segments: int = 1,
        units_per_second: float | None = None,
        position: Any = None,
        items_a_page: int = ITEMS_A_PAGE,
        description: Response | None = None,
    ) -> None:
        if type(segments) is not int or not 1 <= segments <= limits.TOTAL_SEGMENTS:
            raise UsageError(f"a table cannot be read in segments={segments!r}; give 1 or more")
        if units_per_second is not None and not units_per_second > 0:
            raise UsageError(
                f"units_per_second={units_per_second!r} would read nothing; give a number above 0"
            )
        self.table = table
        self.description: Response = description or {}
        """The answer of DescribeTable; the first step asks for it, unless it is given."""
        self._units_per_second = units_per_second
        self._items_a_page = items_a_page
        self._at = _restored(table, position) or _Position(
            table.name, [_Segment() for _ in range(segments)]
        )
        self._lock = threading.Lock()  # visits of several segments count at the same time
        self._seen_before = self._at.seen
        self._began = time.monotonic()
        self._free_at = self._began  # when the units that were used are paid for

    @property
    def is_over(self) -> bool:
        """Whether all items were seen."""
        return all(segment.is_over for segment in self._at.segments)

    @property
    def position(self) -> Any:
        """Where a later walk continues: a JSON value. Take it between two steps."""
        return msgspec.to_builtins(self._at)

    @property
    def progress(self) -> WalkProgress:
        """How far the walk has come."""
        seconds = time.monotonic() - self._began
        return WalkProgress(
            self.table.name,
            self._at.seen,
            self.description.get("ItemCount", 0),
            self._at.units,
            seconds,
            (self._at.seen - self._seen_before) / seconds if seconds else 0.0,
            self.is_over,
        )

    def count(self, response: Response) -> None:
        """Add the units of a response to those that the walk has used."""
        consumed = response.get("ConsumedCapacity") or ()
        entries = [consumed] if isinstance(consumed, dict) else consumed
        self._add(sum(float(each.get("CapacityUnits", 0.0)) for each in entries))

    def step(self, visit: Visit) -> Steps[None]:
        """Read the next page of each segment, and give its items to `visit`; then pause, if there is a budget."""
        if not self.description:
            self.description = yield from describe(self.table)
        before = self._at.units
        open_segments = [
            number for number, each in enumerate(self._at.segments) if not each.is_over
        ]
        limit = self._limit(len(open_segments))
        pages = [self._page(number, limit, visit) for number in open_segments]
        if len(pages) == 1:
            yield from pages[0]
        elif pages:
            yield Together(tuple(pages))
        pause = self._pause(self._at.units - before)
        if pause > 0 and not self.is_over:
            yield Pause(pause)

    def _page(self, number: int, limit: int, visit: Visit) -> Steps[None]:
        segment = self._at.segments[number]
        request: dict[str, Any] = {
            "TableName": self.table.name,
            "Limit": limit,
            "ConsistentRead": True,
            "ReturnConsumedCapacity": "TOTAL",
        }
        if len(self._at.segments) > 1:
            request |= {"Segment": number, "TotalSegments": len(self._at.segments)}
        if segment.after is not None:
            request["ExclusiveStartKey"] = segment.after
        response = yield Call("Scan", request)
        items: list[Item] = response["Items"]
        if response.get("ConsumedCapacity"):
            self.count(response)
        else:  # of an engine that does not tell
            self._add(sum(map(item_size, items)) / limits.READ_UNIT)
        yield from visit(items)
        with self._lock:
            self._at.seen += len(items)
        segment.after = response.get("LastEvaluatedKey")
        segment.is_over = segment.after is None

    def _add(self, units: float) -> None:
        with self._lock:
            self._at.units += units

    def _limit(self, segments: int) -> int:
        """The number of items that a page has: with a budget, no more than a second of it pays for."""
        if self._units_per_second is None:
            return self._items_a_page
        an_item = self._at.units / self._at.seen if self._at.seen else _UNITS_AN_ITEM
        affordable = self._units_per_second / max(segments, 1) / (an_item or _UNITS_AN_ITEM)
        return max(1, min(self._items_a_page, int(affordable)))

    def _pause(self, units: float) -> float:
        """The seconds to wait after a step that used these units."""
        if self._units_per_second is None:
            return 0.0
        now = time.monotonic()
        self._free_at = max(self._free_at, now - 1) + units / self._units_per_second
        return self._free_at - now


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


def identity_of(description: Response) -> str:
    """What distinguishes a table from a later one of the same name, by the answer of DescribeTable."""
    return str(description.get("TableId") or description.get("CreationDateTime") or "")


def describe(table: Table) -> Steps[Response]:
    """The answer of DescribeTable; raises `UsageError` for a table that does not exist, or has another key."""
    try:
        response = yield Call("DescribeTable", {"TableName": table.name})
    except ResourceNotFoundException:
        raise UsageError(
            f"table {table.name!r} does not exist; store.create_tables(…) creates it"
        ) from None
    description: Response = response["Table"]
    found = [part["AttributeName"] for part in description.get("KeySchema", ())]
    declared = [each.name for each in table.keys.attributes]
    if found and set(found) != set(declared):
        raise UsageError(
            f"table {table.name!r} has the key {', '.join(found)}, but is declared with {', '.join(declared)}; "
            "correct the declaration, or give it the name of another table"
        )
    return description
