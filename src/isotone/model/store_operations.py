"""The methods of a store with their documentation: `put`, `get`, `update`, `page` …; other modules execute them.

Each operation is defined once, as steps without I/O (see `operation`). The decorator turns it into a method that blocks
in a `Store`, is awaited in an `AsyncStore`, and returns its steps in `Calls`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from os import PathLike
from typing import Any, Final, Literal, Never, SupportsFloat, TypeVar, overload

from isotone import limits
from isotone.backends.capabilities import Capabilities
from isotone.backends.engines import EngineIdentity
from isotone.backends.interface import Request
from isotone.clock import Clock
from isotone.errors import NotFound, UsageError
from isotone.model import bulk, migration, rewriting, table_admin, undo_log, verification
from isotone.model.bulk import BulkProgress, BulkReport
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.table import Table
from isotone.model.engine_needs import require_for_entity
from isotone.model.entity import Entity
from isotone.model.migration import migrate_and_execute, migrate_keys
from isotone.model.operation import Host, M_co, iteration, operation
from isotone.model.reading import merging, projected_gets
from isotone.model.reading.families import Family, FamilyQuery
from isotone.model.reading.merging import Merge, MergeTraversal
from isotone.model.reading.nearest import Neighbor, VectorPattern, VectorSearch, nearest
from isotone.model.reading.projections import Projection
from isotone.model.reading.queries import Read
from isotone.model.reading.reader import Page, Reader, Traversal
from isotone.model.reading.snapshot import Snapshot
from isotone.model.returning import Requests, ReturningNothing, ReturningOld
from isotone.model.rewriting import RewriteOptions, RewritingProgress, Rewritten
from isotone.model.streams import Changes, Event
from isotone.model.table_admin import Difference, Throughput
from isotone.model.table_renaming import TableNames
from isotone.model.transactions import Transaction, get_together
from isotone.model.undo_log import Undone, UndoProgress
from isotone.model.verification import Verification, VerificationProgress
from isotone.model.writing.batches import WriteProgress, delete_many, put_many
from isotone.model.writing.executor import execute, request_of
from isotone.model.writing.item_rewrite import ChangeItem
from isotone.model.writing.moves import Move
from isotone.model.writing.put_and_delete import Delete, Put
from isotone.model.writing.updates import Touch, Update
from isotone.model.writing.upserts import Upsert
from isotone.model.writing.write import (
    Write,
    class_and_key,
    described,
    schema_of,
    schema_of_instance,
)
from isotone.shown_signature import show_signatures
from isotone.tables.batch_reads import FetchProgress
from isotone.tables.steps import Batches, Steps

E = TypeVar("E", bound=Entity)
P = TypeVar("P", bound=Entity)
C = TypeVar("C", bound=Entity)
R = TypeVar("R")
T = TypeVar("T", bound=Entity | Projection[Any])


_SEARCH_ELSEWHERE: Final = "keep the vectors in a database that searches them"
_ONE_BY_ONE: Final = (
    "write the entities one by one, with conditions where they depend on each other"
)


@show_signatures
class Operations(Host[M_co]):
    """The operations of every store, each defined once."""

    _names: TableNames | None = None

    def __init__(self, reader: Reader, clock: Clock, engine: EngineIdentity) -> None:
        self._reader = reader
        self.clock = clock
        self.engine = engine

    @property
    def capabilities(self) -> Capabilities:
        """What is known about the engine so far; DynamoDB's capabilities before a server was asked."""
        return self.engine.capabilities

    def _write(self, write: Write[R]) -> Steps[R]:
        if write.schema not in self._reader.records.recorded:
            return self._first_write(write)
        if write.schema.previous is not None:
            return migrate_and_execute(write, self.clock)
        return execute(write, self.clock)

    def _first_write(self, write: Write[R]) -> Steps[R]:
        """Execute this store's first write of an entity, and record the entity's keys."""
        write.prepare()
        yield from require_for_entity(write.schema, self.engine)
        yield from self._reader.records.record(write.schema)
        yield from migrate_keys([write], self.clock)
        return (yield from execute(write, self.clock, is_prepared=True))

    # Other results of writes

    @overload
    def returning(self, result: Literal["old"], /) -> ReturningOld[M_co]: ...
    @overload
    def returning(self, result: Literal["none"], /) -> ReturningNothing[M_co]: ...
    def returning(
        self, result: Literal["old", "none"], /
    ) -> ReturningOld[M_co] | ReturningNothing[M_co]:
        """The store's writes with another result: the previous entity ("old"), or nothing ("none").

        before = store.returning("old").update(Order, Order.total.add(1), customer_id="2b5a41c0", number=157)
        """
        if result == "old":
            return ReturningOld(self, self._write, self.clock)
        if result == "none":
            return ReturningNothing(self, self._write, self.clock)
        raise UsageError(f"a write returns 'old' or 'none', not {result!r}")

    @property
    def requests(self) -> Requests[M_co]:
        """The requests for writes, without sending them.

        print(store.requests.update(Order, Order.total.add(1), customer_id="2b5a41c0", number=157))
        """
        return Requests(self, self._request, self.clock)

    def _request(self, write: Write[Any]) -> Steps[Request]:
        request = yield from request_of(write, self.clock)
        return request if self._names is None else self._names.request(request)

    # Tables

    def table_name(self, table: Table) -> str:
        """The name of a table in this store, including the store's `table_prefix`.

        assert store.table_name(shop) == "shop"
        """
        return table.name if self._names is None else self._names.actual(table.name)

    @operation
    def create_tables(
        self, *tables: Table, throughput: Throughput | None = None
    ) -> Steps[list[str]]:
        """Create missing tables with their indexes and expiry; return the names of the created ones.

        Tables are on demand unless `throughput` provisions units. Raises `TableDiffers` if an existing table differs
        from its declaration (the table is not changed), and `Unsupported` if the engine lacks something that a table or
        its entities need.
        """
        return table_admin.create_tables(
            tables, self.engine, throughput, records=self._reader.records
        )

    @operation
    def differences(self, *tables: Table) -> Steps[list[Difference]]:
        """Compare tables with their declarations; return the differences. Changes nothing.

        assert store.differences(shop) == []
        """
        return table_admin.differences(tables, self.engine)

    @operation
    def add_indexes(
        self,
        *tables: Table,
        throughput: Throughput | None = None,
        progress: table_admin.Progress | None = None,
    ) -> Steps[list[str]]:
        """Add missing global indexes, and wait until they are filled; return their names.

        Items without the key attributes of an index get no entry: `rewrite` gives them those that are composed.

        store.add_indexes(shop, progress=print)
        """
        return table_admin.add_indexes(tables, self.engine, throughput, progress)

    @operation
    def drop_tables(self, *tables: Table) -> Steps[list[str]]:
        """Delete tables with all their items; return the names of those that existed.

        store.drop_tables(shop)
        """
        return table_admin.drop_tables(tables, self._reader.records)

    @operation
    def accept_keys(self, *entities: type[Entity]) -> Steps[None]:
        """Record that the items of these entities have the declared keys, without reading them.

        A store raises `KeysChanged` if an entity declares other keys than its items were written with. Call this if no
        item needs to be rewritten, for example because there are none.

            store.accept_keys(Order)
        """
        for entity in entities:
            yield from self._reader.records.accept(schema_of(entity))

    # Writing

    @operation
    def put(self, entity: E, *, when: Condition | None = None) -> Steps[E]:
        """Write an entity, replacing any with its primary key. Cost: one write.

        Raises `ConditionFailed` if `when` is false, `VersionConflict` if the entity has a version and
        was changed since it was read, `NotUnique` if a unique value is taken. An entity with unique values
        costs a read and a transaction.

            order = store.put(Order(customer_id="2b5a41c0", number=157, status="PLACED"))
        """
        return self._write(Put(entity, self.clock, when))

    @operation
    def create(self, entity: E) -> Steps[E]:
        """Write an entity that does not exist yet; raises `AlreadyExists`, or `NotUnique`. Cost: one write.

        store.create(Customer(id="ann"))  # raises AlreadyExists the second time
        """
        return self._write(Put(entity, self.clock, expected="absence"))

    @operation
    def replace(self, entity: E, *, when: Condition | None = None) -> Steps[E]:
        """Replace an existing entity. Cost: one write.

        Raises `NotFound`, `ConditionFailed`, `NotUnique`, and `VersionConflict` for an entity with a version.

        store.replace(order.replace(status="SHIPPED"))
        """
        return self._write(Put(entity, self.clock, when, "presence"))

    @operation
    def update(
        self,
        target: type[E] | EntityKey[E] | E,
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[E]:
        """Change some fields of an entity and return the changed entity.

        The target is an entity, its key, or its class and the key's fields. Cost: one write, and one read if an index
        key or a computed field depends on a value that is not known. Raises `NotFound`, `ConditionFailed`,
        `VersionConflict` (for a given entity with a version) or `NotUnique`.

            store.update(Order, Order.total.add(1), customer_id="2b5a41c0", number=157)
        """
        return self._write(Update(target, changes, key, when))

    @operation
    def upsert(
        self,
        target: type[E] | EntityKey[E],
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[E]:
        """Change some fields of an entity; if it does not exist, it is created with its defaults.

        Cost: one write, and one read if an index key depends on a value that is not known. Raises the errors of
        `update`, except `NotFound`.

            store.upsert(Counter, Counter.hits.add(1), page="/")
        """
        return self._write(Upsert(target, changes, key, when))

    @operation
    def delete(
        self,
        target: type[E] | EntityKey[E] | E,
        /,
        *,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[E | None]:
        """Delete an entity; return the deleted entity, or None if it did not exist.

        The target is an entity (whose version is checked), its key, or its class and the key's fields. Cost: one write.
        Raises `ConditionFailed` or `VersionConflict`.

            store.delete(Order, customer_id="2b5a41c0", number=157)
        """
        return self._write(Delete(target, key, when))

    @operation
    def move(
        self,
        target: type[E] | EntityKey[E] | E,
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[E]:
        """Change fields of the primary key, and any others, in one transaction; return the new entity.

        Cost: one read, and a transaction of two writes. Raises `NotFound`, `AlreadyExists` if the new key is taken, and
        the errors of `update`.

            store.move(order, Order.customer_id.set("36ab"))
        """
        return self._write(Move(target, changes, key, when))

    @operation
    def put_many(
        self, entities: Iterable[Entity], *, progress: WriteProgress | None = None
    ) -> Steps[int]:
        """Put entities of any kinds, 25 to a request; return their number. Cost: one write each.

        If an entity is given twice, the last one is written. Raises `UsageError` for entities with a version or unique
        values, because these need conditions. Raises `BatchIncomplete` with the entries that the service kept refusing;
        all batches before them are written.

            store.put_many(orders)
        """
        return put_many(entities, self.clock, self._reader.records, progress)

    @operation
    def delete_many(
        self,
        targets: type[Entity] | Iterable[Entity | EntityKey[Any]],
        keys: Iterable[Mapping[str, Any]] = (),
        *,
        progress: WriteProgress | None = None,
    ) -> Steps[int]:
        """Delete entities, given as entities or keys; return how many were given.

        Cost: one write each. Raises the errors of `put_many`.

            store.delete_many(orders)
        """
        return delete_many(targets, keys, self._reader.records, progress)

    @operation
    def touch(self, target: type[E] | EntityKey[E] | E, /, **key: Any) -> Steps[E]:
        """Update only what every write sets (the `updated()` time and the version); return the changed entity.

        Index keys with that time are updated, too. `touch` does not prolong an entity's life: for that, `update` its
        expiry, as in `Session.until.set(…)`. Cost: as `update`. Raises `NotFound`, `VersionConflict`, and `UsageError` if
        the entity has neither such a time nor a version.
        """
        return self._write(Touch(target, key))

    @operation
    def update_all(
        self,
        read: Read[E],
        /,
        *changes: Change,
        when: Condition | None = None,
        parallel: int = 1,
        progress: BulkReport | None = None,
    ) -> Steps[BulkProgress]:
        """Update every entity that a query finds, one by one; return how many were `seen`, `written` and `skipped`.

        An entity that was changed meanwhile, so that the query would no longer find it, is skipped and counted. After
        an interruption, call it again. A change such as `add` is then applied again to entities that the query still
        finds. `parallel` writes run at the same time. Cost: the read, and one update for each entity. Raises the errors
        of `update`, except `NotFound` and `ConditionFailed`.

            store.update_all(Order.by_status.where(…), Order.status.set("SHIPPED"))
        """
        return bulk.update_all(self._reader, read, changes, when, self._write, parallel, progress)

    @operation
    def delete_all(
        self,
        read: Read[E],
        /,
        *,
        when: Condition | None = None,
        parallel: int = 1,
        progress: BulkReport | None = None,
    ) -> Steps[BulkProgress]:
        """Delete every entity that a query finds, one by one; return how many were `seen`, `written` and `skipped`.

        `when`, interruptions, `parallel` and `progress` work as in `update_all`. Cost: the read, and one write for each
        entity.

            store.delete_all(Order.primary.where(Order.customer_id == "2b5a41c0"))
        """
        return bulk.delete_all(self._reader, read, when, self._write, parallel, progress)

    def transaction(self) -> Transaction[M_co]:
        """Collect writes to several entities; the end of the `with` block sends all or none.

        Cost: twice that of single writes. The end of the block raises `TransactionFailed`. Raises `Unsupported` if the
        engine has no transactions. If the engine only has transactions within one partition, and the entities are in
        several, the end of the block raises it.

            with store.transaction() as tx:
                tx.put(order)
                tx.update(Customer, Customer.orders.add(1), id="2b5a41c0")
        """
        known = self.engine.known
        if known is None or not known.partition_transactions:
            known = self.capabilities  # asks the server, if nobody has done so yet
            if not (known.transactions or known.partition_transactions):
                known.require(["transactions"], "a transaction", _ONE_BY_ONE)
        return Transaction(self, self.clock, self._reader.records)

    @operation
    def widen(
        self, entity: type[Entity], *, progress: RewritingProgress | None = None
    ) -> Steps[Rewritten]:
        """Rewrite all entities of a class whose keys still have the form that `was` declares.

        This is `rewrite`, but raises `UsageError` if nothing declares a `was`.

            store.widen(Order, progress=print)  # Order.number has was= and a larger max
        """
        return rewriting.widen(entity, self.clock, self._reader.records, progress)

    @operation
    def rewrite(
        self,
        entity: type[Entity],
        *,
        change: ChangeItem | None = None,
        dry_run: bool = False,
        units_per_second: float | None = None,
        segments: int = 1,
        undo: str | PathLike[str] | None = None,
        progress: RewritingProgress | None = None,
    ) -> Steps[Rewritten]:
        """Rewrite all entities of a class that differ from what a put would write now: keys, tags, versions, values.

        Programs may read and write all the time: no concurrent write is lost. An interrupted rewrite continues where it
        stopped. `change` receives an item that is not as declared, as a dict of plain values, and returns what it
        should be. `dry_run` writes nothing, and returns what would be rewritten. At most `units_per_second` are used;
        `segments` are rewritten at the same time. `undo` names a file that records each previous item, for
        `store.undo`. Items that cannot be read are counted. Cost: a scan of the table, and a write for each rewritten
        entity; a transaction if its primary key changes.

            store.rewrite(Order, dry_run=True).examples
        """
        options = RewriteOptions(
            change=change,
            dry_run=dry_run,
            units_per_second=units_per_second,
            segments=segments,
            undo=undo,
            progress=progress,
        )
        return rewriting.rewrite(entity, self.clock, self._reader.records, options)

    @operation
    def undo(
        self, path: str | PathLike[str], *, progress: UndoProgress | None = None
    ) -> Steps[Undone]:
        """Restore the items that a rewrite with `undo=path` wrote, if they are unchanged since.

        Items that have changed since are counted and left as they are. Calling it again does no harm. Cost: a write for
        each item, or a transaction if its primary key had changed.

            store.undo("orders.undo")
        """
        self._reader.records.reset()
        return undo_log.undo(path, progress)

    @operation
    def verify(
        self,
        *targets: Table | type[Entity],
        segments: int = 1,
        units_per_second: float | None = None,
        examples: int = 3,
        progress: VerificationProgress | None = None,
        resume: Verification | None = None,
    ) -> Steps[Verification]:
        """Count the items in tables that differ from what their entities would write now. Writes nothing.

        A target is a table, or one entity of a table. `segments` are read at the same time, and at most
        `units_per_second` are used. `examples` items are kept for each finding. `progress` is called after each page
        with the verification so far; a later call with `resume=` continues there. An invalid item is a finding and does
        not raise; a table that does not exist raises `UsageError`. Cost: a consistent scan, and two reads for each unique value.

            print(store.verify(shop, segments=4, units_per_second=200))
        """
        return verification.verify(
            targets,
            self.clock,
            segments=segments,
            units_per_second=units_per_second,
            examples=examples,
            progress=progress,
            resume=resume,
        )

    # Reading

    @operation
    def get(
        self,
        target: type[T] | EntityKey[T],
        /,
        *values: Never,
        consistent: bool = False,
        **key: Any,
    ) -> Steps[T | None]:
        """Return the entity with this primary key or unique value, or None. Cost: one read; by a unique value, two.

        store.get(Order, customer_id="2b5a41c0", number=157)
        store.get(Order.primary.at(customer_id="2b5a41c0", number=157))

        Instead of the key, you may give a unique field's value, with the fields within which it is unique. Both reads are
        then consistent.

        store.get(User, mail="ann@example.com")

        Given a `Projection` in place of the class, only its fields are transferred.
        """
        # `values` catches get(order) and get(Order, "2b5a41c0"), to raise an error that shows what to write instead.
        entity: Any = target
        if values or not isinstance(target, type):
            entity, key = class_and_key("get", target, values, key)
        if Projection in entity.__mro__:  # issubclass would be one more call for each read
            return self._get_projection(entity, key, consistent=consistent)
        if schema_of(entity).previous is not None:
            return migration.get(self._reader, entity, key, consistent=consistent)
        return self._reader.get(entity, key, consistent=consistent)

    def _get_projection(
        self, projection: type[Projection[Any]], key: dict[str, Any], *, consistent: bool
    ) -> Steps[Any]:
        schema: EntitySchema = projection.__entity__.__schema__
        if schema.previous is None and key.keys() == schema.identity.keys():
            read = projected_gets.get(self._reader, projection, key, consistent=consistent)
            return (yield from read)
        get = migration.get if schema.previous is not None else Reader.get
        found = yield from get(self._reader, projection.__entity__, key, consistent=consistent)
        return None if found is None else projection.from_entity(found)

    @operation
    def get_many(
        self,
        targets: type[T] | Iterable[EntityKey[T]],
        keys: Iterable[Mapping[str, Any]] | None = None,
        *,
        consistent: bool = False,
        progress: FetchProgress | None = None,
    ) -> Steps[list[T | None]]:
        """Return the entities with these primary keys, in the same order; None for a missing one.

        Give keys of any classes, or one class and the fields of each key. A request takes a hundred keys; unprocessed
        keys are requested again after a pause. Raises `BatchIncomplete` if keys remain unprocessed.

            store.get_many([Order.primary.at(customer_id="2b5a41c0", number=n) for n in (1, 2)])

        Given a `Projection` in place of the class, only its fields are transferred.
        """
        of: Any = targets
        if keys is None:
            return migration.get_by_keys(self._reader, of, consistent=consistent, progress=progress)
        if isinstance(of, type) and issubclass(of, Projection):
            return self._get_projections(of, keys, consistent=consistent, progress=progress)
        if schema_of(of).previous is not None:
            return migration.get_many(
                self._reader, of, keys, consistent=consistent, progress=progress
            )
        return self._reader.get_many(of, keys, consistent=consistent, progress=progress)

    def _get_projections(
        self,
        projection: type[Projection[Any]],
        keys: Iterable[Mapping[str, Any]],
        *,
        consistent: bool,
        progress: FetchProgress | None,
    ) -> Steps[list[Any]]:
        entity = projection.__entity__
        if entity.__schema__.previous is None:
            read = projected_gets.get_many(
                self._reader, projection, keys, consistent=consistent, progress=progress
            )
            return (yield from read)
        found = yield from migration.get_many(
            self._reader, entity, keys, consistent=consistent, progress=progress
        )
        return [None if each is None else projection.from_entity(each) for each in found]

    @operation
    def get_together(
        self, *targets: tuple[type[T], Mapping[str, Any]] | EntityKey[T]
    ) -> Steps[list[T | None]]:
        """Return up to a hundred entities of any classes, from one snapshot; None for a missing one.

        Given a `Projection` in place of a class, only its fields are transferred. Cost: twice that of consistent reads.

            order, customer = store.get_together(
                Order.primary.at(customer_id="2b5a41c0", number=157), Customer.primary.at(id="2b5a41c0")
            )
        """
        return get_together(targets, self.clock, self._reader.records)

    @operation
    def exists(
        self, target: type[E] | EntityKey[E], /, *, consistent: bool = False, **key: Any
    ) -> Steps[bool]:
        """Whether an entity has this primary key or unique value. Given a key, only the key is transferred.

        Cost: as for `get`.

            store.exists(Order, customer_id="2b5a41c0", number=157)
        """
        entity: Any = target
        if not isinstance(target, type):
            entity, key = class_and_key("exists", target, (), key)
        schema = schema_of(entity)
        if schema.previous is not None:
            return migration.exists(self._reader, entity, key, consistent=consistent)
        return self._reader.exists(schema, key, consistent=consistent)

    @operation
    def refresh(self, entity: E, *, consistent: bool = True) -> Steps[E]:
        """Read an entity again, and set its fields to the stored values; return the same object.

        Changes that were not written are lost. Cost: one consistent read. Raises `NotFound` if the entity is gone.

            order = store.refresh(order)
        """
        schema = schema_of_instance(entity)
        key = schema.identity_of(entity.__dict__)
        get = migration.get if schema.previous is not None else Reader.get
        stored = yield from get(self._reader, type(entity), key, consistent=consistent)
        if stored is None:
            raise NotFound(f"{described(schema, schema.identify(key))} does not exist any more")
        entity.__dict__.clear()
        entity.__dict__.update(stored.__dict__)
        return entity

    @operation
    def page(
        self, read: Read[R] | Merge[R], *, size: int = 100, cursor: str | None = None
    ) -> Steps[Page[R]]:
        """Return up to `size` results, with cursors for the next and the previous page.

        There are fewer only at the end of the data, or at the query's own limits. Raises `InvalidCursor` for a cursor
        that was changed, has expired, or belongs to another query or another store.

            page = store.page(query, size=25)
            following = store.page(query, size=25, cursor=page.cursor)
        """
        return self._page(read, size, cursor)

    def _page(self, read: Read[R] | Merge[R], size: int, cursor: str | None) -> Steps[Page[R]]:
        if isinstance(read, Merge):
            return merging.page(self._reader, read, size, cursor)
        return self._reader.page(read, size=size, cursor=cursor)

    @iteration
    def pages(
        self, read: Read[R] | Merge[R], *, size: int = 100, cursor: str | None = None
    ) -> Batches[Page[R]]:
        """Iterate over the pages of all results, or of those after a cursor; the last page is never empty.

        Raises `InvalidCursor`, as `page` does.

            for page in store.pages(query, size=100):
                save(page.items)
        """
        is_over = False

        def step() -> Steps[list[Page[R]]]:
            nonlocal cursor, is_over
            page = yield from self._page(read, size, cursor)
            cursor, is_over = page.cursor, page.cursor is None
            return [page] if page.items or page.invalid or not is_over else []

        while not is_over:
            yield step()

    @iteration
    def iterate(self, read: Read[R] | Merge[R]) -> Batches[R]:
        """Iterate over all results, which are read as needed.

        for order in store.iterate(query): ...
        """
        traversal: Traversal[R] | MergeTraversal[R]
        if isinstance(read, Merge):
            traversal = MergeTraversal(self._reader, read)
        else:
            traversal = self._reader.traverse(read)
        while not traversal.is_over:
            yield traversal.step()

    @operation
    def all(self, read: Read[R] | Merge[R], *, at_most: int | None = None) -> Steps[list[R]]:
        """Return all results; raises `TooMany` if there are more than `at_most`.

        orders = store.all(query, at_most=1_000)
        """
        if isinstance(read, Merge):
            return merging.read_all(self._reader, read, at_most)
        return self._reader.all(read, at_most=at_most)

    @operation
    def first(self, read: Read[R] | Merge[R]) -> Steps[R | None]:
        """Return the first result, or None.

        newest = store.first(query.descending())
        """
        if isinstance(read, Merge):
            return merging.read_first(self._reader, read)
        return self._reader.first(read)

    @operation
    def count(self, read: Read[R] | Merge[R]) -> Steps[int]:
        """Count the results. Cost: as much as reading them.

        number = store.count(query)
        """
        if isinstance(read, Merge):
            return merging.count(self._reader, read)
        return self._reader.count(read)

    @operation
    def family(
        self, query: FamilyQuery[P, C], *, children: int | None = None
    ) -> Steps[Family[P, C]]:
        """Return a parent and at most `children` of its nearest children, in one read.

        both = Customer.primary.with_children(Order.primary)
        family = store.family(both.where(Customer.id == "2b5a41c0"), children=10)
        """
        return self._reader.family(query, children=children)

    @operation
    def nearest(
        self,
        search: VectorSearch[E] | VectorPattern[E],
        vector: Iterable[SupportsFloat],
        /,
        *,
        limit: int = 10,
        whole: bool = False,
    ) -> Steps[list[Neighbor[E]]]:
        """Return the entities (at most 100) with the vectors nearest to a vector, with their scores, nearest first.

        They lack the vector and fields that the index does not project; with `whole`, they are read completely by a
        BatchGetItem. Entities with several versions always are. Expired ones are left out. Raises `Unsupported` if the
        engine has no vector search.

            for doc, score in store.nearest(Doc.by_embedding(tenant="a"), vector, limit=3): ...
        """
        self.capabilities.require(["vectors"], "a vector search", _SEARCH_ELSEWHERE)
        return nearest(self._reader, search, vector, limit, whole=whole)

    @operation
    def load(self, read: Read[R], *, at_most: int = limits.MB) -> Steps[Snapshot[R]]:
        """Load a small collection completely, to filter and sort it in memory.

        Raises `TooLarge` with its size if it has more than `at_most` bytes.

            shipped = store.load(query).where(Order.status == "SHIPPED")
        """
        return self._reader.load(read, at_most=at_most)

    @iteration
    def changes(self, table: Table, *, since: datetime | None = None) -> Batches[Event[Entity]]:
        """Iterate over a table's changes in the last day, up to now.

        Changes of entities with the same partition key are in order. `since` skips older changes. Raises `UsageError` for a
        table without a stream (`Table(…, stream=…)`). To process new changes as they happen without losing any, use
        `isotone.structures.Worker`.
        """
        self.capabilities.require(
            ["streams"],
            f"the changes of table {table.name!r}",
            "keep a list of changes in an entity",
        )
        changes = Changes(table, since)
        while not changes.is_over:
            yield changes.step()
