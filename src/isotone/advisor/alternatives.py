"""What else could answer a read: the other keys, what each would cost, and the index that would save the most."""

from __future__ import annotations

from typing import Any

from isotone.advisor.explanation import Alternative, Cost
from isotone.advisor.read_costs import exact_cost, scaled_cost
from isotone.advisor.read_plan import ReadPlan, plan_of_read
from isotone.advisor.table_sample import TableSample, projected
from isotone.expressions.partiql import Where
from isotone.expressions.partiql import plan as key_plan_of
from isotone.model import Read, Stats, queries_for, waste_of
from isotone.text_table import counted


def alternatives_of(
    plan: ReadPlan, contents: TableSample, estimate: Cost, read: Read[Any] | None
) -> tuple[Alternative, ...]:
    """The other keys of the table or the entity, and a scan."""
    if plan.operation == "GetItem" or plan.where is None:
        return ()
    is_of_one_kind = read is not None and len(read.schemas) == 1
    found = (
        _of_model(read, contents, estimate)
        if read is not None and is_of_one_kind
        else _of_table(plan, contents, estimate)
    )
    if plan.operation == "Query":
        cost = _cost(plan.as_scan(contents.shape.key), contents)
        found.append(Alternative(f"Scan of table {plan.table}", "reads everything", cost))
    return tuple(found)


def _of_model(read: Read[Any], contents: TableSample, estimate: Cost) -> list[Alternative]:
    """The other keys of an entity."""
    entity = read.schemas[0].entity
    ways, reasons = queries_for(entity, (*read.asked, *read.filters))
    found = []
    for query, answered in ways:
        if query.name != read.name:
            cost = _cost(plan_of_read(query, contents.shape), contents)
            found.append(Alternative(query.name, _compared(answered, cost, estimate), cost))
    for reason in reasons:
        name, _, why = reason.partition(": ")
        if name != read.name:
            found.append(Alternative(name, why))
    return found


def _of_table(plan: ReadPlan, contents: TableSample, estimate: Cost) -> list[Alternative]:
    """The other keys of a table without a model."""
    shape = contents.shape
    found = []
    for index in (None, *(each.name for each in shape.indexes)):
        if index == plan.index:
            continue
        name = f"index {index}" if index is not None else f"table {shape.name}"
        way = plan.on(shape.key_of(index), index)
        if way.operation == "Scan":
            missing = " and ".join(f"{each} = …" for each in way.key.partition_names)
            found.append(Alternative(name, f"needs {missing}"))
            continue
        lacking = _lacking(plan, contents, index)
        cost = _cost(way, contents)
        why = lacking or _compared("answers the condition by its key", cost, estimate)
        found.append(Alternative(name, why, cost))
    return found


def _lacking(plan: ReadPlan, contents: TableSample, index: str | None) -> str:
    """What an index does not have that the read returns."""
    if index is None:
        return ""
    shape = contents.shape.index(index)
    kept = projected(contents.shape, shape)
    if kept is not None and (plan.projection is None or not plan.projection <= kept):
        return "does not project all attributes"
    if plan.consistent and shape.kind == "global":
        return "cannot be read consistently"
    missing = len(contents.items) - len(contents.entries(index))
    return (
        f"is sparse: {missing} of {counted(len(contents.items), 'item')} are not in it"
        if missing
        else ""
    )


def _compared(answered: str, cost: Cost, estimate: Cost) -> str:
    if cost.units < estimate.units:
        return f"{answered}, and would be cheaper"
    return answered


def _cost(plan: ReadPlan, contents: TableSample) -> Cost:
    return (exact_cost if contents.is_whole else scaled_cost)(plan, contents)


# Advice


def advice_of(plan: ReadPlan, cost: Cost, read: Read[Any] | None) -> str:
    """The key or the index that would save what the filter wastes; empty if it wastes nothing."""
    if plan.filter is None or cost.items_returned >= cost.items_read or plan.operation == "GetItem":
        return ""
    if read is not None:
        if not read.filters:  # it drops other kinds, or what has expired
            return ""
        return waste_of(read, Stats(cost.items_read, cost.items_returned, cost.units)).advice
    return _index_for(plan)


def _index_for(plan: ReadPlan) -> str:
    """The index that would answer the whole condition by its key."""
    if plan.where is None or plan.filter is None:
        return ""
    where = Where(plan.where)
    own = [*plan.key.names]
    names = list(dict.fromkeys([*own, *sorted(plan.filter.attributes)]))
    equal = [name for name in names if key_plan_of(where, (), (name,)).equal]
    ranged = [name for name in names if key_plan_of(where, (), (name,)).ranges]
    if not any(name in plan.filter.attributes for name in (*equal, *ranged[:1])):
        return "a sparse index with the wanted items alone, or a narrower range"
    if not equal:
        return f"an index sorted by {ranged[0]}, in partitions that the program can name"
    sort = [*equal[1:], *ranged[:1]]
    sorted_by = f", sorted by {' and then '.join(sort)}" if sort else ""
    return f"an index with the partition key {equal[0]}{sorted_by}"
