"""`isotone rewrite`: converts items to the form that the program writes now; --dry-run, --change, --undo-log, --undo."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

import isotone
from isotone.cli import modules
from isotone.cli.database import ADDRESSES, check_exists
from isotone.cli.program import INTERRUPTED, Command, print_error
from isotone.cli.progress import ProgressOutput, add_progress_argument, progress_output
from isotone.errors import UsageError
from isotone.postgres_address import hidden

if TYPE_CHECKING:
    from isotone import Rewritten, Store, Undone

_LEFT: Final = 1  # the exit code if some items could not be rewritten
_NOT_OF_AN_UNDO: Final = {
    "module": "MODULE",
    "dry_run": "--dry-run",
    "change": "--change",
    "units_per_second": "--units-per-second",
    "segments": "--segments",
    "undo_log": "--undo-log",
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    names = "a module with entities; MODULE:NAME,NAME for some of its tables and entities"
    add("module", metavar="MODULE", nargs="?", help=names)
    add("address", metavar="ADDRESS", help=ADDRESSES)
    add("--dry-run", action="store_true", help="write nothing, and print what would be rewritten")
    change = "a function that takes an item as a dict, and returns what it should be"
    add("--change", metavar="MODULE:NAME", help=change)
    units = "the capacity units to use, at most"
    add("--units-per-second", metavar="N", type=float, help=units)
    segments = "parts of a table that are rewritten at the same time"
    add("--segments", metavar="N", type=int, help=segments)
    add("--undo-log", metavar="FILE", help="append the previous state of each item to this file")
    undo = "restore the items in this log that have not changed since, and exit"
    add("--undo", metavar="FILE", help=undo)
    prefix = "the prefix of all table names"
    add("--table-prefix", metavar="TEXT", default="", help=prefix)
    add_progress_argument(parser)
    add("--json", action="store_true", help="print the results as JSON")
    add("--yes", action="store_true", help="do not ask")


def _run(arguments: argparse.Namespace) -> int:
    return _undo(arguments) if arguments.undo else _rewrite(arguments)


def _rewrite(arguments: argparse.Namespace) -> int:
    if arguments.module is None:
        raise UsageError("give MODULE and ADDRESS, such as: isotone rewrite shop shop.db --dry-run")
    entities = _entities(arguments.module)
    change = None if arguments.change is None else _function(arguments.change)
    check_exists(arguments.address)
    names = ", ".join(entity.__name__ for entity in entities)
    if not arguments.dry_run:
        confirm(arguments, f"rewrite {names} in {arguments.address}")
    results = {}
    with modules.connect_store(arguments.address, arguments.table_prefix) as store:
        try:
            with progress_output("rewrite", arguments) as output:
                for entity in entities:
                    done = _rewrite_one(store, entity, change, output, arguments)
                    results[entity.__name__] = done
        except KeyboardInterrupt:
            print_error("interrupted; the same command continues where it was")
            return INTERRUPTED
    _print(results, is_json=arguments.json)
    return 0 if all(result.is_clean for result in results.values()) else _LEFT


def _rewrite_one(
    store: Store,
    entity: type[isotone.Entity],
    change: Any,
    output: ProgressOutput,
    arguments: argparse.Namespace,
) -> Rewritten:
    def show(done: Rewritten) -> None:
        members = {
            "table": entity.__name__ if done.progress is None else done.progress.table,
            "entity": entity.__name__,
            "items": done.seen,
            "of_items": 0 if done.progress is None else done.progress.of_items,
            "rewritten": done.rewritten,
        }
        output.show(f"{entity.__name__}: {done}; {done.progress}", members, state="rewriting")

    return store.rewrite(
        entity,
        change=change,
        dry_run=arguments.dry_run,
        units_per_second=arguments.units_per_second,
        segments=1 if arguments.segments is None else arguments.segments,
        undo=arguments.undo_log,
        progress=show,
    )


def _print(results: dict[str, Rewritten], *, is_json: bool) -> None:
    if is_json:
        print(
            msgspec.json.encode(
                {name: msgspec.Raw(r.to_json()) for name, r in results.items()}
            ).decode()
        )
        return
    for name, result in results.items():
        print(f"{name}: {result}")
        for kind, count in sorted(result.kinds.items(), key=lambda each: -each[1]):
            print(f"  {count:,} {kind}")
        for example in result.examples if result.is_dry_run else ():
            print(f"  for example {example}")
        for failure in result.failures:
            print(f"  not rewritten: {failure}")


def _undo(arguments: argparse.Namespace) -> int:
    for name, option in _NOT_OF_AN_UNDO.items():
        if getattr(arguments, name) not in (None, False):
            raise UsageError(
                f"{option} is for a rewrite, and --undo restores all items of its log; leave one of them out"
            )
    if not Path(arguments.undo).is_file():
        raise UsageError(f"there is no undo log {arguments.undo}")
    check_exists(arguments.address)
    confirm(arguments, f"restore the items of {arguments.undo} in {arguments.address}")
    with modules.connect_store(arguments.address, arguments.table_prefix) as store:
        try:
            with progress_output("rewrite", arguments) as output:
                show = partial(output.show, state="undoing")
                done: Undone = store.undo(arguments.undo, progress=show)
        except KeyboardInterrupt:
            print_error("interrupted; the same command continues")
            return INTERRUPTED
    print(done.to_json() if arguments.json else done)
    return _LEFT if done.changed else 0


# Arguments


def _entities(text: str) -> list[type[isotone.Entity]]:
    """The entities to rewrite: the named ones, and all entities of the named tables."""
    found: dict[str, type[isotone.Entity]] = {}
    for target in modules.targets(text):
        if not isinstance(target, isotone.Table):
            found[target.__name__] = target
            continue
        for schema in target.entities.values():
            if schema.base is None:  # kinds are rewritten with the entity that they extend
                found[schema.entity.__name__] = schema.entity
    return list(found.values())


def _function(text: str) -> Any:
    module, _, name = text.partition(":")
    if not module or not name:
        raise UsageError(f"--change {text!r} does not name a function; write MODULE:NAME")
    found = modules.member(modules.load(module, f":{name}"), name)
    if not callable(found):
        raise UsageError(f"--change {text} is {found!r}, not a function")
    return found


def confirm(arguments: argparse.Namespace, what: str) -> None:
    """Ask at a terminal; raises `UsageError` if the answer is no, or if there is no terminal."""
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"give --yes to {what} without confirmation; --dry-run only shows what it would do"
        )
    sys.stderr.write(f"{hidden(what)}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was written")


DEFINITIONS: Final = {
    "rewrite": Command(
        """\
Bring the items of a table to the form that the program writes now: index keys, primary keys, tags, versions, values.
Programs may read and write meanwhile. To continue an interrupted rewrite, run the same command again.

MODULE declares the entities, MODULE:NAME,NAME names some of its tables and entities. Modules are imported from
the current directory first.

Exits with 0 if all items are as declared, with 1 if some could not be rewritten, with 2 if nothing could be, and
with 130 after Ctrl-C.""",
        examples="""
isotone rewrite shop shop.db --dry-run                       what would be rewritten, with examples
isotone rewrite shop:Order shop.db --undo-log orders.undo
isotone rewrite shop:Order dynamodb://eu-west-1 --units-per-second 200 --segments 4 --yes
isotone rewrite shop:Person shop.db --change migrations:split_name
isotone rewrite --undo orders.undo shop.db                   restore what has not changed since
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
