"""One member of a worker: it holds some of the shards, and goes round them.

`coordinate`, `work`, `renew` and `release` are its life in single steps; `run` is its life. Whatever
passes by itself (a store that does not answer, a throttled request) is waited for.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from isotone.errors import IsotoneError
from isotone.model.steps import is_passing
from isotone.model.store import Store
from isotone.model.tables import streaming
from isotone.structures.worker.delivery import Delivery
from isotone.structures.worker.entities import WorkerDeadLetter, WorkerLease
from isotone.structures.worker.leases import Leases
from isotone.structures.worker.letters import DeadLetters, event_in
from isotone.structures.worker.settings import WorkerProgress, WorkerSettings
from isotone.structures.worker.shards import HeldShard
from isotone.structures.worker.sharing import decide, readable

if TYPE_CHECKING:
    from isotone.structures.worker.worker import Worker

_LOGGER: Final = logging.getLogger("isotone.worker")
_LONGEST_PAUSE: Final = 10.0  # seconds between tries, while the store fails
_SAVES: Final = 1.0  # seconds of a busy shard between its checkpoints
_RATE: Final = 5.0  # seconds over which the rate is measured
_IMPATIENCE: Final = 1 / 30  # of a lease, between looks for a shard that was asked for
_DECLARING: Final = threading.Lock()  # a table's entities are declared once


def passing(error: IsotoneError) -> IsotoneError:
    """The error, where it passes by itself; raises it where it does not."""
    if not is_passing(error):
        raise error
    return error


class Member:
    """A member of a worker, in this thread. `wait` and `stopping` let tests go without time."""

    def __init__(
        self, worker: Worker, store: Store, settings: WorkerSettings | None = None
    ) -> None:
        self.id = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self.settings = settings or worker.settings
        self.held: dict[str, HeldShard] = {}
        self._worker = worker
        self._store = store
        self._stop = threading.Event()
        with _DECLARING:
            self._leases = Leases(store, worker.leases, worker.name, self.id, self.settings.lease)
            letters = DeadLetters(store, worker.leases, worker.name)
        self._letters = letters
        self.wait: Callable[[float], bool] = self._stop.wait
        self._delivery = Delivery(
            store,
            worker.handlers,
            letters,
            self._leases.effects,
            self.settings,
            lambda seconds: self.wait(seconds),
            self._stop.is_set,
        )
        self._stream: str | None = None
        self._since: datetime | None = None
        self.siblings: frozenset[str] = frozenset()
        self._others: dict[str, tuple[object, ...]] = {}
        self._unproven = True
        self._waiting = False
        self._lost = 0
        self._rated = (time.monotonic(), 0)
        self._rate = 0.0

    # Its life

    def run(self, *, until_idle: bool = False) -> None:
        """Work until `stop`, or until all there is has been handled; leases are given back at the end."""
        renewing = threading.Thread(
            target=self._keep_renewing, name=f"renew-{self.id}", daemon=True
        )
        self._ended = threading.Event()
        renewing.start()
        try:
            self._run(until_idle=until_idle)
        finally:
            self._ended.set()
            renewing.join()
            self.release()

    def stop(self) -> None:
        """End after the event at hand."""
        self._stop.set()

    def _run(self, *, until_idle: bool) -> None:
        due, pause = 0.0, self.settings.poll
        while not self._stop.is_set():
            failure: IsotoneError | None = None
            if time.monotonic() >= due:
                try:
                    changed = self.coordinate()
                    due = time.monotonic() + (0 if changed else self.settings.lease / 3)
                except IsotoneError as error:
                    failure = passing(error)  # what is held can be worked on
            try:
                if self.work():
                    pause = self.settings.poll
                    if failure is not None:
                        due = time.monotonic() + _SAVES
                    continue
                if failure is None and until_idle:
                    if not self._has_read():
                        continue
                    if self.is_idle():
                        return
                if self._waiting:
                    due = min(due, time.monotonic() + self.settings.lease * _IMPATIENCE)
            except IsotoneError as error:
                failure = passing(error)
            pause = self.settings.poll if failure is None else self._wary(pause, failure)
            self.wait(pause)

    def _wary(self, pause: float, error: IsotoneError) -> float:
        """The pause after an error, longer than the one before."""
        pause = min(_LONGEST_PAUSE, max(pause, 0.05) * 2)
        _LOGGER.warning("worker %s waits %.1f s: %s", self._worker.name, pause, error)
        return pause

    def _keep_renewing(self) -> None:
        while not self._ended.wait(self.settings.lease / 3):
            self.renew()

    # Its steps

    def coordinate(self) -> bool:
        """See which shards there are, and take or hand over what makes for even shares.

        Cost: a query and a listing of the shards, and a write for each lease that changes. True where
        something changed hands.
        """
        stream = self._current_stream()
        leases = self._leases.all(stream)
        shards = self._store.run(streaming.shards_of(stream))
        known, gone = self._leases.register(stream, leases, shards)
        self._report(gone)
        for lease in known:
            if lease.shard in self.held:
                self.held[lease.shard].note(lease)
        candidates = readable(known, shards)
        now = self._leases.at()
        changed = self._adopt(candidates, now)
        wish = decide(candidates, self.id, now)
        for lease in wish.take:
            taken = self._leases.take(lease)
            if taken is not None:
                self._hold(taken)
                changed = True
        if wish.ask is not None:
            self._leases.ask(wish.ask)
        self._waiting = wish.ask is not None or any(each.wanted == self.id for each in candidates)
        self._look_at_others(candidates)
        return changed

    def _current_stream(self) -> str:
        """The table's stream; where it was disabled and enabled anew, the worker goes over to the new one."""
        stream = self._store.run(streaming.stream_of(self._worker.table))
        if stream != self._stream:
            for shard in list(self.held.values()):
                self._let_go(shard)
            from_now = self.settings.start == "LATEST" and self._stream is None
            self._since = self._leases.begun(stream, from_now=from_now)
            self._stream = stream
        return stream

    def work(self) -> int:
        """Handle a page of each shard; the events that were handled or passed over.

        Raises what the store failed with where nothing could be handled: a shard that is throttled holds up
        no others.
        """
        before = self._delivery.counts["records"]
        failure: IsotoneError | None = None
        for shard in list(self.held.values()):
            try:
                self._turn_to(shard)
            except IsotoneError as error:
                failure = passing(error)
        handled = self._delivery.counts["records"] - before
        if failure is not None and not handled:
            raise failure
        return handled

    def _turn_to(self, shard: HeldShard) -> None:
        if not shard.is_safe():
            self._drop(shard)
        elif shard.lease.wanted is not None or self._stop.is_set():
            self._let_go(shard)
        else:
            self._work_on(shard)

    def _work_on(self, shard: HeldShard) -> None:
        try:
            events = shard.page(self.settings.batch)
            complete = self._delivery.deliver(events, shard, _SAVES)
        except BaseException:
            shard.rewind()
            raise
        if not complete:
            shard.rewind()
        if shard.is_over:
            self._let_go(shard)
        elif shard.unsaved:
            shard.save()

    def renew(self) -> None:
        """Hold all shards for longer. Cost: one write each."""
        for shard in list(self.held.values()):
            try:
                if not shard.is_lost:
                    shard.save()
            except Exception as error:  # noqa: BLE001 - the next round may succeed
                _LOGGER.warning("worker %s could not renew: %s", self._worker.name, error)

    def release(self) -> None:
        """Give all shards back, with what was done."""
        if self._waiting and self._stream is not None:
            self._withdraw(self._stream)
        for shard in list(self.held.values()):
            try:
                self._let_go(shard)
            except IsotoneError as error:  # it runs out by itself
                _LOGGER.warning("worker %s could not give back: %s", self._worker.name, error)
                self._drop(shard)

    def is_idle(self) -> bool:
        """Whether all has been handled, as far as it is this member's to handle.

        What others hold is theirs once they have shown that they live: by a lease that was renewed.
        """
        return (
            self._has_read() and not self.coordinate() and not self._unproven and not self._waiting
        )

    def _has_read(self) -> bool:
        return all(shard.is_read for shard in self.held.values())

    def redrive(self, letters: Sequence[WorkerDeadLetter]) -> tuple[int, int]:
        """Put dead letters through their handlers; how many were handled, and how many failed."""
        handled = failed = 0
        for letter in letters:
            error = self._again(letter)
            if error is None:
                self._letters.remove(letter)
                handled += 1
            else:
                event = event_in(letter, self._worker.table) if letter.record else None
                if event is not None:
                    self._letters.add(event, letter.handler, error, letter.attempts + 1)
                failed += 1
        return handled, failed

    def _again(self, letter: WorkerDeadLetter) -> BaseException | None:
        handler = self._worker.handlers.named(letter.handler)
        if handler is None:
            return LookupError(f"the worker has no handler {letter.handler!r} any more")
        try:
            event = event_in(letter, self._worker.table)
        except IsotoneError as error:
            return error
        return self._delivery.again(event, handler)

    # What it knows

    def progress(self) -> WorkerProgress:
        """What it has done so far."""
        counts, now = self._delivery.counts, time.monotonic()
        since, before = self._rated
        if now - since >= _RATE:
            self._rate = (counts["records"] - before) / (now - since)
            self._rated = (now, counts["records"])
        elif not self._rate and now > since:
            self._rate = (counts["records"] - before) / max(now - since, 0.001)
        shards = list(self.held.values())
        at = self._store.clock.now()
        return WorkerProgress(
            shards=len(shards),
            records=counts["records"],
            deliveries=counts["deliveries"],
            retries=counts["retries"],
            dead_letters=counts["dead_letters"],
            lost=self._lost + sum(shard.dropped for shard in shards),
            lag=max((shard.lag(at) for shard in shards), default=0.0),
            rate=self._rate,
        )

    # Shards in and out of its hands

    def _hold(self, lease: WorkerLease) -> None:
        self.held[lease.shard] = HeldShard(
            self._store, self._worker.table, self._leases, lease, self._since
        )

    def _adopt(self, leases: Sequence[WorkerLease], now: datetime) -> bool:
        """Take up what others have handed over."""
        ours = [each for each in leases if each.owner == self.id and each.is_live(now)]
        new = [each for each in ours if each.shard not in self.held]
        for lease in new:
            self._hold(lease)
        return bool(new)

    def _withdraw(self, stream: str) -> None:
        """Want no more; what has been handed over in the meantime is given back with the rest."""
        try:
            for lease in self._leases.all(stream):
                if lease.wanted == self.id:
                    self._leases.withdraw(lease)
            self._adopt(self._leases.all(stream), self._leases.at())
        except IsotoneError as error:
            _LOGGER.warning("worker %s could not give back: %s", self._worker.name, error)
        self._waiting = False

    def _let_go(self, shard: HeldShard) -> None:
        shard.let_go()
        self._drop(shard)

    def _drop(self, shard: HeldShard) -> None:
        self._lost += shard.dropped
        self.held.pop(shard.lease.shard, None)

    def _look_at_others(self, leases: Sequence[WorkerLease]) -> None:
        """Note which leases of others have changed since they were first seen."""
        known = {self.id} | self.siblings
        theirs = {
            each.shard: (each.owner, each.until, each.checkpoint)
            for each in leases
            if each.owner not in known
        }
        self._unproven = any(self._others.get(shard, now) == now for shard, now in theirs.items())
        self._others = {shard: self._others.get(shard, now) for shard, now in theirs.items()}

    def _report(self, gone: Sequence[WorkerLease]) -> None:
        for lease in gone:
            if not lease.finished:
                self._lost += 1
                _LOGGER.error(
                    "worker %s: shard %s was dropped before it was read to its end",
                    lease.worker,
                    lease.shard,
                )
