"""Events to handlers: in order, tried again with growing pauses, given up as dead letters."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from isotone.model.steps import is_passing
from isotone.model.store import Store
from isotone.model.tables.events import Event
from isotone.structures.worker.entities import WorkerEffect
from isotone.structures.worker.handlers import Context, Handler, Handlers
from isotone.structures.worker.letters import DeadLetters
from isotone.structures.worker.settings import WorkerSettings
from isotone.structures.worker.shards import HeldShard

_LOGGER: Final = logging.getLogger("isotone.worker")


class Interrupted(Exception):
    """The worker is to end, or has lost the shard, while there is something left to handle."""


class ProcessEnded(Exception):
    """Processes ended while they handled an event."""


class Delivery:
    """Calls the handlers of a worker with events, and counts what came of it in `counts`."""

    def __init__(
        self,
        store: Store,
        handlers: Handlers,
        letters: DeadLetters,
        effects: type[WorkerEffect],
        settings: WorkerSettings,
        wait: Callable[[float], bool],
        stopping: Callable[[], bool],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._store = store
        self._handlers = handlers
        self._letters = letters
        self._effects = effects
        self._settings = settings
        self._wait = wait
        self._stopping = stopping

    def deliver(self, events: Sequence[Event[Any]], shard: HeldShard, save_every: float) -> bool:
        """Handle events of a shard in order, as long as the lease holds; False where some are left.

        The checkpoint is written now and then, so that little is done again after a crash.
        """
        saved = self._store.clock.now()
        for portion in self._portions(events, shard):
            if shard.lease.wanted is not None:
                return False
            try:
                self._handle(portion, shard)
            except Interrupted:
                return False
            shard.advance(portion[-1])
            self.counts["records"] += len(portion)
            now = self._store.clock.now()
            if shard.unsaved and now - saved >= save_every:
                shard.save()
                saved = now
        return True

    def again(self, event: Event[Any], handler: Handler) -> BaseException | None:
        """Handle one event once more; the error where that fails."""
        return self._try(handler, [event], 1)

    def _portions(
        self, events: Sequence[Event[Any]], shard: HeldShard
    ) -> Iterator[Sequence[Event[Any]]]:
        """What is noted as done together: all events where some handler takes many, and none is suspected."""
        if self._handlers.take_many and not shard.is_suspicious:
            yield from [events] if events else []
        else:
            yield from ([event] for event in events)

    def _handle(self, events: Sequence[Event[Any]], shard: HeldShard) -> None:
        self._check(shard)
        if shard.is_suspicious and self._is_deadly(events[0], shard):
            return
        gathered: dict[str, list[Event[Any]]] = {}
        for event in events:
            for handler in self._handlers.of(event):
                if handler.takes_many:
                    gathered.setdefault(handler.name, []).append(event)
                else:
                    self._insist(handler, event, shard)
        for name, some in gathered.items():
            taking = self._handlers.named(name)
            assert taking is not None
            self._check(shard)
            if len(some) == 1 or self._try(taking, some, 1, shard) is not None:
                for event in some:
                    self._insist(taking, event, shard)

    def _is_deadly(self, event: Event[Any], shard: HeldShard) -> bool:
        """Note that an event is to be tried; where it has ended too many processes, it is a dead letter."""
        handlers = self._handlers.of(event)
        fallen = shard.mark(event) if handlers else 0
        self._check(shard)
        if fallen < self._settings.attempts:
            return False
        for handler in handlers:
            error = ProcessEnded(f"{fallen} processes ended while they handled it")
            self._give_up(handler, event, error, fallen)
        return True

    def _check(self, shard: HeldShard) -> None:
        """Begin nothing that a successor may be at already, or that the end would be waiting for."""
        if self._stopping() or not shard.is_safe():
            raise Interrupted

    def _insist(self, handler: Handler, event: Event[Any], shard: HeldShard) -> None:
        """Call a handler until it succeeds, or the event is a dead letter."""
        attempt = 1
        faults = 0  # a store that does not answer is nobody's fault
        self._check(shard)
        while (error := self._try(handler, [event], attempt, shard)) is not None:
            self._check(shard)
            faults += not (isinstance(error, Exception) and is_passing(error))
            if faults == self._settings.attempts:
                self._give_up(handler, event, error, attempt)
                return
            self.counts["retries"] += 1
            self._wait(self._delay(attempt))
            self._check(shard)
            attempt += 1

    def _give_up(
        self, handler: Handler, event: Event[Any], error: BaseException, attempts: int
    ) -> None:
        self._letters.add(event, handler.name, error, attempts)
        self.counts["dead_letters"] += 1
        _LOGGER.error(
            "%s gave up %s after %d attempts", handler.name, event, attempts, exc_info=error
        )

    def _try(
        self,
        handler: Handler,
        events: Sequence[Event[Any]],
        attempt: int,
        shard: HeldShard | None = None,
    ) -> BaseException | None:
        """Call a handler; what it raised, be it `SystemExit` or a cancellation, is the event's."""
        context = Context(
            self._store,
            self._letters.worker,
            handler.name,
            events,
            attempt,
            self._effects,
            lambda: self._stopping() or (shard is not None and not shard.is_safe()),
        )
        try:
            handler.function(events if handler.takes_many else events[0], context)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001
            which = events[0] if len(events) == 1 else f"{len(events)} events from {events[0]}"
            _LOGGER.warning("%s failed at %s, attempt %d: %r", handler.name, which, attempt, error)
            return error
        self.counts["deliveries"] += len(events)
        return None

    def _delay(self, attempt: int) -> float:
        """Random up to a bound that doubles, so that what failed together does not come back together."""
        settings = self._settings
        bound = min(settings.longest, settings.base * 2.0 ** min(attempt - 1, 30))
        return random.random() * bound
