"""`Api`: finds the action of a request and calls it: for JSON (`send`), dicts (`execute`), a group (`send_many`).

A server's dispatcher collects a group, and the engine's block (`engine/blocks.py`) commits it.

What only some requests need (the order of faults, permissions, exports and imports) is imported where it is used,
because a server should answer soon after it was started.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from isotone.engine import maintenance, replication
from isotone.engine.engine import Engine
from isotone.errors import (
    ApiError,
    IsotoneError,
    LimitExceededException,
    ResourceNotFoundException,
    SerializationException,
    StorageBusy,
    TakesLong,
    UnknownOperationException,
    ValidationException,
)
from isotone.operations.action import ACTIONS, Action
from isotone.operations.item_responses import JsonItems, encode_plain, encode_response
from isotone.operations.long_requests import is_long, this_thread
from isotone.operations.long_writes import EvaluateFirst, evaluating_first
from isotone.operations.request_decoding import decode, decode_mapping
from isotone.operations.served_queries import ServedQueries
from isotone.values.plain_json import plain

if TYPE_CHECKING:
    from isotone.operations.permissions import RequiredPermission

log: logging.Logger = logging.getLogger("isotone")


_decode: Final = msgspec.json.Decoder().decode
# The errors for which `_reported` looks for the fault that the service reports first; `execute` has one more.
_IN_ORDER: Final = (ValidationException, ResourceNotFoundException, LimitExceededException)
_EXPLAINED: Final = (*_IN_ORDER, SerializationException)
_OF_STATEMENTS: Final = frozenset(
    ["ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"]
)
_OF_STREAMS: Final = frozenset({"DescribeStream", "GetRecords", "GetShardIterator"})
# An action accepts statements of only one kind, so the first one decides. A SELECT spelled with other escapes counts as
# a write.
_SELECT: Final = re.compile(rb'"Statement"\s*:\s*"(?:\s|\\[nrt])*select\b', re.IGNORECASE)
Answered: TypeAlias = bytes | Exception
"""The result of one of several requests: its response, or what `send` would raise."""

READS: Final = frozenset(
    name
    for name in ACTIONS
    if name.startswith(
        ("BatchGet", "Describe", "Get", "List", "Query", "Scan", "Search", "TransactGet")
    )
    and name != "GetRecords"  # what was read of a stream is noted where it is read
)
"""The actions that change nothing, and so may be executed by any process that has the file open."""


class Api:
    """The API over an engine. Every method may be called from any thread."""

    __slots__ = ("_reads_together", "engine", "served")

    def __init__(self, engine: Engine) -> None:
        self.engine: Engine = engine
        self._reads_together = engine.store.reads_together
        self.served: ServedQueries | None = None
        """Counts the requests of `send` by their shape, if it is set."""
        engine.home.deliver_to_replicas = replication.deliver

    def send(self, operation: str, body: bytes, is_alone: bool = True) -> bytes:
        """Execute one request, JSON to JSON. Raises the service's error as an `ApiError`.

        After `set_raises_if_long(True)` in this thread, it raises `TakesLong` for a request that takes long. In the
        transaction of a group, where it is not alone, it raises `EvaluateFirst` for a write that must not take its time there.
        """
        if operation not in ACTIONS:
            raise UnknownOperationException
        action = ACTIONS[operation]
        try:
            request = decode(action.request, body)
            served = self.served
            if served is not None and served.is_sampled[operation]():
                return encode_response(served.run(self.engine, action, request, body))
            return encode_response(action.run(self.engine, request))
        except EvaluateFirst as ended:
            if not is_alone:
                raise
            return evaluating_first(partial(self.send, operation, body), ended)
        except _IN_ORDER as error:
            raise _reported(self.engine, action, body, error) from None

    def execute(
        self, operation: str, request: Mapping[str, Any], *, json_items: bool = False
    ) -> dict[str, Any]:
        """Execute one request of a caller in this process: the same as `send`, without JSON.

        Expressions may be trees (`isotone.expressions.nodes`) with their values as literals; there are then no
        ExpressionAttributeNames or ExpressionAttributeValues. The caller owns the response and may change it.
        `json_items` leaves the Items of a response in JSON, as `msgspec.Raw`.
        """
        action = ACTIONS.get(operation)
        if action is None:
            raise UnknownOperationException
        try:
            try:
                answer = action.run(self.engine, decode_mapping(action.request, request))
            except EvaluateFirst as ended:
                again = partial(self.execute, operation, request, json_items=json_items)
                return evaluating_first(again, ended)
            except ApiError as error:
                if isinstance(error, _EXPLAINED):
                    error = _reported(self.engine, action, request, error)
                if error.members:
                    error.members = _decode(encode_plain(error.members))
                raise error from None
        except IsotoneError:
            raise
        except Exception:
            # Values that JSON does not have can fail anywhere. The engine has rolled back whatever the action did.
            known = plain(request)
            if known is request:
                raise
            return self.execute(operation, known, json_items=json_items)
        if not answer:
            return {}
        # A response shares nothing with the engine. Items are stored as JSON, so one pass decodes them all.
        if json_items and "Items" in answer:
            others = {**answer}
            del others["Items"]
            return {**_decode(encode_plain(others)), "Items": _separate(answer["Items"])}
        own: dict[str, Any] = _decode(encode_response(answer))
        if operation == "BatchGetItem":
            _restore_expressions(own["UnprocessedKeys"], request["RequestItems"])
        return own

    def accesses(self, operation: str, body: bytes) -> list[RequiredPermission]:
        """The permissions that a request needs. Raises the service's error for a malformed request."""
        from isotone.operations.permissions import accesses

        action = ACTIONS.get(operation)
        if action is None:
            raise UnknownOperationException
        try:
            return accesses(self.engine, operation, decode(action.request, body))
        except _IN_ORDER as error:
            raise _reported(self.engine, action, body, error) from None

    def has_policies(self, operation: str) -> bool:
        """Whether a resource policy may forbid a request."""
        if operation in _OF_STREAMS:
            return True
        with self.engine.reading_beside as engine:
            return engine.catalog.has_policies

    def writes(self, operation: str, body: bytes) -> bool:
        """Whether a request of an action in `GROUPED` writes; only statements may also read."""
        return operation not in _OF_STATEMENTS or _SELECT.search(body) is None

    def is_read(self, operation: str, body: bytes) -> bool:
        """Whether a request is known to change nothing. One that is not known at all does nothing either."""
        if operation in READS:
            return True
        if operation in _OF_STATEMENTS:
            return operation != "ExecuteTransaction" and _SELECT.search(body) is not None
        return operation not in ACTIONS

    def is_long(self, operation: str, body: bytes) -> bool:
        """Whether a request takes long by its action and its bytes."""
        return is_long(operation, body)

    def is_well_formed(self, operation: str, request: bytes | Mapping[str, Any]) -> bool:
        """Whether a request has the members of its action, with valid types and values; any other is refused."""
        if operation not in ACTIONS:
            return False
        shape = ACTIONS[operation].request
        try:
            if isinstance(request, bytes):
                decode(shape, request)
            else:
                decode_mapping(shape, request)
        except ApiError:
            return False
        return True

    def send_many(self, requests: Sequence[tuple[str, bytes]]) -> list[Answered]:
        """Execute requests in one transaction, so that they share one disk sync.

        Each gets the response that it would get alone. None is answered before all are on the disk. After
        `set_raises_if_long(True)`, the result of a request that takes long is `TakesLong`. Raises `StorageBusy` only in a
        thread that must not wait.
        """
        if len(requests) > 1:
            try:
                with self.engine.writing:
                    results = (
                        self._answers_together(requests, False)
                        if self._reads_together
                        else self._answers_in_group(requests)
                    )
                if EvaluateFirst not in map(type, results):
                    return results
                return [
                    self._answer(*request, True) if type(result) is EvaluateFirst else result
                    for request, result in zip(requests, results, strict=True)
                ]
            except StorageBusy as error:
                if self.engine.writer_waits.are_forbidden:
                    raise
                # One by one, each request would wait for the same lock again.
                return [error] * len(requests)
            except Exception:
                # The whole group was rolled back. Executed one by one, each request gets its own answer.
                self.engine.abandon()
                log.debug("a group of %d writes was undone", len(requests), exc_info=True)
        return [self._answer(operation, body, True) for operation, body in requests]

    def send_reads(self, requests: Sequence[tuple[str, bytes]]) -> list[Answered]:
        """Execute requests that change nothing, each as if it were alone, in few round trips to a server of storage."""
        lock = self.engine.lock
        if not lock.acquire(False):
            return [self._answer(operation, body, True) for operation, body in requests]
        try:
            return self._answers_together(requests, True)
        finally:
            lock.release()

    def _answers_in_group(self, requests: Sequence[tuple[str, bytes]]) -> list[Answered]:
        """What `_answer` says of each request of a group, with a call less for each."""
        results: list[Answered] = []
        for operation, body in requests:
            try:
                results.append(self.send(operation, body, False))
            except (ApiError, TakesLong) as error:
                results.append(error)
        return results

    def _answers_together(
        self, requests: Sequence[tuple[str, bytes]], is_alone: bool
    ) -> list[Answered]:
        attempts = [partial(self.send, operation, body, is_alone) for operation, body in requests]
        with self.engine.store.reading_together(attempts):
            return [self._answer(operation, body, is_alone) for operation, body in requests]

    def _answer(self, operation: str, body: bytes, is_alone: bool) -> Answered:
        """The result of one request of a group. An unexpected error rolls back the whole group, unless it `is_alone`."""
        try:
            return self.send(operation, body, is_alone)
        except (ApiError, TakesLong) as error:
            return error
        except Exception as error:
            is_busy = isinstance(error, StorageBusy)
            if not is_alone or (is_busy and self.engine.writer_waits.are_forbidden):
                raise
            return error

    @staticmethod
    def set_raises_if_long(wanted: bool) -> None:
        """Whether long requests raise `TakesLong` in this thread."""
        this_thread.raises_if_long = wanted

    def maintain(self) -> float:
        """Do a slice of background work; returns the seconds until the next call."""
        return maintenance.step(self.engine)

    def transfer(self) -> float:
        """Do a slice of each export and import, which may wait for a network; otherwise like `maintain`."""
        if self.engine.objects is None:
            return maintenance.IDLE_INTERVAL
        from isotone.operations.transfers import jobs

        regions = list(self.engine.home.regions.values())
        return 0.0 if sum(jobs.step(each) for each in regions) else maintenance.IDLE_INTERVAL

    @property
    def can_transfer(self) -> bool:
        """Whether there is an export or import that this process can continue."""
        if self.engine.objects is None:
            return False
        from isotone.operations.transfers import jobs

        return any(map(jobs.pending, list(self.engine.home.regions.values())))

    def finish_maintenance(self) -> None:
        """Do all background work that is due, including exports and imports."""
        maintenance.finish(self.engine)
        while self.transfer() == 0.0:
            maintenance.finish(self.engine)

    def close(self) -> None:
        """Close the database."""
        self.engine.close()


def _separate(found: Any) -> Any:
    """The Items of a response, each in JSON if it is stored that way."""
    return [*map(msgspec.Raw, found.items)] if type(found) is JsonItems else found


def _reported(
    engine: Engine, action: Action, request: bytes | Mapping[str, Any], error: ApiError
) -> ApiError:
    """The error that the service would report for a request whose action raised `error`."""
    from isotone.operations.checks.first_fault import first_fault
    from isotone.operations.checks.orders import order_of

    first = first_fault(engine, action.name, action.request, request, order_of(action.name))
    return error if first is None else first


def _restore_expressions(unprocessed: dict[str, Any], requested: Mapping[str, Any]) -> None:
    """Put the expressions of a request back unchanged, because some may be trees."""
    for name, entry in unprocessed.items():
        if "ProjectionExpression" in entry:
            entry["ProjectionExpression"] = requested[name]["ProjectionExpression"]
