from __future__ import annotations

import asyncio
import logging
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from tests.model.orders import Order, order, shop

import isotone
from isotone import ManualClock, Observation, aconnect, at_end, connect, to_log, to_spans
from isotone.backends.interface import InThread, Tape
from isotone.errors import AlreadyExists, ResourceNotFoundException, UsageError
from isotone.model.observing import AsyncObserved, Observed, tables_of

QUERY = {
    "TableName": "shop",
    "IndexName": "GSI1",
}
ANSWER = {
    "Count": 2,
    "ScannedCount": 5,
    "Items": [],
    "ConsumedCapacity": {"TableName": "shop", "CapacityUnits": 1.5},
}


def test_every_request_is_seen() -> None:
    seen: list[Observation] = []
    with connect(observe=[at_end(seen.append)]) as store:
        store.create_tables(shop)
        store.put(order(1))
        store.all(Order.primary.where(Order.customer_id == "2b5a41c0"))
        with pytest.raises(AlreadyExists):
            store.create(order(1))
    last = seen[-3:]
    assert [each.operation for each in last] == ["PutItem", "Query", "PutItem"]
    assert [each.error for each in last] == [None, None, "ConditionalCheckFailedException"]
    assert last[1].tables == ("shop",)
    assert (last[1].scanned, last[1].returned, last[1].units) == (1, 1, 0.5)
    assert all(each.seconds > 0 for each in seen)


def test_an_async_store_is_seen_as_well() -> None:
    seen: list[Observation] = []

    async def talk() -> None:
        async with aconnect(observe=[at_end(seen.append)]) as store:
            await store.create_tables(shop)

    asyncio.run(talk())
    assert seen[-1].tables == ("shop",)


def test_what_an_observation_says() -> None:
    seen: list[Observation] = []
    Observed(Tape([ANSWER]), [at_end(seen.append)]).execute("Query", QUERY)
    (only,) = seen
    assert (only.operation, only.tables, only.index) == ("Query", ("shop",), "GSI1")
    assert (only.scanned, only.returned, only.units, only.error) == (5, 2, 1.5, None)
    assert only.request == {**QUERY, "ReturnConsumedCapacity": "TOTAL"}


def test_the_units_of_every_read_and_write_are_seen() -> None:
    seen: list[Observation] = []
    one = order(1)
    key = isotone.EntityKey.of(one)
    with connect(observe=[at_end(seen.append)]) as store:
        store.create_tables(shop)
        store.put(one)
        seen.clear()
        store.get(key)
        store.update(one, Order.total.set(1))
        store.put_many([order(2), order(3)])
        store.get_many([key])
        with store.transaction() as tx:
            tx.put(order(4))
            tx.put(order(5))
        store.delete(one)
    assert {each.operation for each in seen} >= {
        *("GetItem", "UpdateItem", "BatchWriteItem", "BatchGetItem", "TransactWriteItems"),
        "DeleteItem",
    }
    assert all(each.units > 0 for each in seen), seen


def test_a_tape_is_also_played_to_observers(tmp_path: Path) -> None:
    seen: list[Observation] = []
    for observers in ([], [at_end(seen.append)]):
        with connect(tape=tmp_path / "tape.jsonl", observe=observers, clock=ManualClock()) as store:
            store.create_tables(shop)
            store.put(order(1))
    assert seen[-1].operation == "PutItem"


def test_failures_are_seen_and_go_on() -> None:
    seen: list[Observation] = []
    observed = Observed(Tape([ResourceNotFoundException("gone")]), [at_end(seen.append)])
    with pytest.raises(ResourceNotFoundException):
        observed.execute("Query", QUERY)
    with pytest.raises(UsageError):  # nothing left on the tape
        observed.execute("Query", QUERY)
    assert [each.error for each in seen] == ["ResourceNotFoundException", "UsageError"]


def test_awaited_failures_are_seen() -> None:
    seen: list[Observation] = []
    backend = InThread(Tape([ResourceNotFoundException("gone")]))
    with pytest.raises(ResourceNotFoundException):
        asyncio.run(AsyncObserved(backend, [at_end(seen.append)]).execute("Query", QUERY))
    assert seen[0].error == "ResourceNotFoundException"


@pytest.mark.parametrize(
    ("request_", "tables"),
    [
        ({"TableName": "a"}, ("a",)),
        ({"RequestItems": {"a": {}, "b": {}}}, ("a", "b")),
        (
            {
                "TransactItems": [
                    {"Put": {"TableName": "b"}},
                    {"Get": {"TableName": "a"}},
                    {"Put": {"TableName": "b"}},
                ]
            },
            ("b", "a"),
        ),
        ({"Limit": 3}, ()),
    ],
)
def test_the_tables_of_a_request(request_: dict[str, Any], tables: tuple[str, ...]) -> None:
    assert tables_of(request_) == tables


def test_the_log_has_one_structured_record_a_request(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "isotone.requests")
    observed = Observed(Tape([ANSWER, ResourceNotFoundException("gone")]), [to_log()])
    observed.execute("Query", QUERY)
    with pytest.raises(ResourceNotFoundException):
        observed.execute("Query", QUERY)
    good, bad = caplog.records
    assert good.levelno == logging.DEBUG
    assert good.getMessage().startswith("Query shop/GSI1 ")
    assert good.getMessage().endswith("2 of 5 items, 1.5 units")
    said = vars(good)["isotone"]
    assert (said["operation"], said["tables"], said["index"]) == ("Query", ["shop"], "GSI1")
    assert bad.levelno == logging.WARNING
    assert bad.getMessage().endswith(": ResourceNotFoundException")


def test_a_log_that_nobody_reads_is_not_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "isotone.requests")
    Observed(Tape([ANSWER]), [to_log()]).execute("Query", QUERY)
    assert caplog.records == []


class _Span:
    def __init__(self, name: str, kind: Any, attributes: dict[str, Any]) -> None:
        self.name, self.kind, self.attributes = name, kind, dict(attributes)
        self.status: Any = None
        self.ended = False

    def set_attribute(self, name: str, value: Any) -> None:
        self.attributes[name] = value

    def set_status(self, *status: Any) -> None:
        self.status = status

    def end(self) -> None:
        self.ended = True


class _Tracer:
    def __init__(self) -> None:
        self.spans: list[_Span] = []

    def start_span(self, name: str, **more: Any) -> _Span:
        self.spans.append(_Span(name, **more))
        return self.spans[-1]


@pytest.fixture
def opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much of OpenTelemetry as spans need, where it is not installed."""
    trace = types.SimpleNamespace(
        SpanKind=types.SimpleNamespace(CLIENT="client"),
        StatusCode=types.SimpleNamespace(ERROR="error"),
    )
    monkeypatch.setitem(sys.modules, "opentelemetry", types.SimpleNamespace(trace=trace))  # type: ignore[arg-type]


def test_spans(opentelemetry: None) -> None:
    tracer = _Tracer()
    observed = Observed(Tape([ANSWER, ResourceNotFoundException("gone")]), [to_spans(tracer)])
    observed.execute("Query", QUERY)
    with pytest.raises(ResourceNotFoundException):
        observed.execute("GetItem", {"TableName": "shop"})
    good, bad = tracer.spans
    assert (good.name, good.kind, good.ended, good.status) == ("Query shop", "client", True, None)
    assert good.attributes == {
        "db.system.name": "aws.dynamodb",
        "db.operation.name": "Query",
        "db.collection.name": "shop",
        "db.response.returned_rows": 2,
        "aws.dynamodb.table_names": ("shop",),
        "aws.dynamodb.index_name": "GSI1",
        "aws.dynamodb.scanned_count": 5,
        "isotone.units": 1.5,
    }
    assert bad.attributes["error.type"] == "ResourceNotFoundException"
    assert bad.status == ("error", "ResourceNotFoundException")
    assert bad.ended


def test_spans_of_the_real_thing() -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with isotone.connect(observe=[to_spans(provider.get_tracer("test"))]) as store:
        store.create_tables(shop)
        store.put(order(1))
    names = [span.name for span in exporter.get_finished_spans()]
    assert names[-1] == "PutItem shop"
    assert "CreateTable shop" in names


def test_spans_need_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(UsageError, match=r"pip install 'isotone\[otel\]'"):
        to_spans()
