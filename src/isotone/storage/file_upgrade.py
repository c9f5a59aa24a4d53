"""File format upgrade (1 to 2): adds checksums to old entries in place, a slice at a time.

It begins when a file of format 1 is opened. One transaction, which takes the same time for any size, adds the two
checksum columns to the tables, and lists all trees in a table `upgrade`. From then on the file has format 2, and older
versions of Isotone refuse it. It can be read and written at once, and everything written has checksums.

The old entries get theirs in slices, one transaction each. `upgrade` stores the key reached in each tree. A process
that is killed leaves the rest to the next one. After the last tree, `upgrade` is dropped.

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
_SLICE: Final = 250  # entries of a slice
_SLICE_SIZE: Final = 512 * 1024  # bytes of values that end a slice

_OLD_COLUMNS: Final = "(key BLOB PRIMARY KEY, value BLOB NOT NULL)"
COLUMNS: Final = "(key BLOB PRIMARY KEY, value BLOB NOT NULL, key_sum BLOB, row_sum BLOB)"

Judge = Callable[[str, bytes, bytes], bool]
"""Whether an entry is what it should be: tree, key, value."""


def begin(connection: Any) -> None:
    """Turn a file of format 1 into format 2, in the open transaction. The connection then reads its schema again.

    `ALTER TABLE ADD COLUMN` would do the same, but reads every row of a STRICT table. SQLite documents this way: a
    column added at the end is NULL in rows that lack it.
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
    """The key from which on entries of a tree may lack checksums; None if all have them."""
    try:
        reached: bytes | None = connection.execute(
            f"SELECT value FROM {TABLE} WHERE key = ?", (tree.encode(),)
        ).get
    except apsw.SQLError:  # there is no upgrade
        return None
    return reached


def copy_progress(connection: Any) -> None:
    """Copy the progress of the upgrade of the attached database `source`, in the open transaction."""
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
    """Give a slice of entries their checksums, in the open transaction; False if none remain.

    An unsound entry was already damaged; it gets an impossible checksum.
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
    """Add checksums to a slice of a tree; returns its last key, or None at the end of the tree."""
    tree_sums = Sums(tree)
    sums: list[tuple[bytes, bytes, bytes]] = []
    size = 0
    is_whole = True
    # A value whose type has changed counts as missing.
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
    # The cast is for values that are not bytes, because SQLite would refuse to write their rows.
    connection.cursor().executemany(
        f'UPDATE "tree_{tree}" SET key_sum = ?, row_sum = ?,'
        " value = coalesce(CAST(value AS BLOB), x'') WHERE key = ?",
        sums,
    )
    return None if is_whole else last
