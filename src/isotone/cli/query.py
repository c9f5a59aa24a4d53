"""`isotone query`: items of one partition, in order."""

from __future__ import annotations

import argparse
from typing import Final

from isotone.cli.conditions import parse_conditions, plan_query
from isotone.cli.keys import table_of
from isotone.cli.reading import add_reading_arguments, show

SUMMARY: Final = """\
Read the items of one partition in order of their sort key.

Conditions on the key decide what is read: the partition key by =, the sort key by = < <= > >=,
begins_with or between. Conditions on other attributes (also <>, contains, exists, missing) filter what
was read. The index that suits the conditions is found without --index."""
EXAMPLES: Final = """
isotone query shop.db Orders customer=ann
isotone query shop.db Orders customer=ann 'placed_at begins_with 2020-01'
isotone query shop.db Orders customer=ann and placed_at between 2020-01-11 and 2020-02-01
isotone query shop.db Orders customer=ann 'total > 10' --reverse --limit 5
isotone query http://localhost:8000 Orders customer=ann --format jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument(
        "conditions", metavar="CONDITION", nargs="+", help="such as customer=ann or 'total > 10'"
    )
    parser.add_argument("--reverse", action="store_true", help="the last item first")
    add_reading_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    connection = arguments.connection
    table = table_of(connection, arguments.table)
    plan = plan_query(table, parse_conditions(arguments.conditions), arguments.index)
    forward = not arguments.reverse
    return show(connection, "Query", table, plan, arguments, ScanIndexForward=forward)
