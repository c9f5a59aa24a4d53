"""The tables of docs/engines.md: engines × features from `ENGINES`, engines × structures by trying each.

python -m tests.docs.engine_tables      write them into the page
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.docs.pages import ROOT

import isotone
from isotone import ENGINES, Capabilities
from isotone.backends.interface import Tape
from isotone.errors import Unsupported
from isotone.structures import (
    Adjacency,
    Counter,
    Feed,
    Idempotency,
    Leaderboard,
    Lock,
    Queue,
    Sequence,
    ShardedCounter,
    SortedSet,
    TimeSeries,
    Unique,
)

PAGE: Final = ROOT / "docs" / "engines.md"
COLUMNS: Final = ("dynamodb", "isotone", "dynamodb-local", "extenddb", "alternator", "azure-table")

# Which sources (numbered on the page) tell of a feature; one without a source was tried, see the tests.
SOURCES: Final[dict[str, str]] = {
    "transactions": "1 2 4 6",
    "partition_transactions": "1 2 4 6",
    "conditional_writes": "1 2 6",
    "consistent_reads": "1 6",
    "descending": "1 6",
    "parallel_scan": "1 6",
    "partiql": "1 2 4 6",
    "vectors": "1 3 4 5 6",
    "capacity_units": "1 2 6",
    "global_indexes": "1 2 4 6",
    "local_indexes": "1 2 4 6",
    "added_indexes": "1 2 4 6",
    "index_projections": "1 2 6",
    "wide_index_keys": "1 6",
    "streams": "1 2 4 6",
    "exact_streams": "1 2",
    "stream_lag": "1 2",
    "expiry": "1 2 4 6",
    "expiry_lag": "1 2 4",
    "marked_expiry": "1 2 4",
    "tags": "1 4 5 6",
    "provisioned_throughput": "1 2 4 5",
    "backups": "1 2 4 5",
    "exports": "1 2 4 5",
    "global_tables": "1 2 4 5",
    "item_size": "1 4 6",
    "attribute_size": "6",
    "attributes": "6",
    "partition_key_size": "1 4 6",
    "sort_key_size": "1 4 6",
    "key_types": "1 6",
    "page_size": "1 4 6",
    "page_items": "6",
    "batch_items": "1 4 6",
    "transaction_items": "1 4",
}

STRUCTURES: Final[dict[str, Callable[[Any], object]]] = {
    "Counter": lambda store: Counter(store, "hits"),
    "ShardedCounter": lambda store: ShardedCounter(store, "hits", shards=4),
    "Sequence": lambda store: Sequence(store, "orders"),
    "Lock": lambda store: Lock(store, "job"),
    "Idempotency": lambda store: Idempotency(store, "payments"),
    "Unique": lambda store: Unique(store, "nick"),
    "Queue": lambda store: Queue(store, "jobs"),
    "SortedSet": lambda store: SortedSet(store, "a"),
    "SortedSet, ranked": lambda store: SortedSet(store, "a", ranked=True),
    "Leaderboard": lambda store: Leaderboard(store, "a"),
    "Leaderboard, ranked": lambda store: Leaderboard(store, "a", ranked=True),
    "TimeSeries": lambda store: TimeSeries(store, "a", roll_ups={}),
    "TimeSeries, with roll-ups": lambda store: TimeSeries(store, "a"),
    "Adjacency": lambda store: Adjacency(store, "likes"),
    "Feed": lambda store: Feed(store),
}


def documents() -> dict[str, str]:
    """The text under each field of `Capabilities`, in order."""
    source = (ROOT / "src/isotone/backends/capabilities.py").read_text(encoding="utf-8")
    found = re.findall(r'^    (\w+): [^\n]* = [^\n]*\n    """(.*?)"""$', source, re.M | re.S)
    return {name: " ".join(text.split()) for name, text in found}


def _value(engine: Capabilities, name: str) -> Any:
    """The value of a feature; an engine with transactions has those of one partition."""
    has_all = name == "partition_transactions" and engine.transactions
    return has_all or getattr(engine, name)


def features() -> list[str]:
    """The fields of `Capabilities`, without the engine's name."""
    return [each.name for each in dataclasses.fields(Capabilities) if each.name != "engine"]


def _shown(name: str, value: Any) -> str:
    if value is True or value is False:
        return "yes" if value else "—"
    if value is None:
        return "no limit"
    if isinstance(value, frozenset):
        return ", ".join(sorted(value))
    if name.endswith("_lag"):
        return _duration(value)
    return _bytes(value) if name.endswith("_size") else str(value)


def _duration(seconds: float) -> str:
    if not seconds:
        return "none"
    unit, name = next(
        (unit, name) for unit, name in ((3600, "h"), (60, "min"), (1, "s")) if seconds >= unit
    )
    return f"{seconds / unit:g} {name}"


def _bytes(size: int) -> str:
    if size % (1024 * 1024) == 0:
        return f"{size // (1024 * 1024)} MB"
    return f"{size // 1024} KB" if size % 1024 == 0 else f"{size} B"


def feature_rows() -> Iterator[list[str]]:
    """The features in which the engines differ."""
    yield ["feature", *(f"`{name}`" for name in COLUMNS), "sources"]
    for name in features():
        if len(_values(name)) > 1:
            yield [f"`{name}`", *_shown_values(name), SOURCES[name]]


def same_rows() -> Iterator[list[str]]:
    """The features that all engines have alike."""
    yield ["feature", "on all of them", "sources"]
    for name in features():
        if len(_values(name)) == 1:
            yield [f"`{name}`", _shown_values(name)[0], SOURCES[name]]


def _values(name: str) -> set[Any]:
    return {_value(ENGINES[engine], name) for engine in COLUMNS}


def _shown_values(name: str) -> list[str]:
    of = {"stream_lag": "streams", "expiry_lag": "expiry"}.get(name, "engine")
    return [
        _shown(name, _value(ENGINES[engine], name)) if getattr(ENGINES[engine], of) else "—"
        for engine in COLUMNS
    ]


def refusal(engine: str, make: Callable[[Any], object]) -> str | None:
    """What a structure says to a store of an engine; None if it works there."""
    store = isotone.connect(Tape(), engine=engine)
    try:
        made = make(store)
        if isinstance(made, Exception):
            raise made
    except Unsupported as error:
        return str(error)
    return None


def needs(make: Callable[[Any], object]) -> Iterator[str]:
    """The features without which a structure is refused, by trying an engine that lacks each."""
    for feature in dataclasses.fields(Capabilities):
        if feature.default is not True:
            continue
        store = isotone.connect(Tape(), capabilities=Capabilities(**{feature.name: False}))
        try:
            make(store)
        except Unsupported:
            yield f"`{feature.name}`"


def structure_rows() -> Iterator[list[str]]:
    yield ["structure", *(f"`{name}`" for name in COLUMNS), "needs"]
    for name, make in STRUCTURES.items():
        answers = ["—" if refusal(engine, make) else "yes" for engine in COLUMNS]
        yield [name, *answers, ", ".join(needs(make))]


def meanings() -> Iterator[list[str]]:
    yield ["feature", "meaning"]
    for name, text in documents().items():
        if name != "engine":
            yield [f"`{name}`", text]


def _table(rows: Iterator[list[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


TABLES: Final = {
    "features": feature_rows,
    "same": same_rows,
    "structures": structure_rows,
    "meanings": meanings,
}


def written(page: str) -> str:
    """The page with all tables as they are today."""
    for name, rows in TABLES.items():
        marked = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        page, count = re.subn(
            marked,
            lambda found, rows=rows: f"{found[1]}{_table(rows())}\n{found[2]}",
            page,
            flags=re.S,
        )
        assert count == 1, f"the page has no place for the table {name}"
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
