"""Imports items from a file, standard input or a folder of AWS's exports; continues with its counts (bad rows).

    isotone.moving.import_items("orders.jsonl.gz", "shop.db", "Orders", key="customer", sort_key="placed_at")
    isotone.moving.import_items("exports/", "dynamodb://eu-west-1", "Orders", bad_rows="bad.jsonl")

Rows are read in chunks. The rows of a chunk are written in parallel, but rows with the same key by one thread, in
order. Then the position after the chunk is saved (`job_state`). A killed import repeats at most one chunk, and
repeating its puts and deletes has the same result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from isotone.backends.addresses import file_of
from isotone.backends.capabilities import Capabilities
from isotone.backends.interface import Backend
from isotone.backends.opening import Target, engine_of
from isotone.errors import ApiError, UsageError
from isotone.moving.bad_rows import BadRows
from isotone.moving.endpoints import opened
from isotone.moving.file_names import Place, table_file
from isotone.moving.input_files import Input, InputRow, check_place, open_input
from isotone.moving.row_checks import RowChecks
from isotone.moving.table_making import (
    TablePlan,
    apply_settings,
    make_table,
    plan_table,
    wait_until_active,
)
from isotone.moving.target_checks import KEPT_KEYS, check_written_items, same_table
from isotone.output_paths import STANDARD, OutputPath, check_outputs
from isotone.tables.batches import BatchEntry, BatchWriter, delete, put
from isotone.tables.definition import TableDefinition, read_definition
from isotone.tables.description import KeyDescription, KeyElement, description_of
from isotone.tables.job_state import JobState, address_text, file_text, state_output
from isotone.tables.jobs import Reporter, check_number, run_async, silent, state_of
from isotone.tables.pace import Pace, Stopped
from isotone.tables.progress import Meter, Progress, Report
from isotone.values.types import Item

_WORKERS: Final = 8  # threads that write to a server
_ROWS: Final = 2000  # rows of a chunk for a database in this process
_SENT_ROWS: Final = 1000  # rows of a chunk for a server
_KEY_TYPES: Final = ("S", "N", "B")


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: the numbers of rows that were written, deleted, and bad.

    If it was stopped, `is_complete` is false. `missing` says which parts of the table's description the target does not
    support.
    """

    progress: Progress
    deleted: int = 0
    bad: int = 0
    is_complete: bool = False
    state: Path | None = None
    missing: tuple[str, ...] = ()

    @property
    def items(self) -> int:
        """How many items were written."""
        return self.progress.items


class _ImportState(msgspec.Struct):
    """The saved state of an import."""

    fingerprint: str
    form: str
    position: Any = None
    items: int = 0
    deleted: int = 0
    bad: int = 0
    bad_size: int = 0  # bytes of the file of bad rows
    bad_sum: int | None = None  # and their CRC
    types: dict[str, str] | None = None  # of CSV columns
    write_units: float = 0.0
    settings: bool = False  # whether to enable expiry, tags and the stream at the end
    identity: str = ""  # of the table, so that a new table of the same name gets all rows
    # keys of the items that were put last
    written: list[Item] = msgspec.field(default_factory=list)


def import_items(
    source: Place,
    target: Target,
    table: str,
    *,
    format: str | None = None,  # noqa: A002 - the word of the field
    types: Mapping[str, str] | None = None,
    key: str | None = None,
    sort_key: str | None = None,
    bad_rows: str | PathLike[str] | None = None,
    workers: int | None = None,
    write_units: float | None = None,
    state: str | PathLike[str] | None = None,
    restart: bool = False,
    progress: Report | None = None,
    on_complete: Callable[[Imported], object] | None = None,
    stop: threading.Event | None = None,
) -> Imported:
    """Write the items of a file, of standard input (`-`), or of a folder with exports into a table.

    The name of the file determines its format, as for `export_items`; `format` overrides it. A file of JSON lines may
    have plain items or DynamoDB JSON. `types` are the types of CSV columns, such as `{"total": "N"}`; they override the
    header. In a folder with manifests, it reads the full export, then the incremental ones in the order of their times.

    A missing table is created when the first row fits it: with `key` and `sort_key` (`"total:N"` is a number, `:B`
    binary), or from the description that `export_items(…, with_table=True)` wrote. In an existing table, items with
    equal keys are replaced.

    The first bad row raises `BadRow`; everything before it is written. With `bad_rows`, bad rows are written to this
    file, one JSON object per line, and the import continues; an existing file is replaced. The same call continues an
    interrupted import; `restart` begins again. `write_units` is a budget of capacity units a second. `on_complete` is
    called with the result of a complete import before its state is deleted. `stop` ends it early, from another thread.

    Cost: one write for each row, in batches.
    Raises `UsageError` for what cannot be read, or a missing table without a key; `InProgress` if another process is at
    the same import.

        import_items("orders.jsonl.gz", "shop.db", "Orders")
    """
    check_number("workers", workers, "threads")
    check_place(source, format)  # before a file is created
    check_outputs(
        None if bad_rows is None else OutputPath("--bad-rows (bad_rows=)", bad_rows),
        state_output(state),
        inputs={
            "the source": None if fspath(source) == STANDARD else source,
            "the target": file_of(target),
        },
    )
    bad = BadRows(bad_rows)
    stop = stop or threading.Event()
    with ExitStack() as stack:
        backend = stack.enter_context(opened(target))
        job = stack.enter_context(
            state_of("import", file_text(source), address_text(target), table, path=state)
        )
        if restart:
            job.drop(*job.names)
        described = _described(source, table, engine_of(target).identify())
        plan = _plan(backend, described, table, key, sort_key)
        description, identity = _existing(backend, table) if plan is None else (plan.request, "")
        checks = RowChecks(description)
        rows = open_input(source, format, types or {}, checks)
        stack.callback(rows.close)
        entry = _continued(
            job,
            rows,
            _ImportState(
                rows.fingerprint, format or "", identity=identity, types=dict(types or {})
            ),
            table,
        )

        def make() -> None:
            if plan is None:
                return
            entry.identity = make_table(backend, plan).table.identity
            if plan is described:
                entry.settings = True
                job.set(table, entry)  # a continued run finds the table

        pace = Pace(write_units, stop=stop)
        check_written_items(backend, table, entry.written, pace, job="import")
        work = _Import(backend, table, job, entry, checks, pace, workers, make)
        with same_table(backend, table, lambda: entry.identity, job="import"):
            done = work.run(rows, bad, progress or silent)
        missing = list(described.missing) if entry.settings and described is not None else []
        if done.is_complete and entry.settings and described is not None:
            missing += apply_settings(backend, described)
        done = replace(done, missing=tuple(missing))
        if done.is_complete:
            job.end(lambda: (on_complete or silent)(done), table)
        return done


async def aimport_items(source: Place, target: Target, table: str, **options: Any) -> Imported:
    """`import_items` in a thread, for async programs. If it is cancelled, it stops, and can be continued.

    await aimport_items("orders.jsonl", "http://localhost:8000", "Orders")
    """
    return await run_async(import_items, source, target, table, **options)


# The table and the state


def _plan(
    backend: Backend, described: TablePlan | None, table: str, key: str | None, sort_key: str | None
) -> TablePlan | None:
    """The plan for creating the table; None if it exists."""
    found = read_definition(backend, table)
    wanted = None if key is None else _plan_of_keys(table, key, sort_key)
    if found is not None:
        if wanted is not None:
            _check_keys(found, wanted)
        return None
    if wanted is not None:
        return wanted
    if described is None:
        raise UsageError(
            f"there is no table {table}; --key and --sort-key (key=, sort_key=) make it, or the "
            "description that isotone export --with-table writes"
        )
    return described


def _existing(backend: Backend, table: str) -> tuple[Mapping[str, Any], str]:
    """The description and the identity of an existing table, once it is active."""
    found = wait_until_active(backend, table)
    return found.description, found.table.identity


def _described(source: Place, table: str, capabilities: Capabilities) -> TablePlan | None:
    """The plan for the table that is described beside its items; None without a description."""
    path = table_file(source)
    if fspath(source) == STANDARD or not path.is_file():
        return None
    try:
        definition = msgspec.json.decode(path.read_bytes(), type=TableDefinition)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path} is not the description of a table: {error}") from None
    return plan_table(definition, table, capabilities)


def _plan_of_keys(table: str, key: str, sort_key: str | None) -> TablePlan:
    if "," in key and sort_key is None and _typed(key)[0] == key:
        first, _, second = key.partition(",")
        raise UsageError(
            f"--key (key=) {key!r} is one attribute: write --key {first} --sort-key {second}, or {key}:S if the name has a comma"
        )
    sort = () if sort_key is None else (_typed(sort_key),)
    declared = KeyDescription((_typed(key),), sort).request
    request = {"TableName": table, **declared, "BillingMode": "PAY_PER_REQUEST"}
    return TablePlan(table, request, None, None, (), is_protected=False)


def _check_keys(found: TableDefinition, wanted: TablePlan) -> None:
    key = found.table.key
    if key != description_of(wanted.request).key:
        shown = ", ".join(f"{name}:{code}" for name, code in key.parts)
        raise UsageError(
            f"table {found.name} exists with another key, {shown}; leave out --key and --sort-key (key=, sort_key=), "
            "or give another table"
        )


def _typed(text: str) -> KeyElement:
    name, separator, code = text.rpartition(":")
    return KeyElement(name, code) if separator and code in _KEY_TYPES else KeyElement(text, "S")


def _continued(job: JobState, rows: Input, new: _ImportState, table: str) -> _ImportState:
    """The state of an earlier run over the same files into the same table, positioned there; or the new state."""
    entry = job.get(table, _ImportState)
    if entry is None or (entry.form, entry.identity) != (new.form, new.identity):
        return new
    if not f"{new.fingerprint} ".startswith(f"{entry.fingerprint} "):  # before, it was shorter
        return new
    if entry.types not in (None, new.types):  # states of earlier versions have no types
        return new
    if entry.position is not None:
        rows.skip_to(entry.position)
    return entry


# Rows


class _Checked(NamedTuple):
    """A row that fits the table: its key, and its entry in a batch."""

    key: tuple[str, ...]
    entry: BatchEntry
    row: InputRow


class _Import:
    """One import: its target and its progress."""

    def __init__(
        self,
        backend: Backend,
        table: str,
        state: JobState,
        entry: _ImportState,
        checks: RowChecks,
        pace: Pace,
        workers: int | None,
        make_table: Callable[[], None],
    ) -> None:
        is_local = hasattr(backend, "send_many")
        self._workers = workers or (1 if is_local else _WORKERS)
        self._rows = _ROWS if is_local else _SENT_ROWS
        self._writer = BatchWriter(backend, table, pace, shared_by=self._workers)
        self._table = table
        self._state = state
        self._entry = entry
        self._checks = checks
        self._meter = Meter("import", table, items=entry.items, write_units=entry.write_units)
        self._lock = threading.Lock()
        self._make_table: Callable[[], None] | None = make_table
        self._chunk: dict[tuple[str, ...], _Checked] = {}  # the chunk that is being written

    def run(self, rows: Input, bad: BadRows, report: Report) -> Imported:
        is_complete = False
        bad.open(self._entry.bad_size, self._entry.bad_sum)
        try:
            self._import(rows, bad, report)
            rows.check_unchanged()
            if not self._entry.bad:
                self._need_table()  # even if the input has no rows
            is_complete = True
        except Stopped:
            pass
        finally:
            bad.close()
        done = self._meter.progress(is_over=is_complete)
        report(done)
        entry = self._entry
        state = self._state.path if rows.fingerprint else None
        return Imported(done, entry.deleted, entry.bad, is_complete, state)

    def _import(self, rows: Input, bad: BadRows, report: Report) -> None:
        reporter = Reporter(report, self._meter)
        with ThreadPoolExecutor(self._workers, "isotone-import") as pool:
            chunk = self._read(rows)
            while chunk is not None:
                position = rows.position
                writing = self._start(pool, chunk, bad)
                try:
                    # The next chunk is read while this one is being written.
                    following = None if bad.failure else self._read(rows)
                finally:
                    refused = self._finish(writing)
                for row, reason in refused:
                    bad.add(row, reason)
                self._note_written(refused)
                if bad.failure is not None:
                    raise bad.failure
                self._save(position, bad)
                chunk = following
                self._estimate(rows)
                reporter.tick(now=chunk is None)

    def _read(self, rows: Input) -> list[InputRow] | None:
        return None if rows.ended else rows.read(self._rows)

    def _estimate(self, rows: Input) -> None:
        share = rows.share
        if share:
            self._meter.of_items = round(self._entry.items / share)

    def _save(self, position: Any, bad: BadRows) -> None:
        entry = self._entry
        entry.position, entry.bad, entry.bad_size = position, entry.bad + bad.taken(), bad.sync()
        entry.bad_sum = bad.checksum
        self._state.set(self._table, entry)

    def _start(
        self, pool: ThreadPoolExecutor, chunk: list[InputRow], bad: BadRows
    ) -> list[Future[list[tuple[InputRow, str]]]]:
        """Check the rows of a chunk, and begin to write those that fit."""
        rows: dict[tuple[str, ...], _Checked] = {}
        for row in chunk:
            try:
                checked = self._checked(row)
            except ValueError as error:
                if not bad.add(row, str(error)):
                    break  # rows before the first bad one are still written
            else:
                rows.pop(checked.key, None)  # the last row with a key counts
                rows[checked.key] = checked
        shares: list[list[_Checked]] = [[] for _ in range(self._workers)]
        for key, checked in rows.items():
            shares[hash(key) % self._workers].append(checked)
        self._chunk = rows
        if rows:
            self._need_table()
        return [pool.submit(self._write, share) for share in shares if share]

    def _note_written(self, refused: list[tuple[InputRow, str]]) -> None:
        """Keep the keys of the items that were put last, without those that this chunk deleted."""
        chunk, bad = self._chunk, {(row.file, row.number) for row, _ in refused}
        puts = (
            text
            for text, checked in reversed(chunk.items())
            if checked.row.key is None and (checked.row.file, checked.row.number) not in bad
        )
        new = [self._key_of(text) for text in islice(puts, KEPT_KEYS)]
        earlier = [key for key in self._entry.written if self._text_of(key) not in chunk]
        self._entry.written = [*earlier, *reversed(new)][-KEPT_KEYS:]

    def _key_of(self, text: tuple[str, ...]) -> Item:
        checks = self._checks
        names = zip(checks.key_names, text, strict=True)
        return {name: {checks.types[name]: value} for name, value in names}

    def _text_of(self, key: Item) -> tuple[str, ...]:
        checks = self._checks
        return tuple(key[name][checks.types[name]] for name in checks.key_names)

    def _need_table(self) -> None:
        """Create the table if it is missing. Called once a row fits, so that a refused import leaves no table."""
        make, self._make_table = self._make_table, None
        if make is not None:
            make()

    def _checked(self, row: InputRow) -> _Checked:
        if row.known is not None:
            contents, _ = row.known
            key = tuple(content.decode() for content in contents)
            return _Checked(key, put(msgspec.Raw(row.json)), row)
        if row.problem:
            raise ValueError(row.problem)
        if row.item is not None:
            item = self._checks.checked(row.item)
            entry = put(item)
        else:
            item = self._checks.checked_key(row.key or {})
            entry = delete(item)
        key = tuple(item[name][self._checks.types[name]] for name in self._checks.key_names)
        return _Checked(key, entry, row)

    def _finish(
        self, writing: Iterable[Future[list[tuple[InputRow, str]]]]
    ) -> list[tuple[InputRow, str]]:
        """Wait for all writers of a chunk; returns the rows that the service refused, in order."""
        refused: list[tuple[InputRow, str]] = []
        failures: list[BaseException] = []
        for future in writing:
            try:
                refused += future.result()
            except Exception as error:  # noqa: BLE001 - raised below, when no thread writes any more
                failures.append(error)
        if failures:
            raise failures[0]
        return sorted(refused, key=lambda pair: pair[0].number)

    def _write(self, rows: list[_Checked]) -> list[tuple[InputRow, str]]:
        """Write entries; returns the rows that the service refused, and why."""
        try:
            units = self._writer.write([row.entry for row in rows])
        except ApiError as error:
            if error.code != "ValidationException":
                raise
            if len(rows) == 1:
                return [(rows[0].row, error.message)]
            middle = len(rows) // 2
            return self._write(rows[:middle]) + self._write(rows[middle:])
        puts = sum(row.row.key is None for row in rows)
        with self._lock:
            self._entry.items += puts
            self._entry.deleted += len(rows) - puts
            self._entry.write_units += units
        self._meter.add(items=puts, write_units=units)
        return []
