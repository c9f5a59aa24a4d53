"""Orders between the supervisor of a server and its processes: one byte each, some with a socket.

They travel over a Unix socket, one `recvmsg` for each: a socket belongs to the byte with which it was sent. The end of the
socket is an order, too: whoever is left stops.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

CONNECTION: Final = b"c"
"""To a front: a connection of a client."""
CHANNEL: Final = b"w"
"""To a front: its channel to the writer. To the writer: its channel to a front."""
PAGES: Final = b"p"
"""To a front: its channel to the process with the pages. From a front: it needs one."""
RELOAD: Final = b"r"
STOP: Final = b"s"
READY: Final = b"y"
"""To the supervisor: the process serves from now on."""
FAILED: Final = b"e"
"""To the supervisor: the process cannot begin; the reason follows, to the end of the socket."""


class Order(NamedTuple):
    """An order, and the socket that came with it."""

    kind: bytes
    end: socket.socket | None


ENDED: Final = Order(STOP, None)


def send(control: socket.socket, kind: bytes, end: socket.socket | None = None) -> bool:
    """Send an order, with a copy of a socket; False if the other process does not take it now."""
    if sys.platform == "win32":
        raise OSError("a server of several processes needs POSIX")
    try:
        if end is None:
            control.send(kind)
        else:
            socket.send_fds(control, [kind], [end.fileno()])
    except OSError:  # it has ended, or its queue is full
        return False
    return True


def received(control: socket.socket) -> Iterator[Order]:
    """The orders that have arrived; `ENDED` last if the other process has ended."""
    if sys.platform == "win32":
        raise OSError("a server of several processes needs POSIX")
    while True:
        try:
            kind, ends, _, _ = socket.recv_fds(control, 1, 1)
        except BlockingIOError:
            return
        except OSError:
            kind, ends = b"", []
        if not kind:
            yield ENDED
            return
        yield Order(kind, socket.socket(fileno=ends[0]) if ends else None)
