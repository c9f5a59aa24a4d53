"""A fake service, and the requests that an SDK would send to it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from isotone.errors import ApiError, UnknownOperationException

SIGNED = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/eu-west-1/dynamodb/aws4_request, "
    "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=" + "5" * 64,
}


def headers_of(operation: str, **others: str) -> dict[str, str]:
    """The headers of a signed request."""
    more = {name.replace("_", "-"): value for name, value in others.items()}
    return {"X-Amz-Target": f"DynamoDB_20120810.{operation}", **SIGNED, **more}


def request_bytes(operation: str, body: bytes = b"{}", **others: str) -> bytes:
    """A signed request as it travels."""
    headers = {"Host": "localhost", **headers_of(operation, **others)}
    if "Transfer-Encoding" not in headers:
        headers["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return b"POST / HTTP/1.1\r\n" + head.encode() + b"\r\n" + body


class FakeService:
    """Echoes reads; writes have names that say what comes of them. Remembers everything."""

    def __init__(self) -> None:
        self.reads: list[tuple[str, bytes]] = []
        self.groups: list[list[tuple[str, bytes]]] = []
        self.order: list[str] = []
        self.maintained = 0
        self.measured = 0
        self.of_tables: list[tuple[str, tuple[tuple[str, str], ...], float]] = []
        self.closed = 0
        self.trouble = ""
        self.hold = threading.Event()
        self.hold.set()

    def is_grouped(self, operation: str, body: bytes) -> bool:
        return operation in ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")

    def is_long(self, operation: str, body: bytes) -> bool:
        return len(body) > 128 * 1024

    account = "000000000000"

    def accesses(self, operation: str, body: bytes, region: str = "") -> list[Any]:
        """Permissions are tried on a real database."""
        raise AssertionError("no user here is restricted")

    def has_policies(self, operation: str, region: str = "") -> bool:
        return False

    def send(self, operation: str, body: bytes, region: str = "") -> bytes:
        self.reads.append((operation, body))
        return self._answer(operation, body)

    def send_many(
        self, requests: Sequence[tuple[str, bytes]], region: str = ""
    ) -> list[bytes | ApiError]:
        self.hold.wait(5)
        self.groups.append(list(requests))
        answers: list[bytes | ApiError] = []
        for operation, body in requests:
            try:
                answers.append(self._answer(operation, body))
            except ApiError as error:
                answers.append(error)
        return answers

    def _answer(self, operation: str, body: bytes) -> bytes:
        self.order.append(operation)
        if operation == "Nonsense":
            raise UnknownOperationException()
        if body == b'"explode"':
            raise RuntimeError("a defect")
        if body.startswith(b'"big'):
            return b'"' + b"x" * int(body[4:-1]) + b'"'
        return b'{"%b":%b}' % (operation.encode(), body)

    def health(self) -> str:
        return self.trouble

    def gauges(self) -> dict[str, float]:
        return {"isotone_tables": 3.0}

    def measure(self) -> None:
        self.measured += 1

    def served(self, others: Sequence[bytes] = ()) -> bytes:
        return b'{"seconds":0,"queries":[]}'

    def series(self) -> list[tuple[str, tuple[tuple[str, str], ...], float]]:
        return self.of_tables

    def allow_waiting(self, allowed: bool) -> None:
        self.may_wait = allowed

    def start_maintenance(self) -> None:
        self.maintained += 1

    def close(self) -> None:
        self.closed += 1
