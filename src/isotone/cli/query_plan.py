"""Plans `isotone query` and `isotone scan`: which index, key condition and filter, and the type of each value.

A query uses the key that answers most of its conditions, the table's or an index's. These conditions become the key
condition, which determines what is read. All others become the filter, which drops items after they were read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from isotone.cli.conditions import ConditionWords
from isotone.cli.table_keys import key_of
from isotone.errors import UsageError
from isotone.expressions import PlaceholderWriter
from isotone.expressions.key_planning import KeyPlan, KeyPlanner, joined
from isotone.expressions.nodes import Between, Call, Comparison, ConditionNode, Literal, Path
from isotone.tables.description import KeyDescription, TableDescription
from isotone.values.notation import literal, scalar

_FUNCTIONS: Final = {
    "begins_with": "begins_with",
    "contains": "contains",
    "exists": "attribute_exists",
    "missing": "attribute_not_exists",
}


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """The index (None: the table) and its key, with the parameters of a query or scan."""

    index: str | None
    key: KeyDescription
    parameters: dict[str, Any]
    filtered: bool


_Way: TypeAlias = tuple[str | None, KeyDescription, KeyPlan]
"""An index (None: the table), its key, and how the key answers the conditions."""


def plan_query(
    table: TableDescription, conditions: Sequence[ConditionWords], index: str | None
) -> PlannedRead:
    """Plan a query, on the named index or on the key that answers most conditions."""
    planner = KeyPlanner(_nodes(conditions, table))
    ways: list[_Way] = []
    for name in [index] if index else [None, *table.index_names]:
        key = key_of(table, name)
        ways.append((name, key, planner.plan(key.partition_names, key.sort_names)))
    usable = [each for each in ways if each[2].is_query(each[1].names)]
    if not usable:
        raise UsageError(_refusal(table, ways))
    name, key, plan = max(usable, key=_rank)
    return _planned(name, key, plan.answered, plan.rest)


def plan_scan(
    table: TableDescription, conditions: Sequence[ConditionWords], index: str | None
) -> PlannedRead:
    """Plan a scan with the conditions."""
    return _planned(index, key_of(table, index), (), _nodes(conditions, table))


def _rank(way: _Way) -> tuple[object, ...]:
    index, key, plan = way
    is_whole = index is None and plan.equalities.keys() == {*key.names}
    return plan.rank(len(plan.rest), is_whole=is_whole)


def _refusal(table: TableDescription, ways: Sequence[_Way]) -> str:
    """Why the conditions do not allow a query of any key."""
    for index, key, plan in ways:
        if not plan.is_scan:
            return (
                f"a query of {f'index {index} of ' if index else ''}table {table.name} takes {_equal(key)} once, and of "
                f"its sort key {' '.join(key.sort_names)} one condition: = < <= > >= begins_with or between; isotone "
                "scan filters by any conditions"
            )
    keys = " or ".join(
        f"{_equal(key)} ({f'index {index}' if index else 'the table'})" for index, key, _ in ways
    )
    return f"a query of {table.name} needs a whole partition key: {keys}; isotone scan reads everything"


def _equal(key: KeyDescription) -> str:
    return " ".join(f"{name}=…" for name in key.partition_names)


def _planned(
    index: str | None,
    key: KeyDescription,
    answered: Sequence[ConditionNode],
    rest: Sequence[ConditionNode],
) -> PlannedRead:
    writer = PlaceholderWriter()
    parameters: dict[str, Any] = {}
    for name, nodes in (("KeyConditionExpression", answered), ("FilterExpression", rest)):
        if (tree := joined(nodes)) is not None:
            parameters[name] = writer.text(tree)
    if writer.names:
        parameters["ExpressionAttributeNames"] = writer.names
    if writer.values:
        parameters["ExpressionAttributeValues"] = writer.values
    if index:
        parameters["IndexName"] = index
    return PlannedRead(index, key, parameters, bool(rest))


def _nodes(conditions: Sequence[ConditionWords], table: TableDescription) -> list[ConditionNode]:
    return [_node(condition, table.types) for condition in conditions]


def _node(condition: ConditionWords, types: Mapping[str, str]) -> ConditionNode:
    """A condition as a tree; values of key attributes get the type of the key."""
    name, operator = condition.name, condition.operator
    path = Path((name,))
    values = [
        Literal(scalar(word, types[name]) if name in types else literal(word))
        for word in condition.words
    ]
    if operator == "between":
        return Between(path, *values)
    if operator in _FUNCTIONS:
        return Call(_FUNCTIONS[operator], (path, *values))
    return Comparison(operator, path, *values)
