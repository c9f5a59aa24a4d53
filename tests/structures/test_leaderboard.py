"""Leaderboards against a naive recount of all events."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import LONG, examples
from tests.intercepted_backend import InterceptedBackend, refuse_after
from tests.programs import CONTEXT
from tests.structures.measuring import Measured
from tests.structures.processes import EVENTS, record

import isotone
from isotone import Attr, Entity, Key, ManualClock, Store
from isotone.errors import (
    ConditionalCheckFailedException,
    ConnectionFailed,
    InvalidCursor,
    IsotoneError,
    OutOfRange,
    UsageError,
)
from isotone.model import Steps
from isotone.server import running_server
from isotone.structures import Leaderboard, ScoreEvent
from isotone.structures.leaderboard_entries import Digits

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)  # the time of the fixtures' clock
QUARTER = timedelta(minutes=15)

Row = tuple[int, str, Decimal]


def rows(standings: Any) -> list[Row]:
    return [(each.rank, each.member, each.score) for each in standings]


@dataclass
class Recount:
    """All events, counted anew for every question."""

    options: dict[str, Any]
    events: list[ScoreEvent] = field(default_factory=list)

    def window(self, at: datetime) -> object:
        """Quarters of an hour in UTC, or all time."""
        return (at - datetime.min.replace(tzinfo=UTC)) // QUARTER if self.windowed else 0

    @property
    def windowed(self) -> bool:
        return self.options["window"] == "quarter-hour"

    def scores(self, at: datetime) -> dict[str, Decimal]:
        of: dict[str, list[ScoreEvent]] = {}
        newest: dict[str, Any] = {}
        for event in self.events:
            assert event.at is not None
            newest[event.member] = max(newest.get(event.member, 0), self.window(event.at))
        for event in self.events:
            assert event.at is not None
            if self.window(event.at) != self.window(at):
                continue
            if not self.options["history"] and newest[event.member] != self.window(at):
                continue
            of.setdefault(event.member, []).append(event)
        return {member: self.score(events) for member, events in of.items()}

    def score(self, events: Sequence[ScoreEvent]) -> Decimal:
        values = [Fraction(event.value) for event in events]
        kind, best = self.options["score"], self.options["best"]
        found = {
            "sum": sum(values, Fraction(0)),
            "average": sum(values, Fraction(0)) / sum(event.count for event in events),
            "best": max(values) if best == "highest" else min(values),
            "last": Fraction(
                max(enumerate(events), key=lambda each: (each[1].at, each[0]))[1].value
            ),
        }[kind]
        scale = self.options["scale"]
        return Decimal((found * 10**scale * 2 + 1) // 2).scaleb(-scale)

    def board(self, at: datetime) -> list[Row]:
        """Rank, member and score of all, ties in the order of their names."""
        is_highest = self.options["best"] == "highest"
        scores = self.scores(at)
        ordered = sorted(scores.items(), key=lambda each: (each[1], each[0]), reverse=is_highest)
        distinct = sorted(set(scores.values()), reverse=is_highest)
        found = []
        for member, score in ordered:
            better = [each for each in scores.values() if (each > score) == is_highest]
            strictly = [each for each in better if each != score]
            rank = 1 + (distinct.index(score) if self.options["ties"] == "dense" else len(strictly))
            found.append((rank, member, score))
        return found


members = st.sampled_from([*"abcdefg", "a#1", "é x", "000187"])
values = st.integers(-40, 40) | st.decimals(-40, 40, places=2)
moments = st.integers(0, 44).map(lambda minutes: NOW + timedelta(minutes=minutes))
events = st.builds(ScoreEvent, members, values, st.integers(1, 3), moments)
options = st.fixed_dictionaries(
    {
        "score": st.sampled_from(["sum", "average", "best", "last"]),
        "best": st.sampled_from(["highest", "lowest"]),
        "ties": st.sampled_from(["standard", "dense"]),
        "window": st.sampled_from(["quarter-hour", "all time"]),
        "history": st.booleans(),
        "scale": st.sampled_from([0, 1]),
        "shards": st.sampled_from([1, 3]),
        "name": st.sampled_from([None, "cars"]),
        "ranked": st.booleans(),
    }
)


def pages(board: Leaderboard, at: datetime, sizes: Iterator[int]) -> Iterator[Row]:
    """The whole board, page by page."""
    size = next(sizes)
    page = board.top(size, at=at)
    while True:
        assert page.stats.scanned <= size * board.board.shards
        assert len(page) == size or page.cursor is None
        yield from rows(page)
        if page.cursor is None:
            return
        size = next(sizes)
        page = board.top(size, cursor=page.cursor)


@settings(max_examples=examples(120), deadline=None)
@given(options, st.lists(events, max_size=30), st.booleans(), st.randoms())
def test_a_leaderboard_is_what_a_recount_gives(
    options: dict[str, Any], events: list[ScoreEvent], batched: bool, chance: random.Random
) -> None:
    recount = Recount(options)
    with isotone.connect(clock=ManualClock(NOW + timedelta(hours=1))) as store:
        board = Leaderboard(store, **options)
        board.create_table()
        if batched:
            recount.events = events
            board.record_many(events)
        for event in [] if batched else events:
            recount.events.append(event)
            score = board.record(event.member, event.value, count=event.count, at=event.at)
            assert event.at is not None
            assert score == recount.scores(event.at).get(event.member)
        for minutes in (0, 15, 30):
            at = NOW + timedelta(minutes=minutes)
            check(board, recount, at, chance)


def check(board: Leaderboard, recount: Recount, at: datetime, chance: random.Random) -> None:
    expected = recount.board(at)
    sizes = iter(lambda: chance.randint(1, 4), 0)
    assert list(pages(board, at, sizes)) == expected
    assert board.count(at=at) == len(expected)
    for place, (rank, member, score) in enumerate(expected):
        found = board.standing(member, at=at)
        assert found is not None
        assert rows([found]) == [(rank, member, score)]
        number = chance.randint(1, 3)
        around = expected[max(0, place - number) : place + number + 1]
        assert rows(board.around(member, number, at=at)) == around
    assert board.standing("nobody", at=at) is None
    assert board.around("nobody", at=at) == []


def test_a_leaderboard_is_the_same_on_every_backend(store: Store, table_name: str) -> None:
    table = Leaderboard.layout(table_name)
    chance = random.Random(18)
    options = {"score": "average", "best": "lowest", "window": "quarter-hour", "scale": 0}
    recount = Recount({**options, "ties": "standard", "history": True})
    boards = [
        Leaderboard(
            store,
            name,
            shards=shards,
            ranked=ranked,
            history=True,
            ahead=timedelta(hours=1),
            table=table,
            **options,  # type: ignore[arg-type]
        )
        for name, shards, ranked in [(None, 1, False), ("sharded", 4, False), ("ranked", 2, True)]
    ]
    boards[0].create_table()
    for _ in range(60 if LONG else 30):
        at = NOW + timedelta(minutes=chance.randrange(30))
        event = ScoreEvent(f"{chance.randrange(20):06}", chance.randrange(400), 2, at)
        recount.events.append(event)
        for board in boards:
            board.record(event.member, event.value, count=event.count, at=event.at)
    for board in boards:
        for at in (NOW, NOW + QUARTER):
            found, cursor = [], None
            while cursor is not None or not found:
                page = board.top(3, at=at, cursor=cursor)
                found += rows(page)
                cursor = page.cursor
            # The order among equals is the engine's own.
            assert sorted(found) == sorted(recount.board(at))
            assert [row[0] for row in found] == [row[0] for row in recount.board(at)]
            for rank, member, score in found:
                assert rows([board.standing(member, at=at)]) == [(rank, member, score)]
                near = board.around(member, at=at)
                assert [each.rank for each in near] == sorted(each.rank for each in near)
                assert set(rows(near)) <= set(found)


# The stored form of scenario 18


def test_the_stored_form_is_one_item_of_each_store(memory: Store, clock: ManualClock) -> None:
    clock.set(datetime(2022, 8, 13, 0, 31, tzinfo=UTC))
    board = Leaderboard(memory, score="average", best="lowest", window="quarter-hour")
    board.create_table()
    for number in range(1, 31):
        board.record(f"{number:06}", 187 + number // 3)
    board.record("000030", 187 * 4 - 197, count=3)  # 4 cars in 187 s each
    stored = memory.backend.execute("Scan", {"TableName": "leaderboards"})["Items"]
    kinds = Counter(item["_type"]["S"] for item in stored)
    assert kinds == {"LeaderboardEntry": 30, "LeaderboardOptions": 1, "_keys": 1}
    client_items = [item for item in stored if item["_type"] == {"S": "LeaderboardEntry"}]
    assert {item["PK"]["S"] for item in client_items} == {"LEADERBOARD"}
    assert {item["GSI1PK"]["S"] for item in client_items} == {"LEADERBOARD"}
    (last,) = (item for item in client_items if item["SK"]["S"] == "000030")
    assert last["GSI1SK"]["S"] == "2022-08-13#2#000187"
    assert (last["total"], last["count"]) == ({"N": "748"}, {"N": "4"})
    ten = board.top(10)
    assert ten.stats.scanned == 10
    assert ten.stats.requests == 1
    assert [each.score for each in ten][:4] == [187, 187, 187, 188]
    request = board.queries(at=datetime(2022, 8, 13, 0, 31, tzinfo=UTC))[0].request()
    assert request["KeyConditionExpression"] == "GSI1PK = :v0 AND begins_with(GSI1SK, :v1)"
    assert request["ExpressionAttributeValues"][":v1"] == {"S": "2022-08-13#2#"}
    clock.advance(QUARTER)
    board.record("000030", 200)
    assert rows(board.top()) == [(1, "000030", Decimal(200))]
    stored = memory.backend.execute("Scan", {"TableName": "leaderboards"})["Items"]
    assert len([item for item in stored if item["_type"] == {"S": "LeaderboardEntry"}]) == 30


def test_an_average_is_rounded_half_up_from_exact_sums(memory: Store) -> None:
    board = Leaderboard(memory, score="average", scale=2)
    board.create_table()
    assert board.record("a", Decimal("0.005")) == Decimal("0.01")
    assert board.record("a", Decimal("0.004999")) == Decimal("0.00")
    assert board.record("b", 1, count=3) == Decimal("0.33")
    large = Decimal("12345678901234567890.5")
    total = Leaderboard(memory, "large", score="average")
    assert total.record("a", large, count=10**18) == 12
    assert total.record("a", Decimal("0.0000000001")) == 12
    standing = total.standing("a")
    assert standing is not None
    assert standing.total == Decimal("12345678901234567890.5000000001")


def test_a_sum_that_cannot_be_exact_is_refused(memory: Store) -> None:
    board = Leaderboard(memory, digits=30)
    board.create_table()
    board.record("a", Decimal("1e20"))
    with pytest.raises(OutOfRange, match=r"the sum of 1.* and 1e-20 cannot be stored exactly"):
        board.record("a", Decimal("1e-20"))
    assert board.record("a", Decimal("1e-17")) == Decimal("1e20")


@pytest.mark.parametrize(
    ("digits", "scale", "texts"),
    [
        (1, 0, {-9: "-0", -8: "-1", -1: "-8", 0: "0", 1: "1", 9: "9"}),
        (3, 2, {-1: "-998.99", Decimal("-0.01"): "-999.98", 0: "000.00", Decimal("0.5"): "000.50"}),
        (6, 0, {-999_999: "-000000", -187: "-999812", 187: "000187"}),
    ],
)
def test_the_text_of_a_score_sorts_as_the_score(
    digits: int, scale: int, texts: dict[int | Decimal, str]
) -> None:
    form = Digits(digits, scale)
    assert [form.text(Decimal(score)) for score in texts] == list(texts.values())
    assert [form.score(text) for text in texts.values()] == list(texts)
    assert sorted(texts.values()) == list(texts.values())


@given(st.integers(1, 20), st.integers(0, 18), st.lists(st.decimals(-99, 99, places=3), max_size=9))
def test_scores_sort_as_their_texts(whole: int, scale: int, scores: list[Decimal]) -> None:
    form = Digits(whole, scale)
    fitting = [score for score in scores if abs(score) < 10**whole - 1]
    rounded = {form.text(score): form.score(form.text(score)) for score in fitting}
    assert sorted(rounded, key=lambda text: rounded[text]) == sorted(rounded)
    for score in fitting:
        assert abs(rounded[form.text(score)] - score) <= Decimal(10) ** -scale / 2


@pytest.mark.parametrize("ranked", [False, True])
def test_a_board_of_profit_and_loss(store: Store, table_name: str, ranked: bool) -> None:
    table = Leaderboard.layout(table_name)
    board = Leaderboard(store, "p&l", scale=2, shards=2, ranked=ranked, table=table)
    golf = Leaderboard(store, "golf", best="lowest", ranked=ranked, table=table)
    board.create_table()
    for member, value in {"ann": -250, "bo": 10, "cy": -3, "di": -250, "ed": 0}.items():
        board.record(member, value)
        golf.record(member, value)
    assert board.record("ann", Decimal("-0.005")) == Decimal("-250.00")
    assert board.record("cy", Decimal("2.995")) == 0
    by_profit = [("bo", 1, 10), ("ed", 2, 0), ("cy", 2, 0), ("di", 4, -250), ("ann", 4, -250)]
    assert sorted((each.member, each.rank, each.score) for each in board.top()) == sorted(by_profit)
    assert [each.rank for each in board.around("ed", 3)][-2:] == [4, 4]
    assert [each.score for each in golf.top()] == [-250, -250, -3, 0, 10]
    assert rows([golf.standing("cy")]) == [(3, "cy", -3)]
    assert golf.count() == 5


@pytest.mark.parametrize("best", ["highest", "lowest"])
def test_scores_of_many_digits_are_ranked_to_the_last(memory: Store, best: Any) -> None:
    board = Leaderboard(memory, best=best, digits=38, ranked=True)
    board.create_table()
    large = 10**37
    for member in range(3):
        board.record(f"{member}", large + member)
        board.record(f"-{member}", -large - member)
    ranks = [(standing.rank, standing.score) for standing in board.top()]
    assert [rank for rank, _ in ranks] == [1, 2, 3, 4, 5, 6]
    for place, (_, score) in enumerate(ranks):
        member = f"{'-' if score < 0 else ''}{abs(int(score)) - large}"
        assert rows([board.standing(member)]) == [(place + 1, member, score)]


# Time


def test_business_days_and_late_events(memory: Store) -> None:
    zone = ZoneInfo("America/New_York")
    day = Leaderboard(memory, "day", window="day", day_starts=time(4), zone=zone)
    day.create_table()
    evening = datetime(2022, 11, 5, 23, 0, tzinfo=zone)
    assert day.record("a", 1, at=evening) == 1
    assert day.record("a", 1, at=datetime(2022, 11, 6, 3, 59, tzinfo=zone)) == 2
    assert day.top(at=evening).window == "2022-11-05"
    assert day.record("a", 5, at=datetime(2022, 11, 6, 4, 0, tzinfo=zone)) == 5
    assert day.record("a", 1, at=evening) is None  # a newer day has begun
    assert rows(day.top(at=evening)) == []
    assert day.record_many([ScoreEvent("a", 1, at=evening), ScoreEvent("b", 1, at=evening)]) == 1


@pytest.mark.parametrize("starts", [time(0), time(4)])
@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    # The clock is changed at 2 am, or from 3 to 2 am, on Sunday: in the business day of Saturday.
    [
        ("America/New_York", datetime(2022, 3, 13), 23),
        ("America/New_York", datetime(2022, 11, 6), 25),
        ("Europe/Brussels", datetime(2022, 3, 27), 23),
        ("Europe/Brussels", datetime(2022, 10, 30), 25),
    ],
)
def test_quarters_of_days_on_which_the_clock_is_changed(
    memory: Store, zone: str, day: datetime, hours: int, starts: time
) -> None:
    of: dict[str, Any] = {"score": "average", "best": "lowest", "window": "quarter-hour"}
    here = ZoneInfo(zone)
    board = Leaderboard(memory, day_starts=starts, zone=here, history=True, **of)
    board.create_table()
    date = (day if starts == time(0) else day - timedelta(days=1)).date()
    begin = datetime.combine(date, starts, here).astimezone(UTC)
    quarters = [begin + number * QUARTER for number in range(hours * 4)]
    assert quarters[-1] + QUARTER == datetime.combine(
        date + timedelta(days=1), starts, here
    ).astimezone(UTC)
    for number, at in enumerate(quarters):
        board.record("000187", 2 * number + 187, at=at)
        board.record("000187", 187, at=at + QUARTER - timedelta(microseconds=1))
        board.record("000042", 187 + number, at=at.astimezone(here))
    for number, at in enumerate(quarters):
        top = board.top(at=at)
        assert top.window == f"{date}#{number}"
        assert rows(top) == [(1, "000042", 187 + number), (1, "000187", 187 + number)]
        assert [each.count for each in top] == [1, 2]
    assert rows(board.top(at=begin - timedelta(microseconds=1))) == []
    assert rows(board.top(at=quarters[-1] + QUARTER)) == []


@pytest.mark.parametrize("history", [False, True])
def test_a_clock_that_is_ahead_takes_nobody_off_the_board(memory: Store, history: bool) -> None:
    board = Leaderboard(memory, window="quarter-hour", history=history)
    board.create_table()
    board.record("a", 1)
    ahead = NOW + timedelta(minutes=5, microseconds=1)
    with pytest.raises(UsageError, match="is ahead of the clock"):
        board.record("a", 1, at=ahead)
    with pytest.raises(UsageError, match="is ahead of the clock"):
        board.record_many([ScoreEvent("b", 1), ScoreEvent("a", 1, at=ahead)])
    assert board.record("a", 1, at=NOW + timedelta(minutes=5)) == 2
    assert rows(board.top()) == [(1, "a", 2)]
    assert Leaderboard(memory, "far", ahead=timedelta(days=1)).record("a", 1, at=ahead) == 1


def test_a_naive_time_is_refused(memory: Store) -> None:
    Leaderboard(memory).create_table()
    for board in (Leaderboard(memory), Leaderboard(memory, "day", window="day")):
        with pytest.raises(UsageError, match="is naive"):
            board.record("a", 1, at=datetime(2022, 8, 13))


def test_history_and_expiry(memory: Store, clock: ManualClock) -> None:
    board = Leaderboard(
        memory, window="hour", history=True, expire_after=timedelta(hours=2), best="highest"
    )
    board.create_table()
    for hour in range(4):
        board.record("a", hour + 1)
        board.record("b", 2)
        clock.advance(timedelta(hours=1))
    past = board.history("a", 6)
    assert [(window.label, score) for window, score in past] == [
        *(("2027-01-15#12", None), ("2027-01-15#11", 4), ("2027-01-15#10", 3)),
        *(("2027-01-15#9", None), ("2027-01-15#8", None), ("2027-01-15#7", None)),
    ]
    assert rows(board.top(at=NOW + timedelta(hours=2))) == [(1, "a", 3), (2, "b", 2)]
    assert rows(board.top(at=NOW)) == []
    assert board.count(at=NOW) == 0
    assert board.record("a", 1, at=NOW) is None  # its window has expired
    with pytest.raises(UsageError, match="history=True"):
        Leaderboard(memory).history("a")


def test_a_member_without_events_for_long_begins_at_zero(memory: Store, clock: ManualClock) -> None:
    board = Leaderboard(memory, expire_after=timedelta(hours=1))
    board.create_table()
    board.record("a", 1)
    clock.advance(timedelta(minutes=59))
    assert board.record("a", 1) == 2
    clock.advance(timedelta(minutes=59))
    assert board.record("a", 1, at=NOW) is None
    assert rows(board.top()) == [(1, "a", 2)]
    clock.advance(timedelta(minutes=1))
    assert rows(board.top()) == []
    assert board.record("a", 1) == 1


def test_remove(memory: Store) -> None:
    board = Leaderboard(memory)
    board.create_table()
    board.record("a", 1)
    assert board.remove("a") is True
    assert board.remove("a") is False
    assert rows(board.top()) == []


# Cursors


@pytest.mark.parametrize("shards", [1, 3])
def test_a_cursor_continues_with_its_own_window(
    memory: Store, clock: ManualClock, shards: int
) -> None:
    board = Leaderboard(memory, window="hour", shards=shards, history=True)
    board.create_table()
    for number in range(6):
        board.record(f"{number}", number)
    page = board.top(4)
    clock.advance(timedelta(hours=1))
    board.record("9", 9)
    assert page.cursor is not None
    assert rows(board.top(4, cursor=page.cursor)) == [(5, "1", 1), (6, "0", 0)]
    assert rows(board.top(4)) == [(1, "9", 9)]
    with pytest.raises(InvalidCursor, match="belongs to window"):
        board.top(4, cursor=page.cursor, at=NOW + timedelta(hours=1))
    other = Leaderboard(memory, "other", window="hour", shards=shards)
    for changed in (page.cursor[:-2] + "AA", page.cursor[4:]):
        with pytest.raises(InvalidCursor):
            board.top(4, cursor=changed)
    with pytest.raises(InvalidCursor, match="another query"):
        other.top(4, cursor=page.cursor)


def test_paging_skips_and_repeats_nothing_that_stays(memory: Store) -> None:
    board = Leaderboard(memory, shards=3, score="last")
    board.create_table()
    for number in range(30):
        board.record(f"{number:02}", number // 2)
    chance, seen, page = random.Random(1), [], board.top(4)
    while True:
        seen += [each.member for each in page]
        board.record(f"new{chance.random()}", chance.randrange(16))
        if page.cursor is None:
            break
        page = board.top(4, cursor=page.cursor)
    stayed = [member for member in seen if not member.startswith("new")]
    assert sorted(stayed) == [f"{number:02}" for number in range(30)]
    assert len(seen) == len(set(seen))


# Writers at once


@pytest.mark.parametrize("ranked", [False, True])
def test_threads_lose_nothing(store: Store, table_name: str, ranked: bool) -> None:
    table = Leaderboard.layout(table_name)
    board = Leaderboard(store, score="average", ranked=ranked, table=table)
    board.create_table()
    everything = [(f"{number % 3}", number) for number in range(96 if LONG else 48)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda each: board.record(each[0], each[1]), everything))
    for member in "012":
        mine = [value for name, value in everything if name == member]
        standing = board.standing(member)
        assert standing is not None
        assert (standing.total, standing.count) == (sum(mine), len(mine))
        assert standing.score == (2 * sum(mine) + len(mine)) // (2 * len(mine))


@pytest.mark.parametrize("ranked", [False, True])
def test_processes_lose_nothing(tmp_path: Path, ranked: bool) -> None:
    path = str(tmp_path / "boards.db")
    with isotone.connect(path) as store:
        board = Leaderboard(store, score="average", shards=2, ranked=ranked)
        board.create_table()
        writers = [CONTEXT.Process(target=record, args=(path, seed, ranked)) for seed in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert [writer.exitcode for writer in writers] == [0] * 4
        expected: dict[str, list[int]] = {}
        for seed in range(4):
            chance = random.Random(seed)
            for _ in range(EVENTS):
                expected.setdefault(f"{chance.randrange(3)}", []).append(chance.randrange(100))
        for each in board.top():
            values = expected[each.member]
            assert (each.total, each.count) == (sum(values), len(values))
            assert board.standing(each.member) == each
        assert {each.member for each in board.top()} == expected.keys()
        assert board.count() == 3


def test_an_event_counts_once(store: Store, table_name: str) -> None:
    table = Leaderboard.layout(table_name)
    boards = [
        Leaderboard(store, name, ranked=ranked, table=table)
        for name, ranked in ((None, False), ("ranked", True))
    ]
    boards[0].create_table()
    for board in boards:
        assert board.record("a", 3, once="event:1") == 3
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: board.record("a", 4, once="event:2"), range(8)))  # noqa: B023
        assert board.record("a", 3, once="event:1") == 7
        assert rows(board.top()) == [(1, "a", 7)]


def test_floats_are_the_digits_that_python_prints(memory: Store) -> None:
    class NumpysFloat(float):
        def __repr__(self) -> str:
            return f"np.float64({float.__repr__(self)})"

    board = Leaderboard(memory, scale=1)
    board.create_table()
    assert board.record("a", 0.1) == Decimal("0.1")
    assert board.record("a", NumpysFloat(0.2)) == Decimal("0.3")
    assert board.record_many([ScoreEvent("a", 0.05)]) == 0
    (first,) = board.top()
    assert (first.total, first.score) == (Decimal("0.35"), Decimal("0.4"))
    for value in (float("nan"), float("inf"), -float("inf")):
        with pytest.raises(UsageError):
            board.record("a", value)


def test_what_is_no_event_is_refused(memory: Store) -> None:
    board = Leaderboard(memory)
    board.create_table()
    events: list[Any] = [
        [("a", 1)],
        {"a": 1},
        [ScoreEvent("a", 1, "2")],  # type: ignore[arg-type]
        [ScoreEvent(1, "a")],  # type: ignore[arg-type]
        [ScoreEvent("a", 1, 1, "2026-01-01")],  # type: ignore[arg-type]
    ]
    for each in events:
        with pytest.raises(UsageError):
            board.record_many(each)
    with pytest.raises(UsageError, match="60 is not a window"):
        Leaderboard(memory, window=60)  # type: ignore[arg-type]
    assert board.count() == 0


@pytest.mark.parametrize("score", ["sum", "best"])
def test_an_event_counts_once_for_each_member(memory: Store, score: Any) -> None:
    board = Leaderboard(memory, score=score)
    board.create_table()
    for _ in range(2):
        assert board.record("a", 5, once="match:1") == 5
        assert board.record("b", 9, once="match:1") == 9
        assert board.record("b#c", 7, once="match") == 7
        assert board.record("c", 8, once="match#b") == 8
    assert rows(board.top()) == [(1, "b", 9), (2, "c", 8), (3, "b#c", 7), (4, "a", 5)]


def test_what_is_remembered_has_a_time(memory: Store) -> None:
    board = Leaderboard(memory)
    board.create_table()
    for remember in (timedelta(0), timedelta(seconds=-1)):
        with pytest.raises(UsageError, match="remember="):
            board.record("a", 5, once="match:1", remember=remember)
        with pytest.raises(UsageError, match="remember="):
            board.record_many([ScoreEvent("a", 5)], once="match:1", remember=remember)
    with pytest.raises(UsageError, match="expire_after="):
        Leaderboard(memory, window="day", expire_after=timedelta(seconds=-1))
    assert board.count() == 0


@pytest.mark.parametrize("kind", ["best", "last"])
@pytest.mark.parametrize("history", [False, True])
def test_the_best_and_the_last_take_one_write(kind: Any, history: bool) -> None:
    seen: list[str] = []
    watch = isotone.at_end(lambda observation: seen.append(observation.operation))
    clock = ManualClock(NOW)
    with isotone.connect(clock=clock, observe=[watch]) as store:
        board = Leaderboard(store, score=kind, window="hour", history=history)
        board.create_table()
        clock.advance(timedelta(minutes=20))
        for value, ago, score, expected in [
            (
                3,
                10,
                3,
                ["UpdateItem", "GetItem", "PutItem", "PutItem"],
            ),  # declared, and there was no entry
            (5, 9, 5, ["UpdateItem"]),
            (4, 10, 5, ["UpdateItem"]),  # worse, and older
            (5, 9, 5, ["UpdateItem"]),
        ]:
            seen.clear()
            at = NOW + timedelta(minutes=20 - ago)
            assert board.record("a", value, at=at) == score
            assert seen == expected
        clock.advance(timedelta(hours=1))
        seen.clear()
        assert board.record("a", 1) == 1
        assert seen == (["UpdateItem", "PutItem"] if history else ["UpdateItem"])
        late = board.record("a", 9, at=NOW + timedelta(minutes=30))
        assert late == (9 if history else None)
        assert rows(board.top()) == [(1, "a", 1)]


@pytest.mark.parametrize("kind", ["best", "last"])
def test_values_that_overtake_each_other(store: Store, table_name: str, kind: Any) -> None:
    """Some are written blindly, and some with a token, which takes a reading."""
    table = Leaderboard.layout(table_name)
    board = Leaderboard(store, score=kind, expire_after=timedelta(hours=2), table=table)
    board.create_table()
    values = random.Random(4).sample(range(-30, 30), 60)
    events = [(f"{value % 3}", value, NOW + timedelta(seconds=value - 40)) for value in values]

    def record(event: tuple[str, int, datetime]) -> None:
        member, value, at = event
        once = f"{value}" if value % 2 else None
        board.record(member, value, at=at, once=once)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(record, events))
    assert rows(board.top()) == [(1, "2", 29), (2, "1", 28), (3, "0", 27)]


class Deaf:
    """Carries out every request, and loses the answers of some writes."""

    def __init__(self, backend: Any) -> None:
        self._backend, self._lost = backend, 0

    def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
        answer = self._backend.execute(operation, request)
        self._lost += operation == "TransactWriteItems"
        if operation == "TransactWriteItems" and self._lost % 2:
            return self.execute(operation, {**request, "ClientRequestToken": f"{self._lost}"})
        return answer


def test_a_repeated_request_counts_once() -> None:
    with isotone.open() as database, isotone.connect(database) as inner:
        store = isotone.connect(Deaf(inner.backend))
        board = Leaderboard(store)
        board.create_table()
        for number in range(6):
            assert board.record("a", 1, once=f"{number}") == number + 1
        assert rows(board.top()) == [(1, "a", 6)]


class Retrying:
    """Loses the answer of every single write and sends it again, as clients of the service do."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
        if operation in ("PutItem", "UpdateItem"):
            with contextlib.suppress(ConditionalCheckFailedException):
                self._backend.execute(operation, request)
        return self._backend.execute(operation, request)


@pytest.mark.parametrize("score", ["sum", "average"])
def test_a_put_that_is_sent_again_by_the_client_counts_once(score: Any) -> None:
    with isotone.open() as database, isotone.connect(database) as inner:
        store = isotone.connect(Retrying(inner.backend))
        board = Leaderboard(store, score=score)
        board.create_table()
        for number in range(6):
            board.record("a", 1)
            standing = board.standing("a")
            assert standing is not None
            assert (standing.total, standing.count) == (number + 1, number + 1)


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize(("score", "expected"), [("best", [3, 5, 5]), ("last", [3, 5, 4])])
def test_a_single_write_that_is_sent_again_changes_nothing(
    score: Any, expected: list[int], history: bool
) -> None:
    clock = ManualClock(NOW)
    with isotone.open() as database, isotone.connect(database) as inner:
        store = isotone.connect(Retrying(inner.backend), clock=clock)
        board = Leaderboard(store, score=score, window="hour", history=history)
        board.create_table()
        for _ in range(2):
            assert [board.record("a", value) for value in (3, 5, 4)] == expected
            clock.advance(timedelta(hours=1))


def test_a_batch_that_was_interrupted_is_repeated() -> None:
    options: dict[str, Any] = {"window": "hour", "history": True, "ahead": timedelta(hours=3)}
    batch = [
        ScoreEvent(member, 1, at=NOW + timedelta(minutes=40 * number))
        for number in range(4)
        for member in "ab"
    ]
    with isotone.connect(clock=ManualClock(NOW)) as store:
        board = Leaderboard(store, **options)
        board.create_table()
        for after in (0, 2, 3):
            broken = isotone.connect(
                InterceptedBackend(
                    store.backend, refuse_after(after, ConnectionFailed("the cable is out"))
                ),
                clock=ManualClock(NOW),
            )
            half = Leaderboard(broken, **options)
            with pytest.raises(ConnectionFailed):
                half.record_many(batch, once="batch:1")
        for _ in range(2):
            assert board.record_many(batch, once="batch:1") == 0
        assert rows(board.top(at=NOW)) == [(1, "b", 2), (1, "a", 2)]
        assert rows(board.top(at=NOW + timedelta(hours=2))) == [(1, "b", 1), (1, "a", 1)]


def test_a_batch_without_times_counts_once_also_in_the_next_window(
    memory: Store, clock: ManualClock
) -> None:
    board = Leaderboard(memory, window="hour", history=True)
    board.create_table()
    batch = [ScoreEvent("a", 1), ScoreEvent("a", 2), ScoreEvent("a", 4, at=NOW), ScoreEvent("b", 1)]
    for _ in range(3):
        assert board.record_many(batch, once="batch:1") == 0
        clock.advance(timedelta(minutes=40))
    assert [score for _, score in board.history("a", 3)] == [None, None, 7]


def test_a_score_that_does_not_fit_keeps_nobody_else_from_the_board(memory: Store) -> None:
    board = Leaderboard(memory, digits=3)
    board.create_table()
    batch = [ScoreEvent("b", 1), ScoreEvent("a", 1000), ScoreEvent("c", 2)]
    for _ in range(2):
        with pytest.raises(OutOfRange, match="digits"):
            board.record_many(batch, once="batch:1")
        assert rows(board.top()) == [(1, "c", 2), (2, "b", 1)]


def test_a_member_is_not_its_own_neighbour_while_it_moves(memory: Store) -> None:
    board = Leaderboard(memory, score="last")
    board.create_table()
    for number, member in enumerate("abcde"):
        board.record(member, 10 * number)
    moves = iter([5, 25])

    def move(operation: str, _: Any) -> None:
        """The member moves after its entry was read, and before its neighbours are."""
        if operation == "Query" and (score := next(moves, None)) is not None:
            board.record("c", score)

    seen = Leaderboard(
        isotone.connect(InterceptedBackend(memory.backend, move), clock=ManualClock(NOW)),
        score="last",
    )
    near = [each.member for each in seen.around("c", 2)]
    assert near == ["d", "c", "b"]


def test_ranks_of_a_window_that_is_over(memory: Store, clock: ManualClock) -> None:
    board = Leaderboard(memory, window="hour", ranked=True, expire_after=timedelta(hours=1))
    board.create_table()
    board.record("a", 1)
    board.record("b", 1)
    clock.advance(timedelta(hours=1))
    board.record("a", 1)
    assert board.remove("b") is True
    assert (board.count(at=NOW), board.count()) == (0, 1)
    board.drop_ranks(at=NOW)
    kept = memory.backend.execute("Scan", {"TableName": "leaderboards"})["Items"]
    assert {item["ranking"]["S"] for item in kept if "ranking" in item} == {
        "LEADERBOARD##2027-01-15#9"
    }
    with pytest.raises(UsageError, match="cannot expire"):
        Leaderboard(memory, ranked=True, expire_after=timedelta(hours=1))


@pytest.mark.parametrize("history", [False, True])
def test_members_of_a_window_whose_ranks_were_dropped_go_on(
    memory: Store, clock: ManualClock, history: bool
) -> None:
    board = Leaderboard(memory, window="hour", ranked=True, history=history)
    board.create_table()
    for member in "abc":
        board.record(member, 1)
    clock.advance(timedelta(hours=1))
    board.drop_ranks(at=NOW)
    assert board.record("a", 1, at=NOW) == 2  # it comes late
    assert board.remove("b", at=NOW) is True
    assert board.record("a", 2) == 2
    assert board.record("c", 3) == 3
    assert rows(board.top()) == [(1, "c", 3), (2, "a", 2)]
    assert board.count() == 2


@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize("kind", ["memory", "file", "http"])
def test_a_leaderboard_is_awaited_over_an_async_store(
    kind: str, ranked: bool, tmp_path: Path
) -> None:
    async def program(address: str) -> tuple[list[Row], list[Row]]:
        async with isotone.aconnect(address) as store:
            board = Leaderboard(store, score="average", shards=2, ranked=ranked)
            await board.create_table()
            writes = [board.record(f"{number % 4}", number) for number in range(40)]
            await asyncio.gather(*writes)
            return rows(await board.top()), rows(await board.around("2", 1))

    with isotone.open() as database, running_server(database) as url:
        address = {"memory": ":memory:", "file": str(tmp_path / "boards.db"), "http": url}[kind]
        top, near = asyncio.run(program(address))
    assert top == [(1, "3", 21), (2, "2", 20), (3, "1", 19), (4, "0", 18)]
    assert near == top[:3]


# What is refused, and what lives beside it


def test_what_is_refused(memory: Store) -> None:
    board = Leaderboard(memory, digits=3)
    board.create_table()
    wrong: list[Any] = [True, "7", Decimal("NaN"), Decimal("Infinity")]
    for value in wrong:
        with pytest.raises(UsageError):
            board.record("a", value)
    for value in (-1000, 1000, Decimal("999.5"), Decimal("-999.51")):
        with pytest.raises(OutOfRange, match="digits"):
            board.record("a", value)
    for far in ("1e400", "-1e400", "1e999999", "1e-140", "1." + "1" * 40):
        with pytest.raises(OutOfRange, match="stored exactly"):
            board.record("a", Decimal(far))
    names: list[Any] = ["", "x" * 1100, "\ud800", 5, None]
    for name in names:
        with pytest.raises(UsageError):
            board.record(name, 1)
    with pytest.raises(UsageError, match="must be 1 or more, not 0"):
        board.record("a", 1, count=0)
    with pytest.raises(UsageError, match="naive"):
        Leaderboard(memory, window="day").record("a", 1, at=datetime(2022, 8, 13))
    assert rows(board.top()) == []
    made: list[dict[str, Any]] = [
        *({"name": ""}, {"name": "a#b"}, {"score": "mean"}, {"best": "most"}),
        *({"ties": "none"}, {"shards": 0}, {"window": "fortnight"}),
        *({"digits": 0}, {"scale": -1}, {"digits": 30, "scale": 9}),
    ]
    for options in made:
        with pytest.raises(UsageError):
            Leaderboard(memory, **options)


def test_a_leaderboard_shares_a_table(memory: Store) -> None:
    table = Leaderboard.layout("shared")

    class Customer(Entity, table=table):
        name: Attr[str] = isotone.field()
        primary = Key("CUSTOMER", name).sort("CUSTOMER")

    boards = [Leaderboard(memory, name, table=table) for name in (None, "cars", "cars2")]
    boards.append(Leaderboard(memory, "trucks", shards=3, table=table))
    boards[0].create_table()
    memory.put(Customer(name="LEADERBOARD"))
    for number, board in enumerate(boards):
        board.record("a", number)
        board.record("b", number)
    for number, board in enumerate(boards):
        assert {row[2] for row in rows(board.top())} == {number}
        assert board.count() == 2


@pytest.mark.parametrize("name", [None, "days"])
@pytest.mark.parametrize(
    "other",
    [
        {},
        {"window": "hour"},
        {"window": "day", "score": "last"},
        {"window": "day", "digits": 8},
        {"window": "day", "scale": 1},
        {"window": "day", "zone": ZoneInfo("Asia/Tokyo"), "day_starts": time(17)},
        {"window": "day", "ranked": True},
        {"window": "day", "ties": "dense"},
        {"window": "day", "ahead": timedelta(hours=1)},
        {"window": "day", "expire_after": timedelta(days=1)},
    ],
)
@pytest.mark.parametrize("score", ["sum", "best"])
def test_one_name_is_one_board(
    memory: Store, name: str | None, score: Any, other: dict[str, Any]
) -> None:
    """Boards that are declared otherwise take nothing from one another, also where names were forgotten."""
    days = Leaderboard(memory, name, window="day", score=score)
    days.create_table()
    days.record("a", 7)
    board = Leaderboard(memory, name, **{"score": score, **other})
    calls: list[Callable[[], object]] = [
        lambda: board.record("a", 1),
        lambda: board.record("a", 1, once="event:1"),
        lambda: board.remove("a"),
        lambda: board.standing("a"),
        lambda: board.standing("b"),
        lambda: board.around("b"),
        lambda: board.record("b", 9),
        lambda: board.record_many([ScoreEvent("b", 9)]),
        lambda: board.top(),
        lambda: board.count(),
    ]
    where = "the board 'days'" if name else "without a name"
    for call in calls:
        with pytest.raises(UsageError, match=f"{where}.*another name"):
            call()
    assert rows(days.top()) == [(1, "a", 7)]
    assert days.record("a", 1) == (8 if score == "sum" else 7)
    again = Leaderboard(memory, name, window=timedelta(days=1), score=score)
    assert again.record("a", 1) == (9 if score == "sum" else 7)


def test_a_history_is_a_board_of_its_own(memory: Store) -> None:
    board = Leaderboard(memory, window="day")
    board.create_table()
    board.record("a", 7)
    other = Leaderboard(memory, window="day", history=True)
    calls: list[Callable[[], object]] = [lambda: other.record("a", 1), lambda: other.history("a")]
    for call in calls:
        with pytest.raises(UsageError, match=r"\(day, sum, 6\.0 digits, history\)"):
            call()


@pytest.mark.parametrize("name", [None, "days"])
@pytest.mark.parametrize(("shards", "others"), [(1, 3), (3, 1), (3, 2), (2, 3)])
@pytest.mark.parametrize("score", ["sum", "best"])
def test_a_board_has_one_number_of_shards(
    memory: Store, name: str | None, shards: int, others: int, score: Any
) -> None:
    """With another number, members would be looked for in other partitions, and not found."""
    board = Leaderboard(memory, name, shards=shards, score=score)
    board.create_table()
    board.record_many(ScoreEvent(f"{number}", number) for number in range(4))
    wrong = Leaderboard(memory, name, shards=others, score=score)
    calls: list[Callable[[], object]] = [
        lambda: wrong.record("0", 9),
        lambda: wrong.record("new", 9, once="event:1"),
        lambda: wrong.top(),
        lambda: wrong.count(),
        lambda: wrong.standing("2"),
        lambda: wrong.around("2"),
        lambda: wrong.remove("2"),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="same options"):
            call()
    assert [row.member for row in board.top()] == ["3", "2", "1", "0"]


def test_an_empty_board_takes_other_options(memory: Store) -> None:
    first = Leaderboard(memory, "days", shards=3)
    first.create_table()
    first.record("a", 7)
    first.remove("a")
    other = Leaderboard(memory, "days", shards=2, ties="dense")
    assert other.top().items == []
    assert other.record("a", 1) == 1
    with pytest.raises(UsageError, match="same options"):
        Leaderboard(memory, "days", shards=3).top()


def test_two_declare_a_board_at_once(memory: Store) -> None:
    """Both find no declaration; the second one to write it has other options, and is refused."""
    Leaderboard(memory, "days").create_table()
    other = Leaderboard(memory, "days", shards=2)
    steps = other.board.declare()
    step = next(steps)
    assert step.operation == "GetItem"
    Leaderboard(memory, "days").record("a", 7)
    with pytest.raises(UsageError, match="same options"):
        memory.run(_resumed(steps, {}))


def _resumed(steps: Steps[Any], response: dict[str, Any]) -> Steps[Any]:
    """Steps that were started, from their next request on."""
    call = steps.send(response)
    while True:
        try:
            response = yield call
        except IsotoneError as error:
            call = steps.throw(error)
        else:
            try:
                call = steps.send(response)
            except StopIteration as end:
                return end.value


# Costs, as the page tells them


def test_what_it_costs() -> None:
    with isotone.open() as database, isotone.connect(database) as inner:
        measured = Measured(inner.backend)
        store = isotone.connect(measured, clock=ManualClock(NOW))
        options: dict[str, Any] = {"window": "hour", "history": True}
        plain = Leaderboard(store, "plain", **options)
        sharded = Leaderboard(store, "sharded", shards=3, **options)
        ranked = Leaderboard(store, "ranked", ranked=True, **options)
        plain.create_table()
        for board in (plain, sharded, ranked):
            board.record_many(ScoreEvent(f"{number:02}", number) for number in range(40))
        measured.take()

        plain.record("07", 1)
        assert measured.take() == (1, 1, 2)
        plain.record("07", 1, once="event:1")
        assert measured.take() == (1, 2, 2)
        plain.record_many([ScoreEvent("07", 1), ScoreEvent("08", 1), ScoreEvent("07", 1)])
        assert measured.take() == (2, 2, 4)
        ranked.record("07", 1)
        read, written, requests = measured.take()
        assert 1 <= read <= 3
        assert 2 <= written <= 8
        assert requests == (3 if read > 1 else 2)

        assert len(plain.top(10)) == 10
        assert measured.take() == (10, 0, 1)
        assert len(sharded.top(10)) == 10
        assert measured.take() <= (10 * 3, 0, 3)
        plain.standing("30")
        assert measured.take() == (1 + 9, 0, 2)
        sharded.standing("30")
        assert measured.take() == (1 + 9, 0, 1 + 3)
        ranked.standing("30")
        assert measured.take() == (1 + 2, 0, 2)  # the tree has two levels
        plain.around("30", 2)
        assert measured.take() == (1 + 4 + 7 + 1, 0, 5)
        sharded.around("30", 2)
        read, written, requests = measured.take()
        assert read <= 1 + 4 * 3 + 7 + 1
        plain.count()
        assert measured.take() == (40, 0, 1)
        ranked.count()
        assert measured.take() == (1, 0, 1)
        plain.history("07", 24)
        assert measured.take() == (24, 0, 1)
        plain.remove("07")
        assert measured.take() == (1, 1, 2)


@pytest.mark.parametrize("shards", [1, 7])
def test_the_top_ten_cost_ten_items_of_each_shard(memory: Store, shards: int) -> None:
    board = Leaderboard(memory, "stores", score="last", best="lowest", shards=shards, digits=4)
    board.create_table()
    stores = 10_000 if LONG else 300
    scores = random.Random(18).sample(range(stores), stores)
    board.record_many(ScoreEvent(f"{score:06}", score) for score in scores)
    top = board.top(10)
    assert [each.score for each in top] == list(range(10))
    assert top.stats.scanned <= 10 * shards
    assert top.stats.requests == shards
    if shards == 1:
        assert top.stats.scanned == 10
    following = board.top(10, cursor=top.cursor)
    assert [each.rank for each in following] == list(range(11, 21))
    assert following.stats.scanned <= 10 * shards
