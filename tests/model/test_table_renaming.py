"""Table names chosen at run time: a prefix, a dict or a function; the program sees what it declares."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from tests.model.orders import START, Order, Session, order, shop

import isotone
from isotone import Attr, Entity, Global, Key, ManualClock, Table, at_end, field
from isotone.backends.interface import Request, Response
from isotone.errors import (
    InvalidItem,
    NotUnique,
    ResourceNotFoundException,
    TableDiffers,
    UsageError,
)
from isotone.structures import Counter, SortedSet, Worker

staff = Table("staff", stream="NEW_AND_OLD_IMAGES")


class Person(Entity, table=staff):
    name: Attr[str] = field()
    mail: Attr[str] = field(unique=True)

    primary = Key("PERSON", name).sort("PERSON")


class Spy:
    """A database that notes the tables that requests name."""

    def __init__(self) -> None:
        self.database = isotone.connect(isotone.open(clock=ManualClock(START.timestamp()))).backend
        self.named: set[str] = set()
        self.operations: set[str] = set()

    def execute(self, operation: str, request: Request) -> Response:
        self.operations.add(operation)
        self.named |= set(_names(request))
        return self.database.execute(operation, request)


def _names(request: Any) -> Iterator[str]:
    if isinstance(request, dict):
        for name, each in request.items():
            if name == "TableName":
                yield each
            elif name == "RequestItems":
                yield from each
            else:
                yield from _names(each)
    if isinstance(request, list):
        for each in request:
            yield from _names(each)


@pytest.fixture
def spy() -> Spy:
    return Spy()


def connected(spy: Spy, **options: Any) -> isotone.Store:
    clock = ManualClock(START.timestamp())
    return isotone.connect(spy, clock=clock, **options)


def live(store: isotone.Store) -> list[object]:
    """What a program does, and what it gets."""
    seen: list[object] = [store.create_tables(shop, staff), store.create_tables(shop, staff)]
    seen += [store.put(order(number)) for number in range(1, 4)]
    seen.append(store.put_many([order(number) for number in range(4, 40)]))
    seen.append(store.create(Person(name="Ann", mail="ann@example.com")))
    with pytest.raises(NotUnique):
        store.create(Person(name="Bo", mail="ann@example.com"))
    seen.append(store.update(Order, Order.total.add(2), customer_id="2b5a41c0", number=1))
    seen.append(store.upsert(Person, Person.mail.set("cy@example.com"), name="Cy"))
    seen.append(store.move(Person, Person.name.set("Di"), name="Cy"))
    with store.transaction() as tx:
        seen.append(tx.get(Order, customer_id="2b5a41c0", number=1))
        tx.delete(Order, customer_id="2b5a41c0", number=2)
        tx.put(Person(name="Ed", mail="ed@example.com"))
    keys = [{"customer_id": "2b5a41c0", "number": number} for number in range(1, 50)]
    seen.append(store.get_many(Order, keys))
    ed = Person.primary.at(name="Ed")
    seen.append(store.get_many([Order.primary.at(**keys[0]), ed]))
    seen.append(store.get_together((Order, keys[0]), ed))
    query = Order.primary.where(Order.customer_id == "2b5a41c0").newest_first()
    page = store.page(query, size=7)
    seen += [page.items, page.stats, store.page(query, size=7, cursor=page.cursor).items]
    seen += [
        store.count(query),
        store.load(query).size,
        sorted(each.name for each in store.scan(Person.primary.scan())),
    ]
    seen += [store.rewrite(Person), store.delete(ed)]
    seen.append(sorted((event.kind, event.table.name) for event in store.changes(staff)))
    grown = Table("shop", indexes={**shop.indexes, "GSI2": Global("GSI2PK", "GSI2SK")})
    seen += [
        store.differences(shop, staff, grown),
        store.add_indexes(grown),
        store.differences(grown),
    ]
    seen.append(store.delete_many(list(store.iterate(query))))
    return [*seen, store.drop_tables(staff)]


def test_a_program_sees_the_same_under_other_names() -> None:
    plain, renamed = Spy(), Spy()
    expected = live(connected(plain))
    assert plain.named == {"shop", "staff"}
    names = {"shop": "shop-eu"}
    assert repr(live(connected(renamed, table_prefix="staging-", table_names=names))) == repr(
        expected
    )
    assert renamed.named == {"shop-eu", "staging-staff"}
    assert renamed.operations == plain.operations


def test_deployments_share_a_database(spy: Spy) -> None:
    stores = [connected(spy, table_prefix=prefix) for prefix in ("", "a-", "b.")]
    for number, store in enumerate(stores):
        store.create_tables(shop)
        store.put(order(number + 1))
    for number, store in enumerate(stores):
        assert [each.number for each in store.iterate(Order.primary.scan())] == [number + 1]
    assert spy.named == {"shop", "a-shop", "b.shop"}


def test_a_function_gives_names(spy: Spy) -> None:
    store = connected(spy, table_names=lambda name: f"{name}_of_today")
    assert store.create_tables(shop) == ["shop"]
    assert store.table_name(shop) == "shop_of_today"
    assert spy.named == {"shop_of_today"}


def test_structures_and_workers_follow(spy: Spy) -> None:
    store = connected(spy, table_prefix="t-")
    counter, top = Counter(store, "hits"), SortedSet(store, "top", ranked=True)
    counter.create_table()
    top.create_table()
    store.create_tables(staff)
    counter.add()
    assert counter.value() == 1
    top.zadd({"a": 1, "b": 2})
    assert top.zrank("b") == 1
    greeted: list[str] = []
    worker = Worker("greeter", staff)
    worker.on(Person)(lambda event, context: greeted.append(event.entity.name))
    worker.create_tables(store)
    store.put(Person(name="Ann", mail="ann@example.com"))
    worker.run(store, until_idle=True)
    assert greeted == ["Ann"]
    assert spy.named
    assert {name[:2] for name in spy.named} == {"t-"}


def test_observers_and_the_database_see_the_actual_names(spy: Spy) -> None:
    seen: list[isotone.Observation] = []
    store = connected(spy, table_prefix="t-", observe=[at_end(seen.append)])
    store.create_tables(shop)
    store.put_many([order(1)])
    assert {name for each in seen for name in each.tables} == {"t-shop"}


def test_errors_have_the_actual_name(spy: Spy) -> None:
    store = connected(spy, table_prefix="t-")
    with pytest.raises(ResourceNotFoundException) as missing:
        store.get(Order, customer_id="a", number=1)
    assert missing.value.__notes__ == ["table 'shop' is 't-shop' in this store"]
    store.create_tables(shop)
    item = {"PK": {"S": "SESSION#t"}, "SK": {"S": "SESSION"}, "_expires": {"S": "soon"}}
    spy.execute("PutItem", {"TableName": "t-shop", "Item": item})
    with pytest.raises(InvalidItem) as invalid:
        store.get(Session, token="t")
    assert invalid.value.table == "shop"
    assert "table 'shop' is 't-shop' in this store" in "".join(
        traceback.format_exception(invalid.value)
    )
    with pytest.raises(TableDiffers) as differs:
        store.create_tables(Table("shop", partition="other"))
    assert differs.value.__notes__ == ["table 'shop' is 't-shop' in this store"]
    with pytest.raises(UsageError) as wrong:
        store.get(Order, customer_id="a")
    assert not hasattr(wrong.value, "__notes__")


def test_responses_of_the_backend_have_the_declared_names(spy: Spy) -> None:
    store = connected(spy, table_prefix="t-")
    store.create_tables(shop)
    described = store.backend.execute("DescribeTable", {"TableName": "shop"})["Table"]
    assert described["TableName"] == "shop"
    assert described["TableArn"].endswith("table/t-shop")
    request = {"TableName": "shop", "ReturnConsumedCapacity": "TOTAL"}
    response = store.backend.execute("Scan", request)
    assert response["ConsumedCapacity"]["TableName"] == "shop"
    assert store.backend.execute("ListTables", {})["TableNames"] == ["t-shop"]


def test_names_that_cannot_be(spy: Spy) -> None:
    with pytest.raises(UsageError, match="'staging/' is not valid; give letters"):
        connected(spy, table_prefix="staging/")
    with pytest.raises(UsageError, match="cannot name table 'shop'"):
        connected(spy, table_names={"shop": "staging/"}).create_tables(shop)
    with pytest.raises(UsageError, match="'shop' and 'staff' would both be 'one'"):
        connected(spy, table_names=lambda _: "one").create_tables(shop, staff)
    with pytest.raises(UsageError, match="gives None for table 'shop'"):
        connected(spy, table_names={"shop": None}).create_tables(shop)
    with pytest.raises(UsageError, match="leave table_prefix out"):
        connected(spy, table_prefix="a-", table_names=lambda name: name)
    with pytest.raises(UsageError, match="give a dict"):
        connected(spy, table_names="shop-eu")
    with pytest.raises(UsageError, match="give letters"):
        connected(spy, table_prefix=3)
    assert spy.named <= {"one"}


def test_an_arn_takes_no_prefix(spy: Spy) -> None:
    store = connected(spy, table_prefix="t-")
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/shop"
    assert store.table_name(Table(arn)) == arn


def test_an_async_store_of_other_names() -> None:
    async def talk(database: isotone.Database) -> None:
        async with isotone.aconnect(database, table_prefix="t-") as store:
            assert await store.create_tables(shop) == ["shop"]
            await store.put_many([order(1), order(2)])
            first = Order.primary.at(customer_id="2b5a41c0", number=1)
            assert await store.get_many([first]) == [order(1)]
            with pytest.raises(ResourceNotFoundException) as missing:
                await store.get(Person, name="Ann")
            assert missing.value.__notes__ == ["table 'staff' is 't-staff' in this store"]
        assert isotone.connect(database, table_names={"shop": "t-shop"}).get(first) == order(1)

    with isotone.open() as database:
        asyncio.run(talk(database))


@pytest.mark.parametrize(
    "wrapped", [{"table_prefix": "dev-"}, {"observe": [at_end(lambda _: None)]}]
)
def test_a_wrapped_backend_reads_items_as_json_like_the_backend_itself(
    wrapped: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = isotone.open()
    asked: list[str] = []
    read = database.read_json

    def noting(operation: str, *rest: Any) -> Response:
        asked.append(operation)
        return read(operation, *rest)

    monkeypatch.setattr(type(database), "read_json", lambda _, *rest: noting(*rest))
    store = isotone.connect(database, **wrapped)
    store.create_tables(shop)
    store.put(order(1))
    everything = Order.primary.scan()

    async def pages() -> list[Order]:
        async with isotone.aconnect(database, **wrapped) as waiting:
            return list(await waiting.page(everything))

    assert list(store.page(everything)) == asyncio.run(pages()) == [order(1)]
    assert asked == ["Scan", "Scan"]
