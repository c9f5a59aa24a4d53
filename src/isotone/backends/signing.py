"""AWS Signature Version 4, for DynamoDB and for S3.

DynamoDB's requests are all a POST of JSON to `/`: method, path and query are always the same, so the canonical request
is five header lines and the hash of the body. In S3's requests all of these differ. The signing key is derived once per
day and credentials, and the date formatted once per second.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from isotone.backends.credentials import Credentials, CredentialSource

CONTENT_TYPE: Final = "application/x-amz-json-1.0"
TARGET: Final = "DynamoDB_20120810."
STREAMS_TARGET: Final = "DynamoDBStreams_20120810."
STREAM_OPERATIONS: Final = frozenset(
    ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
)

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SIGNED: Final = "content-type;host;x-amz-date;x-amz-target"
_SIGNED_WITH_TOKEN: Final = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"


class _Signer:
    """The parts that both services share: the time, the scope, and the key of a day.

    `skew` is added to this machine's time to get the service's time.
    """

    __slots__ = ("_credentials", "_derived", "_region", "_stamp", "now", "skew")

    _service: ClassVar[str]

    def __init__(
        self,
        credentials: CredentialSource,
        region: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._credentials = credentials
        self._region = region
        self.now: Callable[[], float] = now
        self._stamp: tuple[int, str] = (-1, "")
        self._derived: tuple[tuple[str, Credentials], bytes] | None = None
        self.skew: float = 0.0

    def time(self) -> float:
        """The service's time: this machine's time plus the known skew."""
        return self.now() + self.skew

    def _timestamp(self) -> str:
        second = int(self.time())
        if second != self._stamp[0]:
            self._stamp = (second, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second)))
        return self._stamp[1]

    def _authorization(
        self, credentials: Credentials, stamp: str, signed: str, canonical: str
    ) -> str:
        """The Authorization header of a canonical request with these `signed` headers."""
        scope = f"{stamp[:8]}/{self._region}/{self._service}/aws4_request"
        hashed = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"{_ALGORITHM}\n{stamp}\n{scope}\n{hashed}"
        signature = hmac.digest(self._key(credentials, stamp[:8]), text.encode(), "sha256").hex()
        return (
            f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, "
            f"SignedHeaders={signed}, Signature={signature}"
        )

    def _key(self, credentials: Credentials, day: str) -> bytes:
        derived = self._derived
        if derived is not None and derived[0] == (day, credentials):
            return derived[1]
        key = f"AWS4{credentials.secret_key}".encode()
        for part in (day, self._region, self._service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        self._derived = ((day, credentials), key)
        return key


class Signer(_Signer):
    """Signs requests of DynamoDB to one host in one region."""

    __slots__ = ("_host",)

    _service = "dynamodb"

    def __init__(
        self,
        credentials: CredentialSource,
        region: str,
        host: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(credentials, region, now)
        self._host = host

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
        authorization = self._authorization(credentials, stamp, signed, canonical)
        return (
            f"Content-Type: {CONTENT_TYPE}\r\n"
            f"X-Amz-Target: {target}\r\n"
            f"X-Amz-Date: {stamp}\r\n"
            + (f"X-Amz-Security-Token: {token}\r\n" if token else "")
            + f"Authorization: {authorization}\r\n"
        )


class S3Signer(_Signer):
    """Signs requests of S3 in one region: any method, path, query and headers."""

    __slots__ = ()

    _service = "s3"

    def headers(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> dict[str, str]:
        """All headers of a request, by lower-case names.

        `path` and `query` must be encoded, and the query sorted by name. `headers` has `host`, and any others to be
        sent.
        """
        credentials = self._credentials()
        stamp = self._timestamp()
        digest = hashlib.sha256(body).hexdigest()
        whole = {**headers, "x-amz-content-sha256": digest, "x-amz-date": stamp}
        if credentials.token:
            whole["x-amz-security-token"] = credentials.token
        lines = "".join(f"{name}:{whole[name]}\n" for name in sorted(whole))
        signed = ";".join(sorted(whole))
        canonical = f"{method}\n{path}\n{query}\n{lines}\n{signed}\n{digest}"
        authorization = self._authorization(credentials, stamp, signed, canonical)
        return {**whole, "authorization": authorization}
