"""The estimated cost of a read, with its least and most: items, what a filter keeps, units (`range_reading`: items).

If the sample has all items of the table, or of the collection that is read, the estimate is exact: the entries in the
range and their sizes are known. Otherwise the beginning of the range is read (`range_reading`); a range that ends there
is known exactly, too. The cost of a longer one is a figure with the least and the most that it can be. A scan is
estimated from the counts in the table's description.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from isotone import limits
from isotone.advisor.explanation import Cost, CostBound
from isotone.advisor.range_reading import Figure, limit_of, one_range, read_beginning
from isotone.advisor.read_plan import ReadPlan
from isotone.advisor.table_sample import (
    TableSample,
    basis_of,
    collections,
    entry_of,
    partition_of,
    place,
)
from isotone.model import Call, Steps, items_to_read
from isotone.tables.pace import units_of
from isotone.text_table import pluralized
from isotone.values.size import item_size, read_units
from isotone.values.types import Item, sort_key

_STATEMENT_PAGE: Final = limits.STATEMENT_COLLECTIONS_PAGE
_MOST_COLLECTIONS: Final = 50  # of a statement, that are read for its estimate
_CONFIDENCE: Final = 2.6  # standard deviations
_STALE: Final = 0.1  # part of the counts in a description that may have changed since
_UNEVEN: Final = 0.25  # part by which the average size of the items that follow may differ
_INDEPENDENT: Final = 20  # items of a range that tell as much as all: neighbours are alike
_ONE: Final = Figure(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Budget:
    """What an estimate may read: `pages` of 1 MB of each range; None: nothing."""

    pages: int | None


class ReadEstimate(NamedTuple):
    """The cost of a read, and the units that the estimate itself consumed.

    `entries` are all entries of the range, if they were read for the estimate; None otherwise.
    """

    cost: Cost
    units: float = 0.0
    entries: list[Item] | None = None


def estimate_read(plan: ReadPlan, contents: TableSample, budget: Budget) -> Steps[ReadEstimate]:
    """The cost of a read."""
    if contents.is_whole or _has_all_of(plan, contents):
        return ReadEstimate(exact_cost(plan, contents))
    if not _is_valid(plan, contents):
        return ReadEstimate(Cost(1, basis="no key can have such a value"))
    if plan.operation == "Scan" or budget.pages is None:
        return ReadEstimate(_of_description(plan, contents))
    if plan.operation == "GetItem":
        return (yield from _of_item(plan))
    return (yield from _of_ranges(plan, contents, budget.pages))


def _has_all_of(plan: ReadPlan, contents: TableSample) -> bool:
    """Whether the sample has all items of the collections that are read."""
    return plan.operation != "Scan" and all(
        contents.has_all_of(plan.index, partition) for partition in plan.collections.values()
    )


def _is_valid(plan: ReadPlan, contents: TableSample) -> bool:
    """Whether keys can have these values: of its types, a range with its lower bound first."""
    if plan.operation == "Scan":
        return True
    types = contents.shape.types
    names = plan.key.partition_names
    for values in plan.collections.values():
        if any(types[name] not in value for name, value in zip(names, values, strict=True)):
            return False
    for term in plan.terms:
        if any(types[term.attribute] not in value for value in term.values(plan.values)):
            return False
    bounds = [term.values(plan.values) for term in one_range(plan) if term.operator == "BETWEEN"]
    return all(sort_key(low) <= sort_key(high) for low, high in bounds)


def _of_item(plan: ReadPlan) -> Steps[ReadEstimate]:
    """The cost of reading one item, which is read for it."""
    request = {"TableName": plan.table, "Key": plan.fixed_key, "ConsistentRead": plan.consistent}
    response = yield Call("GetItem", {**request, "ReturnConsumedCapacity": "TOTAL"})
    item = response.get("Item")
    size = item_size(item or {})
    found = int(item is not None)
    returned = int(item is not None and plan.keeps(item))
    basis = "the stored item" if found else "there is no such item"
    units = read_units(size, plan.consistent)
    cost = Cost(1, found, returned, units, size, basis=basis)
    return ReadEstimate(cost, units_of(response) or 0.0)


# Ranges


def _of_ranges(plan: ReadPlan, contents: TableSample, pages: int) -> Steps[ReadEstimate]:
    """The cost of a query, or of a statement over several collections."""
    partitions = list(plan.collections.values())
    limited = plan.limit is not None or plan.most_results is not None

    def is_enough(items: list[Item]) -> bool:
        cost = _cost(plan, found_of(items), items_basis)
        return cost.items_read < len(items)

    def found_of(items: list[Item]) -> _Found:
        return _Found.of(plan, contents, items)

    items_basis = "the items of the range"
    most = float(_count_of(plan, contents) or math.inf)
    items: list[Item] = []
    rest: list[Figure] = []
    size = 0.0  # of the items that follow
    spent, is_all = 0.0, len(partitions) <= _MOST_COLLECTIONS
    for partition in partitions[:_MOST_COLLECTIONS]:
        beginning = yield from read_beginning(
            plan, partition, pages, most, is_enough if limited and len(partitions) == 1 else _never
        )
        items += beginning.items
        spent += beginning.units
        is_all = is_all and beginning.is_all
        following = Figure(*(each - len(beginning.items) for each in beginning.total))
        size += (
            following.middle * sum(map(item_size, beginning.items)) / max(len(beginning.items), 1)
        )
        rest.append(following)
    found = found_of(items)
    if is_all:
        cost = _cost(plan, found, f"the {pluralized(len(found.entries), 'item')} of the range")
        is_cut = limited or plan.start is not None
        return ReadEstimate(cost, spent, None if is_cut else items)
    following = _sum(rest)
    each = (
        size / following.middle
        if following.middle
        else sum(map(item_size, items)) / max(len(items), 1)
    )
    if len(partitions) > _MOST_COLLECTIONS:
        following = _with_others(following, len(items), len(partitions))
    return ReadEstimate(_extrapolated(plan, contents, found, following, each), spent)


def _never(items: list[Item]) -> bool:
    return False


def _with_others(rest: Figure, read: int, partitions: int) -> Figure:
    """The items that follow, with those of the collections that were not read: as many as in the others."""
    factor = partitions / _MOST_COLLECTIONS
    total = (read + rest.middle) * factor
    return Figure(rest.low, total - read, (read + rest.high) * factor * 2)


def _sum(intervals: Sequence[Figure]) -> Figure:
    lows, middles, highs = zip(*intervals, strict=True)
    return Figure(sum(lows), sum(middles), sum(highs))


def _extrapolated(
    plan: ReadPlan, contents: TableSample, found: _Found, following: Figure, size: float
) -> Cost:
    """The cost of a range of which only the beginning was read; `size` is that of an item that follows."""
    known = len(found.entries)
    items = Figure(*(known + each for each in following))
    each = (sum(map(item_size, found.entries)) + size * following.middle) / max(items.middle, 1)
    sizes = Figure(each * (1 - _UNEVEN), each, each * (1 + _UNEVEN))
    kept = _proportion(sum(map(plan.keeps, found.entries)), max(known, 1), _INDEPENDENT)
    basis = f"the first {pluralized(known, 'item')} of the range, and its last key"
    return _between(plan, contents, items, sizes, kept if plan.filter is not None else _ONE, basis)


def _count_of(plan: ReadPlan, contents: TableSample) -> int:
    """The items of the table or the index, as its description counts them; 0 if it does not."""
    shape = contents.shape
    counted = shape.item_count if plan.index is None else shape.index(plan.index).item_count
    return counted if counted >= len(contents.entries(plan.index)) else 0


# Scans, and reads without any reading


def described_cost(plan: ReadPlan, contents: TableSample) -> Cost:
    """The cost of a read as far as the sample and the description tell it."""
    return exact_cost(plan, contents) if contents.is_whole else _of_description(plan, contents)


def _of_description(plan: ReadPlan, contents: TableSample) -> Cost:
    """The cost from the counts of the description, and from the share of the sample in the range."""
    count, entries = _count_of(plan, contents), contents.entries(plan.index)
    if plan.operation == "GetItem":
        size = contents.item_bytes
        sizes = Figure(0.0, size, float(limits.ITEM_SIZE))
        basis = "an item of the average size"
        return _between(plan, contents, Figure(0, 1, 1), sizes, Figure(0, 1, 1), basis)
    here = [entry for entry in entries if plan.is_in_range(entry)]
    kept = _kept(plan, contents, here)
    sizes = _sizes(plan, contents, entries)
    basis = _sampled(contents)
    if plan.operation == "Query":
        share = len(here) / len(entries) if entries else 0.0
        if not entries:
            basis += ", which does not tell what is in the range"
        items = Figure(len(here), max(share * count, len(here)), count or math.inf)
        return _between(plan, contents, items, sizes, kept, basis)
    known = count or len(entries)
    middle = known / plan.segments
    spread = _CONFIDENCE * math.sqrt(middle * _largest(contents)) if plan.segments > 1 else 0.0
    low, high = middle * (1 - _STALE) - spread, middle * (1 + _STALE) + spread
    if plan.start is not None:
        low, middle = 0.0, middle / 2
        basis += "; what is before its start is not known"
    if not count:
        high = math.inf
    if contents.is_whole:
        low, high = max(middle - spread, 0), min(middle + spread, known)
    limit = limit_of(plan) or math.inf
    items = Figure(*(min(max(each, 0.0), limit) for each in (low, middle, high)))
    return _between(plan, contents, items, sizes, kept, basis)


def _largest(contents: TableSample) -> float:
    """The items of the largest collection of the sample: a collection is in one segment."""
    return max(map(len, collections(contents.shape.key, contents.items).values()), default=1)


def _sizes(plan: ReadPlan, contents: TableSample, entries: Sequence[Item]) -> Figure:
    """The bytes of an entry."""
    shape, index = contents.shape, None if plan.index is None else contents.shape.index(plan.index)
    count, size = (
        (shape.item_count, shape.size) if index is None else (index.item_count, index.size)
    )
    if plan.operation == "Scan" and count and size:
        each = size / count
        return Figure(each, each, each)
    if not entries:
        each = size / count if count else 0.0
        return Figure(each / 2, each, each * 2 or float(limits.ITEM_SIZE))
    each = sum(map(item_size, entries)) / len(entries)
    return Figure(each * (1 - 2 * _UNEVEN), each, each * (1 + 2 * _UNEVEN))


def _kept(plan: ReadPlan, contents: TableSample, here: Sequence[Item]) -> Figure:
    """The share of the items that the filter keeps. Items of one collection are alike, so collections count."""
    if plan.filter is None:
        return _ONE
    if not here:
        return Figure(0.0, 1.0, 1.0)
    groups = {partition_of(contents.shape.key, each) for each in here}
    return _proportion(sum(map(plan.keeps, here)), len(here), len(groups))


def _proportion(kept: int, of: int, independent: int) -> Figure:
    """A share, by the interval of Wilson."""
    share, square = kept / of, _CONFIDENCE**2
    centre = (share + square / (2 * independent)) / (1 + square / independent)
    half = (
        _CONFIDENCE
        * math.sqrt(share * (1 - share) / independent + square / (4 * independent**2))
        / (1 + square / independent)
    )
    return Figure(max(centre - half, 0.0), share, min(centre + half, 1.0))


def _sampled(contents: TableSample) -> str:
    if not contents.items:
        return "the table's description"
    count = max(contents.shape.item_count, len(contents.items))
    return (
        f"the table's description and a sample of {len(contents.items):,} of about "
        f"{pluralized(count, 'item')}"
    )


# From counts and sizes to a cost


def _between(
    plan: ReadPlan,
    contents: TableSample,
    items: Figure,
    sizes: Figure,
    kept: Figure,
    basis: str,
) -> Cost:
    """The cost of reading so many items of such a size, with its bounds."""
    middle = _figures(plan, contents, items.middle, sizes.middle, kept.middle)
    corners = [
        _figures(plan, contents, count, size, share)
        for count in (items.low, items.high)
        if count < math.inf
        for size in (sizes.low, sizes.high)
        for share in (kept.low, kept.high)
    ]
    factor = 2 if plan.consistent else 1
    low = CostBound(
        min(each.requests for each in corners),
        math.floor(min(each.items_read for each in corners)),
        math.floor(min(each.items_returned for each in corners)),
        min(_least_units(each, factor) for each in corners),
        min(each.bytes for each in corners),
    )
    high = CostBound(
        max(each.requests for each in corners) + 1,
        max(each.items_read for each in corners),
        max(each.items_returned for each in corners),
        max(each.units + (each.requests + 1) * 0.5 * factor for each in corners),
        max(each.bytes for each in corners),
    )
    is_bounded = items.high < math.inf
    return replace(middle, exact=False, basis=basis, low=low, high=high if is_bounded else None)


def _least_units(cost: Cost, factor: int) -> float:
    """The units of the same items if no page were rounded up; a page costs half a unit at least."""
    whole = cost.bytes // limits.READ_UNIT / 2 * factor
    return max(whole, max(cost.requests - 1, 1) * 0.5 * factor)


def _figures(plan: ReadPlan, contents: TableSample, items: float, size: float, kept: float) -> Cost:
    """The cost of reading so many items of such a size, of which the filter keeps a share."""
    if plan.most_results is not None and plan.filter is not None:
        items = _read_for_results(plan, items, kept)
    page = max(1.0, limits.QUERY_PAGE / size if size else math.inf)
    if plan.items_a_page is not None:
        page = min(page, plan.items_a_page)
    if len(plan.collections) > 1 and plan.operation == "Query":
        page = min(page, _STATEMENT_PAGE)
    requests = max(1, math.ceil(items / page))
    full, rest = divmod(items, page) if page < math.inf else (0.0, items)
    units = full * read_units(round(page * size), plan.consistent) if full else 0.0
    if rest or not full:
        units += read_units(round(rest * size), plan.consistent)
    if plan.fetches:
        units += items * read_units(round(contents.item_bytes), plan.consistent)
    returned = items * kept
    if plan.most_results is not None:
        returned = min(returned, plan.most_results)
    return Cost(requests, round(items), round(returned), units, round(items * size), exact=False)


def _read_for_results(plan: ReadPlan, items: float, kept: float) -> float:
    """The items that are read until enough are kept, in requests of the size that the model chooses."""
    cost, limit = Cost(), None
    while cost.items_read < items and not _has_enough(plan, cost):
        limit = next_limit(plan, cost, limit)
        if limit is None:
            return items
        page = min(limit, math.ceil(items - cost.items_read))
        cost += Cost(1, page, round((cost.items_read + page) * kept) - cost.items_returned)
    return min(cost.items_read, items)


def exact_cost(plan: ReadPlan, contents: TableSample) -> Cost:
    """The cost, computed from all items of the table. Only the engine knows which items are in a segment."""
    if plan.segments > 1:
        return _of_description(plan, contents)
    entries = contents.in_order(plan.index)
    if plan.operation == "Scan":
        entries = contents.entries(plan.index)  # in the order of the scan
    found = plan.select_from(entries)
    basis = f"all {pluralized(len(contents.items), 'item')} of the table"
    if not contents.is_whole:
        basis = "the sample, which has the whole collection"
    if not plan.knows_start(entries):
        return _of_description(plan, contents)
    whole = (
        {place(contents.shape.key, item): item for item in contents.items} if plan.fetches else {}
    )
    return _cost(plan, _Found(found, _fetched(plan, contents, found, whole)), basis)


@dataclass(frozen=True, slots=True)
class _Found:
    """Entries in the order of reading, and the units for reading the whole item of each, if it must be fetched."""

    entries: Sequence[Item]
    fetched: Sequence[float] = ()

    @classmethod
    def of(cls, plan: ReadPlan, contents: TableSample, items: Sequence[Item]) -> _Found:
        """What was read of a range: entries, or whole items of a plan that fetches."""
        in_range = [item for item in items if plan.is_in_range(item)]
        if not plan.fetches or plan.index is None:
            return cls(in_range)
        index = contents.shape.index(plan.index)
        entries = [entry_of(contents.shape, index, item) or item for item in in_range]
        whole = {place(contents.shape.key, item): item for item in in_range}
        return cls(entries, _fetched(plan, contents, entries, whole))


def _cost(plan: ReadPlan, given: _Found, basis: str) -> Cost:
    """The cost of reading these entries, page by page."""
    found, fetched = given.entries, given.fetched
    if plan.operation == "Query" and len(plan.collections) > 1:
        return _cost_of_several(plan, found, basis)
    cost, limit = Cost(), None
    while True:
        limit = next_limit(plan, cost, limit)
        page, returned, size, units = 0, 0, 0, 0.0
        rest = found[cost.items_read :]
        for entry in rest if limit is None else rest[:limit]:
            units += fetched[cost.items_read + page] if fetched else 0.0
            page += 1
            size += item_size(entry)
            returned += plan.keeps(entry)
            if size > limits.QUERY_PAGE:
                break
        cost += Cost(1, page, returned, units + read_units(size, plan.consistent), size)
        is_full = size > limits.QUERY_PAGE or page == limit
        is_end = page == len(rest) and not is_full
        if is_end or plan.limit is not None or _has_enough(plan, cost):
            return replace(_cut(plan, cost), basis=basis)


def next_limit(plan: ReadPlan, cost: Cost, last: int | None) -> int | None:
    """The Limit of the next request, as the model chooses it after `cost`; `last` is the previous Limit."""
    if plan.most_results is None:
        return plan.items_a_page
    missing = plan.most_results - cost.items_returned
    likely = items_to_read(
        missing, last, cost.items_read, cost.items_returned, is_filtered=plan.wants_filter
    )
    return likely if plan.items_a_page is None else min(likely, plan.items_a_page)


def _has_enough(plan: ReadPlan, cost: Cost) -> bool:
    return plan.most_results is not None and cost.items_returned >= plan.most_results


def _cut(plan: ReadPlan, cost: Cost) -> Cost:
    """The cost, without results of the last page that the caller does not get."""
    if plan.most_results is None:
        return cost
    return replace(cost, items_returned=min(cost.items_returned, plan.most_results))


def _cost_of_several(plan: ReadPlan, found: Sequence[Item], basis: str) -> Cost:
    """The cost of a statement over several collections: pages of ten items, each collection charged separately."""
    groups = [
        [entry for entry in found if _is_of(plan, entry, partition)]
        for partition in plan.collections.values()
    ]
    requests, units, size, left = 1, 0.0, 0, _STATEMENT_PAGE
    for group in groups:
        rest = group
        while True:
            page, rest = rest[:left], rest[left:]
            bytes_read = sum(map(item_size, page))
            units += read_units(bytes_read, plan.consistent)
            size += bytes_read
            left -= len(page)
            if left:
                break
            requests, left = requests + 1, _STATEMENT_PAGE  # even if nothing follows
    kept = sum(map(plan.keeps, found))
    return Cost(requests, len(found), kept, units, size, True, basis)


def _is_of(plan: ReadPlan, entry: Item, partition: tuple[Any, ...]) -> bool:
    return all(
        entry[part.name] == value for part, value in zip(plan.key.partition, partition, strict=True)
    )


def _fetched(
    plan: ReadPlan,
    contents: TableSample,
    found: Sequence[Item],
    whole: Mapping[tuple[Any, ...], Item],
) -> list[float]:
    """The units for reading each whole item through a local index."""
    if not plan.fetches:
        return []
    key = contents.shape.key
    sizes = {at: item_size(item) for at, item in whole.items()}
    return [read_units(sizes.get(place(key, entry), 0), plan.consistent) for entry in found]


def measure_read(plan: ReadPlan) -> Steps[Cost]:
    """Run the read, page by page, and count its cost."""
    operation, request = plan.request
    cost, limit = Cost(), None
    following: dict[str, Any] = {**request, "ReturnConsumedCapacity": "TOTAL"}
    while True:
        limit = next_limit(plan, cost, limit)
        if limit is not None and operation in ("Query", "Scan"):
            following["Limit"] = limit
        response = yield Call(operation, following)
        cost += _measured(operation, response)
        token = next((name for name in _CONTINUED if name in response), None)
        if token is None or plan.limit is not None or _has_enough(plan, cost):
            return _cut(plan, cost)
        following[_CONTINUED[token]] = response[token]


# The member of a response that has its end position, and the member of the next request for it.
_CONTINUED: Final = {"NextToken": "NextToken", "LastEvaluatedKey": "ExclusiveStartKey"}


def _measured(operation: str, response: Any) -> Cost:
    units = units_of(response) or 0.0
    if operation == "GetItem":
        found = int("Item" in response)
        size = item_size(response.get("Item", {}))
        return Cost(1, found, found, units, size, basis=basis_of(response))
    returned = response.get("Count", len(response.get("Items", ())))
    read = response.get("ScannedCount", returned)
    return Cost(1, read, returned, units, basis=basis_of(response))
