"""Requests about tables and their indexes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from isotone import limits
from isotone.operations.shapes.members import (
    BillingMode,
    ControlTableName,
    EntityName,
    Flag,
    IndexName,
    KeyAttributeName,
    KeyType,
    Long,
    PositiveLong,
    ProjectionType,
    ScalarAttributeType,
    SSEType,
    StreamViewType,
    Structure,
    TableClass,
)
from isotone.operations.shapes.settings import Tag

NonKeyAttributes = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=255)]], Meta(min_length=1, max_length=20)
]


class AttributeDefinition(Structure, frozen=True):
    """The type of an attribute that some key uses."""

    attribute_name: KeyAttributeName
    attribute_type: ScalarAttributeType


class KeySchemaElement(Structure, frozen=True):
    """One attribute of a key, and which part of the key it belongs to."""

    attribute_name: KeyAttributeName
    key_type: KeyType


KeySchema = Annotated[list[KeySchemaElement], Meta(min_length=1, max_length=2)]
# A global index may have up to four attributes in each part of its key.
IndexKeySchema = Annotated[
    list[KeySchemaElement], Meta(min_length=1, max_length=2 * limits.INDEX_KEY_PARTS)
]


class Projection(Structure, frozen=True):
    """Which attributes an index copies."""

    projection_type: ProjectionType | None = None
    non_key_attributes: NonKeyAttributes | None = None


class ProvisionedThroughput(Structure, frozen=True):
    """Capacity units a second."""

    read_capacity_units: PositiveLong
    write_capacity_units: PositiveLong


class OnDemandThroughput(Structure, frozen=True):
    """The ceiling of an on-demand table or index; -1 takes it away."""

    max_read_request_units: Long | None = None
    max_write_request_units: Long | None = None


class WarmThroughput(Structure, frozen=True):
    """What a table or index should bear at once."""

    read_units_per_second: Long | None = None
    write_units_per_second: Long | None = None


class LocalSecondaryIndex(Structure, frozen=True):
    """An index with the table's partition key."""

    index_name: IndexName
    key_schema: KeySchema
    projection: Projection


class GlobalSecondaryIndex(Structure, frozen=True):
    """An index with a key of its own."""

    index_name: IndexName
    key_schema: IndexKeySchema
    projection: Projection
    provisioned_throughput: ProvisionedThroughput | None = None
    on_demand_throughput: OnDemandThroughput | None = None
    warm_throughput: WarmThroughput | None = None


class StreamSpecification(Structure, frozen=True):
    """Whether changes are recorded, and what a record shows."""

    stream_enabled: Flag
    stream_view_type: StreamViewType | None = None


class SSESpecification(Structure, frozen=True):
    """Encryption at rest."""

    enabled: Flag | None = None
    sse_type: SSEType | None = None
    kms_master_key_id: str | None = None


class CreateTable(Structure, frozen=True):
    """Make a table with its indexes."""

    attribute_definitions: list[AttributeDefinition]
    table_name: ControlTableName
    key_schema: KeySchema
    local_secondary_indexes: list[LocalSecondaryIndex] | None = None
    global_secondary_indexes: list[GlobalSecondaryIndex] | None = None
    billing_mode: BillingMode | None = None
    provisioned_throughput: ProvisionedThroughput | None = None
    stream_specification: StreamSpecification | None = None
    sse_specification: SSESpecification | None = None
    tags: list[Tag] | None = None
    table_class: TableClass | None = None
    deletion_protection_enabled: Flag | None = None
    warm_throughput: WarmThroughput | None = None
    resource_policy: str | None = None
    on_demand_throughput: OnDemandThroughput | None = None


class DeleteTable(Structure, frozen=True):
    """Drop a table with everything in it."""

    table_name: ControlTableName


class DescribeTable(Structure, frozen=True):
    """Ask what a table is like."""

    table_name: ControlTableName


class ListTables(Structure, frozen=True):
    """Ask for the names of all tables, a page at a time."""

    exclusive_start_table_name: EntityName | None = None
    limit: Annotated[int, Meta(ge=1, le=limits.LIST_TABLES)] | None = None


class UpdateGlobalSecondaryIndexAction(Structure, frozen=True):
    """Change the capacity of a global index."""

    index_name: IndexName
    provisioned_throughput: ProvisionedThroughput | None = None
    on_demand_throughput: OnDemandThroughput | None = None
    warm_throughput: WarmThroughput | None = None


class CreateGlobalSecondaryIndexAction(Structure, frozen=True):
    """Add a global index to a table that may have items."""

    index_name: IndexName
    key_schema: IndexKeySchema
    projection: Projection
    provisioned_throughput: ProvisionedThroughput | None = None
    on_demand_throughput: OnDemandThroughput | None = None
    warm_throughput: WarmThroughput | None = None


class DeleteGlobalSecondaryIndexAction(Structure, frozen=True):
    """Drop a global index."""

    index_name: IndexName


class GlobalSecondaryIndexUpdate(Structure, frozen=True):
    """One change of a global index: exactly one of the members is there."""

    update: UpdateGlobalSecondaryIndexAction | None = None
    create: CreateGlobalSecondaryIndexAction | None = None
    delete: DeleteGlobalSecondaryIndexAction | None = None


class RegionAction(Structure, frozen=True):
    """A replica or witness of a global table, by its region."""

    region_name: str


class ReplicationGroupUpdate(Structure, frozen=True):
    """A change of a global table's replicas."""

    create: RegionAction | None = None
    update: RegionAction | None = None
    delete: RegionAction | None = None


class GlobalTableWitnessGroupUpdate(Structure, frozen=True):
    """A change of a global table's witnesses."""

    create: RegionAction | None = None
    delete: RegionAction | None = None


class UpdateTable(Structure, frozen=True, kw_only=True):
    """Change a table's capacity, billing, protection or global indexes."""

    attribute_definitions: list[AttributeDefinition] | None = None
    table_name: ControlTableName
    billing_mode: BillingMode | None = None
    provisioned_throughput: ProvisionedThroughput | None = None
    global_secondary_index_updates: list[GlobalSecondaryIndexUpdate] | None = None
    stream_specification: StreamSpecification | None = None
    sse_specification: SSESpecification | None = None
    replica_updates: Annotated[list[ReplicationGroupUpdate], Meta(min_length=1)] | None = None
    table_class: TableClass | None = None
    deletion_protection_enabled: Flag | None = None
    multi_region_consistency: Literal["EVENTUAL", "STRONG"] | None = None
    global_table_witness_updates: (
        Annotated[list[GlobalTableWitnessGroupUpdate], Meta(min_length=1, max_length=1)] | None
    ) = None
    on_demand_throughput: OnDemandThroughput | None = None
    warm_throughput: WarmThroughput | None = None
