"""`isotone call`: the DynamoDB API as it is."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Final

import msgspec

from isotone.errors import UsageError

SUMMARY: Final = """\
Send one request of the DynamoDB API, in DynamoDB's own JSON, and print the answer.

For everything that has no command of its own."""
EXAMPLES: Final = """
isotone call shop.db DescribeTimeToLive '{"TableName": "Orders"}'
isotone call shop.db DeleteTable '{"TableName": "Orders"}'
isotone call shop.db GetItem '{"TableName": "Users", "Key": {"id": {"S": "ann"}}}'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("operation", metavar="OPERATION", help="such as UpdateTable")
    parser.add_argument(
        "request", metavar="JSON", nargs="?", default="{}", help="the request's body"
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        request = msgspec.json.decode(arguments.request, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UsageError(f"the request is no JSON object: {error}") from None
    answer = arguments.connection.execute(arguments.operation, request)
    encoded = msgspec.json.format(msgspec.json.encode(answer), indent=2)
    sys.stdout.write(encoded.decode() + "\n")
    return 0
