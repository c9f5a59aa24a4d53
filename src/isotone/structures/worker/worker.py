"""A worker: handlers that are called with every change of a table, also after crashes, by many processes.

    site = Table("site", stream="NEW_AND_OLD_IMAGES")
    fan_out = Worker("fan-out", site)

    @fan_out.on(Post, "inserted")
    def deliver(event: Event[Post], context: Context) -> None:
        post = event.entity
        context.store.put_many(Delivery(…) for follower in followers(post.author))

    fan_out.run(store)                       # or: isotone worker module:fan_out shop.db

Every change comes to every handler at least once, and the changes of one item collection (one partition
key) in order. Where a process died, what it had not noted as done comes again: handlers write what has
the same effect when it is written twice (a put under a key that is made of `event.id`), or write in
`context.once()`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, Self, TypeVar, overload

from isotone.errors import UsageError
from isotone.model import Entity, Event, EventKind, Store, Table
from isotone.structures.operation import bind_entity
from isotone.structures.worker.delivery import Delivery
from isotone.structures.worker.entities import OWN, WorkerDeadLetter
from isotone.structures.worker.handlers import KINDS, Context, Handler
from isotone.structures.worker.member import Member
from isotone.structures.worker.running import RunningWorker
from isotone.structures.worker.settings import Progress, WorkerProgress, WorkerSettings

E = TypeVar("E", bound=Entity)
One = Callable[[Event[E], Context], object]
Many = Callable[[Sequence[Event[E]], Context], object]
F = TypeVar("F", bound=Callable[..., object])


class Worker:
    """Handlers for the changes of a table, and everything that runs them.

    `name` tells workers of one table apart: each goes through all changes by itself. `table` has to be
    declared with a stream. `leases` is the table in which the worker notes how far it is
    (`TABLE.workers` unless it is given; the data's own table will do).
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
                raise UsageError(f"{given!r} is no table; write isotone.Table({str(given)!r}, …)")
        if table.stream is None:
            raise UsageError(
                f"a worker reads the stream of its table; declare Table({table.name!r}, …, "
                "stream='NEW_AND_OLD_IMAGES')"
            )
        self.name = name
        self.table = table
        self.leases = leases or Table(f"{table.name}.workers")
        self.settings = settings or WorkerSettings()
        self.handlers: dict[str, Handler] = {}
        for kind in OWN:
            bind_entity(self.leases, kind)

    # Declaring

    @overload
    def on(self, entity: type[E], /, *kinds: EventKind) -> Callable[[One[E]], One[E]]: ...
    @overload
    def on(self, entity: None = None, /, *kinds: EventKind) -> Callable[[F], F]: ...
    def on(self, entity: Any = None, /, *kinds: EventKind) -> Any:
        """Declare a function as the handler of events, one by one.

        Of an entity (subclasses count), or of every item without one; of some kinds ("inserted",
        "modified", "removed"), or of all. Raises `UsageError` for a name that is taken.
        """
        return self._declaring(entity, kinds, takes_many=False)

    @overload
    def on_many(self, entity: type[E], /, *kinds: EventKind) -> Callable[[Many[E]], Many[E]]: ...
    @overload
    def on_many(self, entity: None = None, /, *kinds: EventKind) -> Callable[[F], F]: ...
    def on_many(self, entity: Any = None, /, *kinds: EventKind) -> Any:
        """The same for a function that takes all events of a page at once, in order.

        It is called after the handlers that take one. Where it raises, it is called again with each event
        by itself, so that one bad event spoils no others.
        """
        return self._declaring(entity, kinds, takes_many=True)

    def _declaring(
        self, entity: type[Entity] | None, kinds: tuple[EventKind, ...], *, takes_many: bool
    ) -> Callable[[F], F]:
        self._check_entity(entity)
        for kind in kinds:
            if kind not in KINDS:
                raise UsageError(f"{kind!r} is no kind of event; there are {', '.join(KINDS)}")

        def declare(function: F) -> F:
            name = getattr(function, "__name__", type(function).__name__)
            if name in self.handlers:
                raise UsageError(
                    f"there is a handler {name!r} already; give this function another name, "
                    "by which its dead letters are known"
                )
            self.handlers[name] = Handler(name, entity, kinds, function, takes_many)
            return function

        return declare

    def _check_entity(self, entity: Any) -> None:
        """Refuse what no event is ever about."""
        if entity is None:
            return
        if not (isinstance(entity, type) and issubclass(entity, Entity)):
            raise UsageError(
                f"{entity!r} is no entity class; write @worker.on(Post), or @worker.on() for every item"
            )
        schema = getattr(entity, "__schema__", None)
        if schema is not None and schema.table.name != self.table.name:
            raise UsageError(
                f"{entity.__name__} lives in table {schema.table.name!r}, and worker {self.name!r} is told "
                f"of the changes of {self.table.name!r} alone"
            )

    def named(self, name: str) -> Self:
        """The same handlers under another name, with places of their own in the stream."""
        other = copy(self)
        other.name = name
        return other

    # Running

    def create_tables(self, store: Store) -> list[str]:
        """Make the table with its stream, and the worker's own, where they are missing."""
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
        """Handle changes until `stop` is set, or, with `until_idle`, until there are no more.

        `workers` members share the shards, each in a thread. `progress` is told about once a second how far
        they are. Any number of processes may do this at the same time. Raises what is wrong with the
        tables or the store and will not pass; errors of handlers never come out.
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
        """Handle changes in threads; the block, or `stop()`, ends them gracefully.

        with fan_out.start(store): ...
        """
        if workers < 1:
            raise UsageError(f"a worker runs in 1 or more threads, not {workers}")
        if not isinstance(store, Store):
            raise UsageError(
                f"a worker runs over a Store, since handlers may take their time, not over {store!r}; "
                "isotone.connect(…) makes one"
            )
        if not self.handlers:
            raise UsageError(
                f"worker {self.name!r} has no handlers; declare one with @worker.on(…)"
            )
        members = [Member(self, store, settings) for _ in range(workers)]
        store.create_tables(self.leases)
        return RunningWorker(members, until_idle=until_idle, progress=progress)

    # What could not be handled

    def dead_letters(self, store: Store) -> list[WorkerDeadLetter]:
        """The events that handlers could not handle, each with its error, the oldest first."""
        return list(self.iterate_dead_letters(store))

    def iterate_dead_letters(self, store: Store) -> Iterator[WorkerDeadLetter]:
        """The same page by page, where there may be very many."""
        kind = bind_entity(self.leases, WorkerDeadLetter)
        return store.iterate(kind.primary.where(WorkerDeadLetter.worker == self.name))

    def redrive(self, store: Store, *letters: WorkerDeadLetter) -> tuple[int, int]:
        """Put dead letters (all unless some are named) through their handlers again, the oldest first.

        Gives how many were handled, and are gone, and how many failed again, and stay; why is logged.
        """
        delivery = Delivery(self, store, self.settings, lambda _: None, lambda: False)
        done = Counter(map(delivery.redrive, letters or self.iterate_dead_letters(store)))
        return done[True], done[False]

    def discard(self, store: Store, *letters: WorkerDeadLetter) -> int:
        """Forget dead letters."""
        return store.delete_many(letters)

    def __repr__(self) -> str:
        return f"Worker({self.name!r}, {self.table!r})"
