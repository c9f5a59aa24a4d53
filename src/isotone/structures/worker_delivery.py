"""Delivers events to handlers in order, with retries; what fails too often is a dead letter; `redrive` delivers it again.

A dead letter is an event that a handler failed to handle, kept with the error until it is redriven or discarded.
"""

from __future__ import annotations

import inspect
import json
import logging
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from isotone.errors import AlreadyExists, NotFound, TransactionFailed, UsageError
from isotone.model import (
    Entity,
    EntitySchema,
    Event,
    EventKind,
    Store,
    Table,
    Transaction,
    full_jitter,
    is_transient,
)
from isotone.structures.structure import bind_entity
from isotone.structures.worker_leases import HeldShard, WorkerDeadLetter, WorkerEffect
from isotone.text_table import pluralized

KINDS: Final[tuple[EventKind, ...]] = ("inserted", "modified", "removed")
_LOGGER: Final = logging.getLogger("isotone.worker")
_EFFECTS_KEPT: Final = timedelta(days=3)  # records are kept for one day
_MAX_RECORD: Final = 350_000  # bytes of a record, to fit into an item with the rest
_MAX_ERROR: Final = 2_000  # characters
_REPORTED: Final = 5.0  # seconds after which a call that has not returned is reported

_SUMS: Final = ("shards", "records", "deliveries", "retries", "dead_letters", "lost")
_TOO_LARGE: Final = "its record was too large to be kept; look at the item, then discard the letter"
_NOT_CALLED: Final = (
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
)

Events = Sequence[Event[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """The settings of a worker.

    - `lease`: seconds after which other members take over the shards of a silent member.
    - `batch`: records read at once, up to 1,000.
    - `attempts`: how often an event is tried before it becomes a dead letter.
    - `base`, `longest`: the pause between attempts is random, with a bound that starts at `base` seconds,
      doubles, and stops at `longest`.
    - `poll`: seconds between checks of a shard without new records.
    - `start`: where a new worker starts: at the oldest record that is kept (TRIM_HORIZON), or with the next
      one (LATEST).
    """

    lease: float = 30.0
    batch: int = 1000
    attempts: int = 5
    base: float = 0.1
    longest: float = 10.0
    poll: float = 0.2
    start: Literal["TRIM_HORIZON", "LATEST"] = "TRIM_HORIZON"

    def __post_init__(self) -> None:
        if not 1 <= self.batch <= 1000:
            raise UsageError(f"batch must be 1 to 1000, not {self.batch}")
        if self.attempts < 1:
            raise UsageError(f"attempts must be 1 or more, not {self.attempts}")
        if self.lease <= 0:
            raise UsageError(f"lease must be more than 0 seconds, not {self.lease:g}")
        if self.poll < 0:
            raise UsageError(f"poll must be 0 seconds or more, not {self.poll:g}")
        if self.start not in ("TRIM_HORIZON", "LATEST"):
            raise UsageError(f"start must be 'TRIM_HORIZON' or 'LATEST', not {self.start!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerCall:
    """A call of a handler that has not returned: its event, and its duration in seconds."""

    handler: str
    event: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.handler} for {self.seconds:,.0f} s at {self.event}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerProgress:
    """The progress of a worker.

    - `shards`: currently held.
    - `records`: handled or skipped; `rate` of them per second, recently.
    - `deliveries`: calls of handlers that succeeded.
    - `retries`: calls that failed and were tried again.
    - `dead_letters`: events that became dead letters.
    - `lost`: shards whose records may have been dropped before they were read.
    - `lag`: seconds by which the slowest shard is behind; 0 if everything is read.
    - `calling`: the longest of the calls that have not returned.
    """

    shards: int = 0
    records: int = 0
    deliveries: int = 0
    retries: int = 0
    dead_letters: int = 0
    lost: int = 0
    lag: float = 0.0
    rate: float = 0.0
    calling: HandlerCall | None = None

    @classmethod
    def total(cls, parts: Iterable[WorkerProgress]) -> WorkerProgress:
        """The progress of several members."""
        members = list(parts)
        sums: dict[str, Any] = {
            name: sum(getattr(member, name) for member in members) for name in _SUMS
        }
        calls = [member.calling for member in members if member.calling is not None]
        return cls(
            **sums,
            lag=max((member.lag for member in members), default=0.0),
            calling=max(calls, key=lambda call: call.seconds, default=None),
        )

    def __str__(self) -> str:
        shards = pluralized(self.shards, "shard")
        parts = [f"lag {self.lag:,.1f} s, {self.rate:,.0f}/s, {shards}, {self.outcome}"]
        if self.calling is not None and self.calling.seconds >= _REPORTED:
            parts.append(str(self.calling))
        return ", ".join(parts)

    @property
    def outcome(self) -> str:
        """The results as a text."""
        parts = [pluralized(self.records, "record")]
        if self.dead_letters:
            parts.append(pluralized(self.dead_letters, "dead letter"))
        if self.lost:
            parts.append(f"{pluralized(self.lost, 'shard')} lost")
        if self.retries:
            parts.append(pluralized(self.retries, "retry", "retries"))
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Handler:
    """A function and its events. Raises `UsageError` for a coroutine or generator function, which a call would not run."""

    name: str
    entity: type[Entity] | None
    kinds: tuple[EventKind, ...]
    function: Callable[[Any, Context], object]
    takes_many: bool

    def __post_init__(self) -> None:
        called: Any = self.function
        if any(is_so(each) for is_so in _NOT_CALLED for each in (called, called.__call__)):
            raise UsageError(
                f"{self.name!r} is async or has a yield, and a call would not run it; give a plain function "
                "(asyncio.run(…) in it waits for what is awaited)"
            )

    def takes(self, event: Event[Any]) -> bool:
        """Whether it handles an event: the event's entity has the tag of the handler's, or is a class derived from it.

        Comparing classes is not enough: a class that was defined twice has one tag.
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


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """The declaration of a worker: its tables, its handlers by name, and its settings."""

    name: str
    table: Table
    leases: Table
    handlers: dict[str, Handler]
    settings: WorkerSettings


@dataclass(slots=True)
class Context:
    """The second argument of a handler, beside the event."""

    store: Store
    """The store that the worker reads from."""
    worker: str
    """The name of the worker."""
    handler: str
    """The name of the handler."""
    attempt: int
    """1 when the event is handled for the first time, as far as this process knows."""
    stopping: Callable[[], bool]
    """Returns whether the worker must stop, or may have lost the shard.

    A long handler checks it occasionally, and raises to give up: then the event is delivered again.
    """
    _events: Events = field(repr=False)
    _effects: type[WorkerEffect] = field(repr=False)

    @property
    def key(self) -> str:
        """A key for idempotent writes: unique, and the same each time this handler gets this event.

        Raises `UsageError` for a handler of many events: a page is never the same twice.
        """
        if len(self._events) != 1:
            raise UsageError("many events have no key together; use the id of each")
        return f"{self.worker}/{self.handler}/{self._events[0].id}"

    @contextmanager
    def once(self, event: Event[Any] | None = None) -> Iterator[Transaction]:
        """A transaction that takes effect once, however often the event is delivered.

        It writes one more item, which identifies the event. When the event is delivered again, the
        transaction writes nothing and raises nothing. An event has one such transaction in each handler.

            with context.once() as t:
                t.update(Song, Song.plays.add(1), id=event.entity.song)
        """
        if event is None and len(self._events) != 1:
            raise UsageError("name the event of many: context.once(event)")
        of = self._events[0] if event is None else event
        until = datetime.fromtimestamp(self.store.clock.now(), UTC) + _EFFECTS_KEPT
        tx = self.store.transaction()
        effect = self._effects(worker=self.worker, handler=self.handler, event=of.id, expires=until)
        tx.create(effect)
        yield tx
        try:
            tx.commit()
        except TransactionFailed as error:
            if not isinstance(error.reason_of(self._effects), AlreadyExists):
                raise


class Interrupted(Exception):
    """The worker must stop, or may have lost the shard, with events left; they are delivered again."""


class ProcessEnded(Exception):
    """Processes ended while they handled an event."""


class Delivery:
    """Calls a worker's handlers with events; `counts` has the outcomes.

    `pause` waits for some seconds; `stopping` returns whether the worker must stop.
    """

    def __init__(
        self,
        plan: WorkerPlan,
        store: Store,
        settings: WorkerSettings,
        pause: Callable[[float], object] = lambda _: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._plan = plan
        self._store = store
        self._settings = settings
        self._pause = pause
        self._stopping = stopping
        self._effects = bind_entity(plan.leases, WorkerEffect)
        self._letters = bind_entity(plan.leases, WorkerDeadLetter)
        self._routes: dict[tuple[str, EntitySchema | None], list[Handler]] = {}
        self._call: tuple[Handler, Events, float] | None = None

    def deliver(self, events: Events, shard: HeldShard) -> bool:
        """Handle events of a shard in order while the lease holds; returns False if some remain."""
        takes_many = any(handler.takes_many for handler in self._plan.handlers.values())
        done = 0
        while done < len(events):
            # A suspected record is delivered alone, even to a handler of many events.
            size = len(events) if takes_many and not shard.is_suspicious else 1
            chunk = events[done : done + size]
            if shard.lease.wanted is not None:
                return False
            try:
                if not (shard.is_suspicious and self._is_deadly(chunk[0], shard)):
                    self._handle(chunk, shard)
            except Interrupted:
                return False
            self.counts["records"] += len(chunk)
            shard.advance(chunk[-1])
            done += len(chunk)
        return True

    def redrive(self, letter: WorkerDeadLetter) -> bool:
        """Handle a dead letter again: delete it, or record the new error; returns whether it was handled."""
        handler = self._plan.handlers.get(letter.handler)
        if handler is None or letter.record is None:
            why = "its handler no longer exists" if handler is None else _TOO_LARGE
            _LOGGER.warning("%s of %s stays: %s", letter.keys, letter.handler, why)
            return False
        record = json.loads(zlib.decompress(letter.record))
        event: Event[Any] = Event(self._plan.table, letter.shard, record)
        error = self._try(handler, [event], 1, self._stopping)
        if error is None:
            self._store.delete(letter)
            return True
        _LOGGER.warning("%s failed again at %s: %r", handler.name, event, error)
        kind = WorkerDeadLetter
        changes = (
            kind.error.set(_text_of(error)),
            kind.attempts.add(1),
            kind.failed.set(self._now()),
        )
        with suppress(NotFound):  # it was handled or discarded in the meantime
            self._store.update(letter, *changes)
        return False

    def calling(self) -> HandlerCall | None:
        """The call that has not returned."""
        if (call := self._call) is None:
            return None
        handler, events, began = call
        seconds = max(0.0, self._store.clock.now() - began)
        return HandlerCall(handler=handler.name, event=_named(events), seconds=seconds)

    def _handle(self, events: Events, shard: HeldShard) -> None:
        batches: dict[str, list[Event[Any]]] = {}
        for event in events:
            for handler in self._handlers_of(event):
                if handler.takes_many:
                    batches.setdefault(handler.name, []).append(event)
                else:
                    self._retry(handler, event, shard)
        for name, batch in batches.items():
            handler = self._plan.handlers[name]
            if len(batch) > 1:
                error = self._try(handler, batch, 1, self._ending(shard))
                if error is None:
                    continue
                _LOGGER.warning("%s failed at %s, now one by one: %r", name, _named(batch), error)
            for event in batch:
                self._retry(handler, event, shard)

    def _handlers_of(self, event: Event[Any]) -> list[Handler]:
        route = (event.kind, event.schema)
        if route not in self._routes:
            known = self._plan.handlers.values()
            self._routes[route] = [handler for handler in known if handler.takes(event)]
        return self._routes[route]

    def _is_deadly(self, event: Event[Any], shard: HeldShard) -> bool:
        """Record that an event is being tried; after too many crashes, make it a dead letter."""
        handlers = self._handlers_of(event)
        crashes = shard.mark(event) if handlers else 0
        if crashes < self._settings.attempts:
            return False
        if self._ending(shard)():
            raise Interrupted
        for handler in handlers:
            error = ProcessEnded(f"{crashes} processes ended while they handled it")
            self._give_up(handler, event, error, crashes)
        return True

    def _retry(self, handler: Handler, event: Event[Any], shard: HeldShard) -> None:
        """Call a handler until it succeeds, or the event becomes a dead letter."""
        attempt, faults = 1, 0
        ending, settings = self._ending(shard), self._settings
        while (error := self._try(handler, [event], attempt, ending)) is not None:
            # If the store does not respond, that is not the event's fault.
            faults += not (isinstance(error, Exception) and is_transient(error))
            if faults == settings.attempts:
                self._give_up(handler, event, error, attempt)
                return
            self.counts["retries"] += 1
            pause = full_jitter(attempt, first=settings.base, longest=settings.longest)
            _LOGGER.warning(
                "%s failed at %s, attempt %d, and again in %.1f s: %r",
                *(handler.name, event, attempt, pause, error),
            )
            self._pause(pause)
            attempt += 1

    def _give_up(
        self, handler: Handler, event: Event[Any], error: BaseException, attempts: int
    ) -> None:
        """Store an event as a dead letter of a handler, only once. Cost: one write."""
        record = zlib.compress(json.dumps(event.record).encode())
        self._store.put(
            self._letters(
                worker=self._plan.name,
                handler=handler.name,
                event=event.id,
                sequence=event.sequence,
                time=event.time,
                shard=event.shard,
                # Two images of 400 KB do not fit, but keys and the error do.
                record=record if len(record) <= _MAX_RECORD else None,
                keys=repr(event.keys),
                error=_text_of(error),
                attempts=attempts,
                failed=self._now(),
            )
        )
        self.counts["dead_letters"] += 1
        _LOGGER.error("%s gave up %s at attempt %d", handler.name, event, attempts, exc_info=error)

    def _ending(self, shard: HeldShard) -> Callable[[], bool]:
        """A function that returns whether the worker must stop, or another member may already read the shard."""
        return lambda: self._stopping() or not shard.is_safe()

    def _try(
        self, handler: Handler, events: Events, attempt: int, ending: Callable[[], bool]
    ) -> BaseException | None:
        """Call a handler; returns the exception that it raised, even `SystemExit` or a cancellation.

        Raises `Interrupted` if the worker must stop.
        """
        if ending():
            raise Interrupted
        worker = self._plan.name
        context = Context(self._store, worker, handler.name, attempt, ending, events, self._effects)
        self._call = (handler, events, self._store.clock.now())
        try:
            handler.function(events if handler.takes_many else events[0], context)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, the next event must be handled
            if ending():
                raise Interrupted from None
            trace = error.__traceback__
            return error.with_traceback(trace and trace.tb_next)  # the handler's own frames
        finally:
            self._call = None
        self.counts["deliveries"] += len(events)
        return None

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._store.clock.now(), UTC)


def _text_of(error: BaseException) -> str:
    """The text of an error, in a form that can be stored."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - its type is reported in any case
        words = ""
    text = f"{type(error).__name__}: {words}"[:_MAX_ERROR]
    return text.encode(errors="replace").decode()  # a file's name may contain half a surrogate pair


def _named(events: Events) -> str:
    return repr(events[0]) if len(events) == 1 else f"{len(events)} events from {events[0]!r}"
