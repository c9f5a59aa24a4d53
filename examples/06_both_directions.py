"""The newest first, the highest first: reading backwards, and storing backwards.

Show the newest readings and the highest scores first, page by page, forwards and back. `newest_first()` reads a
key from its end. `desc(...)` stores a field in reverse, for collections in which another kind must be in
ascending order. Both work with every type of key, and so do pages in both directions.

    python examples/06_both_directions.py [ADDRESS]
"""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import isotone
from isotone import (
    ULID,
    Attr,
    Binary,
    Entity,
    Global,
    Index,
    Key,
    Number,
    Query,
    Store,
    Table,
    desc,
    field,
)
from isotone.advisor.simulation import Workload, WorkloadCall

readings = Table("readings")
results = Table(
    "results",
    indexes={
        "number": Global("game", Number("points")),
        "binary": Global("game", Binary("badge")),
        "text": Global("game", "player"),
        "desc-integer": Global("game", "K1"),
        "desc-decimal": Global("game", "K2"),
        "desc-text": Global("game", "K3"),
        "desc-time": Global("game", "K4"),
        "desc-date": Global("game", "K5"),
        "desc-bytes": Global("game", "K6"),
        "desc-id": Global("game", "K7"),
    },
)


class Reading(Entity, table=readings):
    sensor: Attr[str] = field()
    at: Attr[datetime] = field(precision="seconds")
    celsius: Attr[Decimal] = field()

    primary = Key("SENSOR", sensor).sort("READING", at)


class Result(Entity, table=results):
    game: Attr[str] = field()
    player: Attr[str] = field()
    points: Attr[int] = field(max=999_999)
    seconds: Attr[Decimal] = field(max=999, scale=1, alert=1)
    badge: Attr[bytes] = field()
    ended: Attr[datetime] = field()
    day: Attr[date] = field()
    id: Attr[ULID] = field()

    primary = Key("GAME", game).sort("POINTS", desc(points), player)

    by_number = Index("number", game).sort(points)
    by_bytes = Index("binary", game).sort(badge)
    by_text = Index("text", game).sort(player)

    down_integer = Index("desc-integer", game).sort(desc(points))
    down_decimal = Index("desc-decimal", game).sort(desc(seconds))
    down_text = Index("desc-text", game).sort(desc(player))
    down_time = Index("desc-time", game).sort(desc(ended))
    down_date = Index("desc-date", game).sort(desc(day))
    down_bytes = Index("desc-bytes", game).sort(desc(badge))
    down_id = Index("desc-id", game).sort(desc(id))


NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
PLAYERS = ["ann", "bob", "cem", "dot", "eve", "fay", "gus"]


def results_of(game: str) -> list[Result]:
    """Seven players, each better than the one before in every respect."""
    return [
        Result(
            game=game,
            player=player,
            points=[2, 10, 99, 100, 157, 1_000, 9_999][place],
            seconds=Decimal(["2", "2.5", "9.9", "10", "10.1", "99", "100"][place]),
            badge=bytes([place, 255 - place]),
            ended=NOON + timedelta(minutes=place),
            day=date(2026, 1, 28) + timedelta(days=place),
            id=ULID(f"01ARZ3NDEKTSV4RRFFQ69G5FA{place}"),
        )
        for place, player in enumerate(PLAYERS)
    ]


PATTERNS = [
    *(Result.by_number, Result.by_bytes, Result.by_text),
    *(Result.down_integer, Result.down_decimal, Result.down_text, Result.down_time),
    *(Result.down_date, Result.down_bytes, Result.down_id),
]


# What many users would do: isotone simulate 06_both_directions
load = Workload("sensors", tables=[readings])
sensors = load.population("sensor", 500_000)


@load.action(by=sensors, per_minute=1)
def read(call: WorkloadCall) -> None:
    at = datetime.fromtimestamp(int(call.clock.now()), UTC)
    call.store.put(Reading(sensor=call.member.id, at=at, celsius=Decimal("20.5")))


@load.action(by=sensors, per_day=20)
def newest(call: WorkloadCall) -> None:
    call.store.page(Reading.primary.where(Reading.sensor == call.member.id).reversed(), size=10)


def main(address: str = ":memory:") -> None:
    with isotone.connect(address) as store:
        store.create_tables(readings, results)
        for minute, celsius in enumerate(["20.1", "20.4", "19.8", "20.0", "21.3"]):
            at = NOON + timedelta(minutes=minute)
            store.put(Reading(sensor="s1", at=at, celsius=Decimal(celsius)))
        store.put_many(results_of("chess"))

        print("Readings, the newest first: stored forwards, read backwards")
        newest = Reading.primary.where(Reading.sensor == "s1").newest_first()
        isotone.show(store.all(newest))

        print("\nResults, the highest first: stored backwards")
        best = Result.primary.where(Result.game == "chess")
        isotone.show(store.all(best.select(Result.game, Result.points, Result.player)))

        print("\nPages of three, to the end and back")
        for pattern in PATTERNS:
            query = pattern.where(Result.game == "chess")
            print(pattern)
            print("  highest first:", there_and_back(store, query.newest_first()))
            print("  lowest first: ", there_and_back(store, query.oldest_first()))


def there_and_back(store: Store, query: Query[Result]) -> str:
    """The players page by page to the last page, and then back."""
    page = store.page(query, size=3)
    seen = [page]
    while page.cursor is not None:
        page = store.page(query, size=3, cursor=page.cursor)
        seen.append(page)
    while page.previous is not None:
        page = store.page(query, size=3, cursor=page.previous)
        seen.append(page)
    return " | ".join(" ".join(each.player for each in page) for page in seen)


if __name__ == "__main__":
    main(*sys.argv[1:])
