"""The audit log (--audit-log): a JSON line for each request with time, key, user, source, action, tables and outcome.

    {"time": "2026-01-01T12:00:00.123Z", "key": "ISOT…", "user": "ann", "source": "10.0.0.7", "action": "PutItem",
     "tables": ["Orders"], "outcome": "ok", "status": 200, "error": null}

A line has no secrets and no values of items. Of an error it has only the name, because messages quote values. The line is
written when the request is answered. If the file cannot be written (the disk is full), the request is answered all the same,
and the line goes to the server's own log as an error. If the file was deleted, a new one is created.

The reader of a pipe may not read. The server waits for it once, half a second, and not again before it reads.
"""

from __future__ import annotations

import errno
import logging
import mmap
import os
import select
import stat
import sys
import time
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Final

import msgspec

from isotone.clock import Clock, milliseconds
from isotone.errors import (
    AccessDeniedException,
    ApiError,
    ConnectionFailed,
    ExpiredTokenException,
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    UnrecognizedClientException,
    UsageError,
)
from isotone.output_paths import OutputPath, check_output

STANDARD_OUTPUT: Final = "-"
_LONGEST: Final = 256  # characters of a text that a client chose
_WAIT: Final = 500  # milliseconds for the reader of a pipe
_AT_ONCE: Final = 4096  # bytes that a pipe takes without blocking, if it takes any
_REFUSALS: Final = (
    AccessDeniedException,
    ExpiredTokenException,
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    UnrecognizedClientException,
)
log: logging.Logger = logging.getLogger("isotone.server")


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `key` is that of the signature, even of a wrong one; `user` is set only if the signature is right."""

    key: str | None = None
    user: str | None = None
    source: str
    action: str | None = None
    tables: Sequence[str] = ()


class _AuditLine(msgspec.Struct, frozen=True):
    time: str
    key: str | None
    user: str | None
    source: str
    action: str | None
    tables: Sequence[str]
    outcome: str
    status: int
    error: str | None


def audit_output(target: str | PathLike[str]) -> OutputPath:
    """The `OutputPath` of an audit log: lines are appended to it; it may be a pipe, or a terminal."""
    return OutputPath(
        "--audit-log (audit_log=)",
        target,
        may_stream=True,
        is_appended=True,
        needs_folder=False,
        begins=(b'{"time":',),
    )


class TornLine:
    """Whether the last line of a log is incomplete, so that the next write must begin with a line feed."""

    __slots__ = ("_is_there",)

    def __init__(self) -> None:
        self._is_there: bytearray | mmap.mmap = bytearray(1)

    @property
    def is_there(self) -> bool:
        """Whether the last line is incomplete."""
        return self._is_there[0] != 0

    @is_there.setter
    def is_there(self, is_there: bool) -> None:
        self._is_there[0] = is_there

    def share(self) -> None:
        """Keep the value in memory that processes share which are forked from now on."""
        self._is_there = mmap.mmap(-1, 1)


class AuditLog:
    """A file to which lines are added, or standard output.

    Raises OSError if it cannot be opened, and `UsageError` for a file that must not be written.
    """

    def __init__(self, target: str | PathLike[str], clock: Clock) -> None:
        self._target = target
        self._clock = clock
        self._is_stalled = False  # whether the reader of a pipe was waited for in vain
        self._use(self._opened())
        self._torn = TornLine()
        self._torn.is_there = self._ends_within_a_line()
        self._second = (-1, "")

    def _opened(self) -> int:
        if self._target == STANDARD_OUTPUT:
            return os.dup(1)
        check_output(audit_output(self._target))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
        try:
            return os.open(self._target, flags, 0o600)
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise OSError(errno.ENXIO, "no process reads this pipe") from None
            raise

    def _use(self, file: int) -> None:
        self._file = file
        self._may_block = sys.platform != "win32" and not stat.S_ISREG(os.fstat(file).st_mode)

    def _ends_within_a_line(self) -> bool:
        """Whether the file's last line is incomplete, because an earlier process died or the disk was full."""
        if self._target == STANDARD_OUTPUT or not Path(self._target).is_file():
            return False
        try:
            with Path(self._target).open("rb") as file:
                if not file.seek(0, os.SEEK_END):
                    return False
                file.seek(-1, os.SEEK_END)
                return file.read(1) != b"\n"
        except PermissionError:
            return True  # the file can be written but not read: an empty line does no harm

    def use(self, torn: TornLine) -> None:
        """Share the state of the last line with other processes that write to the same log."""
        torn.is_there = torn.is_there or self._torn.is_there
        self._torn = torn

    def reopen(self) -> None:
        """Open the file by its name again: log rotation may have moved the old one away."""
        try:
            file = self._opened()
        except (OSError, UsageError) as error:
            log.error("the audit log stays where it is: %s", error)
            return
        os.close(self._file)
        self._use(file)
        self._torn.is_there = self._ends_within_a_line()

    def _is_deleted(self) -> bool:
        """Whether the open file was deleted: it has no name any more."""
        is_named = self._file >= 0 and self._target != STANDARD_OUTPUT
        return is_named and not os.fstat(self._file).st_nlink

    def close(self) -> None:
        """Close the file. Later lines go to the server's log."""
        os.close(self._file)
        self._file = -1

    def write(self, entry: AuditEntry, result: bytes | ApiError | ConnectionFailed | int) -> None:
        """Add a line for a request and its result: a response, an error, or the status of a request that was not decoded."""
        outcome, status, error = _outcome(result)
        line = _AuditLine(
            self._time(),
            _short(entry.key),
            entry.user,
            entry.source,
            _short(entry.action),
            entry.tables,
            outcome,
            status,
            error,
        )
        self._add(msgspec.json.encode(line) + b"\n")

    def _time(self) -> str:
        """The time with milliseconds; the text of each second is formatted once."""
        second, rest = divmod(milliseconds(self._clock), 1000)
        if second != self._second[0]:
            self._second = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._second[1]}.{rest:03}Z"

    def _add(self, line: bytes) -> None:
        if self._is_deleted():
            self.reopen()
        try:
            if self._is_deleted():
                raise OSError(errno.ENOENT, "the file was deleted")
            whole = b"\n" + line if self._torn.is_there else line
            written = self._write(whole)
            self._torn.is_there = written < len(whole)
            reason = "only a part of it was written"
        except OSError as error:
            written, whole, reason = 0, line, str(error.strerror)
        if written < len(whole):
            log.error("the audit log cannot be written (%s): %s", reason, line.decode().rstrip())

    def _write(self, line: bytes) -> int:
        """Write a line; returns how many bytes were taken. Raises OSError if none was."""
        if not self._may_block:
            return os.write(self._file, line)
        taken = 0
        while taken < len(line):
            try:
                self._wait_for_reader()
                taken += os.write(self._file, line[taken : taken + _AT_ONCE])
            except OSError:
                if not taken:
                    raise
                break
        return taken

    def _wait_for_reader(self) -> None:
        if sys.platform != "win32":
            poll = select.poll()
            poll.register(self._file, select.POLLOUT)
            self._is_stalled = not poll.poll(0 if self._is_stalled else _WAIT)
            if self._is_stalled:
                raise OSError(errno.EAGAIN, "its reader does not read")


def tables_of(resources: Sequence[str]) -> list[str]:
    """The names of the tables in ARNs, each once."""
    names = [
        resource.partition("table/")[2].partition("/")[0][:_LONGEST]
        for resource in resources
        if resource != "*"
    ]
    return list(dict.fromkeys(names)) if len(names) > 1 else names


def _short(text: str | None) -> str | None:
    return None if text is None else text[:_LONGEST]


def _outcome(
    result: bytes | ApiError | ConnectionFailed | int,
) -> tuple[str, int, str | None]:
    """The outcome (ok, refused, error), the HTTP status, and the name of the error."""
    if isinstance(result, ApiError):
        return "refused" if isinstance(result, _REFUSALS) else "error", result.status, result.code
    if isinstance(result, ConnectionFailed):
        return "error", 0, type(result).__name__
    if isinstance(result, int):
        return "refused", result, None
    return "ok", 200, None
