"""`isotone copy` (--live, --cut-over) and `isotone diff`: copies tables to another engine, and compares two engines."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from isotone import moving
from isotone.backends.interface import Backend
from isotone.cli.database import ADDRESSES, MEMORY, check_exists, connect
from isotone.cli.jobs import add_result_arguments, add_state_arguments, interrupted, running_job
from isotone.cli.program import Command, print_error
from isotone.cli.progress import ProgressOutput, progress_output
from isotone.errors import UsageError
from isotone.postgres_address import hidden
from isotone.text_table import pluralized, printable
from isotone.values.notation import item_text, value_text
from isotone.values.types import AttributeValue

_NOT_EQUAL: Final = 1
_WIDEST: Final = 60  # characters of a value that are shown
_CAUGHT_UP: Final = "caught up"
_STATES: Final = {"copy": "copying", "follow": "following", "compare": "comparing"}


def _add_ends(parser: argparse.ArgumentParser, or_file: str = "") -> None:
    parser.add_argument("source", metavar="SOURCE", help=ADDRESSES + or_file)
    parser.add_argument("target", metavar="TARGET", help="an address of the other side")
    tables = "a table, or TABLE=OTHER for another name at the target; all tables if none is given"
    parser.add_argument("tables", metavar="TABLE", nargs="*", default=[], help=tables)


def _add_common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    segments = "parts of a table that are read at the same time"
    add("--segments", metavar="N", type=int, default=None, help=segments)
    read = "capacity units that reads may use in a second"
    add("--read-units", metavar="N", type=float, help=read)
    add_result_arguments(parser)


def _add_copy_arguments(parser: argparse.ArgumentParser) -> None:
    _add_ends(parser, or_file=", or a file that defines tables")
    add = parser.add_argument
    parameter = "a parameter of a template as SOURCE, or a variable of Terraform; may be repeated"
    add("--parameter", metavar="NAME=VALUE", action="append", default=[], help=parameter)
    add("--dry-run", action="store_true", help="write nothing, and print what would be copied")
    live = "follow the source's stream after the copy, until Ctrl-C"
    add("--live", action="store_true", help=live)
    until = "with --live: exit when all changes are applied; --live or --cut-over continues"
    add("--until-caught-up", action="store_true", help=until)
    cut_over = "end a live copy: apply the last changes, compare, and say when to switch"
    add("--cut-over", action="store_true", help=cut_over)
    add("--yes", action="store_true", help="do not ask whether all writers have stopped")
    existing = "write into tables that have items; equal keys are replaced"
    add("--into-existing", action="store_true", help=existing)
    add("--on-demand", action="store_true", help="make tables without provisioned throughput")
    write = "capacity units that writes may use in a second"
    add("--write-units", metavar="N", type=float, help=write)
    add_state_arguments(parser)
    _add_common(parser)


def _add_diff_arguments(parser: argparse.ArgumentParser) -> None:
    _add_ends(parser)
    shown = "keys to show of each kind of difference (default 20)"
    parser.add_argument("--limit", metavar="N", type=int, default=20, help=shown)
    items = "compare the items alone, not indexes, expiry, stream and tags"
    parser.add_argument("--items-only", action="store_true", help=items)
    _add_common(parser)


# Copy


@contextlib.contextmanager
def _source(arguments: argparse.Namespace) -> Iterator[str | Backend]:
    """The address to copy from; of a file that defines tables, a database in memory with them and their sample items."""
    from isotone.cli.definitions import parameters_of, read_definitions
    from isotone.schema.formats import defines_tables

    parameters = parameters_of(arguments)
    if not defines_tables(arguments.source):
        if parameters:
            raise UsageError(f"{arguments.source} is a database, and has no parameters")
        check_exists(arguments.source)
        yield arguments.source
        return
    if arguments.live or arguments.cut_over:
        raise UsageError(
            f"{arguments.source} defines tables, which nobody writes to: without --live"
        )
    with connect(MEMORY) as backend:
        read_definitions(arguments.source, parameters, backend)
        yield backend


def _copy(arguments: argparse.Namespace) -> int:
    if arguments.until_caught_up and not arguments.live:
        raise UsageError("--until-caught-up ends a live copy: write --live --until-caught-up")
    if arguments.cut_over and not arguments.dry_run:
        _confirm_no_writers(arguments)
    follows = arguments.live and not (arguments.cut_over or arguments.until_caught_up)
    with _source(arguments) as source, running_job("copy", arguments) as (job, output):
        showing = _CopyOutput(output, arguments)
        job.watch(showing)
        done: moving.Copied = job.run(
            moving.copy,
            source,
            arguments.target,
            _tables(arguments.tables),
            live=arguments.live,
            cut_over=arguments.cut_over,
            until=_never if follows else None,
            into_existing=arguments.into_existing,
            on_demand=arguments.on_demand,
            dry_run=arguments.dry_run,
            restart=arguments.restart,
            segments=arguments.segments,
            read_units=arguments.read_units,
            write_units=arguments.write_units,
            state=arguments.state,
            progress=job.report,
            notice=_silent if arguments.quiet else _note,
            on_complete=showing.end,
            stop=job.stop,
        )
        if not done.is_complete:  # otherwise the result is already printed
            showing.end(done)
    if job.state == "stopped" and not done.is_caught_up:
        return interrupted(done.state, ", because one side is in memory")
    if arguments.cut_over and not done.is_complete and not done.is_dry_run:
        print_error(
            "the tables differ: something still writes to the source, or has written to the target; "
            "stop it and cut over again"
        )
        return _NOT_EQUAL
    return 0


class _CopyOutput:
    """Shows the progress of a copy, and its result."""

    def __init__(self, output: ProgressOutput, arguments: argparse.Namespace) -> None:
        self._output = output
        self._arguments = arguments
        self._seen: set[tuple[str, str]] = set()

    def __call__(self, progress: moving.Progress) -> None:
        state = _STATES.get(progress.phase, progress.phase)
        if progress.phase == "follow" and progress.is_caught_up:
            state = _CAUGHT_UP
        # A live copy reports once that it follows and once that it has caught up, not at each later
        # change.
        is_new = progress.phase == "follow" and (progress.table, state) not in self._seen
        self._seen.add((progress.table, state))
        self._output.show(progress, _members(progress), state=state, at_once=is_new)

    def end(self, done: moving.Copied) -> None:
        """Print the result, before the state of a complete copy is deleted."""
        arguments = self._arguments
        self._output.end(_state_of(done), _summary(done))
        if arguments.json:
            print(_json_of(done), flush=True)
        elif not arguments.quiet:
            _print_copied(done, arguments)


def _members(progress: moving.Progress) -> dict[str, Any]:
    return {
        "table": progress.table,
        "copied": progress.items,
        "of_items": progress.of_items,
        "changes": progress.changes,
        "lag": progress.lag,
        "items_per_second": round(progress.items_per_second, 1),
        "seconds_left": progress.seconds_left,
        "read_units": progress.read_units,
        "write_units": progress.write_units,
    }


def _state_of(done: moving.Copied) -> str:
    if done.is_complete:
        return "complete"
    if done.is_dry_run:
        return "planned"
    if done.comparisons:
        return "different"
    return _CAUGHT_UP if done.is_caught_up else "interrupted"


def _summary(done: moving.Copied) -> dict[str, Any]:
    return {
        "copied": sum(each.items for each in done.tables.values()),
        "changes": sum(each.changes for each in done.tables.values()),
        "lag": max(
            (each.lag for each in done.tables.values() if each.lag is not None), default=None
        ),
        "state_file": None if done.state is None or done.is_complete else str(done.state),
    }


def _print_copied(done: moving.Copied, arguments: argparse.Namespace) -> None:
    for name, progress in done.tables.items():
        if done.is_dry_run:
            print(f"{name}: about {pluralized(progress.of_items, 'item')} would be copied")
        else:
            print(f"{progress}, {progress.seconds:,.1f} s")
    if done.dollars is not None:
        print(f"about ${done.dollars:,.2f} at Amazon, on demand by the prices of us-east-1")
    for comparison in done.comparisons.values():
        _print_comparison(comparison)
    if arguments.cut_over and done.is_complete:
        print(f"both sides are equal: switch to {hidden(arguments.target)} now")
    if arguments.until_caught_up and done.is_caught_up:
        print("all changes are applied: --live follows on, and --cut-over ends the copy")
    sys.stdout.flush()


def _json_of(done: moving.Copied) -> str:
    return msgspec.json.encode(
        {
            "tables": {name: _plain(each) for name, each in done.tables.items()},
            "missing": done.missing,
            "is_complete": done.is_complete,
            "is_caught_up": done.is_caught_up,
            "is_dry_run": done.is_dry_run,
            "state": None if done.state is None else str(done.state),
            "dollars": done.dollars,
            "comparisons": {name: _plain(each) for name, each in done.comparisons.items()},
        }
    ).decode()


def _plain(dataclass: Any) -> Any:
    return msgspec.to_builtins(dataclass)


def _never(_: object) -> bool:
    """Never ends a live copy: it follows until it is stopped."""
    return False


def _silent(_: object) -> None:
    """Print nothing."""


def _note(text: str) -> None:
    print_error(f"note: {text}")


def _confirm_no_writers(arguments: argparse.Namespace) -> None:
    """Ask whether the writers have stopped; raises `UsageError` if not, or if there is no terminal to ask at."""
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            "before --cut-over, stop all programs that write to the source; then give --yes"
        )
    source = hidden(arguments.source)
    sys.stderr.write(f"have all programs stopped writing to {source}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("not cut over; stop the writers first")


# Diff


def _diff(arguments: argparse.Namespace) -> int:
    report = _compare(arguments)
    if arguments.json:
        print(_json_of_diff(report))
    elif not arguments.quiet:
        for comparison in report.comparisons.values():
            _print_comparison(comparison)
        for name in report.only_in_source:
            print(f"{name}: only in the source")
        for name in report.only_in_target:
            print(f"{name}: only in the target")
    return 0 if report.is_equal else _NOT_EQUAL


def _compare(arguments: argparse.Namespace) -> moving.DiffReport:
    for end in (arguments.source, arguments.target):
        check_exists(end)
    with progress_output("diff", arguments) as output:
        return moving.diff(
            arguments.source,
            arguments.target,
            _tables(arguments.tables),
            shown=arguments.limit,
            segments=arguments.segments,
            read_units=arguments.read_units,
            items_only=arguments.items_only,
            progress=lambda progress: output.show(progress, state="comparing"),
        )


def _json_of_diff(report: moving.DiffReport) -> str:
    return msgspec.json.encode(
        {
            "is_equal": report.is_equal,
            "only_in_source": report.only_in_source,
            "only_in_target": report.only_in_target,
            "tables": {
                name: {**_plain(each), "is_equal": each.is_equal}
                for name, each in report.comparisons.items()
            },
        }
    ).decode()


def _print_comparison(comparison: moving.TableDifference) -> None:
    print(comparison)
    for text in comparison.settings:
        print(f"  (setting) {text}")
    for each in comparison.examples:
        key = printable(item_text(each.key))
        if each.target is None:
            print(f"- {key}  only in the source")
        elif each.source is None:
            print(f"+ {key}  only in the target")
        else:
            print(f"! {key}")
            for name, (mine, theirs) in each.attributes.items():
                print(f"    {printable(name)}: {_shown(mine)} → {_shown(theirs)}")


def _shown(value: AttributeValue | None) -> str:
    if value is None:
        return "(missing)"
    text = printable(value_text(value))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


# Both


def _tables(words: list[str]) -> Mapping[str, str] | None:
    """The tables that a command line names; None for all tables."""
    names: dict[str, str] = {}
    for word in words:
        name, _, to = word.partition("=")
        if names.get(name, to or name) != (to or name):
            raise UsageError(
                f"table {name} is named twice, as {names[name]} and {to or name}; use a command for each"
            )
        names[name] = to or name
    return names or None


DEFINITIONS: Final = {
    "copy": Command(
        """\
Copy tables from one engine to another: a file, a server, Amazon's service, in any direction. The tables are created on
the target with their indexes; expiry, tags and the stream are set after the items are copied. Features that the target
lacks are reported before the first item.

SOURCE may also be a file that defines tables: a model of NoSQL Workbench, whose sample items are copied too, a template
of CloudFormation or SAM, Terraform, or a request of CreateTable (isotone schema --help).

To continue a copy that was interrupted or killed, run the same command again.

With --live, programs may keep writing to the source: changes are read from its stream. When there is no lag left, stop
the writers, run the same command with --cut-over, and switch to the target when it says so.

Exits with 0 when everything was copied, with 1 after an error or if a cut-over found differences, with 130 after
Ctrl-C.""",
        examples="""
isotone copy shop.db http://localhost:8000 --dry-run
isotone copy shop.db dynamodb://eu-west-1 Orders --write-units 500
isotone copy dynamodb://eu-west-1 shop.db Orders=Orders-2026
isotone copy nosql-workbench-model.json shop.db
isotone copy shop.db http://localhost:8000 --live
isotone copy shop.db http://localhost:8000 --live --cut-over
""",
        add_arguments=_add_copy_arguments,
        run=_copy,
    ),
    "diff": Command(
        """\
Compare tables of two engines: their definitions, how many items they have, whether the items are the same, and the keys
that differ, with the attributes that do. Numbers are compared by their value, sets without an order.

Each table is read once, and once more if it differs. Compare while nobody writes.

Exits with 0 if all is equal, with 1 if something differs, with 2 if it could not be compared.""",
        examples="""
isotone diff shop.db dynamodb://eu-west-1
isotone diff shop.db http://localhost:8000 Orders --limit 100
isotone diff monday.db tuesday.db Orders=Orders-old --json
""",
        add_arguments=_add_diff_arguments,
        run=_diff,
    ),
}
