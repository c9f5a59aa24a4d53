"""The upgrade of a file from format 1 to 2: its entries get checksums, in place, a slice at a time.

It begins when a file of format 1 is opened: in one transaction, which costs the same for any size, the tables get the two
columns of the checksums, and all trees are listed in a table `upgrade`. From then on the file has format 2; an older
Isotone refuses it. It can be read and written at once, and what is written has its checksums.

The entries that were there get theirs in slices, each in a transaction. `upgrade` has for each tree the key that was
reached. A process that is killed leaves the rest to the next one. With the last tree, `upgrade` is dropped.

    CREATE TABLE "upgrade" (key BLOB PRIMARY KEY, value BLOB NOT NULL)      a tree's name; where it goes on
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import apsw

from isotone.storage.checksums import UNREADABLE, Sums

TABLE: Final = "upgrade"
_CREATE: Final = (
    f'CREATE TABLE "{TABLE}" (key BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID'
)
_SLICE: Final = 250  # entries
_SLICE_SIZE: Final = 512 * 1024  # bytes of values after which a slice ends

_OLD_COLUMNS: Final = "(key BLOB PRIMARY KEY, value BLOB NOT NULL)"
COLUMNS: Final = "(key BLOB PRIMARY KEY, value BLOB NOT NULL, key_sum BLOB, row_sum BLOB)"

Judge = Callable[[str, bytes, bytes], bool]
"""Whether an entry of a tree is what it should be: tree, key, value."""


def begin(connection: Any) -> None:
    """Turn a file of format 1 into one of format 2, in the open transaction; the connection reads its tables again.

    `ALTER TABLE ADD COLUMN` would do the same, but reads every row of a STRICT table. SQLite documents this way:
    a column that is added at the end is NULL in the rows that lack it.
    """
    version = connection.execute("PRAGMA schema_version").get
    connection.execute(_CREATE)
    connection.execute(
        f"INSERT INTO {TABLE} SELECT CAST(substr(name, 6) AS BLOB), x'' FROM sqlite_schema"
        " WHERE type = 'table' AND name GLOB 'tree_*'"
    )
    connection.execute("PRAGMA writable_schema=ON")
    try:
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, ?, ?)"
            " WHERE type = 'table' AND name GLOB 'tree_*'",
            (_OLD_COLUMNS, COLUMNS),
        )
    finally:
        connection.execute("PRAGMA writable_schema=OFF")
    connection.execute(f"PRAGMA schema_version={version + 2}")


def is_pending(connection: Any) -> bool:
    """Whether entries may still lack their checksums."""
    count: int = connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE name = ?", (TABLE,)
    ).get
    return count > 0


def reached_in(connection: Any, tree: str) -> bytes | None:
    """The key from which on entries of a tree may lack their checksums; None if all have them."""
    try:
        reached: bytes | None = connection.execute(
            f"SELECT value FROM {TABLE} WHERE key = ?", (tree.encode(),)
        ).get
    except apsw.SQLError:  # there is no upgrade
        return None
    return reached


def copy_progress(connection: Any) -> None:
    """Take over how far the upgrade of the attached database `source` has come, in the open transaction."""
    connection.execute(f'DROP TABLE IF EXISTS main."{TABLE}"')
    if connection.execute("SELECT count(*) FROM source.sqlite_schema WHERE name = ?", (TABLE,)).get:
        connection.execute(_CREATE)
        connection.execute(f"INSERT INTO main.{TABLE} SELECT key, value FROM source.{TABLE}")


def remaining(connection: Any) -> list[str]:
    """The trees that still have entries without checksums."""
    if not is_pending(connection):
        return []
    return [key.decode() for (key,) in connection.execute(f"SELECT key FROM {TABLE}").fetchall()]


def step(connection: Any, is_sound: Judge) -> bool:
    """Give a slice of entries their checksums, in the open transaction; False if none is left.

    An entry that is not sound was damaged before; it gets a checksum that it cannot have.
    """
    first = connection.execute(f"SELECT key, value FROM {TABLE} ORDER BY key LIMIT 1").get
    if first is None:
        connection.execute(f'DROP TABLE "{TABLE}"')
        return False
    tree, reached = first[0].decode(), first[1]
    there = connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE name = ?", (f"tree_{tree}",)
    ).get
    last = _seal(connection, tree, reached, is_sound) if there else None
    if last is None:
        connection.execute(f"DELETE FROM {TABLE} WHERE key = ?", (first[0],))
    else:
        connection.execute(
            f"UPDATE {TABLE} SET value = ? WHERE key = ?", (last + b"\x00", first[0])
        )
    return True


def _seal(connection: Any, tree: str, reached: bytes, is_sound: Judge) -> bytes | None:
    """Seal a slice of a tree; returns its last key, or None at the end of the tree."""
    tree_sums = Sums(tree)
    sums: list[tuple[bytes, bytes, bytes]] = []
    size = 0
    is_whole = True
    # A value whose type has changed is no value.
    rows = connection.cursor().execute(
        "SELECT key, CASE typeof(value) WHEN 'blob' THEN value END, row_sum"
        f' FROM "tree_{tree}" WHERE key >= ? ORDER BY key',
        (reached,),
    )
    last = reached
    for key, value, row_sum in rows:
        last = key
        size += len(value or b"")
        if row_sum is None:
            key_sum, row_sum = tree_sums.of(key, value or b"")
            is_good = value is not None and is_sound(tree, key, value)
            sums.append((key_sum, row_sum if is_good else UNREADABLE, key))
        if len(sums) == _SLICE or size > _SLICE_SIZE:
            is_whole = False
            break
    rows.close()
    # The cast is for values that are not bytes: SQLite would refuse to write their rows.
    connection.cursor().executemany(
        f'UPDATE "tree_{tree}" SET key_sum = ?, row_sum = ?,'
        " value = coalesce(CAST(value AS BLOB), x'') WHERE key = ?",
        sums,
    )
    return None if is_whole else last
