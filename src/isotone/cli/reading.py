"""Query and scan as commands: page after page until there is enough, and what it cost."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any, Final

from isotone.cli.conditions import Plan
from isotone.cli.connection import Connection
from isotone.cli.keys import Table
from isotone.cli.output import add_format, write_items
from isotone.errors import UsageError
from isotone.values.types import Item

_LIMIT: Final = 100
_PAGE: Final = 1000  # items asked for at once


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that query and scan share."""
    parser.add_argument("--index", metavar="NAME", help="read this index")
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument(
        "--limit", type=int, default=_LIMIT, help=f"show so many items (default {_LIMIT})"
    )
    how_many.add_argument("--all", action="store_true", help="show all items")
    parser.add_argument(
        "--consistent",
        action="store_true",
        help="read with strong consistency, at double the units",
    )
    add_format(parser)


def show(
    connection: Connection,
    operation: str,
    table: Table,
    plan: Plan,
    arguments: argparse.Namespace,
    **more: Any,
) -> int:
    """Print what a plan finds, and in a table's footer what it cost."""
    if arguments.limit < 1:
        raise UsageError("--limit is at least 1; --all shows everything")
    request = {"TableName": table.name, **plan.parameters, **more}
    if arguments.consistent:
        request["ConsistentRead"] = True
    reading = _Reading(connection, operation, request, None if arguments.all else arguments.limit)
    first = tuple(dict.fromkeys((*plan.keys.names, *table.keys.names)))
    write_items(reading.items(plan.filtered), arguments.format, first)
    sys.stdout.flush()
    if arguments.format == "table":
        print(reading.footer(plan))
    elif reading.more:
        sys.stderr.write(f"the first {reading.shown} items; --all shows everything\n")
    return 0


class _Reading:
    """Pages of one request, counted."""

    def __init__(
        self, connection: Connection, operation: str, request: dict[str, Any], limit: int | None
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
                # Under a filter, Limit counts what is read, not what is found.
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

    def footer(self, plan: Plan) -> str:
        count = f"{self.shown} item{'' if self.shown == 1 else 's'}"
        read = f"{self.scanned} read, " if plan.filtered else ""
        index = f", index {plan.keys.index}" if plan.keys.index else ""
        more = "; there are more: --limit or --all" if self.more else ""
        return f"{count} ({read}{self.units:g} units{index}){more}"
