"""Background threads that end before the interpreter does.

At exit the interpreter kills daemon threads wherever they are, with the locks that they hold. Cleanup that runs after
that, such as a `with` block in a generator, would wait for these locks forever. So a `Daemon` has a function that asks
it to end. At exit all daemons are asked while they still run, and have one second.
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

EXIT_WAIT: Final = 1.0
"""Seconds that the interpreter waits at exit for all daemons together."""

log: logging.Logger = logging.getLogger("isotone")


class Daemon:
    """A running thread, which calls `target` once.

    `end` asks the thread to end and does not wait for it. It may be called from any thread, and more than once. Raises
    `RuntimeError` at exit, when no thread can be started.
    """

    __slots__ = ("__weakref__", "_target", "_thread", "end")

    def __init__(
        self, target: Callable[[], object], name: str, *, end: Callable[[], object]
    ) -> None:
        if sys.is_finalizing():  # the thread would never run, and start() would wait for it
            raise RuntimeError(f"the interpreter ends: the thread {name} cannot start")
        self.end: Callable[[], object] = end
        self._target = target
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        _RUNNING.add(self)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs. It does not in a forked process, or after the interpreter has killed it."""
        return self._thread.is_alive() and not sys.is_finalizing()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended, unless it never will."""
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
    deadline = time.monotonic() + EXIT_WAIT
    for daemon in running:
        try:
            daemon.end()
        except Exception:  # the others must still be asked
            log.exception("a thread could not be asked to end")
    for daemon in running:
        daemon.join(max(0.0, deadline - time.monotonic()))


atexit.register(_end_all)
