"""Waiters: repeat DescribeTable until a table is ready or deleted, DescribeExport until an export has ended, and so on.

botocore's waiters sleep 20 seconds between attempts. A database in the process is ready much sooner:
unless `WaiterConfig` has a `Delay`, the first sleep is a hundredth of a second and each further one twice
as long, up to botocore's 20 seconds. The number of attempts is botocore's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from isotone.client.exceptions import ClientError, waiter_error

_FIRST_DELAY: Final = 0.01
_LONGEST_DELAY: Final = 20.0
_NOT_FOUND: Final = "ResourceNotFoundException"


class WaiterRule(NamedTuple):
    """What is described, and which statuses end the wait; with `missing`, the absence of the resource ends it."""

    name: str
    method: str
    status: tuple[str, str]
    success: tuple[str, ...]
    failure: tuple[str, ...] = ()
    missing: bool = False
    attempts: int = 25


_TABLE: Final = ("Table", "TableStatus")
WAITERS: Final[Mapping[str, WaiterRule]] = {
    "bulk_operation_completed": WaiterRule(
        "BulkOperationCompleted",
        "describe_bulk_operation",
        ("BulkOperationDescription", "BulkOperationStatus"),
        ("COMPLETED", "COMPLETED_WITH_ERRORS"),
        ("CANCELLED", "FAILED"),
        attempts=180,
    ),
    "export_completed": WaiterRule(
        "ExportCompleted",
        "describe_export",
        ("ExportDescription", "ExportStatus"),
        ("COMPLETED",),
        ("FAILED",),
        attempts=60,
    ),
    "import_completed": WaiterRule(
        "ImportCompleted",
        "describe_import",
        ("ImportTableDescription", "ImportStatus"),
        ("COMPLETED",),
        ("FAILED", "CANCELLED"),
        attempts=60,
    ),
    "table_exists": WaiterRule("TableExists", "describe_table", _TABLE, ("ACTIVE",)),
    "table_not_exists": WaiterRule("TableNotExists", "describe_table", _TABLE, (), missing=True),
}


class Waiter:
    """`client.get_waiter(name)`."""

    def __init__(self, client: Any, awaited: WaiterRule) -> None:
        self._client = client
        self._awaited = awaited
        self.name: str = awaited.name

    def wait(self, *, WaiterConfig: Mapping[str, Any] | None = None, **request: Any) -> None:
        """Return when the table has the status; raises `WaiterError` after the last attempt."""
        config = WaiterConfig or {}
        attempts = config.get("MaxAttempts", self._awaited.attempts)
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
        awaited = self._awaited
        try:
            response = getattr(self._client, awaited.method)(**request)
        except ClientError as error:
            if error.code != _NOT_FOUND or awaited.status != _TABLE:
                reason = f"An error occurred ({error.code}): {error.message}"
                raise waiter_error(self.name, reason, error.response) from error
            return awaited.missing, error.response
        outer, inner = awaited.status
        status = response[outer][inner]
        if status in awaited.failure:
            reason = f'Waiter encountered a terminal failure state: {outer}.{inner} is "{status}"'
            raise waiter_error(self.name, reason, response)
        return status in awaited.success, response
