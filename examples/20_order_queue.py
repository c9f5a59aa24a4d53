"""The orders of a shop, from the checkout to the report: each is processed once, and a customer's in order.

Orders get consecutive numbers (Sequence) and wait in a queue (Queue). Each customer is a group: the next order
starts when the previous one is done. A worker dies after it has charged a card; its successor does not charge
again (Idempotency), and the revenue is counted once (Counter). An order that fails three times becomes a dead
letter, and is retried once the card works. Purchases can be listed by customer and by product (Adjacency), and
one process at a time writes the report (Lock). All items are in one table.

    python examples/20_order_queue.py [ADDRESS]
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime, timedelta

import isotone
from isotone import Attr, Entity, Key, ManualClock, Store, Table, errors, field
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.structures import (
    Adjacency,
    Counter,
    Idempotency,
    Lock,
    Message,
    Queue,
    QueueEntry,
    Sequence,
)

OPENING = datetime(2040, 1, 2, 9, 0, tzinfo=UTC)
WISHES = [("ann", "tea", 4), ("bob", "lamp", 30), ("ann", "cup", 9), ("cem", "tea", 4)]
WISHES += [("bob", "tea", 4), ("ann", "lamp", 30)]

shop = Table("order_desk", indexes={**Queue.layout().indexes, **Adjacency.layout().indexes})


class Order(Entity, table=shop):
    number: Attr[int] = field(max=99_999)
    customer: Attr[str] = field()
    product: Attr[str] = field()
    price: Attr[int] = field()
    receipt: Attr[str] = field(default="")

    primary = Key("ORDER", number).sort("ORDER")


class Desk:
    """The shop's structures."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.numbers = Sequence(store, "orders", table=shop)
        self.queue = Queue(store, "orders", hold=60, attempts=3, table=shop)
        self.payments = Idempotency(store, "payments", table=shop)
        self.takings = Counter(store, "takings", table=shop)
        self.bought = Adjacency(store, "bought", table=shop)
        self.refused = {"bob"}
        self.charged: list[int] = []

    def place(self, customer: str, product: str, price: int) -> None:
        """Give the order its number, and queue it."""
        order = self.numbers.assign(
            lambda number: Order(number=number, customer=customer, product=product, price=price)
        )
        self.queue.put({"number": order.number}, group=customer, token=str(order.number))

    def charge(self, order: Order) -> str:
        """Charge the card at the bank. This cannot be undone, whatever happens here afterwards."""
        if order.customer in self.refused:
            raise PermissionError("the card is refused")
        self.charged.append(order.number)
        return f"R{len(self.charged)}"

    def fulfil(self, message: Message) -> str:
        """Process an order; its effects happen once, however often it is started."""
        order = self.store.get(Order, number=message.body["number"])
        assert order is not None
        key = f"order:{order.number}"
        receipt = self.payments.once(key, lambda: self.charge(order), payload=order.price)
        self.takings.add_once(key, order.price)
        self.bought.link(order.customer, order.product)
        self.store.update(Order, Order.receipt.set(receipt), number=order.number)
        return f"order {order.number} of {order.customer}: {order.product}, {receipt}"

    def work(self, worker: str, seconds: float = 30) -> None:
        """Consume until no message arrives for a while, by the shop's clock."""
        for _ in range(int(seconds)):
            for message in self.queue.claim():
                with self.queue.handling(message):
                    print(f"{self.time()}  {worker} tries order {message.body['number']}")
                    print(f"{self.time()}  {worker} has done {self.fulfil(message)}")
            self.clock.advance(1)

    def time(self) -> str:
        return datetime.fromtimestamp(self.clock.now(), UTC).strftime("%H:%M:%S")


def show_queue(desk: Desk) -> None:
    """The groups that can be claimed, in order."""
    entries = desk.queue.bind(QueueEntry)
    here = QueueEntry.queue == "orders", QueueEntry.state == "READY", QueueEntry.shard == 0
    found = desk.store.all(entries.ready.where(*here))
    isotone.show(found, QueueEntry.entry, QueueEntry.due, QueueEntry.attempts, QueueEntry.pending)


def report(desk: Desk, lock: Lock[Store]) -> None:
    """Written by one process at a time; `fence` refuses one that has lost the lock."""
    with lock.held(timeout=0):
        print(f"Report {lock.fence}: {desk.takings.value()} taken")
        try:
            Lock(desk.store, "report", table=shop).acquire(timeout=0)
        except errors.Locked as locked:
            print(f"Another one is refused: held by {locked.owner}")


# What many users would do: isotone simulate 20_order_queue
load = Workload("order desk", tables=[shop])
customers = load.population("customer", 100_000, activity=0.5)


@load.prepare
def open_the_shop(store: Store) -> Desk:
    return Desk(store, ManualClock(OPENING))


@load.action(by=customers, per_day=1)
def buy(call: WorkloadCall) -> None:
    call.world.place(call.member.id, call.chance.choice(["tea", "cup", "lamp"]), 9)


@load.action(per_second=2)
def deliver(call: WorkloadCall) -> None:
    for message in call.world.queue.claim(1):
        with call.world.queue.handling(message):
            call.world.fulfil(message)


def main(address: str = ":memory:") -> None:
    logging.getLogger("isotone.queue").setLevel(logging.ERROR)  # failures are shown below
    clock = ManualClock(OPENING)
    with isotone.connect(address, clock=clock) as store:
        store.drop_tables(shop)
        desk = Desk(store, clock)
        store.create_tables(shop)
        for wish in WISHES:
            desk.place(*wish)
            clock.advance(timedelta(seconds=10))
        print("Orders, numbered without a gap")
        orders = [store.get(Order, number=number) for number in range(1, len(WISHES) + 1)]
        isotone.show([order for order in orders if order], by=Order.primary)
        print("\nCustomers in the queue, each with the time of its next order")
        show_queue(desk)

        print("\nA worker dies after it has charged a card")
        (message,) = desk.queue.claim()
        print(f"{desk.time()}  first has done {desk.fulfil(message)}, and says so to nobody")
        show_queue(desk)

        print("\nAnother one works; what is held is due again after a minute")
        desk.work("second", seconds=70)
        print(f"Charged: {', '.join(map(str, desk.charged))}")

        print("\nPut aside after three attempts each")
        for letter in desk.queue.dead_letters():
            print(f"order {letter.body['number']} of {letter.group}: {letter.reason}")
        counts = desk.queue.counts()
        print(f"{counts.depth} waiting, {counts.dead} dead")

        print("\nBob's card works again")
        desk.refused.clear()
        print(f"{desk.queue.redrive()} tried again")
        desk.work("second")
        print(f"{desk.queue.counts().depth} waiting, {desk.queue.counts().dead} dead")

        print("\nWho bought what")
        for customer in ("ann", "bob"):
            products = ", ".join(edge.right for edge in desk.bought.all_rights(customer))
            print(f"{customer}: {products}")
        print(f"tea: {', '.join(edge.left for edge in desk.bought.all_lefts('tea'))}")
        print(f"ann and bob both: {', '.join(desk.bought.common_rights('ann', 'bob'))}")

        print("\nThe report is written by one at a time")
        report(desk, Lock(store, "report", owner="the office", table=shop))
        report(desk, Lock(store, "report", owner="the office", table=shop))


if __name__ == "__main__":
    main(*sys.argv[1:])
