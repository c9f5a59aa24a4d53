"""Handlers of a worker: which events each one is for, and what it is told besides them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from isotone.errors import AlreadyExists, TransactionFailed, UsageError
from isotone.model.declaring.schema import EntitySchema
from isotone.model.entity import Entity
from isotone.model.store import Store
from isotone.model.tables.events import Event, EventKind
from isotone.model.writing.transacting import StoreTransaction
from isotone.structures.worker.entities import WorkerEffect

KINDS: Final[tuple[EventKind, ...]] = ("inserted", "modified", "removed")
_REMEMBERED: Final = timedelta(days=3)  # for which an effect is known: records live for one

_NOT_RUN: Final = (
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
)

Function = Callable[[Any, "Context"], object]


@dataclass(frozen=True, slots=True)
class Handler:
    """A function, and the events that it is for."""

    name: str
    entity: type[Entity] | None
    kinds: frozenset[EventKind]
    function: Function
    takes_many: bool

    def takes(self, kind: EventKind, schema: EntitySchema | None) -> bool:
        """Whether it is for events of a kind, about entities of a schema."""
        if kind not in self.kinds:
            return False
        if self.entity is None:
            return True
        return schema is not None and issubclass(schema.entity, self.entity)


class Context:
    """What a handler is told besides the event: where to write, and how often it was tried."""

    __slots__ = ("_effects", "_events", "attempt", "handler", "stopping", "store", "worker")

    def __init__(
        self,
        store: Store,
        worker: str,
        handler: str,
        events: Sequence[Event[Any]],
        attempt: int,
        effects: type[WorkerEffect],
        stopping: Callable[[], bool],
    ) -> None:
        self.store = store
        """The store that the worker reads from."""
        self.worker = worker
        """The name of the worker."""
        self.handler = handler
        """The name of the handler."""
        self.attempt = attempt
        """1 when the event is handled for the first time, as far as this process knows."""
        self.stopping = stopping
        """Tells whether the worker is to end, or others may have taken its shard over.

        A long handler asks now and then, and gives up by raising: the event comes again.
        """
        self._events = events
        self._effects = effects

    @property
    def key(self) -> str:
        """The same whenever this event comes to this handler, and no other's: a key for idempotent writes.

        Raises `UsageError` where a handler takes many events: a page is never the same twice.
        """
        if len(self._events) != 1:
            raise UsageError("many events have no key together; use the id of each")
        return f"{self.worker}/{self.handler}/{self._events[0].id}"

    @contextmanager
    def once(self, event: Event[Any] | None = None) -> Iterator[StoreTransaction]:
        """A transaction whose writes are made once, however often the event comes.

        It writes one item more, by which an event that comes again is known; then nothing is written, and
        nothing raised. An event has one such transaction in each handler.

            with context.once() as t:
                t.update(Song, Song.plays.add(1), id=event.entity.song)
        """
        if event is None and len(self._events) != 1:
            raise UsageError("name the event of many: context.once(event)")
        of = self._events[0] if event is None else event
        now = datetime.fromtimestamp(self.store.clock.now(), UTC)
        transaction = self.store.transaction()
        transaction.create(
            self._effects(
                worker=self.worker, handler=self.handler, event=of.id, expires=now + _REMEMBERED
            )
        )
        yield transaction
        try:
            transaction.commit()
        except TransactionFailed as error:
            if not isinstance(error.failures.get(0), AlreadyExists):
                raise


class Handlers:
    """The handlers of a worker in the order in which they were declared."""

    def __init__(self) -> None:
        self._all: dict[str, Handler] = {}
        self._routes: dict[tuple[EventKind, EntitySchema | None], tuple[Handler, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._all)

    @property
    def take_many(self) -> bool:
        """Whether any of them takes many events at once."""
        return any(handler.takes_many for handler in self._all.values())

    def add(self, handler: Handler) -> None:
        """Take in a handler; raises `UsageError` where one of that name is there, or it cannot be called."""
        called: Any = handler.function
        if any(is_so(each) for is_so in _NOT_RUN for each in (called, called.__call__)):
            raise UsageError(
                f"{handler.name!r} is async or has a yield, and so would not be run when it is called; "
                "handlers are plain functions (asyncio.run(…) in one waits for what is awaited)"
            )
        if handler.name in self._all:
            raise UsageError(
                f"there is a handler {handler.name!r} already; give this function another name, "
                "by which its dead letters are known"
            )
        self._all[handler.name] = handler
        self._routes.clear()

    def named(self, name: str) -> Handler | None:
        """The handler of a name, if there is one."""
        return self._all.get(name)

    def of(self, event: Event[Any]) -> tuple[Handler, ...]:
        """The handlers that an event is for."""
        route = (event.kind, event.schema)
        found = self._routes.get(route)
        if found is None:
            found = tuple(each for each in self._all.values() if each.takes(*route))
            self._routes[route] = found
        return found
