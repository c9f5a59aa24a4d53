"""`isotone query` and `isotone scan`: the commands (--index, --reverse); `query_plan` plans them, `item_pages` reads."""

from __future__ import annotations

import argparse
from typing import Any, Final

from isotone.cli.conditions import parse_conditions
from isotone.cli.item_pages import ItemPages, add_reading_arguments, check_limit
from isotone.cli.program import Command
from isotone.cli.query_plan import PlannedRead, plan_query, plan_scan
from isotone.cli.table_keys import table_of
from isotone.tables.description import TableDescription
from isotone.text_table import pluralized


def _reading_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that query and scan share."""
    parser.add_argument("--index", metavar="NAME", help="read this index")
    add_reading_arguments(parser)


def _show(
    operation: str,
    table: TableDescription,
    plan: PlannedRead,
    arguments: argparse.Namespace,
    **more: Any,
) -> int:
    """Print the items of a plan, and their cost in the footer of a table."""
    check_limit(arguments)
    request = {"TableName": table.name, **plan.parameters, **more}
    pages = ItemPages(operation, request, arguments, has_filter=plan.filtered)

    def footer() -> str:
        read = f"{pages.scanned} read, " if plan.filtered else ""
        units = pluralized(pages.units or 0, "unit", form="g")
        index = f", index {plan.index}" if plan.index else ""
        return f"{pluralized(pages.shown, 'item')} ({read}{units}{index})"

    pages.show(tuple(dict.fromkeys((*plan.key.names, *table.key.names))), footer)
    return 0


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
    return _show("Query", table, plan, arguments, ScanIndexForward=forward)


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
    return _show("Scan", table, plan, arguments)


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
