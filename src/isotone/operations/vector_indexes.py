"""Vector indexes in CreateTable and UpdateTable: validation rules, and schemas.

AttributeDefinitions has the types of the attributes in a search schema, but must not contain the vector attribute.
`CREATED` and `UPDATED` are the rules that need only the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.table_schema import IndexProjection as ProjectionSchema
from isotone.engine.table_schema import IndexStatus, SearchPart, TableSchema, VectorSchema
from isotone.errors import (
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from isotone.operations.action import ActionRule, Rules
from isotone.operations.item_validation import INVALID
from isotone.operations.table_lookup import IN_USE
from isotone.operations.table_requests import (
    ONE_AT_A_TIME,
    AttributeDefinition,
    CreateTable,
    SearchSchemaElement,
    UpdateTable,
    VectorIndex,
    check_projection,
    check_unique_name,
    only_action,
)

ON_DEMAND_ONLY = f"{INVALID}Vector indexes are only supported for PAY_PER_REQUEST tables"


def _check_some(request: CreateTable) -> None:
    if request.vector_indexes == []:
        raise ValidationException(f"{INVALID}List of VectorIndexes is empty")


def _check_each(request: CreateTable) -> None:
    local = request.local_secondary_indexes or ()
    seen = {index.index_name for index in (*local, *(request.global_secondary_indexes or ()))}
    for index in request.vector_indexes or ():
        _check_definition(index, request.attribute_definitions)
        check_unique_name(index.index_name, seen)


def _check_billing(request: CreateTable) -> None:
    if request.vector_indexes and request.billing_mode != "PAY_PER_REQUEST":
        raise ValidationException(ON_DEMAND_ONLY)


def _check_count(request: CreateTable) -> None:
    if len(request.vector_indexes or ()) > limits.VECTOR_INDEXES:
        raise ValidationException(
            f"{INVALID}VectorIndex count exceeds the per-table limit of {limits.VECTOR_INDEXES}"
        )


def _check_equal_dimensions(request: CreateTable) -> None:
    indexes = request.vector_indexes or ()
    _check_dimensions(
        (index.vector_attribute.attribute_name, index.dimensions) for index in indexes
    )


def _check_updates(request: UpdateTable) -> None:
    for update in request.vector_index_updates or ():
        if update.create is not None and update.delete is not None:
            raise ValidationException(
                f"{INVALID}Only one vector index action is allowed per VectorIndexUpdate object"
            )
        only_action(update, "create", "delete")
        if update.create is not None:
            _check_definition(update.create, request.attribute_definitions or ())


def _check_one_update(request: UpdateTable) -> None:
    updates = request.vector_index_updates or ()
    others = request.global_secondary_index_updates or ()
    if updates and len(updates) + sum(other.update is None for other in others) > 1:
        raise LimitExceededException(ONE_AT_A_TIME)


CREATED: Final[Rules] = (
    ActionRule("an empty list of vector indexes", _check_some),
    ActionRule("vector indexes of a table that is not on demand", _check_billing),
    ActionRule(
        "each vector index in turn: SearchSchema, dimensions, projection, definitions, a taken name",
        _check_each,
    ),
    ActionRule("too many vector indexes", _check_count),
    ActionRule("vector indexes with other dimensions of one attribute", _check_equal_dimensions),
)
"""The rules on the vector indexes of a new table."""

UPDATED: Final[Rules] = (
    ActionRule(
        "each vector index update in turn: neither Create nor Delete, or both; its definition",
        _check_updates,
    ),
    ActionRule("more than one update of indexes", _check_one_update),
)
"""The rules on vector index updates."""


def _check_definition(index: VectorIndex, definitions: Iterable[AttributeDefinition]) -> None:
    defined = {definition.attribute_name for definition in definitions}
    _check_search_schema(index.search_schema or [])
    if index.dimensions > limits.VECTOR_DIMENSIONS:
        raise ValidationException(
            f"{INVALID}Number of dimensions must be between 1 and "
            f"{limits.VECTOR_DIMENSIONS} inclusive."
        )
    check_projection(index.projection)
    if index.vector_attribute.attribute_name in defined:
        raise _defined_twice(index.vector_attribute.attribute_name)
    if not {element.attribute_name for element in index.search_schema or ()} <= defined:
        raise ValidationException(
            f"{INVALID}One element in SearchSchema is not defined in attribute definitions"
        )


def _check_search_schema(elements: Sequence[SearchSchemaElement]) -> None:
    roles = [element.search_schema_element_type for element in elements]
    for role, most in (("HASH", 1), ("INLINE_FILTER", limits.INLINE_FILTERS)):
        count = sum(each == role for each in roles)
        if count > most:
            raise ValidationException(
                f"{INVALID}Value '{count}' at 'SearchSchema' failed to satisfy constraint: "
                f"Member must have {role} count less than or equal to {most}"
            )
    names = [element.attribute_name for element in elements]
    for name in names:
        if names.count(name) > 1:
            raise ValidationException(f"{INVALID}Duplicate attribute in SearchSchema: {name}")


def _check_dimensions(vectors: Iterable[tuple[str, int]]) -> None:
    """Refuse indexes on one attribute with different dimensions."""
    known: dict[str, int] = {}
    for name, dimensions in vectors:
        if known.setdefault(name, dimensions) != dimensions:
            raise ValidationException(
                f"{INVALID}Conflicting attribute definition for '{name}'. "
                "All VectorIndexes on the same vector attribute must use the same dimensions."
            )


def _defined_twice(name: str) -> ValidationException:
    return ValidationException(
        f"{INVALID}Conflicting attribute definition for '{name}'. An attribute cannot be defined in "
        "AttributeDefinitions when used as a VectorAttribute."
    )


def vector_schema(
    engine: Engine,
    index: VectorIndex,
    types: Mapping[str, str],
    status: IndexStatus = "ACTIVE",
) -> VectorSchema:
    """A new index with a new tree name; the caller creates the tree."""
    search = tuple(
        SearchPart(
            element.attribute_name,
            types[element.attribute_name],  # type: ignore[arg-type] # the request is checked
            element.search_schema_element_type,
        )
        for element in index.search_schema or ()
    )
    wanted = index.projection
    return VectorSchema(
        name=index.index_name,
        attribute=index.vector_attribute.attribute_name,
        dimensions=index.dimensions,
        distance=index.distance_function,
        search=search,
        projection=ProjectionSchema(
            wanted.projection_type or "ALL", tuple(wanted.non_key_attributes or ())
        ),
        tree=engine.catalog.new_tree("i"),
        status=status,
    )


def updated(
    engine: Engine, schema: TableSchema, request: UpdateTable, types: Mapping[str, str]
) -> TableSchema:
    """The table after creating and deleting vector indexes; the caller saves it."""
    for update in request.vector_index_updates or ():
        if update.delete is not None:
            schema = _without(schema, update.delete.index_name)
        elif update.create is not None:
            schema = _with(engine, schema, update.create, types)
    if schema.vectors and schema.billing == "PROVISIONED":
        raise ValidationException(ON_DEMAND_ONLY)
    for index in schema.vectors:
        if index.attribute in schema.used_attributes:
            raise _defined_twice(index.attribute)
    return schema


def _with(
    engine: Engine, schema: TableSchema, wanted: VectorIndex, types: Mapping[str, str]
) -> TableSchema:
    _check_name(schema, wanted.index_name)
    _check_attribute(schema, wanted)
    if schema.has_filling_index:
        raise LimitExceededException(ONE_AT_A_TIME)
    if len(schema.vectors) >= limits.VECTOR_INDEXES:
        raise LimitExceededException(
            "Subscriber limit exceeded: Number of vector secondary indexes exceeds per-table limit "
            f"of {limits.VECTOR_INDEXES}"
        )
    index = vector_schema(engine, wanted, types, "CREATING")
    _check_dimensions((each.attribute, each.dimensions) for each in (*schema.vectors, index))
    return msgspec.structs.replace(schema, vectors=(*schema.vectors, index))


def _check_name(schema: TableSchema, name: str) -> None:
    taken = schema.vector_index(name)
    if taken is not None and taken.status == "CREATING":
        raise ResourceInUseException(
            f"{IN_USE}Index is being created.  Table: {schema.name} Index: {name}"
        )
    if taken is not None or schema.index(name) is not None:
        raise ValidationException("Attempting to create an index which already exists")


def _check_attribute(schema: TableSchema, wanted: VectorIndex) -> None:
    """Refuse a key attribute: a key is never a list."""
    name = wanted.vector_attribute.attribute_name
    for keys in (schema.keys, *(index.keys for index in schema.indexes)):
        for parts, role in ((keys.partition, "HASH"), (keys.sort, "RANGE")):
            for part in parts:
                if part.name == name:
                    raise ValidationException(
                        f"{INVALID}Attributes cannot be redefined. Please check that your attribute "
                        "has the same type as previously defined. Existing schema: "
                        f"Schema:[SchemaElement: key{{{name}:{part.type}:{role}}}] New schema: "
                        f"VectorIndexSchema:[VectorAttribute: key{{{name}:L:{wanted.dimensions}}}]"
                    )


def _without(schema: TableSchema, name: str) -> TableSchema:
    if schema.vector_index(name) is None:
        raise ResourceNotFoundException(
            f"Requested resource not found: Index {name} for table {schema.name}"
        )
    kept = tuple(index for index in schema.vectors if index.name != name)
    return msgspec.structs.replace(schema, vectors=kept)
