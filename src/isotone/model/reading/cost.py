"""What a read cost, and when that deserves a word.

DynamoDB charges what it reads, not what it returns. Every read therefore counts both, and one that
throws most of it away is reported together with the index that would answer it by its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from isotone import limits
from isotone.backends.interface import Response
from isotone.errors import UsageError
from isotone.model.declaring.conditions import All, Comparison, Condition
from isotone.model.reading.patterns import find
from isotone.model.reading.queries import Read
from isotone.model.warning import warn_caller

LOW_HIT_RATE: Final = 0.35  # of the items read, those returned
WORTH_REPORTING: Final = 100 * limits.KB  # bytes read below which nobody minds


class WastefulRead(UserWarning):
    """A read that dropped most of what it paid for."""


@dataclass(frozen=True, slots=True)
class Stats:
    """The cost of a read: items scanned and returned, capacity units, requests, bytes read.

    Bytes follow from the units, so they are rounded up to what a unit holds; both are 0 where the
    engine reports no capacity. `exhausted` says that a bound of units or requests ended the read.
    """

    scanned: int = 0
    returned: int = 0
    units: float = 0.0
    requests: int = 0
    bytes: int = 0
    exhausted: bool = False

    @property
    def hit_rate(self) -> float:
        """The share of the scanned items that was returned; 1.0 where nothing was scanned."""
        return self.returned / self.scanned if self.scanned else 1.0

    @property
    def is_wasteful(self) -> bool:
        """Whether less than 35 % of more than 100 KB was returned."""
        return self.hit_rate < LOW_HIT_RATE and self.bytes > WORTH_REPORTING


@dataclass(slots=True)
class Meter:
    """Counts what the responses of one library call say."""

    consistent: bool = False
    scanned: int = 0
    returned: int = 0
    units: float = 0.0
    requests: int = 0
    exhausted: bool = field(default=False)

    def count(self, response: Response) -> None:
        """Take note of a response of Query or Scan."""
        self.scanned += response.get("ScannedCount") or response.get("Count", 0)
        self.charge(response.get("ConsumedCapacity"))

    def charge(self, consumed: Any) -> None:
        """Take note of a request and the capacity that it consumed, one or a list of such."""
        self.requests += 1
        for each in consumed if isinstance(consumed, list) else [consumed or {}]:
            self.units += float(each.get("CapacityUnits", 0.0))

    @property
    def bytes_read(self) -> int:
        """The bytes that the units stand for."""
        return int(self.units * limits.READ_UNIT * (1 if self.consistent else 2))

    def stats(self) -> Stats:
        """What was counted so far."""
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
    """The report of a wasteful read: which it was, what it cost, and what would help."""

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
    """Report by a Python warning, which is shown once for each text."""
    warn_caller(WastefulRead(str(waste)))


_NARROWER: Final = "read a narrower range, or keep in a sparse index what is wanted"


def waste_of(read: Read[Any], stats: Stats) -> Waste:
    """The report of a read that returned little of what it read."""
    return Waste(read.name, stats, advice(read))


def advice(read: Read[Any]) -> str:
    """What would help, in words."""
    conditions = list(_plain((*getattr(read, "asked", ()), *read.filters)))
    if len(read.schemas) > 1 or not conditions:
        return _NARROWER
    (schema,) = read.schemas
    try:
        better = find(schema.entity, tuple(conditions)).name
    except UsageError:
        return f"an index would read no other items: {_index(conditions)}"
    if better == read.name:  # what is dropped is dropped by conditions that no key answers
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
