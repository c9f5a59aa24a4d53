"""How a point is corrected or taken back, and its roll-ups with it, in one transaction.

Count and sum are added to. Where the point was the lowest or the highest of a window, the next one is found by
reading the window's points, and the transaction insists that nothing was written there meanwhile.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from isotone.errors import Contended, TransactionFailed, UsageError
from isotone.model.calls import Calls
from isotone.model.declaring.conditions import all_of
from isotone.model.steps import Steps
from isotone.model.writing.carrying import pause_after
from isotone.model.writing.transactions import Transaction
from isotone.structures.exact import added
from isotone.structures.time_series.entries import TimeSeriesPoint, TimeSeriesRollUp, floor
from isotone.structures.time_series.reading import equal
from isotone.structures.time_series.writing import ATTEMPTS, PATIENCE, Plan


class TimeSeriesCorrecting:
    """The steps that change what is there already."""

    def __init__(self, calls: Calls, plan: Plan) -> None:
        self._calls = calls
        self._plan = plan

    def correct(
        self, series: str, shard: int, at: datetime, name: str, value: Decimal | None
    ) -> Steps[bool]:
        """Give a point another value, or None to take it back; whether it was there."""
        plan, kind = self._plan, TimeSeriesPoint
        key = {**plan.point_place(series, floor(at, plan.bucket), shard), "at": at, "id": name}
        for number in range(ATTEMPTS):
            point = yield from self._calls.get(plan.points, consistent=True, **key)
            if point is None or point.value == value:
                return point is not None
            together, same = self._calls.transaction(), kind.value == point.value
            if value is None:
                together.delete(plan.points, when=same, **key)
            else:
                together.update(plan.points, kind.value.set(value), when=same, **key)
            try:
                for every in plan.roll_ups:
                    yield from self._roll_up(together, point, value, every)
                yield from together.commit()
            except (TransactionFailed, Contended):
                yield pause_after(min(number, PATIENCE))
            else:
                return True
        raise Contended(
            f"others wrote {series!r} during each of {ATTEMPTS} attempts; try again later"
        )

    def _roll_up(
        self, together: Transaction, point: TimeSeriesPoint, value: Decimal | None, every: timedelta
    ) -> Steps[None]:
        plan, kind, old = self._plan, TimeSeriesRollUp, point.value
        start = floor(point.at, every)
        key = plan.roll_up_key(point.series, every, point.shard, start)
        known = yield from self._calls.get(plan.summaries, consistent=True, **key)
        if known is None:
            return  # it is not kept any longer
        if known.count == 1 and value is None:
            together.delete(plan.summaries, when=kind.changes == known.changes, **key)
            return
        less = -1 if value is None else 0
        difference = added(value or Decimal(0), -old)
        changes = [kind.count.add(less), kind.total.add(difference), kind.changes.add(1)]
        new = old if value is None else value
        if known.lowest < old < known.highest and known.lowest <= new <= known.highest:
            low, high = min(old, new), max(old, new)
            still = (
                kind.lowest < old,
                kind.highest > old,
                kind.lowest <= low,
                kind.highest >= high,
            )
            together.update(plan.summaries, *changes, when=all_of(still), **key)
            return
        left = yield from self._others(point, start, every)
        left += [] if value is None else [value]
        changes += [kind.lowest.set(min(left)), kind.highest.set(max(left))]
        together.update(plan.summaries, *changes, when=kind.changes == known.changes, **key)

    def _others(
        self, point: TimeSeriesPoint, start: datetime, every: timedelta
    ) -> Steps[list[Decimal]]:
        """The values of the other points of a window, in the shard of a point."""
        plan, kind = self._plan, TimeSeriesPoint
        now = datetime.fromtimestamp(self._calls.clock.now(), UTC)
        if plan.keep is not None and start <= now - plan.keep:
            raise UsageError(
                f"the value at {point.at} is the lowest or the highest since {start}, and the next one is no "
                "longer known: points of that window have expired"
            )
        found: list[Decimal] = []
        bucket = floor(start, plan.bucket)
        while bucket < start + every:
            place = equal(kind, plan.point_place(point.series, bucket, point.shard))
            query = plan.points.primary.where(*place, kind.at >= start, kind.at < start + every)
            points = yield from self._calls.all(query.consistent())
            found += [each.value for each in points if (each.at, each.id) != (point.at, point.id)]
            bucket += plan.bucket
        return found
