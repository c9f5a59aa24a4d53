"""What calls cost: requests, and items read and written, counted between a store and its backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Cost(NamedTuple):
    """What was asked of a backend."""

    read: int
    written: int
    requests: int


@dataclass
class Measured:
    """A backend that counts what goes through it."""

    backend: Any
    read: int = 0
    written: int = 0
    requests: int = 0

    def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
        answer = self.backend.execute(operation, request)
        self.requests += 1
        if operation in ("PutItem", "UpdateItem", "DeleteItem"):
            self.written += 1
        elif operation == "TransactWriteItems":
            self.written += len(request["TransactItems"])
        elif operation == "BatchWriteItem":
            self.written += sum(map(len, request["RequestItems"].values()))
        else:
            self.read += _read(operation, request, answer)
        return answer

    def take(self) -> Cost:
        """The cost since it was taken last."""
        cost = Cost(self.read, self.written, self.requests)
        self.read = self.written = self.requests = 0
        return cost


def _read(operation: str, request: Any, answer: Any) -> int:
    if operation == "GetItem":
        return 1
    if operation == "BatchGetItem":
        return sum(len(each["Keys"]) for each in request["RequestItems"].values())
    if operation == "TransactGetItems":
        return len(request["TransactItems"])
    return int(answer.get("ScannedCount", 0))
