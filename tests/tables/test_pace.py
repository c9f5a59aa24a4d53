"""Budgets of units, throttling, progress: with a clock of the test."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from isotone.backends.interface import Tape
from isotone.errors import (
    ProvisionedThroughputExceededException,
    UsageError,
    ValidationException,
)
from isotone.tables.batches import BatchWriter, delete, put
from isotone.tables.pace import Pace, Stopped, units_of
from isotone.tables.progress import Meter, Progress


def test_a_budget_is_kept_over_all_threads() -> None:
    pace = Pace(units_per_second=400)
    began = time.monotonic()

    def work() -> None:
        for _ in range(10):
            pace.wait()
            pace.spend(10.0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    assert pace.units == 400.0
    assert seconds >= 0.8, "the last requests are not waited for"


def test_without_a_budget_nothing_waits() -> None:
    pace = Pace()
    pace.spend(1e9)
    pace.wait()
    assert pace.rate is None


def test_throttling_lowers_the_rate_and_success_raises_it() -> None:
    clock = [0.0]
    pace = Pace(now=lambda: clock[0], stop=_NoSleep())
    for _ in range(10):
        clock[0] += 0.1
        pace.spend(100.0)
    pace.throttled(1)
    lowered = pace.rate
    assert lowered is not None
    assert 300 <= lowered <= 1000
    for _ in range(50):
        clock[0] += 1.0
        pace.spend(100.0)
    assert pace.rate is None or pace.rate > lowered


def test_a_lowered_rate_rises_to_the_budget_and_no_further() -> None:
    clock = [0.0]
    pace = Pace(100.0, now=lambda: clock[0], stop=_NoSleep())
    pace.spend(50.0)
    pace.throttled(1)
    assert pace.rate is not None
    assert pace.rate < 100
    for _ in range(100):
        clock[0] += 1.0
        pace.spend(1.0)
    assert pace.rate == 100.0


def test_a_throttled_request_is_sent_again() -> None:
    answers: list[Any] = [
        ProvisionedThroughputExceededException("slow down"),
        {"ConsumedCapacity": {"CapacityUnits": 2.5}},
    ]
    pace = Pace(stop=_NoSleep())
    assert pace.execute(Tape(answers), "Scan", {}) == answers[1]
    assert pace.units == 2.5
    with pytest.raises(ValidationException):
        pace.execute(Tape([ValidationException("no")]), "Scan", {})


def test_a_stop_ends_a_wait() -> None:
    stop = threading.Event()
    pace = Pace(1.0, stop=stop)
    pace.spend(1000.0)
    threading.Timer(0.05, stop.set).start()
    with pytest.raises(Stopped):
        pace.wait()


def test_a_budget_bounds_the_size_of_requests() -> None:
    assert Pace().affordable(1.0, 25) == 25
    assert Pace(10.0).affordable(1.0, 25) == 10
    assert Pace(10.0).affordable(1.0, 25, shared_by=4) == 2
    assert Pace(0.5).affordable(1.0, 25) == 1
    with pytest.raises(UsageError, match="above 0"):
        Pace(0)


def test_units_of_one_table_and_of_many() -> None:
    assert units_of({}) is None
    assert units_of({"ConsumedCapacity": {"CapacityUnits": 1.5}}) == 1.5
    assert units_of({"ConsumedCapacity": [{"CapacityUnits": 1}, {"CapacityUnits": 2}]}) == 3.0


class _NoSleep(threading.Event):
    """An event whose waits end at once, and that is never set."""

    def wait(self, timeout: float | None = None) -> bool:
        return False


def test_patience_begins_with_the_first_failure() -> None:
    """A wait for the budget is no failure."""
    clock, failures = [0.0], [2]

    class Waiting(_NoSleep):
        def wait(self, timeout: float | None = None) -> bool:
            clock[0] += timeout or 0.0
            return False

    def send() -> dict[str, Any]:
        if failures[0]:
            failures[0] -= 1
            raise ProvisionedThroughputExceededException("busy")
        return {"Items": []}

    pace = Pace(1.0, now=lambda: clock[0], stop=Waiting(), stall_timeout=60.0)
    pace.spend(1000.0)
    assert pace.send(send) == {"Items": []}
    assert clock[0] > 900


def test_unprocessed_entries_are_written_again() -> None:
    entries = [put({"id": {"S": str(n)}}) for n in range(30)]
    tape = Tape(
        [
            {"UnprocessedItems": {"things": entries[:2]}, "ConsumedCapacity": [_units(23)]},
            {"UnprocessedItems": {}, "ConsumedCapacity": [_units(5)]},
            {"UnprocessedItems": {}, "ConsumedCapacity": [_units(2)]},
        ]
    )
    pace = Pace(stop=_NoSleep())
    assert BatchWriter(tape, "things", pace).write(entries) == 30.0
    sizes = [len(request["RequestItems"]["things"]) for _, request in tape.asked]
    assert sizes == [25, 5, 2]
    assert tape.asked[2][1]["RequestItems"]["things"] == entries[:2]


def test_a_table_that_processes_nothing_ends_the_job() -> None:
    entries = [delete({"id": {"S": "a"}})]
    tape = Tape([{"UnprocessedItems": {"things": entries}}] * 100)
    with pytest.raises(ProvisionedThroughputExceededException, match="things"):
        BatchWriter(tape, "things", Pace(stop=_NoSleep())).write(entries)


def _units(units: float) -> dict[str, float]:
    return {"CapacityUnits": units}


def test_progress_reports_rate_time_left_and_units() -> None:
    clock = [100.0]
    meter = Meter("copy", "Orders", of_items=1000, items=100, now=lambda: clock[0])
    clock[0] += 2
    meter.add(items=200, read_units=10, write_units=200)
    now = meter.progress()
    assert (now.items, now.items_per_second, now.seconds_left) == (300, 100.0, 7.0)
    assert now.share == 0.3
    assert str(now) == (
        "copy Orders: 300 of about 1,000 items, 100 a second, 7 s left, 10 read and 200 write units"
    )
    assert now.dollars == pytest.approx((10 * 0.125 + 200 * 0.625) / 1e6)
    over = meter.progress(is_over=True)
    assert (over.share, over.seconds_left) == (1.0, 0.0)
    assert "about" not in str(over)


def test_the_rate_is_that_of_the_last_seconds_and_at_the_end_that_of_the_run() -> None:
    clock = [100.0]
    meter = Meter("copy", "Orders", of_items=100_000, items=500, now=lambda: clock[0])
    for items in (1000, 1000, 1000, 100, 100, 100):  # in 10 seconds each
        clock[0] += 10
        meter.add(items=items)
    assert meter.progress().items_per_second == pytest.approx(10.0)
    assert meter.progress(is_over=True).items_per_second == pytest.approx(3300 / 60)


def test_progress_reports_the_lag() -> None:
    assert str(Progress("follow", "Orders", 5, lag=0.0)) == "follow Orders: 5 items, no lag"
    assert str(Progress("follow", "Orders", 5, lag=61.0)).endswith("1 min 1 s behind")
