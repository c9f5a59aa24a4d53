"""`isotone sql`: runs PartiQL statements (--param), and shows how each ran (--plan) and what it cost.

The plan is the one of `isotone explain`: it is made here from the statement and the keys of its table, as the database
would make it. So it can be shown for any server, and without running the statement.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import isotone
from isotone.advisor.read_plan import ReadPlan, terms_of
from isotone.advisor.statement_plan import plan_of_statement
from isotone.advisor.write_costs import WritePlan
from isotone.backends.interface import Backend
from isotone.cli.item_pages import ItemPages, add_reading_arguments, check_limit
from isotone.cli.program import Command
from isotone.cli.table_keys import table_of
from isotone.errors import UsageError, ValidationException
from isotone.expressions.partiql import (
    AnyStatement,
    Exists,
    messages,
    parse_statement,
    split_statements,
)
from isotone.inference import existing_table
from isotone.text_table import pluralized
from isotone.values.notation import literal, value_text
from isotone.values.types import AttributeValue

_SHOWN_VALUES: Final = 3  # values of a partition key that are shown


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "statement",
        metavar="STATEMENT",
        help="a statement, or several separated by semicolons; @FILE, or - for standard input",
    )
    parser.add_argument(
        "--param",
        metavar="VALUE",
        action="append",
        default=[],
        help="the value of the next ? in the statement; repeat it for more",
    )
    add_reading_arguments(parser)
    parser.add_argument(
        "--plan", action="store_true", help="show how the statements would run, and do not run them"
    )


def _run(arguments: argparse.Namespace) -> int:
    check_limit(arguments)
    statements = split_statements(_text(arguments.statement))
    if not statements:
        raise UsageError('there is no statement; write one such as "SELECT * FROM Orders"')
    if arguments.param and len(statements) > 1:
        raise UsageError("--param belongs to one statement; there are several")
    parameters = [literal(word) for word in arguments.param]
    for statement in statements:
        _run_one(arguments, statement, parameters)
    return 0


def _text(source: str) -> str:
    """The statements: the words of the command line, a file, or standard input."""
    if source == "-":
        return sys.stdin.read()
    if not source.startswith("@"):
        return source
    try:
        return Path(source[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {source[1:]}: {error}") from None


def _run_one(
    arguments: argparse.Namespace, text: str, parameters: Sequence[AttributeValue]
) -> None:
    """Run one statement, or only show its plan."""
    if arguments.plan:
        print(_Plan.of(arguments.connection, parse_statement(text), parameters))
        return
    plan = _planned(arguments.connection, text, parameters)
    request: dict[str, Any] = {"Statement": text}
    if parameters:
        request["Parameters"] = [*parameters]
    has_filter = bool(plan.filters) if plan is not None and plan.is_read else None
    pages = ItemPages("ExecuteStatement", request, arguments, has_filter=has_filter)

    def footer() -> str:
        """The number of items, the cost, and the plan."""
        count = pluralized(pages.shown, "item")
        if plan is not None and not plan.is_read and not pages.shown:
            count = "done"
        units = [] if pages.units is None else [pluralized(pages.units, "unit", form="g")]
        return f"{count} ({'; '.join([*units, *([] if plan is None else [str(plan)])])})"

    pages.show(plan.names if plan is not None else (), footer)


def _planned(connection: Backend, text: str, parameters: Sequence[AttributeValue]) -> _Plan | None:
    """The plan of a statement; None for one that only the server can judge."""
    try:
        return _Plan.of(connection, parse_statement(text), parameters)
    except ValidationException:
        return None


class _Plan:
    """How a statement runs. `str()` has the operation, the table or index, and the condition."""

    def __init__(self, plan: ReadPlan | WritePlan) -> None:
        self.is_read = isinstance(plan, ReadPlan)
        self.filters: tuple[str, ...] = ()
        if isinstance(plan, ReadPlan):
            self.names = [part.name for part in plan.key.parts]
            self.filters = () if plan.filter is None else tuple(sorted(plan.filter.attributes))
            self._lines = [*_read_lines(plan), *_on("filter", self.filters)]
        else:
            self.names = [*plan.key]
            keys = [f"{name} = {value_text(value)}" for name, value in plan.key.items()]
            self._lines = [f"{plan.operation} in {plan.table}", *keys]
            self._lines += _on("condition", sorted(plan.demanded))

    @classmethod
    def of(
        cls, connection: Backend, statement: AnyStatement, parameters: Sequence[AttributeValue]
    ) -> _Plan:
        """Plan a statement. Reads the description of its table."""
        if isinstance(statement, Exists):
            raise ValidationException(messages.EXISTS_ALONE)
        if len(parameters) > statement.parameters:
            raise UsageError(
                f"there are {len(parameters)} --param, but the statement has {statement.parameters} ?"
            )
        # raises for a missing table, with the names of all tables
        table_of(connection, statement.table)
        with isotone.connect(connection, check_keys=False) as store:
            shape = store.run(existing_table(statement.table))
        return cls(plan_of_statement(statement, statement.bind([*parameters]), shape))

    def __str__(self) -> str:
        return ", ".join(self._lines)


def _read_lines(plan: ReadPlan) -> list[str]:
    """The operation, its index, and the conditions on keys."""
    count = len(plan.collections) if plan.operation == "Query" else 1
    operation = f"{count} Queries" if count > 1 else plan.operation
    index = [] if plan.index is None else [f"index {plan.index}"]
    return [f"{operation} of {plan.table}", *index, *(_term(*term) for term in terms_of(plan))]


def _term(name: str, operator: str, values: Sequence[AttributeValue]) -> str:
    """A condition on a key attribute."""
    texts = [value_text(value) for value in values]
    if operator == "IN":
        shown = [*texts[:_SHOWN_VALUES], *(["…"] if len(texts) > _SHOWN_VALUES else [])]
        return f"{name} in {' '.join(shown)}"
    return f"{name} {operator.lower()} {' and '.join(texts)}"


def _on(what: str, names: Sequence[str]) -> list[str]:
    return [f"{what} on {' '.join(names)}"] if names else []


SQL: Final = Command(
    """\
Run SQL statements: SELECT, INSERT, UPDATE, DELETE, in DynamoDB's PartiQL.

The last line shows how a statement ran (GetItem, Query, Scan, …), with which key and index, and what it cost.
--plan shows how it would run, without running it.""",
    examples="""
isotone sql shop.db "SELECT * FROM Orders WHERE customer = 'ann'"
isotone sql shop.db "SELECT * FROM Orders WHERE customer = ? AND total > ?" --param ann --param 10
isotone sql shop.db "UPDATE Orders SET status = 'SENT' WHERE customer = 'ann' AND placed_at = '2026-01-11'"
isotone sql shop.db "SELECT * FROM Orders WHERE total > 100" --plan
isotone sql shop.db @statements.sql
echo "SELECT * FROM Orders" | isotone sql http://localhost:8000 - --format jsonl
""",
    add_arguments=_arguments,
    run=_run,
)


DEFINITIONS: Final = {"sql": SQL}
