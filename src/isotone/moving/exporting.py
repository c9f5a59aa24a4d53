"""Exports a table's items to a file, to standard output, or to a folder like that of AWS's exports.

    isotone.moving.export_items("shop.db", "Orders", "orders.jsonl.gz")
    isotone.moving.export_items("dynamodb://eu-west-1", "Orders", "exports/", with_table=True)

The table is read in segments, each by a thread of its own; one thread writes. The positions of the segments are saved
together with the length of the file at that point (`output_files`), so a killed export neither repeats nor loses items.
An export is no snapshot: items that are written meanwhile may be in it.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

import msgspec

from isotone.backends.addresses import file_of
from isotone.backends.interface import Backend
from isotone.backends.opening import Target
from isotone.errors import UsageError
from isotone.moving.columns import FileColumns, columns_of
from isotone.moving.endpoints import opened
from isotone.moving.file_names import (
    TABLE_FILE,
    Place,
    is_folder,
    kind_of,
    table_file,
)
from isotone.moving.line_files import csv_header, encoder_of, fits_cell
from isotone.moving.output_files import BESIDE, FileOutput, FolderOutput, Output, sum_of
from isotone.moving.parquet_files import ParquetOutput, schema_of
from isotone.moving.target_checks import same_table
from isotone.output_paths import STANDARD, OutputPath, check_outputs, write_whole
from isotone.tables.definition import TableDefinition, read_definition
from isotone.tables.job_state import JobState, address_text, file_text, state_output
from isotone.tables.jobs import Reporter, check_number, run_async, silent, state_of
from isotone.tables.pace import Pace, Stopped
from isotone.tables.progress import Meter, Progress, Report
from isotone.tables.scan import (
    Position,
    ScannedPage,
    Segment,
    decoded,
    pages,
    pages_together,
    segments_at,
)
from isotone.values.types import Item

_SEGMENTS: Final = 8  # of a table that a server reads
_ITEMS_A_PAGE: Final = 2000
_ITEMS_A_SENT_PAGE: Final = 500
_SAMPLE: Final = 2000  # items from which a file's columns are chosen
_SAVE: Final = 2.0  # seconds between two saves


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export: `progress` has its counts. If it was stopped, `is_complete` is false."""

    progress: Progress
    is_complete: bool = False
    state: Path | None = None

    @property
    def items(self) -> int:
        """How many items were written."""
        return self.progress.items


class _ExportState(msgspec.Struct):
    """The saved state of an export."""

    table: str
    identity: str  # of the table, to detect a new table of the same name
    form: str
    segments: list[Position]
    started: float
    id: str
    columns: FileColumns | None = None
    output: Any = None
    items: int = 0
    read_units: float = 0.0
    is_over: bool = False  # everything is written, and the file may already have its name


def export_items(
    source: Target,
    table: str,
    target: Place,
    *,
    format: str | None = None,  # noqa: A002 - the word of the field
    with_table: bool = False,
    force: bool = False,
    segments: int | None = None,
    read_units: float | None = None,
    state: str | PathLike[str] | None = None,
    restart: bool = False,
    progress: Report | None = None,
    on_complete: Callable[[Exported], object] | None = None,
    stop: threading.Event | None = None,
) -> Exported:
    """Write the items of a table to a file, a folder, or standard output (`-`).

    The name of the file determines its format: `.jsonl`, `.csv`, `.parquet`, `.ion`, with `.gz` or `.zst` for
    compression. `format` overrides it; `dynamodb-json` is the format of AWS's exports. A folder (a name with a slash at
    its end) gets data files and manifests like those of ExportTableToPointInTime, in DynamoDB JSON or Ion.

    `with_table` also writes the table's description (`orders.jsonl.table.json`), from which `import_items` can create
    the table. The file gets its name when it is complete; `force` replaces an existing one. The same call continues an
    interrupted export, except one to Parquet or standard output; `restart` begins again. `read_units` is a budget of
    capacity units a second. `on_complete` is called with the result of a complete export before its state is deleted:
    if the process ends in between, the next call finds it complete. `stop` ends it early, from another thread.

    Cost: one consistent read of the table, and of 2,000 items more for CSV and Parquet.
    Raises `UsageError` for a table that does not exist, or a target that exists; `InProgress` if another process is at
    the same export.

        export_items("shop.db", "Orders", "orders.jsonl.gz")
    """
    check_number("segments", segments, "segments")
    check_outputs(
        _target_output(target, with_table=with_table),
        state_output(state),
        inputs={"the source": file_of(source)},
    )
    if with_table:
        _check_description(table_file(target), force=force)
    stop = stop or threading.Event()
    with ExitStack() as stack:
        backend = stack.enter_context(opened(source, is_read=True))
        job = stack.enter_context(
            state_of("export", address_text(source), table, file_text(target), path=state)
        )
        if restart:
            job.drop(*job.names)
        pace = Pace(read_units, stop=stop)
        export = _Export(backend, table, target, format, job, pace, segments)
        done = export.run(with_table=with_table, force=force, report=progress or silent)
        if done.is_complete:
            job.end(lambda: (on_complete or silent)(done), table)
        return done


async def aexport_items(source: Target, table: str, target: Place, **options: Any) -> Exported:
    """`export_items` in a thread, for async programs. If it is cancelled, it stops, and can be continued.

    await aexport_items("http://localhost:8000", "Orders", "orders.jsonl")
    """
    return await run_async(export_items, source, table, target, **options)


def _target_output(target: Place, *, with_table: bool) -> OutputPath | None:
    """The output of an export, except the files in a folder, whose names are new; None if there is none."""
    if fspath(target) == STANDARD:
        if with_table:
            raise UsageError(
                "the table's description is written beside a file or a folder; name one, or leave out --with-table "
                "(with_table=)"
            )
        return None
    if not is_folder(target):
        beside = (*BESIDE, TABLE_FILE) if with_table else BESIDE
        return OutputPath("the target", target, beside=beside)
    if Path(target).exists() and not Path(target).is_dir():
        raise UsageError(f"the target {fspath(target)} is a file, not a folder; give another name")
    return OutputPath("the description", table_file(target)) if with_table else None


def _check_description(path: Path, *, force: bool) -> None:
    """Raise `UsageError` if a file has the name of the description, but is none."""
    if force or not path.exists():
        return
    try:
        msgspec.json.decode(path.read_bytes(), type=TableDefinition)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise UsageError(
            f"{path} exists, and is not the description of a table; --force (force=True) replaces it"
        ) from None


class _Export:
    """One export: its source, its target, and its progress."""

    def __init__(
        self,
        backend: Backend,
        table: str,
        target: Place,
        form: str | None,
        state: JobState,
        pace: Pace,
        segments: int | None,
    ) -> None:
        definition = read_definition(backend, table)
        if definition is None:
            raise UsageError(f"there is no table {table} at the source")
        self._backend = backend
        self._definition: TableDefinition = definition
        self._target = target
        self._is_folder = is_folder(target)
        self._form = form
        self._state = state
        self._pace = pace
        self._is_local = hasattr(backend, "send_many")
        self._entry = self._continued(table, segments)
        entry = self._entry
        self._meter = Meter(
            "export",
            table,
            of_items=definition.table.item_count,
            items=entry.items,
            read_units=entry.read_units,
        )

    def _continued(self, table: str, segments: int | None) -> _ExportState:
        """The state of an earlier run that exported the same table in the same way, or else a new one."""
        entry = self._state.get(table, _ExportState)
        form = self._form or ""
        if entry is not None and (entry.identity, entry.form) == (
            self._definition.table.identity,
            form,
        ):
            return entry
        now = time.time()
        return _ExportState(
            table,
            self._definition.table.identity,
            form,
            [Position() for _ in range(segments or (1 if self._is_local else _SEGMENTS))],
            now,
            f"{round(now * 1000):014}-{secrets.token_hex(4)}",
        )

    def run(self, *, with_table: bool, force: bool, report: Report) -> Exported:
        entry = self._entry
        if entry.is_over and not force and self._is_in_place():
            return self._finished(report)
        entry.is_over = False
        output = self._output(force=force)
        if not output.begin(entry.output) and entry.items:
            entry.segments = [Position() for _ in entry.segments]
            entry.items, entry.read_units = 0, 0.0
            self._meter = Meter("export", entry.table, of_items=self._definition.table.item_count)
        is_complete = False
        try:
            with same_table(self._backend, entry.table, lambda: entry.identity, job="export"):
                self._copy(output, report)
            if with_table:
                write_whole(table_file(self._target), msgspec.json.encode(self._definition))
            entry.is_over = True
            self._save(output)
            self._state.set(entry.table, entry)
            output.finish()
            is_complete = True
        except Stopped:
            self._save(output)
        finally:
            output.close()
        done = self._meter.progress(is_over=is_complete)
        report(done)
        return Exported(done, is_complete, self._state.path if output.is_resumable else None)

    def _is_in_place(self) -> bool:
        """Whether the file of a finished export already has its name; a folder is always finished again."""
        saved, path = self._entry.output, Path(self._target)
        if self._is_folder or not isinstance(saved, list) or not path.is_file():
            return False
        size, checksum = saved
        with path.open("rb") as file:
            return sum_of(file, size) == (checksum, size) and not file.read(1)

    def _finished(self, report: Report) -> Exported:
        """The result of an export that ended before it could be reported."""
        done = self._meter.progress(is_over=True)
        report(done)
        return Exported(done, is_complete=True, state=self._state.path)

    # Output

    def _output(self, *, force: bool) -> Output:
        if self._is_folder:
            return self._folder()
        kind = kind_of(self._target, self._form)
        if kind.form == "parquet":
            sample, is_whole = self._sample()
            columns = columns_of(sample, self._definition.table.key.names, is_whole=is_whole)
            return ParquetOutput(self._target, columns, schema_of(columns, sample), force=force)
        columns_or_none, header = None, b""
        if kind.form == "csv":
            columns_or_none = self._entry.columns or self._csv_columns()
            self._entry.columns = columns_or_none
            header = csv_header(columns_or_none)
        encode = encoder_of(kind.form, columns_or_none)
        return FileOutput(self._target, encode, header, kind.compression, force=force)

    def _folder(self) -> Output:
        if self._form not in (None, "dynamodb-json", "ion"):
            raise UsageError(
                f"a folder is written as AWS writes exports: in dynamodb-json or ion, not in {self._form}"
            )
        entry = self._entry
        return FolderOutput(
            self._target,
            encoder_of("ion" if self._form == "ion" else "dynamodb-json"),
            "ION" if self._form == "ion" else "DYNAMODB_JSON",
            self._definition.description,
            entry.id,
            entry.started,
        )

    def _csv_columns(self) -> FileColumns:
        sample, is_whole = self._sample()
        return columns_of(
            sample, self._definition.table.key.names, is_whole=is_whole, fits=fits_cell
        )

    def _sample(self) -> tuple[list[Item], bool]:
        """The first items, and whether these are all items."""
        segment = Segment(self._entry.table)
        sample: list[Item] = []
        for page in pages(self._backend, segment, self._pace, items_a_page=_ITEMS_A_SENT_PAGE):
            sample += map(decoded, page.items)
            if page.after is not None and len(sample) >= _SAMPLE:
                return sample, False
        return sample, True

    # Items

    def _copy(self, output: Output, report: Report) -> None:
        entry = self._entry
        saved = time.monotonic()
        reporter = Reporter(report, self._meter)
        for number, page in self._pages():
            output.write(page.items)
            entry.segments[number] = page.position
            entry.items += len(page.items)
            entry.read_units += page.units
            self._meter.add(items=len(page.items), read_units=page.units)
            is_time = time.monotonic() - saved > _SAVE
            if output.should_save or (is_time and not self._is_folder):
                self._save(output)
                saved = time.monotonic()
            reporter.tick()

    def _save(self, output: Output) -> None:
        if output.is_resumable:
            self._entry.output = output.save()
            self._state.set(self._entry.table, self._entry)

    def _pages(self) -> Iterator[tuple[int, ScannedPage]]:
        size = _ITEMS_A_PAGE if self._is_local else _ITEMS_A_SENT_PAGE
        read = partial(pages, self._backend, pace=self._pace, items_a_page=size)
        return pages_together(segments_at(self._entry.table, self._entry.segments), read)
