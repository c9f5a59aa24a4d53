"""Executes reads as many requests: `get`, `page`, `all`, `count`, `load` …; `BudgetSpent`, `TooMany`, `TooLarge`.

Each read is a generator of requests (`steps`) that returns its result. It takes as many requests as it needs: DynamoDB
ends each response at 1 MB, and filters drop items, so an empty response is not the end. The query may limit results,
units or requests. The responses so far determine how many items the next request reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar, cast, overload

from isotone import limits
from isotone.clock import Clock, SystemClock
from isotone.errors import (
    BudgetSpent,
    InvalidItem,
    TooLarge,
    TooMany,
    UsageError,
)
from isotone.expressions import nodes
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.declaring.pydantic_type import page_core_schema, page_json_schema
from isotone.model.declaring.table import Table
from isotone.model.expiry import has_expired, is_missing
from isotone.model.key_records import KeyRecords
from isotone.model.reading.cost import CostMeter, Report, Stats, warn, waste_of
from isotone.model.reading.cursors import CursorCipher
from isotone.model.reading.families import Family, FamilyQuery, of_kind
from isotone.model.reading.item_selection import Found
from isotone.model.reading.key_bounds import side_of
from isotone.model.reading.positions import (
    CursorPosition,
    cursor_at,
    neighbours,
    position,
    position_of,
)
from isotone.model.reading.projections import Projection
from isotone.model.reading.queries import (
    Query,
    Read,
    Scan,
    can_be_counted,
    counting,
)
from isotone.model.reading.snapshot import Snapshot
from isotone.model.reading.two_key_forms import TwoForms, has_two_forms
from isotone.model.reading.unique_lookup import get_by_unique_value, unique_field
from isotone.tables.batch_reads import FetchProgress, fetch
from isotone.tables.scan import decoded
from isotone.tables.steps import Call, Steps
from isotone.text_table import pluralized
from isotone.values.size import item_size
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity
    from isotone.model.reading.families import KindOf

E = TypeVar("E", bound="Entity")
P = TypeVar("P", bound="Entity")
C = TypeVar("C", bound="Entity")
K = TypeVar("K", bound="Entity")
E_co = TypeVar("E_co", covariant=True)
R = TypeVar("R")
V = TypeVar("V", bound=Projection[Any])

# Requests to estimate the size of a collection that is too large to load
_COUNTED_REQUESTS: Final = 16
_FILTERED: Final = 32  # items that the first request reads at least, if there is a filter
_GROWTH: Final = 4  # a request reads at most this many times as much as the previous one
_ASSUMED_ITEMS: Final = 2  # items per unit, until the first response shows the real number


class Page(Sequence[E_co]):
    """A page of results: a sequence in their order, with the cursors of the next and previous pages.

    `cursor` is None at the end, `previous` at the start. A page may be empty (and therefore false) although there are
    more results: if the query's own limits ended it, or if the previous page was the last one and full. So loop until
    `cursor` is None. `invalid` lists the errors of a query with `on_invalid("collect")`.
    """

    __slots__ = ("_schemas", "cursor", "invalid", "items", "previous", "stats")

    def __init__(
        self,
        items: list[E_co],
        cursor: str | None,
        previous: str | None,
        stats: Stats,
        invalid: Sequence[InvalidItem] = (),
        schemas: tuple[EntitySchema, ...] = (),
    ) -> None:
        self.items: list[E_co] = items
        self.cursor: str | None = cursor
        self.previous: str | None = previous
        self.stats: Stats = stats
        self.invalid: Sequence[InvalidItem] = invalid
        self._schemas = schemas

    def of(self, kind: KindOf[E_co, K]) -> list[K]:
        """The results of one kind, in their order; raises `UsageError` for a kind that the query does not read.

        >>> orders = store.page(query).of(Order)
        """
        return of_kind(self.items, kind, self._schemas)

    def _repr_html_(self) -> str:
        from isotone.model.reading.showing import table_html

        entities = cast("list[Entity]", self.items)
        more = "" if self.cursor is None else "; more follow"
        return table_html(
            entities, f"{pluralized(len(entities), 'result')}, {self.stats.units:g} units{more}"
        )

    def __repr__(self) -> str:
        return f"Page({self.items!r}, cursor={self.cursor!r}, previous={self.previous!r})"

    def __iter__(self) -> Iterator[E_co]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, place: int) -> E_co: ...
    @overload
    def __getitem__(self, place: slice) -> list[E_co]: ...
    def __getitem__(self, place: int | slice) -> E_co | list[E_co]:
        return self.items[place]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return page_core_schema(
            cls,
            lambda items, cursor, previous: cls(items, cursor, previous, Stats()),
            source,
            handler,
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
        return page_json_schema(schema, handler)


class Reader:
    """The reads of one store, with its cursors, its clock and its report callback."""

    def __init__(
        self,
        cursors: CursorCipher,
        records: KeyRecords,
        clock: Clock | None = None,
        report: Report | None = warn,
    ) -> None:
        self.cursors = cursors
        self.records = records
        self.clock: Clock | SystemClock = clock or SystemClock()
        self._report = report

    def get(
        self, entity: type[E], values: dict[str, Any], *, consistent: bool = False
    ) -> Steps[E | None]:
        """The entity with this primary key or unique value; None if there is none, or if it has expired."""
        schema = entity.__schema__
        if schema.primary not in self.records.checked:
            yield from self.records.check((schema,), (schema.primary,))
        try:
            key = schema.identify(values)
        except UsageError:
            unique = unique_field(schema, frozenset(values))
            if unique is None:
                raise
            yield from self.records.check_unique(schema, unique)
            return (yield from get_by_unique_value(entity, unique, values, self.entity_of))
        request: dict[str, Any] = {"TableName": schema.table.name, "Key": key}
        if consistent:
            request["ConsistentRead"] = True
        response = yield Call("GetItem", request)
        item = response["Item"] if "Item" in response else None  # noqa: SIM401 - no call, as this is hot
        return self.entity_of(entity, item)

    def entity_of(self, entity: type[E], item: Item | None) -> E | None:
        """The entity of an item that was read by its key; None if it is of another kind, or has expired."""
        if item is None:
            return None
        schema = entity.__schema__
        if "expires" in schema.by_role:
            attribute = schema.by_role["expires"].attribute
            if has_expired(item.get(attribute), self.clock.now()):
                return None
        tag = schema.table.tag
        if tag in item:
            if item[tag] != schema.marks[tag]:
                kind = schema.kind_of(item)
                if kind is None:
                    return None
                schema = kind
        elif schema.base is not None:
            return None
        instance: Any = schema.from_item(item, require_all_fields=True)
        return instance  # type: ignore[no-any-return] # an E; cast() would cost each read a call

    def exists(
        self, schema: EntitySchema, values: Mapping[str, Any], *, consistent: bool
    ) -> Steps[bool]:
        """Whether an unexpired entity has this primary key; reads only its key.

        Given a unique value, it reads as much as `get`.
        """
        if unique_field(schema, frozenset(values)) is not None:
            return (yield from self.get(schema.entity, {**values})) is not None
        yield from self.records.check((schema,), (schema.primary,))
        key = schema.identify(values)
        needed = [*key, schema.table.tag]
        if "expires" in schema.by_role:
            needed.append(schema.by_role["expires"].attribute)
        paths = tuple([nodes.Path((name,)) for name in dict.fromkeys(needed)])
        request = {
            "TableName": schema.table.name,
            "Key": key,
            "ProjectionExpression": nodes.ProjectionNode(paths),
            "ConsistentRead": consistent,
        }
        item: Item | None = (yield Call("GetItem", request)).get("Item")
        if item is None or is_missing(schema, item, self.clock.now()):
            return False
        return schema.kind_of(item) is not None

    def page(self, read: Read[R], *, size: int, cursor: str | None = None) -> Steps[Page[R]]:
        """A page of exactly `size` results; fewer only at the end, or at the query's own limits."""
        _check(read)
        _check_unlimited(read, "a page has a size")
        if type(size) is not int or size < 1:
            raise UsageError(f"a page cannot have size={size!r}; give 1 or more")
        at = position_of(self.cursors, read, cursor)
        if read.is_empty:
            return Page([], None, None, Stats(), (), read.schemas)
        is_back = at.is_back
        meter = CostMeter(read.is_consistent, read.when_invalid)
        # Backwards, one more is read to see whether this is the first page.
        wanted = size + 1 if is_back else size
        collecting = _turned(read) if is_back else read
        collect = self._collect if at.key is None else self.collect_after
        found, end = yield from collect(collecting, wanted, at.key, meter)
        if is_back and len(found) > size:
            del found[size:]
            end = position(read, found[-1][1])
            meter.returned = size
            meter.cut(size)
        invalid = meter.settle() if meter.noted else []
        stats = self.stats(read, meter)
        after, before = neighbours(read, found, at, end)
        items = results(read, found)
        if is_back:
            items.reverse()
            invalid.reverse()
        return Page(
            items,
            None if after is None else cursor_at(self.cursors, read, after),
            None if before is None else cursor_at(self.cursors, read, before),
            stats,
            invalid,
            read.schemas,
        )

    def cursor_after(self, query: Query[Any], values: Mapping[str, Any]) -> str:
        """The cursor of the page after an entity, given the fields of its primary key and of the queried key."""
        (schema,) = query.schemas
        key = {**schema.primary_key(values), **schema.key_attributes(query.keys[0], values, {})}
        return cursor_at(self.cursors, query, CursorPosition(False, key))

    def first(self, read: Read[R]) -> Steps[R | None]:
        """The first result; None if there is none."""
        _check(read)
        if read.when_invalid == "collect":
            raise _not_listed(read)
        meter = CostMeter(read.is_consistent, read.when_invalid)
        found, end = yield from self._collect(read, 1, None, meter)
        if meter.noted:
            meter.settle()
        self.stats(read, meter)
        if not found and end is not None:
            raise _spent(read, meter)
        return results(read, found)[0] if found else None

    def all(self, read: Read[R], *, at_most: int | None = None) -> Steps[list[R]]:
        """All results; raises `TooMany` if there are more than `at_most`."""
        _check(read)
        if read.when_invalid == "collect":
            raise _not_listed(read)
        wanted = read.most_results
        if at_most is not None and at_most < 0:
            raise UsageError(f"at_most={at_most} allows no result; give 0 or more")
        if at_most is not None and (wanted is None or wanted > at_most):
            wanted = at_most + 1
        meter = CostMeter(read.is_consistent, read.when_invalid)
        found, end = yield from self._collect(read, wanted, None, meter)
        if meter.noted:
            meter.settle()
        stats = self.stats(read, meter)
        if at_most is not None and len(found) > at_most:
            raise TooMany(
                f"{read.name} has more than {at_most} results; read them with iterate or page, or "
                "take the first of them with limit(…)",
                stats,
            )
        if meter.exhausted and end is not None:
            raise _spent(read, meter)
        return results(read, found)

    def count(self, read: Read[R]) -> Steps[int]:
        """The number of results; costs as much as reading them."""
        _check(read)
        if read.is_empty:
            return 0
        if read.when_invalid != "raise":  # the database cannot decide which items are valid
            return len((yield from self.all(read)))
        if has_two_forms(read) or not can_be_counted(read):
            return len((yield from self.all(read.select())))
        if read.keys not in self.records.checked:
            yield from self.records.check(read.schemas, read.keys)
        request = counting(read, self.clock.now())
        meter, start, most = (
            CostMeter(read.is_consistent, read.when_invalid),
            None,
            read.most_results,
        )
        sizes = _RequestSizes(read, meter)
        while meter.requests == 0 or start is not None:
            missing = None if most is None else most - meter.returned
            limit = sizes.next(missing, meter.returned)
            response = yield Call(read.operation, _continued(request, start, limit))
            meter.count(response)
            meter.returned += response["Count"]
            if most is not None and meter.returned >= most:
                meter.returned = most
                break
            start = response.get("LastEvaluatedKey")
            if start is not None and _is_spent(read, meter):
                raise _spent(read, meter)
        self.stats(read, meter)
        return meter.returned

    def family(
        self, query: FamilyQuery[P, C], *, children: int | None = None
    ) -> Steps[Family[P, C]]:
        """A parent and at most `children` of its nearest children, in one read.

        Raises `UsageError` if the read found several parents.
        """
        _check(query, FamilyQuery)
        if not query.begins_with_parent and children is not None:
            raise UsageError(
                f"{query.name} does not begin with the parent in this direction, so children={children} "
                "would give those farthest from it; leave the direction as it is"
            )
        _check_unlimited(query, "a family has a number of children")
        if children is not None and children < 0:
            raise UsageError(
                f"a family cannot have children={children}; give 0 or more, or None for all"
            )
        wanted = None if children is None else children + 1
        meter = CostMeter(query.is_consistent, query.when_invalid)
        found, end = yield from self._collect(query, wanted, None, meter)
        invalid = meter.settle()
        stats = self.stats(query, meter)
        if meter.exhausted and end is not None:
            raise _spent(query, meter)
        entities = [entity for entity, _ in found]
        parent_tag = query.parent.tag
        parents = [entity for entity in entities if parent_tag in entity.__schema__.lineage]
        if len(parents) > 1:
            raise UsageError(
                f"{query.name} has several {query.parent.tag} in one collection, so they are not one "
                "family; read them with all, iterate or page, or each kind by its own key"
            )
        nearest = [entity for entity in entities if parent_tag not in entity.__schema__.lineage]
        parent = parents[0] if parents else None
        return Family(
            cast(Any, parent), cast(Any, nearest[:children]), stats, invalid, query.schemas
        )

    def get_many(
        self,
        entity: type[E],
        keys: Iterable[Mapping[str, Any]],
        *,
        consistent: bool = False,
        progress: FetchProgress | None = None,
    ) -> Steps[list[E | None]]:
        """The entities with these primary keys, in the same order; None for each missing one.

        A request has up to a hundred keys. Keys that the service leaves unprocessed are requested again, after growing
        pauses; raises `BatchIncomplete` if the service keeps leaving them.
        """
        schema = entity.__schema__
        if schema.primary not in self.records.checked:
            yield from self.records.check((schema,), (schema.primary,))
        wanted = [schema.identify(key) for key in keys]
        items = yield from fetch(
            schema.table.name, wanted, consistent=consistent, progress=progress
        )
        return [self.entity_of(entity, item) for item in items]

    def get_by_keys(
        self,
        keys: Sequence[EntityKey[E]],
        *,
        consistent: bool = False,
        progress: FetchProgress | None = None,
    ) -> Steps[list[E | None]]:
        """The entities with these primary keys, of any classes, in the order of the keys."""
        places: dict[Table, list[int]] = {}
        for place, key in enumerate(keys):
            schema = key.__schema__
            if schema.primary not in self.records.checked:
                yield from self.records.check((schema,), (schema.primary,))
            places.setdefault(schema.table, []).append(place)
        found: list[E | None] = [None] * len(keys)
        for table, here in places.items():
            wanted = [keys[place].__schema__.identify(keys[place].fields) for place in here]
            items = yield from fetch(table.name, wanted, consistent=consistent, progress=progress)
            for place, item in zip(here, items, strict=True):
                found[place] = self.entity_of(keys[place].entity, item)
        return found

    def load(self, read: Read[R], *, at_most: int = limits.MB) -> Steps[Snapshot[R]]:
        """Load a small collection as a whole, to filter and sort it in memory.

        Raises `TooLarge` with its size if it has more than `at_most` bytes.
        """
        _check(read)
        _check_unlimited(read, "a snapshot has the whole of a collection")
        if read.keys not in self.records.checked:
            yield from self.records.check(read.schemas, read.keys)
        meter, size, start = CostMeter(read.is_consistent, read.when_invalid), 0, None
        found: list[Found] = []
        request = None if read.is_empty else read.composed
        if has_two_forms(read):
            found, _ = yield from self._collect(read, None, None, meter)
            size, request = sum(item_size(decoded(item)) for _, item in found), None
            if size > at_most:
                raise (yield from self._too_large(read, size, meter, None, at_most))
        while request is not None and (start is not None or meter.requests == 0):
            response = yield Call(read.operation, _continued(request, start, None))
            meter.count(response)
            size += sum(map(item_size, response["Items"]))
            start = response.get("LastEvaluatedKey")
            if size > at_most:
                raise (yield from self._too_large(read, size, meter, start, at_most))
            if start is not None and _is_spent(read, meter):
                raise _spent(read, meter)
            read.selection.entities(response["Items"], self.clock.now(), found, meter.note)
            if meter.must_raise(None):
                break
        invalid = meter.settle()
        meter.returned = len(found)
        stats = self.stats(read, meter)
        return Snapshot(
            results(read, found),
            [(entity, decoded(item)) for entity, item in found],
            size,
            stats,
            is_whole=read.selection.is_whole,
            invalid=invalid,
        )

    def _too_large(
        self, read: Read[Any], size: int, meter: CostMeter, start: Item | None, at_most: int
    ) -> Steps[TooLarge]:
        """The error with the size of the whole collection, estimated by a few further counting requests."""
        everything = replace(read, filters=(), selected=None).composed
        request, scanned = {**everything, "Select": "COUNT"}, meter.scanned
        for _ in range(_COUNTED_REQUESTS):
            if start is None:
                break
            response = yield Call(read.operation, _continued(request, start, None))
            meter.count(response)
            start = response.get("LastEvaluatedKey")
        whole = size * meter.scanned // max(scanned, 1)
        about = "more than" if start is not None else "about" if whole > size else "just"
        return TooLarge(
            f"{read.name} has {about} {whole / limits.MB:.1f} MB in {pluralized(meter.scanned, 'item')}, and at most "
            f"{at_most / limits.MB:.1f} MB are filtered in memory; read it by a key, or page through it",
            meter.stats(),
        )

    def traverse(self, read: Read[R]) -> Traversal[R]:
        """All results, in batches of one request each."""
        _check(read)
        if read.when_invalid == "collect":
            raise _not_listed(read)
        return Traversal(read, self.clock, self.records, self.stats)

    def segments(self, read: Scan[R], count: int) -> list[Traversal[R]]:
        """The segments of a scan, which can be read at the same time."""
        _check(read, Scan)
        _check_parallel(read, count)
        return [self.traverse(read.segment(number, of=count)) for number in range(count)]

    # One read over several requests

    def _collect(
        self, read: Read[Any], wanted: int | None, start: Item | None, meter: CostMeter
    ) -> Steps[tuple[list[Found], Item | None]]:
        """Read the wanted number of results after a position; returns them with the position after them.

        That position is None at the end of the data.
        """
        if read.keys not in self.records.checked:
            yield from self.records.check(read.schemas, read.keys)
        if has_two_forms(read):
            return (yield from _collect_two_forms(read, wanted, start, meter, self.clock))
        found: list[Found] = []
        if read.is_empty:
            return found, None
        request = read.composed
        sizes = _RequestSizes(read, meter)
        while True:
            limit = sizes.next(None if wanted is None else wanted - len(found), len(found))
            response = yield Call(
                read.operation, _continued(request, start, limit), read.selection.json_items
            )
            meter.count(response)
            read.selection.entities(response["Items"], self.clock.now(), found, meter.note)
            start = response["LastEvaluatedKey"] if "LastEvaluatedKey" in response else None  # noqa: SIM401
            if wanted is not None and len(found) >= wanted:
                if len(found) > wanted:
                    del found[wanted:]
                    start = position(read, found[-1][1])
                    meter.cut(wanted)
                break
            if meter.noted and meter.must_raise(wanted):
                break
            if start is None:
                break
            if _is_spent(read, meter):
                meter.exhausted = True
                break
        meter.returned += len(found)
        return found, start

    def collect_after(
        self, read: Read[Any], wanted: int, start: Item | None, meter: CostMeter
    ) -> Steps[tuple[list[Found], Item | None]]:
        """As `_collect`, after a position that may lie outside the read's range.

        A cursor may be used with other values of inequalities, and the service refuses positions outside the range.
        """
        if start is not None and isinstance(read, Query):
            side = side_of(read.bounds, start)
            if side:
                if (side > 0) is not read.backward:
                    return [], None
                start = None
        return (yield from self._collect(read, wanted, start, meter))

    def stats(self, read: Read[Any], meter: CostMeter) -> Stats:
        """The cost of a finished read, which is reported if it was wasteful."""
        stats = meter.stats()
        if self._report is not None and stats.is_wasteful and not has_two_forms(read):
            self._report(waste_of(read, stats))
        return stats


# Checks


def _check(read: object, kind: type[Read[Any]] = Read) -> None:
    """Raise `UsageError` for anything but a query or a scan; programs may have no type checker."""
    if not isinstance(read, kind):
        raise UsageError(f"{read!r} does not say what to read; write {_SUCH_AS[kind]}")


_SUCH_AS: Final[Mapping[Any, str]] = {
    Read: "a query, such as Order.primary.where(…) or, for everything, Order.primary.scan()",
    Scan: "a scan, such as Order.primary.scan(); a query is read by iterate, all or page",
    FamilyQuery: "a query, such as Parent.primary.with_children(Child.primary).where(…)",
}


def _raise(error: InvalidItem, _results: int) -> NoReturn:
    raise error


def _check_unlimited(read: Read[Any], why: str) -> None:
    if read.most_results is not None:
        raise UsageError(f"{why}; use limit(…) only with iterate, all and first")


def _not_listed(read: Read[Any]) -> UsageError:
    """The error for `on_invalid("collect")` on a read whose result cannot list errors."""
    return UsageError(
        f"{read.name}: on_invalid('collect') lists errors on a page, a family or a snapshot, and this read "
        "returns none; give it a function, such as on_invalid(errors.append), or 'skip'"
    )


def _check_parallel(read: Scan[Any], count: int) -> None:
    """Refuse limits that would apply to each segment of a scan instead of the whole."""
    if count < 1:
        raise UsageError(f"a scan in {count} segments reads nothing; give 1 or more")
    if read.part is not None:
        raise UsageError(f"{read.name} is one segment already; iterate over it")
    if (read.most_results, read.most_units, read.most_requests) != (None, None, None):
        raise UsageError(
            f"{read.name} is read in {count} segments, and its bounds would apply to each of them; iterate "
            "over it, or leave out limit(…), max_units(…) and max_requests(…)"
        )


def _turned(read: Read[R]) -> Read[R]:
    """The read in the opposite direction."""
    if not isinstance(read, Query):
        raise UsageError("a scan has no order, so there is no page before")
    return read.reversed()


def results(read: Read[R], found: list[Found]) -> list[R]:
    """The entities that were found, or their projections."""
    made: list[Any] = [entity for entity, _ in found]
    if read.projection is not None:
        made = list(map(read.projection.from_entity, made))
    return made


def _collect_two_forms(
    read: Query[Any], wanted: int | None, start: Item | None, meter: CostMeter, clock: Clock
) -> Steps[tuple[list[Found], Item | None]]:
    """As `Reader._collect`, while items are stored under keys of two forms."""
    found: list[Found] = []
    merge = TwoForms(read, start, meter, clock)
    while not merge.is_over:
        found += yield from merge.step(None if wanted is None else wanted - len(found))
        if wanted is not None and len(found) >= wanted:
            break
        if meter.noted and meter.must_raise(wanted):
            break
        if found and not merge.is_over and _is_spent(read, meter):
            meter.exhausted = True
            break
    is_over = merge.is_over and (wanted is None or len(found) <= wanted)
    if wanted is not None and len(found) >= wanted and not is_over:
        del found[wanted:]
        meter.cut(wanted)  # the next page begins after the last result
    meter.returned += len(found)
    return found, None if is_over or not found else position(read, found[-1][1])


class Traversal(Generic[R]):
    """A read in progress: each step returns the results of one request.

    `is_over` is true when there are no more; `stats` is the cost so far.
    """

    def __init__(
        self,
        read: Read[R],
        clock: Clock,
        records: KeyRecords,
        at_end: Callable[[Read[Any], CostMeter], object],
    ) -> None:
        self._read = read
        self._clock = clock
        self._at_end = at_end
        self._meter = CostMeter(read.is_consistent, read.when_invalid)
        self._sizes = _RequestSizes(read, self._meter)
        self._start: Item | None = None
        self._merge = TwoForms(read, None, self._meter, clock) if has_two_forms(read) else None
        self._request = None if read.is_empty else read.composed
        self._records = records
        self.is_over: bool = read.is_empty

    @property
    def stats(self) -> Stats:
        """The cost so far."""
        return self._meter.stats()

    def step(self) -> Steps[list[R]]:
        """The next results, possibly none; raises `BudgetSpent` if the query's limits are used up."""
        return results(self._read, (yield from self.found()))

    def found(self) -> Steps[list[Found]]:
        """The next results, each with its item."""
        read, meter = self._read, self._meter
        if self._request is None or self.is_over:
            return []
        if read.keys not in self._records.checked:
            yield from self._records.check(read.schemas, read.keys)
        if _is_spent(read, meter):
            raise _spent(read, meter)
        missing = None if read.most_results is None else read.most_results - meter.returned
        found = yield from self._next(missing)
        if missing is not None and len(found) > missing:
            del found[missing:]
            meter.cut(missing)
        if meter.noted:
            meter.settle()
        meter.returned += len(found)
        self.is_over = self.is_over or meter.returned == read.most_results
        if self.is_over:
            self._at_end(read, meter)
        return found

    def _next(self, missing: int | None) -> Steps[list[Found]]:
        read, meter, merge = self._read, self._meter, self._merge
        if merge is not None:
            merged = yield from merge.step(missing)
            self.is_over = merge.is_over
            return merged
        limit = self._sizes.next(missing, meter.returned)
        request = _continued(self._request, self._start, limit)
        response = yield Call(read.operation, request, read.selection.json_items)
        meter.count(response)
        found: list[Found] = []
        read.selection.entities(response["Items"], self._clock.now(), found, meter.note)
        self._start = response.get("LastEvaluatedKey")
        self.is_over = self._start is None
        return found


def _continued(request: Any, start: Item | None, limit: int | None) -> dict[str, Any]:
    """A request that continues after a position, with a limit."""
    further = dict(request)
    if start is not None:
        further["ExclusiveStartKey"] = start
    if limit is not None:
        further["Limit"] = limit
    return further


class _RequestSizes:
    """Chooses how many items each request reads: probably enough, within the query's limits."""

    __slots__ = ("_last", "_meter", "_read")

    def __init__(self, read: Read[Any], meter: CostMeter) -> None:
        self._read = read
        self._meter = meter
        self._last: int | None = None

    def next(self, missing: int | None, found: int) -> int | None:
        """The next request's Limit; None for a full response."""
        limit = self._read.items_a_page
        if missing is not None:
            estimate = items_to_read(
                missing,
                self._last,
                self._meter.scanned,
                found,
                is_filtered=bool(self._read.filters),
            )
            limit = estimate if limit is None or estimate < limit else limit
        if self._read.most_units is not None:
            affordable = self._affordable(self._read.most_units - self._meter.units)
            limit = affordable if limit is None or affordable < limit else limit
        self._last = limit
        return limit

    def _affordable(self, units: float) -> int:
        scanned = self._meter.scanned
        an_item = self._meter.units / scanned if scanned else 1 / _ASSUMED_ITEMS
        return max(1, int(units / an_item)) if an_item else 1


def items_to_read(
    missing: int, last: int | None, scanned: int, found: int, *, is_filtered: bool
) -> int:
    """How many items will probably contain the missing results, given the hit rate so far.

    The first request (`last` is None) reads as many items as results are missing, so an unfiltered read wastes nothing.
    With a filter it reads more, to send fewer requests.
    """
    if last is None:
        return max(missing, _FILTERED) if is_filtered else missing
    most = last * _GROWTH
    likely = -(-missing * scanned // found) if found else most
    return max(missing, min(likely, most))


def _is_spent(read: Read[Any], meter: CostMeter) -> bool:
    """Whether a limit of the query is used up."""
    return (read.most_units is not None and meter.units >= read.most_units) or (
        read.most_requests is not None and meter.requests >= read.most_requests
    )


def _spent(read: Read[Any], meter: CostMeter) -> BudgetSpent:
    """The error for a read that reached its limits."""
    stats = replace(meter.stats(), exhausted=True)
    return BudgetSpent(
        f"{read.name} is not complete after {pluralized(stats.units, 'unit', form='g')} and {pluralized(stats.requests, 'request')}, which is "
        "the bound that it was given; raise the bound, or continue by pages",
        stats,
    )
