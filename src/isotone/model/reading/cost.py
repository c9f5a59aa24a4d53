"""The cost of a read, and the report of a wasteful one.

DynamoDB charges for what it reads, not for what it returns. So each read counts both, and a read that
drops most of its items is reported, with the index that would answer it by its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from isotone import limits
from isotone.backends.interface import Response
from isotone.errors import UsageError
from isotone.model.declaring.conditions import All, Comparison, Condition
from isotone.model.reading.patterns import find
from isotone.model.reading.queries import Read
from isotone.model.warning import warn_caller

LOW_HIT_RATE: Final = 0.35  # of the items read, those returned
WORTH_REPORTING: Final = 100 * limits.KB  # bytes read: the reporting threshold


class WastefulRead(UserWarning):
    """A read that dropped most of the items that it paid for."""


@dataclass(frozen=True, slots=True)
class Stats:
    """The cost of a read: items scanned and returned, capacity units, requests, bytes read.

    Bytes are computed from the units, so they are rounded up; both are 0 if the engine reports no
    capacity. `exhausted` means that a bound of units or requests ended the read.
    """

    scanned: int = 0
    returned: int = 0
    units: float = 0.0
    requests: int = 0
    bytes: int = 0
    exhausted: bool = False

    def __add__(self, other: Stats) -> Stats:
        """The cost of two reads together."""
        return Stats(
            self.scanned + other.scanned,
            self.returned + other.returned,
            self.units + other.units,
            self.requests + other.requests,
            self.bytes + other.bytes,
            self.exhausted or other.exhausted,
        )

    @property
    def hit_rate(self) -> float:
        """The fraction of scanned items that were returned; 1.0 if nothing was scanned."""
        return self.returned / self.scanned if self.scanned else 1.0

    @property
    def is_wasteful(self) -> bool:
        """Whether less than 35 % of more than 100 KB was returned."""
        return self.hit_rate < LOW_HIT_RATE and self.bytes > WORTH_REPORTING


@dataclass(slots=True)
class Meter:
    """Adds up the cost of one read, response by response."""

    consistent: bool = False
    scanned: int = 0
    returned: int = 0
    units: float = 0.0
    requests: int = 0
    exhausted: bool = False

    def count(self, response: Response) -> None:
        """Add a response of Query or Scan."""
        self.requests += 1
        self.scanned += response.get("ScannedCount") or response.get("Count", 0)
        consumed = response.get("ConsumedCapacity")
        if consumed:
            self.units += float(consumed.get("CapacityUnits", 0.0))

    @property
    def bytes_read(self) -> int:
        """The bytes for these units."""
        return int(self.units * limits.READ_UNIT * (1 if self.consistent else 2))

    def stats(self) -> Stats:
        """The cost so far."""
        return Stats(
            self.scanned,
            self.returned,
            self.units,
            self.requests,
            self.bytes_read,
            self.exhausted,
        )


@dataclass(frozen=True, slots=True)
class Waste:
    """The report of a wasteful read: its name, its cost, and advice."""

    read: str
    stats: Stats
    advice: str

    def __str__(self) -> str:
        stats = self.stats
        return (
            f"{self.read} read {stats.bytes // limits.KB} KB, {stats.scanned} items, to return "
            f"{stats.returned} ({stats.hit_rate:.1%}) for {stats.units:g} units; {self.advice}"
        )


Report = Callable[[Waste], None]


def warn(waste: Waste) -> None:
    """Report by a Python warning; each text is shown once."""
    warn_caller(WastefulRead(str(waste)))


_NARROWER: Final = "read a narrower range, or keep the wanted items in a sparse index"


def waste_of(read: Read[Any], stats: Stats) -> Waste:
    """The report of a read that dropped most of its items."""
    return Waste(read.name, stats, _advice(read))


def _advice(read: Read[Any]) -> str:
    """The key that would answer the read, or the index to declare."""
    conditions = list(_plain((*read.asked, *read.filters)))
    if len(read.schemas) > 1 or not conditions:
        return _NARROWER
    (schema,) = read.schemas
    try:
        better = find(schema.entity, tuple(conditions)).name
    except UsageError:
        return f"an index would read no other items: {_index(conditions)}"
    if better == read.name:  # no key answers the conditions that drop items
        return _NARROWER
    return f"{better} answers it by its key"


def _plain(conditions: Iterable[Condition]) -> Iterator[Comparison]:
    """The conditions that a key could answer."""
    for condition in conditions:
        if isinstance(condition, All):
            yield from _plain(condition.operands)
        elif (
            isinstance(condition, Comparison)
            and not condition.path
            and condition.operator not in ("<>", "in")
        ):
            yield condition


def _index(conditions: list[Comparison]) -> str:
    """The declaration of an index that would answer the conditions."""
    equal = list(dict.fromkeys(c.field.name for c in conditions if c.operator == "="))
    ranged = [c.field.name for c in conditions if c.operator != "="]
    partition, rest = (equal[:1], equal[1:]) if equal else ([], [])
    sort = [*rest, *ranged[:1]]
    literal = ['"ALL"'] if not partition else []
    return f'Index("…", {", ".join(literal + partition)})' + (
        f".sort({', '.join(sort)})" if sort else ""
    )
