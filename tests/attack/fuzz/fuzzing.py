"""The loop of every fuzzer: choose an input, change it, run it, keep it if it reached a new line, shrink what fails.

The lines that run are counted by `sys.settrace`, in Isotone's own files only, for one input in eight: that is slow.
"""

from __future__ import annotations

import hashlib
import re
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Final

import isotone

CORPUS: Final = Path(__file__).with_name("corpus")
_SOURCE: Final = str(Path(isotone.__file__).parent)
_TRACED: Final = 8  # one in so many inputs
_MAX_SIZE: Final = 4096
_KEPT_SIZE: Final = 600  # bytes of an input that is kept in the repository
_TRIES: Final = 400  # to make a failing input shorter

Run = Callable[[bytes], None]

_SPECIAL: Final = [
    b"\x00",
    b"\xff",
    b"\xed\xa0\x80",
    b"\\ud800",
    b'"',
    b"{}",
    b"[]",
    b"null",
    b"-1",
    b"1e999",
    b"99999999999999999999",
    b"\r\n",
    b"\r\n\r\n",
    b"(",
    b")",
    b"[" * 200,
    b"(" * 200,
    b"a." * 40,
    b":v",
    b"#n",
    b" AND ",
    b" NOT ",
]


def inputs_of(target: str) -> list[bytes]:
    """The inputs of a target that are in the repository."""
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


class Fuzzer:
    """One run of a target. `tried` counts inputs, `reached` the lines that they ran, `kept` those that were kept."""

    def __init__(self, target: str, run: Run, seed: int) -> None:
        self.tried = self.kept = 0
        self._target = target
        self._run = run
        self._random = Random(seed)
        self._lines: set[tuple[str, int]] = set()
        self._corpus = inputs_of(target)

    @property
    def reached(self) -> int:
        """How many different lines of Isotone have run."""
        return len(self._lines)

    def run(self, seconds: float, *, trace: bool = True, keep: bool = False) -> list[str]:
        """Fuzz for some time; returns a report for each kind of failure. Without `trace`, no input is found to be new."""
        failures: dict[str, str] = {}
        end = time.monotonic() + seconds
        for known in [*self._corpus] if trace else ():
            self._traced(known)
        while time.monotonic() < end:
            given = self._changed(self._random.choice(self._corpus))
            self.tried += 1
            is_traced = trace and self.tried % _TRACED == 0
            error = self._traced(given) if is_traced else self._tried(given)
            if error is not None and (place := _place_of(error)) not in failures:
                failures[place] = self._report(place, given)
            if keep and self.kept < 40:
                self._keep_new()
        return list(failures.values())

    def _tried(self, given: bytes) -> BaseException | None:
        try:
            self._run(given)
        except Exception as error:  # noqa: BLE001 - that it raises is what is looked for
            return error
        return None

    def _traced(self, given: bytes) -> BaseException | None:
        before = len(self._lines)
        lines = self._lines

        def of_line(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                lines.add((frame.f_code.co_filename, frame.f_lineno))
            return of_line

        def of_call(frame: FrameType, event: str, argument: Any) -> Any:
            return of_line if frame.f_code.co_filename.startswith(_SOURCE) else None

        earlier = sys.gettrace()
        sys.settrace(of_call)
        try:
            error = self._tried(given)
        finally:
            sys.settrace(earlier)
        if len(lines) > before and error is None:
            self._corpus.append(given)
        return error

    def _keep_new(self) -> None:
        if len(latest := self._corpus[-1]) <= _KEPT_SIZE:
            path = CORPUS / self._target / hashlib.sha256(latest).hexdigest()[:12]
            if not path.exists():
                path.write_bytes(latest)
                self.kept += 1

    def _changed(self, given: bytes) -> bytes:
        random, changed = self._random, bytearray(given)
        for _ in range(random.choice((1, 1, 2, 4))):
            start = random.randrange(len(changed) + 1)
            end = min(len(changed), start + random.choice((0, 1, 1, 4, 16)))
            piece = bytes(changed[start:end])
            match random.randrange(6):
                case 0:
                    piece = b""
                case 1:
                    piece = bytes(random.randrange(256) for _ in piece)
                case 2:
                    piece = random.choice(_SPECIAL)
                case 3:
                    piece = piece * random.choice((2, 3, 50))
                case 4:
                    piece = self._piece_of_another()
                case _:
                    piece = _with_word(random, changed, piece)
            changed[start:end] = piece
        return bytes(changed[:_MAX_SIZE])

    def _piece_of_another(self) -> bytes:
        other = self._random.choice(self._corpus)
        start = self._random.randrange(len(other) + 1)
        return other[start : start + self._random.choice((4, 16, 64))]

    def _report(self, place: str, given: bytes) -> str:
        """The shortest input that fails at the same place, as a call to repeat."""
        shortest, size = given, len(given) // 2
        for _ in range(_TRIES):
            if not size:
                break
            for start in range(0, len(shortest), size):
                shorter = shortest[:start] + shortest[start + size :]
                error = self._tried(shorter)
                if error is not None and _place_of(error) == place:
                    shortest = shorter
                    break
            else:
                size //= 2
        error = self._tried(shortest)
        told = "" if error is None else "".join(traceback.format_exception(error)[-4:])
        return f"{self._target} fails at {place} with {shortest!r}\n{told}"


def _with_word(random: Random, whole: bytearray, piece: bytes) -> bytes:
    """A word of the input itself: names and operators in other places."""
    words = re.findall(rb"[\w#:]+|[^\w\s]", bytes(whole))
    return random.choice(words) if words else piece


def _place_of(error: BaseException) -> str:
    trace = error.__traceback__
    frames = [] if trace is None else traceback.extract_tb(trace)
    ours = [frame for frame in frames if frame.filename.startswith(_SOURCE)]
    last = (ours or frames)[-1]
    return f"{Path(last.filename).name}:{last.lineno} {type(error).__name__}"
