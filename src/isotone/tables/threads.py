"""Runs blocking calls of the workbench in threads of their own: calls that wait for a disk, a network, or a simulation.

Each call has a thread of its own, so an engine that does not answer blocks no other call, and the event loop's executor
stays free for the server. The threads are daemons: none delays the end of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")


def in_thread(
    function: Callable[P, R], /, *arguments: P.args, **named: P.kwargs
) -> asyncio.Future[R]:
    """Call a function in a thread; returns the future of its result at once."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()

    def settle(setter: Callable[[Any], None], result: Any) -> None:
        if not future.done():
            setter(result)

    def run() -> None:
        outcome: tuple[Callable[[Any], None], Any]
        try:
            outcome = future.set_result, function(*arguments, **named)
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            outcome = future.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing awaits the result
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name="isotone-workbench", daemon=True).start()
    return future


def in_threads(
    function: Callable[[V], R], values: Sequence[V], threads: int
) -> list[R | BaseException]:
    """Call a function with each value, in several threads; returns results or exceptions in the order of the values."""
    waiting: SimpleQueue[int] = SimpleQueue()
    for place in range(len(values)):
        waiting.put(place)
    outcomes: dict[int, R | BaseException] = {}

    def run() -> None:
        with contextlib.suppress(Empty):
            while True:
                place = waiting.get_nowait()
                try:
                    outcomes[place] = function(values[place])
                except BaseException as error:  # noqa: BLE001 - it is returned
                    outcomes[place] = error

    running = [
        threading.Thread(target=run, name="isotone-workbench", daemon=True)
        for _ in range(min(threads, len(values)))
    ]
    for each in running:
        each.start()
    for each in running:
        each.join()
    return [outcomes[place] for place in range(len(values))]
