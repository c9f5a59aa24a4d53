"""What somebody new writes at first, and what is said to it: each time what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.model.orders import START, Order, order, shop

from isotone import ManualClock, Store, aconnect, connect
from isotone.errors import ConditionFailed, InvalidCursor, UsageError

FIRST = Order.primary.where(Order.customer_id == "2b5a41c0")


@pytest.fixture
def store() -> Iterator[Store]:
    with connect(clock=ManualClock(START)) as store:
        store.create_tables(shop)
        yield store


@pytest.mark.parametrize("call", ["create_tables", "drop_tables", "differences", "add_indexes"])
def test_tables_are_given_one_by_one(store: Store, call: str) -> None:
    ask: Any = getattr(store, call)
    with pytest.raises(UsageError, match=rf"{call}\(Order\) is given an entity; .*Order.*'shop'"):
        ask(Order)
    with pytest.raises(UsageError, match=rf"write {call}\(\*tables\)"):
        ask([shop])
    with pytest.raises(UsageError, match=rf"{call}\(\) is given no table"):
        ask()
    with pytest.raises(UsageError, match=rf"{call} takes tables, .*not 'shop'"):
        ask("shop")
    assert store.differences(shop) == []


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("clock", datetime, "a clock"),
        ("clock", ManualClock, "a clock"),
        ("clock", 5, "a clock"),
        ("cursor_secret", "a text of sixteen characters", "bytes"),
        ("cursor_lifetime", "3600", "seconds"),
        ("cursor_lifetime", True, "seconds"),
        ("report", "stderr", "a function"),
        ("observe", print, "a list"),
        ("observe", [1], "a list"),
        ("tape", 3, "a path"),
        ("region", 3, "a text"),
        ("profile", b"work", "a text"),
        ("credentials", ("a", "b"), "isotone.Credentials"),
        ("retries", 3, "isotone.Retries"),
        ("timeouts", 3, "isotone.Timeouts"),
        ("connections", "10", "an int"),
        ("durability", True, "'disk', 'process' or 'none'"),
    ],
)
def test_options_have_a_type(option: str, value: Any, wanted: str) -> None:
    options: dict[str, Any] = {option: value}
    for open_store in (connect, aconnect):
        with pytest.raises(UsageError, match=f"{option}=.*{wanted}"):
            open_store(**options)


def test_any_object_that_tells_seconds_is_a_clock() -> None:
    class Own:
        def now(self) -> float:
            return 5.0

    with connect(clock=Own()) as store:
        assert store.clock.now() == 5.0


def test_a_page_is_no_cursor(store: Store) -> None:
    page: Any = store.page(FIRST, size=1)
    with pytest.raises(InvalidCursor, match=r"a Page is no cursor; give its: cursor=page\.cursor"):
        store.page(FIRST, size=1, cursor=page)
    wrong: Any = 5
    with pytest.raises(InvalidCursor, match="5 is no cursor"):
        store.page(FIRST, size=1, cursor=wrong)


def test_a_refused_write_shows_its_condition(store: Store) -> None:
    store.put(order(1))
    condition = (Order.total > 5) & ((Order.status == "PLACED") | ~Order.status.exists())
    shown = r"\(total > 5\) & \(\(status == 'PLACED'\) \| ~\(status\.exists\(\)\)\)"
    with pytest.raises(ConditionFailed, match=f"does not hold: {shown}"):
        store.put(order(1), when=condition)


def test_conditions_and_queries_show_what_they_ask() -> None:
    shown = {
        repr(Order.number.between(1, 3)): "number.between(1, 3)",
        repr(Order.status.is_in(["PLACED", "SHIPPED"])): "status.is_in(['PLACED', 'SHIPPED'])",
        repr(Order.customer_id.begins_with("2b")): "customer_id.begins_with('2b')",
        repr(Order.customer_id.contains("5a")): "customer_id.contains('5a')",
        repr(Order.customer_id.size >= 3): "customer_id.size >= 3",
        repr(Order.status != "PLACED"): "status != 'PLACED'",
        repr(Order.customer_id["a"][0] == 5): "customer_id['a'][0] == 5",
        repr(Order.customer_id == None): "customer_id.missing()",  # noqa: E711
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


def test_a_clock_tells_its_time_as_a_datetime() -> None:
    clock = ManualClock(START)
    clock.advance(1.5)
    assert clock.utc == START.replace(second=1, microsecond=500_000)
    assert clock.utc.tzinfo is UTC
