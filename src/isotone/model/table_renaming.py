"""`table_prefix` and `table_names`: gives tables other names than declared, in requests and responses.

A program uses the declared table names. If a deployment uses other names, the store's backend replaces them: in
requests on the way out, and in responses on the way back. Nothing above it notices. The database, tapes and observers
see the deployment's names; errors mention them in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Final

from isotone.backends.interface import (
    AsyncBackend,
    Backend,
    Native,
    Request,
    Response,
    async_json_reads,
    json_reads,
)
from isotone.errors import IsotoneError, UsageError
from isotone.model.declaring.table import check_name

Naming = Mapping[str, str] | Callable[[str], str]
"""Maps declared names to actual names; a dict or a function."""

_KEYED: Final = ("Responses", "UnprocessedKeys", "UnprocessedItems", "ItemCollectionMetrics")
"""Members of batch responses that have an entry for each table."""
_DESCRIBED: Final = ("Table", "TableDescription", "StreamDescription")


class TableNames:
    """Translates between declared table names and a deployment's names."""

    def __init__(self, prefix: str = "", names: Naming | None = None) -> None:
        if callable(names) and prefix:
            raise UsageError(
                "table_names is a function, so it decides on the whole name; leave table_prefix out"
            )
        self._prefix = prefix
        self._names: Naming = {} if names is None else names
        self._actual: dict[str, str] = {}
        self._declared: dict[str, str] = {}
        self._lock = Lock()

    def actual(self, declared: str) -> str:
        """The actual name of a declared table; raises `UsageError` if it is invalid, or taken by another table."""
        found = self._actual.get(declared)
        return self._chosen(declared) if found is None else found

    def declared(self, actual: str) -> str:
        """The declared name of a table that has been used; any other name unchanged."""
        return self._declared.get(actual, actual)

    def _chosen(self, declared: str) -> str:
        names = self._names
        if callable(names):
            found = names(declared)
        elif declared in names:
            found = names[declared]
        else:  # an ARN is used unchanged
            found = declared if declared.startswith("arn:") else self._prefix + declared
        if not isinstance(found, str):
            raise UsageError(f"table_names gives {found!r} for table {declared!r}; give a string")
        check_name(f"table {declared!r}", found)
        with self._lock:
            other = self._declared.setdefault(found, declared)
            if other != declared:
                raise UsageError(
                    f"tables {other!r} and {declared!r} would both be {found!r}; give them different names"
                )
            self._actual[declared] = found
        return found

    def explain(self, error: IsotoneError) -> None:
        """Add a note with the actual names of the tables that an error's message mentions."""
        text = str(error)
        for declared, actual in tuple(self._actual.items()):
            note = f"table {declared!r} is {actual!r} in this store"
            known = getattr(error, "__notes__", ())
            if declared != actual and repr(declared) in text and note not in known:
                error.add_note(note)

    # Requests and responses

    def request(self, request: Request) -> Request:
        """The request, with actual names."""
        if "TableName" in request:
            return {**request, "TableName": self.actual(request["TableName"])}
        if "RequestItems" in request:
            items = request["RequestItems"]
            return {
                **request,
                "RequestItems": {self.actual(name): each for name, each in items.items()},
            }
        if "TransactItems" in request:
            entries = [
                {kind: self.request(members) for kind, members in entry.items()}
                for entry in request["TransactItems"]
            ]
            return {**request, "TransactItems": entries}
        return request

    def response(self, response: Response) -> Response:
        """The response, with declared names."""
        changed: Response = {}
        for member in _KEYED:
            if isinstance(by_table := response.get(member), dict):
                changed[member] = {self.declared(name): each for name, each in by_table.items()}
        for member in _DESCRIBED:
            if member in response:
                changed[member] = self._described(response[member])
        if consumed := response.get("ConsumedCapacity"):
            changed["ConsumedCapacity"] = (
                [self._described(each) for each in consumed]
                if isinstance(consumed, list)
                else self._described(consumed)
            )
        return {**response, **changed} if changed else response

    def _described(self, members: dict[str, Any]) -> dict[str, Any]:
        if "TableName" not in members:
            return members
        return {**members, "TableName": self.declared(members["TableName"])}


class Renamed(Native):
    """A `Backend` whose tables have other names than declared."""

    __slots__ = ("_backend", "_names", "_read_json")

    def __init__(self, backend: Backend, names: TableNames) -> None:
        self._backend = backend
        self._read_json = json_reads(backend)
        self._names = names

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Execute one action under the actual names."""
        names = self._names
        return names.response(self._backend.execute(operation, names.request(request), deadline))

    def read_json(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Query or scan under the actual names; the items may be in JSON."""
        names = self._names
        return names.response(self._read_json(operation, names.request(request), deadline))


class AsyncRenamed(Native):
    """An `AsyncBackend` whose tables have other names than declared."""

    __slots__ = ("_backend", "_names", "_read_json")

    def __init__(self, backend: AsyncBackend, names: TableNames) -> None:
        self._backend = backend
        self._read_json = async_json_reads(backend)
        self._names = names

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Execute one action under the actual names."""
        names = self._names
        response = await self._backend.execute(operation, names.request(request), deadline)
        return names.response(response)

    async def read_json(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Query or scan under the actual names; the items may be in JSON."""
        names = self._names
        return names.response(await self._read_json(operation, names.request(request), deadline))
