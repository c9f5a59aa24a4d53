"""Moving tables between engines: each job is raw requests to two backends, and knows no entities.

    isotone.moving.copy("shop.db", "dynamodb://eu-west-1")
    report = isotone.moving.diff("shop.db", "dynamodb://eu-west-1")

Every function has an awaited form: `acopy`, `adiff`.
"""

from __future__ import annotations

from isotone.moving.comparing import Comparison as Comparison
from isotone.moving.comparing import DiffReport as DiffReport
from isotone.moving.comparing import KeyDifference as KeyDifference
from isotone.moving.comparing import adiff as adiff
from isotone.moving.comparing import diff as diff
from isotone.moving.copying import Copied as Copied
from isotone.moving.copying import acopy as acopy
from isotone.moving.copying import copy as copy
from isotone.moving.progress import Progress as Progress

__all__ = [
    "Comparison",
    "Copied",
    "DiffReport",
    "KeyDifference",
    "Progress",
    "acopy",
    "adiff",
    "copy",
    "diff",
]
