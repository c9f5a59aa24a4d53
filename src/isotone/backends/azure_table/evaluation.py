"""Executes DynamoDB's requests in a scratch database in memory that contains only the items of the request.

Azure has neither expressions nor DynamoDB's rules. So the items of a request are read from Azure and put into a scratch
database, the request is executed there, and its changes are written to Azure. All rules, messages and expressions are
those of Isotone's own engine.

A scratch database serves one request at a time, and is emptied afterwards. Concurrent requests have one each; idle ones
are reused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from isotone.backends import embedded
from isotone.backends.azure_table.entities import EntityLayout
from isotone.backends.interface import Request, Response
from isotone.errors import ApiError
from isotone.values.types import Item

_BATCH: Final = 25  # items in a BatchWriteItem
_MOST_TABLES: Final = 100  # that a scratch database keeps


class StoredDefinition(NamedTuple):
    """A table: its CreateTable request, its name in Azure, its creation time, and its id."""

    request: dict[str, Any]
    azure_name: str
    created: float
    id: str

    @property
    def name(self) -> str:
        name: str = self.request["TableName"]
        return name

    @property
    def layout(self) -> EntityLayout:
        """How its items become entities."""
        return EntityLayout(self.name, self.key)

    @property
    def key(self) -> list[tuple[str, str]]:
        """The names and types of the key attributes, the partition key first."""
        types = {
            each["AttributeName"]: each["AttributeType"]
            for each in self.request["AttributeDefinitions"]
        }
        schema = sorted(self.request["KeySchema"], key=lambda each: each["KeyType"])
        return [(each["AttributeName"], types[each["AttributeName"]]) for each in schema]


class Stored(NamedTuple):
    """An item of a table."""

    table: StoredDefinition
    item: Item


class Outcome(NamedTuple):
    """The response to a request, and the watched items after it."""

    response: Response
    after: list[Item | None]


class Evaluator:
    """Executes requests on the items that are passed with them."""

    __slots__ = ("_idle",)

    def __init__(self) -> None:
        self._idle: list[_Scratch] = []

    def execute(
        self,
        operation: str,
        request: Request,
        tables: Iterable[StoredDefinition] = (),
        items: Iterable[Stored] = (),
        watched: Sequence[Stored] = (),
    ) -> Outcome:
        """The outcome of a request to tables that have these items and no others. Raises its `ApiError`.

        `watched` are keys of items that the request may change.
        """
        try:
            scratch = self._idle.pop()
        except IndexError:  # checked this way because another thread may take the last one
            scratch = _Scratch()
        outcome = scratch.execute(operation, request, tables, items, watched)
        # After an error that is not DynamoDB's, the scratch database is not reused.
        self._idle.append(scratch)
        if isinstance(outcome, ApiError):
            raise outcome
        return outcome

    def refuse(self, operation: str, request: Request) -> None:
        """Raise the error that a request to an account without tables has, if any."""
        with embedded.open() as database:
            database.execute(operation, request)


class _Scratch:
    """A database in memory with the tables that requests have named so far."""

    __slots__ = ("_database", "_tables")

    def __init__(self) -> None:
        self._database = embedded.open()
        self._tables: dict[str, StoredDefinition] = {}

    def execute(
        self,
        operation: str,
        request: Request,
        tables: Iterable[StoredDefinition],
        items: Iterable[Stored],
        watched: Sequence[Stored],
    ) -> Outcome | ApiError:
        self._define(list(tables))
        database = self._database
        with database.rolled_back():
            self._put(items)
            try:
                response = database.execute(operation, request)
            except ApiError as error:
                # Its items are still the stored JSON.
                error.members = msgspec.json.decode(msgspec.json.encode(error.members))
                return error
            after = [self._item(each) for each in watched]
        return Outcome(response, after)

    def _define(self, tables: list[StoredDefinition]) -> None:
        """Make sure that these tables exist. Others may exist, too; the request does not name them."""
        if len(self._tables) >= _MOST_TABLES:
            self._database.close()
            self._database = embedded.open()
            self._tables = {}
        for table in tables:
            known = self._tables.get(table.name)
            if known is not None and known.request != table.request:
                self._drop(table.name)
            if table.name not in self._tables:
                self._database.execute("CreateTable", table.request)
                self._tables[table.name] = table

    def _drop(self, name: str) -> None:
        del self._tables[name]
        self._database.execute(
            "UpdateTable", {"TableName": name, "DeletionProtectionEnabled": False}
        )
        self._database.execute("DeleteTable", {"TableName": name})

    def _put(self, items: Iterable[Stored]) -> None:
        waiting: list[Stored] = []
        for each in items:
            waiting.append(each)
            if len(waiting) == _BATCH:
                self._put_batch(waiting)
                waiting = []
        self._put_batch(waiting)

    def _put_batch(self, items: list[Stored]) -> None:
        if not items:
            return
        requests: dict[str, list[Any]] = {}
        for table, item in items:
            requests.setdefault(table.name, []).append({"PutRequest": {"Item": item}})
        self._database.execute("BatchWriteItem", {"RequestItems": requests})

    def _item(self, watched: Stored) -> Item | None:
        key = {name: watched.item[name] for name, _ in watched.table.key}
        request = {"TableName": watched.table.name, "Key": key}
        item: Item | None = self._database.execute("GetItem", request).get("Item")
        return item
