"""The cost of a read (`Stats`: units, scanned), and what would save the waste: `WastefulRead`, the index it lacks.

DynamoDB charges for what it reads, not for what it returns. So each read counts both. A read that drops most of its
items is reported, with the index that would avoid this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isotone import limits
from isotone.backends.interface import Response
from isotone.errors import InvalidItem, UsageError
from isotone.model.declaring.conditions import All, Condition, ValueComparison
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.keys import BoundKey
from isotone.model.reading.matching import find, lacking
from isotone.model.reading.queries import OnInvalid, Read
from isotone.model.warn_caller import warn_caller
from isotone.text_table import pluralized

LOW_HIT_RATE: Final = 0.35  # returned items / read items, below which a read is reported
WORTH_REPORTING: Final = 100 * limits.KB  # bytes; smaller reads are not reported


class WastefulRead(UserWarning):
    """A read dropped most of the items that it paid for.

    warnings.simplefilter("error", isotone.WastefulRead)  # in tests
    """


@dataclass(frozen=True, slots=True)
class Stats:
    """The cost of a read: items scanned and returned, capacity units, requests, bytes read.

    Bytes are computed from the units, so they are rounded up; both are 0 if the engine does not report capacity.
    `exhausted`: a limit on units or requests ended the read. `invalid` counts the items left out because they do not
    fit their entity's declaration (`on_invalid`).
    """

    scanned: int = 0
    returned: int = 0
    units: float = 0.0
    requests: int = 0
    bytes: int = 0
    exhausted: bool = False
    invalid: int = 0

    def __add__(self, other: Stats) -> Stats:
        """Add the costs of two reads."""
        return Stats(
            self.scanned + other.scanned,
            self.returned + other.returned,
            self.units + other.units,
            self.requests + other.requests,
            self.bytes + other.bytes,
            self.exhausted or other.exhausted,
            self.invalid + other.invalid,
        )

    @property
    def hit_rate(self) -> float:
        """The fraction of scanned items that were returned; 1.0 if nothing was scanned."""
        return self.returned / self.scanned if self.scanned else 1.0

    @property
    def is_wasteful(self) -> bool:
        """Whether less than 35 % was returned of more than 100 KB read."""
        return self.bytes > WORTH_REPORTING and self.hit_rate < LOW_HIT_RATE


@dataclass(slots=True)
class CostMeter:
    """Adds up the cost of one read, response by response, and notes its invalid items.

    `noted` lists the invalid items that are not yet reported, each with the number of results before it.
    """

    consistent: bool = False
    when_invalid: OnInvalid = "raise"
    scanned: int = 0
    returned: int = 0
    units: float = 0.0
    requests: int = 0
    exhausted: bool = False
    invalid: int = 0
    noted: list[tuple[InvalidItem, int]] | None = None

    def count(self, response: Response) -> None:
        """Add the response of a Query or Scan."""
        self.requests += 1
        self.scanned += response.get("ScannedCount") or response.get("Count", 0)
        consumed = response["ConsumedCapacity"] if "ConsumedCapacity" in response else None  # noqa: SIM401 - no call, as this is hot
        if consumed:
            self.units += float(consumed.get("CapacityUnits", 0.0))

    def note(self, error: InvalidItem, place: int) -> None:
        """Note an invalid item with the number of results before it."""
        if self.noted is None:
            self.noted = []
        self.noted.append((error, place))

    def cut(self, results: int) -> None:
        """Drop the invalid items after so many results; the next read meets them again."""
        if self.noted:
            self.noted = [(error, place) for error, place in self.noted if place < results]

    def must_raise(self, wanted: int | None) -> bool:
        """Whether an invalid item must end the read, even if enough results are found."""
        if not self.noted or self.when_invalid != "raise":
            return False
        return wanted is None or self.noted[0][1] < wanted - 1

    def settle(self) -> list[InvalidItem]:
        """Raise, count or report the noted errors, as the query asks; returns the ones to list on the page."""
        if not self.noted:
            return []
        errors = [error for error, _ in self.noted]
        self.noted = None
        if self.when_invalid == "raise":
            raise errors[0]
        self.invalid += len(errors)
        if callable(self.when_invalid):
            for error in errors:
                self.when_invalid(error)
        return errors if self.when_invalid == "collect" else []

    def stats(self) -> Stats:
        """The cost so far."""
        return Stats(
            self.scanned,
            self.returned,
            self.units,
            self.requests,
            int(self.units * limits.READ_UNIT * (1 if self.consistent else 2)),
            self.exhausted,
            self.invalid,
        )


@dataclass(frozen=True, slots=True)
class Waste:
    """A report about a wasteful read: the read, its cost, and advice."""

    read: str
    stats: Stats
    advice: str

    def __str__(self) -> str:
        stats = self.stats
        return (
            f"{self.read} read {stats.bytes // limits.KB} KB, {pluralized(stats.scanned, 'item')}, to return "
            f"{stats.returned} ({stats.hit_rate:.1%}) for {pluralized(stats.units, 'unit', form='g')}; {self.advice}"
        )


Report = Callable[[Waste], None]


def warn(waste: Waste) -> None:
    """Report as a Python warning; each text is shown once."""
    warn_caller(WastefulRead(str(waste)))


_NARROWER: Final = "read a narrower range, or keep the wanted items in a sparse index"


def waste_of(read: Read[Any], stats: Stats) -> Waste:
    """The report about a read that dropped most of its items."""
    return Waste(read.name, stats, _advice(read))


def _advice(read: Read[Any]) -> str:
    """The key that would answer the read, or the index to declare."""
    conditions = (*read.asked, *read.filters)
    plain = list(_plain(conditions))
    if len(read.schemas) > 1 or not plain:
        return _NARROWER
    (schema,) = read.schemas
    for asked in (conditions, plain):
        try:
            better = find(schema.entity, asked).name
        except UsageError:
            continue
        # If it is the same key, no key answers the conditions that drop items.
        return _NARROWER if better == read.name else f"{better} answers it by its key"
    return _index(schema, conditions, plain)


def _plain(conditions: Iterable[Condition]) -> Iterator[ValueComparison]:
    """The conditions that a key could answer."""
    for condition in conditions:
        if isinstance(condition, All):
            yield from _plain(condition.operands)
        elif (
            isinstance(condition, ValueComparison)
            and not condition.path
            and condition.operator not in ("<>", "in")
        ):
            yield condition


def _index(
    schema: EntitySchema, conditions: Sequence[Condition], plain: Sequence[ValueComparison]
) -> str:
    """The existing index with a key for the conditions, and what it lacks; or the declaration of a new index."""
    equal = list(dict.fromkeys(each.field.name for each in plain if each.operator == "="))
    ranged = [each.field.name for each in plain if each.operator != "="]
    partition, sort = equal[:1], [*equal[1:], *ranged[:1]]
    for key in schema.indexes if partition else ():
        if not _has_key(key, equal, ranged[:1]):
            continue
        why = lacking(schema, key, conditions)
        return f"{schema.patterns[key.name]} has the key for it, but {why}" if why else _NARROWER
    literal = ['"ALL"'] if not partition else []
    return f'an index would read no other items: Index("…", {", ".join(literal + partition)})' + (
        f".sort({', '.join(sort)})" if sort else ""
    )


def _has_key(key: BoundKey, equal: Sequence[str], ranged: Sequence[str]) -> bool:
    """Whether a key begins with the fields: equal ones first, in any order, then the one of the range."""
    names = [component.field.name for component in key.components]
    grouped = [each.field.name for slot in key.partition for each in slot.components]
    count = len(equal)
    return (
        {*grouped} <= {*equal}
        and {*names[:count]} == {*equal}
        and names[count : count + len(ranged)] == [*ranged]
    )
