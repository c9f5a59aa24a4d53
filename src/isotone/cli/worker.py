"""`isotone worker`: the handlers of a module, called with every change of a table."""

from __future__ import annotations

import argparse
import importlib
import logging
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Final

import msgspec

import isotone
from isotone.cli.connection import MEMORY
from isotone.errors import ResourceNotFoundException, UsageError

if TYPE_CHECKING:
    from isotone.structures import Worker, WorkerProgress, WorkerSettings

from isotone.cli.program import Command

_OVER: Final = "\r\x1b[K"  # writes over the line that is there
_NOT_THEIRS: Final = (__file__, importlib.__file__, "<frozen ")  # whose frames tell a user nothing


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("worker", metavar="MODULE:NAME", help="where the worker is declared")
    add("address", metavar="ADDRESS", help="a file, http://…, https://… or dynamodb://region")
    add("--workers", metavar="N", type=int, default=1, help="threads that share the shards")
    add("--name", help="go by another name, with places of its own in the stream")
    add("--create", action="store_true", help="make the worker's tables if they are missing")
    add("--until-idle", "--once", action="store_true", help="end when all has been handled")
    lease = "after which others take over from one that died"
    add("--lease", metavar="SECONDS", type=float, help=lease)
    add("--batch", metavar="N", type=int, help="records that are read at once, up to 1000")
    attempts = "tries of a handler before an event is a dead letter"
    add("--attempts", metavar="N", type=int, help=attempts)
    start = "where a worker begins that has never run: with the oldest record, or the next"
    add("--start", choices=("TRIM_HORIZON", "LATEST"), help=start)
    add("--metrics", action="store_true", help="print lag and throughput as JSON, a line a second")
    add("--quiet", action="store_true", help="print problems only")
    add("--dead-letters", action="store_true", help="list what could not be handled, and end")
    add("--redrive", action="store_true", help="handle the dead letters once more, and end")


def _run(arguments: argparse.Namespace) -> int:
    over = _OVER if sys.stderr.isatty() else ""  # a problem takes the place of the live line
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.WARNING,
        format=f"{over}%(asctime)s %(levelname)s %(message)s",
    )
    found = _found(arguments.worker)
    address = arguments.address
    is_file = address != MEMORY and "://" not in address
    if is_file and not arguments.create and not Path(address).exists():
        raise UsageError(f"there is no file {address}; --create makes it, with the worker's tables")
    with isotone.connect(address) as store:
        worker = _worker_of(found, arguments.worker, store)
        if arguments.name:
            worker = worker.named(arguments.name)
        if arguments.create:
            worker.create_tables(store)
        if arguments.dead_letters or arguments.redrive:
            return _settle_letters(worker, store, again=arguments.redrive)
        return _work(worker, store, arguments)


def _work(worker: Worker, store: isotone.Store, arguments: argparse.Namespace) -> int:
    table = worker.table.name
    if f"table {table!r} does not exist" in map(str, store.differences(worker.table)):
        raise UsageError(f"there is no table {table!r} in {arguments.address}; --create makes it")
    showing = _Showing(worker.name, metrics=arguments.metrics, quiet=arguments.quiet)
    if not arguments.until_idle:
        showing.say(f"handling the changes of {table}, until Ctrl-C or SIGTERM")
    with _until_signal(showing) as stop:
        done = worker.run(
            store,
            workers=arguments.workers,
            until_idle=arguments.until_idle,
            settings=_settings(worker.settings, arguments),
            progress=showing,
            stop=stop,
        )
    showing.end(done)
    return 0


def _settings(settings: WorkerSettings, arguments: argparse.Namespace) -> WorkerSettings:
    given = {name: getattr(arguments, name) for name in ("lease", "batch", "attempts", "start")}
    changes: Any = {name: value for name, value in given.items() if value is not None}
    return replace(settings, **changes)


def _settle_letters(worker: Worker, store: isotone.Store, *, again: bool) -> int:
    """List the dead letters, or put them through again."""
    try:
        if again:
            handled, failed = worker.redrive(store)
            print(f"{handled} handled, {failed} failed again")
            return 1 if failed else 0
        for letter in worker.iterate_dead_letters(store):
            when = letter.time.isoformat(timespec="seconds")
            error = " ".join(letter.error.split())
            kept = "" if letter.record is not None else ", too large to be put through again"
            print(
                f"{when}  {letter.handler}  {letter.keys}  {error} ({letter.attempts} tries{kept})"
            )
    except ResourceNotFoundException:
        raise UsageError(f"worker {worker.name!r} has no tables yet: it has never run") from None
    return 0


# Finding the worker


def _found(text: str) -> Any:
    """What MODULE:NAME names: a worker, or what makes one."""
    module_name, _, name = text.partition(":")
    if not module_name or not name:
        raise UsageError(f"{text!r} names no worker; write MODULE:NAME, such as feeds:fan_out")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:  # noqa: BLE001 - whatever the user's own code raises
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(
            f"{error.name}."
        ):
            hint = f"; write {module_name[:-3]}:{name}" if module_name.endswith(".py") else ""
            raise UsageError(f"there is no module {module_name!r} in {Path.cwd()}{hint}") from None
        raise _failed(f"module {module_name!r} cannot be imported", error) from None
    _check_is_meant(found, module_name)
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(f"module {module_name!r} has no {name!r}")
        found = getattr(found, part)
    return found if callable(found) else _checked(found, text)


def _worker_of(found: Any, text: str, store: isotone.Store) -> Worker:
    if callable(found):
        try:
            found = found(store)
        except Exception as error:  # noqa: BLE001 - whatever the user's own code raises
            raise _failed(f"{text} cannot be called with a store", error) from None
    return _checked(found, text)


def _checked(found: Any, text: str) -> Worker:
    from isotone.structures import Worker

    if not isinstance(found, Worker):
        raise UsageError(f"{text} is {found!r}, and no isotone.structures.Worker")
    return found


def _check_is_meant(found: Any, name: str) -> None:
    """Refuse a module of Python's own, such as `site`, where the user has a file of that name."""
    here = Path(f"{name.replace('.', '/')}.py").resolve()
    loaded = getattr(found, "__file__", None)
    if here.exists() and (loaded is None or Path(loaded).resolve() != here):
        raise UsageError(
            f"Python has another module {name!r} ({loaded or 'built in'}); give {here.name} another name"
        )


def _failed(what: str, error: Exception) -> UsageError:
    """What to say of an error in the user's own code; where it lies in there is shown."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_NOT_THEIRS):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)
    return UsageError(f"{what}: {type(error).__name__}: {error}")


# Running


@contextmanager
def _until_signal(showing: _Showing) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets; the second one ends the process at once.

    Whatever a handler is at then, nothing that was noted is lost: that is as good as any other end.
    """
    stop = threading.Event()
    former: dict[int, Any] = {}

    def ask(number: int, frame: object) -> None:
        stop.set()
        for each in former:
            signal.signal(each, signal.SIG_DFL)
        with suppress(RuntimeError):  # it came in the middle of another line
            showing.say("ending after the events at hand; once more ends it at once")

    for each in (signal.SIGINT, signal.SIGTERM):
        former[each] = signal.signal(each, ask)
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


class _Showing:
    """How far the worker is: a live line on a terminal, or JSON."""

    def __init__(self, name: str, *, metrics: bool, quiet: bool) -> None:
        self._name = name
        self._metrics = metrics
        self._quiet = quiet or metrics
        self._over = _OVER if sys.stderr.isatty() else ""

    def __call__(self, progress: WorkerProgress) -> None:
        if self._metrics:
            line = msgspec.json.encode({"worker": self._name, **asdict(progress)})
            sys.stdout.write(line.decode() + "\n")
            sys.stdout.flush()
        elif self._over and not self._quiet:
            width = get_terminal_size().columns - 1  # a line that wraps could not be written over
            sys.stderr.write(f"{_OVER}{f'{self._name}: {progress}'[:width]}")
            sys.stderr.flush()

    def say(self, words: str) -> None:
        """A sentence on standard error."""
        if not self._quiet:
            sys.stderr.write(f"{self._over}{self._name}: {words}\n")
            sys.stderr.flush()

    def end(self, progress: WorkerProgress) -> None:
        if self._quiet:
            return
        sys.stderr.write(self._over)
        sys.stderr.flush()
        print(f"{self._name}: {progress.outcome}", flush=True)
        if progress.dead_letters:
            self.say("--dead-letters shows what could not be handled, --redrive tries it again")


DEFINITIONS: Final = {
    "worker": Command(
        """\
Call the handlers of a worker with every change of its table, until Ctrl-C or SIGTERM.

MODULE:NAME is an isotone.structures.Worker, or a function that takes a store and gives one; modules are
looked for in the current directory first. Start as many processes as you like: they share the shards of
the stream, and take over from one that dies.""",
        examples="""
isotone worker feeds:fan_out feeds.db --create         make what is missing, and begin
isotone worker feeds:fan_out http://localhost:8000 --workers 4
isotone worker feeds:fan_out dynamodb://eu-west-1 --metrics > metrics.jsonl
isotone worker feeds:fan_out feeds.db --until-idle     handle what there is, and end
isotone worker feeds:fan_out feeds.db --dead-letters   what could not be handled, and why
isotone worker feeds:fan_out feeds.db --redrive        try that again
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
