"""Copies, compares, exports and imports tables: jobs of raw requests to backends, without entities.

    isotone.moving.copy("shop.db", "dynamodb://eu-west-1")
    report = isotone.moving.diff("shop.db", "dynamodb://eu-west-1")
    isotone.moving.export_items("shop.db", "Orders", "orders.jsonl.gz")
    isotone.moving.import_items("orders.jsonl.gz", "http://localhost:8000", "Orders")

Every function has an async form: `acopy`, `adiff`, `aexport_items`, `aimport_items`.
"""

from __future__ import annotations

from isotone.moving.comparing import DiffReport as DiffReport
from isotone.moving.comparing import KeyDifference as KeyDifference
from isotone.moving.comparing import TableDifference as TableDifference
from isotone.moving.comparing import adiff as adiff
from isotone.moving.comparing import diff as diff
from isotone.moving.copying import Copied as Copied
from isotone.moving.copying import acopy as acopy
from isotone.moving.copying import copy as copy
from isotone.moving.exporting import Exported as Exported
from isotone.moving.exporting import aexport_items as aexport_items
from isotone.moving.exporting import export_items as export_items
from isotone.moving.importing import Imported as Imported
from isotone.moving.importing import aimport_items as aimport_items
from isotone.moving.importing import import_items as import_items
from isotone.tables.pace import Stopped as Stopped
from isotone.tables.progress import Progress as Progress

__all__ = [
    "Copied",
    "DiffReport",
    "Exported",
    "Imported",
    "KeyDifference",
    "Progress",
    "Stopped",
    "TableDifference",
    "acopy",
    "adiff",
    "aexport_items",
    "aimport_items",
    "copy",
    "diff",
    "export_items",
    "import_items",
]
