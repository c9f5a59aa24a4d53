"""Decides which requests are too long for the event loop: by their bytes, or by the records they find.

The event loop of a server executes short requests itself. Its service names most of the others by their action and their
bytes (`is_long`). The rest show it when their records are found, before anything is computed or written: then a thread
that `hands_over` raises `TakesLong`, and the request begins again elsewhere. Every other thread goes on.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from isotone import limits
from isotone.errors import TakesLong

SHORT: Final = limits.KB
"""A body of up to this many bytes is never long by itself."""
MOST_REFUSED: Final = 16 * limits.KB
"""Bytes of a faulty request whose faults are found within some milliseconds."""
MOST_READ: Final = limits.MB
"""Bytes of items that are copied into a response within a millisecond."""

_LEGACY: Final = (
    8 * limits.KB
)  # bytes of legacy parameters that are translated within some milliseconds
_LEGACY_PARAMETERS: Final = re.compile(
    rb'"(?:AttributeUpdates|AttributesToGet|Expected|KeyConditions|QueryFilter|ScanFilter)"'
)
_MOST: Final = 64 * limits.KB  # bytes that are decoded within a millisecond
_MOST_OF: Final = {"PutItem": 128 * limits.KB, "BatchWriteItem": 128 * limits.KB}
_EXPRESSIONS: Final = 1500  # characters of expressions that are compiled within some milliseconds
# Shorter ones are usually used again, and then known already.
_EXPRESSION: Final = re.compile(rb'(?:Expression|Statement)"\s*:\s*"((?:[^"\\]|\\.){100,})')


class _HandingOver(threading.local):
    hands_over = False


this_thread: Final = _HandingOver()


def is_long(operation: str, body: bytes) -> bool:
    """Whether a request takes long by its action and its bytes."""
    size = len(body)
    if size <= SHORT:
        return False
    if size > _MOST_OF.get(operation, _MOST):
        return True
    if size > _LEGACY and _LEGACY_PARAMETERS.search(body) is not None:
        return True
    return sum(map(len, _EXPRESSION.findall(body))) > _EXPRESSIONS


def hand_over_if(is_long: bool) -> None:
    """Raise `TakesLong` in a thread that hands over. The request must not have changed anything yet."""
    if is_long and this_thread.hands_over:
        raise TakesLong


@contextmanager
def kept() -> Iterator[None]:
    """Nothing inside the block is handed over: it writes."""
    before = this_thread.hands_over
    this_thread.hands_over = False
    try:
        yield
    finally:
        this_thread.hands_over = before
