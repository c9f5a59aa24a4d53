"""`isotone mcp`: serves the tables of any engine to a coding assistant; --write, --http, and budgets (--max-units …)."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isotone.backends.addresses import is_remote
from isotone.cli import database, modules
from isotone.cli.program import Command
from isotone.cli.simulating import number, workload_of
from isotone.cli.workbench import port
from isotone.errors import UsageError
from isotone.mcp.budgets import Budgets
from isotone.postgres_address import shown

if TYPE_CHECKING:
    from isotone.mcp.tools import AssistantSource

_DEFAULTS: Final = Budgets()


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("address", metavar="ADDRESS", help=f"{database.ADDRESSES}, or :memory:")
    model = "the module whose entities and access patterns the assistant uses: MODULE, or MODULE:NAME,NAME"
    add("--model", metavar="MODULE", help=f"{model}; without it they are inferred from the items")
    workload = "let it simulate this workload: MODULE:NAME, or a file that ends in .toml"
    add("--workload", metavar="WORKLOAD", help=workload)
    add("--write", action="store_true", help="let it write; otherwise no tool that writes exists")
    _add_budgets(parser)
    add("--http", action="store_true", help="serve by HTTP on this machine, not on standard input")
    add("--port", type=port, default=0, help="the port of --http, 0 for any free one (default 0)")


def _add_budgets(parser: argparse.ArgumentParser) -> None:
    for option, default, what in (
        ("--max-items", _DEFAULTS.call_items, "items that one call may read or write"),
        ("--max-units", _DEFAULTS.call_units, "capacity units that one call may use"),
        ("--session-items", _DEFAULTS.session_items, "items of all calls"),
        ("--session-units", _DEFAULTS.session_units, "capacity units of all calls"),
    ):
        shown = f"{what} (default {default:,})"
        parser.add_argument(option, metavar="N", type=_budget, default=int(default), help=shown)


def _budget(text: str) -> int:
    found = number(text)
    if found < 1:
        raise argparse.ArgumentTypeError(f"{text!r} lets nothing through; give 1 or more")
    return found


def _run(arguments: argparse.Namespace) -> int:
    check_installed()
    serve = _serve_http if arguments.http else _serve_standard_streams
    return serve(arguments)


def check_installed() -> None:
    """Raise `UsageError` that says what to install."""
    try:
        import mcp.server.lowlevel  # noqa: F401 - only to say what to install, before anything is opened
    except ImportError:
        raise UsageError("isotone mcp needs the package mcp: pip install 'isotone[mcp]'") from None


def _serve_standard_streams(arguments: argparse.Namespace) -> int:
    from isotone.mcp.server import serve_standard_streams
    from isotone.mcp.standard_streams import StandardStreams
    from isotone.mcp.tools import AssistantTools

    with StandardStreams() as streams, ExitStack() as stack:
        source = _source(arguments, stack)
        if streams.is_terminal:
            _say("waiting for a client on standard input; Ctrl-C stops")
        serve_standard_streams(AssistantTools(source), streams)
    return 0


def _serve_http(arguments: argparse.Namespace) -> int:
    from isotone.mcp.server import serve_http
    from isotone.mcp.tools import AssistantTools

    with ExitStack() as stack:
        source = _source(arguments, stack)

        def ready(url: str) -> None:
            print(f"the tools for {source.target} are at {url}", flush=True)

        serve_http(AssistantTools(source), arguments.port, ready)
    return 0


def _source(arguments: argparse.Namespace, stack: ExitStack) -> AssistantSource:
    """The engine, with the model and the workload, which are loaded before the engine is opened."""
    from isotone.mcp.tools import AssistantSource

    address: str = arguments.address
    tables = modules.tables_of(arguments.model)
    workload = None if arguments.workload is None else workload_of(arguments.workload)
    remote = is_remote(address)
    if remote and "://" not in address:
        address = f"http://{address}"
    return AssistantSource(
        backend=stack.enter_context(database.connect(address)),
        target=shown(address),
        tables=tuple(tables),
        checked=_checked(arguments.model),
        workload=workload,
        remote=remote,
        writable=arguments.write,
        budgets=Budgets(
            arguments.max_items,
            arguments.max_units,
            arguments.session_items,
            arguments.session_units,
        ),
        folder=Path.cwd(),
    )


def _checked(model: str | None) -> tuple[Any, ...]:
    """What lint checks: the module itself, so that its queries are checked, too; or the tables and entities that are named."""
    if model is None:
        return ()
    return tuple(modules.targets(model)) if ":" in model else (modules.load(model),)


def _say(text: str) -> None:
    sys.stderr.write(f"isotone: {text}\n")
    sys.stderr.flush()


DEFINITIONS: Final = {
    "mcp": Command(
        """\
Serve tables to a coding assistant, over the Model Context Protocol: it describes them, runs their access patterns,
explains and forecasts what requests cost, finds design problems, and tries designs in memory.

A client starts this command and talks to it on standard input and output. With --http, it listens on this machine alone.
It only reads, unless --write is given. Nothing is sent anywhere else. Needs pip install 'isotone[mcp]'.""",
        examples="""
isotone mcp shop.db --model shop                       how a client starts it
isotone mcp dynamodb://eu-west-1 --max-units 100       read sparingly
isotone mcp :memory: --model shop --write              a database to try things in
isotone mcp http://localhost:8000 --http --port 8100   for clients that connect by HTTP
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
