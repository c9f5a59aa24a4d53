"""The progress of long commands (--progress): a live line, a line a minute, or JSON for scripts; --quiet.

    with progress_output("copy", arguments) as output:
        moving.copy(…, progress=output.show)

All output is on standard error. On a terminal, one line is updated. Elsewhere, the first line comes after a few
seconds, and then one a minute, so that a log shows that the command is alive. With `--progress json` each line is an
object, at most one a second for each table; `state` says what the command is doing.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, Final, Literal, Self

from isotone.cli.output import LiveLine

Kind = Literal["auto", "lines", "json", "none"]

FIRST_LINE: Final = 5.0  # seconds until the first line, if standard error is no terminal
LINE_EVERY: Final = 60.0
_JSON_EVERY: Final = 1.0


def add_progress_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that chooses how progress is shown."""
    parser.add_argument(
        "--progress",
        choices=("auto", "lines", "json", "none"),
        default="auto",
        help="on standard error: a live line on a terminal and a line a minute elsewhere (auto), lines, JSON lines, or none",
    )


class ProgressOutput:
    """Shows the progress of a command until the end of a `with` block.

    `first` is the number of seconds until the first line, if standard error is no terminal.
    """

    def __init__(
        self,
        command: str,
        kind: Kind = "auto",
        *,
        first: float = FIRST_LINE,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        is_live = kind == "auto" and sys.stderr.isatty()
        self._command = command
        self._line = LiveLine() if is_live else None
        self._is_json = kind == "json"
        self._is_silent = kind == "none"
        self._now = now
        self._began = now()
        self._due: dict[str, float] = {}  # by table
        self._first = self._began if self._is_json else self._began + first
        self._every = _JSON_EVERY if self._is_json else LINE_EVERY
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    @property
    def is_live(self) -> bool:
        """Whether a line on a terminal is updated."""
        return self._line is not None

    def show(
        self,
        progress: object,
        members: Mapping[str, Any] | None = None,
        *,
        state: str = "running",
        at_once: bool = False,
    ) -> None:
        """Show a text, or an object by its text and its members; with `at_once`, without waiting for the next update.

        `members` are the members of the JSON, unless they are the object's own.
        """
        if self._is_silent:
            return
        if self._line is not None:
            self._line.show(progress, at_once=at_once)
            return
        found = _members(progress) if members is None else members
        if not self._is_due(str(found.get("table", "")), at_once=at_once):
            return
        if self._is_json:
            self._print_json(state, found)
        else:
            _print(str(progress))

    def end(self, state: str, members: Mapping[str, Any] | None = None) -> None:
        """Print in JSON how the command ended."""
        self.clear()
        if self._is_json:
            self._print_json(state, members or {})

    def clear(self) -> None:
        """Erase the live line."""
        if self._line is not None:
            self._line.clear()

    def _is_due(self, table: str, *, at_once: bool) -> bool:
        with self._lock:
            now = self._now()
            if now < self._due.get(table, self._first) and not at_once:
                return False
            self._due[table] = now + self._every
            return True

    def _print_json(self, state: str, members: Mapping[str, Any]) -> None:
        seconds = round(self._now() - self._began, 3)
        head = {"command": self._command, "state": state, "seconds": seconds}
        _print(
            json.dumps({**members, **head}, ensure_ascii=False, separators=(",", ":"), default=str)
        )


def progress_output(
    command: str, arguments: argparse.Namespace, *, first: float = FIRST_LINE
) -> ProgressOutput:
    """The output that a command's arguments ask for; `--quiet` shows progress only if `--progress` is given."""
    kind: Kind = getattr(arguments, "progress", "auto")
    if kind == "auto" and getattr(arguments, "quiet", False):
        kind = "none"
    return ProgressOutput(command, kind, first=first)


def _members(progress: object) -> Mapping[str, Any]:
    if is_dataclass(progress) and not isinstance(progress, type):
        found: dict[str, Any] = asdict(progress)
        for name in ("share", "seconds_left"):
            if hasattr(progress, name):
                found[name] = getattr(progress, name)
        return found
    return {"text": str(progress)}


def _print(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
