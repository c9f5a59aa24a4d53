"""A session that calls every action with every parameter, in chapters, each on a database of its own."""

from __future__ import annotations

from typing import Final

from tests.operations.session import copies, items, regions, tables
from tests.operations.session.player import FILES, Chapter, Exchange, play

__all__ = ["CHAPTERS", "FILES", "Chapter", "Exchange", "play"]

CHAPTERS: Final[tuple[Chapter, ...]] = (
    tables.tables,
    tables.on_demand_tables,
    tables.added_indexes,
    tables.account,
    tables.tags_and_policies,
    tables.expiry,
    tables.kinesis,
    tables.insights,
    tables.auto_scaling,
    items.single_writes,
    items.legacy_expectations,
    items.reads,
    items.vector_searches,
    items.batches,
    items.transactions,
    items.statements,
    items.streams,
    copies.backups,
    copies.recovery,
    copies.exports,
    copies.imports,
    copies.bulk_operations,
    regions.replicas,
    regions.provisioned_replicas,
    regions.strong_replicas,
    regions.global_tables,
)
