"""`isotone serve`: a file, or memory, for any AWS SDK."""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import logging
import sys
from typing import Final

from isotone.cli.program import complain
from isotone.errors import UsageError

SUMMARY: Final = """\
Serve a database over HTTP, to anything that speaks the DynamoDB API, until Ctrl-C.

Without FILE the data lives in memory and is gone when the server stops. Any access key and any region
will do: requests must be signed, as every AWS SDK signs them, but signatures are not verified."""
EXAMPLES: Final = """
isotone serve shop.db                    a file; it is made if it is not there
isotone serve                            memory
isotone serve shop.db --port 0           any free port; the line that is printed says which
isotone serve ci.db --durability none    faster writes, for data that can be made again

Then, in another terminal:
export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000 AWS_REGION=us-east-1
export AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any
aws dynamodb list-tables
"""

_MEMORY: Final = ":memory:"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="the database file")
    parser.add_argument(
        "--memory", action="store_true", help="keep the data in memory (the default)"
    )
    parser.add_argument(
        "--durability",
        choices=("disk", "process", "none"),
        default="disk",
        help="when a write is answered: when it survives a power cut (disk, the default), "
        "when it survives the death of the process (process), or at once (none)",
    )
    add_address(parser, port=8000)


def add_address(parser: argparse.ArgumentParser, *, port: int) -> None:
    """The arguments that say where to listen and what to print."""
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument(
        "--port", type=int, default=port, help=f"the port, 0 for any free one (default {port})"
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing when ready")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="what goes to standard error; debug shows each request",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.memory and arguments.file:
        raise UsageError("--memory and a FILE exclude each other; give one of them")
    from isotone.backends import embedded
    from isotone.server import serve

    prepare(arguments)
    path = arguments.file or _MEMORY
    database = embedded.open(path, durability=arguments.durability)
    what = "memory" if path == _MEMORY else path

    def ready(url: str) -> None:
        if not arguments.quiet:
            print(announcement(what, url), flush=True)

    with contextlib.closing(database):
        serve(database, arguments.host, arguments.port, ready=ready)
    return 0


def prepare(arguments: argparse.Namespace) -> None:
    """Set up the log, and warn of an address that others can reach."""
    logging.basicConfig(
        stream=sys.stderr,
        level=arguments.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    if not _is_loopback(arguments.host):
        complain(
            f"warning: {arguments.host} can be reached from other machines, "
            "and there is no authentication: any access key reads and writes everything"
        )


def announcement(what: str, url: str) -> str:
    """One line: what is served, where, and how to connect."""
    return (
        f"isotone serves {what} at {url} "
        f'(boto3: endpoint_url="{url}"; AWS CLI: export AWS_ENDPOINT_URL_DYNAMODB={url})'
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
