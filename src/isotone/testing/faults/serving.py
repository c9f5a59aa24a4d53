"""`isotone serve --faults`: programs in any language order faults as JSON at the path `/faults`.

    GET     the ordered faults, each with its count
    POST    order one, {"fault": "throttle", "table": "orders", "writes": 5}, or several, in a list
    DELETE  end all faults

Each request is answered with the list of faults.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from isotone.errors import SerializationException, UsageError, ValidationException
from isotone.values.request_body import parsed_body

if TYPE_CHECKING:
    from isotone.testing.faults.plan import Faults
    from isotone.testing.faults.rules import Rule

_PATH: Final = " /faults"
_NOT_AN_ORDER: Final = (
    'the body is not a JSON object; send {"fault": "throttle", "writes": 5}, or a list of these'
)
Order = dict[str, Any]


class FaultyService:
    """A database for a server, with faults on it until it is closed: serve it with `threaded=True`."""

    def __init__(self, faults: Faults, database: Any) -> None:
        self._faults = faults
        self._database = database
        self._struck: AbstractContextManager[None] = faults.on(database)
        self._struck.__enter__()

    def send(self, operation: str, body: bytes, region: str = "") -> bytes:
        if operation.endswith(_PATH):
            return self._control(operation.removesuffix(_PATH), body)
        database = self._database.in_region(region)
        is_home = database is self._database  # the same faults strike other regions
        with contextlib.nullcontext() if is_home else self._faults.on(database):
            answer: bytes = database.send(operation, body)
        return answer

    def send_many(self, requests: Sequence[tuple[str, bytes]], region: str = "") -> list[bytes]:
        return [self.send(*request, region) for request in requests]

    def health(self) -> str:
        reason: str = self._database.health()
        return reason

    def gauges(self) -> dict[str, float]:
        measured: dict[str, float] = self._database.gauges()
        return measured

    def measure(self) -> None:
        self._database.measure()

    def series(self) -> list[Any]:
        found: list[Any] = self._database.series()
        return found

    def served(self, others: Sequence[bytes] = ()) -> bytes:
        found: bytes = self._database.served(others)
        return found

    def allow_waiting(self, allowed: bool) -> None:
        self._database.allow_waiting(allowed)

    def is_grouped(self, operation: str, body: bytes) -> bool:
        return False

    def is_long(self, operation: str, body: bytes) -> bool:
        return False

    @property
    def account(self) -> str:
        """The account of the database."""
        return str(self._database.account)

    def has_policies(self, operation: str, region: str = "") -> bool:
        """Whether the policy of a table or a stream may forbid a request."""
        return bool(self._database.has_policies(operation, region))

    def accesses(self, operation: str, body: bytes, region: str = "") -> Any:
        """The permissions that a request needs."""
        return self._database.accesses(operation, body, region)

    def start_maintenance(self) -> None:
        self._database.start_maintenance()

    def close(self) -> None:
        self._struck.__exit__(None, None, None)
        self._database.close()

    def _control(self, method: str, body: bytes) -> bytes:
        if method == "DELETE":
            self._faults.clear()
        elif method == "POST":
            self._order(body)
        elif method != "GET":
            raise ValidationException(f"{method} is not GET, POST or DELETE")
        faults = [{**rule.order, "count": rule.count} for rule in self._faults.ordered]
        return msgspec.json.encode({"Faults": faults})

    def _order(self, body: bytes) -> None:
        """Order all faults of a request, or none if one is wrong."""
        ordered: list[Rule] = []
        try:
            wanted = parsed_body(body, Order | list[Order])
            orders = wanted if isinstance(wanted, list) else [wanted]
            ordered.extend(self._faults.order(each.pop("fault", ""), **each) for each in orders)
        except (SerializationException, UsageError) as error:
            for rule in ordered:
                rule.stop()
            problem = str(error) if isinstance(error, UsageError) else _NOT_AN_ORDER
            raise ValidationException(problem) from None
