"""The members of a worker: each holds some of the shards and works through them, in a thread.

`run` repeats the steps of a member: `coordinate`, `work`, `renew` and `release`. After a transient error (a store
that does not respond, a throttled request) it waits and retries.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Self
from uuid import uuid4

from isotone.daemon import Daemon
from isotone.errors import IsotoneError
from isotone.model import Store, is_transient, streams
from isotone.structures.lease_block import renewal_interval
from isotone.structures.worker_delivery import Delivery, WorkerPlan, WorkerProgress, WorkerSettings
from isotone.structures.worker_leases import (
    HeldShard,
    Leases,
    WorkerLease,
    WorkerStart,
    decide,
    readable,
)

_LOGGER: Final = logging.getLogger("isotone.worker")
_MAX_PAUSE: Final = 10.0  # seconds between attempts, while the store fails
_FIRST_RETRY: Final = 1.0  # seconds after which a failed read of the leases is repeated; doubles
_SOON: Final = 1 / 30  # of a lease, between checks while a shard is handed over
_INTERRUPT_CHECK: Final = 0.05  # seconds until an interruption is noticed
_REPORTS: Final = 1.0  # seconds between reports of progress
_RATE_WINDOW: Final = 5.0  # seconds over which the rate is measured

Progress = Callable[[WorkerProgress], None]


def raise_unless_transient(error: IsotoneError) -> IsotoneError:
    """Return a transient error; raise any other."""
    if not is_transient(error):
        raise error
    return error


class WorkerMember:
    """A member of a worker, in the current thread. Tests replace `wait`, so that they take no time.

    `siblings` are the other members of this process, which are known to be alive.
    """

    def __init__(
        self, plan: WorkerPlan, store: Store, settings: WorkerSettings | None = None
    ) -> None:
        self.id: str = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self.settings: WorkerSettings = settings or plan.settings
        self.held: dict[str, HeldShard] = {}
        self.siblings: frozenset[str] = frozenset()
        self._plan = plan
        self._store = store
        self._stop = threading.Event()
        self.wait: Callable[[float], bool] = self._stop.wait
        self._leases = Leases(store, plan.leases, plan.name, self.id, self.settings.lease)
        self._delivery = Delivery(
            plan, store, self.settings, lambda seconds: self.wait(seconds), self._stop.is_set
        )
        self._start: WorkerStart | None = None
        self._others: dict[str, WorkerLease] = {}
        self._is_settled = False
        self._is_waiting = False
        self._due = 0.0
        self._retry = _FIRST_RETRY
        self._interval = renewal_interval(self.settings.lease)

    # The main loop

    def run(self, *, until_idle: bool = False) -> None:
        """Work until `stop`, or until everything is handled; releases all leases at the end."""
        ended = threading.Event()
        renewing = Daemon(partial(self._keep_renewing, ended), f"renew-{self.id}", end=ended.set)
        try:
            self._run(until_idle=until_idle)
        finally:
            ended.set()
            renewing.join()
            self.release()

    def stop(self) -> None:
        """Stop after the current event."""
        self._stop.set()

    def _run(self, *, until_idle: bool) -> None:
        pause = self.settings.poll
        while not self._stop.is_set():
            failure: IsotoneError | None = None
            handled = 0
            try:
                self._coordinate_in_time()
            except IsotoneError as error:
                failure = raise_unless_transient(error)  # the held shards can still be handled
            try:
                handled = self.work()
                if until_idle and not handled and failure is None and self.is_idle():
                    return
            except IsotoneError as error:
                failure = raise_unless_transient(error)
            if failure is not None and not handled:
                pause = min(_MAX_PAUSE, max(pause, 0.05) * 2)
                _LOGGER.warning("worker %s waits %.1f s: %s", self._plan.name, pause, failure)
                self.wait(pause)
                continue
            pause = self.settings.poll
            if not handled and not (until_idle and not self._has_read()):
                self.wait(pause)

    def _coordinate_in_time(self) -> None:
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + min(self._retry, self._interval)
        self._retry = min(_MAX_PAUSE, self._retry * 2)
        changed = self.coordinate()
        self._retry = _FIRST_RETRY
        if changed:
            self._due = 0.0
        else:
            pause = self.settings.lease * _SOON if self._is_waiting else self._interval
            self._due = time.monotonic() + pause

    def _keep_renewing(self, ended: threading.Event) -> None:
        """Renew in time, and warn about a handler that takes longer than a lease."""
        warned: str | None = None
        while not ended.wait(self._interval):
            self.renew()
            call = self._delivery.calling()
            if call is not None and call.seconds > self.settings.lease and call.event != warned:
                warned = call.event
                _LOGGER.warning("worker %s: %s holds up its shards", self._plan.name, call)

    # Steps

    def coordinate(self) -> bool:
        """List the shards, and take or request leases up to an even share; returns whether it got any.

        Cost: a query and a listing of the shards, and a write for each lease that changes.
        """
        stream, is_latest = self._select_stream()
        leases = self._leases.all(stream)
        shards = self._store.run(streams.shards_of(stream))
        leases = self._leases.register(stream, leases, shards)
        for lease in leases:
            if lease.shard in self.held:
                self.held[lease.shard].note(lease)
        candidates = readable(leases, shards)
        choice = decide(candidates, self.id, self._leases.now())
        new = self._handed_over(candidates)
        new += [taken for free in choice.take if (taken := self._leases.take(free)) is not None]
        self._hold(new)
        if choice.request is not None:
            self._leases.request(choice.request)
        asked = choice.request is not None or any(lease.wanted == self.id for lease in candidates)
        self._is_waiting = asked or not is_latest
        self._is_settled = self._are_alive(candidates) and not self._is_waiting
        return bool(new)

    def _select_stream(self) -> tuple[str, bool]:
        """The stream to read, and whether it is the table's latest.

        If the table's stream was disabled and enabled again, the old stream is read to its end first.
        """
        table, from_now = self._plan.table, self.settings.start == "LATEST"
        latest = self._store.run(streams.stream_of(table))
        if self._start is None or self._start.stream != latest:
            start = self._leases.start(table, latest, from_now=from_now)
            if self._start is not None and self._start.stream != start.stream:
                for shard in list(self.held.values()):
                    self._release_shard(shard)
            self._start = start
        return self._start.stream, self._start.stream == latest

    def work(self) -> int:
        """Handle a page of each shard; returns how many events were handled or skipped.

        A throttled shard does not block the others. Raises its error if nothing could be handled.
        """
        before = self._delivery.counts["records"]
        failure: IsotoneError | None = None
        for shard in list(self.held.values()):
            try:
                self._work_on(shard)
            except IsotoneError as error:
                failure = raise_unless_transient(error)
        handled = self._delivery.counts["records"] - before
        if failure is not None and not handled:
            raise failure
        return handled

    def _work_on(self, shard: HeldShard) -> None:
        if self._stop.is_set() or shard.lease.wanted is not None or not shard.is_safe():
            self._release_shard(shard)
            return
        is_done = False
        try:
            is_done = self._delivery.deliver(shard.page(self.settings.batch), shard)
        finally:
            if not is_done:
                shard.rewind()
        if shard.is_over:
            self._release_shard(shard)
        elif shard.unsaved:
            shard.save()

    def renew(self) -> None:
        """Renew all leases. Cost: one write each."""
        self._with_each(HeldShard.renew, "renew")

    def release(self) -> None:
        """Release all leases, with their checkpoints."""
        try:
            self._withdraw()
        except IsotoneError as error:
            _LOGGER.warning("worker %s could not release its leases: %s", self._plan.name, error)
        self._with_each(self._release_shard, "release")
        self.held.clear()  # leases that could not be released expire

    def _with_each(self, step: Callable[[HeldShard], None], what: str) -> None:
        """Run a step for each shard; a failure does not stop the others."""
        for shard in list(self.held.values()):
            try:
                step(shard)
            except Exception as error:  # noqa: BLE001 - the next round may succeed, or the lease expires
                _LOGGER.warning("worker %s could not %s: %s", self._plan.name, what, error)

    def _withdraw(self) -> None:
        """Withdraw all requests; leases handed over meanwhile are released with the rest."""
        if self._start is None or not self._is_waiting:
            return
        self._is_waiting = False
        for lease in self._leases.all(self._start.stream):
            if lease.wanted == self.id:
                self._leases.withdraw(lease)
        self._hold(self._handed_over(self._leases.all(self._start.stream)))

    def is_idle(self) -> bool:
        """Whether this member has handled its whole share.

        It does not wait for the shards of other members that are known to be alive.
        """
        return self._has_read() and not self.coordinate() and self._is_settled

    def _has_read(self) -> bool:
        return all(shard.is_read for shard in self.held.values())

    def progress(self) -> WorkerProgress:
        """The progress of this member."""
        shards, now = list(self.held.values()), self._store.clock.now()
        return WorkerProgress(
            **self._delivery.counts,
            shards=len(shards),
            lost=self._leases.lost,
            lag=max((shard.lag(now) for shard in shards), default=0.0),
            calling=self._delivery.calling(),
        )

    # Taking and releasing leases

    def _handed_over(self, leases: Iterable[WorkerLease]) -> list[WorkerLease]:
        """Leases that others have handed to this member, and that it does not hold yet."""
        now = self._leases.now()
        mine = [lease for lease in leases if lease.owner == self.id and lease.is_live(now)]
        return [lease for lease in mine if lease.shard not in self.held]

    def _hold(self, leases: Iterable[WorkerLease]) -> None:
        assert self._start is not None
        for lease in leases:
            self.held[lease.shard] = HeldShard(
                self._leases, lease, self._plan.table, self._start.since
            )

    def _release_shard(self, shard: HeldShard) -> None:
        """Release a shard. If that fails, the next read of the leases shows the owner."""
        self.held.pop(shard.lease.shard, None)
        self._due = 0.0  # coordinate at once: the shard's children can be read now
        shard.release()

    def _are_alive(self, leases: Iterable[WorkerLease]) -> bool:
        """Whether every lease of other members has changed since it was first seen, so their owners are alive."""
        ours = {self.id} | self.siblings
        theirs = {lease.shard: lease for lease in leases if lease.owner not in ours}
        self._others = {shard: self._others.get(shard, now) for shard, now in theirs.items()}
        return all(self._others[shard] != now for shard, now in theirs.items())


class RunningWorker:
    """A worker that runs in threads; the end of the block stops it."""

    def __init__(
        self, members: Sequence[WorkerMember], *, until_idle: bool, progress: Progress | None = None
    ) -> None:
        self._members = members
        self._progress = progress
        self._failure: BaseException | None = None
        self._counts = deque([(time.monotonic(), 0)])  # (time, records handled)
        siblings = frozenset(member.id for member in members)
        for member in members:
            member.siblings = siblings
        self._threads = [
            Daemon(
                partial(self._run, member, until_idle),
                f"worker-{member.id}",
                end=self._ask_to_stop,
            )
            for member in members
        ]

    @property
    def progress(self) -> WorkerProgress:
        """The progress of all members."""
        now = time.monotonic()
        done = WorkerProgress.total(member.progress() for member in self._members)
        while len(self._counts) > 1 and now - self._counts[0][0] > _RATE_WINDOW:
            self._counts.popleft()
        since, before = self._counts[0]
        self._counts.append((now, done.records))
        return replace(done, rate=(done.records - before) / max(now - since, 0.001))

    def wait(self, stop: threading.Event | None = None) -> WorkerProgress:
        """Wait until all members have stopped. Setting `stop` stops them.

        Raises the error that stopped one of them.
        """
        due = time.monotonic() + _REPORTS
        while running := [thread for thread in self._threads if thread.is_alive]:
            if stop is not None and stop.is_set():
                self._ask_to_stop()
            running[0].join(_INTERRUPT_CHECK)
            if self._progress is not None and time.monotonic() >= due:
                due += _REPORTS
                self._progress(self.progress)
        if self._progress is not None:
            self._progress(self.progress)
        if self._failure is not None:
            raise self._failure
        return self.progress

    def stop(self) -> WorkerProgress:
        """Stop after the current events, and wait until the leases are released."""
        self._ask_to_stop()
        return self.wait()

    def _ask_to_stop(self) -> None:
        for member in self._members:
            member.stop()

    def _run(self, member: WorkerMember, until_idle: bool) -> None:
        try:
            member.run(until_idle=until_idle)
        except BaseException as error:  # noqa: BLE001 - `wait` raises it
            self._failure = error
            self._ask_to_stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *more: object) -> None:
        self._ask_to_stop()
        for thread in self._threads:
            thread.join()
        if kind is None and self._failure is not None:
            raise self._failure
