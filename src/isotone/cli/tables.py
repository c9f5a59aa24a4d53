"""`isotone tables`: what is there."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any, Final

from isotone.cli.keys import Table, table_names, table_of
from isotone.cli.output import rows_text

SUMMARY: Final = "List the tables with their keys, indexes, and how much is in them."
EXAMPLES: Final = """
isotone tables shop.db
isotone tables http://localhost:8000
isotone tables shop.db --json
"""

_HEADER: Final = ("table", "key", "indexes", "items", "size")
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="DynamoDB's descriptions, as JSON")


def run(arguments: argparse.Namespace) -> int:
    connection = arguments.connection
    names = table_names(connection)
    described = [connection.execute("DescribeTable", {"TableName": n})["Table"] for n in names]
    if arguments.json:
        print(json.dumps(described, indent=2, ensure_ascii=False))
    elif not names:
        print("no tables; isotone create makes one")
    else:
        tables = [table_of(connection, name) for name in names]
        rows = [_row(table, of) for table, of in zip(tables, described, strict=True)]
        print(rows_text(_HEADER, rows, right={3, 4}))
    return 0


def _row(table: Table, described: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        table.name,
        str(table.keys),
        ", ".join(str(keys.index) for keys in table.indexes),
        f"{described['ItemCount']:,}",
        size_text(described["TableSizeBytes"]),
    )


def size_text(size: float) -> str:
    """A number of bytes, in the unit that keeps it short."""
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
