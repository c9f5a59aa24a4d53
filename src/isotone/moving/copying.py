"""Copies tables between engines, resumes after an interruption, and keeps a live copy up to date (`--live`).

    isotone.moving.copy("shop.db", "dynamodb://eu-west-1")
    isotone.moving.copy("shop.db", "http://localhost:8000", ["Orders"], live=True)
    isotone.moving.copy("shop.db", "http://localhost:8000", ["Orders"], live=True, cut_over=True)

A table is read in segments, each by a thread of its own, page by page. When a page is written to the target, the
position after it is saved (`job_state`). A killed copy repeats at most one page of each segment, and repeating the puts
of a page has the same result.

A live copy notes the position of the source's stream first, copies, and then applies all changes from there on
(`following`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final

import msgspec

from isotone.backends import opening
from isotone.backends.addresses import file_of
from isotone.backends.capabilities import Capabilities
from isotone.backends.engines import ENGINES
from isotone.backends.interface import Backend
from isotone.backends.opening import Target
from isotone.errors import StorageError, Unsupported, UsageError
from isotone.moving.comparing import TableDifference, compare_table
from isotone.moving.endpoints import opened
from isotone.moving.following import Follower, StreamPosition, note_position
from isotone.moving.table_making import (
    TablePlan,
    apply_settings,
    check_same_keys,
    make_table,
    plan_table,
)
from isotone.moving.target_checks import check_written_items, same_table
from isotone.output_paths import check_outputs
from isotone.prices import US_EAST_1
from isotone.tables.batches import BatchWriter, put
from isotone.tables.definition import TableDefinition, read_definition
from isotone.tables.description import table_names
from isotone.tables.job_state import JobState, address_text, state_output
from isotone.tables.jobs import check_number, run_async, silent, state_of, wait_for
from isotone.tables.pace import Pace, Stopped
from isotone.tables.progress import Meter, Progress, Report
from isotone.tables.scan import Position, pages, segments_at

Tables = Sequence[str] | Mapping[str, str]
"""Names of tables, or a mapping from the names at the source to those at the target."""

_SEGMENTS: Final = 8  # of a table, if a server is involved
_ITEMS_A_PAGE: Final = 5000  # between databases in this process
_ITEMS_A_SENT_PAGE: Final = 500  # from or to a server
_IDLE: Final = 0.3  # seconds between two reads of a stream that had nothing new
_CHECKS: Final = 3  # comparisons at a cut-over, each after applying the latest changes


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a copy.

    `tables` has the progress of each table, by its name at the source. `missing` says what the target does not support.
    `is_complete`: everything was copied; a live copy is complete after its cut-over. `comparisons` are those of a
    cut-over. `is_caught_up`: a live copy had applied all changes when it ended. `dollars` is the approximate price of
    the units at Amazon's service, on demand, in us-east-1 (`isotone.prices`); None if neither side is there.
    """

    tables: Mapping[str, Progress] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    is_complete: bool = False
    is_dry_run: bool = False
    state: Path | None = None
    comparisons: Mapping[str, TableDifference] = field(default_factory=dict)
    dollars: float | None = None
    is_caught_up: bool = False

    @property
    def is_equal(self) -> bool:
        """Whether a cut-over found the same items on both sides."""
        return bool(self.comparisons) and all(each.is_equal for each in self.comparisons.values())


class _CopiedTable(msgspec.Struct):
    """The saved state of one table: which tables are copied, and how far."""

    source: str
    target: str
    segments: list[Position]
    items: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    stream: StreamPosition | None = None
    is_over: bool = False


def copy(
    source: Target,
    target: Target,
    tables: Tables | None = None,
    *,
    live: bool = False,
    cut_over: bool = False,
    until: Callable[[Progress], bool] | None = None,
    into_existing: bool = False,
    on_demand: bool = False,
    dry_run: bool = False,
    restart: bool = False,
    segments: int | None = None,
    read_units: float | None = None,
    write_units: float | None = None,
    state: str | PathLike[str] | None = None,
    progress: Report | None = None,
    notice: Callable[[str], object] | None = None,
    on_complete: Callable[[Copied], object] | None = None,
    stop: threading.Event | None = None,
) -> Copied:
    """Copy tables (all if none are named) from one address or object to another, as `isotone.connect` takes them.

    It creates each table on the target with its indexes, then copies the items, then enables expiry, tags and the
    stream. A target table that has items is refused, unless the same copy wrote them, or with `into_existing`. A later
    call continues an interrupted copy, in any process: between addresses, its state is in the file `state`, by default
    in the user's state folder. `restart` deletes it.

    `live` follows the source's stream after the copy, and returns when it is caught up, or when `until` is true for the
    progress. `cut_over` is the last step of a live copy, after all writers of the source have stopped: it applies the
    last changes, compares both sides, and enables the settings. The result `is_equal`, unless something still writes.

    `read_units` and `write_units` are budgets of capacity units a second. `notice` is called with everything that the
    target does not support, before the first item. With `dry_run`, nothing else happens. `on_complete` is called with
    the result of a complete copy before its state is deleted: if the process ends in between, the next call finds the
    copy complete. `stop` ends it early, from another thread, with `is_complete` false.

    Cost: the source is read once with consistent reads, the target written once; a cut-over reads both again.
    Raises `UsageError` for tables that do not exist or do not fit, `InProgress` if another process is at the same copy,
    `ChangesLost` if the stream has dropped changes.

        done = copy("shop.db", "dynamodb://eu-west-1", ["Orders"])
    """
    stop = stop or threading.Event()
    ends = {"the source": file_of(source), "the target": file_of(target)}
    check_outputs(state_output(state), inputs=ends)
    saved = state_of("copy", address_text(source), address_text(target), path=state)
    with ExitStack() as stack:
        job = stack.enter_context(_job_between(source, target, saved, segments))
        job.reading = Pace(read_units, stop=stop)
        job.writing = Pace(write_units, stop=stop)
        job.stop, job.report = stop, progress or silent
        names = _named(job.source, tables)
        if restart:
            job.state.drop(*names)
        copies = [_TableCopy(job, name, to) for name, to in names.items()]
        return _run(
            job,
            copies,
            _CopyOptions(live or cut_over, cut_over, into_existing, on_demand, dry_run, until),
            notice or silent,
            on_complete or silent,
        )


async def acopy(
    source: Target, target: Target, tables: Tables | None = None, **options: Any
) -> Copied:
    """`copy` in a thread, for async programs. If it is cancelled, it ends after the current pages.

    done = await acopy("shop.db", "http://localhost:8000")
    """
    return await run_async(copy, source, target, tables, **options)


@dataclass(frozen=True, slots=True)
class _CopyOptions:
    """The caller's options."""

    is_live: bool
    cut_over: bool
    into_existing: bool
    on_demand: bool
    dry_run: bool
    until: Callable[[Progress], bool] | None


class _Job:
    """The state that the copies of all tables share."""

    def __init__(
        self,
        source: Backend,
        target: Backend,
        capabilities: Capabilities,
        state: JobState,
        segments: int,
    ) -> None:
        self.source = source
        self.target = target
        self.capabilities = capabilities
        self.state = state
        self.segments = segments
        self.is_local = _is_local(source, target)
        self.is_one_place = False
        self.source_has_stream = True
        self.stream_lag = 0.0  # seconds until a change of the source appears in its stream
        self.reads_at_amazon = self.writes_at_amazon = False
        self.reading = self.writing = Pace()
        self.stop = threading.Event()
        self.report: Report = silent
        self.source_file: tuple[Path, os.stat_result] | None = None


@contextmanager
def _job_between(
    source: Target, target: Target, state: JobState, segments: int | None
) -> Iterator[_Job]:
    check_number("segments", segments, "segments")
    with ExitStack() as stack:
        ends = [stack.enter_context(opened(end, is_read=end is source)) for end in (source, target)]
        stack.enter_context(state)
        found = [opening.engine_of(end) for end in (source, target)]
        is_amazon = [
            isinstance(end, str) and engine.known is ENGINES["dynamodb"]
            for end, engine in zip((source, target), found, strict=True)
        ]
        engines = [engine.identify() for engine in found]
        number = segments or (1 if _is_local(*ends) else _SEGMENTS)
        if not engines[0].parallel_scan:
            number = 1
        job = _Job(ends[0], ends[1], engines[1], state, number)
        job.is_one_place = ends[0] is ends[1] or _is_one_place(source, target)
        job.source_has_stream = engines[0].streams
        job.stream_lag = engines[0].stream_lag
        job.reads_at_amazon, job.writes_at_amazon = is_amazon
        path = file_of(source)
        if path is not None:
            job.source_file = Path(path).absolute(), Path(path).stat()
        yield job


def _check_source(job: _Job) -> None:
    """Raise `StorageError` if another file, or none, has the name of the source: what is open gets no more changes."""
    if job.source_file is None:
        return
    path, begun = job.source_file
    try:
        is_same = os.path.samestat(begun, path.stat())
    except OSError:
        is_same = False
    if not is_same:
        raise StorageError(
            f"{path} was deleted, moved or replaced while its changes were followed, so the target has not what is in it: "
            "give the same command again"
        )


def _named(source: Backend, tables: Tables | None) -> dict[str, str]:
    """The names of the tables to copy, at the source and at the target."""
    if tables is None:
        tables = table_names(source)
        if not tables:
            raise UsageError("the source has no tables")
    if isinstance(tables, str):
        raise UsageError(f"tables={tables!r} is one name; write [{tables!r}]")
    names = dict(tables) if isinstance(tables, Mapping) else {name: name for name in tables}
    if not names:
        raise UsageError("tables= is empty; leave it out to copy all tables")
    _check_apart(names)
    return names


def _check_apart(names: Mapping[str, str]) -> None:
    """Raise `UsageError` if two tables would be copied into one."""
    sources: dict[str, str] = {}
    for name, to in names.items():
        if to in sources:
            raise UsageError(
                f"tables {sources[to]!r} and {name!r} would both be copied into {to!r}; give each its own name"
            )
        sources[to] = name


def _run(
    job: _Job,
    copies: list[_TableCopy],
    options: _CopyOptions,
    notice: Callable[[str], object],
    on_complete: Callable[[Copied], object],
) -> Copied:
    for each in copies:
        each.read_definitions(options)
    missing = tuple(f"{each.name}: {text}" for each in copies for text in each.plan.missing)
    for text in missing:
        notice(text)
    if options.dry_run:
        return Copied(
            {each.name: each.meter.progress() for each in copies}, missing, is_dry_run=True
        )
    comparisons: dict[str, TableDifference] = {}
    is_complete = is_caught_up = False
    try:
        for each in copies:
            each.prepare(options)
        for each in copies:
            each.copy_items()
        if options.is_live:
            comparisons = _follow(job, copies, options)
            is_caught_up = all(each.meter.progress().is_caught_up for each in copies)
        if not options.is_live or (comparisons and all(c.is_equal for c in comparisons.values())):
            for each in copies:
                missing += tuple(each.finish())
            is_complete = True
    except Stopped:
        pass
    done = Copied(
        {each.name: each.meter.progress(is_over=is_complete) for each in copies},
        missing,
        is_complete,
        state=job.state.path,
        comparisons=comparisons,
        dollars=_dollars(job, copies),
        is_caught_up=is_caught_up,
    )
    if is_complete:
        job.state.end(lambda: on_complete(done), *(each.name for each in copies))
    return done


def _dollars(job: _Job, copies: list[_TableCopy]) -> float | None:
    """The price of the units at Amazon's service, on demand; None if neither side is there."""
    if not (job.reads_at_amazon or job.writes_at_amazon):
        return None
    progress = [each.meter.progress() for each in copies]
    return US_EAST_1.on_demand(
        reads=sum(each.read_units for each in progress) if job.reads_at_amazon else 0.0,
        writes=sum(each.write_units for each in progress) if job.writes_at_amazon else 0.0,
    )


def _follow(
    job: _Job, copies: list[_TableCopy], options: _CopyOptions
) -> dict[str, TableDifference]:
    """Apply changes until the caller's condition is met; at a cut-over, until both sides are equal."""
    with ThreadPoolExecutor(job.segments, "isotone-follow") as pool:
        followers = [each.follower(pool) for each in copies]

        def catch_up(is_enough: Callable[[], bool]) -> None:
            while True:
                applied = 0
                for each, follower in zip(copies, followers, strict=True):
                    applied += follower.step()
                    _check_source(job)  # before anybody reads that there is no lag
                    job.report(each.meter.progress())
                if is_enough():
                    return
                if job.stop.wait(0.0 if applied else _IDLE):
                    raise Stopped

        def caught_up() -> bool:
            return all(follower.is_caught_up for follower in followers)

        until = options.until
        if until is None or options.cut_over:
            catch_up(caught_up)
        else:
            catch_up(lambda: all(until(each.meter.progress()) for each in copies))
        if not options.cut_over:
            return {}
        comparisons: dict[str, TableDifference] = {}
        for _ in range(_CHECKS):
            if job.stop.wait(job.stream_lag):  # the last writes may not be in the stream yet
                raise Stopped
            for follower in followers:
                follower.start_over()
            catch_up(caught_up)
            comparisons = {each.name: each.compare() for each in copies}
            if all(comparison.is_equal for comparison in comparisons.values()):
                break
        return comparisons


class _TableCopy:
    """The copy of one table: read definitions, prepare, copy the items, follow, finish."""

    def __init__(self, job: _Job, name: str, to: str) -> None:
        self.name = name
        self.to = to
        self.meter = Meter("copy", name)
        self._job = job
        self._lock = threading.Lock()
        self._entry: _CopiedTable | None = None

    # Before the first item

    def read_definitions(self, options: _CopyOptions) -> None:
        """Read the definitions and the saved state; refuse a copy that is impossible. Writes nothing."""
        job = self._job
        found = read_definition(job.source, self.name)
        if found is None:
            raise UsageError(f"the source has no table {self.name!r}")
        if options.is_live and not job.source_has_stream and found.table.stream is None:
            raise Unsupported(
                f"a live copy follows the stream of {self.name!r}, and the source's engine has none; stop its "
                "writers, and copy without --live (live=False)"
            )
        if job.is_one_place and self.name == self.to:
            raise UsageError(f"table {self.name!r} cannot be copied onto itself")
        self.definition = found
        self.plan: TablePlan = plan_table(
            found, self.to, job.capabilities, on_demand=options.on_demand
        )
        there = read_definition(job.target, self.to)
        self._entry = self._saved(there)
        if self._entry is not None:
            self._check_same_kind(self._entry, options)
            self._check_target(self._entry)
        elif there is not None:
            check_same_keys(found, there)
            if not options.into_existing and _has_items(job.target, self.to):
                raise UsageError(
                    f"table {self.to!r} on the target has items; --into-existing (into_existing=True) writes "
                    f"over them, and {self.name}=NEW_NAME copies into another table"
                )
        self.meter.of_items = found.table.item_count

    def _saved(self, there: TableDefinition | None) -> _CopiedTable | None:
        """The saved state of an earlier run, if the tables are still the same."""
        entry = self._job.state.get(self.name, _CopiedTable)
        if entry is None or there is None:
            return None
        if (entry.source, entry.target) != (self.definition.table.identity, there.table.identity):
            return None
        return entry

    def _check_same_kind(self, entry: _CopiedTable, options: _CopyOptions) -> None:
        if entry.stream is not None and not options.is_live:
            raise UsageError(
                f"an unfinished copy of {self.name!r} is live; continue it with --live or --cut-over, or begin again with --restart"
            )
        if entry.stream is None and options.is_live:
            raise UsageError(
                f"an unfinished copy of {self.name!r} is not live; continue it without --live, or begin again with --restart"
            )

    def _check_target(self, entry: _CopiedTable) -> None:
        """Raise `UsageError` if the target lacks the items that an earlier run wrote last."""
        written = [each.after for each in entry.segments if each.after is not None]
        if entry.stream is not None:
            written = written or entry.stream.written
        check_written_items(self._job.target, self.to, written, self._job.writing, job="copy")

    def prepare(self, options: _CopyOptions) -> None:
        """Create the table on the target, note the position of the stream, and save the initial state."""
        job = self._job
        if self._entry is None:
            made = make_table(job.target, self.plan, sleep=job.stop.wait)
            position = None
            if options.is_live:
                position = note_position(job.source, self.definition, sleep=job.stop.wait)
            self._entry = _CopiedTable(
                self.definition.table.identity,
                made.table.identity,
                [Position() for _ in range(job.segments)],
                stream=position,
            )
            self._save()
        entry = self._entry
        self.meter = Meter(
            "copy",
            self.name,
            of_items=self.definition.table.item_count,
            items=entry.items,
            read_units=entry.read_units,
            write_units=entry.write_units,
            changes=0 if entry.stream is None else entry.stream.applied,
        )

    # Items

    def copy_items(self) -> None:
        """Copy the rest of all segments in parallel."""
        entry = self._started
        left = [number for number, each in enumerate(entry.segments) if not each.is_over]
        if not left:
            return
        with (
            same_table(self._job.source, self.name, lambda: entry.source, job="copy"),
            same_table(self._job.target, self.to, lambda: entry.target, job="copy"),
            ThreadPoolExecutor(len(left), "isotone-copy") as pool,
        ):
            stop = threading.Event()
            futures = [pool.submit(self._copy_segment, number, stop) for number in left]
            wait_for(futures, stop, lambda: self._job.report(self.meter.progress()))

    def _copy_segment(self, number: int, stop: threading.Event) -> None:
        job, entry = self._job, self._started
        segment = segments_at(self.name, entry.segments)[number]
        writer = BatchWriter(job.target, self.to, job.writing, shared_by=len(entry.segments))
        most = _ITEMS_A_PAGE if job.is_local else _ITEMS_A_SENT_PAGE
        an_item = 1.0  # units of a write, until the first one is known

        def page_size() -> int:
            return job.writing.affordable(an_item, most, len(entry.segments))

        for page in pages(job.source, segment, job.reading, items_a_page=page_size):
            units = writer.write([put(item) for item in page.items])
            an_item = units / len(page.items) if page.items else an_item
            self.meter.add(len(page.items), page.units, units)
            with self._lock:
                entry.items += len(page.items)
                entry.read_units += page.units
                entry.write_units += units
                entry.segments[number] = page.position
                self._save()
            if page.after is not None and (stop.is_set() or job.stop.is_set()):
                raise Stopped

    # Changes

    def follower(self, pool: ThreadPoolExecutor) -> Follower:
        """The follower that applies the changes since the noted position."""
        job, entry = self._job, self._started
        assert entry.stream is not None
        self.meter.phase = "follow"
        self.meter.of_items = 0
        writer = BatchWriter(job.target, self.to, job.writing)
        return Follower(
            job.source,
            self.definition,
            entry.stream,
            writer,
            pace=job.reading,
            meter=self.meter,
            save=self._save,
            pool=pool,
        )

    def compare(self) -> TableDifference:
        """Compare the items of both tables now."""
        job = self._job
        return compare_table(
            (job.source, self.name),
            (job.target, self.to),
            segments=job.segments,
            stop=job.stop,
            report=job.report,
            items_only=True,
        )

    def finish(self) -> list[str]:
        """Enable the settings that follow the items; returns what the target refused."""
        refused = apply_settings(self._job.target, self.plan, sleep=self._job.stop.wait)
        return [f"{self.name}: {text}" for text in refused]

    @property
    def _started(self) -> _CopiedTable:
        assert self._entry is not None
        return self._entry

    def _save(self) -> None:
        self._job.state.set(self.name, self._started)


def _is_local(*backends: Backend) -> bool:
    """Whether these are databases in this process, which take many requests in one transaction."""
    return all(hasattr(each, "send_many") for each in backends)


def _is_one_place(source: Target, target: Target) -> bool:
    """Whether both are the same address or the same file."""
    one, other = file_of(source), file_of(target)
    if one is not None and other is not None:
        with suppress(OSError):  # one of them does not exist
            return Path(one).samefile(other)
    address = address_text(source)
    return address is not None and address == address_text(target)


def _has_items(backend: Backend, name: str) -> bool:
    """Whether a table has at least one item. Cost: half a unit."""
    return bool(backend.execute("Scan", {"TableName": name, "Limit": 1})["Items"])
