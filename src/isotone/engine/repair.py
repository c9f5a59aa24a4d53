"""`isotone repair`: makes a new file of the rows that storage/salvage reads; decides which are kept, and which made again.

Indexes and counts are rebuilt. The source is never opened for writing: it is first copied, with its log, next to the new file. The rows of the copy are
read page by page (`storage.salvage`). Items, streams, histories and backups are kept as they are. Indexes, collection
sizes and counts follow from the items, so they are deleted and made again. Finally the new file is checked and gets its
name. An interrupted repair leaves no new file.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from isotone.engine import backfill, backups, damage, history, integrity, streams, views
from isotone.engine.catalog import CATALOG
from isotone.engine.engine import PROGRESS, SYSTEM_TREES, Engine, is_of_region
from isotone.engine.items import replace_entry
from isotone.engine.layout import item_of, size_of
from isotone.engine.stream_records import position_of
from isotone.engine.table_indexes import StoredTable
from isotone.engine.tree_counts import COUNTS
from isotone.errors import StorageBusy, UsageError
from isotone.folder_sync import sync_folder
from isotone.output_paths import OutputPath, check_outputs
from isotone.storage import salvage
from isotone.storage.file import PAGE_SIZE
from isotone.storage.log_check import alone
from isotone.storage.log_frames import has_log, target_of
from isotone.storage.sqlite import SQLiteStore

_LOGS: Final = (
    "-wal",
    "-journal",
)  # files that SQLite keeps next to a database, and would apply when it opens it
_INDEX: Final = ("-shm",)
_ATTEMPTS: Final = 20
_TICKS: Final = 0.02  # seconds; several ticks of a file system's time stamps

Lost = dict[str, Any]
"""What could not be saved, for the report: `what`, and `table`, `key`, `page`, … as far as they are known."""


class Repaired(msgspec.Struct):
    """The result of a repair: the number of saved items by table, what was lost, and what is still wrong.

    `rebuilt` counts damaged entries of indexes, sizes and counts; they are made again, so nothing is lost.
    """

    items: dict[str, int] = {}
    lost: list[Lost] = []
    rebuilt: list[Lost] = []
    problems: list[str] = []


def repair(
    file: str, target: str, progress: Callable[[int, int], object] | None = None
) -> Repaired:
    """Save the readable contents of a damaged file in a new file; the source is not changed.

    Raises `UsageError` if the source is missing or the target exists. `progress` is called with the pages read and
    their total number.
    """
    if not Path(file).is_file():
        raise UsageError(f"there is no file {file}")
    if Path(file).stat().st_size < salvage.FIRST_HEADER and not has_log(file):
        raise UsageError(
            f"{file} is shorter than the header of a database: there is nothing to save"
        )
    check_outputs(OutputPath("the target", target), inputs={"the damaged file": file})
    _check_is_free(target)
    result = Repaired()
    with _work_folder(target) as folder:
        copy, made = str(folder / "source.db"), str(folder / "new.db")
        _copy(file, copy)
        lost = _save_rows(file, copy, made, progress, result)
        engine = Engine(SQLiteStore(made, durability="process"))
        try:
            for each in list(engine.regions.values()):
                _rebuild(each, result)
            for row in lost:
                is_rebuilt = _is_rebuilt(engine, row)
                (result.rebuilt if is_rebuilt else result.lost).append(_described(engine, row))
            for each in list(engine.regions.values()):
                result.problems += integrity.check(each)
        finally:
            engine.close()
        _publish(made, target)
    return result


def _copy(file: str, copy: str) -> None:
    """Copy a file as it is at one moment, with its logs and, if nobody has it open, the index of its log (-shm).

    If the file is open in this process, closing the index would release SQLite's locks. Raises `StorageBusy` if others
    keep writing to the file: its pages and its logs would then come from different moments.
    """
    source = target_of(file)
    for _ in range(_ATTEMPTS):
        with alone(source) as is_alone:
            before = [] if is_alone else _state_at_rest(source)
            if before is None:
                continue
            for end in (*_LOGS, *(_INDEX if is_alone else ()), ""):
                Path(f"{copy}{end}").unlink(missing_ok=True)
                if Path(f"{source}{end}").exists():
                    shutil.copyfile(f"{source}{end}", f"{copy}{end}")
        if is_alone or before == _state(source):
            return
    raise StorageBusy(f"another process is writing to {file}: stop it, then repair the file")


def _state_at_rest(source: str) -> list[tuple[int, ...]] | None:
    """A fingerprint of a file and its logs that any later write changes; None if they are being written now."""
    before = _state(source)
    time.sleep(_TICKS)  # within one tick, a second write may get the same time stamp
    return before if before == _state(source) else None


def _state(source: str) -> list[tuple[int, ...]]:
    found = [Path(f"{source}{end}") for end in ("", *_LOGS)]
    states = [each.stat() for each in found if each.exists()]
    return [(each.st_ino, each.st_size, each.st_mtime_ns) for each in states]


def _check_is_free(target: str) -> None:
    """Raise `UsageError` if the new file already exists, or a log that SQLite would apply to it."""
    for taken in (target, *(f"{target}{end}" for end in _LOGS)):
        if os.path.lexists(taken):
            raise UsageError(f"{taken} exists; give the path of a file that does not")


@contextmanager
def _work_folder(target: str) -> Iterator[Path]:
    path = Path(target).absolute()
    folder = Path(tempfile.mkdtemp(prefix=f"{path.name}.repair-", dir=path.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _publish(made: str, target: str) -> None:
    """Make the new file durable and give it its name."""
    descriptor = os.open(made, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    _check_is_free(target)  # somebody may have created a file there meanwhile
    Path(made).rename(target)
    sync_folder(Path(target).absolute().parent)


def _save_rows(
    source: str,
    copy: str,
    made: str,
    progress: Callable[[int, int], object] | None,
    result: Repaired,
) -> list[salvage.LostRow]:
    """Write each trustworthy row to a new file; returns the damaged rows.

    `source` is the file that errors name, `copy` the one that is read.
    """
    lost: list[salvage.LostRow] = []
    found = salvage.prepare(copy)
    if not found.trees and not salvage.begins_as_ours(copy):
        raise UsageError(f"{source} is no database of Isotone: there is nothing to save")
    pages = max(1, Path(copy).stat().st_size // PAGE_SIZE)
    store = SQLiteStore(made, durability="none")
    try:
        with store.transaction():
            for tree in found.trees:
                store.create_tree(tree)
        batch: dict[str, list[tuple[bytes, bytes]]] = {}
        for row in salvage.rows(copy, found):
            if isinstance(row, salvage.SavedRow):
                batch.setdefault(row.tree, []).append((row.key, row.value))
            elif isinstance(row, salvage.LostRow):
                lost.append(row)
            else:
                _write(store, batch)
                if progress is not None:
                    progress(row, pages)
        _write(store, batch)
        for tree in found.old:
            for entry in salvage.rows_without_sums(copy, tree):
                if isinstance(entry, salvage.LostRow):
                    lost.append(entry)
                elif _HAS_ITEMS.fullmatch(tree) and damage.item_in(entry[1]) is None:
                    lost.append(salvage.LostRow(0, tree, entry[0]))
                else:
                    batch.setdefault(tree, []).append(entry)
                    if len(batch[tree]) == _SLICE:
                        _write(store, batch)
            _write(store, batch)
    finally:
        store.close()
    result.lost += [{"what": note} for note in found.notes]
    if progress is not None:
        progress(pages, pages)
    return lost


def _write(store: SQLiteStore, batch: dict[str, list[tuple[bytes, bytes]]]) -> None:
    if batch:
        with store.transaction():
            for tree, entries in batch.items():
                store.add(tree, entries)
        batch.clear()


def _is_rebuilt(engine: Engine, row: salvage.LostRow) -> bool:
    """Whether a damaged row can be rebuilt from items: an index entry, a collection size, or a count."""
    if row.what is not None or row.tree is None:
        return False
    name, role = engine.role_of(row.tree)
    if role is None or role.table is None:
        return name == COUNTS
    return role.of_index is not None or name == role.table.collections


def _described(engine: Engine, row: salvage.LostRow) -> Lost:
    """A lost row for the report."""
    where: Lost = {"page": row.page} if row.page else {}
    if row.what is not None:
        return {"what": row.what, **where}
    if row.tree is None:
        return {"what": "a row that cannot be read", **where}
    name, role = engine.role_of(row.tree)
    error = damage.describe(role, "", name, row.key)
    if role is None:
        what = f"an entry of {name}"
    elif role.of_index is not None:
        what = "an index entry"
    else:
        what = "an item" if role.has_items else role.text
    return {"what": what, "table": error.table, "key": error.key, **where}


# Rebuild the rest


_SLICE = 1000  # items in one transaction
_HAS_ITEMS = re.compile(r"(region_\w+__)?[tb]\d+")
_NUMBER = re.compile(r"[a-z](\d+)")


def _rebuild(engine: Engine, result: Repaired) -> None:
    """Rebuild everything that follows from items, and report what is missing."""
    _drop_unclaimed(engine, result)
    with engine.writing:
        _take_numbers(engine)
        for tree, _ in list(engine.store.range(PROGRESS, b"", None)):
            engine.store.delete(PROGRESS, tree)  # no backfill remains to be done
    for table in [*engine.catalog, *engine.catalog.creating.values()]:
        before = engine.counts.of(table.tree)[0]
        saved = _rebuild_table(engine, table)
        result.items[table.name] = result.items.get(table.name, 0) + saved
        if before and before != saved:
            result.lost.append(
                {"what": "items", "table": table.name, "had": before, "saved": saved}
            )
    with engine.writing:
        for stream in streams.known(engine):
            _set_sequence(engine, stream)
        for backup in backups.known(engine):
            _correct_backup(engine, backup, result)


def _drop_unclaimed(engine: Engine, result: Repaired) -> None:
    """Drop the trees that belong to no table, stream or backup. Items of a lost table are reported."""
    known = {*SYSTEM_TREES, *(stream.tree for stream in streams.known(engine))}
    for table in (*engine.catalog, *engine.catalog.creating.values()):
        known.update(table.trees)
    for view in views.opened(engine):
        known.update(views.trees(view))
    known.update(backup.tree for backup in backups.known(engine))
    for tree in engine.store.trees():
        if tree in known or is_of_region(tree):
            continue
        if re.fullmatch(r"t\d+", tree):
            for _, record in engine.store.range(tree, b"", None):
                lost = {
                    "what": "an item whose table is lost",
                    "tree": tree,
                    "item": item_of(record),
                }
                result.lost.append(lost)
        with engine.writing:
            engine.store.drop_tree(tree)


def _correct_backup(engine: Engine, backup: backups.Backup, result: Repaired) -> None:
    """Correct the number of items of a backup."""
    if backup.tree not in engine.store.trees():
        engine.store.create_tree(backup.tree)
    if backup.view is not None:
        return  # it is still being made
    sizes = [size_of(record) for _, record in engine.store.range(backup.tree, b"", None)]
    if (backup.items, backup.size) == (len(sizes), sum(sizes)):
        return
    table = backup.table.name
    lost = {"table": table, "backup": backup.name, "had": backup.items, "saved": len(sizes)}
    result.lost.append({"what": "items of a backup", **lost})
    backups.save(engine, msgspec.structs.replace(backup, items=len(sizes), size=sum(sizes)))


def _take_numbers(engine: Engine) -> None:
    """Make sure that names of existing trees are not used again."""
    there = [int(name[1]) for tree in engine.store.trees() if (name := _NUMBER.match(tree))]
    taken = max([int(engine.store.get(CATALOG, b"\x00trees") or b"0"), *there])
    engine.store.put(CATALOG, b"\x00trees", str(taken).encode())


def _rebuild_table(engine: Engine, table: StoredTable) -> int:
    derived = [index.tree for index in table.indexes]
    derived += [] if table.collections is None else [table.collections]
    with engine.writing:
        there = set(engine.store.trees())
        for tree in derived:
            if tree in there:
                engine.store.drop_tree(tree)
            engine.store.create_tree(tree)
            engine.counts.drop(tree)
        for tree in table.trees:
            if tree not in there and tree not in derived:
                engine.store.create_tree(tree)
        engine.counts.drop(table.tree)
        if table.history is not None:
            _set_history_count(engine, table.history)
    low: bytes | None = b""
    items = 0
    while low is not None:
        with engine.writing:
            low, saved = _rebuild_slice(engine, table, low)
            items += saved
    for index in table.indexes:
        if not index.filled:
            with engine.writing:
                backfill.finish(engine, engine.catalog.find(table.name) or table, index.tree)
    return items


def _rebuild_slice(engine: Engine, table: StoredTable, low: bytes) -> tuple[bytes | None, int]:
    sizes: dict[bytes, int] = {}
    saved = 0
    entries = engine.store.range(table.tree, low, None)
    records = [entry for entry, _ in zip(entries, range(_SLICE), strict=False)]
    for key, record in records:
        item = item_of(record)
        saved += 1
        engine.counts.add(table.tree, 1, size_of(record))
        for index in table.indexes:
            entry = index.entry(item, key, record)
            if entry is not None:
                replace_entry(engine, index, None, entry)
        if table.collections is not None:
            prefix = table.keyspace.prefix([item[table.schema.keys.partition[0].name]])
            sizes[prefix] = sizes.get(prefix, 0) + size_of(record)
    for prefix, size in sizes.items():
        assert table.collections is not None
        before = int.from_bytes(engine.store.get(table.collections, prefix) or b"", "big")
        engine.store.put(table.collections, prefix, (before + size).to_bytes(8, "big"))
    return (records[-1][0] + b"\x00" if len(records) == _SLICE else None), saved


def _set_history_count(engine: Engine, tree: str) -> None:
    """The count of a history stores its latest sequence number and time."""
    latest = next(engine.store.range(tree, b"", None, reverse=True), None)
    if latest is None:
        return
    time, number = history.time_of(latest[0]), int.from_bytes(latest[0][8:], "big")
    known = engine.counts.of(tree)
    engine.counts.add(tree, max(0, number - known[0]), max(0, time - known[1]))


def _set_sequence(engine: Engine, stream: streams.Stream) -> None:
    """The count of a stream stores its latest sequence number, which must never be used again."""
    if stream.tree not in engine.store.trees():
        engine.store.create_tree(stream.tree)
    numbers = [position_of(key)[1] for key, _ in engine.store.range(stream.tree, b"", None)]
    numbers += [shard.last or shard.first for shard in streams.shards(engine, stream)]
    missing = max(numbers, default=0) - engine.counts.of(stream.tree)[0]
    if missing > 0:
        engine.counts.add(stream.tree, missing, 0)
