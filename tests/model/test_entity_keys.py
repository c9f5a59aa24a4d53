"""Keys as values: made and checked once, taken by every call that takes a key."""

from __future__ import annotations

import asyncio
import copy
import pickle

import pytest
from tests.model.conftest import Desk
from tests.model.orders import Order, Session, order, shop

import isotone
from isotone import Attr, Entity, EntityKey, Key, Table, field
from isotone.errors import ConditionFailed, TransactionFailed, UsageError

drawers = Table("drawers")


class Drawer(Entity, table=drawers):
    name: Attr[str] = field(case="lower")
    at: Attr[int] = field(max=99, was=9)

    primary = Key("DRAWER", name).sort("AT", at)


def at(number: int) -> EntityKey[Order]:
    return Order.primary.at(customer_id="2b5a41c0", number=number)


@pytest.fixture
def store(desk: Desk) -> isotone.Store:
    desk.store.create_tables(shop, drawers)
    for number in range(1, 6):
        desk.store.put(order(number))
    return desk.store


def test_a_key_is_a_value() -> None:
    assert at(1) == at(1)
    assert at(1) != at(2)
    assert at(1) != "2b5a41c0"
    assert {at(1): "one"}[at(1)] == "one"
    assert at(1) == EntityKey.of(order(1))
    assert at(1).entity is Order
    assert dict(at(1).fields) == {"customer_id": "2b5a41c0", "number": 1}
    assert repr(at(1)) == "Order.primary.at(customer_id='2b5a41c0', number=1)"
    assert eval(repr(at(1))) == at(1)
    assert pickle.loads(pickle.dumps(at(1))) == copy.deepcopy(at(1)) == at(1)
    with pytest.raises(AttributeError, match="does not change"):
        at(1).entity = Session  # type: ignore[assignment]
    with pytest.raises(TypeError):
        at(1).fields["number"] = 2  # type: ignore[index]


def test_keys_are_equal_if_they_find_the_same_item() -> None:
    assert Drawer.primary.at(name="Left", at=1) == Drawer.primary.at(name="LEFT", at=1)
    assert hash(Drawer.primary.at(name="Left", at=1)) == hash(Drawer.primary.at(name="left", at=1))


def test_a_wrong_key_is_refused_where_it_is_made() -> None:
    with pytest.raises(UsageError, match="number is missing"):
        Order.primary.at(customer_id="a")
    with pytest.raises(UsageError, match="total is not a part of its key"):
        Order.primary.at(customer_id="a", number=1, total=1)
    with pytest.raises(UsageError, match="number"):
        Order.primary.at(customer_id="a", number="1")
    with pytest.raises(UsageError, match=r"several entities may have.*Order\.primary\.at"):
        Order.by_status.at(customer_id="a", status="PLACED")


def test_reads_take_keys(store: isotone.Store) -> None:
    assert store.get(at(1)) == order(1)
    assert store.get(at(1), consistent=True) == order(1)
    assert store.get(at(9)) is None
    store.put(Session(token="t", until=None))
    keys = [Session.primary.at(token="t"), at(3), at(9), at(1), at(3)]
    expected = [Session(token="t", until=None), order(3), None, order(1), order(3)]
    assert store.get_many(keys) == expected
    assert store.get_many(iter(keys)) == expected
    assert store.get_together(*keys[:4]) == expected[:4]
    assert store.get_many([]) == []


def test_keys_of_several_tables_are_read_at_once(desk: Desk, store: isotone.Store) -> None:
    drawer = store.put(Drawer(name="Left", at=7))
    keys = [at(1), EntityKey.of(drawer), at(2)]
    assert store.get_many(keys) == [order(1), drawer, order(2)]
    asked = desk.operations(lambda: store.get_many([at(number) for number in range(1, 60)]))
    assert asked == ["BatchGetItem"]


def test_keys_are_read_under_either_width(desk: Desk, store: isotone.Store) -> None:
    item = {"PK": {"S": "DRAWER#left"}, "SK": {"S": "AT#7"}, "_type": {"S": "Drawer"}}
    item |= {"name": {"S": "left"}, "at": {"N": "7"}}
    desk.backend.execute("PutItem", {"TableName": "drawers", "Item": item})
    key = Drawer.primary.at(name="left", at=7)
    assert store.get(key) == Drawer(name="left", at=7)
    assert store.get_many([key]) == [Drawer(name="left", at=7)]
    assert store.get_together(key) == [Drawer(name="left", at=7)]


def test_writes_take_keys(store: isotone.Store) -> None:
    assert store.update(at(1), Order.total.set(7)).total == 7
    assert store.update(at(1), Order.total.add(1), when=Order.total == 7).total == 8
    with pytest.raises(ConditionFailed):
        store.delete(at(1), when=Order.total == 7)
    assert store.move(at(1), Order.number.set(11)).number == 11
    assert store.get(at(1)) is None
    deleted = store.delete(at(11))
    assert deleted is not None
    assert deleted.total == 8
    assert store.delete_many([at(2), order(3), at(4)]) == 3
    assert [each.number for each in store.iterate(Order.primary.scan())] == [5]


def test_an_upsert_takes_a_key(store: isotone.Store) -> None:
    made = store.upsert(
        at(20),
        Order.total.set(3),
        Order.status.set("PLACED"),
        Order.ordered_at.set(order(20).ordered_at),
    )
    assert store.get(at(20)) == made


def test_transactions_take_keys(store: isotone.Store) -> None:
    with store.transaction() as tx:
        first = tx.get(at(1))
        assert first is not None
        tx.update(at(1), Order.total.set(first.total + 1))
        tx.delete(at(2))
        tx.move(at(3), Order.number.set(13))
        tx.check(at(4), Order.status == "SHIPPED")
    numbers = [
        each.number for each in store.all(Order.primary.where(Order.customer_id == "2b5a41c0"))
    ]
    assert numbers == [13, 5, 4, 1]
    tx = store.transaction()
    tx.check(at(4), Order.status == "PLACED")
    tx.delete(at(5))
    with pytest.raises(TransactionFailed):
        tx.commit()


def test_a_key_and_fields_are_refused(store: isotone.Store) -> None:
    for call in (store.get, store.delete, store.update):
        with pytest.raises(UsageError, match="is a whole key, and number was given as well"):
            call(at(1), number=1)  # type: ignore[operator]
    with pytest.raises(UsageError, match="get_many takes keys"):
        store.get_many([order(1)])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="get_many takes keys"):
        store.get_many(Order)
    with pytest.raises(UsageError, match="get_together takes keys"):
        store.get_together(order(1))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="get takes a class"):
        store.get(order(1))  # type: ignore[type-var]


def test_what_is_no_key_is_refused(store: isotone.Store) -> None:
    for call in (
        lambda: store.get_many(Order, ["1"]),  # type: ignore[list-item]
        lambda: store.delete_many(Order, ["1"]),  # type: ignore[list-item]
        lambda: store.get_together((Order, "1")),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError, match=r"'1' is not a key of Order: give \{'customer_id': …"):
            call()


def test_an_entity_is_needed_where_it_is_written(store: isotone.Store) -> None:
    for call in (store.put, store.create, store.refresh, lambda key: store.put_many([key])):
        with pytest.raises(UsageError, match="is only a key; give the entity itself"):
            call(at(1))  # type: ignore[operator]


def test_async_calls_take_keys() -> None:
    async def talk() -> None:
        async with isotone.aconnect() as store:
            await store.create_tables(shop)
            await store.put(order(1))
            assert await store.get(at(1)) == order(1)
            assert await store.get_many([at(1), at(2)]) == [order(1), None]
            assert (await store.update(at(1), Order.total.set(2))).total == 2

    asyncio.run(talk())
