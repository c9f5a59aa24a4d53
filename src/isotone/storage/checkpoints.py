"""Checkpoints: when the log (`-wal`) is copied into the file, by which connection, and so how large it grows.

SQLite makes a checkpoint in the commit after which the log has a thousand pages. That commit takes as long as writing
the pages and two syncs, and everyone who needs the connection waits. For a request this is part of the price of its
write. Background work would make others pay, because it writes as much in a second as requests do in an hour. So
commits inside `deferred` leave the log alone. The end of the block copies it through a separate connection, while
others use the main one. If the log has grown to four times that length by then, the next commit copies it after all.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import apsw

from isotone.storage import forking
from isotone.storage.file import LOG_PAGES

LONGEST: Final = 4000  # pages of the log; a commit copies a longer one in any case

log: logging.Logger = logging.getLogger("isotone")


class Checkpoints:
    """The checkpoints of one file."""

    __slots__ = (
        "__weakref__",
        "_copied",
        "_is_closed",
        "_open",
        "blocks",
        "connection",
        "lock",
        "written",
    )

    def __init__(self, open_connection: Callable[[], apsw.Connection]) -> None:
        self._open = open_connection
        self._copied = 0
        self._is_closed = False
        self.connection: Any = None
        self.blocks: int = 0
        """How many `deferred` blocks are open."""
        self.written: int = 0
        """Pages that the main connection had written to the log at its last commit in such a block."""
        self.lock: threading.Lock = threading.Lock()

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Copy the log at the end of the block rather than in commits inside it."""
        with self.lock:
            self.blocks += 1
        try:
            yield
        finally:
            with self.lock:
                self.blocks -= 1
                if self.written - self._copied >= LOG_PAGES and not self._is_closed:
                    self._copy()

    def copy_now(self) -> None:
        """Sync the log and copy it."""
        with self.lock:
            if not self._is_closed:
                self._copy()

    def _copy(self) -> None:
        written = self.written
        try:
            if self.connection is None:
                self.connection = self._open()
                forking.register(self)
            self.connection.wal_checkpoint()
        except apsw.BusyError:
            pass  # another connection is copying it
        except apsw.Error as error:
            # Nothing is lost, because the log has everything. If the disk is full, a commit will raise.
            log.warning(
                "the log could not be copied into its file, which is tried again: %s", error
            )
        self._copied = written

    def close(self) -> None:
        """Wait for a running checkpoint, and start no more."""
        with self.lock:
            self._is_closed = True
            if self.connection is not None:
                self.connection.close(True)

    def disown(self) -> None:
        """In a forked child: never use the connection again."""
        self._is_closed, self.connection = True, None
