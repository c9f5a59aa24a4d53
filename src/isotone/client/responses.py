"""Decodes the bytes of a response to boto3's dict.

A response is JSON in which binary values are base64 text and times are numbers. They are converted only
if the bytes show that there are any.
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

# Only binary values are text or a list under "B" or "BS". Only times are numbers under "…Time":
# names that users choose have objects as values.
_has_binary: Final = re.compile(rb'"BS?":').search
_has_times: Final = re.compile(rb'Time":[^{]').search

_PROCESS: Final = "".join(choice(ascii_uppercase + digits) for _ in range(40))
_SERIAL: Final = count()


def decode_response(raw: bytes) -> dict[str, Any]:
    """Decode the response of a call that succeeded, with `ResponseMetadata`."""
    response: dict[str, Any] = _decode(raw or b"{}")
    # The substring tests are many times faster than the regular expressions, and usually enough.
    if b"B" in raw and _has_binary(raw):
        restore_binary(response)
    if b'Time":' in raw and _has_times(raw):
        _restore_times(response)
    response["ResponseMetadata"] = response_metadata(200, len(raw))
    return response


def response_metadata(status: int, length: int) -> dict[str, Any]:
    """`ResponseMetadata`, with a unique request id of 52 characters."""
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
    """Replace the base64 text of all binary values with bytes, in place."""
    if type(value) is list:
        for element in value:
            restore_binary(element)
    elif type(value) is dict:
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
