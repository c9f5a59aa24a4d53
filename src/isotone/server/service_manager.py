"""Tells the service manager that started the server (systemd, `Type=notify`) that it accepts connections."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import closing


def notify(state: bytes) -> None:
    """Send a state such as `READY=1` to the socket that `NOTIFY_SOCKET` names; without one, nobody waits for it.

    Raises `OSError` if the socket cannot be reached: the manager would wait until its time-out, and then stop the server.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if sys.platform == "win32" or not address.startswith(("/", "@")):
        return
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as manager:
        manager.connect("\0" + address[1:] if address[0] == "@" else address)
        manager.send(state)
