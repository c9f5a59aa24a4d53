"""Runs one version of a module for `isotone design`: loads it, and answers what the page asks about it.

Each version has a process of its own, because Python cannot forget the classes of an old one. It reads requests from its
standard input and writes answers to its standard output, as frames; what the module prints goes to standard error. It
ends when its input does.
"""

from __future__ import annotations

import asyncio
import importlib
import linecache
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple

import msgspec

from isotone.advisor.lint.settings import configured
from isotone.backends import embedded
from isotone.backends.interface import Backend
from isotone.cli import modules
from isotone.design import SampleData, SheetRequest, write_sample
from isotone.design.sheet import smaller_sample
from isotone.errors import IsotoneError, UsageError
from isotone.model import Table, connect
from isotone.server.pages_process import answered
from isotone.server.process_messages import Answer, FrameReader, Request, frame
from isotone.workbench import Workbench
from isotone.workbench.designs import DesignPart, DesignSource, Target

_CHUNK: Final = 1 << 16
_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from isotone.cli.design_process import main; main()"
)
_HERE: Final = str(Path(importlib.import_module("isotone").__file__ or "").parent)


class DesignedModule(NamedTuple):
    """What the process is started with: MODULE or MODULE:NAME,NAME, and what its sheets are asked for at first."""

    text: str
    asked: SheetRequest


FileState = tuple[int, int]
"""When a file was written, in nanoseconds, and its size."""


class LoadFault(msgspec.Struct, frozen=True):
    """Why a module could not be loaded: the error, and the line of the user's code that it comes from."""

    message: str
    file: str = ""
    line: int = 0
    text: str = ""


class LoadReport(msgspec.Struct, frozen=True):
    """What became of the start: the files that the design is made of, as they were read, and why there is none."""

    files: dict[str, FileState | None]
    fault: LoadFault | None = None
    is_missing: bool = False
    """Whether there is no such module at all."""


def command() -> list[str]:
    """The command line of the process; its input begins with a pickled `DesignedModule`, as a request."""
    return [sys.executable, "-c", _PROGRAM, msgspec.json.encode(sys.path).decode()]


def start_request(module: DesignedModule) -> bytes:
    """The first bytes of the process's input."""
    return bytes(frame([Request(0, "", pickle.dumps(module))]))


def main() -> None:
    """Be the process, until its input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that started this one
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr  # which is not buffered: what the module prints shows at once
    sys.dont_write_bytecode = True  # a file that is saved twice in a second would look unchanged
    inbox = _Inbox(os.fdopen(os.dup(0), "rb", buffering=0))
    module: DesignedModule = pickle.loads(inbox.first())
    known = set(sys.modules)
    try:
        targets = _targets(module.text)
        files = _files(known)
        source, backend = _loaded(module, targets)
    except BaseException as error:  # noqa: BLE001 - the user's own code may raise anything, and even exit
        _send(answers, 0, msgspec.msgpack.encode(_fault_report(error, module, _files(known))))
        return
    with closing(backend):
        pages = Workbench(
            backend, target=module.text, tables=_tables(source), is_endpoint=False, design=source
        )
        _send(answers, 0, msgspec.msgpack.encode(LoadReport(files)))
        asyncio.run(_serve(pages, inbox, answers))


def _send(answers: BinaryIO, number: int, body: bytes) -> None:
    answers.write(frame([Answer(number, body)]))
    answers.flush()


# Loading


def _targets(text: str) -> tuple[Target, ...]:
    """The tables and entities that the text names."""
    modules.import_from_current_directory()
    importlib.import_module(text.partition(":")[0])
    return tuple(modules.targets(text))


def _loaded(
    module: DesignedModule, targets: tuple[Target, ...]
) -> tuple[DesignSource, embedded.Database]:
    """The design of the targets, and a database in memory with their sample."""
    name, colon, _ = module.text.partition(":")
    part = DesignPart(targets, () if colon else (sys.modules[name],))
    settings = configured(Path.cwd())
    backend = embedded.open()
    _fill(backend, part, module.asked)
    return DesignSource(module.text, {module.text: part}, module.asked, True, settings), backend


def _fill(backend: Backend, part: DesignPart, asked: SheetRequest) -> None:
    """Write the sample of the sheet; if the module allows none, the page says why, and its tables are empty."""
    with connect(backend, report=None) as store:
        try:
            whole = asked.sample.known_to(part.targets)
            sample = SampleData(part.targets, smaller_sample(part.targets, whole).of(whole))
        except UsageError:
            store.create_tables(*part.tables)
            return
        store.run(write_sample(store.calls, sample))


def _tables(source: DesignSource) -> list[Table]:
    return [table for part in source.parts.values() for table in part.tables]


def _files(known: set[str]) -> dict[str, FileState | None]:
    """The files of the user's code that has been imported: not those of Python, of Isotone and of installed packages."""
    files = (getattr(sys.modules[name], "__file__", None) for name in sys.modules.keys() - known)
    of_user = {
        str(Path(file).resolve()) for file in files if file is not None and _is_of_user(file)
    }
    return {file: state_of(file) for file in sorted(of_user)}


def state_of(file: str) -> FileState | None:
    """The state of a file; None if it is not there: an editor may be replacing it."""
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _is_of_user(file: str) -> bool:
    if file.startswith(("<", _HERE + os.sep)) or "site-packages" in file:
        return False
    return not Path(file).resolve().is_relative_to(Path(os.__file__).parent.resolve())


def _fault_report(
    error: BaseException, module: DesignedModule, files: dict[str, FileState | None]
) -> LoadReport:
    """The error, with the last line of the user's code on the way to it."""
    name, colon, names = module.text.partition(":")
    if _is_missing(error, name):
        try:
            modules.load(name, colon + names)
        except UsageError as missing:  # which says what to write instead
            return LoadReport(files, LoadFault(str(missing)), True)
    if isinstance(error, SyntaxError) and error.filename:
        place = error.filename, error.lineno or 0
        text = f"{type(error).__name__}: {error.msg}"
    else:
        frames = [each for each in _frames(error.__traceback__) if _is_of_user(each[0])]
        place = frames[-1] if frames else ("", 0)
        is_ours = isinstance(error, IsotoneError)
        text = str(error) if is_ours else f"{type(error).__name__}: {error}"
    broken = str(Path(place[0]).resolve()) if place[0] else ""
    if broken and broken not in files:
        files = {**files, broken: state_of(broken)}
    return LoadReport(files, _at(*place, text))


def _is_missing(error: BaseException, name: str) -> bool:
    """Whether there is no module of a name, or can be none."""
    if not all(name.split(".")):
        return True
    is_absent = isinstance(error, ModuleNotFoundError)
    return is_absent and f"{name}.".startswith(f"{getattr(error, 'name', '')}.")


def _frames(trace: TracebackType | None) -> list[tuple[str, int]]:
    return [(frame_.f_code.co_filename, line) for frame_, line in traceback.walk_tb(trace)]


def _at(file: str, line: int, message: str) -> LoadFault:
    text = linecache.getline(file, line).strip() if file else ""
    path = Path(file)
    shown = path.relative_to(Path.cwd()) if file and path.is_relative_to(Path.cwd()) else path
    return LoadFault(message, str(shown) if file else "", line, text)


# Serving


class _Inbox:
    """Reads requests in a thread, which ends the process with its input: also while the module runs for ever."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._waiting: list[Request] = []
        self._came = threading.Condition()
        self._take: Callable[[Request], object] | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def first(self) -> bytes:
        """The body of the first request."""
        with self._came:
            self._came.wait_for(lambda: self._waiting)
            return self._waiting.pop(0).body

    def deliver(self, take: Callable[[Request], object]) -> None:
        """Call `take` with each request from now on, in the thread."""
        with self._came:
            self._take = take
            for request in self._waiting:
                take(request)
            self._waiting.clear()

    def _read(self) -> None:
        reader = FrameReader()
        while data := self._stream.read(_CHUNK):
            for message in reader.messages(data):
                assert isinstance(message, Request)
                with self._came:
                    if self._take is None:
                        self._waiting.append(message)
                        self._came.notify()
                    else:
                        self._take(message)
        os._exit(0)


async def _serve(pages: Workbench, inbox: _Inbox, answers: BinaryIO) -> None:
    """Answer requests for pages until the process ends."""
    loop = asyncio.get_running_loop()
    running: set[asyncio.Task[None]] = set()

    async def answer(request: Request) -> None:
        _send(answers, request.number, await answered(pages, request.body))

    def begin(request: Request) -> None:
        task = loop.create_task(answer(request))
        running.add(task)
        task.add_done_callback(running.discard)

    inbox.deliver(lambda request: loop.call_soon_threadsafe(begin, request))
    await asyncio.Event().wait()
