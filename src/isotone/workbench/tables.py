"""The tables of an engine, with their keys, indexes, counts and sizes, as the page lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from isotone.backends.interface import Backend
from isotone.errors import AccessDeniedException, ApiError
from isotone.workbench.threads import in_threads

_AT_ONCE: Final = 6  # requests to an engine elsewhere
MOST: Final = (
    200  # tables that are described at once; the page asks for others when they are opened
)


def table_names(backend: Backend) -> Iterator[str]:
    """The names of all tables."""
    start: str | None = None
    while True:
        request = {} if start is None else {"ExclusiveStartTableName": start}
        page = backend.execute("ListTables", request)
        yield from page["TableNames"]
        start = page.get("LastEvaluatedTableName")
        if start is None:
            return


def summaries(backend: Backend, *, remote: bool) -> list[dict[str, Any]]:
    """A summary of each table, in the order of their names; the name alone of one that may not be described."""
    names = sorted(table_names(backend))
    described, rest = names[:MOST], names[MOST:]
    found: list[dict[str, Any]] = []
    outcomes = in_threads(partial(summary, backend), described, _AT_ONCE if remote else 1)
    for name, outcome in zip(described, outcomes, strict=True):
        if isinstance(outcome, AccessDeniedException):
            found.append({"name": name})
        elif isinstance(outcome, BaseException):
            raise outcome
        elif outcome is not None:
            found.append(outcome)
    return found + [{"name": name} for name in rest]


def summary(backend: Backend, name: str) -> dict[str, Any] | None:
    """A table, or None if it is gone meanwhile."""
    try:
        table = backend.execute("DescribeTable", {"TableName": name})["Table"]
    except ApiError as error:
        if error.code == "ResourceNotFoundException":
            return None
        raise
    types = {
        each["AttributeName"]: each["AttributeType"]
        for each in table.get("AttributeDefinitions", ())
    }
    indexes = [
        {
            "name": index["IndexName"],
            "kind": kind,
            "keys": _keys(index, types),
            "items": index.get("ItemCount", 0),
            "bytes": index.get("IndexSizeBytes", 0),
            "status": index.get("IndexStatus", "ACTIVE"),
            "projection": index.get("Projection", {}).get("ProjectionType", "ALL"),
            "included": index.get("Projection", {}).get("NonKeyAttributes", []),
        }
        for member, kind in (
            ("GlobalSecondaryIndexes", "global"),
            ("LocalSecondaryIndexes", "local"),
        )
        for index in table.get(member) or ()
    ]
    stream = table.get("StreamSpecification") or {}
    return {
        "name": name,
        "status": table.get("TableStatus", "ACTIVE"),
        "keys": _keys(table, types),
        "items": table.get("ItemCount", 0),
        "bytes": table.get("TableSizeBytes", 0),
        "indexes": sorted(indexes, key=lambda index: str(index["name"])),
        "stream": table.get("LatestStreamArn") if stream.get("StreamEnabled") else None,
        "stream_view": stream.get("StreamViewType"),
        "billing": table.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED"),
        "protected": bool(table.get("DeletionProtectionEnabled")),
    }


def _keys(described: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    """The key attributes of a table or an index: those that group items, and those that order them."""
    parts: dict[str, list[dict[str, str]]] = {"HASH": [], "RANGE": []}
    for each in described["KeySchema"]:
        name = each["AttributeName"]
        parts[each["KeyType"]].append({"name": name, "type": types.get(name, "S")})
    return {"partition": parts["HASH"], "sort": parts["RANGE"]}
