"""A client shaped like boto3's low-level DynamoDB client, without botocore's cost.

It has the same methods, keyword arguments, response dicts, exceptions, paginators and waiters, and what
boto3 refuses before it sends anything is refused here in the same words. It does no I/O of its own: a
function takes the action's name and the request's JSON and returns the response's.

A call costs about two microseconds more than that function. Calls may be made from many threads at once
if the function allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from isotone.backends.actions import Actions, Response
from isotone.backends.failures import ClientExceptions, client_failure
from isotone.backends.pagination import PAGINATED, Paginator
from isotone.backends.parameters import encode_request
from isotone.backends.responses import decode_response, metadata
from isotone.backends.waiters import WAITERS, Waiter
from isotone.errors import ApiError

Execute = Callable[[str, bytes], bytes]

# The actions whose responses hold nothing but items, capacity and names: no times.
_TIMELESS: Final = frozenset(
    {
        "BatchExecuteStatement",
        "BatchGetItem",
        "BatchWriteItem",
        "DeleteItem",
        "ExecuteStatement",
        "ExecuteTransaction",
        "GetItem",
        "PutItem",
        "Query",
        "Scan",
        "TransactGetItems",
        "TransactWriteItems",
        "UpdateItem",
    }
)


class Meta(NamedTuple):
    """`client.meta`: where the client's database is."""

    region_name: str
    endpoint_url: str
    method_to_api_mapping: Mapping[str, str]


class Caller:
    """What every client has: a function that answers, and botocore's exceptions for its errors."""

    __slots__ = ("_execute", "exceptions", "meta")

    def __init__(self, execute: Execute, exceptions: ClientExceptions, meta: Meta) -> None:
        self._execute = execute
        self.exceptions = exceptions
        self.meta = meta

    def _call(self, operation: str, request: Mapping[str, Any]) -> Response:
        body = encode_request(operation, request)
        try:
            raw = self._execute(operation, body)
        except ApiError as error:
            answer = metadata(error.status, len(error.message))
            raise client_failure(error, operation, answer) from None
        return decode_response(raw, times=operation not in _TIMELESS)

    def close(self) -> None:
        """Do nothing: the database is closed by whoever opened it."""


class Client(Caller, Actions):
    """boto3's DynamoDB client over a function from request bytes to response bytes.

    >>> client = Client(lambda operation, body: b'{"TableNames":["music"]}')
    >>> client.list_tables(Limit=10)["TableNames"]
    ['music']
    """

    __slots__ = ()

    def __init__(
        self,
        execute: Execute,
        *,
        region_name: str = "us-east-1",
        endpoint_url: str | None = None,
    ) -> None:
        url = endpoint_url or f"https://dynamodb.{region_name}.amazonaws.com"
        super().__init__(execute, ClientExceptions(), Meta(region_name, url, _METHODS))

    def can_paginate(self, operation_name: str) -> bool:
        """Whether `get_paginator` knows the method."""
        return operation_name in PAGINATED

    def get_paginator(self, operation_name: str) -> Paginator:
        """A paginator for a method such as `"query"`; raises `UsageError` where there is none."""
        return Paginator(self, operation_name)

    @property
    def waiter_names(self) -> list[str]:
        """The names that `get_waiter` knows."""
        return sorted(WAITERS)

    def get_waiter(self, waiter_name: str) -> Waiter:
        """A waiter such as `"table_exists"`; raises `UsageError` where there is none."""
        return Waiter(self, waiter_name)


_METHODS: Final = {
    name: "".join(word.capitalize() for word in name.split("_"))
    for name in vars(Actions)
    if not name.startswith("_")
}
