"""Every call of a store as steps that do no I/O: the one implementation under `Store` and `AsyncStore`.

What is built upon entities (`isotone.structures`) composes these, and so waits or is awaited as its store
does:

    def rename(calls: Calls, song: str, title: str) -> Steps[Song]:
        found = yield from calls.get(Song, id=song)
        ...
        return (yield from calls.update(Song, Song.title.set(title), id=song))

`store.run(rename(store.calls, …))` runs them. What each call does and costs is told by the method of
`Store` that has its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from isotone import limits
from isotone.clock import Clock
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.table import Table
from isotone.model.entity import Entity
from isotone.model.reading.collections import Family, FamilyQuery
from isotone.model.reading.queries import Query, Read, Scan
from isotone.model.reading.reader import FetchProgress, Page, Reader, Traversal
from isotone.model.reading.snapshot import Snapshot
from isotone.model.steps import Steps
from isotone.model.tables import streaming
from isotone.model.tables import tables as tabling
from isotone.model.tables.tables import Difference, Throughput
from isotone.model.writing import batches, moving, saving, updating, upserting, widening
from isotone.model.writing.transactions import Transaction, get_together

E = TypeVar("E", bound=Entity)
P = TypeVar("P", bound=Entity)
C = TypeVar("C", bound=Entity)


class Calls:
    """What a store can be asked for, as steps; `store.calls` has that of a store."""

    __slots__ = ("_reader", "clock")

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader = reader
        self.clock = clock

    # Tables

    def create_tables(
        self, *tables: Table, throughput: Throughput | None = None
    ) -> Steps[list[str]]:
        return tabling.create_tables(tables, throughput)

    def differences(self, *tables: Table) -> Steps[list[Difference]]:
        return tabling.differences(tables)

    def add_indexes(
        self,
        *tables: Table,
        throughput: Throughput | None = None,
        progress: tabling.Progress | None = None,
    ) -> Steps[list[str]]:
        return tabling.add_indexes(tables, throughput, progress)

    def drop_tables(self, *tables: Table) -> Steps[list[str]]:
        return tabling.drop_tables(tables)

    # Writing

    def put(self, entity: E, *, when: Condition | None = None) -> Steps[E]:
        return saving.put(entity, self.clock, when)

    def create(self, entity: E) -> Steps[E]:
        return saving.create(entity, self.clock)

    def replace(self, entity: E, *, when: Condition | None = None) -> Steps[E]:
        return saving.replace(entity, self.clock, when)

    def update(
        self, target: type[E] | E, /, *changes: Change, when: Condition | None = None, **key: Any
    ) -> Steps[E]:
        return updating.update(target, changes, key, self.clock, when)

    def upsert(
        self, entity: type[E], /, *changes: Change, when: Condition | None = None, **key: Any
    ) -> Steps[E]:
        return upserting.upsert(entity, changes, key, self.clock, when)

    def delete(
        self, target: type[E] | E, /, *, when: Condition | None = None, **key: Any
    ) -> Steps[E | None]:
        return saving.delete(target, key, self.clock, when)

    def move(
        self, target: type[E] | E, /, *changes: Change, when: Condition | None = None, **key: Any
    ) -> Steps[E]:
        return moving.move(target, changes, key, self.clock, when)

    def put_many(
        self, entities: Iterable[Entity], *, progress: batches.WriteProgress | None = None
    ) -> Steps[int]:
        return batches.put_many(entities, self.clock, progress)

    def delete_many(
        self,
        targets: type[Entity] | Iterable[Entity],
        keys: Iterable[Mapping[str, Any]] = (),
        *,
        progress: batches.WriteProgress | None = None,
    ) -> Steps[int]:
        return batches.delete_many(targets, keys, progress)

    def transaction(self) -> Transaction:
        """Collects writes; the steps of its `commit()` make them together, or none."""
        return Transaction(self.clock)

    def widen(
        self, entity: type[Entity], *, progress: widening.WideningProgress | None = None
    ) -> Steps[widening.Widened]:
        return widening.widen(entity, self.clock, progress)

    # Reading

    def get(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> Steps[E | None]:
        return self._reader.get(entity, key, consistent=consistent)

    def get_many(
        self,
        entity: type[E],
        keys: Iterable[Mapping[str, Any]],
        *,
        consistent: bool = False,
        progress: FetchProgress | None = None,
    ) -> Steps[list[E | None]]:
        return self._reader.get_many(entity, keys, consistent=consistent, progress=progress)

    def get_together(
        self, *targets: tuple[type[Entity], Mapping[str, Any]]
    ) -> Steps[list[Entity | None]]:
        return get_together(targets, self.clock)

    def page(self, read: Read[E], *, size: int, cursor: str | None = None) -> Steps[Page[E]]:
        return self._reader.page(read, size=size, cursor=cursor)

    def cursor_behind(self, query: Query[Any], /, **values: Any) -> str:
        """The cursor of the page that follows a place in a query, whether or not something is there.

        `values` are the fields of the entity's primary key and of the key that is asked. So pages of
        several queries can be merged, and gone on with behind what was taken of each.
        """
        return self._reader.cursor_behind(query, values)

    def seal(self, state: Any, /, **of: Any) -> str:
        """Where a read of several queries ended, as JSON, in a cursor that is signed like the store's.

        It opens for the same `of` alone: what identifies the read.
        """
        return self._reader.signer.seal(state, of)

    def unseal(self, cursor: str, /, **of: Any) -> Any:
        """What was sealed; raises `InvalidCursor`."""
        return self._reader.signer.unseal(cursor, of)

    def traverse(self, read: Read[E]) -> Traversal[E]:
        """All results, some with each `step()`: what `iterate` goes through."""
        return self._reader.traverse(read)

    def all(self, read: Read[E], *, at_most: int | None = None) -> Steps[list[E]]:
        return self._reader.all(read, at_most=at_most)

    def first(self, read: Read[E]) -> Steps[E | None]:
        return self._reader.first(read)

    def count(self, read: Read[E]) -> Steps[int]:
        return self._reader.count(read)

    def family(
        self, query: FamilyQuery[P, C], *, children: int | None = None
    ) -> Steps[Family[P, C]]:
        return self._reader.family(query, children=children)

    def load(self, read: Read[E], *, at_most: int = limits.MB) -> Steps[Snapshot[E]]:
        return self._reader.load(read, at_most=at_most)

    def changes(self, table: Table, *, since: datetime | None = None) -> streaming.Changes:
        """What a table's stream holds, some with each `step()`: what `store.changes` goes through."""
        return streaming.Changes(table, since)

    def segments(self, read: Scan[E], number: int) -> list[Traversal[E]]:
        """The parts of a scan that can be read at the same time."""
        return self._reader.segments(read, number)
