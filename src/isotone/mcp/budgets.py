"""Every request of an assistant passes here: counts what its session reads and writes, refuses what is over its budgets.

    backend = MeteredBackend(engine, Budgets(), writable=False)
    backend.begin()                                   # a call begins
    backend.execute("Query", request)                 # counted; refused if the call or the session has used up its budget

The units of a request are known once it is answered: the request that passes a budget is the last one. Its items are
known before: a Query or a Scan gets a `Limit`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from isotone.backends.interface import Backend, Native, Request, Response
from isotone.errors import IsotoneError, UsageError
from isotone.tables.pace import units_of
from isotone.text_table import pluralized
from isotone.workbench.access import is_write

_PAGED: Final = frozenset({"Query", "Scan", "ExecuteStatement"})
_LISTS: Final = {  # the requests in one request, by the member that lists them
    "TransactGetItems": "TransactItems",
    "TransactWriteItems": "TransactItems",
    "BatchExecuteStatement": "Statements",
    "ExecuteTransaction": "TransactStatements",
}
_SINGLE: Final = frozenset({"GetItem", "PutItem", "UpdateItem", "DeleteItem"})
_BATCHES: Final = frozenset({"BatchGetItem", "BatchWriteItem"})
_MEASURED: Final = _PAGED | _SINGLE | _BATCHES | _LISTS.keys()


class OverBudget(IsotoneError):
    """A call or a session has used up its items or units."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """The most that one call may use, and the most of a whole session."""

    call_items: int = 10_000
    call_units: float = 1_000
    session_items: int = 200_000
    session_units: float = 20_000


@dataclass(slots=True)
class _Used:
    items: int = 0
    units: float = 0.0


class MeteredBackend(Native):
    """An engine for an assistant: its requests are counted, and writes are refused unless `writable`."""

    __slots__ = ("_backend", "_budgets", "_call", "_lock", "_session", "_writable")

    def __init__(self, backend: Backend, budgets: Budgets, *, writable: bool) -> None:
        self._backend = backend
        self._budgets = budgets
        self._writable = writable
        self._lock = threading.Lock()
        self._call = _Used()
        self._session = _Used()

    def begin(self) -> None:
        """Begin a call: it has its budget to itself, and a part of the session's."""
        with self._lock:
            self._call = _Used()

    def used(self) -> dict[str, Any]:
        """What the call has used, and what the session has left."""
        budgets, session = self._budgets, self._session
        return {
            "items": self._call.items,
            "units": self._call.units,
            "items_left_in_session": max(budgets.session_items - session.items, 0),
            "units_left_in_session": max(budgets.session_units - session.units, 0.0),
        }

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        if not self._writable and is_write(operation, request):
            raise UsageError(
                f"{operation} writes, and this server only reads; restart it with --write to allow it"
            )
        if operation not in _MEASURED:
            return self._backend.execute(operation, request, deadline)
        measured = self._measured(operation, request)
        response = self._backend.execute(operation, measured, deadline)
        with self._lock:
            for used in (self._call, self._session):
                used.items += _items_of(operation, request, response)
                used.units += units_of(response) or 0.0
        return response

    def check_items(self, count: int) -> None:
        """Raise `OverBudget` if so many items do not fit into the call, before anything is sent."""
        with self._lock:
            if count > (left := self._items_left()):
                raise OverBudget(
                    f"that takes {pluralized(count, 'item')}, and this call may use {left:,}; ask for fewer, "
                    "or restart isotone mcp with a larger --max-items"
                )

    def _measured(self, operation: str, request: Request) -> Request:
        """The request with its units reported, and with no more items than are left."""
        with self._lock:
            left = self._items_left()
            self._check(left)
        more: dict[str, Any] = {}
        if request.get("ReturnConsumedCapacity", "NONE") == "NONE":
            more["ReturnConsumedCapacity"] = "TOTAL"
        if operation in _PAGED:
            more["Limit"] = min(_whole(request.get("Limit")) or left, left)
        else:
            self.check_items(_items_of(operation, request, {}))
        return {**request, **more}

    def _items_left(self) -> int:
        budgets = self._budgets
        left = min(
            budgets.call_items - self._call.items, budgets.session_items - self._session.items
        )
        return max(left, 0)

    def _check(self, items_left: int) -> None:
        """Raise `OverBudget` if nothing is left; the session comes first, as no smaller call helps there."""
        budgets, call, session = self._budgets, self._call, self._session
        if session.items >= budgets.session_items:
            raise _used_up("session", "items", budgets.session_items)
        if session.units >= budgets.session_units:
            raise _used_up("session", "units", budgets.session_units)
        if not items_left:
            raise _used_up("call", "items", budgets.call_items)
        if call.units >= budgets.call_units:
            raise _used_up("call", "units", budgets.call_units)


def _used_up(whose: str, what: str, budget: float) -> OverBudget:
    if whose == "session":
        return OverBudget(
            f"this session has used its {budget:,.0f} {what}; restart isotone mcp, "
            f"or give it a larger --session-{what}"
        )
    return OverBudget(
        f"this call has used the {budget:,.0f} {what} that one call may use; ask for a narrower range or fewer "
        f"items, or restart isotone mcp with a larger --max-{what}"
    )


def _whole(limit: Any) -> int | None:
    """A `Limit` as it was given; None for none, and for one that the engine will refuse itself."""
    return limit if type(limit) is int and limit > 0 else None


def _items_of(operation: str, request: Request, response: Mapping[str, Any]) -> int:
    """The items that a request reads or writes."""
    if operation in _SINGLE or (operation == "ExecuteStatement" and is_write(operation, request)):
        return 1
    if operation in _LISTS:
        return _length(request.get(_LISTS[operation]))
    if operation in _BATCHES:
        tables = request.get("RequestItems")
        entries = tables.values() if isinstance(tables, Mapping) else ()
        return sum(
            _length(each.get("Keys")) if isinstance(each, Mapping) else _length(each)
            for each in entries
        )
    scanned = response.get("ScannedCount")
    return scanned if type(scanned) is int else _length(response.get("Items"))


def _length(given: Any) -> int:
    return len(given) if isinstance(given, list | tuple) else 0
