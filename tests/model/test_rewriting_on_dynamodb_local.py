"""A table on Amazon's DynamoDB Local is verified, rewritten and taken back, while programs write.

Needs `ISOTONE_ORACLE=1`; see `tests/oracle/local.py`.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import isotone
from isotone import Attr, Entity, Global, Index, Key, Rewritten, Store, Table, field, upgrade
from isotone.errors import KeysChanged

NAME = "rewritten"
COUNT = 300


class Before(Entity, table=Table(NAME), tag="Order"):
    """What the old program wrote: another primary key, texts for numbers, no index."""

    customer: Attr[str] = field()
    number: Attr[int] = field(max=9_999)
    total: Attr[str] = field()
    note: Attr[str] = field(default="")

    primary = Key("CUSTOMER", customer).sort("ORDER", number)


class Order(
    Entity,
    table=Table(NAME, indexes={"GSI1": Global("GSI1PK", "GSI1SK")}),
    version=2,
    unknown="refuse",
):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=9_999)
    total: Attr[int] = field(max=9_999)
    note: Attr[str] = field(default="")
    gift: Attr[bool] = field(default=False)

    primary = (
        Key("BUYER", customer)
        .sort("ORDER", number)
        .was(Key("CUSTOMER", customer).sort("ORDER", number))
    )
    by_total = Index("GSI1", "ORDERS").sort(total, number)

    @staticmethod
    @upgrade(1)
    def parse_total(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "total": int(item["total"])}


@contextmanager
def connected(url: str) -> Iterator[Store]:
    with isotone.connect(url, region="us-east-1") as store:
        yield store


@pytest.fixture
def url(dynamodb_local: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a table with items of the old program, read a few at a time."""
    monkeypatch.setattr("isotone.model.rewriting._ITEMS_A_PAGE", 40)
    with connected(dynamodb_local) as store:
        store.create_tables(Before.__schema__.table)
        try:
            store.put_many(order_before(number) for number in range(COUNT))
            assert store.add_indexes(Order.__schema__.table) == ["GSI1"]
            yield dynamodb_local
        finally:
            store.drop_tables(Order.__schema__.table)


def order_before(number: int) -> Before:
    return Before(customer=f"c{number % 7}", number=number, total=str(number % 50), note="n" * 200)


def order_after(number: int) -> Order:
    return Order(customer=f"c{number % 7}", number=number, total=number % 50, note="n" * 200)


def items(store: Store) -> list[Any]:
    """All items, but not those of the library."""
    found: list[Any] = []
    start: dict[str, Any] = {}
    while True:
        page = store.backend.execute("Scan", {"TableName": NAME, "Limit": 90, **start})
        found += [each for each in page["Items"] if not each["_type"]["S"].startswith("_")]
        if "LastEvaluatedKey" not in page:
            return sorted(found, key=lambda item: (item["PK"]["S"], item["SK"]["S"]))
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


class Stopped(BaseException):
    """Ends a rewrite as an interruption does."""


def test_a_rewrite_that_is_interrupted_ends_as_a_fresh_table(url: str, tmp_path: Path) -> None:
    log, positions = tmp_path / "orders.undo", list[int]()

    def stop(state: Rewritten) -> None:
        positions.append(state.seen)
        raise Stopped

    with connected(url) as store:
        original = items(store)
        with pytest.raises(KeysChanged, match=r"store\.rewrite"):
            store.all(Order.by_total.where())
        assert store.verify(Order).count("older_version") == COUNT

        trial = store.rewrite(Order, dry_run=True)
        assert (trial.rewritten, items(store)) == (COUNT, original)
    for _ in range(3):  # each as a new process
        with connected(url) as store, pytest.raises(Stopped):
            store.rewrite(Order, undo=log, progress=stop)
    with connected(url) as store:
        done = store.rewrite(Order, undo=log)
        assert done.is_complete
        assert done.is_clean
        assert positions == sorted(set(positions)), "each went on where the one before had ended"
        with isotone.connect(":memory:") as fresh:
            fresh.create_tables(Order.__schema__.table)
            fresh.put_many(map(order_after, range(COUNT)))
            assert items(store) == items(fresh)
        assert store.verify(Order).is_clean
        assert store.rewrite(Order).rewritten == 0
        totals = [order.total for order in store.all(Order.by_total.where())]
        assert totals == sorted(number % 50 for number in range(COUNT))

        store.update(Order, Order.note.set("since"), customer="c1", number=1)
        undone = store.undo(log)
        assert undone.changed == 1
        left = items(store)
        assert [item for item in left if item in original] == [
            item for item in original if item["number"] != {"N": "1"}
        ]
        assert len(left) == COUNT
        assert store.undo(log).restored == 0


@pytest.mark.parametrize("segments", [1, 3])
def test_no_write_of_another_program_is_lost(url: str, segments: int) -> None:
    expected = {number: order_after(number) for number in range(COUNT)}
    is_over, failures = threading.Event(), list[BaseException]()

    def write(seed: int) -> None:
        rng = random.Random(seed)
        try:
            with connected(url) as own:
                while not is_over.is_set():
                    number = rng.randrange(seed, COUNT, 2)
                    key: dict[str, Any] = {"customer": f"c{number % 7}", "number": number}
                    if number not in expected:
                        expected[number] = own.put(order_after(number))
                    elif rng.random() < 0.2:
                        own.delete(Order, **key)
                        del expected[number]
                    else:
                        total = Order.total.set(rng.randrange(99))
                        expected[number] = own.update(Order, total, **key)
        except BaseException as error:  # noqa: BLE001 - raised by the test
            failures.append(error)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    try:
        with connected(url) as store:
            done = store.rewrite(Order, segments=segments)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert done.is_clean
    with connected(url) as store:
        store.rewrite(Order)  # the last writes of a thread that had just read
        found = {order.number: order for order in store.all(Order.primary.scan())}
        assert found == expected
        by_total = [(order.total, order.number) for order in store.all(Order.by_total.where())]
        assert by_total == sorted((order.total, order.number) for order in expected.values())
        assert store.verify(Order).is_clean


def test_a_rewrite_and_its_undo_are_awaited(url: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with isotone.aconnect(url, region="us-east-1") as store:
            done = await store.rewrite(Order, segments=2, undo=tmp_path / "log")
            assert (done.rewritten, done.is_clean) == (COUNT, True)
            assert (await store.verify(Order, segments=2)).is_clean
            assert (await store.undo(tmp_path / "log")).restored >= COUNT
            assert (await store.verify(Order)).count("older_version") == COUNT

    asyncio.run(run())
