"""The bytes of a response to what botocore would have made of them.

The service's JSON is already boto3's response but for two things: binary values are base64 text, and
times are numbers. Both are looked for only where they can be: binary values in responses in which the
characters `"B":` or `"BS":` occur (no other member of any response has text under these names), times
in answers about tables.
"""

from __future__ import annotations

import re
from base64 import b64decode
from datetime import UTC, datetime
from itertools import count
from secrets import choice
from string import ascii_uppercase, digits
from typing import Any, Final

import msgspec

_decode: Final = msgspec.json.decode
_has_binary: Final = re.compile(rb'"BS?":').search
_SERIAL: Final = count()


def _identity() -> str:
    """Random start of this process's request ids: 40 of AWS's 52 characters."""
    return "".join(choice(ascii_uppercase + digits) for _ in range(40))


_PROCESS: Final = _identity()


def decode_response(raw: bytes, *, times: bool) -> dict[str, Any]:
    """The response of a call that succeeded."""
    response: dict[str, Any] = _decode(raw)
    if b"B" in raw and _has_binary(raw):  # the first look is many times faster, and mostly enough
        restore_binary(response)
    if times:
        _restore_times(response)
    response["ResponseMetadata"] = metadata(200, len(raw))
    return response


def metadata(status: int, length: int) -> dict[str, Any]:
    """`ResponseMetadata`, with a request id that no other call of any process has."""
    request_id = f"{_PROCESS}{next(_SERIAL):012d}"
    return {
        "RequestId": request_id,
        "HTTPStatusCode": status,
        "HTTPHeaders": {
            "content-type": "application/x-amz-json-1.0",
            "content-length": str(length),
            "x-amzn-requestid": request_id,
        },
        "RetryAttempts": 0,
    }


def restore_binary(value: Any) -> None:
    """Turn the base64 text of all binary values inside into bytes, in place."""
    if type(value) is list:
        for element in value:
            restore_binary(element)
        return
    if type(value) is not dict:
        return
    for name, member in value.items():
        if name == "B" and type(member) is str:
            value[name] = b64decode(member)
        elif name == "BS" and type(member) is list:
            value[name] = [b64decode(element) for element in member]
        else:
            restore_binary(member)


def _restore_times(value: Any) -> None:
    if type(value) is list:
        for element in value:
            _restore_times(element)
    elif type(value) is dict:
        for name, member in value.items():
            if type(member) in (int, float) and name.endswith("Time"):
                value[name] = datetime.fromtimestamp(member, UTC).astimezone()
            else:
                _restore_times(member)
