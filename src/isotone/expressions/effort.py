"""How long a request may compute in a thread that must not be held, such as the event loop of a server.

A thread may ask that its turns are bounded. Work that can take long announces how long (`spend`) before it begins; what does
not fit into the turn raises `Postponed`, and nothing has been done. Other threads compute as long as they want.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

from isotone.errors import ApiError

A_TURN: Final = (
    4000.0  # microseconds that the requests of one turn of an event loop may compute in all
)


class Postponed(ApiError):
    """A request does not fit into this turn: it is executed in another thread. No caller gets this error.

    It is an `ApiError` because a transaction ends as with one: nothing was changed.
    """


class _Turn(threading.local):
    is_bounded = False
    left: float = inf


turn: Final = _Turn()
"""The turn of this thread: whether its turns are bounded, and the microseconds that are left of this one."""


@contextmanager
def unbounded() -> Iterator[None]:
    """Work that must not be interrupted: it costs nothing of the turn."""
    left, turn.left = turn.left, inf
    try:
        yield
    finally:
        turn.left = left


def spend(microseconds: float) -> None:
    """Announce work. Raises `Postponed` if it does not fit into the turn."""
    turn.left -= microseconds
    if turn.left < 0:
        raise Postponed
