"""`isotone demo`: sample tables, served."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import Final

from isotone.cli.connection import MEMORY, Connection, embedded_connection
from isotone.cli.create import table_request
from isotone.cli.keys import table_names
from isotone.cli.put import put_all
from isotone.cli.samples import SAMPLES
from isotone.cli.serve import add_address, prepare
from isotone.values.json import item_to_wire

SUMMARY: Final = """\
Serve sample tables: the ordering and filtering scenarios with keys made by hand, in memory or in a file.

Prints how to connect with boto3, the AWS CLI, JavaScript and isotone itself, and a query for each table.
A file keeps what you change; tables that it has already are left alone."""
EXAMPLES: Final = """
isotone demo
isotone demo --port 8000
isotone demo samples.db
"""

_CONNECT: Final = """\
isotone serves sample tables in {what} at {url}

boto3       boto3.client("dynamodb", endpoint_url="{url}", region_name="us-east-1",
                         aws_access_key_id="any", aws_secret_access_key="any")
AWS CLI     export AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any AWS_REGION=us-east-1
            aws dynamodb list-tables --endpoint-url {url}
JavaScript  new DynamoDBClient({{endpoint: "{url}", region: "us-east-1",
                                credentials: {{accessKeyId: "any", secretAccessKey: "any"}}}})
isotone     {program} tables {url}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default=MEMORY, help="keep the tables here"
    )
    add_address(parser, port=0)


def run(arguments: argparse.Namespace) -> int:
    from isotone.backends import embedded
    from isotone.server import serve

    prepare(arguments)
    what = "memory" if arguments.file == MEMORY else arguments.file

    def ready(url: str) -> None:
        if not arguments.quiet:
            print(welcome(what, url), flush=True)

    with contextlib.closing(embedded.open(arguments.file)) as database:
        load(embedded_connection(database))
        serve(database, arguments.host, arguments.port, ready=ready)
    return 0


def load(connection: Connection) -> None:
    """Make the sample tables that are not there yet."""
    there = set(table_names(connection))
    for sample in SAMPLES:
        if sample.table in there:
            continue
        indexes = [sample.index] if sample.index else []
        connection.execute("CreateTable", table_request(sample.table, list(sample.key), indexes))
        put_all(connection, sample.table, map(item_to_wire, sample.records()))


def welcome(what: str, url: str) -> str:
    """How to connect, and what to ask."""
    program = _program()
    questions = [
        f"# {sample.shows}\n{program} query {url} {sample.table} {sample.question}"
        for sample in SAMPLES
    ]
    connecting = _CONNECT.format(what=what, url=url, program=program)
    return "\n".join([connecting, *questions, "", "Ctrl-C stops it."])


def _program() -> str:
    """How to start this program again: it is not on the path when it runs from a checkout's .venv."""
    if shutil.which("isotone"):
        return "isotone"
    started_as = Path(sys.argv[0])
    return os.path.relpath(started_as) if started_as.stem == "isotone" else "python -m isotone"
