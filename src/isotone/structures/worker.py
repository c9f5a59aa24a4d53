"""A worker: handlers that get every change of a table, in any number of processes; its `dead_letters` and `redrive`.

    site = Table("site", stream="NEW_AND_OLD_IMAGES")
    fan_out = Worker("fan-out", site)

    @fan_out.on(Post, "inserted")
    def deliver(event: Event[Post], context: Context) -> None:
        post = event.entity
        context.store.put_many(Delivery(…) for follower in followers(post.author))

    fan_out.run(store)                       # or: isotone worker module:fan_out shop.db

Every change is delivered to every handler at least once, and the changes of one item collection (one
partition key) in order. After a crash, the changes since the checkpoint are delivered again. So handlers make
writes that can be repeated (a put under a key that contains `event.id`), or write in `context.once()`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self, TypeVar, overload

from isotone.errors import UsageError
from isotone.model import EngineWarning, Entity, Event, EventKind, Store, Table, warn_caller
from isotone.structures.structure import bind_entity
from isotone.structures.worker_delivery import (
    KINDS,
    Context,
    Delivery,
    Handler,
    WorkerPlan,
    WorkerProgress,
    WorkerSettings,
)
from isotone.structures.worker_leases import WORKER_ENTITIES, WorkerDeadLetter
from isotone.structures.worker_members import Progress, RunningWorker, WorkerMember

E = TypeVar("E", bound=Entity)
One = Callable[[Event[E], Context], object]
Many = Callable[[Sequence[Event[E]], Context], object]
F = TypeVar("F", bound=Callable[..., object])


class Worker:
    """Handlers for the changes of a table, and methods to run them.

    - `name`: identifies the worker; each worker of a table gets all changes.
    - `table`: must be declared with a stream.
    - `leases`: the table of leases and checkpoints; by default `TABLE.workers`. It may be the table itself.
    - `settings`: see `WorkerSettings`.

        counting = Worker("counting", shop)

        @counting.on(Order, "inserted")
        def count(event: Event[Order], context: Context) -> None:
            Counter(context.store, "orders").add()
    """

    def __init__(
        self,
        name: str,
        table: Table,
        *,
        leases: Table | None = None,
        settings: WorkerSettings | None = None,
    ) -> None:
        for given in (table, leases or table):
            if not isinstance(given, Table):
                raise UsageError(
                    f"{given!r} is not a table; write isotone.Table({str(given)!r}, …)"
                )
        if table.stream is None:
            raise UsageError(
                f"a worker reads the stream of its table; declare Table({table.name!r}, …, "
                "stream='NEW_AND_OLD_IMAGES')"
            )
        leases = leases or Table(f"{table.name}.workers")
        self.plan: WorkerPlan = WorkerPlan(name, table, leases, {}, settings or WorkerSettings())
        for kind in WORKER_ENTITIES:
            bind_entity(leases, kind)

    @property
    def name(self) -> str:
        """The worker's name."""
        return self.plan.name

    @property
    def table(self) -> Table:
        """The table whose changes the worker handles."""
        return self.plan.table

    @property
    def leases(self) -> Table:
        """The table of leases and checkpoints."""
        return self.plan.leases

    @property
    def handlers(self) -> dict[str, Handler]:
        """The handlers by name."""
        return self.plan.handlers

    @property
    def settings(self) -> WorkerSettings:
        """The settings."""
        return self.plan.settings

    # Declaring

    @overload
    def on(self, entity: type[E], /, *kinds: EventKind) -> Callable[[One[E]], One[E]]: ...
    @overload
    def on(self, entity: None = None, /, *kinds: EventKind) -> Callable[[F], F]: ...
    def on(self, entity: Any = None, /, *kinds: EventKind) -> Any:
        """Declare a handler that is called with one event at a time.

        `entity` selects the events of an entity and its subclasses; without it, the events of every item.
        `kinds` selects "inserted", "modified" and "removed" events; without it, all. Raises `UsageError` for
        a name that is taken.
        """
        return self._declaring(entity, kinds, takes_many=False)

    @overload
    def on_many(self, entity: type[E], /, *kinds: EventKind) -> Callable[[Many[E]], Many[E]]: ...
    @overload
    def on_many(self, entity: None = None, /, *kinds: EventKind) -> Callable[[F], F]: ...
    def on_many(self, entity: Any = None, /, *kinds: EventKind) -> Any:
        """Declare a handler that is called with all events of a page, in order.

        It is called after the handlers for single events. If it raises, it is called again with each event
        alone, so that a bad event does not block others.
        """
        return self._declaring(entity, kinds, takes_many=True)

    def _declaring(
        self, entity: type[Entity] | None, kinds: tuple[EventKind, ...], *, takes_many: bool
    ) -> Callable[[F], F]:
        self._check_entity(entity)
        for kind in kinds:
            if kind not in KINDS:
                raise UsageError(f"{kind!r} is not a kind of event; use one of {', '.join(KINDS)}")

        def declare(function: F) -> F:
            name = getattr(function, "__name__", type(function).__name__)
            if name in self.handlers:
                raise UsageError(
                    f"there is a handler {name!r} already; give this function another name, which also "
                    "names its dead letters"
                )
            self.handlers[name] = Handler(name, entity, kinds, function, takes_many)
            return function

        return declare

    def _check_entity(self, entity: Any) -> None:
        """Refuse a class that has no events in this table."""
        if entity is None:
            return
        if not (isinstance(entity, type) and issubclass(entity, Entity)):
            raise UsageError(
                f"{entity!r} is not an entity class; write @worker.on(Post), or @worker.on() for every item"
            )
        schema = getattr(entity, "__schema__", None)
        if schema is not None and schema.table.name != self.table.name:
            raise UsageError(
                f"{entity.__name__} is in table {schema.table.name!r}, and worker {self.name!r} only gets the "
                f"changes of {self.table.name!r}"
            )

    def named(self, name: str) -> Self:
        """A worker with the same handlers, and another name and checkpoints."""
        other = copy(self)
        other.plan = replace(self.plan, name=name)
        return other

    # Running

    def create_tables(self, store: Store) -> list[str]:
        """Create the table with its stream, and the table of leases, unless they exist."""
        return store.create_tables(*dict.fromkeys((self.table, self.leases)))

    def run(
        self,
        store: Store,
        *,
        workers: int = 1,
        until_idle: bool = False,
        settings: WorkerSettings | None = None,
        progress: Progress | None = None,
        stop: threading.Event | None = None,
    ) -> WorkerProgress:
        """Handle changes until `stop` is set or, with `until_idle`, until there are no more.

        `workers` members share the shards, each in a thread. `progress` is called about once a second. Any
        number of processes may run at the same time. Raises errors of the tables or the store that are not
        transient, but never the errors of handlers.
        """
        running = self.start(
            store, workers=workers, until_idle=until_idle, settings=settings, progress=progress
        )
        with running:
            return running.wait(stop)

    def start(
        self,
        store: Store,
        *,
        workers: int = 1,
        until_idle: bool = False,
        settings: WorkerSettings | None = None,
        progress: Progress | None = None,
    ) -> RunningWorker:
        """Handle changes in threads; the end of the block, or `stop()`, stops them gracefully.

        with fan_out.start(store): ...
        """
        if workers < 1:
            raise UsageError(f"workers must be 1 or more, not {workers}")
        if not isinstance(store, Store):
            raise UsageError(
                f"a worker runs over a Store, because its handlers may block, not over {store!r}; "
                "isotone.connect(…) makes one"
            )
        if not self.handlers:
            raise UsageError(
                f"worker {self.name!r} has no handlers; declare one with @worker.on(…)"
            )
        store.capabilities.require(
            ["streams", "conditional_writes"],
            f"worker {self.name!r}",
            "call what the handlers do where the entities are written, or put it into a Queue",
        )
        if not store.capabilities.exact_streams:
            warn_caller(
                EngineWarning(
                    f"the stream of {store.capabilities.engine} may have several events for one write, and call a "
                    "replacement an insertion; handlers must be idempotent and compare event.before with event.after"
                )
            )
        members = [WorkerMember(self.plan, store, settings) for _ in range(workers)]
        store.create_tables(self.leases)
        return RunningWorker(members, until_idle=until_idle, progress=progress)

    # Dead letters

    def dead_letters(self, store: Store) -> list[WorkerDeadLetter]:
        """The events that handlers failed to handle, with their errors, the oldest first."""
        return list(self.iterate_dead_letters(store))

    def iterate_dead_letters(self, store: Store) -> Iterator[WorkerDeadLetter]:
        """The dead letters, read page by page."""
        kind = bind_entity(self.leases, WorkerDeadLetter)
        return store.iterate(kind.primary.where(WorkerDeadLetter.worker == self.name))

    def redrive(self, store: Store, *letters: WorkerDeadLetter) -> tuple[int, int]:
        """Handle dead letters (all, or those given) again, the oldest first.

        Returns how many were handled (these are deleted) and how many failed again (these remain); the reasons
        are logged.
        """
        delivery = Delivery(self.plan, store, self.settings)
        done = Counter(map(delivery.redrive, letters or self.iterate_dead_letters(store)))
        return done[True], done[False]

    def discard(self, store: Store, *letters: WorkerDeadLetter) -> int:
        """Delete dead letters; returns how many."""
        return store.delete_many(letters)

    def __repr__(self) -> str:
        return f"Worker({self.name!r}, {self.table!r})"
