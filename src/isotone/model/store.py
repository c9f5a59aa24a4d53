"""`Store` and `AsyncStore`: run the operations of `store_operations` on a backend with the DynamoDB API; `store.calls`.

    store = isotone.connect("shop.db")
    store.create_tables(shop)
    store.put(order)
    page = store.page(Order.by_status.where(Order.customer_id == "2b5a41c0"), size=25)

    async with isotone.aconnect("http://localhost:8000") as store:
        await store.put(order)

`Store` and `AsyncStore` run the steps of operations (`store_operations`) on their backend. `Calls` returns the steps
themselves, so that operations can be composed. Several threads or tasks may share a store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Self, TypeVar

from isotone.backends.capabilities import DYNAMODB, Capabilities
from isotone.backends.engines import EngineIdentity
from isotone.backends.interface import AsyncBackend, Backend
from isotone.clock import Clock, ManualClock
from isotone.model.operation import Awaits, Composes, Waits
from isotone.model.reading import parallel_scan
from isotone.model.reading.cursors import identity
from isotone.model.reading.queries import Query, Read, Scan
from isotone.model.reading.reader import Reader, Traversal
from isotone.model.store_operations import Operations
from isotone.model.table_renaming import TableNames
from isotone.shown_signature import show_signatures
from isotone.tables.runners import AsyncRunner, Runner
from isotone.tables.steps import Batches, Steps

R = TypeVar("R")


@show_signatures
class Store(Runner, Operations[Waits], Waits):
    """A store whose operations block; created by `connect`.

    >>> with isotone.connect(":memory:") as other:
    ...     other.create_tables(Order.__schema__.table)
    ['shop']
    """

    def __init__(
        self,
        backend: Backend,
        reader: Reader,
        clock: Clock,
        close: Callable[[], None],
        deadline: float = 60.0,
        engine: EngineIdentity | None = None,
        names: TableNames | None = None,
    ) -> None:
        Runner.__init__(self, backend, deadline, None if names is None else names.explain)
        Operations.__init__(self, reader, clock, engine or EngineIdentity(DYNAMODB))
        self._names = names
        self.calls: Calls = Calls(reader, clock, self.engine)
        self._close = close

    @property
    def capabilities(self) -> Capabilities:
        """What the engine can do. If the address does not name the engine, the server is asked once."""
        return self.engine.identify()

    def scan(
        self, read: Scan[R], *, segments: int = 4, progress: parallel_scan.Progress | None = None
    ) -> Iterator[R]:
        """Iterate over all results of a scan, read by several threads, in no particular order.

        `progress` is called after each request with the cost so far.

            for order in store.scan(Order.primary.scan(), segments=8): ...
        """
        return parallel_scan.together(self._reader.segments(read, segments), self.run, progress)

    def close(self) -> None:
        """Close what `connect` opened: the file, the connections, the tape. Closing twice does nothing."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@show_signatures
class AsyncStore(AsyncRunner, Operations[Awaits], Awaits):
    """A store whose operations are awaited; created by `aconnect`. Works in any event loop.

    async with isotone.aconnect("shop.db") as store:
        page = await store.page(query, size=25)
    """

    def __init__(
        self,
        backend: AsyncBackend,
        reader: Reader,
        clock: Clock,
        close: Callable[[], None],
        deadline: float = 60.0,
        engine: EngineIdentity | None = None,
        names: TableNames | None = None,
    ) -> None:
        AsyncRunner.__init__(self, backend, deadline, None if names is None else names.explain)
        Operations.__init__(self, reader, clock, engine or EngineIdentity(DYNAMODB))
        self._names = names
        self.calls: Calls = Calls(reader, clock, self.engine)
        self._close = close

    def scan(
        self, read: Scan[R], *, segments: int = 4, progress: parallel_scan.Progress | None = None
    ) -> AsyncIterator[R]:
        """Iterate over all results of a scan, read by concurrent requests, in no particular order.

        `progress` is called after each request with the cost so far.
        """
        return parallel_scan.together_async(
            self._reader.segments(read, segments), self.run, progress
        )

    async def close(self) -> None:
        """Close what `aconnect` opened: the file, the connections, the tape."""
        self._close()
        import asyncio  # imported here, because it takes a tenth of the start-up time of a program that does not use it

        await asyncio.sleep(0)  # connections are closed in the loop's next iteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


@show_signatures
class Calls(Operations[Composes], Composes):
    """The store's operations as steps, from which a program can compose its own: `store.calls`.

        def rename(calls: Calls, song: str, title: str) -> Steps[Song]:
            current = yield from calls.get(Song, id=song)
            ...
            return (yield from calls.update(Song, Song.title.set(title), id=song))

    `store.run(rename(store.calls, …))` runs them.
    """

    def run(self, steps: Steps[R]) -> Steps[R]:
        """Return the steps."""
        return steps

    def run_batches(self, batches: Batches[R]) -> Batches[R]:
        """Return the batches."""
        return batches

    def by_clock(self, clock: ManualClock) -> Calls:
        """The same operations by another clock: for entities that are written as of another time."""
        return Calls(self._reader, clock, self.engine)

    def traverse(self, read: Read[R]) -> Traversal[R]:
        """Traverse all results of a read; each `step()` sends one request."""
        return self._reader.traverse(read)

    def cursor_after(self, query: Query[Any], /, **values: Any) -> str:
        """The cursor of the page after a position in a query; no item needs to exist there.

        `values` are the fields of the entity's primary key and of the queried key. Use this to merge pages of several
        queries: continue each one after the items taken from it.
        """
        return self._reader.cursor_after(query, values)

    def seal(self, state: Any, /, **of: Any) -> str:
        """Encrypt a position in several queries, given as JSON values, into a cursor.

        `of` identifies the read; `unseal` accepts the cursor only with the same `of`.
        """
        return self._reader.cursors.write(state, identity({"sealed": of}))

    def unseal(self, cursor: str, /, **of: Any) -> Any:
        """The state in a sealed cursor; raises `InvalidCursor`."""
        return self._reader.cursors.read(cursor, identity({"sealed": of}))
