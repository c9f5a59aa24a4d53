"""`isotone serve` and `isotone demo`: their options (--port, --regions, --durability, --faults …), and what they print."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from isotone.backends.addresses import file_of
from isotone.cli.database import MEMORY
from isotone.cli.program import Command, print_error, uncollected
from isotone.cli.workbench import (
    HIGHEST_PORT,
    add_model,
    address_of,
    check_shown,
    open_page,
    workbench_of,
)
from isotone.cli.workbench import port as port_number
from isotone.errors import UsageError
from isotone.output_paths import check_outputs
from isotone.postgres_address import shown
from isotone.server.audit import STANDARD_OUTPUT, audit_output
from isotone.server.body_budget import BODY_BUDGET
from isotone.server.listener import ServerOptions

if TYPE_CHECKING:
    from isotone.backends.embedded import Database
    from isotone.server.dispatcher import FrontService, Service
    from isotone.server.lane_process import LaneKeeper
    from isotone.server.pages import Pages

# serve
# of the database
_SETTINGS: Final = ("durability", "stream_shards", "s3", "regions", "replication_lag")
_MOST_SHARDS: Final = 16  # of a new stream
MOST_WORKERS: Final = 8
"""Processes that `--workers auto` starts at most."""
_MOST_PROCESSES: Final = 64


def _serve_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="the database file")
    parser.add_argument(
        "--memory", action="store_true", help="keep the data in memory (the default)"
    )
    parser.add_argument(
        "--durability",
        choices=("disk", "process", "none"),
        default="disk",
        help="what a write survives once it is answered: a power cut (disk, the default), a crash of the "
        "process (process), or neither (none)",
    )
    parser.add_argument(
        "--stream-shards",
        type=_shards,
        default=1,
        metavar="N",
        help="the number of shards of a new stream, at most 16 (default 1)",
    )
    parser.add_argument(
        "--regions",
        action="store_true",
        help="give each region its own tables, as on AWS",
    )
    parser.add_argument(
        "--replication-lag",
        type=_lag,
        default=0.0,
        metavar="SECONDS",
        help="the delay of writes to other replicas of a table (default 0)",
    )
    parser.add_argument(
        "--faults",
        action="store_true",
        help="let tests order faults at the path /faults (throttling, conflicts, lost answers, …)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="makes random faults repeatable: the same seed, the same calls",
    )
    parser.add_argument(
        "--localnodes",
        metavar="HOST:PORT,…",
        help="all servers of a cluster, for clients that ask at /localnodes (default: this one)",
    )
    parser.add_argument(
        "--s3",
        metavar="DIR_OR_URL",
        help="the buckets of exports and imports: a folder with one folder for each bucket, or the URL of an S3 endpoint",
    )
    parser.add_argument(
        "--workers",
        type=_workers,
        default=1,
        metavar="N|auto",
        help="processes that answer requests, beside one that writes; auto for as many as there are cores, "
        f"at most {MOST_WORKERS} (default 1: one process does everything)",
    )
    parser.add_argument(
        "--no-workbench", action="store_true", help="serve no web page at /workbench/"
    )
    add_model(parser)
    add_address(parser, port=8000)
    _words_of_dynamodb_local(parser)


def _words_of_dynamodb_local(parser: argparse.ArgumentParser) -> None:
    """Options under the names that a command line of DynamoDB Local has."""
    add = parser.add_argument_group("words of DynamoDB Local").add_argument
    add("-inMemory", dest="memory", action="store_true", help="--memory")
    add(
        "-port",
        dest="port",
        metavar="PORT",
        type=port_number,
        default=argparse.SUPPRESS,
        help="--port",
    )
    add("-dbPath", metavar="DIR", help="the file is DIR/isotone.db")
    add("-sharedDb", action="store_true", help="nothing: all access keys share the tables")


def add_address(parser: argparse.ArgumentParser, *, port: int) -> None:
    """Add the arguments for the address, the log and the output."""
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument(
        "--port",
        type=port_number,
        default=port,
        help=f"the port, 0 for any free one (default {port})",
    )
    parser.add_argument(
        "--allow-host",
        dest="allow_hosts",
        action="append",
        default=[],
        metavar="NAME",
        help="answer also to this host name; repeat it for more, * for any (default: names of this machine)",
    )
    parser.add_argument(
        "--allow-origin",
        dest="allow_origins",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let web pages of this origin send requests, such as http://localhost:3000; * for any (default: none)",
    )
    parser.add_argument(
        "--credentials",
        metavar="FILE",
        help="verify signatures: the file of users that isotone user writes; it is reloaded on SIGHUP",
    )
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="listen beyond this machine without credentials: anyone who can reach it can read and write everything",
    )
    parser.add_argument(
        "--tls-cert",
        metavar="FILE",
        help="encrypt connections: the certificate and its chain, in PEM",
    )
    parser.add_argument(
        "--tls-key", metavar="FILE", help="the key of the certificate (default: in the same file)"
    )
    parser.add_argument(
        "--audit-log",
        metavar="FILE",
        help="append a line of JSON for each request: who, from where, what, and the result; - for standard output",
    )
    parser.add_argument(
        "--body-budget",
        type=_body_budget,
        default=BODY_BUDGET,
        metavar="MB",
        help="megabytes of request bodies that may wait for their answers, over all connections "
        f"(default {BODY_BUDGET >> 20})",
    )
    parser.add_argument(
        "--access-log", action="store_true", help="log each request to standard error"
    )
    parser.add_argument(
        "--metrics",
        dest="metrics_for_all",
        action="store_true",
        help="show /metrics to other machines, too, with the names of tables (default: to clients on this one)",
    )
    parser.add_argument(
        "--otel",
        action="store_true",
        help="pass spans and metrics to OpenTelemetry: opentelemetry-instrument isotone serve --otel",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing when ready")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="what is logged to standard error; debug shows each request",
    )


def _body_budget(text: str) -> int:
    """A number of megabytes, in bytes."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of megabytes, such as 256")
    return int(text) << 20


def _shards(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_SHARDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of shards; write 1 to {_MOST_SHARDS}"
        )
    return int(text)


def _workers(text: str) -> int:
    if text == "auto":
        return min(_cores(), MOST_WORKERS)
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_PROCESSES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of processes; write 1 to {_MOST_PROCESSES}, or auto"
        )
    return int(text)


def _cores() -> int:
    """The cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _lag(text: str) -> float:
    try:
        lag = float(text)
    except ValueError:
        lag = -1.0
    if not 0 <= lag <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 1e9")
    return lag


def _options(arguments: argparse.Namespace) -> ServerOptions:
    """The options of a server, from the arguments of the same names."""
    names = ServerOptions.__annotations__.keys() & vars(arguments).keys()
    return cast(ServerOptions, {name: getattr(arguments, name) for name in names})


def _check_files(arguments: argparse.Namespace) -> None:
    """Refuse an audit log that is another file of the server."""
    log = arguments.audit_log
    check_outputs(
        None if log in (None, STANDARD_OUTPUT) else audit_output(log),
        inputs={
            "FILE": file_of(arguments.file),
            "--credentials": arguments.credentials,
            "--tls-cert": arguments.tls_cert,
            "--tls-key": arguments.tls_key,
            "--queries": getattr(arguments, "queries", None),  # of serve alone
            "--workload": getattr(arguments, "workload", None),
        },
    )


def _serve(arguments: argparse.Namespace) -> int:
    if arguments.dbPath is not None:
        if arguments.file:
            raise UsageError("-dbPath cannot be combined with FILE; use one of them")
        arguments.file = str(Path(arguments.dbPath) / "isotone.db")
    if arguments.memory and arguments.file:
        raise UsageError("--memory cannot be combined with FILE; use one of them")
    if arguments.faults and arguments.credentials:
        raise UsageError(
            "--faults lets everybody order faults, so it cannot be combined with --credentials; use one of them"
        )
    if arguments.workers > 1 and (arguments.file or MEMORY) == MEMORY:
        raise UsageError("--workers needs a FILE: a database in memory belongs to one process")
    from isotone.server.service_manager import notify

    nodes = _nodes(arguments.localnodes)
    check_shown(arguments, file_of(arguments.file))
    prepare(arguments)
    path = arguments.file or MEMORY
    shows = not arguments.no_workbench and _may_show_pages(arguments)

    def ready(url: str) -> None:
        notify(b"READY=1")
        if not arguments.quiet:
            print(announcement("memory" if path == MEMORY else shown(path), url), flush=True)
            if shows:
                print(f"workbench: {address_of(url)}", flush=True)

    options = _options(arguments)
    options |= {"nodes": nodes, "threaded": arguments.faults, "lanes": _lanes(arguments)}
    if arguments.workers > 1:
        _serve_by_processes(arguments, ready, options, shows=shows)
        return 0
    from isotone.server import serve

    with contextlib.closing(_database(arguments)) as database:
        options["pages"] = _pages(arguments, database) if shows else None
        service = _faulty(arguments, database)
        serve(service, arguments.host, arguments.port, ready=ready, **options)
    return 0


def _serve_by_processes(
    arguments: argparse.Namespace,
    ready: Callable[[str], None],
    options: ServerOptions,
    *,
    shows: bool,
) -> None:
    if sys.platform == "win32":
        raise OSError("a server of several processes needs POSIX")
    from isotone.backends import embedded
    from isotone.server import supervisor
    from isotone.server.front import Services

    def front() -> FrontService:
        return embedded.open_beside(arguments.file, **_settings(arguments))

    def writer() -> Service:
        return _faulty(arguments, _database(arguments))

    embedded.import_for_files()
    services = Services(front, writer, partial(_pages, arguments) if shows else None)
    supervisor.serve_by_processes(services, arguments.host, arguments.port, ready=ready, **options)


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of the database, for every process that opens it."""
    return {name: getattr(arguments, name) for name in _SETTINGS}


def _lanes(arguments: argparse.Namespace) -> LaneKeeper | None:
    """What starts processes for long requests; None where they cannot share the database."""
    if (arguments.file or MEMORY) == MEMORY or arguments.faults or sys.platform == "win32":
        return None
    from isotone.cli import lane_keeper
    from isotone.server.lane_process import LaneKeeper

    return LaneKeeper(lane_keeper.command(arguments.file, **_settings(arguments)))


def _database(arguments: argparse.Namespace) -> Database:
    with uncollected():
        from isotone.backends import embedded

    settings = _settings(arguments)
    lag = settings.pop("replication_lag")
    database = embedded.open(arguments.file or MEMORY, **settings)
    if lag:
        database.set_replication(lag=lag)
    return database


def _faulty(arguments: argparse.Namespace, database: Database) -> Service:
    """The database, with faults if they may be ordered."""
    if not arguments.faults:
        return database
    from isotone.testing import Faults

    return Faults(arguments.seed).served(database)


def _pages(arguments: argparse.Namespace, database: Any) -> Pages:
    return workbench_of(
        database,
        shown(arguments.file or MEMORY),
        arguments.model,
        arguments.workload,
        snapshots=arguments.snapshots,
        queries=arguments.queries,
    )


def _may_show_pages(arguments: argparse.Namespace) -> bool:
    """Whether the server shows pages; with users or an audit log it has none, because pages are not verified."""
    return arguments.credentials is None and arguments.audit_log is None


def _nodes(text: str | None) -> list[tuple[str, int]]:
    """The servers that `--localnodes` lists; raises `UsageError` for one without a port."""
    nodes = []
    for each in (text or "").split(",") if text else ():
        host, _, port = each.strip().rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) <= HIGHEST_PORT:
            raise UsageError(
                f"--localnodes has {each!r}; write HOST:PORT for each server, such as 127.0.0.1:8001"
            )
        nodes.append((host.strip("[]"), int(port)))
    return nodes


def prepare(arguments: argparse.Namespace) -> None:
    """Set up the log, refuse invalid options, and warn of a server that is open to other machines.

    Call it first, so that no file is created and no sample is loaded for a server that cannot listen.
    """
    from isotone.authority import is_loopback
    from isotone.server import check_options

    logging.basicConfig(
        stream=sys.stderr,
        level=arguments.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    if arguments.access_log:
        logging.getLogger("isotone.access").setLevel(logging.INFO)
    _check_files(arguments)
    if arguments.credentials is not None and arguments.insecure:
        raise UsageError("--insecure is for a server without --credentials; use one of them")
    check_options(arguments.host, arguments.port, **_options(arguments))
    if arguments.insecure and not is_loopback(arguments.host):
        print_error(
            f"warning: {arguments.host} can be reached from other machines, "
            "and there is no authentication: any access key reads and writes everything"
        )


def announcement(what: str, url: str) -> str:
    """The line that says what is served, where, and how to connect to it."""
    return (
        f"isotone serves {what} at {url} "
        f'(boto3: endpoint_url="{url}"; AWS CLI: export AWS_ENDPOINT_URL_DYNAMODB={url})'
    )


SERVE: Final = Command(
    """\
Serve a database over HTTP with the DynamoDB API, until Ctrl-C.

Without FILE the data is in memory and is lost when the server stops. Any region works, and all regions have the same
tables, unless a table has replicas or --regions is given. Requests must be signed, as every AWS SDK signs them. With
--credentials, only the users in the file have access; without it, any access key works, but only on this machine.""",
    examples="""
isotone serve shop.db                    a file, created if it does not exist
isotone serve                            memory
isotone serve shop.db --port 0           any free port; the printed line shows it
isotone serve ci.db --durability none    faster writes, for data that can be recreated
isotone serve shop.db --host 0.0.0.0 --credentials isotone-credentials.json    for the users in the file

Then, in another terminal:
export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
export AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any
aws dynamodb list-tables
""",
    add_arguments=_serve_arguments,
    run=_serve,
)


# demo

_CONNECT: Final = """\
isotone serves sample tables in {what} at {url}

The tour    {url}/workbench/   (open it in a browser)

boto3       boto3.client("dynamodb", endpoint_url="{url}", region_name="us-east-1",
                         aws_access_key_id="any", aws_secret_access_key="any")
AWS CLI     export AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any AWS_DEFAULT_REGION=us-east-1
            aws dynamodb list-tables --endpoint-url {url}
JavaScript  new DynamoDBClient({{endpoint: "{url}", region: "us-east-1",
                                credentials: {{accessKeyId: "any", secretAccessKey: "any"}}}})
isotone     {program} tables {url}
            {program} query {url} github 'GSI1PK=REPO#octo#hello' 'GSI1SK >= REPO' --limit 5

Ctrl-C stops it."""


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default=MEMORY, help="keep the tables here"
    )
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")
    add_address(parser, port=0)


def _demo(arguments: argparse.Namespace) -> int:
    from isotone.backends import embedded
    from isotone.cli.output import LiveLine
    from isotone.demo import samples
    from isotone.demo.tour import Tour
    from isotone.demo.workload import load as workload
    from isotone.server import serve
    from isotone.workbench import Workbench

    prepare(arguments)
    what = "memory" if arguments.file == MEMORY else arguments.file

    with contextlib.closing(embedded.open(arguments.file)) as database:
        with LiveLine(silent=arguments.quiet) as line:
            line.show("loading the sample tables", at_once=True)
            samples.load(database)
        pages = None
        if _may_show_pages(arguments):
            pages = Workbench(
                database,
                target=arguments.file,
                tables=samples.tables(),
                tour=Tour(database).calls,
                workload=workload,
                design=samples.design(),
            )

        def ready(url: str) -> None:
            if not arguments.quiet:
                print(_CONNECT.format(what=what, url=url, program=_program()), flush=True)
            if pages is not None and not arguments.no_open:
                open_page(address_of(url))

        options = _options(arguments)
        options |= {"pages": pages}
        serve(database, arguments.host, arguments.port, ready=ready, **options)
    return 0


def _program() -> str:
    """The command that starts this program; a checkout's .venv is not on the path."""
    if shutil.which("isotone"):
        return "isotone"
    started_as = Path(sys.argv[0])
    return os.path.relpath(started_as) if started_as.stem == "isotone" else "python -m isotone"


DEMO: Final = Command(
    """\
Serve sample tables and a tour of the strategies that they show, in memory or in a file.

Prints the address of the tour, opens it where there is a browser, and says how to connect with boto3, the AWS CLI,
JavaScript and isotone. A file keeps your changes; existing tables in it are not changed.""",
    examples="""
isotone demo
isotone demo --port 8000 --no-open
isotone demo samples.db
""",
    add_arguments=_demo_arguments,
    run=_demo,
)


DEFINITIONS: Final = {"serve": SERVE, "demo": DEMO}
