"""One thread per export, import and bulk operation, so that no job waits while another waits for S3.

Another thread watches for new jobs, including those that other processes have left in the file.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from isotone.daemon import Daemon
from isotone.engine.engine import Engine
from isotone.engine.maintenance import IDLE_INTERVAL
from isotone.engine.slices import breathe, in_background
from isotone.errors import StorageBusy
from isotone.exchange.objects import ObjectStoreClosed
from isotone.operations.transfers import jobs

_RETRY: Final = 1.0  # seconds until a slice is retried whose failure could not be recorded
_BUSY: Final = 0.05  # the same, if another process was writing

log: logging.Logger = logging.getLogger("isotone")


class TransferThreads:
    """The threads of one database, in all of its regions. They end with their jobs, or when they are stopped."""

    def __init__(self, home: Engine) -> None:
        self._home = home
        self._due = threading.Event()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._jobs: dict[tuple[str, str], Daemon] = {}
        self._logged: set[str] = set()
        self._looking = Daemon(self._look, "isotone-transfers", end=self._end)

    @property
    def are_alive(self) -> bool:
        """Whether they run; False in a process that was forked since."""
        return self._looking.is_alive

    def wake(self) -> None:
        """Look for new jobs now."""
        self._due.set()

    def stop(self) -> None:
        """End all threads, and wait for them. The next process continues unfinished jobs."""
        self._end()
        self._looking.join()
        with self._lock:
            threads = list(self._jobs.values())
        for thread in threads:
            thread.join()

    def _end(self) -> None:
        """Ask all threads to end; a wait for a bucket is interrupted."""
        self._stopped.set()
        self._due.set()
        if self._home.objects is not None:
            self._home.objects.close()

    def _look(self) -> None:
        while not self._stopped.is_set():
            self._due.clear()
            delay = IDLE_INTERVAL
            for engine in list(self._home.regions.values()):
                try:
                    identities = jobs.due(engine)
                except Exception as error:  # noqa: BLE001 - the thread must survive it
                    self._note(engine, error)
                    identities, delay = [], _RETRY
                for identity in identities:
                    self._begin(engine, identity)
            self._due.wait(delay)

    def _begin(self, engine: Engine, identity: str) -> None:
        place = engine.region, identity
        with self._lock:
            if place not in self._jobs:
                self._jobs[place] = Daemon(
                    lambda: self._work(engine, identity),
                    f"isotone-transfer-{identity}",
                    end=self._end,
                )

    def _work(self, engine: Engine, identity: str) -> None:
        """Do the slices of a job until it is over or cannot continue."""
        try:
            delay: float | None = 0.0
            while delay is not None and not self._stopped.wait(delay):
                delay = self._slice(engine, identity)
        finally:
            with self._lock:
                del self._jobs[engine.region, identity]

    def _slice(self, engine: Engine, identity: str) -> float | None:
        """Do a slice; returns the seconds until the next one, or None if there is none."""
        try:
            with in_background():
                more = jobs.step_job(engine, identity)
                breathe()
        except ObjectStoreClosed:
            return None
        except StorageBusy:
            return _BUSY
        except Exception as error:  # noqa: BLE001 - the failure could not be recorded, so the job is still there
            self._note(engine, error)
            return _RETRY
        return 0.0 if more else None

    def _note(self, engine: Engine, error: Exception) -> None:
        """Log a failure once, and roll back whatever it has left open."""
        text = f"{type(error).__name__}: {error}"
        if text not in self._logged:
            self._logged.add(text)
            log.error("an export or an import is tried again: %s", text, exc_info=error)
        engine.abandon()
