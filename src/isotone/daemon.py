"""Threads in the background that end before the interpreter does.

At its end the interpreter stops daemon threads wherever they are, with the locks that they hold. What is cleaned up after
that, such as a `with` block in a generator, would wait for them for ever. So a `Daemon` says how it is asked to end: at exit
all are asked while they still run, and have a second. After that nobody waits for them.
"""

from __future__ import annotations

import atexit
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Final
from weakref import WeakSet

LONGEST_END: Final = 1.0
"""Seconds that the interpreter waits at its end for all daemons together."""

log = logging.getLogger("isotone")


class Daemon:
    """A running thread, which calls `target` once.

    `end` asks it to end, from any thread and more than once if need be, and does not wait for that.
    Raises `RuntimeError` while the interpreter ends: no thread can start then.
    """

    __slots__ = ("__weakref__", "_target", "_thread", "end")

    def __init__(
        self, target: Callable[[], object], name: str, *, end: Callable[[], object]
    ) -> None:
        if sys.is_finalizing():  # the thread would never begin, and its starter wait for that
            raise RuntimeError(f"the interpreter ends: the thread {name} cannot start")
        self.end = end
        self._target = target
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        _RUNNING.add(self)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether it runs: not in a process that was forked since, nor after the interpreter has stopped it."""
        return self._thread.is_alive() and not sys.is_finalizing()

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended, unless it never will."""
        if self.is_alive:
            self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._target()
        finally:
            _RUNNING.discard(self)


_RUNNING: Final[WeakSet[Daemon]] = WeakSet()


def _end_all() -> None:
    running = [daemon for daemon in list(_RUNNING) if daemon.is_alive]
    deadline = time.monotonic() + LONGEST_END
    for daemon in running:
        try:
            daemon.end()
        except Exception:  # the others must be asked, too
            log.exception("a thread could not be asked to end")
    for daemon in running:
        daemon.join(max(0.0, deadline - time.monotonic()))


atexit.register(_end_all)
