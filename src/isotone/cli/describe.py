"""`isotone describe`: one table."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from isotone.cli.keys import Table, table_of
from isotone.cli.output import rows_text
from isotone.cli.tables import size_text

SUMMARY: Final = "Show one table: its key, its indexes and what they hold, its settings."
EXAMPLES: Final = """
isotone describe shop.db Orders
isotone describe shop.db Orders --json
"""

_HEADER: Final = ("", "key", "holds", "items", "size")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("--json", action="store_true", help="DynamoDB's description, as JSON")


def run(arguments: argparse.Namespace) -> int:
    connection = arguments.connection
    table = table_of(connection, arguments.table)
    described = connection.execute("DescribeTable", {"TableName": table.name})["Table"]
    if arguments.json:
        print(json.dumps(described, indent=2, ensure_ascii=False))
        return 0
    lived = connection.execute("DescribeTimeToLive", {"TableName": table.name})
    print(rows_text(_HEADER, list(_rows(table, described)), right={3, 4}))
    for name, value in _settings(described, lived["TimeToLiveDescription"]):
        print(f"{name}: {value}")
    return 0


def _rows(table: Table, described: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    items, size = described["ItemCount"], described["TableSizeBytes"]
    yield table.name, str(table.keys), "everything", f"{items:,}", size_text(size)
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


def _settings(described: Mapping[str, Any], lived: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    billing = described.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    if billing == "PROVISIONED":
        units = described["ProvisionedThroughput"]
        billing += (
            f", {units['ReadCapacityUnits']} read and {units['WriteCapacityUnits']} write units"
        )
    yield "billing", billing
    yield "status", described["TableStatus"]
    if lived.get("AttributeName"):
        yield "time to live", f"{lived['AttributeName']} ({lived['TimeToLiveStatus']})"
    if described.get("DeletionProtectionEnabled"):
        yield "deletion protection", "on"
    yield "arn", described["TableArn"]
