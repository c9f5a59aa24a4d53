"""Sorted sets: what the comparison with Redis does not see: exactness, cost, contention, expiry, refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.intercepted_backend import InterceptedBackend, refuse_after
from tests.structures.simulation import Hasty, Overtaken, Repeating

import isotone
from isotone import Attr, Entity, Key, ManualClock, Observation, Store, errors, field
from isotone.structures import SortedSet
from isotone.structures.exact_numbers import EXACT, score_of
from isotone.structures.sorted_set_ranges import ScoreRange, matcher

KINDS: list[dict[str, Any]] = [
    {},
    {"shards": 4},
    {"ranked": True},
    {"expires": True},
    {"ranked": True, "shards": 4},
]
of_any_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


@pytest.fixture
def trending(memory: Store) -> SortedSet:
    made = SortedSet(memory, "trending")
    made.create_table()
    return made


# The scenario


@of_any_kind
def test_the_songs_of_the_day(store: Store, table_name: str, kind: dict[str, Any]) -> None:
    songs = SortedSet(store, "trending:20130419", table=SortedSet.layout(table_name), **kind)
    songs.create_table()
    for song, by in [
        ("song:1", 1),
        ("song:1", 0.1),
        ("song:2", 0.3),
        ("song:3", 0.7),
        ("song:4", 0.9),
    ]:
        songs.incr(song, by)
    assert songs.zrevrange(0, 19, withscores=True) == [
        ("song:1", Decimal("1.1")),
        ("song:4", Decimal("0.9")),
        ("song:3", Decimal("0.7")),
        ("song:2", Decimal("0.3")),
    ]
    assert [songs.zrevrank(f"song:{number}") for number in (1, 2, 3, 4, 5)] == [0, 3, 2, 1, None]


@of_any_kind
def test_tied_members_stand_in_the_order_of_their_bytes_however_many(
    store: Store, table_name: str, kind: dict[str, Any]
) -> None:
    tied = SortedSet(store, "tied", table=SortedSet.layout(table_name), **kind)
    tied.create_table()
    names = [f"{number:03}" for number in range(260)]
    if "ranked" in kind:
        names = names[::5]
    tied.zadd(dict.fromkeys(reversed(names), 7))
    tied.zadd({"first": 6, "last": 8})
    assert tied.zrange(0, 3) == ["first", *names[:3]]
    assert tied.zrange(20, 22) == names[19:22]
    assert tied.zrevrange(0, 2) == ["last", *names[:-3:-1]]
    assert tied.zrangebyscore(7, 7, 5, 2) == names[5:7]
    assert [tied.zrank(names[30]), tied.zrevrank(names[30])] == [31, len(names) - 30]
    assert [member for member, _ in tied.zpopmin(3)] == ["first", *names[:2]]


# Scores


def test_scores_are_exact_and_do_not_drift(trending: SortedSet) -> None:
    for _ in range(100):
        trending.incr("a", 0.1)
    assert trending.zscore("a") == 10
    assert trending.incr("a", Decimal("1e-27")) == Decimal("10.000000000000000000000000001")
    assert trending.zrank("a", withscore=True, score_cast_func=float) == [0, 10.0]


@pytest.mark.parametrize(
    "score",
    [
        *("x", "", float("nan"), float("inf"), "-inf", True, None, b"1", "1" * 39, "1e126"),
        *("1e9999999", "1e-9999999", "1." + "0" * 450 + "1", 2**4000),
    ],
)
def test_what_is_no_score_is_refused(trending: SortedSet, score: Any) -> None:
    with pytest.raises(errors.UsageError):
        trending.zadd({"a": score})
    with pytest.raises(errors.UsageError):
        trending.incr("a", score)
    assert trending.zcard() == 0


class FloatThatNamesItsType(float):
    """As those of numpy do."""

    def __repr__(self) -> str:
        return f"float64({float(self)})"


def test_a_float_of_another_library_is_the_number_that_it_prints(trending: SortedSet) -> None:
    trending.zadd({"a": FloatThatNamesItsType(0.1)})
    assert trending.zscore("a") == Decimal("0.1")


def test_bounds_may_lie_beyond_all_scores(trending: SortedSet) -> None:
    trending.zadd({"a": -1, "b": 1})
    assert trending.zcount(0, 1.7e308) == trending.zcount("(-1e9999999", "(0") == 1
    assert trending.zrangebyscore("1e300", "+inf") == trending.zrangebyscore("-inf", "-1e300") == []


@pytest.mark.parametrize("ranked", [False, True])
def test_bounds_may_be_finer_than_any_score(memory: Store, ranked: bool) -> None:
    fine = SortedSet(memory, "fine", ranked=ranked)
    fine.create_table()
    fine.zadd({"a": -1, "b": 0, "c": "1e-130", "d": Decimal(1) / 3, "e": "1" * 38})
    below_e, above_e = "1" * 38 + "." + "0" * 9 + "1", "1" * 37 + "0." + "9" * 50
    assert fine.zrangebyscore(above_e, below_e) == ["e"]
    assert fine.zcount(below_e, "+inf") == fine.zcount("-inf", "-1." + "0" * 60 + "1") == 0
    assert fine.zcount("(-1e-200", "1e-200") == fine.zcount("(1e-200", "1e-130") == 1
    assert fine.zremrangebyscore("0." + "3" * 28, "0." + "3" * 60) == 1
    assert fine.zrange(0, -1) == ["a", "b", "c", "e"]


@pytest.mark.parametrize("ranked", [False, True])
def test_a_sum_that_cannot_be_stored_is_refused(memory: Store, ranked: bool) -> None:
    sums = SortedSet(memory, "sums", ranked=ranked)
    sums.create_table()
    sums.zadd({"a": Decimal("1" * 38)})
    for add in (lambda: sums.incr("a", 0.1), lambda: sums.zadd({"a": 0.1}, xx=True, incr=True)):
        with pytest.raises(errors.OutOfRange, match=r"the sum of 1{38} and 0\.1"):
            add()
    assert sums.zscore("a") == Decimal("1" * 38)


@given(
    st.integers(-(10**37), 10**37)
    | st.decimals(-(10**9), 10**9, allow_nan=False, places=9)
    | st.floats(-1e100, 1e100).filter(lambda number: abs(number) > 1e-100)
)
def test_a_score_is_the_number_that_is_seen(number: Any) -> None:
    assert score_of(number) == Decimal(str(number)) == score_of(str(number))


# Members


@pytest.mark.parametrize("member", [1, b"a", None, "\ud800", "x" * 1020])
def test_what_is_no_member_is_refused(trending: SortedSet, member: Any) -> None:
    for use in (
        lambda: trending.zadd({member: 1}),
        lambda: trending.zadd({member: 1, "a": 2}),
        lambda: trending.incr(member),
        lambda: trending.zscore(member),
    ):
        with pytest.raises(errors.UsageError):
            use()
    assert trending.zcard() == 0


def test_a_member_may_have_over_a_thousand_bytes(trending: SortedSet) -> None:
    longest = "é" * 508
    trending.zadd({longest: 1, "": 1, "#": 1, "MEMBER#": 1})
    assert trending.zrange(0, -1) == ["", "#", "MEMBER#", longest]


# What it costs


class Spent:
    """The requests of a store, and the items that they read."""

    def __init__(self) -> None:
        self._seen: list[Observation] = []
        self.store = isotone.connect(observe=[isotone.at_end(self._seen.append)])

    def on(self, do: Callable[[], Any]) -> list[tuple[str, int]]:
        self._seen.clear()
        do()
        return [(each.operation, each.scanned) for each in self._seen]


@pytest.fixture
def spent() -> Iterator[Spent]:
    spent = Spent()
    with spent.store:
        SortedSet(spent.store, "any").create_table()
        yield spent


def test_an_increment_is_one_write(spent: Spent) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    for songs in (
        SortedSet(spent.store, "a"),
        SortedSet(spent.store, "b", shards=9),
        SortedSet(spent.store, "c", expires=tomorrow),
    ):
        for _ in range(2):
            assert spent.on(lambda songs=songs: songs.incr("x", 0.1)) == [("UpdateItem", 0)]
            assert spent.on(lambda songs=songs: songs.zadd({"x": 1}, incr=True)) == [
                ("UpdateItem", 0)
            ]


def test_a_range_reads_what_it_brings_and_one_more(spent: Spent) -> None:
    songs = SortedSet(spent.store, "a")
    songs.zadd({f"{number}": number for number in range(300)})
    assert spent.on(lambda: songs.zrevrange(0, 9)) == [("Query", 11)]
    assert spent.on(lambda: songs.zrange(-10, -1)) == [("Query", 11)]
    assert spent.on(lambda: songs.zrange(20, 29)) == [("Query", 31)]
    assert spent.on(lambda: songs.zrangebyscore(100, "+inf", 5, 5)) == [("Query", 11)]
    assert spent.on(lambda: songs.zrangebylex("[2", "+", 0, 5)) == [("Query", 5)]
    sharded = SortedSet(spent.store, "b", shards=3)
    sharded.zadd({f"{number}": number for number in range(300)})
    assert spent.on(lambda: sharded.zrevrange(0, 9)) == [("Query", 11)] * 3


def test_members_of_one_score_are_found_by_the_shorter_way(spent: Spent) -> None:
    few = SortedSet(spent.store, "few")
    few.zadd({f"{number}": min(number, 297) for number in range(300)})
    asked = spent.on(lambda: few.zrevrange(0, 0))
    assert sum(items for _, items in asked) == 2 + 3
    many = SortedSet(spent.store, "many")
    many.zadd({f"{number}": 0 for number in range(5000)})
    asked = spent.on(lambda: many.zpopmin())
    assert sum(items for name, items in asked if name == "Query") <= 2 + 2 * 100


def test_ranks_and_counts_of_a_ranked_set_read_a_few_items(spent: Spent) -> None:
    ranked = SortedSet(spent.store, "r", ranked=True)
    ranked.zadd({f"{number}": number for number in range(400)})
    for ask in (
        lambda: ranked.zrank("250"),
        lambda: ranked.zcount(20, 300),
        ranked.zcard,
        lambda: ranked.zrevrange(300, 309),
    ):
        asked = spent.on(ask)
        assert all(name != "Scan" for name, _ in asked)
        assert sum(items or 1 for _, items in asked) <= 12


def test_up_to_a_hundred_members_change_in_one_transaction(spent: Spent) -> None:
    songs = SortedSet(spent.store, "a")
    added = spent.on(lambda: songs.zadd({f"{number}": 1 for number in range(100)}))
    assert [name for name, _ in added] == ["BatchGetItem", "TransactWriteItems"]
    removed = spent.on(lambda: songs.zrem(*map(str, range(101))))
    assert [name for name, _ in removed] == ["BatchGetItem", "TransactWriteItems", "GetItem"]
    assert [name for name, _ in spent.on(lambda: songs.zadd({"a": 1}))] == ["GetItem", "PutItem"]


# Several who write at once


@pytest.mark.parametrize("kind", KINDS[:3], ids=str)
def test_no_increment_is_lost_and_nobody_pops_the_same(
    tmp_path: Path, kind: dict[str, Any]
) -> None:
    with isotone.connect(f"{tmp_path}/sets.db", durability="process") as store:
        jobs = SortedSet(store, "jobs", **kind)
        jobs.create_table()

        def work(seed: int) -> None:
            for number in range(20):
                jobs.incr("total", 0.1)
                jobs.zadd({f"{seed}:{number}": 1000 + number, "least": -number}, lt=True)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert jobs.zscore("total") == 8
        assert jobs.zscore("least") == -19
        assert jobs.zrem("total", "least") == 2
        with ThreadPoolExecutor(4) as pool:
            popped = [
                each for found in pool.map(lambda _: jobs.zpopmin(25), range(4)) for each in found
            ]
        assert len(popped) == len(set(popped)) == 80
        assert jobs.zcard() == 0


def test_a_member_that_moves_while_it_is_looked_for_goes_once(memory: Store) -> None:
    jobs = SortedSet(memory, "jobs")
    jobs.create_table()
    jobs.load((f"{number:01000}", number) for number in range(1500))  # a page is 1 MB
    backend = Overtaken(memory.backend)
    backend.before["Query"] = [lambda: None, lambda: jobs.zincrby(10_000, f"{0:01000}")]
    with isotone.connect(backend) as store:
        popped = SortedSet(store, "jobs").zpopmin(2000)
    assert len(popped) == len(dict(popped)) == 1500
    assert popped[-1] == (f"{0:01000}", 10_000)
    jobs.load((f"{number:01000}", number) for number in range(1500))
    backend.before["Query"] = [lambda: None, lambda: jobs.zincrby(-10_000, f"{1499:01000}")]
    with isotone.connect(backend) as store:
        assert SortedSet(store, "jobs").delete() == 1
    assert jobs.zcard() == 0


def test_a_scan_sees_what_stays_exactly_once_whatever_comes_and_goes(memory: Store) -> None:
    for shards in (1, 3):
        songs = SortedSet(memory, f"songs {shards}", shards=shards)
        songs.create_table()
        songs.zadd({f"stays {number}": number for number in range(50)})
        songs.zadd({f"goes {number}": number for number in range(50)})
        seen = []
        for turn, (member, _) in enumerate(songs.zscan_iter(count=7)):
            seen.append(member)
            songs.zincrby(-1000, f"stays {turn % 50}")
            songs.zrem(f"goes {turn}")
            songs.zadd({f"comes {turn}": 3})
        stayed = [member for member in seen if member.startswith("stays")]
        assert sorted(stayed) == sorted(f"stays {number}" for number in range(50))
        assert len(seen) == len(set(seen))


def test_a_cursor_is_no_cursor_of_another_set(trending: SortedSet) -> None:
    trending.zadd({"a": 1, "b": 2})
    other = SortedSet(trending.store, "other")
    cursor, _ = trending.zscan(count=1)
    for wrong in (cursor, "5.", "x", "7"):
        with pytest.raises(errors.InvalidCursor):
            other.zscan(wrong)


def test_a_cursor_between_two_shards_belongs_to_its_set(memory: Store) -> None:
    one, other, fewer = (
        SortedSet(memory, name, shards=shards) for name, shards in (("a", 8), ("b", 8), ("a", 4))
    )
    one.create_table()
    one.zadd({f"m{number}": number for number in range(40)})
    cursors, cursor = [], one.zscan(count=1)[0]
    while cursor != 0:
        cursors.append(cursor)
        cursor, _ = one.zscan(cursor, count=1)
    assert len(cursors) >= 40
    for cursor in [*cursors, "3.", "3.x"]:
        for wrong in (other, fewer):
            with pytest.raises(errors.InvalidCursor):
                wrong.zscan(cursor)


def test_a_blocking_pop_waits_for_members(clock: ManualClock) -> None:
    with isotone.connect(clock=clock) as store:
        hasty = Hasty.over(store)
        jobs, more = SortedSet(hasty, "jobs"), SortedSet(hasty, "more")
        jobs.create_table()
        begun = clock.now()
        assert jobs.bzpopmin(timeout=5) is None
        assert clock.now() - begun == pytest.approx(5)
        elsewhere = SortedSet(store, "more")
        hasty.between = lambda: elsewhere.zadd({"a": 1, "b": 2})
        assert jobs.bzpopmax([more]) == ("more", "b", 2)
        assert jobs.bzmpop(9, [more], min=True, count=3) == ["more", [("a", 1)]]


def test_the_time_that_requests_take_counts_for_a_blocking_pop(
    memory: Store, clock: ManualClock
) -> None:
    with isotone.connect(
        InterceptedBackend(memory.backend, lambda *_: clock.advance(1)), clock=clock
    ) as store:
        jobs = SortedSet(Hasty.over(store), "jobs")
        jobs.create_table()
        begun = clock.now()
        assert jobs.bzpopmin(timeout=5) is None
        assert 5 <= clock.now() - begun < 7
        with pytest.raises(errors.UsageError, match="below 0"):
            jobs.bzmpop(-1, min=True)


@pytest.mark.parametrize(("kind", "at_once"), [({}, 100), ({"ranked": True}, 1)])
def test_what_was_popped_is_given_even_where_the_rest_fails(
    memory: Store, kind: dict[str, Any], at_once: int
) -> None:
    jobs = SortedSet(memory, "jobs", **kind)
    jobs.create_table()
    jobs.load((f"{number:03}", number) for number in range(250))
    failing_later = refuse_after(2, errors.ConnectionFailed("no answer"))
    with isotone.connect(InterceptedBackend(memory.backend, failing_later)) as store:
        failing = SortedSet(store, "jobs", **kind)
        popped = failing.zpopmin(230)
        assert [score for _, score in popped] == [*range(2 * at_once)]
        with pytest.raises(errors.ConnectionFailed):
            failing.zpopmin(30)
    assert jobs.zcard() == 250 - 2 * at_once


# Where it lives


def test_a_sorted_set_shares_a_table_with_entities_and_other_sets(memory: Store) -> None:
    shop = SortedSet.layout("shop")

    class Song(Entity, table=shop):
        number: Attr[int] = field(max=999)

        primary = Key("SONG", number).sort("SONG")

    one, two = (
        SortedSet(memory, "one", table=shop),
        SortedSet(memory, "two", table=shop, ranked=True),
    )
    one.create_table()
    memory.put(Song(number=1))
    one.zadd({"a": 1})
    two.zadd({"a": 2})
    assert (one.zscore("a"), two.zscore("a"), one.zunion([two])) == (1, 2, ["a"])
    assert [song.number for song in memory.all(Song.primary.where(Song.number == 1))] == [1]


def test_sets_of_another_store_do_not_go_together(trending: SortedSet) -> None:
    with isotone.connect() as store, pytest.raises(errors.UsageError, match="same store"):
        trending.zunion([SortedSet(store, "a")])


@pytest.mark.filterwarnings("error")
def test_a_set_may_have_a_thousand_shards(memory: Store) -> None:
    wide = SortedSet(memory, "wide", shards=1000)
    wide.create_table()
    wide.load((f"{number:04}", 1) for number in range(4000))
    assert wide.zrange(0, 2) == ["0000", "0001", "0002"]  # each shard is cut off between equals
    assert wide.zscan(count=1)[0] != 0


@pytest.mark.parametrize("shards", [0, 1001])
def test_a_number_of_shards_that_cannot_be_is_refused(memory: Store, shards: int) -> None:
    with pytest.raises(errors.UsageError):
        SortedSet(memory, "a", shards=shards)


def test_over_an_async_store() -> None:
    async def program() -> list[Any]:
        async with isotone.aconnect() as store:
            songs = SortedSet(store, "songs")
            await songs.create_table()
            await asyncio.gather(*(songs.incr("a", 0.1) for _ in range(10)))
            await songs.zadd({"b": 2})
            scanned = [pair async for pair in songs.zscan_iter(count=1)]
            return [scanned, await songs.zrevrange(0, 0), await songs.bzpopmin(timeout=1)]

    assert asyncio.run(program()) == [[("a", 1), ("b", 2)], ["b"], ("songs", "a", 1)]


# Bounds


@given(st.text("ab*?", max_size=5), st.text("abc", max_size=5))
@settings(max_examples=examples(200))
def test_a_pattern_without_brackets_is_that_of_a_shell(pattern: str, member: str) -> None:
    assert bool(matcher(pattern)(member)) == fnmatchcase(member, pattern)


stored = st.builds(
    lambda digits, exponent: score_of(Decimal(digits).scaleb(exponent)),
    st.integers(-(10**5), 10**5) | st.sampled_from([10**37, 10**38 - 1, 1 - 10**38]),
    st.sampled_from([-130, -120, -38, -1, 0, 3, 87]),
)


@given(stored)
def test_nothing_is_between_a_score_and_the_next_above(score: Decimal) -> None:
    above = ScoreRange.of(f"({score}", "+inf")
    if above.is_empty:
        assert score == Decimal(10**38 - 1).scaleb(88)
        return
    following = above.low
    assert following > score
    assert ScoreRange.of("-inf", f"({following}").high == score
    assert score_of(following) == following
    with pytest.raises(errors.OutOfRange):
        score_of(EXACT.divide(EXACT.add(score, following), Decimal(2)))


def test_a_range_between_open_bounds_reads_nothing_else(spent: Spent) -> None:
    songs = SortedSet(spent.store, "a")
    songs.zadd({f"{number}": number // 10 for number in range(50)})
    assert spent.on(lambda: songs.zrangebyscore("(1", "(3")) == [("Query", 10)]
    assert spent.on(lambda: songs.zcount(1, "(3")) == [("Query", 20)]
    assert songs.zcount("(9999999999", "+inf") == songs.zcount("(3", "(3") == 0


numbers = st.integers(-3, 3)


@given(numbers, numbers, st.booleans(), st.booleans(), numbers)
def test_a_range_of_scores_has_what_lies_between(
    low: int, high: int, without_low: bool, without_high: bool, score: int
) -> None:
    bounds = ScoreRange.of(f"({low}" if without_low else low, f"({high}" if without_high else high)
    above = low < score if without_low else low <= score
    below = score < high if without_high else score <= high
    assert (Decimal(score) in bounds) == (above and below)


def test_with_ranks_a_change_happens_once_whose_answer_was_lost(memory: Store) -> None:
    ranked = SortedSet(memory, "lost", ranked=True)
    ranked.create_table()
    ranked.load((f"m{number:03}", number) for number in range(100))
    with isotone.connect(Repeating(memory.backend), clock=memory.clock) as losing:
        again = SortedSet(losing, "lost", ranked=True)
        assert again.zincrby(60, "m005") == 65
        assert again.zpopmin() == [("m000", 0)]
        assert again.zpopmax(2) == [("m099", 99), ("m098", 98)]
        assert again.zadd({"new": 7}, nx=True, incr=True) == 7
        assert again.zrem("m050") == 1
    assert ranked.zcard() == 97
    assert ranked.ranking is not None
    assert memory.run(ranked.ranking.check()).faults == []


@pytest.mark.parametrize(("member", "instead"), [(b"a", r"b'a'\.decode\(\)"), (7, r"str\(7\)")])
def test_a_member_that_is_not_a_text_is_refused_with_what_to_write(
    memory: Store, member: Any, instead: str
) -> None:
    ranks = SortedSet(memory, "ranks")
    ranks.create_table()
    with pytest.raises(errors.UsageError, match=f"members are strings, so write {instead}"):
        ranks.zadd({member: 1})


# Counting, and bounds


def test_sets_that_have_a_member_are_counted(memory: Store) -> None:
    one, two, three, out = (SortedSet(memory, name) for name in ("one", "two", "three", "out"))
    one.create_table()
    one.zadd({"a": 5, "b": -7})
    two.zadd({"a": 100, "c": 0})
    three.zadd({"a": 1, "b": 2})
    assert out.zunionstore([one, two, three], aggregate="COUNT") == 3
    assert out.zrange(0, -1, withscores=True) == [("c", 1), ("b", 2), ("a", 3)]
    assert out.zinterstore({one: 2, three: Decimal("0.5")}, aggregate="count") == 2
    assert out.zrange(0, -1, withscores=True) == [("a", Decimal("2.5")), ("b", Decimal("2.5"))]
    assert one.zunion([two], aggregate="COUNT", withscores=True) == [("b", 1), ("c", 1), ("a", 2)]
    assert one.zinter({two: -1}, aggregate="COUNT", withscores=True) == [("a", 0)]


@pytest.mark.parametrize("command", ["zunion", "zinter", "zunionstore", "zinterstore"])
def test_an_unknown_aggregate_is_refused_before_anything_is_read(
    memory: Store, command: str
) -> None:
    one, two = SortedSet(memory, "one"), SortedSet(memory, "two")  # a read would find no table
    with pytest.raises(errors.UsageError, match="SUM, MIN, MAX or COUNT, not 'AVG'"):
        getattr(one, command)([two], aggregate="AVG")


def test_repeated_random_members_have_a_bound(memory: Store) -> None:
    songs = SortedSet(memory, "songs")
    songs.create_table()
    songs.zadd({"a": 1, "b": 2})
    assert set(songs.zrandmember(-1_000)) == {"a", "b"}
    for count in (-1_000_001, -9 * 10**18):
        with pytest.raises(errors.UsageError, match="give -1000000 or more"):
            songs.zrandmember(count)


def test_a_scan_of_a_small_sharded_set_is_one_page(memory: Store) -> None:
    wide = SortedSet(memory, "wide", shards=8)
    wide.create_table()
    scores = {f"m{number}": Decimal(number) for number in range(20)}
    wide.zadd(scores)
    cursor, members = wide.zscan()
    assert cursor == 0
    assert dict(members) == scores
    for count in (1, 3, 7, 19, 20, 21):
        found: list[tuple[str, Any]] = []
        following: Any = 0
        pages = 0
        while pages == 0 or following != 0:
            following, members = wide.zscan(following, count=count)
            assert len(members) <= count
            found += members
            pages += 1
        assert dict(found) == scores
        assert len(found) == 20
        assert pages <= 20 // count + 9
