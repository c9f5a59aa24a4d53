"""`isotone put`: items from JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from isotone.cli.connection import Connection
from isotone.cli.keys import table_of
from isotone.cli.notation import parse_json, read_item
from isotone.errors import UsageError
from isotone.values.types import Item

SUMMARY: Final = """\
Write items, replacing those with the same key.

Items are natural JSON: strings, numbers (every digit is kept), true, null, arrays, objects. What JSON has
no word for is written in DynamoDB's form: {"SS": ["a", "b"]}, {"NS": [1, 2]}, {"B": "aGVsbG8="}."""
EXAMPLES: Final = """
isotone put shop.db Orders '{"customer": "ann", "placed_at": "2026-01-11", "total": 12.5}'
isotone put shop.db Orders '{"customer": "bob", "placed_at": "2026-01-12"}' --new
isotone put shop.db Orders @orders.json          an array of items, or one item a line
isotone scan shop.db Orders --all --format jsonl | isotone put copy.db Orders -
"""

_BATCH: Final = 25  # what one BatchWriteItem takes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument(
        "item", metavar="JSON", help="an item, @FILE with items, or - for items on standard input"
    )
    parser.add_argument(
        "--new", action="store_true", help="refuse to replace an item that is there (one item only)"
    )


def run(arguments: argparse.Namespace) -> int:
    table = table_of(arguments.connection, arguments.table)
    if arguments.item == "-" or arguments.item.startswith("@"):
        if arguments.new:
            raise UsageError("--new takes one item, not a file of them")
        count = put_all(arguments.connection, table.name, _items_in(_read(arguments.item)))
        print(f"{count} item{'' if count == 1 else 's'} written to {table.name}")
        return 0
    request: dict[str, Any] = {
        "TableName": table.name,
        "Item": read_item(parse_json(arguments.item)),
    }
    if arguments.new:
        request["ConditionExpression"] = "attribute_not_exists(#key)"
        request["ExpressionAttributeNames"] = {"#key": table.keys.partition[0]}
    arguments.connection.execute("PutItem", request)
    return 0


def put_all(connection: Connection, table: str, items: Iterator[Item]) -> int:
    """Write items in batches; how many there were."""
    count = 0
    batch: list[Item] = []
    for item in items:
        batch.append(item)
        count += 1
        if len(batch) == _BATCH:
            _put_batch(connection, table, batch)
            batch = []
    if batch:
        _put_batch(connection, table, batch)
    return count


def _put_batch(connection: Connection, table: str, items: list[Item]) -> None:
    requests: dict[str, Any] = {table: [{"PutRequest": {"Item": item}} for item in items]}
    while requests:
        answer = connection.execute("BatchWriteItem", {"RequestItems": requests})
        requests = answer.get("UnprocessedItems") or {}


def _read(source: str) -> str:
    if source == "-":
        return sys.stdin.read()
    try:
        return Path(source[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {source[1:]}: {error}") from None


def _items_in(text: str) -> Iterator[Item]:
    """The items of an array, or of lines; a fault names its line."""
    if text.lstrip().startswith("["):
        yield from map(read_item, parse_json(text))
        return
    if not text.strip():
        return
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    try:
        first = parse_json(lines[0][1])
    except UsageError:
        yield read_item(parse_json(text))  # one item over several lines
        return
    yield read_item(first)
    for number, line in lines[1:]:
        try:
            yield read_item(parse_json(line))
        except UsageError as error:
            raise UsageError(f"line {number}: {error}") from None
