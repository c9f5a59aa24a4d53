"""Counters lose no increment and count none twice; sequences give each number once."""

from __future__ import annotations

import asyncio
import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import LONG, examples
from tests.headroom import forget_notices
from tests.programs import together
from tests.structures.simulation import Hasty, Overtaken, Repeating, Requests

import isotone
from isotone import Attr, Entity, Key, ManualClock, Store, Table, errors, field, headroom_notices
from isotone.structures import Counter, Sequence, ShardedCounter
from isotone.structures.counter import CounterShard

invoices = Table("invoices")


class Invoice(Entity, table=invoices):
    number: Attr[int] = field(max=99_999)
    total: Attr[int] = field(default=0)

    primary = Key("INVOICE", number).sort("INVOICE")


def test_a_counter_counts_everywhere(store: Store, table_name: str) -> None:
    table = Counter.layout(table_name)
    counter = Counter(store, "visits", table=table)
    counter.create_table()
    assert (counter.value(), counter.reset()) == (0, 0)
    assert (counter.add(), counter.add(41), counter.add(-2), counter.value()) == (1, 42, 40, 40)
    sharded = ShardedCounter(store, "visits", 7, table=table)
    for _ in range(20):
        sharded.add(2)
    assert sharded.value() == 80  # what the counter had is its first shard
    more = ShardedCounter(store, "visits", 9, table=table)
    assert (sharded.reset(), sharded.value(), more.value()) == (80, 0, 0)
    assert [sharded.add_once("a", 5), sharded.add_once("a", 5), sharded.add_once("b")] == [
        *(True, False, True)
    ]
    assert sharded.value() == 6


def test_numbers_are_given_everywhere(store: Store, table_name: str) -> None:
    table, records = Sequence.layout(table_name), Table(f"{table_name}-invoices")
    kept = type("Invoice", (Invoice,), {}, table=records)
    numbers = Sequence(store, "invoices", table=table)
    numbers.create_table()
    store.create_tables(records)
    assert numbers.last() == 0
    assert (numbers.next(), numbers.reserve(3), numbers.next()) == (1, range(2, 5), 5)
    assert numbers.assign(lambda number: kept(number=number)).number == 6
    assert numbers.last() == 6
    assert [each.number for each in store.all(kept.primary.scan())] == [6]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(-(10**12), 10**12)),
        st.tuples(st.just("once"), st.tuples(st.sampled_from("abc"), st.integers(-5, 5))),
        st.tuples(st.just("reset"), st.none()),
    ),
    max_size=30,
)


@settings(max_examples=examples(60), deadline=None)
@given(steps, st.sampled_from([1, 2, 5]))
def test_a_counter_equals_a_plain_sum(steps: list[tuple[str, object]], shards: int) -> None:
    with isotone.connect() as store:
        counter = ShardedCounter(store, "c", shards)
        counter.create_table()
        number, seen = 0, set()
        for what, by in steps:
            if what == "add":
                counter.add(by)
                number += by
            elif what == "once":
                token, amount = by
                assert counter.add_once(token, amount) == (token not in seen)
                number += 0 if token in seen else amount
                seen.add(token)
            else:
                assert counter.reset() == number
                number = 0
            assert counter.value() == number


def test_what_is_added_while_others_reset_is_counted_once(tmp_path: Path) -> None:
    with isotone.connect(tmp_path / "c.db", durability="none") as store:
        counter = ShardedCounter(store, "c", 3)
        counter.create_table()
        with ThreadPoolExecutor(6) as pool:
            adding = [pool.submit(lambda: [counter.add() for _ in range(100)]) for _ in range(4)]
            taking = [pool.submit(lambda: [counter.reset() for _ in range(20)]) for _ in range(2)]
        for each in adding:
            each.result()
        assert sum(sum(each.result()) for each in taking) + counter.value() == 400


def test_processes_count_exactly_and_share_no_number(tmp_path: Path) -> None:
    file = tmp_path / "c.db"
    with isotone.connect(file) as store:
        Counter(store, "c").create_table()
    program = Path(__file__).with_name("counting.py")
    times = 60 if LONG else 25
    printed = together(program, str(file), str(times), processes=4)
    with isotone.connect(file) as store:
        assert Counter(store, "c").value() == 4 * times * 3
        assert ShardedCounter(store, "s", 4).value() == 4 * times * 3
    numbers = [[int(line) for line in each.split()] for each in printed]
    assert sorted(itertools.chain.from_iterable(numbers)) == list(range(1, 4 * times + 1))
    assert all(each == sorted(each) for each in numbers)


def test_a_repeated_write_counts_once_with_a_token(memory: Store) -> None:
    counter = Counter(memory, "c")
    counter.create_table()
    with isotone.connect(Repeating(memory.backend), clock=memory.clock) as repeating:
        again = Counter(repeating, "c")
        assert again.add_once("a", 10)
        assert counter.value() == 10
        again.add()
        assert counter.value() == 12  # what `add` warns of


@pytest.mark.parametrize("shards", [1, 3])
def test_a_reset_without_an_answer_loses_nothing(memory: Store, shards: int) -> None:
    counter = ShardedCounter(memory, "c", shards)
    counter.create_table()
    with isotone.connect(Repeating(memory.backend), clock=memory.clock) as repeating:
        again = ShardedCounter(repeating, "c", shards)
        for _ in range(3):
            for number in range(10):
                counter.add(number)
            assert (again.reset(), counter.value(), again.reset()) == (45, 0, 0)


def test_one_that_expires_begins_at_0_so_long_after_its_first_addition(
    store: Store, table_name: str, clock: ManualClock
) -> None:
    counter = Counter(store, "c", expires=timedelta(minutes=1), table=Counter.layout(table_name))
    counter.create_table()
    clock.advance(0.75)
    assert counter.add() == 1
    clock.advance(59.9)
    assert (counter.add(), counter.add_once("a"), counter.value()) == (2, True, 3)
    clock.advance(1.1)
    assert (counter.value(), counter.reset(), counter.add()) == (0, 0, 1)
    clock.advance(61)
    assert (counter.add_once("b"), counter.value()) == (True, 1)
    clock.advance(30)
    assert (counter.reset(), counter.add()) == (1, 1)
    clock.advance(31)
    assert (counter.value(), counter.reset()) == (0, 0)


def test_one_that_expires_while_it_is_reset_owes_nothing(memory: Store, clock: ManualClock) -> None:
    class Slow(Counter):
        def _read(self) -> Any:
            shards = yield from super()._read()
            clock.advance(31)
            return shards

    counter = Counter(memory, "c", expires=timedelta(minutes=1))
    counter.create_table()
    counter.add(5)
    clock.advance(30)
    assert Slow(memory, "c").reset() == 0
    assert (counter.value(), counter.add()) == (0, 1)


def test_a_limit_that_many_reach_is_not_passed(memory: Store, clock: ManualClock) -> None:
    counter = Counter(memory, "c", expires=timedelta(seconds=10))
    counter.create_table()
    for _ in range(3):
        with ThreadPoolExecutor(4) as pool:
            counts = list(pool.map(lambda _: counter.add(), range(40)))
        assert sorted(counts) == list(range(1, 41))
        clock.advance(11)


def test_two_concurrent_resets_share_the_count_between_them(memory: Store) -> None:
    counter = ShardedCounter(memory, "c", 3)
    counter.create_table()
    for _ in range(20):
        counter.add()
    backend, theirs = Overtaken(memory.backend), []

    def others() -> None:
        theirs.append(counter.reset())
        counter.add(5)

    with isotone.connect(backend, clock=memory.clock) as slow:
        backend.before["TransactWriteItems"] = [others]
        ours = ShardedCounter(slow, "c", 3).reset()
    assert (theirs, ours, counter.value()) == ([20], 5, 0)


def test_a_counter_may_have_all_of_its_shards(memory: Store) -> None:
    forget_notices()
    counter = ShardedCounter(memory, "c", 1000)
    counter.create_table()
    memory.upsert(counter._kind, CounterShard.total.add(3), counter="c", shard=999)
    assert counter.value() == 3
    assert headroom_notices() == []


@pytest.mark.parametrize("remember", [0, -1, float("nan"), float("inf")])
def test_a_token_that_would_not_be_remembered_is_refused(memory: Store, remember: float) -> None:
    counter = Counter(memory, "c")
    counter.create_table()
    with pytest.raises(errors.UsageError, match="remember must be more than 0 seconds"):
        counter.add_once("a", remember=remember)
    assert counter.value() == 0


def test_a_token_is_remembered_as_long_as_it_says(memory: Store, clock: ManualClock) -> None:
    counter = Counter(memory, "c")
    counter.create_table()
    assert counter.add_once("a", remember=60)
    clock.advance(59)
    assert not counter.add_once("a", remember=60)
    clock.advance(2)
    assert counter.add_once("a", remember=60)
    assert counter.value() == 2


def test_a_counter_costs_as_documented(clock: ManualClock) -> None:
    requests = Requests()
    table = Counter.layout(
        "costs"
    )  # its own: whatever other tests bind to the usual one is recorded at once
    with isotone.connect(clock=clock, observe=[isotone.at_end(requests.see)]) as store:
        counter = Counter(store, "c", table=table)
        sharded = ShardedCounter(store, "s", 250, table=table)
        counter.create_table()
        requests.taken()
        counter.add()
        assert requests.taken() == {"UpdateItem": 1}
        counter.add_once("a")
        assert requests.taken() == {"TransactWriteItems": 1}
        counter.reset()
        assert requests.taken() == {"BatchGetItem": 1, "TransactWriteItems": 1}
        counter.reset()
        assert requests.taken() == {"BatchGetItem": 1}
        brief = Counter(store, "b", expires=timedelta(seconds=1), table=table)
        brief.add()
        assert requests.taken() == {"UpdateItem": 1}
        clock.advance(2)
        brief.add()  # the database may have deleted the expired item meanwhile
        assert requests.taken() in ({"UpdateItem": 1, "PutItem": 1}, {"UpdateItem": 1})
        clock.advance(2)
        sharded.value()
        assert requests.taken() == {"BatchGetItem": 3}
        Sequence(store, "other", table=table).next()
        assert requests.taken() == {"GetItem": 1, "UpdateItem": 2}  # the first records the keys
        numbers = Sequence(store, "n", block=100, table=table)
        assert [numbers.next() for _ in range(201)] == list(range(1, 202))
        assert requests.taken() == {"UpdateItem": 3}


def test_threads_share_a_block(memory: Store) -> None:
    Sequence(memory, "n").create_table()
    one, other = Sequence(memory, "n", block=7), Sequence(memory, "n", block=4)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda each: each.next(), [one, other] * 100))
    assert len(set(found)) == 200
    assert max(found) <= 200 + 7 * 4 + 4 * 4  # what was reserved and not given


def test_assigned_numbers_have_no_gap(tmp_path: Path) -> None:
    with isotone.connect(tmp_path / "c.db", durability="none") as store:
        Sequence(store, "n").create_table()
        store.create_tables(invoices)

        def make(number: int) -> Invoice:
            return Invoice(number=number)

        def fail(number: int) -> Invoice:
            raise RuntimeError("no paper")

        with ThreadPoolExecutor(4) as pool:
            made = [pool.submit(Sequence(store, "n").assign, make) for _ in range(40)]
            failed = [pool.submit(Sequence(store, "n").assign, fail) for _ in range(5)]
        for each in failed:
            with pytest.raises(RuntimeError):
                each.result()
        assert sorted(each.result().number for each in made) == list(range(1, 41))
        assert Sequence(store, "n").last() == 40


def test_an_entity_that_is_refused_takes_no_number(memory: Store) -> None:
    numbers = Sequence(memory, "n")
    numbers.create_table()
    memory.create_tables(invoices)
    memory.put(Invoice(number=77))
    with pytest.raises(errors.AlreadyExists, match="Invoice"):
        numbers.assign(lambda number: Invoice(number=77))
    assert numbers.last() == 0


def test_a_sequence_that_everybody_wants_says_so(memory: Store) -> None:
    hasty = Hasty.over(memory)
    numbers = Sequence(hasty, "n")
    numbers.create_table()
    memory.create_tables(invoices)

    def late(number: int) -> Invoice:
        numbers.next()  # somebody is always faster
        return Invoice(number=number)

    with pytest.raises(errors.Contended, match="'n'"):
        numbers.assign(late)
    assert memory.all(Invoice.primary.scan()) == []


def test_what_makes_no_sense_is_refused(memory: Store) -> None:
    with pytest.raises(errors.UsageError, match="shards must be 1 to 1000"):
        ShardedCounter(memory, "c", 0)
    for expires in (timedelta(0), timedelta(minutes=-1), timedelta(days=40_000)):
        with pytest.raises(errors.UsageError, match="expires must be more than 0 seconds"):
            Counter(memory, "c", expires=expires)
    with pytest.raises(errors.UsageError, match="count must be 1 or more"):
        Sequence(memory, "n").reserve(0)
    with pytest.raises(errors.UsageError, match="count must be 1 or more"):
        Sequence(memory, "n", block=0)


def test_awaited() -> None:
    async def program() -> None:
        async with isotone.aconnect() as store:
            counter, sharded = Counter(store, "c"), ShardedCounter(store, "s")
            numbers = Sequence(store, "n")
            await counter.create_table()
            await asyncio.gather(*(each.add(2) for each in [counter, sharded] * 20))
            assert (await counter.value(), await sharded.value()) == (40, 40)
            assert sorted(await asyncio.gather(*(numbers.next() for _ in range(9)))) == [
                *range(1, 10)
            ]

    asyncio.run(program())


def test_a_forked_process_gives_no_number_of_its_parent(memory: Store) -> None:
    numbers = Sequence(memory, "forked", block=10)
    numbers.create_table()
    assert numbers.next() == 1
    numbers._process = -1  # as in a child, which has all that its parent has in memory
    assert numbers.next() == 11
