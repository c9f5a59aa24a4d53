"""A server's code without sockets: connections that take the bytes of requests, and whose answers go nowhere.

Whatever else a request costs (the kernel, a disk) would hide what a change of the code does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import isotone
from isotone.server.admission import Admission
from isotone.server.connection import ServerConnection
from isotone.server.dispatcher import Dispatcher
from isotone.server.monitor import Monitor

Handler = Callable[..., object]


class WiredServer:
    """The server of a database. Its event loop has no turns: `run_group` ends one."""

    def __init__(self, database: isotone.Database) -> None:
        loop: Any = SimpleNamespace(call_soon=deque[Handler](maxlen=1).append)
        self._monitor = Monitor(database, loop, lambda: 1)
        self._dispatcher = Dispatcher(database, loop)
        self.run_group = self._dispatcher.run_group
        self.close = self._dispatcher.stop

    def connect(self, kind: type[ServerConnection] = ServerConnection) -> ServerConnection:
        """A new connection. Its transport is made of C functions, as that of uvloop is."""
        connection = kind(self._dispatcher, Admission(), id, id, self._monitor)
        transport: Any = SimpleNamespace(
            write=deque[bytes](maxlen=1).append, is_closing=bool, get_extra_info=_ADDRESS.get
        )

        async def made() -> None:  # a connection asks for the loop that it runs on
            connection.connection_made(cast(asyncio.Transport, transport))

        asyncio.run(made())
        return connection


_ADDRESS = {"peername": ("127.0.0.1", 0)}
