"""Patches botocore, and this library's own client of Amazon's service, while a mock is active; also existing clients.

All requests of botocore and aiobotocore pass through `Endpoint.make_request`. The patch gives DynamoDB requests an
address that never resolves, and disables signing. The endpoint's last step, `_send`, recognises that address and
answers from the database. It also answers `GetCallerIdentity` of STS. Any other request that reaches `_send` would
leave the process, so it is refused unless the mock passes it on. Requests that moto answers never reach `_send`, so
both mocks can be active at once.

The patches are applied when the first mock starts and removed when the last one stops. Endpoint classes are
patched when they are first used, so aiobotocore may be imported at any time, or never.

Stores of `dynamodb://region` do not use botocore. Their requests are answered where they would be sent; those of other addresses,
such as a server that a test has started, are sent.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakKeyDictionary

import msgspec

from isotone.errors import ApiError, UsageError
from isotone.testing.attachment import (
    HERE,
    RequestAnswerer,
    respond,
    respond_awaitably,
    response,
    response_awaitably,
)
from isotone.testing.sessions import make_sessions_cheap

if TYPE_CHECKING:
    from isotone.backends.endpoint import Endpoint as DynamoDBEndpoint

DYNAMODB: Final = frozenset({"dynamodb", "dynamodbstreams"})
"""botocore's names of the services that a database answers."""

_XML: Final = "text/xml"
# The same values as in moto.
_IDENTITY: Final = """\
<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<GetCallerIdentityResult>
<Arn>arn:aws:sts::{account}:user/moto</Arn>
<UserId>AKIAIOSFODNN7EXAMPLE</UserId>
<Account>{account}</Account>
</GetCallerIdentityResult>
</GetCallerIdentityResponse>
"""


class Switch(Protocol):
    """Decides what happens to requests while the patches are applied."""

    def database(self, region: str) -> RequestAnswerer:
        """The database that answers for a region."""

    def account(self) -> str:
        """The caller's account."""

    def passes(self, service: str, url: str) -> bool:
        """Whether a request to a service may leave the process."""


class Patches:
    """Replaces methods of botocore's classes, and restores them."""

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._originals: list[tuple[type, str, Any]] = []
        self._services: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def apply(self) -> None:
        """Apply the patches."""
        from botocore.endpoint import Endpoint

        from isotone.backends.async_remote import AsyncRemote
        from isotone.backends.remote import Remote

        make_sessions_cheap(self._replace)
        self._replace(Endpoint, "make_request", self._addressing(Endpoint.make_request))
        self._replace(Remote, "attempt", self._attempting(Remote.attempt))
        self._replace(AsyncRemote, "attempt", self._attempting_awaitably(AsyncRemote.attempt))

    def remove(self) -> None:
        """Restore the original methods."""
        while self._originals:
            cls, name, original = self._originals.pop()
            setattr(cls, name, original)

    def _replace(self, cls: type, name: str, replacement: Callable[..., Any]) -> None:
        self._originals.append((cls, name, vars(cls)[name]))
        setattr(cls, name, replacement)

    def _addressing(self, make_request: Callable[..., Any]) -> Callable[..., Any]:
        def make_request_here(endpoint: Any, operation_model: Any, request_dict: Any) -> Any:
            self._patch_send(type(endpoint))
            service = self._services[endpoint] = operation_model.service_model.service_name
            if service in DYNAMODB and not self._switch.passes(service, request_dict["url"]):
                context = request_dict["context"]
                request_dict["url"] = HERE + context["client_region"]
                context["auth_type"] = "none"
            return make_request(endpoint, operation_model, request_dict)

        return make_request_here

    def _patch_send(self, endpoint: type) -> None:
        """Patch the class that defines `_send` for this endpoint class, once."""
        owner = next(cls for cls in endpoint.__mro__ if "_send" in vars(cls))
        original = vars(owner)["_send"]
        if not hasattr(original, "is_isotones"):
            awaited = inspect.iscoroutinefunction(original)
            sending = self._sending_awaitably(original) if awaited else self._sending(original)
            sending.is_isotones = True  # type: ignore[attr-defined] # marks the function
            self._replace(owner, "_send", sending)

    def _sending(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def send_here(endpoint: Any, request: Any) -> Any:
            if request.url.startswith(HERE):
                return respond(request, self._switch.database(request.url[len(HERE) :]))
            if self._leaves(endpoint, request):
                return send(endpoint, request)
            return response(request.url, 200, self._identity(), _XML)

        return send_here

    def _sending_awaitably(self, send: Callable[..., Any]) -> Callable[..., Any]:
        async def send_here(endpoint: Any, request: Any) -> Any:
            if request.url.startswith(HERE):
                return respond_awaitably(request, self._switch.database(request.url[len(HERE) :]))
            if self._leaves(endpoint, request):
                return await send(endpoint, request)
            return response_awaitably(request.url, 200, self._identity(), _XML)

        return send_here

    def _attempting(self, attempt: Callable[..., Any]) -> Callable[..., Any]:
        def attempt_here(remote: Any, operation: str, body: bytes) -> Any:
            if self._is_sent(remote.endpoint):
                return attempt(remote, operation, body)
            return self._answer(remote.endpoint, operation, body)

        return attempt_here

    def _attempting_awaitably(self, attempt: Callable[..., Any]) -> Callable[..., Any]:
        async def attempt_here(remote: Any, operation: str, body: bytes) -> Any:
            if self._is_sent(remote.endpoint):
                return await attempt(remote, operation, body)
            return self._answer(remote.endpoint, operation, body)

        return attempt_here

    def _is_sent(self, endpoint: DynamoDBEndpoint) -> bool:
        return not endpoint.is_amazon or self._switch.passes("dynamodb", endpoint.url)

    def _answer(self, endpoint: DynamoDBEndpoint, operation: str, body: bytes) -> Any:
        from isotone.backends.http_messages import error_of

        try:
            return msgspec.json.decode(self._switch.database(endpoint.region).send(operation, body))
        except ApiError as error:  # as it would come over HTTP
            members = msgspec.json.decode(msgspec.json.encode(error.body()))
            raise error_of(members, error.status) from None

    def _leaves(self, endpoint: Any, request: Any) -> bool:
        """Whether a request to another service is sent; if not, it is a request for the caller's identity."""
        service = self._services[endpoint]
        if self._switch.passes(service, request.url):
            return True
        if service == "sts" and b"Action=GetCallerIdentity" in _bytes(request.body):
            return False
        raise UsageError(
            f"a request to the service {service!r} ({request.method} {request.url}) was about to "
            "leave the process inside mock_dynamodb, which answers DynamoDB only; mock that "
            'service too, or let it pass with mock_dynamodb(other_services="pass")'
        )

    def _identity(self) -> bytes:
        return _IDENTITY.format(account=self._switch.account()).encode()


def _bytes(body: Any) -> bytes:
    return body if isinstance(body, bytes) else str(body).encode()
