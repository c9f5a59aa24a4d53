"""A mixed load, cycle after cycle: writes and reads of all kinds, new expressions, tables made and dropped, uploads that hang up."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from tests.server.fakes import request_bytes

Send = Callable[[str, dict[str, Any]], object]
"""Executes a request; an error of the service is a result like another."""

_KEYS = {
    "KeySchema": [
        {"AttributeName": "p", "KeyType": "HASH"},
        {"AttributeName": "s", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "p", "AttributeType": "S"},
        {"AttributeName": "s", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
_LIST = {"L": [{"N": str(number % 9)} for number in range(8000)]}


def prepare(send: Send) -> None:
    """The table that stays."""
    send("CreateTable", {"TableName": "stays", **_KEYS})
    send("PutItem", {"TableName": "stays", "Item": {**key(0), "p": {"S": "long"}, "l": _LIST}})


def key(number: int) -> dict[str, Any]:
    return {"p": {"S": f"p{number % 5}"}, "s": {"N": str(number % 50)}}


def cycle(send: Send, number: int) -> None:
    """Some requests; afterwards the database has as many items as before, from the second round of keys on."""
    stays = {"TableName": "stays"}
    values = {":v": {"N": str(number)}, ":o": {"S": f"text {number}"}}
    of_values = {"ExpressionAttributeValues": values}
    new = f"a{number} = :v OR b{number % 1000} = :o OR contains(c{number}, :v)"
    for each in range(10):
        item = {**key(number + each), f"n{number + each}": {"S": "x" * 200}}
        send("PutItem", {**stays, "Item": item})
    send("PutItem", {**stays, "Item": key(number), "ConditionExpression": new, **of_values})
    update = {"UpdateExpression": f"SET u{number % 20} = :v, w = :o", **of_values}
    send("UpdateItem", {**stays, "Key": key(number), **update})
    send("Scan", {**stays, "FilterExpression": new, **of_values})
    send("GetItem", {**stays, "Key": key(number), "ProjectionExpression": f"p, x{number}[3].y"})
    send("ExecuteStatement", {"Statement": f"SELECT * FROM stays WHERE p = 'p1' AND x > {number}"})
    send("ExecuteStatement", {"Statement": f"no statement {number}"})
    check = {"ConditionExpression": " OR ".join(["contains(l, :v)"] * 20) + " OR w = :o"}
    long = {**stays, "Key": {"p": {"S": "long"}, "s": {"N": "0"}}}
    send("UpdateItem", {**long, "UpdateExpression": "SET w = :o", **check, **of_values})
    wrong = {**stays, "Key": {"p": {"N": "1"}}}
    send("TransactWriteItems", {"TransactItems": [{"Delete": wrong}]})
    send("GetItem", wrong)
    send("NoSuchAction", {})
    table = f"table{number}"  # without a stream, which would stay for a day
    send("CreateTable", {"TableName": table, **_KEYS})
    puts = [{"PutRequest": {"Item": key(each)}} for each in range(10)]
    send("BatchWriteItem", {"RequestItems": {table: puts}})
    send("Query", {"TableName": table, "KeyConditionExpression": "p = :o", **_only(values)})
    send("DeleteTable", {"TableName": table})


def _only(values: dict[str, Any]) -> dict[str, Any]:
    return {"ExpressionAttributeValues": {":o": values[":o"]}}


@contextmanager
def over_http(url: str) -> Iterator[Send]:
    """Sends requests on one connection, and uploads that hang up on others: one before each that makes a table."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)

    def send(operation: str, request: dict[str, Any]) -> object:
        if operation == "CreateTable":
            hang_up(url)
        headers = {
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Date": "20260101T000000Z",
            "Authorization": "AWS4-HMAC-SHA256 Credential=soak/20260101/us-east-1/dynamodb/aws4_request, "
            "SignedHeaders=host;x-amz-date;x-amz-target, Signature=" + "5" * 64,
        }
        connection.request("POST", "/", json.dumps(request).encode(), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    with closing(connection):
        yield send


def hang_up(url: str) -> None:
    """Send a part of a large upload."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=60) as sock:
        sock.sendall(request_bytes("PutItem", b"x" * 300_000)[:-10])
