"""The ten fastest drive-throughs of this quarter of an hour, and a day's data from 4 am to 4 am.

Show a restaurant chain which stores serve fastest. Every car is a row of its store, ordered by time, so any
fifteen minutes are one range, and so is a business day. The leaderboard has one item for each store. Its index
key is the date, the quarter of an hour, counted from midnight, and the average time from order to delivery, with
six digits: the ten fastest are the first ten entries. If one partition cannot take the writes, the board can be
spread over several, with the same results.

    python examples/18_speed_of_service.py [ADDRESS]
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import isotone
from isotone import Attr, Entity, Key, Query, Store, Table, field, raw, written
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.structures import Leaderboard, ScoreEvent, Standings, Windows

cars = Table("drive-through-cars")
boards = Leaderboard.layout("speed-of-service")

NEW_YORK = ZoneInfo("America/New_York")
DAY = date(2022, 8, 13)
STORES = [f"{number:06}" for number in range(1, 25)]


class Car(Entity, table=cars):
    """A car that was served: seconds at the menus, in the queues after them, and at the window."""

    store_id: Attr[str] = field()
    at: Attr[datetime] = field()  # in UTC; `LANE2` may be as fast
    lane: Attr[str] = field()
    menu1: Attr[int] = field()
    menu2: Attr[int] = field()
    qmenu1: Attr[int] = field()
    qmenu2: Attr[int] = field()
    window: Attr[int] = field()
    cars: Attr[int] = field(default=1)

    primary = Key(raw(store_id)).sort(written(at, "%Y-%m-%d %H:%M:%S"), raw(lane))

    @property
    def seconds(self) -> int:
        return self.menu1 + self.menu2 + self.qmenu1 + self.qmenu2 + self.window


def served(store_id: str, begin: datetime, end: datetime, chance: random.Random) -> Iterator[Car]:
    """The cars of a store, one in each lane every few minutes; some stores are faster than others."""
    speed = 20 + int(store_id) * 7 % 11
    for lane in ("LANE1", "LANE2"):
        at = begin
        while at < end:
            seconds = [chance.randint(speed, speed + 20) for _ in range(5)]
            menu1, menu2, qmenu1, qmenu2, window = seconds
            yield Car(
                store_id=store_id,
                at=at,
                lane=lane,
                menu1=menu1,
                menu2=menu2,
                qmenu1=qmenu1,
                qmenu2=qmenu2,
                window=window,
            )
            at += timedelta(seconds=chance.randint(180, 420))


def generated() -> list[Car]:
    """More than a day of the first store, and half an hour of the night of all others."""
    chance = random.Random(18)
    begin = datetime.combine(DAY, time(4), NEW_YORK).astimezone(UTC)
    first = list(served("000001", begin - timedelta(hours=8), begin + timedelta(hours=25), chance))
    early = datetime.combine(DAY, time(0, 30), NEW_YORK).astimezone(UTC)
    others = [
        car
        for store_id in STORES[1:]
        for car in served(store_id, early, early + timedelta(minutes=30), chance)
    ]
    return first + others


def between(store_id: str, start: datetime, end: datetime) -> Query[Car]:
    return Car.primary.where(Car.store_id == store_id, Car.at >= start, Car.at < end)


def average(of: Iterable[Car]) -> str:
    found = list(of)
    return f"{sum(car.seconds for car in found) / sum(car.cars for car in found):.1f} s"


def show(found: Standings) -> None:
    """Stores of the same rank in the order of their numbers."""
    for each in sorted(found, key=lambda each: (each.rank, each.member)):
        print(f"{each.rank:>2}  {each.member}  {each.score} s  {each.count} cars")


# What many users would do: isotone simulate 18_speed_of_service
load = Workload("drive-throughs", tables=[cars, boards])
restaurants = load.population("store", 8_000)


def now(call: WorkloadCall) -> datetime:
    return datetime.fromtimestamp(int(call.clock.now()), UTC)


@load.prepare
def open_the_board(store: Store) -> Leaderboard:
    return Leaderboard(
        store, score="average", best="lowest", window="quarter-hour", zone=NEW_YORK, table=boards
    )


@load.action(by=restaurants, per_hour=20)
def serve(call: WorkloadCall) -> None:
    menu1, menu2, qmenu1, qmenu2, window = (call.chance.randint(20, 40) for _ in range(5))
    car = Car(
        store_id=call.member.id,
        at=now(call),
        lane="LANE1",
        menu1=menu1,
        menu2=menu2,
        qmenu1=qmenu1,
        qmenu2=qmenu2,
        window=window,
    )
    call.store.put(car)
    call.world.record(car.store_id, car.seconds, count=car.cars, at=car.at)


@load.action(by=restaurants, per_hour=4)
def show_the_fastest(call: WorkloadCall) -> None:
    call.world.top(10, at=now(call))


def main(address: str = ":memory:") -> None:
    quarters = Windows("quarter-hour", zone=NEW_YORK)  # of the calendar day
    whole = Windows("day", day_starts=time(4), zone=NEW_YORK).day(DAY)
    early = quarters.day(DAY).start + timedelta(minutes=30)
    everything = generated()
    with isotone.connect(address) as store:
        store.create_tables(cars, boards)
        store.put_many(everything)

        print("Cars of store 000001 at midnight in UTC, in the order of their keys")
        midnight = datetime(2022, 8, 13, tzinfo=UTC)
        night = between("000001", midnight, midnight + timedelta(minutes=9))
        isotone.show(store.all(night), by=Car.primary)

        print("\nFifteen minutes, by one range")
        quarter = quarters.at(early)
        page = store.page(between("000001", quarter.start, quarter.end), size=100)
        print(f"{page.stats.scanned} items read, {len(page)} cars")
        print(f"from order to delivery: {average(page)}")

        print(f"\nThe file of {DAY}, from 4 am to 4 am in New York, by one range")
        day = between("000001", whole.start, whole.end)
        condition = day.request()["ExpressionAttributeValues"]
        print(f"above {condition[':v1']['S']}, below {condition[':v2']['S']}")
        page = store.page(day, size=1000)
        print(f"{page.stats.scanned} items read, {len(page)} cars")
        print(f"from order to delivery: {average(page)}")

        board = Leaderboard(
            store,
            score="average",
            best="lowest",
            window="quarter-hour",
            zone=NEW_YORK,
            table=boards,
        )
        sharded = Leaderboard(
            store,
            "sharded",
            shards=4,
            score="average",
            best="lowest",
            window="quarter-hour",
            zone=NEW_YORK,
            table=boards,
        )
        for each in (board, sharded):
            for store_id in STORES:  # from an earlier run
                each.remove(store_id, at=early)
        first = [car for car in everything if quarters.at(car.at) == quarter]
        for each in (board, sharded):
            for car in first[:8]:  # one by one, as they arrive
                each.record(car.store_id, car.seconds, count=car.cars, at=car.at)
            each.record_many(
                ScoreEvent(car.store_id, car.seconds, car.cars, car.at) for car in first[8:]
            )

        print(f"\nThe ten fastest stores of quarter {quarter.label}")
        (query,) = board.queries(at=early)
        entry = board.board.entries
        some = query.select(entry.order, entry.member, entry.total, entry.count).limit(10)
        entries = sorted(store.all(some), key=lambda each: (each.order, each.member))
        isotone.show(entries, by=entry.by_score)
        ten = board.top(10, at=early)
        print(f"{ten.stats.scanned} items read, {ten.stats.requests} request")

        print("\nTheir ranks")
        show(ten)

        print("\nThe same from four partitions")
        also = sharded.top(10, at=early)
        show(also)
        print(f"at most 40 items read: {also.stats.scanned <= 40}, {also.stats.requests} requests")

        print("\nThe next ten, after the cursor")
        show(sharded.top(10, cursor=also.cursor))

        print("\nStore 000013 between its neighbours")
        near = sorted(board.around("000013", 1, at=early), key=lambda each: each.rank)
        print(" < ".join(f"{each.member} ({each.score} s)" for each in near))

        print("\nIn the next quarter every store starts again")
        later = early + timedelta(minutes=15)
        second = [car for car in everything if quarters.at(car.at) == quarters.at(later)]
        events = [ScoreEvent(car.store_id, car.seconds, car.cars, car.at) for car in second]
        board.record_many(events[:20])
        print(f"{board.top(at=later).window}: {board.count(at=later)} stores")
        print(f"{board.top(at=early).window}: {board.count(at=early)} stores")


if __name__ == "__main__":
    main(*sys.argv[1:])
