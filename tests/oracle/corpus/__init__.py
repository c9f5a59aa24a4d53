"""The hand-made requests, a module per topic; a script's name is `topic/what`."""

from __future__ import annotations

from tests.oracle.corpus import (
    batches,
    conditions,
    keys,
    legacy,
    multiple,
    pages,
    projections,
    queries,
    statements,
    tables,
    transactions,
    updates,
    values,
)
from tests.oracle.scripts import Script

SCRIPTS: tuple[Script, ...] = (
    *values.SCRIPTS,
    *keys.SCRIPTS,
    *conditions.SCRIPTS,
    *projections.SCRIPTS,
    *updates.SCRIPTS,
    *queries.SCRIPTS,
    *pages.SCRIPTS,
    *batches.SCRIPTS,
    *transactions.SCRIPTS,
    *statements.SCRIPTS,
    *legacy.SCRIPTS,
    *tables.SCRIPTS,
    *multiple.SCRIPTS,
)
