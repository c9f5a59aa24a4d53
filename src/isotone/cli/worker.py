"""`isotone worker`: the handlers of a module, called with every change of a table."""

from __future__ import annotations

import argparse
import importlib
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Final

import msgspec

import isotone
from isotone.errors import UsageError

if TYPE_CHECKING:
    from isotone.structures.worker.settings import WorkerProgress, WorkerSettings
    from isotone.structures.worker.worker import Worker

SUMMARY: Final = """\
Call the handlers of a worker with every change of its table, until Ctrl-C or SIGTERM.

MODULE:NAME is an isotone.structures.Worker, or a function that takes a store and gives one; modules are
looked for in the current directory first. Start as many processes as you like: they share the shards of
the stream, and take over from one that dies."""
EXAMPLES: Final = """
isotone worker feeds:fan_out feeds.db
isotone worker feeds:fan_out http://localhost:8000 --workers 4
isotone worker feeds:fan_out dynamodb://eu-west-1 --metrics > metrics.jsonl
isotone worker feeds:fan_out feeds.db --until-idle     handle what there is, and end
isotone worker feeds:fan_out feeds.db --dead-letters   what could not be handled, and why
isotone worker feeds:fan_out feeds.db --redrive        try that again
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("worker", metavar="MODULE:NAME", help="where the worker is declared")
    parser.add_argument(
        "address", metavar="ADDRESS", help="a file, http://…, https://… or dynamodb://region"
    )
    parser.add_argument("--workers", type=int, default=1, help="threads that share the shards")
    parser.add_argument("--name", help="go by another name, with places of its own in the stream")
    parser.add_argument(
        "--create", action="store_true", help="make the worker's tables if they are missing"
    )
    parser.add_argument(
        "--until-idle",
        "--once",
        action="store_true",
        help="end when there is nothing more to handle",
    )
    parser.add_argument(
        "--lease", type=float, help="seconds after which others take over from one that died"
    )
    parser.add_argument("--batch", type=int, help="records that are read at once, up to 1000")
    parser.add_argument(
        "--attempts", type=int, help="tries of a handler before an event is a dead letter"
    )
    parser.add_argument(
        "--start",
        choices=("TRIM_HORIZON", "LATEST"),
        help="where a worker begins that has never run: with the oldest record, or the next",
    )
    parser.add_argument(
        "--metrics", action="store_true", help="print lag and throughput as JSON, a line a second"
    )
    parser.add_argument("--quiet", action="store_true", help="print problems only")
    parser.add_argument(
        "--dead-letters", action="store_true", help="list what could not be handled, and end"
    )
    parser.add_argument(
        "--redrive", action="store_true", help="handle the dead letters once more, and end"
    )


def run(arguments: argparse.Namespace) -> int:
    over = "\r\x1b[K" if sys.stderr.isatty() else ""  # a problem takes the place of the live line
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.WARNING,
        format=f"{over}%(asctime)s %(levelname)s %(message)s",
    )
    with isotone.connect(arguments.address) as store:
        worker = _worker_of(arguments.worker, store)
        if arguments.name:
            worker = worker.named(arguments.name)
        if arguments.create:
            worker.create_tables(store)
        if arguments.dead_letters:
            return _list(worker, store)
        if arguments.redrive:
            return _redrive(worker, store)
        return _work(worker, store, arguments)


def _work(worker: Worker, store: isotone.Store, arguments: argparse.Namespace) -> int:
    showing = _Showing(worker.name, metrics=arguments.metrics, quiet=arguments.quiet)
    with _until_signal() as stop:
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


def _list(worker: Worker, store: isotone.Store) -> int:
    for letter in worker.dead_letters(store):
        when = letter.time.isoformat(timespec="seconds")
        print(f"{when}  {letter.handler}  {letter.keys}  {letter.error} ({letter.attempts} tries)")
    return 0


def _redrive(worker: Worker, store: isotone.Store) -> int:
    handled, failed = worker.redrive(store)
    print(f"{handled} handled, {failed} failed again")
    return 1 if failed else 0


def _worker_of(text: str, store: isotone.Store) -> Worker:
    from isotone.structures.worker.worker import Worker

    module_name, _, name = text.partition(":")
    if not module_name or not name:
        raise UsageError(f"{text!r} names no worker; write MODULE:NAME, such as feeds:fan_out")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and lacks another
        raise UsageError(f"there is no module {module_name!r} in {Path.cwd()}") from None
    _check_is_meant(found, module_name)
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(f"module {module_name!r} has no {name!r}")
        found = getattr(found, part)
    if not isinstance(found, Worker) and callable(found):
        found = found(store)
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


@contextmanager
def _until_signal() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets; the second one ends the process at once.

    Whatever a handler is at then, nothing that was noted is lost: that is as good as any other end.
    """
    stop = threading.Event()
    former: dict[int, Any] = {}

    def ask(number: int, frame: object) -> None:
        stop.set()
        for each in former:
            signal.signal(each, signal.SIG_DFL)

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
        self._live = sys.stderr.isatty() and not self._quiet

    def __call__(self, progress: WorkerProgress) -> None:
        if self._metrics:
            line = msgspec.json.encode({"worker": self._name, **asdict(progress)})
            sys.stdout.write(line.decode() + "\n")
            sys.stdout.flush()
        elif self._live:
            width = get_terminal_size().columns - 1  # a line that wraps could not be written over
            sys.stderr.write(f"\r\x1b[K{f'{self._name}: {progress}'[:width]}")
            sys.stderr.flush()

    def end(self, progress: WorkerProgress) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[K")
        if not self._quiet:
            print(
                f"{self._name}: {progress.records:,} records, {progress.retries:,} retries, "
                f"{progress.dead_letters:,} dead letters"
            )
