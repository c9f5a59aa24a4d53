"""Request structures of CreateTable, UpdateTable, DeleteTable …, and their rules on keys, indexes and throughput."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Annotated, Any, Final, Literal, Protocol

from msgspec import Meta

from isotone import limits
from isotone.errors import LimitExceededException, ValidationException
from isotone.operations.action import ActionRule, Rules
from isotone.operations.item_validation import INVALID
from isotone.operations.java_order import hashed
from isotone.operations.legacy import refuse_repeated_names
from isotone.operations.request_members import (
    ApiStructure,
    AttributeName,
    BillingMode,
    ControlTableName,
    Flag,
    IndexName,
    KeyAttributeName,
    KeyType,
    Long,
    NewTableName,
    PositiveLong,
    ProjectionType,
    ScalarAttributeType,
    SearchSchemaElementType,
    SSEType,
    StreamViewType,
    TableClass,
    Tag,
    VectorDistanceFunction,
    member_name,
)
from isotone.operations.tags import TAGS_ARE_VALID, check_tag_count

NonKeyAttributes = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=255)]], Meta(min_length=1, max_length=20)
]


class AttributeDefinition(ApiStructure, frozen=True):
    """The type of an attribute that a key uses."""

    attribute_name: KeyAttributeName
    attribute_type: ScalarAttributeType


class KeySchemaElement(ApiStructure, frozen=True):
    """One attribute of a key, and which part of the key it belongs to."""

    attribute_name: KeyAttributeName
    key_type: KeyType


KeySchema = Annotated[list[KeySchemaElement], Meta(min_length=1, max_length=2)]
# A global index may have up to four attributes in each part of its key.
IndexKeySchema = Annotated[
    list[KeySchemaElement], Meta(min_length=1, max_length=2 * limits.INDEX_KEY_PARTS)
]


class Projection(ApiStructure, frozen=True):
    """Which attributes an index copies."""

    projection_type: ProjectionType | None = None
    non_key_attributes: NonKeyAttributes | None = None


class ProvisionedThroughput(ApiStructure, frozen=True):
    """Capacity units per second."""

    read_capacity_units: PositiveLong
    write_capacity_units: PositiveLong


class OnDemandThroughput(ApiStructure, frozen=True):
    """The maximum of an on-demand table or index; -1 removes it."""

    max_read_request_units: Long | None = None
    max_write_request_units: Long | None = None


class WarmThroughput(ApiStructure, frozen=True):
    """The throughput that a table or index should support at once."""

    read_units_per_second: Long | None = None
    write_units_per_second: Long | None = None


class LocalSecondaryIndex(ApiStructure, frozen=True):
    """An index with the table's partition key."""

    index_name: IndexName
    key_schema: KeySchema
    projection: Projection


class GlobalSecondaryIndex(ApiStructure, frozen=True):
    """An index with its own key."""

    index_name: IndexName
    key_schema: IndexKeySchema
    projection: Projection
    provisioned_throughput: ProvisionedThroughput | None = None
    on_demand_throughput: OnDemandThroughput | None = None
    warm_throughput: WarmThroughput | None = None


class VectorAttributeDefinition(ApiStructure, frozen=True):
    """The attribute that holds the vectors."""

    attribute_name: KeyAttributeName


class SearchSchemaElement(ApiStructure, frozen=True):
    """An attribute that partitions a vector index, or by which its searches can be filtered."""

    attribute_name: AttributeName
    search_schema_element_type: SearchSchemaElementType


class VectorIndex(ApiStructure, frozen=True, kw_only=True):
    """An index that is searched for the vectors nearest to another."""

    index_name: IndexName
    vector_attribute: VectorAttributeDefinition
    search_schema: Annotated[list[SearchSchemaElement], Meta(min_length=1)] | None = None
    projection: Projection
    dimensions: PositiveLong
    distance_function: VectorDistanceFunction


class DeleteVectorIndexAction(ApiStructure, frozen=True):
    """Delete a vector index."""

    index_name: IndexName


class VectorIndexUpdate(ApiStructure, frozen=True):
    """One change of the vector indexes: exactly one of the members is present."""

    create: VectorIndex | None = None
    delete: DeleteVectorIndexAction | None = None


class StreamSpecification(ApiStructure, frozen=True):
    """Whether changes are recorded, and what a record contains."""

    stream_enabled: Flag
    stream_view_type: StreamViewType | None = None


class SSESpecification(ApiStructure, frozen=True):
    """Encryption at rest."""

    enabled: Flag | None = None
    sse_type: SSEType | None = None
    kms_master_key_id: str | None = None


class CreateTable(ApiStructure, frozen=True):
    """Create a table with its indexes."""

    attribute_definitions: list[AttributeDefinition]
    table_name: NewTableName
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
    vector_indexes: list[VectorIndex] | None = None


class DeleteTable(ApiStructure, frozen=True):
    """Delete a table with everything in it."""

    table_name: ControlTableName


class DescribeTable(ApiStructure, frozen=True):
    """Ask for the description of a table."""

    table_name: ControlTableName


class UpdateGlobalSecondaryIndexAction(ApiStructure, frozen=True):
    """Change the capacity of a global index."""

    index_name: IndexName
    provisioned_throughput: ProvisionedThroughput | None = None
    on_demand_throughput: OnDemandThroughput | None = None
    warm_throughput: WarmThroughput | None = None


class CreateGlobalSecondaryIndexAction(ApiStructure, frozen=True):
    """Add a global index to a table that may have items."""

    index_name: IndexName
    key_schema: IndexKeySchema
    projection: Projection
    provisioned_throughput: ProvisionedThroughput | None = None
    on_demand_throughput: OnDemandThroughput | None = None
    warm_throughput: WarmThroughput | None = None


class DeleteGlobalSecondaryIndexAction(ApiStructure, frozen=True):
    """Delete a global index."""

    index_name: IndexName


class GlobalSecondaryIndexUpdate(ApiStructure, frozen=True):
    """One change of a global index: exactly one of the members is present."""

    update: UpdateGlobalSecondaryIndexAction | None = None
    create: CreateGlobalSecondaryIndexAction | None = None
    delete: DeleteGlobalSecondaryIndexAction | None = None


class RegionAction(ApiStructure, frozen=True):
    """A replica or witness of a global table, by its region."""

    region_name: str


class ProvisionedThroughputOverride(ApiStructure, frozen=True):
    """The read capacity of a replica."""

    read_capacity_units: PositiveLong | None = None


class OnDemandThroughputOverride(ApiStructure, frozen=True):
    """The limit of the reads of a replica."""

    max_read_request_units: Long | None = None


class ReplicaGlobalSecondaryIndex(ApiStructure, frozen=True):
    """The capacity of an index of a replica."""

    index_name: IndexName
    provisioned_throughput_override: ProvisionedThroughputOverride | None = None
    on_demand_throughput_override: OnDemandThroughputOverride | None = None


class ReplicaSettings(ApiStructure, frozen=True):
    """A region, and what its replica has of its own."""

    region_name: str
    kms_master_key_id: str | None = None
    provisioned_throughput_override: ProvisionedThroughputOverride | None = None
    on_demand_throughput_override: OnDemandThroughputOverride | None = None
    global_secondary_indexes: (
        Annotated[list[ReplicaGlobalSecondaryIndex], Meta(min_length=1)] | None
    ) = None
    table_class_override: TableClass | None = None


class CreateReplicationGroupMemberAction(ReplicaSettings, frozen=True):
    """Create a replica, with settings of its own."""


class UpdateReplicationGroupMemberAction(ReplicaSettings, frozen=True):
    """Change the settings of a replica."""


class Disassociation(ApiStructure, frozen=True):
    """A replica that leaves its global table as a table of its own; it is checked, and ignored."""

    region_name: str
    disassociation_mode: Literal["WAIT_FOR_REPLICATION"]


class ReplicationGroupUpdate(ApiStructure, frozen=True):
    """A change of a global table's replicas: exactly one of the members is present."""

    create: CreateReplicationGroupMemberAction | None = None
    update: UpdateReplicationGroupMemberAction | None = None
    delete: RegionAction | None = None
    disassociate: Disassociation | None = None


class GlobalTableWitnessGroupUpdate(ApiStructure, frozen=True):
    """A change of a global table's witnesses."""

    create: RegionAction | None = None
    delete: RegionAction | None = None


class UpdateTable(ApiStructure, frozen=True, kw_only=True):
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
    vector_index_updates: list[VectorIndexUpdate] | None = None


# Rules on tables

ONE_AT_A_TIME: Final = (
    "Subscriber limit exceeded: "
    "Only 1 online index can be created or deleted simultaneously per table"
)
_LARGEST_THROUGHPUT: Final = 1_000_000_000_000
_UPDATES: Final = (
    "billing_mode",
    "deletion_protection_enabled",
    "global_secondary_index_updates",
    "global_table_witness_updates",
    "multi_region_consistency",
    "on_demand_throughput",
    "provisioned_throughput",
    "replica_updates",
    "sse_specification",
    "stream_specification",
    "table_class",
    "vector_index_updates",
    "warm_throughput",
)
_NO_UPDATE: Final[tuple[object, ...]] = (
    None,
    [],
    SSESpecification(),
    OnDemandThroughput(),
    WarmThroughput(),
)


def _check_billing(request: CreateTable) -> None:
    on_demand = request.billing_mode == "PAY_PER_REQUEST"
    if on_demand and request.provisioned_throughput is not None:
        raise ValidationException(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
            "when BillingMode is PAY_PER_REQUEST"
        )
    if not on_demand and request.provisioned_throughput is None:
        raise ValidationException(
            f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified "
            "when BillingMode is PROVISIONED"
        )


def _check_bounds(throughput: ProvisionedThroughput | None, index: str | None = None) -> None:
    if throughput is None:
        return
    where = "" if index is None else f" for index {index}"
    for name, units in (
        ("ReadCapacityUnits", throughput.read_capacity_units),
        ("WriteCapacityUnits", throughput.write_capacity_units),
    ):
        if units > _LARGEST_THROUGHPUT:
            raise ValidationException(f"Given value {units} for {name} is out of bounds{where}")


def check_maximums(
    maximums: OnDemandThroughput | None, provisioned: bool, of: str = "table"
) -> None:
    """Refuse a maximum of an on-demand table or index that is neither positive nor -1, which removes it."""
    if maximums is None:
        return
    for name, units in (
        ("MaxReadRequestUnits", maximums.max_read_request_units),
        ("MaxWriteRequestUnits", maximums.max_write_request_units),
    ):
        if units is None:
            continue
        if provisioned:
            raise ValidationException(
                f"{INVALID}{name} for OnDemandThroughput cannot be specified "
                "when table BillingMode is PROVISIONED."
            )
        if units < 1 and units != -1:
            raise ValidationException(
                f"{INVALID}Requested {name} for OnDemandThroughput for {of} "
                "is outside of valid range"
            )


def _check_new_stream(stream: StreamSpecification | None) -> None:
    if stream is None or stream.stream_enabled == (stream.stream_view_type is not None):
        return
    raise ValidationException(
        f"{INVALID}Table is being created with a stream "
        + (
            "enabled, UpdateViewType is required"
            if stream.stream_enabled
            else "disabled, UpdateViewType should not be specified"
        )
    )


def check_changed_stream(stream: StreamSpecification) -> None:
    """An enabled stream needs a view type, and a disabled one may have none."""
    if stream.stream_enabled == (stream.stream_view_type is not None):
        return
    raise ValidationException(
        f"{INVALID}If stream is being "
        + (
            "enabled then UpdateViewType is required"
            if stream.stream_enabled
            else "disabled, then UpdateViewType must not be specified"
        )
    )


def _check_change(request: UpdateTable) -> None:
    if all(getattr(request, name) in _NO_UPDATE for name in _UPDATES):
        raise ValidationException(
            "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
            "GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required"
        )


def _check_new_billing(request: UpdateTable) -> None:
    throughput = request.provisioned_throughput
    if request.billing_mode == "PAY_PER_REQUEST" and throughput is not None:
        raise ValidationException(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
            "when BillingMode is PAY_PER_REQUEST"
        )
    if request.billing_mode == "PROVISIONED" and throughput is None:
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
        )


def _check_updates(request: UpdateTable) -> None:
    named: set[str] = set()
    for update in request.global_secondary_index_updates or ():
        action: IndexAction = only_action(update, "update", "create", "delete")
        if action.index_name in named:
            raise ValidationException(
                f"{INVALID}Only one global secondary index update per index is allowed "
                f"simultaneously. Index: {action.index_name}"
            )
        named.add(action.index_name)
        _check_bounds(getattr(action, "provisioned_throughput", None), action.index_name)


def _created(request: UpdateTable) -> list[CreateGlobalSecondaryIndexAction]:
    updates = request.global_secondary_index_updates or ()
    return [update.create for update in updates if update.create is not None]


def _check_one_update(request: UpdateTable) -> None:
    updates = request.global_secondary_index_updates or ()
    if len(_created(request)) + sum(update.delete is not None for update in updates) > 1:
        raise LimitExceededException(ONE_AT_A_TIME)


def _check_created(request: UpdateTable) -> None:
    for index in _created(request):
        check_defined(index.key_schema, request.attribute_definitions)
        check_key_schema(index.key_schema, parts_of_index=True)
        check_projection(index.projection)


def only_action(update: ApiStructure, *members: str) -> Any:
    """The only action of an update of an index or a replica, which has these members."""
    names = ", ".join(f"{type(update).__name__}.{member_name(member)}" for member in members)
    actions = [each for member in members if (each := getattr(update, member)) is not None]
    if not actions:
        raise ValidationException(f"{INVALID}One of {names} must not be null")
    if len(actions) > 1:
        raise ValidationException(f"{INVALID}Only one of {names} may not be null")
    return actions[0]


def _check_replicas(request: UpdateTable) -> None:
    for update in request.replica_updates or ():
        if update.disassociate is None:
            only_action(update, "create", "update", "delete")
    for witness in request.global_table_witness_updates or ():
        only_action(witness, "create", "delete")


# Rules on keys and indexes

IndexAction = (
    CreateGlobalSecondaryIndexAction
    | DeleteGlobalSecondaryIndexAction
    | UpdateGlobalSecondaryIndexAction
)


class _Projecting(Protocol):
    @property
    def projection(self) -> Projection: ...


_NO_DEFINITION: Final = "Invalid KeySchema: Some index key attribute have no definition"


def _check_definitions(
    keys: Sequence[KeySchemaElement], definitions: Sequence[AttributeDefinition]
) -> None:
    """Check that each attribute of a table's key is defined, and nothing is defined twice."""
    defined: set[str] = set()
    for name in (each.attribute_name for each in definitions):
        if name in defined:
            raise ValidationException(f"Attribute Name is duplicated: {name}")
        defined.add(name)
    names = [each.attribute_name for each in keys]
    found = defined.intersection(names)
    if len(names) > max(1, len(found)) or not defined:
        raise ValidationException(_NO_DEFINITION)
    if not found:
        raise _undefined(names, [each.attribute_name for each in definitions])


def check_key_schema(elements: Sequence[KeySchemaElement], *, parts_of_index: bool = False) -> None:
    """Check that a key is a HASH attribute and optionally a RANGE one; a global index may have more."""
    kinds: list[str] = [each.key_type for each in elements]
    if kinds[0] != "HASH":
        raise ValidationException(
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
        )
    if parts_of_index:
        _check_parts(kinds)
    elif len(elements) > 1 and kinds[1] != "RANGE":
        raise ValidationException(
            "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"
        )
    if len({each.attribute_name for each in elements}) < len(elements):
        raise ValidationException(
            "Both the Hash Key and the Range Key element in the KeySchema have the same name"
            if kinds == ["HASH", "RANGE"]
            else "The KeySchema contains multiple key attributes with the same name"
        )


def _check_parts(kinds: list[str]) -> None:
    if kinds != sorted(kinds):
        raise ValidationException(
            f"{INVALID}All HASH key attributes must precede RANGE key attributes in the KeySchema"
        )
    for kind in ("HASH", "RANGE"):
        if kinds.count(kind) > limits.INDEX_KEY_PARTS:
            raise ValidationException(
                f"{INVALID}The KeySchema exceeds the maximum allowed number of {kind} key attributes"
            )


def _check_lists(request: CreateTable) -> None:
    if request.local_secondary_indexes == []:
        raise ValidationException(f"{INVALID}List of LocalSecondaryIndexes is empty")
    if request.global_secondary_indexes == []:
        raise ValidationException(f"{INVALID}List of GlobalSecondaryIndexes is empty")


def _check_range_key(request: CreateTable) -> None:
    if request.local_secondary_indexes and len(request.key_schema) < 2:
        raise ValidationException(
            f"{INVALID}Table KeySchema does not have a range key, "
            "which is required when specifying a LocalSecondaryIndex"
        )


def _check_local_indexes(request: CreateTable) -> None:
    seen: set[str] = set()
    for index in request.local_secondary_indexes or ():
        check_defined(index.key_schema, request.attribute_definitions)
        check_key_schema(index.key_schema)
        _check_local_key(index, request.key_schema[0].attribute_name)
        check_unique_name(index.index_name, seen)
        check_projection(index.projection)


def _check_local_count(request: CreateTable) -> None:
    if len(request.local_secondary_indexes or ()) > limits.LOCAL_INDEXES:
        raise ValidationException(
            f"{INVALID}Number of LocalSecondaryIndexes exceeds per-table limit of {limits.LOCAL_INDEXES}"
        )


def _check_local_key(index: LocalSecondaryIndex, table_hash_key: str) -> None:
    if len(index.key_schema) < 2:
        raise ValidationException(
            f"{INVALID}Index KeySchema does not have a range key for index: {index.index_name}"
        )
    hash_key = index.key_schema[0].attribute_name
    if hash_key != table_hash_key:
        raise ValidationException(
            f"{INVALID}Index KeySchema does not have the same leading hash key as table KeySchema "
            f"for index: {index.index_name}. index hash key: {hash_key}, "
            f"table hash key: {table_hash_key}"
        )


def _check_global_indexes(request: CreateTable) -> None:
    seen = {index.index_name for index in request.local_secondary_indexes or ()}
    for index in request.global_secondary_indexes or ():
        check_defined(index.key_schema, request.attribute_definitions)
        check_key_schema(index.key_schema, parts_of_index=True)
        check_unique_name(index.index_name, seen)
        check_projection(index.projection)
        on_demand = request.billing_mode == "PAY_PER_REQUEST"
        _check_throughput(index, on_demand)
        check_maximums(index.on_demand_throughput, not on_demand, f"index {index.index_name}")


def _check_global_count(request: CreateTable) -> None:
    if len(request.global_secondary_indexes or ()) > limits.GLOBAL_INDEXES:
        raise ValidationException(
            f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of {limits.GLOBAL_INDEXES}"
        )


def _check_names(request: CreateTable) -> None:
    local, global_ = request.local_secondary_indexes, request.global_secondary_indexes
    check_projected_count(_named((*(local or ()), *(global_ or ()))))


def _check_throughput(index: GlobalSecondaryIndex, on_demand: bool) -> None:
    if on_demand and index.provisioned_throughput is not None:
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput should not be specified for index: {index.index_name} "
            "when BillingMode is PAY_PER_REQUEST"
        )
    if not on_demand and index.provisioned_throughput is None:
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput is not specified for index: {index.index_name}"
        )


def check_defined(
    elements: Iterable[KeySchemaElement], definitions: Iterable[AttributeDefinition] | None
) -> None:
    """Check that the request defines the types of the attributes of an index key."""
    keys = hashed(each.attribute_name for each in elements)
    defined = hashed(each.attribute_name for each in definitions or ())
    if len(keys) > max(1, len(defined)):
        raise ValidationException(_NO_DEFINITION)
    if not set(keys) <= set(defined):
        raise _undefined(keys, defined)


def _undefined(keys: list[str], defined: list[str]) -> ValidationException:
    return ValidationException(
        f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. "
        f"Keys: {_listed(keys)}, AttributeDefinitions: {_listed(defined)}"
    )


def check_unique_name(name: str, seen: set[str]) -> None:
    """Check that a name is not in the set of names, and add it."""
    if name in seen:
        raise ValidationException(f"{INVALID}Duplicate index name: {name}")
    seen.add(name)


def check_projection(projection: Projection) -> None:
    """Check that NonKeyAttributes are given exactly if ProjectionType is INCLUDE."""
    kind, names = projection.projection_type, projection.non_key_attributes
    if kind is None:
        raise ValidationException(f"{INVALID}Unknown ProjectionType: null")
    if kind != "INCLUDE" and names is not None:
        raise ValidationException(
            f"{INVALID}ProjectionType is {kind}, but NonKeyAttributes is specified"
        )
    if kind == "INCLUDE" and names is None:
        raise ValidationException(
            f"{INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified"
        )
    refuse_repeated_names(names or ())


def _named(indexes: Iterable[_Projecting]) -> int:
    return sum(len(each.projection.non_key_attributes or ()) for each in indexes)


def check_projected_count(named: int) -> None:
    """Check that the indexes of a table do not project too many named attributes."""
    if named > limits.PROJECTED_NAMES:
        raise ValidationException(
            f"{INVALID}Number of NonKeyAttributes over all indexes exceeds "
            f"per-table limit of {limits.PROJECTED_NAMES}"
        )


def _check_all_are_used(request: CreateTable) -> None:
    local = request.local_secondary_indexes or ()
    global_ = request.global_secondary_indexes or ()
    of_indexes = [each.key_schema for each in (*local, *global_)]
    searched = [each.search_schema for each in request.vector_indexes or () if each.search_schema]
    others = hashed((each.attribute_name for each in chain(*of_indexes, *searched)), fewest=16)
    used = dict.fromkeys((*(each.attribute_name for each in request.key_schema), *others))
    defined = hashed(each.attribute_name for each in request.attribute_definitions)
    if used.keys() >= set(defined):
        return
    if not of_indexes and not searched:
        raise ValidationException(
            f"{INVALID}Number of attributes in KeySchema does not exactly match "
            "number of attributes defined in AttributeDefinitions"
        )
    raise ValidationException(
        f"{INVALID}Some AttributeDefinitions are not used. "
        f"AttributeDefinitions: {_listed(defined)}, keys used: {_listed(used)}"
    )


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"


# The orders of the rules

TABLE_RULES: Final[Rules] = (
    ActionRule("a BillingMode that contradicts the throughput", _check_billing),
    ActionRule(
        "throughput out of bounds", lambda request: _check_bounds(request.provisioned_throughput)
    ),
    ActionRule(
        "OnDemandThroughput of a provisioned table, or out of bounds",
        lambda request: check_maximums(
            request.on_demand_throughput, request.billing_mode != "PAY_PER_REQUEST"
        ),
    ),
    ActionRule(
        "an attribute that is defined twice, or attributes of the key that are not defined",
        lambda request: _check_definitions(request.key_schema, request.attribute_definitions),
    ),
    ActionRule("KeySchema", lambda request: check_key_schema(request.key_schema)),
    ActionRule("an empty list of indexes", _check_lists),
    ActionRule("local indexes of a table without a sort key", _check_range_key),
    ActionRule(
        "each local index in turn: definitions, key, a name that is taken, projection",
        _check_local_indexes,
    ),
    ActionRule("too many local indexes", _check_local_count),
    ActionRule(
        "each global index in turn: definitions, key, a name that is taken, projection, throughput",
        _check_global_indexes,
    ),
    ActionRule("too many global indexes", _check_global_count),
    ActionRule("too many projected names", _check_names),
    TAGS_ARE_VALID,
    ActionRule("too many tags", lambda request: check_tag_count(len(request.tags or ()))),
)
"""The rules on the throughput, the keys and the indexes of a new table."""

ALL_ARE_USED: Final = ActionRule("a defined attribute that no key uses", _check_all_are_used)
"""The rule on the attributes of a new table, after those on its vector indexes."""

NEW_STREAM: Final = ActionRule(
    "a stream without a view type, or a view type without a stream",
    lambda request: _check_new_stream(request.stream_specification),
)
"""The rule on the stream of a new table."""

UPDATE_RULES: Final[Rules] = (
    ActionRule("no change", _check_change),
    ActionRule("a BillingMode that contradicts the throughput", _check_new_billing),
    ActionRule(
        "throughput out of bounds", lambda request: _check_bounds(request.provisioned_throughput)
    ),
    ActionRule(
        "each index update in turn: no action or several, an index that is named twice, bounds",
        _check_updates,
    ),
    ActionRule("more than one index that is created or deleted", _check_one_update),
    ActionRule("a new index: definitions, key, projection", _check_created),
    ActionRule(
        "too many projected names", lambda request: check_projected_count(_named(_created(request)))
    ),
    ActionRule(
        "an update of a replica or a witness without an action, or with several", _check_replicas
    ),
)
"""The rules on an update that do not need the table."""
