"""`isotone backup` (--update), `isotone restore` (--force) and `isotone compact`: copies of a database file, and its size."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import isotone
from isotone.cli.program import Command
from isotone.cli.progress import add_progress_argument, progress_output
from isotone.cli.tables import size_text


def _options(parser: argparse.ArgumentParser) -> None:
    add_progress_argument(parser)
    parser.add_argument("--quiet", action="store_true", help="print problems only")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


# backup


def _backup_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the database file")
    parser.add_argument("target", metavar="TARGET", help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace an existing TARGET")
    parser.add_argument("--compact", action="store_true", help="leave out free pages")
    parser.add_argument(
        "--update",
        action="store_true",
        help="bring an earlier backup up to date, and write only what differs",
    )
    _options(parser)


def _backup(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    with _progress("backup", arguments) as show:
        size = isotone.backup(
            arguments.file,
            arguments.target,
            force=arguments.force,
            compact=arguments.compact,
            update=arguments.update,
            progress=show,
        )
    _report(
        arguments,
        {"target": arguments.target, "size": size, "seconds": _since(started)},
        f"{arguments.file} was backed up to {arguments.target} ({size_text(size)})",
    )
    return 0


BACKUP: Final = Command(
    """\
Copy a database file while servers and programs write to it. The copy shows the file at one moment. It is checked, and
gets its name when it is complete and on the disk.

Writers do not wait. Until the backup ends, their writes stay in the log, FILE-wal, which grows.""",
    examples="""
isotone backup shop.db backups/shop-2026-11-22.db
isotone backup shop.db backups/shop.db --force          replace the backup of yesterday
isotone backup shop.db backups/shop.db --update         the same, and write only what differs
isotone backup shop.db small.db --compact
""",
    add_arguments=_backup_arguments,
    run=_backup,
)


# restore


def _restore_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backup", metavar="BACKUP", help="a file that isotone backup wrote")
    parser.add_argument("file", metavar="FILE", help="the database file to make")
    parser.add_argument(
        "--force", action="store_true", help="replace the content of an existing FILE"
    )
    _options(parser)


def _restore(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    with _progress("restore", arguments) as show:
        size = isotone.restore(
            arguments.backup, arguments.file, force=arguments.force, progress=show
        )
    _report(
        arguments,
        {"file": arguments.file, "size": size, "seconds": _since(started)},
        f"{arguments.file} was restored from {arguments.backup} ({size_text(size)})",
    )
    return 0


RESTORE: Final = Command(
    """\
Make a database file of a backup, which is checked first.

With --force, the content of an existing FILE is replaced in one transaction: programs that have it open see either all
of the old content or all of the new. A FILE that is too damaged for that is replaced as a whole; first stop
the programs that use it.""",
    examples="""
isotone restore backups/shop.db shop.db
isotone restore backups/shop.db shop.db --force
""",
    add_arguments=_restore_arguments,
    run=_restore,
)


# compact


def _compact_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the database file")
    _options(parser)


def _compact(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    with _progress("compact", arguments) as show:
        before, after = isotone.compact(arguments.file, progress=show)
    _report(
        arguments,
        {"file": arguments.file, "before": before, "after": after, "seconds": _since(started)},
        f"{arguments.file}: {size_text(before)} before, {size_text(after)} now",
    )
    return 0


COMPACT: Final = Command(
    """\
Rewrite a file without the pages that deleted items and tables have left, and give their space back to the disk.

Readers continue meanwhile, writers wait. It needs free disk space of up to twice the size of the data. Interrupting
it changes nothing.""",
    examples="""
isotone compact shop.db
""",
    add_arguments=_compact_arguments,
    run=_compact,
)


# What they print


@contextmanager
def _progress(command: str, arguments: argparse.Namespace) -> Iterator[Callable[[int, int], None]]:
    with progress_output(command, arguments) as output:

        def show(done: int, total: int) -> None:
            text = f"{size_text(done)} of {size_text(total)} ({100 * done // max(total, 1)} %)"
            output.show(text, {"bytes": done, "of_bytes": total})

        yield show


def _report(arguments: argparse.Namespace, members: dict[str, object], sentence: str) -> None:
    if arguments.json:
        print(json.dumps(members))
    elif not arguments.quiet:
        print(sentence)


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)


DEFINITIONS: Final = {"backup": BACKUP, "restore": RESTORE, "compact": COMPACT}
