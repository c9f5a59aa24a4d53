"""Handlers of workers: what they are declared for is what they are given."""
# fmt: off
# ruff: noqa: B018

from __future__ import annotations

from collections.abc import Sequence

from shop import Customer, Order

import isotone
from isotone import Event, Table
from isotone.structures import Context, Worker, WorkerSettings

store = isotone.connect(":memory:")
worker = Worker("mails", Table("shop", stream="NEW_AND_OLD_IMAGES"))
Table("shop", stream="EVERYTHING")  # E: expected "Literal['KEYS_ONLY', 'NEW_IMAGE', 'OLD_IMAGE', 'NEW_AND_OLD_IMAGES'] | None"


@worker.on(Order, "inserted", "modified")
def shipped(event: Event[Order], context: Context) -> None:
    total = event.entity.total + 1
    context.store.update(Order, Order.total.set(total), customer_id="a", number=1)
    if event.before is not None:
        event.before.totl  # E: no attribute "totl"
    event.after.total  # E: has no attribute "total"
    with context.once() as together:
        together.put(event.entity)


@worker.on_many(Customer)
def many(events: Sequence[Event[Customer]], context: Context) -> None:
    names: list[str] = [event.id for event in events]
    assert names


@worker.on()
def anything(event: Event, context: Context) -> None:
    assert event.entity.to_dict()


@worker.on(Order)  # E: expected "Callable[[Event[Order]
def wrong(event: Event[Customer], context: Context) -> None: ...


@worker.on(Order, "born")  # E: No overload
def never(event: Event[Order], context: Context) -> None: ...


done = worker.run(store, workers=2, settings=WorkerSettings(lease=10))
assert done.lag + done.rate
worker.run(store, lease=10)  # E: "lease"
for event in store.changes(worker.table):
    assert event.kind == "removed" or event.entity
