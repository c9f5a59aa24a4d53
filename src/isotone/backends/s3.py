"""Requests to an S3 endpoint: addresses of buckets, signatures, connections and retries.

A bucket is addressed by the path (`http://127.0.0.1:9000/bucket/key`), or by a host of its own
(`https://bucket.s3.eu-west-1.amazonaws.com/key`), as Amazon prefers. A bucket whose name has a dot fits no certificate, so
over TLS it is addressed by the path.

`exchange/s3.py`, which belongs to the database, decides what is sent and what the answers mean; only `embedded.py`
imports both.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import quote

from isotone.backends.connections import ClientConnection, Pool
from isotone.backends.credentials import Credentials, CredentialSource, credential_source
from isotone.backends.endpoint import Address, Timeouts, local_region
from isotone.backends.http_messages import HttpReply
from isotone.backends.request_retries import Retries
from isotone.backends.signing import S3Signer
from isotone.errors import ConnectionFailed, UsageError

AddressingStyle = Literal["auto", "path", "virtual"]

_URL: Final = re.compile(r"(https?)://(\[[0-9a-fA-F:.]+\]|[^/?#@:\[\]]+)(?::([0-9]+))?/?")
_AMAZON: Final = re.compile(r"s3[\w-]*(?:\.dualstack)?(?:\.([a-z0-9-]+))?\.amazonaws\.com(?:\.cn)?")
_PORTS: Final = {"http": 80, "https": 443}
_CONNECTIONS: Final = 2  # exports and imports run in one thread
_RETRIED: Final = frozenset((408, 429))
_MINUTES_OFF: Final = b"RequestTimeTooSkewed"
_TOLERATED_SKEW: Final = 60.0  # seconds; a smaller difference cannot have caused the error


@dataclass(frozen=True, slots=True)
class S3:
    """An S3 endpoint, for the buckets of exports and imports: `isotone.open(path, s3=isotone.S3(url))`.

    `url` is `https://s3.eu-west-1.amazonaws.com`, or that of any server with S3's API. Without `region` and
    `credentials`, both are found as for DynamoDB. `addressing_style` is by default "virtual" for Amazon and "path" for
    others.
    """

    url: str
    region: str | None = None
    profile: str | None = None
    credentials: Credentials | CredentialSource | None = None
    addressing_style: AddressingStyle = "auto"
    retries: Retries | None = None
    timeouts: Timeouts | None = None

    def client(self) -> S3Client:
        """The client for this endpoint; raises `UsageError` for a malformed URL, and `NoCredentials`."""
        return S3Client(self)


class S3Client:
    """Sends requests to one endpoint, from any thread."""

    __slots__ = (
        "_address",
        "_busy",
        "_closed",
        "_is_virtual",
        "_lock",
        "_pools",
        "_retries",
        "_signer",
        "_timeouts",
    )

    def __init__(self, endpoint: S3) -> None:
        self._address = _address_of(endpoint.url)
        amazon = _AMAZON.fullmatch(self._address.host)
        region = endpoint.region or (amazon[1] or "us-east-1" if amazon else local_region())
        credentials = credential_source(
            endpoint.credentials, endpoint.profile, is_amazon=amazon is not None
        )
        self._signer = S3Signer(credentials, region)
        style = endpoint.addressing_style
        self._is_virtual = style == "virtual" or (style == "auto" and amazon is not None)
        self._retries = endpoint.retries or Retries()
        self._timeouts = endpoint.timeouts or Timeouts()
        self._pools: dict[str, Pool] = {}
        self._busy: set[ClientConnection] = set()
        self._closed = threading.Event()
        self._lock = threading.Lock()

    def send(
        self,
        method: str,
        bucket: str,
        key: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> HttpReply:
        """Send a request, with retries; raises `ConnectionFailed` if it is not answered.

        An error of the service is an answer, even after all retries.
        """
        address, path = self._place(bucket, key)
        asked = "&".join(f"{_quoted(name)}={_quoted(query[name])}" for name in sorted(query))
        given = {**headers, "host": address.authority}
        attempts = self._retries.begin()
        while True:
            reply: HttpReply | None = None
            try:
                signed = self._signer.headers(method, path, asked, given, body)
                reply = self._exchange(address, _message(method, path, asked, signed, body))
                if not self._is_worth_a_retry(reply):
                    return reply
                failure = ConnectionFailed(f"S3 answered with status {reply.status}")
            except ConnectionFailed as error:
                failure = error
            delay = None if self._closed.is_set() else attempts.delay(failure)
            if delay is None:
                if reply is not None:
                    return reply
                raise failure
            self._closed.wait(delay)

    def close(self) -> None:
        """Make all requests fail, now and later."""
        self._closed.set()
        with self._lock:
            for connection in self._busy:
                connection.interrupt()
            for pool in self._pools.values():
                pool.close()

    def _place(self, bucket: str, key: str) -> tuple[Address, str]:
        """The address and the encoded path of an object, or of a bucket if `key` is empty."""
        address = self._address
        if self._is_virtual and not ("." in bucket and address.is_tls):
            scheme, _, rest = address.url.partition("://")
            own = replace(
                address, url=f"{scheme}://{bucket}.{rest}", host=f"{bucket}.{address.host}"
            )
            return own, "/" + quote(key)
        return address, f"/{bucket}/{quote(key)}" if key else f"/{bucket}"

    def _exchange(self, address: Address, message: bytes) -> HttpReply:
        with self._lock:
            if self._closed.is_set():
                raise ConnectionFailed(f"the client of {address.url} was closed")
            pool = self._pools.get(address.host)
            if pool is None:
                pool = self._pools[address.host] = Pool(address, self._timeouts, _CONNECTIONS)
        connection = pool.take()
        with self._lock:
            self._busy.add(connection)
            if self._closed.is_set():
                connection.interrupt()
        try:
            reply = connection.exchange(message)
        except BaseException:
            connection.close()
            raise
        finally:
            with self._lock:
                self._busy.discard(connection)
        pool.release(connection, reply)
        return reply

    def _is_worth_a_retry(self, reply: HttpReply) -> bool:
        """Whether the same request may succeed later. If this machine's clock is wrong, records the skew."""
        if reply.status >= 500 or reply.status in _RETRIED:
            return True
        if reply.status == 400:
            return b"<Code>RequestTimeout</Code>" in reply.body
        if reply.status != 403 or _MINUTES_OFF not in reply.body:
            return False
        skew = reply.skew(self._signer.now())
        if skew is None or abs(skew - self._signer.skew) < _TOLERATED_SKEW:
            return False
        self._signer.skew = skew
        return True


def _message(method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> bytes:
    target = f"{path}?{query}" if query else path
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    length = f"content-length: {len(body)}\r\n" if body or method != "GET" else ""
    head = f"{method} {target} HTTP/1.1\r\nuser-agent: isotone\r\n{lines}{length}\r\n"
    return head.encode() + body


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _address_of(url: str) -> Address:
    found = _URL.fullmatch(url)
    if found is None:
        raise UsageError(
            f"s3={re.sub('//.*@', '//…@', url)!r} is not an S3 endpoint; write a folder, "
            "http://127.0.0.1:9000 or https://s3.eu-west-1.amazonaws.com"
        )
    scheme, host, port = found.groups()
    return Address(
        url=url.rstrip("/"),
        host=host.strip("[]"),
        port=int(port or _PORTS[scheme]),
        is_tls=scheme == "https",
    )
