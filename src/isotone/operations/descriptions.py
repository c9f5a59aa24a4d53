"""DescribeTable's TableDescription: status, keys, indexes, replicas, ItemCount, TableSizeBytes, SSEDescription."""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, uuid5

from isotone.engine import backfill, replica_log, replication
from isotone.engine.engine import Engine
from isotone.engine.replica_log import CURRENT
from isotone.engine.table_schema import (
    IndexProjection,
    IndexSchema,
    KeySchema,
    Restored,
    TableSchema,
    TableThroughput,
    VectorSchema,
)
from isotone.operations.table_lookup import table_arn
from isotone.operations.warm_throughput import warm_throughput

_ONE_ACCOUNT = "ENABLED_WITH_OVERRIDES"  # the mode of a global table within one account


def table_description(
    engine: Engine, schema: TableSchema, status: str | None = None
) -> dict[str, Any]:
    """A table as DescribeTable, CreateTable, UpdateTable and DeleteTable show it."""
    status = status or ("CREATING" if schema.is_creating else "ACTIVE")
    items, size = engine.counts.of(schema.tree)
    arn = table_arn(engine, schema.name)
    described: dict[str, Any] = {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in schema.attributes.items()
        ],
        "TableName": schema.name,
        "KeySchema": key_elements(schema.keys),
        "TableStatus": status,
        "CreationDateTime": schema.created,
        "ProvisionedThroughput": _throughput(schema.throughput),
        "TableSizeBytes": size,
        "ItemCount": items,
        "TableArn": arn,
        "TableId": schema.id,
        "DeletionProtectionEnabled": schema.deletion_protection,
    }
    if schema.billing == "PAY_PER_REQUEST" or schema.on_demand_since is not None:
        # A table that was ever on demand keeps the summary when it is provisioned again.
        described["BillingModeSummary"] = {
            "BillingMode": schema.billing,
            "LastUpdateToPayPerRequestDateTime": schema.on_demand_since or schema.created,
        }
    for member, kind in (("LocalSecondaryIndexes", "local"), ("GlobalSecondaryIndexes", "global")):
        indexes = [
            _index_description(engine, schema, index, status)
            for index in schema.indexes
            if index.kind == kind
        ]
        if indexes:
            described[member] = indexes
    if schema.vectors:
        described["VectorIndexes"] = [
            _vector_description(engine, schema, index, status) for index in schema.vectors
        ]
    described["WarmThroughput"] = warm_throughput(schema)
    if schema.restored is not None:
        described["RestoreSummary"] = _restore_summary(schema.restored)
    described.update(_settings(schema, arn))
    described.update(_replication(engine, schema))
    return described


def _restore_summary(restored: Restored) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "SourceTableArn": restored.source,
        "RestoreDateTime": restored.moment,
        "RestoreInProgress": restored.view is not None,
    }
    if restored.backup is not None:
        summary["SourceBackupArn"] = restored.backup
    return summary


def _index_description(
    engine: Engine, table: TableSchema, index: IndexSchema, table_status: str
) -> dict[str, Any]:
    items, size = engine.counts.of(index.tree)
    described: dict[str, Any] = {
        "IndexName": index.name,
        "KeySchema": key_elements(index.keys),
        "Projection": projection(index.projection),
        "IndexSizeBytes": size,
        "ItemCount": items,
        "IndexArn": f"{table_arn(engine, table.name)}/index/{index.name}",
    }
    if index.kind == "global":
        # An index created with its table shares the table's state until both are active, and is not called backfilling.
        described["IndexStatus"] = "CREATING" if table_status == "CREATING" else index.status
        described["ProvisionedThroughput"] = _throughput(index.throughput)
        described["WarmThroughput"] = warm_throughput(index)
        if index.status == "CREATING" and table_status != "CREATING":
            described["Backfilling"] = backfill.is_filling(engine, index.tree)
        if "OnDemandThroughput" in index.settings:
            described["OnDemandThroughput"] = index.settings["OnDemandThroughput"]
    return described


def _vector_description(
    engine: Engine, table: TableSchema, index: VectorSchema, table_status: str
) -> dict[str, Any]:
    items, size = engine.counts.of(index.tree)
    described = {
        **vector_settings(index),
        "IndexStatus": "CREATING" if table_status == "CREATING" else index.status,
        "IndexSizeBytes": size,
        "ItemCount": items,
        "IndexArn": f"{table_arn(engine, table.name)}/index/{index.name}",
    }
    if index.status == "CREATING" and table_status != "CREATING":
        described["Backfilling"] = backfill.is_filling(engine, index.tree)
    return described


def vector_settings(index: VectorSchema) -> dict[str, Any]:
    """A vector index as it was defined."""
    defined: dict[str, Any] = {
        "IndexName": index.name,
        "VectorAttribute": {"AttributeName": index.attribute},
        "Dimensions": index.dimensions,
        "DistanceFunction": index.distance,
        "Projection": projection(index.projection),
    }
    if index.search:
        defined["SearchSchema"] = [
            {"AttributeName": part.name, "SearchSchemaElementType": part.role}
            for part in index.search
        ]
    return defined


def key_elements(keys: KeySchema) -> list[dict[str, str]]:
    """A `KeySchema` member."""
    return [{"AttributeName": part.name, "KeyType": "HASH"} for part in keys.partition] + [
        {"AttributeName": part.name, "KeyType": "RANGE"} for part in keys.sort
    ]


def projection(wanted: IndexProjection) -> dict[str, Any]:
    """A `IndexProjection` member."""
    described: dict[str, Any] = {"ProjectionType": wanted.kind}
    if wanted.kind == "INCLUDE":
        described["NonKeyAttributes"] = list(wanted.names)
    return described


def _throughput(throughput: TableThroughput) -> dict[str, Any]:
    described: dict[str, Any] = {
        "NumberOfDecreasesToday": throughput.decreases_today,
        "ReadCapacityUnits": throughput.read,
        "WriteCapacityUnits": throughput.write,
    }
    if throughput.increased is not None:
        described["LastIncreaseDateTime"] = throughput.increased
    if throughput.decreased is not None:
        described["LastDecreaseDateTime"] = throughput.decreased
    return described


def _settings(schema: TableSchema, arn: str) -> dict[str, Any]:
    """The stored settings, as a description shows them."""
    described: dict[str, Any] = {}
    if schema.stream is not None:
        if schema.stream.shards:
            described["StreamSpecification"] = {
                "StreamEnabled": True,
                "StreamViewType": schema.stream.view,
            }
        described["LatestStreamLabel"] = schema.stream.label
        described["LatestStreamArn"] = f"{arn}/stream/{schema.stream.label}"
    if "TableClass" in schema.settings:
        described["TableClassSummary"] = table_class_summary(schema.settings)
    if "OnDemandThroughput" in schema.settings:
        described["OnDemandThroughput"] = schema.settings["OnDemandThroughput"]
    encryption = encryption_description(schema, arn)
    if encryption is not None:
        described["SSEDescription"] = encryption
    return described


_TABLE_CLASS_CHANGED = "TableClassChanged"


def with_table_class(
    settings: dict[str, Any], wanted: str, changed: float | None
) -> dict[str, Any]:
    """The settings of a table whose class changed at this time; None for a new table."""
    kept = {name: each for name, each in settings.items() if name != _TABLE_CLASS_CHANGED}
    when = {} if changed is None else {_TABLE_CLASS_CHANGED: round(changed, 3)}
    return {**kept, "TableClass": wanted, **when}


def table_class_summary(settings: dict[str, Any]) -> dict[str, Any]:
    """A `TableClassSummary` member, with the time if the class was ever changed."""
    summary = {"TableClass": settings["TableClass"]}
    if _TABLE_CLASS_CHANGED in settings:
        summary["LastUpdateDateTime"] = settings[_TABLE_CLASS_CHANGED]
    return summary


def encryption_description(schema: TableSchema, arn: str) -> dict[str, Any] | None:
    """An `SSEDescription` member; None if the table has the default encryption."""
    encryption = schema.settings.get("SSESpecification")
    if not encryption or not encryption.get("Enabled"):
        return None
    return {
        "Status": "ENABLED",
        "SSEType": encryption.get("SSEType", "KMS"),
        "KMSMasterKeyArn": _key_arn(encryption.get("KMSMasterKeyId"), arn),
    }


def _key_arn(key: str | None, table_arn: str) -> str:
    """The ARN of a KMS key that is given by id, alias or ARN; the ARN of AWS's own key if none is given."""
    if key is not None and key.startswith("arn:"):
        return key
    _, partition, _, region, account, _ = table_arn.split(":", 5)
    place = f"arn:{partition}:kms:{region}:{account}:"
    if key is None:
        return f"{place}key/{uuid5(NAMESPACE_URL, place)}"
    return place + (key if key.startswith(("alias/", "key/")) else f"key/{key}")


# Replicas


def _replication(engine: Engine, schema: TableSchema) -> dict[str, Any]:
    """The members about the replicas in other regions."""
    group = schema.replication
    if group is None or group.version != CURRENT:
        return {}
    described: dict[str, Any] = {
        "GlobalTableVersion": CURRENT,
        "Replicas": [
            _replica(engine, schema, region) for region in group.regions if region != engine.region
        ],
        "MultiRegionConsistency": group.consistency,
        "GlobalTableSettingsReplicationMode": _ONE_ACCOUNT,
    }
    if group.witnesses:
        described["GlobalTableWitnesses"] = [
            {"RegionName": region, "WitnessStatus": "ACTIVE"} for region in group.witnesses
        ]
    return described


def _replica(engine: Engine, schema: TableSchema, region: str) -> dict[str, Any]:
    """A ReplicaDescription: the replica's own settings, and the units that it supports."""
    assert schema.replication is not None
    given = dict(schema.replication.overrides.get(region, {}))
    own = engine.regions[region].catalog.tables[schema.name].schema
    if given.pop("TableClass", None) is not None:
        given["ReplicaTableClassSummary"] = table_class_summary(own.settings)
    described = {
        "RegionName": region,
        "ReplicaStatus": "CREATING" if _is_copied(engine, schema, region) else "ACTIVE",
        "ReplicaArn": table_arn(engine.regions[region], schema.name),
        "WarmThroughput": warm_throughput(own),
        "GlobalTableSettingsReplicationMode": _ONE_ACCOUNT,
        **given,
    }
    overrides = {each["IndexName"]: each for each in given.get("GlobalSecondaryIndexes", ())}
    indexes = [
        {
            "IndexName": index.name,
            "WarmThroughput": warm_throughput(index),
            **overrides.get(index.name, {}),
        }
        for index in own.indexes
        if index.kind == "global"
    ]
    if indexes:
        described["GlobalSecondaryIndexes"] = indexes
    return described


def _is_copied(engine: Engine, schema: TableSchema, region: str) -> bool:
    """Whether items are still being copied to a replica, from any region."""
    return any(
        region in replica_log.copying(source, source.catalog.tables[schema.name])
        for source, _ in replication.members(engine, schema)
    )
