"""`isotone check`, `isotone repair` and `isotone version`: finds damage, saves readable data, lists versions."""

from __future__ import annotations

import argparse
import json
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

import isotone
from isotone.cli.program import Command, naming
from isotone.cli.progress import add_progress_argument, progress_output
from isotone.errors import StorageCorrupt
from isotone.output_paths import check_outputs, text_output, write_text
from isotone.postgres_address import shown as shown_address
from isotone.text_table import pluralized

if TYPE_CHECKING:
    from isotone.backends import embedded

# Errors advise the user to run a check. During a check that advice is left out.
_ADVICE: Final = re.compile(r"[:.,] (so it was not copied: )?`isotone check` ")

# check


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="the database file")
    table = "check this table alone, with its indexes and streams; repeat it for more"
    add("--table", metavar="TABLE", action="append", default=[], help=table)
    processes = (
        "processes that share the work (default: 1 up to 64 MB, else one per core, at most 8)"
    )
    add("--processes", metavar="N", type=int, help=processes)
    add_progress_argument(parser)
    parser.add_argument("--quiet", action="store_true", help="print problems only")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _check(arguments: argparse.Namespace) -> int:
    from isotone.backends import embedded

    embedded.check_exists(arguments.file)
    shown = shown_address(arguments.file)
    try:
        with progress_output("check", arguments) as output:

            def show(progress: embedded.CheckProgress) -> None:
                output.show(progress, progress._asdict(), state="checking")

            found, items = embedded.check(
                arguments.file,
                tables=arguments.table,
                processes=arguments.processes,
                watch=show,
            )
            output.end("complete", {"items": items, "problems": len(found)})
    except StorageCorrupt as error:
        found, items = [str(error)], 0
    problems = [_ADVICE.split(problem)[0] for problem in found]
    if arguments.json:
        print(json.dumps({"file": shown, "items": items, "problems": problems}))
        return 1 if problems else 0
    for problem in problems:
        print(problem)
    if problems:
        print(
            f"{shown}: {pluralized(len(problems), 'problem')}; restore a backup, or save what can be read: "
            f"isotone repair {shown} NEW_FILE"
        )
        return 1
    if not arguments.quiet:
        where = f" in {', '.join(arguments.table)}" if arguments.table else ""
        print(f"{shown}: all is well{where} ({pluralized(items, 'item')})")
    return 0


CHECK: Final = Command(
    """\
Verify a file: its structure, the checksum and the place of each item, the completeness of each index, and the counts.
Reads everything and changes nothing. It continues after damage, and names each damaged item. If the descriptions of
the tables are damaged, it checks all entries that it can read. With --table it leaves out what is of no table.

Exits with 0 if everything is correct. Otherwise it prints each problem and exits with 1.""",
    examples="""
isotone check shop.db
isotone check shop.db --table Orders --table Users
isotone check shop.db --processes 4 --json
isotone check shop.db --quiet && isotone backup shop.db backup.db
""",
    add_arguments=_check_arguments,
    run=_check,
)


# repair

_SHOWN: Final = 20  # printed losses, if there is a report with all of them


def _repair_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the damaged file, which is not changed")
    parser.add_argument("target", metavar="NEW_FILE", help="the file to write")
    parser.add_argument(
        "--report", metavar="FILE", help="write what was lost to a file, as JSON lines"
    )
    add_progress_argument(parser)
    parser.add_argument("--quiet", action="store_true", help="print what was lost only")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _repair(arguments: argparse.Namespace) -> int:
    report = text_output("--report", arguments.report, b'{"what": ')
    check_outputs(report, inputs={"FILE": arguments.file, "NEW_FILE": arguments.target})
    with progress_output("repair", arguments) as output:

        def show(done: int, total: int) -> None:
            members = {"pages": done, "of_pages": total}
            if done < total:
                output.show(f"page {done:,} of {total:,}", members, state="reading")
            else:
                text = "rebuilding the indexes, and checking the new file"
                output.show(text, members, state="rebuilding", at_once=output.is_live)

        result = isotone.repair(arguments.file, arguments.target, progress=show)
    if report is not None:
        with naming(report.path):
            write_text(report, "".join(json.dumps(lost) + "\n" for lost in result.lost))
    if arguments.json:
        print(json.dumps({name: getattr(result, name) for name in result.__struct_fields__}))
    else:
        shown = result.lost if report is None else result.lost[:_SHOWN]
        for lost in shown:
            print(f"lost: {json.dumps(lost, ensure_ascii=False)}")
        if len(shown) < len(result.lost):
            print(
                f"and {pluralized(len(result.lost) - len(shown), 'more loss', 'more losses')}: see {arguments.report}"
            )
        for problem in result.problems:
            print(problem)
        if not arguments.quiet:
            items = sum(result.items.values())
            losses = (
                pluralized(len(result.lost), "loss", "losses") if result.lost else "nothing lost"
            )
            damaged = pluralized(len(result.rebuilt), "damaged entry", "damaged entries")
            rebuilt = f", {damaged} of indexes and counts rebuilt" if result.rebuilt else ""
            print(f"{arguments.target}: {pluralized(items, 'item')} saved, {losses}{rebuilt}")
    return 1 if result.lost or result.problems else 0


REPAIR: Final = Command(
    """\
Save everything that can be read of a damaged file into a new one. Each page is read separately, and each entry whose
checksum is right is saved; indexes and counts are rebuilt. What could not be saved is listed.

FILE is not changed; first stop the programs that use it. Needs free disk space of twice its size. Exits with 0 if nothing was
lost, otherwise with 1. Interrupting it leaves no NEW_FILE.""",
    examples="""
isotone repair shop.db repaired.db
isotone repair shop.db repaired.db --report lost.jsonl
""",
    add_arguments=_repair_arguments,
    run=_repair,
)


# version

_PACKAGES: Final = ("apsw", "msgspec", "httptools", "uvloop", "sortedcontainers")
_OPTIONAL: Final = (
    "pydantic",
    "zlib-ng",
    "boto3",
    "aioboto3",
    "numpy",
    "pyarrow",
    "opentelemetry-api",
)


def versions(*, optional: bool = False) -> dict[str, str]:
    """Package → version, of Isotone, Python and what they use; with those of the extras, if wanted."""
    names = (*_PACKAGES, *_OPTIONAL) if optional else _PACKAGES
    found = {"isotone": isotone.__version__, "python": sys.version.split()[0]}
    return found | {name: _version_of(name) for name in names}


def _version_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--short", action="store_true", help="only Isotone's version")
    parser.add_argument("--json", action="store_true", help="print the versions as JSON")


def _version(arguments: argparse.Namespace) -> int:
    if arguments.short:
        print(json.dumps(isotone.__version__) if arguments.json else isotone.__version__)
    elif arguments.json:
        print(json.dumps(versions()))
    else:
        for name, number in versions().items():
            print(f"{name} {number}")
    return 0


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


VERSION: Final = Command(
    "Print the versions of Isotone and of the packages it uses.",
    examples="""
isotone version
isotone version --short
isotone version --json
""",
    add_arguments=_version_arguments,
    run=_version,
)


DEFINITIONS: Final = {"check": CHECK, "repair": REPAIR, "version": VERSION}
