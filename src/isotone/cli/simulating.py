"""`isotone simulate`: forecasts a workload at its real size; --members, --shard, --prices, --plot, --check."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final

from isotone.advisor.simulation import (
    DEFAULT_MEMBERS,
    Forecast,
    MeasuredFigure,
    SimulationInterrupted,
    Workload,
    check,
    report,
    simulate,
)
from isotone.advisor.simulation.forecast import as_dict
from isotone.advisor.simulation.report_text import ASSUMPTIONS
from isotone.cli import modules
from isotone.cli.program import INTERRUPTED, Command, print_error
from isotone.cli.progress import add_progress_argument, progress_output
from isotone.design.sheet_request import amount
from isotone.errors import UsageError
from isotone.output_paths import check_outputs
from isotone.prices import US_EAST_1, Prices
from isotone.text_table import pluralized

_OFF: Final = 0.10  # a relative error above this fails a check
_CHECK_FAILED: Final = 1
_FIRST_LINE: Final = 1.0  # seconds; a run of many members takes minutes


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("workload", metavar="WORKLOAD", help="MODULE:NAME, or a file that ends in .toml")
    add(
        "--size",
        type=number,
        metavar="N",
        help="members of the largest population, such as 10_000_000 or 10M (default: as declared)",
    )
    add(
        "--members",
        type=number,
        default=DEFAULT_MEMBERS,
        metavar="N",
        help=f"how many of them are run (default {DEFAULT_MEMBERS}); the report says if they are too few",
    )
    add("--seed", type=int, default=0, metavar="N", help="the seed of random choices (default 0)")
    add(
        "--shard",
        action="append",
        default=[],
        type=_shard,
        metavar="KEY=N",
        help="divide a hot key into N, as the report names it; repeat it for more",
    )
    add("--prices", metavar="FILE", help="a TOML file with the prices of your region")
    add(
        "--check",
        action="store_true",
        help="run ten times as many members too, but --size at most, and compare; exits with 1 if off by more than 10 %%",
    )
    add("--plot", metavar="FILE", help="write a picture: .png, .svg or .pdf")
    add_progress_argument(parser)
    add("--json", action="store_true", help="print the forecast as JSON")


def number(text: str) -> int:
    """A number of an argument: `2500`, `250_000`, `10k` or `10M`."""
    try:
        return round(amount(text))
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _shard(text: str) -> tuple[str, int]:
    key, equals, number = text.rpartition("=")
    if not equals or not number.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=N, such as 'Songs: CHART=10'")
    return key, int(number)


def _run(arguments: argparse.Namespace) -> int:
    from isotone.advisor.simulation import plots

    picture = None if arguments.plot is None else plots.picture_output("--plot", arguments.plot)
    check_outputs(picture, inputs={"WORKLOAD": arguments.workload, "--prices": arguments.prices})
    found, compared, is_whole = _simulated(arguments, workload_of(arguments.workload))
    if found is None:
        print_error("interrupted; too few runs are finished for a forecast")
        return INTERRUPTED
    if arguments.plot:
        plots.save(found, arguments.plot)
    _print(found, compared, is_json=arguments.json)
    if not is_whole:
        print_error("interrupted; this is what the finished runs say")
        return INTERRUPTED
    return _CHECK_FAILED if any(abs(each.difference) > _OFF for each in compared) else 0


def _simulated(
    arguments: argparse.Namespace, workload: Workload
) -> tuple[Forecast | None, list[MeasuredFigure], bool]:
    """The forecast, its check, and whether both are complete; after Ctrl-C, the results so far."""
    prices = Prices.from_file(arguments.prices) if arguments.prices else US_EAST_1
    found: Forecast | None = None
    compared: list[MeasuredFigure] = []
    with progress_output("simulate", arguments, first=_FIRST_LINE) as output:

        def show(what: str, done: int, of: int) -> None:
            text = f"{what}: {done:,} of {pluralized(of, 'call')} ({done / of:.0%})"
            output.show(text, {"running": what, "calls": done, "of_calls": of})

        try:
            found = simulate(
                workload,
                size=arguments.size,
                members=arguments.members,
                seed=arguments.seed,
                prices=prices,
                shards=dict(arguments.shard),
                progress=show,
            )
            if arguments.check:
                compared = check(found, progress=show)
        except KeyboardInterrupt as interrupt:
            output.end("interrupted")
            known = interrupt.forecast if isinstance(interrupt, SimulationInterrupted) else found
            return known, [], False
        output.end("complete")
    return found, compared, True


def _print(found: Forecast, compared: list[MeasuredFigure], *, is_json: bool) -> None:
    if not is_json:
        print(report(found, compared), end="")
        return
    checked = [{**each._asdict(), "difference": each.difference} for each in compared]
    document = {**as_dict(found), "assumptions": ASSUMPTIONS}
    if compared:
        document["checked"] = checked
    print(json.dumps(document, indent=2))


def workload_of(text: str) -> Workload:
    """The workload that an argument names: MODULE, MODULE:NAME, or a TOML file. Raises `UsageError`."""
    if text.endswith(".toml"):
        modules.import_from_current_directory()
        return Workload.from_file(text)
    name, colon, member = text.partition(":")
    if Path(name).suffix not in ("", ".py") and Path(name).is_file():
        raise UsageError(
            f"{name} is not a workload; give MODULE:NAME, such as shop_load:load, or a file that ends in .toml"
        )
    module = modules.load(name, f":{member}" if colon else "")
    if colon:
        found = modules.member(module, member)
        if not isinstance(found, Workload):
            raise UsageError(f"{text} is {found!r}, not an isotone.advisor.simulation.Workload")
        return found
    workloads = [each for each in vars(module).values() if isinstance(each, Workload)]
    if not workloads:
        raise UsageError(f"module {name!r} declares no isotone.advisor.simulation.Workload")
    if len(workloads) > 1:
        raise UsageError(
            f"module {name!r} has {len(workloads)} workloads; write {name}:NAME for one of them"
        )
    return workloads[0]


DEFINITIONS: Final = {
    "simulate": Command(
        """\
Run a workload with some of its members in memory, and forecast what it does to DynamoDB with all of them: units a
second of each table and index, the hottest keys beside the limit of a partition, throttling, storage, the month's cost,
and what dividing a hot key would change.

A workload is declared in Python (isotone.advisor.simulation.Workload) or in a TOML file: see docs/simulation.md.""",
        examples="""
isotone simulate shop_load                              the only workload of shop_load.py
isotone simulate shop_load:load --size 10M              with ten million members
isotone simulate load.toml --plot load.svg              with a picture
isotone simulate shop_load --shard 'Songs: CHART=12'    what dividing a hot key changes
isotone simulate shop_load --check                      compare the forecast with a larger run
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
