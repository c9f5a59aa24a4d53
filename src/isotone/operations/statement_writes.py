"""Executes PartiQL INSERT, UPDATE and DELETE as conditional writes of one item.

The condition of an UPDATE or DELETE must fix the whole key by equality. The rest of it becomes the condition of the
write. UPDATE changes only an existing item. DELETE of a missing item succeeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from isotone.engine.table_indexes import StoredTable
from isotone.errors import ValidationException
from isotone.expressions import check_scalar_keys
from isotone.expressions.partiql import (
    DeleteStatement,
    Exists,
    InsertStatement,
    Select,
    UpdateStatement,
    Where,
    beyond_key,
    key_of,
    messages,
    plan_where,
)
from isotone.operations.item_writes import (
    ItemChange,
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
Write = InsertStatement | UpdateStatement | DeleteStatement

RETURN_VALUES: Final = {
    "ALL OLD": "ALL_OLD",
    "ALL NEW": "ALL_NEW",
    "MODIFIED OLD": "UPDATED_OLD",
    "MODIFIED NEW": "UPDATED_NEW",
}
"""RETURNING clauses as ReturnValues."""


class WriteTarget(NamedTuple):
    """The target of a statement: the key, and the rest of its condition on the item.

    For an INSERT, `key` is the whole item, and `size` its size in bytes.
    """

    key: Item
    demanded: Matches | None = None
    size: int = 0


def target_of(table: StoredTable, statement: Write | Exists, values: Values) -> WriteTarget:
    """The target of a statement. Refuses a statement without a key that fits the table."""
    match statement:
        case InsertStatement():
            return _inserted(table, statement, values)
        case (
            UpdateStatement(where=where)
            | DeleteStatement(where=where)
            | Exists(select=Select(where=where))
        ):
            return _fixed(table, where, values)


def change_of(
    table: StoredTable,
    statement: Write | Exists,
    values: Values,
    on_failure: str | None,
    target: WriteTarget | None = None,
) -> ItemChange:
    """The change that a statement makes; for EXISTS, one that only checks. Does not read the item.

    `target` is the result of `target_of`, if the caller has it already.
    """
    key, demanded, size = target or target_of(table, statement, values)
    match statement:
        case InsertStatement():
            return insert_change(table, key, size)
        case UpdateStatement(update=update):
            if not update.attributes_written.isdisjoint(table.keyspace.names):
                raise key_updated(table, update.attributes_written)
            matches = _if_present(demanded, absent=False)
            change = update_change(table, key, update, values, matches, on_failure, statement.nodes)
        case DeleteStatement():
            wanted = None if demanded is None else _if_present(demanded, absent=True)
            change = delete_change(table, key, wanted, on_failure, statement.nodes)
        case Exists():
            matches = _if_present(demanded, absent=False)
            change = check_change(table, key, matches, on_failure, statement.nodes)
    check_scalar_keys(statement.expressions, table.schema.keys.names)
    return change


def _inserted(table: StoredTable, statement: InsertStatement, values: Values) -> WriteTarget:
    item, size = canonical_item(statement.item(values))
    for part in table.keyspace.schema.parts:
        if part.name not in item:
            raise ValidationException(messages.KEY_ABSENT.format(name=part.name))
        check_key_types(table.keyspace, {part.name: item[part.name]})
    return WriteTarget(item, size=size)


def _fixed(table: StoredTable, where: Where | None, values: Values) -> WriteTarget:
    key = _fixed_key(table, where, values)
    if where is None or key is None:
        raise ValidationException(messages.KEY_EQUALITY)
    if (wrong := _type_fault(key)) is not None:
        raise ValidationException(wrong)
    check_key_types(table.keyspace, key)
    return WriteTarget(key, bound(beyond_key(where, table.keyspace.names), values))


def _fixed_key(table: StoredTable, where: Where | None, values: Values) -> Item | None:
    keyspace = table.keyspace
    key_plan = plan_where(where, keyspace.partition_names, keyspace.sort_names)
    return key_of(key_plan, keyspace.names, values)


def _type_fault(key: Item) -> str | None:
    """The message about the first key value with a type that no key can have; None if there is none."""
    for name, value in key.items():
        (code,) = value
        if code not in SORT_KEYS:
            return messages.KEY_VALUE.format(name=name, type=code)
    return None


def key_fault(table: StoredTable, statement: Write | Exists, values: Values) -> str | None:
    """The message about a statement's key if a value in it has a type that no key can have."""
    if isinstance(statement, InsertStatement):
        return None
    where = statement.select.where if isinstance(statement, Exists) else statement.where
    key = _fixed_key(table, where, values)
    return None if key is None else _type_fault(key)


def is_check(table: StoredTable, statement: Exists, values: Values) -> bool:
    """Whether EXISTS is on one item, with a condition beyond its key."""
    where = statement.select.where
    if where is None or statement.select.index is not None:
        return False
    key = _fixed_key(table, where, values)
    return key is not None and beyond_key(where, table.keyspace.names) is not None


def _if_present(demanded: Matches | None, *, absent: bool) -> Matches:
    """A condition on an existing item; a missing item gives `absent`."""

    def matches(item: Item) -> bool:
        if not item:  # a missing item, as conditions see it
            return absent
        return demanded is None or demanded(item)

    return matches
