"""Estimates the cost of a read from a sample of its table, and measures it.

If the sample has all items of the table, or of the collection that is read, the estimate is exact: the entries in the
range and their sizes are known. Otherwise one small request reads the beginning of the range. If it reaches the end,
the estimate is exact, too; if not, it is made from the items of that request and from the sample.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from isotone import limits
from isotone.advisor.explanation import Cost
from isotone.advisor.read_plan import ReadPlan
from isotone.advisor.table_sample import TableSample, basis_of, place
from isotone.model import Call, Steps, items_to_read
from isotone.tables.pace import units_of
from isotone.text_table import pluralized
from isotone.values.size import item_size, read_units
from isotone.values.types import Item

_PROBE: Final = 100  # items
_OUTLIER: Final = 4  # times the largest other collection: such a collection must be of another kind
_PLACEHOLDER: Final = re.compile(r"[#:][A-Za-z0-9_]+")
_STATEMENT_PAGE: Final = limits.STATEMENT_COLLECTIONS_PAGE


def estimate_read(plan: ReadPlan, contents: TableSample) -> Steps[tuple[Cost, float]]:
    """The cost of a read, and the units that the estimate itself consumed."""
    if contents.is_whole or _has_all_of(plan, contents):
        return exact_cost(plan, contents), 0.0
    if plan.operation != "Query" or len(plan.collections) != 1 or not contents.items:
        return scaled_cost(plan, contents), 0.0
    operation, request = plan.request
    if operation != "Query":
        return scaled_cost(plan, contents), 0.0
    wanted = limit_of(plan)
    most = min(_PROBE, wanted or _PROBE)
    probe = {name: value for name, value in request.items() if name not in _NOT_IN_PROBE}
    if "ExpressionAttributeNames" in probe or plan.filter is not None:
        probe = _without_filter(probe)
    response = yield Call("Query", {**probe, "Limit": most, "ReturnConsumedCapacity": "TOTAL"})
    found, spent = response["Items"], units_of(response) or 0.0
    is_all = "LastEvaluatedKey" not in response or (wanted is not None and len(found) >= wanted)
    if is_all and not plan.fetches:
        return _cost(
            plan, contents, found, f"the {pluralized(len(found), 'item')} of the range"
        ), spent
    return _from_probe(plan, contents, found), spent


_NOT_IN_PROBE: Final = frozenset({"ProjectionExpression", "Select", "Limit"})


def _without_filter(request: dict[str, Any]) -> dict[str, Any]:
    """The request without its filter, and without the placeholders that only the filter uses."""
    kept = {name: value for name, value in request.items() if name != "FilterExpression"}
    placeholders = set(_PLACEHOLDER.findall(kept["KeyConditionExpression"]))
    for member in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
        given = kept.pop(member, {})
        used = {name: value for name, value in given.items() if name in placeholders}
        kept |= {member: used} if used else {}
    return kept


def _has_all_of(plan: ReadPlan, contents: TableSample) -> bool:
    """Whether the sample has all items of the collections that are read."""
    return plan.operation != "Scan" and all(
        contents.has_all_of(plan.index, partition) for partition in plan.collections.values()
    )


def _from_probe(plan: ReadPlan, contents: TableSample, found: Sequence[Item]) -> Cost:
    items = max(len(found) + 1, round(_expected(plan, contents)))
    items = items if (limit := limit_of(plan)) is None else min(items, limit)
    size = round(sum(map(item_size, found)) / max(len(found), 1) * items)
    kept = sum(map(plan.keeps, found)) / max(len(found), 1)
    return _about(
        plan,
        contents,
        items,
        size,
        kept,
        f"{pluralized(len(found), 'item')} of the range and {_sampled(contents)}",
    )


def _expected(plan: ReadPlan, contents: TableSample) -> float:
    """The expected number of items in a range of one collection, according to the sample."""
    entries = contents.entries(plan.index)
    in_range = sum(map(plan.is_in_range, entries))
    if plan.index is not None and contents.shape.index(plan.index).kind == "global":
        return in_range / len(contents.items) * contents.count
    here, sizes = sum(map(plan.is_in_partition, entries)), contents.collection_sizes
    share = in_range / here if here else 1.0
    # an outlier, of which the sample has only a part
    if not sizes or here > _OUTLIER * max(sizes):
        return share * here / len(contents.items) * contents.count
    return share * max(here, sum(sizes) / len(sizes))


def scaled_cost(plan: ReadPlan, contents: TableSample) -> Cost:
    """The cost, scaled up from the share of the sample that lies in the range."""
    if plan.operation == "GetItem":
        size = round(contents.item_bytes)
        units = read_units(size, plan.consistent)
        return Cost(1, 1, 1, units, size, exact=False, basis="an item of the average size")
    entries = contents.entries(plan.index)
    here = [entry for entry in entries if plan.is_in_range(entry)]
    share = len(here) / max(len(contents.items), 1)
    count = contents.count
    items = round(share * count / plan.segments)
    if not contents.items:
        items = count if plan.operation == "Scan" else 0
    items = items if (limit := limit_of(plan)) is None else min(items, limit)
    average = sum(map(item_size, here)) / len(here) if here else contents.item_bytes
    kept = sum(map(plan.keeps, here)) / len(here) if here else 1.0
    basis = _sampled(contents)
    if not contents.items and plan.operation == "Query":
        basis += ", which does not tell what is in the range"
    return _about(plan, contents, items, round(average * items), kept, basis)


def limit_of(plan: ReadPlan) -> int | None:
    """The most items that a read reads; None if only its results are limited, or nothing is."""
    return plan.limit or (plan.most_results if plan.filter is None else None)


def _about(
    plan: ReadPlan, contents: TableSample, items: int, size: int, kept: float, basis: str
) -> Cost:
    if plan.most_results is not None and kept * items > plan.most_results:
        enough = round(plan.most_results / kept)
        items, size = enough, round(size * enough / items)
    requests = max(1, -(-size // limits.QUERY_PAGE))
    units = read_units(size, plan.consistent)
    if plan.fetches:
        units += items * read_units(round(contents.item_bytes), plan.consistent)
    return Cost(requests, items, round(items * kept), units, size, exact=False, basis=basis)


def _sampled(contents: TableSample) -> str:
    if not contents.items:
        return "the table's description"
    return f"a sample of {len(contents.items):,} of about {pluralized(contents.count, 'item')}"


def exact_cost(plan: ReadPlan, contents: TableSample) -> Cost:
    """The cost, computed from all items of the table. Only the engine knows which items are in a segment."""
    if plan.segments > 1:
        return scaled_cost(plan, contents)
    entries = contents.in_order(plan.index)
    if plan.operation == "Scan":
        entries = contents.entries(plan.index)  # in the order of the scan
    found = plan.select_from(entries)
    basis = f"all {pluralized(len(contents.items), 'item')} of the table"
    if not contents.is_whole:
        basis = "the sample, which has the whole collection"
    cost = _cost(plan, contents, found, basis)
    return cost if plan.knows_start(entries) else replace(cost, exact=False)


def _cost(plan: ReadPlan, contents: TableSample, found: Sequence[Item], basis: str) -> Cost:
    """The cost of reading these entries, page by page."""
    if plan.operation == "Query" and len(plan.collections) > 1:
        return _cost_of_several(plan, found, basis)
    fetched = _fetched(plan, contents, found)
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


def _fetched(plan: ReadPlan, contents: TableSample, found: Sequence[Item]) -> list[float]:
    """The units for reading each whole item through a local index."""
    if not plan.fetches:
        return []
    key = contents.shape.key
    sizes = {place(key, item): item_size(item) for item in contents.items}
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
