"""`isotone scan`: a whole table."""

from __future__ import annotations

import argparse
from typing import Final

from isotone.cli.conditions import parse_conditions, plan_scan
from isotone.cli.keys import table_of
from isotone.cli.reading import add_reading_arguments, show

SUMMARY: Final = """\
Read a whole table, or a whole index, item by item.

Partitions come in no useful order, as in DynamoDB. Conditions filter what was read; they make a scan no
cheaper, and the line under the table tells how much was read for what is shown."""
EXAMPLES: Final = """
isotone scan shop.db Orders
isotone scan shop.db Orders 'total > 100' --all
isotone scan shop.db Orders --format jsonl --all > orders.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument(
        "conditions", metavar="CONDITION", nargs="*", help="such as 'total > 10' or 'gift exists'"
    )
    add_reading_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    connection = arguments.connection
    table = table_of(connection, arguments.table)
    conditions = parse_conditions(arguments.conditions) if arguments.conditions else []
    plan = plan_scan(table, conditions, arguments.index)
    return show(connection, "Scan", table, plan, arguments)
