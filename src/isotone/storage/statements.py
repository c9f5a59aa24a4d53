"""The SQL statements of each operation on a tree, built once per tree."""

from __future__ import annotations

from typing import Final

import msgspec

from isotone.errors import UsageError
from isotone.storage.checksums import Sums
from isotone.storage.file_upgrade import COLUMNS
from isotone.storage.interface import NoSuchTree, checked_tree_name

PREFIX: Final = "tree_"
"""A tree `name` is the table `tree_name`, with columns for the key, the value and their checksums."""
OF_REPLICATOR: Final = "_litestream_"  # Litestream's own tables, which it uses for locks
TREES: Final = (
    f"SELECT substr(name, {len(PREFIX) + 1}) AS tree FROM sqlite_schema"
    f" WHERE type = 'table' AND name GLOB '{PREFIX}*' ORDER BY tree"
)


# Bytes whose type has changed to text would otherwise be decoded.
KEY: Final = "CAST(key AS BLOB)"
VALUE: Final = "CAST(value AS BLOB)"


class Statements(msgspec.Struct, frozen=True, gc=False):
    """The SQL of one tree; the keys of `range` are (careful, without an upper bound, reverse)."""

    sums: Sums
    start: int
    create: str
    drop: str
    get: str
    put: str
    add_rows: str
    delete: str
    key_sum: str
    neighbours: str
    range: dict[tuple[bool, bool, bool], str]

    def add(self, rows: int) -> str:
        """Adds `rows` rows, given as a flat list of columns."""
        return self.add_rows.format(rows=", ".join(["(?, ?, ?, ?)"] * rows))


def statements_of(tree: str) -> Statements:
    table = f'"{PREFIX}{tree}"'
    sums = Sums(tree)
    bounds = {False: "key >= ? AND key < ?", True: "key >= ?"}
    orders = {False: "ASC", True: "DESC"}
    key = f"SELECT key || coalesce(key_sum, x'') FROM {table} WHERE key"
    below = f"CAST(({key} < ?1 ORDER BY key DESC LIMIT 1) AS BLOB)"
    above = f"CAST(({key} >= ?2 ORDER BY key LIMIT 1) AS BLOB)"
    return Statements(
        sums=sums,
        start=sums.start,
        create=f"CREATE TABLE {table} {COLUMNS} STRICT, WITHOUT ROWID",
        drop=f"DROP TABLE {table}",
        get=f"SELECT value, row_sum FROM {table} WHERE key = ?",
        # An upsert changes the row in place; REPLACE would delete and insert it.
        put=(
            f"INSERT INTO {table} VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
            " SET value = excluded.value, key_sum = excluded.key_sum, row_sum = excluded.row_sum"
        ),
        add_rows=f"INSERT INTO {table} VALUES {{rows}} ON CONFLICT DO NOTHING",
        delete=f"DELETE FROM {table} WHERE key = ?",
        key_sum=f"SELECT key_sum FROM {table} WHERE key = ?",
        neighbours=f"SELECT {below}, {above}",
        range={
            (careful, unbounded, reverse): (
                f"SELECT {columns}, row_sum FROM {table} WHERE {bound} ORDER BY key {order}"
            )
            for careful, columns in {False: "key, value", True: f"{KEY}, {VALUE}"}.items()
            for unbounded, bound in bounds.items()
            for reverse, order in orders.items()
        },
    )


class StatementsByTree(dict[str, Statements]):
    """The statements of each tree, created at first use, even for a tree that does not exist.

    SQLite itself reports a missing tree, even if another process has just dropped it.
    """

    def __missing__(self, tree: str) -> Statements:
        try:
            statements = self[tree] = statements_of(checked_tree_name(tree))
        except UsageError:
            raise NoSuchTree(tree) from None
        return statements
