"""What can be asked: this library in memory or on a file, and anything that listens at an address."""

from __future__ import annotations

import gzip
import http.client
import json
import ssl
import zlib
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

import isotone
from isotone.backends.endpoint import Endpoint, endpoint_of
from isotone.backends.signing import STREAM_OPERATIONS, Signer
from isotone.errors import ApiError

Header = tuple[str, str | None]


class Reply(msgspec.Struct, frozen=True):
    """An answer: the status, the headers by their names in small letters, and the body."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def error(self) -> str:
        """The code of an error."""
        return str(self.body.get("__type", "")).rpartition("#")[2]

    @property
    def message(self) -> str:
        """The text of an error; the service spells the member in two ways."""
        return str(self.body.get("message", self.body.get("Message", "")))

    def __str__(self) -> str:
        if self.status == 200:
            return json.dumps(self.body, ensure_ascii=False)
        rest = {
            name: member
            for name, member in self.body.items()
            if name.lower() not in ("__type", "message")
        }
        return f"{self.status} {self.error}: {self.message}" + (f" {rest}" if rest else "")


class Asked(Protocol):
    """Anything that answers requests."""

    is_http: bool

    def ask(
        self,
        action: str,
        body: bytes,
        headers: Sequence[Header] = (),
        method: str = "POST",
        path: str = "/",
    ) -> Reply: ...

    def close(self) -> None: ...


class InProcess:
    """This library, without a socket."""

    is_http = False

    def __init__(self, path: str = ":memory:", buckets: str | None = None) -> None:
        self._database = isotone.open(path, s3=buckets)

    def ask(self, action: str, body: bytes, *_: object) -> Reply:
        """The answer to a request; it takes no headers."""
        try:
            answer = self._database.send(action, body)
        except ApiError as error:
            return Reply(error.status, {}, json.loads(msgspec.json.encode(error.body())))
        return Reply(200, {}, json.loads(answer or b"{}"))

    def close(self) -> None:
        """Close the database."""
        self._database.close()


class AtAddress:
    """An HTTP endpoint. Requests are signed with the credentials of the environment, as AWS's tools find them."""

    is_http = True

    def __init__(self, url: str) -> None:
        endpoint = endpoint_of(url)
        self._services = (_Service(endpoint), _Service(endpoint.of_streams))

    def ask(
        self,
        action: str,
        body: bytes,
        headers: Sequence[Header] = (),
        method: str = "POST",
        path: str = "/",
    ) -> Reply:
        """Send one request, with other headers than the usual ones if some are given."""
        service = self._services[action in STREAM_OPERATIONS]
        try:
            return service.ask(action, body, headers, method, path)
        except (ConnectionError, http.client.RemoteDisconnected):
            service.close()  # an idle connection that the server has closed: once more on a new one
            return service.ask(action, body, headers, method, path)

    def close(self) -> None:
        """Close the connections."""
        for service in self._services:
            service.close()


class _Service:
    """DynamoDB, or DynamoDB Streams, at its host."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._authority = endpoint.authority
        self._signer = Signer(endpoint.credentials, endpoint.region, endpoint.authority)
        self._connection = (
            http.client.HTTPSConnection(
                endpoint.host, endpoint.port, timeout=60, context=ssl.create_default_context()
            )
            if endpoint.is_tls
            else http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=60)
        )

    def ask(
        self, action: str, body: bytes, headers: Sequence[Header], method: str, path: str
    ) -> Reply:
        connection = self._connection
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in self._headers(action, body, headers):
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        received = {name.lower(): value for name, value in response.getheaders()}
        content = _plain(response.read(), received.get("content-encoding"))
        if headers or received.get("connection") == "close":
            connection.close()
        return Reply(response.status, received, _decoded(content))

    def _headers(self, action: str, body: bytes, given: Sequence[Header]) -> list[tuple[str, str]]:
        lines = self._signer.headers(action, body).splitlines()
        usual = [("Host", self._authority), ("Content-Length", str(len(body)))]
        usual += [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
        replaced = {name.lower() for name, _ in given}
        kept = [(name, value) for name, value in usual if name.lower() not in replaced]
        return kept + [(name, value) for name, value in given if value is not None]

    def close(self) -> None:
        self._connection.close()


def _plain(content: bytes, encoding: str | None) -> bytes:
    if encoding == "gzip":
        return gzip.decompress(content)
    return zlib.decompress(content) if encoding == "deflate" else content


def _decoded(content: bytes) -> dict[str, Any]:
    """The body as JSON; what is no JSON is shown as it is."""
    try:
        decoded = json.loads(content or b"{}")
    except ValueError:
        return {"text": content.decode(errors="replace")}
    return decoded if isinstance(decoded, dict) else {"text": decoded}


def at(address: str) -> Asked:
    """What is at an address: `memory:`, a file, `http://…`, `dynamodb://region`."""
    if address.startswith(("http://", "https://", "dynamodb://")):
        return AtAddress(address)
    return InProcess(":memory:" if address == "memory:" else address)
