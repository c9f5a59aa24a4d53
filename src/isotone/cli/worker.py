"""`isotone worker`: calls the handlers of a worker with every change of a table; --metrics, --dead-letters, --redrive."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

import isotone
from isotone.backends.addresses import is_file
from isotone.backends.opening import is_new
from isotone.cli import modules
from isotone.cli.database import ADDRESSES, check_exists
from isotone.errors import ResourceNotFoundException, UsageError
from isotone.moving import endpoints
from isotone.postgres_address import is_postgres

if TYPE_CHECKING:
    from isotone.structures import Worker, WorkerProgress, WorkerSettings

from isotone.cli.program import Command
from isotone.cli.progress import add_progress_argument, progress_output

_OVER: Final = "\r\x1b[K"  # erases the current line


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("worker", metavar="MODULE:NAME", help="the worker, or a function that returns it")
    add("address", metavar="ADDRESS", help=ADDRESSES)
    add("--workers", metavar="N", type=int, default=1, help="threads that share the shards")
    add("--table-prefix", metavar="TEXT", default="", help="the prefix of all table names")
    add("--name", help="use another name, with separate positions in the stream")
    add("--create", action="store_true", help="create the worker's tables if they are missing")
    add(
        "--until-idle",
        "--once",
        action="store_true",
        help="exit when all changes have been handled",
    )
    lease = "time after which others take over from a worker that died"
    add("--lease", metavar="SECONDS", type=float, help=lease)
    add("--batch", metavar="N", type=int, help="records per read, up to 1000")
    attempts = "attempts of a handler before an event becomes a dead letter"
    add("--attempts", metavar="N", type=int, help=attempts)
    start = "where a new worker starts: at the oldest record, or at the next one"
    add("--start", choices=("TRIM_HORIZON", "LATEST"), help=start)
    add(
        "--metrics",
        action="store_true",
        help="print lag and throughput as JSON, one line per second",
    )
    add_progress_argument(parser)
    add("--quiet", action="store_true", help="print problems only")
    add("--dead-letters", action="store_true", help="list what could not be handled, and exit")
    add("--redrive", action="store_true", help="handle the dead letters again, and exit")


def _run(arguments: argparse.Namespace) -> int:
    over = _OVER if sys.stderr.isatty() else ""  # a log message replaces the live line
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.WARNING,
        format=f"{over}%(asctime)s %(levelname)s %(message)s",
    )
    found = _found(arguments.worker)
    if not arguments.create:
        check_exists(arguments.address, "; --create creates it, with the worker's tables")
    with _opened(arguments) as store:
        worker = _worker_of(found, arguments.worker, store)
        if arguments.name:
            worker = worker.named(arguments.name)
        if arguments.create:
            worker.create_tables(store)
        if arguments.dead_letters or arguments.redrive:
            return _settle_letters(worker, store, again=arguments.redrive)
        return _work(worker, store, arguments)


@contextmanager
def _opened(arguments: argparse.Namespace) -> Iterator[isotone.Store]:
    """The store of the worker. Its first table makes a missing file, so a function that fails leaves none."""
    address, prefix = arguments.address, arguments.table_prefix
    with ExitStack() as opened:
        is_made = (is_file(address) or is_postgres(address)) and is_new(address)
        target = opened.enter_context(endpoints.opened(address)) if is_made else address
        yield opened.enter_context(isotone.connect(target, table_prefix=prefix))


def _work(worker: Worker, store: isotone.Store, arguments: argparse.Namespace) -> int:
    table = store.table_name(worker.table)
    found = store.differences(worker.table)
    if any(each.index is None and each.what == "does not exist" for each in found):
        raise UsageError(f"there is no table {table!r} in {arguments.address}; --create creates it")
    showing = _WorkerOutput(worker.name, arguments)
    if not arguments.until_idle:
        showing.print_message(f"handling the changes of {table}, until Ctrl-C or SIGTERM")
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
    """List the dead letters, or handle them again."""
    try:
        if again:
            handled, failed = worker.redrive(store)
            print(f"{handled} handled, {failed} failed again")
            return 1 if failed else 0
        for letter in worker.iterate_dead_letters(store):
            when = letter.time.isoformat(timespec="seconds")
            error = " ".join(letter.error.split())
            kept = "" if letter.record is not None else ", too large to be handled again"
            print(
                f"{when}  {letter.handler}  {letter.keys}  {error} ({letter.attempts} tries{kept})"
            )
    except ResourceNotFoundException:
        raise UsageError(f"worker {worker.name!r} has no tables yet: it has never run") from None
    return 0


# Finding the worker


def _found(text: str) -> Any:
    """The object that MODULE:NAME names: a worker, or a function that returns one."""
    module_name, _, name = text.partition(":")
    if not module_name or not name:
        raise UsageError(
            f"{text!r} does not name a worker; write MODULE:NAME, such as feeds:fan_out"
        )
    found = modules.member(modules.load(module_name, f":{name}"), name)
    return found if callable(found) else _checked(found, text)


def _worker_of(found: Any, text: str, store: isotone.Store) -> Worker:
    if callable(found):
        try:
            found = found(store)
        except Exception as error:  # noqa: BLE001 - the user's own code may raise anything
            raise modules.failed(f"{text} cannot be called with a store", error) from None
    return _checked(found, text)


def _checked(found: Any, text: str) -> Worker:
    from isotone.structures import Worker

    if not isinstance(found, Worker):
        raise UsageError(f"{text} is {found!r}, not an isotone.structures.Worker")
    return found


# Running


@contextmanager
def _until_signal(showing: _WorkerOutput) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets; the second one ends the process immediately.

    That is safe at any point: the next run continues from the last saved position.
    """
    stop = threading.Event()
    previous: dict[int, Any] = {}

    def ask(number: int, frame: object) -> None:
        stop.set()
        for handled in previous:
            signal.signal(handled, signal.SIG_DFL)
        with suppress(RuntimeError):  # the signal interrupted another write
            showing.print_message(
                "stopping after the current events; press again to stop immediately"
            )

    for number in (signal.SIGINT, signal.SIGTERM):
        previous[number] = signal.signal(number, ask)
    try:
        yield stop
    finally:
        for handled, handler in previous.items():
            signal.signal(handled, handler)


class _WorkerOutput:
    """Shows the worker's progress, and with `--metrics` prints it as JSON on standard output."""

    def __init__(self, name: str, arguments: argparse.Namespace) -> None:
        self._name = name
        self._metrics = arguments.metrics
        self._quiet = arguments.quiet or arguments.metrics
        asked = argparse.Namespace(progress=arguments.progress, quiet=self._quiet)
        self._output = progress_output("worker", asked)
        self._over = _OVER if sys.stderr.isatty() else ""

    def __call__(self, progress: WorkerProgress) -> None:
        members = self._members(progress)
        if self._metrics:
            sys.stdout.write(msgspec.json.encode(members).decode() + "\n")
            sys.stdout.flush()
        self._output.show(f"{self._name}: {progress}", members, state="handling")

    def print_message(self, words: str) -> None:
        """Print a message to standard error."""
        if not self._quiet:
            sys.stderr.write(f"{self._over}{self._name}: {words}\n")
            sys.stderr.flush()

    def end(self, progress: WorkerProgress) -> None:
        """Print how much was handled."""
        self._output.end("stopped", self._members(progress))
        if self._quiet:
            return
        print(f"{self._name}: {progress.outcome}", flush=True)
        if progress.dead_letters:
            self.print_message(
                "--dead-letters shows what could not be handled, --redrive tries it again"
            )

    def _members(self, progress: WorkerProgress) -> dict[str, Any]:
        return {"worker": self._name, **asdict(progress)}


DEFINITIONS: Final = {
    "worker": Command(
        """\
Call the handlers of a worker with every change of its table, until Ctrl-C or SIGTERM.

MODULE:NAME is an isotone.structures.Worker, or a function that takes a store and returns one. Modules are
imported from the current directory first. You can start any number of processes: they share the shards of
the stream, and take over from a process that dies.""",
        examples="""
isotone worker feeds:fan_out feeds.db --create         create missing tables, and start
isotone worker feeds:fan_out http://localhost:8000 --workers 4
isotone worker feeds:fan_out dynamodb://eu-west-1 --metrics > metrics.jsonl
isotone worker feeds:fan_out feeds.db --until-idle     handle all changes, and exit
isotone worker feeds:fan_out feeds.db --dead-letters   what could not be handled, and why
isotone worker feeds:fan_out feeds.db --redrive        handle the dead letters again
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
