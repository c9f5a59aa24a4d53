"""The requests that every HTTP measurement sends: realistic, prebuilt, the same for every server.

An item has ten attributes of the usual types, about 400 bytes. Headers are those that botocore sends.
"""

from __future__ import annotations

import json
from typing import Any, Final

from isotone.backends.credentials import Credentials, fixed
from isotone.backends.signing import Signer

TABLE: Final = "Bench"
ROWS: Final = 1000  # items that GetItem picks from
PARTITION: Final = 100  # items that one Query returns

SCHEMA: Final[dict[str, Any]] = {
    "TableName": TABLE,
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "S"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
INDEXED: Final = "Indexed"
INDEXED_SCHEMA: Final = {
    **SCHEMA,
    "TableName": INDEXED,
    "AttributeDefinitions": [
        *SCHEMA["AttributeDefinitions"],
        {"AttributeName": "customer", "AttributeType": "S"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_customer",
            "KeySchema": [{"AttributeName": "customer", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}


def item(number: int, version: int = 0) -> dict[str, Any]:
    """Item `number`: ten attributes, hundred items to a partition; versions differ in one of them."""
    return {
        **key(number),
        "status": {"S": ("OPEN", "PAID", "SHIPPED")[number % 3]},
        "customer": {"S": f"customer-{number * 7919 % 10007:05}"},
        "total": {"N": str(number * 17 % 9973) + ".25"},
        "quantity": {"N": str(number % 12 + 1 + version)},
        "gift": {"BOOL": number % 2 == 0},
        "tags": {"SS": ["alpha", "beta", f"t{number % 9}"]},
        "address": {"M": {"street": {"S": f"{number} Long Road"}, "city": {"S": "Ghent"}}},
        "note": {"S": "An ordinary sentence about an ordinary order, of ordinary length. " * 2},
    }


def key(number: int) -> dict[str, Any]:
    """The primary key of item `number`."""
    partition, row = divmod(number, PARTITION)
    return {"pk": {"S": f"ORDER#{partition:04}"}, "sk": {"S": f"LINE#{row:06}"}}


def get(number: int) -> dict[str, Any]:
    return {"TableName": TABLE, "Key": key(number)}


def put(number: int, version: int = 0) -> dict[str, Any]:
    return {"TableName": TABLE, "Item": item(number, version)}


def query(partition: int) -> dict[str, Any]:
    """All hundred items of one partition."""
    return {
        "TableName": TABLE,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": f"ORDER#{partition:04}"}},
    }


KEY: Final = Credentials("AKIDEXAMPLE00000000", "a secret that nobody needs to keep")


def headers(operation: str, body: bytes, port: int) -> dict[str, str]:
    """What botocore sends with a request, with a signature that is right for fifteen minutes."""
    host = f"127.0.0.1:{port}"
    signed = Signer(fixed(KEY), "us-east-1", host).headers(operation, body)
    return {
        "Host": host,
        "Accept-Encoding": "identity",
        **dict(line.split(": ", 1) for line in signed.splitlines()),
        "User-Agent": "Boto3/1.40.0 md/Botocore#1.40.0 ua/2.1 os/linux#6.1 md/arch#x86_64 "
        "lang/python#3.11.7 md/pyimpl#CPython cfg/retry-mode#legacy",
        "amz-sdk-invocation-id": "11111111-2222-3333-4444-555555555555",
        "amz-sdk-request": "attempt=1",
        "Content-Length": str(len(body)),
    }


def raw(operation: str, request: dict[str, Any], port: int) -> bytes:
    """The bytes of one HTTP request."""
    body = json.dumps(request).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in headers(operation, body, port).items())
    return f"POST / HTTP/1.1\r\n{head}\r\n".encode() + body
