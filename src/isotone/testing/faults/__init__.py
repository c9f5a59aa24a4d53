"""Faults that a test can order: throttling, conflicts, stale reads, lost answers, delays, slow tables.

>>> import isotone
>>> from isotone.testing.faults import Faults
>>> faults = Faults(seed=1)
>>> lost = faults.lose_answers("PutItem", at=2)
>>> with isotone.open() as database, faults.on(database):
...     database.client().list_tables()["TableNames"], lost.count
([], 0)
"""

from isotone.testing.faults.plan import Faults
from isotone.testing.faults.rules import Rule as Fault

__all__ = ["Fault", "Faults"]
