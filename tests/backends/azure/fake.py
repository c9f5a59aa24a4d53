"""Azure Table storage in a dict, as its documentation describes it: legal keys, sizes, ETags, transactions, pages.

It executes the steps of the actions, so that these are tested without a server; and it fails where a test wants it to.
`utf_8` is the order of keys: by UTF-8, or by UTF-16 as in Azurite. An action must not depend on which it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from isotone.backends.azure_table.actions import Actions
from isotone.backends.azure_table.entities import PARTITION, ROW, entity_size
from isotone.backends.azure_table.service import (
    Absent,
    Conflict,
    DropTable,
    FoundEntity,
    GetEntity,
    InsertEntity,
    ListEntities,
    MakeTable,
    Many,
    RemoveEntity,
    Replace,
    Sleep,
    TableExists,
    TableGone,
    WriteEntity,
    WriteTogether,
)
from isotone.backends.interface import Native

FORBIDDEN = re.compile("[\x00-\x1f/\\\\#?\x7f-\x9f]")
TERM = re.compile(r"(PartitionKey|RowKey) (eq|lt|le|gt|ge) '((?:[^']|'')*)'")
Table = dict[tuple[str, str], tuple[dict[str, Any], str]]


@dataclass
class FakeAzure(Native):
    """The `Backend` over a dict. `fault` sees each request first, and may raise."""

    utf_8: bool = True
    largest_page: int = 1000
    fault: Callable[[Any], None] = lambda request: None
    tables: dict[str, Table] = field(default_factory=dict)
    requests: list[Any] = field(default_factory=list)
    writes: int = 0

    def __post_init__(self) -> None:
        self.actions = Actions()

    def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
        steps = self.actions.answer(operation, request)
        answer, error = None, None
        while True:
            try:
                step = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                return end.value
            answer = error = None
            if isinstance(step, Many):
                answer = [self.attempt(each) for each in step.requests]
            elif not isinstance(step, Sleep):
                answer = self.attempt(step)
                if isinstance(answer, Exception):
                    answer, error = None, answer

    def attempt(self, request: Any) -> Any:
        self.requests.append(request)
        try:
            self.fault(request)
            return self.answer(request)
        except Exception as error:  # noqa: BLE001 - the answer of a host is the exception
            return error

    def answer(self, request: Any) -> Any:
        if isinstance(request, MakeTable):
            assert re.fullmatch("[A-Za-z][A-Za-z0-9]{2,62}", request.table)
            if request.table in self.tables:
                raise TableExists
            self.tables[request.table] = {}
            return None
        if isinstance(request, DropTable):
            self.tables.pop(request.table, None)
            return None
        if request.table not in self.tables:
            raise TableGone
        table = self.tables[request.table]
        if isinstance(request, GetEntity):
            if (request.partition, request.row) not in table:
                raise Absent
            return FoundEntity(*table[request.partition, request.row])
        if isinstance(request, ListEntities):
            return self.page(table, request)
        changes = request.changes if isinstance(request, WriteTogether) else [request.change]
        if isinstance(request, WriteTogether):
            keys = [key_of(each) for each in changes]
            assert len({partition for partition, _ in keys}) == 1
            assert len(set(keys)) == len(keys) <= 100
        after = dict(table)
        for change in changes:
            self.make(after, change, strictly=isinstance(request, WriteTogether))
        self.tables[request.table] = after
        return None

    def make(self, table: Table, change: Any, *, strictly: bool) -> None:
        key = key_of(change)
        assert not FORBIDDEN.search("".join(key))
        assert max(len(each.encode("utf-16-le")) for each in key) <= 1024
        stored = table.get(key)
        if isinstance(change, InsertEntity) and stored is not None:
            raise Conflict
        etag = getattr(change, "etag", None)
        if etag is not None and (stored is None or stored[1] != etag):
            raise Conflict if stored else Absent
        if isinstance(change, RemoveEntity):
            if strictly and stored is None:
                raise Absent
            table.pop(key, None)
            return
        assert isinstance(change, InsertEntity | Replace)
        assert len(change.entity) <= 254
        assert entity_size(change.entity) <= 1024 * 1024
        self.writes += 1
        table[key] = (change.entity, str(self.writes))

    def page(self, table: Table, request: ListEntities) -> tuple[list[FoundEntity], Any]:
        terms = TERM.findall(request.filter)
        assert " and ".join(TERM.sub("", request.filter).split(" and ")).strip(" and") == ""
        ordered = sorted(table, key=lambda key: tuple(map(self.sortable, key)))
        found = [
            key
            for key in ordered
            if (request.token is None or ordered.index(key) >= ordered.index(request.token))
            and all(self.matches(key, *term) for term in terms)
        ]
        size = min(request.top, self.largest_page)
        following = found[size] if len(found) > size else None
        return [FoundEntity(*table[key]) for key in found[:size]], following

    def matches(self, key: tuple[str, str], name: str, operator: str, text: str) -> bool:
        mine = self.sortable(key[0] if name == PARTITION else key[1])
        other = self.sortable(text.replace("''", "'"))
        return {
            "eq": mine == other,
            "lt": mine < other,
            "le": mine <= other,
            "gt": mine > other,
            "ge": mine >= other,
        }[operator]

    def sortable(self, key: str) -> bytes:
        return key.encode("utf-8" if self.utf_8 else "utf-16-be")


def key_of(change: Any) -> tuple[str, str]:
    if isinstance(change, RemoveEntity):
        return change.partition, change.row
    return change.entity[PARTITION], change.entity[ROW]


def requests_of(azure: FakeAzure, kind: type) -> list[Any]:
    return [each for each in azure.requests if isinstance(each, kind)]


__all__ = ["FakeAzure", "WriteEntity", "requests_of"]
