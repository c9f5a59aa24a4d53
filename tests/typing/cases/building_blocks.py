"""Structures over a store that waits, and over one that is awaited."""

from __future__ import annotations

from typing import assert_type

from isotone import AsyncStore, Store
from isotone.structures import (
    Adjacency,
    Counter,
    Idempotency,
    Lock,
    Message,
    Queue,
    Sequence,
    Unique,
)


def waiting(store: Store) -> None:
    assert_type(Counter(store, "visits").add(), int)
    assert_type(Sequence(store, "orders").reserve(3), range)
    with Lock(store, "report").held() as lock:
        assert_type(lock.fence, int)
    with Lock(store, "report") as lock:
        assert_type(lock.acquire(), int)
    once = Idempotency(store, "payments")
    assert_type(once.once("a", lambda: "receipt"), str)

    @once.each(lambda number: str(number))
    def charge(number: int) -> str:
        return str(number)

    assert_type(charge(3), str)
    charge("three")  # E: Argument 1 to "charge" has incompatible type "str"
    queue = Queue(store, "mails")
    for message in queue.consume():
        assert_type(message, Message)
        with queue.handling(message) as same:
            assert_type(same, Message)
    assert_type(Unique(store, "names").owner_of("ann"), str | None)
    for edge in Adjacency(store, "takes").all_rights("ann"):
        assert_type(edge.right, str)
    Counter(store, "visits").add("one")  # E: incompatible type "str"


def guarded(store: Store) -> int:
    with Lock(store, "report").held() as lock:
        return lock.fence  # a lock swallows nothing, so nothing is missing behind the block


def guarded_plainly(store: Store) -> int:
    with Lock(store, "report") as lock:
        return lock.fence


async def awaited(store: AsyncStore) -> None:
    assert_type(await Counter(store, "visits").add(), int)
    async with Lock(store, "report").held() as lock:
        assert_type(await lock.acquire(), int)
    async with Lock(store, "report") as lock:
        assert_type(await lock.acquire(), int)
    with Lock(store, "report"):  # E: Invalid self argument
        pass

    async def receipt() -> str:
        return "receipt"

    once = Idempotency(store, "payments")
    assert_type(await once.once("a", receipt), str)
    queue = Queue(store, "mails")
    async for message in queue.consume():
        async with queue.handling(message):
            assert_type(await queue.extend(message), Message)
    Counter(store, "visits").add() + 1  # E: Unsupported operand types
