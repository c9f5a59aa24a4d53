"""Counts requests, errors, latencies, write groups; names of metrics (isotone_…_total); the access log (--access-log).

Counting is part of each request, so it is one look-up and an addition. Of the requests that are answered at once, every
sixteenth is timed, and counts as sixteen; those that wait for a commit or a thread are all timed. Labels are bounded:
clients can invent actions, so beyond 128 of them the rarest become "other".
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from isotone.errors import ApiError
from isotone.server.exposition import Labels, MetricFamily, MetricSample

LATENCIES: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)  # fmt: skip
GROUP_SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1024.0)
_MOST_ACTIONS: Final = 128  # actions with series of their own
_MOST_ERRORS: Final = 1024
_OTHER: Final = "other"

access: logging.Logger = logging.getLogger("isotone.access")

Observe = Callable[[str, object, float, int], object]
"""Measures a request: its action, its result, when it began (`time.perf_counter`), and how many requests it counts as."""

EVERY: Final = 16  # of so many requests that are answered at once, one is timed


class Histogram:
    """The number of values up to each bound, and the sum of all."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds: tuple[float, ...] = bounds
        self.counts: list[int] = [0] * (len(bounds) + 1)
        self.total: float = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def samples(self, labels: Labels = ()) -> Iterator[MetricSample]:
        """The samples in Prometheus's form: each bucket also counts the smaller values."""
        below = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            below += count
            yield MetricSample(below, (*labels, ("le", str(bound))), "_bucket")
        yield MetricSample(self.total, labels, "_sum")
        yield MetricSample(below, labels, "_count")


class RequestCounts(dict[str, int]):
    """The number of requests by action. Beyond a limit, the rarest actions become "other"."""

    def __missing__(self, operation: str) -> int:
        if len(self) >= _MOST_ACTIONS:
            rare = sorted(self, key=self.__getitem__)[: _MOST_ACTIONS // 2]
            self[_OTHER] = sum(map(self.pop, rare)) + self.pop(_OTHER, 0)
        return 0


class Metrics:
    """The counts of one server."""

    def __init__(self, *, access_log: bool = False) -> None:
        self.requests: RequestCounts = RequestCounts()
        self.groups: Histogram = Histogram(GROUP_SIZES)
        self.long_work = 0
        self.refused_bodies = 0
        self.refused_connections = 0
        self.has_access_log = access_log
        self._latencies: dict[str, Histogram] = {}
        self._errors: dict[tuple[str, str], int] = {}

    def observer(self, peer: Any) -> Observe:
        """The function that measures the requests of a connection; with `access_log` it also logs them."""
        if not self.has_access_log:
            return self.observe
        source = str(peer[0]) if isinstance(peer, tuple) else "-"

        def observe_and_log(operation: str, result: object, began: float, weight: int = 1) -> None:
            self.observe(operation, result, began, weight)
            # The size of an error is unknown: it is encoded only after this.
            status, size = 200, str(len(result)) if isinstance(result, bytes) else "-"
            error = ""
            if isinstance(result, ApiError):
                status, error = result.status, f" {type(result).__name__}"
            elapsed = (perf_counter() - began) * 1000
            access.info("%s %s %d %s %.2fms%s", source, operation, status, size, elapsed, error)

        return observe_and_log

    def observe(self, operation: str, result: object, began: float, weight: int = 1) -> None:
        """Add the latency of a request that is answered now; it counts as `weight` requests."""
        seconds = perf_counter() - began
        try:
            latencies = self._latencies[operation]
        except KeyError:
            latencies = self._first(operation)
        latencies.counts[bisect_left(LATENCIES, seconds)] += weight
        latencies.total += weight * seconds
        if type(result) is not bytes:
            self.count_error(operation, result)

    def count_error(self, operation: str, error: object) -> None:
        """Count an error response."""
        key = (operation if operation in self.requests else _OTHER, type(error).__name__)
        if len(self._errors) >= _MOST_ERRORS:
            key = (_OTHER, key[1])
        self._errors[key] = self._errors.get(key, 0) + 1

    def _first(self, operation: str) -> Histogram:
        """A new histogram for an action; that of "other" if there are too many."""
        if len(self._latencies) >= _MOST_ACTIONS:
            operation = _OTHER
        return self._latencies.setdefault(operation, Histogram(LATENCIES))

    def families(
        self, gauges: Mapping[str, float], series: Iterable[tuple[str, Labels, float]]
    ) -> list[MetricFamily]:
        """All metrics: the counts, and the service's gauges and its `series` (name, labels, value)."""
        counted = {
            "isotone_long_work_total": float(self.long_work),
            "isotone_refused_bodies_total": float(self.refused_bodies),
            "isotone_refused_connections_total": float(self.refused_connections),
            **gauges,
            **_of_process(),
        }
        by_name: dict[str, list[MetricSample]] = {name: [] for name in _SERIES}
        for name, labels, number in series:
            by_name[name].append(MetricSample(number, labels))
        return [
            *self._of_requests(),
            *(_family(name, samples, _SERIES[name]) for name, samples in by_name.items()),
            *(
                _family(name, [MetricSample(value)], _GAUGES[name])
                for name, value in counted.items()
            ),
        ]

    def _of_requests(self) -> Iterator[MetricFamily]:
        yield MetricFamily(
            "isotone_requests_total",
            "counter",
            "Requests, by action.",
            [
                MetricSample(count, (("action", name),))
                for name, count in sorted(self.requests.items())
            ],
        )
        yield MetricFamily(
            "isotone_request_duration_seconds",
            "histogram",
            "Time from a whole request to its answer, by action.",
            [
                sample
                for name, latencies in sorted(self._latencies.items())
                for sample in latencies.samples((("action", name),))
            ],
        )
        yield MetricFamily(
            "isotone_errors_total",
            "counter",
            "Requests that were answered with an error, by action and error.",
            [
                MetricSample(count, (("action", action), ("error", error)))
                for (action, error), count in sorted(self._errors.items())
            ],
        )
        yield MetricFamily(
            "isotone_write_group_size",
            "histogram",
            "Writes that were committed together.",
            list(self.groups.samples()),
        )


_SERIES: Final = {
    "isotone_consumed_read_units_total": "Read units that requests have consumed, by table and index.",
    "isotone_consumed_write_units_total": "Write units that requests have consumed, by table and index.",
    "isotone_stream_lag_seconds": "Age of the oldest record of a shard that no reader has received.",
}
_GAUGES: Final = {
    "isotone_bodies_bytes": "Bytes of request bodies that are held.",
    "isotone_bodies_limit_bytes": "Bytes of request bodies that may be held.",
    "isotone_connections": "Open connections.",
    "isotone_disk_free_bytes": "Free space on the disk of the file.",
    "isotone_file_bytes": "Size of the database file.",
    "isotone_file_lock_wait_seconds_total": "Seconds that writes have waited for other processes.",
    "isotone_file_lock_waits_total": "Writes that have waited for another process.",
    "isotone_long_work_total": "Long requests, which were executed in a lane or in a thread.",
    "isotone_refused_bodies_total": "Requests refused because the bodies of all requests were over the budget.",
    "isotone_refused_connections_total": "Connections that were turned away.",
    "isotone_tables": "Tables of all regions.",
    "isotone_wal_bytes": "Size of the log of the database file.",
    "process_cpu_seconds_total": "Processor time of the process.",
    "process_resident_memory_bytes": "Memory of the process.",
}


def _family(name: str, samples: list[MetricSample], meaning: str) -> MetricFamily:
    return MetricFamily(name, "counter" if name.endswith("_total") else "gauge", meaning, samples)


def _of_process() -> dict[str, float]:
    """The metrics that every program has under Prometheus's names: processor time and memory."""
    found = {"process_cpu_seconds_total": time.process_time()}
    memory = Path("/proc/self/status")
    if memory.exists():
        for line in memory.read_text().splitlines():
            if line.startswith("VmRSS:"):
                found["process_resident_memory_bytes"] = 1024.0 * int(line.split()[1])
    return found
