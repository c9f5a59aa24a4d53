"""The registry of API actions: maps names such as PutItem to the functions that `Api` calls.

`ACTIONS` has all of them from the start, but the module of an action is imported only when the action is first used: most
programs use few of them, and a server should answer soon after it was started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import get_annotations
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec

from isotone.engine.engine import Engine
from isotone.operations.request_members import ApiStructure

Answer: TypeAlias = Mapping[str, Any]


Run = TypeVar("Run", bound=Callable[[Engine, Any], Answer])


class ActionRule(msgspec.Struct, frozen=True):
    """One rule of an action: what breaks it, and the function that raises the error."""

    says: str
    check: Callable[..., object]


Rules: TypeAlias = tuple[ActionRule, ...]


class Action:
    """One action: the structure of its request, and the function that executes it.

    `before` are the rules on a request alone, `within` those that need the tables; `run` checks them in this order,
    which `checks.orders` reports. Actions on items have no rules: their `run` finds faults in any order.
    """

    __slots__ = ("before", "module", "name", "request", "run", "within")

    request: type[ApiStructure]
    run: Callable[[Engine, Any], Answer]
    before: Rules
    within: Rules

    def __init__(self, name: str, module: str) -> None:
        self.name: str = name
        self.module: str = module

    def __getattr__(self, attribute: str) -> Any:
        """Import the module, and set the attributes that are unset until then; Python calls this for these."""
        import_module(f"{__package__}.{self.module}")  # waits for a thread that is importing it
        self.request, self.run, self.before, self.within = _declared[self.name]
        return object.__getattribute__(self, attribute)


NO_BODY: Final[Answer] = cast(Answer, msgspec.Raw(b""))
"""The response of an action without a response body (not even `{}`)."""

_MODULES: Final[dict[str, tuple[str, ...]]] = {
    "account": ("DescribeEndpoints", "DescribeLimits"),
    "backups": (
        *("CreateBackup", "DeleteBackup", "DescribeBackup", "ListBackups"),
        "RestoreTableFromBackup",
    ),
    "batches": ("BatchGetItem", "BatchWriteItem"),
    "contributor_insights": (
        *("DescribeContributorInsights", "ListContributorInsights", "UpdateContributorInsights"),
    ),
    "expiry": ("DescribeTimeToLive", "UpdateTimeToLive"),
    "global_tables": (
        *("CreateGlobalTable", "DescribeGlobalTable", "ListGlobalTables", "UpdateGlobalTable"),
    ),
    "item_actions": ("DeleteItem", "GetItem", "PutItem", "UpdateItem"),
    "kinesis_destinations": (
        *("DescribeKinesisStreamingDestination", "DisableKinesisStreamingDestination"),
        *("EnableKinesisStreamingDestination", "UpdateKinesisStreamingDestination"),
    ),
    "query_and_scan": ("Query", "Scan"),
    "recovery": (
        *("DescribeContinuousBackups", "RestoreTableToPointInTime", "UpdateContinuousBackups"),
    ),
    "replica_settings": (
        *("DescribeGlobalTableSettings", "DescribeTableReplicaAutoScaling"),
        *("UpdateGlobalTableSettings", "UpdateTableReplicaAutoScaling"),
    ),
    "resource_policies": ("DeleteResourcePolicy", "GetResourcePolicy", "PutResourcePolicy"),
    "statements": ("BatchExecuteStatement", "ExecuteStatement", "ExecuteTransaction"),
    "streams": ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"),
    "table_names": ("ListTables",),
    "tables": ("CreateTable", "DeleteTable", "DescribeTable", "UpdateTable"),
    "tags": ("ListTagsOfResource", "TagResource", "UntagResource"),
    "transactions": ("TransactGetItems", "TransactWriteItems"),
    "transfers.bulk_puts": (
        *("CancelBulkOperation", "DescribeBulkOperation", "ListBulkOperations"),
        "StartBulkPutItems",
    ),
    "transfers.exports": ("DescribeExport", "ExportTableToPointInTime", "ListExports"),
    "transfers.imports": ("DescribeImport", "ImportTable", "ListImports"),
    "vector_search": ("SearchVectors",),
}

ACTIONS: Final[dict[str, Action]] = {
    name: Action(name, module) for module, names in _MODULES.items() for name in names
}

_declared: Final[dict[str, tuple[type[ApiStructure], Callable[..., Answer], Rules, Rules]]] = {}
"""The attributes of the actions in imported modules."""

GROUPED: Final = frozenset(
    {
        *("BatchExecuteStatement", "BatchWriteItem", "DeleteItem", "ExecuteStatement"),
        *("ExecuteTransaction", "PutItem", "TransactWriteItems", "UpdateItem"),
    }
)
"""Small writes: a server collects the waiting ones, and commits them together."""

STARTS_WORK: Final = frozenset(
    {
        *("CancelBulkOperation", "CreateBackup", "CreateGlobalTable", "CreateTable", "DeleteTable"),
        *("ExportTableToPointInTime", "ImportTable", "RestoreTableFromBackup"),
        *("RestoreTableToPointInTime", "StartBulkPutItems", "UpdateContinuousBackups"),
        *("UpdateGlobalTable", "UpdateTable", "UpdateTimeToLive"),
    }
)
"""The actions that may create background work: an index to fill, items that expire, a stream."""


def action(
    name: str,
    *,
    before: Rules = (),
    reading: Rules = (),
    writing: Rules = (),
) -> Callable[[Run], Run]:
    """Make the decorated function the one of an action. The annotation of its `request` is the request structure.

    The function runs after the rules: those `before` on the request, then those on the engine and the request, in a
    transaction for `reading` or `writing` that the function shares.
    """

    def register(run: Run) -> Run:
        request = get_annotations(run, eval_str=True)["request"]
        within = (*reading, *writing)
        checked = _after(before, within, bool(writing), run) if before or within else run
        _declared[name] = request, checked, before, within
        return run

    return register


def import_all() -> None:
    """Import the modules of all actions, before a process is forked that will use them: so all processes share them."""
    for module in _MODULES:
        import_module(f"{__package__}.{module}")


def _after(before: Rules, within: Rules, writes: bool, run: Run) -> Run:
    """The function that checks the rules of an action, then runs it."""

    def checked(engine: Engine, request: Any) -> Answer:
        for rule in before:
            rule.check(request)
        if not within:
            return run(engine, request)
        with engine.writing if writes else engine.reading_beside as engine:
            for rule in within:
                rule.check(engine, request)
            return run(engine, request)

    return cast(Run, checked)
