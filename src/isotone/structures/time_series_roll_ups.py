"""Adds, corrects and recounts points of a time series, together with their roll-ups.

A point and its roll-ups are written in one transaction, which fails if the point exists. A point adds to the count and
the sum of a roll-up, in any order. It sets the lowest or highest value if it is outside the range, on the condition
that it still is. Values inside a cached range are added without a read, on the condition that the range is still valid:
a range shrinks only when a point is corrected.

Corrections and back-fills recount windows. They read the roll-up first and its points after that, and write the result
on the condition that the roll-up has not changed. A point that is added meanwhile changes the roll-up in its own
transaction, so no point is left out or counted twice. Correcting a value that was neither the lowest nor the highest
needs no recount.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from isotone.errors import AlreadyExists, Contended, TransactionFailed, UsageError
from isotone.model import Calls, Entity, Query, Steps, Transaction, all_of, capabilities_of
from isotone.structures.exact_numbers import added
from isotone.structures.time_series_points import (
    PER_BUCKET,
    Point,
    SeriesDeclaration,
    Shard,
    Span,
    Summary,
    TimeSeriesPoint,
    TimeSeriesRollUp,
    regroup,
)
from isotone.structures.time_windows import floor, instant
from isotone.structures.waits_and_retries import retry_on_conflict

Progress = Callable[[datetime, int], None]
"""Called with the time that the work has reached, and the number of roll-ups written."""
Range = tuple[Decimal, Decimal]
"""A lowest and a highest value."""

_MAX_TOGETHER: Final = 90  # entries of a transaction; the limit is a hundred
_ADVICE: Final = "try again later"
_ADVICE_ON_ADDING: Final = (
    "add points in larger numbers, give the time series more shards, or try again later"
)
_ADVICE_ON_RECOUNTING: Final = "recount from a finer resolution, with source=, or when the window is over; continue with start="


# Adding


def add(plan: SeriesDeclaration, series: str, points: Iterable[Point]) -> Steps[int]:
    """Write the points that do not exist yet; returns how many."""
    added = 0
    for group in _groups(plan, series, points):
        added += yield from _add(plan, group)
    return added


def _groups(
    plan: SeriesDeclaration, series: str, points: Iterable[Point]
) -> Iterable[list[TimeSeriesPoint]]:
    """The points, without repeated and expired ones, in groups for one transaction."""
    chosen: dict[tuple[datetime, int, datetime, str], TimeSeriesPoint] = {}
    for point in (plan.point(series, given) for given in points):
        if not plan.has_expired(point.at, plan.keep):
            chosen.setdefault((point.bucket, point.shard, point.at, point.id), point)
    group, windows = list[TimeSeriesPoint](), set[tuple[timedelta, datetime]]()
    for (bucket, shard, at, _), point in sorted(chosen.items(), key=lambda item: item[0]):
        its = {(every, floor(at, every)) for every in plan.roll_ups}
        is_full = len(group) + 1 + len(windows | its) > _MAX_TOGETHER
        if group and (is_full or (group[0].bucket, group[0].shard) != (bucket, shard)):
            yield group
            group, windows = [], set()
        group.append(point)
        windows |= its
    if group:
        yield group


def _add(plan: SeriesDeclaration, group: Sequence[TimeSeriesPoint]) -> Steps[int]:
    """Write the points of one partition that do not exist yet; returns how many."""
    series, bucket = group[0].series, group[0].bucket
    if not plan.roll_ups and not (yield from capabilities_of(plan.calls.engine)).transactions:
        return (yield from _add_one_by_one(plan, group))
    shard, pending = Shard(plan, series, group[0].shard), group

    def attempt() -> Steps[int]:
        nonlocal pending
        summaries = _summed(plan, pending)
        tx = plan.calls.transaction()
        try:
            for point in pending:
                tx.create(point)
            if not (yield from _is_listed(plan, series, bucket)):
                tx.create(plan.listing(series, bucket))
            ranges = yield from _roll_up(shard, tx, summaries)
            yield from tx.commit()
        except (TransactionFailed, Contended) as refused:
            reasons = refused.reasons if isinstance(refused, TransactionFailed) else {}
            existing = {place for place, why in reasons.items() if isinstance(why, AlreadyExists)}
            pending = [point for place, point in enumerate(pending) if place not in existing]
            if not pending:
                return 0
            for summary in summaries:
                plan.seen.pop((shard, summary.every, summary.start), None)
            plan.seen.pop((series, bucket), None)
            raise
        plan.remember({series: None, (series, bucket): None, **ranges})
        return len(pending)

    return (yield from retry_on_conflict(attempt, repr(series), _ADVICE_ON_ADDING))


def _summed(plan: SeriesDeclaration, points: Sequence[TimeSeriesPoint]) -> list[Summary]:
    """What the points add to each window that has not expired."""
    ones = [point.summary for point in points]
    return [
        summary
        for every, keep in plan.roll_ups.items()
        for summary in regroup(ones, every, floor(points[0].at, every))
        if not plan.has_expired(summary.start + every, keep)
    ]


def _add_one_by_one(plan: SeriesDeclaration, group: Sequence[TimeSeriesPoint]) -> Steps[int]:
    """Write points without roll-ups one by one. The bucket is listed first, so that reads find it."""
    series, bucket = group[0].series, group[0].bucket
    if not (yield from _is_listed(plan, series, bucket)):
        yield from _create(plan, plan.listing(series, bucket))
    plan.remember({series: None, (series, bucket): None})
    added = 0
    for point in group:
        added += yield from _create(plan, point)
    return added


def _create(plan: SeriesDeclaration, entity: Entity) -> Steps[bool]:
    """Write an entity unless it exists; returns whether it is new."""
    try:
        yield from plan.calls.create(entity)
    except AlreadyExists:
        return False
    return True


def _is_listed(plan: SeriesDeclaration, series: str, bucket: datetime) -> Steps[bool]:
    """Whether a bucket is in the list of buckets."""
    if (series, bucket) in plan.seen:
        return True
    # The newest one up to the bucket: an older bucket also shows whether the layout has changed.
    query = plan.buckets_of(series, end=bucket + plan.bucket).reversed()
    newest = yield from plan.calls.first(query.consistent())
    return newest is not None and plan.check_layout(newest).bucket == bucket


def _roll_up(
    shard: Shard, tx: Transaction, summaries: Sequence[Summary]
) -> Steps[dict[object, Range]]:
    """Add the summaries to their roll-ups; returns the new ranges.

    Reads the roll-ups that may have to be created or widened.
    """
    plan, unknown = shard.plan, list[Summary]()
    ranges: dict[object, Range] = {}
    for summary in summaries:
        place = (shard, summary.every, summary.start)
        seen = plan.seen.get(place)
        if seen is not None and seen[0] <= summary.range[0] and summary.range[1] <= seen[1]:
            ranges[place] = _add_up(shard, tx, summary, seen)
        else:
            unknown.append(summary)
    keys = [shard.key(summary.every, summary.start) for summary in unknown]
    stored = yield from plan.calls.get_many(plan.summaries, keys, consistent=True)
    for summary, roll_up in zip(unknown, stored, strict=True):
        place = (shard, summary.every, summary.start)
        if roll_up is None:
            tx.create(shard.roll_up(summary))
            ranges[place] = summary.range
        else:
            ranges[place] = _add_up(shard, tx, summary, (roll_up.lowest, roll_up.highest))
    return ranges


def _add_up(shard: Shard, tx: Transaction, summary: Summary, known: Range) -> Range:
    """Add to a roll-up, if its range is still `known`; returns the new range."""
    kind, (lowest, highest) = TimeSeriesRollUp, summary.range
    changes = [kind.count.add(summary.count), kind.total.add(summary.total), kind.revision.add(1)]
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
    tx.update(shard.plan.summaries, *changes, when=when, **key)
    return min(lowest, known[0]), max(highest, known[1])


# Correcting


def correct(plan: SeriesDeclaration, place: TimeSeriesPoint, value: Decimal | None) -> Steps[bool]:
    """Set a point's value, or delete it with None; returns whether it existed."""
    yield from plan.check_series(place.series)
    kind, shard = TimeSeriesPoint, Shard(plan, place.series, place.shard)
    key = {**shard.place(place.bucket), "at": place.at, "id": place.id}

    def attempt() -> Steps[bool]:
        point = yield from plan.calls.get(plan.points, consistent=True, **key)
        if point is None or point.value == value:
            return point is not None
        same = kind.value == point.value
        if not plan.roll_ups:
            yield from _corrected(plan.calls, plan, value, when=same, **key)
            return True
        tx = plan.calls.transaction()
        _corrected(tx, plan, value, when=same, **key)
        for every in plan.roll_ups:
            yield from _correct_roll_up(shard, tx, point, value, every)
        yield from tx.commit()
        return True

    return (yield from retry_on_conflict(attempt, repr(place.series), _ADVICE))


def _corrected(
    to: Calls | Transaction, plan: SeriesDeclaration, value: Decimal | None, **where: Any
) -> Any:
    """The write of a point: `to` is the calls, which return its steps, or a transaction, which collects it."""
    if value is None:
        return to.delete(plan.points, **where)
    return to.update(plan.points, TimeSeriesPoint.value.set(value), **where)


def _correct_roll_up(
    shard: Shard,
    tx: Transaction,
    point: TimeSeriesPoint,
    value: Decimal | None,
    every: timedelta,
) -> Steps[None]:
    plan, kind, old, start = shard.plan, TimeSeriesRollUp, point.value, floor(point.at, every)
    key = shard.key(every, start)
    known = yield from plan.calls.get(plan.summaries, consistent=True, **key)
    if known is None:
        return  # it has expired
    new = old if value is None else value
    if known.lowest < old < known.highest and known.lowest <= new <= known.highest:
        low, high = min(old, new), max(old, new)
        still = kind.lowest < old, kind.highest > old, kind.lowest <= low, kind.highest >= high
        changes = [
            kind.count.add(-1 if value is None else 0),
            kind.total.add(added(value or Decimal(0), old.copy_negate())),
            kind.revision.add(1),
        ]
        tx.update(plan.summaries, *changes, when=all_of(still), **key)
        return
    left: list[Summary] = []
    if known.count > 1:
        if plan.has_expired(start, plan.keep):
            raise UsageError(
                f"the value at {point.at} is the lowest or the highest since {start}, and cannot be changed: "
                "points of that window have expired, so the next one is unknown"
            )
        left = yield from _recounted(shard, every, (start, start + every), but=point)
    if value is not None:
        one = Summary(start, every, 1, value, value, value)
        left = regroup([*left, one], every, start)
    if left:
        _put(shard, tx, known, left[0])
    else:
        tx.delete(plan.summaries, when=kind.revision == known.revision, **key)


# Back-filling


def back_fill(
    plan: SeriesDeclaration,
    series: str,
    every: timedelta,
    source: timedelta | None,
    start: datetime | None,
    end: datetime | None,
    progress: Progress | None,
) -> Steps[int]:
    """Recount the complete windows of a resolution; returns how many roll-ups were written."""
    oldest = yield from plan.calls.first(plan.buckets_of(series))
    newest = yield from plan.calls.first(plan.buckets_of(series).reversed())
    if oldest is None or newest is None:
        return 0
    for listed in (oldest, newest):
        plan.check_layout(listed)
    at, end = floor(start or oldest.bucket, every), instant(end or newest.bucket + plan.bucket)
    partition = plan.bucket if source is None else source * PER_BUCKET
    length = every * max(1, min(_MAX_TOGETHER, partition // every))
    written = 0
    while at < end:
        if source is None:  # skip buckets without points
            following = yield from plan.calls.first(plan.buckets_of(series, at, end))
            if following is None:
                break
            at = max(at, floor(following.bucket, every))
        for shard in plan.shards_of(series):
            written += yield from _fill(shard, every, (at, at + length), source)
        at += length
        if progress is not None:
            progress(at, written)
    return written


def _fill(shard: Shard, every: timedelta, span: Span, source: timedelta | None) -> Steps[int]:
    """Recount the windows of a span in one shard, and write those that are wrong."""
    plan = shard.plan

    def attempt() -> Steps[int]:
        known: dict[datetime, TimeSeriesRollUp] = {}
        for query in shard.roll_ups(every, span):
            stored = yield from plan.calls.all(query.consistent())
            known |= {roll_up.start: roll_up for roll_up in stored}
        present = [roll_up.summary for roll_up in known.values()]
        right = yield from _recounted(shard, every, span, source)
        missing = [window for window in right if window not in present]
        wrong = [window for window in missing if _is_complete(plan, window, source)]
        tx = plan.calls.transaction()
        for window in wrong:
            _put(shard, tx, known.get(window.start), window)
        yield from tx.commit()
        return len(wrong)

    return (yield from retry_on_conflict(attempt, repr(shard.series), _ADVICE_ON_RECOUNTING))


def _is_complete(plan: SeriesDeclaration, window: Summary, source: timedelta | None) -> bool:
    """Whether the window's roll-up and all its sources have not expired."""
    if plan.has_expired(window.start + window.every, plan.roll_ups[window.every]):
        return False
    if source is None:
        return not plan.has_expired(window.start, plan.keep)
    return not plan.has_expired(window.start + source, plan.roll_ups[source])


def _recounted(
    shard: Shard,
    every: timedelta,
    span: Span,
    source: timedelta | None = None,
    but: TimeSeriesPoint | None = None,
) -> Steps[list[Summary]]:
    """The summaries of a span's points, or finer roll-ups. Cost: a consistent read of all of them."""
    calls, windows = shard.plan.calls, list[Summary]()
    queries: list[Query[Any]] = []
    if source is not None:
        queries += shard.roll_ups(source, span)
    else:
        listed = shard.plan.buckets_of(shard.series, *span).consistent()
        buckets = yield from calls.all(listed)
        queries += [shard.points(listing.bucket, span) for listing in buckets]
    for query in queries:
        reading = calls.traverse(query.consistent())
        while not reading.is_over:
            items = yield from reading.step()
            parts = [item.summary for item in items if item != but]
            windows = regroup([*windows, *parts], every, span[0])
    return windows


def _put(shard: Shard, tx: Transaction, known: TimeSeriesRollUp | None, summary: Summary) -> None:
    """Set a roll-up to the new count, if it has not changed since it was read."""
    if known is None:
        tx.create(shard.roll_up(summary))
        return
    kind, (lowest, highest) = TimeSeriesRollUp, summary.range
    tx.update(
        shard.plan.summaries,
        kind.count.set(summary.count),
        kind.total.set(summary.total),
        kind.lowest.set(lowest),
        kind.highest.set(highest),
        kind.revision.add(1),
        when=kind.revision == known.revision,
        **shard.key(summary.every, summary.start),
    )
