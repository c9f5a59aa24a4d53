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
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from isotone.errors import IsotoneError
from isotone.model import Store, is_passing
from isotone.model.tables import streaming
from isotone.structures.worker.delivery import Delivery
from isotone.structures.worker.entities import WorkerLease, WorkerStart
from isotone.structures.worker.leases import Leases, decide, readable
from isotone.structures.worker.settings import WorkerProgress, WorkerSettings
from isotone.structures.worker.shards import HeldShard

if TYPE_CHECKING:
    from isotone.structures.worker.worker import Worker

_LOGGER: Final = logging.getLogger("isotone.worker")
_LONGEST_PAUSE: Final = 10.0  # seconds between tries, while the store fails
_AGAIN: Final = 1.0  # seconds after which a look at the leases that failed is taken again; doubles
_IMPATIENCE: Final = 1 / 30  # of a lease, between looks where something is about to change hands


def passing(error: IsotoneError) -> IsotoneError:
    """The error, where it passes by itself; raises it where it does not."""
    if not is_passing(error):
        raise error
    return error


class Member:
    """A member of a worker, in this thread. `wait` may be replaced, so that tests take no time.

    `siblings` are the members of this process: they need not prove to each other that they live.
    """

    def __init__(
        self, worker: Worker, store: Store, settings: WorkerSettings | None = None
    ) -> None:
        self.id = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self.settings = settings or worker.settings
        self.held: dict[str, HeldShard] = {}
        self.siblings: frozenset[str] = frozenset()
        self._worker = worker
        self._store = store
        self._stop = threading.Event()
        self.wait: Callable[[float], bool] = self._stop.wait
        self._leases = Leases(store, worker.leases, worker.name, self.id, self.settings.lease)
        self._delivery = Delivery(
            worker, store, self.settings, lambda seconds: self.wait(seconds), self._stop.is_set
        )
        self._start: WorkerStart | None = None
        self._others: dict[str, WorkerLease] = {}
        self._is_settled = False
        self._is_waiting = False
        self._due = 0.0
        self._again = _AGAIN

    # Its life

    def run(self, *, until_idle: bool = False) -> None:
        """Work until `stop`, or until all there is has been handled; leases are given back at the end."""
        ended = threading.Event()
        renewing = threading.Thread(
            target=self._keep_renewing, args=(ended,), name=f"renew-{self.id}", daemon=True
        )
        renewing.start()
        try:
            self._run(until_idle=until_idle)
        finally:
            ended.set()
            renewing.join()
            self.release()

    def stop(self) -> None:
        """End after the event at hand."""
        self._stop.set()

    def _run(self, *, until_idle: bool) -> None:
        pause = self.settings.poll
        while not self._stop.is_set():
            failure: IsotoneError | None = None
            handled = 0
            try:
                self._coordinate_in_time()
            except IsotoneError as error:
                failure = passing(error)  # what is held can be worked on
            try:
                handled = self.work()
                if until_idle and not handled and failure is None and self.is_idle():
                    return
            except IsotoneError as error:
                failure = passing(error)
            if failure is not None and not handled:
                pause = min(_LONGEST_PAUSE, max(pause, 0.05) * 2)
                _LOGGER.warning("worker %s waits %.1f s: %s", self._worker.name, pause, failure)
                self.wait(pause)
                continue
            pause = self.settings.poll
            if not handled and not (until_idle and not self._has_read()):
                self.wait(pause)

    def _coordinate_in_time(self) -> None:
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + min(self._again, self.settings.lease / 3)
        self._again = min(_LONGEST_PAUSE, self._again * 2)
        changed = self.coordinate()
        self._again = _AGAIN
        if changed:
            self._due = 0.0
        else:
            share = _IMPATIENCE if self._is_waiting else 1 / 3
            self._due = time.monotonic() + self.settings.lease * share

    def _keep_renewing(self, ended: threading.Event) -> None:
        """Renew in time, and tell of a handler that is at one event for longer than a lease."""
        told: str | None = None
        while not ended.wait(self.settings.lease / 3):
            self.renew()
            call = self._delivery.calling()
            if call is not None and call.seconds > self.settings.lease and call.event != told:
                told = call.event
                _LOGGER.warning("worker %s: %s holds up its shards", self._worker.name, call)

    # Its steps

    def coordinate(self) -> bool:
        """See which shards there are, and take or hand over what makes for even shares.

        Cost: a query and a listing of the shards, and a write for each lease that changes. True where
        something changed hands.
        """
        stream, is_latest = self._turn_to_stream()
        leases = self._leases.all(stream)
        shards = self._store.run(streaming.shards_of(stream))
        leases = self._leases.register(stream, leases, shards)
        for lease in leases:
            if lease.shard in self.held:
                self.held[lease.shard].note(lease)
        candidates = readable(leases, shards)
        wish = decide(candidates, self.id, self._leases.now())
        new = self._handed_over(candidates)
        new += [taken for each in wish.take if (taken := self._leases.take(each)) is not None]
        self._hold(new)
        if wish.ask is not None:
            self._leases.ask(wish.ask)
        asked = wish.ask is not None or any(each.wanted == self.id for each in candidates)
        self._is_waiting = asked or not is_latest
        self._is_settled = self._have_shown_life(candidates) and not self._is_waiting
        return bool(new)

    def _turn_to_stream(self) -> tuple[str, bool]:
        """The stream to read, and whether it is the table's latest.

        Where the table's stream was disabled and enabled anew, that is the old one until it is read to its
        end, and then the next.
        """
        table, from_now = self._worker.table, self.settings.start == "LATEST"
        latest = self._store.run(streaming.stream_of(table))
        if self._start is None or self._start.stream != latest:
            start = self._leases.start(table, latest, from_now=from_now)
            if self._start is not None and self._start.stream != start.stream:
                for shard in list(self.held.values()):
                    self._let_go(shard)
            self._start = start
        return self._start.stream, self._start.stream == latest

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
        if self._stop.is_set() or shard.lease.wanted is not None or not shard.is_safe():
            self._let_go(shard)
            return
        is_done = False
        try:
            is_done = self._delivery.deliver(shard.page(self.settings.batch), shard)
        finally:
            if not is_done:
                shard.rewind()
        if shard.is_over:
            self._let_go(shard)
        elif shard.unsaved:
            shard.save()

    def renew(self) -> None:
        """Hold all shards for longer. Cost: one write each."""
        self._with_each(HeldShard.renew, "renew")

    def release(self) -> None:
        """Give all shards back, with what was done."""
        try:
            self._withdraw()
        except IsotoneError as error:
            _LOGGER.warning("worker %s could not give back: %s", self._worker.name, error)
        self._with_each(self._let_go, "give back")
        self.held.clear()  # what could not be given back runs out

    def _with_each(self, step: Callable[[HeldShard], None], what: str) -> None:
        """Do so with each shard; one that fails holds up no other."""
        for shard in list(self.held.values()):
            try:
                step(shard)
            except Exception as error:  # noqa: BLE001 - the next round may succeed, or the lease runs out
                _LOGGER.warning("worker %s could not %s: %s", self._worker.name, what, error)

    def _withdraw(self) -> None:
        """Want no more; what has been handed over in the meantime is given back with the rest."""
        if self._start is None or not self._is_waiting:
            return
        self._is_waiting = False
        for lease in self._leases.all(self._start.stream):
            if lease.wanted == self.id:
                self._leases.withdraw(lease)
        self._hold(self._handed_over(self._leases.all(self._start.stream)))

    def is_idle(self) -> bool:
        """Whether all has been handled, as far as it is this member's to handle.

        What others hold is theirs once they have shown that they live.
        """
        return self._has_read() and not self.coordinate() and self._is_settled

    def _has_read(self) -> bool:
        return all(shard.is_read for shard in self.held.values())

    def progress(self) -> WorkerProgress:
        """What it has done so far."""
        shards, now = list(self.held.values()), self._store.clock.now()
        return WorkerProgress(
            **self._delivery.counts,
            shards=len(shards),
            lost=self._leases.lost,
            lag=max((shard.lag(now) for shard in shards), default=0.0),
            calling=self._delivery.calling(),
        )

    # Shards in and out of its hands

    def _handed_over(self, leases: Iterable[WorkerLease]) -> list[WorkerLease]:
        """What others have given to this member, which does not hold it yet."""
        now = self._leases.now()
        return [
            each
            for each in leases
            if each.owner == self.id and each.is_live(now) and each.shard not in self.held
        ]

    def _hold(self, leases: Iterable[WorkerLease]) -> None:
        assert self._start is not None
        for lease in leases:
            self.held[lease.shard] = HeldShard(
                self._leases, lease, self._worker.table, self._start.since
            )

    def _let_go(self, shard: HeldShard) -> None:
        """Hold a shard no more; where that fails, the next look at the leases tells whose it is."""
        self.held.pop(shard.lease.shard, None)
        self._due = 0.0  # at once, also since the shard's children can be read from now on
        shard.let_go()

    def _have_shown_life(self, leases: Iterable[WorkerLease]) -> bool:
        """Whether every lease of others has changed since it was first seen: by that they live."""
        ours = {self.id} | self.siblings
        theirs = {each.shard: each for each in leases if each.owner not in ours}
        self._others = {shard: self._others.get(shard, now) for shard, now in theirs.items()}
        return all(self._others[shard] != now for shard, now in theirs.items())
