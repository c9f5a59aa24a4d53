"""Waiters: DescribeTable repeated until a table is ready, or gone.

botocore's waiters sleep 20 seconds between attempts. A database in the process is ready much sooner, so
unless `WaiterConfig` has a `Delay` the first sleep is a hundredth of a second and each further one twice
the last, up to botocore's 20. The number of attempts is botocore's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from isotone.backends.failures import ClientFailure, waiter_error
from isotone.backends.pagination import Calls
from isotone.errors import UsageError

_ATTEMPTS: Final = 25
_FIRST_DELAY: Final = 0.01
_LONGEST_DELAY: Final = 20.0
_NOT_FOUND: Final = "ResourceNotFoundException"


class Waiting(NamedTuple):
    """What a waiter waits for."""

    name: str
    status: str | None  # the table status that ends the wait
    missing: bool  # whether a missing table ends it


WAITERS: Final[Mapping[str, Waiting]] = {
    "table_exists": Waiting("TableExists", status="ACTIVE", missing=False),
    "table_not_exists": Waiting("TableNotExists", status=None, missing=True),
}


class Waiter:
    """`client.get_waiter(name)`."""

    def __init__(self, client: Calls, waiter_name: str) -> None:
        if waiter_name not in WAITERS:
            raise UsageError(f"Waiter does not exist: {waiter_name}")
        self._client = client
        self._waiting = WAITERS[waiter_name]
        self.name = self._waiting.name

    def wait(self, *, WaiterConfig: Mapping[str, Any] | None = None, **request: Any) -> None:
        """Return when the table is as awaited; raises `WaiterError` after the last attempt."""
        config = WaiterConfig or {}
        attempts = config.get("MaxAttempts", _ATTEMPTS)
        delay = config.get("Delay")
        for attempt in range(1, attempts + 1):
            done, response = self._ask(request)
            if done:
                return
            if attempt < attempts:
                backoff = min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** (attempt - 1))
                time.sleep(backoff if delay is None else delay)
        raise waiter_error(self.name, "Max attempts exceeded", response)

    def _ask(self, request: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
        try:
            response = self._client.describe_table(**request)
        except ClientFailure as failure:
            if failure.code != _NOT_FOUND:
                reason = f"An error occurred ({failure.code}): {failure.message}"
                raise waiter_error(self.name, reason, failure.response) from failure
            return self._waiting.missing, failure.response
        return response["Table"]["TableStatus"] == self._waiting.status, response
