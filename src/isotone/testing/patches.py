"""The patches of botocore that are in place while a mock is active.

All requests of botocore and aiobotocore pass through `Endpoint.make_request`. The patch gives DynamoDB
requests an address that never resolves, and disables signing. The endpoint's last step, `_send`, recognises
that address and answers from the database. Any other request that reaches `_send` would leave the process,
so it is refused unless the mock allows other services. Requests that moto answers never reach `_send`, so
both mocks can be active at once.

The patches are applied when the first mock starts and removed when the last one stops. Endpoint classes are
patched when they are first used, so aiobotocore may be imported at any time, or never.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, Protocol

from isotone.errors import UsageError
from isotone.testing.attachment import Database, respond, respond_awaitably

_HERE: Final = "http://dynamodb.isotone.invalid/"
_SERVICES: Final = frozenset({"dynamodb", "dynamodbstreams"})


class Switch(Protocol):
    """Decides what happens to requests while the patches are applied."""

    def database(self, region: str) -> Database:
        """The database that answers for a region."""

    def lets_pass(self, service: str) -> bool:
        """Whether requests to another service may leave the process."""


class Patches:
    """Replaces methods of botocore's classes, and restores them."""

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._originals: list[tuple[type, str, Any]] = []

    def apply(self) -> None:
        """Apply the patches."""
        from botocore.endpoint import Endpoint

        self._replace(Endpoint, "make_request", self._addressing(Endpoint.make_request))

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
            if operation_model.service_model.service_name in _SERVICES:
                context = request_dict["context"]
                request_dict["url"] = _HERE + context["client_region"]
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
            sending.is_isotones = True  # type: ignore[attr-defined]
            self._replace(owner, "_send", sending)

    def _sending(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def send_here(endpoint: Any, request: Any) -> Any:
            if request.url.startswith(_HERE):
                return respond(request, self._switch.database(request.url[len(_HERE) :]))
            self._check(endpoint, request)
            return send(endpoint, request)

        return send_here

    def _sending_awaitably(self, send: Callable[..., Any]) -> Callable[..., Any]:
        async def send_here(endpoint: Any, request: Any) -> Any:
            if request.url.startswith(_HERE):
                return respond_awaitably(request, self._switch.database(request.url[len(_HERE) :]))
            self._check(endpoint, request)
            return await send(endpoint, request)

        return send_here

    def _check(self, endpoint: Any, request: Any) -> None:
        service = endpoint._endpoint_prefix
        if not self._switch.lets_pass(service):
            raise UsageError(
                f"a request to the service {service!r} ({request.method} {request.url}) was about to "
                "leave the process inside mock_dynamodb, which answers DynamoDB only; mock that "
                'service too, or let it pass with mock_dynamodb(other_services="pass")'
            )
