"""Rules on keys and secondary indexes, as CreateTable and UpdateTable define them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeAlias

from isotone import limits
from isotone.errors import ValidationException
from isotone.operations.rules.parameters import INVALID
from isotone.operations.shapes.tables import (
    AttributeDefinition,
    CreateGlobalSecondaryIndexAction,
    CreateTable,
    DeleteGlobalSecondaryIndexAction,
    GlobalSecondaryIndex,
    KeySchemaElement,
    LocalSecondaryIndex,
    Projection,
    UpdateGlobalSecondaryIndexAction,
)

Index: TypeAlias = (
    CreateGlobalSecondaryIndexAction
    | DeleteGlobalSecondaryIndexAction
    | UpdateGlobalSecondaryIndexAction
)
_KEY_TYPES: Final = {
    "HASH": "Too many partition keys. GSI can have at most 4 partition keys",
    "RANGE": "Too many sort keys. GSI can have at most 4 sort keys",
}


class _Projecting(Protocol):
    @property
    def projection(self) -> Projection: ...


def check_key_schema(elements: Sequence[KeySchemaElement], *, parts_of_index: bool = False) -> None:
    """That a key is a HASH attribute and perhaps a RANGE one; a global index may have more of each."""
    if elements[0].key_type != "HASH":
        raise ValidationException(
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
        )
    if parts_of_index:
        _check_parts(elements)
    elif len(elements) > 1 and elements[1].key_type != "RANGE":
        raise ValidationException(
            "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"
        )
    if len({each.attribute_name for each in elements}) < len(elements):
        raise ValidationException(
            "Both the Hash Key and the Range Key element in the KeySchema have the same name"
        )


def _check_parts(elements: Sequence[KeySchemaElement]) -> None:
    kinds: list[str] = [each.key_type for each in elements]
    if kinds != sorted(kinds):
        raise ValidationException(
            "Invalid key order. Hash Key must be specified first in key schema, "
            "Range Key must be specifed second"
        )
    for kind, refusal in _KEY_TYPES.items():
        if kinds.count(kind) > limits.INDEX_KEY_PARTS:
            raise ValidationException(refusal)


def check_local_indexes(request: CreateTable) -> None:
    """That local indexes share the table's partition key and have a sort key of their own."""
    indexes = request.local_secondary_indexes
    if indexes is None:
        return
    if not indexes:
        raise ValidationException(f"{INVALID}List of LocalSecondaryIndexes is empty")
    if len(request.key_schema) < 2:
        raise ValidationException(
            f"{INVALID}Table KeySchema does not have a range key, "
            "which is required when specifying a LocalSecondaryIndex"
        )
    seen: set[str] = set()
    for index in indexes:
        check_defined(index.key_schema, request.attribute_definitions)
        check_key_schema(index.key_schema)
        _check_local_key(index, request.key_schema[0].attribute_name)
        _check_name(index.index_name, seen)
        check_projection(index.projection)
    if len(indexes) > limits.LOCAL_INDEXES:
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


def check_global_indexes(request: CreateTable) -> None:
    """That global indexes have names, keys and throughput that fit the table."""
    indexes = request.global_secondary_indexes
    if indexes is None:
        return
    if not indexes:
        raise ValidationException(f"{INVALID}List of GlobalSecondaryIndexes is empty")
    seen = {index.index_name for index in request.local_secondary_indexes or ()}
    for index in indexes:
        check_defined(index.key_schema, request.attribute_definitions)
        check_key_schema(index.key_schema, parts_of_index=True)
        _check_name(index.index_name, seen)
        check_projection(index.projection)
        _check_throughput(index, request.billing_mode == "PAY_PER_REQUEST")
    if len(indexes) > limits.GLOBAL_INDEXES:
        raise ValidationException(
            f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of {limits.GLOBAL_INDEXES}"
        )
    check_projected_count((*(request.local_secondary_indexes or ()), *indexes))


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
    """That the request says of which type each attribute of an index key is."""
    keys = [each.attribute_name for each in elements]
    defined = [each.attribute_name for each in definitions or ()]
    if not set(keys) <= set(defined):
        raise ValidationException(
            f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. "
            f"Keys: {_listed(keys)}, AttributeDefinitions: {_listed(defined)}"
        )


def _check_name(name: str, seen: set[str]) -> None:
    if name in seen:
        raise ValidationException(f"{INVALID}Duplicate index name: {name}")
    seen.add(name)


def check_projection(projection: Projection) -> None:
    """That NonKeyAttributes are there exactly where ProjectionType is INCLUDE."""
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


def check_projected_count(indexes: Iterable[_Projecting]) -> None:
    """That the indexes of a table do not name too many attributes to copy."""
    if (
        sum(len(each.projection.non_key_attributes or ()) for each in indexes)
        > limits.PROJECTED_NAMES
    ):
        raise ValidationException(
            f"{INVALID}Number of NonKeyAttributes over all indexes exceeds "
            f"per-table limit of {limits.PROJECTED_NAMES}"
        )


def check_attributes(request: CreateTable) -> None:
    """That every defined attribute is part of some key."""
    local = request.local_secondary_indexes or ()
    global_ = request.global_secondary_indexes or ()
    schemas = [request.key_schema, *(each.key_schema for each in (*local, *global_))]
    used = list(dict.fromkeys(each.attribute_name for schema in schemas for each in schema))
    defined = [each.attribute_name for each in request.attribute_definitions]
    if set(defined) <= set(used):
        return
    if len(schemas) == 1:
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
