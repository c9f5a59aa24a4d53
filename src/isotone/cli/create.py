"""`isotone create`: a table."""

from __future__ import annotations

import argparse
from typing import Any, Final

from isotone.errors import UsageError

SUMMARY: Final = """\
Make a table; also the file, if it is not there.

A key attribute is text, unless :N (number) or :B (binary) follows its name. An index is given as
NAME=PARTITION or NAME=PARTITION,SORT and holds all attributes."""
EXAMPLES: Final = """
isotone create shop.db Customers id
isotone create shop.db Orders customer placed_at --index by_status=status,placed_at
isotone create games.db Scores game score:N
"""
CREATES: Final = True  # the file, where there is none

_TYPES: Final = frozenset("SNB")
_ROLES: Final = ("HASH", "RANGE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("partition", metavar="PARTITION_KEY", help="such as customer, or year:N")
    parser.add_argument("sort", metavar="SORT_KEY", nargs="?", help="such as placed_at, or score:N")
    parser.add_argument(
        "--index",
        metavar="NAME=PARTITION[,SORT]",
        action="append",
        default=[],
        help="a global secondary index; may be given several times",
    )


def run(arguments: argparse.Namespace) -> int:
    words = [arguments.partition] + ([arguments.sort] if arguments.sort else [])
    arguments.connection.execute(
        "CreateTable", table_request(arguments.table, words, arguments.index)
    )
    print(f"table {arguments.table} is there")
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
        raise UsageError(f"{text!r} is no index; write it like by_status=status,placed_at")
    return {
        "IndexName": name,
        "KeySchema": _key_schema(words, types),
        "Projection": {"ProjectionType": "ALL"},
    }


def _key_schema(words: list[str], types: dict[str, str]) -> list[dict[str, str]]:
    schema = []
    for word, role in zip(words, _ROLES, strict=False):
        name, _, kind = word.rpartition(":")
        if not name or kind not in _TYPES:
            name, kind = word, types.get(word, "S")
        if types.setdefault(name, kind) != kind:
            raise UsageError(f"{name} cannot be of type {types[name]} and {kind} at once")
        schema.append({"AttributeName": name, "KeyType": role})
    return schema
