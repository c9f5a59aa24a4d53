"""Stores, synchronous and awaited, over memory, a file and HTTP: one history, one set of answers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.model.orders import START, Order, Session, order, shop

import isotone
from isotone import (
    AsyncStore,
    Attr,
    Entity,
    Key,
    ManualClock,
    Store,
    Table,
    aconnect,
    connect,
    field,
)
from isotone.errors import (
    AlreadyExists,
    ConditionFailed,
    InvalidCursor,
    NotFound,
    TransactionFailed,
    UsageError,
)
from isotone.server import running_server

PLACES = ("memory", "file", "http", "local")

CUSTOMER = Order.customer_id == "2b5a41c0"


class Awaited:
    """An `AsyncStore` with the methods of a `Store`, so that one test runs on both."""

    def __init__(self, store: AsyncStore) -> None:
        self.store = store
        self.loop = asyncio.new_event_loop()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)

        def call(*arguments: Any, **named: Any) -> Any:
            result = method(*arguments, **named)
            if inspect.isawaitable(result):
                return self.loop.run_until_complete(result)
            return self._gather(result) if isinstance(result, AsyncIterator) else result

        return call

    def _gather(self, found: AsyncIterator[Any]) -> list[Any]:
        async def gather() -> list[Any]:
            return [each async for each in found]

        return self.loop.run_until_complete(gather())

    def transaction(self) -> Any:
        return _AwaitedTransaction(self.store.transaction(), self.loop)

    def end(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.loop.close()


class _AwaitedTransaction:
    def __init__(self, transaction: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transaction = transaction
        self._loop = loop

    def __enter__(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._transaction, name)

        def call(*arguments: Any, **named: Any) -> Any:
            result = method(*arguments, **named)
            return self._loop.run_until_complete(result) if inspect.isawaitable(result) else result

        return call

    def __exit__(self, *raised: Any) -> None:
        self._loop.run_until_complete(self._transaction.__aexit__(*raised))


@contextmanager
def opened(kind: str, where: str, folder: Path, **options: Any) -> Iterator[Any]:
    open_store: Callable[..., Any] = connect if kind == "sync" else aconnect
    if where.startswith("http:"):
        with closed(open_store(where, **options)) as store:
            try:
                yield store
            finally:
                store.drop_tables(shop)
        return
    if where == "http":
        with (
            isotone.open(clock=options.get("clock")) as database,
            running_server(database) as url,
            closed(open_store(url, **options)) as store,
        ):
            yield store
        return
    more = {"durability": "none"} if where == "file" else {}
    address = str(folder / "shop.db") if where == "file" else ":memory:"
    with closed(open_store(address, **options, **more)) as store:
        yield store


@contextmanager
def closed(store: Any) -> Iterator[Any]:
    if isinstance(store, Store):
        with store:
            yield store
        return
    awaited = Awaited(store)
    try:
        yield awaited
    finally:
        awaited.end()


@pytest.fixture(
    params=[(kind, where) for kind in ("sync", "async") for where in PLACES], ids="-".join
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    kind, where = request.param
    if where == "local":
        where = request.getfixturevalue("dynamodb_local")
    with opened(kind, where, tmp_path, clock=ManualClock(START)) as store:
        assert store.create_tables(shop) == ["shop"]
        yield store


def test_an_entity_comes_back(store: Any) -> None:
    written = order(157)
    assert store.put(written) is written
    assert store.get(Order, customer_id="2b5a41c0", number=157) == written
    assert store.get(Order, customer_id="2b5a41c0", number=157, consistent=True) == written
    assert store.get(Order, customer_id="2b5a41c0", number=158) is None


def test_create_and_replace(store: Any) -> None:
    store.create(order(1))
    with pytest.raises(AlreadyExists):
        store.create(order(1))
    store.replace(order(1).replace(total=9))
    assert store.get(Order, customer_id="2b5a41c0", number=1).total == 9
    with pytest.raises(NotFound):
        store.replace(order(2))


def test_update_by_key_and_by_entity(store: Any) -> None:
    first = store.put(order(1))
    changed = store.update(
        Order, Order.total.add(1), customer_id="2b5a41c0", number=1, when=Order.status == "SHIPPED"
    )
    assert changed == first.replace(total=first.total + 1)
    moved_in_index = store.update(changed, Order.status.set("CANCELLED"))
    assert store.all(Order.by_status.where(CUSTOMER, Order.status == "CANCELLED")) == [
        moved_in_index
    ]
    with pytest.raises(ConditionFailed):
        store.update(changed, Order.total.add(1), when=Order.status == "SHIPPED")
    with pytest.raises(NotFound):
        store.update(Order, Order.total.add(1), customer_id="2b5a41c0", number=2)


def test_upsert(store: Any) -> None:
    changes = (Order.total.add(1), Order.status.set("PLACED"), Order.ordered_at.set(START))
    for total in (1, 2):
        found = store.upsert(Order, *changes, customer_id="2b5a41c0", number=1)
        assert found.total == total
    assert store.all(Order.by_status.where(CUSTOMER)) == [found]


def test_delete(store: Any) -> None:
    first = store.put(order(1))
    with pytest.raises(ConditionFailed):
        store.delete(Order, customer_id="2b5a41c0", number=1, when=Order.status == "PLACED")
    assert store.delete(first) == first
    assert store.delete(Order, customer_id="2b5a41c0", number=1) is None


def test_move(store: Any) -> None:
    store.put(order(1))
    moved = store.move(Order, Order.number.set(2), customer_id="2b5a41c0", number=1)
    assert moved.number == 2
    assert store.get(Order, customer_id="2b5a41c0", number=1) is None
    assert store.get(Order, customer_id="2b5a41c0", number=2) == moved


def test_a_transaction_writes_all_or_nothing(store: Any) -> None:
    store.put(order(1))
    with store.transaction() as t:
        assert t.get(Order, customer_id="2b5a41c0", number=1) == order(1)
        t.update(Order, Order.total.add(1), customer_id="2b5a41c0", number=1)
        t.create(order(2))
    assert store.get(Order, customer_id="2b5a41c0", number=1).total == order(1).total + 1
    refused = store.transaction()
    refused.create(order(2))
    refused.create(order(3))
    with pytest.raises(TransactionFailed):
        refused.commit()
    assert store.get(Order, customer_id="2b5a41c0", number=3) is None


def test_a_transaction_that_ends_by_an_exception_sends_nothing(store: Any) -> None:
    def fail() -> None:
        with store.transaction() as t:
            t.create(order(1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.get(Order, customer_id="2b5a41c0", number=1) is None


def test_widening(store: Any) -> None:
    narrow, wide = (Table("shop", indexes=shop.indexes) for _ in range(2))

    class Narrow(Entity, table=narrow, tag="Ticket"):
        number: Attr[int] = field(max=99, alert=1)
        primary = Key("TICKETS").sort("TICKET", number)

    class Ticket(Entity, table=wide):
        number: Attr[int] = field(max=9_999, was=99)
        primary = Key("TICKETS").sort("TICKET", number)

    for number in range(5):
        store.put(Narrow(number=number))
    told: list[Any] = []
    done = store.widen(Ticket, progress=told.append)
    assert (done.seen, done.rewritten, done.is_complete) == (5, 5, True)
    assert told[-1] == done
    assert [each.number for each in store.all(Ticket.primary.where())] == list(range(5))


def test_reads_of_a_query(store: Any) -> None:
    written = [store.put(order(number)) for number in range(30)]
    newest_first = written[::-1]
    everything = Order.primary.where(CUSTOMER)
    assert store.all(everything) == newest_first
    assert list(store.iterate(everything.oldest_first())) == written
    assert list(store.iterate(everything.page_size(4))) == newest_first
    assert store.first(everything) == written[-1]
    assert store.count(everything) == 30
    assert store.first(Order.primary.where(Order.customer_id == "nobody")) is None
    cancelled = [each for each in written if each.status == "CANCELLED"]
    assert store.all(everything.filter(Order.status == "CANCELLED").oldest_first()) == cancelled


def test_pages_forwards_and_back(store: Any) -> None:
    written = [store.put(order(number)) for number in range(10)]
    query = Order.primary.where(CUSTOMER).oldest_first()
    first = store.page(query, size=4)
    second = store.page(query, size=4, cursor=first.cursor)
    third = store.page(query, size=4, cursor=second.cursor)
    assert [*first, *second, *third] == written
    assert third.cursor is None
    assert (first.stats.scanned, first.stats.returned, first.stats.hit_rate) == (4, 4, 1.0)
    assert store.page(query, size=4, cursor=second.previous).items == first.items
    with pytest.raises(InvalidCursor):
        store.page(query.newest_first(), size=4, cursor=first.cursor)


def test_many_keys_at_once(store: Any) -> None:
    for number in range(0, 250, 2):
        store.put(order(number))
    keys = [{"customer_id": "2b5a41c0", "number": number} for number in range(250)]
    found = store.get_many(Order, keys)
    assert found == [order(number) if number % 2 == 0 else None for number in range(250)]


def test_many_writes_at_once(store: Any) -> None:
    written = [order(number) for number in range(60)]
    told: list[Any] = []
    assert store.put_many(written, progress=told.append) == 60
    assert told[-1].done == 60
    assert store.all(Order.primary.where(CUSTOMER).oldest_first()) == written
    assert store.delete_many(written[:10]) == 10
    keys = [{"customer_id": "2b5a41c0", "number": number} for number in range(10, 50)]
    assert store.delete_many(Order, keys) == 40
    assert store.all(Order.primary.where(CUSTOMER).oldest_first()) == written[50:]


def test_entities_of_one_moment(store: Any) -> None:
    store.put(order(1))
    store.put(Session(token="a"))
    found = store.get_together(
        (Order, {"customer_id": "2b5a41c0", "number": 1}),
        (Session, {"token": "a"}),
        (Session, {"token": "b"}),
    )
    assert found == [order(1), Session(token="a"), None]


def test_a_parallel_scan(store: Any) -> None:
    written = [store.put(order(number, f"c{number % 7}")) for number in range(60)]
    told: list[Any] = []
    found = list(store.scan(Order.primary.scan(), segments=3, progress=told.append))
    assert sorted(found, key=lambda each: each.number) == written
    assert told[-1].scanned == 61  # the record of the keys is read, too
    assert told[-1].requests >= 3


def test_a_small_collection_in_memory(store: Any) -> None:
    for number in range(10):
        store.put(order(number))
    loaded = store.load(Order.primary.where(CUSTOMER))
    assert [each.number for each in loaded.sorted_by(Order.number)] == list(range(10))


def test_expired_items_are_left_out_by_the_stores_clock(store: Any) -> None:
    store.put(Session(token="a", until=START + timedelta(hours=1)))
    assert store.get(Session, token="a") is not None
    (store.store if isinstance(store, Awaited) else store).clock.advance(7200)
    assert store.get(Session, token="a") is None


def test_table_management(store: Any) -> None:
    assert store.create_tables(shop) == []
    assert store.differences(shop) == []
    assert store.add_indexes(shop) == []
    assert store.drop_tables(shop) == ["shop"]
    assert [str(each) for each in store.differences(shop)] == ["table 'shop' does not exist"]


# What differs between the two, and what surrounds them


def public(kind: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(member)
        for name, member in vars(kind).items()
        if not name.startswith("_") and callable(member)
    }


def test_both_stores_have_the_same_methods() -> None:
    ours, awaited = public(Store), public(AsyncStore)
    assert ours.keys() == awaited.keys()
    for name, signature in ours.items():
        assert signature.parameters == awaited[name].parameters, name
        assert inspect.getdoc(getattr(Store, name)), name
        assert inspect.getdoc(getattr(AsyncStore, name)), name


def test_a_store_on_a_database_shares_its_clock() -> None:
    clock = ManualClock(START)
    with isotone.open(clock=clock) as database:
        assert connect(database).clock is clock
        assert aconnect(database).clock is clock


def test_cursors_need_a_common_secret() -> None:
    with isotone.open() as database:
        one, other = connect(database), connect(database)
        one.create_tables(shop)
        for number in range(3):
            one.put(order(number))
        query = Order.primary.where(CUSTOMER)
        cursor = one.page(query, size=1).cursor
        with pytest.raises(InvalidCursor, match="cursor_secret"):
            other.page(query, size=1, cursor=cursor)
        shared = [connect(database, cursor_secret=b"0123456789abcdef") for _ in range(2)]
        cursor = shared[0].page(query, size=1).cursor
        assert shared[1].page(query, size=1, cursor=cursor).items == [order(1)]


def test_cursors_that_expire() -> None:
    clock = ManualClock(START)
    with connect(clock=clock, cursor_lifetime=60) as store:
        store.create_tables(shop)
        for number in range(3):
            store.put(order(number))
        query = Order.primary.where(CUSTOMER)
        cursor = store.page(query, size=1).cursor
        clock.advance(61)
        with pytest.raises(InvalidCursor, match="expired"):
            store.page(query, size=1, cursor=cursor)


def test_a_cursor_lives_as_long_as_it_may() -> None:
    clock = ManualClock(START + timedelta(seconds=0.9))
    with connect(clock=clock, cursor_lifetime=0.5) as store:
        store.create_tables(shop)
        for number in range(3):
            store.put(order(number))
        query = Order.primary.where(CUSTOMER)
        cursor = store.page(query, size=1).cursor
        clock.advance(0.45)
        assert store.page(query, size=1, cursor=cursor).items == [order(1)]
        clock.advance(1.1)
        with pytest.raises(InvalidCursor, match="expired"):
            store.page(query, size=1, cursor=cursor)


def test_an_option_that_does_not_exist() -> None:
    with pytest.raises(
        UsageError, match="cursor_secrets is not an option; did you mean cursor_secret"
    ):
        connect(cursor_secrets=b"x")  # type: ignore[call-arg]


def test_a_file_is_closed_with_its_store(tmp_path: Path) -> None:
    for _ in range(2):
        with connect(tmp_path / "shop.db", durability="none") as store:
            store.create_tables(shop)
    with pytest.raises(UsageError):
        store.get(Order, customer_id="a", number=1)


def test_many_tasks_use_one_store() -> None:
    async def talk(url: str) -> list[Order | None]:
        async with aconnect(url) as store:
            await store.create_tables(shop)
            await asyncio.gather(*(store.put(order(number)) for number in range(50)))
            return await asyncio.gather(
                *(store.get(Order, customer_id="2b5a41c0", number=n) for n in range(50))
            )

    with isotone.open() as database, running_server(database) as url:
        assert asyncio.run(talk(url)) == [order(number) for number in range(50)]
