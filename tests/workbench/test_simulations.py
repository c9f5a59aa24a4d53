"""The simulation of a workload: it runs once, and is forecast for any size and division."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.workbench.page import Browserless

import isotone
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.errors import UsageError
from isotone.server import running_server
from isotone.workbench import Workbench

table = isotone.Table("Hits")


class Counter(isotone.Entity, table=table):
    name: isotone.Attr[str] = isotone.field()
    hits: isotone.Attr[int] = isotone.field(default=0)

    primary = isotone.Key("COUNTER", name).sort("TOTAL")


def workload(failure: list[Exception]) -> Workload:
    load = Workload("hits", tables=[table])
    visitors = load.population("visitor", 5_000_000)

    @load.prepare
    def begin(store: isotone.Store) -> None:
        if failure:
            raise failure.pop()
        store.put(Counter(name="all"))

    @load.action(by=visitors, per_day=50)
    def visit(call: WorkloadCall) -> None:
        call.store.update(Counter, Counter.hits.add(1), name="all")

    return load


def answer_of(page: Browserless, **given: Any) -> Any:
    while "running" in (answer := page.call("simulation", given)):
        time.sleep(0.05)
    return answer


def test_the_simulation_runs_once_and_answers_for_every_size_and_division():
    with isotone.open() as database:
        pages = Workbench(database, target=":memory:", workload=workload([]))
        with running_server(database, pages=pages) as url:
            page = Browserless(url)
            assert page.call("session")["workload"] == "hits"
            whole = answer_of(page)
            assert whole["populations"] == whole["declared"] == {"visitor": 5_000_000}
            assert whole["throttled"] > 0
            (hot,) = whole["hottest_keys"]
            assert hot["key"] == "Hits: COUNTER#all"
            assert hot["wanted_shards"] > 1
            assert len(whole["day"]) == 24
            assert whole["places"][0]["busiest"][0] == pytest.approx(hot["part_of_a_partition"])
            small = answer_of(page, size=5_000)
            assert small["throttled"] == 0
            assert small["seconds"] == whole["seconds"]  # of the same run
            divided = answer_of(page, shards={hot["key"]: hot["wanted_shards"], "Hits: gone": 3})
            assert divided["throttled"] == 0
            assert divided["undivided"] == whole["throttled"]
            for wrong in ({"size": "many"}, {"size": 0}, {"shards": {"a": 0}}, {"shards": [1]}):
                assert page.call("simulation", wrong)["error"]["code"] == "UsageError"


def test_a_run_that_failed_is_tried_again():
    with isotone.open() as database:
        pages = Workbench(database, target=":memory:", workload=workload([UsageError("broken")]))
        with running_server(database, pages=pages) as url:
            page = Browserless(url)
            assert "broken" in answer_of(page)["error"]["message"]
            assert answer_of(page)["workload"] == "hits"


def test_without_a_workload_there_is_none(page):
    assert page.call("simulation") == {"workload": None}
    assert page.call("session")["workload"] is None
