"""Work inside SQLite that no lock of an engine covers: checkpoints, in threads for background work.

A fork waits until none of it runs: a child would inherit SQLite's own locks as they are, held by threads that it does not
have. In the child the connections are never used again, nor freed, because SQLite does not even allow closing them there.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Final, Protocol
from weakref import WeakSet


class ForkableConnection(Protocol):
    """`lock` is held while it uses `connection`."""

    lock: threading.Lock
    connection: Any

    def disown(self) -> None:
        """Never use the connection again."""


_workers: Final[WeakSet[ForkableConnection]] = WeakSet()
_paused: Final[list[ForkableConnection]] = []


def register(worker: ForkableConnection) -> None:
    """Let forks wait for a worker from now on."""
    _workers.add(worker)


def leak(connection: object) -> None:
    """Keep the connection of a parent process from being freed in its child."""
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
