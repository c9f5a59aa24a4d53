"""OpenTelemetry (--otel): a span for each request (traceparent), and the metrics of `/metrics` as observable instruments.

A server without this option does not import this module. The providers are those that the program has configured. Nothing
is counted twice: the instruments read the values of `/metrics`. A provider has one instrument of each name, so all servers of
a program share them, and each value has the address of its server.

Spans follow OpenTelemetry's conventions for databases and DynamoDB. The program's propagators read the parent span from the
headers, by default from `traceparent`. A span begins when the request has arrived completely, and ends with its response.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import msgspec
from opentelemetry import metrics, propagate, trace
from opentelemetry.metrics import CallbackOptions, Observation

from isotone.errors import ApiError
from isotone.server.dispatcher import Address, Deliver, Dispatcher, Result
from isotone.server.exposition import MetricFamily, MetricSample
from isotone.server.gate import Gate
from isotone.server.monitor import Monitor
from isotone.server.request import Decoded, HeaderNames, Received, ServiceCall, operation_of
from isotone.server.response import HttpRefusal
from isotone.values.request_body import REFUSED

_NAME: Final = "isotone.server"
_SYSTEM: Final = "aws.dynamodb"
_PARSED: Final = 1 << 20  # bytes of a body; larger ones are not parsed for names of tables
_LONGEST: Final = 255  # characters of a table's name
_MOST_TABLES: Final = 100
_FRESH: Final = 0.5  # seconds during which all instruments of one export use the same values

T = TypeVar("T")
Attributes = dict[str, str | int | Sequence[str]]

log: logging.Logger = logging.getLogger("isotone.server")


class Telemetry:
    """Takes requests in place of the dispatcher or the gate, adds spans, and passes them on; for one event loop."""

    def __init__(self, dispatcher: Dispatcher | Gate, monitor: Monitor) -> None:
        self._dispatcher = dispatcher
        self._monitor = monitor
        self._where: Attributes = {}
        self._collected: dict[str, list[MetricSample]] = {}
        self._collected_at = float("-inf")
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            log.warning(
                "OpenTelemetry has no provider yet, so no span is exported; "
                "opentelemetry-instrument isotone serve --otel configures one"
            )
        fields = propagate.get_global_textmap().fields
        self._fields = frozenset(field.lower().encode() for field in fields)
        self._tracer = trace.get_tracer(_NAME, version("isotone"))

    def start(self, address: Address) -> None:
        """Export the metrics, with this address as attributes."""
        self._where = {"server.address": address[0], "server.port": address[1]}
        _INSTRUMENTS.add(self, self._monitor.families())

    def stop(self) -> None:
        """Stop exporting metrics."""
        _INSTRUMENTS.remove(self)

    # Spans

    def note(self, request: Decoded, received: Received) -> Decoded:
        """Add the trace context of its headers to a request; a request that was refused already gets its span now."""
        headers = received.headers
        if type(request) is ServiceCall and self._has_context(received.header_names):
            return msgspec.structs.replace(request, trace=_context(headers))
        if type(request) is HttpRefusal:
            span = self._span(operation_of(headers) or "refused", _context(headers))
            _end(span, {}, request.error)
        return request

    def _has_context(self, header_names: HeaderNames) -> bool:
        """Whether the headers may have a trace context. If a header is repeated, assume so."""
        return not header_names.lower or not self._fields.isdisjoint(header_names.lower)

    def submit(self, call: ServiceCall, deliver: Deliver) -> Result | None:
        """The result of a request, as `Dispatcher.submit` returns it."""
        span = self._span(call.operation, call.trace)
        if not span.is_recording():
            return self._dispatcher.submit(call, deliver)
        attributes: Attributes = {}
        if call.region:
            attributes["cloud.region"] = call.region
        tables = tables_of(call.body)
        if tables:
            attributes["aws.dynamodb.table_names"] = tables
        result = self._dispatcher.submit(call, partial(_end_and_answer, span, attributes, deliver))
        if result is not None:
            _end(span, attributes, result)
        return result

    def _span(self, operation: str, context: Any) -> trace.Span:
        return self._tracer.start_span(
            operation,
            context=context,
            kind=trace.SpanKind.SERVER,
            attributes={"db.system.name": _SYSTEM, "db.operation.name": operation},
        )

    def local_nodes(self, own: Address) -> bytes:
        return self._dispatcher.local_nodes(own)

    def run_long(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        self._dispatcher.run_long(work, then)

    # Metrics

    def observed(self, name: str, suffix: str) -> Iterator[Observation]:
        """The values of an instrument. The exporter's thread calls this."""
        if time.monotonic() - self._collected_at > _FRESH:
            self._collected = {family.name: family.samples for family in self._monitor.families()}
            self._collected_at = time.monotonic()
        for sample in self._collected.get(name, ()):
            if sample.suffix == suffix:
                yield Observation(sample.value, {**dict(sample.labels), **self._where})


class _Instruments:
    """The instruments of each provider, and the servers whose values they export."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: WeakKeyDictionary[metrics.MeterProvider, set[str]] = WeakKeyDictionary()
        self._servers: tuple[Telemetry, ...] = ()

    def add(self, server: Telemetry, families: Iterable[MetricFamily]) -> None:
        """Export the metrics of a server; create the instruments that no earlier server had."""
        provider = metrics.get_meter_provider()
        meter = provider.get_meter(_NAME, version("isotone"))
        with self._lock:
            self._servers += (server,)
            names = self._names.setdefault(provider, set())
            for family in families:
                if family.name.startswith("process_"):
                    continue  # OpenTelemetry has its own
                for name, kind, suffix in _instruments(family):
                    if name not in names:
                        names.add(name)
                        self._create(meter, family, name, kind, suffix)

    def remove(self, server: Telemetry) -> None:
        """Stop exporting the metrics of a server that has ended."""
        with self._lock:
            self._servers = tuple(each for each in self._servers if each is not server)

    def _create(
        self, meter: metrics.Meter, family: MetricFamily, name: str, kind: str, suffix: str
    ) -> None:
        make: Any = (
            meter.create_observable_counter if kind == "counter" else meter.create_observable_gauge
        )
        observe = partial(self._observe, family.name, suffix)
        make(name, callbacks=[observe], unit=_unit(name), description=family.help)

    def _observe(self, name: str, suffix: str, options: CallbackOptions) -> list[Observation]:
        return [value for server in self._servers for value in server.observed(name, suffix)]


_INSTRUMENTS: Final = _Instruments()


def _context(headers: Mapping[bytes, bytes]) -> Any:
    """The trace context in the headers of a request."""
    carrier = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers.items()}  # fmt: skip
    return propagate.extract(carrier)


def _end_and_answer(
    span: trace.Span, attributes: Attributes, deliver: Deliver, result: Result
) -> None:
    _end(span, attributes, result)
    deliver(result)


def _end(span: trace.Span, attributes: Attributes, result: Result) -> None:
    """End a span with the result of its request."""
    if isinstance(result, bytes):
        attributes["http.response.status_code"] = 200
        consumed = consumed_in(result)
        if consumed:
            attributes["aws.dynamodb.consumed_capacity"] = consumed
    else:
        error = attributes["error.type"] = type(result).__name__
        status = result.status if isinstance(result, ApiError) else 0
        if status:
            attributes["http.response.status_code"] = status
        if not 400 <= status < 500:  # 4xx is the client's fault, so the span is not failed
            span.set_status(trace.StatusCode.ERROR, error)
    span.set_attributes(attributes)
    span.end()


class _Named(msgspec.Struct, rename="pascal"):
    table_name: str | None = None


class _Tables(msgspec.Struct, rename="pascal"):
    """The members in which requests name their tables. (PartiQL statements name them in their text.)"""

    table_name: str | None = None
    request_items: dict[str, msgspec.Raw] = {}
    transact_items: list[dict[str, _Named]] = []


class _Consumed(msgspec.Struct, rename="pascal"):
    consumed_capacity: msgspec.Raw = msgspec.Raw(b"")


_decode_tables: Final = msgspec.json.Decoder(_Tables).decode
_decode_consumed: Final = msgspec.json.Decoder(_Consumed).decode
_decode_each: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


def tables_of(body: bytes) -> list[str]:
    """The table names or ARNs in a request; none if it is malformed."""
    if len(body) > _PARSED:
        return []
    try:
        found = _decode_tables(body)
    except REFUSED:
        return []  # the service reports the fault
    names = [found.table_name, *found.request_items]
    names += [each.table_name for entry in found.transact_items for each in entry.values()]
    known = dict.fromkeys(name[:_LONGEST] for name in names if name)
    return list(known)[:_MOST_TABLES]


def consumed_in(answer: bytes) -> list[str]:
    """Each `ConsumedCapacity` in a response, as JSON; none if the request did not ask for it."""
    if len(answer) > _PARSED or b'"ConsumedCapacity":' not in answer:
        return []
    found = bytes(_decode_consumed(answer).consumed_capacity)
    if found.startswith(b"["):
        return [bytes(each).decode() for each in _decode_each(found)]
    return [found.decode()] if found else []


def _instruments(family: MetricFamily) -> Iterator[tuple[str, str, str]]:
    """The instruments of a family: name, kind, and the suffix of the samples. There is no observable histogram."""
    if family.kind == "histogram":
        for suffix in ("_bucket", "_sum", "_count"):
            yield family.name + suffix, "counter", suffix
    else:
        yield family.name.removesuffix("_total"), family.kind, ""


def _unit(name: str) -> str:
    if "_seconds" in name and not name.endswith(("_bucket", "_count")):
        return "s"
    return "By" if name.endswith("_bytes") else "1"
