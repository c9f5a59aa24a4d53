"""The main function of a process that the supervisor forked (--workers): front, writer or pages; its signals.

It ignores SIGINT, SIGTERM and SIGHUP, which a terminal or a service manager sends to all processes of a group: only the
supervisor handles them. A process whose supervisor has died stops, too.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import NoReturn, Protocol

from isotone.errors import IsotoneError
from isotone.server import process_control as orders
from isotone.server.listener import SWITCH_INTERVAL, new_event_loop
from isotone.server.process_control import Order
from isotone.server.process_messages import failed, frame

log: logging.Logger = logging.getLogger("isotone.server")


class ProcessRole(Protocol):
    """The work of a process, on its event loop."""

    async def begin(self) -> None:
        """Start to serve."""

    def handle(self, order: Order) -> None:
        """Execute an order of the supervisor, other than the one to stop."""

    async def end(self) -> None:
        """Answer accepted requests, and close everything."""


def run(
    close_inherited: Callable[[], None],
    make: Callable[[socket.socket], ProcessRole],
    control: socket.socket,
) -> NoReturn:
    """In a fork of the supervisor: run a role until the order to stop, then end the process.

    `close_inherited` closes the supervisor's files in this process.
    """
    if sys.platform == "win32":
        raise OSError("a server of several processes needs POSIX")
    status = 1
    try:
        close_inherited()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        sys.setswitchinterval(SWITCH_INTERVAL)
        control.setblocking(False)
        loop = new_event_loop()
        loop.run_until_complete(_serve(make, control))
        status = 0
    except IsotoneError as error:
        _report(control, error)
    except BaseException:
        log.exception("a process of the server has failed")
    finally:
        logging.shutdown()
        os._exit(status)


def _report(control: socket.socket, error: IsotoneError) -> None:
    """Send the supervisor the error with which this process could not start."""
    if not orders.send(control, orders.FAILED + bytes(frame([failed(0, error)]))):
        log.error("a process of the server has failed: %s", error)


async def _serve(make: Callable[[socket.socket], ProcessRole], control: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    role = make(control)

    def handle() -> None:
        for order in orders.received(control):
            if order.kind == orders.STOP:
                loop.remove_reader(control.fileno())
                stopping.set()
                return
            try:
                role.handle(order)
            except Exception:  # a fault in one order must not end the process with all its requests
                log.exception("an order of the supervisor could not be executed")

    await role.begin()
    loop.add_reader(control.fileno(), handle)
    orders.send(control, orders.READY)
    gc.freeze()  # garbage collections skip the loaded modules
    await stopping.wait()
    await role.end()
