"""GSI backfill: adds the items that are older than a new index to it, in sorted parts, resumable after a kill.

From the moment an index is recorded, every write keeps it up to date; the backfill adds the missing entries. It works
through the table in parts: it reads the items of a part, sorts their entries (`storage.sorting`), adds them in that
order, which is the fastest way to write a tree, and records the position. All of this happens in slices, so that other
work continues between them. Each part is four times as long as the one before, because sorting pays off more for longer
parts. A process that is killed loses only its current part.

An entry that is already in the index is newer than the item that was read, and stays. An entry that a write has removed
in the meantime is in `removed_entries`, and is not added.

Any process that has the file open can continue. Only one worker at a time fills an index: it holds a lease for a few
seconds, stored with the progress, and renews it while it works. Work without a valid lease is never committed.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from isotone.engine import removed_entries
from isotone.engine.engine import PROGRESS, Engine
from isotone.engine.index_entries import IndexEntry, TableIndex
from isotone.engine.items import replace_entry
from isotone.engine.layout import item_of, total_size
from isotone.engine.loaded_entries import LoadedEntries
from isotone.engine.slices import LONG, SECONDS, breathe, chunks, in_time
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import IndexOrVector, TableSchema
from isotone.errors import IsotoneError
from isotone.storage.sorting import KeyValue, NoRoomToSort, Sorter

log: logging.Logger = logging.getLogger("isotone")

FIRST_PART: Final = 1000  # items in the first part
_GROWTH: Final = 4  # how much longer each part is than the one before
_READ: Final = 250  # items read in one slice, at most
_ADDED: Final = 50  # entries added between two checks of the clock, at most
_BYTES: Final = 64 << 10  # bytes added between two checks of the clock
_LEASE: Final = 3.0  # seconds
_RENEWAL: Final = 1.0  # seconds after which a lease is renewed
# Seconds added to the lease for each entry to sort, because sorting cannot renew it
_TO_SORT: Final = 0.00002
_LONGEST_LEASE: Final = 3600.0  # seconds; if a lease ends later than this, a clock was changed
_TURN: Final = 0.02  # seconds of slices before other work gets its turn
_LOOK: Final = 0.01  # seconds between two checks of an index that another worker fills


class _Progress(msgspec.Struct, array_like=True):
    """All items of `table` before `reached` have their entries. `worker` holds the lease until `until`."""

    table: str
    reached: bytes = b""
    worker: str = ""
    until: float = 0.0

    def is_free_for(self, worker: str) -> bool:
        """Whether no other worker has the lease."""
        return self.worker in ("", worker) or not 0 <= self.until - time.time() < _LONGEST_LEASE


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Progress).decode


def begin(engine: Engine, table: str, tree: str) -> None:
    """Create the tree of a new index, and record that it must be filled."""
    engine.store.create_tree(tree)
    _save(engine, tree, _Progress(table))


def before_loading(schema: TableSchema, identity: str) -> TableSchema:
    """The schema of a new table that an import fills. Its indexes are filled afterwards."""
    return msgspec.structs.replace(
        schema,
        loading=identity,
        indexes=tuple(_creating(index) for index in schema.indexes),
        vectors=tuple(_creating(index) for index in schema.vectors),
    )


def after_loading(engine: Engine, table: StoredTable, loaded: LoadedEntries | None) -> bool:
    """Do a slice of filling the indexes of a table that now has all its items; False if they are filled.

    `loaded` are the entries of all items, if they are known.
    """
    if all(index.filled for index in table.indexes):
        return False
    if loaded is not None:
        _sorted_already.setdefault(engine, {}).update(loaded.sorters)
    with engine.home.store.background():
        begin_rest(engine, table.name)
        if not step(engine, table.name):
            time.sleep(_LOOK)  # another worker is filling them
    return True


def begin_rest(engine: Engine, name: str) -> None:
    """Start the backfill of those indexes of a loaded table that are neither filled nor being filled."""
    with engine.reading:
        is_done = not _not_begun(engine, name)
    if not is_done:
        with engine.writing_unsynced:
            for tree in _not_begun(engine, name):
                _save(engine, tree, _Progress(name))


def _not_begun(engine: Engine, name: str) -> list[str]:
    table = engine.catalog.find(name)
    unfilled = () if table is None else (index for index in table.indexes if not index.filled)
    return [index.tree for index in unfilled if not is_filling(engine, index.tree)]


def drop(engine: Engine, tree: str) -> None:
    """Drop a tree of a table, even while it is being filled."""
    engine.store.drop_tree(tree)
    engine.counts.drop(tree)
    engine.vectors.forget_tree(tree)
    engine.store.delete(PROGRESS, tree.encode())
    unused = _sorted_already.get(engine, {}).pop(tree, None)
    if unused is not None:
        unused.close()


def is_filling(engine: Engine, tree: str) -> bool:
    """Whether an index still lacks entries of items that are older than the index."""
    return _find(engine, tree) is not None


def pending(engine: Engine) -> bool:
    """Whether any index is still being filled, or notes of removed entries remain."""
    with engine.reading:
        first = next(engine.store.range(PROGRESS, b"", None), None)
        if first is None or not first[0].startswith(removed_entries.FIRST):
            return first is not None
        return removed_entries.are_old(engine)


def is_leased(engine: Engine) -> bool:
    """Whether other workers are filling indexes."""
    worker = _worker(engine)
    with engine.reading:
        return any(not progress.is_free_for(worker) for _, progress in _known(engine))


def step(engine: Engine, only: str | None = None) -> bool:
    """Do one turn of backfill work, only for the table `only` if given; False if there is none to do.

    A turn consists of slices. Each holds the lock for a fraction of a millisecond.
    """
    if not pending(engine):
        return False
    part = _next_part(engine, only)
    if part is None:
        return only is None and removed_entries.forget(engine)
    ends = time.monotonic() + _TURN
    try:
        while part.step(engine) and time.monotonic() < ends:
            breathe()
    except NoRoomToSort as error:
        log.warning("%s; until then fewer are sorted at once", error)
        _of_thread.parts.pop(engine).close(None)  # the next part is short again
    except BaseException:
        del _of_thread.parts[engine]
        raise
    return True


def finish(engine: Engine, table: StoredTable, tree: str) -> None:
    """Record that every item that belongs in an index has its entry."""
    engine.store.delete(PROGRESS, tree.encode())
    schema = table.schema
    if schema.ttl is not None and schema.ttl.tree == tree:
        filled = msgspec.structs.replace(schema.ttl, filled=True)
        engine.catalog.save(msgspec.structs.replace(schema, ttl=filled))
        return
    indexes = tuple(_active(index) if index.tree == tree else index for index in schema.indexes)
    vectors = tuple(_active(index) if index.tree == tree else index for index in schema.vectors)
    engine.catalog.save(msgspec.structs.replace(schema, indexes=indexes, vectors=vectors))


def _active(index: IndexOrVector) -> IndexOrVector:
    return msgspec.structs.replace(index, status="ACTIVE")


def _creating(index: IndexOrVector) -> IndexOrVector:
    return msgspec.structs.replace(index, status="CREATING")


def _find(engine: Engine, tree: str) -> _Progress | None:
    stored = engine.store.get(PROGRESS, tree.encode())
    return None if stored is None else _decode(stored)


def _save(engine: Engine, tree: str, progress: _Progress) -> None:
    engine.store.put(PROGRESS, tree.encode(), _encode(progress))


# Leases


class _ThreadPart(threading.local):
    """The part that this thread is working on, by engine."""

    def __init__(self) -> None:
        self.parts: WeakKeyDictionary[Engine, _BackfillPart] = WeakKeyDictionary()


_of_thread: Final = _ThreadPart()
_sorted_already: Final[WeakKeyDictionary[Engine, dict[str, Sorter]]] = WeakKeyDictionary()
"""The entries of all items of a table, by the index tree that they belong in."""
_names: Final[WeakKeyDictionary[Engine, str]] = WeakKeyDictionary()


def _name(engine: Engine) -> str:
    """A name that is unique among all engines that have the file open."""
    with engine.lock:
        name = _names.get(engine)
        if name is None:
            name = _names[engine] = os.urandom(8).hex()
            engine.at_close.callback(_leave, engine, name)
        return name


def _worker(engine: Engine) -> str:
    """A name for this thread that is unique among all workers on a file."""
    return f"{_name(engine)}.{threading.get_ident()}"


def _leave(engine: Engine, name: str) -> None:
    """End the leases of an engine's threads, so that other workers can continue at once."""
    with suppress(IsotoneError):  # the file cannot be used, so the leases expire by themselves
        with engine.reading:
            left = [each for each in _known(engine) if each[1].worker.startswith(name)]
        if left:
            with engine.writing_unsynced:
                for tree, progress in left:
                    _save(engine, tree, _Progress(progress.table, progress.reached))


def _known(engine: Engine) -> list[tuple[str, _Progress]]:
    rows = engine.store.range(PROGRESS, b"", removed_entries.FIRST)
    return [(tree.decode(), _decode(stored)) for tree, stored in rows]


def _next_part(engine: Engine, only: str | None) -> _BackfillPart | None:
    """The current part of this thread, or a new one; None if other workers hold the leases of all indexes."""
    worker = _worker(engine)
    with engine.reading:
        found = next(
            (
                (tree, progress)
                for tree, progress in _known(engine)
                if progress.is_free_for(worker) and only in (None, progress.table)
            ),
            None,
        )
    before = _of_thread.parts.pop(engine, None)
    if before is not None and before.is_next(found):
        part: _BackfillPart | None = before
    else:
        size = FIRST_PART if before is None else before.close(found)
        part = None if found is None else _begin_part(engine, worker, found[0], size)
    if part is not None:
        _of_thread.parts[engine] = part
    return part


def _begin_part(engine: Engine, worker: str, tree: str, size: int) -> _BackfillPart | None:
    """Take the lease of an index for its next part, unless another worker just did."""
    with engine.writing_unsynced:
        progress = _find(engine, tree)
        if progress is None or not progress.is_free_for(worker):
            return None
        progress.worker, progress.until = worker, time.time() + _LEASE
        _save(engine, tree, progress)
        entries = _sorted_already.get(engine, {}).pop(tree, None)
    return _BackfillPart(tree, progress, size, entries)


class _BackfillPart:
    """A part of a table whose entries are added together: first they are read, then they are added in order."""

    def __init__(
        self, tree: str, progress: _Progress, size: int, entries: Sorter | None = None
    ) -> None:
        self.tree = tree
        self.progress = progress
        self.size = size
        self.position = progress.reached
        self._process = os.getpid()
        self._left = size
        self._sorter = Sorter() if entries is None else entries
        self._is_read = self._is_last = entries is not None
        self._is_over = False
        self._seconds = SECONDS if entries is None else LONG
        self._entries: list[KeyValue] = []
        self._added = 0  # entries of this part that are added
        self._renewed = time.monotonic()

    def is_next(self, found: tuple[str, _Progress] | None) -> bool:
        """Whether this part is still to be done here. A forked process has only a copy, without the temporary file."""
        is_whole = self._process == os.getpid() and not self._is_over
        return is_whole and found == (self.tree, self.progress)

    def close(self, found: tuple[str, _Progress] | None) -> int:
        """End this part, done or not; returns how many items the next part should have."""
        self._sorter.close()
        is_next = found is not None and (found[0], found[1].reached) == (self.tree, self.position)
        return self.size * _GROWTH if is_next else FIRST_PART

    def step(self, engine: Engine) -> bool:
        """Do one slice of this part; False if the part is done."""
        if not self._is_read:
            self._read(engine)
        elif not self._is_added():
            self._add(engine)
        else:
            self._end(engine)
        return not self._is_over

    # Read

    def _read(self, engine: Engine) -> None:
        with engine.reading:
            if not self._is_ours(engine):
                return
            table, index = self._table(engine)
            records = list(self._items(engine, table))
        entries = []
        for key, record in records:
            entry = index.entry(item_of(record), key, record)
            if entry is not None:
                entries.append((entry.key, entry.record))
            breathe()
        self._sorter.add(entries)
        self._left -= len(records)
        if records:
            self.position = records[-1][0] + b"\x00"
        self._is_last = not records
        self._is_read = self._is_last or self._left == 0
        to_sort = _TO_SORT * len(self._sorter) if self._is_read else 0.0
        if to_sort > _RENEWAL or time.monotonic() - self._renewed > _RENEWAL:
            with engine.writing_unsynced:
                self._renew(engine, to_sort)

    def _items(self, engine: Engine, table: StoredTable) -> Iterator[tuple[bytes, bytes]]:
        """The next items. Nothing else refers to the iterator, so its cursor closes with the last item."""
        low, most = self.position, min(_READ, self._left)
        return in_time(engine.store.range(table.tree, low, None, on_damage=engine.log_damage), most)

    def _is_ours(self, engine: Engine) -> bool:
        """Whether this worker still holds the lease and the index still exists. If not, this part ends."""
        if _find(engine, self.tree) != self.progress:
            self._is_over = True
        return not self._is_over

    def _table(self, engine: Engine) -> tuple[StoredTable, TableIndex]:
        table = engine.catalog.find(self.progress.table)
        assert table is not None
        return table, next(index for index in table.indexes if index.tree == self.tree)

    def _renew(self, engine: Engine, more: float = 0.0) -> None:
        """Renew the lease, unless it is lost, with `more` extra seconds."""
        if self._is_ours(engine):
            self.progress.until = time.time() + _LEASE + more
            _save(engine, self.tree, self.progress)
            self._renewed = time.monotonic()

    # Add

    def _is_added(self) -> bool:
        if self._added == len(self._entries):
            self._entries, self._added = self._sorter.take(), 0
        return not self._entries

    def _add(self, engine: Engine) -> None:
        with engine.writing_unsynced:
            if not self._is_ours(engine):
                return
            _, index = self._table(engine)
            longer = round(self._seconds / SECONDS)  # a longer slice checks the clock less often
            groups = chunks(self._entries, _ADDED * longer, _BYTES * longer, self._added)
            for some in in_time(groups, seconds=self._seconds):
                _add(engine, index, some)
                self._added += len(some)
            if time.monotonic() - self._renewed > _RENEWAL:
                self._renew(engine)

    def _end(self, engine: Engine) -> None:
        with engine.writing_unsynced:
            if not self._is_ours(engine):
                return
            if self._is_last:
                finish(engine, self._table(engine)[0], self.tree)
            else:
                self.progress.reached = self.position
                _save(engine, self.tree, self.progress)
        self._is_over = True
        if self._is_last:
            engine.store.sync()


def _add(engine: Engine, index: TableIndex, entries: Sequence[KeyValue]) -> None:
    """Add those entries that are neither in the index nor removed since they were read."""
    removed = removed_entries.between(engine, index.tree, entries[0][0], entries[-1][0])
    if removed:
        entries = [each for each in entries if each[0] not in removed]
    if index.searched or not _add_new(engine, index.tree, entries):
        for key, record in entries:
            if engine.store.get(index.tree, key) is None:
                replace_entry(engine, index, None, IndexEntry(key, record))


def _add_new(engine: Engine, tree: str, entries: Sequence[KeyValue]) -> bool:
    """Add new entries at once; False, with nothing added, if one of them is already there."""
    with engine.store.transaction() as attempt:
        if engine.store.add(tree, entries) < len(entries):
            attempt.rollback()
            return False
    engine.counts.add(tree, len(entries), total_size([record for _, record in entries]))
    return True
