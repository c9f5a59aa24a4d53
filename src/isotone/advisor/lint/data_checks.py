"""Lint's checks of a sample and of queries: keys, dates in keys, item sizes, hot partitions, what filters drop."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from isotone import limits
from isotone.advisor.explain import explain
from isotone.advisor.lint.finding import FindingPlace, LintFinding
from isotone.advisor.lint.settings import Thresholds
from isotone.advisor.table_sample import TableSample, collections
from isotone.inference import is_own
from isotone.model import Calls, Read, Steps
from isotone.tables.description import KeyDescription
from isotone.text_table import pluralized
from isotone.values.notation import value_text
from isotone.values.size import item_size
from isotone.values.types import Item

_PIECE: Final = re.compile(r"[^#|]+|[#|]+")
_LITERAL: Final = re.compile(r"[A-Z][A-Z_]*")
_WORD: Final = re.compile(r"[^\W\d_]{3,}(?:[ .'@-][^\W_]+)*")
_DISPLAY_DATES: Final = re.compile(
    r"(?i)\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d{2})|\d{1,2}\.? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{4}"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d{1,2},? \d{4}"
)
_ENOUGH: Final = 20  # items with a key of one form that are needed to judge its values
_FEW: Final = 10  # distinct values that a component with few values has at most
_SEVERAL: Final = 3  # numbers that are needed to judge their widths
_NARROWEST: Final = 3  # digits; narrower numbers are hours, shards and the like
# collections that the sampled entries must come from, to represent the whole index
_SPREAD: Final = 10
_MB: Final = limits.MB


def check_data(contents: TableSample, thresholds: Thresholds) -> Iterator[LintFinding]:
    """The findings of a table's items and indexes."""
    own = contents.shape.key.partition[0].name
    items = [item for item in contents.items if not is_own(item[own])]
    shape = contents.shape
    views: list[tuple[str | None, KeyDescription]] = [(None, shape.key)]
    views += [(index.name, index.key) for index in shape.indexes]
    sorts = {name: index for index, key in reversed(views) for name in key.sort_names}
    seen: set[str] = set()
    for index, key in views:
        for part in key.parts:
            if part.type == "S" and part.name not in seen:
                seen.add(part.name)
                where = sorts.get(part.name, index)
                is_sort = part.name in sorts
                yield from _check_texts(contents, where, part.name, items, thresholds, sort=is_sort)
    yield from _sequential(contents, items, thresholds)
    yield from _partitions(contents, items, thresholds)
    yield from _large_items(contents, items, thresholds)
    if contents.count >= thresholds.partition_items:
        yield from _empty_indexes(contents, items)


def _place(contents: TableSample, index: str | None, key: str) -> FindingPlace:
    return FindingPlace(table=contents.shape.name, index=index or "", key=key)


# Keys that are texts


class _Column:
    """The values at one position of keys of one form, with a whole key as an example."""

    def __init__(self, form: str, example: str) -> None:
        self.form = form
        self.example = example
        self.values: list[str] = []


def _columns(texts: Sequence[str]) -> list[list[_Column]]:
    """The components of keys by form: capitalized literals distinguish the forms."""
    forms: dict[tuple[str, ...], list[_Column]] = {}
    for text in texts:
        pieces = _PIECE.findall(text)
        values, form = [], []
        for number, piece in enumerate(pieces):
            is_separator = _PIECE.match(piece) is not None and piece[0] in "#|"
            last = number == len(pieces) - 1
            is_literal = is_separator or (_LITERAL.fullmatch(piece) is not None and not last)
            if is_literal and not is_separator and number and pieces[number - 1][0] not in "#|":
                is_literal = False
            form.append(piece if is_literal else "{}")
            if not is_literal:
                values.append(piece)
        columns = forms.setdefault(tuple(form), [_Column("".join(form), text) for _ in values])
        for column, value in zip(columns, values, strict=True):
            column.values.append(value)
    return [*forms.values()]


def _check_texts(
    contents: TableSample,
    index: str | None,
    name: str,
    items: Sequence[Item],
    thresholds: Thresholds,
    *,
    sort: bool,
) -> Iterator[LintFinding]:
    texts = [item[name]["S"] for item in items if "S" in item.get(name, ())]
    place = _place(contents, index, name)
    for columns in _columns(texts):
        for column in columns:
            yield from _cases(column, place)
            yield from _headroom(column, place, thresholds)
            if sort:  # the order of partition keys does not matter
                yield from _widths(column, place)
                yield from _dates(column, place)
        if sort:
            yield from _reverse(columns, place)


def _widths(column: _Column, place: FindingPlace) -> Iterator[LintFinding]:
    numbers = {value for value in column.values if value.isdigit() and value.isascii()}
    if len(numbers) < _SEVERAL or len(numbers) < len(set(column.values)):
        return
    widths = {len(value) for value in numbers}
    unpadded = not any(value.startswith("0") and len(value) > 1 for value in numbers)
    if len(widths) > 1 and unpadded:
        short, long = min(numbers, key=len), max(numbers, key=len)
        yield LintFinding(
            "ISO101",
            place,
            f"keys {column.form} have numbers of {min(widths)} to {max(widths)} digits: {long} sorts before or after "
            f"{short} by its first digit.",
            "Ranges return wrong items, and the greatest number is not the last one.",
            f"Write them with zeros, {short.zfill(max(widths) + 2)}: field(max={'9' * (max(widths) + 2)}).",
        )


def _headroom(
    column: _Column, place: FindingPlace, thresholds: Thresholds
) -> Iterator[LintFinding]:
    numbers = [value for value in column.values if value.isdigit() and value.isascii()]
    if len(set(numbers)) < _SEVERAL or len(numbers) < len(column.values):
        return
    wide = {len(value) for value in numbers}
    padded = any(value.startswith("0") for value in numbers)
    if len(wide) != 1 or not padded or max(wide) < _NARROWEST:
        return
    room = 10 ** wide.pop() - 1
    share = max(map(int, numbers)) / room
    if share > thresholds.headroom:
        yield LintFinding(
            "ISO102",
            place,
            f"keys {column.form} have used {share:.0%} of the {room:,} numbers that their width holds.",
            "The first number that does not fit is refused, or sorts before all others.",
            f"Declare field(max={room}9, was={room}), and run store.rewrite while the table is small.",
        )


def _cases(column: _Column, place: FindingPlace) -> Iterator[LintFinding]:
    distinct = set(column.values)
    folded: dict[str, set[str]] = defaultdict(set)
    for value in distinct:
        folded[value.casefold()].add(value)
    same = next((sorted(values) for values in folded.values() if len(values) > 1), None)
    words = [value for value in distinct if _WORD.fullmatch(value)]
    is_text = len(words) == len(distinct)
    if same is not None and is_text:
        what = f"have {same[0]!r} and {same[1]!r}, which are two keys."
    elif (
        is_text
        and any(map(str.islower, words))
        and any(w[0].isupper() and not w.isupper() for w in words)
    ):
        capital = next(word for word in words if word[0].isupper() and not word.isupper())
        small = next(word for word in words if word.islower())
        what = f"mix capitals and small letters: {capital!r} sorts before {small!r}, whatever they are."
    else:
        return
    yield LintFinding(
        "ISO103",
        place,
        f"keys {column.form} {what}",
        "A search in another spelling finds nothing, and the order is not that of a dictionary.",
        'Store one case in keys, field(case="lower"), and the spelling in an attribute.',
    )


def _dates(column: _Column, place: FindingPlace) -> Iterator[LintFinding]:
    whole = [value for value in column.values if _DISPLAY_DATES.fullmatch(value)]
    for value in whole[:1]:
        yield LintFinding(
            "ISO104",
            place,
            f"keys {column.form} have dates as they are displayed: {value!r}.",
            "They do not sort by time, so no range of days can be read.",
            "Write dates as 2026-01-31: Attr[date] or Attr[datetime].",
        )


def _reverse(columns: Sequence[_Column], place: FindingPlace) -> Iterator[LintFinding]:
    for many, few in itertools.pairwise(columns):
        count = len(many.values)
        if count < _ENOUGH or len(set(many.values)) < 0.9 * count:
            continue
        kinds = set(few.values)
        if 1 < len(kinds) <= _FEW and all(map(_LITERAL.fullmatch, kinds)):
            yield LintFinding(
                "ISO105",
                place,
                f"keys {many.form} have {len(set(many.values))} values before {len(kinds)} "
                f"({', '.join(sorted(kinds)[:3])}).",
                "A query by the second component reads the whole collection.",
                "Put the component with few values first, or add an index in that order.",
            )


def _sequential(
    contents: TableSample, items: Sequence[Item], thresholds: Thresholds
) -> Iterator[LintFinding]:
    part = contents.shape.key.partition[0]
    groups: dict[str, set[int]] = defaultdict(set)
    for item in items:
        ((_, content),) = item[part.name].items()
        found = re.fullmatch(r"(.*?)(\d+)", str(content))
        if part.type != "B" and found is not None and len(found[2]) < 19:
            groups[found[1]].add(int(found[2]))
    for prefix, numbers in groups.items():
        if len(numbers) < thresholds.sequential:
            continue
        if len(numbers) >= 0.9 * (max(numbers) - min(numbers) + 1):
            yield LintFinding(
                "ISO106",
                _place(contents, None, part.name),
                f"partition keys {prefix}{min(numbers)} to {prefix}{max(numbers)} are consecutive numbers.",
                "One counter decides how many items per second can be created, and keys can be guessed.",
                "Use KSUID.new() or uuid7(), and keep the number as an attribute.",
            )


# Sizes


def _partitions(
    contents: TableSample, items: Sequence[Item], thresholds: Thresholds
) -> Iterator[LintFinding]:
    shape = contents.shape
    has_local = any(index.kind == "local" for index in shape.indexes)
    for group in collections(shape.key, items).values():
        # A scan reads one collection after the other, so the sample has whole collections, and the
        # beginning of one.
        share = len(group) / contents.count
        yield from _large_partition(contents, None, shape.key, group, len(group), share, thresholds)
        size = sum(map(item_size, group))
        if has_local and size >= thresholds.collection_bytes:
            yield LintFinding(
                "ISO203",
                _place(contents, None, _partition_text(shape.key, group)),
                f"the collection has {size / _MB / 1024:.1f} GB or more, and the table a local index.",
                "At 10 GB, writes that add to it are refused.",
                "Copy the table to one with a global index, or divide the partition.",
            )
    for index in shape.indexes:
        if index.kind == "global":
            entries = contents.entries(index.name)
            for group in collections(index.key, entries).values():
                if contents.is_whole or len(collections(shape.key, group)) >= _SPREAD:
                    count = round(len(group) * contents.count / len(contents.items))
                    share = len(group) / len(entries)
                    yield from _large_partition(
                        contents, index.name, index.key, group, count, share, thresholds
                    )


def _large_partition(
    contents: TableSample,
    index: str | None,
    key: KeyDescription,
    group: Sequence[Item],
    count: int,
    share: float,
    thresholds: Thresholds,
) -> Iterator[LintFinding]:
    about = "" if contents.is_whole else "at least " if index is None else "about "
    text = _partition_text(key, group)
    if count >= thresholds.partition_items and share < thresholds.partition_share:
        if _LITERAL.fullmatch(text.strip('"')):
            yield LintFinding(
                "ISO205",
                _place(contents, index, text),
                f"the constant partition {text} has {about}{pluralized(count, 'item')}.",
                "Together they have 3,000 read and 1,000 write units per second, however large the table is.",
                "Add what divides them to the partition, such as a tenant, a month or a shard number.",
            )
        return
    if count >= thresholds.partition_items:
        yield LintFinding(
            "ISO201",
            _place(contents, index, text),
            f"one partition has {share:.0%} of {'the table' if index is None else index}: {about}{pluralized(count, 'item')}.",
            "It bears 3,000 read and 1,000 write units per second, however large the table is.",
            "Divide it by an owner, by month, or by a shard number.",
        )


def _partition_text(key: KeyDescription, group: Sequence[Item]) -> str:
    return " ".join(value_text(group[0][part.name]) for part in key.partition)


def _large_items(
    contents: TableSample, items: Sequence[Item], thresholds: Thresholds
) -> Iterator[LintFinding]:
    large = [(size, item) for item in items if (size := item_size(item)) >= thresholds.item_bytes]
    if not large:
        return
    size, item = max(large, key=lambda each: each[0])
    key = " ".join(value_text(item[part.name]) for part in contents.shape.key.parts)
    others = f", and {len(large) - 1} more of the sample are large" if len(large) > 1 else ""
    yield LintFinding(
        "ISO204",
        _place(contents, None, key),
        f"an item has {size // limits.KB} KB of the 400 KB that it may have{others}.",
        f"Each read of it costs {pluralized(-(-size // (8 * limits.KB)), 'unit')}, each write {-(-size // limits.KB)}.",
        "Move what grows into items of its own, or large values into a bucket.",
    )


def _empty_indexes(contents: TableSample, items: Sequence[Item]) -> Iterator[LintFinding]:
    for index in contents.shape.indexes:
        if items and not index.item_count and not contents.entries(index.name):
            part = "the sample" if not contents.is_whole else "the table"
            yield LintFinding(
                "ISO301",
                FindingPlace(table=contents.shape.name, index=index.name),
                f"no item of {part} is in the index.",
                "It serves no query, and a program that begins to fill it pays for each write twice.",
                "Remove it, or find out why the program does not write its attributes.",
            )


# Filters


def check_query(
    calls: Calls, read: Read[Any], place: FindingPlace, sample: int, thresholds: Thresholds
) -> Steps[list[LintFinding]]:
    """The finding for a query whose filter drops most of what it reads, according to the data."""
    if not read.filters:
        return []
    steps: Callable[..., Steps[Any]] = explain
    explained = yield from steps(calls, read, sample=sample)
    cost = explained.estimate
    if cost.items_read < thresholds.filtered_items or cost.hit_rate >= thresholds.hit_rate:
        return []
    return [
        LintFinding(
            "ISO401",
            place,
            f"{explained.title} returns {cost.items_returned:,} of {pluralized(cost.items_read, 'item')} ({cost.hit_rate:.0%}).",
            f"{explained.wasted_units:g} of {pluralized(cost.units, 'unit', form='g')} are for what the filter drops.",
            f"{explained.advice[:1].upper()}{explained.advice[1:]}.",
        )
    ]


def check_observations(
    observations: Sequence[Any], thresholds: Thresholds
) -> Iterator[LintFinding]:
    """The findings for requests that a program has made, given as `isotone.Observation`s."""
    scanned: Counter[tuple[str, str | None, str]] = Counter()
    returned: Counter[tuple[str, str | None, str]] = Counter()
    units: Counter[tuple[str, str | None, str]] = Counter()
    for each in observations:
        text = str(each.request.get("FilterExpression", ""))
        if not text or each.operation not in ("Query", "Scan"):
            continue
        what = (", ".join(each.tables), each.index, each.operation)
        scanned[what] += each.scanned
        returned[what] += each.returned
        units[what] += each.units
    for what, count in scanned.items():
        table, index, operation = what
        rate = returned[what] / max(count, 1)
        if count >= thresholds.filtered_items and rate < thresholds.hit_rate:
            yield LintFinding(
                "ISO401",
                FindingPlace(table=table, index=index or ""),
                f"{operation} requests with a filter have returned {returned[what]:,} of {pluralized(count, 'item')} ({rate:.0%}).",
                f"{units[what] * (1 - rate):,.0f} of {pluralized(units[what], 'unit', form=',.0f')} were for what the filter drops.",
                "Declare an index whose key answers the filter, or a sparse one; isotone explain names it.",
            )
