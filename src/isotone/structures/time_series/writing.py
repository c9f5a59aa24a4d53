"""How points come into a series: each once, with all of its roll-ups, in one transaction.

A point is created, so one that is there already is refused, and with it whatever it would have added. Count
and sum of a roll-up are added to, which commutes; its lowest and highest value are set where a point lies
beyond them, on the condition that they are still to be moved. What was seen of them once is enough to add
a value that lies between without a read, on the condition that it still does: they move together only
where a point is corrected (`correcting`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from isotone.errors import AlreadyExists, Contended, TransactionFailed
from isotone.model.calls import Calls
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition, all_of
from isotone.model.steps import Steps
from isotone.model.writing.carrying import pause_after
from isotone.model.writing.transactions import Transaction
from isotone.structures.time_series.entries import (
    PER_BUCKET,
    Point,
    Summary,
    TimeSeriesBucket,
    TimeSeriesPoint,
    TimeSeriesRollUp,
    exact,
    floor,
)

ATTEMPTS: Final = 200  # of a transaction that others overtake
PATIENCE: Final = 4  # who lost more often waits no longer, or those who come later win for ever
_TOGETHER: Final = 90  # entries of a transaction, which takes a hundred
_KNOWN: Final = 8192  # roll-ups and buckets that are kept in mind


@dataclass(frozen=True, slots=True)
class Plan:
    """How a time series was declared, and its entities in its table."""

    name: str
    bucket: timedelta
    keep: timedelta | None
    roll_ups: Mapping[timedelta, timedelta | None]
    shards: int
    points: type[TimeSeriesPoint]
    buckets: type[TimeSeriesBucket]
    summaries: type[TimeSeriesRollUp]

    def roll_up_key(self, series: str, every: timedelta, shard: int, start: datetime) -> _Key:
        """The fields of a roll-up's primary key."""
        return {
            **self.roll_up_place(series, every, shard, floor(start, every * PER_BUCKET)),
            "start": start,
        }

    def roll_up_place(self, series: str, every: timedelta, shard: int, bucket: datetime) -> _Key:
        """The fields of the partition of some roll-ups."""
        return {
            "name": self.name,
            "series": series,
            "every": int(every.total_seconds()),
            "bucket": bucket,
            "shard": shard,
        }

    def point_place(self, series: str, bucket: datetime, shard: int) -> _Key:
        """The fields of the partition of some points."""
        return {"name": self.name, "series": series, "bucket": bucket, "shard": shard}


_Key = dict[str, Any]


class Window(NamedTuple):
    """A span of one resolution."""

    every: timedelta
    start: datetime


class Group(NamedTuple):
    """Points of one partition, which are written together."""

    series: str
    bucket: datetime
    shard: int
    points: list[Point]


class TimeSeriesWriting:
    """The steps that write to a time series."""

    def __init__(self, calls: Calls, plan: Plan) -> None:
        self._calls = calls
        self._plan = plan
        self._known: OrderedDict[tuple[object, ...], Any] = OrderedDict()

    def add(self, group: Group) -> Steps[int]:
        """Write the points that are not there yet; how many they were."""
        pending = group.points
        for number in range(ATTEMPTS):
            together = self._calls.transaction()
            summaries = self._summaries(pending)
            try:
                yield from self._plan_points(together, group, pending)
                yield from self._plan_roll_ups(together, group, summaries)
                yield from together.commit()
            except TransactionFailed as failed:
                there = {
                    place
                    for place, error in failed.failures.items()
                    if place < len(pending) and isinstance(error, AlreadyExists)
                }
                pending = [each for place, each in enumerate(pending) if place not in there]
                if not pending:
                    return 0
            except Contended:
                pass
            else:
                self._remember(group, summaries)
                return len(pending)
            self._forget(group, summaries)
            yield pause_after(min(number, PATIENCE))
        raise Contended(
            f"others wrote {group.series!r} during each of {ATTEMPTS} attempts; add points in larger "
            "numbers, give the time series more shards, or try again later"
        )

    def groups(self, series: str, points: Iterable[tuple[int, Point]]) -> Iterable[Group]:
        """Points with their shards, each once, as they are written together; too old ones are left out."""
        alive = _alive(self._plan.keep, self._now())
        chosen: dict[tuple[datetime, int], dict[tuple[datetime, str], Point]] = {}
        for shard, point in points:
            if alive is None or point.at > alive:
                place = floor(point.at, self._plan.bucket), shard
                chosen.setdefault(place, {}).setdefault((point.at, point.id), point)
        for (bucket, shard), found in sorted(chosen.items(), key=lambda each: each[0]):
            group, windows = Group(series, bucket, shard, []), set[Window]()
            for _, point in sorted(found.items()):
                more = windows | self._summaries([point]).keys()
                if len(group.points) + 1 + len(more) > _TOGETHER:
                    yield group
                    group, more = Group(series, bucket, shard, []), set(self._summaries([point]))
                group.points.append(point)
                windows = more
            yield group

    def _summaries(self, points: Sequence[Point]) -> dict[Window, Summary]:
        """What the points add to each of their windows, those apart that are not kept any longer."""
        found: dict[Window, Summary] = {}
        for every, keep in self._plan.roll_ups.items():
            alive = _alive(keep, self._now())
            for point in points:
                window = Window(every, floor(point.at, every))
                if alive is not None and window.start + every <= alive:
                    continue
                value = exact(point.value)
                one = Summary(window.start, every, 1, value, value, value)
                found[window] = found[window].joined(one) if window in found else one
        return found

    # Plans

    def _plan_points(
        self, together: Transaction, group: Group, points: Sequence[Point]
    ) -> Steps[None]:
        plan = self._plan
        place = plan.point_place(group.series, group.bucket, group.shard)
        for point in points:
            gone_at = None if plan.keep is None else point.at + plan.keep
            value = exact(point.value)
            together.create(
                plan.points(**place, at=point.at, id=point.id, value=value, gone_at=gone_at)
            )
        if self._seen(group.series, group.bucket) is None:
            key: _Key = {"name": plan.name, "series": group.series, "bucket": group.bucket}
            if (yield from self._calls.get(plan.buckets, consistent=True, **key)) is None:
                gone_at = None if plan.keep is None else group.bucket + plan.bucket + plan.keep
                together.create(plan.buckets(**key, gone_at=gone_at))

    def _plan_roll_ups(
        self, together: Transaction, group: Group, summaries: Mapping[Window, Summary]
    ) -> Steps[None]:
        plan = self._plan
        ranges = yield from self._ranges(group, summaries)
        for window, summary in summaries.items():
            key = plan.roll_up_key(group.series, window.every, group.shard, window.start)
            known = ranges[window]
            if known is None:
                lowest, highest = _range(summary)
                together.create(
                    plan.summaries(
                        **key,
                        count=summary.count,
                        total=summary.total,
                        lowest=lowest,
                        highest=highest,
                        gone_at=self._end_of(window),
                    )
                )
            else:
                changes, when = _changes(known, summary)
                together.update(plan.summaries, *changes, when=when, **key)

    def _ranges(
        self, group: Group, summaries: Mapping[Window, Summary]
    ) -> Steps[dict[Window, tuple[Decimal, Decimal] | None]]:
        """Between which values each roll-up lies; None for one that is not there.

        Of one that is known to hold the values, that is what was seen once; the others are read.
        """
        found: dict[Window, Any] = {}
        for window, summary in summaries.items():
            known = self._seen(group.series, group.shard, window)
            if known is not None and _holds(known, summary):
                found[window] = known
        unknown = [window for window in summaries if window not in found]
        keys = [
            self._plan.roll_up_key(group.series, window.every, group.shard, window.start)
            for window in unknown
        ]
        read = yield from self._calls.get_many(self._plan.summaries, keys, consistent=True)
        for window, each in zip(unknown, read, strict=True):
            found[window] = None if each is None else (each.lowest, each.highest)
        return found

    def _end_of(self, window: Window) -> datetime | None:
        keep = self._plan.roll_ups[window.every]
        return None if keep is None else window.start + window.every + keep

    # What is kept in mind

    def _seen(self, *of: object) -> Any:
        return self._known.get(of)

    def _remember(self, group: Group, summaries: Mapping[Window, Summary]) -> None:
        self._known[group.series, group.bucket] = True
        for window, summary in summaries.items():
            of = (group.series, group.shard, window)
            lowest, highest = _range(summary)
            low, high = self._known.get(of, (lowest, highest))
            self._known[of] = min(low, lowest), max(high, highest)
        while len(self._known) > _KNOWN:
            self._known.popitem(last=False)

    def _forget(self, group: Group, summaries: Mapping[Window, Summary]) -> None:
        self._known.pop((group.series, group.bucket), None)
        for window in summaries:
            self._known.pop((group.series, group.shard, window), None)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._calls.clock.now(), UTC)


def _alive(keep: timedelta | None, now: datetime) -> datetime | None:
    """What ended by this instant is not kept any longer; None where everything is."""
    return None if keep is None else now - keep


def _range(summary: Summary) -> tuple[Decimal, Decimal]:
    """The lowest and the highest value of a summary that is not empty."""
    assert summary.lowest is not None
    assert summary.highest is not None
    return summary.lowest, summary.highest


def _holds(known: tuple[Decimal, Decimal], summary: Summary) -> bool:
    lowest, highest = _range(summary)
    return known[0] <= lowest and highest <= known[1]


def _changes(
    known: tuple[Decimal, Decimal], summary: Summary
) -> tuple[list[Change], Condition | None]:
    """The changes of a roll-up that is there, and the condition under which they are right."""
    lowest, highest = _range(summary)
    kind = TimeSeriesRollUp
    changes = [
        kind.count.add(summary.count),
        kind.total.add(summary.total),
        kind.changes.add(1),
    ]
    conditions: list[Condition] = []
    if lowest < known[0]:
        changes.append(kind.lowest.set(lowest))
        conditions.append(kind.lowest > lowest)
    else:
        conditions.append(kind.lowest <= lowest)
    if highest > known[1]:
        changes.append(kind.highest.set(highest))
        conditions.append(kind.highest < highest)
    else:
        conditions.append(kind.highest >= highest)
    return changes, all_of(tuple(conditions))
