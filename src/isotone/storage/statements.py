"""The SQL of a tree. A tree `name` is the table `tree_name`: its key, its value, nothing else."""

from __future__ import annotations

from typing import Final, NamedTuple

from isotone.errors import UsageError
from isotone.storage.interface import NoSuchTree, checked_tree_name

PREFIX: Final = "tree_"


class Statements(NamedTuple):
    """The SQL texts of one tree; `range` is looked up by (without an upper bound, reverse)."""

    create: str
    drop: str
    get: str
    put: str
    delete: str
    range: dict[tuple[bool, bool], str]


def statements(tree: str) -> Statements:
    """The SQL texts of a tree, whose name has been checked."""
    table = f'"{PREFIX}{tree}"'
    bounds = {False: "key >= ? AND key < ?", True: "key >= ?"}
    orders = {False: "ASC", True: "DESC"}
    return Statements(
        create=f"CREATE TABLE {table} (key BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID",
        drop=f"DROP TABLE {table}",
        get=f"SELECT value FROM {table} WHERE key = ?",
        # An upsert changes the row in place, where REPLACE deletes and inserts.
        put=f"INSERT INTO {table} VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
        delete=f"DELETE FROM {table} WHERE key = ?",
        range={
            (
                unbounded,
                reverse,
            ): f"SELECT key, value FROM {table} WHERE {bound} ORDER BY key {order}"
            for unbounded, bound in bounds.items()
            for reverse, order in orders.items()
        },
    )


class StatementsByTree(dict[str, Statements]):
    """Statements by name of tree, made when first asked for, whether or not there is such a tree.

    SQLite itself says when there is none, also where another process has dropped it a moment ago.
    """

    def __missing__(self, tree: str) -> Statements:
        try:
            made = self[tree] = statements(checked_tree_name(tree))
        except UsageError:
            raise NoSuchTree(tree) from None
        return made
