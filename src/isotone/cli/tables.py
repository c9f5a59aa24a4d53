"""`isotone tables`, `describe`, `create`: the tables of a database."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from isotone.cli.program import Command
from isotone.cli.table_keys import Table, described_table, table_names, table_of
from isotone.errors import UsageError
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
        rows = [_row(described_table(of), of) for of in described]
        print(aligned(_LIST_HEADER, rows, right={3, 4}))
    return 0


def _row(table: Table, described: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        table.name,
        str(table.keys),
        ", ".join(str(keys.index) for keys in table.indexes),
        *_counts(described),
    )


def _counts(described: Mapping[str, Any]) -> tuple[str, str]:
    """The number of a table's items, and their size; an engine may not count them."""
    if "ItemCount" not in described:
        return "—", "—"
    return f"{described['ItemCount']:,}", size_text(described["TableSizeBytes"])


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
    described = connection.execute("DescribeTable", {"TableName": table.name})["Table"]
    if arguments.json:
        print(json.dumps(described, indent=2, ensure_ascii=False))
        return 0
    ttl = connection.execute("DescribeTimeToLive", {"TableName": table.name})
    print(aligned(_TABLE_HEADER, list(_rows(table, described)), right={3, 4}))
    for name, value in _settings(described, ttl["TimeToLiveDescription"]):
        print(f"{name}: {value}")
    return 0


def _rows(table: Table, described: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    yield table.name, str(table.keys), "everything", *_counts(described)
    for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
        for index in described.get(kind, ()):
            name = index["IndexName"]
            yield (
                f"index {name}" + (" (local)" if kind.startswith("Local") else ""),
                str(table.keys_of(name)),
                _projection(index["Projection"]),
                f"{index['ItemCount']:,}",
                size_text(index["IndexSizeBytes"]),
            )


def _projection(projection: Mapping[str, Any]) -> str:
    kind = projection["ProjectionType"]
    if kind == "INCLUDE":
        return "keys, " + ", ".join(projection["NonKeyAttributes"])
    return {"ALL": "everything", "KEYS_ONLY": "keys"}[kind]


def _settings(described: Mapping[str, Any], ttl: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    billing = described.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    if billing == "PROVISIONED":
        units = described["ProvisionedThroughput"]
        billing += (
            f", {units['ReadCapacityUnits']} read and {units['WriteCapacityUnits']} write units"
        )
    yield "billing", billing
    yield "status", described["TableStatus"]
    if ttl.get("AttributeName"):
        yield "time to live", f"{ttl['AttributeName']} ({ttl['TimeToLiveStatus']})"
    if described.get("DeletionProtectionEnabled"):
        yield "deletion protection", "on"
    yield "arn", described["TableArn"]


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


def _create(arguments: argparse.Namespace) -> int:
    words = [arguments.partition] + ([arguments.sort] if arguments.sort else [])
    arguments.connection.execute(
        "CreateTable", table_request(arguments.table, words, arguments.index)
    )
    print(f"table {arguments.table} was created")
    return 0


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
    creates=True,
)


DEFINITIONS: Final = {"tables": TABLES, "describe": DESCRIBE, "create": CREATE}
