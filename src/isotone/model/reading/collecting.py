"""One read over as many requests as it takes, within the bounds that its query was given.

DynamoDB ends each answer at 1 MB, and filters drop what they drop, so an empty answer says nothing.
How much the next request reads follows from what the ones before it returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from isotone.clock import Clock
from isotone.errors import BudgetSpent
from isotone.model.reading import requests
from isotone.model.reading.patterns import Read, position
from isotone.model.reading.stats import Meter, Stats
from isotone.model.steps import Call, Steps
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")

_FILTERED: Final = 32  # items that the first request reads, at the least, where there is a filter
_GROWTH: Final = 4  # how much more the next request reads than the last, at most
_ASSUMED_ITEMS: Final = 2  # that a unit reads, before the first answer tells


def collect(
    read: Read[Any], wanted: int | None, start: Item | None, meter: Meter, clock: Clock
) -> Steps[tuple[list[requests.Found], Item | None]]:
    """The wanted number of results from a place on, and the place where reading ended.

    The place is None at the end of the data.
    """
    found: list[requests.Found] = []
    if read.is_empty:
        return found, None
    request = read.request()
    pace = Pace(read, meter)
    while True:
        missing = None if wanted is None else wanted - len(found)
        limit = pace.next(missing, len(found))
        response = yield Call(read.operation, continued(request, start, limit))
        meter.count(response)
        found += read.takes.entities(response["Items"], clock.now())
        start = response.get("LastEvaluatedKey")
        if wanted is not None and len(found) >= wanted:
            if len(found) > wanted:
                del found[wanted:]
                start = position(read, found[-1][1])
            break
        if start is None:
            break
        if is_spent(read, meter):
            meter.exhausted = True
            break
    meter.returned += len(found)
    return found, start


class Traversal(Generic[E]):
    """A read in progress: each step brings what one request brings.

    `is_over` tells when there is no more; `stats` what was spent so far.
    """

    def __init__(
        self, read: Read[E], clock: Clock, judge: Callable[[Read[Any], Meter], None]
    ) -> None:
        self._read = read
        self._clock = clock
        self._judge = judge
        self._meter = Meter(read.is_consistent)
        self._pace = Pace(read, self._meter)
        self._start: Item | None = None
        self._request = None if read.is_empty else read.request()
        self.is_over = read.is_empty

    @property
    def stats(self) -> Stats:
        """What was spent so far."""
        return self._meter.stats()

    def step(self) -> Steps[list[E]]:
        """The next results, maybe none; raises `BudgetSpent` where the query's bounds forbid more."""
        read, meter = self._read, self._meter
        if self._request is None or self.is_over:
            return []
        if is_spent(read, meter):
            raise spent(read, meter)
        missing = None if read.most_results is None else read.most_results - meter.returned
        limit = self._pace.next(missing, meter.returned)
        request = continued(self._request, self._start, limit)
        response = yield Call(read.operation, request)
        meter.count(response)
        entities = [
            cast(E, each) for each, _ in read.takes.entities(response["Items"], self._clock.now())
        ][:missing]
        meter.returned += len(entities)
        self._start = response.get("LastEvaluatedKey")
        self.is_over = self._start is None or meter.returned == read.most_results
        if self.is_over:
            self._judge(read, meter)
        return entities


def continued(request: Any, start: Item | None, limit: int | None) -> dict[str, Any]:
    """A request as it goes on from a place."""
    further = dict(request)
    if start is not None:
        further["ExclusiveStartKey"] = start
    if limit is not None:
        further["Limit"] = limit
    return further


class Pace:
    """How many items each request reads: as many as will probably do, within the query's bounds."""

    def __init__(self, read: Read[Any], meter: Meter) -> None:
        self._read = read
        self._meter = meter
        self._last: int | None = None

    def next(self, missing: int | None, found: int) -> int | None:
        """The Limit of the next request; None for as much as an answer holds."""
        bounds = [self._read.items_a_page]
        if missing is not None:
            bounds.append(self._estimate(missing, found))
        if self._read.most_units is not None:
            bounds.append(self._affordable(self._read.most_units - self._meter.units))
        known = [bound for bound in bounds if bound is not None]
        self._last = min(known) if known else None
        return self._last

    def _estimate(self, missing: int, found: int) -> int:
        """Items that will probably hold the missing results, going by the hit rate so far.

        The first request reads what would do if nothing were dropped, so a read that drops nothing
        reads nothing in vain. With a filter it reads some more, for fewer requests.
        """
        if self._last is None:
            return max(missing, _FILTERED) if self._read.filters else missing
        most = self._last * _GROWTH
        likely = -(-missing * self._meter.scanned // found) if found else most
        return max(missing, min(likely, most))

    def _affordable(self, units: float) -> int:
        scanned = self._meter.scanned
        an_item = self._meter.units / scanned if scanned else 1 / _ASSUMED_ITEMS
        return max(1, int(units / an_item)) if an_item else 1


def is_spent(read: Read[Any], meter: Meter) -> bool:
    """Whether the bounds that the query was given are reached."""
    return (read.most_units is not None and meter.units >= read.most_units) or (
        read.most_requests is not None and meter.requests >= read.most_requests
    )


def spent(read: Read[Any], meter: Meter) -> BudgetSpent:
    """The error that says so."""
    stats = replace(meter.stats(), exhausted=True)
    return BudgetSpent(
        f"{read.name} is not complete after {stats.units:g} units and {stats.requests} requests, "
        "which is the bound that it was given; raise it, or read on by pages",
        stats,
    )
