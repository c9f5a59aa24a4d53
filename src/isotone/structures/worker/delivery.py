"""Events to handlers: in order, tried again with growing pauses, given up as dead letters.

A dead letter is an event that a handler could not handle, kept with the reason until somebody decides.
"""

from __future__ import annotations

import json
import logging
import random
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from isotone.errors import NotFound
from isotone.model import EntitySchema, Event, Store, is_passing
from isotone.structures.operation import bind_entity
from isotone.structures.worker.entities import WorkerDeadLetter, WorkerEffect
from isotone.structures.worker.handlers import Context, Handler
from isotone.structures.worker.settings import HandlerCall, WorkerSettings
from isotone.structures.worker.shards import HeldShard

if TYPE_CHECKING:
    from isotone.structures.worker.worker import Worker

_LOGGER: Final = logging.getLogger("isotone.worker")
_LARGEST: Final = 350_000  # bytes of a record that fit into an item, beside the rest
_LONGEST_ERROR: Final = 2_000

_TOO_LARGE: Final = "its record was too large to be kept; look at the item, then discard the letter"

Events = Sequence[Event[Any]]


class Interrupted(Exception):
    """The worker is to end, or may have lost the shard, while there is something left to handle."""


class ProcessEnded(Exception):
    """Processes ended while they handled an event."""


class Delivery:
    """Calls the handlers of a worker with events, and counts what came of it in `counts`.

    `pause` waits for some seconds, `stopping` tells whether the worker is to end.
    """

    def __init__(
        self,
        worker: Worker,
        store: Store,
        settings: WorkerSettings,
        pause: Callable[[float], object],
        stopping: Callable[[], bool],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._worker = worker
        self._store = store
        self._settings = settings
        self._pause = pause
        self._stopping = stopping
        self._effects = bind_entity(worker.leases, WorkerEffect)
        self._letters = bind_entity(worker.leases, WorkerDeadLetter)
        self._routes: dict[tuple[str, EntitySchema | None], list[Handler]] = {}
        self._call: tuple[Handler, Events, float] | None = None

    def deliver(self, events: Events, shard: HeldShard) -> bool:
        """Handle events of a shard in order, as long as the lease holds; False where some are left."""
        takes_many = any(handler.takes_many for handler in self._worker.handlers.values())
        done = 0
        while done < len(events):
            # A suspected record is tried alone, whoever takes many.
            size = len(events) if takes_many and not shard.is_suspicious else 1
            portion = events[done : done + size]
            if shard.lease.wanted is not None:
                return False
            try:
                if not (shard.is_suspicious and self._is_deadly(portion[0], shard)):
                    self._handle(portion, shard)
            except Interrupted:
                return False
            self.counts["records"] += len(portion)
            shard.advance(portion[-1])
            done += len(portion)
        return True

    def redrive(self, letter: WorkerDeadLetter) -> bool:
        """Put a dead letter through its handler once more; it is gone then, or has the new error."""
        handler = self._worker.handlers.get(letter.handler)
        if handler is None or letter.record is None:
            why = "its handler is not there any more" if handler is None else _TOO_LARGE
            _LOGGER.warning("%s of %s stays: %s", letter.keys, letter.handler, why)
            return False
        record = json.loads(zlib.decompress(letter.record))
        event: Event[Any] = Event(self._worker.table, letter.shard, record)
        error = self._try(handler, [event], 1, self._stopping)
        if error is None:
            self._store.delete(letter)
            return True
        _LOGGER.warning("%s failed again at %s: %r", handler.name, event, error)
        kind = WorkerDeadLetter
        changes = (kind.error.set(_said(error)), kind.attempts.add(1), kind.failed.set(self._now()))
        with suppress(NotFound):  # somebody has handled or discarded it in the meantime
            self._store.update(letter, *changes)
        return False

    def calling(self) -> HandlerCall | None:
        """The call that has not come back yet."""
        if (call := self._call) is None:
            return None
        handler, events, began = call
        seconds = max(0.0, self._store.clock.now() - began)
        return HandlerCall(handler=handler.name, event=_named(events), seconds=seconds)

    def _handle(self, events: Events, shard: HeldShard) -> None:
        gathered: dict[str, list[Event[Any]]] = {}
        for event in events:
            for handler in self._handlers_of(event):
                if handler.takes_many:
                    gathered.setdefault(handler.name, []).append(event)
                else:
                    self._insist(handler, event, shard)
        for name, some in gathered.items():
            handler = self._worker.handlers[name]
            if len(some) > 1:
                error = self._try(handler, some, 1, self._ending(shard))
                if error is None:
                    continue
                which = _named(some)
                _LOGGER.warning("%s failed at %s, now one by one: %r", name, which, error)
            for event in some:
                self._insist(handler, event, shard)

    def _handlers_of(self, event: Event[Any]) -> list[Handler]:
        route = (event.kind, event.schema)
        if route not in self._routes:
            known = self._worker.handlers.values()
            self._routes[route] = [handler for handler in known if handler.takes(event)]
        return self._routes[route]

    def _is_deadly(self, event: Event[Any], shard: HeldShard) -> bool:
        """Note that an event is to be tried; where it has ended too many processes, it is a dead letter."""
        handlers = self._handlers_of(event)
        fallen = shard.mark(event) if handlers else 0
        if fallen < self._settings.attempts:
            return False
        if self._ending(shard)():
            raise Interrupted
        for handler in handlers:
            error = ProcessEnded(f"{fallen} processes ended while they handled it")
            self._give_up(handler, event, error, fallen)
        return True

    def _insist(self, handler: Handler, event: Event[Any], shard: HeldShard) -> None:
        """Call a handler until it succeeds, or the event is a dead letter."""
        attempt = 1
        faults = 0
        ending = self._ending(shard)
        while (error := self._try(handler, [event], attempt, ending)) is not None:
            # A store that does not answer is nobody's fault.
            faults += not (isinstance(error, Exception) and is_passing(error))
            if faults == self._settings.attempts:
                self._give_up(handler, event, error, attempt)
                return
            self.counts["retries"] += 1
            pause = self._delay(attempt)
            _LOGGER.warning(
                "%s failed at %s, attempt %d, and again in %.1f s: %r",
                *(handler.name, event, attempt, pause, error),
            )
            self._pause(pause)
            attempt += 1

    def _give_up(
        self, handler: Handler, event: Event[Any], error: BaseException, attempts: int
    ) -> None:
        """Keep an event as a dead letter: one for each handler, however often it comes. Cost: one write."""
        packed = zlib.compress(json.dumps(event.record).encode())
        self._store.put(
            self._letters(
                worker=self._worker.name,
                handler=handler.name,
                event=event.id,
                sequence=event.sequence,
                time=event.time,
                shard=event.shard,
                # Two images of 400 KB do not fit; keys and error do.
                record=packed if len(packed) <= _LARGEST else None,
                keys=repr(event.keys),
                error=_said(error),
                attempts=attempts,
                failed=self._now(),
            )
        )
        self.counts["dead_letters"] += 1
        _LOGGER.error("%s gave up %s at attempt %d", handler.name, event, attempts, exc_info=error)

    def _ending(self, shard: HeldShard) -> Callable[[], bool]:
        """Whether the worker is to end, or a successor may be at the shard already."""
        return lambda: self._stopping() or not shard.is_safe()

    def _try(
        self, handler: Handler, events: Events, attempt: int, ending: Callable[[], bool]
    ) -> BaseException | None:
        """Call a handler; what it raised, be it `SystemExit` or a cancellation, is the event's.

        Raises `Interrupted` where it is not to begin, or failed because it was to end.
        """
        if ending():
            raise Interrupted
        worker = self._worker.name
        context = Context(self._store, worker, handler.name, attempt, ending, events, self._effects)
        self._call = (handler, events, self._store.clock.now())
        try:
            handler.function(events if handler.takes_many else events[0], context)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, the next event has to be handled
            if ending():
                raise Interrupted from None
            trace = error.__traceback__
            return error.with_traceback(trace and trace.tb_next)  # the handler's own frames
        finally:
            self._call = None
        self.counts["deliveries"] += len(events)
        return None

    def _delay(self, attempt: int) -> float:
        """Random up to a bound that doubles, so that what failed together does not come back together."""
        settings = self._settings
        bound = min(settings.longest, settings.base * 2.0 ** min(attempt - 1, 30))
        return random.random() * bound

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._store.clock.now(), UTC)


def _said(error: BaseException) -> str:
    """What an error says, as an item can hold it."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - it is told that there is one
        words = ""
    text = f"{type(error).__name__}: {words}"[:_LONGEST_ERROR]
    return text.encode(errors="replace").decode()  # a file's name may have half a character


def _named(events: Events) -> str:
    return repr(events[0]) if len(events) == 1 else f"{len(events)} events from {events[0]!r}"
