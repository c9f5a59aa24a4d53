"""The model's public names: entities, keys and stores. Packages above the model import them from here."""

from __future__ import annotations

from isotone.backends.request_retries import full_jitter, is_transient
from isotone.codec.ids import uuid7
from isotone.codec.readable import escape, number_of, ordered_number, unescape
from isotone.model import streams
from isotone.model.connecting import aconnect, connect
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition, ValueComparison, all_of
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.fields import Attr, computed, created, expires, field, updated, version
from isotone.model.declaring.keys import Index, Key, desc, in_order, raw, since_epoch, written
from isotone.model.declaring.table import Binary, Global, Local, Number, Table
from isotone.model.declaring.vectors import VectorAttr
from isotone.model.declaring.wire_types import (
    choices,
    is_optional,
    plain_type,
    present_type,
    resolve_alias,
    type_text,
    wire_type,
)
from isotone.model.editing import (
    create_item,
    delete_item,
    edit_item,
    findings_without_reading,
    item_after,
    item_findings,
    repair_item,
    request_to_delete,
    request_to_save,
    revert_item,
    schema_of_item,
)
from isotone.model.engine_needs import EngineWarning, gaps_of, index_features
from isotone.model.entity import Entity, upgrade
from isotone.model.finding_kinds import FINDING_KINDS
from isotone.model.inspection import ItemFinding, entity_of_item
from isotone.model.key_records import changes_of_keys
from isotone.model.key_records import is_record as is_key_record
from isotone.model.operation import Awaits, Composes, Host, M_co, Waits, iteration, operation
from isotone.model.reading.access_patterns import Pattern
from isotone.model.reading.cost import Stats, waste_of
from isotone.model.reading.families import Family, FamilyQuery
from isotone.model.reading.matching import queries_for
from isotone.model.reading.merging import Merge, merge
from isotone.model.reading.nearest import VectorPattern
from isotone.model.reading.projections import Projection
from isotone.model.reading.queries import Query, Read, Scan
from isotone.model.reading.reader import Page, Traversal, items_to_read
from isotone.model.reading.snapshot import Snapshot
from isotone.model.returning import Requests, ReturningNothing, ReturningOld
from isotone.model.rewriting import Rewritten
from isotone.model.rewriting import is_interrupted as is_rewrite_interrupted
from isotone.model.store import AsyncStore, Calls, Store
from isotone.model.streams import Event, EventKind
from isotone.model.table_admin import (
    Difference,
    IndexProgress,
    Throughput,
    ensure_expiry,
    expiry_attribute,
    expiry_difference,
    table_differences,
)
from isotone.model.transactions import Transaction
from isotone.model.undo_log import check_undo_log, undo_log_output
from isotone.model.verification import FindingCount, Verification
from isotone.model.walking import check_units
from isotone.model.warn_caller import warn_caller
from isotone.model.writing.batches import BatchProgress
from isotone.tables.batch_reads import Fetched
from isotone.tables.steps import Batches, Call, Pause, Steps, capabilities_of

__all__ = [
    "FINDING_KINDS",
    "AsyncStore",
    "Attr",
    "Awaits",
    "BatchProgress",
    "Batches",
    "Binary",
    "Call",
    "Calls",
    "Change",
    "Composes",
    "Condition",
    "Difference",
    "EngineWarning",
    "Entity",
    "EntityKey",
    "EntitySchema",
    "Event",
    "EventKind",
    "Family",
    "FamilyQuery",
    "Fetched",
    "FindingCount",
    "Global",
    "Host",
    "Index",
    "IndexProgress",
    "ItemFinding",
    "Key",
    "Local",
    "M_co",
    "Merge",
    "Number",
    "Page",
    "Pattern",
    "Pause",
    "Projection",
    "Query",
    "Read",
    "Requests",
    "ReturningNothing",
    "ReturningOld",
    "Rewritten",
    "Scan",
    "Snapshot",
    "Stats",
    "Steps",
    "Store",
    "Table",
    "Throughput",
    "Transaction",
    "Traversal",
    "ValueComparison",
    "VectorAttr",
    "VectorPattern",
    "Verification",
    "Waits",
    "aconnect",
    "all_of",
    "capabilities_of",
    "changes_of_keys",
    "check_undo_log",
    "check_units",
    "choices",
    "computed",
    "connect",
    "create_item",
    "created",
    "delete_item",
    "desc",
    "edit_item",
    "ensure_expiry",
    "entity_of_item",
    "escape",
    "expires",
    "expiry_attribute",
    "expiry_difference",
    "field",
    "findings_without_reading",
    "full_jitter",
    "gaps_of",
    "in_order",
    "index_features",
    "is_key_record",
    "is_optional",
    "is_rewrite_interrupted",
    "is_transient",
    "item_after",
    "item_findings",
    "items_to_read",
    "iteration",
    "merge",
    "number_of",
    "operation",
    "ordered_number",
    "plain_type",
    "present_type",
    "queries_for",
    "raw",
    "repair_item",
    "request_to_delete",
    "request_to_save",
    "resolve_alias",
    "revert_item",
    "schema_of_item",
    "since_epoch",
    "streams",
    "table_differences",
    "type_text",
    "undo_log_output",
    "unescape",
    "updated",
    "upgrade",
    "uuid7",
    "version",
    "warn_caller",
    "waste_of",
    "wire_type",
    "written",
]
