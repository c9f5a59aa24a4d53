"""Queries while keys are widened or otherwise changed (`was`): previous and current keys merged into one order.

While `was` is declared (`declaring.previous_keys`), a query covers two ranges: one under the previous key, one under
the current key. Their results are merged in the order of the current key, each item once. A cursor is a position in
this order, so it stays valid while items are rewritten and afterwards.

    previous   ├── read first ──▶┤ mark
    current    ├──── then as far as the mark ────▶┤

An item only ever moves from the previous form to the current one. So each part of the order is read under the previous
key first: an item that has left it by then is found under the current key.

If both keys sort by the same fields, the previous range is read from the cursor's position, as far as needed. Otherwise
it is read completely and sorted; it contains only items that are not yet rewritten. Items with equal index keys are
ordered by their primary key and read together, because each engine orders them in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeGuard, TypeVar

from isotone.clock import Clock
from isotone.errors import InvalidItem, MalformedKey, Unanswerable, UsageError
from isotone.model.declaring.conditions import Condition, ValueComparison
from isotone.model.declaring.keys import BoundKey, Slot, StringSlot
from isotone.model.declaring.previous_keys import converted
from isotone.model.reading.cost import CostMeter
from isotone.model.reading.item_selection import Found
from isotone.model.reading.key_bounds import (
    KeyBounds,
    Restriction,
    bounds,
    contains,
    flat,
    intersection,
)
from isotone.model.reading.queries import Query, Read
from isotone.tables.scan import decoded
from isotone.tables.steps import Call, Steps
from isotone.values.types import AttributeValue, Item, sort_key

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema

E = TypeVar("E")

_FASTEST: Final = 64  # a request reads at most this many times what is needed
_FILTERED: Final = 32  # items that each request reads at least, if there is a filter


def has_two_forms(read: Read[E]) -> TypeGuard[Query[E]]:
    """Whether a query's items may be stored under two forms of its key, which have no common order."""
    for schema in read.schemas:
        if schema.previous is not None:
            return isinstance(read, Query) and any(map(_has_previous_form, read.schemas, read.keys))
    return False


def _has_previous_form(schema: EntitySchema, key: BoundKey) -> bool:
    previous = schema.previous
    return previous is not None and (
        previous.primary is not schema.primary or previous.keys[key.name] is not key
    )


# The previous form of a query


def previous_queries(query: Query[E]) -> list[Query[E]]:
    """For each kind whose key has a previous form, the query for its items in that form.

    Raises `Unanswerable` if the query does not give the partition fields of the previous key.
    """
    return [
        _previous_query(query, schema, key, conditions)
        for schema, key, conditions in zip(
            query.schemas, query.keys, query.conditions_by_key, strict=True
        )
        if _has_previous_form(schema, key)
    ]


def _previous_query(
    query: Query[E], schema: EntitySchema, key: BoundKey, conditions: Sequence[Condition]
) -> Query[E]:
    assert schema.previous is not None
    before = schema.previous.keys[key.name]
    grouping = {part.field.name for slot in before.partition for part in slot.components}
    plain = [each for each in flat(conditions) if isinstance(each, ValueComparison)]
    groups = [each for each in plain if each.operator == "=" and each.field.name in grouping]
    failure: Unanswerable | None = None
    for asked in (conditions, groups):  # the previous key may not answer all conditions
        try:
            range_ = bounds(before, asked)
        except Unanswerable as error:
            failure = error
        else:
            return replace(query, schemas=(schema,), keys=(before,), bounds=range_)
    raise Unanswerable(
        f"{query.name} cannot be read while items are stored under its previous key: {failure}; run "
        f"store.rewrite({schema.entity.__name__}), and remove was(…)"
    )


# One kind under both keys


def queried_kinds(query: Query[Any]) -> list[QueriedKind]:
    """The kinds of a query, with their conditions on both forms of the key."""
    return [
        QueriedKind(schema, key, bounds(key, conditions))
        for schema, key, conditions in zip(
            query.schemas, query.keys, query.conditions_by_key, strict=True
        )
    ]


class QueriedKind:
    """A kind in a query, with the current and the previous form of its key, which may be equal."""

    def __init__(self, schema: EntitySchema, key: BoundKey, range_: KeyBounds) -> None:
        previous = schema.previous
        self.schema = schema
        self.key = key
        self.has_previous_form: bool = _has_previous_form(schema, key)
        self.before: BoundKey = key if previous is None else previous.keys[key.name]
        self.is_in_order: bool = self.before is key or (
            [*map(_order, key.sort)] == [*map(_order, self.before.sort)]
        )
        self._primary_before = schema.primary if previous is None else previous.primary
        self._range = range_

    def is_current(self, position: Item) -> bool:
        """Whether a position is of a key in the current form."""
        return self.key.has_form_of(position) and self.schema.primary.has_form_of(position)

    def was_position(self, position: Item) -> bool:
        """Whether a position is of a key in the previous form."""
        return self.before.has_form_of(position) and self._primary_before.has_form_of(position)

    def position(self, key: Item) -> Item | None:
        """A position among this kind's items, in the current form; None if it is of another kind."""
        try:
            return {
                **_moved(key, self._primary_before, self.schema.primary),
                **_moved(key, self.before, self.key),
            }
        except MalformedKey:
            return None

    def mark(self, key: Item) -> Item | None:
        """A key up to which all items in the previous form have been read, given a position; None if unknown.

        The position may be that of an item in the current form, between two in the previous form.
        """
        if not self.is_in_order:
            return None
        if self.before is self.key:
            return key
        values: dict[str, Any] = {}
        for slot in self.before.slots:
            parsed = _parsed_beginning(slot, key[slot.attribute.name])
            if parsed is None:
                return None
            values |= parsed
        return _encoded(self.key, values)

    def known(self, values: dict[str, Any], item: Item) -> dict[str, Any]:
        """An entity's values, including those that are only stored in its keys."""
        known = dict(values)
        for slot in (*self.before.slots, *self._primary_before.slots):
            if any(part.field.name not in known for part in slot.components):
                known = {**slot.parse(item[slot.attribute.name]), **known}
        return known

    def entry(self, known: dict[str, Any]) -> Item | None:
        """The key's attributes in the current form; None if they lie outside the query's range."""
        lacking = self.key.component_names - known.keys()
        if lacking:
            raise UsageError(
                f"index {self.key.index!r} does not project {', '.join(sorted(lacking))}, so the order of its "
                f"rewritten items is not known; run store.rewrite({self.schema.entity.__name__}) first, or read by "
                "the primary key"
            )
        entry = self.key.encode(known)
        return entry if entry is not None and self.has(entry) else None

    def has(self, entry: Item) -> bool:
        """Whether a key lies in the query's range under the current key."""
        return contains(self._range, entry)

    def is_previous(self, item: Item, values: dict[str, Any]) -> bool:
        """Whether an item has the key only in its previous form."""
        if self.before is self.key:
            return False
        before, entry = _encoded(self.before, values), _encoded(self.key, values)
        return before is not None and before.items() <= item.items() and before != entry


def _moved(item: Item, before: BoundKey, key: BoundKey) -> Item:
    """A key's attributes in the current form; they may already be in that form."""
    here = {slot.attribute.name: item[slot.attribute.name] for slot in key.slots}
    if before is key:
        return here
    try:
        moved = converted(item, before, key)
    except MalformedKey:
        converted(item, key, key)
        return here
    if moved is None:
        raise MalformedKey(f"{item!r} has values that the key cannot have")
    return moved


def _encoded(key: BoundKey, values: dict[str, Any]) -> Item | None:
    try:
        return key.encode(values)
    except UsageError:
        return None


def _parsed_beginning(slot: Slot, value: AttributeValue) -> dict[str, Any] | None:
    """The fields in the longest prefix of a text that has a slot's form; None if no prefix has."""
    texts = [value]
    if isinstance(slot, StringSlot):
        texts = [{"S": value["S"][:length]} for length in range(len(value["S"]), 0, -1)]
    for text in texts:
        try:
            return slot.parse(text)
        except MalformedKey:
            continue
    return None


def _order(slot: Slot) -> object:
    """A value that is equal for slots whose values sort in the same way."""
    if not isinstance(slot, StringSlot):
        return [(slot.components[0].field.name, False, "value", slot.attribute.type)]
    if not all(map(slot.template.keeps_order, range(len(slot.components)))):
        return object()
    return [
        (component.field.name, component.descending, component.form, type(codec))
        for component, codec in zip(slot.components, slot.template.codecs, strict=True)
    ]


def _with_keys(query: Query[E]) -> Query[E]:
    """The query; if it selects fields, with the fields of all keys added."""
    if query.selected is None:
        return query
    keys = [key for schema in query.schemas for key in schema.keys_of_both_forms]
    names = {
        name for key in keys if key.index in (None, query.index) for name in key.component_names
    }
    return replace(query, selected=query.selected | names)


# The merge

_Rank = tuple[Any, ...]
_LOWEST: Final[_Rank] = (-1,)
_HIGHEST: Final[_Rank] = (1,)
"""Sorts after all ranks and ties of keys, which begin with 0."""


@dataclass(slots=True)
class _RankedResult:
    """A result, or the error for an invalid item, with its rank and its tie-break among equal ranks."""

    rank: _Rank
    tie: _Rank
    found: Found | None
    error: InvalidItem | None = None


class TwoForms(Generic[E]):
    """A read of both ranges in progress: each step returns the next results in order."""

    def __init__(self, query: Query[E], start: Item | None, meter: CostMeter, clock: Clock) -> None:
        self._selected = query.selected
        self._query = query = _with_keys(query)
        self.meter = meter
        self._clock = clock
        self._forms = {form.schema.tag: form for form in queried_kinds(query)}
        self._sort = [slot.attribute.name for slot in query.keys[0].sort]
        self._table_key = [each.name for each in query.table.keys.attributes]
        self._start = start
        self._after = None if start is None else (self.rank(start), self.tie(start))
        self._low = start
        self._previous = [
            _FormRange(self, self._from_start(each), self._forms[each.schemas[0].tag])
            for each in previous_queries(query)
        ]
        self._current: _FormRange | None = None
        self._returned = 0
        self._growth = 1
        self.is_over: bool = False

    def step(self, wanted: int | None) -> Steps[list[Found]]:
        """The next results, possibly none; `wanted` is how many are needed, None for all."""
        limit = None
        if wanted is not None:
            least = _FILTERED if self._query.filters else 0
            limit = max(wanted + 1, least) * self._growth
        if self._current is None:
            for each in self._previous:
                yield from each.advance(
                    limit, self._low
                )  # the results that were read ahead are kept
            end = self._nearest([each.mark for each in self._previous])
            self._current = _FormRange(self, self._between(self._low, end), None, self._low, end)
        current = self._current
        yield from current.advance(limit, current.mark or self._low)
        bound = current.end if current.is_over else current.mark
        ready = [entry for each in (*self._previous, current) for entry in each.take(bound)]
        if current.is_over:
            self._current, self._low = None, current.end
            self.is_over = current.end is None
        found = self._merged(ready)
        # The previous range may contain many items in the current form, between those in the previous one.
        self._growth = 1 if found else min(self._growth * 2, _FASTEST)
        return found

    def _merged(self, entries: list[_RankedResult]) -> list[Found]:
        """The results in order, without duplicates; notes the errors between them."""
        later = {
            entry.tie: entry for entry in entries
        }  # if an item was read twice, the later read counts
        found: list[Found] = []
        for entry in sorted(
            later.values(), key=attrgetter("rank", "tie"), reverse=self._query.backward
        ):
            if entry.found is not None:
                found.append(entry.found)
            elif entry.error is not None:
                self.meter.note(entry.error, self._returned + len(found))
        self._returned += len(found)
        return found

    # Positions

    def rank(self, key: Item) -> _Rank:
        """A key's rank in the order."""
        return (0, *[sort_key(key[name]) for name in self._sort])

    def tie(self, key: Item) -> _Rank:
        """A key's tie-break among equal ranks."""
        return (0, *[sort_key(key[name]) for name in self._table_key])

    def precedes(self, one: _Rank, other: _Rank) -> bool:
        """Whether one rank comes before another, in the direction of the read."""
        return one > other if self._query.backward else one < other

    def is_before(self, one: Item, other: Item) -> bool:
        """Whether one key's rank comes before another's."""
        return self.precedes(self.rank(one), self.rank(other))

    def is_after(self, entry: _RankedResult, begin: _Rank | None) -> bool:
        """Whether an entry comes after the read's start, and not before another rank."""
        if self._after is not None and not self.precedes(self._after, (entry.rank, entry.tie)):
            return False
        return begin is None or not self.precedes(entry.rank, begin)

    def _nearest(self, marks: Sequence[Item | None]) -> Item | None:
        known = [mark for mark in marks if mark is not None]
        if not known:
            return None
        return (max if self._query.backward else min)(known, key=self.rank)

    # Ranges

    def _from_start(self, query: Query[E]) -> Query[E]:
        """A query under a previous key, from the start position if its order allows that."""
        form = self._forms[query.schemas[0].tag]
        if self._start is None or not form.is_in_order:
            return query
        values: dict[str, Any] = {}
        try:
            for slot in form.key.slots:
                values |= slot.parse(self._start[slot.attribute.name])
        except MalformedKey:  # the position is of another kind's item
            return query
        before = _encoded(form.before, values)
        if before is not None:
            return self._narrowed(query, before, is_low=True)
        free = query.bounds.free
        if free is None:
            return query
        # A value for which the previous key has no room still compares with the values that it has.
        operator = ">=" if free.descending is self._query.backward else "<="
        condition = ValueComparison(free.field, operator, (values[free.field.name],))
        try:
            range_ = bounds(form.before, [*query.conditions_by_key[0], condition])
        except UsageError:
            return query
        return replace(query, bounds=range_)

    def _between(self, low: Item | None, high: Item | None) -> Query[E]:
        """The query under the current keys, between two positions (inclusive)."""
        query = self._query
        if low is not None:
            query = self._narrowed(query, low, is_low=True)
        return query if high is None else self._narrowed(query, high, is_low=False)

    def _narrowed(self, query: Query[E], position: Item, *, is_low: bool) -> Query[E]:
        """The query from a position on, or up to it, by the first attribute that varies."""
        partition = len(query.keys[0].partition)
        given = {each.attribute: each for each in query.bounds.restrictions[partition:]}
        operator = ">=" if is_low is not self._query.backward else "<="
        for name in self._sort:
            before = given.get(name)
            if before is not None and before.operator == "=":
                continue
            here = Restriction(name, operator, (position[name],))
            narrower = here if before is None else intersection(before, here)
            restrictions = [*query.bounds.restrictions[:partition]]
            restrictions += [each for each in given.values() if each is not before]
            if narrower is not None:
                restrictions.append(narrower)
            is_empty = query.bounds.is_empty or narrower is None or narrower.is_empty
            return replace(
                query, bounds=KeyBounds(tuple(restrictions), query.bounds.free, is_empty)
            )
        return query

    # Entries

    @property
    def beginning(self) -> _Rank:
        """The rank at which the read starts."""
        if self._after is not None:
            return self._after[0]
        return _HIGHEST if self._query.backward else _LOWEST

    def entry(
        self, item: Item, query: Query[E], form: QueriedKind | None, last: _Rank
    ) -> _RankedResult | None:
        """An item as a result with its rank; None if it does not belong to the results.

        `form` is set if the item was read by a previous key. `last` is the rank of the item read before it.
        """
        found: list[Found] = []
        errors: list[InvalidItem] = []
        query.selection.entities([item], self._clock.now(), found, lambda e, _: errors.append(e))
        if errors:
            return self._invalid(item, errors[0], form, last)
        if not found:
            return None
        entity, read = found[0]
        values, item = entity.__dict__, decoded(read)
        own = form or self._form_of(entity.__schema__)
        known = own.known(values, item)
        entry: Item | None = {}
        if own.before is not own.key:
            is_previous = own.is_previous(item, known)
            if form is None and is_previous:
                return None  # its rank is elsewhere; the previous range finds it there
            if form is not None:
                entry = None if not is_previous and own.has(item) else own.entry(known)
        if entry is None:
            return None
        place = {**item, **own.schema.primary_key(known), **entry}
        if self._selected is not None:
            for name in values.keys() - self._selected:
                del values[name]
        return _RankedResult(self.rank(place), self.tie(place), (entity, place))

    def _form_of(self, schema: EntitySchema) -> QueriedKind:
        """The form of an entity's keys; for a kind, the form of the entity that it extends."""
        while schema.tag not in self._forms and schema.base is not None:
            schema = schema.base
        return self._forms[schema.tag]

    def _invalid(
        self, item: Item, error: InvalidItem, form: QueriedKind | None, last: _Rank
    ) -> _RankedResult | None:
        """The rank of an invalid item. If its previous key cannot be parsed, it follows the item read before it."""
        if form is None:
            return _RankedResult(self.rank(item), self.tie(item), None, error)
        if form.before is form.key or form.has(item):
            return None  # the other range reads it, too
        position = form.position(item)
        if position is not None:
            return _RankedResult(self.rank(position), self.tie(position), None, error)
        neighbour = form.mark(item)
        if neighbour is not None:  # a prefix of its key, which sorts before it in ascending order
            return _RankedResult(self.rank(neighbour), (*_HIGHEST, self.tie(item)), None, error)
        nearest = _LOWEST if self._query.backward else _HIGHEST
        return _RankedResult(last, (*nearest, self.tie(item)), None, error)


class _FormRange:
    """One of the two ranges. All of its items before `mark` have been read.

    Items at the mark itself may be missing. There is no mark before the first response and after the last one. `end` is
    the position at which a range of the current key ends (exclusive).
    """

    def __init__(
        self,
        merge: TwoForms[Any],
        query: Query[Any],
        form: QueriedKind | None,
        begin: Item | None = None,
        end: Item | None = None,
    ) -> None:
        self._merge = merge
        self._query = query
        self._form = form
        self._begin = None if begin is None else merge.rank(begin)
        self.end = end
        self._start: Item | None = None
        self._entries: list[_RankedResult] = []
        self._last = merge.beginning
        self.mark: Item | None = None
        self.is_over = query.is_empty

    def advance(self, limit: int | None, low: Item | None) -> Steps[None]:
        """Read until the mark is after a position, or the range ends."""
        merge, query = self._merge, self._query
        while not self.is_over and (
            self.mark is None or (low is not None and not merge.is_before(low, self.mark))
        ):
            response = yield Call("Query", self._request(limit))
            merge.meter.count(response)
            for item in response["Items"]:
                entry = merge.entry(item, query, self._form, self._last)
                if entry is None:
                    continue
                self._last = entry.rank
                if merge.is_after(entry, self._begin):
                    self._entries.append(entry)
            self._start = response.get("LastEvaluatedKey")
            self.is_over = self._start is None
            self.mark = None if self._start is None else self._mark(self._start)
            limit = None if limit is None else limit * 2  # there may be many items with equal keys

    def _request(self, limit: int | None) -> dict[str, Any]:
        request = dict(self._query.composed)
        if self._start is not None:
            request["ExclusiveStartKey"] = self._start
        if limit is not None:
            request["Limit"] = min(limit, self._query.items_a_page or limit)
        return request

    def _mark(self, start: Item) -> Item | None:
        """The position at which a response ends; None if the order does not determine it."""
        return start if self._form is None else self._form.mark(start)

    def take(self, bound: Item | None) -> list[_RankedResult]:
        """Remove and return the entries before a position; all entries if it is None."""
        if bound is None:
            taken, self._entries = self._entries, []
            return taken
        before = self._merge.rank(bound)
        taken = [each for each in self._entries if self._merge.precedes(each.rank, before)]
        self._entries = [
            each for each in self._entries if not self._merge.precedes(each.rank, before)
        ]
        return taken
