"""History for point-in-time recovery (PITR): the old record of every change, so that a table can be read as it was.

    key     time in ms (8 bytes) · sequence number (8)
    value   length of the item's key (4) · the item's key · its record before the change, empty if there was none

A change writes its entry in its own transaction, at the end of the tree. Keys rise even if the clock is set back: a
time is never less than the one before. So a *position*, the key of an entry, divides the history. The table as of a
position is the present table, except that each key with a later change has the record that the first of these changes
replaced. `views` reads it this way.

A moment that a user was told, such as the end of an export, is over: the next export begins there. `end_moment` sees to it
that no later change gets a time before it, wherever the clock is set.

A table has a history while point-in-time recovery is enabled, and while a view of it is open. Entries that neither of
them needs are trimmed. Without a history, a write only compares a field with None.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from isotone.engine.engine import VIEWS, Engine
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import Recovery, TableSchema

SLICE: Final = 500  # entries dropped in one transaction
DAY: Final = 24 * 3600 * 1000
BEGINNING: Final = bytes(16)
"""The position before every change."""

_POSITION: Final = struct.Struct(">QQ")
_LENGTH: Final = struct.Struct(">I")


class ReplacedRecord(NamedTuple):
    """One change: its position, the key of its item, and the record that it replaced, empty if there was none."""

    position: bytes
    key: bytes
    old: bytes


def keep_old(engine: Engine, tree: str, key: bytes, old: bytes | None) -> None:
    """Record in the open transaction that a change replaced `old`. Costs one more write.

    The sequence number and the latest time are stored with the tree counts, so they are written once per transaction,
    and rolled back with it.
    """
    sequence, latest = engine.counts.of(tree)
    now = max(latest, milliseconds(engine.clock.now()))
    engine.counts.add(tree, 1, now - latest)
    entry = _LENGTH.pack(len(key)) + key + (old or b"")
    engine.store.put(tree, _POSITION.pack(now, sequence + 1), entry)


def position_at(engine: Engine, tree: str, moment: int) -> bytes:
    """The position of the last change at or before a time (ms). Later changes come after it."""
    high = _POSITION.pack(moment + 1, 0)
    entry = next(engine.store.range(tree, b"", high, reverse=True), None)
    return BEGINNING if entry is None else entry[0]


def end_moment(engine: Engine, tree: str, moment: int) -> None:
    """Let all later changes of a history have at least this time (ms), in the open transaction."""
    latest = engine.counts.of(tree)[1]
    if moment > latest:
        engine.counts.add(tree, 0, moment - latest)


def changes_after(engine: Engine, tree: str, position: bytes, most: int) -> list[ReplacedRecord]:
    """The next changes after a position, oldest first."""
    entries = islice(engine.store.range(tree, position + b"\x00", None), most)
    return [change_in(position, value) for position, value in entries]


def time_of(position: bytes) -> int:
    """When a change was made, in milliseconds."""
    return int.from_bytes(position[:8], "big")


def milliseconds(seconds: float) -> int:
    """A time in milliseconds, as histories store it."""
    return int(seconds * 1000)


def change_in(position: bytes, value: bytes) -> ReplacedRecord:
    """Decode the change in an entry."""
    key_end = _LENGTH.size + _LENGTH.unpack_from(value)[0]
    return ReplacedRecord(position, value[_LENGTH.size : key_end], value[key_end:])


# Which tables have a history


def begin(engine: Engine, schema: TableSchema) -> TableSchema:
    """The table with a history; the caller saves it."""
    if schema.history is not None:
        return schema
    tree = engine.catalog.new_tree("h")
    engine.store.create_tree(tree)
    return msgspec.structs.replace(schema, history=tree)


def end_if_unused(engine: Engine, table: StoredTable) -> None:
    """Drop the history of a table unless recovery or an open view needs it."""
    if table.history is None or table.schema.recovery is not None or pins(engine, table.history):
        return
    engine.catalog.save(msgspec.structs.replace(table.schema, history=None))
    engine.store.drop_tree(table.history)
    engine.counts.drop(table.history)


def earliest(engine: Engine, recovery: Recovery) -> int:
    """The earliest time (ms) to which a table can be restored."""
    return max(recovery.since, milliseconds(engine.clock.now()) - recovery.days * DAY)


def pin(engine: Engine, view: str, tree: str, position: bytes) -> None:
    """Keep the changes after a position for a view, until `unpin`."""
    engine.store.put(VIEWS, _pin_key(tree, view), position)


def unpin(engine: Engine, view: str, tree: str) -> None:
    """End a `pin`."""
    engine.store.delete(VIEWS, _pin_key(tree, view))


def pins(engine: Engine, tree: str) -> list[bytes]:
    """The positions that open views need."""
    low = _pin_key(tree, "")
    return [position for _, position in engine.store.range(VIEWS, low, low[:-1] + b"\x01")]


def _pin_key(tree: str, view: str) -> bytes:
    return b"p" + tree.encode() + b"\x00" + view.encode()


# Maintenance: drops what can no longer be restored


def exists(engine: Engine) -> bool:
    """Whether any table has a history."""
    return bool(engine.catalog.having("history"))


def trim(engine: Engine) -> bool:
    """Drop a slice of changes that are too old; False if there were none."""
    with engine.reading:
        histories = engine.catalog.having("history")
        due = [table.name for table in histories if next(_old(engine, table), None)]
    if not due:
        return False
    with engine.writing:
        for name in due:
            table = engine.catalog.tables.get(name)
            if table is not None and table.history is not None:
                for position in list(islice(_old(engine, table), SLICE)):
                    engine.store.delete(table.history, position)
    return True


def _old(engine: Engine, table: StoredTable) -> Iterator[bytes]:
    """The positions of changes that nobody needs any more."""
    if table.history is None:
        return iter(())
    needed = pins(engine, table.history)
    recovery = table.schema.recovery
    if recovery is not None:
        # An export may begin at the earliest moment, and includes the changes of that millisecond.
        needed.append(_POSITION.pack(earliest(engine, recovery), 0))
    high = min(needed, default=BEGINNING) + b"\x00"
    return (position for position, _ in engine.store.range(table.history, b"", high))
