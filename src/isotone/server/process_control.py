"""With --workers: orders between the supervisor and its processes: connection, channel, reload, stop, ready, failed.

An order is one byte on a Unix socket, some with a file descriptor. It is received by one `recvmsg`, because a descriptor
belongs to the byte with which it was sent. The end of the stream is an order to stop.
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
"""To a front: its channel to the process with the pages. From a front: send me such a channel."""
RELOAD: Final = b"r"
STOP: Final = b"s"
READY: Final = b"y"
"""To the supervisor: the process has started to serve."""
FAILED: Final = b"e"
"""To the supervisor: the process cannot start. The error follows, up to the end of the stream."""


class Order(NamedTuple):
    """An order, and the socket that came with it."""

    kind: bytes
    end: socket.socket | None


ENDED: Final = Order(STOP, None)


def send(control: socket.socket, kind: bytes, end: socket.socket | None = None) -> bool:
    """Send an order, with a copy of a socket; False if the other process has ended, or its queue is full."""
    if sys.platform == "win32":
        raise OSError("a server of several processes needs POSIX")
    try:
        if end is None:
            control.send(kind)
        else:
            socket.send_fds(control, [kind], [end.fileno()])
    except OSError:
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
