"""`isotone.open` (regions=, durability=) and `Database`: clients, backup (over what), restore; joins both stacks.

What few programs call (checks, snapshots, exports and imports) is imported by the function that needs it, so that a
database opens soon.

>>> import isotone
>>> with isotone.open(":memory:") as database:
...     database.client().list_tables()["TableNames"]
[]
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self, cast, get_args

from isotone.backends.addresses import MEMORY, file_name, place_of
from isotone.backends.interface import Native, Request, Response
from isotone.clock import Clock
from isotone.daemon import Daemon
from isotone.engine import maintenance
from isotone.engine.engine import Engine
from isotone.engine.health import (
    Consumed,
    Series,
    add_consumed,
    gauges,
    health,
    measure,
    series,
    take_consumed,
)
from isotone.engine.slices import breathe, in_background
from isotone.engine.streams import OPEN_SHARDS
from isotone.errors import (
    IsotoneError,
    StorageBusy,
    StorageCorrupt,
    StorageError,
    UsageError,
)
from isotone.operations import action
from isotone.operations.action import GROUPED, STARTS_WORK
from isotone.operations.api import Answered, Api
from isotone.operations.replica_reads import api_over
from isotone.operations.served_queries import ServedQueries
from isotone.postgres_address import is_postgres
from isotone.shown_signature import shown
from isotone.storage.interface import BUSY_TIMEOUT, OrderedStore
from isotone.storage.memory import MemoryStore

if TYPE_CHECKING:
    from isotone.backends.interception import Interceptor
    from isotone.backends.s3 import S3
    from isotone.client import Client, StreamsClient
    from isotone.engine import file_check, frozen_reads, integrity
    from isotone.engine.file_check import Checked
    from isotone.engine.repair import Repaired
    from isotone.exchange.objects import ObjectStore
    from isotone.operations.permissions import RequiredPermission
    from isotone.operations.transfers.threads import TransferThreads

    CheckProgress = file_check.CheckProgress

Durability = Literal["disk", "process", "none"]

_RETRY_INTERVAL = 1.0  # seconds before failed background work is retried
_BUSY_INTERVAL = 0.05  # the same, after another process was writing
_MAPPED = 32 << 20  # bytes of a file that is read once; more would make the process appear large

log: logging.Logger = logging.getLogger("isotone")

ACTIONS: Final = frozenset(action.ACTIONS)
"""The actions of the API."""


def permissions() -> frozenset[str]:
    """What a policy can allow or deny: the actions, and parts of them."""
    from isotone.operations.permissions import PERMISSIONS

    return PERMISSIONS


@shown
def open(  # noqa: A001 - the verb that fits, as in `io.open` and `shelve.open`
    path: str | PathLike[str] = MEMORY,
    *,
    durability: Durability = "disk",
    clock: Clock | None = None,
    region: str = "us-east-1",
    account: str = "000000000000",
    memory_map: int | None = None,
    busy_timeout: float = BUSY_TIMEOUT,
    stream_shards: int = 1,
    s3: str | PathLike[str] | S3 | None = None,
    regions: bool = False,
) -> Database:
    """Open a database: a file or a schema of PostgreSQL, which is created if it does not exist, or memory.

    `path` is a path, ":memory:" or `postgresql://user@host/db?schema=name`; see docs/postgres.md.

    `durability` is what an acknowledged write survives: "disk", a power cut; "process", a crash of the
    process; "none", nothing for certain. `memory_map` is how many bytes of a file are mapped into memory, by
    default 2 GB: less makes the process appear smaller, and reads slower. In memory both have no effect.
    `busy_timeout` is how many seconds a write waits for another process that holds the file's lock, before it raises
    `StorageBusy`.
    `stream_shards` is how many shards a new stream begins with, at most 16.
    `s3` has the buckets of exports and imports: a folder, in which each bucket is a sub-folder, or an S3 endpoint, as a URL
    or an `isotone.S3`.

    With `regions`, each region that a client names has tables of its own. Without it, a region has tables of its own from
    its first replica on; all others share those of `region`.

    A file that cannot be written, or whose folder cannot, is opened for reading: a write raises `StorageError`.

    Raises `StorageCorrupt` for a file that is not an Isotone database, `StorageError` for one that
    cannot be opened.

        >>> with isotone.open(":memory:", durability="process") as database:
        ...     database.client().list_tables()["TableNames"]
        []
    """
    if type(stream_shards) is not int or not 1 <= stream_shards <= OPEN_SHARDS:
        raise UsageError(
            f"stream_shards={stream_shards!r} is not a number of shards; give 1 to {OPEN_SHARDS}"
        )
    objects = None if s3 is None else _buckets(s3)  # before a file is created
    return Database(
        Engine(
            _store(place_of(path), durability, memory_map, busy_timeout),
            clock=clock,
            region=region,
            account=account,
            stream_shards=stream_shards,
            objects=objects,
        ),
        regions=regions,
    )


def import_for_files() -> None:
    """Import what a file needs, before a process is forked that opens one: so all of them share it."""
    import isotone.operations.checks.orders
    import isotone.operations.permissions
    import isotone.operations.transfers.jobs
    import isotone.storage.sqlite  # noqa: F401

    action.import_all()


def open_beside(
    path: str | PathLike[str],
    *,
    durability: Durability = "disk",
    stream_shards: int = 1,
    s3: str | PathLike[str] | S3 | None = None,
    regions: bool = False,
    replication_lag: float = 0.0,
) -> DatabaseBeside:
    """Open a file in one more process of a server, which leaves the background work to another one."""
    engine = Engine(
        _store(place_of(path), durability, None, BUSY_TIMEOUT),
        stream_shards=stream_shards,
        objects=None if s3 is None else _buckets(s3),
    )
    database = DatabaseBeside(engine, regions=regions)
    if replication_lag:
        database.set_replication(lag=replication_lag)
    return database


def backup(
    file: str | PathLike[str],
    target: str | PathLike[str],
    *,
    force: bool = False,
    compact: bool = False,
    update: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> int:
    """Copy a database file as it is at one moment, while programs write to it; returns the size of the copy.

    The copy is checked, and gets its name only when it is complete and on the disk. `force` replaces an existing
    target, `compact` leaves out free pages, and `update` changes an earlier backup to the present state, writing
    only what differs. `progress` is called with the bytes done and those in all.

        isotone.backup("shop.db", "shop-2026-02-01.db")
    """
    from isotone.storage import file_copies

    source = _file_behind(file)
    return file_copies.back_up(
        source,
        file_name(target),
        is_earlier=lambda path: _is_earlier_backup(path, lambda: _tables_in(source)),
        force=force,
        compact=compact,
        update=update,
        progress=progress,
    )


def restore(
    backup: str | PathLike[str],
    file: str | PathLike[str],
    *,
    force: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> int:
    """Make a database file of a backup, which is checked first; returns its size.

    With `force`, an existing file gets the content of the backup in one transaction, also while programs use it.

        isotone.restore("shop-2026-02-01.db", "shop.db")
    """
    from isotone.storage import file_copies

    return file_copies.restore(
        _file_behind(backup), _file_behind(file), force=force, progress=progress
    )


def check(
    file: str | PathLike[str],
    *,
    tables: Sequence[str] = (),
    processes: int | None = None,
    watch: Callable[[CheckProgress], object] | None = None,
) -> Checked:
    """Check the consistency of a database file, or of some of its tables, as `Database.check` does.

    A large file is checked by as many processes as there are cores, at most eight, or by `processes`. `watch` is called
    with the progress.

    Writes nothing to the file, but upgrades one of an older format. If the file cannot be opened, because the
    descriptions of its tables are damaged, it checks what can be read. Raises `UsageError` if the file is missing or
    empty, and for a table that it does not have.
    """
    from isotone.engine import file_check, integrity
    from isotone.engine.file_check import Checked

    path = file if is_postgres(file) else _file_behind(file)
    try:
        database = Database(_open_for_reading(path))
    except StorageCorrupt as error:
        with closing(_store_for_reading(path)) as store:
            problems = integrity.check_entries(store)
            if not store.trees() and not problems:
                return Checked([], 0)  # it was created, and nothing has been written to it
        return Checked([*problems, f"the tables of {fspath(file)} cannot be opened: {error}"], 0)
    with database, database._unbroken():
        return file_check.check(database.engine, tables=tables, processes=processes, watch=watch)


def check_exists(file: str | PathLike[str]) -> None:
    """Raise `UsageError` unless a file exists that may be a database; for callers that only read."""
    if is_postgres(file):
        _store_for_reading(file).close()
        return
    from isotone.storage.file import check_exists as check

    check(file_name(file))


def repair(
    file: str | PathLike[str],
    target: str | PathLike[str],
    *,
    progress: Callable[[int, int], object] | None = None,
) -> Repaired:
    """Save everything that can be read of a damaged database file into a new file; the old one is not changed.

    The result has the `items` that each table got, what was `lost`, and the `problems` that are left, normally none.
    `progress` is called with the pages done and those in all.

        isotone.repair("shop.db", "repaired.db")
    """
    from isotone.engine import repair as repairing

    return repairing.repair(_file_behind(file), file_name(target), progress)


def compact(
    file: str | PathLike[str], *, progress: Callable[[int, int], object] | None = None
) -> tuple[int, int]:
    """Give the free pages of a database file back to the disk; returns its size before and after.

    Reads continue meanwhile, writes wait. Raises `StorageBusy` if another process is in the way.

        before, after = isotone.compact("shop.db")
    """
    from isotone.storage import file_copies

    return file_copies.compact(_file_behind(file), progress)


def _buckets(s3: str | PathLike[str] | S3) -> ObjectStore:
    """The buckets in a folder, or at an S3 endpoint."""
    if isinstance(s3, PathLike) or (isinstance(s3, str) and "://" not in s3):
        from isotone.exchange.objects import Folder

        return Folder(s3)
    from isotone.backends import s3 as endpoints
    from isotone.exchange.s3 import S3Buckets

    return S3Buckets((endpoints.S3(s3) if isinstance(s3, str) else s3).client())


def _file_behind(path: str | PathLike[str]) -> str:
    """The target of a symbolic link to a file: its logs are beside the target, and it may be replaced."""
    name = file_name(path)
    return os.path.realpath(name) if Path(name).is_symlink() else name


def _open_for_reading(path: str) -> Engine:
    return Engine(_store_for_reading(path))


def _store_for_reading(path: str) -> OrderedStore:
    if is_postgres(path):
        from isotone.storage.postgres import PostgresStore

        return PostgresStore(path, read_only=True)
    from isotone.storage.sqlite import SQLiteStore

    return SQLiteStore(path, memory_map=_MAPPED, read_only=True)


def _tables_in(path: str) -> set[str]:
    with closing(_open_for_reading(path)) as engine:
        return _table_ids(engine)


def _table_ids(engine: Engine) -> set[str]:
    """The ids of all tables in all regions of a database."""
    return {
        table.schema.id
        for region in list(engine.home.regions.values())
        for table in (*region.catalog, *region.catalog.creating.values())
    }


def _is_earlier_backup(path: str, tables: Callable[[], set[str]]) -> bool:
    """Whether a database is an earlier state of one with these tables: it has some of them, or none of its own."""
    try:
        found = _tables_in(path)
    except StorageError as error:
        raise UsageError(
            f"{path} cannot be read, so it may be a backup of anything: delete it, or give another target ({error})"
        ) from None
    return not found or bool(found & tables())


def _store(
    path: str, durability: Durability, memory_map: int | None, busy_timeout: float
) -> OrderedStore:
    if type(busy_timeout) not in (int, float) or not 0 <= busy_timeout < float("inf"):
        raise UsageError(
            f"busy_timeout={busy_timeout!r} is not a number of seconds; give 0 or more"
        )
    if durability not in get_args(Durability):
        names = ", ".join(get_args(Durability))
        raise UsageError(f"{durability!r} is not a durability; use one of {names}")
    if path == MEMORY:
        return MemoryStore()
    if is_postgres(path):
        from isotone.storage.postgres import PostgresStore

        return PostgresStore(path, durability, busy_timeout=busy_timeout)
    from isotone.storage.sqlite import SQLiteStore

    if memory_map is None:
        return SQLiteStore(path, durability=durability, busy_timeout=busy_timeout)
    if type(memory_map) is not int or memory_map < 0:
        raise UsageError(f"memory_map={memory_map!r} is not a number of bytes; give 0 or more")
    return SQLiteStore(
        path, durability=durability, busy_timeout=busy_timeout, memory_map=memory_map
    )


class Database(Native):
    """One open database: DynamoDB's API as method calls, from any thread.

    Background work (filling a new index, deleting expired items) runs in one thread, which serves all users of the
    database. Each export and each import has a thread of its own, because it may wait for a network. These threads are
    started when there is such work, including work that another process left unfinished.

        >>> database = isotone.open(":memory:")
        >>> database.execute("ListTables", {})
        {'TableNames': []}
        >>> database.close()
    """

    def __init__(self, engine: Engine, *, regions: bool = False) -> None:
        self.engine = engine
        self._api = api_over(engine)
        self._worker: _BackgroundThread | None = None
        self._transfers: TransferThreads | None = None
        self._worker_lock = threading.Lock()
        self._has_regions = regions
        self._regions: dict[str, Database] = {}
        self._wake_if_wanted()

    def region(self, name: str) -> Database:
        """The tables of another region of this database, which is created if it is new.

        The view is open as long as the database; closing it does nothing.
        """
        return self._of(self.engine.open_region(name))

    def in_region(self, name: str) -> Database:
        """The database that a request to a region is for: the region's own tables, or else this database."""
        engine = self.engine.regions.get(name)
        if engine is self.engine:
            return self
        if engine is None:
            return self.region(name) if self._has_regions and name else self
        return self._of(engine)

    def _of(self, engine: Engine) -> Database:
        if engine is self.engine:
            return self
        known = self._regions.get(engine.region)
        if known is None or known.engine is not engine:  # its creation was rolled back
            known = self._regions[engine.region] = _Region(engine, self)
            known._api.served = self._api.served
        return known

    def set_replication(self, *, lag: float = 0.0, paused: bool = False) -> None:
        """Deliver writes to other replicas only `lag` seconds later, or not at all while `paused`.

        `isotone.testing.replication` sets both for a block. Time is measured by the database's clock.
        """
        if not isinstance(lag, int | float) or not 0 <= lag <= 1e9:
            raise UsageError(f"lag={lag!r} is not a number of seconds from 0 to 1e9")
        home = self.engine.home
        home.replication_lag, home.replication_paused = lag, paused
        self._wake_if_wanted()

    @property
    def replication(self) -> tuple[float, bool]:
        """The lag of replication in seconds, and whether it is paused."""
        home = self.engine.home
        return home.replication_lag, home.replication_paused

    def send(self, operation: str, body: bytes, region: str = "") -> bytes:
        """Execute one request, JSON to JSON; raises the service's error as an `ApiError`.

        `region` is the region that it is signed for (see `in_region`).
        """
        if region and region != self.engine.region:
            other = self.in_region(region)
            if other is not self:
                return other.send(operation, body)
        try:
            answer = self._api.send(operation, body)
        except BaseException as error:
            self._roll_back_after(error)
            raise
        if operation in STARTS_WORK:
            self._wake_if_wanted()
        return answer

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Execute one request without JSON; expressions may be trees. Raises as `send` does.

        >>> with open() as database:
        ...     database.execute("ListTables", {"Limit": 10})
        {'TableNames': []}
        """
        try:
            answer = self._api.execute(operation, request)
        except BaseException as error:
            self._roll_back_after(error)
            raise
        if operation in STARTS_WORK:
            self._wake_if_wanted()
        return answer

    def read_json(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Execute a Query or a Scan like `execute`, but return the items as the stored JSON."""
        try:
            return self._api.execute(operation, request, json_items=True)
        except BaseException as error:
            self._roll_back_after(error)
            raise

    def send_many(
        self, requests: Sequence[tuple[str, bytes]], region: str = ""
    ) -> Sequence[Answered]:
        """Execute requests in one transaction; each is answered as if it were alone. `region` is as in `send`."""
        if region and region != self.engine.region:
            other = self.in_region(region)
            if other is not self:
                return other.send_many(requests)
        try:  # as `_unbroken` does, whose generator would cost as much as a short read
            return self._api.send_many(requests)
        except BaseException as error:
            self._roll_back_after(error)
            raise

    @property
    def reads_together(self) -> bool:
        """Whether `send_reads` is faster than one `send` after the other."""
        return self.engine.store.reads_together

    def send_reads(
        self, requests: Sequence[tuple[str, bytes]], region: str = ""
    ) -> Sequence[Answered]:
        """Execute requests that change nothing, each as if it were alone. `region` is as in `send`."""
        database = self.in_region(region) if region else self
        with self._unbroken():
            return database._api.send_reads(requests)

    def health(self) -> str:
        """Why this database cannot be read or written now; empty if it can."""
        return health(self.engine.home)

    def gauges(self) -> dict[str, float]:
        """Sizes of the file and its log, and how long writes have waited for other processes."""
        return gauges(self.engine.home)

    def measure(self, measured: bool = True) -> None:
        """Start (or stop) counting requests by their shape, the units that they consume, and how far streams are read."""
        measure(self.engine.home, measured)
        served = (self._api.served or ServedQueries()) if measured else None
        for each in (self, *self._regions.values()):
            each._api.served = served

    def served(self, others: Sequence[bytes] = ()) -> bytes:
        """What requests have cost by their shape, as JSON; `others` are the same of other processes."""
        served = self._api.served or ServedQueries()
        return served.json_with(others) if others else served.json()

    def take_served(self) -> bytes:
        """The counts of `served` since the last call, for the process that shows them; empty if there are none."""
        return b"" if self._api.served is None else self._api.served.take()

    def add_served(self, taken: bytes) -> None:
        """Count requests that another process has executed."""
        if self._api.served is not None:
            self._api.served.add_taken(taken)

    def series(self) -> list[Series]:
        """What is measured per table, as Prometheus series with labels."""
        return series(self.engine.home)

    def take_consumed(self) -> Consumed:
        """The units that requests have consumed since the last call, for the process that shows them."""
        return take_consumed(self.engine.home)

    def add_consumed(self, consumed: Consumed) -> None:
        """Count units that another process has taken."""
        add_consumed(self.engine.home, consumed)

    def allow_waiting(self, allowed: bool) -> None:
        """Set whether requests of this thread may take long.

        If not, they raise `StorageBusy` at once while another process writes, and `TakesLong` for what computes for long.
        """
        self.engine.writer_waits.are_forbidden = not allowed
        self._api.set_raises_if_long(not allowed)

    @property
    def account(self) -> str:
        """The account id in ARNs."""
        return self.engine.account

    def accesses(
        self, operation: str, body: bytes, region: str = ""
    ) -> Sequence[RequiredPermission]:
        """The permissions that a request to a region needs; raises the service's error for a malformed request.

        It creates no region, because it is not known yet whether the request may. A new region has no tables.
        """
        engine = self.engine.regions.get(region)
        if engine is not None:
            return self._of(engine)._api.accesses(operation, body)
        if not (self._has_regions and region):
            return self._api.accesses(operation, body)
        empty = Engine(MemoryStore(), region=region, account=self.account)
        return Api(empty).accesses(operation, body)

    def has_policies(self, operation: str, region: str = "") -> bool:
        """Whether the policy of a table or a stream may forbid a request to a region. Creates no region."""
        engine = self.engine.regions.get(region)
        return (self if engine is None else self._of(engine))._api.has_policies(operation)

    def is_read(self, operation: str, body: bytes) -> bool:
        """Whether a request changes nothing, so that any process with the file may execute it."""
        return self._api.is_read(operation, body)

    def is_grouped(self, operation: str, body: bytes) -> bool:
        """Whether a request should be committed in a group with others."""
        return operation in GROUPED and self._api.writes(operation, body)

    def is_long(self, operation: str, body: bytes) -> bool:
        """Whether a request takes long by its action and its bytes; others may still turn out to do so."""
        return self._api.is_long(operation, body)

    def client(self) -> Client:
        """A client with the methods, arguments and answers of boto3's DynamoDB client."""
        from isotone.client import Client

        return Client(self.send, region_name=self.engine.region)

    def streams_client(self) -> StreamsClient:
        """A client with the methods, arguments and answers of boto3's DynamoDB Streams client."""
        from isotone.client import StreamsClient

        return StreamsClient(self.send, region_name=self.engine.region)

    def maintain(self) -> float:
        """Do a slice of background work; returns the seconds until the next call is needed."""
        with self._unbroken():
            return min(self._api.maintain(), self._api.transfer())

    def start_maintenance(self) -> None:
        """Start the thread for background work, even if there is none yet; it ends when the database is closed.

        A server calls this: other processes may leave work in its file at any time.
        """
        if self.engine.store.read_only or sys.is_finalizing():
            return
        with self._worker_lock:
            if self._worker is None or not self._worker.is_alive:
                self._worker = _BackgroundThread(self.engine, self._maintain, "isotone-maintenance")
            self._worker.wake()
        if self.engine.objects is not None:
            self._start_transfers()

    def _maintain(self) -> float:
        """Do a slice of background work, which yields to other processes that write."""
        self.engine.writer_waits.are_forbidden = True
        try:
            with in_background():
                delay = self._api.maintain()
                breathe()
                return delay
        except StorageBusy:
            return _BUSY_INTERVAL

    def _start_transfers(self) -> None:
        if sys.is_finalizing():
            return
        from isotone.operations.transfers.threads import TransferThreads

        with self._worker_lock:
            if self._transfers is None or not self._transfers.are_alive:
                self._transfers = TransferThreads(self.engine.home)
            self._transfers.wake()

    def finish_maintenance(self) -> None:
        """Do all background work that is due."""
        with self._unbroken():
            self._api.finish_maintenance()

    def backup(
        self,
        target: str | PathLike[str],
        *,
        force: bool = False,
        compact: bool = False,
        update: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> int:
        """Copy this database to a file as it is now, as `isotone.backup` does; returns the size of the copy.

        A file is copied while programs write to it. A database in memory delays writes until the copy is written.
        """
        store = self.engine.home.store
        path = getattr(store, "path", None) or getattr(store, "address", None)
        if path is not None:
            return backup(
                path, target, force=force, compact=compact, update=update, progress=progress
            )
        from isotone.storage import file_copies

        with self.engine.reading:
            return file_copies.write_out(
                store,
                file_name(target),
                is_earlier=lambda path: _is_earlier_backup(path, lambda: _table_ids(self.engine)),
                force=force or update,
            )

    @contextmanager
    def frozen(self, tables: Sequence[str]) -> Iterator[frozen_reads.PagesOf]:
        """A snapshot of these tables, for a thread that reads them from end to end while others write.

        The block gets a function that takes a table's name and returns its items, page by page in the order of a Scan:
        for each item the bytes that it sorts by, its JSON, and its size. A page has at most 2,000 items and some
        megabytes. A file's log grows until the block ends; a table in memory cannot be deleted before.
        """
        from isotone.engine import frozen_reads

        engine = self.engine
        store = engine.home.store
        path = getattr(store, "path", None) or getattr(store, "address", None)
        if path is None:
            with frozen_reads.in_memory(engine, tables) as pages:
                yield pages
            return
        own = Engine(
            _store(path, "disk", _MAPPED, BUSY_TIMEOUT),
            clock=engine.clock,
            region=engine.home.region,
        )
        with closing(own), frozen_reads.in_file(own.regions[engine.region], tables) as pages:
            yield pages

    def add_frozen(self, table: str, entries: Sequence[frozen_reads.OrderedItem]) -> None:
        """Add items that `frozen` has read from a table with the same keys; five times as fast as putting them.

        The items must be in their order, and the table must have none of them, and nothing else that puts would change:
        no index, expiry, stream, point-in-time recovery or replica. Otherwise it raises `UsageError`.
        """
        from isotone.engine import frozen_reads

        with self._unbroken(), self.engine.writing:
            frozen_reads.add(self.engine, table, entries)

    def check(self, progress: integrity.Progress | None = None) -> list[str]:
        """The consistency check: a list of problems, empty if there are none. Reads everything once.

        `progress` is called with a table's name and the number of items checked so far.
        """
        from isotone.engine import integrity

        with self._unbroken():
            if self.engine.home is not self.engine:
                return integrity.check(self.engine, progress)
            return [
                problem
                for engine in list(self.engine.regions.values())
                for problem in integrity.check(engine, progress)
            ]

    @contextmanager
    def intercepted(self, interceptor: Interceptor) -> Iterator[None]:
        """Let an interceptor answer all requests inside the block, from any client of this database."""
        from isotone.backends.interception import Intercepted

        inner = self._api
        self._api = cast(Api, Intercepted(inner, interceptor))
        try:
            yield
        finally:
            self._api = inner

    def rolled_back(self) -> AbstractContextManager[None]:
        """Undo all writes inside the block. Cost: as much as was written."""
        return self.engine.rolled_back()

    def clear(self) -> None:
        """Delete everything in the database, like a new one, even tables with deletion protection."""
        with self._unbroken():
            self.engine.clear()

    def close(self) -> None:
        """Stop background work and close the file. Closing twice does nothing."""
        with self._worker_lock:
            workers = (self._worker, self._transfers)
            self._worker = self._transfers = None
        if self.engine.objects is not None:
            self.engine.objects.close()
        for worker in workers:
            if worker is not None:
                worker.stop()
        self._api.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _unbroken(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._roll_back_after(error)
            raise

    def _roll_back_after(self, error: BaseException) -> None:
        """Roll back after an unexpected exception, such as `KeyboardInterrupt`."""
        if not isinstance(error, IsotoneError):
            self.engine.abandon()

    def _wake_if_wanted(self) -> None:
        if self.engine.store.read_only:
            return
        if maintenance.is_wanted(self.engine):
            self.start_maintenance()
        elif self.engine.objects is not None and self._api.can_transfer:
            self._start_transfers()


class _Region(Database):
    """The tables of one more region. Its database does the background work."""

    def __init__(self, engine: Engine, database: Database) -> None:
        self.engine = engine
        self._api = Api(engine)
        self._database = database

    def region(self, name: str) -> Database:
        return self._database.region(name)

    def in_region(self, name: str) -> Database:
        return self._database.in_region(name)

    def accesses(
        self, operation: str, body: bytes, region: str = ""
    ) -> Sequence[RequiredPermission]:
        return self._database.accesses(operation, body, region or self.engine.region)

    def start_maintenance(self) -> None:
        self._database.start_maintenance()

    def _start_transfers(self) -> None:
        self._database._start_transfers()

    def close(self) -> None:
        """Do nothing: the region is closed with its database."""


class DatabaseBeside(Database):
    """A file in one of the processes of a server. Another one does the background work."""

    def in_region(self, name: str) -> Database:
        """As a `Database` does it; another process may have made the region just now."""
        if name and name not in self.engine.regions:
            with self.engine.reading:
                pass
        return super().in_region(name)

    def start_maintenance(self) -> None:
        """Do nothing."""

    def _start_transfers(self) -> None:
        """Do nothing."""


class _BackgroundThread:
    """A thread that does background work of one kind, in slices."""

    def __init__(self, engine: Engine, step: Callable[[], float], name: str) -> None:
        self._engine = engine
        self._step = step
        self._due = threading.Event()
        self._logged: set[str] = set()
        self._stopping = False
        self._thread = Daemon(self._run, name, end=self._end)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive

    def wake(self) -> None:
        self._due.set()

    def stop(self) -> None:
        self._end()
        self._thread.join()

    def _end(self) -> None:
        self._stopping = True
        self._due.set()

    def _run(self) -> None:
        while not self._stopping:
            self._due.clear()
            delay = self._slice()
            if delay:
                self._due.wait(delay)

    def _slice(self) -> float:
        try:
            return self._step()
        except Exception as error:  # the thread must survive, or all later work would be skipped
            text = f"{type(error).__name__}: {error}"
            if text not in self._logged:  # it may recur every second
                self._logged.add(text)
                log.exception("background work failed; it will be tried again")
        try:
            self._engine.abandon()
        except Exception:  # the next transaction rolls it back first
            log.exception("what the background work left open could not be undone")
        return _RETRY_INTERVAL
