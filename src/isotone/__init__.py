"""Isotone: DynamoDB inside your Python process, and entities whose keys cannot sort wrongly.

    >>> import isotone
    >>> database = isotone.open(":memory:")     # or a path
    >>> client = database.client()              # the methods of boto3's DynamoDB client
    >>> store = isotone.connect(database)       # entities instead of items; or a path, or a URL

Names load when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotone.advisor.collection_drawing import CollectionDrawing as CollectionDrawing
    from isotone.advisor.drawing import draw as draw
    from isotone.advisor.explain import explain as explain
    from isotone.advisor.explanation import Explanation as Explanation
    from isotone.advisor.lint.finding import LintReport as LintReport
    from isotone.advisor.lint.linting import lint as lint
    from isotone.backends.capabilities import Capabilities as Capabilities
    from isotone.backends.credentials import Credentials as Credentials
    from isotone.backends.embedded import Database as Database
    from isotone.backends.embedded import backup as backup
    from isotone.backends.embedded import compact as compact
    from isotone.backends.embedded import open as open  # noqa: A004
    from isotone.backends.embedded import repair as repair
    from isotone.backends.embedded import restore as restore
    from isotone.backends.endpoint import Timeouts as Timeouts
    from isotone.backends.engines import ENGINES as ENGINES
    from isotone.backends.request_retries import Retries as Retries
    from isotone.backends.s3 import S3 as S3
    from isotone.client import Client as Client
    from isotone.clock import ManualClock as ManualClock
    from isotone.clock import SystemClock as SystemClock
    from isotone.codec.ids import KSUID as KSUID
    from isotone.codec.ids import ULID as ULID
    from isotone.codec.ids import time_of as time_of
    from isotone.codec.ids import uuid7 as uuid7
    from isotone.design.seeding import Seeded as Seeded
    from isotone.design.seeding import SeedProgress as SeedProgress
    from isotone.design.seeding import seed as seed
    from isotone.inference import Inferred as Inferred
    from isotone.inference import infer as infer
    from isotone.model.bulk import BulkProgress as BulkProgress
    from isotone.model.connecting import aconnect as aconnect
    from isotone.model.connecting import connect as connect
    from isotone.model.declaring.changes import Change as Change
    from isotone.model.declaring.conditions import Condition as Condition
    from isotone.model.declaring.entity_key import EntityKey as EntityKey
    from isotone.model.declaring.field_codecs import Codec as Codec
    from isotone.model.declaring.fields import Attr as Attr
    from isotone.model.declaring.fields import computed as computed
    from isotone.model.declaring.fields import created as created
    from isotone.model.declaring.fields import created_id as created_id
    from isotone.model.declaring.fields import expires as expires
    from isotone.model.declaring.fields import field as field
    from isotone.model.declaring.fields import updated as updated
    from isotone.model.declaring.fields import version as version
    from isotone.model.declaring.keys import Index as Index
    from isotone.model.declaring.keys import Key as Key
    from isotone.model.declaring.keys import desc as desc
    from isotone.model.declaring.keys import in_order as in_order
    from isotone.model.declaring.keys import raw as raw
    from isotone.model.declaring.keys import since_epoch as since_epoch
    from isotone.model.declaring.keys import written as written
    from isotone.model.declaring.patch import Patch as Patch
    from isotone.model.declaring.table import Binary as Binary
    from isotone.model.declaring.table import Global as Global
    from isotone.model.declaring.table import Local as Local
    from isotone.model.declaring.table import Number as Number
    from isotone.model.declaring.table import Table as Table
    from isotone.model.declaring.vector_index import VectorIndex as VectorIndex
    from isotone.model.declaring.vectors import Vector as Vector
    from isotone.model.declaring.vectors import vector as vector
    from isotone.model.engine_needs import EngineWarning as EngineWarning
    from isotone.model.entity import Entity as Entity
    from isotone.model.entity import upgrade as upgrade
    from isotone.model.observing import Observation as Observation
    from isotone.model.observing import at_end as at_end
    from isotone.model.observing import to_log as to_log
    from isotone.model.observing import to_spans as to_spans
    from isotone.model.reading.cost import Stats as Stats
    from isotone.model.reading.cost import WastefulRead as WastefulRead
    from isotone.model.reading.families import Family as Family
    from isotone.model.reading.merging import Merge as Merge
    from isotone.model.reading.merging import merge as merge
    from isotone.model.reading.nearest import Neighbor as Neighbor
    from isotone.model.reading.nearest import VectorSearch as VectorSearch
    from isotone.model.reading.projections import Projection as Projection
    from isotone.model.reading.queries import Query as Query
    from isotone.model.reading.queries import Read as Read
    from isotone.model.reading.queries import Scan as Scan
    from isotone.model.reading.reader import Page as Page
    from isotone.model.reading.showing import show as show
    from isotone.model.reading.snapshot import Snapshot as Snapshot
    from isotone.model.rewriting import RewriteExample as RewriteExample
    from isotone.model.rewriting import RewriteFailure as RewriteFailure
    from isotone.model.rewriting import Rewritten as Rewritten
    from isotone.model.store import AsyncStore as AsyncStore
    from isotone.model.store import Store as Store
    from isotone.model.streams import Event as Event
    from isotone.model.table_admin import Throughput as Throughput
    from isotone.model.transactions import Transaction as Transaction
    from isotone.model.undo_log import Undone as Undone
    from isotone.model.verification import FindingCount as FindingCount
    from isotone.model.verification import Verification as Verification
    from isotone.model.writing.headroom import HeadroomNotice as HeadroomNotice
    from isotone.model.writing.headroom import HeadroomWarning as HeadroomWarning
    from isotone.model.writing.headroom import headroom_notices as headroom_notices
    from isotone.model.writing.headroom import on_headroom as on_headroom

__version__ = "0.1.0"

_HOMES = {
    "Neighbor": "isotone.model.reading.nearest",
    "VectorSearch": "isotone.model.reading.nearest",
    "VectorIndex": "isotone.model.declaring.vector_index",
    "Vector": "isotone.model.declaring.vectors",
    "vector": "isotone.model.declaring.vectors",
    "AsyncStore": "isotone.model.store",
    "Attr": "isotone.model.declaring.fields",
    "Binary": "isotone.model.declaring.table",
    "BulkProgress": "isotone.model.bulk",
    "Capabilities": "isotone.backends.capabilities",
    "Change": "isotone.model.declaring.changes",
    "Client": "isotone.client",
    "CollectionDrawing": "isotone.advisor.collection_drawing",
    "Codec": "isotone.model.declaring.field_codecs",
    "Condition": "isotone.model.declaring.conditions",
    "Credentials": "isotone.backends.credentials",
    "Database": "isotone.backends.embedded",
    "ENGINES": "isotone.backends.engines",
    "EngineWarning": "isotone.model.engine_needs",
    "Entity": "isotone.model.entity",
    "EntityKey": "isotone.model.declaring.entity_key",
    "Event": "isotone.model.streams",
    "Explanation": "isotone.advisor.explanation",
    "Family": "isotone.model.reading.families",
    "FindingCount": "isotone.model.verification",
    "Global": "isotone.model.declaring.table",
    "HeadroomNotice": "isotone.model.writing.headroom",
    "HeadroomWarning": "isotone.model.writing.headroom",
    "Index": "isotone.model.declaring.keys",
    "Inferred": "isotone.inference",
    "KSUID": "isotone.codec.ids",
    "Key": "isotone.model.declaring.keys",
    "LintReport": "isotone.advisor.lint.finding",
    "Local": "isotone.model.declaring.table",
    "ManualClock": "isotone.clock",
    "Merge": "isotone.model.reading.merging",
    "Number": "isotone.model.declaring.table",
    "Observation": "isotone.model.observing",
    "Page": "isotone.model.reading.reader",
    "Patch": "isotone.model.declaring.patch",
    "Projection": "isotone.model.reading.projections",
    "Query": "isotone.model.reading.queries",
    "Read": "isotone.model.reading.queries",
    "Retries": "isotone.backends.request_retries",
    "S3": "isotone.backends.s3",
    "Scan": "isotone.model.reading.queries",
    "SeedProgress": "isotone.design.seeding",
    "Seeded": "isotone.design.seeding",
    "Snapshot": "isotone.model.reading.snapshot",
    "Stats": "isotone.model.reading.cost",
    "Store": "isotone.model.store",
    "SystemClock": "isotone.clock",
    "Table": "isotone.model.declaring.table",
    "Throughput": "isotone.model.table_admin",
    "Timeouts": "isotone.backends.endpoint",
    "Transaction": "isotone.model.transactions",
    "ULID": "isotone.codec.ids",
    "Verification": "isotone.model.verification",
    "WastefulRead": "isotone.model.reading.cost",
    "RewriteExample": "isotone.model.rewriting",
    "RewriteFailure": "isotone.model.rewriting",
    "Rewritten": "isotone.model.rewriting",
    "Undone": "isotone.model.undo_log",
    "aconnect": "isotone.model.connecting",
    "at_end": "isotone.model.observing",
    "backup": "isotone.backends.embedded",
    "compact": "isotone.backends.embedded",
    "repair": "isotone.backends.embedded",
    "computed": "isotone.model.declaring.fields",
    "connect": "isotone.model.connecting",
    "created": "isotone.model.declaring.fields",
    "created_id": "isotone.model.declaring.fields",
    "desc": "isotone.model.declaring.keys",
    "draw": "isotone.advisor.drawing",
    "expires": "isotone.model.declaring.fields",
    "explain": "isotone.advisor.explain",
    "field": "isotone.model.declaring.fields",
    "headroom_notices": "isotone.model.writing.headroom",
    "in_order": "isotone.model.declaring.keys",
    "infer": "isotone.inference",
    "lint": "isotone.advisor.lint.linting",
    "merge": "isotone.model.reading.merging",
    "on_headroom": "isotone.model.writing.headroom",
    "open": "isotone.backends.embedded",
    "raw": "isotone.model.declaring.keys",
    "restore": "isotone.backends.embedded",
    "seed": "isotone.design.seeding",
    "show": "isotone.model.reading.showing",
    "since_epoch": "isotone.model.declaring.keys",
    "time_of": "isotone.codec.ids",
    "to_log": "isotone.model.observing",
    "to_spans": "isotone.model.observing",
    "updated": "isotone.model.declaring.fields",
    "upgrade": "isotone.model.entity",
    "uuid7": "isotone.codec.ids",
    "version": "isotone.model.declaring.fields",
    "written": "isotone.model.declaring.keys",
}

# All but `open`, which `from isotone import *` would put in the place of Python's own.
__all__ = [
    "ENGINES",
    "KSUID",
    "S3",
    "ULID",
    "AsyncStore",
    "Attr",
    "Binary",
    "BulkProgress",
    "Capabilities",
    "Change",
    "Client",
    "Codec",
    "CollectionDrawing",
    "Condition",
    "Credentials",
    "Database",
    "EngineWarning",
    "Entity",
    "EntityKey",
    "Event",
    "Explanation",
    "Family",
    "FindingCount",
    "Global",
    "HeadroomNotice",
    "HeadroomWarning",
    "Index",
    "Inferred",
    "Key",
    "LintReport",
    "Local",
    "ManualClock",
    "Merge",
    "Neighbor",
    "Number",
    "Observation",
    "Page",
    "Patch",
    "Projection",
    "Query",
    "Read",
    "Retries",
    "RewriteExample",
    "RewriteFailure",
    "Rewritten",
    "Scan",
    "SeedProgress",
    "Seeded",
    "Snapshot",
    "Stats",
    "Store",
    "SystemClock",
    "Table",
    "Throughput",
    "Timeouts",
    "Transaction",
    "Undone",
    "Vector",
    "VectorIndex",
    "VectorSearch",
    "Verification",
    "WastefulRead",
    "__version__",
    "aconnect",
    "at_end",
    "backup",
    "compact",
    "computed",
    "connect",
    "created",
    "created_id",
    "desc",
    "draw",
    "expires",
    "explain",
    "field",
    "headroom_notices",
    "in_order",
    "infer",
    "lint",
    "merge",
    "on_headroom",
    "raw",
    "repair",
    "restore",
    "seed",
    "show",
    "since_epoch",
    "time_of",
    "to_log",
    "to_spans",
    "updated",
    "upgrade",
    "uuid7",
    "vector",
    "version",
    "written",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'isotone' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
