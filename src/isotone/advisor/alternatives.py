"""Alternatives to a read: the other keys and their cost, a request's index (a model's query: model/reading/cost.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from isotone.advisor.explanation import Alternative, Cost
from isotone.advisor.pattern_names import ModelPatterns, SentTest, without_default
from isotone.advisor.read_costs import Budget, described_cost, estimate_read
from isotone.advisor.read_plan import ReadPlan, plan_of_read
from isotone.advisor.table_sample import TableSample, has_key, projected
from isotone.expressions import CompiledCondition
from isotone.expressions.key_planning import distinct, joined, key_term, name_of, plan_key
from isotone.expressions.nodes import Call, Comparison, ConditionNode, Literal
from isotone.model import (
    Condition,
    EntitySchema,
    Query,
    Read,
    Stats,
    Steps,
    ValueComparison,
    queries_for,
    waste_of,
)
from isotone.tables.description import TableDescription
from isotone.text_table import pluralized
from isotone.values.types import AttributeValue, Item


def alternatives_of(
    plan: ReadPlan,
    contents: TableSample,
    estimate: Cost,
    read: Read[Any] | None,
    patterns: ModelPatterns,
    budget: Budget,
) -> Steps[tuple[tuple[Alternative, ...], float]]:
    """The other keys of the table or the entity, and a scan; with the units that their estimates consumed."""
    if plan.operation == "GetItem" or plan.where is None:
        return (), 0.0
    if read is not None and len(read.schemas) == 1:
        ways = list(_of_model(read, contents))
    else:
        ways = list(_of_patterns(plan, contents, patterns))
        named = {alternative.name for alternative, _ in ways}
        ways += [way for way in _of_table(plan, contents, patterns) if way[0].name not in named]
    found, spent = [], 0.0
    for alternative, way in ways:
        if way is None:
            found.append(alternative)
            continue
        cost, units, _ = yield from estimate_read(way, contents, budget)
        spent += units
        why_not = alternative.why_not
        if not why_not or why_not.startswith("answers "):
            why_not = _compared(why_not, cost, estimate)
        found.append(replace(alternative, why_not=why_not, cost=cost))
    if plan.operation == "Query":
        cost = described_cost(plan.as_scan(contents.shape.key), contents)
        found.append(Alternative(f"Scan of table {plan.table}", "reads everything", cost))
    return tuple(found), spent


Way = tuple[Alternative, ReadPlan | None]
"""Another key, why it was not used, and its plan; None if it cannot answer."""


def _of_model(read: Read[Any], contents: TableSample) -> Iterator[Way]:
    """The other keys of an entity."""
    entity = read.schemas[0].entity
    ways, reasons = queries_for(entity, (*read.asked, *read.filters))
    for query, answered in ways:
        if query.name != read.name:
            yield Alternative(query.name, answered), plan_of_read(query, contents.shape)
    for reason in reasons:
        name, _, why = reason.partition(": ")
        if name != read.name:
            yield Alternative(name, why), None


def _of_patterns(plan: ReadPlan, contents: TableSample, patterns: ModelPatterns) -> Iterator[Way]:
    """The patterns of a model that answer conditions on the fields of an entity."""
    for query, answered in _answering(plan, contents, patterns):
        name = f"{query.name} ({_place(query.index, plan.table)})"
        way = plan_of_read(query, contents.shape)
        asked, filters = _attribute_tests(query.asked), _attribute_tests(query.filters)
        yield Alternative(name, answered, None, way.request[1], asked, filters), way


AttributeTest = tuple[str, str, tuple[AttributeValue, ...]]
_TESTS: Final = {
    "contains": "contains",
    "attribute_exists": "exists",
    "attribute_not_exists": "missing",
}


def _attribute_tests(conditions: Sequence[Condition]) -> tuple[AttributeTest, ...]:
    """The conditions that test one attribute of a field, each with an operator and values."""
    found = []
    for each in conditions:
        if isinstance(each, ValueComparison) and not each.path:
            values = tuple(map(each.field.wire.encode, each.values))
            found.append((each.field.attribute, each.operator, values))
        elif isinstance(each, SentTest) and (test := _sent_test(each.sent)):
            found.append(test)
    return tuple(found)


def _sent_test(node: ConditionNode) -> AttributeTest | None:
    """The attribute, the operator and the values of a test; None if it is not of one attribute alone."""
    if term := key_term(node):
        return term.attribute, term.operator.replace("BETWEEN", "between"), term.values({})
    if isinstance(node, Comparison):
        operator, (operand, *others) = node.operator, (node.left, node.right)
    elif isinstance(node, Call) and node.function in _TESTS:
        operator, (operand, *others) = _TESTS[node.function], node.operands
    else:
        return None
    name = name_of(operand)
    values = tuple(each.value for each in others if isinstance(each, Literal))
    return (name, operator, values) if name and len(values) == len(others) else None


def _answering(
    plan: ReadPlan, contents: TableSample, patterns: ModelPatterns
) -> list[tuple[Query[Any], str]]:
    """The queries that answer conditions, each with what it answers; those of the most wanted items first.

    A request may find items of several kinds, and a pattern has those of one.
    """
    wanted = _wanted(plan, contents)
    found = []
    for query, answered in patterns.answering(plan):
        schema = query.schemas[0]
        count = sum(_may_be(schema, item) for item in wanted)
        if count < len(wanted):
            answered += f", for {count} of {len(wanted)} wanted items of the sample"
        if lost := _lost_range(plan, contents, schema):
            answered += f", without the range of {lost}"
        if count or not wanted:
            found.append((count, query, answered))
    found.sort(key=lambda each: -each[0])
    return [(query, answered) for _, query, answered in found]


def _lost_range(plan: ReadPlan, contents: TableSample, schema: EntitySchema) -> str:
    """The sort key whose range is no condition on a field, so that no other pattern has it; empty if all items are in it."""
    fields = {field.attribute for field in schema.fields.values()}
    names = [term.attribute for term in plan.key_plan.ranges if term.attribute not in fields]
    return names[0] if names and not _keeps_collections(plan, contents) else ""


def _may_be(schema: EntitySchema, item: Item) -> bool:
    """Whether an item is of an entity; one without a tag may be."""
    tag = schema.table.tag
    kind = schema.table.entity_of(item[tag].get("S", "")) if tag in item else schema
    return kind is not None and schema.tag in kind.lineage


def _wanted(plan: ReadPlan, contents: TableSample) -> list[Item]:
    """The sampled items that a read returns."""
    if plan.where is None:
        return []
    matches = CompiledCondition.from_node(plan.where, parameter="").matches
    return [item for item in contents.items if matches(item, plan.values)]


def _place(index: str | None, table: str) -> str:
    return f"index {index}" if index is not None else f"table {table}"


def _of_table(plan: ReadPlan, contents: TableSample, patterns: ModelPatterns) -> Iterator[Way]:
    """The other keys of a table, by their own attributes."""
    for index, way in _other_keys(plan, contents.shape):
        name = _named(way, index, patterns)
        if way.operation == "Scan":
            needed = _fields(way, way.key.partition_names, patterns)
            missing = " and ".join(f"{each} = …" for each in needed)
            yield Alternative(name, f"needs {missing}"), None
        elif not _can_be_asked(plan, way):
            yield Alternative(name, "would have to filter by its own key"), None
        else:
            yield Alternative(name, _lacking(plan, contents, way.index) or _answered(way)), way


def _other_keys(plan: ReadPlan, shape: TableDescription) -> Iterator[tuple[str | None, ReadPlan]]:
    """Each other key of the table, with the same condition read by that key."""
    for index in (None, *(each.name for each in shape.indexes)):
        if index != plan.index:
            yield index, plan.on(shape.key_of(index), index)


def _named(way: ReadPlan, index: str | None, patterns: ModelPatterns) -> str:
    """The name of a key, with the pattern of the model that it is."""
    place = _place(index, way.table)
    pattern = patterns.read_by(way) or patterns.of_index(way.table, index)
    return f"{pattern} ({place})" if pattern else place


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
    wanted = _wanted(plan, contents)
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


def advice_of(
    plan: ReadPlan,
    contents: TableSample,
    cost: Cost,
    read: Read[Any] | None,
    patterns: ModelPatterns,
) -> str:
    """Advice which key or index would save what the filter wastes; empty if nothing is wasted."""
    if plan.filter is None or cost.items_returned >= cost.items_read or plan.operation == "GetItem":
        return ""
    if cost.hit_rate > _HARDLY_ANY:
        return ""
    if read is not None:
        if not read.filters:  # the filter drops other kinds, or expired items
            return ""
        return waste_of(read, Stats(cost.items_read, cost.items_returned, cost.units)).advice
    for query, answered in _answering(plan, contents, patterns):
        return f"{query.name} ({_place(query.index, plan.table)}) {answered}"
    return _index_for(plan, contents, patterns)


def _index_for(plan: ReadPlan, contents: TableSample, patterns: ModelPatterns) -> str:
    """The index that would answer most of the condition by its key: an existing one, or a new one."""
    if plan.where is None or plan.filter is None:
        return ""
    names = list(dict.fromkeys([*plan.key.names, *sorted(plan.filter.attributes)]))
    conditions = distinct([plan.where])
    where = [without_default(each) for each in conditions]
    asked = replace(plan, where=joined(where))
    alone = {name: plan_key(where, (), (name,)) for name in names}
    equal = [name for name in names if alone[name].equal]
    ranged = [name for name in names if alone[name].ranges]
    # A range that only names a kind needs no place in a new key.
    if _keeps_collections(plan, contents):
        ranged = [name for name in ranged if name in plan.filter.attributes]
    if not any(name in plan.filter.attributes for name in (*equal, *ranged[:1])):
        return _NARROWER
    if not equal:
        return _sorted_by(plan, contents.shape, ranged[0], patterns)
    sort = [*equal[1:], *ranged[:1]]
    left = len(plan_key(where, equal[:1], sort).rest)
    for index, way in _other_keys(asked, contents.shape):
        if way.key_plan.is_scan or len(way.key_plan.rest) > left or not _can_be_asked(asked, way):
            continue
        lacking = _lacking(plan, contents, way.index)
        answered = f"{_named(way, index, patterns)} {_answered(way)}"
        return answered + (f", but {lacking}" if lacking else "")
    if _exists(contents.shape, equal, ranged[:1]):
        return _NARROWER
    partition, sort = (_fields(plan, each, patterns) for each in (equal[:1], sort))
    sorted_by = f", sorted by {' and then '.join(sort)}" if sort else ""
    stored = "" if where == conditions else ", if every item stores them"
    return f"an index with the partition key {' and '.join(partition)}{sorted_by}{stored}"


def _sorted_by(
    plan: ReadPlan, shape: TableDescription, attribute: str, patterns: ModelPatterns
) -> str:
    """What a range alone needs: the partition key of an index that is sorted by it already, or such an index."""
    for index, way in _other_keys(plan, shape):
        if _fields(way, way.key.sort_names, patterns)[:1] == [attribute]:
            given = " and ".join(_fields(way, way.key.partition_names, patterns))
            return (
                f"{_named(way, index, patterns)}, sorted by {attribute}, if the query gives {given}"
            )
    return f"an index sorted by {attribute}, with a partition key that the query can give"


def _fields(plan: ReadPlan, attributes: Sequence[str], patterns: ModelPatterns) -> list[str]:
    """The fields that the attributes of a key are made of, as its pattern declares them."""
    return [field for each in attributes for field in patterns.fields_of(plan, each)]


def _keeps_collections(plan: ReadPlan, contents: TableSample) -> bool:
    """Whether the range of a read has all sampled items of its collections."""
    entries = [each for each in contents.items if has_key(plan.key, each)]
    return all(plan.is_in_range(each) for each in entries if plan.is_in_partition(each))


# The share of items returned above which an index of its own would cost more than the filter.
_HARDLY_ANY: Final = 0.9
_NARROWER: Final = "a sparse index with the wanted items alone, or a narrower range"


def _exists(shape: TableDescription, equal: Sequence[str], ranged: Sequence[str]) -> bool:
    """Whether a key has the attributes already: equal ones first, in any order, then the one of the range."""
    keys = [shape.key, *(index.key for index in shape.indexes)]
    for key in keys:
        names, count = key.names, len(equal)
        is_grouped = {*key.partition_names} <= {*equal} and {*names[:count]} == {*equal}
        if is_grouped and [*names[count : count + len(ranged)]] == [*ranged]:
            return True
    return False
