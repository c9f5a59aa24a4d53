"""Runners execute steps: `Runner` in the calling thread, `AsyncRunner` in an event loop.

    Runner(backend).run(description_of("Orders"))
    await AsyncRunner(backend).run(description_of("Orders"))

Both keep the deadline of an operation's retries, and raise each error of the backend inside the operation, at its request.
A store is a runner with operations.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from isotone.backends.interface import AsyncBackend, Backend
from isotone.errors import IsotoneError
from isotone.shown_signature import show_signatures
from isotone.tables.retries import Deadline
from isotone.tables.steps import Batches, Call, IdentifyEngine, Steps, Together, with_hint

R = TypeVar("R")


@show_signatures
class Runner:
    """Runs steps in the calling thread, and operations together in threads of their own.

    `deadline` is the limit in seconds for each series of failed attempts; `explain` may add notes to an error before it
    is raised.
    """

    def __init__(
        self,
        backend: Backend,
        deadline: float = 60.0,
        explain: Callable[[IsotoneError], None] | None = None,
    ) -> None:
        self.backend = backend
        self.deadline = deadline
        self._explain = explain

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
                    # as `json_reads` does, without a call
                    execute = getattr(backend, "read_json", send) if step.may_be_json else send
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
                elif type(step) is IdentifyEngine:
                    step.engine.identify()
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
            if self._explain is not None:
                self._explain(error)
            raise

    def _run_together(self, together: Together) -> BaseException | None:
        """Run operations in threads until all have ended; return the first error."""
        with ThreadPoolExecutor(len(together.operations), "isotone-together") as pool:
            futures = [pool.submit(self.run, each) for each in together.operations]
        return next(filter(None, (future.exception() for future in futures)), None)

    def run_batches(self, batches: Batches[R]) -> Iterator[R]:
        """Run an iteration, one batch after the other."""
        try:
            steps = next(batches)
            while True:
                results = self.run(steps)
                yield from results
                steps = batches.send(results)
        except StopIteration:
            return


@show_signatures
class AsyncRunner:
    """Runs steps in any event loop, and operations together as tasks."""

    def __init__(
        self,
        backend: AsyncBackend,
        deadline: float = 60.0,
        explain: Callable[[IsotoneError], None] | None = None,
    ) -> None:
        self.backend = backend
        self.deadline = deadline
        self._explain = explain

    async def run(self, steps: Steps[R]) -> R:
        """Run the steps of an operation to their end; see `Runner.run`."""
        backend = self.backend
        send = backend.execute
        retries: Deadline | None = None
        try:
            step = next(steps)
            while True:
                if type(step) is Call:
                    execute = getattr(backend, "read_json", send) if step.may_be_json else send
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
                elif type(step) is IdentifyEngine:
                    await _in_thread(step.engine.identify)
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
            if self._explain is not None:
                self._explain(error)
            raise

    async def _run_together(self, together: Together) -> BaseException | None:
        """Run operations as tasks until all have ended; return the first error."""
        import asyncio  # here, because it takes a tenth of the start-up time

        results = await asyncio.gather(*map(self.run, together.operations), return_exceptions=True)
        return next((each for each in results if isinstance(each, BaseException)), None)

    async def run_batches(self, batches: Batches[R]) -> AsyncIterator[R]:
        """Run an iteration, one batch after the other."""
        try:
            steps = next(batches)
            while True:
                results = await self.run(steps)
                for result in results:
                    yield result
                steps = batches.send(results)
        except StopIteration:
            return


async def _sleep(seconds: float) -> None:
    import asyncio  # here, because it takes a tenth of the start-up time

    await asyncio.sleep(seconds)


async def _in_thread(function: Callable[[], Any]) -> None:
    import asyncio

    await asyncio.to_thread(function)
