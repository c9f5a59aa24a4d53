from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.model.orders import START, Order, order, shop

from isotone import ManualClock, aconnect, connect
from isotone.errors import UsageError


def test_a_tape_is_recorded_and_then_played(tmp_path: Path) -> None:
    tape = tmp_path / "orders.jsonl"
    with connect(tape=tape, clock=ManualClock(START)) as store:
        store.create_tables(shop)
        store.put(order(1))
        assert store.get(Order, customer_id="2b5a41c0", number=1) == order(1)
    with connect("http://localhost:1", tape=tape) as store:
        assert store.create_tables(shop) == ["shop"]
        store.put(order(1))
        assert store.get(Order, customer_id="2b5a41c0", number=1) == order(1)
        with pytest.raises(UsageError, match="has no answer left for GetItem"):
            store.get(Order, customer_id="2b5a41c0", number=2)


def test_a_tape_of_an_async_store(tmp_path: Path) -> None:
    tape = tmp_path / "orders.jsonl"

    async def talk(address: str) -> Order | None:
        async with aconnect(address, tape=tape) as store:
            await store.create_tables(shop)
            await store.put(order(1))
            return await store.get(Order, customer_id="2b5a41c0", number=1)

    assert asyncio.run(talk(":memory:")) == order(1)
    assert asyncio.run(talk("http://localhost:1")) == order(1)


def test_options_are_checked_by_both() -> None:
    for open_store in (connect, aconnect):
        with pytest.raises(
            UsageError,
            match="the options are busy_timeout, capabilities, check_keys, clock, connections, credentials, cursor_",
        ):
            open_store(zzz=1)  # type: ignore[operator]
