"""The stored schema of a table: keys, indexes, throughput, TTL, stream, point-in-time recovery, replicas, settings.

The catalog stores these structs as JSON in the file. `operations/descriptions.py` describes a table as the API does.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec

from isotone.values.attribute_validation import AttributeValue

IndexKind = Literal["local", "global"]
IndexStatus = Literal["CREATING", "ACTIVE", "DELETING"]
BillingMode = Literal["PROVISIONED", "PAY_PER_REQUEST"]
ProjectionKind = Literal["ALL", "KEYS_ONLY", "INCLUDE"]
Distance = Literal["COSINE", "DOT_PRODUCT", "EUCLIDEAN"]
SearchRole = Literal["HASH", "INLINE_FILTER"]
StreamView = Literal["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"]


class KeyPart(msgspec.Struct, frozen=True):
    """One key attribute: its name and its type, S, N or B."""

    name: str
    type: Literal["S", "N", "B"]


class KeySchema(msgspec.Struct, frozen=True):
    """The key of a table or an index: attributes that group items, and attributes that order them within a group.

    A table and a local index have one partition attribute and at most one sort attribute; a global
    index has up to four of each.
    """

    partition: tuple[KeyPart, ...]
    sort: tuple[KeyPart, ...] = ()

    @property
    def parts(self) -> tuple[KeyPart, ...]:
        return self.partition + self.sort

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts)


class IndexProjection(msgspec.Struct, frozen=True):
    """Which attributes an index entry contains besides the keys."""

    kind: ProjectionKind = "ALL"
    names: tuple[str, ...] = ()


class TableThroughput(msgspec.Struct, frozen=True):
    """Provisioned units per second, and when they last changed."""

    read: int = 0
    write: int = 0
    increased: float | None = None
    decreased: float | None = None
    decreases_today: int = 0


class IndexSchema(msgspec.Struct, frozen=True):
    """One secondary index. While it is CREATING, the store has the progress of its backfill."""

    name: str
    kind: IndexKind
    keys: KeySchema
    projection: IndexProjection
    tree: str
    status: IndexStatus = "ACTIVE"
    throughput: TableThroughput = TableThroughput()
    settings: dict[str, Any] = {}


class SearchPart(msgspec.Struct, frozen=True):
    """One attribute of a search schema: the partition of a vector index, or a filter of its searches."""

    name: str
    type: Literal["S", "N", "B"]
    role: SearchRole


class VectorSchema(msgspec.Struct, frozen=True):
    """One vector index: the attribute with the vectors, and how they are compared and filtered."""

    name: str
    attribute: str
    dimensions: int
    distance: Distance
    search: tuple[SearchPart, ...]
    projection: IndexProjection
    tree: str
    status: IndexStatus = "ACTIVE"

    @property
    def partition(self) -> SearchPart | None:
        """The attribute whose value partitions the index, if any."""
        return next((part for part in self.search if part.role == "HASH"), None)

    @property
    def filters(self) -> tuple[SearchPart, ...]:
        """The attributes by which searches can be filtered."""
        return tuple(part for part in self.search if part.role == "INLINE_FILTER")


IndexOrVector = TypeVar("IndexOrVector", IndexSchema, VectorSchema)


class TimeToLive(msgspec.Struct, frozen=True):
    """The attribute with an item's expiry, and the index that finds expired items."""

    attribute: str
    tree: str
    filled: bool = False


class StreamSchema(msgspec.Struct, frozen=True):
    """A table's latest stream, as far as writes need it (`streams` has the rest).

    `shards` are the open shards ordered by hash, and `lows` their first hashes; a disabled stream has none.
    """

    label: str
    view: StreamView
    tree: str
    shards: tuple[int, ...] = ()
    lows: tuple[int, ...] = ()


class Recovery(msgspec.Struct, frozen=True):
    """Point-in-time recovery: a table can be restored to any moment of the last days, but not before `since` (ms)."""

    days: int
    since: int


class Policy(msgspec.Struct, frozen=True):
    """The resource policy of a table or a stream: its JSON, and a number that each change increases."""

    document: str
    revision: str


class KinesisDestination(msgspec.Struct, frozen=True):
    """A Kinesis data stream that is recorded as a destination of a table's changes."""

    arn: str
    is_active: bool
    precision: str


class Insights(msgspec.Struct, frozen=True):
    """Whether Contributor Insights are recorded as enabled, and since when (s)."""

    enabled: bool
    mode: str
    changed: float


class Replication(msgspec.Struct, frozen=True):
    """The replicas of a table: their regions, including the table's own, and the trees of `replica_log`."""

    version: str
    regions: tuple[str, ...]
    created: float
    consistency: str | None = None
    witnesses: tuple[str, ...] = ()
    overrides: dict[str, dict[str, Any]] = {}
    """The settings of each region's replica when it was created or updated."""
    stamps: str = ""
    outbox: str = ""


class Restored(msgspec.Struct, frozen=True):
    """What a table was restored from. `view` (see `views`) has what is still to be copied; None when all is done."""

    source: str
    moment: float
    backup: str | None = None
    view: str | None = None


class TableSchema(msgspec.Struct, frozen=True):
    """One table. A change creates a new struct, so a reader never sees half of a change."""

    name: str
    id: str
    created: float
    keys: KeySchema
    tree: str
    attributes: dict[str, str]
    indexes: tuple[IndexSchema, ...] = ()
    vectors: tuple[VectorSchema, ...] = ()
    billing: BillingMode = "PROVISIONED"
    throughput: TableThroughput = TableThroughput()
    on_demand_since: float | None = None
    deletion_protection: bool = False
    ttl: TimeToLive | None = None
    stream: StreamSchema | None = None
    history: str | None = None
    """The tree of the table's changes, while anything needs them (`history`)."""
    recovery: Recovery | None = None
    restored: Restored | None = None
    replication: Replication | None = None
    policy: Policy | None = None
    kinesis: tuple[KinesisDestination, ...] = ()
    insights: dict[str, Insights] = {}
    """By the name of a global index; the empty name is the table's own."""
    scaling: dict[str, Any] = {}
    """Auto-scaling settings by `Read:` or `Write:` and the name of a global index; the table's own have no name."""
    loading: str | None = None
    """The import that fills the table, until it ends (`transfers`)."""
    tags: dict[str, str] = {}
    settings: dict[str, Any] = {}
    """Members of CreateTable that are stored and described but have no effect here."""

    @property
    def is_creating(self) -> bool:
        """Whether the table's items are still being restored or imported, so that it cannot be used yet."""
        is_restoring = self.restored is not None and self.restored.view is not None
        return is_restoring or self.loading is not None

    def index(self, name: str) -> IndexSchema | None:
        return next((index for index in self.indexes if index.name == name), None)

    def vector_index(self, name: str) -> VectorSchema | None:
        return next((index for index in self.vectors if index.name == name), None)

    @property
    def has_filling_index(self) -> bool:
        """Whether an added index is still being backfilled."""
        statuses = [index.status for index in self.indexes]
        statuses += [index.status for index in self.vectors]
        return "CREATING" in statuses

    @property
    def index_trees(self) -> set[str]:
        """The trees of all secondary and vector indexes."""
        secondary = {index.tree for index in self.indexes}
        return secondary | {index.tree for index in self.vectors}

    @property
    def projected_count(self) -> int:
        """The number of attributes that all indexes name for projection; a vector index also names its vector and
        filters.
        """
        vectors = [
            {index.attribute, *index.projection.names, *(part.name for part in index.filters)}
            for index in self.vectors
        ]
        return sum(len(index.projection.names) for index in self.indexes) + sum(map(len, vectors))

    @property
    def used_attributes(self) -> set[str]:
        """The attributes that need definitions: those of keys and search schemas."""
        keys = [self.keys, *(index.keys for index in self.indexes)]
        searched = {part.name for index in self.vectors for part in index.search}
        return searched.union(*(key.names for key in keys))

    def key_of(self, item: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
        """The table's key attributes of an item."""
        return {name: item[name] for name in self.keys.names}
