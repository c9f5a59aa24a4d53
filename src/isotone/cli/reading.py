"""`isotone query` and `isotone scan`: reads pages until the limit is reached, and shows the cost."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any, Final

from isotone.backends.interface import Backend
from isotone.cli.conditions import parse_conditions
from isotone.cli.output import add_format, write_items
from isotone.cli.program import Command
from isotone.cli.query_plan import PlannedRead, plan_query, plan_scan
from isotone.cli.table_keys import table_of
from isotone.errors import UsageError
from isotone.tables.description import TableDescription
from isotone.text_table import pluralized
from isotone.values.types import Item

_LIMIT: Final = 100
_PAGE: Final = 1000  # items per request


def _reading_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that query and scan share."""
    parser.add_argument("--index", metavar="NAME", help="read this index")
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
    add_format(parser)


def _show(
    connection: Backend,
    operation: str,
    table: TableDescription,
    plan: PlannedRead,
    arguments: argparse.Namespace,
    **more: Any,
) -> int:
    """Print the items of a plan, and their cost in the footer of a table."""
    if arguments.limit < 1:
        raise UsageError("--limit must be at least 1; --all shows everything")
    request = {"TableName": table.name, **plan.parameters, **more}
    if arguments.consistent:
        request["ConsistentRead"] = True
    reading = _PagedReading(
        connection, operation, request, None if arguments.all else arguments.limit
    )
    first = tuple(dict.fromkeys((*plan.key.names, *table.key.names)))
    write_items(reading.items(plan.filtered), arguments.format, first)
    sys.stdout.flush()
    if arguments.format == "table":
        print(reading.footer(plan))
    elif reading.more:
        sys.stderr.write(f"the first {pluralized(reading.shown, 'item')}; --all shows everything\n")
    return 0


class _PagedReading:
    """The pages of one request, and their total cost."""

    def __init__(
        self, connection: Backend, operation: str, request: dict[str, Any], limit: int | None
    ) -> None:
        self._connection = connection
        self._operation = operation
        self._request = {**request, "ReturnConsumedCapacity": "TOTAL"}
        self._limit = limit
        self.shown = self.scanned = 0
        self.units = 0.0
        self.more = False

    def items(self, filtered: bool) -> Iterator[Item]:
        request = self._request
        while True:
            if self._limit is not None:
                # With a filter, Limit counts the items read, not those returned.
                missing = self._limit - self.shown
                request = {**request, "Limit": _PAGE if filtered else min(missing, _PAGE)}
            page = self._connection.execute(self._operation, request)
            self.scanned += page["ScannedCount"]
            self.units += page["ConsumedCapacity"]["CapacityUnits"]
            for item in page["Items"]:
                if self.shown == self._limit:
                    self.more = True
                    return
                self.shown += 1
                yield item
            if "LastEvaluatedKey" not in page:
                return
            if self.shown == self._limit:
                self.more = True
                return
            request = {**request, "ExclusiveStartKey": page["LastEvaluatedKey"]}

    def footer(self, plan: PlannedRead) -> str:
        count = pluralized(self.shown, "item")
        read = f"{self.scanned} read, " if plan.filtered else ""
        index = f", index {plan.index}" if plan.index else ""
        more = "; there are more: --limit or --all" if self.more else ""
        return f"{count} ({read}{pluralized(self.units, 'unit', form='g')}{index}){more}"


# query


def _query_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument(
        "conditions", metavar="CONDITION", nargs="+", help="such as customer=ann or 'total > 10'"
    )
    parser.add_argument("--reverse", action="store_true", help="the last item first")
    _reading_arguments(parser)


def _query(arguments: argparse.Namespace) -> int:
    connection = arguments.connection
    table = table_of(connection, arguments.table)
    plan = plan_query(table, parse_conditions(arguments.conditions), arguments.index)
    forward = not arguments.reverse
    return _show(connection, "Query", table, plan, arguments, ScanIndexForward=forward)


QUERY: Final = Command(
    """\
Read the items of one partition in order of their sort key.

Conditions on the key decide what is read: the partition key by =, the sort key by = < <= > >=,
begins_with or between. Conditions on other attributes (also <>, contains, exists, missing) filter what
was read. Without --index, the index that fits the conditions is used.""",
    examples="""
isotone query shop.db Orders customer=ann
isotone query shop.db Orders customer=ann 'placed_at begins_with 2020-01'
isotone query shop.db Orders customer=ann and placed_at between 2020-01-11 and 2020-02-01
isotone query shop.db Orders customer=ann 'total > 10' --reverse --limit 5
isotone query http://localhost:8000 Orders customer=ann --format jsonl
""",
    add_arguments=_query_arguments,
    run=_query,
)


# scan


def _scan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument(
        "conditions",
        metavar="CONDITION",
        nargs="*",
        default=[],
        help="such as 'total > 10' or 'gift exists'",
    )
    _reading_arguments(parser)


def _scan(arguments: argparse.Namespace) -> int:
    connection = arguments.connection
    table = table_of(connection, arguments.table)
    conditions = parse_conditions(arguments.conditions) if arguments.conditions else []
    plan = plan_scan(table, conditions, arguments.index)
    return _show(connection, "Scan", table, plan, arguments)


SCAN: Final = Command(
    """\
Read a whole table, or a whole index, item by item.

Partitions come in no useful order, as in DynamoDB. Conditions filter what was read. They do not make a scan
cheaper: the line under the table shows how much was read.""",
    examples="""
isotone scan shop.db Orders
isotone scan shop.db Orders 'total > 100' --all
isotone scan shop.db Orders --format jsonl --all > orders.jsonl
""",
    add_arguments=_scan_arguments,
    run=_scan,
)


DEFINITIONS: Final = {"query": QUERY, "scan": SCAN}
