"""The entries of a batch, and batches of which some entries are left unprocessed."""

from __future__ import annotations

from typing import Any

from isotone.backends.interface import Response
from isotone.testing.faults.rules import Call

Entries = list[tuple[str, Any]]
"""Entries of a batch, each with the name of its table as the request has it."""


def entries_of(call: Call) -> Entries:
    """The entries of a batch, in order."""
    return [
        (table, entry)
        for table, members in call.request.get("RequestItems", {}).items()
        for entry in (members if call.operation == "BatchWriteItem" else members["Keys"])
    ]


def with_entries(call: Call, entries: Entries) -> Call:
    """The batch with only these entries."""
    return call.asking({**call.request, "RequestItems": _request_items(call, entries)})


def with_unprocessed(call: Call, response: Response, entries: Entries) -> Response:
    """The response to a batch of which these entries were not processed."""
    writes = call.operation == "BatchWriteItem"
    member = "UnprocessedItems" if writes else "UnprocessedKeys"
    left = {**response.get(member, {})}
    for table, more in _request_items(call, entries).items():
        if table not in left:
            left[table] = more
        elif writes:
            left[table] = [*left[table], *more]
        else:
            left[table] = {**more, "Keys": [*left[table]["Keys"], *more["Keys"]]}
    return {**response, member: left}


def _request_items(call: Call, entries: Entries) -> dict[str, Any]:
    by_table: dict[str, list[Any]] = {}
    for table, entry in entries:
        by_table.setdefault(table, []).append(entry)
    if call.operation == "BatchWriteItem":
        return by_table
    return {
        table: {**call.request["RequestItems"][table], "Keys": keys}
        for table, keys in by_table.items()
    }
