"""What a request needs by IAM: its actions and resources, and the values of condition keys (LeadingKeys, Attributes).

`accesses` answers for every action of the API. Most need one permission on one table. A batch needs its own action on
each table, a transaction the actions of its parts, a PartiQL statement the one of its kind, and a restore those of the
reads and writes that it makes. The values of condition keys are computed only if a policy asks for them.

If a key could have several values: two ReturnValues in one request (its own, and that for a failed condition) count
both; a Query or Scan without Select has the service's default.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from isotone.engine.engine import Engine
from isotone.engine.table_indexes import StoredTable
from isotone.errors import ValidationException
from isotone.expressions import condition, key_condition, projection, search_condition, update
from isotone.expressions.key_planning import value_of
from isotone.expressions.partiql import (
    AnyStatement,
    DeleteStatement,
    Exists,
    InsertStatement,
    Select,
    UpdateStatement,
    parse_statement,
    plan_where,
)
from isotone.operations import legacy
from isotone.operations.global_tables import global_table_arn
from isotone.operations.request_expressions import Binding
from isotone.operations.resource_policies import policy_document
from isotone.operations.statement_writes import RETURN_VALUES
from isotone.operations.statements import statements_of
from isotone.operations.streams import arn_of_iterator
from isotone.operations.table_lookup import open_table, table_arn, table_name
from isotone.values.attribute_validation import canonical_value

Keys = Mapping[str, Callable[[], Sequence[str] | None]]
"""Condition keys in lower case without `dynamodb:`, with functions for their values; None if the request lacks the key."""

_ALL: Final = "*"
_PARTITION_KEYS: Final = (
    "firstpartitionkeyvalues",
    "secondpartitionkeyvalues",
    "thirdpartitionkeyvalues",
    "fourthpartitionkeyvalues",
)
_WRITES_OF_RESTORE: Final = (
    "BatchWriteItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "Scan",
    "UpdateItem",
)


class RequiredPermission:
    """One permission that a request needs: a `dynamodb:` action on a resource, which may have a policy."""

    __slots__ = ("_keys", "action", "policy", "resource")

    def __init__(self, action: str, resource: str, keys: Callable[[], Keys] | None = None) -> None:
        self.action: str = action
        self.resource: str = resource
        self.policy: str | None = None
        self._keys = keys

    def values(self, key: str) -> Sequence[str] | None:
        """The values of a condition key, given in lower case and without `dynamodb:`; None if the request lacks the
        key.
        """
        compute = None if self._keys is None else self._keys().get(key)
        return None if compute is None else compute()


def accesses(engine: Engine, operation: str, request: Any) -> list[RequiredPermission]:
    """All permissions that a request needs."""
    needed = list(_NEEDS[operation](engine, operation, request))
    with engine.reading_beside as engine:
        for access in needed:
            access.policy = policy_document(engine, access.resource)
    return needed


Needs = Callable[[Engine, str, Any], Iterable[RequiredPermission]]


# Whole tables, and what belongs to them


def _of_all(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    yield RequiredPermission(action, _ALL)


def _of_table(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    yield RequiredPermission(action, _table(engine, request.table_name))


def _of_table_or_index(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    yield RequiredPermission(action, _source(engine, request))


def _of_arn(member: str) -> Needs:
    """A resource that is given by its ARN; no other spelling of the ARN leads to it."""

    def needs(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
        yield RequiredPermission(action, getattr(request, member))

    return needs


def _create_table(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    resource = _table(engine, request.table_name or "")
    yield RequiredPermission(action, resource)
    if request.tags:
        yield RequiredPermission("TagResource", resource)
    if request.resource_policy is not None:
        yield RequiredPermission("PutResourcePolicy", resource)


def _update_table(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    resource = _table(engine, request.table_name)
    yield RequiredPermission(action, resource)
    for change in request.replica_updates or ():
        if change.create is not None:
            yield RequiredPermission("CreateTableReplica", resource)
        if change.delete is not None:
            yield RequiredPermission("DeleteTableReplica", resource)


def _export(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    yield RequiredPermission(action, table_arn(engine, table_name(request.table_arn, "tableArn")))


def _import(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    yield RequiredPermission(action, _table(engine, request.table_creation_parameters.table_name))


def _restore(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    if action == "RestoreTableFromBackup":
        yield RequiredPermission(action, request.backup_arn)
    else:
        source = request.source_table_name or request.source_table_arn
        # The action refuses a request that names neither.
        yield RequiredPermission(action, _ALL if source is None else _table(engine, source))
    target = _table(engine, request.target_table_name)
    yield RequiredPermission(action, target)
    for each in _WRITES_OF_RESTORE:
        yield RequiredPermission(each, target)


def _records(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    yield RequiredPermission(action, arn_of_iterator(request.shard_iterator))


def _of_global_table(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    name = request.global_table_name
    yield RequiredPermission(action, global_table_arn(engine, name))
    if action != "DescribeGlobalTable" and action != "DescribeGlobalTableSettings":
        yield RequiredPermission(action, _table(engine, name))


def _table(engine: Engine, name: str) -> str:
    return table_arn(engine, table_name(name))


def _source(engine: Engine, request: Any) -> str:
    """The ARN of the table or the index that a request names."""
    resource = _table(engine, request.table_name)
    index = request.index_name
    return resource if index is None else f"{resource}/index/{index}"


# Items


def _item(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    """GetItem, PutItem, UpdateItem and DeleteItem."""
    keys = partial(_item_keys, engine, request)
    yield RequiredPermission(action, _table(engine, request.table_name), keys)


def _item_keys(engine: Engine, request: Any, enclosing: str | None = None) -> Keys:
    key = request.item if hasattr(request, "item") else request.key
    keys: dict[str, Callable[[], Sequence[str] | None]] = {
        **_leading_keys(engine, request.table_name, [key]),
        "attributes": partial(_attributes, [request]),
        **_capacity(request),
    }
    if hasattr(request, "condition_expression"):
        keys["returnvalues"] = partial(_return_values, request)
    else:
        keys["select"] = partial(_select, request)
    if enclosing is not None:
        keys["enclosingoperation"] = lambda: [enclosing]
    return keys


def _read(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    """Query and Scan."""
    yield RequiredPermission(
        action, _source(engine, request), partial(_read_keys, engine, request, action == "Query")
    )


def _read_keys(engine: Engine, request: Any, is_query: bool) -> Keys:
    keys: dict[str, Callable[[], Sequence[str] | None]] = {
        "attributes": partial(_attributes, [request]),
        "select": partial(_select, request),
        **_capacity(request),
    }
    if is_query:
        read = partial(_queried, engine, request)
        keys["leadingkeys"] = lambda: read()[:1]
        for place, name in enumerate(_PARTITION_KEYS):
            keys[name] = partial(_part, read, place)
    return keys


def _part(read: Callable[[], list[str]], place: int) -> list[str] | None:
    return read()[place : place + 1] or None


def _search(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    keys: Keys = {"attributes": partial(_attributes, [request]), **_capacity(request)}
    yield RequiredPermission(action, _source(engine, request), lambda: keys)


def _batch_get(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    for name, entry in request.request_items.items():
        keys = partial(_batch_get_keys, engine, name, entry, request)
        yield RequiredPermission(action, _table(engine, name), keys)


def _batch_get_keys(engine: Engine, table: str, entry: Any, request: Any) -> Keys:
    return {
        **_leading_keys(engine, table, entry.keys),
        "attributes": partial(_attributes, [entry]),
        "select": partial(_select, entry),
        **_capacity(request),
    }


def _batch_write(engine: Engine, action: str, request: Any) -> Iterator[RequiredPermission]:
    for name, writes in request.request_items.items():
        keys = partial(_batch_write_keys, engine, name, writes, request)
        yield RequiredPermission(action, _table(engine, name), keys)


def _batch_write_keys(engine: Engine, table: str, writes: Any, request: Any) -> Keys:
    entries = [each.put_request or each.delete_request for each in writes]
    entries = [each for each in entries if each is not None]
    items = [each.item if hasattr(each, "item") else each.key for each in entries]
    return {
        **_leading_keys(engine, table, items),
        "attributes": partial(_attributes, entries),
        **_capacity(request),
    }


_PARTS_OF_TRANSACTIONS: Final = {
    "get": "GetItem",
    "put": "PutItem",
    "update": "UpdateItem",
    "delete": "DeleteItem",
    "condition_check": "ConditionCheckItem",
}


def _transaction(engine: Engine, operation: str, request: Any) -> Iterator[RequiredPermission]:
    for entry in request.transact_items:
        for member in entry.__struct_fields__:
            part = getattr(entry, member)
            if part is not None:
                keys = partial(_part_keys, engine, part, operation, request)
                action = _PARTS_OF_TRANSACTIONS[member]
                yield RequiredPermission(action, _table(engine, part.table_name), keys)


def _part_keys(engine: Engine, part: Any, operation: str, request: Any) -> Keys:
    return {**_item_keys(engine, part, operation), **_capacity(request)}


# The values of condition keys


def _leading_keys(engine: Engine, table: str, items: Sequence[Mapping[str, Any]]) -> Keys:
    """The partition keys of items: `LeadingKeys` has the first attribute of each, as `FirstPartitionKeyValues` does."""

    def values(place: int) -> list[str] | None:
        names = _found(engine, table).keyspace.partition_names
        if place >= len(names):
            return None
        return [_text(item[names[place]]) for item in items if names[place] in item] or None

    return {
        "leadingkeys": partial(values, 0),
        **{name: partial(values, place) for place, name in enumerate(_PARTITION_KEYS)},
    }


def _found(engine: Engine, name: str) -> StoredTable:
    with engine.reading_beside as engine:
        return open_table(engine, name)


def _queried(engine: Engine, request: Any) -> list[str]:
    """The partition key that a Query reads, attribute by attribute."""
    table = _found(engine, request.table_name)
    index = None if request.index_name is None else table.index(request.index_name)
    if index is None and request.index_name is not None:
        raise ValidationException(
            f"The table does not have the specified index: {request.index_name}"
        )
    keyspace = table.keyspace if index is None else index.keyspace
    binding = Binding(request.expression_attribute_names, request.expression_attribute_values)
    written = binding.key_condition(request.key_condition_expression)
    if written is not None:
        written.check(binding.values)
    keys = legacy.key_conditions(request.key_conditions) if written is None else written
    wanted = keys.resolve(binding.values, keyspace.partition_names, keyspace.sort_names)
    return [_text(value) for value in wanted.partition]


def _text(value: Any) -> str:
    """A key value as policies write it: a text, a number in normal form, or bytes in base64."""
    (plain,) = canonical_value(value)[0].values()
    return b64encode(plain).decode() if isinstance(plain, bytes) else str(plain)


_NAMES: Final = (
    "key",
    "item",
    "attributes_to_get",
    "attribute_updates",
    "expected",
    "key_conditions",
    "query_filter",
    "scan_filter",
)
_EXPRESSIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "projection_expression": projection,
    "condition_expression": condition,
    "filter_expression": condition,
    "update_expression": update,
    "key_condition_expression": key_condition,
    "search_condition_expression": search_condition,
}


def _attributes(requests: Iterable[Any]) -> list[str] | None:
    """The top-level attributes that requests name, including those of keys and expressions. None if there are none."""
    found: set[str] = set()
    for request in requests:
        for member in _NAMES:
            found.update(getattr(request, member, None) or ())
        for key in getattr(request, "keys", None) or ():
            found.update(key)
        names = getattr(request, "expression_attribute_names", None)
        for member, compiled in _EXPRESSIONS.items():
            text = getattr(request, member, None)
            if text is not None:
                found |= compiled(text, names).attributes
    return sorted(found) or None


def _select(request: Any) -> list[str]:
    """The Select of a read, or the service's default."""
    given = getattr(request, "select", None)
    if given is not None:
        return [given]
    named = getattr(request, "attributes_to_get", None)
    if request.projection_expression is not None or named is not None:
        return ["SPECIFIC_ATTRIBUTES"]
    if getattr(request, "index_name", None) is not None:
        return ["ALL_PROJECTED_ATTRIBUTES"]
    return ["ALL_ATTRIBUTES"]


def _return_values(request: Any) -> list[str]:
    own = getattr(request, "return_values", None) or "NONE"
    on_failure = request.return_values_on_condition_check_failure or "NONE"
    return [own] if on_failure in ("NONE", own) else [own, on_failure]


def _capacity(request: Any) -> Keys:
    given = getattr(request, "return_consumed_capacity", None) or "NONE"
    return {"returnconsumedcapacity": lambda: [given]}


# Statements


def _statement(engine: Engine, operation: str, request: Any) -> Iterator[RequiredPermission]:
    yield _of_statement(engine, request, parse_statement(request.statement), {})


def _statements(engine: Engine, operation: str, request: Any) -> Iterator[RequiredPermission]:
    """A statement in a batch that cannot be parsed is answered with an error, and does nothing."""
    for each in request.statements:
        try:
            statement = parse_statement(each.statement)
        except ValidationException:
            continue
        yield _of_statement(engine, each, statement, {})


def _transacted(engine: Engine, operation: str, request: Any) -> Iterator[RequiredPermission]:
    enclosing: Keys = {"enclosingoperation": lambda: [operation]}
    for each, (statement, _) in zip(
        request.transact_statements, statements_of(request), strict=True
    ):
        yield _of_statement(engine, each, statement, enclosing)


_KINDS: Final[Mapping[type, str]] = {
    Select: "PartiQLSelect",
    InsertStatement: "PartiQLInsert",
    UpdateStatement: "PartiQLUpdate",
    DeleteStatement: "PartiQLDelete",
    Exists: "PartiQLSelect",
}


def _of_statement(
    engine: Engine, request: Any, statement: AnyStatement, more: Keys
) -> RequiredPermission:
    action = _KINDS[type(statement)]
    if isinstance(statement, Exists):
        statement = statement.select
    resource = _table(engine, statement.table)
    if isinstance(statement, Select) and statement.index is not None:
        resource += f"/index/{statement.index}"
    keyed = partial(_statement_keys, engine, request, statement)
    keys: dict[str, Callable[[], Sequence[str] | None]] = {
        **more,
        "attributes": partial(_statement_attributes, statement),
        "leadingkeys": lambda: _place(keyed(), 0),
        **{name: partial(_place_of, keyed, place) for place, name in enumerate(_PARTITION_KEYS)},
    }
    if isinstance(statement, Select):
        keys["fulltablescan"] = lambda: ["true" if keyed() is None else "false"]
        keys["select"] = partial(_statement_select, statement)
    else:
        keys["returnvalues"] = partial(_statement_returns, request, statement)
    return RequiredPermission(action, resource, lambda: keys)


def _place(parts: list[list[str]] | None, place: int) -> list[str] | None:
    return None if parts is None or place >= len(parts) else parts[place]


def _place_of(keyed: Callable[[], list[list[str]] | None], place: int) -> list[str] | None:
    return _place(keyed(), place)


def _statement_keys(
    engine: Engine, request: Any, statement: AnyStatement
) -> list[list[str]] | None:
    """The values of each partition attribute that a statement touches; None if it reads everything."""
    table = _found(engine, statement.table)
    keyspace = table.keyspace
    if isinstance(statement, Select) and statement.index is not None:
        index = table.index(statement.index)
        keyspace = keyspace if index is None else index.keyspace
    values = statement.bind([canonical_value(value)[0] for value in request.parameters or ()])
    if isinstance(statement, InsertStatement):
        item = statement.item(values)
        return [[_text(item[name])] for name in keyspace.partition_names if name in item]
    where = None if isinstance(statement, Exists) else statement.where
    planned = plan_where(where, tuple(keyspace.partition_names), tuple(keyspace.sort_names))
    if planned.is_scan:
        return None
    return [[_text(value_of(term, values)) for term in terms] for terms in planned.partition]


def _statement_attributes(statement: AnyStatement) -> list[str] | None:
    found: set[str] = set()
    for expression in statement.expressions:
        found |= expression.attributes
    if isinstance(statement, Select):
        found.update(each.name for each in statement.order if each.refused is None)
        if statement.projection is not None:
            found |= statement.projection.attributes
    if isinstance(statement, InsertStatement):
        found.update(statement.attributes)
    return sorted(found) or None


def _statement_select(statement: Select) -> list[str]:
    if statement.projection is not None:
        return ["SPECIFIC_ATTRIBUTES"]
    return ["ALL_ATTRIBUTES" if statement.index is None else "ALL_PROJECTED_ATTRIBUTES"]


def _statement_returns(request: Any, statement: AnyStatement) -> list[str]:
    returning = getattr(statement, "returning", None)
    own = "NONE" if returning is None else RETURN_VALUES[returning]
    on_failure = request.return_values_on_condition_check_failure or "NONE"
    return [own] if on_failure in ("NONE", own) else [own, on_failure]


# The permissions of each action
_NEEDS: Final[Mapping[str, Needs]] = {
    "BatchExecuteStatement": _statements,
    "BatchGetItem": _batch_get,
    "BatchWriteItem": _batch_write,
    "CancelBulkOperation": _of_arn("bulk_operation_arn"),
    "CreateBackup": _of_table,
    "CreateGlobalTable": _of_global_table,
    "CreateTable": _create_table,
    "DeleteBackup": _of_arn("backup_arn"),
    "DeleteItem": _item,
    "DeleteResourcePolicy": _of_arn("resource_arn"),
    "DeleteTable": _of_table,
    "DescribeBackup": _of_arn("backup_arn"),
    "DescribeBulkOperation": _of_arn("bulk_operation_arn"),
    "DescribeContinuousBackups": _of_table,
    "DescribeContributorInsights": _of_table_or_index,
    "DescribeEndpoints": _of_all,
    "DescribeExport": _of_arn("export_arn"),
    "DescribeGlobalTable": _of_global_table,
    "DescribeGlobalTableSettings": _of_global_table,
    "DescribeImport": _of_arn("import_arn"),
    "DescribeKinesisStreamingDestination": _of_table,
    "DescribeLimits": _of_all,
    "DescribeStream": _of_arn("stream_arn"),
    "DescribeTable": _of_table,
    "DescribeTableReplicaAutoScaling": _of_table,
    "DescribeTimeToLive": _of_table,
    "DisableKinesisStreamingDestination": _of_table,
    "EnableKinesisStreamingDestination": _of_table,
    "ExecuteStatement": _statement,
    "ExecuteTransaction": _transacted,
    "ExportTableToPointInTime": _export,
    "GetItem": _item,
    "GetRecords": _records,
    "GetResourcePolicy": _of_arn("resource_arn"),
    "GetShardIterator": _of_arn("stream_arn"),
    "ImportTable": _import,
    "ListBackups": _of_all,
    "ListBulkOperations": _of_all,
    "ListContributorInsights": _of_all,
    "ListExports": _of_all,
    "ListGlobalTables": _of_all,
    "ListImports": _of_all,
    "ListStreams": _of_all,
    "ListTables": _of_all,
    "ListTagsOfResource": _of_arn("resource_arn"),
    "PutItem": _item,
    "PutResourcePolicy": _of_arn("resource_arn"),
    "Query": _read,
    "RestoreTableFromBackup": _restore,
    "RestoreTableToPointInTime": _restore,
    "Scan": _read,
    "SearchVectors": _search,
    "StartBulkPutItems": _of_table,
    "TagResource": _of_arn("resource_arn"),
    "TransactGetItems": _transaction,
    "TransactWriteItems": _transaction,
    "UntagResource": _of_arn("resource_arn"),
    "UpdateContinuousBackups": _of_table,
    "UpdateContributorInsights": _of_table_or_index,
    "UpdateGlobalTable": _of_global_table,
    "UpdateGlobalTableSettings": _of_global_table,
    "UpdateItem": _item,
    "UpdateKinesisStreamingDestination": _of_table,
    "UpdateTable": _update_table,
    "UpdateTableReplicaAutoScaling": _of_table,
    "UpdateTimeToLive": _of_table,
}

PERMISSIONS: Final = frozenset(
    {
        *_NEEDS,
        *_PARTS_OF_TRANSACTIONS.values(),
        *("PartiQLSelect", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete"),
    }
)
"""What a policy may allow or deny: the actions, and parts of them."""
