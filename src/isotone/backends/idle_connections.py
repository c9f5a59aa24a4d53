"""When an idle connection may be used again: how old it may be, and whether its socket is quiet.

A server may close an idle connection at any time. Its socket then becomes readable although no request is
outstanding; `is_quiet` polls for that before a request is sent on it.
"""

from __future__ import annotations

import select
import sys
from typing import Final

LONGEST_IDLE: Final = 20.0  # seconds; routers may drop an idle connection without notice


def is_quiet(descriptor: int) -> bool:
    """Whether a socket is open with nothing to read."""
    if descriptor < 0:
        return False
    if sys.platform == "win32":  # its select has no limit on descriptors
        return not select.select((descriptor,), (), (), 0)[0]
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return not poll.poll(0)
