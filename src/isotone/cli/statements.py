"""`isotone sql`: run PartiQL statements, and show how each ran and what it cost.

The plan is made here, from the statement and the keys of its table, as the database makes it. So it is shown for any
server, and without running the statement.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Final

from isotone.backends.interface import Backend
from isotone.cli.output import add_format, write_items
from isotone.cli.program import Command
from isotone.cli.table_keys import Keys, Table, table_of
from isotone.errors import UsageError, ValidationException
from isotone.expressions.partiql import (
    AnyStatement,
    Delete,
    Exists,
    Insert,
    KeyPlan,
    Select,
    Update,
    beyond_key,
    key_of,
    messages,
    parse_statement,
    plan,
    split_statements,
    value_of,
)
from isotone.values.notation import literal, value_text
from isotone.values.types import AttributeValue, Item

_LIMIT: Final = 100
_PAGE: Final = 1000  # items per request
_SHOWN_VALUES: Final = 3  # of a partition key


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
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument(
        "--limit", type=int, default=_LIMIT, help=f"show at most this many items (default {_LIMIT})"
    )
    how_many.add_argument("--all", action="store_true", help="show all items")
    parser.add_argument(
        "--consistent",
        action="store_true",
        help="read with strong consistency, at double the units",
    )
    parser.add_argument(
        "--plan", action="store_true", help="show how the statements would run, and do not run them"
    )
    add_format(parser)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.limit < 1:
        raise UsageError("--limit must be at least 1; --all shows everything")
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
    run = _Execution(arguments, text, parameters)
    shown = run.plan.keys.names if run.plan is not None else ()
    write_items(run.items(), arguments.format, shown)
    sys.stdout.flush()
    if arguments.format == "table":
        print(run.footer())
    elif run.more:
        sys.stderr.write(f"the first {run.shown} items; --all shows everything\n")


class _Execution:
    """The pages of one statement, and their totals."""

    def __init__(
        self, arguments: argparse.Namespace, text: str, parameters: Sequence[AttributeValue]
    ) -> None:
        self._connection: Backend = arguments.connection
        self._limit: int | None = None if arguments.all else arguments.limit
        self._request: dict[str, Any] = {"Statement": text, "ReturnConsumedCapacity": "TOTAL"}
        if parameters:
            self._request["Parameters"] = [*parameters]
        if arguments.consistent:
            self._request["ConsistentRead"] = True
        self.plan = self._planned(text, parameters)
        self.shown = 0
        self.units: float | None = None
        self.more = False

    def _planned(self, text: str, parameters: Sequence[AttributeValue]) -> _Plan | None:
        """The plan; None for a statement that only the server can judge."""
        try:
            return _Plan.of(self._connection, parse_statement(text), parameters)
        except ValidationException:
            return None

    def items(self) -> Iterator[Item]:
        """The items of all pages, up to the limit."""
        request = self._request
        while True:
            if self._limit is not None and self.plan is not None and self.plan.is_read:
                # With a filter, Limit counts the items read, not those returned.
                missing = self._limit - self.shown
                request = {**request, "Limit": _PAGE if self.plan.filters else min(missing, _PAGE)}
            page = self._connection.execute("ExecuteStatement", request)
            consumed = page.get("ConsumedCapacity")  # DynamoDB Local does not report it
            if consumed is not None:
                self.units = (self.units or 0) + consumed["CapacityUnits"]
            for item in page.get("Items", ()):
                if self.shown == self._limit:
                    self.more = True
                    return
                self.shown += 1
                yield item
            if "NextToken" not in page:
                return
            if self.shown == self._limit:
                self.more = True
                return
            request = {**request, "NextToken": page["NextToken"]}

    def footer(self) -> str:
        """The number of items, the cost, and the plan."""
        count = f"{self.shown} item{'' if self.shown == 1 else 's'}"
        if self.plan is not None and not self.plan.is_read and not self.shown:
            count = "done"
        units = (
            [] if self.units is None else [f"{self.units:g} unit{'' if self.units == 1 else 's'}"]
        )
        told = "; ".join([*units, *([] if self.plan is None else [str(self.plan)])])
        more = "; there are more: --limit or --all" if self.more else ""
        return f"{count} ({told}){more}"


class _Plan:
    """How a statement runs: `str()` has the operation, what it reads or writes, and by which condition."""

    def __init__(
        self,
        statement: Select | Insert | Update | Delete,
        table: Table,
        values: Mapping[str, AttributeValue],
    ) -> None:
        self._table = table
        self._values = values
        self.is_read = isinstance(statement, Select)
        index = statement.index if isinstance(statement, Select) else None
        self.keys: Keys = table.keys_of(index)
        self.filters: tuple[str, ...] = ()
        if isinstance(statement, Select):
            self._lines = self._of_read(statement)
        elif isinstance(statement, Insert):
            self._lines = [f"PutItem in {table.name}", *self._key_of(statement.item(values))]
        else:
            self._lines = self._of_write(statement)

    @classmethod
    def of(
        cls, connection: Backend, statement: AnyStatement, parameters: Sequence[AttributeValue]
    ) -> _Plan:
        """The plan of a statement. Reads the description of its table."""
        if isinstance(statement, Exists):
            raise ValidationException(messages.EXISTS_ALONE)
        if len(parameters) > statement.parameters:
            raise UsageError(
                f"there are {len(parameters)} --param, but the statement has {statement.parameters} ?"
            )
        table = table_of(connection, statement.table)
        return cls(statement, table, statement.bind([*parameters]))

    def __str__(self) -> str:
        return ", ".join(self._lines)

    def _of_read(self, select: Select) -> list[str]:
        key_plan = plan(select.where, self.keys.partition, self.keys.sort)
        filters = key_plan.filter
        self.filters = () if filters is None else tuple(sorted(filters.attributes))
        index = [] if select.index is None else [f"index {select.index}"]
        filtered = [f"filter on {' '.join(self.filters)}"] if self.filters else []
        return [
            f"{self._operation(select, key_plan)} of {self._table.name}",
            *index,
            *self._selected(key_plan),
            *filtered,
        ]

    def _operation(self, select: Select, key_plan: KeyPlan) -> str:
        count = prod(len(possible) for possible in key_plan.partition)
        action = key_plan.action(select.index)
        return f"{count} Queries" if action == "Query" and count > 1 else action

    def _selected(self, key_plan: KeyPlan) -> list[str]:
        """The conditions on keys."""
        found = []
        for name, terms in zip(self.keys.partition, key_plan.partition, strict=False):
            values = [value_text(value_of(term, self._values)) for term in terms]
            shown = [*values[:_SHOWN_VALUES], *(["…"] if len(values) > _SHOWN_VALUES else [])]
            found.append(
                f"{name} = {values[0]}" if len(values) == 1 else f"{name} in {' '.join(shown)}"
            )
        for term in (*key_plan.equal, *key_plan.ranges):
            values = [value_text(value) for value in term.values(self._values)]
            found.append(f"{term.attribute} {term.operator.lower()} {' and '.join(values)}")
        return found

    def _of_write(self, statement: Update | Delete) -> list[str]:
        operation = "UpdateItem" if isinstance(statement, Update) else "DeleteItem"
        where, names = statement.where, self.keys.names
        key_plan = plan(where, self.keys.partition, self.keys.sort)
        key = key_of(key_plan, names, self._values)
        if where is None or key is None:
            raise ValidationException(messages.KEY_EQUALITY)
        demanded = beyond_key(where, names)
        condition = (
            [] if demanded is None else [f"condition on {' '.join(sorted(demanded.attributes))}"]
        )
        return [f"{operation} in {self._table.name}", *self._key_of(key), *condition]

    def _key_of(self, item: Item) -> list[str]:
        return [f"{name} = {value_text(item[name])}" for name in self.keys.names if name in item]


SQL: Final = Command(
    """\
Run SQL statements: SELECT, INSERT, UPDATE, DELETE, in DynamoDB's PartiQL.

The last line tells how a statement ran (GetItem, Query, Scan, …), by which key and index, and what it cost.
--plan tells that without running it.""",
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
