"""`isotone tables`, `describe` and `create`: lists, shows and creates tables."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from isotone.backends.addresses import is_remote
from isotone.backends.interface import Backend
from isotone.cli.database import MEMORY, connect
from isotone.cli.program import Command
from isotone.cli.table_keys import table_of
from isotone.errors import UsageError
from isotone.tables.description import (
    IndexDescription,
    TableDescription,
    description_of,
    table_names,
)
from isotone.text_table import aligned

# tables

_LIST_HEADER: Final = ("table", "key", "indexes", "items", "size")
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")


def _tables_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="DynamoDB's descriptions, as JSON")


def _tables(arguments: argparse.Namespace) -> int:
    connection = arguments.connection
    names = table_names(connection)
    described = [connection.execute("DescribeTable", {"TableName": n})["Table"] for n in names]
    if arguments.json:
        print(json.dumps(described, indent=2, ensure_ascii=False))
    elif not names:
        print("no tables; isotone create makes one")
    else:
        rows = [_row(description_of(each)) for each in described]
        print(aligned(_LIST_HEADER, rows, right={3, 4}))
    return 0


def _row(table: TableDescription) -> tuple[str, ...]:
    return table.name, str(table.key), ", ".join(table.index_names), *_counts(table)


def _counts(table: TableDescription) -> tuple[str, str]:
    """The number of a table's items, and their size; dashes if the engine does not count them."""
    if not table.is_counted:
        return "—", "—"
    return f"{table.item_count:,}", size_text(table.size)


def size_text(size: float) -> str:
    """A number of bytes with a unit."""
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


TABLES: Final = Command(
    "List the tables with their keys, indexes, counts and sizes.",
    examples="""
isotone tables shop.db
isotone tables http://localhost:8000
isotone tables shop.db --json
""",
    add_arguments=_tables_arguments,
    run=_tables,
)


# describe

_TABLE_HEADER: Final = ("", "key", "holds", "items", "size")


def _describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("--json", action="store_true", help="DynamoDB's description, as JSON")


def _describe(arguments: argparse.Namespace) -> int:
    connection = arguments.connection
    table = table_of(connection, arguments.table)
    if arguments.json:
        described = connection.execute("DescribeTable", {"TableName": table.name})["Table"]
        print(json.dumps(described, indent=2, ensure_ascii=False))
        return 0
    ttl = connection.execute("DescribeTimeToLive", {"TableName": table.name})
    print(aligned(_TABLE_HEADER, list(_rows(table)), right={3, 4}))
    for name, value in _settings(table, ttl["TimeToLiveDescription"]):
        print(f"{name}: {value}")
    return 0


def _rows(table: TableDescription) -> Iterator[tuple[str, ...]]:
    yield table.name, str(table.key), "everything", *_counts(table)
    for index in table.indexes:
        yield (
            f"index {index.name}" + (" (local)" if index.kind == "local" else ""),
            str(index.key),
            _projection(index),
            f"{index.item_count:,}",
            size_text(index.size),
        )


def _projection(index: IndexDescription) -> str:
    if isinstance(index.projection, tuple):
        return "keys, " + ", ".join(index.projection)
    return {"ALL": "everything", "KEYS_ONLY": "keys"}[index.projection]


def _settings(table: TableDescription, ttl: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    read, write = table.units
    of_units = f", {read} read and {write} write units"
    yield "billing", table.billing + (of_units if table.billing == "PROVISIONED" else "")
    yield "status", table.status
    if ttl.get("AttributeName"):
        yield "time to live", f"{ttl['AttributeName']} ({ttl['TimeToLiveStatus']})"
    if table.is_protected:
        yield "deletion protection", "on"
    yield "arn", table.arn


DESCRIBE: Final = Command(
    "Show one table: its key, indexes, projections and settings.",
    examples="""
isotone describe shop.db Orders
isotone describe shop.db Orders --json
""",
    add_arguments=_describe_arguments,
    run=_describe,
)


# create

_TYPES: Final = frozenset("SNB")
_ROLES: Final = ("HASH", "RANGE")


def _create_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("partition", metavar="PARTITION_KEY", help="such as customer, or year:N")
    parser.add_argument("sort", metavar="SORT_KEY", nargs="?", help="such as placed_at, or score:N")
    parser.add_argument(
        "--index",
        metavar="NAME=PARTITION[,SORT]",
        action="append",
        default=[],
        help="a global secondary index; may be repeated",
    )


def _connect(arguments: argparse.Namespace) -> AbstractContextManager[Backend]:
    """The database of the new table, which is made in memory first: if it is refused, no empty database is left."""
    if not is_remote(arguments.source):
        from isotone.backends import embedded

        with embedded.open(MEMORY) as scratch:
            scratch.execute("CreateTable", _request(arguments))
    return connect(arguments.source, create=True)


def _create(arguments: argparse.Namespace) -> int:
    arguments.connection.execute("CreateTable", _request(arguments))
    print(f"table {arguments.table} was created")
    return 0


def _request(arguments: argparse.Namespace) -> dict[str, Any]:
    words = [arguments.partition] + ([arguments.sort] if arguments.sort else [])
    return table_request(arguments.table, words, arguments.index)


def table_request(name: str, key: list[str], indexes: list[str]) -> dict[str, Any]:
    """The CreateTable request for a key and indexes in the notation of the command line."""
    types: dict[str, str] = {}
    request: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _key_schema(key, types),
    }
    if indexes:
        request["GlobalSecondaryIndexes"] = [_index(text, types) for text in indexes]
    request["AttributeDefinitions"] = [
        {"AttributeName": attribute, "AttributeType": kind} for attribute, kind in types.items()
    ]
    return request


def _index(text: str, types: dict[str, str]) -> dict[str, Any]:
    name, _, key = text.partition("=")
    words = key.split(",")
    if not name or not all(words) or len(words) > 2:
        raise UsageError(f"{text!r} is not an index; write it like by_status=status,placed_at")
    return {
        "IndexName": name,
        "KeySchema": _key_schema(words, types),
        "Projection": {"ProjectionType": "ALL"},
    }


def _key_schema(words: list[str], types: dict[str, str]) -> list[dict[str, str]]:
    schema = []
    for word, role in zip(words, _ROLES, strict=False):
        name, separator, kind = word.rpartition(":")
        if not separator:
            name, kind = word, types.get(word, "S")
        elif not name or kind not in _TYPES:
            raise UsageError(
                f"{word!r} is not a key attribute; after its name write :S (string), :N (number) or :B (binary)"
            )
        if types.setdefault(name, kind) != kind:
            raise UsageError(
                f"{name} is declared with two types, {types[name]} and {kind}; use one of them"
            )
        schema.append({"AttributeName": name, "KeyType": role})
    return schema


CREATE: Final = Command(
    """\
Create a table, and the file if it does not exist.

A key attribute is text, unless :N (number) or :B (binary) follows its name. After a name with a colon, write :S for
text. An index is written NAME=PARTITION or NAME=PARTITION,SORT and projects all attributes.""",
    examples="""
isotone create shop.db Customers id
isotone create shop.db Orders customer placed_at --index by_status=status,placed_at
isotone create games.db Scores game score:N
""",
    add_arguments=_create_arguments,
    run=_create,
    connect=_connect,
)


DEFINITIONS: Final = {"tables": TABLES, "describe": DESCRIBE, "create": CREATE}
