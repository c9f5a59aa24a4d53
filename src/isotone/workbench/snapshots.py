"""The calls about snapshots: take and list them (also another database's), compare a table with one, put items back.

Snapshots are files (`snapshot_folder`), made by `snapshot_taking`. A comparison and its file are kept until newer ones
replace it, or the workbench ends. `restoring` restores the items that differ, and undoes that. Taking and comparing
write nothing to the engine, so safe mode allows them. The page never names a path.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

from isotone.backends.capabilities import Capabilities
from isotone.backends.embedded import Database
from isotone.errors import IsotoneError, UsageError
from isotone.moving import KeyDifference
from isotone.moving.table_making import apply_settings, differences, make_table, plan_table
from isotone.tables.definition import TableDefinition, read_definition
from isotone.tables.description import table_names
from isotone.tables.job_state import address_text
from isotone.tables.jobs import Job
from isotone.tables.pace import Pace
from isotone.tables.progress import Meter
from isotone.tables.threads import in_thread
from isotone.values.notation import item_text, value_text
from isotone.values.types import AttributeValue
from isotone.workbench.access import WriteAccess
from isotone.workbench.comparison import ALL, KINDS, NOW, DifferenceRow, Side, SnapshotComparison
from isotone.workbench.restoring import ItemToRestore, write_changes
from isotone.workbench.snapshot_folder import (
    SnapshotFile,
    SnapshotFolder,
    SnapshotTable,
    folder_for,
    new_id,
)
from isotone.workbench.snapshot_taking import (
    check_is_of,
    copy_tables,
    is_moment,
    open_file,
    take,
)
from isotone.workbench.source import Call, Source, text_in

_KEPT: Final = 4  # comparisons that are kept with their files
_MOST_ROWS: Final = 200
_SUMMARY: Final = 6  # attributes in a row's summary
_TEXT: Final = 120
_REFUSED_SHOWN: Final = 20
_SEARCHED: Final = 100_000  # keys that one call searches
_LOOK: Final = 0.02
_ANSWER_WAIT: Final = 0.5  # seconds that an answer waits for a job, because most are short
_NAME: Final = 100
_OVER: Final = ("failed", "stopped")

Answer = dict[str, Any]
Names = tuple[str, str, str]
"""The sides of a comparison: a snapshot, another one or `now`, and the table."""


@dataclass(kw_only=True)
class _Taking(Job[None]):
    """The snapshot that is being taken."""

    id: str
    name: str


@dataclass(kw_only=True)
class _PutBack(Job[None]):
    """The restoring of items, or its undoing."""

    undo: bool
    written: int = 0
    refused: int = 0
    refused_first: list[tuple[int, str]] = field(default_factory=list)
    """The numbers and keys of the first refused items."""
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True, eq=False)
class _OpenComparison(Job[SnapshotComparison]):
    """A comparison with its open files."""

    id: int
    names: Names
    at: float
    files: ExitStack = field(default_factory=ExitStack)
    definition: TableDefinition | None = None
    notes: list[str] = field(default_factory=list)
    is_gone: bool = False
    put_back: _PutBack | None = None
    reading: threading.Lock = field(default_factory=threading.Lock)

    @property
    def before(self) -> str:
        """The snapshot that is compared."""
        return self.names[0]

    @property
    def after(self) -> str:
        """The snapshot that it is compared with, or `now`."""
        return self.names[1]

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.names[2]

    @property
    def is_busy(self) -> bool:
        """Whether a thread works on it."""
        return self.is_running or (self.put_back is not None and self.put_back.is_running)

    def close(self) -> None:
        """Close its files, and delete its own file."""
        with self.reading:
            self.result = None
            self.files.close()


class Snapshots:
    """The snapshots of one workbench; `calls` are the calls of the page."""

    def __init__(
        self,
        source: Source,
        access: WriteAccess,
        capabilities: Callable[[], Capabilities],
        written: Callable[[str], object],
    ) -> None:
        self._source = source
        self._access = access
        self._capabilities = capabilities
        self._written = written
        given = source.snapshots
        self._folder = (
            folder_for(source.target, remote=source.remote)
            if given is None
            else SnapshotFolder(given)
        )
        self._taking: _Taking | None = None
        self._compared: dict[Names, _OpenComparison] = {}
        self._undoable: list[_OpenComparison] = []
        self._last = 0
        weakref.finalize(self, _close_all, self._compared, self._undoable)

    @property
    def calls(self) -> dict[str, Call]:
        """The calls by name."""
        return {
            "snapshots": self.snapshots,
            "snapshot_take": self.take,
            "snapshot_taking": self.taking,
            "snapshot_stop": self.stop,
            "snapshot_delete": self.delete,
            "comparison": self.comparison,
            "comparison_rows": self.rows,
            "comparison_item": self.item,
            "comparison_find": self.find,
            "comparison_stop": self.stop_comparison,
            "put_back": self.put_back,
            "put_back_progress": self.put_back_progress,
        }

    # Snapshots

    async def snapshots(self, given: Mapping[str, Any]) -> Answer:
        """All snapshots, and their folder."""
        return await in_thread(self._listed)

    async def take(self, given: Mapping[str, Any]) -> Answer:
        """Begin a snapshot: `{"name", "tables": [name, …]}`, or all tables."""
        name = str(given.get("name") or "").strip()
        tables = given.get("tables")
        if len(name) > _NAME:
            raise UsageError(
                f"a snapshot's name has up to {_NAME} characters, this one {len(name)}"
            )
        if tables is not None and not _are_names(tables):
            raise UsageError(f"tables={tables!r} is not a list of table names")
        if self._taking is not None and self._taking.is_running:
            raise UsageError("a snapshot is being taken already; wait for it, or stop it")
        taking = self._taking = _Taking(id=new_id(name), name=name)
        taking.start(self._take, taking, tables)
        return await _after_a_while(taking, lambda: _status_of_taking(taking))

    async def taking(self, given: Mapping[str, Any]) -> Answer:
        """The progress of the current or the last snapshot."""
        return {"taking": None if self._taking is None else _status_of_taking(self._taking)}

    async def stop(self, given: Mapping[str, Any]) -> Answer:
        """Stop the snapshot that is being taken; nothing of it is kept."""
        if self._taking is not None:
            self._taking.stop.set()
        return {}

    async def delete(self, given: Mapping[str, Any]) -> Answer:
        """Delete a snapshot: `{"id"}`. Comparisons with it end."""
        identity = text_in(given, "id")
        known = (*self._compared.values(), *self._undoable)
        uses = [each for each in known if identity in (each.before, each.after)]
        if any(each.put_back is not None and each.put_back.is_running for each in uses):
            raise UsageError(
                "items are being put back from this snapshot; wait for that, or stop it"
            )
        for each in uses:
            each.stop.set()
        while any(each.is_busy for each in uses):
            await asyncio.sleep(_LOOK)
        for each in uses:
            self._forget(each)
        await in_thread(_close, uses)
        await in_thread(self._delete, identity)
        return {}

    def _delete(self, identity: str) -> None:
        """Delete a snapshot; raises `UsageError` if another file is in the place of its own, or it cannot be read."""
        self._folder.find(identity)
        file = self._folder.file(identity)
        if file.exists() and file.stat().st_size:
            try:
                with self._opened(identity):
                    pass
            except IsotoneError as error:
                raise UsageError(
                    f"{file} is not deleted, as it may not be the file of this snapshot ({error}): "
                    "move it away, and delete the snapshot again"
                ) from error
        self._folder.delete(identity)

    def _listed(self) -> Answer:
        folder = self._folder
        found, unreadable = folder.all()
        shown = [_described(each, folder, self._source.target) for each in found]
        taking = self._taking
        return {
            "snapshots": shown,
            "unreadable": unreadable,
            "moment": is_moment(self._source.backend),
            "taking": None
            if taking is None or not taking.is_running
            else _status_of_taking(taking),
            "place": {
                "path": str(folder.path),
                "temporary": folder.is_temporary,
                "bytes": sum(each["bytes"] for each in shown),
                "free": folder.free(),
            },
        }

    def _take(self, taking: _Taking, tables: Sequence[str] | None) -> None:
        backend = self._source.backend
        names = table_names(backend) if tables is None else list(tables)
        if not names:
            raise UsageError("there is no table yet, so there is nothing to take a snapshot of")
        began = time.time()
        with self._folder.draft(taking.id) as file:
            found = take(backend, names, file, taking.report, taking.stop)
            self._folder.keep(
                SnapshotFile(
                    taking.id,
                    taking.name,
                    address_text(self._source.target) or self._source.target,
                    began,
                    time.time(),
                    is_moment(backend),
                    found,
                )
            )

    # Comparisons

    async def comparison(self, given: Mapping[str, Any]) -> Answer:
        """A comparison of a table: `{"from", "to", "table"}`, where `to` is a snapshot or `now`.

        `start` begins the comparison, `again` repeats it. Without them, returns the status of an existing one.
        """
        names = (text_in(given, "from"), text_in(given, "to"), text_in(given, "table"))
        found = self._compared.get(names)
        is_wanted = given.get("start") is True and (found is None or found.state in _OVER)
        if given.get("again") is True and (found is None or not found.is_busy):
            is_wanted = True
        if is_wanted:
            found, over = self._new(names)
            found.start(self._compare, found)
            await in_thread(_close, over)
        if found is None:
            return {"comparison": None}
        shown = found
        return await _after_a_while(shown, lambda: {"comparison": _status_of_comparison(shown)})

    async def rows(self, given: Mapping[str, Any]) -> Answer:
        """Part of a list of differences: `{"id", "list", "at", "count"}`; a list is all, a kind, or `=ATTRIBUTE`."""
        compared = self._ready(given)
        name, at, count = _list(given), _number(given, "at"), _number(given, "count")

        def read(result: SnapshotComparison) -> Answer:
            numbers = result.numbers(name, at, min(count, _MOST_ROWS))
            return {"rows": [_summary(row) for row in result.rows(numbers)]}

        return await in_thread(_reading, compared, read)

    async def item(self, given: Mapping[str, Any]) -> Answer:
        """One difference with both items: `{"id", "number"}`."""
        compared = self._ready(given)
        number = _number(given, "number")

        def read(result: SnapshotComparison) -> Answer:
            (row,) = result.rows([number])
            return {
                "number": row.number,
                "kind": row.kind,
                "key": row.key,
                "before": row.before,
                "after": row.after,
                "changed": list(_differing(row)),
            }

        return await in_thread(_reading, compared, read)

    async def find(self, given: Mapping[str, Any]) -> Answer:
        """The next difference whose key contains a text, among 100,000 keys: `{"id", "list", "text", "at"}`."""
        compared = self._ready(given)
        name, at = _list(given), _number(given, "at")
        text = text_in(given, "text").lower()

        def read(result: SnapshotComparison) -> Answer:
            found = result.find(name, text, at, _SEARCHED)
            end = at + _SEARCHED
            return {"place": found, "next": end if end < result.size_of(name) else None}

        return await in_thread(_reading, compared, read)

    async def stop_comparison(self, given: Mapping[str, Any]) -> Answer:
        """Stop a comparison, or a restoring: `{"id"}`."""
        compared = self._known(given)
        if compared.is_running:
            compared.stop.set()
        elif compared.put_back is not None:
            compared.put_back.stop.set()
        return {}

    def _new(self, names: Names) -> tuple[_OpenComparison, list[_OpenComparison]]:
        """A new comparison, which replaces the same one or the oldest; and the comparisons that must be closed."""
        replaced = self._compared.get(names)
        if replaced is None and len(self._compared) >= _KEPT:
            replaced = next((each for each in self._compared.values() if not each.is_busy), None)
            if replaced is None:
                raise UsageError(f"{_KEPT} comparisons are running; wait until one ends")
        over = [] if replaced is None else self._retire(replaced)
        self._last += 1
        compared = self._compared[names] = _OpenComparison(
            id=self._last, names=names, at=time.time()
        )
        return compared, over

    def _retire(self, compared: _OpenComparison) -> list[_OpenComparison]:
        """Remove a comparison, unless its last restoring can still be undone; returns those that must be closed."""
        del self._compared[compared.names]
        if compared.put_back is None:
            return [compared]
        self._undoable.append(compared)
        over = [each for each in self._undoable[:-_KEPT] if not each.is_busy]
        for each in over:
            self._undoable.remove(each)
        return over

    def _forget(self, compared: _OpenComparison) -> None:
        if compared in self._undoable:
            self._undoable.remove(compared)
        elif self._compared.get(compared.names) is compared:
            del self._compared[compared.names]

    def _compare(self, compared: _OpenComparison) -> SnapshotComparison:
        try:
            return self._differences(compared)
        except BaseException:
            compared.close()
            raise

    def _differences(self, compared: _OpenComparison) -> SnapshotComparison:
        backend, name = self._source.backend, compared.table
        earlier = self._folder.find(compared.before).tables.get(name)
        if compared.after == NOW:
            present = read_definition(backend, name)
            compared.is_gone = present is None
        else:
            later = self._folder.find(compared.after).tables.get(name)
            present = None if later is None else later.definition
        definition = present if earlier is None else earlier.definition
        if definition is None:
            raise UsageError(f"neither side has a table {name!r}")
        compared.definition = definition
        if earlier is not None and present is not None:
            compared.notes = differences(earlier.definition, present)
            if any(each.startswith("keys:") for each in compared.notes):
                raise UsageError(
                    f"the table {name!r} has other keys than in the snapshot, so its items cannot be compared: "
                    f"{compared.notes[0]}"
                )
        files = compared.files
        before = self._side(files, compared.before, None if earlier is None else name)
        file = files.enter_context(self._folder.draft(new_id("comparison")))
        own = files.enter_context(open_file(file))
        result = SnapshotComparison(own, definition)
        if compared.after != NOW:
            after = self._side(files, compared.after, None if present is None else name)
        elif present is None:
            after = Side(own, None)
        elif is_moment(backend):
            after = Side(cast(Database, backend), name)
        else:
            copy_tables(backend, {NOW: present}, own, compared.report, compared.stop)
            after = Side(own, NOW)
        keep = after.database is backend
        result.run(before, after, compared.report, compared.stop, keep_after=keep)
        return result

    def _side(self, files: ExitStack, identity: str, table: str | None) -> Side:
        file = self._folder.file(identity)
        # opening it would create an empty database
        if not file.is_file() or not file.stat().st_size:
            raise UsageError(
                f"{file} is missing or empty: delete this snapshot, or put its file back"
            )
        return Side(files.enter_context(self._opened(identity)), table)

    @contextmanager
    def _opened(self, identity: str) -> Iterator[Database]:
        """The open file of a snapshot; raises `UsageError` if it is another file than its description says."""
        with open_file(self._folder.file(identity)) as database:
            check_is_of(database, self._folder.find(identity).tables)
            yield database

    def _known(self, given: Mapping[str, Any]) -> _OpenComparison:
        number = given.get("id")
        known = (*self._compared.values(), *self._undoable)
        found = next((each for each in known if each.id == number), None)
        if found is None:
            raise UsageError("this comparison was closed; compare again")
        return found

    def _ready(self, given: Mapping[str, Any]) -> _OpenComparison:
        found = self._known(given)
        if found.state != "done":
            raise UsageError("this comparison is not complete")
        return found

    # Putting back

    async def put_back(self, given: Mapping[str, Any]) -> Answer:
        """Restore items: `{"id", "numbers": […]}` or `{"id", "list"}`; with `undo`, the other way round."""
        self._access.check("PutItem", {})
        compared = self._ready(given)
        if compared.after != NOW:
            raise UsageError("only the present can be changed; compare a snapshot with now")
        if compared.is_busy:
            raise UsageError("items are being put back already; wait for that, or stop it")
        numbers, name = given.get("numbers"), ALL if given.get("numbers") else _list(given)
        if numbers is not None and not _are_numbers(numbers):
            raise UsageError(f"numbers={numbers!r} is not a list of numbers of differences")
        job = compared.put_back = _PutBack(undo=given.get("undo") is True)
        job.start(self._put_back, compared, job, numbers and sorted(set(numbers)), name)
        return await _after_a_while(job, lambda: _status_of_put_back(job))

    async def put_back_progress(self, given: Mapping[str, Any]) -> Answer:
        """The progress of restoring: `{"id"}`."""
        job = self._known(given).put_back
        if job is None:
            raise UsageError("nothing was put back in this comparison")
        return _status_of_put_back(job)

    def _put_back(
        self, compared: _OpenComparison, job: _PutBack, numbers: Sequence[int] | None, name: str
    ) -> None:
        result, definition = compared.result, compared.definition
        assert result is not None
        assert definition is not None
        backend = self._source.backend
        of_items = result.size_of(name) if numbers is None else len(numbers)
        meter = Meter("put back", compared.table, of_items=of_items)
        with ExitStack() as at_the_end:
            at_the_end.callback(self._written, compared.table)
            if compared.is_gone and not job.undo:
                plan = plan_table(definition, compared.table, self._capabilities())
                make_table(backend, plan, sleep=job.stop.wait)
                job.notes = list(plan.missing)
                # Also after a stop: then the next comparison finds a table.
                at_the_end.callback(
                    lambda: job.notes.extend(apply_settings(backend, plan, sleep=job.stop.wait))
                )
            changes = _changes(result, numbers, name, undo=job.undo)
            for written in write_changes(backend, compared.table, changes, Pace(stop=job.stop)):
                for change, is_made in written:
                    job.written += is_made
                    job.refused += not is_made
                    if not is_made and len(job.refused_first) < _REFUSED_SHOWN:
                        job.refused_first.append((change.number, item_text(change.key)))
                meter.add(len(written))
                job.report(meter.progress())


def _changes(
    result: SnapshotComparison, numbers: Sequence[int] | None, name: str, *, undo: bool
) -> Iterator[ItemToRestore]:
    """The changes to write, read in parts."""
    size = result.size_of(name) if numbers is None else len(numbers)
    for at in range(0, size, _MOST_ROWS):
        part = (
            result.numbers(name, at, _MOST_ROWS)
            if numbers is None
            else numbers[at : at + _MOST_ROWS]
        )
        for row in result.rows(part):
            wanted, present = (row.after, row.before) if undo else (row.before, row.after)
            yield ItemToRestore(row.number, row.key, present, wanted)


def _close_all(compared: dict[Any, _OpenComparison], undoable: list[_OpenComparison]) -> None:
    for each in (*compared.values(), *undoable):
        if not each.is_busy:
            each.close()


def _close(comparisons: Sequence[_OpenComparison]) -> None:
    for each in comparisons:
        each.close()


def _reading(compared: _OpenComparison, read: Callable[[SnapshotComparison], Answer]) -> Answer:
    """Read from a comparison, which is not closed meanwhile."""
    with compared.reading:
        if compared.result is None:
            raise UsageError("this comparison was closed; compare again")
        return read(compared.result)


# Answers for the page


async def _after_a_while(job: Job[Any], status: Callable[[], Answer]) -> Answer:
    """The answer after a short wait, or as soon as the job is over."""
    until = time.monotonic() + _ANSWER_WAIT
    while job.is_running and time.monotonic() < until:
        await asyncio.sleep(_LOOK)
    return status()


def _status_of_taking(taking: _Taking) -> Answer:
    table = "" if taking.progress is None else taking.progress.table
    return {"id": taking.id, "name": taking.name, "table": table, **taking.status()}


def _described(snapshot: SnapshotFile, folder: SnapshotFolder, target: str) -> Answer:
    """A snapshot in the list. `foreign`: it was taken of another database than `target`, which uses the same folder."""
    return {
        "id": snapshot.id,
        "name": snapshot.name,
        "began": snapshot.began,
        "ended": snapshot.ended,
        "moment": snapshot.is_moment,
        "target": snapshot.target,
        "foreign": snapshot.target not in (target, address_text(target)),
        "account": next(map(_account_of, snapshot.tables.values()), ""),
        "file": str(folder.file(snapshot.id)),
        "bytes": folder.size(snapshot.id),
        "tables": [
            {"name": name, "items": table.items, "bytes": table.bytes}
            for name, table in sorted(snapshot.tables.items())
        ],
    }


def _account_of(table: SnapshotTable) -> str:
    """The account of a table: with other credentials the same address may lead to another one."""
    parts = table.definition.table.arn.split(":")
    return parts[4] if len(parts) > 4 else ""


def _status_of_comparison(compared: _OpenComparison) -> Answer:
    status = compared.status()
    result = compared.result
    counts = None if result is None or status["state"] != "done" else result.counts
    return {
        "id": compared.id,
        "table": compared.table,
        "from": compared.before,
        "to": compared.after,
        "at": compared.at,
        **status,
        "gone": compared.is_gone,
        "notes": compared.notes,
        "keys": [] if result is None else result.key_names,
        "counts": None
        if counts is None
        else {kind: getattr(counts, kind) for kind in (ALL, *KINDS, "same", "before", "after")},
        "attributes": []
        if counts is None
        else sorted(counts.attributes.items(), key=lambda each: -each[1]),
    }


def _status_of_put_back(job: _PutBack) -> Answer:
    return {
        **job.status(),
        "undo": job.undo,
        "written": job.written,
        "refused": job.refused,
        "refused_first": job.refused_first,
        "notes": job.notes,
    }


def _summary(row: DifferenceRow) -> Answer:
    """A row in one line: the differences of a changed item, the first attributes of any other."""
    attributes = _differing(row)
    shown = [name for name in attributes if name not in row.key]
    shown.sort(key=lambda name: name.startswith("_"))  # tags are the least useful
    return {
        "number": row.number,
        "kind": row.kind,
        "key": row.key,
        "attributes": [[name, *map(_short, attributes[name])] for name in shown[:_SUMMARY]],
        "more": max(0, len(shown) - _SUMMARY),
    }


def _differing(
    row: DifferenceRow,
) -> dict[str, tuple[AttributeValue | None, AttributeValue | None]]:
    """The attributes that differ, in the order of the item: fields stand before the keys that follow from them."""
    attributes = KeyDifference(row.key, row.before, row.after).attributes
    stored = {**(row.after or {}), **(row.before or {})}
    return {name: attributes[name] for name in stored if name in attributes}


def _short(value: AttributeValue | None) -> list[str] | None:
    """The type of a value, and the beginning of its text."""
    if value is None:
        return None
    ((code, content),) = value.items()
    if code in ("S", "B"):
        text = content
    elif code in ("SS", "NS", "BS"):
        text = f"{{{', '.join(content)}}}"
    else:
        text = value_text(value)
    return [code, text if len(text) <= _TEXT else f"{text[:_TEXT]}…"]


def _are_names(tables: Any) -> bool:
    return (
        isinstance(tables, list) and bool(tables) and all(isinstance(each, str) for each in tables)
    )


def _are_numbers(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(each) is int for each in numbers)


def _list(given: Mapping[str, Any]) -> str:
    name = text_in(given, "list")
    if name not in (ALL, *KINDS) and not name.startswith("="):
        raise UsageError(
            f"{name!r} is not a list of differences; use all, {', '.join(KINDS)} or =NAME"
        )
    return name


def _number(given: Mapping[str, Any], name: str) -> int:
    value = given.get(name)
    if type(value) is not int or value < 0:
        raise UsageError(f"{name}={value!r} is not a number; give 0 or more")
    return value
