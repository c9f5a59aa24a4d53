"""`isotone workbench`, and the workbench of `isotone serve`: --model, --read-write, --snapshots; opens the browser."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from isotone.backends.addresses import file_of, is_remote
from isotone.backends.interface import Backend
from isotone.cli import database
from isotone.cli.modules import tables_of
from isotone.cli.program import Command
from isotone.errors import UnknownOperationException
from isotone.output_paths import OutputPath, check_outputs
from isotone.postgres_address import shown

if TYPE_CHECKING:
    from isotone.advisor.simulation import Workload
    from isotone.workbench import Workbench


HIGHEST_PORT: Final = 65535


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the model and the workload that the workbench shows."""
    parser.add_argument(
        "--model",
        metavar="MODULE",
        help="show the entities and access patterns of a module's tables: MODULE, or MODULE:NAME,NAME; "
        "without it they are inferred from the items",
    )
    parser.add_argument(
        "--workload",
        metavar="WORKLOAD",
        help="simulate it on the page Simulation: MODULE:NAME, or a file that ends in .toml, as for isotone simulate",
    )
    parser.add_argument(
        "--snapshots",
        metavar="FOLDER",
        help="keep the workbench's snapshots here; by default in FILE-snapshots, and those of a server in your folder for data",
    )

    parser.add_argument(
        "--queries",
        metavar="FILE",
        help="keep the workbench's saved queries in this JSON file, which a team can commit; by default each browser keeps its own",
    )


def workbench_of(
    backend: Backend,
    target: str,
    model: str | None,
    workload: str | None,
    *,
    snapshots: str | None = None,
    queries: str | None = None,
    writable: bool = True,
    remote: bool = False,
    is_endpoint: bool = True,
) -> Workbench:
    """The pages for an engine; raises `UsageError` for a model that cannot be loaded."""
    from isotone.workbench import Workbench

    return Workbench(
        backend,
        target=target,
        writable=writable,
        tables=tables_of(model),
        remote=remote,
        is_endpoint=is_endpoint,
        workload=_workload(workload),
        snapshots=snapshots,
        queries=queries,
    )


def check_shown(arguments: argparse.Namespace, file: str | None) -> None:
    """Check the model, the workload and the file of queries before `file` is opened; raises `UsageError`."""
    tables_of(arguments.model)
    _workload(arguments.workload)
    if arguments.queries is not None:
        check_outputs(OutputPath("--queries", arguments.queries), inputs={"FILE": file})


def _workload(text: str | None) -> Workload | None:
    if text is None:
        return None
    from isotone.cli.simulating import workload_of

    return workload_of(text)


def port(text: str) -> int:
    """A port number from a command line."""
    if not text.isdecimal() or int(text) > HIGHEST_PORT:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a port; write 0 (any free one) to {HIGHEST_PORT}"
        )
    return int(text)


def address_of(url: str) -> str:
    """The address of a server's workbench."""
    return f"{url}/workbench/"


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--read-write",
        action="store_true",
        help="start unlocked; otherwise a server's data can be changed after a click on the lock",
    )
    add_model(parser)
    parser.add_argument(
        "--port", type=port, default=0, help="the port of the page, 0 for any free one (default 0)"
    )
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")


def _run(arguments: argparse.Namespace) -> int:
    source = arguments.source
    remote = is_remote(source)
    if remote and "://" not in source:
        source = f"http://{source}"
    from isotone.server import check_options, serve

    check_shown(arguments, file_of(source))
    check_options(port=arguments.port)
    with database.connect(source) as backend:
        pages = workbench_of(
            backend,
            shown(source),
            arguments.model,
            arguments.workload,
            snapshots=arguments.snapshots,
            queries=arguments.queries,
            writable=arguments.read_write or not remote,
            remote=remote,
            is_endpoint=False,
        )

        def ready(url: str) -> None:
            address = address_of(url)
            print(f"the workbench for {shown(source)} is at {address}", flush=True)
            if not arguments.no_open:
                open_page(address)

        serve(PagesAlone(), port=arguments.port, ready=ready, pages=pages)
    return 0


def open_page(address: str) -> None:
    """Open a page in a graphical browser, if there is one; a browser in the terminal would take it over."""
    if sys.platform == "linux" and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return
    import webbrowser  # a server without a browser starts sooner

    with contextlib.suppress(webbrowser.Error):
        webbrowser.open(address)


_NO_TABLES: Final = "This server has pages alone; `isotone serve` answers requests, and has the same pages at /workbench/"


class PagesAlone:
    """A service for a server that has pages, but no database."""

    def send(self, operation: str, body: bytes, region: str = "") -> bytes:
        raise UnknownOperationException(_NO_TABLES)

    def send_many(self, requests: Sequence[tuple[str, bytes]], region: str = "") -> Sequence[Any]:
        return [UnknownOperationException(_NO_TABLES) for _ in requests]

    def is_grouped(self, operation: str, body: bytes) -> bool:
        return False

    def is_long(self, operation: str, body: bytes) -> bool:
        return False

    def health(self) -> str:
        return ""

    def gauges(self) -> dict[str, float]:
        return {}

    def measure(self) -> None:
        pass

    def series(self) -> Sequence[Any]:
        return ()

    def served(self, others: Sequence[bytes] = ()) -> bytes:
        return b'{"seconds": 0, "queries": []}'

    def allow_waiting(self, allowed: bool) -> None:
        pass

    account = "000000000000"

    def accesses(self, operation: str, body: bytes, region: str = "") -> Sequence[Any]:
        raise UnknownOperationException()

    def has_policies(self, operation: str, region: str = "") -> bool:
        return False

    def start_maintenance(self) -> None:
        pass

    def close(self) -> None:
        pass


COMMAND: Final = Command(
    """\
Show and edit what any DynamoDB engine stores, in the browser: item collections in the order of their keys, queries
with their cost, changes as they happen.

The page is served on this machine only, and calls nothing else. Data of a server is in safe mode: you can read it, and
change it after a click on the lock.""",
    examples="""
isotone workbench shop.db
isotone workbench http://localhost:8000
isotone workbench dynamodb://eu-west-1 --model shop
isotone workbench http://localhost:8000 --read-write --no-open
""",
    add_arguments=_arguments,
    run=_run,
)


DEFINITIONS: Final = {"workbench": COMMAND}
