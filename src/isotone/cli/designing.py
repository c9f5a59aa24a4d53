"""`isotone design`: the live page of a model's design; or its diagram, its sheet, or what would change in live tables."""

from __future__ import annotations

import argparse
import contextlib
import json
from typing import Final

from isotone.advisor.collection_svg import SVG_BEGIN
from isotone.cli import modules
from isotone.cli.database import ADDRESSES
from isotone.cli.program import Command, naming
from isotone.cli.seeding import add_sample_arguments, by_name, request_of
from isotone.cli.workbench import PagesAlone, address_of, open_page, port
from isotone.design import SheetRequest, diagram_of, plan_of
from isotone.design.sheet import DEFAULT_PAGE
from isotone.design.sheet_request import amount
from isotone.design.sheet_text import FORMATS
from isotone.errors import UsageError
from isotone.output_paths import text_output, write_text
from isotone.prices import US_EAST_1, Prices

_PLANS: Final = ("text", "json")
_DIFFERS: Final = 1  # the exit code if a live table is not as declared


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    names = "a module with entities; MODULE:NAME,NAME for some of its tables and entities"
    add("module", metavar="MODULE", help=names)
    add(
        "--sheet",
        choices=FORMATS,
        help="print the sheet of access patterns, and serve no page",
    )
    add("--diagram", metavar="FILE", help="draw the diagram into an SVG file, and serve no page")
    against = "print what would change in the tables there instead; isotone apply changes it"
    add("--against", metavar="ADDRESS", help=f"{against}; {ADDRESSES}")
    add_plan_arguments(parser)
    rate = "calls a second of one pattern, such as Order.by_status=50 or Order.put=10; repeat it for more"
    add("--rate", metavar="PATTERN=N", action="append", default=[], type=_rate, help=rate)
    reads = "calls a second of each other pattern that reads (default 1)"
    add("--reads", metavar="N", type=_calls, default=1.0, help=reads)
    writes = "calls a second of each other pattern that writes (default 1)"
    add("--writes", metavar="N", type=_calls, default=1.0, help=writes)
    page = f"items that a query reads at most (default {DEFAULT_PAGE})"
    add("--page", metavar="N", type=int, default=DEFAULT_PAGE, help=page)
    add("--prices", metavar="FILE", help="a TOML file with the prices of your region")
    add_sample_arguments(parser)
    any_port = "the port of the page, 0 for any free one (default 0)"
    add("--port", type=port, default=0, help=any_port)
    add("--no-open", action="store_true", help="do not open the browser")


def _calls(text: str) -> float:
    try:
        return amount(text)
    except UsageError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of calls a second, such as 50"
        ) from None


def _rate(text: str) -> tuple[str, float]:
    name, equals, value = text.rpartition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not PATTERN=N, such as Order.by_status=50")
    return name, _calls(value)


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that a plan depends on."""
    add = parser.add_argument
    units = "the capacity units that are used in a second, at most"
    add("--units-per-second", metavar="N", type=float, help=units)
    add("--table-prefix", metavar="TEXT", default="", help="the prefix of all table names")


def _plan(arguments: argparse.Namespace, prices: Prices) -> int:
    """Print the plan; 1 if there is something to change."""
    if arguments.sheet not in (None, *_PLANS):
        raise UsageError(f"a plan is printed as text or json, not as {arguments.sheet}")
    targets = modules.targets(arguments.module)
    with modules.connect_store(arguments.against, arguments.table_prefix) as store:
        plan = plan_of(store, *targets, units_per_second=arguments.units_per_second, prices=prices)
    print(json.dumps(plan.as_dict(), indent=2) if arguments.sheet == "json" else plan)
    return _DIFFERS if plan.steps or plan.blocked else 0


def _run(arguments: argparse.Namespace) -> int:
    prices = Prices.from_file(arguments.prices) if arguments.prices else US_EAST_1
    if arguments.against is not None:
        return _plan(arguments, prices)
    asked = SheetRequest(
        sample=request_of(arguments),
        rates=by_name("--rate", arguments.rate),
        reads=arguments.reads,
        writes=arguments.writes,
        page=arguments.page,
        prices=prices,
    )
    if arguments.diagram is not None:
        _draw(arguments)
    if arguments.sheet is not None:
        print(FORMATS[arguments.sheet](asked.sheet(*modules.targets(arguments.module))))
    if arguments.diagram is None and arguments.sheet is None:
        _serve(arguments, asked)
    return 0


def _draw(arguments: argparse.Namespace) -> None:
    """Write the diagram into a file."""
    target = text_output("--diagram", arguments.diagram, SVG_BEGIN.encode())
    assert target is not None
    diagram = diagram_of(*modules.targets(arguments.module))
    with naming(target.path):
        write_text(target, diagram.svg())


def _serve(arguments: argparse.Namespace, asked: SheetRequest) -> None:
    """Serve the page until Ctrl-C."""
    from isotone.cli.design_page import LiveDesign, print_fault
    from isotone.cli.design_process import DesignedModule
    from isotone.server import check_options, serve

    check_options(port=arguments.port)
    live = LiveDesign(DesignedModule(arguments.module, asked), print_fault)

    def ready(url: str) -> None:
        address = f"{address_of(url)}#/design"
        print(f"the design of {arguments.module} is at {address}", flush=True)
        if not arguments.no_open:
            open_page(address)

    with contextlib.closing(live):
        live.start()
        serve(PagesAlone(), port=arguments.port, ready=ready, pages=live)


DEFINITIONS: Final = {
    "design": Command(
        """\
Show the design of a model in the browser: a diagram of its tables, keys and indexes, the sheet of its access patterns,
its collections with sample data, and what lint finds. When the module is saved, the page follows. Ctrl-C stops it.

The sheet has each pattern with its key, index and order, the items and units of one call, the cost of a month, and the
units a second of its most used key; HOT beside more than a partition serves. --sheet prints it instead.

MODULE declares the entities, MODULE:NAME,NAME names some of its tables and entities. A sample of the model is made and
measured in memory; --items, --per and --popularity say how large the tables are, as for isotone seed.

With --against, print the plan that makes the tables there as the model declares them: tables, indexes, streams and expiry to
add, indexes to drop, and kinds of items to rewrite, with what it costs and how long it takes. Nothing is written. Exits with 0
if there is nothing to do, with 1 if there is, and with 2 for every failure.""",
        examples="""
isotone design shop                                                    the page, while you edit shop.py
isotone design shop --items Customer=1M --per Customer:Order=3..40     the page, with these sizes
isotone design shop --diagram shop.svg                                 the diagram
isotone design shop --sheet text --rate Order.put=10 --reads 0         the sheet
isotone design shop --sheet csv > patterns.csv
isotone design shop --sheet markdown --prices eu-central-1.toml
isotone design shop --against dynamodb://eu-west-1                     what would change there
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
