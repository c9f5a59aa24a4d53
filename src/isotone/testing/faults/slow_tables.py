"""`slow_tables`: tables stay CREATING, UPDATING or DELETING for some seconds, and indexes CREATING.

Changes are made at once, but answers hide this until their time is over. A table that is being created has no items to
read or write; one that is being deleted can still be described. Neither can be changed, nor can their settings. A table
that is being updated cannot be updated or deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from isotone.backends.interface import Response
from isotone.clock import Clock
from isotone.errors import (
    ContinuousBackupsUnavailableException,
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    TableInUseException,
    ValidationException,
)
from isotone.testing.faults.rules import InterceptedCall, Proceed, Rule, table_name

_NOT_FOUND: Final = "Requested resource not found"
_STILL_IN_USE: Final = "Attempt to change a resource which is still in use: Table is being {0}: {1}"
_RESTORES: Final = ("RestoreTableFromBackup", "RestoreTableToPointInTime")
_CHANGES: Final = {
    "CreateTable": "CREATING",
    "UpdateTable": "UPDATING",
    "DeleteTable": "DELETING",
    **dict.fromkeys(_RESTORES, "CREATING"),
}
_SETTINGS: Final = frozenset(
    {
        "UpdateTimeToLive",
        "TagResource",
        "UntagResource",
        "PutResourcePolicy",
        "DeleteResourcePolicy",
        "EnableKinesisStreamingDestination",
        "DisableKinesisStreamingDestination",
        "UpdateKinesisStreamingDestination",
        "UpdateTableReplicaAutoScaling",
        "StartBulkPutItems",
    }
)
"""The actions that fail while a table is being created or deleted."""

_ONE_INDEX: Final = (
    "Subscriber limit exceeded: "
    "Only 1 online index can be created or deleted simultaneously per table"
)
_DONE_TO_IT: Final = {"CREATING": "created", "UPDATING": "updated", "DELETING": "deleted"}


@dataclass(frozen=True, slots=True)
class _PendingChange:
    """An unfinished change of a table: its status, its end, and the table's former description."""

    status: str
    until: float
    description: dict[str, Any]


class SlowTables(Rule):
    """Makes changes of tables and indexes take some seconds."""

    def __init__(
        self, table: str | None, seconds: dict[str, float], indexes: float, clock: Clock
    ) -> None:
        super().__init__()
        self._table = table
        self._seconds = seconds
        self._index_seconds = indexes
        self._now = clock.now
        self._changes: dict[str, _PendingChange] = {}
        self._indexes: dict[tuple[str, str], float] = {}

    def answer(self, call: InterceptedCall, proceed: Proceed) -> Response:
        with self.lock:
            if call.operation in _CHANGES:
                return self._change(call, proceed)
            if call.operation == "DescribeTable":
                return self._describe(call, proceed)
            if call.operation == "ListTables":
                return self._list(proceed(call))
            if call.is_read or call.is_write:
                self._check_ready(call)
            else:
                self._check_settings(call)
        return proceed(call)

    def _change(self, call: InterceptedCall, proceed: Proceed) -> Response:
        name = call.request.get("TargetTableName") or next(iter(call.tables), "")
        change = self._pending(name)
        if change is not None:
            if call.operation in _RESTORES:
                raise TableInUseException(f"Table is being {_DONE_TO_IT[change.status]}: {name}")
            if call.operation == "CreateTable" and change.status == "UPDATING":
                raise ResourceInUseException(f"Table already exists: {name}")
            if call.operation == "DeleteTable" and change.status == "DELETING":
                return {"TableDescription": self._shown(change)}
            raise ResourceInUseException(_STILL_IN_USE.format(_DONE_TO_IT[change.status], name))
        if call.operation == "UpdateTable":
            self._check_one_index(call, name)
        response = proceed(call)
        if self._table not in (None, name):
            return response
        status = _CHANGES[call.operation]
        description = response["TableDescription"]
        self._begin_indexes(call, name)
        if self._seconds[status]:
            self.struck()
            until = self._now() + self._seconds[status]
            self._changes[name] = _PendingChange(status, until, {**description})
        return {"TableDescription": self._with_status(description)}

    def _begin_indexes(self, call: InterceptedCall, name: str) -> None:
        if not self._index_seconds:
            return
        for index in _created(call):
            self.struck()
            self._indexes[name, index] = self._now() + self._index_seconds

    def _check_one_index(self, call: InterceptedCall, name: str) -> None:
        pending = [index for table, index in self._indexes if table == name]
        if _created(call) and any(self._is_creating(name, index) for index in pending):
            raise LimitExceededException(_ONE_INDEX)

    def _pending(self, name: str) -> _PendingChange | None:
        change = self._changes.get(name)
        if change is not None and change.until <= self._now():
            del self._changes[name]
            return None
        return change

    def _describe(self, call: InterceptedCall, proceed: Proceed) -> Response:
        change = self._pending(next(iter(call.tables), ""))
        if change is not None and change.status == "DELETING":
            return {"Table": self._shown(change)}
        response = proceed(call)
        return {**response, "Table": self._with_status(response["Table"])}

    def _list(self, response: Response) -> Response:
        names = {
            name
            for name in list(self._changes)
            if (change := self._pending(name)) is not None and change.status == "DELETING"
        }
        if "LastEvaluatedTableName" in response:
            return response
        return {**response, "TableNames": sorted(names | set(response["TableNames"]))}

    def _check_ready(self, call: InterceptedCall) -> None:
        for name in call.tables:
            change = self._pending(name)
            if change is not None and change.status == "CREATING":
                raise ResourceNotFoundException(_NOT_FOUND)
            index = call.request.get("IndexName")
            if index is not None and self._is_creating(name, index):
                raise ValidationException(
                    f"Cannot read from backfilling global secondary index: {index}"
                )

    def _check_settings(self, call: InterceptedCall) -> None:
        name = table_name(call.request.get("ResourceArn") or next(iter(call.tables), ""))
        change = self._pending(name)
        if change is None or change.status == "UPDATING":
            return
        done = _DONE_TO_IT[change.status]
        if call.operation in _SETTINGS:
            raise ResourceInUseException(_STILL_IN_USE.format(done, name))
        if call.operation == "CreateBackup":
            raise TableInUseException(f"Table is being {done}: {name}")
        if call.operation == "UpdateContinuousBackups":
            raise ContinuousBackupsUnavailableException(
                f"Backups are being enabled for the table: {name}. Please retry later"
            )

    def _is_creating(self, name: str, index: str) -> bool:
        return self._indexes.get((name, index), 0.0) > self._now()

    def _shown(self, change: _PendingChange) -> dict[str, Any]:
        return {**change.description, "TableStatus": change.status}

    def _with_status(self, description: dict[str, Any]) -> dict[str, Any]:
        """A description with the statuses of unfinished changes."""
        name = description["TableName"]
        change = self._pending(name)
        shown = (
            self._shown(_PendingChange(change.status, 0, description))
            if change
            else {**description}
        )
        if "RestoreSummary" in shown and shown["TableStatus"] == "CREATING":
            shown["RestoreSummary"] = {**shown["RestoreSummary"], "RestoreInProgress": True}
        if "GlobalSecondaryIndexes" in shown:
            shown["GlobalSecondaryIndexes"] = [
                {**each, "IndexStatus": "CREATING", "Backfilling": True}
                if self._is_creating(name, each["IndexName"])
                else each
                for each in shown["GlobalSecondaryIndexes"]
            ]
        return shown


def _created(call: InterceptedCall) -> list[str]:
    """The global indexes that an UpdateTable creates."""
    updates = call.request.get("GlobalSecondaryIndexUpdates", ())
    return [each["Create"]["IndexName"] for each in updates if "Create" in each]
