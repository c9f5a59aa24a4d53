"""`isotone put`, `get`, `delete`: the items of a table; and `isotone call`, for any other request."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from isotone.backends.interface import Backend
from isotone.cli.program import Command, complain
from isotone.cli.table_keys import table_of
from isotone.errors import UsageError
from isotone.values.notation import item_text, parse_json, read_item
from isotone.values.types import Item

# put

_BATCH: Final = 25  # what one BatchWriteItem takes


def _put_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument(
        "item", metavar="JSON", help="an item, @FILE with items, or - for items on standard input"
    )
    parser.add_argument(
        "--new", action="store_true", help="refuse to replace an existing item (one item only)"
    )


def _put(arguments: argparse.Namespace) -> int:
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


def put_all(connection: Backend, table: str, items: Iterator[Item]) -> int:
    """Write items in batches; returns their number."""
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


def _put_batch(connection: Backend, table: str, items: list[Item]) -> None:
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
    """The items of an array, or one on each line; an error names its line."""
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


PUT: Final = Command(
    """\
Write items, replacing those with the same key.

Items are natural JSON: strings, numbers (every digit is kept), true, null, arrays, objects. Other types are
written in DynamoDB's form: {"SS": ["a", "b"]}, {"NS": [1, 2]}, {"B": "aGVsbG8="}.""",
    examples="""
isotone put shop.db Orders '{"customer": "ann", "placed_at": "2026-01-11", "total": 12.5}'
isotone put shop.db Orders '{"customer": "bob", "placed_at": "2026-01-12"}' --new
isotone put shop.db Orders @orders.json          an array of items, or one item per line
isotone scan shop.db Orders --all --format jsonl | isotone put copy.db Orders -
""",
    add_arguments=_put_arguments,
    run=_put,
)


# get


def _get_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("key", metavar="KEY", nargs="+", help="the value of each key attribute")
    parser.add_argument("--line", action="store_true", help="print the item on one line")


def _get(arguments: argparse.Namespace) -> int:
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


GET: Final = Command(
    """\
Read one item by its key, and print it as JSON.

Give the values of the key in order, the partition key first, or as name=value in any order. Exits with 1 if
the item does not exist.""",
    examples="""
isotone get shop.db Orders ann 2026-01-11
isotone get shop.db Orders customer=ann placed_at=2026-01-11
isotone get shop.db Orders ann 2026-01-11 --line | isotone put copy.db Orders -
""",
    add_arguments=_get_arguments,
    run=_get,
)


# delete


def _delete_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("key", metavar="KEY", nargs="+", help="the value of each key attribute")


def _delete(arguments: argparse.Namespace) -> int:
    table = table_of(arguments.connection, arguments.table)
    request = {"TableName": table.name, "Key": table.key_from(arguments.key)}
    answer = arguments.connection.execute("DeleteItem", {**request, "ReturnValues": "ALL_OLD"})
    if "Attributes" not in answer:
        complain(f"table {table.name} has no such item")
        return 1
    sys.stdout.write(item_text(answer["Attributes"]) + "\n")
    return 0


DELETE: Final = Command(
    """\
Delete one item by its key, and print it.

The key is written as for get. Exits with 1 if the item does not exist.""",
    examples="""
isotone delete shop.db Orders ann 2026-01-11
isotone delete shop.db Orders customer=ann placed_at=2026-01-11
""",
    add_arguments=_delete_arguments,
    run=_delete,
)


# call


def _call_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("operation", metavar="OPERATION", help="such as UpdateTable")
    parser.add_argument(
        "request", metavar="JSON", nargs="?", default="{}", help="the request's body"
    )


def _call(arguments: argparse.Namespace) -> int:
    try:
        request = msgspec.json.decode(arguments.request, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UsageError(f"the request is not a JSON object: {error}") from None
    answer = arguments.connection.execute(arguments.operation, request)
    encoded = msgspec.json.format(msgspec.json.encode(answer), indent=2)
    sys.stdout.write(encoded.decode() + "\n")
    return 0


CALL: Final = Command(
    """\
Send one request of the DynamoDB API as JSON, and print the response.

For every action without a command of its own.""",
    examples="""
isotone call shop.db DescribeTimeToLive '{"TableName": "Orders"}'
isotone call shop.db DeleteTable '{"TableName": "Orders"}'
isotone call shop.db GetItem '{"TableName": "Users", "Key": {"id": {"S": "ann"}}}'
""",
    add_arguments=_call_arguments,
    run=_call,
)


DEFINITIONS: Final = {"put": PUT, "get": GET, "delete": DELETE, "call": CALL}
