"""The workload of every example runs, and touches the tables of its example."""

from __future__ import annotations

import importlib

import pytest
from tests.effort import LONG
from tests.examples.printed import FOLDER, NAMES

from isotone.advisor.simulation import Workload, report, simulate
from isotone.advisor.simulation.sampling import Run


@pytest.fixture(autouse=True)
def examples_are_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)


def workload_of(name: str) -> Workload:
    load = importlib.import_module(name).load
    assert isinstance(load, Workload)
    return load


def test_there_are_examples() -> None:
    assert len(NAMES) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_the_workload_runs(name: str) -> None:
    load = workload_of(name)
    sample = Run(load, 10, 1.0).sample(lambda done: None)
    assert sample.footprints.keys() == load.actions.keys()
    idle = [action for action, each in sample.footprints.items() if not each.units]
    assert idle == []
    touched = {place.table for each in sample.footprints.values() for place, _ in each.units}
    assert touched & {table.name for table in load.tables} or not load.tables


@pytest.mark.skipif(not LONG, reason="takes minutes")
@pytest.mark.parametrize("name", NAMES)
def test_the_workload_is_forecast(name: str) -> None:
    found = simulate(workload_of(name), members=20)
    assert found.costs.on_demand > 0
    assert found.workload.name in report(found)
