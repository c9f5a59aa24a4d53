"""`isotone.seed`: fills tables with sample data that follows from a model and a seed.

The model writes the items, so keys, computed fields, versions and unique values are its own. Entities without unique
values and versions go in batches. The others are created one by one, and so is everything in a table that has items: an
item that is there already stays.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, Final, overload

from isotone.clock import ManualClock
from isotone.design.sample_plan import UNTIL, SampleData, SampleRequest, Several
from isotone.errors import AlreadyExists, UsageError
from isotone.model import (
    AsyncStore,
    BatchProgress,
    Call,
    Calls,
    Entity,
    Steps,
    Store,
    Table,
    is_key_record,
)
from isotone.text_table import pluralized

Name = type[Entity] | str
Progress = Callable[["SeedProgress"], object]

_FEW: Final = 3  # items that tell whether a table has any besides the record of its keys


@dataclass(frozen=True, slots=True)
class SeedProgress:
    """How many items of a sample are written: `items` of `of_items`."""

    items: int
    of_items: int

    def __str__(self) -> str:
        share = self.items / self.of_items if self.of_items else 1.0
        return f"{self.items:,} of {pluralized(self.of_items, 'item')} ({share:.0%})"


@dataclass(frozen=True, slots=True)
class Seeded:
    """The result of `isotone.seed`: the items of each entity, those that were there already, and the tables made."""

    items: Mapping[str, int]
    kept: int = 0
    """Items that existed before, and stayed."""
    tables: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        parts = [f"{count:,} {name}" for name, count in self.items.items()]
        kept = f"; {pluralized(self.kept, 'item')} existed before" if self.kept else ""
        return (", ".join(parts) or "no items") + kept


@overload
def seed(
    store: Store,
    *targets: Table | type[Entity],
    items: Mapping[Name, int] = ...,
    per: Mapping[Name | tuple[Name, Name], int | str] = ...,
    popularity: Mapping[Name, float] = ...,
    seed: int = 0,
    until: datetime = UNTIL,
    faker: str | None = None,
    add: bool = False,
    start: int = 0,
    progress: Progress | None = None,
) -> Seeded: ...
@overload
def seed(
    store: AsyncStore,
    *targets: Table | type[Entity],
    items: Mapping[Name, int] = ...,
    per: Mapping[Name | tuple[Name, Name], int | str] = ...,
    popularity: Mapping[Name, float] = ...,
    seed: int = 0,
    until: datetime = UNTIL,
    faker: str | None = None,
    add: bool = False,
    start: int = 0,
    progress: Progress | None = None,
) -> Coroutine[Any, Any, Seeded]: ...
def seed(
    store: Any,
    *targets: Table | type[Entity],
    items: Mapping[Name, int] | None = None,
    per: Mapping[Name | tuple[Name, Name], int | str] | None = None,
    popularity: Mapping[Name, float] | None = None,
    seed: int = 0,
    until: datetime = UNTIL,
    faker: str | None = None,
    add: bool = False,
    start: int = 0,
    progress: Progress | None = None,
) -> Any:
    """Fill tables with sample items of entities: the same for the same seed, on every machine.

    `items` says how many there are of an entity (100 by default, of one that belongs to no other). `per` says how many
    children each parent has (1 to 10): `{Order: 5}`, `{(Customer, Order): "3..40"}`, or `"3..40,zipf"` for few parents
    with many. `popularity` says how unequally fields refer to the items of an entity: 0 alike, 1 by Zipf's law. Times are
    in the year before `until`. `faker` is a locale of the package Faker, whose texts then replace Isotone's. Missing
    tables are created. A table that has items raises `UsageError`, unless `add`: then the sample's items are created one by
    one, and items that exist stay. `start` continues after so many items. With an `AsyncStore`, await the result. Cost: a
    write of each item, and in each index.

    >>> made = isotone.seed(isotone.connect(":memory:"), Organization, items={Organization: 3})
    >>> dict(made.items)
    {'Organization': 3}
    """
    if not hasattr(store, "run"):
        raise UsageError(f"{store!r} is not a store; make one by isotone.connect(…)")
    asked = SampleRequest(
        items={_name(each): count for each, count in (items or {}).items()},
        per={_pair(each): Several.of(count) for each, count in (per or {}).items()},
        popularity={_name(each): value for each, value in (popularity or {}).items()},
        seed=seed,
        until=until,
        faker=faker,
    )
    sample = SampleData(targets, asked)
    return store.run(write_sample(store.calls, sample, add=add, start=start, progress=progress))


def _name(given: Any) -> str:
    return given if isinstance(given, str) else str(getattr(given, "__name__", given))


def _pair(given: Any) -> tuple[str, str]:
    """The child and its parent, or ""."""
    if isinstance(given, tuple):
        parent, child = given
        return _name(child), _name(parent)
    return _name(given), ""


def write_sample(
    calls: Calls,
    sample: SampleData,
    *,
    add: bool = False,
    start: int = 0,
    is_begun: bool = False,
    progress: Progress | None = None,
) -> Steps[Seeded]:
    """Write a sample from an item on; `calls` are those of the store.

    `is_begun`: the tables were empty when an earlier run began. The first progress is reported before the first write.
    """
    if not sample.of:
        raise UsageError("there is no entity to make samples of; give a table with entities")
    made = yield from calls.create_tables(*sample.tables)
    if not (add or start or is_begun):
        yield from _check_empty(calls, sample)
    clock = ManualClock()
    timed = calls.by_clock(clock)

    def entities() -> Iterator[Entity]:
        for entity, moment in sample.entities(start):
            clock.set(moment)
            yield entity

    done, kept = start, 0

    def report(batch: BatchProgress) -> None:
        if progress is not None:
            progress(SeedProgress(done + batch.done, sample.count))

    report(BatchProgress(0, 0))
    for is_alone, group in groupby(entities(), lambda entity: add or _is_written_alone(entity)):
        if is_alone:
            for entity in group:
                kept += yield from _create(timed, entity)
                report(BatchProgress(1, 1))
                done += 1
        else:
            done += yield from timed.put_many(group, progress=report)
    counts = {each.name: each.count for each in sample.of.values()}
    return Seeded(counts, kept, tuple(made))


def _is_written_alone(entity: Entity) -> bool:
    """Whether a batch cannot write the entity, because its write has a condition."""
    schema = entity.__schema__
    return bool(schema.unique) or "version" in schema.by_role


def _create(calls: Calls, entity: Entity) -> Steps[int]:
    """Create an entity; 1 if it existed before."""
    try:
        yield from calls.create(entity)
    except AlreadyExists:
        return 1
    return 0


def _check_empty(calls: Calls, sample: SampleData) -> Steps[None]:
    """Raise `UsageError` if a table has items."""
    for table in sample.tables:
        found = yield Call("Scan", {"TableName": table.name, "Limit": _FEW})
        names = [each.name for each in table.keys.attributes]
        keys = [{name: item[name] for name in names} for item in found["Items"]]
        if not all(is_key_record(table, key) for key in keys):
            raise UsageError(
                f"table {table.name!r} has items; give another target, or --add (add=True) to write the sample beside them"
            )
