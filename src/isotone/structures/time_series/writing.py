"""How points come into a series: each once, with all of its roll-ups, in one transaction.

A point is created, so one that is there already is refused, and with it whatever it would have added. Count
and sum of a roll-up are added to, which commutes; its lowest and highest value are set where a point lies
beyond them, on the condition that they are still to be moved. What was seen of them once is enough to add
a value that lies between without a read, on the condition that it still does: they move together only
where a point is corrected (`correcting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from isotone.errors import AlreadyExists, Contended, TransactionFailed
from isotone.model import Steps, Transaction
from isotone.structures.retries import retry_on_conflict
from isotone.structures.time_series.entries import (
    Point,
    Summary,
    TimeSeriesPoint,
    TimeSeriesRollUp,
    gathered,
)
from isotone.structures.time_series.plan import Plan, Shard
from isotone.structures.windows import floor

TOGETHER: Final = 90  # entries of a transaction, which takes a hundred
_SEEN: Final = 8192  # roll-ups and buckets that are kept in mind
_ADVICE: Final = (
    "add points in larger numbers, give the time series more shards, or try again later"
)

Range = tuple[Decimal, Decimal]
"""A lowest and a highest value."""


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
    group, windows = list[TimeSeriesPoint](), set[tuple[timedelta, datetime]]()
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
    series, bucket = group[0].series, group[0].bucket
    shard, pending = Shard(plan, series, group[0].shard), group

    def attempt() -> Steps[int]:
        nonlocal pending
        summaries = _summed(plan, pending)
        together = plan.calls.transaction()
        try:
            for point in pending:
                together.create(point)
            yield from _list_bucket(plan, together, series, bucket)
            ranges = yield from _roll_up(shard, together, summaries)
            yield from together.commit()
        except (TransactionFailed, Contended) as refused:
            failures = refused.failures if isinstance(refused, TransactionFailed) else {}
            there = {at for at, why in failures.items() if isinstance(why, AlreadyExists)}
            pending = [each for place, each in enumerate(pending) if place not in there]
            if not pending:
                return 0
            for each in summaries:
                plan.seen.pop((shard, each.every, each.start), None)
            plan.seen.pop((series, bucket), None)
            raise
        if len(plan.seen) > _SEEN:
            plan.seen.clear()
        plan.seen.update({(series, bucket): None, **ranges})
        return len(pending)

    return (yield from retry_on_conflict(attempt, repr(series), _ADVICE))


def _summed(plan: Plan, points: Sequence[TimeSeriesPoint]) -> list[Summary]:
    """What the points add to each of their windows, those apart that are not kept any longer."""
    ones = [point.summary for point in points]
    return [
        each
        for every, keep in plan.roll_ups.items()
        for each in gathered(ones, every, floor(points[0].at, every))
        if not plan.is_over(each.start + every, keep)
    ]


def _list_bucket(plan: Plan, together: Transaction, series: str, bucket: datetime) -> Steps[None]:
    """Have a bucket listed, where it is not known to be."""
    if (series, bucket) in plan.seen:
        return
    # The newest up to it: an older one also shows whether the series is declared as it was.
    query = plan.buckets_of(series, end=bucket + plan.bucket).reversed()
    found = yield from plan.calls.first(query.consistent())
    if found is None or plan.own(found).bucket != bucket:
        together.create(plan.listing(series, bucket))


def _roll_up(
    shard: Shard, together: Transaction, summaries: Sequence[Summary]
) -> Steps[dict[object, Range]]:
    """Have the summaries added to their roll-ups, and give the ranges of these as they are then.

    Those that may have to be begun or widened are read.
    """
    plan, unknown = shard.plan, list[Summary]()
    ranges: dict[object, Range] = {}
    for each in summaries:
        known = plan.seen.get((shard, each.every, each.start))
        if known is not None and known[0] <= each.range[0] and each.range[1] <= known[1]:
            _add_up(shard, together, each, known)
            ranges[shard, each.every, each.start] = known
        else:
            unknown.append(each)
    keys = [shard.key(each.every, each.start) for each in unknown]
    found = yield from plan.calls.get_many(plan.summaries, keys, consistent=True)
    for each, there in zip(unknown, found, strict=True):
        if there is None:
            together.create(shard.roll_up(each))
            ranges[shard, each.every, each.start] = each.range
        else:
            known = there.lowest, there.highest
            ranges[shard, each.every, each.start] = _add_up(shard, together, each, known)
    return ranges


def _add_up(shard: Shard, together: Transaction, summary: Summary, known: Range) -> Range:
    """Add to a roll-up whose values lie in a range, if they do still; gives its range after that."""
    kind, (lowest, highest) = TimeSeriesRollUp, summary.range
    changes = [kind.count.add(summary.count), kind.total.add(summary.total), kind.changes.add(1)]
    if lowest < known[0]:
        changes.append(kind.lowest.set(lowest))
        when = kind.lowest > lowest
    else:
        when = kind.lowest <= lowest
    if highest > known[1]:
        changes.append(kind.highest.set(highest))
        when &= kind.highest < highest
    else:
        when &= kind.highest >= highest
    key = shard.key(summary.every, summary.start)
    together.update(shard.plan.summaries, *changes, when=when, **key)
    return min(lowest, known[0]), max(highest, known[1])
