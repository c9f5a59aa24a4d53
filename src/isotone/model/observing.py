"""`observe=`: observers of each request with its cost and duration; `to_log`, `to_spans` (OpenTelemetry).

An observer is called when a request starts, and returns a function that is called when it ends:

    def observer(operation, request):
        return lambda observation: …

`to_log()` and `to_spans()` return ready-made observers; `at_end` makes one of a function that takes an
`Observation`. Observers run in the caller's thread. Their exceptions reach the caller.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isotone.backends.interface import (
    AsyncBackend,
    Backend,
    Native,
    Request,
    Response,
    as_text,
    async_json_reads,
    json_reads,
)
from isotone.errors import IsotoneError, UsageError
from isotone.tables.pace import units_of
from isotone.text_table import pluralized


@dataclass(frozen=True, slots=True)
class Observation:
    """One request that has ended.

    `units`, `scanned` and `returned` come from the response; 0 if the response lacks them, as for a failed request.
    Every observed request asks for its capacity units. `error` is the code of an API error, or the class name of
    another exception.

        log = lambda seen: print(seen.operation, seen.units)
        store = isotone.connect("shop.db", observe=[log])
    """

    operation: str
    tables: tuple[str, ...]
    index: str | None
    seconds: float
    units: float
    scanned: int
    returned: int
    error: str | None
    request: Request


AtEnd = Callable[[Observation], None]
Observer = Callable[[str, Request], AtEnd]


class Observed(Native):
    """A `Backend` that reports its calls to observers. Costs about two microseconds per call."""

    __slots__ = ("_backend", "_observers", "_read_json")

    def __init__(self, backend: Backend, observers: Sequence[Observer]) -> None:
        self._backend = backend
        self._read_json = json_reads(backend)
        self._observers = tuple(observers)

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Execute one action, and report it."""
        return self._observed(self._backend.execute, operation, request, deadline)

    def read_json(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Query or scan, and report it; the items may be in JSON."""
        return self._observed(self._read_json, operation, request, deadline)

    def _observed(
        self,
        execute: Callable[..., Response],
        operation: str,
        request: Request,
        deadline: float | None,
    ) -> Response:
        request = _priced(operation, as_text(request))
        watch = _Watch(self._observers, operation, request)
        try:
            response = execute(operation, request, deadline)
        except BaseException as error:
            watch.failed(error)
            raise
        watch.answered(response)
        return response


class AsyncObserved(Native):
    """An `AsyncBackend` that reports its calls to observers."""

    __slots__ = ("_backend", "_observers", "_read_json")

    def __init__(self, backend: AsyncBackend, observers: Sequence[Observer]) -> None:
        self._backend = backend
        self._read_json = async_json_reads(backend)
        self._observers = tuple(observers)

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Execute one action, and report it."""
        return await self._observed(self._backend.execute, operation, request, deadline)

    async def read_json(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Query or scan, and report it; the items may be in JSON."""
        return await self._observed(self._read_json, operation, request, deadline)

    async def _observed(
        self,
        execute: Callable[..., Awaitable[Response]],
        operation: str,
        request: Request,
        deadline: float | None,
    ) -> Response:
        request = _priced(operation, as_text(request))
        watch = _Watch(self._observers, operation, request)
        try:
            response = await execute(operation, request, deadline)
        except BaseException as error:
            watch.failed(error)
            raise
        watch.answered(response)
        return response


_PRICED: Final = frozenset(
    {
        *("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan"),
        *("BatchGetItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems"),
    }
)


def _priced(operation: str, request: Request) -> Request:
    """The request, which also asks for its consumed capacity."""
    if operation not in _PRICED or "ReturnConsumedCapacity" in request:
        return request
    return {**request, "ReturnConsumedCapacity": "TOTAL"}


class _Watch:
    """One request in progress."""

    __slots__ = ("_at_end", "_began", "_operation", "_request")

    def __init__(self, observers: Sequence[Observer], operation: str, request: Request) -> None:
        self._operation = operation
        self._request = request
        self._at_end = [observer(operation, request) for observer in observers]
        self._began = time.perf_counter()

    def answered(self, response: Response) -> None:
        self._tell(response, None)

    def failed(self, error: BaseException) -> None:
        code = getattr(error, "code", None) if isinstance(error, IsotoneError) else None
        self._tell({}, code or type(error).__name__)

    def _tell(self, response: Response, error: str | None) -> None:
        seconds = time.perf_counter() - self._began
        returned: int = response.get("Count", int("Item" in response))
        observation = Observation(
            operation=self._operation,
            tables=tables_of(self._request),
            index=self._request.get("IndexName"),
            seconds=seconds,
            units=units_of(response) or 0.0,
            scanned=response.get("ScannedCount") or returned,
            returned=returned,
            error=error,
            request=self._request,
        )
        for tell in self._at_end:
            tell(observation)


def tables_of(request: Request) -> tuple[str, ...]:
    """The tables that a request names."""
    if "TableName" in request:
        return (request["TableName"],)
    if "RequestItems" in request:
        return tuple(request["RequestItems"])
    named = {
        action["TableName"]: None
        for entry in request.get("TransactItems", ())
        for action in entry.values()
    }
    return tuple(named)


# Observers


def at_end(tell: AtEnd) -> Observer:
    """An observer that is called only at the end of a request: `observe=[at_end(print)]`."""
    return lambda operation, request: tell


_LOG: Final = logging.getLogger("isotone.requests")


def to_log(logger: logging.Logger = _LOG, level: int = logging.DEBUG) -> Observer:
    """An observer that logs each request; failures as warnings.

    The log record's `isotone` attribute is a dict, for formatters that write JSON. It contains no keys or
    values of items.

        store = isotone.connect("shop.db", observe=[isotone.to_log(logging.getLogger("shop"))])
    """

    def tell(seen: Observation) -> None:
        wanted = logging.WARNING if seen.error else level
        if not logger.isEnabledFor(wanted):
            return
        said = {
            "operation": seen.operation,
            "tables": list(seen.tables),
            "index": seen.index,
            "milliseconds": round(seen.seconds * 1000, 3),
            "units": seen.units,
            "scanned": seen.scanned,
            "returned": seen.returned,
            "error": seen.error,
        }
        logger.log(wanted, "%s", _line(seen), extra={"isotone": said})

    return at_end(tell)


def _line(seen: Observation) -> str:
    where = ",".join(seen.tables) + (f"/{seen.index}" if seen.index else "")
    end = (
        seen.error
        or f"{seen.returned} of {pluralized(seen.scanned, 'item')}, {pluralized(seen.units, 'unit', form='g')}"
    )
    return f"{seen.operation} {where} {seen.seconds * 1000:.1f} ms: {end}"


def to_spans(tracer: Any = None) -> Observer:
    """An observer that creates an OpenTelemetry client span for each request.

    The attributes follow OpenTelemetry's conventions for databases and DynamoDB. The default is the global
    tracer. Raises `UsageError` if OpenTelemetry is not installed.

        store = isotone.connect("shop.db", observe=[isotone.to_spans()])
    """
    try:
        from opentelemetry import trace
    except ImportError:
        raise UsageError("spans need OpenTelemetry: pip install 'isotone[otel]'") from None
    used = tracer or trace.get_tracer("isotone")

    def begin(operation: str, request: Request) -> AtEnd:
        tables = tables_of(request)
        span = used.start_span(
            " ".join((operation, *tables)),
            kind=trace.SpanKind.CLIENT,
            attributes={
                "db.system.name": "aws.dynamodb",
                "db.operation.name": operation,
                "aws.dynamodb.table_names": tables,
            },
        )

        def end(seen: Observation) -> None:
            for name, value in _span_attributes(seen).items():
                span.set_attribute(name, value)
            if seen.error:
                span.set_status(trace.StatusCode.ERROR, seen.error)
            span.end()

        return end

    return begin


def _span_attributes(seen: Observation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "db.collection.name": seen.tables[0] if len(seen.tables) == 1 else None,
        "db.response.returned_rows": seen.returned if seen.operation in _READS else None,
        "aws.dynamodb.index_name": seen.index,
        "aws.dynamodb.scanned_count": seen.scanned or None,
        "isotone.units": seen.units or None,
        "error.type": seen.error,
    }
    return {name: value for name, value in found.items() if value is not None}


_READS: Final = frozenset(("GetItem", "Query", "Scan"))
