"""Stores: read and write entities over any backend with the DynamoDB API.

    store = isotone.connect("shop.db")
    store.create_tables(shop)
    store.put(order)
    page = store.page(Order.by_status.where(Order.customer_id == "2b5a41c0"), size=25)

    async with isotone.aconnect("http://localhost:8000") as store:
        await store.put(order)

`Store` and `AsyncStore` run the steps of an operation (`store_operations`) against their backend. `Calls` returns
the steps themselves, to compose operations from others. Stores are safe to use from several threads or tasks.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

from isotone.backends.engines import Engine
from isotone.backends.interface import DYNAMODB, AsyncBackend, Backend, Capabilities
from isotone.clock import Clock
from isotone.errors import IsotoneError
from isotone.model.entity import Entity
from isotone.model.operation import Awaits, Composes, Waits
from isotone.model.reading import parallel_scan
from isotone.model.reading.cursors import identity
from isotone.model.reading.queries import Query, Read, Scan
from isotone.model.reading.reader import Reader, Traversal
from isotone.model.store_operations import Operations
from isotone.model.table_renaming import TableNames
from isotone.shown_signature import show_signatures
from isotone.tables.retries import Deadline
from isotone.tables.steps import Batches, Call, Recognise, Steps, Together, with_hint

E = TypeVar("E", bound=Entity)
R = TypeVar("R")


@show_signatures
class Store(Operations[Waits], Waits):
    """A store whose operations block; created by `connect`."""

    def __init__(
        self,
        backend: Backend,
        reader: Reader,
        clock: Clock,
        close: Callable[[], None],
        deadline: float = 60.0,
        engine: Engine | None = None,
        names: TableNames | None = None,
    ) -> None:
        super().__init__(reader, clock, engine or Engine(DYNAMODB))
        self.backend = backend
        self._names = names
        self.calls = Calls(reader, clock, self.engine)
        self.deadline = deadline
        self._close = close

    @property
    def capabilities(self) -> Capabilities:
        """What the engine can do. If its address does not say what it is, the server is asked once."""
        return self.engine.recognise()

    def run(self, steps: Steps[R]) -> R:
        """Run the steps of an operation to their end.

        Errors of the backend are raised inside the operation, at its request.
        """
        backend = self.backend
        send = backend.execute
        retries: Deadline | None = None
        try:
            step = next(steps)
            while True:
                if type(step) is Call:
                    execute = getattr(backend, "read_json", send) if step.json_items else send
                    until = None if retries is None else retries.until()
                    try:
                        response = execute(step.operation, step.request, until)
                    except IsotoneError as error:
                        step = steps.throw(with_hint(error, step))
                    else:
                        step = steps.send(response)
                    continue
                if type(step) is Together:
                    failure = self._run_together(step)
                elif type(step) is Recognise:
                    step.engine.recognise()
                    failure = None
                else:
                    retries = retries or Deadline(self.deadline)
                    failure = retries.passed_by(step)
                    if failure is None:
                        time.sleep(step.seconds)
                step = steps.send({}) if failure is None else steps.throw(failure)
        except StopIteration as end:
            result: R = end.value
            return result
        except IsotoneError as error:
            if self._names is not None:
                self._names.explain(error)
            raise

    def _run_together(self, together: Together) -> BaseException | None:
        """Run operations in threads until all have ended; return the first error."""
        with ThreadPoolExecutor(len(together.operations), "isotone-together") as pool:
            futures = [pool.submit(self.run, each) for each in together.operations]
        return next(filter(None, (future.exception() for future in futures)), None)

    def run_batches(self, batches: Batches[R]) -> Iterator[R]:
        """Run an iteration, one step after the other."""
        try:
            steps = next(batches)
            while True:
                results = self.run(steps)
                yield from results
                steps = batches.send(results)
        except StopIteration:
            return

    def scan(
        self, read: Scan[E], *, segments: int = 4, progress: parallel_scan.Progress | None = None
    ) -> Iterator[E]:
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@show_signatures
class AsyncStore(Operations[Awaits], Awaits):
    """A store whose operations are awaited; created by `aconnect`. Works in any event loop."""

    def __init__(
        self,
        backend: AsyncBackend,
        reader: Reader,
        clock: Clock,
        close: Callable[[], None],
        deadline: float = 60.0,
        engine: Engine | None = None,
        names: TableNames | None = None,
    ) -> None:
        super().__init__(reader, clock, engine or Engine(DYNAMODB))
        self.backend = backend
        self._names = names
        self.calls = Calls(reader, clock, self.engine)
        self.deadline = deadline
        self._close = close

    async def run(self, steps: Steps[R]) -> R:
        """Run the steps of an operation to their end; see `Store.run`."""
        backend = self.backend
        send = backend.execute
        retries: Deadline | None = None
        try:
            step = next(steps)
            while True:
                if type(step) is Call:
                    execute = getattr(backend, "read_json", send) if step.json_items else send
                    until = None if retries is None else retries.until()
                    try:
                        response = await execute(step.operation, step.request, until)
                    except IsotoneError as error:
                        step = steps.throw(with_hint(error, step))
                    else:
                        step = steps.send(response)
                    continue
                if type(step) is Together:
                    failure = await self._run_together(step)
                elif type(step) is Recognise:
                    await _in_thread(step.engine.recognise)
                    failure = None
                else:
                    retries = retries or Deadline(self.deadline)
                    failure = retries.passed_by(step)
                    if failure is None:
                        await _sleep(step.seconds)
                step = steps.send({}) if failure is None else steps.throw(failure)
        except StopIteration as end:
            result: R = end.value
            return result
        except IsotoneError as error:
            if self._names is not None:
                self._names.explain(error)
            raise

    async def _run_together(self, together: Together) -> BaseException | None:
        """Run operations as tasks until all have ended; return the first error."""
        import asyncio  # not at the top: a tenth of the time that a program without it takes to start

        results = await asyncio.gather(*map(self.run, together.operations), return_exceptions=True)
        return next((each for each in results if isinstance(each, BaseException)), None)

    async def run_batches(self, batches: Batches[R]) -> AsyncIterator[R]:
        """Run an iteration, one step after the other."""
        try:
            steps = next(batches)
            while True:
                results = await self.run(steps)
                for result in results:
                    yield result
                steps = batches.send(results)
        except StopIteration:
            return

    def scan(
        self, read: Scan[E], *, segments: int = 4, progress: parallel_scan.Progress | None = None
    ) -> AsyncIterator[E]:
        """Iterate over all results of a scan, read by concurrent requests, in no particular order.

        `progress` is called after each request with the cost so far.
        """
        return parallel_scan.together_async(
            self._reader.segments(read, segments), self.run, progress
        )

    async def close(self) -> None:
        """Close what `aconnect` opened: the file, the connections, the tape."""
        self._close()
        await _sleep(0)  # connections end in the loop's next turn

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


@show_signatures
class Calls(Operations[Composes], Composes):
    """The operations of a store as steps, to compose operations from others: `store.calls`.

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

    def traverse(self, read: Read[E]) -> Traversal[E]:
        """A traversal of all results of a read; each `step()` makes one request."""
        return self._reader.traverse(read)

    def cursor_after(self, query: Query[Any], /, **values: Any) -> str:
        """The cursor of the page after a position in a query; there need not be an item.

        `values` are the fields of the entity's primary key and of the queried key. Use it to merge the pages
        of several queries, and to continue each after the items taken from it.
        """
        return self._reader.cursor_after(query, values)

    def seal(self, state: Any, /, **of: Any) -> str:
        """Encrypt a position of several queries, given as JSON values, as a cursor.

        `unseal` accepts it only with the same `of`, which identifies the read.
        """
        return self._reader.cursors.write(state, identity({"sealed": of}))

    def unseal(self, cursor: str, /, **of: Any) -> Any:
        """The sealed state of a cursor; raises `InvalidCursor`."""
        return self._reader.cursors.read(cursor, identity({"sealed": of}))


async def _sleep(seconds: float) -> None:
    import asyncio  # not at the top: a tenth of the time that a program without it takes to start

    await asyncio.sleep(seconds)


async def _in_thread(function: Callable[[], Any]) -> None:
    import asyncio

    await asyncio.to_thread(function)
