"""os.fork() and SQLite: forks wait for checkpoints, and a child never touches its parent's connections.

Checkpoints run in background threads that no engine lock covers. A fork waits until none is running: otherwise the
child would inherit SQLite's internal locks in the state that threads held them in. The child neither uses nor frees the
connections again, because SQLite does not even allow closing them there.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Final, Protocol
from weakref import WeakSet


class ForkableConnection(Protocol):
    """A worker with a connection; it holds `lock` while it uses `connection`."""

    lock: threading.Lock
    connection: Any

    def disown(self) -> None:
        """Never use the connection again."""


_workers: Final[WeakSet[ForkableConnection]] = WeakSet()
_paused: Final[list[ForkableConnection]] = []


def register(worker: ForkableConnection) -> None:
    """Make forks wait for a worker from now on."""
    _workers.add(worker)


def leak(connection: object) -> None:
    """Keep the parent's connection from being garbage-collected in the child."""
    import ctypes  # slow to import, and rarely needed

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _pause() -> None:
    for worker in sorted(_workers, key=id):
        worker.lock.acquire()
        _paused.append(worker)


def _resume() -> None:
    while _paused:
        _paused.pop().lock.release()


def _resume_in_child() -> None:
    for worker in _paused:
        leak(worker.connection)
        worker.disown()
    _resume()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_pause, after_in_parent=_resume, after_in_child=_resume_in_child)
