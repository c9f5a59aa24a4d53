"""PostgreSQL's SQL: of one table (`TableSQL`), of the schema (`SchemaSQL`), of a commit's writes (`CommitStatements`).

    isotone_state    one row: the format, the revision that each commit raises, and one that rises with the list of trees
    isotone_trees    the table of each tree
    isotone_dropped  the tables of dropped trees, until they are deleted
    t7_0_items1      the tree items1, made by the first commit after revision 7

Both numbers begin with the time, in microseconds: a schema that is deleted and made again begins above all numbers that a
process may know of the former one.

`CommitStatements` makes the statements of a commit from what a transaction has written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from isotone.storage.long_keys import LONGEST, changed
from isotone.storage.postgres_connection import ServerStatement, array
from isotone.storage.write_buffer import Branch

FORMAT: Final = b"1"
_LOCK_CLASS: Final = 1507  # of our advisory locks; the schema's hash is their number
_TABLES: Final = 1000  # whose SQL is kept
_DROPPED_AT_ONCE: Final = 50  # tables that are deleted in one transaction
_ASSUMED_SIZE: Final = 4096  # bytes of a row before any was read
_LONGEST_NAME: Final = 63  # of a table of PostgreSQL
_NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class TableSQL:
    """The SQL for one table."""

    __slots__ = ("delete", "get", "put", "put_all", "range", "row_size", "rows")

    def __init__(self, table: str, state: str) -> None:
        self.row_size: int = _ASSUMED_SIZE  # the average of the rows that a range has read last
        self.get: bytes = f"SELECT (SELECT value FROM {table} WHERE key = $1), revision, trees FROM {state}".encode()
        self.rows: bytes = f"SELECT key, value FROM {table} WHERE key = ANY ($1)".encode()
        conflict = "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        self.put: bytes = f"INSERT INTO {table} VALUES ($1, $2) {conflict}".encode()
        unnested = "SELECT * FROM unnest($1::bytea[], $2::bytea[])"
        self.put_all: bytes = f"INSERT INTO {table} {unnested} {conflict}".encode()
        self.delete: bytes = f"DELETE FROM {table} WHERE key = ANY ($1)".encode()
        self.range: dict[tuple[bool, bool, bool], bytes] = {
            (has_low, has_high, reverse): _range(table, has_low, has_high, reverse)
            for has_low in (False, True)
            for has_high in (False, True)
            for reverse in (False, True)
        }


def _range(table: str, has_low: bool, has_high: bool, reverse: bool) -> bytes:
    """A part of a range; without `has_low`, the lower bound itself is left out."""
    bounds = f"key {'>=' if has_low else '>'} $1" + (" AND key < $2" if has_high else "")
    order = "DESC" if reverse else "ASC"
    limit = f"${2 + has_high}::bigint"
    return (
        f"SELECT key, value FROM {table} WHERE {bounds} ORDER BY key {order} LIMIT {limit}".encode()
    )


class SchemaSQL:
    """The SQL for one schema."""

    def __init__(self, schema: str) -> None:
        self._schema = schema
        state, trees, dropped = (
            self._named(name) for name in ("isotone_state", "isotone_trees", "isotone_dropped")
        )
        self._state, self._trees = state, trees
        self.of: Callable[[str], TableSQL] = lru_cache(_TABLES)(self._of)
        """The SQL for one table."""
        lock = f"({_LOCK_CLASS}, hashtext('{schema}'))"
        self.lock: ServerStatement = ServerStatement(f"SELECT pg_advisory_xact_lock{lock}".encode())
        self.try_lock: ServerStatement = ServerStatement(
            f"SELECT pg_try_advisory_xact_lock{lock}".encode()
        )
        self.state: ServerStatement = ServerStatement(
            f"SELECT revision, trees FROM {state}".encode()
        )
        self.format: ServerStatement = ServerStatement(f"SELECT format FROM {state}".encode())
        self.trees: ServerStatement = ServerStatement(
            f"SELECT tree, relation FROM {trees}".encode()
        )
        self.tables: ServerStatement = ServerStatement(
            f"SELECT relname::text FROM pg_class WHERE relnamespace = '{schema}'::regnamespace".encode()
        )
        self.is_made: ServerStatement = ServerStatement(
            f"SELECT to_regclass('{schema}.isotone_state') IS NOT NULL".encode()
        )
        self.has_schema: ServerStatement = ServerStatement(
            f"SELECT to_regnamespace('{schema}') IS NOT NULL".encode()
        )
        self.create_schema: ServerStatement = ServerStatement(f'CREATE SCHEMA "{schema}"'.encode())
        self.create: list[ServerStatement] = [
            ServerStatement(sql.encode())
            for sql in (
                f"CREATE TABLE IF NOT EXISTS {state} "
                "(format text NOT NULL, revision bigint NOT NULL, trees bigint NOT NULL)",
                f"CREATE TABLE IF NOT EXISTS {trees} (tree text PRIMARY KEY, relation text NOT NULL)",
                f"CREATE TABLE IF NOT EXISTS {dropped} (relation text PRIMARY KEY)",
                f"INSERT INTO {state} SELECT '{FORMAT.decode()}', {_NOW}, {_NOW} "
                f"WHERE NOT EXISTS (SELECT FROM {state})",
            )
        ]
        self.raise_revision: bytes = (
            f"UPDATE {state} SET revision = revision + 1, trees = trees + $1 RETURNING revision, trees"
        ).encode()
        self.drop_tree: bytes = (
            f"WITH gone AS (DELETE FROM {trees} WHERE tree = $1 RETURNING relation) "
            f"INSERT INTO {dropped} SELECT relation FROM gone"
        ).encode()
        # A snapshot that began before the tree was dropped has an older xmin than the row that says so.
        self.dropped: ServerStatement = ServerStatement(
            f"SELECT relation FROM {dropped} AS gone WHERE NOT EXISTS (SELECT FROM pg_stat_activity "
            "WHERE backend_xmin IS NOT NULL AND age(backend_xmin) >= age(gone.xmin)) "
            f"LIMIT {_DROPPED_AT_ONCE} FOR UPDATE SKIP LOCKED".encode()
        )
        self.forget_dropped: bytes = f"DELETE FROM {dropped} WHERE relation = $1".encode()

    def _of(self, relation: str) -> TableSQL:
        return TableSQL(self._named(relation), self._state)

    def create_tree(self, tree: str, relation: str) -> list[ServerStatement]:
        table = self._named(relation)
        columns = "(key bytea PRIMARY KEY, value bytea NOT NULL)"
        names = (tree.encode(), relation.encode())
        return [
            ServerStatement(f"CREATE TABLE {table} {columns}".encode()),
            ServerStatement(f"INSERT INTO {self._trees} VALUES ($1, $2)".encode(), names),
        ]

    def drop_table(self, relation: str) -> ServerStatement:
        return ServerStatement(f"DROP TABLE IF EXISTS {self._named(relation)}".encode())

    def _named(self, relation: str) -> str:
        return f'"{self._schema}"."{relation}"'


class CommitStatements:
    """The statements that carry out what a transaction has written."""

    def __init__(
        self,
        sql: SchemaSQL,
        relations: dict[str, str],
        revision: int,
        rows_at: Callable[[str, Sequence[bytes]], dict[bytes, bytes]],
    ) -> None:
        self.all: list[ServerStatement] = []
        self.made: dict[str, str] = {}
        self.dropped: set[str] = set()
        self._sql = sql
        self._relations = relations
        self._revision = revision
        self._rows_at = rows_at

    def add(self, tree: str, branch: Branch | None) -> None:
        former = self._relations.get(tree)
        if former is not None and (branch is None or branch.relation is None):
            self.dropped.add(tree)
            self.all.append(ServerStatement(self._sql.drop_tree, (tree.encode(),)))
        if branch is None:
            return
        relation = branch.relation or self._make(tree)
        if branch.written:
            self._write(relation, branch)

    def _make(self, tree: str) -> str:
        """A new table, with a name that no table has had."""
        relation = f"t{self._revision}_{len(self.made)}_{tree}"[:_LONGEST_NAME]
        self.made[tree] = relation
        self.all += self._sql.create_tree(tree, relation)
        return relation

    def _write(self, relation: str, branch: Branch) -> None:
        written = branch.written
        if any(len(key) >= LONGEST for key in branch.keys):
            written = self._with_bundles(branch)
        puts = sorted((key, value) for key, value in written.items() if value is not None)
        deleted = sorted(key for key, value in written.items() if value is None)
        sql = self._sql.of(relation)
        if deleted and branch.relation is not None:
            self.all.append(ServerStatement(sql.delete, (array(deleted),)))
        if len(puts) == 1:
            self.all.append(ServerStatement(sql.put, puts[0]))
        elif puts:
            keys, values = zip(*puts, strict=True)
            self.all.append(ServerStatement(sql.put_all, (array(keys), array(values))))

    def _with_bundles(self, branch: Branch) -> dict[bytes, bytes | None]:
        """What is written by row: long keys as changes of the bundles that they are in."""
        rows: dict[bytes, bytes | None] = {}
        bundles: dict[bytes, dict[bytes, bytes | None]] = {}
        for key, value in branch.written.items():
            if len(key) < LONGEST:
                rows[key] = value
            else:
                bundles.setdefault(key[:LONGEST], {})[key] = value
        stored = {} if branch.relation is None else self._rows_at(branch.relation, [*bundles])
        for row, written in bundles.items():
            rows[row] = changed(stored.get(row), written)
        return rows
