"""`stale_reads`: eventually consistent reads return an earlier state, of so many seconds or writes ago.

A rule has a copy of the tables in memory, on which each write is also executed, but later. The copy answers the reads
that may be stale, so keys, filters, indexes and pages are consistent with some earlier time. A table is copied when it
is first read or written to. Changes of tables reach the copy at once, because the service has no stale tables.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import isotone
from isotone.backends.interface import Response
from isotone.clock import Clock
from isotone.errors import ApiError, ResourceNotFoundException, ValidationException
from isotone.testing.faults.rules import Chosen, InterceptedCall, Proceed, When

_SETTINGS: Final = frozenset({"UpdateTable", "UpdateTimeToLive"})
_REPLACED: Final = frozenset({"DeleteTable", "CreateTable"})
# Members of CreateTable that are equal in DescribeTable's answer.
_COPIED: Final = ("TableName", "KeySchema", "AttributeDefinitions")
_COPIED_OF_INDEX: Final = ("IndexName", "KeySchema", "Projection")
# There is no table of that name, or there cannot be one.
_NO_TABLE: Final = (ResourceNotFoundException, ValidationException)


class StaleReads(Chosen):
    """Answers eventually consistent reads from a copy that is some seconds, or some writes, behind."""

    def __init__(
        self,
        when: When,
        *,
        index: str | None,
        seconds: float,
        writes: int,
        clock: Clock,
    ) -> None:
        super().__init__(when)
        self._index = index
        self._seconds = seconds
        self._writes = writes
        self._now = clock.now
        self._past = isotone.open(clock=clock)
        self._known: set[str] = set()
        self._pending: deque[tuple[float, str, Any]] = deque()

    def answer(self, call: InterceptedCall, proceed: Proceed) -> Response:
        with self.lock:
            if call.is_write:
                return self._write(call, proceed)
            if call.operation in _REPLACED:
                self._forget(call)
            elif call.operation in _SETTINGS:
                return self._change(call, proceed)
            if not call.is_read or not self._may_be_stale(call) or not self.when.strikes(call):
                return proceed(call)
            return self.strike(call, proceed)

    def strike(self, call: InterceptedCall, proceed: Proceed) -> Response:
        try:
            self._copy_tables(call)
        except _NO_TABLE:
            return proceed(call)  # the database reports the error
        self._catch_up()
        self.struck()
        if call.operation == "BatchGetItem":
            return self._batch(call, proceed)
        return self._past.execute(call.operation, call.request)

    def _may_be_stale(self, call: InterceptedCall) -> bool:
        if call.operation == "BatchGetItem":
            tables = call.request["RequestItems"].values()
            return self._index is None and not all(each.get("ConsistentRead") for each in tables)
        if self._index is not None and call.request.get("IndexName") != self._index:
            return False
        return call.operation != "TransactGetItems" and not call.request.get("ConsistentRead")

    def _batch(self, call: InterceptedCall, proceed: Proceed) -> Response:
        """Read some tables consistently now, and the others in their earlier state."""
        tables = call.request["RequestItems"]
        exact = {name: each for name, each in tables.items() if each.get("ConsistentRead")}
        stale = {name: each for name, each in tables.items() if name not in exact}
        response = self._past.execute(call.operation, {**call.request, "RequestItems": stale})
        if exact:
            other = proceed(call.with_request({**call.request, "RequestItems": exact}))
            for member in ("Responses", "UnprocessedKeys"):
                response[member] = {**response[member], **other[member]}
            if "ConsumedCapacity" in other:
                response["ConsumedCapacity"] += other["ConsumedCapacity"]
        return response

    # The copy

    def _write(self, call: InterceptedCall, proceed: Proceed) -> Response:
        try:
            self._copy_tables(call)
        except _NO_TABLE:
            return proceed(call)
        request = copy.deepcopy(dict(call.request))
        response = proceed(call)
        self._pending.append((self._now(), call.operation, request))
        return response

    def _change(self, call: InterceptedCall, proceed: Proceed) -> Response:
        response = proceed(call)
        if call.tables <= self._known:
            self._past.execute(call.operation, call.request)
            self._past.finish_maintenance()
        return response

    def _forget(self, call: InterceptedCall) -> None:
        for table in call.tables & self._known:
            self._known.discard(table)
            self._past.execute("DeleteTable", {"TableName": table})
            self._pending = deque(each for each in self._pending if table not in _tables(each))

    def _catch_up(self) -> None:
        """Execute the writes that are due."""
        while self._pending and (
            len(self._pending) > self._writes
            if self._writes
            else self._pending[0][0] + self._seconds <= self._now()
        ):
            _, operation, request = self._pending.popleft()
            self._past.execute(operation, request)

    def _copy_tables(self, call: InterceptedCall) -> None:
        for table in call.tables - self._known:
            self._copy(table, call.directly)
            self._known.add(table)

    def _copy(self, table: str, ask: Callable[[str, Any], Response]) -> None:
        description = ask("DescribeTable", {"TableName": table})["Table"]
        made = {name: description[name] for name in _COPIED}
        for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
            indexes = [
                {name: each[name] for name in _COPIED_OF_INDEX}
                for each in description.get(kind, ())
            ]
            if indexes:
                made[kind] = indexes
        self._past.execute("CreateTable", {**made, "BillingMode": "PAY_PER_REQUEST"})
        expiry = ask("DescribeTimeToLive", {"TableName": table})["TimeToLiveDescription"]
        if "AttributeName" in expiry:
            attribute = {"AttributeName": expiry["AttributeName"], "Enabled": True}
            wanted = {"TableName": table, "TimeToLiveSpecification": attribute}
            self._past.execute("UpdateTimeToLive", wanted)
        start: dict[str, Any] = {}
        while True:
            page = ask("Scan", {"TableName": table, "ConsistentRead": True, **start})
            for item in page["Items"]:
                self._past.execute("PutItem", {"TableName": table, "Item": item})
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def _tables(pending: tuple[float, str, Any]) -> frozenset[str]:
    def nobody(operation: str, request: Any) -> Response:
        raise ApiError(operation)

    _, operation, request = pending
    return InterceptedCall(operation, request, nobody).tables
