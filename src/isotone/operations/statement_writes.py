"""Writing by a PartiQL statement: INSERT, UPDATE and DELETE as the change of one item.

The condition of an UPDATE or DELETE must fix the whole key by equality. What it demands beyond the key is the condition
of the write. UPDATE changes only an item that exists. DELETE of an item that does not exist succeeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isotone.engine.table_indexes import Table
from isotone.errors import ValidationException
from isotone.expressions import check_scalar_keys
from isotone.expressions.partiql import (
    Delete,
    Exists,
    Insert,
    Update,
    Where,
    beyond_key,
    key_of,
    messages,
    plan,
)
from isotone.operations.item_writes import (
    Change,
    check_change,
    delete_change,
    insert_change,
    key_updated,
    update_change,
)
from isotone.operations.request_expressions import Matches, bound
from isotone.operations.statement_reads import check_key_types
from isotone.values.attribute_validation import AttributeValue, Item, canonical_item
from isotone.values.types import SORT_KEYS

Values = Mapping[str, AttributeValue]
Write = Insert | Update | Delete

RETURN_VALUES: Final = {
    "ALL OLD": "ALL_OLD",
    "ALL NEW": "ALL_NEW",
    "MODIFIED OLD": "UPDATED_OLD",
    "MODIFIED NEW": "UPDATED_NEW",
}
"""What RETURNING is called as ReturnValues."""


def change_of(
    table: Table, statement: Write | Exists, values: Values, on_failure: str | None
) -> Change:
    """The change that a statement makes; one that only checks, for EXISTS. Does not read the item."""
    match statement:
        case Insert():
            return _insertion(table, statement, values)
        case Update(where=where, update=update):
            key, demanded = _key_and_condition(table, where, values)
            if not update.attributes_written.isdisjoint(table.keyspace.names):
                raise key_updated(table, update.attributes_written)
            change = update_change(
                table,
                key,
                update,
                values,
                _if_present(demanded, absent=False),
                on_failure,
                statement,
            )
            check_scalar_keys(statement.expressions, table.schema.keys.names)
            return change
        case Delete(where=where):
            key, demanded = _key_and_condition(table, where, values)
            check_scalar_keys(statement.expressions, table.schema.keys.names)
            matches = None if demanded is None else _if_present(demanded, absent=True)
            return delete_change(table, key, matches, on_failure, statement)
        case Exists(select=select):
            key, demanded = _key_and_condition(table, select.where, values)
            check_scalar_keys(statement.expressions, table.schema.keys.names)
            return check_change(
                table, key, _if_present(demanded, absent=False), on_failure, statement
            )


def _insertion(table: Table, statement: Insert, values: Values) -> Change:
    item, size = canonical_item(statement.item(values))
    for part in table.keyspace.schema.parts:
        if part.name not in item:
            raise ValidationException(messages.KEY_ABSENT.format(name=part.name))
        check_key_types(table.keyspace, {part.name: item[part.name]})
    return insert_change(table, item, size)


def _key_and_condition(
    table: Table, where: Where | None, values: Values
) -> tuple[Item, Matches | None]:
    """The key that a condition fixes, and what it demands of the item beyond that."""
    keyspace = table.keyspace
    key_plan = plan(where, keyspace.partition_names, keyspace.sort_names)
    key = key_of(key_plan, keyspace.names, values)
    if where is None or key is None:
        raise ValidationException(messages.KEY_EQUALITY)
    for name, value in key.items():
        (code,) = value
        if code not in SORT_KEYS:
            raise ValidationException(messages.KEY_VALUE.format(name=name, type=code))
    check_key_types(keyspace, key)
    return key, bound(beyond_key(where, keyspace.names), values)


def is_check(table: Table, statement: Exists, values: Values) -> bool:
    """Whether EXISTS is about one item, and demands more of it than its key."""
    where, keyspace = statement.select.where, table.keyspace
    if where is None or statement.select.index is not None:
        return False
    key_plan = plan(where, keyspace.partition_names, keyspace.sort_names)
    key = key_of(key_plan, keyspace.names, values)
    return key is not None and beyond_key(where, keyspace.names) is not None


def _if_present(demanded: Matches | None, *, absent: bool) -> Matches:
    """A condition that holds for an item only if it exists, or `absent`."""

    def matches(item: Item) -> bool:
        if not item:  # as conditions see an item that does not exist
            return absent
        return demanded is None or demanded(item)

    return matches
