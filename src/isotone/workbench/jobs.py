"""A job of the page: runs in its own thread, can be watched and stopped, and reports how it ended.

A server that ends does not wait for the thread. So what a job writes must stand a kill.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from isotone.errors import IsotoneError
from isotone.moving import Progress, Stopped
from isotone.workbench.threads import in_thread


@dataclass
class Job:
    """One job. `state` is waiting, running, done, failed or stopped; it is set last, so what it tells is complete."""

    stop: threading.Event = field(default_factory=threading.Event)
    progress: Progress | None = None
    state: str = "waiting"
    error: str = ""

    @property
    def is_running(self) -> bool:
        """Whether its thread works."""
        return self.state == "running"

    def start(self, work: Callable[[], object], ended: Callable[[], object] | None = None) -> None:
        """Do the work in a thread, then call `ended`, whatever came of it. Called on the event loop."""
        self.state = "running"
        in_thread(self._run, work, ended)

    def note(self, progress: Progress) -> None:
        """Take the progress of the work."""
        self.progress = progress

    def status(self) -> dict[str, Any]:
        """How far it is, for the page."""
        state, progress = self.state, self.progress  # the state first: it is set last
        return {
            "state": state,
            "fault": self.error,
            "items": 0 if progress is None else progress.items,
            "of_items": 0 if progress is None else progress.of_items,
            "share": 0.0 if progress is None else progress.share,
            "seconds_left": None if progress is None else progress.seconds_left,
            "units": 0.0 if progress is None else progress.read_units + progress.write_units,
        }

    def _run(self, work: Callable[[], object], ended: Callable[[], object] | None) -> None:
        state = "failed"
        try:
            try:
                work()
            finally:
                if ended is not None:
                    ended()
            state = "stopped" if self.stop.is_set() else "done"
        except Stopped:
            state = "stopped"
        except (IsotoneError, OSError) as error:
            self.error = str(error)
        except BaseException as error:
            self.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            self.state = state
