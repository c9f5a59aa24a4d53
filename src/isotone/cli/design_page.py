"""The page of `isotone design`: follows a module while it is edited, and asks a process of its newest good version.

    watch     a thread looks at the files that the module consists of; when one is saved, a new process loads it
    replace   the page gets the new version once it is loaded; until then, and if it cannot be, the last good one stays
    tell      the call `design_wait` answers when there is a new version, or a new error

The page's own files come from this process, so it is there before the first version is.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from isotone.backends import embedded
from isotone.cli.design_process import (
    DesignedModule,
    FileState,
    LoadFault,
    LoadReport,
    command,
    start_request,
    state_of,
)
from isotone.errors import InternalServerError, UsageError
from isotone.server.pages import PageHandler, PageRequest
from isotone.server.pages_process import forwarded
from isotone.server.process_channel import OnOutcome, Outcome
from isotone.server.process_messages import LOST, Answer, FrameReader, Request, frame
from isotone.workbench import Workbench
from isotone.workbench.designs import DesignSource

_CALLS: Final = b"/workbench/api/"
_WAIT_CALL: Final = b"/workbench/api/design_wait"
_CHUNK: Final = 1 << 16
_LOOK: Final = 0.2  # seconds between two looks at the files
_SETTLE: Final = 0.05  # seconds in which a file that is being saved must not change
_LONGEST_WAIT: Final = 20.0  # seconds that the page waits for a new version
_END: Final = 5.0  # seconds in which a process has to end

FileStates = dict[str, FileState | None]
"""When each file was written, and its size; None for one that is not there."""


class LiveDesign:
    """The pages of a module that is being edited, for `isotone.server.serve(…, pages=LiveDesign(…))`."""

    def __init__(self, module: DesignedModule, report: Callable[[LoadFault], object]) -> None:
        """`report` is called with each error, in another thread."""
        self._module = module
        self._report = report
        self._files: set[str] = set()
        self._seen: FileStates = {}
        self._fault: LoadFault | None = None
        self._version = 0
        self._current: VersionProcess | None = None
        self._spare: VersionProcess | None = None
        """A process that has imported what it needs, for the next version."""
        self._stopping = threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._empty = embedded.open()
        self._own = Workbench(
            self._empty,
            target=module.text,
            is_endpoint=False,
            design=DesignSource(module.text, {}, module.asked, is_live=True),
            calls={"design_wait": self._wait},
        )

    def start(self) -> None:
        """Load the module, and follow it from now on; raises `UsageError` if there is no such module."""
        report = self._load()
        if report is not None and report.is_missing and report.fault is not None:
            raise UsageError(report.fault.message)
        self._watching.start()

    def close(self) -> None:
        """End the process of the module."""
        self._stopping.set()
        if self._watching.ident is not None:
            self._watching.join()
        for process in (self._spare, self._current):
            if process is not None:
                process.stop()
        self._empty.close()

    def __call__(self, request: PageRequest) -> PageHandler | None:
        """The handler of a request: calls go to the newest good version."""
        current = self._current
        if current is None or request.path == _WAIT_CALL or not request.path.startswith(_CALLS):
            return self._own(request)
        return forwarded(self._own, current)(request)

    async def _wait(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The number of the version, and what is wrong with the files; waits until it is not `{"version"}`."""
        end = time.monotonic() + _LONGEST_WAIT
        while given.get("version") == self._version and time.monotonic() < end:
            await asyncio.sleep(_SETTLE)
        fault = self._fault
        return {
            "version": self._version,
            "fault": None if fault is None else msgspec.to_builtins(fault),
        }

    # Following

    def _watch(self) -> None:
        self._spare = VersionProcess()
        while not self._stopping.wait(_LOOK):
            if self._states() != self._seen:
                self._settle()
                self._load()
                self._spare = VersionProcess()

    def _settle(self) -> None:
        """Wait until nothing is being written any more."""
        states = self._states()
        while not self._stopping.wait(_SETTLE):
            if (later := self._states()) == states:
                return
            states = later

    def _states(self) -> FileStates:
        """The states of the files of the design. If one is missing it may be made, so then those beside count, too."""
        beside = set() if self._fault is None else _sources_beside(self._files)
        return {file: state_of(file) for file in self._files | beside}

    def _load(self) -> LoadReport | None:
        """Load the files in a new process, which replaces the one before if it can; None if they change meanwhile."""
        began = self._seen = self._states()
        process, self._spare = self._spare or VersionProcess(), None
        process.load(self._module)
        report = process.report(lambda: self._stopping.is_set() or self._states() != began)
        if report is None or report.fault is not None:
            process.stop()
        if report is None:
            return None
        self._fault = report.fault
        if report.fault is None:
            before, self._current = self._current, process
            self._files = set(report.files)
            if before is not None:
                before.retire()
        else:
            self._files |= set(report.files)
            self._report(report.fault)
        self._seen = self._states() | report.files
        self._version += 1
        return report


def _sources_beside(files: Iterable[str]) -> set[str]:
    folders = {Path.cwd(), *(Path(file).parent for file in files)}
    return {str(file) for folder in folders for file in folder.glob("*.py")}


class VersionProcess:
    """The process of one version of the module (`design_process`), and the requests that it has not answered."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._lock = threading.Lock()
        self._asked: dict[int, Callable[[Outcome], object]] = {}
        self._next = 0
        self._is_retired = False
        self._first: LoadReport | None = None
        self._is_ready = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def load(self, module: DesignedModule) -> None:
        """Load the module as it is now."""
        self._write(start_request(module))

    def report(self, is_over: Callable[[], bool]) -> LoadReport | None:
        """What became of the start; None if it is over before."""
        while not self._is_ready.wait(_SETTLE):
            if is_over():
                return None
        return self._first or LoadReport(
            {}, LoadFault("the process that loaded the module ended; see what it printed")
        )

    def ask(self, operation: str, body: bytes, region: str, take: OnOutcome) -> None:
        """Send a request; `take` is called on the running event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            number = self._next = self._next + 1
            self._asked[number] = partial(_call_soon, loop, take)
        self._write(frame([Request(number, operation, body, region)]))

    def retire(self) -> None:
        """End the process when all requests are answered."""
        with self._lock:
            self._is_retired = True
            is_idle = not self._asked
        if is_idle:
            self.stop()

    def stop(self) -> None:
        """End the process now."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.close()  # at which it ends by itself
            self._process.wait(_END)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()

    def _write(self, data: bytes | bytearray) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(data)
            stdin.flush()
        except (OSError, ValueError):  # it has ended, or is being stopped
            self._lose()

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        reader = FrameReader()
        while data := os.read(stdout.fileno(), _CHUNK):
            for message in reader.messages(data):
                assert isinstance(message, Answer)
                self._answered(message)
        stdout.close()
        self._lose()
        self._is_ready.set()

    def _answered(self, message: Answer) -> None:
        if message.number == 0:
            self._first = msgspec.msgpack.decode(message.body, type=LoadReport)
            self._is_ready.set()
            return
        with self._lock:
            take = self._asked.pop(message.number)
            is_over = self._is_retired and not self._asked
        take(message.body)
        if is_over:
            # In another thread, because it waits for the process, which may write to this one.
            threading.Thread(target=self.stop, daemon=True).start()

    def _lose(self) -> None:
        """Answer what is asked with an error."""
        with self._lock:
            waiting, self._asked = self._asked, {}
        for take in waiting.values():
            take(InternalServerError(LOST))


def _call_soon(loop: asyncio.AbstractEventLoop, take: OnOutcome, outcome: Outcome) -> None:
    if not loop.is_closed():  # the server has stopped, and nobody waits any more
        loop.call_soon_threadsafe(take, outcome)


def print_fault(fault: LoadFault) -> None:
    """Print what is wrong, with its line."""
    place = f"{fault.file}:{fault.line}: " if fault.file else ""
    print(f"isotone: {place}{fault.message}", file=sys.stderr, flush=True)
