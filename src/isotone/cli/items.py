"""`isotone put`, `get` and `delete` for single items; `isotone call` for any other request."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import msgspec

from isotone.backends.interface import Backend
from isotone.cli.program import Command, print_error
from isotone.cli.progress import ProgressOutput, add_progress_argument, progress_output
from isotone.cli.table_keys import key_from, table_of
from isotone.errors import (
    IsotoneError,
    UnknownOperationException,
    UsageError,
    ValidationException,
)
from isotone.limits import BATCH_WRITE_ITEMS
from isotone.tables.batches import put, write_batch
from isotone.tables.runners import Runner
from isotone.text_table import pluralized
from isotone.values.notation import item_text, parse_json, read_item
from isotone.values.types import Item

# put


def _put_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument(
        "item", metavar="JSON", help="an item, @FILE with items, or - for items on standard input"
    )
    parser.add_argument(
        "--new", action="store_true", help="refuse to replace an existing item (one item only)"
    )
    parser.add_argument(
        "--resume",
        metavar="LINE",
        type=int,
        default=1,
        help="begin at this line of the file, or item of its array, as the error of an earlier run says",
    )
    add_progress_argument(parser)


def _put(arguments: argparse.Namespace) -> int:
    table = table_of(arguments.connection, arguments.table)
    if arguments.item == "-" or arguments.item.startswith("@"):
        if arguments.new:
            raise UsageError("--new takes one item, not a file of them")
        given = list(_items_in(_read(arguments.item)))
        items = [(place, item) for place, item in given if place >= arguments.resume]
        if arguments.resume < 1 or (given and not items):
            last = given[-1][0] if given else 1
            raise UsageError(
                f"--resume {arguments.resume} is not a line or an item of the input: 1 to {last}"
            )
        with progress_output("put", arguments) as output:
            count = _put_from_file(arguments.connection, table.name, items, output)
        print(f"{pluralized(count, 'item')} written to {table.name}")
        return 0
    request: dict[str, Any] = {
        "TableName": table.name,
        "Item": read_item(parse_json(arguments.item)),
    }
    if arguments.new:
        request["ConditionExpression"] = "attribute_not_exists(#key)"
        request["ExpressionAttributeNames"] = {"#key": table.key.partition[0].name}
    arguments.connection.execute("PutItem", request)
    return 0


Placed = tuple[int, Item]
"""An item with its line in a file, or its number in an array."""


def _put_from_file(
    connection: Backend, table: str, items: Sequence[Placed], output: ProgressOutput
) -> int:
    """Write items in batches, in order; returns their number. An error says which items are written."""
    for first in range(0, len(items), BATCH_WRITE_ITEMS):
        batch = items[first : first + BATCH_WRITE_ITEMS]
        text = f"{table}: {first:,} of {pluralized(len(items), 'item')}"
        members = {"table": table, "items": first, "of_items": len(items)}
        output.show(text, members, state="writing")
        try:
            try:
                Runner(connection).run(write_batch([(table, put(item)) for _, item in batch]))
            except ValidationException:
                # One item is wrong, or two have the same key; a batch does not report which.
                for _, item in batch:
                    connection.execute("PutItem", {"TableName": table, "Item": item})
                    first += 1
        except (IsotoneError, KeyboardInterrupt) as error:
            output.clear()
            error.add_note(_what_is_written(items, first))
            raise
    return len(items)


def _what_is_written(items: Sequence[Placed], failed: int) -> str:
    place = items[failed][0]
    before = f"{pluralized(failed, 'item')} before it {'is' if failed == 1 else 'are'}"
    written = f"the {before} written" if failed else "nothing is written"
    return f"it stopped at line or item {place} of the input; {written}; continue with --resume {place}"


def _read(source: str) -> str:
    if source == "-":
        return sys.stdin.read()
    try:
        return Path(source[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {source[1:]}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {source[1:]}: {error}") from None


def _items_in(text: str) -> Iterator[Placed]:
    """The items of an array or of the lines of a text, each with its number for error messages."""
    if text.lstrip().startswith("["):
        yield from _placed("item", enumerate(parse_json(text), 1), read_item)
        return
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        return
    try:
        parse_json(lines[0][1])
    except UsageError:
        yield 1, read_item(parse_json(text))  # one item over several lines
        return
    yield from _placed("line", lines, lambda line: read_item(parse_json(line)))


def _placed(
    kind: str, parts: Iterable[tuple[int, Any]], read: Callable[[Any], Item]
) -> Iterator[Placed]:
    for number, part in parts:
        try:
            yield number, read(part)
        except UsageError as error:
            raise UsageError(f"{kind} {number}: {error}; nothing was written") from None


PUT: Final = Command(
    """\
Write items, replacing those with the same key.

Items are plain JSON: strings, numbers (every digit is kept), true, null, arrays, objects. Other types are
written in DynamoDB's form: {"SS": ["a", "b"]}, {"NS": [1, 2]}, {"B": "aGVsbG8="}.

The whole file is read before the first item is written. If a write fails, the error says at which line, and what was
written; --resume continues from there.""",
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
        "Key": key_from(table, arguments.key),
        "ConsistentRead": True,
    }
    answer = arguments.connection.execute("GetItem", request)
    if "Item" not in answer:
        print_error(f"table {table.name} has no such item")
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
    request = {"TableName": table.name, "Key": key_from(table, arguments.key)}
    answer = arguments.connection.execute("DeleteItem", {**request, "ReturnValues": "ALL_OLD"})
    if "Attributes" not in answer:
        print_error(f"table {table.name} has no such item")
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
    parser.add_argument(
        "--all",
        action="store_true",
        help="print the items of all pages of a Query or Scan, one a line",
    )


def _call(arguments: argparse.Namespace) -> int:
    try:
        request = msgspec.json.decode(arguments.request, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UsageError(f"the request is not a JSON object: {error}") from None
    if arguments.all:
        return _print_all(arguments.connection, arguments.operation, request)
    try:
        answer = arguments.connection.execute(arguments.operation, request)
    except UnknownOperationException:
        from isotone.backends.embedded import ACTIONS

        named = {name.lower(): name for name in ACTIONS}
        near = get_close_matches(arguments.operation.lower(), named, n=1)
        hint = f"did you mean {named[near[0]]}?" if near else "write one such as DescribeTable"
        raise UsageError(f"there is no action {arguments.operation!r}; {hint}") from None
    encoded = msgspec.json.format(msgspec.json.encode(answer), indent=2)
    sys.stdout.write(encoded.decode() + "\n")
    return 0


def _print_all(backend: Backend, operation: str, request: dict[str, Any]) -> int:
    """Print the items of all pages of a read as they arrive."""
    if operation not in ("Query", "Scan"):
        raise UsageError(f"--all reads the pages of a Query or Scan, and {operation} is neither")
    if request.get("Select") == "COUNT":
        raise UsageError("--all prints items, and a COUNT has none; leave out one of them")
    while True:
        answer = backend.execute(operation, request)
        for item in answer.get("Items", ()):
            sys.stdout.write(msgspec.json.encode(item).decode() + "\n")
        if "LastEvaluatedKey" not in answer:
            return 0
        request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}


CALL: Final = Command(
    """\
Send one request of the DynamoDB API as JSON, and print the response.

For every action without a command of its own.""",
    examples="""
isotone call shop.db DescribeTimeToLive '{"TableName": "Orders"}'
isotone call shop.db DeleteTable '{"TableName": "Orders"}'
isotone call shop.db GetItem '{"TableName": "Users", "Key": {"id": {"S": "ann"}}}'
isotone call shop.db Scan '{"TableName": "Users"}' --all
""",
    add_arguments=_call_arguments,
    run=_call,
)


DEFINITIONS: Final = {"put": PUT, "get": GET, "delete": DELETE, "call": CALL}
