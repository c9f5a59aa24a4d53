"""Records an engine's answers in a file, and replays them, for tests that run without the engine.

    {"isotone tape": 1}
    {"operation": "GetItem", "request": {…}, "response": {…}}
    {"operation": "PutItem", "request": {…}, "error": {"code": "…", "message": "…", …}}

Each call is one line of JSON. A replayed request must equal a recorded one. Equal requests are answered in
the order of the recording. The order of different requests does not matter, so concurrent programs can be
replayed.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, Final

import msgspec

from isotone.backends.http_messages import error_of
from isotone.backends.interface import AsyncBackend, Backend, Native, Request, Response, as_text
from isotone.errors import ApiError, UsageError
from isotone.file_lock import MARK, begin_draft, check_in_place, end_draft, open_locked
from isotone.output_paths import OutputPath, check_output, check_regular, is_database

_PART: Final = ".part"
_BESIDE: Final = (_PART, _PART + MARK)
_HEADER: Final = {"isotone tape": 1}
# Members that differ in every run, or depend on observers.
_IGNORED: Final = ("ClientRequestToken", "ReturnConsumedCapacity")


class TapeWriter:
    """A tape that is being written. The file appears under its name when it is closed."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(path)
        self._unfinished = self._path.with_name(self._path.name + _PART)
        self._output = OutputPath("tape=", path, beside=_BESIDE, needs_folder=False)
        check_output(self._output)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open_locked(self._unfinished)
        begin_draft(self._file, self._unfinished)
        self._lock = Lock()
        self._size = 0
        self._write(_HEADER)

    def answered(self, operation: str, request: Request, response: Response) -> None:
        """Record a call that succeeded."""
        self._write({"operation": operation, "request": request, "response": response})

    def refused(self, operation: str, request: Request, error: ApiError) -> None:
        """Record a call that failed."""
        said = {"status": error.status, **error.body()}
        self._write({"operation": operation, "request": request, "error": said})

    def _write(self, line: Mapping[str, Any]) -> None:
        with self._lock:
            self._size += self._file.write(msgspec.json.encode(line) + b"\n")

    def close(self) -> None:
        """Finish the tape. Closing twice does nothing."""
        with self._lock:
            if self._file.closed:
                return
            with self._file:
                self._file.flush()
                check_in_place(self._file, self._unfinished, self._size)
                if os.name == "nt":
                    self._file.close()  # Windows cannot rename an open file
                check_output(self._output)  # again: another file may have appeared there
                self._unfinished.replace(self._path)
                end_draft(self._unfinished)


class Recorder(Native):
    """A `Backend` that records the answers of another."""

    __slots__ = ("_backend", "_tape")

    def __init__(self, backend: Backend, tape: TapeWriter) -> None:
        self._backend = backend
        self._tape = tape

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Answer one action."""
        request = as_text(request)
        try:
            response = self._backend.execute(operation, request, deadline)
        except ApiError as error:
            self._tape.refused(operation, request, error)
            raise
        self._tape.answered(operation, request, response)
        return response


class AsyncRecorder(Native):
    """An `AsyncBackend` that records the answers of another."""

    __slots__ = ("_backend", "_tape")

    def __init__(self, backend: AsyncBackend, tape: TapeWriter) -> None:
        self._backend = backend
        self._tape = tape

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Answer one action."""
        request = as_text(request)
        try:
            response = await self._backend.execute(operation, request, deadline)
        except ApiError as error:
            self._tape.refused(operation, request, error)
            raise
        self._tape.answered(operation, request, response)
        return response


class Player(Native):
    """A `Backend` that answers from a tape; raises `UsageError` for a request that was not recorded."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(path)
        self._answers: dict[bytes, deque[dict[str, Any]]] = defaultdict(deque)
        self._lock = Lock()
        check_regular(path)
        header, *entries = [None] if is_database(path) else self._lines()
        if header != _HEADER:
            raise UsageError(
                f"{self._path} is not a tape of Isotone's; give the path of one, or of a file that does not exist"
            )
        for number, entry in enumerate(entries, 2):
            if not _is_call(entry):
                raise UsageError(
                    f"line {number} of the tape {self._path} is no call; delete the tape to record a new one"
                )
            self._answers[_identity(entry["operation"], entry["request"])].append(entry)

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Return the recorded answer, or raise the recorded error."""
        request = as_text(request)
        with self._lock:
            waiting = self._answers[_identity(operation, request)]
            entry = waiting.popleft() if waiting else None
        if entry is None:
            raise UsageError(
                f"{self._path} has no answer left for {operation} "
                f"{msgspec.json.encode(request).decode()}; if the program has changed, delete the "
                "tape to record a new one, and give the store a fixed clock= where times are written"
            )
        if "error" in entry:
            said = dict(entry["error"])
            raise error_of(said, said.pop("status"))
        response: Response = entry["response"]
        return response

    def _lines(self) -> list[Any]:
        try:
            return [msgspec.json.decode(line) for line in self._path.read_bytes().splitlines()] or [
                None
            ]
        except msgspec.DecodeError:
            return [None]

    @property
    def unused(self) -> int:
        """The number of recorded calls that were not replayed."""
        return sum(map(len, self._answers.values()))

    def close(self) -> None:
        """Do nothing."""


def _is_call(entry: Any) -> bool:
    """Whether a line of a tape has a request, and a response or an error."""
    if not isinstance(entry, dict) or not isinstance(entry.get("operation"), str):
        return False
    said = entry.get("error", {"status": 0})
    is_answered = (
        isinstance(said, dict) and "status" in said and ("error" in entry or "response" in entry)
    )
    return isinstance(entry.get("request"), dict) and is_answered


def _identity(operation: str, request: Request) -> bytes:
    """The key by which a request is looked up on the tape."""
    told = {name: value for name, value in request.items() if name not in _IGNORED}
    return msgspec.json.encode([operation, told], order="deterministic")
