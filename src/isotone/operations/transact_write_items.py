"""TransactWriteItems: up to 100 writes and checks over several tables, all of them or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isotone import limits
from isotone.engine import items, tokens
from isotone.engine.engine import Engine
from isotone.engine.metering import Meter
from isotone.engine.record import size_of
from isotone.engine.table import Table
from isotone.errors import ConditionalCheckFailedException, ValidationException
from isotone.operations.action import Answer, action
from isotone.operations.binding import Binding, bound
from isotone.operations.cancellation import NO_REASON, Reason, cancel, reason_of
from isotone.operations.changes import (
    Change,
    Sized,
    check_change,
    delete_change,
    put_change,
    update_change,
)
from isotone.operations.conditions import shows_old
from isotone.operations.replies import collection_metrics, wants_capacity
from isotone.operations.rules.transactions import check_transact_write_items
from isotone.operations.shapes.transactions import (
    ConditionCheck,
    Delete,
    Put,
    TransactWriteItem,
    TransactWriteItems,
    Update,
)
from isotone.operations.tables import open_table
from isotone.values.attributes import canonical_item

Entry = ConditionCheck | Put | Delete | Update
Prepared = Callable[[Table], Change]
Judged = tuple[Change, bytes | None, Sized | None]


@action("TransactWriteItems", grouped=True)
def run(engine: Engine, request: TransactWriteItems) -> Answer:
    check_transact_write_items(request)
    entries = [_entry(each) for each in request.transact_items]
    prepared = [_prepare(entry) for entry in entries]
    token = request.client_request_token
    digest = b"" if token is None else _fingerprint(request)
    with engine.writing:
        if token is not None and tokens.seen(engine, token, digest):
            return _answer(engine, request, entries, _reread(engine, entries, prepared))
        changes = _changes(engine, entries, prepared)
        judged = _judge_all(engine, changes)
        writing = _meters(entries, "Write")
        for entry, (change, old, new) in zip(entries, judged, strict=True):
            meter = writing[entry.table_name]
            if change.make is None:
                meter.write(0 if old is None else size_of(old), 0)
            else:
                change.write(engine, old, new, meter)
        if token is not None:
            tokens.remember(engine, token, digest)
        return _answer(engine, request, entries, (changes, writing))


def _entry(item: TransactWriteItem) -> Entry:
    entry = item.condition_check or item.put or item.delete or item.update
    assert entry is not None  # the rules have seen to it
    return entry


def _bind(entry: Entry) -> Binding:
    return Binding(entry.expression_attribute_names, entry.expression_attribute_values)


def _prepare_check(entry: ConditionCheck) -> Prepared:
    binding = _bind(entry)
    matches = bound(binding.condition(entry.condition_expression), binding.values)
    binding.check()
    assert matches is not None
    key, _ = canonical_item(entry.key)
    return lambda table: check_change(table, key, matches, shows_old(entry))


def _prepare_put(entry: Put) -> Prepared:
    binding = _bind(entry)
    matches = bound(binding.condition(entry.condition_expression), binding.values)
    binding.check()
    item, size = canonical_item(entry.item)
    return lambda table: put_change(table, item, size, matches, shows_old(entry))


def _prepare_delete(entry: Delete) -> Prepared:
    binding = _bind(entry)
    matches = bound(binding.condition(entry.condition_expression), binding.values)
    binding.check()
    key, _ = canonical_item(entry.key)
    return lambda table: delete_change(table, key, matches, shows_old(entry))


def _prepare_update(entry: Update) -> Prepared:
    binding = _bind(entry)
    update = binding.update(entry.update_expression)
    matches = bound(binding.condition(entry.condition_expression), binding.values)
    binding.check()
    values = binding.values
    key, _ = canonical_item(entry.key)
    return lambda table: update_change(table, key, update, values, matches, shows_old(entry))


def _prepare(entry: Entry) -> Prepared:
    match entry:
        case ConditionCheck():
            return _prepare_check(entry)
        case Put():
            return _prepare_put(entry)
        case Delete():
            return _prepare_delete(entry)
        case Update():
            return _prepare_update(entry)


def _changes(engine: Engine, entries: list[Entry], prepared: list[Prepared]) -> list[Change]:
    """Every entry as a change of an item; an entry that does not fit its table cancels the whole."""
    tables = [open_table(engine, entry.table_name) for entry in entries]
    changes: list[Change] = []
    reasons: list[Reason] = []
    for make, table in zip(prepared, tables, strict=True):
        try:
            changes.append(make(table))
        except ValidationException as error:
            reasons.append(reason_of(error))
        else:
            reasons.append(NO_REASON)
    cancel(reasons)
    if len({(change.table.name, change.key) for change in changes}) < len(changes):
        raise ValidationException(
            "Transaction request cannot include multiple operations on one item"
        )
    return changes


def _judge_all(engine: Engine, changes: list[Change]) -> list[Judged]:
    """What each write will do; nothing is written before all conditions hold."""
    judged: list[Judged] = []
    reasons: list[Reason] = []
    total = 0
    for change in changes:
        old = items.read(engine, change.table, change.key)
        try:
            new = change.new_item(old)
        except (ConditionalCheckFailedException, ValidationException) as error:
            reasons.append(reason_of(error))
            continue
        reasons.append(NO_REASON)
        judged.append((change, old, new))
        total += new[1] if new is not None else 0
    cancel(reasons)
    if total > limits.TRANSACTION_SIZE:
        raise ValidationException("Collection size exceeds 4 MB limit for a transaction")
    return judged


def _meters(entries: list[Entry], kind: str) -> dict[str, Meter]:
    return {
        entry.table_name: Meter(entry.table_name, factor=2, kind=f"{kind}CapacityUnits")
        for entry in entries
    }


def _reread(
    engine: Engine, entries: list[Entry], prepared: list[Prepared]
) -> tuple[list[Change], dict[str, Meter]]:
    """The cost of a request that was already carried out: its items are read, not written."""
    changes = _changes(engine, entries, prepared)
    meters = _meters(entries, "Read")
    for entry, change in zip(entries, changes, strict=True):
        old = items.read(engine, change.table, change.key)
        meters[entry.table_name].read(0 if old is None else size_of(old), consistent=True)
    return changes, meters


def _answer(
    engine: Engine,
    request: TransactWriteItems,
    entries: list[Entry],
    outcome: tuple[list[Change], dict[str, Meter]],
) -> Answer:
    changes, meters = outcome
    answer: dict[str, Any] = {}
    mode = request.return_consumed_capacity
    if mode is not None and wants_capacity(mode):
        answer["ConsumedCapacity"] = [meter.report(mode) for meter in meters.values()]
    if request.return_item_collection_metrics == "SIZE":
        found: dict[str, list[dict[str, Any]]] = {}
        for entry, change in zip(entries, changes, strict=True):
            metrics = collection_metrics(engine, change.table, change.key_item)
            if metrics is not None and metrics not in found.setdefault(entry.table_name, []):
                found[entry.table_name].append(metrics)
        answer["ItemCollectionMetrics"] = found
    return answer


def _fingerprint(request: TransactWriteItems) -> bytes:
    """What must be the same when a token comes again: the writes, not what is reported of them."""
    return repr(request.transact_items).encode()
