"""Members of a worker in threads: started, watched, and ended gracefully."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Self

from isotone.structures.worker.member import Member
from isotone.structures.worker.settings import Progress, WorkerProgress, together

_TICK: Final = 0.05  # seconds after which an interruption is noticed
_PROGRESS: Final = 1.0  # seconds between reports
_RATE: Final = 5.0  # seconds over which the rate is measured


class RunningWorker:
    """A worker that runs in threads; the end of the block stops it."""

    def __init__(
        self, members: Sequence[Member], *, until_idle: bool, progress: Progress | None = None
    ) -> None:
        self._members = members
        self._progress = progress
        self._failure: BaseException | None = None
        self._marks = deque([(time.monotonic(), 0)])  # how many records were handled when
        siblings = frozenset(member.id for member in members)
        for member in members:
            member.siblings = siblings
        self._threads = [
            threading.Thread(
                target=self._run, args=(member, until_idle), name=f"worker-{member.id}", daemon=True
            )
            for member in members
        ]
        for thread in self._threads:
            thread.start()

    @property
    def progress(self) -> WorkerProgress:
        """What all members have done so far."""
        done, now = together(member.progress() for member in self._members), time.monotonic()
        while len(self._marks) > 1 and now - self._marks[0][0] > _RATE:
            self._marks.popleft()
        since, before = self._marks[0]
        self._marks.append((now, done.records))
        return replace(done, rate=(done.records - before) / max(now - since, 0.001))

    def wait(self, stop: threading.Event | None = None) -> WorkerProgress:
        """Wait until all members have ended, or until `stop` is set and they have.

        Raises what ended one of them.
        """
        due = time.monotonic() + _PROGRESS
        while running := [thread for thread in self._threads if thread.is_alive()]:
            if stop is not None and stop.is_set():
                self._ask_to_stop()
            running[0].join(_TICK)
            if self._progress is not None and time.monotonic() >= due:
                due += _PROGRESS
                self._progress(self.progress)
        if self._progress is not None:
            self._progress(self.progress)
        if self._failure is not None:
            raise self._failure
        return self.progress

    def stop(self) -> WorkerProgress:
        """End after the events at hand, give the leases back, and wait for that."""
        self._ask_to_stop()
        return self.wait()

    def _ask_to_stop(self) -> None:
        for member in self._members:
            member.stop()

    def _run(self, member: Member, until_idle: bool) -> None:
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
