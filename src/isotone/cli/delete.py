"""`isotone delete`: one item less."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from isotone.cli.keys import table_of
from isotone.cli.notation import item_text
from isotone.cli.program import complain

SUMMARY: Final = """\
Delete one item by its key, and print what it was.

The key is given as for get. Exits with 1 where there is no such item."""
EXAMPLES: Final = """
isotone delete shop.db Orders ann 2026-01-11
isotone delete shop.db Orders customer=ann placed_at=2026-01-11
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("key", metavar="KEY", nargs="+", help="the value of each key attribute")


def run(arguments: argparse.Namespace) -> int:
    table = table_of(arguments.connection, arguments.table)
    request = {"TableName": table.name, "Key": table.key_from(arguments.key)}
    answer = arguments.connection.execute("DeleteItem", {**request, "ReturnValues": "ALL_OLD"})
    if "Attributes" not in answer:
        complain(f"table {table.name} has no such item")
        return 1
    sys.stdout.write(item_text(answer["Attributes"]) + "\n")
    return 0
