"""What the library promises while the service throttles, conflicts, loses answers and leaves entries unprocessed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isotone
from isotone import Attr, Entity, Global, Index, Key, Retries, Table, field
from isotone.errors import Contended, Locked, NotUnique
from isotone.structures import Lock, SortedSet
from isotone.testing.faults import Faults

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Order(Entity, table=shop):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=999)
    note: Attr[str] = field(default="")
    invoice: Attr[str | None] = field(default=None, unique=True)

    primary = Key("CUSTOMER", customer).sort("ORDER", number)
    all = Index("GSI1", "ORDERS").sort(number)


class Person(Entity, table=Table("people"), tag="Person"):
    person_id: Attr[str] = field()
    name: Attr[str] = field()

    primary = Key("PERSON", person_id).sort("PERSON")


class Renamed(Entity, table=Table("people"), tag="Person"):
    person_id: Attr[str] = field()
    first: Attr[str] = field()

    primary = Key("PERSON", person_id).sort("PERSON")


QUICK = Retries(attempts=50, base=0.0, longest=0.0)
ITEMS = (
    "GetItem",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "Query",
    "BatchGetItem",
    "BatchWriteItem",
    "TransactGetItems",
    "TransactWriteItems",
)


@pytest.fixture(autouse=True)
def no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def all_faults(seed: int, *, lost: float = 0.1) -> Faults:
    faults = Faults(seed, clock=isotone.ManualClock(), retries=QUICK)
    faults.fail(ITEMS, "ProvisionedThroughputExceededException", rate=0.1)
    faults.fail(ITEMS, "ThrottlingException", rate=0.1)
    faults.lose_answers(ITEMS, rate=lost)
    faults.conflict(rate=0.1)
    faults.leave_unprocessed(0.5)
    return faults


changes = st.lists(
    st.tuples(
        st.sampled_from(["put", "many", "set", "delete", "delete many", "together"]),
        st.lists(st.integers(0, 40), min_size=1, max_size=30, unique=True),
    ),
    max_size=12,
)


@given(seed=st.integers(0, 1000), history=changes)
@settings(max_examples=25, deadline=None)
def test_writes_that_may_be_repeated_do_what_they_do_without_faults(
    seed: int, history: list[tuple[str, list[int]]]
) -> None:
    expected: dict[int, str] = {}
    with isotone.open() as database, all_faults(seed).on(database):
        store = isotone.connect(database)
        store.create_tables(shop)
        for step, (change, numbers) in enumerate(history):
            note, first = f"step {step}", numbers[0]
            if change == "put":
                store.put(Order(customer="ann", number=first, note=note))
                expected[first] = note
            elif change == "many":
                with store.transaction() as tx:  # unique values do not go in batches
                    for number in numbers[:5]:
                        tx.put(Order(customer="ann", number=number, note=note))
                expected |= dict.fromkeys(numbers[:5], note)
            elif change == "set" and first in expected:
                store.update(Order, Order.note.set(note), customer="ann", number=first)
                expected[first] = note
            elif change == "delete":
                store.delete(Order, customer="ann", number=first)
                expected.pop(first, None)
            elif change == "delete many":
                for number in numbers[:3]:
                    store.delete(Order, customer="ann", number=number)
                    expected.pop(number, None)
            elif change == "together" and first in expected:
                found = store.get_together(Order.primary.at(customer="ann", number=first))
                assert [each and each.note for each in found] == [expected[first]]
        by_number = {each.number: each.note for each in store.all(Order.all.where())}
        assert by_number == expected
        keys = [{"customer": "ann", "number": number} for number in range(41)]
        found_many = store.get_many(Order, keys)
        assert {each.number: each.note for each in found_many if each} == expected
        assert database.check() == []


def test_a_ranked_set_counts_each_change_once() -> None:
    with isotone.open() as database, all_faults(7).on(database):
        store = isotone.connect(database)
        ranked = SortedSet(store, "board", ranked=True)
        ranked.create_table()
        for number in range(60):
            ranked.zincrby(1, f"m{number % 7}")
        assert [ranked.zscore(f"m{n}") for n in range(7)] == [9, 9, 9, 9, 8, 8, 8]
        assert ranked.zcard() == 7
        assert sorted(ranked.zrank(f"m{n}") or 0 for n in range(7)) == list(range(7))


def test_a_table_is_created_while_transactions_hold_its_record() -> None:
    faults = Faults(retries=QUICK)
    with isotone.open() as database, faults.on(database):
        store = isotone.connect(database)
        fault = faults.conflict("shop", times=3)
        store.create_tables(shop)
        assert fault.count == 3
        faults.conflict("shop")
        store.backend.execute("DeleteTable", {"TableName": "shop"})
        with pytest.raises(Contended, match="UpdateItem"):
            isotone.connect(database).create_tables(shop)


@pytest.mark.parametrize(
    "error",
    ["ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"],
)
def test_a_batch_outlives_each_kind_of_throttling(error: str) -> None:
    faults = Faults(retries=Retries.none())
    with isotone.open() as database, faults.on(database):
        store = isotone.connect(database)
        store.create_tables(Person.__schema__.table)
        people = [Person(person_id=str(number), name="Ann") for number in range(30)]
        write = faults.fail("BatchWriteItem", error, at=[1, 3])
        read = faults.fail("BatchGetItem", error, at=[1, 2])
        assert store.put_many(people) == 30
        found = store.get_many(Person, [{"person_id": str(number)} for number in range(30)])
        assert found == people
        assert (write.count, read.count) == (2, 2)


def first_name(item: dict[str, Any]) -> dict[str, Any]:
    name: str = item.pop("name")
    return {**item, "first": name.partition(" ")[0]}


def test_a_rewrite_calls_its_function_once_for_each_item() -> None:
    faults = Faults(3, retries=QUICK)
    with isotone.open() as database, faults.on(database):
        store = isotone.connect(database, check_keys=False)
        store.create_tables(Person.__schema__.table)
        store.put_many([Person(person_id=str(n), name=f"Ann{n} Lee") for n in range(20)])
        lost = faults.lose_answers("UpdateItem", rate=0.5)
        done = store.rewrite(Renamed, change=first_name)
        assert lost.count > 5
        assert (done.rewritten, done.invalid, done.is_clean) == (20, 0, True)
        assert all(each.before != each.after for each in done.examples)
        assert store.get(Renamed, person_id="7") == Renamed(person_id="7", first="Ann7")


def test_an_undo_counts_what_it_restored_though_the_answer_was_lost(tmp_path: Path) -> None:
    faults = Faults(3, retries=QUICK)
    log = tmp_path / "rewrite.undo"
    with isotone.open() as database, faults.on(database):
        store = isotone.connect(database, check_keys=False)
        store.create_tables(Person.__schema__.table)
        store.put_many([Person(person_id=str(n), name=f"Ann{n} Lee") for n in range(20)])
        store.rewrite(Renamed, change=first_name, undo=log)
        lost = faults.lose_answers("PutItem", rate=0.5)
        done = store.undo(log)
        assert lost.count > 5
        # The items, and the record of their keys.
        assert (done.restored, done.changed, done.unmade) == (20 + 1, 0, 0)
        assert store.get(Person, person_id="7") == Person(person_id="7", name="Ann7 Lee")
        assert store.undo(log).unmade == 20 + 1


def test_what_excludes_others_never_relies_on_a_stale_read() -> None:
    faults = Faults(clock=isotone.ManualClock())
    with isotone.open() as database, faults.on(database):
        store = isotone.connect(database)
        store.create_tables(shop)
        mine, theirs = Lock(store, "job"), Lock(store, "job")
        mine.create_table()
        stale = faults.stale_reads(writes=3)
        for _ in range(5):
            mine.acquire()
            with pytest.raises(Locked):
                theirs.acquire(timeout=0)
            mine.release()
        store.put(Order(customer="ann", number=1, invoice="i-1"))
        for number in range(2, 5):
            with pytest.raises(NotUnique):
                store.put(Order(customer="ann", number=number, invoice="i-1"))
        assert store.get(Order, customer="ann", number=1) is None
        assert store.get(Order, customer="ann", number=1, consistent=True) is not None
        assert stale.count == 1


def test_an_async_store_does_the_same() -> None:
    async def use() -> int:
        async with isotone.aconnect(database) as store:
            await store.create_tables(shop)
            for number in range(20):
                await store.put(Order(customer="ann", number=number, invoice=str(number)))
            return len(await store.all(Order.primary.where(Order.customer == "ann")))

    with isotone.open() as database, all_faults(5, lost=0.0).on(database):
        assert asyncio.run(use()) == 20
