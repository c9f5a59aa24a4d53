"""Ctrl-C during a long job: the first one lets it end where it can be continued, the second one ends it at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stopped_by_interrupt(stop: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C inside the block set an event, and the second one raise `KeyboardInterrupt`."""

    def interrupt(_: int, __: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    try:
        before = signal.signal(signal.SIGINT, interrupt)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
