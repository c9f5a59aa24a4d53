"""Each of the building blocks does the same where it is awaited, wherever the store is."""

from __future__ import annotations

import asyncio

import isotone
from isotone import Global, ManualClock, Table
from isotone.structures import (
    Adjacency,
    Counter,
    Idempotency,
    Lock,
    Queue,
    Sequence,
    ShardedCounter,
    Unique,
)


def test_every_structure_works_over_an_async_store(
    address: object, clock: ManualClock, table_name: str
) -> None:
    indexes = {**Queue.layout().indexes, **Adjacency.layout().indexes, "more": Global("A", "B")}
    table = Table(table_name, indexes=indexes)

    async def program() -> None:
        async with isotone.aconnect(address, clock=clock) as store:
            queue = Queue(store, "q", table=table)  # all of them live in one table
            locks = [Lock(store, "l", table=table) for _ in range(2)]
            once = Idempotency(store, "i", table=table)
            names = Unique(store, "u", table=table)
            edges = Adjacency(store, "e", table=table)
            counter, numbers = Counter(store, "c", table=table), Sequence(store, "s", table=table)
            sharded = ShardedCounter(store, "many", 3, table=table)
            await store.create_tables(table)

            await asyncio.gather(*(each.add() for each in [counter, sharded] * 4))
            assert (await counter.value(), await sharded.reset(), await numbers.next()) == (4, 4, 1)
            assert [await each.try_acquire() for each in locks] == [True, False]
            await locks[0].release()
            async with locks[1].held() as lock:
                assert lock.fence == 2
            await names.reserve("ann", "1")
            assert await names.owner_of("ann") == "1"
            await edges.link("ann", "maths")
            assert [each.left async for each in edges.all_lefts("maths")] == ["ann"]

            async def work() -> str:
                return "done"

            assert [await once.once("a", work) for _ in range(2)] == ["done", "done"]
            await queue.put("a", group="g", token="t")
            await queue.put_many(["b", "c"], group="g")
            clock.advance(1)
            done = []
            async for message in queue.consume(until=lambda: len(done) == 3):
                async with queue.handling(message, keep=True):
                    done.append(message.body)
            assert done == ["a", "b", "c"]
            assert (await queue.counts()).depth == 0

    asyncio.run(program())
