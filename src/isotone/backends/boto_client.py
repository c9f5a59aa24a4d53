"""A boto3 or aioboto3 client as a backend, with its own credentials, endpoint, retries and events.

botocore uses bytes and datetimes where the API's JSON has base64 and seconds; both are converted. A call
costs about a millisecond more than with `Remote`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from isotone.backends.http_messages import error_of
from isotone.backends.interface import Native, Request, Response, as_text
from isotone.backends.signing import STREAM_OPERATIONS
from isotone.client.responses import restore_binary
from isotone.errors import ConnectionFailed, UsageError

_FRAME: Final = frozenset({"ResponseMetadata", "Error", "message", "Message"})


class BotoClient(Native):
    """The `Backend` of a boto3 client, or of a resource's.

    botocore has a separate client for DynamoDB Streams. It is created when it is first needed, with the same
    credentials and endpoint.
    """

    __slots__ = ("_client", "_streams")

    def __init__(self, client: Any) -> None:
        self._client = client
        self._streams: Any = None

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Execute one action; raises the errors of `Remote` instead of botocore's."""
        with _translated_errors():
            return _from_botocore(
                self._client_for(operation)._make_api_call(operation, _to_botocore(request))
            )

    def _client_for(self, operation: str) -> Any:
        if operation not in STREAM_OPERATIONS:
            return self._client
        if self._streams is None:
            self._streams = _client_of_streams(self._client)
        return self._streams


class AsyncBotoClient(Native):
    """The `AsyncBackend` of an aioboto3 client."""

    __slots__ = ("_client",)

    def __init__(self, client: Any) -> None:
        self._client = client

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Execute one action; raises the errors of `Remote` instead of botocore's."""
        if operation in STREAM_OPERATIONS:
            raise UsageError(
                "an aioboto3 client of DynamoDB does not reach its streams; open the store at an address, "
                "such as 'dynamodb://eu-west-1', or with a boto3 client"
            )
        with _translated_errors():
            return _from_botocore(
                await self._client._make_api_call(operation, _to_botocore(request))
            )


@contextmanager
def _translated_errors() -> Iterator[None]:
    from botocore.exceptions import ClientError, ConnectionError, HTTPClientError  # noqa: A004

    try:
        yield
    except ClientError as error:
        raise _api_error(error.response) from error
    except (ConnectionError, HTTPClientError) as error:
        raise ConnectionFailed(str(error)) from error


def _client_of_streams(client: Any) -> Any:
    """A client of DynamoDB Streams with the configuration of a client of DynamoDB."""
    import botocore.session

    session = botocore.session.get_session()
    session._credentials = client._request_signer._credentials
    endpoint = client.meta.endpoint_url
    made = session.create_client(
        "dynamodbstreams",
        region_name=client.meta.region_name,
        endpoint_url=None if ".amazonaws.com" in endpoint else endpoint,
        config=client.meta.config,
    )

    def copy_handlers(event_name: str, **about: Any) -> Any:
        """Register the given client's event handlers, so that requests are signed or answered in the same way."""
        event, _, operation = event_name.split(".")
        return client.meta.events.emit_until_response(f"{event}.dynamodb.{operation}", **about)[1]

    for event in ("choose-signer", "before-send"):
        made.meta.events.register(event, copy_handlers)
    return made


def _to_botocore(request: Request) -> dict[str, Any]:
    """A copy of a request with bytes for binary values."""
    copied: dict[str, Any] = _copy(as_text(request))
    restore_binary(copied)
    return copied


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copy(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(element) for element in value]
    return value


def _from_botocore(answer: Mapping[str, Any]) -> Response:
    return {name: _as_json(value) for name, value in answer.items() if name not in _FRAME}


def _as_json(value: Any) -> Any:
    """A value in its JSON form."""
    if isinstance(value, dict):
        return {name: _as_json(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_as_json(element) for element in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, datetime):
        return value.timestamp()
    return value


def _api_error(response: Mapping[str, Any]) -> Exception:
    said = response.get("Error", {})
    members = {"__type": said.get("Code", ""), "message": said.get("Message", "")}
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    return error_of({**_from_botocore(response), **members}, status)
