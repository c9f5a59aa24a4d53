"""Transactions of a store: `Collected` collects, these two send.

    with store.transaction() as t: ...              commits at the end of the block
    async with store.transaction() as t: ...        the same, awaited

A block that ends by an exception sends nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Never, Self, TypeVar

from isotone.clock import Clock
from isotone.model.entity import Entity
from isotone.model.steps import Steps
from isotone.model.writing.stored import class_of
from isotone.model.writing.transactions import Collected

E = TypeVar("E", bound=Entity)


class StoreTransaction(Collected):
    """A transaction of a `Store`."""

    def __init__(self, clock: Clock, run: Callable[[Steps[Any]], Any]) -> None:
        super().__init__(clock)
        self._run = run

    def get(self, entity: type[E], /, *values: Never, **key: Any) -> E | None:
        """An entity, which must be unchanged when the transaction is committed. Cost: a consistent read."""
        class_of("get", entity, values)
        found: E | None = self._run(self._reading(entity, key))
        return found

    def commit(self) -> None:
        """Make all writes or none; raises `TransactionFailed` with the error of each refused write."""
        self._run(self._committing())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.commit()


class AsyncStoreTransaction(Collected):
    """A transaction of an `AsyncStore`: writes collect without `await`."""

    def __init__(self, clock: Clock, run: Callable[[Steps[Any]], Awaitable[Any]]) -> None:
        super().__init__(clock)
        self._run = run

    async def get(self, entity: type[E], /, *values: Never, **key: Any) -> E | None:
        """An entity, which must be unchanged when the transaction is committed. Cost: a consistent read."""
        class_of("get", entity, values)
        found: E | None = await self._run(self._reading(entity, key))
        return found

    async def commit(self) -> None:
        """Make all writes or none; raises `TransactionFailed` with the error of each refused write."""
        await self._run(self._committing())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.commit()
