"""The database that a command works on: a file opened in this process, or a server elsewhere."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

import msgspec

from isotone import errors
from isotone.errors import ApiError, UsageError

if TYPE_CHECKING:
    from isotone.backends.embedded import Database

MEMORY: Final = ":memory:"

_CONTENT_TYPE: Final = "application/x-amz-json-1.0"
_ANY_SIGNATURE: Final = (
    "AWS4-HMAC-SHA256 Credential=isotone/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host;x-amz-date;x-amz-target, Signature=" + "0" * 64
)
_TIMEOUT: Final = 60.0


class Connection(Protocol):
    """Anything that answers the DynamoDB API in DynamoDB JSON."""

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]: ...


@contextlib.contextmanager
def connect(source: str, *, create: bool = False) -> Iterator[Connection]:
    """Open a file, or a server's address, for the length of the block.

    A file that is not there is made only where `create` says so. Raises `UsageError` for a source that
    does not exist or does not answer, `StorageError` for a file that cannot be opened.
    """
    if "://" in source:
        with contextlib.closing(_Remote(source)) as remote:
            yield remote
        return
    if source != MEMORY and not create and not Path(source).exists():
        raise UsageError(
            f"there is no file {source}; isotone create makes one, "
            "and the address of a server starts with http://"
        )
    from isotone.backends import embedded

    with embedded.open(source) as database:
        yield embedded_connection(database)


def embedded_connection(database: Database) -> Connection:
    """A connection to a database that is open in this process."""
    return _Embedded(database)


class _Embedded:
    def __init__(self, database: Database) -> None:
        self._execute = database.execute

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = msgspec.json.decode(
            self._execute(operation, msgspec.json.encode(request))
        )
        return answer


class _Remote:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        try:
            kind, host, port = kinds[parts.scheme], parts.hostname, parts.port
        except (KeyError, ValueError):
            kind, host, port = http.client.HTTPConnection, None, None
        if host is None:
            raise UsageError(
                f"{url} is no address of a server; it looks like http://localhost:8000"
            )
        self._url = url
        self._connection = kind(host, port, timeout=_TIMEOUT)

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        headers = {
            "Content-Type": _CONTENT_TYPE,
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "X-Amz-Date": "20260101T000000Z",
            "Authorization": _ANY_SIGNATURE,
        }
        try:
            self._connection.request("POST", "/", msgspec.json.encode(request), headers)
            response = self._connection.getresponse()
            status, body = response.status, response.read()
            answer: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
        except OSError as error:
            raise UsageError(
                f"nothing answers at {self._url} ({error.strerror or error}); "
                "isotone serve starts a server"
            ) from None
        except (http.client.HTTPException, msgspec.MsgspecError):
            raise UsageError(f"what answers at {self._url} is no DynamoDB") from None
        if status != 200:
            raise _error_of(answer)
        return answer

    def close(self) -> None:
        self._connection.close()


def _error_of(answer: dict[str, Any]) -> ApiError:
    """The error that a response body describes, as the class of its name."""
    code = str(answer.pop("__type", "")).rpartition("#")[2]
    message = str(answer.pop("message", None) or answer.pop("Message", None) or "")
    kind = getattr(errors, code, None)
    if isinstance(kind, type) and issubclass(kind, ApiError):
        return kind(message, **answer)
    return ApiError(f"{code}: {message}", **answer)
