"""The pages of items that `query`, `scan` and `sql` print, with their cost: --limit, --all, --consistent."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from isotone.cli.output import add_format, write_items
from isotone.errors import UsageError
from isotone.text_table import pluralized
from isotone.values.types import Item

_LIMIT: Final = 100
_PAGE: Final = 1000  # items per request
# Where a page ended, and where the next one begins. That of a statement has both, and goes on from its token.
_POSITIONS: Final = {"NextToken": "NextToken", "LastEvaluatedKey": "ExclusiveStartKey"}


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments on how much is read, and how it is shown."""
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


def check_limit(arguments: argparse.Namespace) -> None:
    """Raise `UsageError` for a limit below 1."""
    if arguments.limit < 1:
        raise UsageError("--limit must be at least 1; --all shows everything")


class ItemPages:
    """The pages of one request, and their totals.

    `has_filter` says whether some of the items that are read are not returned; None for a write, which has no pages.
    """

    def __init__(
        self,
        operation: str,
        request: Mapping[str, Any],
        arguments: argparse.Namespace,
        *,
        has_filter: bool | None,
    ) -> None:
        self._arguments = arguments
        self._operation = operation
        self._request = {**request, "ReturnConsumedCapacity": "TOTAL"}
        if arguments.consistent:
            self._request["ConsistentRead"] = True
        self._limit: int | None = None if arguments.all else arguments.limit
        self._has_filter = has_filter
        self.shown: int = 0
        self.scanned: int = 0
        self._more = False
        self.units: float | None = None  # DynamoDB Local does not report those of statements

    def show(self, names: Sequence[str], footer: Callable[[], str]) -> None:
        """Print the items, a table with these attributes first; below it the footer, which is made afterwards."""
        form = self._arguments.format
        write_items(self._items(), form, names)
        sys.stdout.flush()
        if form == "table":
            print(footer() + ("; there are more: --limit or --all" if self._more else ""))
        elif self._more:
            sys.stderr.write(
                f"the first {pluralized(self.shown, 'item')}; --all shows everything\n"
            )

    def _items(self) -> Iterator[Item]:
        position: Mapping[str, Any] | None = {}
        while position is not None:
            request = {**self._request, **position}
            if self._limit is not None and self._has_filter is not None:
                # With a filter, Limit counts the items read, not those returned.
                missing = self._limit - self.shown
                request["Limit"] = _PAGE if self._has_filter else min(missing, _PAGE)
            page = self._arguments.connection.execute(self._operation, request)
            self.scanned += page.get("ScannedCount", 0)
            if "ConsumedCapacity" in page:
                self.units = (self.units or 0) + page["ConsumedCapacity"]["CapacityUnits"]
            for item in page.get("Items", ()):
                if self.shown == self._limit:
                    self._more = True
                    return
                self.shown += 1
                yield item
            position = next(
                ({start: page[end]} for end, start in _POSITIONS.items() if end in page), None
            )
            if self.shown == self._limit:
                self._more = position is not None
                return
