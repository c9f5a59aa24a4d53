"""Table descriptions: keys, indexes, counts and stream, from DescribeTable's answer; and the names of all tables.

    orders = read_description(backend, "Orders")
    orders.key.names                                # ("customer", "placed_at")
    orders.key_of("by_status").partition            # (KeyElement("status", "S"),)

Members that an engine leaves out get their defaults: no stream, no items, provisioned, active.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from isotone.backends.interface import Backend, Response
from isotone.errors import UsageError
from isotone.tables.steps import Call

IndexKind = Literal["global", "local", "vector"]


class KeyElement(NamedTuple):
    """An attribute of a key, and its type: S, N or B."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"{self.name} ({self.type})"


class KeyDescription(Struct, frozen=True):
    """The key of a table or an index: the attributes that group items, and those that order them within a group."""

    partition: tuple[KeyElement, ...]
    sort: tuple[KeyElement, ...]

    @property
    def parts(self) -> tuple[KeyElement, ...]:
        """All key elements, the partition's first."""
        return self.partition + self.sort

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all key attributes, the partition's first."""
        return tuple(part.name for part in self.parts)

    @property
    def partition_names(self) -> tuple[str, ...]:
        """The names of the attributes that group items."""
        return tuple(part.name for part in self.partition)

    @property
    def sort_names(self) -> tuple[str, ...]:
        """The names of the attributes that order items within a group."""
        return tuple(part.name for part in self.sort)

    @property
    def request(self) -> dict[str, Any]:
        """The members of CreateTable that declare this key."""
        kinds = ((self.partition, "HASH"), (self.sort, "RANGE"))
        return {
            "KeySchema": [
                {"AttributeName": each.name, "KeyType": kind}
                for parts, kind in kinds
                for each in parts
            ],
            "AttributeDefinitions": [
                {"AttributeName": each.name, "AttributeType": each.type} for each in self.parts
            ],
        }

    def __str__(self) -> str:
        return " · ".join(map(str, self.parts))


class IndexDescription(Struct, frozen=True):
    """An index. `projection` is ALL, KEYS_ONLY, or the names of the attributes that are included.

    The key of a vector index has its partition and filter attributes; `vectors` is everything else in its description.
    """

    name: str
    kind: IndexKind
    key: KeyDescription
    projection: str | tuple[str, ...]
    item_count: int
    size: int
    status: str
    vectors: Mapping[str, Any] | None


class TableDescription(Struct, frozen=True):
    """A table as DescribeTable describes it.

    `types` has every defined attribute, including those of vector indexes. `identity` distinguishes the table from a
    later one of the same name. The counts may be hours old; `is_counted` is false if the engine counts neither items
    nor bytes. `units` are the provisioned read and write units. `stream` is the view type of an enabled stream. `ttl`
    is the attribute by which items expire, if it was read: DescribeTable does not contain it.
    """

    name: str
    key: KeyDescription
    indexes: tuple[IndexDescription, ...]
    vector_indexes: tuple[IndexDescription, ...]
    types: dict[str, str]
    arn: str
    identity: str
    status: str
    is_counted: bool
    item_count: int
    size: int
    billing: str
    units: tuple[int, int]
    is_protected: bool
    stream: str | None
    stream_arn: str | None
    ttl: str | None = None

    def index(self, name: str) -> IndexDescription:
        """An index by its name; raises `UsageError` that lists the names of all indexes."""
        for index in self.indexes:
            if index.name == name:
                return index
        known = ", ".join(self.index_names) or "none"
        raise UsageError(f"table {self.name} has no index {name!r}; its indexes: {known}")

    def key_of(self, index: str | None) -> KeyDescription:
        """The key of the table, or of one of its indexes."""
        return self.key if index is None else self.index(index).key

    @property
    def index_names(self) -> list[str]:
        """The names of all indexes."""
        return [index.name for index in self.indexes]

    @property
    def key_attributes(self) -> dict[str, str]:
        """The type of each attribute that is part of any key."""
        keys = [self.key, *(index.key for index in self.indexes)]
        return {part.name: part.type for key in keys for part in key.parts}

    @property
    def index_attributes(self) -> dict[str, str]:
        """Each attribute that is part of an index's key, with that index's name."""
        return {name: index.name for index in self.indexes for name in index.key.names}

    @property
    def all_indexes(self) -> dict[str, IndexDescription]:
        """All indexes by their names, including vector indexes."""
        return {index.name: index for index in (*self.indexes, *self.vector_indexes)}

    @property
    def statuses(self) -> set[str]:
        """The statuses of the table and of all its indexes."""
        return {self.status, *(index.status for index in self.all_indexes.values())}


def description_of(described: Mapping[str, Any]) -> TableDescription:
    """Reads the `Table` of DescribeTable's answer, or the `TableDescription` of another action's."""
    types = {
        each["AttributeName"]: each["AttributeType"]
        for each in described.get("AttributeDefinitions") or ()
    }
    units: Mapping[str, int] = described.get("ProvisionedThroughput") or {}
    stream: Mapping[str, Any] = described.get("StreamSpecification") or {}
    return TableDescription(
        name=described.get("TableName") or "",
        key=_key_of(described.get("KeySchema") or (), types),
        indexes=(
            *_indexes_of(described.get("LocalSecondaryIndexes"), "local", types),
            *_indexes_of(described.get("GlobalSecondaryIndexes"), "global", types),
        ),
        types=types,
        vector_indexes=tuple(_indexes_of(described.get("VectorIndexes"), "vector", types)),
        arn=described.get("TableArn") or "",
        identity=str(described.get("TableId") or described.get("CreationDateTime") or ""),
        status=described.get("TableStatus") or "ACTIVE",
        is_counted="ItemCount" in described,
        item_count=described.get("ItemCount") or 0,
        size=described.get("TableSizeBytes") or 0,
        billing=(described.get("BillingModeSummary") or {}).get("BillingMode") or "PROVISIONED",
        units=(units.get("ReadCapacityUnits", 0), units.get("WriteCapacityUnits", 0)),
        is_protected=bool(described.get("DeletionProtectionEnabled")),
        stream=stream.get("StreamViewType") if stream.get("StreamEnabled") else None,
        stream_arn=described.get("LatestStreamArn"),
    )


def _indexes_of(
    indexes: Sequence[Mapping[str, Any]] | None, kind: IndexKind, types: Mapping[str, str]
) -> Iterator[IndexDescription]:
    for index in indexes or ():
        projection: Mapping[str, Any] = index.get("Projection") or {}
        projected = projection.get("ProjectionType") or "ALL"
        is_listed = projected == "INCLUDE"
        yield IndexDescription(
            name=index["IndexName"],
            kind=kind,
            key=_key_of(index.get("KeySchema") or index.get("SearchSchema") or (), types),
            projection=tuple(projection["NonKeyAttributes"]) if is_listed else projected,
            item_count=index.get("ItemCount") or 0,
            size=index.get("IndexSizeBytes") or 0,
            status=index.get("IndexStatus") or "ACTIVE",
            vectors=index if kind == "vector" else None,
        )


def _key_of(schema: Sequence[Mapping[str, str]], types: Mapping[str, str]) -> KeyDescription:
    partition: list[KeyElement] = []
    sort: list[KeyElement] = []
    for each in schema:
        element = KeyElement(each["AttributeName"], types[each["AttributeName"]])
        role = each.get("KeyType") or each["SearchSchemaElementType"]
        (partition if role == "HASH" else sort).append(element)
    return KeyDescription(tuple(partition), tuple(sort))


def expiry_of(answer: Mapping[str, Any]) -> str | None:
    """The attribute by which items expire, from DescribeTimeToLive's answer; None if expiry is not enabled."""
    described: Mapping[str, Any] = answer.get("TimeToLiveDescription") or {}
    is_on = described.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return described.get("AttributeName") if is_on else None


def read_description(backend: Backend, name: str) -> TableDescription:
    """Describe a table of a backend."""
    return description_of(backend.execute("DescribeTable", {"TableName": name})["Table"])


def describe_table(name: str) -> Generator[Call, Response, TableDescription]:
    """`read_description`, as steps."""
    response = yield Call("DescribeTable", {"TableName": name})
    return description_of(response["Table"])


def table_names(backend: Backend) -> list[str]:
    """The names of all tables."""
    steps = list_tables()
    call = next(steps)
    while True:
        try:
            call = steps.send(backend.execute(call.operation, call.request))
        except StopIteration as end:
            return list(end.value)


def list_tables() -> Generator[Call, Response, list[str]]:
    """`table_names`, as steps."""
    names: list[str] = []
    request: dict[str, Any] = {}
    while True:
        response = yield Call("ListTables", request)
        names += response["TableNames"]
        if "LastEvaluatedTableName" not in response:
            return names
        request = {"ExclusiveStartTableName": response["LastEvaluatedTableName"]}
