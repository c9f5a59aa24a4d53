"""Waiters: repeat DescribeTable until a table is ready, or deleted.

botocore's waiters sleep 20 seconds between attempts. A database in the process is ready much sooner:
unless `WaiterConfig` has a `Delay`, the first sleep is a hundredth of a second and each further one twice
as long, up to botocore's 20 seconds. The number of attempts is botocore's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from isotone.client.exceptions import ClientError, waiter_error

_ATTEMPTS: Final = 25
_FIRST_DELAY: Final = 0.01
_LONGEST_DELAY: Final = 20.0
_NOT_FOUND: Final = "ResourceNotFoundException"


class Wait(NamedTuple):
    """What ends the wait."""

    name: str
    status: str | None  # the table status that ends the wait
    missing: bool  # whether a missing table ends it


WAITERS: Final[Mapping[str, Wait]] = {
    "table_exists": Wait("TableExists", status="ACTIVE", missing=False),
    "table_not_exists": Wait("TableNotExists", status=None, missing=True),
}


class Waiter:
    """`client.get_waiter(name)`."""

    def __init__(self, client: Any, awaited: Wait) -> None:
        self._client = client
        self._awaited = awaited
        self.name = awaited.name

    def wait(self, *, WaiterConfig: Mapping[str, Any] | None = None, **request: Any) -> None:
        """Return when the table has the status; raises `WaiterError` after the last attempt."""
        config = WaiterConfig or {}
        attempts = config.get("MaxAttempts", _ATTEMPTS)
        delay = config.get("Delay")
        for attempt in range(1, attempts + 1):
            done, response = self._poll(request)
            if done:
                return
            if attempt < attempts:
                backoff = min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** (attempt - 1))
                time.sleep(backoff if delay is None else delay)
        raise waiter_error(self.name, "Max attempts exceeded", response)

    def _poll(self, request: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
        try:
            response = self._client.describe_table(**request)
        except ClientError as error:
            if error.code != _NOT_FOUND:
                reason = f"An error occurred ({error.code}): {error.message}"
                raise waiter_error(self.name, reason, error.response) from error
            return self._awaited.missing, error.response
        return response["Table"]["TableStatus"] == self._awaited.status, response
