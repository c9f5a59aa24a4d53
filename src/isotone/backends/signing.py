"""AWS Signature Version 4 for DynamoDB, whose requests are all a POST of JSON to `/`.

Method, path and query are always the same, so the canonical request is five header lines and the hash of
the body. The signing key is derived once per day and credentials, the date formatted once per second.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from typing import Final

from isotone.backends.credentials import Credentials, CredentialSource

CONTENT_TYPE: Final = "application/x-amz-json-1.0"
TARGET: Final = "DynamoDB_20120810."
STREAMS_TARGET: Final = "DynamoDBStreams_20120810."
STREAM_OPERATIONS: Final = frozenset(
    ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
)

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SERVICE: Final = "dynamodb"
_SIGNED: Final = "content-type;host;x-amz-date;x-amz-target"
_SIGNED_WITH_TOKEN: Final = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"


class Signer:
    """Signs requests to one host in one region.

    `skew` is added to this machine's time to get the service's time.
    """

    __slots__ = ("_credentials", "_derived", "_host", "_region", "_stamp", "now", "skew")

    def __init__(
        self,
        credentials: CredentialSource,
        region: str,
        host: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._credentials = credentials
        self._region = region
        self._host = host
        self.now = now
        self._stamp: tuple[int, str] = (-1, "")
        self._derived: tuple[tuple[str, Credentials], bytes] | None = None
        self.skew = 0.0

    def headers(self, operation: str, body: bytes) -> str:
        """The signed header lines of a request, each with its line end."""
        credentials = self._credentials()
        stamp = self._timestamp()
        token = credentials.token
        signed_token = f"x-amz-security-token:{token}\n" if token else ""
        signed = _SIGNED_WITH_TOKEN if token else _SIGNED
        target = (STREAMS_TARGET if operation in STREAM_OPERATIONS else TARGET) + operation
        canonical = (
            f"POST\n/\n\ncontent-type:{CONTENT_TYPE}\nhost:{self._host}\nx-amz-date:{stamp}\n"
            f"{signed_token}x-amz-target:{target}\n\n{signed}\n"
            f"{hashlib.sha256(body).hexdigest()}"
        )
        scope = f"{stamp[:8]}/{self._region}/{_SERVICE}/aws4_request"
        hashed = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"{_ALGORITHM}\n{stamp}\n{scope}\n{hashed}"
        signature = hmac.digest(self._key(credentials, stamp[:8]), text.encode(), "sha256").hex()
        return (
            f"Content-Type: {CONTENT_TYPE}\r\n"
            f"X-Amz-Target: {target}\r\n"
            f"X-Amz-Date: {stamp}\r\n"
            + (f"X-Amz-Security-Token: {token}\r\n" if token else "")
            + f"Authorization: {_ALGORITHM} Credential={credentials.access_key}/{scope}, "
            f"SignedHeaders={signed}, Signature={signature}\r\n"
        )

    def time(self) -> float:
        """The service's time: this machine's time and the known skew."""
        return self.now() + self.skew

    def _timestamp(self) -> str:
        second = int(self.time())
        if second != self._stamp[0]:
            self._stamp = (second, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second)))
        return self._stamp[1]

    def _key(self, credentials: Credentials, day: str) -> bytes:
        derived = self._derived
        if derived is not None and derived[0] == (day, credentials):
            return derived[1]
        key = f"AWS4{credentials.secret_key}".encode()
        for part in (day, self._region, _SERVICE, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        self._derived = ((day, credentials), key)
        return key
