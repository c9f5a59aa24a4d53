"""The base classes of faults, and `When`: which calls a fault strikes (operation, table, at, rate, times).

A fault is a function between a request and its response. An `InterceptedCall` is one request. A `Rule` answers it, usually by `proceed(call)`, which passes it to the next rule
and finally to the database. `call.directly` sends a request straight to the database, so that other rules do not count
it.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from isotone.backends.interface import Request, Response
from isotone.errors import UsageError

# Item requests by kind. A PartiQL statement may be either; its text decides.
READS: Final = frozenset({"GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan"})
WRITES: Final = frozenset(
    {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
)
_STATEMENTS: Final = frozenset({"ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"})
_TABLE_OF_STATEMENT: Final = re.compile(r'(?i)\b(?:FROM|INTO|UPDATE)\s+"?([\w.-]+)"?')
_SELECT: Final = re.compile(r"(?i)\s*SELECT\b")


@dataclass(frozen=True, slots=True)
class InterceptedCall:
    """One request, and a function that bypasses all faults."""

    operation: str
    request: Request
    directly: Callable[[str, Request], Response]

    def with_request(self, request: Request) -> InterceptedCall:
        """The same call with another request."""
        return replace(self, request=request)

    @property
    def tables(self) -> frozenset[str]:
        """The names of the tables in the request."""
        request = self.request
        names = {request.get("TableName"), *request.get("RequestItems", ())}
        for entry in request.get("TransactItems", ()):
            names.update(members.get("TableName") for members in entry.values())
        for statement in self._statements():
            names |= tables_of_statement(statement)
        return frozenset(table_name(name) for name in names if isinstance(name, str))

    @property
    def is_read(self) -> bool:
        """Whether the request reads items."""
        return self.operation in READS or (
            self.operation in _STATEMENTS and all(map(_SELECT.match, self._statements()))
        )

    @property
    def is_write(self) -> bool:
        """Whether the request may write items."""
        return self.operation in WRITES or (self.operation in _STATEMENTS and not self.is_read)

    def _statements(self) -> Iterator[str]:
        if self.operation in _STATEMENTS:
            entries = (
                self.request,
                *self.request.get("Statements", ()),
                *self.request.get("TransactStatements", ()),
            )
            yield from (each["Statement"] for each in entries if "Statement" in each)


def tables_of_statement(statement: str) -> set[str]:
    """The tables that a statement names."""
    return set(_TABLE_OF_STATEMENT.findall(statement))


def table_name(name: str) -> str:
    """The name of a table, given its name or ARN."""
    return name.partition(":table/")[2].partition("/")[0] if name.startswith("arn:") else name


Proceed = Callable[[InterceptedCall], Response]


class Rule:
    """A fault of one kind. `count` is how often it struck; `stop()` ends it."""

    def __init__(self) -> None:
        self.count: int = 0
        self.order: dict[str, Any] = {}  # the options passed to `Faults.order`
        self.is_stopped: bool = False
        self.lock: threading.RLock = threading.RLock()

    def stop(self) -> None:
        """End this fault."""
        self.is_stopped = True

    def answer(self, call: InterceptedCall, proceed: Proceed) -> Response:
        """Answer a call."""
        raise NotImplementedError  # each subclass has its own

    def struck(self) -> None:
        """Count a strike."""
        with self.lock:
            self.count += 1


class When:
    """The condition of a fault: operations, a table, and which of the matching calls, by number or at random."""

    def __init__(
        self,
        operation: str | Collection[str] | None,
        table: str | None,
        *,
        at: int | Collection[int] | None,
        rate: float,
        times: int | None,
        random: random.Random,
    ) -> None:
        if not 0 <= rate <= 1:
            raise UsageError(f"rate={rate!r} is not a probability; give a number from 0 to 1")
        self.operations: set[str] | Collection[str] | None = (
            {operation} if isinstance(operation, str) else operation
        )
        self.table = table
        self.random = random
        self._at = {at} if isinstance(at, int) else at
        self._rate = rate
        self._left = times
        self._seen = 0

    def strikes(self, call: InterceptedCall) -> bool:
        """Whether to strike this call. Each matching call is counted, from 1."""
        if self.operations is not None and call.operation not in self.operations:
            return False
        if self.table is not None and self.table not in call.tables:
            return False
        self._seen += 1
        chosen = self._seen in self._at if self._at is not None else True
        # One number for each call, so that the same seed gives the same choices whatever other
        # faults there are.
        chosen = self.random.random() < self._rate and chosen
        if not chosen or self._left == 0:
            return False
        if self._left is not None:
            self._left -= 1
        return True


class Chosen(Rule):
    """A fault that strikes chosen calls, and passes the others on."""

    def __init__(self, when: When) -> None:
        super().__init__()
        self.when = when

    def answer(self, call: InterceptedCall, proceed: Proceed) -> Response:
        with self.lock:
            strikes = self.when.strikes(call)
        return self.strike(call, proceed) if strikes else proceed(call)

    def strike(self, call: InterceptedCall, proceed: Proceed) -> Response:
        """Answer a chosen call."""
        raise NotImplementedError  # each subclass has its own


# Batches

Entries = list[tuple[str, Any]]
"""Entries of a batch, each with the table's name as in the request."""


def entries_of(call: InterceptedCall) -> Entries:
    """The entries of a batch, in order."""
    return [
        (table, entry)
        for table, members in call.request.get("RequestItems", {}).items()
        for entry in (members if call.operation == "BatchWriteItem" else members["Keys"])
    ]


def with_entries(call: InterceptedCall, entries: Entries) -> InterceptedCall:
    """The batch with only these entries."""
    return call.with_request({**call.request, "RequestItems": _request_items(call, entries)})


def with_unprocessed(call: InterceptedCall, response: Response, entries: Entries) -> Response:
    """The response to a batch whose given entries were not processed."""
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


def _request_items(call: InterceptedCall, entries: Entries) -> dict[str, Any]:
    by_table: dict[str, list[Any]] = {}
    for table, entry in entries:
        by_table.setdefault(table, []).append(entry)
    if call.operation == "BatchWriteItem":
        return by_table
    return {
        table: {**call.request["RequestItems"][table], "Keys": keys}
        for table, keys in by_table.items()
    }
