"""What changes points that are there, and what makes roll-ups of them.

Both recount windows. They read the roll-up first and then its points, and write what these come to on the
condition that the roll-up has not changed: whoever adds a point meanwhile changes it in the same
transaction, so none is left out or counted twice. A correction of a value that was neither the lowest nor
the highest needs no recount: count and sum are added to.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from isotone.errors import UsageError
from isotone.model import Query, Steps, Transaction, all_of
from isotone.structures.exact import added
from isotone.structures.retries import retry_on_conflict
from isotone.structures.time_series.entries import (
    Summary,
    TimeSeriesPoint,
    TimeSeriesRollUp,
    gathered,
)
from isotone.structures.time_series.plan import PER_BUCKET, Plan, Shard, Span
from isotone.structures.time_series.writing import TOGETHER
from isotone.structures.windows import floor, instant

Progress = Callable[[datetime, int], None]
"""Told up to where it is done, and how many roll-ups were written."""

_ADVICE: Final = "try again later"
_ADVICE_ON_HOT: Final = (
    "recount from a finer resolution, with source=, or when the window is over; go on with start="
)


# A point


def correct(plan: Plan, place: TimeSeriesPoint, value: Decimal | None) -> Steps[bool]:
    """Give the point of a place another value, or None to take it back; whether it was there."""
    kind, shard = TimeSeriesPoint, Shard(plan, place.series, place.shard)
    key = {**shard.place(place.bucket), "at": place.at, "id": place.id}

    def attempt() -> Steps[bool]:
        point = yield from plan.calls.get(plan.points, consistent=True, **key)
        if point is None or point.value == value:
            return point is not None
        together, same = plan.calls.transaction(), kind.value == point.value
        if value is None:
            together.delete(plan.points, when=same, **key)
        else:
            together.update(plan.points, kind.value.set(value), when=same, **key)
        for every in plan.roll_ups:
            yield from _correct_roll_up(shard, together, point, value, every)
        yield from together.commit()
        return True

    return (yield from retry_on_conflict(attempt, repr(place.series), _ADVICE))


def _correct_roll_up(
    shard: Shard,
    together: Transaction,
    point: TimeSeriesPoint,
    value: Decimal | None,
    every: timedelta,
) -> Steps[None]:
    plan, kind, old, start = shard.plan, TimeSeriesRollUp, point.value, floor(point.at, every)
    key = shard.key(every, start)
    known = yield from plan.calls.get(plan.summaries, consistent=True, **key)
    if known is None:
        return  # it is not kept any longer
    new = old if value is None else value
    if known.lowest < old < known.highest and known.lowest <= new <= known.highest:
        low, high = min(old, new), max(old, new)
        still = kind.lowest < old, kind.highest > old, kind.lowest <= low, kind.highest >= high
        changes = [
            kind.count.add(-1 if value is None else 0),
            kind.total.add(added(value or Decimal(0), old.copy_negate())),
            kind.changes.add(1),
        ]
        together.update(plan.summaries, *changes, when=all_of(still), **key)
        return
    left: list[Summary] = []
    if known.count > 1:
        if plan.is_over(start, plan.keep):
            raise UsageError(
                f"the value at {point.at} is the lowest or the highest since {start}, and the next one is no "
                "longer known: points of that window have expired"
            )
        left = yield from _recounted(shard, every, (start, start + every), but=point)
    if value is not None:
        one = Summary(start, every, 1, value, value, value)
        left = gathered([*left, one], every, start)
    if left:
        _put(shard, together, known, left[0])
    else:
        together.delete(plan.summaries, when=kind.changes == known.changes, **key)


# A resolution


def back_fill(
    plan: Plan,
    series: str,
    every: timedelta,
    source: timedelta | None,
    start: datetime | None,
    end: datetime | None,
    progress: Progress | None,
) -> Steps[int]:
    """Recount the windows of a resolution of which everything is kept; how many roll-ups were written."""
    oldest = yield from plan.calls.first(plan.buckets_of(series))
    newest = yield from plan.calls.first(plan.buckets_of(series).reversed())
    if oldest is None or newest is None:
        return 0
    for listed in (oldest, newest):
        plan.own(listed)
    at, end = floor(start or oldest.bucket, every), instant(end or newest.bucket + plan.bucket)
    partition = plan.bucket if source is None else source * PER_BUCKET
    length = every * max(1, min(TOGETHER, partition // every))
    written = 0
    while at < end:
        if source is None:  # buckets without points are passed over
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
            known |= {each.start: each for each in (yield from plan.calls.all(query.consistent()))}
        there = [each.summary for each in known.values()]
        found = yield from _recounted(shard, every, span, source)
        wrong = [each for each in found if each not in there and _is_whole(plan, each, source)]
        together = plan.calls.transaction()
        for each in wrong:
            _put(shard, together, known.get(each.start), each)
        yield from together.commit()
        return len(wrong)

    return (yield from retry_on_conflict(attempt, repr(shard.series), _ADVICE_ON_HOT))


def _is_whole(plan: Plan, window: Summary, source: timedelta | None) -> bool:
    """Whether all that a window is recounted from is still kept, and its roll-up is too."""
    if plan.is_over(window.start + window.every, plan.roll_ups[window.every]):
        return False
    if source is None:
        return not plan.is_over(window.start, plan.keep)
    return not plan.is_over(window.start + source, plan.roll_ups[source])


def _recounted(
    shard: Shard,
    every: timedelta,
    span: Span,
    source: timedelta | None = None,
    but: TimeSeriesPoint | None = None,
) -> Steps[list[Summary]]:
    """What the points of a span, or finer roll-ups, come to. Cost: a consistent read of all of them."""
    calls, found = shard.plan.calls, list[Summary]()
    queries: list[Query[Any]] = []
    if source is not None:
        queries += shard.roll_ups(source, span)
    else:
        listed = shard.plan.buckets_of(shard.series, *span).consistent()
        queries += [shard.points(each.bucket, span) for each in (yield from calls.all(listed))]
    for query in queries:
        reading = calls.traverse(query.consistent())
        while not reading.is_over:
            some = yield from reading.step()
            parts = [each.summary for each in some if each != but]
            found = gathered([*found, *parts], every, span[0])
    return found


def _put(
    shard: Shard, together: Transaction, known: TimeSeriesRollUp | None, summary: Summary
) -> None:
    """Have a roll-up say what was counted, if it is still as it was read."""
    if known is None:
        together.create(shard.roll_up(summary))
        return
    kind, (lowest, highest) = TimeSeriesRollUp, summary.range
    together.update(
        shard.plan.summaries,
        kind.count.set(summary.count),
        kind.total.set(summary.total),
        kind.lowest.set(lowest),
        kind.highest.set(highest),
        kind.changes.add(1),
        when=kind.changes == known.changes,
        **shard.key(summary.every, summary.start),
    )
