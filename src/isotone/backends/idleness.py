"""Whether a connection that nobody used for a while can be used again.

A server ends idle connections when it pleases. Its end is something to read though nothing was asked,
which can be seen without reading; so a request is not lost to a connection that was gone before.
"""

from __future__ import annotations

import select
from typing import Final

LONGEST_IDLE: Final = 20.0  # seconds; routers between may forget a connection without a word


def is_quiet(descriptor: int) -> bool:
    """Whether a socket is open with nothing to read."""
    if descriptor < 0:
        return False
    if not hasattr(select, "poll"):  # Windows, whose select has no limit on descriptors
        return not select.select((descriptor,), (), (), 0)[0]
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return not poll.poll(0)
