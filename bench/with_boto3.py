"""boto3's GetItem in the process, against what botocore alone takes when nobody answers."""

from __future__ import annotations

import json
from typing import Any
from zlib import crc32

import boto3
from botocore.awsrequest import AWSResponse

import isotone
from bench import requests
from bench.in_process import cycled
from bench.measuring import Effort, Row, Target, alternately
from isotone.testing import attach

GET = "boto3 GetItem in the process"
OURS, FLOOR = "boto3 on Isotone", "boto3 on a constant (floor)"
TARGETS = (Target(GET, OURS, "at most", 1.25, FLOOR),)


class _Body:
    """The part of a raw HTTP response that botocore reads."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: Any) -> Any:
        yield self._content

    def read(self, *_: Any) -> bytes:
        return self._content


def client() -> Any:
    """A boto3 client with dummy credentials."""
    secrets = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
    return boto3.session.Session().client("dynamodb", region_name="us-east-1", **secrets)


def constant_client() -> Any:
    """A client whose requests are answered by the same response, before they are sent."""
    body = json.dumps({"Item": requests.item(1)}).encode()
    headers = {
        "content-type": "application/x-amz-json-1.0",
        "content-length": str(len(body)),
        "x-amz-crc32": str(crc32(body)),
        "x-amzn-requestid": "0" * 52,
    }
    made = client()
    made.meta.events.register(
        "before-send.dynamodb.*",
        lambda request, **_: AWSResponse(request.url, 200, headers, _Body(body)),
    )
    return made


def run(effort: Effort) -> list[Row]:
    gets = [requests.get(number) for number in range(requests.ROWS)]
    with isotone.open(":memory:") as database:
        plain = database.client()
        plain.create_table(**requests.SCHEMA)
        for number in range(requests.ROWS):
            plain.put_item(**requests.put(number))
        attached, constant = client(), constant_client()
        attach(attached, database)
        subjects = {
            OURS: cycled(lambda request: attached.get_item(**request), gets),
            FLOOR: cycled(lambda request: constant.get_item(**request), gets),
        }
        calls = max(100, effort.calls // 5)
        fewer = Effort(effort.seconds, max(5, effort.rounds), calls, effort.items)
        return alternately(GET, subjects, fewer)
