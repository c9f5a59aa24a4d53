"""What happens at ten million users: a workload is run at a small size, and forecast at its real one.

found = simulate(load)
print(found)                        # load, hot keys, storage, the month's cost, and what to change
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from isotone.advisor.simulation import sampling
from isotone.advisor.simulation.forecast import (
    Comparison,
    Costs,
    Forecast,
    HotKey,
    PlaceForecast,
    sizes_of,
)
from isotone.advisor.simulation.partitions import Load
from isotone.advisor.simulation.recording import Place
from isotone.advisor.simulation.report_text import report
from isotone.advisor.simulation.workload import Call, Member, Population, Workload
from isotone.errors import UsageError
from isotone.prices import US_EAST_1, Prices

__all__ = [
    "Call",
    "Comparison",
    "Costs",
    "Forecast",
    "HotKey",
    "Load",
    "Member",
    "Place",
    "PlaceForecast",
    "Population",
    "Workload",
    "check",
    "report",
    "simulate",
]

_MEMBERS = 1000
_SMALLER = 4
_LARGER = 10

Progress = Callable[[str, int, int], object]
"""Called with what is done, how many calls are made, and how many in all."""


def simulate(
    workload: Workload,
    *,
    size: int | None = None,
    members: int = _MEMBERS,
    seed: int = 0,
    prices: Prices = US_EAST_1,
    shards: Mapping[str, int] | None = None,
    progress: Progress | None = None,
) -> Forecast:
    """Run a workload with some members, and forecast it with all.

    `size` is how many members the largest population has, the others in proportion; by default each has its declared
    size. `members` is how many of the largest are run. `shards` divides hot keys, by the labels of `Forecast.hottest`.
    The same `seed` gives the same forecast. Nothing leaves the process.
    """
    started = time.perf_counter()
    if type(members) is not int or members < 20:
        raise UsageError(f"members={members!r} are too few to say anything; give 20 or more")
    if not workload.actions:
        raise UsageError(f"workload {workload.name!r} has no action; declare one with @load.action")
    fewer = max(members // _SMALLER, 5)
    calls = sampling.calls_a_member(workload, fewer)
    small = _run(workload, fewer, calls, seed, progress)
    sample = _run(workload, members, calls, seed, progress)
    taken = time.perf_counter() - started
    plain = Forecast(workload, sizes_of(workload, size), prices, {}, taken, calls, small, sample)
    return plain.with_shards(shards) if shards else plain


def check(
    forecast: Forecast,
    *,
    members: int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> list[Comparison]:
    """Run the workload at a larger size, by default ten times the sample's, and compare what was forecast for it."""
    wanted = members or _LARGER * max(forecast.sampled.values(), default=1)
    calls = forecast.calls_a_member
    return forecast.compare(_run(forecast.workload, wanted, calls, seed, progress))


def _run(
    workload: Workload, members: int, calls: float, seed: int, progress: Progress | None
) -> sampling.Sample:
    def report(done: int, of: int) -> None:
        if progress is not None:
            progress(f"{members} members", done, of)

    return sampling.run(workload, members, calls, seed=seed, progress=report)
