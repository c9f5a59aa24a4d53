"""Scans a whole table, in segments and from any position: its requests, its pages, and where each segment continues.

    for page in pages(backend, Segment("Orders", 0, 4), pace, items_a_page=1000):
        write(page.items)
        save(page.after)                # Segment(…, after=page.after) continues there

`pages` sends the requests itself; steps yield those of `Segment.request` and pass the answers to `ScannedPage.of`.
Reads are strongly consistent, so a page contains every write that was acknowledged before. Where the backend can leave
items in JSON, they are `msgspec.Raw`: an item that is only passed on need not be decoded.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec

from isotone import limits
from isotone.backends.interface import Backend, Response, json_reads
from isotone.daemon import Daemon
from isotone.tables.pace import Pace, units_of
from isotone.values.types import Item

ItemOrJson: TypeAlias = Item | msgspec.Raw
"""An item as a dict, or the same in JSON."""

ITEMS_A_PAGE: Final = 2000
ITEM_UNITS: Final = 1.0  # assumed until a page has been read
_WAITING: Final = 2  # pages of each segment that are read ahead of the caller

_decode: Final = msgspec.json.Decoder(dict[str, dict[str, Any]]).decode


class Position(msgspec.Struct, frozen=True):
    """Where a segment continues: after a key, or at its start (None). Saved states contain this form."""

    after: Item | None = None
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """One of `total` parts of a table; it continues after the key `after`, which is None at its start."""

    table: str
    number: int = 0
    total: int = 1
    after: Item | None = None
    is_over: bool = False

    @property
    def position(self) -> Position:
        """Where the segment continues, in the saved form."""
        return Position(self.after, self.is_over)

    def request(self, limit: int | None, *, consistent: bool = True) -> dict[str, Any]:
        """The request for the next page, of up to `limit` items."""
        request: dict[str, Any] = {"TableName": self.table, "ReturnConsumedCapacity": "TOTAL"}
        if consistent:
            request["ConsistentRead"] = True
        if limit is not None:
            request["Limit"] = limit
        if self.total > 1:
            request |= {"Segment": self.number, "TotalSegments": self.total}
        if self.after is not None:
            request["ExclusiveStartKey"] = self.after
        return request

    def moved_to(self, after: Item | None) -> Segment:
        """The segment, to be continued after another key; None at its end."""
        return replace(self, after=after, is_over=after is None)


def segments_at(table: str, positions: Sequence[Position]) -> list[Segment]:
    """The segments of a scan, to be continued at these positions."""
    return [
        Segment(table, number, len(positions), each.after, each.is_over)
        for number, each in enumerate(positions)
    ]


@dataclass(frozen=True, slots=True)
class ScannedPage:
    """Some items of a segment, the position after them (None at its end), and the units that they cost."""

    items: list[Any]
    after: Item | None
    units: float

    @classmethod
    def of(cls, response: Response) -> ScannedPage:
        """The page in the answer to `Segment.request`."""
        return cls(response["Items"], response.get("LastEvaluatedKey"), _cost(response))

    @property
    def position(self) -> Position:
        """Where the segment continues."""
        return Position(self.after, self.after is None)


def pages(
    backend: Backend,
    segment: Segment,
    pace: Pace,
    *,
    items_a_page: int | Callable[[], int] = ITEMS_A_PAGE,
) -> Iterator[ScannedPage]:
    """The rest of a segment. With a budget, a page costs at most one second of the segment's share.

    `items_a_page` may be a function, which is called before each page.
    """
    read = json_reads(backend)
    item_units = ITEM_UNITS
    while not segment.is_over:
        most = items_a_page() if callable(items_a_page) else items_a_page
        request = segment.request(pace.affordable(item_units, most, segment.total))
        page = ScannedPage.of(pace.send(partial(read, "Scan", request), _cost))
        if page.items:
            item_units = page.units / len(page.items)
        yield page
        segment = segment.moved_to(page.after)


def pages_together(
    segments: Sequence[Segment], read: Callable[[Segment], Iterator[ScannedPage]]
) -> Iterator[tuple[int, ScannedPage]]:
    """The pages of all segments as they arrive, with the segment's number; each segment is read by its own thread."""
    rest = [segment for segment in segments if not segment.is_over]
    if len(rest) == 1:
        yield from ((rest[0].number, page) for page in read(rest[0]))
        return
    ready: queue.Queue[tuple[int, ScannedPage | BaseException | None]] = queue.Queue(
        _WAITING * max(len(rest), 1)
    )
    stop = threading.Event()

    def give(number: int, found: ScannedPage | BaseException | None) -> None:
        while not stop.is_set():
            try:
                ready.put((number, found), timeout=0.1)
            except queue.Full:
                continue
            return

    def work(segment: Segment) -> None:
        try:
            for page in read(segment):
                give(segment.number, page)
                if stop.is_set():
                    return
            give(segment.number, None)
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            give(segment.number, error)

    threads = [Daemon(partial(work, each), "isotone-scan", end=stop.set) for each in rest]
    try:
        left = len(threads)
        while left:
            number, found = ready.get()
            if found is None:
                left -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                yield number, found
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _cost(response: Response) -> float:
    """The units of a page; an estimate if the engine does not report them."""
    units = units_of(response)
    return sum(map(json_length, response["Items"])) / limits.READ_UNIT if units is None else units


def decoded(item: ItemOrJson) -> Item:
    """The item as a dict."""
    return _decode(item) if isinstance(item, msgspec.Raw) else item


def json_length(item: ItemOrJson) -> int:
    """About the size of an item in bytes."""
    return (
        len(memoryview(item)) if isinstance(item, msgspec.Raw) else len(msgspec.json.encode(item))
    )
