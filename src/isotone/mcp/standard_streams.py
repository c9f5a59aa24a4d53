"""Standard input and output as the protocol's alone: one message a line, and nothing else among them.

    with StandardStreams() as streams:      # from here on, print() goes to standard error
        …
        async with streams.messages() as (read, write): …

A module of the user may print while it is imported, and a child may read: neither may touch the protocol's streams. The
lines are read in a thread that delays no end of the process: a read cannot be interrupted, and Ctrl-C must end it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Self, cast

import anyio
from mcp.server.stdio import stdio_server

_CHUNK: Final = 1 << 16


class StandardStreams:
    """The two streams of this process, for a `with` block."""

    def __enter__(self) -> Self:
        sys.stdout.flush()
        self._input, self._output = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(self._output, 1)
        os.close(self._output)
        # The input stays open: the thread may still wait for it, and its number must not name another file.

    @property
    def is_terminal(self) -> bool:
        """Whether a person has started this, where a client would have."""
        return os.isatty(self._input)

    @asynccontextmanager
    async def messages(self) -> AsyncIterator[tuple[Any, Any]]:
        """The protocol's streams of messages, for an `async with` block."""
        output = os.fdopen(self._output, "w", encoding="utf-8", newline="\n", closefd=False)
        lines = cast("anyio.AsyncFile[str]", _Lines(self._input))
        async with stdio_server(lines, anyio.wrap_file(output)) as messages:
            yield messages


class _Lines:
    """The lines of a file descriptor, for `async for`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        threading.Thread(target=self._read, name="isotone-mcp-input", daemon=True).start()

    def _read(self) -> None:
        rest = b""
        with suppress(OSError, RuntimeError):  # the loop has ended before the input
            while chunk := os.read(self._descriptor, _CHUNK):
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    self._add(line.decode(errors="replace"))
            self._add(None)

    def _add(self, line: str | None) -> None:
        self._loop.call_soon_threadsafe(self._lines.put_nowait, line)

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        return line
