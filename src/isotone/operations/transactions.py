"""TransactGetItems, TransactWriteItems: CancellationReasons, ClientRequestToken, IdempotentParameterMismatchException.

A write goes through: entries → makers, which need no table yet → changes of items → all states are read → all conditions are
tested → all is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta

from isotone import limits
from isotone.engine import transaction_tokens
from isotone.engine.consumed_units import per_thread
from isotone.engine.engine import Engine
from isotone.engine.layout import size_of
from isotone.engine.table_indexes import StoredTable
from isotone.errors import (
    ApiError,
    ConditionalCheckFailedException,
    DuplicateItemException,
    IdempotentParameterMismatchException,
    TransactionCanceledException,
    ValidationException,
)
from isotone.expressions import CompiledProjection
from isotone.operations.action import Answer, action
from isotone.operations.capacity import (
    CapacityMeter,
    add_capacity,
    collections_metrics,
    transaction_meters,
)
from isotone.operations.item_responses import item_in_response
from isotone.operations.item_validation import check_size, is_of_request, requested_key
from isotone.operations.item_writes import (
    ItemChange,
    Sized,
    check_change,
    delete_change,
    put_change,
    read_all,
    update_change,
)
from isotone.operations.request_expressions import Binding, ExpressionParameters, bound, checker
from isotone.operations.request_identity import (
    identity_before_forms,
    identity_of,
    is_before_forms,
)
from isotone.operations.request_members import (
    ApiStructure,
    AttributeMap,
    EntryTableName,
    ExpressionNames,
    ExpressionValues,
    ReturnConsumedCapacity,
    ReturnItemCollectionMetrics,
    ReturnValuesOnConditionCheckFailure,
)
from isotone.operations.table_lookup import open_table
from isotone.values.attribute_validation import canonical_item

ClientRequestToken = Annotated[str, Meta(min_length=1, max_length=36)]

# As observed: values in a transaction may have one more level than in an item. An update that writes such a value is
# then cancelled.
_VALUES_LEVEL: Final = 0


class Get(ApiStructure, frozen=True):
    """One read of a transaction."""

    key: AttributeMap
    table_name: EntryTableName
    projection_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None


class TransactGetItem(ApiStructure, frozen=True):
    """One entry of TransactGetItems."""

    get: Get


class TransactGetItems(ApiStructure, frozen=True):
    """Read items of several tables at the same moment."""

    transact_items: Annotated[
        list[TransactGetItem], Meta(min_length=1, max_length=limits.TRANSACTION_ITEMS)
    ]
    return_consumed_capacity: ReturnConsumedCapacity | None = None


class ConditionCheck(ApiStructure, frozen=True):
    """A condition on an item that the transaction does not write."""

    key: AttributeMap
    table_name: EntryTableName
    condition_expression: str
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class Put(ApiStructure, frozen=True):
    """One put of a transaction."""

    item: AttributeMap
    table_name: EntryTableName
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class Delete(ApiStructure, frozen=True):
    """One delete of a transaction."""

    key: AttributeMap
    table_name: EntryTableName
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class Update(ApiStructure, frozen=True):
    """One update of a transaction."""

    key: AttributeMap
    update_expression: str
    table_name: EntryTableName
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class TransactWriteItem(ApiStructure, frozen=True):
    """One entry of TransactWriteItems: exactly one of the members is present."""

    condition_check: ConditionCheck | None = None
    put: Put | None = None
    delete: Delete | None = None
    update: Update | None = None


class TransactWriteItems(ApiStructure, frozen=True):
    """Write items of several tables: all of them or none."""

    transact_items: Annotated[
        list[TransactWriteItem], Meta(min_length=1, max_length=limits.TRANSACTION_ITEMS)
    ]
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    return_item_collection_metrics: ReturnItemCollectionMetrics | None = None
    client_request_token: ClientRequestToken | None = None


TransactAction = ConditionCheck | Put | Delete | Update
ChangeMaker = Callable[[StoredTable], ItemChange]
Reason = dict[str, Any]

_actions_of: Final = attrgetter("condition_check", "put", "update", "delete")
_ONE_ITEM: Final = "Transaction request cannot include multiple operations on one item"
_check_get: Final = checker(
    ExpressionParameters(expressions=("projection_expression",), without_any=True)
)
_check_conditional: Final = checker(
    ExpressionParameters(
        expressions=("condition_expression",),
        with_values=("condition_expression",),
        without_any=True,
    )
)
_check_update: Final = checker(
    ExpressionParameters(
        expressions=("update_expression", "condition_expression"),
        with_values=("update_expression", "condition_expression"),
    )
)


# Cancellation reasons: one for each entry, in order

_NO_REASON: Final[Reason] = {"Code": "None"}
_CODES: Final[dict[type[ApiError], str]] = {
    ConditionalCheckFailedException: "ConditionalCheckFailed",
    DuplicateItemException: "DuplicateItem",
    ValidationException: "ValidationError",
}
_REASONS: Final = tuple(_CODES)


def _reason_of(error: ApiError) -> Reason:
    """The cancellation reason for an entry's error."""
    return {"Code": _CODES[type(error)], "Message": error.message, **error.members}


def _cancelled(reasons: Mapping[int, Reason], count: int) -> TransactionCanceledException:
    """The error of a transaction with `count` entries, some of which have a reason."""
    listed = [reasons.get(index, _NO_REASON) for index in range(count)]
    codes = ", ".join([reason["Code"] for reason in listed])
    return TransactionCanceledException(
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
        CancellationReasons=listed,
    )


def _each(attempts: Iterable[Callable[[], Any]], reasons: dict[int, Reason]) -> list[Any]:
    """The results of all attempts. A failed attempt gives None, and its error is added to `reasons`."""
    results: list[Any] = []
    for attempt in attempts:
        try:
            results.append(attempt())
        except _REASONS as error:
            if is_of_request(error):
                raise
            reasons[len(results)] = _reason_of(error)
            results.append(None)
    return results


def _refuse_duplicates(located: Sequence[tuple[str, bytes] | None]) -> None:
    """Refuse two actions on the same item. Entries whose key does not fit are None."""
    if len(set(located)) == len(located):
        return
    known = [item for item in located if item is not None]
    if len(set(known)) < len(known):
        raise ValidationException(_ONE_ITEM)


# TransactGetItems


@action("TransactGetItems")
def transact_get_items(engine: Engine, request: TransactGetItems) -> Answer:
    """Read items of several tables at the same moment."""
    gets = [entry.get for entry in request.transact_items]
    for get in gets:
        if get.expression_attribute_names is not None:
            _check_get(get)
    projections = [None if get.projection_expression is None else _projection(get) for get in gets]
    for get in gets:
        # a malformed value is an error of the request, not a cancellation reason
        canonical_item(get.key)
    readings = [
        TransactedRead(get.table_name, partial(_place, get.key), projection)
        for get, projection in zip(gets, projections, strict=True)
    ]
    return read_together(engine, readings, request.return_consumed_capacity)


def _place(key: dict[str, Any], table: StoredTable) -> tuple[str, bytes]:
    return table.tree, requested_key(table.keyspace, key)[0]


class TransactedRead(NamedTuple):
    """A read of one item: its table, a function that returns its tree and key, and what to return of it."""

    table_name: str
    locate: Callable[[StoredTable], tuple[str, bytes]]
    projection: CompiledProjection | None


def read_together(engine: Engine, readings: Sequence[TransactedRead], mode: str | None) -> Answer:
    """Read items at the same moment. A key that does not fit its table cancels the transaction."""
    responses: list[dict[str, Any]] = []
    sizes: list[int] = []
    total = 0
    with engine.reading_beside as engine:
        keys = _keys(engine, readings)
        names = map(attrgetter("table_name"), readings)
        meters = transaction_meters(engine, names, mode, "Read")
        for reading, (tree, key) in zip(readings, keys, strict=True):
            record = engine.store.get(tree, key)
            size = size_of(record)
            total += size
            sizes += (size,)
            response: dict[str, Any] = {}
            responses.append(response)
            if record is not None:
                response["Item"] = item_in_response(record, reading.projection)
        if meters:  # only now is it sure that nothing is handed over
            for reading, size in zip(readings, sizes, strict=True):
                meters[reading.table_name].read(size, consistent=True)
    if total > limits.TRANSACTION_SIZE:
        raise ValidationException(
            "Transaction can not exceed 4 MB: the aggregate size of the items in the transaction is too large"
        )
    found = sum(map(len, responses))
    per_thread.spent.add_items(found, found)
    answer: dict[str, Any] = {"Responses": responses}
    if meters:
        add_capacity(answer, mode, meters.values())
    return answer


def _projection(get: Get) -> CompiledProjection | None:
    binding = Binding(get.expression_attribute_names, None)
    projection = binding.projection(get.projection_expression)
    binding.check()
    return projection


def _keys(engine: Engine, readings: Sequence[TransactedRead]) -> list[tuple[str, bytes]]:
    """The tree and key of each item."""
    tables = [open_table(engine, reading.table_name) for reading in readings]
    reasons: dict[int, Reason] = {}
    keys = _each(
        [partial(one.locate, table) for one, table in zip(readings, tables, strict=True)], reasons
    )
    _refuse_duplicates(keys)
    if reasons:
        raise _cancelled(reasons, len(keys))
    return keys


# TransactWriteItems


@action("TransactWriteItems")
def transact_write_items(engine: Engine, request: TransactWriteItems) -> Answer:
    """Execute up to 100 writes and checks on several tables, all of them or none."""
    entries = [*map(entry_of, request.transact_items)]
    makers = [*map(_change_maker, entries)]
    tables = [entry.table_name for entry in entries]
    token_use = use_of(request.client_request_token, request.transact_items)
    with engine.writing:
        _check_parameters(engine, entries, makers)
        meters, changes = write_together(
            engine,
            tables,
            makers,
            mode=request.return_consumed_capacity,
            token_use=token_use,
        )
        answer: dict[str, Any] = {}
        add_capacity(answer, request.return_consumed_capacity, meters.values())
        if request.return_item_collection_metrics == "SIZE":
            answer["ItemCollectionMetrics"] = collections_metrics(
                engine,
                (
                    (entry.table_name, change.table, change.key_item)
                    for entry, change in zip(entries, changes, strict=True)
                ),
            )
        return answer


class TokenUse(NamedTuple):
    """A token and the transaction that uses it, without members that only affect the response."""

    token: str
    entries: Sequence[ApiStructure]
    identity: bytes

    def is_of(self, identity: bytes) -> bool:
        """Whether this is the transaction with a stored identity."""
        if is_before_forms(identity):
            return identity == identity_before_forms(self.entries)
        return identity == self.identity


def use_of(token: str | None, entries: Sequence[ApiStructure]) -> TokenUse | None:
    """The use of a token, if the request has one."""
    return None if token is None else TokenUse(token, entries, identity_of(entries))


def write_together(
    engine: Engine,
    tables: Sequence[str],
    makers: Sequence[ChangeMaker],
    *,
    mode: str | None,
    token_use: TokenUse | None,
) -> tuple[dict[str, CapacityMeter], list[ItemChange]]:
    """Execute the writes of a transaction. If its token was used for the same transaction before, only charge for them.

    Each write is a function from its table to its change. The caller holds the engine's transaction.
    """
    if token_use is not None and _is_repeated(engine, token_use):
        meters = transaction_meters(engine, tables, mode, "Read")
        return meters, _reread(engine, tables, makers, meters)
    meters = transaction_meters(engine, tables, mode, "Write")
    changes = _write_if_all_true(engine, tables, makers, meters)
    if token_use is not None:
        transaction_tokens.remember(engine, token_use.token, token_use.identity)
    return meters, changes


def _is_repeated(engine: Engine, token_use: TokenUse) -> bool:
    """Whether a request was executed before. Refuses a token that was used for another request."""
    stored = transaction_tokens.recall(engine, token_use.token)
    if stored is None:
        return False
    if not token_use.is_of(stored):
        raise IdempotentParameterMismatchException(
            "ClientRequestToken is being used with different request parameters"
        )
    return True


def _check_parameters(
    engine: Engine, entries: Sequence[TransactAction], makers: Sequence[ChangeMaker]
) -> None:
    """Check that the parameters of each entry can be combined; missing tables and misfitting keys are reported first."""
    for entry in entries:
        check = _check_update if isinstance(entry, Update) else _check_conditional
        try:
            check(entry)
        except ValidationException:
            _changes_or_cancel(engine, [each.table_name for each in entries], makers)
            raise


def entry_of(item: TransactWriteItem) -> TransactAction:
    """The only action of an entry."""
    actions: list[TransactAction] = [*filter(None, _actions_of(item))]
    if not actions:
        raise ValidationException(
            "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request"
        )
    if len(actions) > 1:
        raise ValidationException(
            "TransactItems can only contain one of Check, Put, Update or Delete"
        )
    return actions[0]


def _change_maker(entry: TransactAction) -> ChangeMaker:
    """Check everything that does not need the table: expressions, values, and the item or key."""
    update_expression = entry.update_expression if isinstance(entry, Update) else None
    binding = (
        Binding(None, None)  # `_check_parameters` reports placeholders without an expression
        if entry.condition_expression is None and update_expression is None
        else Binding(
            entry.expression_attribute_names, entry.expression_attribute_values, _VALUES_LEVEL
        )
    )
    update = binding.update(update_expression)
    matches = bound(binding.condition(entry.condition_expression), binding.values)
    binding.check()
    on_failure = entry.return_values_on_condition_check_failure
    if isinstance(entry, Put):
        item, size = canonical_item(entry.item)
        check_size(size)
        return partial(
            put_change,
            item=item,
            size=size,
            matches=matches,
            on_failure=on_failure,
            nodes=binding.nodes,
        )
    key, _ = canonical_item(entry.key)
    make: Callable[..., ItemChange]
    match entry:
        case Delete():
            make = delete_change
        case Update():
            make = partial(update_change, update=update, values=binding.values)
        case ConditionCheck():
            make = check_change
    return partial(make, key=key, matches=matches, on_failure=on_failure, nodes=binding.nodes)


def _changes_or_cancel(
    engine: Engine, names: Sequence[str], makers: Sequence[ChangeMaker]
) -> list[ItemChange]:
    """Every write as a change of an item. The first that does not fit its table is the only cancellation reason."""
    tables = [open_table(engine, name) for name in names]
    reasons: dict[int, Reason] = {}
    changes: list[ItemChange | None] = _each(
        [partial(make, table) for make, table in zip(makers, tables, strict=True)], reasons
    )
    fitting = [*filter(None, changes)]
    _refuse_duplicates([(change.table.name, change.key) for change in fitting])
    if reasons:
        first = min(reasons)
        raise _cancelled({first: reasons[first]}, len(changes)) from None
    return fitting


def _write_if_all_true(
    engine: Engine,
    names: Sequence[str],
    makers: Sequence[ChangeMaker],
    meters: Mapping[str, CapacityMeter],
) -> list[ItemChange]:
    """Test all conditions, then write."""
    changes = _changes_or_cancel(engine, names, makers)
    old = read_all(engine, changes)
    reasons: dict[int, Reason] = {}
    new: list[Sized | None] = _each(
        [partial(change.new_item, before) for change, before in zip(changes, old, strict=True)],
        reasons,
    )
    if reasons:
        raise _cancelled(reasons, len(changes))
    size = sum([sized[1] for sized in new if sized is not None])
    if size > limits.TRANSACTION_SIZE:
        raise ValidationException(
            f"Transaction payload size cannot exceed 4MB. Payload Size: {size}"
        )
    for name, change, before, sized in zip(names, changes, old, new, strict=True):
        meter = meters.get(name)
        if not change.only_checks:
            change.write(engine, before, sized, meter)
        elif meter is not None:
            meter.write(size_of(before[0]), 0)
    return changes


def _reread(
    engine: Engine,
    names: Sequence[str],
    makers: Sequence[ChangeMaker],
    meters: Mapping[str, CapacityMeter],
) -> list[ItemChange]:
    """Charge a request that was already executed: its items are read, not written."""
    changes = _changes_or_cancel(engine, names, makers)
    for name, change in zip(names, changes, strict=True):
        if meters:
            record = engine.store.get(change.table.tree, change.key)
            meters[name].read(size_of(record), consistent=True)
    return changes
