"""`isotone export` and `isotone import`: items of a table to files and back; --types, --bad-rows, --with-table."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from isotone import moving
from isotone.cli.database import ADDRESSES, check_exists
from isotone.cli.jobs import add_result_arguments, add_state_arguments, interrupted, running_job
from isotone.cli.program import Command, naming, print_error
from isotone.errors import UsageError
from isotone.output_paths import STANDARD
from isotone.text_table import pluralized

_BAD_ROWS: Final = 1  # the exit code if some rows were not imported
_FORMATS: Final = ("jsonl", "dynamodb-json", "ion", "csv", "parquet")


# export


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("source", metavar="SOURCE", help=ADDRESSES)
    add("table", metavar="TABLE")
    to = "a file, a folder (with / at its end), or - for standard output, the default"
    add("target", metavar="TO", nargs="?", default=STANDARD, help=to)
    add("--format", choices=_FORMATS, help="the format, if the name of TO does not say it")
    add("--with-table", action="store_true", help="write the table's description beside the items")
    add("--force", action="store_true", help="replace an existing file")
    segments = "parts of the table that are read at the same time"
    add("--segments", metavar="N", type=int, help=segments)
    add("--read-units", metavar="N", type=float, help="capacity units to use in a second, at most")
    add_state_arguments(parser)
    add_result_arguments(parser)


def _export(arguments: argparse.Namespace) -> int:
    check_exists(arguments.source)
    target = None if arguments.target == STANDARD else arguments.target
    out = sys.stderr if target is None else sys.stdout  # the items are on standard output

    def print_result(done: moving.Exported) -> None:
        output.end("complete" if done.is_complete else "interrupted", {"items": done.items})
        if arguments.json:
            out.write(_json_of(done) + "\n")
        elif not arguments.quiet:
            of = f"{pluralized(done.items, 'item')} of {arguments.table}"
            out.write(f"{of} written to {arguments.target}\n")
        out.flush()

    with running_job("export", arguments) as (job, output), naming(target):
        job.watch(partial(output.show, state="exporting"))
        done: moving.Exported = job.run(
            moving.export_items,
            arguments.source,
            arguments.table,
            arguments.target,
            format=arguments.format,
            with_table=arguments.with_table,
            force=arguments.force,
            segments=arguments.segments,
            read_units=arguments.read_units,
            state=arguments.state,
            restart=arguments.restart,
            progress=job.report,
            on_complete=print_result,
            stop=job.stop,
        )
        if not done.is_complete:  # otherwise the result is already printed
            print_result(done)
    return interrupted(done.state) if job.state == "stopped" else 0


EXPORT: Final = Command(
    """\
Write the items of a table to a file, a folder, or standard output.

The name says the format: .jsonl (plain JSON lines), .csv, .parquet, .ion, each also with .gz or .zst. --format
dynamodb-json writes JSON lines as AWS's exports have them. A folder gets data files and manifests as
ExportTableToPointInTime writes them.

The file gets its name when it is complete. To continue an interrupted export, run the same command again.""",
    examples="""
isotone export shop.db Orders orders.jsonl.gz
isotone export shop.db Orders orders.csv
isotone export dynamodb://eu-west-1 Orders exports/ --with-table --read-units 500
isotone export shop.db Orders | jq .total
""",
    add_arguments=_export_arguments,
    run=_export,
)


# import


def _import_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("source", metavar="FROM", help="a file, a folder with exports, or - for standard input")
    add("target", metavar="TARGET", help=ADDRESSES)
    add("table", metavar="TABLE")
    add("--format", choices=_FORMATS, help="the format, if the name of FROM does not say it")
    types = "types of CSV columns: S, N, B, BOOL or JSON, as in total:N,paid:BOOL"
    add("--types", metavar="NAME:TYPE,…", help=types)
    key = "make the table if it is missing, with this partition key; :N is a number, :B binary"
    add("--key", metavar="NAME", help=key)
    add("--sort-key", metavar="NAME", help="the sort key of that table")
    bad = "write bad rows to this file, with their numbers and reasons, and continue"
    add("--bad-rows", metavar="FILE", help=bad)
    add("--workers", metavar="N", type=int, help="threads that write at the same time")
    add("--write-units", metavar="N", type=float, help="capacity units to use in a second, at most")
    add_state_arguments(parser)
    add_result_arguments(parser)


def _import(arguments: argparse.Namespace) -> int:
    makes_table = arguments.key or Path(arguments.source.rstrip("/") + ".table.json").exists()
    if not makes_table:
        check_exists(arguments.target, "; isotone create makes it, or --key here")

    def print_result(done: moving.Imported) -> None:
        members = {"items": done.items, "deleted": done.deleted, "bad": done.bad}
        output.end("complete" if done.is_complete else "interrupted", members)
        for text in () if arguments.quiet else done.missing:
            print_error(f"note: {text}")
        if arguments.json:
            print(_json_of(done))
        elif not arguments.quiet:
            _print_imported(done, arguments)
        sys.stdout.flush()

    with running_job("import", arguments) as (job, output):
        job.watch(partial(output.show, state="importing"))
        done: moving.Imported = job.run(
            moving.import_items,
            arguments.source,
            arguments.target,
            arguments.table,
            format=arguments.format,
            types=_types(arguments.types),
            key=arguments.key,
            sort_key=arguments.sort_key,
            bad_rows=arguments.bad_rows,
            workers=arguments.workers,
            write_units=arguments.write_units,
            state=arguments.state,
            restart=arguments.restart,
            progress=job.report,
            on_complete=print_result,
            stop=job.stop,
        )
        if not done.is_complete:  # otherwise the result is already printed
            print_result(done)
    if job.state == "stopped":
        return interrupted(done.state)
    return _BAD_ROWS if done.bad else 0


def _print_imported(done: moving.Imported, arguments: argparse.Namespace) -> None:
    parts = [f"{pluralized(done.items, 'item')} written to {arguments.table}"]
    if done.deleted:
        parts.append(f"{done.deleted:,} deleted")
    if done.bad:
        parts.append(f"{pluralized(done.bad, 'bad row')} in {arguments.bad_rows}")
    print(", ".join(parts))


def _types(text: str | None) -> dict[str, str]:
    types = {}
    for part in text.split(",") if text else ():
        name, separator, code = part.rpartition(":")
        if not separator:
            raise UsageError(f"--types {part!r} has no type; write it like total:N,paid:BOOL")
        types[name] = code
    return types


IMPORT: Final = Command(
    """\
Write the items of a file, of standard input, or of a folder with exports of AWS into a table.

The name says the format: .jsonl (plain items, or DynamoDB JSON), .csv, .parquet, .ion, each also with .gz or .zst. In a
folder with manifests, the full export is read first, then the incremental ones in the order of their times.

A missing table is created with --key and --sort-key, or from the description that isotone export --with-table wrote.
Items with equal keys are replaced. The import stops at the first bad row, unless --bad-rows collects them. To continue
an interrupted import, run the same command again.

Exits with 0 if all rows were imported, with 1 if some were bad or it failed, with 130 after Ctrl-C.""",
    examples="""
isotone import orders.jsonl.gz shop.db Orders --key customer --sort-key placed_at
isotone import orders.csv shop.db Orders --types total:N --bad-rows bad.jsonl
isotone import exports/ shop.db Orders --key customer
isotone import orders.parquet dynamodb://eu-west-1 Orders --write-units 500
zcat orders.jsonl.gz | isotone import - shop.db Orders
""",
    add_arguments=_import_arguments,
    run=_import,
)


# Both


def _json_of(done: moving.Exported | moving.Imported) -> str:
    members = msgspec.to_builtins(done, builtin_types=(Path,), enc_hook=str)
    return msgspec.json.encode({**members, "items": done.items}, enc_hook=str).decode()


DEFINITIONS: Final = {"export": EXPORT, "import": IMPORT}
