"""Simulates a loaded workload: runs it once, on first use, and forecasts it for each size and number of shards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from isotone.advisor.simulation.forecast import BUSY
from isotone.errors import UsageError
from isotone.tables.threads import in_thread

if TYPE_CHECKING:
    from isotone.advisor.simulation import Forecast, Workload

_ANSWER_WAIT: Final = 0.3  # seconds that an answer waits for the run
_MOST_SIZE: Final = 10**12
_MOST_SHARDS: Final = 1_000
_PLACES: Final = 6
_KEYS: Final = 10


class Simulations:
    """Forecasts of one workload at any size; None: no workload is loaded."""

    def __init__(self, workload: Workload | None) -> None:
        self._workload = workload
        self._running: asyncio.Future[Forecast] | None = None
        self._done = ("", 0, 0)

    async def simulation(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The forecast for `{"size", "shards"}`, or the progress of the run."""
        if self._workload is None:
            return {"workload": None}
        size, shards = _size(given.get("size")), _shards(given.get("shards") or {})
        if self._running is None or (self._running.done() and self._running.exception()):
            self._running = in_thread(self._run, self._workload)
        done, _ = await asyncio.wait([self._running], timeout=_ANSWER_WAIT)
        if not done:
            what, calls, of = self._done
            return {"running": {"what": what, "done": calls, "of": of}}
        return await in_thread(_answer, self._running.result(), size, shards)

    def _run(self, workload: Workload) -> Forecast:
        from isotone.advisor.simulation import simulate

        def note(what: str, done: int, of: int) -> None:
            self._done = (what, done, of)

        return simulate(workload, progress=note)


def _size(size: Any) -> int | None:
    if size is None:
        return None
    if type(size) is not int or not 1 <= size <= _MOST_SIZE:
        raise UsageError(f"size={size!r} is not a number of members, such as 10000000")
    return size


def _shards(shards: Any) -> dict[str, int]:
    if not isinstance(shards, Mapping) or not all(
        type(number) is int and 1 <= number <= _MOST_SHARDS for number in shards.values()
    ):
        raise UsageError(f"shards={shards!r} are not numbers from 1 to {_MOST_SHARDS:,} by key")
    return dict(shards)


def _answer(base: Forecast, size: int | None, shards: Mapping[str, int]) -> dict[str, Any]:
    from isotone.advisor.simulation.forecast import as_dict
    from isotone.advisor.simulation.report_text import ASSUMPTIONS

    whole = base if size is None else base.with_size(size)
    known = {key.label for key in whole.hottest}
    forecast = whole.with_shards({label: n for label, n in shards.items() if label in known})
    found = as_dict(forecast)
    for place, shown in zip(forecast.places, found["places"], strict=True):
        shown["busiest"] = [load.use for load in place.busiest]
    return {
        **found,
        "places": found["places"][:_PLACES],
        "hottest_keys": found["hottest_keys"][:_KEYS],
        "undivided": whole.throttled if shards else None,
        "declared": base.sizes,
        "day": list(forecast.workload.day),
        "busy": BUSY,
        "seconds": forecast.seconds,
        "prices": {"region": forecast.prices.region, "as_of": str(forecast.prices.as_of)},
        "assumptions": list(ASSUMPTIONS),
    }
