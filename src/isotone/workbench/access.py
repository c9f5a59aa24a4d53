"""Decides which actions write, and refuses them in safe mode, until the user unlocks it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from isotone.errors import UsageError

_READS: Final = frozenset(
    (
        "BatchGetItem",
        "GetItem",
        "GetRecords",
        "GetResourcePolicy",
        "GetShardIterator",
        "Query",
        "Scan",
        "SearchVectors",
        "TransactGetItems",
    )
)
_READING: Final = ("Describe", "List")
_SELECT: Final = re.compile(r"\s*select\b", re.IGNORECASE)
_STATEMENTS: Final = {
    "BatchExecuteStatement": "Statements",
    "ExecuteTransaction": "TransactStatements",
}


class SafeMode(UsageError):
    """A write was refused because the workbench is in safe mode."""


def is_write(action: str, request: Mapping[str, Any]) -> bool:
    """Whether an action may change something; an unknown action may."""
    if action == "ExecuteStatement" or action in _STATEMENTS:
        statements = request.get(_STATEMENTS[action], ()) if action in _STATEMENTS else (request,)
        return not all(_SELECT.match(str(each.get("Statement", ""))) for each in statements)
    return action not in _READS and not action.startswith(_READING)


class WriteAccess:
    """Whether this workbench may write now."""

    def __init__(self, *, writable: bool) -> None:
        self.writable = writable

    def check(self, action: str, request: Mapping[str, Any]) -> None:
        """Raise `SafeMode` for a write in safe mode."""
        if not self.writable and is_write(action, request):
            raise SafeMode(f"{action} writes, and the workbench is in safe mode; unlock it first")
