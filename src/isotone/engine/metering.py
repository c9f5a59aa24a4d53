"""What a request costs: capacity units, per table and per index.

A `Meter` exists only where the request asked for its consumption; the hot path carries None instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isotone.engine.indexes import Entry, SecondaryIndex
from isotone.engine.record import size_of
from isotone.values.capacity import read_units, write_units

_GROUPS = {"local": "LocalSecondaryIndexes", "global": "GlobalSecondaryIndexes"}


class Meter:
    """The units that one request consumes of one table.

    `factor` is 2 inside a transaction. `kind` is the member that transactions report beside the total.
    """

    __slots__ = ("_factor", "_indexes", "_kind", "_name", "_table")

    def __init__(self, table_name: str, *, factor: int = 1, kind: str | None = None) -> None:
        self._name = table_name
        self._factor = factor
        self._kind = kind
        self._table = 0.0
        self._indexes: dict[tuple[str, str], float] = {}

    def read(self, size: int, *, consistent: bool, index: SecondaryIndex | None = None) -> None:
        """Charge one read of so many bytes to the table or to an index."""
        self._charge(read_units(size, consistent) * self._factor, index)

    def write(self, old_size: int, new_size: int) -> None:
        """Charge a write of an item: by the larger of what was there and what is there now."""
        self._charge(write_units(max(old_size, new_size)) * self._factor, None)

    def write_entry(self, index: SecondaryIndex, before: Entry | None, after: Entry | None) -> None:
        """Charge the change of an index entry: two writes where it moves, none where it is the same."""
        if before is not None and after is not None and before.key == after.key:
            units = write_units(max(size_of(before.record), size_of(after.record)))
        else:
            units = sum(write_units(size_of(entry.record)) for entry in (before, after) if entry)
        self._charge(units * self._factor, index)

    def _charge(self, units: float, index: SecondaryIndex | None) -> None:
        if index is None:
            self._table += units
        else:
            key = (index.kind, index.name)
            self._indexes[key] = self._indexes.get(key, 0.0) + units

    def report(self, mode: str) -> dict[str, Any]:
        """The request's `ConsumedCapacity`, as `ReturnConsumedCapacity` wants it."""
        total = self._table + sum(self._indexes.values())
        report: dict[str, Any] = {"TableName": self._name, **self._units(total)}
        if mode == "INDEXES":
            report["Table"] = self._units(self._table)
            for (kind, name), units in self._indexes.items():
                report.setdefault(_GROUPS[kind], {})[name] = self._units(units)
        return report

    def _units(self, units: float) -> Mapping[str, float]:
        units = float(units)
        return (
            {"CapacityUnits": units}
            if self._kind is None
            else {"CapacityUnits": units, self._kind: units}
        )
