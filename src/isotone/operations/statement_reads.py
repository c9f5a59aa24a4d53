"""PartiQL SELECT as GetItem, Query or Scan: ranges, overlapping reads and ORDER BY that are refused, the NextToken.

A condition that fixes the whole key of the table, and nothing more, reads one item. One that fixes the partition key
queries each item collection that it selects, in the order of their partition keys. Any other scans. Conditions on the
sort key narrow the range that is read, and the rest of the condition becomes the filter.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final

import msgspec

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.layout import Bounds, Keyspace, size_of
from isotone.engine.pages import OrderedSource, RangePage
from isotone.engine.table_indexes import SecondaryIndex, StoredTable
from isotone.errors import ValidationException
from isotone.expressions import KeyRange, check_scalar_keys
from isotone.expressions.expression import Expression
from isotone.expressions.key_planning import KeyTerm, value_of
from isotone.expressions.nodes import Path, walk_up
from isotone.expressions.partiql import (
    Select,
    WherePlan,
    compared_with_keys,
    key_of,
    messages,
    plan_where,
)
from isotone.operations.action import Answer
from isotone.operations.capacity import CapacityMeter, meter_for
from isotone.operations.item_responses import (
    JsonItems,
    item_in_response,
)
from isotone.operations.item_validation import (
    INVALID,
    check_compared,
    check_key_condition,
    requested_key,
)
from isotone.operations.long_requests import raise_if_long, this_thread
from isotone.operations.query_and_scan import ScanRequest, Selection, source_of, start_position
from isotone.values.attribute_validation import AttributeValue, Item

Values = Mapping[str, AttributeValue]

_SHORT: Final = 2000  # records of several ranges that are copied within some milliseconds
_EVERYTHING: Final[Bounds] = (b"", None)


class StatementPosition(msgspec.Struct, frozen=True):
    """Where a page ended: in which range, after which key. `statement` is a digest of the statement and its parameters."""

    range: int
    key: Item | None
    statement: str


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(StatementPosition).decode


def select_page(
    engine: Engine,
    table: StoredTable,
    select: Select,
    values: Values,
    request: ScanRequest,
    next_token: str | None,
) -> Answer:
    """The answer to a SELECT (one item or one page). `request` has the limit and other read options.

    The checks have the service's order. The caller holds the engine's lock.
    """
    source = _source_of(engine, table, select)
    keyspace = source.keyspace
    key_plan = plan_where(select.where, keyspace.partition_names, keyspace.sort_names)
    _check_order_names(select, keyspace)
    # A page that ends at its limit of one item has a token even if no item can follow, because it is read as a query.
    has_token = next_token is not None or request.limit == 1
    if key_plan.action(select.index) == "GetItem" and not has_token:
        key = key_of(key_plan, keyspace.names, values)
        assert key is not None
        check_key_types(keyspace, key)
        _check_paths(table, select.selecting)
        return _get(engine, table, select, key, request)
    _check_values(table, keyspace, key_plan, values)
    check_overlaps(keyspace, key_plan, values)
    _check_order(select, keyspace, key_plan)
    if request.consistent_read and source.index is not None and source.index.kind == "global":
        raise ValidationException(messages.CONSISTENT_GLOBAL)
    position = _position(next_token, select, values)
    _check_paths(table, (*select.expressions, *select.selecting))
    _check_columns(source.index, select)
    ranges = _ranges(keyspace, select, key_plan, values)
    _check_filter(source.index, key_plan)
    if not 0 <= position.range < len(ranges):
        raise ValidationException(messages.INVALID_TOKEN)
    return _read(source, select, key_plan, values, request, ranges, position)


def _source_of(engine: Engine, table: StoredTable, select: Select) -> OrderedSource:
    """The table or index that a SELECT reads."""
    check_index(table, select.index)
    if select.index is not None and table.index(select.index) is None:
        raise ValidationException(messages.NO_INDEX)
    return source_of(engine, table, ScanRequest(table.name, index_name=select.index))


def check_index(table: StoredTable, name: str | None) -> None:
    """Refuse an index whose partition key or sort key has several attributes."""
    index = None if name is None else table.index(name)
    if index is None:
        return
    keyspace = index.keyspace
    if len(keyspace.partition_names) > 1 or len(keyspace.sort_names) > 1:
        raise ValidationException(messages.SEVERAL_KEY_ATTRIBUTES)


def plan_of_one_item(table: StoredTable, select: Select, values: Values) -> WherePlan:
    """The plan of a SELECT that must find one item of a table; its condition must be valid."""
    check_index(table, select.index)
    keyspace = table.keyspace
    key_plan = plan_where(select.where, keyspace.partition_names, keyspace.sort_names)
    if select.index is None and key_plan.reads[1:]:
        _check_values(table, keyspace, key_plan, values)
        check_overlaps(keyspace, key_plan, values)
    return key_plan


def single_key(table: StoredTable, select: Select, values: Values) -> Item | None:
    """The key of the only item that a SELECT can find, if its condition fixes exactly that key."""
    keyspace = table.keyspace
    key_plan = plan_of_one_item(table, select, values)
    if key_plan.action(select.index) != "GetItem":
        return None
    return key_of(key_plan, keyspace.names, values)


def located(table: StoredTable, key: Item) -> bytes:
    """The physical key of an item. The values of the key may not fit the table."""
    check_key_types(table.keyspace, key)
    return requested_key(table.keyspace, key)[0]


def check_key_types(keyspace: Keyspace, key: Mapping[str, AttributeValue]) -> None:
    """Refuse a value of a key attribute whose type differs from the schema's."""
    for part in keyspace.schema.parts:
        value = key.get(part.name)
        if value is not None and part.type not in value:
            raise ValidationException(messages.KEY_TYPE.format(name=part.name))


def _check_values(
    table: StoredTable, keyspace: Keyspace, key_plan: WherePlan, values: Values
) -> None:
    """Refuse values that a key attribute cannot have, wherever the condition compares them with it."""
    for name, terms in zip(keyspace.partition_names, key_plan.partition, strict=False):
        for term in terms:
            check_key_types(keyspace, {name: value_of(term, values)})
    for selected in (*key_plan.equal, *key_plan.ranges):
        for value in selected.values(values):
            check_key_types(keyspace, {selected.attribute: value})
    for keys in (keyspace, table.keyspace):
        for compared in compared_with_keys(key_plan, keys.names):
            for value in compared.values(values):
                check_compared(keys, compared.attribute, value)


def _check_paths(table: StoredTable, expressions: tuple[Expression, ...]) -> None:
    """Refuse paths into key attributes."""
    if not any(expression.nested_attributes for expression in expressions):
        return
    check_scalar_keys(expressions, table.schema.keys.names)
    for index in table.secondary:
        check_scalar_keys(expressions, index.schema.keys.names, "IndexKey")


def _check_order_names(select: Select, keyspace: Keyspace) -> None:
    if select.order and select.where is None:
        raise ValidationException(messages.ORDER_WITHOUT_WHERE)
    for each in select.order:
        if each.refused is not None:
            raise ValidationException(each.refused)
        if each.name not in keyspace.names:
            raise ValidationException(messages.ORDER_NOT_KEY.format(name=each.name))


def _check_order(select: Select, keyspace: Keyspace, key_plan: WherePlan) -> None:
    """Refuse ORDER BY for anything but a query, and ordering several queries by their sort key alone."""
    if not select.order:
        return
    if key_plan.is_scan:
        raise ValidationException(messages.ORDER_WITHOUT_KEY)
    collections = sum(len(read.partition) for read in key_plan.reads)
    names = {each.name for each in select.order}
    if collections != 1 and names.isdisjoint(keyspace.partition_names):
        raise ValidationException(messages.ORDER_WITHOUT_PARTITION)


def check_overlaps(keyspace: Keyspace, key_plan: WherePlan, values: Values) -> None:
    """Refuse the statement if two of its reads could find the same item."""
    if not key_plan.can_overlap:
        return
    ranges = [
        wanted
        for read in key_plan.reads
        for key in read.partition
        for wanted in _key_ranges(value_of(key, values), read.sort, values)
    ]
    if len(ranges) < 2:
        return
    found = [keyspace.bounds(_checked(keyspace, each)) for each in ranges]
    found.sort(key=itemgetter(0))
    for (_, end), (start, _) in pairwise(found):
        if end is None or start < end:
            raise ValidationException(messages.OVERLAPPING)


def _key_ranges(key: AttributeValue, term: KeyTerm | None, values: Values) -> list[KeyRange]:
    """What a read finds in one collection: a range, or one item for each value of an IN."""
    if term is None:
        return [KeyRange((key,))]
    operands = term.values(values)
    if term.operator in ("=", "IN"):
        return [KeyRange((key,), (operand,)) for operand in operands]
    return [KeyRange((key,), (), term.operator, operands)]


def _checked(keyspace: Keyspace, wanted: KeyRange) -> KeyRange:
    check_key_condition(keyspace, wanted)
    return wanted


def _check_columns(index: SecondaryIndex | None, select: Select) -> None:
    """Refuse columns that a global index lacks, in written order."""
    if select.paths is None or index is None or index.kind != "global":
        return
    if missing := _missing(index, select.paths.paths):
        raise ValidationException(
            f"{INVALID}Global secondary index {index.name} does not project [{missing}]"
        )


def _check_filter(index: SecondaryIndex | None, key_plan: WherePlan) -> None:
    """Refuse a filter on attributes that an index lacks, in written order.

    A scan may have one, and so may a condition with an OR; the attributes are missing in every entry.
    """
    if index is None or key_plan.is_scan or key_plan.has_alternatives:
        return
    if missing := _missing(index, walk_up(*key_plan.rest)):
        raise ValidationException(
            f"{INVALID}Secondary index {index.name} "
            f"does not project one or more filter attributes: [{missing}]"
        )


def _missing(index: SecondaryIndex, nodes: Iterable[Any]) -> str:
    names = dict.fromkeys(str(node.elements[0]) for node in nodes if isinstance(node, Path))
    missing = index.missing(frozenset(names))
    return ", ".join(name for name in names if name in missing)


def _get(
    engine: Engine, table: StoredTable, select: Select, key: Item, request: ScanRequest
) -> Answer:
    record = engine.store.get(table.tree, requested_key(table.keyspace, key)[0])
    items = [] if record is None else [item_in_response(record, select.columns)]
    answer: dict[str, Any] = {"Items": items}
    if (meter := meter_for(request, table)) is not None:
        meter.read(size_of(record), consistent=bool(request.consistent_read))
        if type(meter) is CapacityMeter:
            answer["ConsumedCapacity"] = meter.report()
    return answer


# Ranges


def _ranges(
    keyspace: Keyspace, select: Select, key_plan: WherePlan, values: Values
) -> list[Bounds]:
    """The ranges of keys to read, in order."""
    if key_plan.is_scan:
        return [_EVERYTHING]
    collections = key_plan.collections(values)
    if len(collections) > limits.STATEMENT_COLLECTIONS:
        raise ValidationException(messages.TOO_MANY_READS)
    order = sorted(collections, reverse=_descends(select, keyspace.partition_names))
    return [_range(keyspace, collections[each], key_plan, values) for each in order]


def _range(
    keyspace: Keyspace, partition: tuple[AttributeValue, ...], key_plan: WherePlan, values: Values
) -> Bounds:
    """The part of an item collection that satisfies all conditions on the sort key."""
    equal = tuple(term.values(values)[0] for term in key_plan.equal)
    wanted = [
        KeyRange(partition, equal, term.operator, term.values(values)) for term in key_plan.ranges
    ] or [KeyRange(partition, equal)]
    bounds = [keyspace.bounds(_checked(keyspace, each)) for each in wanted]
    ends = [high for _, high in bounds if high is not None]
    return max(low for low, _ in bounds), min(ends, default=None)


def _descends(select: Select, names: Sequence[str]) -> bool:
    """Whether ORDER BY asks for the reverse order of these key attributes."""
    return next((each.descends for each in select.order if each.name in names), False)


# Pages


def _read(
    source: OrderedSource,
    select: Select,
    key_plan: WherePlan,
    values: Values,
    request: ScanRequest,
    ranges: list[Bounds],
    position: StatementPosition,
) -> dict[str, Any]:
    """One page of the ranges, from a position on."""
    selection = Selection(source, request, key_plan.filter, select.columns, values)
    start = None if position.key is None else start_position(source, position.key)
    left = ranges[position.range :]
    descends = _descends(select, source.keyspace.sort_names)
    limit = request.limit
    if len(ranges) > 1:
        limit = min(limit or limits.STATEMENT_COLLECTIONS_PAGE, limits.STATEMENT_COLLECTIONS_PAGE)
    pages = _pages(selection, left, start, limit, reverse=descends)
    answer = _items(selection, pages)
    number = position.range + len(pages) - 1
    last = pages[-1].last
    if last is not None:
        answer["LastEvaluatedKey"] = key = source.last_key(last)
        answer["NextToken"] = _token(select, values, number, key)
    elif len(pages) < len(left):
        answer["NextToken"] = _token(select, values, number + 1, None)
    return answer


def _pages(
    selection: Selection,
    ranges: Sequence[Bounds],
    start: bytes | None,
    limit: int | None,
    *,
    reverse: bool,
) -> list[RangePage]:
    """Read a page of each range, until one is full or all have been read."""
    pages: list[RangePage] = []
    size = scanned = 0
    briefly = this_thread.raises_if_long
    reader = msgspec.structs.replace(selection.reader, limit=None, sizing=True)
    for bounds in ranges:
        records = selection.source.records(bounds, start, reverse=reverse, expected=limit)
        page = reader.read(records, limit=limit, briefly=briefly)
        pages.append(page)
        size += page.size
        scanned += page.scanned
        raise_if_long(page.is_long or scanned > _SHORT)
        if page.last is not None or size > limits.QUERY_PAGE:
            break
        start = None
        limit = None if limit is None else limit - page.scanned
    return pages


def _items(selection: Selection, pages: list[RangePage]) -> dict[str, Any]:
    """The items of the pages, and the capacity that reading them has consumed."""
    items: list[bytes] = []
    meter = selection.meter
    for page in pages:
        selection.reader.evaluate(page)
        items += page.items
    answer: dict[str, Any] = {"Items": JsonItems(items)}
    if meter is not None:  # charged only when nothing can be postponed any more
        for page in pages:
            selection.charge(meter, page)
        if type(meter) is CapacityMeter:
            answer["ConsumedCapacity"] = meter.report()
    return answer


def _token(select: Select, values: Values, number: int, key: Item | None) -> str:
    position = StatementPosition(number, key, _digest(select, values))
    return b2a_base64(_encode(position), newline=False).decode()


def _position(token: str | None, select: Select, values: Values) -> StatementPosition:
    """The position in a NextToken, which is valid for one statement with its parameters."""
    if token is None:
        return StatementPosition(0, None, "")
    try:
        position = _decode(a2b_base64(token, strict_mode=True))
    except (msgspec.MsgspecError, ValueError):
        raise ValidationException(messages.INVALID_TOKEN) from None
    if position.statement != _digest(select, values):
        raise ValidationException(messages.OTHER_TOKEN)
    return position


def _digest(select: Select, values: Values) -> str:
    return sha256(_encode([select.text, list(values.values())])).hexdigest()[:32]
