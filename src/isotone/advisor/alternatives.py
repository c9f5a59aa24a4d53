"""Alternatives to a read: the other keys and what each would cost, and the index that would save the most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isotone.advisor.explanation import Alternative, Cost
from isotone.advisor.read_costs import Budget, described_cost, estimate_read
from isotone.advisor.read_plan import ReadPlan, plan_of_read
from isotone.advisor.table_sample import TableSample, has_key, projected
from isotone.expressions import CompiledCondition
from isotone.expressions.key_planning import plan_key
from isotone.model import Read, Stats, Steps, queries_for, waste_of
from isotone.tables.description import TableDescription
from isotone.text_table import pluralized


def alternatives_of(
    plan: ReadPlan, contents: TableSample, estimate: Cost, read: Read[Any] | None, budget: Budget
) -> Steps[tuple[tuple[Alternative, ...], float]]:
    """The other keys of the table or the entity, and a scan; with the units that their estimates consumed."""
    if plan.operation == "GetItem" or plan.where is None:
        return (), 0.0
    if read is not None and len(read.schemas) == 1:
        ways = list(_of_model(read, contents))
    else:
        ways = list(_of_table(plan, contents))
    found, spent = [], 0.0
    for name, why_not, way in ways:
        if way is None:
            found.append(Alternative(name, why_not))
            continue
        cost, units = yield from estimate_read(way, contents, budget)
        spent += units
        is_answer = not why_not or why_not.startswith("answers ")
        found.append(
            Alternative(name, _compared(why_not, cost, estimate) if is_answer else why_not, cost)
        )
    if plan.operation == "Query":
        cost = described_cost(plan.as_scan(contents.shape.key), contents)
        found.append(Alternative(f"Scan of table {plan.table}", "reads everything", cost))
    return tuple(found), spent


Way = tuple[str, str, ReadPlan | None]
"""The name of another key, why it was not used, and its plan; None if it cannot answer."""


def _of_model(read: Read[Any], contents: TableSample) -> Iterator[Way]:
    """The other keys of an entity."""
    entity = read.schemas[0].entity
    ways, reasons = queries_for(entity, (*read.asked, *read.filters))
    for query, answered in ways:
        if query.name != read.name:
            yield query.name, answered, plan_of_read(query, contents.shape)
    for reason in reasons:
        name, _, why = reason.partition(": ")
        if name != read.name:
            yield name, why, None


def _of_table(plan: ReadPlan, contents: TableSample) -> Iterator[Way]:
    """The other keys of a table without a model."""
    for name, way in _other_keys(plan, contents.shape):
        if way.operation == "Scan":
            missing = " and ".join(f"{each} = …" for each in way.key.partition_names)
            yield name, f"needs {missing}", None
        elif not _can_be_asked(plan, way):
            yield name, "would have to filter by its own key", None
        else:
            yield name, _lacking(plan, contents, way.index) or _answered(way), way


def _other_keys(plan: ReadPlan, shape: TableDescription) -> Iterator[tuple[str, ReadPlan]]:
    """The name of each other key of the table, with the same condition read by that key."""
    for index in (None, *(each.name for each in shape.indexes)):
        if index != plan.index:
            name = f"index {index}" if index is not None else f"table {shape.name}"
            yield name, plan.on(shape.key_of(index), index)


def _can_be_asked(plan: ReadPlan, way: ReadPlan) -> bool:
    """Whether a Query can read another key with the same condition; a statement can express more than a Query."""
    names = way.key.names
    return plan.request[0] == "ExecuteStatement" or way.key_plan.is_query(names)


def _answered(way: ReadPlan) -> str:
    answered, left = len(way.key_plan.answered), len(way.key_plan.rest)
    what = (
        "the condition" if not left else f"{answered} of {pluralized(answered + left, 'condition')}"
    )
    return f"answers {what} by its key"


def _lacking(plan: ReadPlan, contents: TableSample, index: str | None) -> str:
    """Why an index cannot return everything that the read returns; empty if it can."""
    if index is None or plan.where is None:
        return ""
    shape = contents.shape.index(index)
    kept = projected(contents.shape, shape)
    if kept is not None and (plan.projection is None or not plan.projection <= kept):
        return "does not project all attributes"
    if plan.consistent and shape.kind == "global":
        return "cannot be read consistently"
    matches = CompiledCondition.from_node(plan.where, parameter="").matches
    wanted = [item for item in contents.items if matches(item, plan.values)]
    missing = sum(not has_key(shape.key, item) for item in wanted)
    return (
        f"is sparse: {missing} of {pluralized(len(wanted), 'wanted item')} are not in it"
        if missing
        else ""
    )


def _compared(answered: str, cost: Cost, estimate: Cost) -> str:
    most = cost.most
    if most is not None and most.units < estimate.least.units:
        return f"{answered}, and would be cheaper"
    if cost.units < estimate.units:
        return (
            f"{answered}, and would be cheaper"
            if cost.exact and estimate.exact
            else (f"{answered}, and is probably cheaper")
        )
    return answered


# Advice


def advice_of(plan: ReadPlan, contents: TableSample, cost: Cost, read: Read[Any] | None) -> str:
    """Advice which key or index would save what the filter wastes; empty if nothing is wasted."""
    if plan.filter is None or cost.items_returned >= cost.items_read or plan.operation == "GetItem":
        return ""
    if read is not None:
        if not read.filters:  # the filter drops other kinds, or expired items
            return ""
        return waste_of(read, Stats(cost.items_read, cost.items_returned, cost.units)).advice
    return _index_for(plan, contents)


def _index_for(plan: ReadPlan, contents: TableSample) -> str:
    """The index that would answer most of the condition by its key: an existing one, or a new one."""
    if plan.where is None or plan.filter is None:
        return ""
    names = list(dict.fromkeys([*plan.key.names, *sorted(plan.filter.attributes)]))
    alone = {name: plan_key([plan.where], (), (name,)) for name in names}
    equal = [name for name in names if alone[name].equal]
    ranged = [name for name in names if alone[name].ranges]
    if not any(name in plan.filter.attributes for name in (*equal, *ranged[:1])):
        return "a sparse index with the wanted items alone, or a narrower range"
    if not equal:
        return f"an index sorted by {ranged[0]}, in partitions that the program can name"
    sort = [*equal[1:], *ranged[:1]]
    left = len(plan_key([plan.where], equal[:1], sort).rest)
    for name, way in _other_keys(plan, contents.shape):
        if way.key_plan.is_scan or len(way.key_plan.rest) > left or not _can_be_asked(plan, way):
            continue
        lacking = _lacking(plan, contents, way.index)
        answered = _answered(way)
        return f"{name} {answered}" + (f", but {lacking}" if lacking else "")
    sorted_by = f", sorted by {' and then '.join(sort)}" if sort else ""
    return f"an index with the partition key {equal[0]}{sorted_by}"
