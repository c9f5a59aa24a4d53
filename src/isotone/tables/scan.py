"""Reads a table page by page, in parallel segments, each from any position: for copies, comparisons and exports.

    for page in pages(backend, Segment("Orders", 0, 4), pace, items_a_page=1000):
        write(page.items)
        save(page.after)                # Segment(…, after=page.after) continues there

Reads are strongly consistent, so a page has every write that was acknowledged before. Where the backend can leave
items in JSON, they are `msgspec.Raw`: an item that is only passed on need not be decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec

from isotone import limits
from isotone.backends.interface import Backend
from isotone.tables.pace import Pace, units_of
from isotone.values.types import Item

ItemOrJson: TypeAlias = Item | msgspec.Raw
"""An item as a dict, or the same in JSON."""

ITEMS_A_PAGE: Final = 2000

_decode: Final = msgspec.json.Decoder(dict[str, dict[str, Any]]).decode


@dataclass(frozen=True, slots=True)
class Segment:
    """One of `total` parts of a table; it continues after the key `after`, which is None at its start."""

    table: str
    number: int = 0
    total: int = 1
    after: Item | None = None
    is_over: bool = False

    def moved_to(self, after: Item | None) -> Segment:
        """The segment after a page has been handled; None is the position at its end."""
        return replace(self, after=after, is_over=after is None)


@dataclass(frozen=True, slots=True)
class ScannedPage:
    """Some items of a segment, the position after them (None at its end), and the units that they cost."""

    items: list[Any]
    after: Item | None
    units: float


def pages(
    backend: Backend,
    segment: Segment,
    pace: Pace,
    *,
    items_a_page: int | Callable[[], int] = ITEMS_A_PAGE,
    as_json: bool = True,
) -> Iterator[ScannedPage]:
    """The rest of a segment. With a budget, a page costs at most a second of its share of it.

    `items_a_page` may be a function, which is called before each page.
    """
    read = getattr(backend, "read_json", None) if as_json else None
    read = read or backend.execute
    unit = 1.0  # an item's units, until the first page is known
    while not segment.is_over:
        most = items_a_page() if callable(items_a_page) else items_a_page
        request: dict[str, Any] = {
            "TableName": segment.table,
            "ConsistentRead": True,
            "ReturnConsumedCapacity": "TOTAL",
            "Limit": pace.affordable(unit, most, segment.total),
        }
        if segment.total > 1:
            request |= {"Segment": segment.number, "TotalSegments": segment.total}
        if segment.after is not None:
            request["ExclusiveStartKey"] = segment.after
        response = pace.send(partial(read, "Scan", request))
        items = response["Items"]
        units = units_of(response)
        if units is None:  # an engine that does not report units
            units = sum(map(json_length, items)) / limits.READ_UNIT
            pace.spend(units)
        if items:
            unit = units / len(items)
        page = ScannedPage(items, response.get("LastEvaluatedKey"), units)
        yield page
        segment = segment.moved_to(page.after)


def decoded(item: ItemOrJson) -> Item:
    """The item as a dict."""
    return _decode(item) if isinstance(item, msgspec.Raw) else item


def json_length(item: ItemOrJson) -> int:
    """About the size of an item in bytes."""
    return (
        len(memoryview(item)) if isinstance(item, msgspec.Raw) else len(msgspec.json.encode(item))
    )
