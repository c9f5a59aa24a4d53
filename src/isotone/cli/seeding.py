"""`isotone seed`: fills tables with sample data: how many items (--items, --per), and how uneven (--popularity)."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

import msgspec

import isotone
from isotone.backends.addresses import file_of
from isotone.cli import modules
from isotone.cli.database import ADDRESSES
from isotone.cli.jobs import add_result_arguments, add_state_arguments, interrupted
from isotone.cli.program import Command
from isotone.cli.progress import ProgressOutput, progress_output
from isotone.cli.simulating import number
from isotone.design import (
    UNTIL,
    SampleData,
    SampleRequest,
    Seeded,
    SeedProgress,
    Several,
    write_sample,
)
from isotone.errors import UsageError
from isotone.output_paths import check_outputs
from isotone.tables.description import describe_table
from isotone.tables.job_state import JobState, address_text, state_output
from isotone.tables.jobs import state_of
from isotone.text_table import pluralized

_ENTRY: Final = "seed"
_SAVE_EVERY: Final = 1.0
_YEARS: Final = range(1000, 9901)  # a sample has times some decades around the one that is given


class _Saved(msgspec.Struct):
    """How far an interrupted run came: `done` of `of` items of a `model`, in `tables` with their identities."""

    done: int
    of: int
    model: str
    tables: dict[str, str]


def add_sample_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say what is in a sample."""
    add = parser.add_argument
    items = "how many items of an entity, such as Customer=1000 or 10k; repeat it for more (default 100)"
    add(
        "--items",
        metavar="ENTITY=N",
        action="append",
        default=[],
        type=_pair_of(number),
        help=items,
    )
    per = "how many children each parent has, such as Customer:Order=3..40; ,zipf for few with many (default 1..10)"
    add("--per", metavar="PARENT:CHILD=N..M", action="append", default=[], type=_per, help=per)
    popularity = (
        "how unequally fields refer to the items of an entity: 0 is all alike, 1 is Zipf's law"
    )
    add(
        "--popularity",
        metavar="ENTITY=N",
        action="append",
        default=[],
        type=_pair_of(_exponent),
        help=popularity,
    )
    add(
        "--seed", type=int, default=0, metavar="N", help="another seed makes other data (default 0)"
    )
    until = f"the sample's times are in the year before this one (default {UNTIL:%Y-%m-%d})"
    add("--until", metavar="TIME", type=_time, default=UNTIL, help=until)
    faker = "names and addresses by Faker, in its locale, such as de_DE; needs pip install faker"
    add("--faker", metavar="LOCALE", help=faker)


def request_of(arguments: argparse.Namespace) -> SampleRequest:
    """What the arguments ask of a sample."""
    return SampleRequest(
        items=by_name("--items", arguments.items),
        per=by_name("--per", arguments.per),
        popularity=by_name("--popularity", arguments.popularity),
        seed=arguments.seed,
        until=arguments.until,
        faker=arguments.faker,
    )


def by_name(option: str, pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """The values of a repeated option by their names; raises `UsageError` for a name that is given twice."""
    found: dict[Any, Any] = {}
    for name, value in pairs:
        if name in found:
            shown = name if isinstance(name, str) else ":".join(each for each in name[::-1] if each)
            raise UsageError(f"{option} gives {shown} twice")
        found[name] = value
    return found


def _pair_of(value_of: Callable[[str], Any]) -> Callable[[str], tuple[str, Any]]:
    def pair(text: str) -> tuple[str, Any]:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise argparse.ArgumentTypeError(f"{text!r} is not ENTITY=N, such as Customer=1000")
        return name, value_of(value)

    return pair


def _exponent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 3:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 3")
    return value


def _per(text: str) -> tuple[tuple[str, str], Several]:
    names, equals, count = text.partition("=")
    parent, colon, child = names.rpartition(":")
    if not equals or not child or (colon and not parent):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not PARENT:CHILD=N..M, such as Customer:Order=3..40"
        )
    try:
        return (child, parent), Several.of(count)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time, such as 2026-01-01") from None
    if found.year not in _YEARS:
        raise argparse.ArgumentTypeError(f"{text!r} is not in the years 1000 to 9900")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    names = "a module with entities; MODULE:NAME,NAME for some of its tables and entities"
    add("module", metavar="MODULE", help=names)
    add("address", metavar="ADDRESS", help=f"{ADDRESSES}; a missing file is created")
    add_sample_arguments(parser)
    add("--add", action="store_true", help="write into tables that have items; those stay")
    add("--table-prefix", metavar="TEXT", default="", help="the prefix of all table names")
    add_state_arguments(parser)
    add_result_arguments(parser)


def _run(arguments: argparse.Namespace) -> int:
    inputs = {"ADDRESS": file_of(arguments.address)}
    check_outputs(state_output(arguments.state), inputs=inputs)
    sample = SampleData(modules.targets(arguments.module), request_of(arguments))
    options = json.dumps([arguments.items, arguments.per, arguments.popularity, arguments.faker])
    of = f"{options} {arguments.seed} {arguments.until.isoformat()}"
    address = address_text(arguments.address)
    words = ("seed", address, arguments.table_prefix + arguments.module, of)
    with (
        state_of(*words, path=arguments.state) as state,
        modules.connect_store(arguments.address, arguments.table_prefix, create=True) as store,
        progress_output("seed", arguments) as output,
    ):
        made = store.create_tables(*sample.tables) if sample.tables else []
        tables = {each.name: _identity(store, each) for each in sample.tables}
        watching = _SeedOutput(state, output, sample, tables, restart=arguments.restart)
        steps = write_sample(
            store.calls,
            sample,
            add=arguments.add,
            start=watching.done,
            is_begun=watching.is_continued,
            progress=watching,
        )
        try:
            done = replace(store.run(steps), tables=tuple(made))
        except KeyboardInterrupt:
            watching.save()
            output.end("interrupted", {"items": watching.done})
            return interrupted(state.path)
        except BaseException:
            watching.save()
            raise
        state.end(lambda: _print(done, output, arguments), _ENTRY)
    return 0


def _identity(store: isotone.Store, table: isotone.Table) -> str:
    """What distinguishes a table from a later one of the same name."""
    return store.run(describe_table(table.name)).identity


def _digest_of(sample: SampleData) -> str:
    """A digest of the first item of each entity: another model, or another version of Faker, makes others."""
    firsts = [repr(next(each.entities())) for each in sample.of.values() if each.count]
    return blake2b("\n".join(firsts).encode(), digest_size=8).hexdigest()


class _SeedOutput:
    """Shows the progress, and saves it. A run in other tables than the interrupted one begins again."""

    def __init__(
        self,
        state: JobState,
        output: ProgressOutput,
        sample: SampleData,
        tables: dict[str, str],
        *,
        restart: bool,
    ) -> None:
        self._state = state
        self._output = output
        self._begun = _Saved(0, sample.count, _digest_of(sample), tables)
        found = None if restart else state.get(_ENTRY, _Saved)
        self.is_continued = found is not None and found.tables == tables
        self.done = 0
        if found is not None and self.is_continued:
            self._check_same(found)
            self.done = found.done
        self._saved: float | None = None  # nothing, as long as the tables may be those of others

    def _check_same(self, found: _Saved) -> None:
        if (found.of, found.model) != (self._begun.of, self._begun.model):
            raise UsageError(
                f"the interrupted run had {pluralized(found.of, 'item')}, and this one has {self._begun.of:,}, or other "
                "values: the model has changed; delete the tables, or give --restart --add to write what is missing"
            )

    def __call__(self, progress: SeedProgress) -> None:
        self.done = progress.items
        self._output.show(progress, state="seeding")
        if self._saved is None or time.monotonic() - self._saved >= _SAVE_EVERY:
            self._save()

    def save(self) -> None:
        """Save how many items are written, once writing has begun."""
        if self._saved is not None:
            self._save()

    def _save(self) -> None:
        self._saved = time.monotonic()
        self._state.set(_ENTRY, msgspec.structs.replace(self._begun, done=self.done))


def _print(done: Seeded, output: ProgressOutput, arguments: argparse.Namespace) -> None:
    total = sum(done.items.values())
    output.end("complete", {"items": total})
    if arguments.json:
        members = {"items": total, "entities": done.items, "kept": done.kept, "tables": done.tables}
        print(json.dumps(members))
    elif not arguments.quiet:
        print(done)


DEFINITIONS: Final = {
    "seed": Command(
        """\
Fill tables with sample data: items with values of the declared types and bounds, children whose parents exist, unique
values that are unique. The same seed makes the same items, on every machine.

MODULE declares the entities, MODULE:NAME,NAME names some of its tables and entities. Missing tables are created. A table
that has items is refused without --add. To continue an interrupted run, run the same command again.

Exits with 0 if all items are written, with 2 if not, and with 130 after Ctrl-C.""",
        examples="""
isotone seed shop shop.db                                        100 of each parent, 1 to 10 children of each
isotone seed shop shop.db --items Customer=1000 --per Customer:Order=3..40 --seed 7
isotone seed shop shop.db --per Customer:Order=0..500,zipf       few customers with most of the orders
isotone seed shop http://localhost:8000 --popularity Product=1 --add
isotone seed shop shop.db --faker de_DE
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
