"""`isotone get`: one item."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from isotone.cli.keys import table_of
from isotone.cli.notation import item_text
from isotone.cli.program import complain

SUMMARY: Final = """\
Read one item by its key, and print it as JSON.

The values of the key come in order, the partition key's first; or as name=value in any order. Exits with
1 where there is no such item."""
EXAMPLES: Final = """
isotone get shop.db Orders ann 2026-01-11
isotone get shop.db Orders customer=ann placed_at=2026-01-11
isotone get shop.db Orders ann 2026-01-11 --line | isotone put copy.db Orders -
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("key", metavar="KEY", nargs="+", help="the value of each key attribute")
    parser.add_argument("--line", action="store_true", help="print the item on one line")


def run(arguments: argparse.Namespace) -> int:
    table = table_of(arguments.connection, arguments.table)
    request = {
        "TableName": table.name,
        "Key": table.key_from(arguments.key),
        "ConsistentRead": True,
    }
    answer = arguments.connection.execute("GetItem", request)
    if "Item" not in answer:
        complain(f"table {table.name} has no such item")
        return 1
    sys.stdout.write(item_text(answer["Item"], indented=not arguments.line) + "\n")
    return 0
