"""Decides which requests are too long for the event loop (`TakesLong`): by their bytes, or by the records they find.

The event loop of a server executes short requests itself. It recognizes most of the long ones by their action and size
(`is_long`). The others are recognized when their records are found, before anything is computed or written: in the event
loop's thread (`raises_if_long`) they raise `TakesLong`, and the request starts again in a lane. In other threads they run.
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

# Bytes of legacy parameters that are translated within some milliseconds.
_LEGACY: Final = 8 * limits.KB
_LEGACY_PARAMETERS: Final = re.compile(
    rb'"(?:AttributeUpdates|AttributesToGet|Expected|KeyConditions|QueryFilter|ScanFilter)"'
)
_MOST: Final = 64 * limits.KB  # bytes that are decoded within a millisecond
_MOST_OF: Final = {"PutItem": 128 * limits.KB, "BatchWriteItem": 128 * limits.KB}
_EXPRESSIONS: Final = 1500  # characters of expressions that are compiled within some milliseconds
# Shorter ones are usually used again, and then known already.
_EXPRESSION: Final = re.compile(rb'(?:Expression|Statement)"\s*:\s*"((?:[^"\\]|\\.){100,})')


class _ThreadMode(threading.local):
    raises_if_long = False


this_thread: Final = _ThreadMode()


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


def raise_if_long(is_long: bool) -> None:
    """Raise `TakesLong` in a thread with `raises_if_long`. The request must not have changed anything yet."""
    if is_long and this_thread.raises_if_long:
        raise TakesLong


@contextmanager
def never_raising() -> Iterator[None]:
    """Let nothing inside the block raise `TakesLong`, because it writes."""
    before = this_thread.raises_if_long
    this_thread.raises_if_long = False
    try:
        yield
    finally:
        this_thread.raises_if_long = before
