"""Table definitions: everything about a table except its items, from the answers of several actions.

    definition = read_definition(backend, "Orders")
    definition.table.key, definition.expiry, definition.tags

Copies, comparisons, snapshots and templates are made from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from isotone.backends.interface import Backend, Response
from isotone.errors import (
    AccessDeniedException,
    ApiError,
    ResourceNotFoundException,
    Unsupported,
)
from isotone.tables.description import TableDescription, description_of, expiry_of

# Errors of an engine that does not know an action or a parameter.
_NOT_KNOWN: Final = ("UnknownOperationException", "ValidationException")
_NO_POLICY: Final = "PolicyNotFoundException"


class TableDefinition(msgspec.Struct, frozen=True):
    """Everything about a table except its items: the answers of DescribeTable and of other actions.

    `denied` are the actions that the credentials do not allow, so their part of the definition is unknown.
    `recovery_days` is how far point-in-time recovery reaches back; 0 also if a saved definition does not know it.
    """

    description: dict[str, Any]
    expiry: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    has_recovery: bool = False
    has_policy: bool = False
    kinesis_streams: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    recovery_days: int = 0
    policy: str = ""

    @property
    def table(self) -> TableDescription:
        """The parsed answer of DescribeTable."""
        return description_of(self.description)

    @property
    def name(self) -> str:
        """The table's name."""
        return self.table.name


def read_definition(backend: Backend, name: str) -> TableDefinition | None:
    """Read the definition of a table; None if it does not exist. Features that the engine lacks count as absent."""
    try:
        description = backend.execute("DescribeTable", {"TableName": name})["Table"]
    except ResourceNotFoundException:
        return None
    denied: list[str] = []
    expiry = _asked(backend, "DescribeTimeToLive", {"TableName": name}, denied)
    recovery = _asked(backend, "DescribeContinuousBackups", {"TableName": name}, denied)
    backups: Mapping[str, Any] = recovery.get("ContinuousBackupsDescription") or {}
    in_time: Mapping[str, Any] = backups.get("PointInTimeRecoveryDescription") or {}
    arn = description.get("TableArn")
    policy = _asked(backend, "GetResourcePolicy", {"ResourceArn": arn}, denied) if arn else {}
    kinesis = _asked(backend, "DescribeKinesisStreamingDestination", {"TableName": name}, denied)
    return TableDefinition(
        description,
        expiry_of(expiry),
        tuple(sorted(_tags(backend, arn, denied))),
        in_time.get("PointInTimeRecoveryStatus") == "ENABLED",
        bool(policy.get("Policy")),
        tuple(
            each["StreamArn"]
            for each in kinesis.get("KinesisDataStreamDestinations") or ()
            if each.get("DestinationStatus") in _DELIVERING
        ),
        tuple(denied),
        in_time.get("RecoveryPeriodInDays") or 0,
        policy.get("Policy") or "",
    )


_DELIVERING: Final = ("ACTIVE", "ENABLING", "UPDATING")  # of a Kinesis stream
SUBJECT_OF: Final = {
    "DescribeTimeToLive": "expiry",
    "DescribeContinuousBackups": "point-in-time recovery",
    "ListTagsOfResource": "tags",
    "GetResourcePolicy": "a resource policy",
    "DescribeKinesisStreamingDestination": "Kinesis streams",
}
"""What each action tells about a table, in words."""


def _tags(backend: Backend, arn: str | None, denied: list[str]) -> Iterator[tuple[str, str]]:
    request: dict[str, Any] = {"ResourceArn": arn}
    while arn:
        answer = _asked(backend, "ListTagsOfResource", request, denied)
        for tag in answer.get("Tags") or ():
            if not tag["Key"].startswith("aws:"):  # the service's own tags
                yield tag["Key"], tag["Value"]
        if not answer.get("NextToken"):
            return
        request = {**request, "NextToken": answer["NextToken"]}


def _asked(
    backend: Backend, operation: str, request: dict[str, Any], denied: list[str]
) -> Response:
    """The answer of a read that some engines lack; empty if this engine lacks or denies it."""
    try:
        return backend.execute(operation, request)
    except Unsupported:
        return {}
    except AccessDeniedException:
        denied.append(operation)
        return {}
    except ApiError as error:
        if error.code in (*_NOT_KNOWN, _NO_POLICY):
            return {}
        raise
