"""A line on a terminal that shows the progress of a command, on standard error."""

from __future__ import annotations

import sys
import time
from shutil import get_terminal_size
from typing import Final

_OVER: Final = "\r\x1b[K"  # erases the current line
_EVERY: Final = 0.5  # seconds


class LiveLine:
    """Shows one text after the other in the same place; nothing if standard error is not a terminal."""

    def __init__(self, *, silent: bool = False) -> None:
        self._is_silent = silent or not sys.stderr.isatty()
        self._shown = time.monotonic()

    def show(self, text: object) -> None:
        """Replace the text, at most twice a second."""
        now = time.monotonic()
        if self._is_silent or now - self._shown < _EVERY:
            return
        self._shown = now
        width = get_terminal_size().columns - 1  # a wrapped line could not be erased
        sys.stderr.write(_OVER + str(text)[:width])
        sys.stderr.flush()

    def clear(self) -> None:
        """Erase the line."""
        if not self._is_silent:
            sys.stderr.write(_OVER)
            sys.stderr.flush()
