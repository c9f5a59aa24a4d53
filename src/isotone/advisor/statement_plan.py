"""PartiQL for `explain`: finds the table of a statement, and turns it into the plan of a read or of a write."""

from __future__ import annotations

from isotone.advisor.read_plan import ReadPlan, plan_of_select
from isotone.advisor.write_costs import WritePlan
from isotone.backends.interface import Request
from isotone.errors import UsageError, ValidationException
from isotone.expressions.key_planning import Values
from isotone.expressions.partiql import (
    DeleteStatement,
    Exists,
    InsertStatement,
    Select,
    UpdateStatement,
    beyond_key,
    fault_place,
    key_of,
    messages,
    parse_statement,
    plan_where,
)
from isotone.tables.description import TableDescription
from isotone.values.attribute_validation import canonical_item
from isotone.values.types import Item


def table_of_statement(text: str) -> str:
    """The table that a statement names; empty if there is none. Raises `ValidationException` for another text."""
    parsed = parse_statement(text)
    return "" if isinstance(parsed, Exists) else parsed.table


def place_of_fault(statement: str, message: str) -> dict[str, int] | None:
    """Where the fault of a statement is that a message tells: line and column from 1, and length."""
    found = fault_place(statement, message)
    return None if found is None else found._asdict()


def plan_of_statement(
    statement: Select | InsertStatement | UpdateStatement | DeleteStatement,
    values: Values,
    shape: TableDescription,
    more: Request | None = None,
) -> ReadPlan | WritePlan:
    """The plan of a statement; `more` has the other parameters of ExecuteStatement."""
    request = ("ExecuteStatement", {"Statement": statement.text, **(more or {})})
    if isinstance(statement, Select):
        return plan_of_select(statement, values, shape, request)
    return _of_change(statement, values, shape, request)


def _of_change(
    statement: InsertStatement | UpdateStatement | DeleteStatement,
    values: Values,
    shape: TableDescription,
    request: tuple[str, Request],
) -> WritePlan:
    """The plan of a statement that writes; raises `ValidationException` unless it names one key."""
    names = shape.key.names
    if isinstance(statement, InsertStatement):
        item, _ = canonical_item(statement.item(values))
        if missing := [name for name in names if name not in item]:
            raise UsageError(f"the item has no {missing[0]}, which is a key of {shape.name}")
        key = {name: item[name] for name in names}
        return WritePlan(
            "PutItem",
            shape.name,
            key,
            lambda _: item,
            lambda it: not it,
            "there is no such item",
            request,
        )
    key_plan = plan_where(statement.where, shape.key.partition_names, shape.key.sort_names)
    found = key_of(key_plan, names, values)
    if statement.where is None or found is None:
        raise ValidationException(messages.KEY_EQUALITY)
    demanded = beyond_key(statement.where, names)
    beyond = frozenset() if demanded is None else demanded.attributes

    def matches(stored: Item) -> bool:
        if not stored:
            return isinstance(statement, DeleteStatement)
        return demanded is None or demanded.matches(stored, values)

    if isinstance(statement, DeleteStatement):
        return WritePlan(
            "DeleteItem", shape.name, found, lambda _: None, matches, "", request, 1, beyond
        )
    changes = statement.update
    return WritePlan(
        "UpdateItem",
        shape.name,
        found,
        lambda stored: changes.apply(stored or found, values),
        matches,
        "the item exists",
        request,
        1,
        beyond,
    )
