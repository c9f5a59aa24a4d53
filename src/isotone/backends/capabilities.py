"""`Capabilities`: what an engine can do, and its limits. `engines` has those of the known engines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from isotone import limits
from isotone.errors import Unsupported

Reads = Literal["table", "local", "global"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do, and its limits. The defaults are those of Amazon's DynamoDB.

    `isotone.ENGINES` has the known engines by name. Creating a table, a structure or a transaction that needs a missing
    feature raises `Unsupported`. A limit of None means that there is none.

    >>> mine = Capabilities("my engine", transactions=False, item_size=64 * 1024)
    >>> mine.require(["transactions"], "a transaction", "write the entities one by one")
    Traceback (most recent call last):
    ...
    isotone.errors.Unsupported: a transaction needs transactions, which my engine does not have; write the \
entities one by one
    """

    engine: str = "this engine"
    """The engine's name, for messages."""

    # Writes

    transactions: bool = True
    """TransactWriteItems and TransactGetItems: several items change together, or are read as of one moment."""
    partition_transactions: bool = False
    """Without `transactions`: transactions of items of one partition."""
    conditional_writes: bool = True
    """A write can depend on the stored item: conditions, versions, `create`."""

    # Reads

    consistent_reads: frozenset[Reads] = frozenset(("table", "local"))
    """What a consistent read may read: "table", "local" indexes, "global" indexes."""
    descending: bool = True
    """A query can read backwards; otherwise the whole range is read and reversed."""
    parallel_scan: bool = True
    """A scan can be divided into segments that are read in parallel."""
    partiql: bool = True
    """ExecuteStatement, BatchExecuteStatement and ExecuteTransaction."""
    vectors: bool = True
    """Vector indexes and SearchVectors."""
    capacity_units: bool = True
    """Responses say how many units a request consumed."""

    # Indexes

    global_indexes: bool = True
    """Global secondary indexes."""
    local_indexes: bool = True
    """Local secondary indexes."""
    added_indexes: bool = True
    """A global index can be added to an existing table."""
    index_projections: bool = True
    """An index stores only the attributes that it declares; otherwise it stores all."""
    wide_index_keys: bool = True
    """Each part of a global index's key can have several attributes."""

    # Streams and expiry

    streams: bool = True
    """The table's stream of changes, which feeds and workers read."""
    exact_streams: bool = True
    """Each write is one record, which says whether the item was inserted, modified or removed."""
    stream_lag: float = 1.0
    """Usual seconds until a change appears in the stream."""
    expiry: bool = True
    """Items are deleted after the time in an attribute (TTL)."""
    expiry_lag: float = 48 * 3600.0
    """The longest time in seconds until an expired item is deleted, by the engine's default settings."""
    marked_expiry: bool = True
    """The stream marks the deletion of an expired item."""

    # Tables

    tags: bool = True
    """Tags of tables."""
    provisioned_throughput: bool = True
    """A table can have provisioned units, and throttles beyond them."""
    backups: bool = True
    """Backups on demand and point-in-time recovery by the API."""
    exports: bool = True
    """Exports and imports by the API."""
    global_tables: bool = True
    """Replicas of a table in other regions, created by the API."""

    # Limits

    item_size: int | None = limits.ITEM_SIZE
    """Bytes of one item, names and values."""
    attribute_size: int | None = None
    """Bytes of one attribute's value."""
    attributes: int | None = None
    """Attributes of one item."""
    partition_key_size: int = limits.PARTITION_KEY_SIZE
    """Bytes of a partition key's value."""
    sort_key_size: int = limits.SORT_KEY_SIZE
    """Bytes of a sort key's value."""
    key_types: frozenset[str] = frozenset(("S", "N", "B"))
    """The types that a key attribute may have."""
    page_size: int | None = limits.QUERY_PAGE
    """Bytes that one request of a query or a scan reads at most."""
    page_items: int | None = None
    """Items that one request of a query or a scan returns, at most."""
    batch_items: int = limits.BATCH_WRITE_ITEMS
    """Writes in one BatchWriteItem; 1 if they are executed one by one."""
    transaction_items: int = limits.TRANSACTION_ITEMS
    """Writes in one transaction."""

    def lacking(self, needs: Iterable[str]) -> list[str]:
        """Those of the given features, named like the fields, that the engine does not have."""
        return [need for need in needs if not getattr(self, need)]

    def require(self, needs: Iterable[str], what: str, instead: str = "") -> None:
        """Raise `Unsupported` if one of these features is missing; `instead` says what to do instead."""
        if missing := self.lacking(needs):
            names = " and ".join(missing).replace("_", " ")
            advice = instead or "use another engine, or leave out what needs it"
            raise Unsupported(f"{what} needs {names}, which {self.engine} does not have; {advice}")


DYNAMODB: Final = Capabilities("DynamoDB")
