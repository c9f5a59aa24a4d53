"""Notifies systemd (`Type=notify`, NOTIFY_SOCKET) that the server accepts connections."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import closing


def notify(state: bytes) -> None:
    """Send a state such as `READY=1` to the socket that `NOTIFY_SOCKET` names; do nothing without it.

    Raises `OSError` if the socket cannot be reached. (If ignored, systemd would stop the server after its time-out.)
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if sys.platform == "win32" or not address.startswith(("/", "@")):
        return
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as manager:
        manager.connect("\0" + address[1:] if address[0] == "@" else address)
        manager.send(state)
