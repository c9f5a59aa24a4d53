"""Reading: the steps of `get`, `page`, `iterate`, `first`, `all`, `count` and the rest.

Each is a generator of requests (`steps`) that returns its result. A read goes on over as many requests
as it takes: DynamoDB ends each at 1 MB, and filters drop what they drop, so an empty answer says
nothing. What bounds a read is what its query declares: results, units, requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from isotone.clock import Clock, SystemClock
from isotone.errors import UsageError
from isotone.model import requests
from isotone.model.advice import waste_of
from isotone.model.cursors import Position, Signer
from isotone.model.patterns import Query, Read, Scan, position
from isotone.model.stats import Meter, Report, Stats, warn
from isotone.model.steps import Call, Steps
from isotone.model.writing import identify
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")
E_co = TypeVar("E_co", bound="Entity", covariant=True)

_GROWTH: Final = 4  # how much more the next request reads than the last, at most
_ASSUMED_ITEM: Final = 2  # items that a unit reads, before the first answer tells


class BudgetSpent(UsageError):
    """The query's bound of units or requests was reached before the read was complete.

    `stats` tells what was spent; `page` reads the same in parts.
    """

    def __init__(self, message: str, stats: Stats) -> None:
        super().__init__(message)
        self.stats = stats


class TooMany(UsageError):
    """There are more results than the caller said that there can be."""


@dataclass(frozen=True, slots=True)
class Page(Generic[E_co]):
    """Some results of a query in their order, and how to get to those after and before.

    `cursor` is None where nothing follows, `previous` where nothing came before.
    """

    items: list[E_co]
    cursor: str | None
    previous: str | None
    stats: Stats

    def __iter__(self) -> Iterator[E_co]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Reader:
    """The reads of one store: what it needs for them is a clock, a signer of cursors and an ear."""

    def __init__(
        self, signer: Signer, clock: Clock | None = None, report: Report | None = warn
    ) -> None:
        self._signer = signer
        self._clock = clock or SystemClock()
        self._report = report

    def get(
        self, entity: type[E], values: dict[str, Any], *, consistent: bool = False
    ) -> Steps[E | None]:
        """The entity with this primary key; None where there is none, or it has expired."""
        schema = entity.__schema__
        request: dict[str, Any] = {
            "TableName": schema.table.name,
            "Key": identify(schema, values),
        }
        if consistent:
            request["ConsistentRead"] = True
        response = yield Call("GetItem", request)
        return self.entity_of(entity, response.get("Item"))

    def entity_of(self, entity: type[E], item: Item | None) -> E | None:
        """The entity of an item that was read by its key; None where it is none, or has expired."""
        if item is None:
            return None
        schema = entity.__schema__
        expires = schema.by_role.get("expires")
        if expires is not None and requests.has_expired(
            item.get(expires.attribute), self._clock.now()
        ):
            return None
        if item.get(schema.table.tag, {"S": schema.tag}) != {"S": schema.tag}:
            return None
        return cast(E, schema.from_item(item))

    def page(self, read: Read[E], *, size: int, cursor: str | None = None) -> Steps[Page[E]]:
        """Exactly `size` results, fewer only at the end or where the query's bounds are reached."""
        if read.most_results is not None:
            raise UsageError("a page has a size; leave limit(…) to iterate, all and first")
        if size < 1:
            raise UsageError(f"a page of size {size} has no place for anything; give 1 or more")
        if read.is_empty:
            return Page([], None, None, Stats())
        request = read.request()
        at = Position("forward", None) if cursor is None else self._signer.read(cursor, request)
        meter = Meter(read.is_consistent)
        # Backwards one more is read, which tells whether this is the first page.
        spare = 1 if at.direction == "back" else 0
        found, end = yield from self._collect(_turned(read, at), size + spare, at.key, meter)
        if spare and len(found) > size:
            del found[size:]
            end = position(read, found[-1][1])
            meter.returned = size
        self._judge(read, meter)
        ahead, behind = _surroundings(read, found, at, end)

        def written(place: Position | None) -> str | None:
            return None if place is None else self._signer.write(place, request)

        items = [each for each, _ in (reversed(found) if at.direction == "back" else found)]
        return Page(cast("list[E]", items), written(ahead), written(behind), meter.stats())

    def first(self, read: Read[E]) -> Steps[E | None]:
        """The first result; None where there is none."""
        meter = Meter(read.is_consistent)
        found, end = yield from self._collect(read, 1, None, meter)
        self._judge(read, meter)
        if not found and end is not None:
            raise _spent(read, meter)
        return cast(E, found[0][0]) if found else None

    def all(self, read: Read[E], *, at_most: int | None = None) -> Steps[list[E]]:
        """All results; raises `TooMany` where there are more than `at_most`."""
        wanted = read.most_results
        if at_most is not None and (wanted is None or wanted > at_most):
            wanted = at_most + 1
        meter = Meter(read.is_consistent)
        found, end = yield from self._collect(read, wanted, None, meter)
        self._judge(read, meter)
        if at_most is not None and len(found) > at_most:
            raise TooMany(
                f"{read.name} has more than {at_most} results; read them with iterate or page, or "
                "take the first of them with limit(…)"
            )
        if meter.exhausted and end is not None:
            raise _spent(read, meter)
        return [cast(E, each) for each, _ in found]

    def count(self, read: Read[E]) -> Steps[int]:
        """How many results there are; costs as much as reading them."""
        if read.is_empty:
            return 0
        if isinstance(read, Query) and read.bounds.excluded:
            return len((yield from self.all(read.select())))
        request = requests.counting(read, self._clock.now())
        meter, start = Meter(read.is_consistent), None
        while meter.requests == 0 or start is not None:
            response = yield Call(read.operation, _continued(request, start, None))
            meter.count(response)
            meter.returned += response["Count"]
            start = response.get("LastEvaluatedKey")
            if start is not None and _is_spent(read, meter):
                raise _spent(read, meter)
            if read.most_results is not None and meter.returned >= read.most_results:
                return read.most_results
        self._judge(read, meter)
        return meter.returned

    def traverse(self, read: Read[E]) -> Traversal[E]:
        """The results one request's worth at a time, for whoever iterates over all of them."""
        return Traversal(self, read)

    def segments(self, read: Scan[E], count: int) -> list[Traversal[E]]:
        """As many parts of a scan, each to be read on its own, at the same time."""
        return [Traversal(self, read.segment(number, of=count)) for number in range(count)]

    # What they are made of

    def _collect(
        self, read: Read[Any], wanted: int | None, start: Item | None, meter: Meter
    ) -> Steps[tuple[list[requests.Found], Item | None]]:
        """The wanted number of results from a place on, and the place where reading ended.

        The place is None at the end of the data.
        """
        found: list[requests.Found] = []
        if read.is_empty:
            return found, None
        request = read.request()
        chunk: int | None = None
        while True:
            missing = None if wanted is None else wanted - len(found)
            chunk = _chunk(read, missing, meter, chunk)
            response = yield Call(read.operation, _continued(request, start, chunk))
            meter.count(response)
            found += read.takes.entities(response["Items"], self._clock.now())
            start = response.get("LastEvaluatedKey")
            if wanted is not None and len(found) >= wanted:
                if len(found) > wanted:
                    del found[wanted:]
                    start = position(read, found[-1][1])
                break
            if start is None:
                break
            if _is_spent(read, meter):
                meter.exhausted = True
                break
        meter.returned += len(found)
        return found, start

    def _judge(self, read: Read[Any], meter: Meter) -> None:
        stats = meter.stats()
        if self._report is not None and stats.is_wasteful:
            self._report(waste_of(read, stats))


class Traversal(Generic[E]):
    """A read in progress: each step brings what one request brings.

    `is_over` tells when there is no more; `stats` what was spent so far.
    """

    def __init__(self, reader: Reader, read: Read[E]) -> None:
        self._reader = reader
        self._read = read
        self._meter = Meter(read.is_consistent)
        self._start: Item | None = None
        self._request = None if read.is_empty else read.request()
        self.is_over = read.is_empty

    @property
    def stats(self) -> Stats:
        """What was spent so far."""
        return self._meter.stats()

    def step(self) -> Steps[list[E]]:
        """The next results, maybe none; raises `BudgetSpent` where the query's bounds forbid more."""
        read, meter = self._read, self._meter
        if self._request is None or self.is_over:
            return []
        if _is_spent(read, meter):
            raise _spent(read, meter)
        missing = None if read.most_results is None else read.most_results - meter.returned
        request = _continued(self._request, self._start, _chunk(read, missing, meter, None))
        response = yield Call(read.operation, request)
        meter.count(response)
        entities = [
            cast(E, each)
            for each, _ in read.takes.entities(response["Items"], self._reader._clock.now())
        ][:missing]
        meter.returned += len(entities)
        self._start = response.get("LastEvaluatedKey")
        self.is_over = self._start is None or meter.returned == read.most_results
        if self.is_over:
            self._reader._judge(read, meter)
        return entities


ScanProgress = Callable[[Stats], None]


def _continued(request: Any, start: Item | None, limit: int | None) -> dict[str, Any]:
    """A request as it goes on from a place."""
    further = dict(request)
    if start is not None:
        further["ExclusiveStartKey"] = start
    if limit is not None:
        further["Limit"] = limit
    return further


def _chunk(read: Read[Any], missing: int | None, meter: Meter, last: int | None) -> int | None:
    """How many items to read next: as many as will probably do, and not beyond the query's bounds."""
    bounds = [read.items_a_page]
    if missing is not None:
        bounds.append(_estimate(missing, meter, last))
    if read.most_units is not None:
        an_item = meter.units / meter.scanned if meter.scanned else 1 / _ASSUMED_ITEM
        left = read.most_units - meter.units
        bounds.append(max(1, int(left / an_item)) if an_item else None)
    known = [bound for bound in bounds if bound is not None]
    return min(known) if known else None


def _estimate(missing: int, meter: Meter, last: int | None) -> int:
    """Items that will probably hold the missing results, going by the hit rate so far.

    The first request reads what would do if nothing were dropped, so a read of which nothing is
    dropped reads nothing in vain.
    """
    if last is None:
        return missing
    return min(missing * meter.requests * _GROWTH, max(missing, last * _GROWTH))


def _is_spent(read: Read[Any], meter: Meter) -> bool:
    return (read.most_units is not None and meter.units >= read.most_units) or (
        read.most_requests is not None and meter.requests >= read.most_requests
    )


def _spent(read: Read[Any], meter: Meter) -> BudgetSpent:
    stats = replace(meter.stats(), exhausted=True)
    return BudgetSpent(
        f"{read.name} is not complete after {stats.units:g} units and {stats.requests} requests, "
        "which is the bound that it was given; raise it, or read on by pages",
        stats,
    )


def _turned(read: Read[E], at: Position) -> Read[E]:
    """The read in the direction in which the page is to be collected."""
    if at.direction == "forward":
        return read
    if not isinstance(read, Query):
        raise UsageError("a scan has no order, so there is no page before")
    return read.reversed()


def _surroundings(
    read: Read[Any], found: list[requests.Found], at: Position, end: Item | None
) -> tuple[Position | None, Position | None]:
    """Where the page after this one begins and where the one before, as far as there are such."""
    far = None if end is None else Position(at.direction, end)
    near: Position | None = None
    if isinstance(read, Query) and (at.key is not None or at.direction == "back"):
        opposite: Any = "back" if at.direction == "forward" else "forward"
        near = Position(opposite, position(read, found[0][1]) if found else None)
    return (far, near) if at.direction == "forward" else (near, far)
