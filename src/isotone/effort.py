"""How long a request may compute in a thread that must not be held, such as the event loop of a server.

A thread may ask that its turns are bounded. Work that can take long announces how long (`spend`) before it begins; what does
not fit into the turn raises `Postponed`, and nothing has been done. Other threads compute as long as they want.

A thread that does such work instead gives way after each large piece of it (`give_way`): to parse half a megabyte holds
Python's lock for milliseconds, and another thread needs the lock several times for one small request.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

from isotone import limits
from isotone.errors import ApiError

A_TURN: Final = (
    4000.0  # microseconds that the requests of one turn of an event loop may compute in all
)
A_BYTE: Final = 0.01
"""Microseconds to hash, to decompress or to parse a byte of a request."""
LARGE_PIECE: Final = 64 * limits.KB
"""Bytes that hold Python's lock for about a millisecond while they are parsed."""
_A_WHILE: Final = 0.001  # seconds, in which others answer a few small requests


class Postponed(ApiError):
    """A request does not fit into this turn: it is executed in another thread. No caller gets this error.

    It is an `ApiError` because a transaction ends as with one: nothing was changed.
    """


class _Turn(threading.local):
    is_bounded = False
    gives_way = False
    left: float = inf


turn: Final = _Turn()
"""The turn of this thread: whether its turns are bounded, and the microseconds that are left of this one; whether it
gives way to other threads."""


@contextmanager
def one_turn() -> Iterator[None]:
    """A turn of this thread. Work in it that takes longer raises `Postponed` if the turns of this thread are bounded."""
    turn.left = A_TURN if turn.is_bounded else inf
    try:
        yield
    finally:
        turn.left = inf


@contextmanager
def unbounded() -> Iterator[None]:
    """Work that must not be interrupted: it costs nothing of the turn."""
    left, turn.left = turn.left, inf
    try:
        yield
    finally:
        turn.left = left


@contextmanager
def giving_way() -> Iterator[None]:
    """Long work in a thread of its own, which gives way to others."""
    turn.gives_way = True
    try:
        yield
    finally:
        turn.gives_way = False


def spend(microseconds: float) -> None:
    """Announce work. Raises `Postponed` if it does not fit into the turn, and leaves the turn to others."""
    if microseconds > turn.left:
        raise Postponed
    turn.left -= microseconds


def give_way() -> None:
    """After a large piece of work, while no lock is held: let others work for a while, if this thread is for long work."""
    if turn.gives_way:
        time.sleep(_A_WHILE)
