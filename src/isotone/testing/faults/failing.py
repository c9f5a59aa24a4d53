"""Faults of single calls: `fail`, `conflict`, `lose_answers`, `delay`, `leave_unprocessed`, `expire_iterators`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from isotone.backends.interface import Response
from isotone.errors import (
    ApiError,
    ConnectionFailed,
    ExpiredIteratorException,
    TransactionCanceledException,
    TransactionConflictException,
)
from isotone.testing.faults.rules import (
    Chosen,
    InterceptedCall,
    Proceed,
    When,
    entries_of,
    table_name,
    tables_of_statement,
    with_entries,
    with_unprocessed,
)

_ONGOING: Final = "Transaction is ongoing for the item"


class Failing(Chosen):
    """Answers with an error; nothing is executed."""

    def __init__(self, when: When, error: Callable[[InterceptedCall], Exception]) -> None:
        super().__init__(when)
        self._error = error

    def strike(self, call: InterceptedCall, proceed: Proceed) -> Response:
        self.struck()
        raise self._error(call)


class LostAnswers(Chosen):
    """Executes a request, and loses its answer."""

    def strike(self, call: InterceptedCall, proceed: Proceed) -> Response:
        proceed(call)
        self.struck()
        raise ConnectionFailed(
            f"the connection broke before {call.operation} was answered (a fault that was ordered)"
        )


class Delays(Chosen):
    """Waits before the request is executed."""

    def __init__(self, when: When, seconds: float, wait: Callable[[float], None]) -> None:
        super().__init__(when)
        self._seconds = seconds
        self._wait = wait

    def strike(self, call: InterceptedCall, proceed: Proceed) -> Response:
        self.struck()
        self._wait(self._seconds)
        return proceed(call)


class Conflicts(Chosen):
    """Refuses writes and transactions as if another transaction held one of their items.

    A transaction that was executed is not refused if it is sent again with its token.
    """

    def __init__(self, when: When) -> None:
        super().__init__(when)
        self._executed: set[str] = set()

    def answer(self, call: InterceptedCall, proceed: Proceed) -> Response:
        if call.operation == "ExecuteStatement" and not call.is_write:
            return proceed(call)
        token = call.request.get("ClientRequestToken")
        if token is None:
            return super().answer(call, proceed)
        if token in self._executed:
            return proceed(call)
        try:
            response = super().answer(call, proceed)
        except ConnectionFailed:  # another fault lost the answer
            self._executed.add(token)
            raise
        self._executed.add(token)
        return response

    def strike(self, call: InterceptedCall, proceed: Proceed) -> Response:
        entries = transacted(call)
        if not entries:
            self.struck()
            raise TransactionConflictException(_ONGOING)
        places = [at for at, entry in enumerate(entries) if self._concerns(entry)]
        with self.lock:
            place = self.when.random.choice(places)
        self.struck()
        raise cancelled(len(entries), {place: ("TransactionConflict", _ONGOING)})

    def _concerns(self, entry: dict[str, Any]) -> bool:
        if "Statement" in entry:
            names = tables_of_statement(entry["Statement"])
        else:
            names = {table_name(members["TableName"]) for members in entry.values()}
        return self.when.table is None or self.when.table in names


def transacted(call: InterceptedCall) -> list[dict[str, Any]]:
    """The actions or statements of a transaction; empty for any other call."""
    request = call.request
    entries: list[dict[str, Any]] = request.get("TransactItems") or []
    return entries or request.get("TransactStatements") or []


def cancelled(size: int, failed: dict[int, tuple[str, str]]) -> TransactionCanceledException:
    """The error of a transaction whose actions at these positions failed, each with a code and a message."""
    reasons = [
        {"Code": failed[at][0], "Message": failed[at][1]} if at in failed else {"Code": "None"}
        for at in range(size)
    ]
    codes = ", ".join(reason["Code"] for reason in reasons)
    return TransactionCanceledException(
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
        CancellationReasons=reasons,
    )


class Unprocessed(Chosen):
    """Leaves a share of the entries of a batch unprocessed, but never all of them."""

    def __init__(self, when: When, share: float) -> None:
        super().__init__(when)
        self._share = share

    def strike(self, call: InterceptedCall, proceed: Proceed) -> Response:
        entries = entries_of(call)
        with self.lock:
            left = [self.when.random.random() < self._share for _ in entries]
        if not any(left):
            return proceed(call)
        if all(left):
            left[0] = False
        self.struck()
        taken = [entry for entry, is_left in zip(entries, left, strict=True) if not is_left]
        others = [entry for entry, is_left in zip(entries, left, strict=True) if is_left]
        response = proceed(with_entries(call, taken))
        return with_unprocessed(call, response, others)


class ExpiredIterators(Chosen):
    """Makes shard iterators expire for good."""

    def __init__(self, when: When) -> None:
        super().__init__(when)
        self._expired: set[str] = set()

    def answer(self, call: InterceptedCall, proceed: Proceed) -> Response:
        if call.request.get("ShardIterator") in self._expired:
            raise self._error()
        return super().answer(call, proceed)

    def strike(self, call: InterceptedCall, proceed: Proceed) -> Response:
        self.struck()
        self._expired.add(call.request["ShardIterator"])
        raise self._error()

    def _error(self) -> ApiError:
        return ExpiredIteratorException(
            "The shard iterator has expired and can no longer be used to retrieve stream records. "
            "A shard iterator expires 15 minutes after it is retrieved using the GetShardIterator action."
        )
