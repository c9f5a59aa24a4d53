"""Whether a database is what it should be: each item where its key says, each index complete, counts true.

Reads everything once, and nothing whole: memory stays flat on a file of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from isotone.engine.engine import SYSTEM_TREES, Engine
from isotone.engine.record import item_of, size_of
from isotone.engine.streams import integrity as streams
from isotone.engine.table import Table
from isotone.values.size import item_size

Progress = Callable[[str, int], None]
"""Called with a table's name and the items looked at so far."""

_EVERY = 10_000


def check(engine: Engine, progress: Progress | None = None) -> list[str]:
    """What is wrong, in words; empty where nothing is. Reads every item and every index entry.

    Sees one moment, so that other processes may go on writing meanwhile.
    """
    with engine.reading:
        problems = list(engine.store.check())
        problems.extend(_unknown_trees(engine))
        for table in engine.catalog:
            problems.extend(_check_table(engine, table, progress))
        problems.extend(streams.check(engine))
    return problems


def _unknown_trees(engine: Engine) -> Iterator[str]:
    known = {*SYSTEM_TREES, *streams.trees(engine)}
    for table in engine.catalog:
        known.update(table.trees)
    there = set(engine.store.trees())
    for tree in sorted(there - known):
        yield f"tree {tree} belongs to no table"
    for tree in sorted(known - there):
        yield f"tree {tree} is missing"


def _check_table(engine: Engine, table: Table, progress: Progress | None) -> Iterator[str]:
    items = size = 0
    complete = [index for index in table.indexes if index.filled]
    expected = {index.tree: 0 for index in complete}
    for key, record in engine.store.range(table.tree, b"", None):
        items += 1
        size += size_of(record)
        item = item_of(record)
        where = f"table {table.name}, item {table.schema.key_of(item)}"
        if item_size(item) != size_of(record):
            yield f"{where}: its recorded size is {size_of(record)}, its size {item_size(item)}"
        if table.keyspace.key(item) != key:
            yield f"{where}: lies at another place than its key says"
        for index in complete:
            entry = index.entry(item, key, record)
            if entry is None:
                continue
            expected[index.tree] += 1
            if engine.store.get(index.tree, entry.key) != entry.record:
                yield f"{where}: its entry in {index.tree} is missing or old"
        if progress is not None and items % _EVERY == 0:
            progress(table.name, items)
    yield from _check_counts(engine, table, items, size, expected)
    if progress is not None:
        progress(table.name, items)


def _check_counts(
    engine: Engine, table: Table, items: int, size: int, expected: dict[str, int]
) -> Iterator[str]:
    if engine.counts.of(table.tree) != (items, size):
        yield (
            f"table {table.name}: its count says {engine.counts.of(table.tree)}, "
            f"but there are {items} items of {size} bytes"
        )
    for tree, count in expected.items():
        there = sum(1 for _ in engine.store.range(tree, b"", None))
        if there != count:
            yield f"table {table.name}: index {tree} has {there} entries, but {count} items belong in it"
        if engine.counts.of(tree)[0] != there:
            yield (
                f"table {table.name}: the count of index {tree} says "
                f"{engine.counts.of(tree)[0]}, but there are {there} entries"
            )
