"""WarmThroughput: how many units a second a table or a global index supports at once. It never falls."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from isotone.engine.table_schema import IndexSchema, TableSchema
from isotone.errors import ValidationException
from isotone.operations.item_validation import INVALID

_MEMBERS: Final = ("ReadUnitsPerSecond", "WriteUnitsPerSecond")
_ON_DEMAND: Final = (12_000, 4_000)  # what a new on-demand table supports
_TOO_LOW_FOR_NEW: Final = (
    "is lower than initial throughput for OnDemand. See: https://docs.aws.amazon.com/amazondynamodb/"
    "latest/developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial"
)
_TOO_LOW: Final = "is lower than current WarmThroughput, decreasing WarmThroughput is not supported"


def warm_throughput(of: TableSchema | IndexSchema) -> dict[str, Any]:
    """The `WarmThroughput` of a description."""
    return {**dict(zip(_MEMBERS, _units(of), strict=True)), "Status": "ACTIVE"}


def check_new(of: TableSchema | IndexSchema) -> None:
    """Refuse a new table or index whose warm throughput is below what its capacity gives."""
    _check(of, _least(of), _TOO_LOW if of.throughput.read else _TOO_LOW_FOR_NEW)


def kept(before: TableSchema, after: TableSchema) -> TableSchema:
    """The table after a change, with a warm throughput that has not fallen; a request for less is refused."""
    known = {index.name: index for index in before.indexes}
    indexes = []
    for index in after.indexes:
        if index.name in known:
            settings = _settings(known[index.name], index)
            indexes.append(msgspec.structs.replace(index, settings=settings))
        else:
            check_new(index)
            indexes.append(index)
    settings = _settings(before, after)
    return msgspec.structs.replace(after, settings=settings, indexes=tuple(indexes))


def _settings(
    before: TableSchema | IndexSchema, after: TableSchema | IndexSchema
) -> dict[str, Any]:
    """The settings after a change: units that it does not name, or that would fall, stay."""
    current = _units(before)
    if after.settings.get("WarmThroughput") != before.settings.get("WarmThroughput"):
        _check(after, current, _TOO_LOW)
    units = tuple(map(max, _units(after), current))
    if units == _units(after):
        return after.settings
    return {**after.settings, "WarmThroughput": dict(zip(_MEMBERS, units, strict=True))}


def _check(of: TableSchema | IndexSchema, least: tuple[int, ...], problem: str) -> None:
    name = "table" if isinstance(of, TableSchema) else f"index {of.name}"
    for member, units, limit in zip(_MEMBERS, _wanted(of), least, strict=True):
        if units is not None and units < limit:
            raise ValidationException(
                f"{INVALID}Requested {member} for WarmThroughput for {name} {problem}"
            )


def _wanted(of: TableSchema | IndexSchema) -> tuple[int | None, ...]:
    stored = of.settings.get("WarmThroughput", {})
    return tuple(stored.get(member) for member in _MEMBERS)


def _least(of: TableSchema | IndexSchema) -> tuple[int, ...]:
    """What the capacity alone gives: the provisioned units, or what on-demand tables begin with."""
    if of.throughput.read:
        return of.throughput.read, of.throughput.write
    return _ON_DEMAND


def _units(of: TableSchema | IndexSchema) -> tuple[int, ...]:
    return tuple(
        max(units or 0, least) for units, least in zip(_wanted(of), _least(of), strict=True)
    )
