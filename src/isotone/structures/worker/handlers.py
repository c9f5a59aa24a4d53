"""Handlers of a worker: which events each one is for, and what it is told besides them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from isotone.errors import AlreadyExists, TransactionFailed, UsageError
from isotone.model import Entity, EntitySchema, Event, EventKind, Store, StoreTransaction
from isotone.structures.worker.entities import WorkerEffect

KINDS: Final[tuple[EventKind, ...]] = ("inserted", "modified", "removed")
_REMEMBERED: Final = timedelta(days=3)  # for which an effect is known: records live for one

_NOT_RUN: Final = (
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
)


@dataclass(frozen=True, slots=True)
class Handler:
    """A function, and the events that it is for. Raises `UsageError` for one that a call would not run."""

    name: str
    entity: type[Entity] | None
    kinds: tuple[EventKind, ...]
    function: Callable[[Any, Context], object]
    takes_many: bool

    def __post_init__(self) -> None:
        called: Any = self.function
        if any(is_so(each) for is_so in _NOT_RUN for each in (called, called.__call__)):
            raise UsageError(
                f"{self.name!r} is async or has a yield, and so would not be run when it is called; "
                "handlers are plain functions (asyncio.run(…) in one waits for what is awaited)"
            )

    def takes(self, event: Event[Any]) -> bool:
        """Whether it is for an event: of its entity's tag, or of a class derived from its entity.

        The class alone does not tell: a class that was defined again has the tag of the first one.
        """
        if self.kinds and event.kind not in self.kinds:
            return False
        if self.entity is None:
            return True
        if event.schema is None:
            return False
        declared: EntitySchema | None = getattr(self.entity, "__schema__", None)
        is_same_tag = declared is not None and declared.tag == event.schema.tag
        return is_same_tag or issubclass(event.schema.entity, self.entity)


@dataclass(slots=True)
class Context:
    """What a handler is told besides the event: where to write, and how often it was tried."""

    store: Store
    """The store that the worker reads from."""
    worker: str
    """The name of the worker."""
    handler: str
    """The name of the handler."""
    attempt: int
    """1 when the event is handled for the first time, as far as this process knows."""
    stopping: Callable[[], bool]
    """Tells whether the worker is to end, or others may have taken its shard over.

    A long handler asks now and then, and gives up by raising: the event comes again.
    """
    _events: Sequence[Event[Any]] = field(repr=False)
    _effects: type[WorkerEffect] = field(repr=False)

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
        until = datetime.fromtimestamp(self.store.clock.now(), UTC) + _REMEMBERED
        transaction = self.store.transaction()
        transaction.create(
            self._effects(worker=self.worker, handler=self.handler, event=of.id, expires=until)
        )
        yield transaction
        try:
            transaction.commit()
        except TransactionFailed as error:
            if not isinstance(error.failures.get(0), AlreadyExists):
                raise
