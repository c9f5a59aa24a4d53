"""The open database: store, tables, clock, the lock, the blocks of requests, and `rolled_back`, which undoes one.

Rules that every caller keeps:

- Work happens inside `with engine.reading:` or `with engine.writing:`. Both take the lock and first
  check for changes by other processes. `writing` nests: the outermost block is the transaction, and
  `blocks.WriteBlock` commits everything inside it together.
- Requests read inside `with engine.reading_beside as engine:` or `read_optimistically`. They do not wait while another
  thread has the lock of a file: they get a reader (`engine/readers.py`) in place of the engine.
- An action checks everything before its first write. So an `ApiError` leaves nothing to undo. Any
  other exception rolls back the outermost block.
- Background work that can be repeated after a power cut uses `writing_unsynced`, so nobody waits for its commits.

While another process writes to the file, `writing` waits without holding the lock, so other threads can read. A thread
that must not wait, such as a server's event loop, sets `engine.writer_waits.are_forbidden`.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from isotone.clock import Clock, SystemClock
from isotone.engine import damage
from isotone.engine.blocks import (
    OPEN,
    LockBlock,
    ReadBesideBlock,
    ReadBlock,
    WriteBlock,
    WriterWaits,
)
from isotone.engine.catalog import CATALOG, Catalog
from isotone.engine.readers import Readers
from isotone.engine.tree_counts import COUNTS, TreeCounts
from isotone.engine.vector_cache import VectorCache
from isotone.errors import (
    DamagedItem,
    IsotoneError,
    StorageBusy,
    StorageCorrupt,
    TakesLong,
    ValidationException,
)
from isotone.storage.interface import NoSuchTree, OrderedStore
from isotone.storage.prefixed import PrefixedStore

if TYPE_CHECKING:
    from isotone.engine.stream_lag import Watched
    from isotone.exchange.objects import ObjectStore

PROGRESS = "progress"  # the position of each backfill
TOKENS = "tokens"  # tokens of answered transactions
STREAMS = "streams"  # the streams and their shards
VIEWS = "views"  # snapshots of tables that are being read
BACKUPS = "backups"  # the backups, apart from their items
TRANSFERS = "transfers"  # exports, imports and bulk operations
R = TypeVar("R")
T = TypeVar("T")

SYSTEM_TREES = (CATALOG, COUNTS, PROGRESS, TOKENS, STREAMS, VIEWS, BACKUPS, TRANSFERS)
_REGION = re.compile(r"[a-z]{2,}(-[a-z0-9]+)+")
_REGION_PREFIX = "region_"


class OptimisticRead(Protocol):
    """`engine.read_optimistically(read, request)` returns `read(engine, request)`. `read` must not change anything, and
    may be called twice.

    A successful `read` must have read something from the store, since that is how other processes' commits are noticed.

    A snapshot costs as much as a lookup, so the first call runs without one. If another process has committed since the
    catalog was read, the result may mix two moments, and `read` is repeated in a snapshot. While other processes keep
    committing, the catalog's version is looked up first. If no other process can write, the lock alone is enough.
    `read` must use the engine that it gets, which may be a reader.
    """

    def __call__(self, read: Callable[[Engine, R], T], request: R) -> T: ...


class Engine:
    """An open database, or one of its further regions. Closing it closes its store.

    A database has one region, its `home`, until another is opened for a replica or for a caller. Each further region is
    a separate engine over a part of the store, with the home's lock and transaction.

    After a fork, the child's engine is in the state between two requests. A store in memory continues as a copy; a file
    must be opened again.
    """

    def __init__(
        self,
        store: OrderedStore,
        *,
        clock: Clock | None = None,
        region: str = "us-east-1",
        account: str = "000000000000",
        stream_shards: int = 1,
        objects: ObjectStore | None = None,
        home: Engine | None = None,
    ) -> None:
        self.store = store
        self.objects = objects
        self.at_close: ExitStack[bool | None] = ExitStack()
        self.clock: Clock = clock or SystemClock()
        self.region = region
        self.account = account
        self.stream_shards = stream_shards
        self.lock: Any = threading.RLock() if home is None else home.lock
        self.writer_waits: WriterWaits = (
            WriterWaits(self.lock, store) if home is None else home.writer_waits
        )
        self.home: Engine = home or self
        self.readers: Readers = Readers(self._open_reader) if home is None else home.readers
        self.regions: dict[str, Engine] = {} if home is None else home.regions
        # Set by the operations, whose rules a delivered write obeys, and called before each commit.
        self.deliver_to_replicas: Callable[[Engine], object] | None = None
        self.has_undelivered = False
        self.replication_lag: float = 0.0
        self.replication_paused = False
        self.outdated: bool = False
        self._is_calm = not store.needs_snapshots  # no other process has just committed
        self.skipped: set[tuple[str, bytes]] = set()  # damaged entries that the TTL sweep skips
        self._logged_damage: set[str] = set()
        if home is None:
            store.describe_damage = self._describe_damage
        _make_system_trees(store)
        self.catalog: Catalog = Catalog(store)
        if home is not None and home.catalog.units is not None:
            self.catalog.count_units(True)
        self.counts: TreeCounts = TreeCounts(store)
        self.vectors: VectorCache = VectorCache()
        # by tree; None if stream lag is not measured
        self.watched_streams: dict[str, Watched] | None = (
            None if home is None or home.watched_streams is None else {}
        )
        self.reading: AbstractContextManager[Any] = (
            self.lock if store.exclusive else ReadBlock(self)
        )
        self.reading_beside: AbstractContextManager[Engine] = (
            LockBlock(self) if store.exclusive else ReadBesideBlock(self)
        )
        # Called as a method; which of the two it is depends on whether others may write.
        self.read_optimistically: OptimisticRead = (
            self._read_alone if store.exclusive else self._read_beside_writers
        )
        self.writing: WriteBlock = WriteBlock(self, synced=True)
        self.writing_unsynced: WriteBlock = WriteBlock(self, synced=False)
        OPEN.add(self)
        self.regions[region] = self  # last, because other threads can see it from here on
        self._open_stored_regions()

    def open_region(self, region: str) -> Engine:
        """The engine of a region, which is created if it is new."""
        found = self.regions.get(region)
        if found is not None:
            return found
        if not _REGION.fullmatch(region):
            raise ValidationException(f"Invalid region: {region}")
        home = self.home
        store = PrefixedStore(home.store, _region_prefix(region))
        with self.lock:
            try:
                self._make_region(store)
            except StorageBusy as error:
                self.writer_waits.until_taken(partial(self._make_region, store), error)
            return self.regions.get(region) or Engine(
                store,
                clock=home.clock,
                region=region,
                account=home.account,
                stream_shards=home.stream_shards,
                objects=home.objects,
                home=home,
            )

    def _make_region(self, store: OrderedStore) -> None:
        """Create the trees of a region that has none; other processes notice."""
        if _missing_trees(store):
            with store.transaction(wait=False):
                _make_system_trees(store)
                self.home.catalog.touch()

    def _open_stored_regions(self) -> None:
        """Open the regions in the store that this or another process has created."""
        if self.home is not self:
            return
        ending = "__" + CATALOG
        for tree in self.store.trees():
            if tree.startswith(_REGION_PREFIX) and tree.endswith(ending):
                name = tree.removeprefix(_REGION_PREFIX).removesuffix(ending)
                self.open_region(name.replace("_", "-"))

    @property
    def prefix(self) -> str:
        """The prefix of the region's trees in the file."""
        return "" if self.home is self else _region_prefix(self.region)

    def role_of(self, tree: str) -> tuple[str, damage.Role | None]:
        """The region's name for a tree of the file, and its role; None for the database's own trees."""
        for engine in self.home.regions.values():
            prefix = engine.prefix
            if tree.startswith(prefix) and is_of_region(tree) == bool(prefix):
                name = tree.removeprefix(prefix)
                # The catalog may be the damaged part: then nothing is known yet.
                catalog = getattr(engine, "catalog", None)
                if catalog is None:
                    return name, None
                return name, damage.roles([*catalog, *catalog.creating.values()]).get(name)
        return tree, None

    def log_damage(self, error: StorageCorrupt) -> None:
        """Log damage that background work has met and skips; once for each entry."""
        damage.log_once(self.home._logged_damage, error)

    def _describe_damage(self, tree: str, key: bytes | None) -> DamagedItem:
        name, role = self.role_of(tree)
        return damage.describe(role, getattr(self.store, "path", "the database"), name, key)

    def refresh(self) -> None:
        """Drop cached state that another process has made stale."""
        changed = self.store.changed_elsewhere()
        self._is_calm = not changed and not self.store.needs_snapshots
        if changed or self.outdated:
            self.forget()

    def _read_beside_writers(self, read: Callable[[Engine, R], T], request: R) -> T:
        engine = self if self.lock.acquire(False) else self.readers.beside(self)
        try:
            if not engine.outdated:
                try:
                    if engine._is_calm or engine._catches_up():
                        found = read(engine, request)
                        if engine.store.is_current():
                            return found
                except TakesLong:
                    raise  # another thread executes the request, whatever it would read here
                except IsotoneError:
                    pass  # perhaps only because the catalog is outdated; otherwise it is raised again
            with engine.reading:
                return read(engine, request)
        finally:
            engine.lock.release()

    def _catches_up(self) -> bool:
        """Without a snapshot, forget what the last commits of others have made stale; False if that takes one.

        Each commit of a busy writer would otherwise cost a reader a transaction. Mostly the catalog is still the same.
        """
        if len(self.regions) > 1 or self.store.needs_snapshots or not self.catalog.is_as_stored():
            return False
        self._is_calm = not self.store.has_seen_changes()
        if not self._is_calm:
            self.counts.forget()
            self.vectors.forget()
        return True

    def _read_alone(self, read: Callable[[Engine, R], T], request: R) -> T:
        with self.lock:
            return read(self, request)

    def _open_reader(self) -> Engine | None:
        store = self.store.reader()
        if store is None:
            return None
        try:
            reader = Engine(store, clock=self.clock, region=self.region, account=self.account)
        except BaseException:
            store.close()
            raise
        reader._logged_damage = self._logged_damage
        return reader

    def forget(self) -> None:
        """Read catalogs and counts again: another process has written, or a transaction was rolled back."""
        family = list(self.regions.values())
        for engine in family:
            engine.outdated = True
            engine.counts.forget()
            engine.vectors.forget()
        for engine in family:
            try:
                changed = engine.catalog.refresh()
            except NoSuchTree:
                if engine.home is engine:
                    raise
                del self.regions[engine.region]  # its creation was rolled back
                continue
            engine.outdated = False
            if changed and engine.home is engine and not self.store.exclusive:
                engine._open_stored_regions()

    def abandon(self) -> None:
        """Roll back the transaction that this thread left open, if any, after an unexpected exception.

        A signal handler can raise (`KeyboardInterrupt`) before the first line of an `__exit__`, or in the middle of
        one. Then the block has ended, but the transaction has not. The lock, which is released last, shows it.
        """
        self.readers.abandon()
        if not self.lock._is_owned():
            return
        try:
            self.store.abandon()
            for engine in list(self.regions.values()):
                engine.writing.reset()
                engine.writing_unsynced.reset()
            self.forget()
        finally:
            while self.lock._is_owned():
                self.lock.release()

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Roll back all writes inside the block, in time proportional to their number."""
        with self.lock:
            transaction = self.store.transaction()
            transaction.__enter__()
            self.readers.paused += 1
        try:
            yield
        finally:
            if self._lock_at_last():
                try:
                    transaction.rollback()
                    transaction.__exit__(None, None, None)
                    self.forget()
                finally:
                    self.readers.paused -= 1
                    self.lock.release()

    def clear(self) -> None:
        """Delete all tables, streams, backups, tokens and jobs of the region in one transaction. The home region clears
        all regions.
        """
        with self.writing:
            self.catalog.clear()
            self.counts.forget()
            self.vectors.forget()
            for tree in self.store.trees():
                if tree != CATALOG and not is_of_region(tree):
                    self.store.drop_tree(tree)
            _make_system_trees(self.store)
            if self.home is self:
                for engine in list(self.regions.values()):
                    if engine is not self:
                        engine.clear()

    def close(self) -> None:
        self.readers.close()
        if not self._lock_at_last():
            return  # like a kill: the file has everything that was acknowledged
        try:
            for engine in self.regions.values():
                engine.at_close.close()
            self.store.close()
            # From here on, cached state must not answer any request.
            self.outdated = True
            self.reading = ReadBlock(self)
            self.reading_beside = ReadBesideBlock(self)
            self.read_optimistically = self._read_beside_writers
        finally:
            self.lock.release()

    def _lock_at_last(self) -> bool:
        """Take the lock; False if a thread holds it that the interpreter has already stopped while exiting."""
        taken: bool = self.lock.acquire(blocking=not sys.is_finalizing())
        return taken


def _region_prefix(region: str) -> str:
    return f"{_REGION_PREFIX}{region.replace('-', '_')}__"


def is_of_region(tree: str) -> bool:
    """Whether a tree of the home's store belongs to a further region."""
    return tree.startswith(_REGION_PREFIX)


def _missing_trees(store: OrderedStore) -> set[str]:
    return set(SYSTEM_TREES) - set(store.trees())


def _make_system_trees(store: OrderedStore) -> None:
    missing = _missing_trees(store)
    if not missing:
        return
    if store.read_only:
        raise StorageCorrupt(
            f"there is no tree {', '.join(sorted(missing))}: `isotone check` says what is wrong"
        )
    with store.transaction():
        for tree in sorted(_missing_trees(store)):  # another process may have created some of them
            store.create_tree(tree)
