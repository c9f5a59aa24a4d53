"""Forecasts of workloads: keys and their owners, loads, growth, costs, shards, and the check at a larger size."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import LONG

from isotone import Attr, Entity, Global, Index, Key, Query, Store, Table, field
from isotone.advisor.simulation import (
    Forecast,
    SimulationInterrupted,
    Workload,
    WorkloadCall,
    check,
    report,
    simulate,
)
from isotone.advisor.simulation.forecast import SURE
from isotone.advisor.simulation.partitions import (
    PartitionLoad,
    number_of,
    partition_of,
    placed,
)
from isotone.advisor.simulation.plots import save
from isotone.advisor.simulation.runs import interval_of
from isotone.advisor.simulation.workload import Ranks
from isotone.demo.workload import load as demo_load
from isotone.errors import UsageError
from isotone.prices import US_EAST_1, Prices
from isotone.structures import Feed, Leaderboard, Queue, SortedSet

songs = Table("Songs", indexes={"ByLabel": Global("LabelPK", "LabelSK")})
FLAT = [1.0] * 24
# Members of a sample, and of a check, which are ten times as many in the long form, or four times.
MEMBERS, LARGER = (40, None) if LONG else (20, 80)


class Song(Entity, table=songs):
    id: Attr[str] = field()
    label: Attr[str] = field(default="indie")
    plays: Attr[int] = field(default=0)
    text: Attr[str] = field(default="")

    primary = Key("SONG", id).sort("INFO")
    by_label = Index("ByLabel", label).sort(id)


class Chart(Entity, table=songs):
    name: Attr[str] = field()
    plays: Attr[int] = field(default=0)

    primary = Key("CHART", name).sort("TOTAL")


class Play(Entity, table=songs):
    listener: Attr[str] = field()
    number: Attr[int] = field(max=10**12)
    song: Attr[str] = field()

    primary = Key("LISTENER", listener).sort("PLAY", number)


def plays_of(listener: str) -> Query[Play]:
    return Play.primary.where(Play.listener == listener)


def workload(listeners: int = 1_000_000, titles: int = 100_000) -> Workload:
    load = Workload("songs", tables=[songs], hours=FLAT)
    people = load.population("listener", listeners, activity=0.5)
    music = load.population("song", titles, popularity=1.0)

    @load.prepare
    def chart(store: Store) -> None:
        store.put(Chart(name="today"))

    @music.starts_with
    def publish(call: WorkloadCall) -> None:
        call.store.put(Song(id=call.member.id))

    @load.action(by=people, per_day=40)
    def play(call: WorkloadCall) -> None:
        song = call.draw(music)
        number = call.chance.randrange(10**11)
        call.store.put(Play(listener=call.member.id, number=number, song=song.id))
        call.store.update(Chart, Chart.plays.add(1), name="today")

    @load.action(by=people, per_day=10)
    def recent(call: WorkloadCall) -> None:
        call.store.page(plays_of(call.member.id), size=10)

    return load


def counting(hours: list[float] | None = None) -> Workload:
    """One write of one key: what needs no members is found by this in a tenth of the time."""
    load = Workload("counting", tables=[songs], hours=hours or FLAT)

    @load.action(per_second=10)
    def count(call: WorkloadCall) -> None:
        call.store.put(Chart(name="today", plays=call.chance.randrange(9)))

    return load


def forecast_of(load: Workload) -> Forecast:
    return simulate(load, members=MEMBERS)


@pytest.fixture(scope="module")
def plain() -> Forecast:
    """The forecast of the workload as it is; running it is what takes time."""
    return forecast_of(workload())


def keys_of(found: Forecast) -> dict[str, PartitionLoad]:
    return {key.label: key.load for key in found.hottest}


def test_a_shared_key_gets_the_calls_of_everybody(plain: Forecast) -> None:
    found = plain
    per_second = 1_000_000 * 40 / 86400
    chart = keys_of(found)["Songs: CHART#today"]
    assert chart.writes == pytest.approx(per_second)
    assert found.hottest[0].label == "Songs: CHART#today"
    assert found.hottest[0].is_shared


def test_a_members_key_gets_the_calls_of_its_rank(plain: Forecast) -> None:
    found = plain
    per_second = 1_000_000 * 40 / 86400
    shares = [rank**-0.5 for rank in range(1, 1_000_001)]
    first = keys_of(found)["Songs: LISTENER#{listener 1}"]
    assert first.writes == pytest.approx(per_second * shares[0] / sum(shares), rel=0.01)


def test_the_total_is_that_of_all_calls(plain: Forecast) -> None:
    (table, index) = plain.places
    assert table.average.writes == pytest.approx(2 * 1_000_000 * 40 / 86400)
    assert table.average.reads == pytest.approx(0.5 * 1_000_000 * 10 / 86400)
    assert str(index.place) == "Songs.ByLabel"
    assert index.average.units == 0


def test_the_busiest_hour_is_that_of_the_day() -> None:
    found = forecast_of(counting(hours=[1.0] * 23 + [5.0]))
    table = found.places[0]
    assert table.peak.writes == pytest.approx(table.average.writes * 5 / (28 / 24))


def test_storage_grows_with_members_and_calls(plain: Forecast) -> None:
    table = plain.places[0]
    song = 27 + 4 + 4 + 90  # about: keys, kind, index keys
    assert 0.5 < table.stored / (100_000 * song) < 2.5
    play = table.growth / (1_000_000 * 40)
    assert 80 < play < 300  # bytes of one play


def test_throttling_is_what_exceeds_a_partition() -> None:
    load = Workload("counter", tables=[songs], hours=FLAT)

    @load.prepare
    def chart(store: Store) -> None:
        store.put(Chart(name="today"))

    @load.action(per_second=4000)
    def count(call: WorkloadCall) -> None:
        call.store.update(Chart, Chart.plays.add(1), name="today")

    found = forecast_of(load)
    (key,) = found.hottest
    assert key.load.use == pytest.approx(4.0)
    assert key.throttled == pytest.approx(0.75)
    assert found.throttled == pytest.approx(0.75)
    assert key.wanted_shards == 6
    divided = found.with_shards({key.label: 6})
    assert divided.throttled == 0
    assert divided.hottest[0].load.writes == pytest.approx(4000 / 6)
    assert found.throttled == pytest.approx(0.75), "the first forecast has not changed"


def test_reads_ask_all_shards() -> None:
    load = Workload("chart", tables=[songs], hours=FLAT)

    @load.prepare
    def chart(store: Store) -> None:
        store.put(Chart(name="today"))

    @load.action(per_second=2000)
    def count(call: WorkloadCall) -> None:
        call.store.update(Chart, Chart.plays.add(1), name="today")

    @load.action(per_second=1000)
    def look(call: WorkloadCall) -> None:
        call.store.get(Chart, name="today")

    found = forecast_of(load)
    assert found.places[0].average.reads == pytest.approx(500)
    divided = found.with_shards({"Songs: CHART#today": 4})
    assert divided.places[0].average.reads == pytest.approx(4 * 500)
    assert divided.places[0].average.writes == pytest.approx(2000)
    assert divided.costs.on_demand > found.costs.on_demand


def test_an_index_amplifies_writes() -> None:
    load = Workload("labels", tables=[songs], hours=FLAT)
    music = load.population("song", 10_000)

    @load.action(by=music, per_day=1)
    def publish(call: WorkloadCall) -> None:
        number = f"{call.chance.randrange(10**9)}"
        call.store.put(Song(id=number, label=call.member.id[-1]))

    found = forecast_of(load)
    assert found.amplification == pytest.approx(2.0, abs=0.01)
    assert {str(place.place) for place in found.places} == {"Songs", "Songs.ByLabel"}


def test_a_key_of_the_minute_is_busy_while_it_lasts() -> None:
    load = Workload("minutes", tables=[songs], hours=FLAT)

    @load.action(per_second=600)
    def count(call: WorkloadCall) -> None:
        part = int(call.clock.now()) // 15
        call.store.put(Chart(name=f"{part}", plays=call.chance.randrange(100)))

    found = forecast_of(load)
    busiest = found.hottest[0]
    assert busiest.load.writes == pytest.approx(600, rel=0.15)


def test_keys_of_minutes_follow_one_another() -> None:
    """Each throttles half of the writes while it lasts, so all together throttle half."""
    load = Workload("minutes", tables=[songs], hours=FLAT)

    @load.action(per_second=2000)
    def count(call: WorkloadCall) -> None:
        part = int(call.clock.now()) // 15
        call.store.put(Chart(name=f"{part}", plays=call.chance.randrange(100)))

    found = forecast_of(load)
    assert len(found.hottest) == 4
    assert found.throttled == pytest.approx(0.5, abs=0.1)


def test_what_an_action_deletes_is_not_stored() -> None:
    load = Workload("fleeting", tables=[songs], hours=FLAT)

    @load.action(per_second=10)
    def come_and_go(call: WorkloadCall) -> None:
        name = f"{call.chance.random()}"
        call.store.put(Chart(name=name))
        call.store.delete(Chart, name=name)

    assert forecast_of(load).places[0].growth == 0


def test_statements_are_refused() -> None:
    load = Workload("sql", tables=[songs])

    @load.action(per_second=10)
    def select(call: WorkloadCall) -> None:
        call.store.backend.execute("ExecuteStatement", {"Statement": "SELECT * FROM Songs"})

    with pytest.raises(UsageError, match="ExecuteStatement cannot be simulated"):
        forecast_of(load)


_OF_A_SEED = """
import hashlib, json
from isotone import Attr, Entity, Key, Table, field
from isotone.advisor.simulation import Workload, simulate
from isotone.advisor.simulation.forecast import as_dict

songs = Table("Songs")

class Chart(Entity, table=songs):
    name: Attr[str] = field()
    plays: Attr[int] = field(default=0)
    primary = Key("CHART", name).sort("TOTAL")

load = Workload("songs", tables=[songs])
people = load.population("listener", 1000, activity=0.5)
load.population("song", 100, popularity=1.0)

@load.action(by=people, per_day=3)
def count(call):
    first, second = call.draw("song"), call.draw("song")
    name = hashlib.md5((first.id + second.id).encode()).hexdigest()[:2]
    call.store.put(Chart(name=name, plays=call.chance.randrange(9)))

print(json.dumps(as_dict(simulate(load, members=20))))
"""


def test_a_seed_gives_the_same_forecast_in_every_process() -> None:
    def forecast(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(
            [sys.executable, "-c", _OF_A_SEED],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
            cwd=Path(__file__).parents[2],
        ).stdout

    assert len({forecast(seed) for seed in "12"}) == 1


def test_what_grows_with_the_members_is_found() -> None:
    """A scan of all members grows with their number, and a rank with its logarithm."""
    load = Workload("growth", tables=[songs], hours=FLAT)
    music = load.population("song", 100_000)

    @music.starts_with
    def publish(call: WorkloadCall) -> None:
        call.store.put(Song(id=call.member.id, text="x" * 4000))

    @load.action(by=music, per_day=1)
    def list_all(call: WorkloadCall) -> None:
        list(call.store.scan(Song.primary.scan()))

    found = simulate(load, members=MEMBERS)
    (trend,) = found.growing.values()
    assert trend.exponent == pytest.approx(1.0, abs=0.25)
    assert "list_all: what a call consumes in Songs grows" in report(found)
    per_call = found.places[0].average.reads / (100_000 / 86400)
    measured = simulate(load, members=40, size=40).places[0].average.reads / (40 / 86400)
    assert per_call == pytest.approx(measured * 2500, rel=0.15)


def test_the_forecast_holds_at_a_larger_size(plain: Forecast) -> None:
    compared = check(plain, members=LARGER)
    assert len(compared) >= 5
    assert {
        each.what: round(each.difference, 3) for each in compared if abs(each.difference) > 0.1
    } == {}
    shared = [each for each in compared if "CHART" in each.what]
    assert shared
    assert shared[0].measured > 0


def test_a_check_is_no_larger_than_the_forecast() -> None:
    titles: set[str] = set()
    found = simulate(workload(), members=MEMBERS, size=30)
    compared = check(found, progress=lambda what, done, of: titles.add(what))
    assert titles == {"run 1 of 1, with 30 members"}
    writes = next(each for each in compared if each.what == "Songs: writes a second")
    assert writes.measured == pytest.approx(30 * 2 * 40 / 86400)


def test_no_more_members_run_than_there_are() -> None:
    titles: set[str] = set()
    found = simulate(workload(), size=30, progress=lambda what, done, of: titles.add(what))
    assert found.sampled["listener"] == 30
    assert "run 9 of 9, with 30 members" in titles
    assert found.wanted_members is None


# How sure a figure is


@pytest.mark.parametrize("drift", [0.0, 3.0, -6.0, 30.0])
def test_an_interval_covers_95_of_100_figures(drift: float) -> None:
    """Figures of normal chance around 100, and one that comes closer to it with the root of the members."""
    chance = random.Random(1)
    ratio, deviation, covered, widths = 8, 4.0, 0, 0.0
    for _ in range(2000):
        large = chance.gauss(100 + drift / math.sqrt(ratio), deviation / math.sqrt(ratio))
        small = [chance.gauss(100 + drift, deviation) for _ in range(8)]
        found = interval_of(large, small, ratio)
        covered += 100 in found
        widths += found.half
    assert covered / 2000 > 0.935
    missing = abs(drift) / math.sqrt(ratio)
    assert widths / 2000 < 1.1 * missing + 4 * deviation / math.sqrt(ratio)  # chance alone: 2.365


@given(st.floats(0, 1e6), st.lists(st.floats(0, 1e6), min_size=2, max_size=8), st.integers(1, 5000))
def test_an_interval_has_its_figure(large: float, small: list[float], calls: int) -> None:
    found = interval_of(large, small, 8.0, calls=calls)
    assert 0 <= found.low <= large <= found.high
    assert large in found
    with_measured = interval_of(large, small, 8.0, calls=calls, measured=10.0)
    assert with_measured.half >= found.half * (1 - 1e-9)


def test_what_none_of_n_calls_did_may_happen() -> None:
    assert interval_of(50.0, [50.0] * 8, 8.0, calls=300).half == pytest.approx(50 * 3 / 300)


@pytest.mark.parametrize(
    "kind",
    ["songs", "leaderboard", "sorted set", "queues", "feed", "demo"] if LONG else ["songs"],
)
def test_intervals_have_what_is_measured(kind: str) -> None:
    """At ten times the members, in the long form; 19 of 20 figures, and one more for the chance of this test."""
    made = {**_WITH_STRUCTURES, "songs": workload, "demo": lambda: demo_load}[kind]
    compared = [
        each
        for seed in range(5 if LONG else 1)
        for each in check(
            simulate(made(), members=MEMBERS, seed=seed), members=LARGER, seed=100 + seed
        )
    ]
    outside = [each for each in compared if each.measured not in each.interval]
    assert len(outside) <= 1 + len(compared) // 20, outside
    sure = sorted(each.interval.half / each.measured for each in compared)
    assert (
        sure[len(sure) // 2] < 0.3
    )  # an interval from nothing to everything has all, and says nothing


def test_more_members_make_a_figure_surer() -> None:
    """Items whose sizes differ by chance: an interval shrinks with the root of the members."""
    load = Workload("texts", tables=[songs], hours=FLAT)
    music = load.population("song", 100_000)

    @load.action(by=music, per_day=1)
    def publish(call: WorkloadCall) -> None:
        number = f"{call.chance.randrange(10**9)}"
        size = 300_000 if call.chance.random() < 0.05 else 100
        call.store.put(Song(id=number, text="x" * size))

    few = simulate(load, members=20)
    what, part = few.least_sure
    assert part > SURE
    wanted = few.wanted_members
    assert wanted is not None
    assert wanted == pytest.approx(20 * (part / SURE) ** 2, rel=0.1)
    assert what == "the month's cost" or what.startswith("Songs: ")
    more = simulate(load, members=120)
    assert more.least_sure[1] < part


def test_an_interruption_keeps_what_is_finished() -> None:
    def interrupted(after: int) -> Forecast | None:
        def stop(what: str, done: int, of: int) -> None:
            if what.startswith(f"run {after + 1} "):
                raise KeyboardInterrupt

        with pytest.raises(SimulationInterrupted) as caught:
            simulate(workload(), members=160, progress=stop)
        return caught.value.forecast

    assert interrupted(8) is None
    known = interrupted(9)
    assert known is not None
    assert known.sampled["listener"] == 20
    per_second = 1_000_000 * 40 / 86400
    assert known.hottest[0].load.writes == pytest.approx(per_second)
    assert known.part_unsure(lambda found: found.costs.on_demand) > 0


def test_a_member_that_a_drawn_one_leads_to_gets_its_calls() -> None:
    """The index has the plays of an artist's songs: no call draws an artist, and each draws a song."""
    found = simulate(demo_load, members=MEMBERS)
    keys = keys_of(found)
    song, artist = (
        keys[f"songs: SONG#{{song {number}}}"].writes / keys_of_artist.writes
        for number, keys_of_artist in (
            (1, keys["songs.GSI1: ARTIST#{artist of {song 1}}"]),
            (3, keys["songs.GSI1: ARTIST#{artist of {song 3}}"]),
        )
    )
    assert song == artist == pytest.approx(0.5, rel=0.1)  # an entry is deleted and written
    assert not any("artist-" in label for label in keys)


def test_a_forecast_that_is_wrong_is_reported() -> None:
    """The size of an item depends on the number of members: nothing that a sample could know."""
    load = Workload("tricky", tables=[songs], hours=FLAT)
    music = load.population("song", 100_000)

    @load.action(by=music, per_day=1)
    def publish(call: WorkloadCall) -> None:
        label = "x" * (5000 if call.member.number > 50 else 10)
        call.store.put(Song(id=call.member.id, label=label[:900], plays=1))
        if call.member.number > 50:
            call.store.put(Song(id=call.member.id + "x", label=label[:900], plays=1))

    compared = check(simulate(load, members=MEMBERS), members=LARGER)
    assert max(abs(each.difference) for each in compared) > 0.3


@pytest.mark.parametrize(
    "kind", ["sorted set", "leaderboard", "feed", "queues"] if LONG else ["leaderboard"]
)
def test_structures_at_a_larger_size(kind: str) -> None:
    forecast = simulate(_WITH_STRUCTURES[kind](), members=200 if LONG else MEMBERS)
    compared = check(forecast, members=LARGER)
    assert {
        each.what: round(each.difference, 3) for each in compared if abs(each.difference) > 0.1
    } == {}


def _of_sorted_set() -> Workload:
    load = Workload("ranked", hours=FLAT)
    people = load.population("player", 1_000_000)

    @load.prepare
    def make(store: Store) -> SortedSet:
        scores = SortedSet(store, "scores")
        scores.create_table()
        return scores

    @people.starts_with
    def join(call: WorkloadCall) -> None:
        # Members with equal scores cost a read of them all, so as many scores as members can have are drawn.
        call.world.zadd({call.member.id: call.chance.randrange(10**9)})

    @load.action(by=people, per_day=10)
    def win(call: WorkloadCall) -> None:
        call.world.zincrby(1, call.member.id)

    @load.action(by=people, per_day=10)
    def top(call: WorkloadCall) -> None:
        call.world.zrange(0, 9, desc=True)

    return load


def _of_leaderboard() -> Workload:
    load = Workload("board", hours=FLAT)
    people = load.population("store", 10_000)

    @load.prepare
    def make(store: Store) -> Leaderboard:
        board = Leaderboard(store, "speed")
        board.create_table()
        return board

    @people.starts_with
    def join(call: WorkloadCall) -> None:
        call.world.record(call.member.id, call.chance.randrange(1000))

    @load.action(by=people, per_day=20)
    def serve(call: WorkloadCall) -> None:
        call.world.record(call.member.id, call.chance.randrange(1000))

    @load.action(by=people, per_day=10)
    def top(call: WorkloadCall) -> None:
        call.world.top(10)

    return load


def _of_feed() -> Workload:
    load = Workload("site", hours=FLAT)
    people = load.population("user", 1_000_000)

    @load.prepare
    def make(store: Store) -> Feed:
        feed = Feed(store, "site")
        feed.worker().create_tables(store)
        feed.create_table()
        feed.worker().create_tables(store)
        return feed

    @people.starts_with
    def join(call: WorkloadCall) -> None:
        for _ in range(3):
            author = call.draw(people)
            if author != call.member:
                call.world.follow(call.member.id, author.id)

    @load.action(by=people, per_day=20)
    def read(call: WorkloadCall) -> None:
        call.world.read(call.member.id)

    @load.action(by=people, per_day=1)
    def post(call: WorkloadCall) -> None:
        call.world.post(call.member.id, "Hello")

    return load


def _of_queues() -> Workload:
    """Each shop has a queue of its own orders."""
    load = Workload("shops", hours=FLAT)
    shops = load.population("shop", 1_000_000)

    def queue(call: WorkloadCall) -> Queue:
        return Queue(call.store, call.member.id)

    @load.prepare
    def make(store: Store) -> None:
        Queue(store, "any").create_table()

    @shops.starts_with
    def begin(call: WorkloadCall) -> None:
        queue(call).put({"order": 0})

    @load.action(by=shops, per_day=10)
    def order(call: WorkloadCall) -> None:
        queue(call).put({"order": call.chance.randrange(1000)})

    @load.action(by=shops, per_day=10)
    def deliver(call: WorkloadCall) -> None:
        orders = queue(call)
        for message in orders.claim(1):
            orders.acknowledge(message)

    return load


_WITH_STRUCTURES = {
    "sorted set": _of_sorted_set,
    "leaderboard": _of_leaderboard,
    "feed": _of_feed,
    "queues": _of_queues,
}


@pytest.fixture(scope="module")
def large() -> Forecast:
    return simulate(workload(), members=MEMBERS, size=10_000_000)


def test_the_size_can_be_given(large: Forecast) -> None:
    found = large
    assert found.sizes == {"listener": 10_000_000, "song": 1_000_000}
    assert found.places[0].average.writes == pytest.approx(2 * 10_000_000 * 40 / 86400)


def test_prices_are_replaceable() -> None:
    twice = Prices("mars", "2030", 0.25, 1.25, 0.00026, 0.0013, 0.5)
    here = simulate(counting(), members=MEMBERS).costs
    there = simulate(counting(), members=MEMBERS, prices=twice).costs
    assert there.on_demand == pytest.approx(2 * here.on_demand)
    assert there.provisioned == pytest.approx(2 * here.provisioned)
    assert there.storage == pytest.approx(2 * here.storage)


def test_the_months_cost() -> None:
    load = Workload("counter", tables=[songs], hours=FLAT)

    @load.prepare
    def chart(store: Store) -> None:
        store.put(Chart(name="today"))

    @load.action(per_second=100)
    def count(call: WorkloadCall) -> None:
        call.store.update(Chart, Chart.plays.add(1), name="today")

    costs = forecast_of(load).costs
    assert costs.on_demand == pytest.approx(US_EAST_1.on_demand(writes=100 * 730 * 3600))
    assert costs.provisioned == pytest.approx(100 / 0.7 * 0.00065 * 730)


def test_the_report_names_what_to_change(large: Forecast) -> None:
    text = report(large)
    assert "Songs: CHART#today gets 4,630 write units a second, and one key can have 1,000" in text
    assert "--shard 'Songs: CHART#today=7'" in text


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_picture_is_written(plain: Forecast, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"songs.{ending}"
    save(plain, path)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG" if ending == "png" else b"<?xml")
    assert len(data) > 10_000


def test_dollars_are_no_mathematics(tmp_path: Path) -> None:
    load = Workload(r"in $\frac$", tables=[songs])

    @load.action(per_second=10)
    def count(call: WorkloadCall) -> None:
        call.store.put(Chart(name=r"$\frac$", plays=call.chance.randrange(9)))

    save(forecast_of(load), tmp_path / "prices.svg")


def test_another_ending_is_refused(plain: Forecast, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a picture ends in \.png, \.svg, \.pdf"):
        save(plain, tmp_path / "songs.gif")


# Declarations that are refused


def test_wrong_declarations_are_refused() -> None:
    load = Workload("wrong")
    people = load.population("user", 10)
    other = Workload("other").population("user", 10)
    for said, action in {
        "is declared twice": lambda: load.population("user", 10),
        "a name has letters": lambda: load.population("the users", 10),
        "is not a number of members": lambda: load.population("x", 0),
        "is not in 0 to 3": lambda: load.population("x", 5, activity=9),
        "needs one of per_second=": lambda: load.action(by=people),
        "is not a rate": lambda: load.action(by=people, per_day=-1),
        "of another workload": lambda: load.action(by=other, per_day=1)(print),
        "needs 24 numbers": lambda: Workload("x", hours=[1.0]),
        "has no action": lambda: simulate(load),
    }.items():
        with pytest.raises(UsageError, match=said):
            action()


def test_wrong_arguments_are_refused() -> None:
    load = counting()
    with pytest.raises(UsageError, match="too few"):
        simulate(load, members=3)
    with pytest.raises(UsageError, match="size=0"):
        simulate(load, members=MEMBERS, size=0)
    with pytest.raises(
        UsageError, match="there is no key 'Chart' to shard; the hottest are Songs: CHART"
    ):
        simulate(load, members=MEMBERS, shards={"Chart": 3})
    with pytest.raises(UsageError, match="not a number from 1 to 1000"):
        simulate(load, members=MEMBERS, shards={"Songs: CHART#today": 0})


def test_an_action_without_members_has_none() -> None:
    load = Workload("x", tables=[songs])

    @load.action(per_second=1)
    def look(call: WorkloadCall) -> None:
        call.store.get(Song, id=call.member.id)

    with pytest.raises(UsageError, match="this action has no member"):
        simulate(load, members=MEMBERS)


# Files


def test_a_workload_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "tunes_in_a_file.py").write_text(
        """
from tests.effort import LONG

from isotone import Attr, Entity, Key, Table, field
tunes = Table("Tunes")
class Tune(Entity, table=tunes):
    id: Attr[str] = field()
    plays: Attr[int] = field(default=0)
    primary = Key("TUNE", id).sort("INFO")
def publish(call): call.store.put(Tune(id=call.member.id))
def play(call): call.store.update(Tune, Tune.plays.add(1), id=call.draw("tune").id)
""",
        encoding="utf-8",
    )
    file = tmp_path / "load.toml"
    file.write_text(
        """
tables = ["tunes_in_a_file:tunes"]
[populations.listener]
size = 1_000_000
[populations.tune]
size = 1000
popularity = 1.0
starts_with = "tunes_in_a_file:publish"
[actions.play]
call = "tunes_in_a_file:play"
by = "listener"
per_hour = 1
""",
        encoding="utf-8",
    )
    found = simulate(Workload.from_file(file), members=MEMBERS)
    assert found.workload.name == "load"
    assert found.hottest[0].label == "Tunes: TUNE#{tune 1}"
    assert found.places[0].average.writes == pytest.approx(1_000_000 / 3600)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("speed = 1", "speed is unknown; there are name, tables"),
        ("[populations.user]\nsize = 5\nheight = 1", "populations.user.height is unknown"),
        ("[actions.play]\nper_day = 1", "actions.play needs call = 'module:function'"),
        ("[actions.play]\ncall = 'os:nothing'\nper_day = 1", "'os:nothing' is not module:name"),
        (
            "[actions.play]\ncall = 'os:getpid'\nby = 'user'\nper_day = 1",
            "there is no population 'user'",
        ),
        ("tables = ['nothing_here']", "'nothing_here' is not module:name"),
        ("[", "cannot be read"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "load.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        Workload.from_file(file)


# Shares, partitions, capacity


@given(
    size=st.integers(1, 5000),
    exponent=st.floats(0, 2.5, allow_nan=False),
    rank=st.integers(1, 5000),
)
def test_shares_are_those_of_the_sum(size: int, exponent: float, rank: int) -> None:
    rank = min(rank, size)
    weights = [n**-exponent for n in range(1, size + 1)]
    ranks = Ranks(size, exponent)
    assert ranks.share(rank) == pytest.approx(weights[rank - 1] / sum(weights), rel=1e-3)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.4])
def test_picks_follow_the_shares(exponent: float) -> None:
    ranks, chance = Ranks(100_000, exponent), random.Random(1)
    below = [0.0, *accumulate(rank**-exponent for rank in range(1, 100_001))]
    picked = [ranks.pick(chance) for _ in range(20_000)]
    assert min(picked) >= 1
    assert max(picked) <= 100_000
    for bound in (1, 100, 5000, 50_000):
        share = sum(rank <= bound for rank in picked) / len(picked)
        assert share == pytest.approx(below[bound] / below[-1], abs=0.015)


def test_ids_are_different() -> None:
    people = Workload("x").population("user", 10**9)
    ids = {people.member(number).id for number in range(1, 20_000)}
    assert len(ids) == 19_999
    assert all(len(each) == len("user-") + 8 for each in ids)


def test_partitions_have_equal_ranges() -> None:
    counts = [0] * 16
    for number in range(16_000):
        counts[partition_of(f"key {number}", 16)] += 1
    assert max(counts) < 1200
    assert min(counts) > 800


def test_partitions_by_load_and_size() -> None:
    assert number_of(PartitionLoad(), 0.0) == 4
    assert number_of(PartitionLoad(30_000.0, 10_000.0), 0.0) == 20
    assert number_of(PartitionLoad(), 1e12) == 100
    loads = placed([("a", PartitionLoad(0.0, 500.0))], PartitionLoad(0.0, 1000.0), 10)
    assert math.isclose(sum(load.writes for load in loads), 1500.0)
    assert max(load.writes for load in loads) == 600.0
