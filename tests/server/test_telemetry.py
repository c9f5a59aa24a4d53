"""Spans of requests and the metrics of the server, as an OpenTelemetry SDK exports them."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.server.exposition_reader import read
from tests.server.fakes import FakeService, headers_of
from tests.server.signing import write_credentials
from tests.server.test_monitor import TABLE, ask, call

import isotone
from isotone.errors import UsageError
from isotone.server import running_server

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PUT = b'{"TableName": "tab", "Item": {"p": {"S": "x"}}}'


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The spans that a program's provider exports."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    """The metrics that a program's provider exports."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: provider)
    yield reader
    provider.shutdown()


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    with isotone.open() as database:
        database.execute("CreateTable", TABLE)
        yield database


def shown(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_each_request_has_a_span(database, spans):
    with running_server(database, otel=True) as url:
        assert (
            call(url, "PutItem", PUT.replace(b"}}}", b'}}, "ReturnConsumedCapacity": "TOTAL"}'))
            == 200
        )
        assert call(url, "GetItem", b'{"TableName": "nowhere", "Key": {"p": {"S": "x"}}}') == 400
    put, get = spans.get_finished_spans()
    assert (put.name, put.kind) == ("PutItem", trace.SpanKind.SERVER)
    assert put.parent is None
    attributes = shown(put)
    (consumed,) = attributes.pop("aws.dynamodb.consumed_capacity")
    assert json.loads(consumed) == {"TableName": "tab", "CapacityUnits": 1.0}
    assert attributes == {
        "db.system.name": "aws.dynamodb",
        "db.operation.name": "PutItem",
        "aws.dynamodb.table_names": ("tab",),
        "cloud.region": "eu-west-1",
        "http.response.status_code": 200,
    }
    assert shown(get)["error.type"] == "ResourceNotFoundException"
    assert shown(get)["http.response.status_code"] == 400
    assert get.status.status_code is trace.StatusCode.UNSET  # the client's fault
    assert put.end_time is not None
    assert put.start_time is not None
    assert put.end_time > put.start_time


def test_the_parent_is_in_the_headers(database, spans):
    with running_server(database, otel=True) as url:
        headers = headers_of("PutItem", traceparent=PARENT)
        assert ask(url, "POST", "/", PUT, **headers)[0] == 200
    (span,) = spans.get_finished_spans()
    assert span.parent is not None
    assert f"{span.context.trace_id:032x}" == PARENT.split("-")[1]
    assert f"{span.parent.span_id:016x}" == PARENT.split("-")[2]


def test_a_fault_of_the_server_is_a_failed_span(spans):
    with running_server(FakeService(), otel=True) as url:
        assert call(url, "GetItem", b'"explode"') == 500
    (span,) = spans.get_finished_spans()
    assert shown(span)["error.type"] == "InternalServerError"
    assert span.status.status_code is trace.StatusCode.ERROR


@pytest.mark.parametrize(
    ("body", "tables"),
    [
        (b'{"RequestItems": {"one": {"Keys": []}, "two": {}}}', ("one", "two")),
        (b'{"TransactItems": [{"Put": {"TableName": "a"}}, {"Get": {"TableName": "a"}}]}', ("a",)),
        (b'{"TableName": 5}', None),
        (b"[", None),
        (b'{"x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", None),
        (rb'{"TableName": "\ud800"}', None),
        (b'{"TableName": "' + b"x" * (1 << 20) + b'"}', None),
        (b'{"TableName": "' + b"x" * 1000 + b'"}', ("x" * 255,)),
    ],
)
def test_tables_are_those_that_a_request_names(spans, body, tables):
    with running_server(FakeService(), otel=True) as url:
        call(url, "GetItem", body)
    (span,) = spans.get_finished_spans()
    assert shown(span).get("aws.dynamodb.table_names") == tables


def test_what_is_refused_has_a_span(database, spans, tmp_path):
    users = write_credentials(tmp_path / "users.json", ann={})
    with running_server(database, otel=True, credentials=users) as url:
        assert call(url, "PutItem", PUT) == 400
    (span,) = spans.get_finished_spans()
    assert span.name == "PutItem"
    assert shown(span)["error.type"] == "UnrecognizedClientException"


def test_a_span_that_is_not_sampled_looks_at_no_request(database, monkeypatch):
    provider = TracerProvider(sampler=ALWAYS_OFF)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setattr("isotone.server.telemetry.tables_of", lambda body: pytest.fail("looked"))
    with running_server(database, otel=True) as url:
        assert call(url, "PutItem", PUT) == 200


def numbers(reader: InMemoryMetricReader) -> dict[tuple[str, frozenset[Any]], float]:
    """The values of a collection by instrument and attributes; each is there once."""
    data = reader.get_metrics_data()
    points = [
        ((metric.name, frozenset((point.attributes or {}).items())), point.value)
        for resource in ([] if data is None else data.resource_metrics)
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    ]
    found = dict(points)
    assert len(found) == len(points)
    return found


def test_instruments_and_metrics_are_one_count(database, exported):
    with running_server(database, otel=True) as url:
        for _ in range(3):
            call(url, "PutItem", PUT)
        call(url, "Sing")
        where = {("server.address", "127.0.0.1"), ("server.port", urlsplit(url).port)}
        found = numbers(exported)
        scrape = read(ask(url, "GET", "/metrics")[1])
    for name, family in scrape.items():
        if name.startswith("process_"):
            continue
        for (sample, labels), value in family.samples.items():
            known = found[sample.removesuffix("_total"), labels | where]
            assert known == pytest.approx(value) or name == "isotone_connections"
    assert found["isotone_requests", frozenset({("action", "PutItem")}) | where] == 3
    table = frozenset({("region", "us-east-1"), ("table", "tab"), ("index", "")})
    assert found["isotone_consumed_write_units", table | where] == 3
    assert numbers(exported) == {}  # the server has stopped


def test_servers_of_one_program_share_the_instruments(
    exported: InMemoryMetricReader, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    def puts_by_port() -> dict[Any, float]:
        return {
            dict(attributes).get("server.port"): value
            for (name, attributes), value in numbers(exported).items()
            if name == "isotone_requests" and ("action", "PutItem") in attributes
        }

    with isotone.open() as memory, isotone.open(tmp_path / "a.db") as file:
        for each in (memory, file):
            each.execute("CreateTable", TABLE)
        with running_server(memory, otel=True) as one:
            call(one, "PutItem", PUT)
            with running_server(file, otel=True) as two:
                for _ in range(2):
                    call(two, "PutItem", PUT)
                ports = [urlsplit(each).port for each in (one, two)]
                assert puts_by_port() == {ports[0]: 1, ports[1]: 2}
                found = numbers(exported)
                (size,) = [each for name, each in found if name == "isotone_file_bytes"]
                assert ("server.port", ports[1]) in size
            assert puts_by_port() == {ports[0]: 1}
        with running_server(memory, otel=True) as one:  # the first ones have stopped
            call(one, "PutItem", PUT)
            assert puts_by_port() == {urlsplit(one).port: 1}
    assert "has been created already" not in caplog.text
    assert puts_by_port() == {}


def test_a_program_without_a_provider_is_reported(database, caplog, monkeypatch):
    monkeypatch.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)
    with (
        caplog.at_level(logging.WARNING, "isotone.server"),
        running_server(database, otel=True) as url,
    ):
        assert call(url, "PutItem", PUT) == 200
    assert "opentelemetry-instrument isotone serve --otel" in caplog.text


def test_without_opentelemetry_the_option_is_refused(database, monkeypatch):
    monkeypatch.delitem(sys.modules, "isotone.server.telemetry", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with (
        pytest.raises(UsageError, match=r"pip install 'isotone\[otel\]'"),
        running_server(database, otel=True),
    ):
        pass


def test_a_server_without_the_option_makes_no_span(database, spans, exported):
    with running_server(database) as url:
        assert call(url, "PutItem", PUT) == 200
    assert spans.get_finished_spans() == ()
    assert numbers(exported) == {}
