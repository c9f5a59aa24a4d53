"""Lists the tables of an engine for the page, with keys, indexes, counts and sizes."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from isotone.backends.interface import Backend
from isotone.errors import AccessDeniedException, ResourceNotFoundException
from isotone.tables.description import (
    IndexDescription,
    KeyDescription,
    read_description,
    table_names,
)
from isotone.tables.threads import in_threads

_AT_ONCE: Final = 6  # parallel requests to an engine elsewhere
# Tables that are described at first; the page asks for others when they are opened.
MOST: Final = 200


def summaries(backend: Backend, *, remote: bool) -> list[dict[str, Any]]:
    """A summary of each table, by name; only the name of a table that may not be described."""
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
    """A table's summary; None if it has been deleted."""
    try:
        table = read_description(backend, name)
    except ResourceNotFoundException:
        return None
    return {
        "name": name,
        "status": table.status,
        "keys": _keys(table.key),
        "items": table.item_count,
        "bytes": table.size,
        "indexes": [_index(each) for each in sorted(table.indexes, key=lambda each: each.name)],
        "stream": table.stream_arn if table.stream else None,
        "stream_view": table.stream,
        "billing": table.billing,
        "protected": table.is_protected,
    }


def _index(index: IndexDescription) -> dict[str, Any]:
    includes = isinstance(index.projection, tuple)
    return {
        "name": index.name,
        "kind": index.kind,
        "keys": _keys(index.key),
        "items": index.item_count,
        "bytes": index.size,
        "status": index.status,
        "projection": "INCLUDE" if includes else index.projection,
        "included": index.projection if includes else [],
    }


def _keys(key: KeyDescription) -> dict[str, Any]:
    """The key attributes of a table or an index: those that group items, and those that order them."""
    parts = {"partition": key.partition, "sort": key.sort}
    return {part: [each._asdict() for each in elements] for part, elements in parts.items()}
