"""The order of validation checks of each action, as data: which fault the service reports first.

`first_fault` walks an order after a refusal. The rules of an action (`action.ActionRule`) follow the layers of its members
here. The page `docs/design/order-of-checks.md` shows all of them.
`python -m tests.observed.orders` sends pairs and triples of faults: the answer must always be that of the first layer.

In 2026 AWS moved the actions on single items, Query, Scan and BatchGetItem to newer checks: a fault is counted like a
broken constraint, and each action has its own order. The older checks list all broken constraints at once. They still
serve batches of writes, transactions and tables, and they take over if the newer ones cannot decode a request: when it
is nested too deeply or, in some actions, when a required member is missing.
"""

from __future__ import annotations

from typing import Final

from isotone.operations import statements, streams, vector_search
from isotone.operations.action import ACTIONS, ActionRule
from isotone.operations.checks import batches, members, reads, requests, values
from isotone.operations.checks.first_fault import Check, Layer, Order, OrderBranch, RefusedRequest
from isotone.operations.checks.members import member
from isotone.operations.checks.values import PLACEHOLDERS, newly
from isotone.operations.item_requests import PUT_OR_DELETE, READ, UPDATE
from isotone.operations.query_and_scan import QUERY, SCAN
from isotone.operations.request_expressions import ExpressionParameters
from isotone.values.attribute_validation import (
    EMPTY_SET,
    MANY_TYPES,
    NO_TYPE,
    NULL_NOT_TRUE,
    TOO_DEEP,
)

_ITEM: Final = values.of("Item")
_KEY: Final = values.of("Key")


def _options(*names: str) -> tuple[members.Constraints, ...]:
    return tuple(map(member, names))


_RETURNED: Final = ("ReturnItemCollectionMetrics", "ReturnValuesOnConditionCheckFailure")


# Shared by several orders


_DECODED: Final = "attribute values without a type or with several, bad numbers, false NULLs"


def _decoded(source: values.Source, *, counted: bool = False) -> Layer:
    return Layer(_DECODED, values.decoded(source), counted=counted)


def _counted(*layers: Layer) -> tuple[Layer, ...]:
    return tuple(Layer(each.says, each.check, counted=True) for each in layers)


_NO_NAME: Final = Layer("an empty TableName, alone", members.alone(members.empty_table_name))


def _named(*names: str) -> Layer:
    """No attribute, and no member of a map in it, has an empty name."""
    check = values.named(values.of(*names, PLACEHOLDERS, "Expected", "AttributeUpdates"))
    return Layer("empty names of attributes", check)


_EMPTY_NAMES: Final = "empty names of attributes"
_NAMES: Final = Layer("empty names in ExpressionAttributeNames", requests.names_are_not_empty)
_CONTENT: Final = "duplicates in sets, empty sets, nesting"
_NO_EMPTY_SETS: Final = Layer("empty sets in Key", values.without_empty_sets(_KEY))
_TABLE: Final = Layer("no such table", requests.table_exists)
_KEY_FITS: Final = Layer("a Key that does not fit the table", requests.key_fits)
_MALFORMED: Final = Layer("malformed placeholders", requests.placeholders_are_well_formed)


def _combined(parameters: ExpressionParameters, *, shortly: bool) -> tuple[Layer, ...]:
    """Which parameters can be combined."""
    return (
        Layer("expressions together with legacy parameters", requests.not_mixed(parameters)),
        Layer(
            "ExpressionAttributeNames without an expression",
            requests.names_have_expressions(parameters),
        ),
        Layer(
            "ExpressionAttributeValues without an expression",
            requests.values_have_expressions(parameters, shortly=shortly),
        ),
        Layer(
            "ConditionalOperator without two conditions, or neither AND nor OR",
            requests.operator_joins(parameters),
        ),
    )


_NOT_RETURNED: Final = Layer(
    "ReturnValues other than ALL_OLD and NONE", members.bare(members.returned_by_put_or_delete)
)


_OF_PLACEHOLDERS: Final = "values of placeholders"
_PLACEHOLDERS_BEFORE: Final = Layer(_OF_PLACEHOLDERS, values.placeholders_as_before)


def _older(
    checks: tuple[Layer, ...],
    source: values.Source,
    *more: Layer,
    with_placeholder: bool = True,
    name: members.Constraints = members.one_of_table_name,
) -> tuple[OrderBranch, OrderBranch]:
    """The older checks, for requests that the newer ones cannot decode. `checks` come last; nothing is counted."""
    first = (
        _NO_NAME,
        Layer("broken constraints, all in one list", members.listed_as_before(name)),
        *more,
    )
    last = tuple(
        _PLACEHOLDERS_BEFORE if each.says == _OF_PLACEHOLDERS else Layer(each.says, each.check)
        for each in checks
    )
    nesting = (
        Layer("nesting", values.nesting(values.of("Item", "Key"))),
        Layer("nesting of legacy values", requests.legacy_nesting),
        _PLACEHOLDERS_BEFORE,
        Layer("nesting of ExclusiveStartKey", reads.nesting_of_start),
    )
    decoded = Layer(_DECODED, values.decoded_as_before(source, with_placeholder=with_placeholder))
    return (
        OrderBranch(
            "a value has several types",
            values.has_a_value_of_several_types,
            (decoded, *first, *last),
        ),
        OrderBranch(
            "a value is in more than 62 lists or maps",
            values.is_deep,
            (*first, *nesting, *last),
        ),
    )


# Single items

_PUT: Final = (
    *_counted(
        _named("Item"),
        _NAMES,
        Layer(_CONTENT, values.newer_content(_ITEM)),
        *_combined(PUT_OR_DELETE, shortly=True),
        _MALFORMED,
        Layer(_OF_PLACEHOLDERS, values.placeholders()),
        Layer("an empty expression", requests.not_empty("condition_expression")),
        Layer("nesting of Expected", requests.legacy_nesting),
        Layer(
            "ConditionExpression, but for undefined placeholders",
            requests.compiled("condition_expression", defined=False),
        ),
        _NOT_RETURNED,
        Layer("values of Expected", newly(requests.values_of("expected"))),
        Layer("Expected", requests.expected_is_sound),
    ),
    Layer("an item that is too large", values.item_is_small),
    *_counted(
        Layer("undefined values", requests.compiled("condition_expression")),
        Layer("unused placeholders", requests.placeholders_are_used("condition_expression")),
    ),
    _TABLE,
    Layer("an Item that does not fit the table and its indexes", requests.item_fits),
)
_PUT_VALUES: Final = values.of("Item", PLACEHOLDERS)
_OLDER_PUT: Final = _older(_PUT, _PUT_VALUES, with_placeholder=False)

PUT_ITEM: Final[Order] = (
    _OLDER_PUT[0],
    _decoded(_PUT_VALUES, counted=True),
    _OLDER_PUT[1],
    _NO_NAME,
    Layer(
        "other broken constraints, all in one list",
        members.listed(
            members.one_of_table_name,
            *_options("Item", "ReturnConsumedCapacity"),
            members.return_values,
            *_options(*_RETURNED, "Expected", "ExpressionAttributeNames", PLACEHOLDERS),
        ),
    ),
    *_PUT,
)

_DELETE: Final = (
    *_counted(
        _named("Key"),
        _NAMES,
        *_combined(PUT_OR_DELETE, shortly=True),
        _MALFORMED,
        Layer(_OF_PLACEHOLDERS, values.placeholders(types_named=True)),
        Layer("nesting of Expected", requests.legacy_nesting),
    ),
    _NO_EMPTY_SETS,
    *_counted(
        Layer(_CONTENT, values.newer_content(_KEY)),
        Layer("values of Expected", newly(requests.values_of("expected"))),
        Layer("Expected", requests.expected_is_sound),
        Layer("ConditionExpression", requests.compiled("condition_expression")),
        Layer("unused placeholders", requests.placeholders_are_used("condition_expression")),
    ),
    _TABLE,
    _KEY_FITS,
)
_OLDER_DELETE: Final = _older(_DELETE, _KEY, _NOT_RETURNED)

DELETE_ITEM: Final[Order] = (
    _OLDER_DELETE[0],
    _decoded(_KEY, counted=True),
    _OLDER_DELETE[1],
    _NO_NAME,
    Layer(
        "other broken constraints, all in one list",
        members.listed(
            members.one_of_table_name,
            *_options("Key", "ReturnConsumedCapacity"),
            members.return_values,
            *_options(*_RETURNED, "Expected", "ExpressionAttributeNames", PLACEHOLDERS),
            members.returned_by_put_or_delete,
        ),
    ),
    *_DELETE,
)

_UPDATE: Final = (
    *_counted(
        _named("Key"),
        _NAMES,
        *_combined(UPDATE, shortly=True),
        _MALFORMED,
        Layer(_OF_PLACEHOLDERS, values.placeholders(empty_sets_named=False)),
    ),
    _NO_EMPTY_SETS,
    Layer("empty sets in AttributeUpdates", requests.no_empty_sets_in_updates),
    *_counted(
        Layer(_CONTENT, values.newer_content(_KEY)),
        Layer("values of AttributeUpdates", newly(requests.values_of("attribute_updates"))),
        Layer(
            "an empty expression",
            requests.not_empty("condition_expression", "update_expression"),
        ),
        Layer("the actions of AttributeUpdates", requests.actions_exist),
    ),
    Layer("AttributeUpdates", requests.updates_are_sound),
    *_counted(
        Layer("values of Expected", newly(requests.values_of("expected"))),
        Layer("Expected", requests.expected_is_sound),
        Layer("UpdateExpression", requests.compiled("update_expression")),
        Layer("ConditionExpression", requests.compiled("condition_expression")),
        Layer(
            "unused placeholders",
            requests.placeholders_are_used("update_expression", "condition_expression"),
        ),
    ),
    _TABLE,
    _KEY_FITS,
)
_OLDER_UPDATE: Final = _older(_UPDATE, values.of_updates, name=members.all_of_table_name)

UPDATE_ITEM: Final[Order] = (
    _OLDER_UPDATE[0],
    _decoded(values.of_updates, counted=True),
    _OLDER_UPDATE[1],
    Layer(
        "broken constraints, all in one list, if a required member is missing or an int is another number",
        members.all_members_if_not_decoded(),
    ),
    _NO_NAME,
    Layer("a wrong TableName", members.listed(members.all_of_table_name)),
    Layer("a wrong ReturnValues", members.alone(members.return_values)),
    Layer(
        "a wrong ReturnValuesOnConditionCheckFailure",
        members.bare(member("ReturnValuesOnConditionCheckFailure")),
    ),
    Layer(
        "a wrong ReturnItemCollectionMetrics",
        members.alone(member("ReturnItemCollectionMetrics")),
    ),
    Layer("a wrong ReturnConsumedCapacity", members.bare(member("ReturnConsumedCapacity"))),
    Layer(
        "other broken constraints",
        members.listed(
            *_options("Key", "Expected", "ExpressionAttributeNames"),
            member(PLACEHOLDERS),
        ),
    ),
    *_UPDATE,
)

GET_ITEM: Final[Order] = (
    _decoded(_KEY),
    _NO_NAME,
    Layer(
        "other broken constraints, all in one list",
        members.listed(
            member("Key"),
            members.one_of_table_name,
            *_options("ReturnConsumedCapacity", "AttributesToGet", "ExpressionAttributeNames"),
        ),
    ),
    Layer("nesting that cannot be decoded", values.shallow),
    _named("Key"),
    Layer("empty names in AttributesToGet", requests.attributes_have_names),
    _NAMES,
    *_combined(READ, shortly=False)[:2],
    _MALFORMED,
    Layer(_CONTENT, values.newer_content(_KEY)),
    Layer("an empty expression", requests.not_empty("projection_expression")),
    Layer("names that are twice in AttributesToGet", requests.attributes_differ),
    _TABLE,
    _KEY_FITS,
    Layer("ProjectionExpression", requests.compiled("projection_expression")),
    Layer("unused placeholders", requests.placeholders_are_used("projection_expression")),
)


# Query and Scan

_READ_EXPRESSIONS: Final = ("filter_expression", "projection_expression")

_OLDER_READ: Final = _older((), values.of(PLACEHOLDERS), with_placeholder=False)

QUERY_ORDER: Final[Order] = (
    _decoded(values.of(PLACEHOLDERS)),
    _OLDER_READ[1],
    Layer(
        "broken constraints, all in one list, if a required member is missing or an int is another number",
        members.all_members_if_not_decoded(),
    ),
    Layer(
        "Limit and an empty TableName",
        members.listed(members.placed("Limit"), members.empty_table_name),
    ),
    Layer(
        "a wrong TableName or ReturnConsumedCapacity, or a condition without an operator",
        members.listed(
            members.one_of_table_name,
            *_options("ReturnConsumedCapacity", "KeyConditions", "QueryFilter"),
        ),
    ),
    _named("ExclusiveStartKey"),
    Layer("empty names in AttributesToGet", requests.attributes_have_names),
    _NAMES,
    *_combined(QUERY, shortly=False)[:3],
    Layer(
        "ConditionalOperator without two conditions, or neither AND nor OR",
        requests.operator_joins(QUERY),
    ),
    _MALFORMED,
    Layer(_OF_PLACEHOLDERS, values.placeholders()),
    Layer("a wrong Select", members.alone(member("Select"))),
    Layer(
        "other broken constraints",
        members.listed(
            *_options("AttributesToGet", "ExpressionAttributeNames", PLACEHOLDERS),
            member("ExclusiveStartKey"),
        ),
    ),
    Layer("values of QueryFilter", newly(requests.values_of("query_filter"))),
    Layer("values of KeyConditions", newly(requests.values_of("key_conditions"))),
    Layer("QueryFilter", requests.filter_is_sound("query_filter")),
    Layer("KeyConditions", reads.key_conditions_are_sound),
    Layer("names that are twice in AttributesToGet", requests.attributes_differ),
    Layer("values of ExclusiveStartKey", reads.start_of(NO_TYPE, MANY_TYPES)),
    Layer(
        "an empty KeyConditionExpression or FilterExpression",
        requests.not_empty("key_condition_expression", "filter_expression"),
    ),
    Layer(
        "FilterExpression, but for undefined values",
        requests.compiled("filter_expression", defined=False),
    ),
    Layer("an empty ProjectionExpression", requests.not_empty("projection_expression")),
    Layer("no key condition", reads.there_is_a_key_condition),
    Layer(
        "a Select that contradicts the rest",
        reads.choice_is_possible,
        counted=True,
    ),
    Layer(
        "KeyConditionExpression, but for undefined values",
        requests.compiled("key_condition_expression", defined=False),
    ),
    Layer("two conditions on one key", reads.key_condition_is_single),
    _TABLE,
    Layer("an empty KeyConditions", reads.key_conditions_are_some),
    Layer("no such index, or a consistent read of a global one", reads.index_is_readable),
    Layer("an ExclusiveStartKey that does not fit the keys", reads.start_fits_query),
    Layer("undefined values", requests.compiled("key_condition_expression")),
    Layer("a key condition that does not fit the key", reads.key_condition_fits),
    Layer(
        "an ExclusiveStartKey outside the condition, or where no item can follow it",
        reads.start_is_within,
    ),
    Layer("a filter on the key", reads.filter_is_of_others),
    Layer("ProjectionExpression", requests.compiled("projection_expression")),
    Layer("undefined values of the filter", requests.compiled("filter_expression")),
    Layer(
        "unused placeholders",
        requests.placeholders_are_used("key_condition_expression", *_READ_EXPRESSIONS),
    ),
)

SCAN_ORDER: Final[Order] = (
    _decoded(values.of(PLACEHOLDERS)),
    _OLDER_READ[1],
    Layer(
        "broken constraints, all in one list, if a required member is missing or an int is another number",
        members.all_members_if_not_decoded("ScanFilter"),
    ),
    Layer(
        "Limit, Segment, TotalSegments and an empty TableName",
        members.listed(
            *map(members.placed, ("Limit", "Segment", "TotalSegments")),
            members.empty_table_name,
        ),
    ),
    Layer(
        "a wrong TableName or ReturnConsumedCapacity, or a condition without an operator",
        members.listed(
            members.one_of_table_name, *_options("ReturnConsumedCapacity", "ScanFilter")
        ),
    ),
    _named("ExclusiveStartKey"),
    Layer("empty names in AttributesToGet", requests.attributes_have_names),
    _NAMES,
    *_combined(SCAN, shortly=False),
    _MALFORMED,
    Layer(_OF_PLACEHOLDERS, values.placeholders()),
    Layer("values of ScanFilter", newly(requests.values_of("scan_filter"))),
    Layer("ScanFilter", requests.filter_is_sound("scan_filter")),
    Layer("names that are twice in AttributesToGet", requests.attributes_differ),
    Layer(
        "values of ExclusiveStartKey",
        reads.start_of(
            *(NO_TYPE, MANY_TYPES, TOO_DEEP, NULL_NOT_TRUE), EMPTY_SET["SS"], EMPTY_SET["BS"]
        ),
    ),
    Layer("an empty FilterExpression", requests.not_empty("filter_expression")),
    Layer(
        "FilterExpression, but for undefined values",
        requests.compiled("filter_expression", defined=False, sized=True),
    ),
    Layer("an empty ProjectionExpression", requests.not_empty("projection_expression")),
    Layer("a wrong Select", members.alone(member("Select"))),
    Layer(
        "other broken constraints",
        members.listed(
            *_options("AttributesToGet", "ExpressionAttributeNames", PLACEHOLDERS),
            member("ExclusiveStartKey"),
        ),
    ),
    Layer("a Select that contradicts the rest", reads.choice_is_possible),
    Layer("Segment and TotalSegments", reads.segments_fit),
    _TABLE,
    Layer("no such index, or a consistent read of a global one", reads.index_is_readable),
    Layer("an ExclusiveStartKey that does not fit the keys", reads.start_fits_scan),
    Layer("paths into keys", reads.keys_are_scalars),
    Layer("ProjectionExpression", requests.compiled("projection_expression")),
    Layer("undefined values of the filter", requests.compiled("filter_expression")),
    Layer("unused placeholders", requests.placeholders_are_used(*_READ_EXPRESSIONS)),
)


# Batches and transactions

BATCH_GET_ITEM: Final[Order] = (
    Layer("nesting that cannot be decoded", values.shallow),
    _decoded(values.of_batch_get),
    Layer("no table, alone", members.alone(members.request_items)),
    Layer("no keys for a table, or too many, alone", members.alone(members.keys_of_entries)),
    Layer(
        "names that no table can have, and ReturnConsumedCapacity",
        members.listed(members.names_as_json, member("ReturnConsumedCapacity")),
    ),
    Layer("other broken constraints", members.all_members),
    Layer(_EMPTY_NAMES, values.named(values.of_batch_get)),
    Layer("empty names in AttributesToGet", batches.attributes_have_names),
    Layer("expressions together with legacy parameters", batches.entries_are_not_mixed),
    Layer("ExpressionAttributeNames without an expression", batches.names_have_expressions),
    Layer("malformed placeholders", batches.placeholders_are_well_formed),
    Layer("an empty expression", batches.expressions_are_not_empty),
    Layer("names that are twice in AttributesToGet", batches.attributes_differ),
    Layer("too many keys over all tables", batches.keys_are_few),
    Layer(_CONTENT, values.newer_content(values.of_batch_get)),
    Layer("a key that is written twice", batches.keys_are_written_once),
    Layer("no such table", batches.tables_exist),
    Layer("ProjectionExpression", batches.projections_are_sound),
    Layer("keys that do not fit their table", batches.keys_fit),
    Layer("unused placeholders", batches.placeholders_are_used),
)

BATCH_WRITE_ITEM: Final[Order] = (
    Layer(_DECODED, values.decoded_as_before(values.of_batch_write)),
    Layer("no table, alone", members.alone(members.request_items)),
    Layer("broken constraints, all in one list", members.all_members),
    Layer("names that no table can have", members.alone(members.names_as_java)),
    Layer("too many writes over all tables", batches.writes_are_few),
    Layer(_EMPTY_NAMES, values.named(values.of_batch_write, nested=False)),
    Layer(
        f"each write in turn: not a put or a delete, or both; {_CONTENT}, the size of an item",
        batches.writes_are_sound,
    ),
)

_ENTRIES: Final = values.of_transaction("Item", "Key")

TRANSACT_GET_ITEMS: Final[Order] = (
    Layer("nesting that cannot be decoded", values.shallow),
    Layer(_DECODED, values.decoded_as_before(_ENTRIES)),
    Layer("no entries, or too many, alone", members.alone(members.transact_items)),
    Layer("broken constraints, all in one list", members.all_members),
    Layer("names that no table can have, in one list", members.listed(members.names_of_entries)),
    Layer(_EMPTY_NAMES, values.named(_ENTRIES, nested=False)),
    Layer(f"each entry in turn: {_CONTENT}", values.content(_ENTRIES)),
)

TRANSACT_WRITE_ITEMS: Final[Order] = (
    Layer(
        _DECODED,
        values.decoded_as_before(values.of_transaction("Item", "Key", PLACEHOLDERS)),
    ),
    Layer(
        "a ClientRequestToken that is too long, alone", members.alone(member("ClientRequestToken"))
    ),
    Layer("no entries, or too many, alone", members.alone(members.transact_items)),
    Layer("broken constraints, all in one list", members.all_members),
    Layer("an entry without an action, or with several", batches.entries_have_one_action),
    Layer("names that no table can have, in one list", members.listed(members.names_of_entries)),
    Layer(_EMPTY_NAMES, values.named(_ENTRIES, nested=False)),
    Layer(
        f"each entry in turn: {_CONTENT}, the size of an item",
        values.content(_ENTRIES, sized=True),
    ),
)


# Vectors

SEARCH_VECTORS: Final[Order] = (
    _NO_NAME,
    Layer(
        "broken constraints of IndexName, SearchVector and TopK, all in one list",
        members.listed(
            members.one_of(members.placed("IndexName")),
            members.placed("SearchVector"),
            members.placed("TopK"),
        ),
    ),
    Layer("a wrong TableName", members.bare(members.one_of_table_name)),
    Layer("a wrong ReturnConsumedCapacity", members.bare(member("ReturnConsumedCapacity"))),
    Layer(
        "placeholders without an expression",
        lambda asked: vector_search.check_parameters(asked.request),
    ),
    Layer("TopK out of range", lambda asked: vector_search.check_top_k(asked.request)),
    Layer(
        "SearchConditionExpression", requests.compiled("search_condition_expression", sized=True)
    ),
    Layer("ProjectionExpression", requests.compiled("projection_expression", sized=True)),
    Layer(
        "unused placeholders",
        requests.placeholders_are_used("search_condition_expression", "projection_expression"),
    ),
    Layer(
        "a SearchVector of other values than numbers",
        lambda asked: vector_search.floats_of(asked.request.search_vector),
    ),
    _TABLE,
)


# Members of all other actions

CREATE_TABLE: Final[Order] = (
    Layer("no TableName", members.control_name_is_there),
    Layer("broken constraints, all in one list", members.all_members),
)
OTHERS: Final[Order] = (
    Layer("broken constraints, all in one list", members.all_members),
    Layer("the name of the table", members.control_name),
)
"""The order of the members of an action without an order of its own; its rules follow."""


# Streams


def _find_stream(asked: RefusedRequest) -> None:
    with asked.engine.reading_beside as engine:
        streams.stream_of_arn(engine, asked.request.stream_arn, streams.NO_STREAM)


def _find_shard(asked: RefusedRequest) -> None:
    request = asked.request
    with asked.engine.reading_beside as engine:
        stream = streams.stream_of_arn(engine, request.stream_arn, streams.NO_STREAM)
        streams.shard_of(engine, stream, request.shard_id)


_STREAM: Final = Layer("no such stream", _find_stream)
GET_SHARD_ITERATOR: Final[Order] = (
    *OTHERS,
    Layer(
        "a SequenceNumber or Timestamp that its type does not use, or needs",
        lambda asked: streams.check_position(asked.request),
    ),
    _STREAM,
    Layer("no such shard", _find_shard),
)


# PartiQL

EXECUTE_STATEMENT: Final[Order] = (
    *OTHERS,
    Layer(
        "Parameters: types, numbers, depth",
        lambda asked: statements.parameters_of(asked.request),
    ),
    Layer(
        "the text, and the index of a SELECT (see above, 2 and 3)",
        lambda asked: statements.parsed(asked.request, asked.engine),
    ),
    Layer(
        "the number of parameters, types of operands",
        lambda asked: statements.parsed(asked.request).bind(
            statements.parameters_of(asked.request)
        ),
    ),
)
EXECUTE_TRANSACTION: Final[Order] = (
    *OTHERS,
    Layer(
        "Parameters of all statements: types, numbers, depth",
        lambda asked: [*map(statements.parameters_of, asked.request.transact_statements)],
    ),
    Layer(
        "each statement in turn: its text, the number of parameters, types of operands, RETURNING, an index",
        lambda asked: statements.statements_of(asked.request),
    ),
)

ORDERS: Final[dict[str, Order]] = {
    "PutItem": PUT_ITEM,
    "DeleteItem": DELETE_ITEM,
    "UpdateItem": UPDATE_ITEM,
    "GetItem": GET_ITEM,
    "Query": QUERY_ORDER,
    "Scan": SCAN_ORDER,
    "BatchGetItem": BATCH_GET_ITEM,
    "BatchWriteItem": BATCH_WRITE_ITEM,
    "TransactGetItems": TRANSACT_GET_ITEMS,
    "TransactWriteItems": TRANSACT_WRITE_ITEMS,
    "SearchVectors": SEARCH_VECTORS,
    "CreateTable": CREATE_TABLE,
    "GetShardIterator": GET_SHARD_ITERATOR,
    "ExecuteStatement": EXECUTE_STATEMENT,
    "ExecuteTransaction": EXECUTE_TRANSACTION,
}


def order_of(action: str) -> Order:
    """The order in which an action's faults are reported: that of its members, then its rules."""
    known = ACTIONS[action]
    return (
        *ORDERS.get(action, OTHERS),
        *(Layer(rule.says, _of_request(rule)) for rule in known.before),
        *(Layer(rule.says, _of_tables(rule)) for rule in known.within),
    )


def _of_request(rule: ActionRule) -> Check:
    def check(asked: RefusedRequest) -> None:
        rule.check(asked.request)

    return check


def _of_tables(rule: ActionRule) -> Check:
    def check(asked: RefusedRequest) -> None:
        with asked.engine.reading:
            rule.check(asked.engine, asked.request)

    return check
