"""Compares tables of two engines: definitions, counts, checksums, and then the differing keys.

    report = isotone.moving.diff("shop.db", "dynamodb://eu-west-1", ["Orders"])
    assert report.is_equal, report

Engines scan in different orders, so items are put into buckets by a hash of their key. The first pass over both tables
counts each bucket's items and adds up their digests: two buckets with equal sums have equal items, whatever the order.
Only if some differ is there a second pass, which keeps the keys and digests of these buckets. So memory is bounded:
some megabytes for the sums, and at most `_MAX_KEYS` keys in a pass.

Keys that seem to differ are read again on both sides before they are reported, because an item that was being written
may be equal by now.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from isotone.backends.interface import Backend
from isotone.backends.opening import Target
from isotone.errors import UsageError
from isotone.moving.endpoints import opened
from isotone.moving.item_identity import canonical, item_digest, key_hash, key_text
from isotone.moving.table_making import differences, setting_differences
from isotone.tables.batch_reads import read_items
from isotone.tables.definition import TableDefinition, read_definition
from isotone.tables.description import table_names
from isotone.tables.jobs import check_number, run_async, wait_for
from isotone.tables.pace import Pace
from isotone.tables.progress import Meter, Report
from isotone.tables.scan import Segment, decoded, pages
from isotone.text_table import pluralized
from isotone.values.types import AttributeValue, Item

_BUCKETS: Final = 1 << 16
_MAX_KEYS: Final = 200_000  # keys of differing buckets that a pass keeps
_SHOWN: Final = 20  # keys of each kind of difference
_SEGMENTS: Final = 4
_KEYS_A_READ: Final = 100
_MASK: Final = (1 << 64) - 1

Side = tuple[Backend, str]
"""A backend, and the name of a table there."""


@dataclass(frozen=True, slots=True)
class KeyDifference:
    """An item that differs: None on the side where it does not exist."""

    key: Item
    source: Item | None
    target: Item | None

    @property
    def attributes(self) -> dict[str, tuple[AttributeValue | None, AttributeValue | None]]:
        """The attributes that differ, with both values."""
        source, target = self.source or {}, self.target or {}
        mine, theirs = canonical(source), canonical(target)
        return {
            name: (source.get(name), target.get(name))
            for name in sorted(mine.keys() | theirs.keys())
            if mine.get(name) != theirs.get(name)
        }


@dataclass(frozen=True, slots=True)
class TableDifference:
    """The differences between the items of two tables.

    `definition` lists differences of keys, indexes and expiry; `settings` lists those of stream and tags, which do not
    make tables unequal. `examples` are some of the differing keys. The counts of differing keys cover the buckets that
    were compared key by key: `is_counted` is false if there are more.
    """

    table: str
    source_items: int = 0
    target_items: int = 0
    only_in_source: int = 0
    only_in_target: int = 0
    changed: int = 0
    is_counted: bool = True
    definition: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    examples: tuple[KeyDifference, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether both have the same items, and definitions that answer the same queries."""
        return not (self.differing or self.definition) and self.is_counted

    @property
    def differing(self) -> int:
        """The number of differing keys, or at least so many."""
        return self.only_in_source + self.only_in_target + self.changed

    def __str__(self) -> str:
        if self.is_equal:
            return f"{self.table}: equal, {pluralized(self.source_items, 'item')}"
        parts = [f"{self.table}: {self.source_items:,} and {pluralized(self.target_items, 'item')}"]
        least = "" if self.is_counted else "at least "
        for number, text in (
            (self.only_in_source, "only in the source"),
            (self.only_in_target, "only in the target"),
            (self.changed, "different"),
        ):
            if number:
                parts.append(f"{least}{number:,} {text}")
        return "; ".join([", ".join(parts), *self.definition])


@dataclass(frozen=True, slots=True)
class DiffReport:
    """The comparisons of all tables. `only_in_source` and `only_in_target` are tables without a counterpart."""

    comparisons: Mapping[str, TableDifference] = field(default_factory=dict)
    only_in_source: tuple[str, ...] = ()
    only_in_target: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether all tables are equal."""
        return not (self.only_in_source or self.only_in_target) and all(
            each.is_equal for each in self.comparisons.values()
        )

    def __str__(self) -> str:
        lines = [str(each) for each in self.comparisons.values()]
        lines += [f"{name}: only in the source" for name in self.only_in_source]
        lines += [f"{name}: only in the target" for name in self.only_in_target]
        return "\n".join(lines)


def diff(
    source: Target,
    target: Target,
    tables: Sequence[str] | Mapping[str, str] | None = None,
    *,
    shown: int = _SHOWN,
    segments: int | None = None,
    read_units: float | None = None,
    items_only: bool = False,
    progress: Report | None = None,
    stop: threading.Event | None = None,
) -> DiffReport:
    """Compare tables of two addresses or objects; all tables if none are named.

    A mapping gives the names at the target. `shown` is how many keys are reported in full for each kind of difference.
    `read_units` is a budget of capacity units a second for each side. With `items_only` indexes, expiry, stream and
    tags are not compared. Setting `stop` raises `Stopped`.

    Cost: both tables are read once, consistently; and once more if they differ. Compare when nobody writes: keys that
    are written meanwhile may count as different, though those shown were read again.
    Raises `UsageError` for a table that exists on neither side.

        assert diff("shop.db", "dynamodb://eu-west-1").is_equal
    """
    check_number("segments", segments, "segments")
    stop = stop or threading.Event()
    with ExitStack() as stack:
        ends = [stack.enter_context(opened(end, is_read=True)) for end in (source, target)]
        names, missing = _pairs(ends[0], ends[1], tables)
        comparisons = {
            name: compare_table(
                (ends[0], name),
                (ends[1], to),
                shown=shown,
                segments=segments,
                read_units=read_units,
                report=progress,
                stop=stop,
                items_only=items_only,
            )
            for name, to in names.items()
        }
    return DiffReport(comparisons, *missing)


async def adiff(source: Target, target: Target, tables: Any = None, **options: Any) -> DiffReport:
    """`diff` in a thread, for async programs.

    assert (await adiff("shop.db", "http://localhost:8000")).is_equal
    """
    return await run_async(diff, source, target, tables, **options)


def _pairs(
    source: Backend, target: Backend, tables: Sequence[str] | Mapping[str, str] | None
) -> tuple[dict[str, str], tuple[tuple[str, ...], tuple[str, ...]]]:
    """The tables to compare, and the tables that exist on one side only."""
    here, there = set(table_names(source)), set(table_names(target))
    if tables is None:
        names = {name: name for name in sorted(here & there)}
        return names, (tuple(sorted(here - there)), tuple(sorted(there - here)))
    if isinstance(tables, str):
        raise UsageError(f"tables={tables!r} is one name; write [{tables!r}]")
    wanted = dict(tables) if isinstance(tables, Mapping) else {name: name for name in tables}
    absent = [name for name, to in wanted.items() if name not in here and to not in there]
    if absent:
        raise UsageError(f"neither side has a table {absent[0]!r}")
    return (
        {name: to for name, to in wanted.items() if name in here and to in there},
        (
            tuple(name for name, to in wanted.items() if name in here and to not in there),
            tuple(to for name, to in wanted.items() if name not in here and to in there),
        ),
    )


def compare_table(
    source: Side,
    target: Side,
    *,
    shown: int = _SHOWN,
    segments: int | None = None,
    read_units: float | None = None,
    report: Report | None = None,
    stop: threading.Event | None = None,
    items_only: bool = False,
) -> TableDifference:
    """Compare two tables; with `items_only`, only the keys of their definitions are compared."""
    mine, theirs = read_definition(*source), read_definition(*target)
    if mine is None or theirs is None:
        raise UsageError(f"table {(source if mine is None else target)[1]!r} does not exist")
    definition = tuple(differences(mine, theirs))
    settings = () if items_only else tuple(setting_differences(mine, theirs))
    has_other_keys = any(each.startswith("keys:") for each in definition)
    if items_only and not has_other_keys:
        definition = ()
    if has_other_keys:
        return TableDifference(
            source[1],
            mine.table.item_count,
            theirs.table.item_count,
            is_counted=False,
            definition=definition,
        )
    stop = stop or threading.Event()
    scans = [
        _Scan(side, found, segments, Pace(read_units, stop=stop), stop)
        for side, found in ((source, mine), (target, theirs))
    ]
    meter = Meter("compare", source[1], of_items=mine.table.item_count + theirs.table.item_count)
    sums = [_Sums(), _Sums()]
    _scan_both(scans, [each.add for each in sums], meter, report)
    buckets = sums[0].differing(sums[1])
    found = _Differences(mine, scans, shown)
    is_counted = found.compare_buckets(buckets, sums, meter, report) if buckets else True
    return TableDifference(
        source[1],
        sum(sums[0].counts),
        sum(sums[1].counts),
        found.numbers[0],
        found.numbers[1],
        found.numbers[2],
        is_counted=is_counted,
        definition=definition,
        settings=settings,
        examples=tuple(found.examples),
    )


class _Sums:
    """The number of items in each bucket, and the sum of their digests."""

    def __init__(self) -> None:
        self.counts = array("Q", bytes(8 * _BUCKETS))
        self._high = array("Q", bytes(8 * _BUCKETS))
        self._low = array("Q", bytes(8 * _BUCKETS))

    def add(self, bucket: int, _: bytes, digest: bytes) -> None:
        self.counts[bucket] += 1
        self._high[bucket] = self._high[bucket] + int.from_bytes(digest[:8], "big") & _MASK
        self._low[bucket] = self._low[bucket] + int.from_bytes(digest[8:], "big") & _MASK

    def differing(self, other: _Sums) -> list[int]:
        """The buckets whose items differ."""
        mine = zip(self.counts, self._high, self._low, strict=True)
        theirs = zip(other.counts, other._high, other._low, strict=True)
        return [bucket for bucket, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b]


Take = Callable[[int, bytes, bytes], None]
"""Called with an item's bucket, the text of its key, and its digest; by one thread at a time."""


class _Scan:
    """Reads one table, as many times as needed."""

    def __init__(
        self,
        side: Side,
        definition: TableDefinition,
        segments: int | None,
        pace: Pace,
        stop: threading.Event,
    ) -> None:
        self.backend, self.table = side
        self.pace = pace
        self.names = definition.table.key.names
        self.segments = segments or (1 if hasattr(self.backend, "send_many") else _SEGMENTS)
        self.stop = stop
        self._lock = threading.Lock()

    def read(self, pool: ThreadPoolExecutor, take: Take, tick: Callable[[int, float], None]) -> Any:
        """Start reading all segments in a pool; returns the futures."""
        return [pool.submit(self._read, number, take, tick) for number in range(self.segments)]

    def _read(self, number: int, take: Take, tick: Callable[[int, float], None]) -> None:
        segment = Segment(self.table, number, self.segments)
        for page in pages(self.backend, segment, self.pace, items_a_page=500):
            found = []
            for each in page.items:
                item = decoded(each)
                key = key_text(item, self.names)
                found.append((key_hash(key) % _BUCKETS, key, item_digest(item)))
            with self._lock:
                for bucket, key, digest in found:
                    take(bucket, key, digest)
            tick(len(found), page.units)


def _scan_both(
    scans: Sequence[_Scan], takes: Sequence[Take], meter: Meter, report: Report | None
) -> None:
    """Read both tables at the same time."""
    stop = scans[0].stop

    def tick(items: int, units: float) -> None:
        meter.add(items, read_units=units)

    with ThreadPoolExecutor(sum(each.segments for each in scans), "isotone-diff") as pool:
        futures = [
            future
            for scan, take in zip(scans, takes, strict=True)
            for future in scan.read(pool, take, tick)
        ]
        wait_for(futures, stop, lambda: None if report is None else report(meter.progress()))


class _Differences:
    """Finds the differing keys, bucket by bucket."""

    def __init__(self, definition: TableDefinition, scans: Sequence[_Scan], shown: int) -> None:
        self._names = definition.table.key.names
        self._types = definition.table.types
        self._scans = scans
        self._shown = shown
        self.numbers = [0, 0, 0]  # only in the source, only in the target, changed
        self.examples: list[KeyDifference] = []

    def compare_buckets(
        self, buckets: list[int], sums: Sequence[_Sums], meter: Meter, report: Report | None
    ) -> bool:
        """Compare as many buckets as memory allows, key by key; returns whether these were all."""
        wanted, room = set[int](), _MAX_KEYS
        for bucket in buckets:
            room -= max(each.counts[bucket] for each in sums)
            if room < 0 and wanted:
                break
            wanted.add(bucket)
        digests: dict[bytes, bytes] = {}
        changed: list[bytes] = []
        only: list[bytes] = []

        def keep_source(bucket: int, key: bytes, digest: bytes) -> None:
            if bucket in wanted:
                digests[key] = digest

        def compare(bucket: int, key: bytes, digest: bytes) -> None:
            if bucket in wanted:
                known = digests.pop(key, None)
                if known is None:
                    only.append(key)
                elif known != digest:
                    changed.append(key)

        for scan, take in zip(self._scans, (keep_source, compare), strict=True):
            _scan_both([scan], [take], meter, report)
        self.numbers = [len(digests), len(only), len(changed)]
        for place, keys in enumerate((list(digests), only, changed)):
            self._show(place, keys)
        return len(wanted) == len(buckets)

    def _show(self, place: int, keys: list[bytes]) -> None:
        """Read some keys again on both sides; those that are equal by now do not count."""
        wanted = [self._key(text) for text in sorted(keys)[: self._shown]]
        for at in range(0, len(wanted), _KEYS_A_READ):
            part = wanted[at : at + _KEYS_A_READ]
            sides = [
                {
                    key_text(item, self._names): item
                    for item in read_items(scan.backend, scan.table, part, scan.pace)
                }
                for scan in self._scans
            ]
            for key in part:
                source, target = (side.get(key_text(key, self._names)) for side in sides)
                found = KeyDifference(key, source, target)
                if found.attributes:
                    self.examples.append(found)
                else:
                    self.numbers[place] -= 1

    def _key(self, text: bytes) -> Item:
        values = msgspec.json.decode(text, type=list[str])
        return {
            name: {self._types[name]: value}
            for name, value in zip(self._names, values, strict=True)
        }
