"""Estimates the cost of a read from a sample of its table, and measures it.

If the sample has all items, the estimate is exact: the entries in the range are known, with their sizes. Otherwise
the range is tried with one small request. If that ends the range, the estimate is exact, too; if not, it is made from
what the request has read, and from the share of the sample that lies in the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from isotone import limits
from isotone.advisor.explanation import Cost
from isotone.advisor.read_plan import ReadPlan
from isotone.advisor.table_sample import TableSample, basis_of, place, units_of
from isotone.model import Call, Steps
from isotone.values.size import item_size, read_units
from isotone.values.types import Item

_PROBE: Final = 100  # items
_STATEMENT_PAGE: Final = limits.STATEMENT_COLLECTIONS_PAGE


def estimate_read(plan: ReadPlan, contents: TableSample) -> Steps[tuple[Cost, float]]:
    """The cost of a read, and the units that were read to find out."""
    if contents.is_whole:
        return exact_cost(plan, contents), 0.0
    if plan.operation != "Query" or len(plan.partitions) != 1 or not contents.items:
        return scaled_cost(plan, contents), 0.0
    operation, request = plan.request
    if operation != "Query":
        return scaled_cost(plan, contents), 0.0
    most = min(_PROBE, plan.limit or _PROBE, plan.most_results or _PROBE)
    probe = {name: value for name, value in request.items() if name not in _NOT_IN_PROBE}
    if "ExpressionAttributeNames" in probe or plan.filter is not None:
        probe = _without_filter(probe)
    response = yield Call("Query", {**probe, "Limit": most, "ReturnConsumedCapacity": "TOTAL"})
    found, spent = response["Items"], units_of(response)
    wanted = limit_of(plan)
    is_all = "LastEvaluatedKey" not in response or (wanted is not None and len(found) >= wanted)
    if is_all and not plan.fetches:
        return _cost(plan, contents, found, f"the {len(found)} items of the range"), spent
    return _from_probe(plan, contents, found), spent


_NOT_IN_PROBE: Final = frozenset({"ProjectionExpression", "Select", "Limit"})


def _without_filter(request: dict[str, Any]) -> dict[str, Any]:
    """The request without its filter, and without the placeholders of which no use is left."""
    kept = {name: value for name, value in request.items() if name != "FilterExpression"}
    text = kept["KeyConditionExpression"]
    for member in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
        used = {name: value for name, value in kept.get(member, {}).items() if _uses(text, name)}
        kept.pop(member, None)
        kept |= {member: used} if used else {}
    return kept


def _uses(text: str, placeholder: str) -> bool:
    after = text.partition(placeholder)
    return bool(after[1]) and not (after[2][:1].isalnum() or after[2][:1] == "_")


def _from_probe(plan: ReadPlan, contents: TableSample, found: Sequence[Item]) -> Cost:
    entries = contents.entries(plan.index)
    share = sum(map(plan.is_in_range, entries)) / max(len(contents.items), 1)
    items = max(len(found) + 1, round(share * contents.count))
    items = items if (limit := limit_of(plan)) is None else min(items, limit)
    size = round(sum(map(item_size, found)) / max(len(found), 1) * items)
    kept = sum(map(plan.keeps, found)) / max(len(found), 1)
    return _about(
        plan,
        contents,
        items,
        size,
        kept,
        f"{len(found)} items of the range and {_sampled(contents)}",
    )


def scaled_cost(plan: ReadPlan, contents: TableSample) -> Cost:
    """The cost by the share of a sample that lies in the range."""
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
    """The items that a read reads at most; None if only its results are limited, or nothing is."""
    return plan.limit or (plan.most_results if plan.filter is None else None)


def _about(
    plan: ReadPlan, contents: TableSample, items: int, size: int, kept: float, basis: str
) -> Cost:
    requests = max(1, -(-size // limits.QUERY_PAGE))
    units = read_units(size, plan.consistent)
    if plan.fetches:
        units += items * read_units(round(contents.item_bytes), plan.consistent)
    return Cost(requests, items, round(items * kept), units, size, exact=False, basis=basis)


def _sampled(contents: TableSample) -> str:
    if not contents.items:
        return "the table's description"
    return f"a sample of {len(contents.items):,} of about {contents.count:,} items"


def exact_cost(plan: ReadPlan, contents: TableSample) -> Cost:
    """The cost by all items of the table. Which of them are in a segment only the engine knows."""
    if plan.segments > 1:
        return scaled_cost(plan, contents)
    entries = contents.in_order(plan.index)
    if plan.operation == "Scan":
        entries = contents.entries(plan.index)  # in the order of the scan
    found = plan.select_from(entries)
    cost = _cost(plan, contents, found, f"all {len(contents.items):,} items of the table")
    return cost if plan.knows_start(entries) else replace(cost, exact=False)


def _cost(plan: ReadPlan, contents: TableSample, found: Sequence[Item], basis: str) -> Cost:
    """The cost of reading these entries, page by page."""
    if plan.operation == "Query" and len(plan.partitions) > 1:
        return _cost_of_several(plan, found, basis)
    fetched = _fetched(plan, contents, found)
    requests, units, size, returned, page, open_page = 0, 0.0, 0, 0, 0, False
    read = 0
    for place_of, entry in enumerate(found):
        page += item_size(entry)
        read += 1
        open_page = True
        returned += plan.keeps(entry)
        units += fetched[place_of] if fetched else 0.0
        if plan.most_results is not None and returned >= plan.most_results:
            break
        if page > limits.QUERY_PAGE:
            requests, units, size = (
                requests + 1,
                units + read_units(page, plan.consistent),
                size + page,
            )
            page, open_page = 0, False
            if plan.limit is not None:
                break
    if open_page or not requests:
        requests, units, size = requests + 1, units + read_units(page, plan.consistent), size + page
    return Cost(requests, read, returned, units, size, True, basis)


def _cost_of_several(plan: ReadPlan, found: Sequence[Item], basis: str) -> Cost:
    """The cost of a statement that reads several collections: pages of ten items, each collection charged for itself."""
    groups = [
        [entry for entry in found if _is_of(plan, entry, partition)]
        for partition in plan.partitions
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
            requests, left = requests + 1, _STATEMENT_PAGE
            if not rest:
                break
    kept = sum(map(plan.keeps, found))
    return Cost(requests, len(found), kept, units, size, True, basis)


def _is_of(plan: ReadPlan, entry: Item, partition: tuple[Any, ...]) -> bool:
    return all(
        entry[part.name] == value for part, value in zip(plan.key.partition, partition, strict=True)
    )


def _fetched(plan: ReadPlan, contents: TableSample, found: Sequence[Item]) -> list[float]:
    """The units by which a local index reads each whole item."""
    if not plan.fetches:
        return []
    key = contents.shape.key
    sizes = {place(key, item): item_size(item) for item in contents.items}
    return [read_units(sizes.get(place(key, entry), 0), plan.consistent) for entry in found]


def measure_read(plan: ReadPlan) -> Steps[Cost]:
    """Run the read, page by page, and count."""
    operation, request = plan.request
    cost = Cost()
    following: dict[str, Any] = {**request, "ReturnConsumedCapacity": "TOTAL"}
    while True:
        missing = None
        if plan.most_results is not None and operation != "GetItem":
            missing = plan.most_results - cost.items_returned
            if plan.filter is None:
                following["Limit"] = missing
        response = yield Call(operation, following)
        cost += _measured(operation, response)
        token = next((name for name in ("LastEvaluatedKey", "NextToken") if name in response), None)
        is_done = missing is not None and cost.items_returned >= (plan.most_results or 0)
        if token is None or plan.limit is not None or is_done:
            return cost
        start = (
            "ExclusiveStartKey"
            if "LastEvaluatedKey" in response and operation != "ExecuteStatement"
            else "NextToken"
        )
        following[start] = response[
            "LastEvaluatedKey" if start == "ExclusiveStartKey" else "NextToken"
        ]


def _measured(operation: str, response: Any) -> Cost:
    units = units_of(response)
    if operation == "GetItem":
        found = int("Item" in response)
        size = item_size(response.get("Item", {}))
        return Cost(1, found, found, units, size, basis=basis_of(response))
    returned = response.get("Count", len(response.get("Items", ())))
    read = response.get("ScannedCount", returned)
    return Cost(1, read, returned, units, basis=basis_of(response))
