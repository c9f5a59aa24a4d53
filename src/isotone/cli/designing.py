"""`isotone design`: the sheet of a model's access patterns, with their cost at the sizes that one enters."""

from __future__ import annotations

import argparse
from typing import Final

from isotone.cli import modules
from isotone.cli.program import Command
from isotone.cli.seeding import add_sample_arguments, request_of
from isotone.design import sheet_of
from isotone.design.sheet import DEFAULT_PAGE
from isotone.design.sheet_text import FORMATS
from isotone.prices import US_EAST_1, Prices


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    names = "a module with entities; MODULE:NAME,NAME for some of its tables and entities"
    add("module", metavar="MODULE", help=names)
    add("--sheet", choices=FORMATS, default="text", help="the form of the sheet (default text)")
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


def _calls(text: str) -> float:
    factors = {"k": 10**3, "M": 10**6}
    digits, factor = (text[:-1], factors[text[-1]]) if text[-1:] in factors else (text, 1)
    try:
        value = float(digits.replace("_", "")) * factor
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of calls a second, such as 50")
    return value


def _rate(text: str) -> tuple[str, float]:
    name, equals, value = text.rpartition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not PATTERN=N, such as Order.by_status=50")
    return name, _calls(value)


def _run(arguments: argparse.Namespace) -> int:
    targets = modules.targets(arguments.module)
    prices = Prices.from_file(arguments.prices) if arguments.prices else US_EAST_1
    sheet = sheet_of(
        *targets,
        request=request_of(arguments),
        rates=dict(arguments.rate),
        reads=arguments.reads,
        writes=arguments.writes,
        page=arguments.page,
        prices=prices,
    )
    print(FORMATS[arguments.sheet](sheet))
    return 0


DEFINITIONS: Final = {
    "design": Command(
        """\
Print the sheet of a model's access patterns: each with its key, index and order, the items and units of one call, the cost
of a month, and the units a second of its most used key; HOT beside more than a partition serves.

MODULE declares the entities, MODULE:NAME,NAME names some of its tables and entities. A sample of the model is made and
measured in memory; --items, --per and --popularity say how large the tables are, as for isotone seed.""",
        examples="""
isotone design shop                                                    100 of each parent, one call a second
isotone design shop --items Customer=1M --per Customer:Order=3..40
isotone design shop --rate Order.by_status=50 --rate Order.put=10 --reads 0 --writes 0
isotone design shop --sheet csv > patterns.csv
isotone design shop --sheet markdown --prices eu-central-1.toml
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
