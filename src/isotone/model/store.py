"""The store: entities in and out of whatever answers the DynamoDB API.

    store = isotone.connect("shop.db")
    store.create_tables(shop)
    store.put(order)
    page = store.page(Order.by_status.where(Order.customer_id == "2b5a41c0"), size=25)

Every method runs the steps of one library call (`steps`) and waits for their end. `AsyncStore` is the
same with `await`. A store may be used from many threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Never, Self, TypeVar, Unpack

from isotone import limits
from isotone.backends.interface import Backend
from isotone.backends.opening import MEMORY, Target
from isotone.clock import Clock
from isotone.model import connecting
from isotone.model.calls import Calls
from isotone.model.connecting import StoreOptions
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.table import Table
from isotone.model.entity import Entity
from isotone.model.reading import scanning
from isotone.model.reading.collections import Family, FamilyQuery
from isotone.model.reading.queries import Read, Scan
from isotone.model.reading.reader import FetchProgress, Page, Reader
from isotone.model.reading.snapshot import Snapshot
from isotone.model.steps import Steps, run
from isotone.model.tables import tables as tabling
from isotone.model.tables.events import Event
from isotone.model.tables.tables import Difference, Throughput
from isotone.model.writing import batches, widening
from isotone.model.writing.stored import class_of
from isotone.model.writing.transacting import StoreTransaction

E = TypeVar("E", bound=Entity)
P = TypeVar("P", bound=Entity)
C = TypeVar("C", bound=Entity)
R = TypeVar("R")


def connect(target: Target = MEMORY, **options: Unpack[StoreOptions]) -> Store:
    """A store at an address: nothing is sent before it is used.

    `"shop.db"` is a file, `":memory:"` a database that goes with the store, `"http://localhost:8000"` a
    server, `"dynamodb://eu-west-1"` Amazon's; an `isotone.Database`, a boto3 client and any object with
    `execute(operation, request)` are used as they are. `StoreOptions` explains the options.

    >>> with connect() as store:
    ...     store.create_tables(Table("shop"))
    ['shop']

    Raises `UsageError` for what is no address, `NoCredentials` where Amazon's needs some.
    """
    backend, close = connecting.backend_of(target, options)
    clock = connecting.clock_of(target, options)
    return Store(backend, connecting.reader_of(options, clock), clock, close)


class Store:
    """Entities in and out of one backend; made by `connect`."""

    def __init__(
        self, backend: Backend, reader: Reader, clock: Clock, close: Callable[[], None]
    ) -> None:
        self.backend = backend
        self.clock = clock
        self.calls = Calls(reader, clock)
        self._close = close

    def run(self, steps: Steps[R]) -> R:
        """Run the steps of a library call that has no method here."""
        return run(steps, self.backend)

    # Tables

    def create_tables(self, *tables: Table, throughput: Throughput | None = None) -> list[str]:
        """Make the tables that are missing, with indexes and expiry; the names of those made.

        On demand unless `throughput` provisions units. Raises `TableDiffers` where a table is there and
        not as declared; it stays as it is.
        """
        return self.run(self.calls.create_tables(*tables, throughput=throughput))

    def differences(self, *tables: Table) -> list[Difference]:
        """Where tables are not as declared, each point in words; nothing is changed."""
        return self.run(self.calls.differences(*tables))

    def add_indexes(
        self,
        *tables: Table,
        throughput: Throughput | None = None,
        progress: tabling.Progress | None = None,
    ) -> list[str]:
        """Add the global indexes that tables lack, and wait until they are filled; their names."""
        return self.run(self.calls.add_indexes(*tables, throughput=throughput, progress=progress))

    def drop_tables(self, *tables: Table) -> list[str]:
        """Delete tables with all that they hold; the names of those that were there."""
        return self.run(self.calls.drop_tables(*tables))

    # Writing

    def put(self, entity: E, *, when: Condition | None = None) -> E:
        """Write an entity over whatever has its primary key. Cost: one write.

        Raises `ConditionFailed`, `VersionConflict`, `NotUnique`.
        """
        return self.run(self.calls.put(entity, when=when))

    def create(self, entity: E) -> E:
        """Write an entity that is not there yet; raises `AlreadyExists`. Cost: one write."""
        return self.run(self.calls.create(entity))

    def replace(self, entity: E, *, when: Condition | None = None) -> E:
        """Write over an entity that is there; raises `NotFound` where it is not. Cost: one write."""
        return self.run(self.calls.replace(entity, when=when))

    def update(
        self, target: type[E] | E, /, *changes: Change, when: Condition | None = None, **key: Any
    ) -> E:
        """Change some fields of an entity, found by its key's fields or itself, and give it as it is then.

        Cost: one write, and one read where an index key depends on a value that is not known. Raises
        `NotFound`, `ConditionFailed`, `VersionConflict`, `NotUnique`.

            store.update(Order, Order.total.add(1), customer_id="2b5a41c0", number=157)
        """
        return self.run(self.calls.update(target, *changes, when=when, **key))

    def upsert(
        self, entity: type[E], /, *changes: Change, when: Condition | None = None, **key: Any
    ) -> E:
        """Change some fields of an entity, which begins with its defaults where there is none.

        Cost: one write, and one read where something that is not known decides. Raises what `update` does,
        but `NotFound`.

            store.upsert(Counter, Counter.hits.add(1), page="/")
        """
        return self.run(self.calls.upsert(entity, *changes, when=when, **key))

    def delete(
        self, target: type[E] | E, /, *, when: Condition | None = None, **key: Any
    ) -> E | None:
        """Delete an entity, by its key's fields or itself; as it was, None where there was none.

        Cost: one write. Raises `ConditionFailed`, `VersionConflict`.
        """
        return self.run(self.calls.delete(target, when=when, **key))

    def move(
        self, target: type[E] | E, /, *changes: Change, when: Condition | None = None, **key: Any
    ) -> E:
        """Change fields of the primary key, and any others, in one transaction; the entity as it is then.

        Cost: one read, and a transaction of two writes. Raises `NotFound`, `AlreadyExists` where the new
        key is taken, and what an update does.
        """
        return self.run(self.calls.move(target, *changes, when=when, **key))

    def put_many(
        self, entities: Iterable[Entity], *, progress: batches.WriteProgress | None = None
    ) -> int:
        """Put entities of any kinds, 25 to a request; their number. Cost: one write each.

        An entity that comes twice is written as it comes last. Raises `UsageError` for entities with a
        version or unique values, which take conditions, and `BatchIncomplete` with what the service kept
        refusing.
        """
        return self.run(self.calls.put_many(entities, progress=progress))

    def delete_many(
        self,
        targets: type[Entity] | Iterable[Entity],
        keys: Iterable[Mapping[str, Any]] = (),
        *,
        progress: batches.WriteProgress | None = None,
    ) -> int:
        """Delete entities, or a class and the keys' fields; how many were asked for. Cost: one write each.

        Raises as `put_many` does.
        """
        return self.run(self.calls.delete_many(targets, keys, progress=progress))

    def transaction(self) -> StoreTransaction:
        """Writes to several entities that are made together at the end of the block, or not at all.

        Cost: twice that of the writes by themselves. Raises `TransactionFailed` at the end of the block.
        """
        return StoreTransaction(self.clock, self.run)

    def widen(
        self, entity: type[Entity], *, progress: widening.WideningProgress | None = None
    ) -> widening.Widened:
        """Rewrite all entities of a kind whose keys still have the width that `field(was=…)` declares.

        Goes on where it was stopped. Cost: a scan of the table, and a transaction for each that is
        rewritten.
        """
        return self.run(self.calls.widen(entity, progress=progress))

    # Reading

    def get(
        self, entity: type[E], /, *values: Never, consistent: bool = False, **key: Any
    ) -> E | None:
        """The entity with this primary key, or None. Cost: one read of its size.

        >>> store.get(Order, customer_id="2b5a41c0", number=157)  # doctest: +SKIP
        """
        if values or not isinstance(entity, type):
            class_of("get", entity, values)
        return self.run(self.calls.get(entity, consistent=consistent, **key))

    def get_many(
        self,
        entity: type[E],
        keys: Iterable[Mapping[str, Any]],
        *,
        consistent: bool = False,
        progress: FetchProgress | None = None,
    ) -> list[E | None]:
        """The entities with these primary keys, in their order; None for each that is not there.

        A hundred to a request; what the service leaves out is asked for again after a pause.
        """
        return self.run(self.calls.get_many(entity, keys, consistent=consistent, progress=progress))

    def get_together(self, *targets: tuple[type[Entity], Mapping[str, Any]]) -> list[Entity | None]:
        """Up to a hundred entities of any kinds as they are at one moment; None for each that is not there.

        Cost: twice that of consistent reads.
        """
        return self.run(self.calls.get_together(*targets))

    def page(self, read: Read[E], *, size: int, cursor: str | None = None) -> Page[E]:
        """So many results, and the cursors of the pages after and before."""
        return self.run(self.calls.page(read, size=size, cursor=cursor))

    def iterate(self, read: Read[E]) -> Iterator[E]:
        """All results one after the other, read as they are asked for."""
        traversal = self.calls.traverse(read)
        while not traversal.is_over:
            yield from self.run(traversal.step())

    def all(self, read: Read[E], *, at_most: int | None = None) -> list[E]:
        """All results; raises `TooMany` where there are more than `at_most`."""
        return self.run(self.calls.all(read, at_most=at_most))

    def first(self, read: Read[E]) -> E | None:
        """The first result, or None."""
        return self.run(self.calls.first(read))

    def count(self, read: Read[E]) -> int:
        """How many results there are; costs as much as reading them."""
        return self.run(self.calls.count(read))

    def family(self, query: FamilyQuery[P, C], *, children: int | None = None) -> Family[P, C]:
        """A parent and the children nearest to it, at most so many, in one read."""
        return self.run(self.calls.family(query, children=children))

    def load(self, read: Read[E], *, at_most: int = limits.MB) -> Snapshot[E]:
        """A small collection as a whole, to be filtered and sorted in memory.

        Raises `TooLarge` with its size where that is more than `at_most` bytes.
        """
        return self.run(self.calls.load(read, at_most=at_most))

    def scan(
        self, read: Scan[E], *, segments: int = 4, progress: scanning.Progress | None = None
    ) -> Iterator[E]:
        """Everything of a scan, by several threads at once, in no order.

        `progress` is told what was spent so far, after each request.

            for order in store.scan(Order.primary.scan(), segments=8): ...
        """
        return scanning.together(self.calls.segments(read, segments), self.backend, progress)

    def changes(self, table: Table, *, since: datetime | None = None) -> Iterator[Event[Entity]]:
        """What changed in a table, as far as its stream goes back (a day), up to now.

        Changes of entities with one partition key come in order. `since` leaves out what is older. Needs
        `Table(…, stream=…)`. To go on with what comes, and for work that must not be lost, see
        `isotone.structures.Worker`.
        """
        reading = self.calls.changes(table, since=since)
        while not reading.is_over:
            yield from self.run(reading.step())

    # The end

    def close(self) -> None:
        """Close what `connect` opened: the file, the connections, the tape. Closing twice is harmless."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
