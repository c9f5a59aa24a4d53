"""Runs one role of a server (front, writer, pages) in a process that the supervisor has forked, until it is told to stop.

The signals that a terminal, or a service manager, sends to all processes of a group are left to the supervisor. A process
without a supervisor has nobody to serve for: it stops as if it were told to.
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
    """What a process does, on its event loop."""

    async def begin(self) -> None:
        """Serve from now on."""

    def obey(self, order: Order) -> None:
        """Do what the supervisor says, unless it says that the process should stop."""

    async def end(self) -> None:
        """Finish what was accepted, and close everything."""


def run(
    let_go: Callable[[], None], make: Callable[[socket.socket], ProcessRole], control: socket.socket
) -> NoReturn:
    """Be a role until the supervisor stops it, and then end the process, which is a fork of the supervisor."""
    if sys.platform == "win32":
        raise OSError("a server of several processes needs POSIX")
    status = 1
    try:
        let_go()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the supervisor obeys them
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
    """Tell the supervisor why this process could not begin."""
    if not orders.send(control, orders.FAILED + bytes(frame([failed(0, error)]))):
        log.error("a process of the server has failed: %s", error)


async def _serve(make: Callable[[socket.socket], ProcessRole], control: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    role = make(control)

    def obey() -> None:
        for order in orders.received(control):
            if order.kind == orders.STOP:
                loop.remove_reader(control.fileno())
                stopping.set()
                return
            try:
                role.obey(order)
            except Exception:
                log.exception("an order of the supervisor could not be obeyed")

    await role.begin()
    loop.add_reader(control.fileno(), obey)
    orders.send(control, orders.READY)
    gc.freeze()  # what is loaded by now stays: a collection need not look at it
    await stopping.wait()
    await role.end()
