"""CreateBackup, DescribeBackup, ListBackups, DeleteBackup and RestoreTableFromBackup."""

from __future__ import annotations

import re
from itertools import islice
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from isotone import limits
from isotone.engine import backups, restores, views
from isotone.engine.backups import Backup
from isotone.engine.engine import Engine
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import IndexSchema, Restored, TableSchema
from isotone.errors import (
    BackupInUseException,
    BackupNotFoundException,
    TableInUseException,
    TableNotFoundException,
)
from isotone.operations.action import ActionRule, Answer, action
from isotone.operations.descriptions import (
    encryption_description,
    key_elements,
    projection,
    table_description,
    vector_settings,
)
from isotone.operations.request_members import (
    ApiStructure,
    BackupArn,
    BackupName,
    BillingMode,
    EntityName,
    ListedTableName,
    Timestamp,
)
from isotone.operations.restored_table import OVERRIDES_FIT, TARGET_IS_FREE, restored_schema
from isotone.operations.table_lookup import table_arn, table_name
from isotone.operations.table_requests import (
    GlobalSecondaryIndex,
    LocalSecondaryIndex,
    OnDemandThroughput,
    ProvisionedThroughput,
    SSESpecification,
    VectorIndex,
)


class CreateBackup(ApiStructure, frozen=True):
    """Copy a table as it is now."""

    table_name: ListedTableName
    backup_name: BackupName


class DescribeBackup(ApiStructure, frozen=True):
    """Ask for the state of a backup, and what it was made of."""

    backup_arn: BackupArn


class ListBackups(ApiStructure, frozen=True):
    """Ask for the backups of one table or of all, a page at a time."""

    table_name: ListedTableName | None = None
    limit: Annotated[int, Meta(ge=1, le=limits.LIST_BACKUPS)] | None = None
    time_range_lower_bound: Timestamp | None = None
    time_range_upper_bound: Timestamp | None = None
    exclusive_start_backup_arn: BackupArn | None = None
    backup_type: Literal["USER", "SYSTEM", "AWS_BACKUP", "ALL"] | None = None


class DeleteBackup(ApiStructure, frozen=True):
    """Delete a backup."""

    backup_arn: BackupArn


class RestoreTableFromBackup(ApiStructure, frozen=True):
    """Create a table with the items of a backup."""

    target_table_name: EntityName
    backup_arn: BackupArn
    billing_mode_override: BillingMode | None = None
    global_secondary_index_override: list[GlobalSecondaryIndex] | None = None
    local_secondary_index_override: list[LocalSecondaryIndex] | None = None
    provisioned_throughput_override: ProvisionedThroughput | None = None
    on_demand_throughput_override: OnDemandThroughput | None = None
    sse_specification_override: SSESpecification | None = None
    vector_index_override: list[VectorIndex] | None = None


_ARN: Final = re.compile(r"(arn:.+:table/([a-zA-Z0-9_.-]+))/backup/([0-9]+-[0-9a-f]+)")


def _table(engine: Engine, request: CreateBackup) -> StoredTable:
    name = table_name(request.table_name)
    table = engine.catalog.tables.get(name)
    if name in engine.catalog.creating:
        raise TableInUseException(f"Table is being created: {name}")
    if table is None:
        raise TableNotFoundException(f"Table not found: {name}")
    return table


@action(
    "CreateBackup",
    writing=(ActionRule("no such table, or one that is being created", _table),),
)
def create_backup(engine: Engine, request: CreateBackup) -> Answer:
    """Back up a table. Writers continue while a large table is being copied."""
    backup = backups.create(engine, _table(engine, request), request.backup_name)
    return {"BackupDetails": _details(engine, backup, "CREATING")}


_BACKUP: Final = ActionRule(
    "no such backup", lambda engine, request: backup_of_arn(engine, request.backup_arn)
)


@action("DescribeBackup", reading=(_BACKUP,))
def describe_backup(engine: Engine, request: DescribeBackup) -> Answer:
    """A backup's state and size, and the schema and settings of its table."""
    backup = backup_of_arn(engine, request.backup_arn)
    return {"BackupDescription": _description(engine, backup)}


@action("ListBackups")
def list_backups(engine: Engine, request: ListBackups) -> Answer:
    """Backups, oldest first, a page at a time; only user backups unless other types are requested."""
    name = None if request.table_name is None else table_name(request.table_name)
    with engine.reading:
        known = backups.known(engine)
        after = request.exclusive_start_backup_arn
        start = "" if after is None else after.rpartition("/")[2]
        wanted = (
            backup
            for backup in known
            if backup.id > start
            and name in (None, backup.table.name)
            and _is_listed(backup, request)
        )
        limit = request.limit or limits.LIST_BACKUPS
        page = list(islice(wanted, limit + 1))
        answer: dict[str, Any] = {
            "BackupSummaries": [_summary(engine, backup) for backup in page[:limit]]
        }
        if len(page) > limit:
            answer["LastEvaluatedBackupArn"] = backup_arn(engine, page[limit - 1])
    return answer


def _check_complete(engine: Engine, request: DeleteBackup | RestoreTableFromBackup) -> None:
    if backup_of_arn(engine, request.backup_arn).view is not None:
        raise BackupInUseException(f"Backup is being created: {request.backup_arn}")


def _check_unread(engine: Engine, request: DeleteBackup) -> None:
    if views.is_read(engine, backup_of_arn(engine, request.backup_arn).tree):
        raise BackupInUseException(f"Backup is being restored: {request.backup_arn}")


_COMPLETE: Final = ActionRule("a backup that is being created", _check_complete)


@action(
    "DeleteBackup",
    writing=(_BACKUP, _COMPLETE, ActionRule("a backup that is being restored", _check_unread)),
)
def delete_backup(engine: Engine, request: DeleteBackup) -> Answer:
    """Delete a backup that is complete and that no restore is reading."""
    backup = backup_of_arn(engine, request.backup_arn)
    description = _description(engine, backup, "DELETED")
    backups.delete(engine, backup)
    return {"BackupDescription": description}


@action(
    "RestoreTableFromBackup",
    before=(OVERRIDES_FIT,),
    writing=(_BACKUP, _COMPLETE, *TARGET_IS_FREE),
)
def restore_table_from_backup(engine: Engine, request: RestoreTableFromBackup) -> Answer:
    """Create a table with the items and indexes of a backup. A large table is filled in the background."""
    backup = backup_of_arn(engine, request.backup_arn)
    schema = restored_schema(engine, backup.table, request)
    view = views.open_tree(engine, backup.tree, restores.owner(schema.name))
    source = table_arn(engine, backup.table.name)
    restored = Restored(source, backup.created, backup_arn(engine, backup))
    schema = restores.create(engine, schema, restored, view)
    return {"TableDescription": table_description(engine, schema)}


def backup_arn(engine: Engine, backup: Backup) -> str:
    """The ARN of a backup."""
    return f"{table_arn(engine, backup.table.name)}/backup/{backup.id}"


def backup_of_arn(engine: Engine, arn: str) -> Backup:
    """The backup with an ARN."""
    parts = _ARN.fullmatch(arn)
    backup = None if parts is None else backups.find(engine, parts[3])
    if backup is None or backup_arn(engine, backup) != arn:
        raise BackupNotFoundException(f"Backup not found: {arn}")
    return backup


def _is_listed(backup: Backup, request: ListBackups) -> bool:
    low, high = request.time_range_lower_bound, request.time_range_upper_bound
    return (
        (request.backup_type or "USER") in ("ALL", backup.type)
        and (low is None or backup.created >= low)
        and (high is None or backup.created < high)
    )


# Descriptions


def _details(engine: Engine, backup: Backup, status: str | None = None) -> dict[str, Any]:
    details: dict[str, Any] = {
        "BackupArn": backup_arn(engine, backup),
        "BackupName": backup.name,
        "BackupSizeBytes": backup.size,
        "BackupStatus": status or ("AVAILABLE" if backup.view is None else "CREATING"),
        "BackupType": backup.type,
        "BackupCreationDateTime": backup.created,
    }
    if backup.expires is not None:
        details["BackupExpiryDateTime"] = backup.expires
    return details


def _summary(engine: Engine, backup: Backup) -> dict[str, Any]:
    table = backup.table
    return {
        "TableName": table.name,
        "TableId": table.id,
        "TableArn": table_arn(engine, table.name),
        **_details(engine, backup),
    }


def _description(engine: Engine, backup: Backup, status: str | None = None) -> dict[str, Any]:
    table = backup.table
    source: dict[str, Any] = {
        "TableName": table.name,
        "TableId": table.id,
        "TableArn": table_arn(engine, table.name),
        "TableSizeBytes": backup.size,
        "KeySchema": key_elements(table.keys),
        "TableCreationDateTime": table.created,
        "ProvisionedThroughput": {
            "ReadCapacityUnits": table.throughput.read,
            "WriteCapacityUnits": table.throughput.write,
        },
        "ItemCount": backup.items,
        "BillingMode": table.billing,
    }
    if "OnDemandThroughput" in table.settings:
        source["OnDemandThroughput"] = table.settings["OnDemandThroughput"]
    return {
        "BackupDetails": _details(engine, backup, status),
        "SourceTableDetails": source,
        "SourceTableFeatureDetails": _features(engine, table),
    }


def _features(engine: Engine, table: TableSchema) -> dict[str, Any]:
    features: dict[str, Any] = {}
    for member, kind in (("LocalSecondaryIndexes", "local"), ("GlobalSecondaryIndexes", "global")):
        indexes = [_index(index) for index in table.indexes if index.kind == kind]
        if indexes:
            features[member] = indexes
    if table.vectors:
        features["VectorIndexes"] = [vector_settings(index) for index in table.vectors]
    if table.stream is not None and table.stream.shards:
        features["StreamDescription"] = {
            "StreamEnabled": True,
            "StreamViewType": table.stream.view,
        }
    expiry: dict[str, Any] = {"TimeToLiveStatus": "DISABLED"}
    if table.ttl is not None:
        expiry = {"TimeToLiveStatus": "ENABLED", "AttributeName": table.ttl.attribute}
    features["TimeToLiveDescription"] = expiry
    encryption = encryption_description(table, table_arn(engine, table.name))
    if encryption is not None:
        features["SSEDescription"] = encryption
    return features


def _index(index: IndexSchema) -> dict[str, Any]:
    described: dict[str, Any] = {
        "IndexName": index.name,
        "KeySchema": key_elements(index.keys),
        "Projection": projection(index.projection),
    }
    if index.kind == "global":
        described["ProvisionedThroughput"] = {
            "ReadCapacityUnits": index.throughput.read,
            "WriteCapacityUnits": index.throughput.write,
        }
        if "OnDemandThroughput" in index.settings:
            described["OnDemandThroughput"] = index.settings["OnDemandThroughput"]
    return described
