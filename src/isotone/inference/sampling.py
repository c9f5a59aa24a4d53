"""Reads the basis of an inference: the description of a table, and a sample of its items.

A table with no more items than the sample is read completely, a larger one in several segments. Values that are too
large for a key or a choice are shortened, so that a sample of huge items fits into memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec.structs import replace

from isotone.errors import ApiError, ResourceNotFoundException, UsageError
from isotone.model import Call, Steps
from isotone.tables.description import TableDescription, describe_table, expiry_of, list_tables
from isotone.tables.sample import SEGMENTS, sample_items
from isotone.values.types import AttributeValue, Item

_PAGE: Final = 1000  # the most items of a request
_LONGEST: Final = 2048  # characters of a value that are kept
_MOST_MEMBERS: Final = 40  # members of a list, a set or a map that are kept
OWN_MARKS: Final = ("_keys", "_widening", "_rewriting", "_unique")
"""What the library's own records begin with: the forms of keys, changes of them that go on, unique values."""
_OWN_OF_KIND: Final = tuple(f"{mark}#" for mark in OWN_MARKS)

Progress = Callable[[str, int], None]
"""Called after each request with the current phase, such as "reading", and the number of items read so far."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Items of a table. `own` counts the library's own records in it, which are left out."""

    table: TableDescription
    items: list[Item]
    is_whole: bool
    own: int
    shortened: int


def read_sample(table: str, most: int | None, progress: Progress | None = None) -> Steps[Sample]:
    """Describe a table and read up to `most` of its items; all of them if it is None."""
    shape = yield from existing_table(table)
    is_small = most is None or shape.item_count <= most
    read = yield from sample_items(
        table,
        most,
        segments=1 if is_small else SEGMENTS,
        a_page=_PAGE,
        progress=progress and partial(progress, "reading"),
    )
    items = [item for item in read.items if not _is_own(shape, item)]
    short = [{name: _shortened(value) for name, value in item.items()} for item in items]
    changed = sum(one != other for one, other in zip(items, short, strict=True))
    return Sample(shape, short, read.is_whole, len(read.items) - len(items), changed)


def is_own(partition: AttributeValue) -> bool:
    """Whether a partition key belongs to the library's own records: keys, positions, unique values."""
    text = partition.get("S", "")
    return text in OWN_MARKS or text.startswith(_OWN_OF_KIND)


def _is_own(shape: TableDescription, item: Item) -> bool:
    """Whether an item is one of the library's own records."""
    if not is_own(item[shape.key.partition[0].name]):
        return False
    return any(value.get("S") in OWN_MARKS for value in item.values())


def _shortened(value: AttributeValue) -> AttributeValue:
    """A shortened value of the same type."""
    ((code, content),) = value.items()
    if code in ("S", "B"):
        return value if len(content) <= _LONGEST else {code: content[:_LONGEST]}
    if code == "L":
        return {"L": [_shortened(each) for each in content[:_MOST_MEMBERS]]}
    if code == "M":
        names = list(content)[:_MOST_MEMBERS]
        return {"M": {name: _shortened(content[name]) for name in names}}
    if code in ("SS", "NS", "BS"):
        return value if len(content) <= _MOST_MEMBERS else {code: content[:_MOST_MEMBERS]}
    return value


# The description


def existing_table(table: str) -> Steps[TableDescription]:
    """The description of a table with its expiry; raises `UsageError` that lists all tables if it does not exist."""
    try:
        found = yield from describe_table(table)
    except ResourceNotFoundException:
        known = ", ".join((yield from list_tables())) or "none"
        raise UsageError(f"there is no table {table!r}; the tables are: {known}") from None
    return replace(
        found,
        name=table,  # without the prefix of the store
        indexes=tuple(sorted(found.indexes, key=lambda index: index.name)),
        ttl=(yield from _ttl(table)),
    )


def _ttl(table: str) -> Steps[str | None]:
    """The attribute by which items expire; also None if the engine has no expiry."""
    try:
        return expiry_of((yield Call("DescribeTimeToLive", {"TableName": table})))
    except ApiError:
        return None
