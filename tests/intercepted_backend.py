"""`InterceptedBackend`: a test refuses, delays or loses requests of a backend, or lets others write first."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

Before = Callable[[str, Any], object]
After = Callable[[str, Any], object]

SINGLE_WRITES = frozenset(("PutItem", "UpdateItem", "DeleteItem"))
WRITES = SINGLE_WRITES | {"TransactWriteItems"}


class InterceptedBackend:
    """Passes requests on to a backend.

    `before` is called with each operation and its request, `after` once more when it has been executed; either may
    raise. Without `after`'s error the answer is the backend's own.
    """

    def __init__(
        self, backend: Any, before: Before | None = None, *, after: After | None = None
    ) -> None:
        self._backend = backend
        self._before = before
        self._after = after

    def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
        if self._before is not None:
            self._before(operation, request)
        answer = self._backend.execute(operation, request)
        if self._after is not None:
            self._after(operation, request)
        return answer


def refuse(error: Exception, when: Callable[[str, Any], bool]) -> Before:
    """Raise an error for some requests."""

    def step(operation: str, request: Any) -> None:
        if when(operation, request):
            raise error

    return step


def refuse_after(transactions: int, error: Exception) -> Before:
    """Let so many transactions through, and none afterwards."""
    left = transactions

    def is_over(operation: str, _: Any) -> bool:
        nonlocal left
        left -= operation == "TransactWriteItems"
        return left < 0

    return refuse(error, is_over)


def once(deed: Callable[[], object], operations: Collection[str]) -> Before:
    """Do something ahead of the first request of these operations."""
    deeds = [deed]

    def step(operation: str, _: Any) -> None:
        if operation in operations and deeds:
            deeds.pop()()

    return step
