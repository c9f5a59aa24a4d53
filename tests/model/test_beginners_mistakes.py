"""What somebody new writes at first, and what is said to it: each time what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

import pytest
from tests.model.orders import START, Order, order, shop

import isotone
from isotone import (
    Attr,
    Codec,
    Entity,
    Global,
    Index,
    Key,
    ManualClock,
    Store,
    Table,
    aconnect,
    connect,
    field,
)
from isotone.errors import ConditionFailed, InvalidCursor, InvalidItem, UsageError

FIRST = Order.primary.where(Order.customer_id == "2b5a41c0")


@pytest.fixture
def store() -> Iterator[Store]:
    with connect(clock=ManualClock(START)) as store:
        store.create_tables(shop)
        yield store


@pytest.mark.parametrize("call", ["create_tables", "drop_tables", "differences", "add_indexes"])
def test_tables_are_given_one_by_one(store: Store, call: str) -> None:
    ask: Any = getattr(store, call)
    with pytest.raises(UsageError, match=rf"{call} takes tables, and Order is an entity; .*'shop'"):
        ask(Order)
    with pytest.raises(UsageError, match=rf"write {call}\(\*tables\)"):
        ask([shop])
    with pytest.raises(UsageError, match=rf"{call}\(\) needs a table"):
        ask()
    with pytest.raises(UsageError, match=rf"{call} takes tables, .*not 'shop'"):
        ask("shop")
    assert store.differences(shop) == []


def test_a_table_is_not_its_name() -> None:
    name: Any = "shop"
    with pytest.raises(UsageError, match=r"Slip: table='shop' is not a table; write table=Table"):

        class Slip(Entity, table=name):
            number: Attr[int] = field()


@pytest.mark.parametrize(
    ("indexes", "said"),
    [({"GSI1": "PK1"}, "index 'GSI1' is 'PK1'; write"), (["GSI1"], "is not a dict; write")],
)
def test_indexes_are_a_dict_of_layouts(indexes: Any, said: str) -> None:
    with pytest.raises(UsageError, match=rf"{said} indexes={{'GSI1': Global"):
        Table("shop", indexes=indexes)


def test_a_field_has_attr_in_its_type() -> None:
    with pytest.raises(UsageError, match=r"field 'number' has the type int, not Attr\[…\]"):

        class Slip(Entity, table=Table("slips")):
            number: int = field()  # type: ignore[assignment] # the slip


@pytest.mark.parametrize(
    ("annotation", "options", "said"),
    [
        (datetime, {"default": datetime(2026, 1, 1)}, "has no time zone"),
        (datetime | None, {"default": datetime(2026, 1, 1)}, "has no time zone"),
        (int, {"default": "3"}, "'3' is a str, but an int is expected"),
        (Decimal, {"default": 1.5}, "1.5 is a float, but a Decimal is expected"),
        (Literal["a", "b"], {"default": "c"}, "one of 'a', 'b' is expected"),
        (list[int], {"default": (1,)}, "(1,) is a tuple, but a list is expected"),
        (float, {"default": float("nan")}, "cannot be converted to a numeric value"),
        (int, {"default": 1000, "max": 999}, "1000 is greater than its max=999"),
        (int, {"default": -2, "min": -1}, "-2 is less than its min=-1"),
        (Decimal, {"default": Decimal(10), "max": 9, "scale": 2}, "10 is greater than its max=9"),
    ],
)
def test_a_default_can_be_stored(annotation: Any, options: dict[str, Any], said: str) -> None:
    refused = rf"Mug: field 'value' has a default that cannot be stored: .*{re.escape(said)}"
    with pytest.raises(UsageError, match=refused):

        class Mug(Entity, table=Table("mugs")):
            name: Attr[str] = field()
            value: Attr[annotation] = field(**options)
            primary = Key("MUG", name).sort("MUG")


@pytest.mark.parametrize(
    ("annotation", "options", "said"),
    [
        (int, {"default": -1, "max": 999}, "declare a minimum"),
        (Decimal, {"default": Decimal("0.125"), "max": 9, "scale": 2}, "more decimal places than"),
    ],
)
def test_a_key_has_room_for_a_default(annotation: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=f"Mug: field 'value' has a default that .*{said}"):

        class Mug(Entity, table=Table("mugs")):
            name: Attr[str] = field()
            value: Attr[annotation] = field(**options)
            primary = Key("MUG", name).sort("VALUE", value)


def test_a_default_may_keep_an_entity_out_of_an_index() -> None:
    indexed = Table("mugs", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

    class Sparse(Entity, table=indexed):
        name: Attr[str] = field()
        rank: Attr[int] = field(default=-1, max=999)
        primary = Key("MUG", name).sort("MUG")
        by_rank = Index("GSI1", "RANK", when=rank >= 0).sort(rank)

    class Optional(Entity, table=indexed):
        name: Attr[str] = field()
        rank: Attr[int] = field(default=-1, max=999)
        shelf: Attr[str | None] = field(default=None)
        primary = Key("SHELVED", name).sort("SHELVED")
        by_rank = Index("GSI1", "SHELF", shelf).sort(rank)

    with connect() as store:
        store.create_tables(indexed)
        for entity in (Sparse(name="a"), Optional(name="a")):
            store.put(entity)
            assert store.get(type(entity), name="a").rank == -1


def test_a_codec_is_not_asked_when_a_class_is_defined() -> None:
    """It may need what a program has only later, such as an encryption key."""

    def encode(text: str) -> str:
        raise AssertionError(text)

    class Secret(Entity, table=Table("secrets")):
        name: Attr[str] = field()
        value: Attr[str] = field(default="none", codec=Codec(encode, str))
        primary = Key("SECRET", name).sort("SECRET")


def test_a_new_value_is_given_by_set(store: Store) -> None:
    with pytest.raises(UsageError, match=r"to change it, write Order\.status\.set\(…\)"):
        store.update(Order, customer_id="a", number=1, status="SHIPPED")


@pytest.mark.parametrize("make", [connect, isotone.open])
def test_a_durability_is_checked_in_memory_as_well(make: Any) -> None:
    with pytest.raises(UsageError, match="'fast' is not a durability; use one of disk, process"):
        make(":memory:", durability="fast")


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("clock", datetime, "a clock"),
        ("clock", ManualClock, "a clock"),
        ("clock", 5, "a clock"),
        ("cursor_secret", "a text of sixteen characters", "bytes"),
        ("cursor_lifetime", "3600", "seconds"),
        ("cursor_lifetime", True, "seconds"),
        ("cursor_lifetime", 0, "more than 0"),
        ("cursor_lifetime", float("nan"), "more than 0"),
        ("cursor_lifetime", float("inf"), "more than 0"),
        ("deadline", -5, "seconds"),
        ("deadline", float("nan"), "seconds"),
        ("report", "stderr", "a function"),
        ("observe", print, "a list"),
        ("observe", [1], "a list"),
        ("tape", 3, "a path"),
        ("region", 3, "a string"),
        ("profile", b"work", "a string"),
        ("credentials", ("a", "b"), "isotone.Credentials"),
        ("retries", 3, "isotone.Retries"),
        ("timeouts", 3, "isotone.Timeouts"),
        ("connections", "10", "an int"),
        ("busy_timeout", "5", "seconds"),
        ("durability", True, "'disk', 'process' or 'none'"),
    ],
)
def test_options_have_a_type(option: str, value: Any, wanted: str) -> None:
    options: dict[str, Any] = {option: value}
    for open_store in (connect, aconnect):
        with pytest.raises(UsageError, match=f"{option}=.*{wanted}"):
            open_store(**options)


def test_an_empty_cursor_secret_is_not_replaced_by_a_random_one() -> None:
    with pytest.raises(UsageError, match="16 bytes or more, not 0"):
        connect(cursor_secret=b"")


def test_any_object_that_returns_seconds_is_a_clock() -> None:
    class Own:
        def now(self) -> float:
            return 5.0

    with connect(clock=Own()) as store:
        assert store.clock.now() == 5.0


def test_a_page_is_no_cursor(store: Store) -> None:
    page: Any = store.page(FIRST, size=1)
    with pytest.raises(
        InvalidCursor, match=r"a Page is not a cursor; give its cursor: cursor=page\.cursor"
    ):
        store.page(FIRST, size=1, cursor=page)
    wrong: Any = 5
    with pytest.raises(InvalidCursor, match="5 is not a cursor"):
        store.page(FIRST, size=1, cursor=wrong)


def test_a_refused_write_shows_its_condition(store: Store) -> None:
    store.put(order(1))
    condition = (Order.total > 5) & ((Order.status == "PLACED") | ~Order.status.exists())
    shown = r"\(total > 5\) & \(\(status == 'PLACED'\) \| ~\(status\.exists\(\)\)\)"
    with pytest.raises(ConditionFailed, match=f"is false: {shown}"):
        store.put(order(1), when=condition)


def test_conditions_and_queries_show_what_they_ask() -> None:
    shown = {
        repr(Order.number.between(1, 3)): "number.between(1, 3)",
        repr(Order.status.is_in(["PLACED", "SHIPPED"])): "status.is_in(['PLACED', 'SHIPPED'])",
        repr(Order.customer_id.begins_with("2b")): "customer_id.begins_with('2b')",
        repr(Order.customer_id.contains("5a")): "customer_id.contains('5a')",
        repr(Order.customer_id.size >= 3): "customer_id.size >= 3",
        repr(Order.status != "PLACED"): "status != 'PLACED'",
        repr(Order.customer_id == None): "customer_id == None",  # noqa: E711
        repr((Order.number > 1) & (Order.number < 5)): "(number > 1) & (number < 5)",
        repr(~(Order.number > 1)): "~(number > 1)",
    }
    assert list(shown) == list(shown.values())
    query = FIRST.filter(Order.status == "PLACED").limit(3)
    assert repr(query) == (
        "<Query of Order.primary where customer_id == '2b5a41c0', filtered by status == 'PLACED'>"
    )
    assert repr(Order.primary.scan()) == "<Scan of Order.primary>"


def test_where_takes_conditions_and_no_names() -> None:
    for ask in (Order.primary.where, Order.find, FIRST.filter):
        wrong: Any = ask
        with pytest.raises(UsageError, match=r"write .*\(Order\.customer_id == 'a'\)"):
            wrong(customer_id="a")


def test_a_clock_has_its_time_as_a_datetime() -> None:
    clock = ManualClock(START)
    clock.advance(1.5)
    assert clock.utc == START.replace(second=1, microsecond=500_000)
    assert clock.utc.tzinfo is UTC


def test_a_key_is_given_by_name(store: Store) -> None:
    get: Any = store.get
    wanted = r"write get\(Order, customer_id='a', number=1\)"
    for values in (("a", 1), ("a",)):
        with pytest.raises(UsageError, match=wanted.replace("=1", "=(1|…)")):
            get(Order, *values)
    with pytest.raises(UsageError, match=wanted):
        get(order(1, "a"))
    wrong: Any = store.transaction().get
    with pytest.raises(UsageError, match=wanted):
        wrong(order(1, "a"))


def test_a_transaction_reads_before_it_writes(store: Store) -> None:
    together = store.transaction()
    together.create(order(1))
    with pytest.raises(UsageError, match="call get before the write"):
        together.get(Order, customer_id="2b5a41c0", number=1)


def test_batches_take_several(store: Store) -> None:
    for call in (store.put_many, store.delete_many):
        wrong: Any = call
        with pytest.raises(UsageError, match=r"a list of entities, not Order; write \w+\(\[…\]\)"):
            wrong(order(1))
    with pytest.raises(
        UsageError, match=r"no change was given; write one such as Order\.status\.set"
    ):
        store.update(order(1))


# What comes in is converted where that is exact; what is asked is taken as it is


def test_floats_are_no_money(store: Store) -> None:
    store.put(order(1))
    wrong: Any = 1.1
    with pytest.raises(UsageError, match="a float is not exact"):
        order(1).replace(total=wrong)
    for ask in (Order.total.set, Order.total.set_default, Order.total.add):
        with pytest.raises(UsageError, match="float"):
            store.update(Order, ask(wrong), customer_id="2b5a41c0", number=1)
    with pytest.raises(UsageError, match="float"):
        assert Order.total > wrong


def test_texts_are_converted_where_they_come_in_and_not_where_one_asks(store: Store) -> None:
    number: Any = "1"
    total: Any = "1.10"
    noon: Any = "2019-07-02T12:00:00+02:00"
    made = store.put(
        Order(customer_id="a", number=number, status="PLACED", ordered_at=noon, total=total)
    )
    assert (made.number, made.total) == (1, Decimal("1.10"))
    made = store.update(made, Order.total.set(total), Order.ordered_at.set(noon))
    assert (made.total, made.ordered_at) == (Decimal("1.10"), datetime(2019, 7, 2, 10, tzinfo=UTC))
    asking: list[Any] = [
        lambda: Order.number == number,
        lambda: Order.total > total,
        lambda: Order.ordered_at >= noon,
        lambda: store.update(made, Order.total.add(total)),
        lambda: store.get(Order, customer_id="a", number=number),
    ]
    for ask in asking:
        with pytest.raises(UsageError, match=r"field .*( is a str|add takes a number)"):
            ask()


def test_a_malformed_key_names_its_entity(store: Store) -> None:
    store.put(order(1))
    item = {"PK": {"S": "CUSTOMER#2b5a41c0"}, "SK": {"S": "ORDER-7"}, "_type": {"S": "Order"}}
    store.backend.execute("PutItem", {"TableName": "shop", "Item": item})
    with pytest.raises(InvalidItem) as failed:
        store.all(Order.primary.scan())
    for said in (
        "Order {'PK': 'CUSTOMER#2b5a41c0', 'SK': 'ORDER-7'} in table 'shop'",
        "'SK'",
        "number",
        "select",
    ):
        assert said in str(failed.value)
    assert len(store.all(Order.primary.scan().select(Order.total))) == 2
