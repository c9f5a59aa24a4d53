"""`isotone verify`: finds items that differ from what the program would write; --fail-on, --resume, --examples."""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import isotone
from isotone.backends.addresses import file_of
from isotone.cli import modules
from isotone.cli.database import ADDRESSES
from isotone.cli.program import INTERRUPTED, Command, print_error
from isotone.cli.progress import ProgressOutput, add_progress_argument, progress_output
from isotone.errors import IsotoneError
from isotone.output_paths import check_outputs
from isotone.tables.job_state import JobState, address_text, state_output

if TYPE_CHECKING:
    from isotone import Verification

_FOUND: Final = 1
_SAVE_EVERY: Final = 5.0  # seconds between two saves
_ENTRY: Final = "verification"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    names = "a module with entities; MODULE:NAME,NAME for some of its tables and entities"
    add("module", metavar="MODULE", help=names)
    add("address", metavar="ADDRESS", help=ADDRESSES)
    add("--table-prefix", metavar="TEXT", default="", help="the prefix of all table names")
    add(
        "--segments",
        metavar="N",
        type=int,
        default=1,
        help="parts of a table that are read at the same time",
    )
    add(
        "--units-per-second",
        metavar="N",
        type=float,
        help="the read capacity units to use, at most",
    )
    add("--examples", metavar="N", type=int, default=3, help="items that are kept of each finding")
    add_progress_argument(parser)
    add("--json", action="store_true", help="print the verification as JSON")
    add(
        "--resume",
        metavar="FILE",
        help="save the position here, and continue there if the file exists",
    )
    fail = "the kinds of findings that exit with 1; all but headroom by default"
    add("--fail-on", metavar="KIND,…", type=_kinds, help=fail)


def _kinds(text: str) -> frozenset[str]:
    kinds = frozenset(text.split(","))
    unknown = sorted(kinds - set(isotone.FindingCount.KINDS))
    if unknown:
        raise argparse.ArgumentTypeError(
            f"{unknown[0]!r} is not a kind of finding; kinds are {', '.join(isotone.FindingCount.KINDS)}"
        )
    return kinds


def _run(arguments: argparse.Namespace) -> int:
    check_outputs(
        state_output(arguments.resume, option="--resume"),
        inputs={"ADDRESS": file_of(arguments.address)},
    )
    targets = modules.targets(arguments.module)
    address = address_text(arguments.address) or arguments.address
    job = ("verify", arguments.module, address, arguments.table_prefix)
    with (
        JobState(arguments.resume, job) as state,
        modules.connect_store(arguments.address, arguments.table_prefix) as store,
    ):
        watching = _VerifyOutput(state, progress_output("verify", arguments))
        try:
            found = store.verify(
                *targets,
                segments=arguments.segments,
                units_per_second=arguments.units_per_second,
                examples=arguments.examples,
                progress=watching,
                resume=watching.before,
            )
        except KeyboardInterrupt:
            return watching.interrupted(is_json=arguments.json)
        except IsotoneError:
            watching.save()
            raise
        finally:
            watching.output.clear()
        state.drop(_ENTRY)
    print(found.to_json() if arguments.json else found)
    return _FOUND if any(_fails(each, arguments.fail_on) for each in found.findings) else 0


def _fails(finding: isotone.FindingCount, kinds: frozenset[str] | None) -> bool:
    return not finding.is_notice if kinds is None else finding.kind in kinds


class _VerifyOutput:
    """Shows the progress of a verification, and saves its position to a file, if one is given."""

    def __init__(self, state: JobState, output: ProgressOutput) -> None:
        self.output = output
        self.before = state.get(_ENTRY, isotone.Verification)
        self._state = state
        self._last: Verification | None = None
        self._saved = -math.inf

    def __call__(self, verification: Verification) -> None:
        self._last = verification
        self.output.show(verification.progress, state="verifying")
        if time.monotonic() - self._saved >= _SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Save the latest state of the verification."""
        if self._last is not None:
            self._saved = time.monotonic()
            self._state.set(_ENTRY, replace(self._last, progress=None))

    def interrupted(self, *, is_json: bool) -> int:
        """Print the findings so far, and how to continue."""
        self.output.clear()
        self.save()
        if self._last is not None:
            print(self._last.to_json() if is_json else self._last)
        print_error(
            "interrupted; --resume FILE would have saved where it was"
            if self._state.path is None
            else f"interrupted; the same command continues, from {self._state.path}"
        )
        return INTERRUPTED


DEFINITIONS: Final = {
    "verify": Command(
        """\
Read tables, and print which items differ from what the program would write now: values of another type, missing or stale
index keys, other primary keys, older versions, unknown attributes, markers of unique values without owners. Writes
nothing.

MODULE declares the entities, MODULE:NAME,NAME names some of its tables and entities. Modules are imported from
the current directory first.

Exits with 0 if all items are as declared, with 1 if there are findings, with 2 if the tables cannot be read, and with
130 after Ctrl-C.""",
        examples="""
isotone verify shop shop.db                                  all tables of the entities in shop.py
isotone verify shop:Order,Customer http://localhost:8000     two kinds of entities
isotone verify shop dynamodb://eu-west-1 --segments 8 --units-per-second 500 --resume shop.json
isotone verify shop shop.db --json > found.json
isotone verify shop shop.db --fail-on invalid,missing,key    exit with 1 for these alone
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
