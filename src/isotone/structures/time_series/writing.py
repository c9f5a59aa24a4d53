"""How points come into a series: each once, with all of its roll-ups, in one transaction.

A point is created, so one that is there already is refused, and with it whatever it would have added. Count
and sum of a roll-up are added to, which commutes; its lowest and highest value are set where a point lies
beyond them, on the condition that they are still to be moved. What was seen of them once is enough to add
a value that lies between without a read, on the condition that it still does: they move together only
where a point is corrected (`correcting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from isotone.errors import AlreadyExists, Contended, TransactionFailed
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition, all_of
from isotone.model.steps import Steps
from isotone.model.writing.transactions import Transaction
from isotone.structures.settling import settled
from isotone.structures.time_series.entries import (
    Point,
    Summary,
    TimeSeriesPoint,
    TimeSeriesRollUp,
    gathered,
)
from isotone.structures.time_series.plan import Fields, Plan
from isotone.structures.windows import floor

TOGETHER: Final = 90  # entries of a transaction, which takes a hundred
_SEEN: Final = 8192  # roll-ups and buckets that are kept in mind
_ADVICE: Final = (
    "add points in larger numbers, give the time series more shards, or try again later"
)

Window = tuple[timedelta, datetime]
"""The length of a resolution, and the beginning of one of its windows."""


def add(plan: Plan, series: str, points: Iterable[Point]) -> Steps[int]:
    """Write the points that are not there yet; how many they were."""
    added = 0
    for group in _groups(plan, series, points):
        added += yield from _add(plan, group)
    return added


def _groups(plan: Plan, series: str, points: Iterable[Point]) -> Iterable[list[TimeSeriesPoint]]:
    """The points, each once, as they are written together; those that are too old are left out."""
    chosen: dict[tuple[datetime, int, datetime, str], TimeSeriesPoint] = {}
    for point in (plan.point(series, each) for each in points):
        if not plan.is_over(point.at, plan.keep):
            chosen.setdefault((point.bucket, point.shard, point.at, point.id), point)
    group, windows = list[TimeSeriesPoint](), set[Window]()
    for (bucket, shard, at, _), point in sorted(chosen.items(), key=lambda each: each[0]):
        mine = {(every, floor(at, every)) for every in plan.roll_ups}
        is_full = len(group) + 1 + len(windows | mine) > TOGETHER
        if group and (is_full or (group[0].bucket, group[0].shard) != (bucket, shard)):
            yield group
            group, windows = [], set()
        group.append(point)
        windows |= mine
    if group:
        yield group


def _add(plan: Plan, group: Sequence[TimeSeriesPoint]) -> Steps[int]:
    """Write points of one partition, as far as they are not there yet; how many they were."""
    series, bucket, shard = group[0].series, group[0].bucket, group[0].shard
    pending = group

    def attempt() -> Steps[int]:
        nonlocal pending
        summaries = _summed(plan, pending)
        ranges = {window: summary.range for window, summary in summaries.items()}
        together = plan.calls.transaction()
        try:
            for point in pending:
                together.create(point)
            yield from _list_bucket(plan, together, series, bucket)
            yield from _roll_up(plan, together, series, shard, summaries)
            yield from together.commit()
        except (TransactionFailed, Contended) as refused:
            for of in ((series, bucket), *((series, shard, window) for window in ranges)):
                plan.seen.pop(of, None)
            failures = refused.failures if isinstance(refused, TransactionFailed) else {}
            there = {at for at, why in failures.items() if isinstance(why, AlreadyExists)}
            pending = [each for place, each in enumerate(pending) if place not in there]
            if pending:
                raise
            return 0
        _remember(plan, series, bucket, shard, ranges)
        return len(pending)

    return (yield from settled(attempt, repr(series), _ADVICE))


def _summed(plan: Plan, points: Sequence[TimeSeriesPoint]) -> dict[Window, Summary]:
    """What the points add to each of their windows, those apart that are not kept any longer."""
    found: dict[Window, Summary] = {}
    ones = [point.summary for point in points]
    for every, keep in plan.roll_ups.items():
        for each in gathered(ones, every, floor(points[0].at, every)):
            if not plan.is_over(each.start + every, keep):
                found[every, each.start] = each
    return found


def _list_bucket(plan: Plan, together: Transaction, series: str, bucket: datetime) -> Steps[None]:
    """Have a bucket listed, where it is not known to be."""
    if (series, bucket) in plan.seen:
        return
    key: Fields = {"name": plan.name, "series": series, "bucket": bucket}
    if (yield from plan.calls.get(plan.buckets, consistent=True, **key)) is None:
        gone_at = None if plan.keep is None else bucket + plan.bucket + plan.keep
        together.create(plan.buckets(**key, gone_at=gone_at))


def _roll_up(
    plan: Plan,
    together: Transaction,
    series: str,
    shard: int,
    summaries: Mapping[Window, Summary],
) -> Steps[None]:
    """Have the summaries added to their roll-ups; those that may have to be begun or widened are read."""
    keys = {window: plan.roll_up_key(series, window[0], shard, window[1]) for window in summaries}
    ranges = {window: plan.seen.get((series, shard, window)) for window in summaries}
    unknown = [window for window in summaries if not _holds(ranges[window], summaries[window])]
    found = yield from plan.calls.get_many(
        plan.summaries, [keys[window] for window in unknown], consistent=True
    )
    for window, each in zip(unknown, found, strict=True):
        ranges[window] = None if each is None else (each.lowest, each.highest)
    for window, summary in summaries.items():
        known = ranges[window]
        if known is None:
            together.create(plan.roll_up(keys[window], summary))
        else:
            changes, when = _changes(known, summary)
            together.update(plan.summaries, *changes, when=when, **keys[window])


def _holds(known: tuple[Decimal, Decimal] | None, summary: Summary) -> bool:
    lowest, highest = summary.range
    return known is not None and known[0] <= lowest and highest <= known[1]


def _changes(
    known: tuple[Decimal, Decimal], summary: Summary
) -> tuple[list[Change], Condition | None]:
    """The changes of a roll-up that is there, and the condition under which they are right."""
    kind, (lowest, highest) = TimeSeriesRollUp, summary.range
    changes = [kind.count.add(summary.count), kind.total.add(summary.total), kind.changes.add(1)]
    if lowest < known[0]:
        changes.append(kind.lowest.set(lowest))
    if highest > known[1]:
        changes.append(kind.highest.set(highest))
    return changes, all_of(
        (
            kind.lowest > lowest if lowest < known[0] else kind.lowest <= lowest,
            kind.highest < highest if highest > known[1] else kind.highest >= highest,
        )
    )


def _remember(
    plan: Plan,
    series: str,
    bucket: datetime,
    shard: int,
    ranges: Mapping[Window, tuple[Decimal, Decimal]],
) -> None:
    if len(plan.seen) > _SEEN:
        plan.seen.clear()
    plan.seen[series, bucket] = None
    for window, (lowest, highest) in ranges.items():
        known = plan.seen.get((series, shard, window)) or (lowest, highest)
        plan.seen[series, shard, window] = min(known[0], lowest), max(known[1], highest)
