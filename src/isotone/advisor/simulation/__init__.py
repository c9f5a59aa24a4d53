"""Runs a workload at a small size, and forecasts its load and cost at the real size, such as ten million users.

found = simulate(load)
print(found)                        # load, hot keys, storage, the month's cost, and what to change
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from isotone.advisor.simulation import sampling
from isotone.advisor.simulation.forecast import (
    Costs,
    Forecast,
    HotKey,
    MeasuredFigure,
    PlaceForecast,
    sizes_of,
)
from isotone.advisor.simulation.partitions import PartitionLoad
from isotone.advisor.simulation.report_text import report
from isotone.advisor.simulation.runs import PARTS, ConfidenceInterval, Runs
from isotone.advisor.simulation.touches import PartitionSpace
from isotone.advisor.simulation.workload import Population, PopulationMember, Workload, WorkloadCall
from isotone.errors import UsageError
from isotone.prices import US_EAST_1, Prices

__all__ = [
    "DEFAULT_MEMBERS",
    "ConfidenceInterval",
    "Costs",
    "Forecast",
    "HotKey",
    "MeasuredFigure",
    "PartitionLoad",
    "PartitionSpace",
    "PlaceForecast",
    "Population",
    "PopulationMember",
    "SimulationInterrupted",
    "Workload",
    "WorkloadCall",
    "check",
    "report",
    "simulate",
]

DEFAULT_MEMBERS: Final = 400
"""The default number of members of the largest population that are run."""
_FEWEST: Final = 20
_LARGER: Final = 10

Progress = Callable[[str, int, int], object]
"""Called with the name of the current run, the number of steps done, and the number of all steps."""


class SimulationInterrupted(KeyboardInterrupt):
    """Ctrl-C during a simulation. `forecast` is made from the finished runs; None if they are too few."""

    def __init__(self, forecast: Forecast | None) -> None:
        super().__init__()
        self.forecast = forecast

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.forecast,), vars(self)


def simulate(
    workload: Workload,
    *,
    size: int | None = None,
    members: int = DEFAULT_MEMBERS,
    seed: int = 0,
    prices: Prices = US_EAST_1,
    shards: Mapping[str, int] | None = None,
    progress: Progress | None = None,
) -> Forecast:
    """Run a workload with some members, and forecast it with all.

    `size` is the number of members of the largest population, the others in proportion; by default each has its
    declared size. `members` is how many of the largest are run, at most `size`; smaller runs tell how precise the
    figures are (`Forecast.interval`). `shards` divides hot keys, by the labels of `Forecast.hottest`. The same `seed`
    gives the same forecast. Nothing leaves the process. Raises `SimulationInterrupted` at Ctrl-C.
    """
    started = time.perf_counter()
    if type(members) is not int or members < _FEWEST:
        raise UsageError(f"members={members!r} are too few to say anything; give {_FEWEST} or more")
    if not workload.actions:
        raise UsageError(f"workload {workload.name!r} has no action; declare one with @load.action")
    wanted = sizes_of(workload, size)
    largest = min(members, size or members)
    calls = sampling.calls_a_member(workload, largest)

    def forecast(runs: Runs) -> Forecast:
        taken = time.perf_counter() - started
        plain = Forecast(workload, wanted, prices, {}, taken, calls, runs)
        return plain.with_shards(shards) if shards else plain

    parts = [
        (members, f"{seed} {name} {number}")
        for name, members in _parts(workload, largest).items()
        for number in range(PARTS)
    ]
    planned = [*parts, (largest, str(seed))]
    samples: list[sampling.WorkloadSample] = []
    try:
        for sample in _run(workload, planned, calls, progress):
            samples.append(sample)  # noqa: PERF402 - an interruption keeps the finished ones
    except KeyboardInterrupt:
        found = None
        if known := Runs.of_some(samples):
            with suppress(UsageError):  # so few runs may lack a key that `shards` names
                found = forecast(known)
        raise SimulationInterrupted(found) from None
    return forecast(Runs.of(samples))


def _parts(workload: Workload, largest: int) -> dict[str, int]:
    """The numbers of members in the smaller runs: an eighth, and an eighth of that; equal ones are left out."""
    small, smallest = largest // PARTS, largest // PARTS**2
    if sampling.sizes(workload, small) == sampling.sizes(workload, smallest):
        return {"small": small}
    return {"smallest": smallest, "small": small}


def check(
    forecast: Forecast,
    *,
    members: int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> list[MeasuredFigure]:
    """Run the workload at a larger size, by default ten times the sample's, and compare it with the forecast.

    If the forecast is for fewer members than that, the workload is run at the size of the forecast.
    """
    if members is None:
        largest = _LARGER * max(forecast.sampled.values(), default=1)
        members = min(largest, max(forecast.sizes.values(), default=1))
    planned = [(members, f"{seed} check")]
    (measured,) = _run(forecast.workload, planned, forecast.calls_a_member, progress)
    return forecast.compare(measured)


def _run(
    workload: Workload,
    planned: Sequence[tuple[int, str]],
    calls: float,
    progress: Progress | None,
) -> Iterator[sampling.WorkloadSample]:
    """The samples of runs, each with a number of members and a seed."""
    runs = [sampling.Run(workload, members, calls, seed=seed) for members, seed in planned]
    total, before = sum(run.steps for run in runs), 0
    for number, run in enumerate(runs, 1):
        what = f"run {number} of {len(runs)}, with {run.title}"

        def report(done: int, before: int = before, what: str = what) -> None:
            if progress is not None:
                progress(what, before + done, total)

        report(0)
        yield run.sample(report)
        before += run.steps
